//! Separates the text of one choice into answer, reasoning and calls.
//!
//! Text that can only be the answer or reasoning is emitted at once. A possible beginning of a
//! marker is held back until the next byte decides. Text that may be a call is read by each form
//! that matches, until one form is left or all agree that a call has begun. Only the text of the
//! open call is kept, so that it can be released if it turns out not to be a call.
//!
//! The states ([`Mode`]):
//!
//! ```text
//!   Reasoning <------> Answer <------> Call <--- Reasoning, ToolBody, Header
//!                       |  ^
//!                       v  |
//!                      Header -----> ToolBody -----> Answer
//!                       |  ^            |
//!                       v  |            |
//!   Answer <----------- Body <----------+
//! ```
//!
//! | from | to | at |
//! | --- | --- | --- |
//! | Answer | Reasoning | its opening marker |
//! | | Call | a marker of a form, or the first text of a message where a form has no marker |
//! | | Header | a marker of a header, or `to=` |
//! | | Body | a marker of another speaker's turn, in which no calls count |
//! | Reasoning | Answer | its closing marker |
//! | | Call | a marker of a form that ends reasoning |
//! | Call | Answer | the end of the calls |
//! | | the state before | text that shows that it is not a call, or the end of a quoted one |
//! | Header | Body | its end: the message is for the user or the model itself |
//! | | Call | its end: the message is for a tool that the header names as one |
//! | | ToolBody | its end: the message is for a recipient that may be a tool |
//! | | the state before | text that shows that it is not a header |
//! | ToolBody | Call | `{`: the body is the arguments |
//! | | Answer | `<`: the body is a call in a dialect |
//! | | Body | any other text |
//! | Body | Answer | its end |
//! | | Header | the next header |
//!
//! Text that returns to the previous state is not read in the same way again: that state carries
//! the excluded readings ([`Exclusion`](contest::Exclusion)).

mod answer;
mod call;
mod contest;
mod emitter;
mod framing;
mod messages;
mod router;

use crate::calls::ReadStep;
use crate::dialect::Dialect;
use crate::look::Look;
use crate::outlet::{Outlet, Prose};
pub(crate) use crate::parser::emitter::Backlog;
use crate::parser::emitter::Emitter;
use crate::parser::framing::{Framed, FramingSpace};
pub(crate) use crate::parser::messages::header_is_reasoning;
use crate::parser::router::{Mode, Position, Router, TextEnd};
use json::ToolList;
use std::borrow::Cow;
use std::rc::Rc;

/// How many times in a row a state may read nothing. States hand over a position a few times at
/// most; more often is a bug, and the text is then emitted.
const IDLE: usize = 16;

/// The parser of one choice; see the module.
#[derive(Debug)]
pub struct Parser {
    reading: Reading,
    /// White space that may be framing.
    framing: FramingSpace,
}

/// The state of a parser without its framing.
#[derive(Debug)]
struct Reading {
    mode: Mode,
    /// Text that must be read again together with the following text.
    held: String,
    router: Router,
}

impl Parser {
    /// Creates a parser for one choice. `tools` are the tools of the request and `prefill` is the
    /// end of the prompt; both are `None` if unknown.
    pub fn new(look: Rc<Look>, tools: Option<Rc<ToolList>>, prefill: Option<&str>) -> Parser {
        let mode = prefill.map(|prefill| {
            // Each search costs much more than the end of most prompts, which is empty.
            let mut pairs = look.reasoning.iter();
            let opens_reasoning = !prefill.is_empty()
                && pairs.any(|(open, close)| {
                    let opened = prefill.rfind(open);
                    opened.is_some() && opened > prefill.rfind(close)
                });
            let body = if look.has_messages {
                messages::prefilled(prefill)
            } else {
                None
            };
            body.unwrap_or_else(|| Prose::reasoning_if(opens_reasoning).into())
        });
        let emitter = Emitter::new(look.prefilled, prefill.is_some());
        let router = Router {
            look,
            tools,
            position: Position::new(),
            emitter,
            last: None,
            residue: None,
        };
        Parser {
            reading: Reading {
                mode: mode.unwrap_or_default(),
                held: String::new(),
                router,
            },
            framing: FramingSpace::default(),
        }
    }

    /// Whether the text can be emitted unparsed as part of the answer: no part of it can begin a
    /// marker, and nothing is held back or open. If `true`, the parser has read the text.
    #[inline]
    pub fn passes(&mut self, text: &str) -> bool {
        let Router {
            look,
            position,
            emitter,
            ..
        } = &mut self.reading.router;
        if !matches!(self.reading.mode, Mode::Answer(_))
            || !self.reading.held.is_empty()
            || emitter.holds_beginning()
            || !self.framing.is_in_answer()
            || position.is_first
        {
            return false;
        }
        if look.stop(text.as_bytes()).is_some() {
            return false;
        }
        position.quote.plain(text);
        true
    }

    /// Returns the dialect of the last call. If several dialects write the call in the same way,
    /// the one with the most names, which is the most common, is returned.
    pub(crate) fn dialect(&self) -> Option<&'static Dialect> {
        let call = self.reading.router.last?.call;
        let has = |dialect: &Dialect| dialect.forms.iter().any(|own| std::ptr::eq(own.call, call));
        let dialects = self.reading.router.look.dialects.iter().copied().rev();
        let fitting = dialects.filter(|dialect| has(dialect));
        fitting.max_by_key(|dialect| dialect.aliases.len())
    }

    /// Reads the next piece of the text.
    pub fn push(&mut self, text: &str, out: &mut dyn Outlet) {
        self.framed(out, |reading, out| reading.take(text, out));
    }

    /// Calls `feed` with an outlet that removes white space that is framing.
    fn framed(&mut self, out: &mut dyn Outlet, feed: impl FnOnce(&mut Reading, &mut dyn Outlet)) {
        let framing = &mut self.framing;
        feed(&mut self.reading, &mut Framed { framing, out });
    }

    /// Handles an event between two pieces of text: held-back text of the answer is then not the
    /// beginning of a marker, and text without a call's marker is not the beginning of a call.
    pub fn interrupt(&mut self, out: &mut dyn Outlet) {
        if let Mode::Call(call) = &self.reading.mode
            && call.goes_on()
        {
            return;
        }
        self.framed(out, Reading::release);
        self.framing.interrupt(out);
    }

    /// Before the first text: declares that the text does not begin inside reasoning, whatever the
    /// prompt was.
    pub fn begin_in_answer(&mut self) {
        self.reading.router.emitter.begin_in_answer();
        if self.reading.mode.prose() == Prose::Reasoning {
            self.reading.mode = Mode::default();
        }
    }

    /// Before the first text: emits the beginning at once, unless the prompt usually opens
    /// reasoning. If the beginning turns out to be reasoning, its calls are retracted.
    pub fn emit_beginning(&mut self) {
        self.reading.router.emitter.emit_beginning();
    }

    /// Ends the text. `cut` means that the text was cut off.
    pub fn finish(&mut self, cut: bool, out: &mut dyn Outlet) {
        self.end(if cut { TextEnd::Cut } else { TextEnd::Whole }, out);
    }

    /// Ends the text because the provider sends native calls. The caller retracts the calls found
    /// in the text.
    pub fn begin_native(&mut self, out: &mut dyn Outlet) {
        self.reading.router.emitter.forget();
        self.end(TextEnd::Native, out);
    }

    fn end(&mut self, end: TextEnd, out: &mut dyn Outlet) {
        self.framed(out, |reading, out| reading.end_text(end, out));
        self.framing.interrupt(out);
    }
}

impl Reading {
    fn take(&mut self, text: &str, out: &mut dyn Outlet) {
        if self.held.is_empty() {
            // Most text outside the answer is pieces of a call's arguments.
            if let Mode::Call(call) = &mut self.mode
                && self.router.arguments(call, text, out)
            {
                return;
            }
            return self.read(Cow::Borrowed(text), out);
        }
        let mut joined = std::mem::take(&mut self.held);
        joined.push_str(text);
        self.read(Cow::Owned(joined), out);
    }

    fn release(&mut self, out: &mut dyn Outlet) {
        let held = match std::mem::take(&mut self.mode) {
            Mode::Call(call) => {
                self.mode = call.within.into();
                call.contest.raw
            }
            mode => {
                self.mode = mode;
                std::mem::take(&mut self.held)
            }
        };
        let prose = self.router.literal(self.mode.prose(), &held, out);
        if let Mode::Answer(_) | Mode::Header(_) = self.mode {
            self.mode = prose.into();
        }
        self.router.emitter.decide(Prose::Answer, out);
    }

    fn end_text(&mut self, end: TextEnd, out: &mut dyn Outlet) {
        let mode = loop {
            match std::mem::take(&mut self.mode) {
                Mode::Call(call) => {
                    let (mode, rest) = self.router.finish_call(call, end, out);
                    self.mode = mode;
                    // A call may end long before the text does, if the closing marker of a value is
                    // missing.
                    self.read(Cow::Owned(rest), out);
                }
                mode => break mode,
            }
        };
        let held = std::mem::take(&mut self.held);
        if let Mode::Answer(_) = mode {
            self.router.find_residue(&held);
        }
        self.router.finish_text(&mode, &held, end, out);
        if let Some(mark) = self.router.residue
            && end != TextEnd::Native
            && !self.router.emitter.has_warned()
        {
            let message =
                "not a call: a marker of calls stays text, without those that belong to it";
            self.router.emitter.warn("tag_unparsed", message, mark, out);
        }
        self.router.emitter.finish(end != TextEnd::Whole, out);
    }

    fn read(&mut self, mut text: Cow<'_, str>, out: &mut dyn Outlet) {
        let (mut i, mut idle) = (0, 0);
        while i < text.len() {
            if idle > IDLE {
                debug_assert!(false, "{:?} reads nothing of {:?}", self.mode, &text[i..]);
                self.mode.exclude_all();
            }
            let rest = &text[i..];
            let (mode, step) = match std::mem::take(&mut self.mode) {
                Mode::Answer(exclusion) => self.router.answer(exclusion, rest, out),
                Mode::Reasoning(exclusion) => self.router.reasoning(exclusion, rest, out),
                Mode::Call(call) => self.router.call(call, rest, &mut self.held, out),
                Mode::Header(header) => self.router.header(header, rest, out),
                Mode::Body(prose, exclusion) => self.router.body(prose, exclusion, rest, out),
                Mode::ToolBody(name) => self.router.tool_body(name, rest, out),
            };
            self.mode = mode;
            idle += 1;
            match step {
                ReadStep::More(n) => return self.held.push_str(&text[i + n..]),
                ReadStep::Back(n) => {
                    let before = std::mem::take(&mut self.held);
                    match i.checked_sub(n) {
                        // The current text contains these bytes. Copying it for each such position
                        // would take quadratic time.
                        Some(at) => i = at,
                        None => (text, i) = (Cow::Owned(before + &text[i..]), 0),
                    }
                }
                ReadStep::On(n) | ReadStep::Whole(n) | ReadStep::Done(n) | ReadStep::Fail(n, _) => {
                    i += n;
                    idle = if n == 0 { idle } else { 0 };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Parser;
    use crate::look::Look;
    use crate::outlet::CallPiece;
    use crate::outlet::Outlet;
    use std::rc::Rc;

    /// Collects the text of the answer and the reasoning; calls are not expected.
    #[derive(Default)]
    struct Texts {
        answer: String,
        reasoning: String,
    }

    impl Outlet for Texts {
        fn content(&mut self, text: &str) {
            self.answer.push_str(text);
        }

        fn reasoning(&mut self, text: &str) {
            self.reasoning.push_str(text);
        }

        fn call(&mut self, piece: CallPiece<'_>) {
            panic!("{piece:?}");
        }

        fn retract(&mut self, index: i64, _reason: &'static str) {
            panic!("{index} is retracted");
        }

        fn warning(&mut self, _code: &'static str, _message: &str, _raw: &str) {}
    }

    /// The prompts of MiniMax M2 end inside reasoning, so a long beginning is reasoning. It stays
    /// reasoning after a quoted call that decided this.
    #[test]
    fn text_behind_a_quoted_call_that_decides_the_beginning_is_reasoning() {
        let call = "<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"a\">2</parameter>\n</invoke>\n</minimax:tool_call>";
        for words in [20, 60, 70] {
            let text = format!("{}\"{call}\" it is.</think>So.", "so ".repeat(words));
            for length in [1, 7, text.len()] {
                let mut parser = Parser::new(Rc::new(Look::new("minimax-m2").unwrap()), None, None);
                let mut texts = Texts::default();
                text.as_bytes()
                    .chunks(length)
                    .for_each(|b| parser.push(std::str::from_utf8(b).unwrap(), &mut texts));
                parser.finish(false, &mut texts);
                assert_eq!(texts.answer, "So.", "{words} words in pieces of {length}");
                assert_eq!(texts.reasoning, text[..text.len() - "</think>So.".len()]);
            }
        }
    }
}
