//! The page that a conversation is shown on.

use super::calls::CallCards;
use super::who::Who;
use anstyle::{AnsiColor, Style};

/// Whose words a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    User,
    Thinking,
    Answer,
    /// The model's refusal to answer.
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

    /// The mark before its text and the style of that, where the style of the text does not show
    /// whose words it is.
    pub fn mark(self) -> Option<(&'static str, Style)> {
        match self {
            Voice::Thinking => Some(("thinking: ", self.style())),
            Voice::Refusal => Some(("refusal: ", AnsiColor::Yellow.on_default())),
            Voice::User | Voice::Answer | Voice::Output => None,
        }
    }
}

/// The kind of a line that the view itself writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// The stream and choice of the events that follow.
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

/// A page. `out` takes the bytes that are to be shown now.
pub(crate) trait Page {
    /// Whether a result is shown at once. On other pages it is shown when the model's turn is over,
    /// so that the same turn gives the same page, however fast its tools are.
    const LIVE: bool;
    /// The stream and choice whose events are on the page now.
    fn now(&self) -> &Who;
    /// The next events are those of this stream and choice; writes a heading where it is another
    /// one than now.
    fn turn_to(&mut self, out: &mut Vec<u8>, who: &Who);
    /// A piece of running text.
    fn text(&mut self, out: &mut Vec<u8>, voice: Voice, text: &str);
    /// A line that the view itself writes.
    fn note(&mut self, out: &mut Vec<u8>, tone: Tone, text: &str);
    /// The call at this position is new, or has changed.
    fn call(&mut self, out: &mut Vec<u8>, calls: &CallCards, at: usize);
    /// The next text does not continue the text so far.
    fn pause(&mut self);
    /// The text that is last on the page is complete.
    fn end_text(&mut self, out: &mut Vec<u8>);
    /// All of the event is shown.
    fn done(&mut self, out: &mut Vec<u8>, calls: &CallCards);
    /// Other programs may write on the same terminal from now on.
    fn interrupt(&mut self, out: &mut Vec<u8>);
    /// The first calls of the list, all settled and shown, are removed from it.
    fn forget(&mut self, calls: usize);
    /// The end.
    fn finish(&mut self, out: &mut Vec<u8>);
}
