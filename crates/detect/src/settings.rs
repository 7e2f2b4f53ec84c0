//! The settings that checkers share.

use crate::auto::Table;
use std::rc::Rc;
use std::str::FromStr;

/// The largest risk that a no of `auto` is wrong: a share from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Risk(f64);

/// Half a percent.
impl Default for Risk {
    fn default() -> Self {
        Risk(0.005)
    }
}

/// Why a text is not a risk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a risk is a share from 0 to 1, or a percentage such as 0.5%")]
pub struct RiskError;

impl Risk {
    /// The risk as a share from 0 to 1.
    pub fn share(self) -> f64 {
        self.0
    }
}

impl FromStr for Risk {
    type Err = RiskError;

    /// Reads `0.005` or `0.5%`.
    fn from_str(text: &str) -> Result<Self, RiskError> {
        let (number, unit) = match text.strip_suffix('%') {
            Some(number) => (number.trim_end(), 100.0),
            None => (text, 1.0),
        };
        let share = number.parse::<f64>().map_err(|_| RiskError)? / unit;
        (0.0..=1.0)
            .contains(&share)
            .then_some(Risk(share))
            .ok_or(RiskError)
    }
}

/// The settings of checkers; a checker uses those that mean something to it.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The risk of `auto`.
    pub risk: Risk,
    /// The table of `auto`, in place of the one that is compiled in.
    pub table: Option<Rc<Table>>,
}

impl Settings {
    /// The table of `auto`.
    pub(crate) fn table(&self) -> Rc<Table> {
        self.table
            .clone()
            .unwrap_or_else(|| Rc::new(Table::built_in()))
    }
}
