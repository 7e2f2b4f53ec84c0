//! The states of a parser. The drawing of their transitions is in the parent module.

use super::open_call::OpenCall;
use super::prose::{Exclusion, Prose};

/// The state of a parser: what the next byte is part of.
#[derive(Debug)]
pub(super) enum Mode {
    /// The answer, in which markers are searched for.
    Answer(Exclusion),
    /// Reasoning, in which its closing marker and calls are searched for.
    Reasoning(Exclusion),
    /// A call, or text that may still turn out to be one.
    Call(Box<OpenCall>),
    /// The header of a message.
    Header(OpenHeader),
    /// The body of a message, in which only its end is searched for.
    Body(Prose, Exclusion),
    /// Before the first byte of the body of a message to this tool.
    ToolBody(String),
}

/// A header that is being read.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenHeader {
    /// The body that the header interrupts: a model may start a message without ending the one
    /// before. `None` in the answer.
    pub body: Option<Prose>,
    /// It follows a quotation mark, so that its message is quoted, too.
    pub is_quoted: bool,
}

/// How a text ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextEnd {
    /// At its own end.
    Whole,
    /// Before its own end: the model meant to go on, so that a bare marker or the beginning of a
    /// header is left out.
    Cut,
    /// A call of the provider's own comes next, and all that was not read as a call is text. The
    /// call may be one that `tag-parse` has found before, so that a second reading must pass what
    /// the first one passed.
    Native,
}

impl Default for Mode {
    fn default() -> Self {
        Mode::Answer(Exclusion::Nothing)
    }
}

impl Mode {
    /// The state that reads this kind of text.
    pub fn new(prose: Prose, exclusion: Exclusion) -> Mode {
        match prose {
            Prose::Answer => Mode::Answer(exclusion),
            Prose::Reasoning => Mode::Reasoning(exclusion),
        }
    }

    /// What text is in this state.
    pub fn prose(&self) -> Prose {
        match self {
            Mode::Reasoning(_) | Mode::Body(Prose::Reasoning, _) => Prose::Reasoning,
            _ => Prose::Answer,
        }
    }

    /// Makes the next byte text.
    pub fn exclude_all(&mut self) {
        if let Mode::Answer(excluded) | Mode::Reasoning(excluded) | Mode::Body(_, excluded) = self {
            *excluded = Exclusion::All;
        }
    }
}

impl From<Prose> for Mode {
    /// The state that reads this kind of text.
    fn from(prose: Prose) -> Mode {
        Mode::new(prose, Exclusion::Nothing)
    }
}
