//! What of the events no client gets.

/// Counts of what is in no part of an answer that did not fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Events of choices that the client did not ask for.
    pub other_choices: u64,
    /// Calls that were cut before the client got anything of them.
    pub cut_calls: u64,
    /// Calls and pieces of text behind a call that was cut, which stays open.
    pub behind_cut: u64,
    /// Events with content behind the end of the answer.
    pub late: u64,
}

impl Dropped {
    /// Each count that is not 0, with a sentence for people.
    pub fn notes(self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("dropped an event of a choice that the client did not ask for", self.other_choices),
            ("dropped a call that was cut", self.cut_calls),
            ("dropped a call or text behind a call that was cut", self.behind_cut),
            ("dropped an event with content behind the end of the answer", self.late),
        ]
        .into_iter()
        .filter(|(_, count)| *count > 0)
    }
}
