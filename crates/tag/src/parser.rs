//! One choice of one stream: its text, told apart into answer, reasoning and calls.
//!
//! Text that can only be the answer or reasoning goes out at once. What may be the beginning of a marker is held until the next
//! byte tells; what may be a call is read by a [`Run`] for each form that it may be, until one is left or all agree that a call
//! has begun. The text of the open call is kept, and of nothing else, so that it can be given back when it turns out to be none.

use crate::calls::{Calls, Op, Step};
use crate::dialect::{Form, Prefilled, Scope};
use crate::look::{Look, Target, is_fence};
use crate::outlet::{Outlet, Piece};
use crate::quote::Quote;
use crate::run::Run;
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

/// A form being read while others may be too.
struct Candidate {
    run: Run,
    calls: Calls,
    /// How much of [`Parser::raw`] it took.
    at: usize,
    /// What it said last.
    step: Step,
}

impl Candidate {
    /// Reads on in the text of the open call.
    fn push(&mut self, raw: &str, tools: Option<&Tools>, alone: bool) {
        self.step = self.run.push(&raw[self.at..], tools, alone, &mut self.calls);
        if let Step::More(n) | Step::Whole(n) | Step::Done(n) = self.step {
            self.at += n;
        }
    }
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
    head: Option<String>,
    /// The end of the prompt is not known.
    unknown: bool,
    /// Nothing but white space has come of this message.
    pub(crate) blank: bool,
    /// The answer stands in a frame, whose other markers are left out too.
    framed: bool,
    quote: Quote,
    candidates: Vec<Candidate>,
    /// The text of the open call.
    raw: String,
    /// How many calls have begun.
    begun: i64,
    /// The open call was begun in the output.
    open: bool,
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
        let unknown = prefill.is_none() && look.prefilled != Prefilled::No;
        let mut parser = Parser {
            mode: if inside { Mode::Reasoning } else { Mode::Text },
            head: unknown.then(String::new),
            unknown,
            look,
            tools,
            held: String::new(),
            blank: true,
            framed: false,
            quote: Quote::default(),
            candidates: Vec::new(),
            raw: String::new(),
            begun: 0,
            open: false,
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
        if self.mode != Mode::Text || !self.held.is_empty() || self.head.is_some() || self.blank {
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
        if self.head.as_ref().is_some_and(String::is_empty) {
            (self.head, self.unknown) = (None, false);
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
                    out.warning(
                        "tag_unparsed",
                        "the text ends inside a message's header, so it is left as text",
                        &text,
                    );
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
        self.decide(cut && self.look.prefilled == Prefilled::Usually, out);
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
                    let joined = before + &text[i + n..];
                    (text, i) = (Cow::Owned(joined), 0);
                    idle += 1;
                }
            }
        }
    }

    /// The answer.
    fn text(&mut self, text: &str, out: &mut dyn Outlet) -> Flow {
        let b = text.as_bytes();
        let refused = std::mem::take(&mut self.refused);
        let mut i = 0;
        while i < b.len() {
            self.tried = if i == 0 { refused } else { Tried::default() };
            if self.blank && !self.tried.unmarked {
                let at = i + crate::run::space(&text[i..]);
                self.quote.plain(&text[i..at]);
                i = at;
                if i == b.len() {
                    break;
                }
                self.tried = if i == 0 { refused } else { Tried::default() };
                match self.begin_unmarked(&text[i..]) {
                    Begun::No => {}
                    begun => return self.leave(begun, text, i, out),
                }
            }
            let Some(at) = self.look.stop(&b[i..]).map(|n| i + n) else {
                self.blank &= text[i..].trim_ascii().is_empty();
                self.quote.plain(&text[i..]);
                break;
            };
            if at > i {
                self.blank &= text[i..at].trim_ascii().is_empty();
                self.quote.plain(&text[i..at]);
                self.tried = Tried::default();
            }
            let rest = &text[at..];
            if !self.tried.marked {
                match self.target(rest) {
                    Begun::No => {}
                    Begun::Wait => {
                        self.refused = self.tried;
                        return self.leave(Begun::Wait, text, at, out);
                    }
                    Begun::Yes => {
                        self.say(&text[..at], out);
                        return Flow::Took(at + self.begin_marked(rest, out));
                    }
                }
            }
            let width = rest.chars().next().map_or(1, char::len_utf8);
            match b[at] {
                c @ (b'`' | b'~') => self.quote.tick(c),
                _ => self.quote.plain(&rest[..width]),
            }
            self.blank = false;
            i = at + width;
        }
        self.say(text, out);
        Flow::Took(text.len())
    }

    /// Says the answer's text up to `at`, where something else begins or may begin.
    fn leave(&mut self, begun: Begun, text: &str, at: usize, out: &mut dyn Outlet) -> Flow {
        self.say(&text[..at], out);
        if begun == Begun::Wait { Flow::Wait(at) } else { Flow::Took(at) }
    }

    /// Whether a marker that counts here stands at the beginning of `rest`.
    fn target(&mut self, rest: &str) -> Begun {
        let look = Rc::clone(&self.look);
        if look.perhaps(rest).any(|marker| marker.targets.iter().any(|t| self.counts(*t))) {
            return Begun::Wait;
        }
        let here = look.here(rest).is_some_and(|marker| marker.targets.iter().any(|t| self.counts(*t)));
        if here { Begun::Yes } else { Begun::No }
    }

    /// Whether a marker's meaning counts at this place.
    fn counts(&mut self, target: Target) -> bool {
        match target {
            Target::Form(form) => self.may_begin(form),
            Target::Reasoning(_) => self.blank,
            Target::DroppedFirst => self.blank || self.framed,
            Target::Answer => self.blank || self.head.is_some() || self.unknown,
            Target::Dropped | Target::Message => !self.quote.is_quoted(),
        }
    }

    fn may_begin(&mut self, form: &Form) -> bool {
        match form.scope {
            Scope::Line if !self.quote.is_line_start() => false,
            Scope::Line if is_fence(form) => true,
            Scope::Message if !self.blank => false,
            _ => !self.quote.is_quoted(),
        }
    }

    /// Begins what the marker at the beginning of `rest` means; gives how much of it was taken.
    fn begin_marked(&mut self, rest: &str, out: &mut dyn Outlet) -> usize {
        let look = Rc::clone(&self.look);
        let Some(marker) = look.here(rest) else { return 0 };
        let targets: Vec<Target> = marker.targets.iter().copied().filter(|t| self.counts(*t)).collect();
        let forms: Vec<&'static Form> =
            targets.iter().filter_map(|t| if let Target::Form(form) = t { Some(*form) } else { None }).collect();
        self.tried.marked = true;
        if !forms.is_empty() {
            self.begin(forms, false);
            return 0;
        }
        let length = marker.text.len();
        match targets[0] {
            Target::Message => {
                self.mode = Mode::Header(Box::new(Mode::Text));
                return 0;
            }
            Target::Reasoning(_) => {
                self.decide(false, out);
                self.mode = Mode::Reasoning;
                out.left_out(marker.text);
            }
            Target::Answer => {
                if self.head.is_some() {
                    self.decide(true, out);
                } else if !self.blank && self.unknown {
                    self.rehearsed(out);
                }
                self.unknown = false;
                self.restart();
                out.left_out(marker.text);
            }
            target => {
                self.framed |= matches!(target, Target::DroppedFirst);
                self.decide(false, out);
                out.left_out(marker.text);
            }
        }
        length
    }

    /// A message begins anew: after reasoning, and after a header.
    pub(crate) fn restart(&mut self) {
        self.blank = true;
        self.quote = Quote::default();
    }

    /// Calls that were begun before it was clear that all of it was reasoning.
    fn rehearsed(&mut self, out: &mut dyn Outlet) {
        for index in 0..self.begun {
            out.retract(index, "reasoning");
        }
        out.warning(
            "late_reasoning",
            "reasoning ended here that the prompt had opened, so calls before it do not count; say how the prompt ends (prefill)",
            "",
        );
    }

    /// Begins a form without a marker, at the first text of a message.
    fn begin_unmarked(&mut self, rest: &str) -> Begun {
        self.tried.unmarked = true;
        if self.look.messages {
            let start = rest.trim_start_matches(' ');
            if start.starts_with("to=") {
                self.mode = Mode::Header(Box::new(Mode::Text));
                return Begun::Yes;
            }
            if start.len() < 3 && "to=".starts_with(start) {
                return Begun::Wait;
            }
        }
        if self.look.unmarked.is_empty() || self.quote.is_quoted() {
            return Begun::No;
        }
        let forms = self.look.unmarked.clone();
        self.begin(forms, false);
        Begun::Yes
    }

    /// Reads the text that follows by each of these forms.
    pub(crate) fn begin(&mut self, forms: Vec<&'static Form>, reasoning: bool) {
        self.raw.clear();
        self.candidates.clear();
        for form in forms {
            // What is written in the same way by several dialects is read once.
            if self.candidates.iter().any(|c| std::ptr::eq(c.run.form().call, form.call)) {
                continue;
            }
            let candidate = Candidate { run: Run::new(form), calls: Calls::default(), at: 0, step: Step::More(0) };
            let before = self.used.is_some_and(|used| std::ptr::eq(used, form));
            self.candidates.insert(if before { 0 } else { self.candidates.len() }, candidate);
        }
        self.mode = Mode::Call { reasoning };
    }

    /// Reads the text that follows by this form, as a call of this name.
    pub(crate) fn begin_named(&mut self, form: &'static Form, name: &str, out: &mut dyn Outlet) {
        self.raw.clear();
        self.candidates.clear();
        let mut calls = Calls::default();
        let run = Run::named(form, name, &mut calls);
        self.candidates.push(Candidate { run, calls, at: 0, step: Step::More(0) });
        self.mode = Mode::Call { reasoning: false };
        self.write(out);
    }

    /// A call.
    fn call(&mut self, text: &str, out: &mut dyn Outlet) -> Flow {
        let take = text.floor_char_boundary(STEP.min(text.len())).max(1);
        self.raw.push_str(&text[..take]);
        if self.candidates.len() == 1 && self.more() {
            self.write(out);
            return Flow::Took(take);
        }
        self.called(take, out)
    }

    /// A call, after this much was added to its text. A candidate that is alone has been pushed on already.
    fn called(&mut self, take: usize, out: &mut dyn Outlet) -> Flow {
        let mut pushed = self.candidates.len() == 1;
        loop {
            let alone = self.candidates.len() == 1;
            if alone && !std::mem::take(&mut pushed) && self.more() {
                self.write(out);
                return Flow::Took(take);
            }
            if !alone {
                self.candidates.iter_mut().for_each(|c| c.push(&self.raw, self.tools.as_deref(), false));
            }
            if let Some(why) = self.drop_failed() {
                return back(self.failed(why, out), take);
            }
            if self.candidates.len() > 1 && !self.choose() {
                return Flow::Took(take);
            }
            self.write(out);
            match self.candidates[0].step {
                Step::Whole(_) => self.settle(out),
                Step::Done(_) => return back(self.over(out), take),
                // What is left alone may know a name where it could not before.
                Step::More(_) if !alone => {}
                _ => return Flow::Took(take),
            }
        }
    }

    /// Pushes the one candidate on; whether it only waits for more.
    fn more(&mut self) -> bool {
        let Some(c) = self.candidates.first_mut() else { return false };
        c.push(&self.raw, self.tools.as_deref(), true);
        matches!(c.step, Step::More(_))
    }

    /// Takes out the candidates that failed; gives the reason when none is left.
    fn drop_failed(&mut self) -> Option<&'static str> {
        let all = self.candidates.iter().all(|c| matches!(c.step, Step::Fail(_)));
        if all {
            // One that had read more knows better why.
            let best = self.candidates.iter().max_by_key(|c| c.at)?;
            return if let Step::Fail(why) = best.step { Some(why) } else { None };
        }
        self.candidates.retain(|c| !matches!(c.step, Step::Fail(_)));
        None
    }

    /// Keeps one candidate, once one of them has a whole call or all have begun to read its arguments: what they have in common
    /// up to there is no reason to wait longer.
    fn choose(&mut self) -> bool {
        let whole = |c: &Candidate| matches!(c.step, Step::Whole(_) | Step::Done(_));
        let begun = |c: &Candidate| c.calls.ops.iter().any(|op| matches!(op, Op::Arguments(_)));
        // Of several the one with more to it knows more of what may follow.
        let found = self.candidates.iter().enumerate().filter(|(_, c)| whole(c));
        let length = |c: &Candidate| (c.run.form().section.is_some(), c.run.form().call.len());
        let at = match found.max_by_key(|(at, c)| (length(c), std::cmp::Reverse(*at))) {
            Some((at, _)) => at,
            None if self.candidates.iter().all(begun) => 0,
            None => return false,
        };
        self.candidates.swap(0, at);
        self.candidates.truncate(1);
        true
    }

    /// Writes what the one candidate has said.
    fn write(&mut self, out: &mut dyn Outlet) {
        let Some(candidate) = self.candidates.first_mut().filter(|c| !c.calls.ops.is_empty()) else { return };
        let form = candidate.run.form();
        let mut calls = std::mem::take(&mut candidate.calls);
        self.decide(false, out);
        self.unless_reasoning_ended();
        let mut from = 0;
        let mut text = |to: usize| Some(&calls.text[std::mem::replace(&mut from, to)..to]);
        let mut piece: Option<Piece<'_>> = None;
        for op in &calls.ops {
            if matches!(op, Op::Name(_) | Op::Note(_))
                && let Some(piece) = piece.take()
            {
                out.call(piece);
            }
            if let Op::Name(_) = op {
                self.begun += 1;
                (self.open, self.used) = (true, Some(form));
            }
            if let Op::Note(what) = op {
                out.warning("tag_note", what, "");
                continue;
            }
            let piece = piece.get_or_insert(Piece { index: self.begun - 1, ..Piece::default() });
            match *op {
                Op::Name(to) => piece.name = text(to),
                Op::Id(to) => piece.id = text(to),
                Op::Arguments(to) => piece.arguments = text(to),
                Op::Done => (piece.done, self.open) = (true, false),
                Op::Note(_) => {}
            }
        }
        if let Some(piece) = piece {
            out.call(piece);
        }
        calls.clear();
        self.candidates[0].calls = calls;
    }

    /// A call that counts has ended the reasoning in which it stands.
    fn unless_reasoning_ended(&mut self) {
        if let Mode::Call { reasoning } = &mut self.mode
            && std::mem::take(reasoning)
        {
            self.restart();
        }
    }

    /// The call at hand is whole: its text is not needed any more.
    fn settle(&mut self, out: &mut dyn Outlet) {
        let Some(c) = self.candidates.first_mut() else { return };
        out.left_out(&self.raw[..c.at]);
        self.raw.drain(..c.at);
        (c.at, c.step) = (0, Step::More(0));
    }

    /// The calls are over. Gives the text after them.
    fn over(&mut self, out: &mut dyn Outlet) -> String {
        let at = self.candidates.first().map_or(0, |c| c.at);
        out.left_out(&self.raw[..at]);
        let rest = self.raw.split_off(at);
        self.raw.clear();
        self.candidates.clear();
        self.mode = Mode::Text;
        self.blank = true;
        self.quote.restart();
        rest
    }

    /// It was no call: its text is given back, to be read again where nothing but markers and names was read.
    fn failed(&mut self, why: &'static str, out: &mut dyn Outlet) -> String {
        let shallow = self.candidates.iter().all(|c| c.run.is_shallow());
        let at = self.candidates.iter().map(|c| c.at).max().unwrap_or(0);
        if std::mem::take(&mut self.open) {
            out.retract(self.begun - 1, "unparsed");
        }
        self.candidates.clear();
        let reasoning = matches!(self.mode, Mode::Call { reasoning: true });
        self.mode = if reasoning { Mode::Reasoning } else { Mode::Text };
        let mut raw = std::mem::take(&mut self.raw);
        if shallow {
            self.refused = self.tried;
            return raw;
        }
        if at == 0 {
            self.refused = Tried::all();
        }
        out.warning("tag_unparsed", &format!("this is not read as a call, since {why}"), &raw[..at]);
        let rest = raw.split_off(at);
        self.literal(&raw, out);
        rest
    }

    /// Text as it stands, whatever it looks like.
    pub(crate) fn literal(&mut self, text: &str, out: &mut dyn Outlet) {
        if text.is_empty() {
            return;
        }
        match self.mode {
            Mode::Reasoning | Mode::Body { reasoning: true } => out.reasoning(text),
            _ => {
                self.blank &= text.trim_ascii().is_empty();
                let mut from = 0;
                for (at, c) in text.bytes().enumerate().filter(|(_, c)| matches!(c, b'`' | b'~')) {
                    self.quote.plain(&text[from..at]);
                    self.quote.tick(c);
                    from = at + 1;
                }
                self.quote.plain(&text[from..]);
                self.say(text, out);
            }
        }
    }

    /// Text of the answer, unless it may still turn out to be reasoning.
    pub(crate) fn say(&mut self, text: &str, out: &mut dyn Outlet) {
        if text.is_empty() {
            return;
        }
        let Some(head) = &mut self.head else { return out.content(text) };
        head.push_str(text);
        if head.len() > WINDOW {
            let reasoning = self.look.prefilled == Prefilled::Usually;
            self.decide(reasoning, out);
            if reasoning {
                self.mode = Mode::Reasoning;
            }
        }
    }

    /// What was held of the beginning is reasoning, or the answer.
    pub(crate) fn decide(&mut self, reasoning: bool, out: &mut dyn Outlet) {
        let Some(head) = self.head.take() else { return };
        match reasoning {
            _ if head.is_empty() => {}
            true => out.reasoning(&head),
            false => out.content(&head),
        }
    }

    /// Reasoning, up to the marker that ends it, or a call that does.
    fn reasoning(&mut self, text: &str, out: &mut dyn Outlet) -> Flow {
        let look = Rc::clone(&self.look);
        let refused = std::mem::take(&mut self.refused).marked;
        self.tried = Tried { marked: true, unmarked: false };
        let mut i = 0;
        while let Some(at) = look.stop(&text.as_bytes()[i..]).map(|n| i + n) {
            self.quote.plain(&text[i..at]);
            let rest = &text[at..];
            if let Some((_, close)) = look.reasoning.iter().find(|(_, close)| rest.starts_with(close)) {
                self.put_reasoning(&text[..at], out);
                out.left_out(close);
                self.mode = Mode::Text;
                self.unknown = false;
                self.restart();
                return Flow::Took(at + close.len());
            }
            let mut wait = look.reasoning.iter().any(|(_, close)| close.starts_with(rest));
            if !look.ends.is_empty() && !(refused && at == 0) && !self.quote.is_quoted() {
                let ends =
                    |t: &Target| matches!(t, Target::Form(form) if look.ends.iter().any(|e| std::ptr::eq(*e, *form)));
                if let Some(marker) = look.here(rest)
                    && marker.targets.iter().any(ends)
                {
                    let forms = marker.targets.iter().filter(|t| ends(t));
                    let forms = forms.filter_map(|t| if let Target::Form(form) = t { Some(*form) } else { None });
                    let forms = forms.collect();
                    self.put_reasoning(&text[..at], out);
                    self.begin(forms, true);
                    return Flow::Took(at);
                }
                wait |= look.perhaps(rest).any(|marker| marker.targets.iter().any(ends));
            }
            if wait {
                self.put_reasoning(&text[..at], out);
                return Flow::Wait(at);
            }
            let width = rest.chars().next().map_or(1, char::len_utf8);
            match text.as_bytes()[at] {
                c @ (b'`' | b'~') => self.quote.tick(c),
                _ => self.quote.plain(&rest[..width]),
            }
            i = at + width;
        }
        self.quote.plain(&text[i..]);
        self.put_reasoning(text, out);
        Flow::Took(text.len())
    }

    fn put_reasoning(&mut self, text: &str, out: &mut dyn Outlet) {
        if !text.is_empty() {
            out.reasoning(text);
        }
    }

    /// The text ended in a call. Gives false when something is left to be finished.
    fn finish_call(&mut self, cut: bool, out: &mut dyn Outlet) -> bool {
        let tools = self.tools.clone();
        let mut why = "the text ends inside it";
        let raw = &self.raw;
        let found = self.candidates.iter_mut().position(|c| {
            match c.run.finish(&raw[c.at..], cut, tools.as_deref(), &mut c.calls) {
                Ok(n) => {
                    c.at += n;
                    true
                }
                Err(reason) => {
                    why = reason;
                    false
                }
            }
        });
        let Some(found) = found else {
            let rest = self.failed(why, out);
            if self.refused == Tried::default() {
                self.literal(&rest, out);
                return true;
            }
            self.eat(Cow::Owned(rest), out);
            return false;
        };
        self.candidates.swap(0, found);
        self.candidates.truncate(1);
        self.write(out);
        let rest = self.over(out);
        self.literal(&rest, out);
        true
    }
}

/// Whether something begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    Yes,
    /// More text will tell.
    Wait,
    No,
}

/// What was taken too much is read again: it is the end of the piece that was taken, or begins before it.
fn back(rest: String, take: usize) -> Flow {
    match take.checked_sub(rest.len()) {
        Some(n) => Flow::Took(n),
        None => Flow::Back(rest, take),
    }
}
