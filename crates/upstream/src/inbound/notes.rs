//! What a reader leaves out of a request.

/// How many notes are kept. A hostile request could give one for each of its members.
const MOST: usize = 40;

/// How many bytes of a client's word a note repeats.
const WORD: usize = 40;

/// Sentences about what a reader left out.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    list: Vec<String>,
    more: usize,
}

impl Notes {
    /// Takes a sentence; one that is there already is not repeated.
    pub(crate) fn add(&mut self, note: impl Into<String>) {
        let note = note.into();
        if self.list.contains(&note) {
            return;
        }
        if self.list.len() < MOST { self.list.push(note) } else { self.more += 1 }
    }

    /// All sentences; the last one counts those that were too many.
    pub(crate) fn into_list(mut self) -> Vec<String> {
        if self.more > 0 {
            self.list.push(format!("{} more notes are not shown", self.more));
        }
        self.list
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
