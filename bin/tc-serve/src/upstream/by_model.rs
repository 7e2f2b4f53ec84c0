//! Caches findings about models for a limited time.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// How long a finding is valid. The files and the server's responses that it came from may change.
const HOLDS: Duration = Duration::from_secs(60);

/// The most models with a finding. Clients choose the names of models, so their number must be
/// bounded.
const MODELS: usize = 1000;

/// The longest model name, in bytes, for which a finding is kept.
const NAME: usize = 256;

/// The findings, by model name.
#[derive(Debug)]
pub(super) struct ByModel<T>(RefCell<HashMap<String, (T, Instant)>>);

impl<T> Default for ByModel<T> {
    fn default() -> Self {
        ByModel(RefCell::default())
    }
}

impl<T: Copy> ByModel<T> {
    /// Returns the finding about `model`, or `None` if there is none that is still valid.
    pub(super) fn get(&self, model: &str) -> Option<T> {
        let (known, since) = *self.0.borrow().get(model)?;
        (since.elapsed() < HOLDS).then_some(known)
    }

    /// Stores a finding about `model`.
    pub(super) fn keep(&self, model: &str, known: T) {
        if model.len() > NAME {
            return;
        }
        let all = &mut *self.0.borrow_mut();
        all.remove(model);
        if all.len() >= MODELS {
            all.retain(|_, (_, since)| since.elapsed() < HOLDS);
        }
        if all.len() < MODELS {
            all.insert(model.to_owned(), (known, Instant::now()));
        }
    }

    /// Removes all findings.
    pub(super) fn forget(&self) {
        self.0.borrow_mut().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_holds_until_another_and_names_that_clients_make_up_do_not_add_up() {
        let known = ByModel::default();
        known.keep("m", 1);
        assert_eq!(known.get("m"), Some(1));
        for number in 0..2 * MODELS {
            known.keep(&number.to_string(), 2);
        }
        assert_eq!(known.0.borrow().len(), MODELS);
        let long = "m".repeat(NAME + 1);
        known.keep(&long, 3);
        assert_eq!(known.get(&long), None);
        known.keep("m", 4);
        assert_eq!(known.get("m"), Some(4));
        known.forget();
        assert_eq!(known.get("m"), None);
    }
}
