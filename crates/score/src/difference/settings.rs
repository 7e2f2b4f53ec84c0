//! What counts as a difference.

use std::ops::Range;

/// Finds the parts of a text that are to be ignored: their places in bytes, in order, which do not
/// overlap.
pub type Ignored<'s> = &'s dyn Fn(&str) -> Vec<Range<usize>>;

/// What counts as a difference.
#[derive(Clone, Copy, Default)]
pub struct Settings<'s> {
    /// Compare reasoning. Models word it differently from run to run, and no program acts on it.
    pub reasoning: bool,
    /// Compare the messages of the system and of the user.
    pub prompts: bool,
    /// Compare counts of tokens.
    pub usage: bool,
    /// White space counts as one space, and not at all at the ends of a text.
    pub ignore_space: bool,
    /// The parts of texts, and of the strings and numbers of arguments, that are ignored.
    pub ignored: Option<Ignored<'s>>,
}

impl std::fmt::Debug for Settings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("ignore_space", &self.ignore_space)
            .finish_non_exhaustive()
    }
}
