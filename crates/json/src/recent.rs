//! The lists of tools that came last.

use crate::{ToolList, ToolsError};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// How many lists are kept, and how long their texts may be together. The last list is kept however
/// long it is.
const MOST: usize = 16;
const LONGEST: usize = 1 << 20;

/// The lists of tools that came last with streams. The turns of a conversation have the same tools,
/// so that a list which comes again is neither read nor are its schemas compiled once more.
#[derive(Debug, Default)]
pub struct RecentTools(RefCell<VecDeque<(String, Rc<ToolList>)>>);

impl RecentTools {
    /// As [`ToolList::read_valid`], unless the text is one of the last.
    ///
    /// # Errors
    /// The text is not a list of tools.
    pub fn read_valid(&self, text: &str) -> Result<Rc<ToolList>, ToolsError> {
        let recent = &mut *self.0.borrow_mut();
        if let Some(at) = recent.iter().position(|(known, _)| known == text) {
            // The one that came last is the first of all.
            recent.make_contiguous()[..=at].rotate_right(1);
            return Ok(Rc::clone(&recent[0].1));
        }
        let tools = Rc::new(ToolList::read_valid(text)?);
        recent.push_front((text.to_owned(), Rc::clone(&tools)));
        let length = |recent: &VecDeque<(String, _)>| -> usize {
            recent.iter().map(|(text, _)| text.len()).sum()
        };
        while recent.len() > 1 && (recent.len() > MOST || length(recent) > LONGEST) {
            recent.pop_back();
        }
        Ok(tools)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(name: &str) -> String {
        format!(r#"[{{"name":"{name}","parameters":{{"type":"object"}}}}]"#)
    }

    #[test]
    fn a_list_that_comes_again_is_the_one_that_was_read() {
        let recent = RecentTools::default();
        let first = recent.read_valid(&list("f")).unwrap();
        for n in 1..MOST {
            let other = recent.read_valid(&list(&format!("g{n}"))).unwrap();
            assert!(!Rc::ptr_eq(&first, &other));
        }
        assert!(Rc::ptr_eq(&first, &recent.read_valid(&list("f")).unwrap()));
        assert!(recent.read_valid("no list").is_err());
    }

    #[test]
    fn no_more_is_kept_than_the_last_lists() {
        let recent = RecentTools::default();
        for n in 0..=MOST {
            recent.read_valid(&list(&format!("f{n}"))).unwrap();
        }
        assert_eq!(recent.0.borrow().len(), MOST);
        recent.read_valid(&list(&"f".repeat(LONGEST))).unwrap();
        assert_eq!(recent.0.borrow().len(), 1);
    }
}
