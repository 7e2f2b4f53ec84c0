//! What all states of a parser share.

use crate::dialect::Form;
use crate::look::Look;
use crate::outlet::{Outlet, Prose};
use crate::parser::contest::{CallReading, Exclusion};
use crate::parser::emitter::Emitter;
use crate::quote::Quote;
use json::ToolList;
use std::rc::Rc;

/// A step of a parser's state machine: the next state, and how much of the text is read. Of the
/// kinds of [`ReadStep`] only `On`, `More` and `Back` occur.
pub(super) type Transition = (Mode, crate::calls::ReadStep);

/// What outlives a state. Each state is a method, in a file of its own: it takes its state and the
/// text at hand.
#[derive(Debug)]
pub(super) struct Router {
    pub look: Rc<Look>,
    pub tools: Option<Rc<ToolList>>,
    pub position: Position,
    pub emitter: Emitter,
    /// The form of the last call.
    pub last: Option<&'static Form>,
    /// The first marker of calls that stayed text, outside quotations.
    pub residue: Option<&'static str>,
}

/// Where in the message the next byte is.
#[derive(Debug)]
pub(super) struct Position {
    /// Nothing but white space came before it.
    pub is_first: bool,
    /// A marker that opens a frame came: the other markers of the frame are left out, too.
    pub is_framed: bool,
    /// A space that comes next belongs to the frame.
    pub skips_space: bool,
    /// A quoted header or marker came, so that the markers after it are an example.
    pub is_example: bool,
    pub quote: Quote,
}

impl Position {
    /// At the beginning of a message.
    pub(super) fn new() -> Position {
        Position {
            is_first: true,
            is_framed: false,
            skips_space: false,
            is_example: false,
            quote: Quote::default(),
        }
    }

    /// Another message begins: after reasoning, and after a header.
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

    /// Passes the first character of `rest`.
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
    /// Whether any call counts. A list without tools makes all of them text, so that nothing is
    /// held back for them.
    pub(super) fn has_tools(&self) -> bool {
        self.tools
            .as_ref()
            .is_none_or(|tools| tools.names().next().is_some())
    }

    /// Whether a call of this name counts.
    pub(super) fn knows(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.knows(tool))
    }

    /// The listed tool that a word means, see [`json::ToolList::meant`].
    pub(super) fn meant(&self, word: &str) -> Option<&str> {
        self.tools.as_ref()?.meant(word)
    }

    /// Emits text without a search for markers. Returns what the text after it is: the beginning of
    /// an answer may turn out to be reasoning.
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

// The states of a parser. The drawing of their transitions is in the parent module.

/// The state of a parser: what the next byte is part of.
#[derive(Debug)]
pub(super) enum Mode {
    /// The answer, in which markers are searched for.
    Answer(Exclusion),
    /// Reasoning, in which its closing marker and calls are searched for.
    Reasoning(Exclusion),
    /// A call, or text that may still turn out to be one.
    Call(Box<CallReading>),
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
    pub(super) fn new(prose: Prose, exclusion: Exclusion) -> Mode {
        match prose {
            Prose::Answer => Mode::Answer(exclusion),
            Prose::Reasoning => Mode::Reasoning(exclusion),
        }
    }

    /// The body of a message, from its first byte.
    pub(super) fn body(prose: Prose) -> Mode {
        Mode::Body(prose, Exclusion::Nothing)
    }

    /// What text is in this state.
    pub(super) fn prose(&self) -> Prose {
        match self {
            Mode::Reasoning(_) | Mode::Body(Prose::Reasoning, _) => Prose::Reasoning,
            _ => Prose::Answer,
        }
    }

    /// Makes the next byte text.
    pub(super) fn exclude_all(&mut self) {
        if let Mode::Answer(excluded) | Mode::Reasoning(excluded) | Mode::Body(_, excluded) = self {
            *excluded = Exclusion::Wrapped;
        }
    }
}

impl From<Prose> for Mode {
    /// The state that reads this kind of text.
    fn from(prose: Prose) -> Mode {
        Mode::new(prose, Exclusion::Nothing)
    }
}
