//! How models learn of their tools, as far as this process has found out.

use ask::ToolsForm;
use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// How long a decision holds. The files and the server's list that it came from may change.
const HOLDS: Duration = Duration::from_secs(60);

/// The most models whose decisions are kept. Clients choose the names, so the number needs an end.
const MODELS: usize = 1000;

/// The longest name whose decision is kept, in bytes.
const NAME: usize = 256;

/// The decisions of the mode `auto`, by the model's name.
#[derive(Debug, Default)]
pub struct LearnedModes(RefCell<HashMap<String, LearnedMode>>);

#[derive(Clone, Copy, Debug)]
struct LearnedMode {
    form: ToolsForm,
    is_firm: bool,
    since: Instant,
}

impl LearnedModes {
    /// The decision about `model`, and whether a refusal changes nothing about it.
    pub fn get(&self, model: &str) -> Option<(ToolsForm, bool)> {
        let known = *self.0.borrow().get(model)?;
        (known.since.elapsed() < HOLDS).then_some((known.form, known.is_firm))
    }

    /// Keeps a decision.
    pub fn keep(&self, model: &str, form: ToolsForm, is_firm: bool) {
        if model.len() > NAME {
            return;
        }
        let modes = &mut *self.0.borrow_mut();
        if modes.len() >= MODELS {
            modes.retain(|_, known| known.since.elapsed() < HOLDS);
        }
        if modes.len() < MODELS {
            modes.insert(model.to_owned(), LearnedMode { form, is_firm, since: Instant::now() });
        }
    }

    /// Keeps that the provider refused native tools for `model`.
    pub fn learn(&self, model: &str, form: ToolsForm) {
        self.0.borrow_mut().remove(model);
        self.keep(model, form, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_kept_until_another_and_names_that_clients_make_up_do_not_add_up() {
        let modes = LearnedModes::default();
        modes.keep("m", ToolsForm::Native, true);
        assert!(matches!(modes.get("m"), Some((ToolsForm::Native, true))));
        for number in 0..2 * MODELS {
            modes.keep(&number.to_string(), ToolsForm::Native, false);
        }
        assert_eq!(modes.0.borrow().len(), MODELS);
        let long = "m".repeat(NAME + 1);
        modes.learn(&long, ToolsForm::Native);
        assert!(modes.get(&long).is_none());
        let Ok(dialect) = ask::dialect_named(&tag::Dialects::default(), tag::DEFAULT) else { panic!("the default") };
        modes.learn("m", ToolsForm::Nothing(dialect));
        assert!(matches!(modes.get("m"), Some((ToolsForm::Nothing(_), false))));
    }
}
