//! What one stream adds to a table.

use super::origin::Origin;

/// What one stream adds to a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    pub(crate) origin: Origin,
    /// Characters of text up to the first call, or to the end.
    pub(crate) chars: u64,
    pub(crate) has_call: bool,
    pub(crate) runs: [Option<u64>; 4],
}
