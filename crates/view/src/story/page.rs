//! The page that a story is told on.

use super::calls::Calls;
use super::who::Who;
use anstyle::{AnsiColor, Style};

/// Whose words a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    User,
    Thinking,
    Answer,
    /// The model's words that it will not answer.
    Refusal,
    /// A tool's output that is the answer.
    Output,
}

impl Voice {
    pub fn style(self) -> Style {
        match self {
            Voice::User => Style::new().bold(),
            Voice::Thinking => Style::new().dimmed(),
            Voice::Answer | Voice::Refusal | Voice::Output => Style::new(),
        }
    }

    /// What stands before it, where a style alone does not say whose words it is, and in which style.
    pub fn mark(self) -> Option<(&'static str, Style)> {
        match self {
            Voice::Thinking => Some(("thinking: ", self.style())),
            Voice::Refusal => Some(("refusal: ", AnsiColor::Yellow.on_default())),
            Voice::User | Voice::Answer | Voice::Output => None,
        }
    }
}

/// What a line of ours is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Whose events follow.
    Heading,
    /// Figures that change from run to run.
    Figures,
    Quiet,
    Warning,
    Error,
}

impl Tone {
    pub fn style(self) -> Style {
        match self {
            Tone::Heading => Style::new().bold(),
            Tone::Figures | Tone::Quiet => Style::new().dimmed(),
            Tone::Warning => AnsiColor::Yellow.on_default(),
            Tone::Error => AnsiColor::Red.on_default(),
        }
    }
}

/// What a story is told on. `out` takes what is to be shown now.
pub(crate) trait Page {
    /// Whether a result is told at once. Where it is not, it is told when the model's turn is over: then the same turn gives the
    /// same page, however fast its tools were.
    const LIVE: bool;
    /// Whose events are on the page now.
    fn now(&self) -> &Who;
    /// What follows is of this stream and choice: a heading says so, where that is news.
    fn turn_to(&mut self, out: &mut Vec<u8>, who: &Who);
    /// A piece of running text.
    fn text(&mut self, out: &mut Vec<u8>, voice: Voice, text: &str);
    /// A line of ours.
    fn note(&mut self, out: &mut Vec<u8>, tone: Tone, text: &str);
    /// The call at this position is new, or has changed.
    fn call(&mut self, out: &mut Vec<u8>, calls: &Calls, at: usize);
    /// What comes next does not belong to the text so far.
    fn pause(&mut self);
    /// No more text belongs to what was last on the page.
    fn end_text(&mut self, out: &mut Vec<u8>);
    /// The event has been told.
    fn done(&mut self, out: &mut Vec<u8>, calls: &Calls);
    /// Others may write on the same terminal from now on.
    fn interrupt(&mut self, out: &mut Vec<u8>);
    /// The first calls of the list, all settled and told of, leave it.
    fn forget(&mut self, calls: usize);
    /// The end.
    fn finish(&mut self, out: &mut Vec<u8>);
}
