//! One choice of one stream: its text, told apart into answer, reasoning and calls.
//!
//! Text that can only be the answer or reasoning goes out at once. What may be the beginning of a marker is held until the next
//! byte tells; what may be a call is read by a [`Run`] for each form that it may be, until one is left or all agree that a call
//! has begun. The text of the open call is kept, and of nothing else, so that it can be given back when it turns out to be none.

mod answer;
mod contest;
mod head;
mod reasoning;

use crate::dialect::{Form, Prefilled};
use crate::look::Look;
use crate::outlet::Outlet;
use crate::quote::Quote;
use contest::Candidate;
use head::{Gate, Head};
use json::Tools;
use std::borrow::Cow;
use std::rc::Rc;

/// How much of a message whose prompt is not known is held until it is clear whether it begins inside reasoning, in bytes.
const WINDOW: usize = 256;
/// How often a place may be handed on between the stages.
const IDLE: usize = 16;
/// An open call takes its text in steps of this many bytes, so that little is given back when it ends.
const STEP: usize = 4096;

/// What is being read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The answer, in which calls are looked for.
    Text,
    /// Reasoning that one of the closing markers ends.
    Reasoning,
    /// A call; the flag says that it began in reasoning.
    Call { reasoning: bool },
    /// The header of a message; the mode that its text has if it is none.
    Header(Box<Mode>),
    /// The body of a message that is read as it stands; the flag says that it is reasoning.
    Body { reasoning: bool },
    /// The body of a message to a tool, before its first byte.
    ToolBody { name: String },
}

/// How a stage of the parser went on.
pub(crate) enum Flow {
    /// This much of the text is done with.
    Took(usize),
    /// This much is, and the rest waits for more.
    Wait(usize),
    /// Everything so far is done with, but these bytes before the text at hand are to be read (again) first.
    Back(String, usize),
}

/// The parser; see the module.
pub struct Parser {
    pub(crate) look: Rc<Look>,
    pub(crate) tools: Option<Rc<Tools>>,
    pub(crate) mode: Mode,
    /// Text that waits for more.
    held: String,
    /// The beginning of a message of which is not known yet whether it is reasoning.
    head: Option<Head>,
    /// The end of the prompt is not known, nor what it had opened.
    pub(crate) unknown: bool,
    /// The call that ended reasoning whose closing marker has not come.
    thought: Option<i64>,
    /// Nothing but white space has come of this message.
    pub(crate) blank: bool,
    /// The answer stands in a frame, whose other markers are left out too.
    framed: bool,
    pub(crate) quote: Quote,
    candidates: Vec<Candidate>,
    /// The text of the open call.
    raw: String,
    /// How many calls have begun.
    begun: i64,
    /// The open call may be taken back by the end of reasoning.
    gate: Option<Gate>,
    /// Calls that were read whole and may be taken back so: what is left of their arguments.
    waiting: Vec<(i64, String)>,
    /// The open call was begun in the output.
    open: bool,
    /// The call at hand names a tool that is not known, or is quoted: it is read to its end, and given back as text, so that
    /// nothing inside it is taken for a call.
    muted: bool,
    /// The call or the header at hand follows a quotation mark.
    pub(crate) cited: bool,
    /// A call was begun in the text that is kept.
    said: bool,
    /// A call of this region was read whole.
    whole: bool,
    /// The form of the last call.
    used: Option<&'static Form>,
    /// What the text at hand was tried as; and what was tried at the next byte, in vain.
    tried: Tried,
    pub(crate) refused: Tried,
}

/// What was tried at one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tried {
    /// The forms that have no marker.
    unmarked: bool,
    /// The marker that stands there.
    pub(crate) marked: bool,
}

impl Tried {
    /// Everything, so that the text stays as it is.
    pub(crate) fn all() -> Tried {
        Tried { unmarked: true, marked: true }
    }
}

impl std::fmt::Debug for Parser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parser").field("mode", &self.mode).field("held", &self.held).finish_non_exhaustive()
    }
}

impl Parser {
    /// A parser for one choice. `tools` are those of the request, where they are known; `prefill` is the end of the prompt,
    /// where that is known.
    pub fn new(look: Rc<Look>, tools: Option<Rc<Tools>>, prefill: Option<&str>) -> Parser {
        let inside = prefill.is_some_and(|prefill| {
            look.reasoning.iter().any(|(open, close)| match (prefill.rfind(open), prefill.rfind(close)) {
                (Some(open), Some(close)) => open > close,
                (open, _) => open.is_some(),
            })
        });
        let unknown = prefill.is_none();
        let mut parser = Parser {
            mode: if inside { Mode::Reasoning } else { Mode::Text },
            head: (unknown && look.prefilled != Prefilled::No).then(Head::default),
            unknown,
            thought: None,
            look,
            tools,
            held: String::new(),
            blank: true,
            framed: false,
            quote: Quote::default(),
            candidates: Vec::new(),
            raw: String::new(),
            begun: 0,
            gate: None,
            waiting: Vec::new(),
            open: false,
            muted: false,
            cited: false,
            said: false,
            whole: false,
            used: None,
            tried: Tried::default(),
            refused: Tried::default(),
        };
        if let Some(prefill) = prefill {
            parser.prefilled(prefill);
        }
        parser
    }

    /// Whether nothing is held back or open, so that text may pass as it is as long as [`Parser::passes`] says so.
    #[inline]
    pub fn passes(&mut self, text: &str) -> bool {
        if !matches!(self.mode, Mode::Text) || !self.held.is_empty() || self.head.is_some() || self.blank {
            return false;
        }
        if self.look.stop(text.as_bytes()).is_some() {
            return false;
        }
        self.quote.plain(text);
        true
    }

    /// Takes the next piece of the text.
    pub fn push(&mut self, text: &str, out: &mut dyn Outlet) {
        if self.held.is_empty() {
            // The pieces of a call's arguments are most of what is not the answer.
            if let Mode::Call { .. } = self.mode
                && text.len() <= STEP
                && self.candidates.len() == 1
            {
                self.raw.push_str(text);
                if self.more() {
                    return self.write(out);
                }
                return match self.called(text.len(), out) {
                    Flow::Took(n) => self.eat(Cow::Borrowed(&text[n..]), out),
                    Flow::Back(before, n) => self.eat(Cow::Owned(before + &text[n..]), out),
                    Flow::Wait(_) => {}
                };
            }
            self.eat(Cow::Borrowed(text), out);
        } else {
            let mut joined = std::mem::take(&mut self.held);
            joined.push_str(text);
            self.eat(Cow::Owned(joined), out);
        }
    }

    /// Something else came between two pieces of the text: what was held back of the answer is not the beginning of a marker.
    pub fn interrupt(&mut self, out: &mut dyn Outlet) {
        if !matches!(self.mode, Mode::Call { .. }) {
            let held = std::mem::take(&mut self.held);
            if let Mode::Header(_) = self.mode {
                self.mode = Mode::Text;
            }
            self.literal(&held, out);
            self.decide(false, out);
        }
    }

    /// The text does not begin inside reasoning, whatever the prompt was.
    pub fn answer(&mut self) {
        if self.head.as_ref().is_some_and(Head::is_empty) {
            (self.head, self.unknown) = (None, false);
        }
        if matches!(self.mode, Mode::Reasoning | Mode::Body { reasoning: true }) {
            self.mode = Mode::Text;
        }
    }

    /// The text has ended; `cut` says that more should have come.
    pub fn finish(&mut self, cut: bool, out: &mut dyn Outlet) {
        loop {
            match self.mode {
                Mode::Call { .. } => {
                    self.held.clear();
                    if !self.finish_call(cut, out) {
                        continue;
                    }
                }
                Mode::Header(_) => {
                    let text = std::mem::take(&mut self.held);
                    self.mode = Mode::Text;
                    if !self.cited {
                        let message = "not a call: the text ends inside the message header";
                        self.warn("tag_unparsed", message, &text, out);
                    }
                    self.literal(&text, out);
                }
                _ => {
                    let text = std::mem::take(&mut self.held);
                    if self.ends_body(&text) {
                        self.decide(false, out);
                        out.left_out(&text);
                    } else {
                        self.literal(&text, out);
                    }
                }
            }
            break;
        }
        self.decide(cut && self.look.prefilled == Prefilled::Usually && self.begun == 0, out);
        if cut { self.give_up(out) } else { self.release(out) }
    }

    fn eat(&mut self, text: Cow<'_, str>, out: &mut dyn Outlet) {
        let mut text = text;
        let mut i = 0;
        // How often nothing was taken, one after the other: the stages hand a place to each other a few times at most.
        let mut idle = 0;
        while i < text.len() {
            if idle > IDLE {
                debug_assert!(false, "{:?} takes nothing of {:?}", self.mode, &text[i..]);
                self.refused = Tried::all();
            }
            let rest = &text[i..];
            let flow = match &self.mode {
                Mode::Text => self.text(rest, out),
                Mode::Reasoning => self.reasoning(rest, out),
                Mode::Call { .. } => self.call(rest, out),
                Mode::Header(_) => self.header(rest, out),
                Mode::Body { .. } => self.body(rest, out),
                Mode::ToolBody { .. } => self.tool_body(rest, out),
            };
            match flow {
                Flow::Took(n) => {
                    i += n;
                    idle = if n == 0 { idle + 1 } else { 0 };
                }
                Flow::Wait(n) => {
                    self.held.push_str(&text[i + n..]);
                    return;
                }
                Flow::Back(before, n) => {
                    i += n;
                    idle += 1;
                    if text[..i].ends_with(&before) {
                        // This text holds all of it: copying what follows would make many such places quadratic.
                        i -= before.len();
                    } else {
                        (text, i) = (Cow::Owned(before + &text[i..]), 0);
                    }
                }
            }
        }
    }

    /// A message begins anew: after reasoning, and after a header.
    pub(crate) fn restart(&mut self) {
        self.blank = true;
        self.quote = Quote::default();
    }

    /// Text as it stands, whatever it looks like.
    pub(crate) fn literal(&mut self, text: &str, out: &mut dyn Outlet) {
        if text.is_empty() {
            return;
        }
        let mut from = 0;
        for (at, c) in text.bytes().enumerate().filter(|(_, c)| matches!(c, b'`' | b'~')) {
            self.quote.plain(&text[from..at]);
            self.quote.tick(c);
            from = at + 1;
        }
        self.quote.plain(&text[from..]);
        match self.mode {
            Mode::Reasoning | Mode::Body { reasoning: true } => out.reasoning(text),
            _ => {
                self.blank &= text.trim_ascii().is_empty();
                self.say(text, out);
            }
        }
    }
}

/// The length of the longest beginning of `text` that has at most `most` bytes (at least 4) and ends between two characters.
pub(crate) fn floor(text: &str, most: usize) -> usize {
    (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The length of the shortest beginning of `text` that has at least `least` bytes, or all, and ends between two characters.
pub(crate) fn ceil(text: &str, least: usize) -> usize {
    (least..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}
