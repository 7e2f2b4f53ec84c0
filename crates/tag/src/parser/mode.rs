//! The states of a parser. The drawing of their transitions is in the parent module.

use super::open_call::OpenCall;

/// The state of a parser: what the next byte is part of.
#[derive(Debug)]
pub(super) enum Mode {
    /// The answer, in which markers are searched for.
    Answer(Exclusion),
    /// Reasoning, in which its closing marker and calls are searched for.
    Reasoning(Exclusion),
    /// A call, or text that may still become one.
    Call(Box<OpenCall>),
    /// The header of a message.
    Header(Header),
    /// The body of a message, in which only its end is searched for.
    Body(Prose, Exclusion),
    /// Before the first byte of the body of a message to this tool.
    ToolBody(String),
}

/// A header that is being read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    /// The body that the header interrupts: a model may start a message without ending the one before. `None` in the answer.
    pub body: Option<Prose>,
    /// It follows a quotation mark, so that its message is quoted, too.
    pub is_quoted: bool,
}

/// What text is that is neither a call nor a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prose {
    Answer,
    Reasoning,
}

/// The readings of the next byte that failed before. The byte is not read in these ways again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Exclusion {
    #[default]
    Nothing,
    /// Forms without a marker, which may begin a message.
    Unmarked,
    /// Markers, too: the byte is text.
    All,
}

impl Default for Mode {
    fn default() -> Self {
        Mode::Answer(Exclusion::Nothing)
    }
}

impl Mode {
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

impl Prose {
    /// The state that reads this kind of text.
    pub fn mode(self, excluded: Exclusion) -> Mode {
        match self {
            Prose::Answer => Mode::Answer(excluded),
            Prose::Reasoning => Mode::Reasoning(excluded),
        }
    }
}

impl From<Prose> for Mode {
    fn from(prose: Prose) -> Mode {
        prose.mode(Exclusion::Nothing)
    }
}
