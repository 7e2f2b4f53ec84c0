//! Data shared by all states of a parser.

use crate::dialect::Form;
use crate::look::Look;
use crate::outlet::{Outlet, Prose};
use crate::parser::contest::{CallReading, Exclusion};
use crate::parser::emitter::Emitter;
use crate::quote::Quote;
use json::ToolList;
use std::rc::Rc;

/// A step of a parser's state machine: the next state, and how much of the text is consumed. Only
/// the `On`, `More` and `Back` steps of [`ReadStep`] occur.
pub(super) type Transition = (Mode, crate::calls::ReadStep);

/// Data that outlives a state. Each state is a method in its own file, which receives its state and
/// the current text.
#[derive(Debug)]
pub(super) struct Router {
    pub look: Rc<Look>,
    pub tools: Option<Rc<ToolList>>,
    pub position: Position,
    pub emitter: Emitter,
    /// The form of the last call.
    pub last: Option<&'static Form>,
    /// The first marker of calls that stayed text outside quotations; `None` if there is none.
    pub residue: Option<&'static str>,
}

/// The position of the next byte in the message.
#[derive(Debug)]
pub(super) struct Position {
    /// Whether only white space came before the next byte.
    pub is_first: bool,
    /// Whether a marker that opens a frame came before, so that the other markers of the frame are
    /// dropped too.
    pub is_framed: bool,
    /// Whether a space at the next byte belongs to the frame.
    pub skips_space: bool,
    /// Whether a quoted header or marker came before, so that the markers after it are an example.
    pub is_example: bool,
    pub quote: Quote,
}

impl Position {
    /// Creates the position at the beginning of a message.
    pub(super) fn new() -> Position {
        Position {
            is_first: true,
            is_framed: false,
            skips_space: false,
            is_example: false,
            quote: Quote::default(),
        }
    }

    /// Begins another message: after reasoning, and after a header.
    pub(super) fn restart(&mut self) {
        (self.is_first, self.is_example, self.quote) = (true, false, Quote::default());
    }

    /// Passes text without backticks and tildes.
    pub(super) fn pass(&mut self, text: &str) {
        self.is_first = self.is_first && text.trim_ascii().is_empty();
        self.quote.plain(text);
    }

    /// Passes text of any kind.
    pub(super) fn pass_all(&mut self, text: &str) {
        let mut from = 0;
        for (at, c) in text
            .bytes()
            .enumerate()
            .filter(|(_, c)| matches!(c, b'`' | b'~'))
        {
            self.quote.plain(&text[from..at]);
            self.quote.tick(c);
            from = at + 1;
        }
        self.quote.plain(&text[from..]);
    }

    /// Passes the first character of `rest`, and returns its length.
    pub(super) fn pass_one(&mut self, rest: &str) -> usize {
        let width = rest.chars().next().map_or(1, char::len_utf8);
        match rest.as_bytes()[0] {
            c @ (b'`' | b'~') => self.quote.tick(c),
            _ => self.quote.plain(&rest[..width]),
        }
        width
    }
}

impl Router {
    /// Whether any call counts. If the list has no tools, all calls are text, so no text is held
    /// back for them.
    pub(super) fn has_tools(&self) -> bool {
        self.tools
            .as_ref()
            .is_none_or(|tools| tools.names().next().is_some())
    }

    /// Whether a call of this name counts.
    pub(super) fn knows(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.knows(tool))
    }

    /// Returns the listed tool that a word means, see [`json::ToolList::meant`].
    pub(super) fn meant(&self, word: &str) -> Option<&str> {
        self.tools.as_ref()?.meant(word)
    }

    /// Emits text without searching for markers. Returns the kind of the text after it, because the
    /// beginning of an answer may turn out to be reasoning.
    pub(super) fn literal(&mut self, prose: Prose, text: &str, out: &mut dyn Outlet) -> Prose {
        if text.is_empty() {
            return prose;
        }
        self.position.pass_all(text);
        match prose {
            Prose::Reasoning => {
                out.reasoning(text);
                prose
            }
            Prose::Answer => {
                self.position.is_first &= text.trim_ascii().is_empty();
                self.emitter.text(text, out)
            }
        }
    }
}

// The states of a parser. The parent module contains the diagram of their transitions.

/// The state of a parser, which determines how the next byte is read.
#[derive(Debug)]
pub(super) enum Mode {
    /// The answer, which is searched for markers.
    Answer(Exclusion),
    /// Reasoning, which is searched for its closing marker and calls.
    Reasoning(Exclusion),
    /// A call, or text that may still turn out to be one.
    Call(Box<CallReading>),
    /// The header of a message.
    Header(OpenHeader),
    /// The body of a message, which is searched only for its end.
    Body(Prose, Exclusion),
    /// Before the first byte of the body of a message to this tool.
    ToolBody(String),
}

/// A header that is being read.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenHeader {
    /// The body that the header interrupts, because a model may start a message without ending the
    /// previous one; `None` in the answer.
    pub body: Option<Prose>,
    /// Whether the header follows a quotation mark, so that its message is quoted too.
    pub is_quoted: bool,
}

/// The way a text ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextEnd {
    /// The text is complete.
    Whole,
    /// The text was cut off: the model meant to continue, so a bare marker or the beginning of a
    /// header is dropped.
    Cut,
    /// A native call follows, and all text that was not read as a call is text. `tag-parse` may
    /// have found this call in an earlier pass, so a second pass must emit the same text as the
    /// first.
    Native,
}

impl Default for Mode {
    fn default() -> Self {
        Mode::Answer(Exclusion::Nothing)
    }
}

impl Mode {
    /// Creates the state that reads this kind of text.
    pub(super) fn new(prose: Prose, exclusion: Exclusion) -> Mode {
        match prose {
            Prose::Answer => Mode::Answer(exclusion),
            Prose::Reasoning => Mode::Reasoning(exclusion),
        }
    }

    /// Creates the state of a message body, from its first byte.
    pub(super) fn body(prose: Prose) -> Mode {
        Mode::Body(prose, Exclusion::Nothing)
    }

    /// Returns the kind of text in this state.
    pub(super) fn prose(&self) -> Prose {
        match self {
            Mode::Reasoning(_) | Mode::Body(Prose::Reasoning, _) => Prose::Reasoning,
            _ => Prose::Answer,
        }
    }

    /// Excludes all readings of the next byte, which makes it text.
    pub(super) fn exclude_all(&mut self) {
        if let Mode::Answer(excluded) | Mode::Reasoning(excluded) | Mode::Body(_, excluded) = self {
            *excluded = Exclusion::Wrapped;
        }
    }
}

impl From<Prose> for Mode {
    /// Creates the state that reads this kind of text.
    fn from(prose: Prose) -> Mode {
        Mode::new(prose, Exclusion::Nothing)
    }
}
