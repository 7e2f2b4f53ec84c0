//! A cache of the most recently used tool lists.

use crate::{ToolList, ToolsError};
use std::cell::RefCell;
use std::rc::Rc;

/// The maximum number of lists in the cache.
const MAX_LISTS: usize = 16;
/// The maximum length of all texts in the cache together, in bytes. A longer text is cached alone.
const MAX_TEXT: usize = 1 << 20;

/// A cache of the most recently used tool lists, by their text. All turns of a conversation have the
/// same tools, so most lists need not be parsed again, nor their schemas compiled again.
#[derive(Debug, Default)]
pub struct RecentTools(RefCell<Vec<(String, Rc<ToolList>)>>);

impl RecentTools {
    /// Returns the list from the cache, or else reads it as [`ToolList::read_valid`] does.
    ///
    /// # Errors
    /// The text is not a list of tools.
    pub fn read_valid(&self, text: &str) -> Result<Rc<ToolList>, ToolsError> {
        let recent = &mut *self.0.borrow_mut();
        let at = match recent.iter().position(|(known, _)| known == text) {
            Some(at) => at,
            None => {
                let tools = Rc::new(ToolList::read_valid(text)?);
                recent.push((text.to_owned(), tools));
                recent.len() - 1
            }
        };
        recent[..=at].rotate_right(1);
        let length =
            |recent: &[(String, _)]| -> usize { recent.iter().map(|(t, _)| t.len()).sum() };
        while recent.len() > 1 && (recent.len() > MAX_LISTS || length(recent) > MAX_TEXT) {
            recent.pop();
        }
        Ok(Rc::clone(&recent[0].1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(name: &str) -> String {
        format!(r#"[{{"name":"{name}","parameters":{{"type":"object"}}}}]"#)
    }

    #[test]
    fn a_list_in_the_cache_is_not_read_again() {
        let recent = RecentTools::default();
        let first = recent.read_valid(&list("f")).unwrap();
        for n in 1..MAX_LISTS {
            let other = recent.read_valid(&list(&format!("g{n}"))).unwrap();
            assert!(!Rc::ptr_eq(&first, &other));
        }
        assert!(Rc::ptr_eq(&first, &recent.read_valid(&list("f")).unwrap()));
        assert!(recent.read_valid("no list").is_err());
    }

    #[test]
    fn the_least_recently_used_lists_are_dropped() {
        let recent = RecentTools::default();
        for n in 0..=MAX_LISTS {
            recent.read_valid(&list(&format!("f{n}"))).unwrap();
        }
        let kept = |recent: &RecentTools, name: &str| {
            let lists = recent.0.borrow();
            lists.iter().any(|(text, _)| *text == list(name))
        };
        assert_eq!(recent.0.borrow().len(), MAX_LISTS);
        assert!(!kept(&recent, "f0") && kept(&recent, "f1"));
        recent.read_valid(&list("f2")).unwrap();
        for name in ["g1", "g2"] {
            recent.read_valid(&list(name)).unwrap();
        }
        assert!(!kept(&recent, "f1") && !kept(&recent, "f3") && kept(&recent, "f2"));
        recent.read_valid(&list(&"f".repeat(MAX_TEXT))).unwrap();
        assert_eq!(recent.0.borrow().len(), 1);
    }
}
