//! What a reader leaves out of a request.

use serde_json::Value;

/// How many notes are kept. A hostile request could give one for each of its members.
const MOST: usize = 40;

/// How many bytes of a client's word a note repeats.
const WORD: usize = 40;

/// Sentences about what a reader left out.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    list: Vec<String>,
    foreign: Vec<String>,
    more: usize,
}

impl Notes {
    /// Takes a sentence; one that is there already is not repeated.
    pub(crate) fn add(&mut self, note: impl Into<String>) {
        self.push(note.into(), false);
    }

    /// Takes a sentence about what an upstream of the client's API gets, and another does not.
    pub(crate) fn add_foreign(&mut self, note: impl Into<String>) {
        self.push(note.into(), true);
    }

    /// Notes the members of an object of `what` that are not among `read`, which an upstream of the
    /// client's API alone gets.
    pub(crate) fn unread(&mut self, what: &str, object: &Value, read: &[&str]) {
        for (name, value) in object.as_object().into_iter().flatten() {
            let is_empty = match value {
                Value::Null | Value::Bool(false) => true,
                Value::Array(list) => list.is_empty(),
                Value::Object(members) => members.is_empty(),
                _ => false,
            };
            if !is_empty && !read.contains(&name.as_str()) {
                self.add_foreign(format!("{what}: {} is left out", quoted(name)));
            }
        }
    }

    fn push(&mut self, note: String, is_foreign: bool) {
        let is_full = self.list.len() + self.foreign.len() >= MOST;
        let list = if is_foreign {
            &mut self.foreign
        } else {
            &mut self.list
        };
        if list.contains(&note) {
            return;
        }
        if is_full {
            self.more += 1
        } else {
            list.push(note)
        }
    }

    /// All sentences, and those that are true for an upstream of another API alone; the last one
    /// counts those that were too many.
    pub(crate) fn into_lists(mut self) -> (Vec<String>, Vec<String>) {
        if self.more > 0 {
            self.list
                .push(format!("{} more notes are not shown", self.more));
        }
        (self.list, self.foreign)
    }
}

/// A word of the client's in quotes, shortened, without control characters.
pub(crate) fn quoted(word: &str) -> String {
    let mut end = word.len().min(WORD);
    while !word.is_char_boundary(end) {
        end -= 1;
    }
    let dots = if end < word.len() { "…" } else { "" };
    format!("{:?}", format!("{}{dots}", &word[..end]))
}
