//! Tagged parameters, read as they stream in, said as one JSON object.

mod closing;

use super::head::Head;
use super::plain::{self, DATA};
use super::value::Value;
use super::{Outside, ParamForm, Style, Trim};
use crate::calls::{Calls, Context, Step};
use crate::mark::{Match, find, starts};
use json::{JsonType, Typed};
use std::borrow::Cow;

/// The parameters of one call, from behind its head to before its end.
///
/// A closer counts only if what comes after it may follow there, so a value may hold closers. If it is missing, the next
/// parameter ends the value where it begins a line, and so do the closers of the call where another call or the end of the text
/// follows. How the text was cut never shows, and each byte is read once, but for the few that may be a marker.
#[derive(Debug)]
pub(crate) struct Params {
    form: &'static ParamForm,
    outside: Outside,
    tool: String,
    state: State,
    /// The names of the parameters so far.
    given: Vec<String>,
    value: Option<Value>,
    closer: Cow<'static, str>,
    /// The value's next byte begins a line.
    line: bool,
    /// The value may hold no elements.
    flat: bool,
    /// Closers and the white space after them, while it is not known whether they count.
    held: String,
    /// How many closers of the call and its section follow each other there.
    closers: usize,
    /// How many bytes were read since the first of these closers, or of those at which the value was suspended.
    behind: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before a parameter or the end.
    Between,
    /// At the beginning of a value.
    Start,
    Inside,
    /// In a CDATA section.
    Data,
    /// After the value's closer, which may count.
    Closed,
    /// After closers of the call in a value without its own, which may count.
    Ending,
    Done,
}

/// How much text is held behind several closers of the call that stand in an open value, in bytes.
const HELD: usize = 4096;

/// How to go on.
enum Go {
    /// After this many bytes.
    On(usize),
    /// With more text, after this many bytes.
    More(usize),
    /// Not at all: the call's end begins after this many bytes.
    End(usize),
    /// Likewise: the call's end begins with the first of its closers that are held.
    Ended,
    Fail(usize, &'static str),
}

/// What stands where a parameter may begin.
enum Next {
    Head(Head),
    Closer,
    Perhaps,
    Other,
}

impl Params {
    /// The parameters of a call of this tool.
    pub fn new(form: &'static ParamForm, outside: Outside, tool: &str) -> Params {
        Params {
            form,
            outside,
            tool: tool.to_owned(),
            state: State::Between,
            given: Vec::new(),
            value: None,
            closer: Cow::Borrowed(""),
            line: false,
            flat: true,
            held: String::new(),
            closers: 0,
            behind: 0,
        }
    }

    /// Takes the next piece; at [`Step::Done`] or [`Step::Back`] the end of the call follows, which is not taken.
    pub fn push(&mut self, text: &str, context: &Context<'_>, calls: &mut Calls) -> Step {
        self.read(text, false, context, calls)
    }

    /// Takes the rest of the text, which was not cut.
    pub fn finish(&mut self, text: &str, context: &Context<'_>, calls: &mut Calls) -> Step {
        self.read(text, true, context, calls)
    }

    fn read(&mut self, text: &str, last: bool, context: &Context<'_>, calls: &mut Calls) -> Step {
        let mut at = 0;
        loop {
            let rest = &text[at..];
            let go = match self.state {
                State::Done => Go::End(0),
                _ if rest.is_empty() => Go::More(0),
                State::Between => self.between(rest, context, calls),
                State::Start => self.start(rest),
                State::Inside => self.inside(rest, context, calls),
                State::Data => self.data(rest, calls),
                State::Closed => self.closed(rest, context, calls),
                State::Ending => self.ending(rest, last, calls),
            };
            let go = match go {
                Go::More(length) if last && self.ends_here(rest.len() == length) => Go::Ended,
                go => go,
            };
            match go {
                Go::On(length) => (at, self.behind) = (at + length, self.behind + length),
                Go::More(length) => {
                    self.behind += length;
                    return Step::More(at + length);
                }
                Go::End(length) => return Step::Done(at + length),
                Go::Ended => {
                    if let Some(value) = &mut self.value {
                        value.cut();
                    }
                    self.end_value(context, calls);
                    self.close(0, calls);
                    return match at.checked_sub(self.behind) {
                        Some(at) => Step::Done(at),
                        None => Step::Back(self.behind - at),
                    };
                }
                Go::Fail(length, why) => return Step::Fail(at + length, why),
            }
        }
    }

    fn between(&mut self, text: &str, context: &Context<'_>, calls: &mut Calls) -> Go {
        let at = space(text);
        if at == text.len() {
            return Go::More(at);
        }
        match self.next(&text[at..]) {
            Next::Head(head) => {
                let length = head.length;
                self.begin(head, context, calls);
                Go::On(at + length)
            }
            Next::Closer => self.close(at, calls),
            Next::Perhaps => Go::More(at),
            Next::Other => Go::Fail(at, "something else stands where a parameter should"),
        }
    }

    fn start(&mut self, text: &str) -> Go {
        let length = match self.form.trim {
            Trim::None => 0,
            Trim::OneNewline if text == "\r" => return Go::More(0),
            Trim::OneNewline if text.starts_with("\r\n") => 2,
            Trim::OneNewline => usize::from(text.starts_with('\n')),
        };
        if length > 0 {
            self.line = text.as_bytes()[length - 1] == b'\n';
        }
        self.state = State::Inside;
        Go::On(length)
    }

    fn inside(&mut self, text: &str, context: &Context<'_>, calls: &mut Calls) -> Go {
        let first = self.closer.as_bytes().first().copied().unwrap_or(b'<');
        match memchr::memchr3(first, b'<', b'&', text.as_bytes()) {
            Some(0) => self.marker(text, context, calls),
            found => {
                let length = found.unwrap_or(text.len());
                self.text(&text[..length], calls);
                Go::On(length)
            }
        }
    }

    /// At a byte that markers begin with.
    fn marker(&mut self, text: &str, context: &Context<'_>, calls: &mut Calls) -> Go {
        let mut perhaps = false;
        match starts(&self.closer, text) {
            Match::Full(length) => return self.hold(State::Closed, &text[..length]),
            Match::Partial => perhaps = true,
            Match::No => {}
        }
        match find(self.form.call_closers, text) {
            Match::Full(length) => {
                if !self.is_suspended() {
                    self.resume(calls);
                    self.behind = 0;
                }
                self.closers = 1;
                return self.hold(State::Ending, &text[..length]);
            }
            Match::Partial => perhaps = true,
            Match::No => {}
        }
        if self.form.cdata {
            match starts(DATA.0, text) {
                Match::Full(length) => {
                    self.raw(DATA.0, calls);
                    self.state = State::Data;
                    return Go::On(length);
                }
                Match::Partial => perhaps = true,
                Match::No => {}
            }
        }
        if self.form.entities && self.value.as_ref().is_some_and(Value::streams) {
            match plain::entity(text) {
                Match::Full((length, meant)) => {
                    self.text(&meant, calls);
                    self.line = false;
                    return Go::On(length);
                }
                Match::Partial => perhaps = true,
                Match::No => {}
            }
        }
        if self.line && self.is_suspended() {
            match self.outside.opener(text) {
                Match::Full(_) => return Go::Ended,
                Match::Partial => perhaps = true,
                Match::No => {}
            }
        }
        if self.line {
            match self.form.head(text) {
                Match::Full(head) if self.may_cut(&head, context) => {
                    let length = head.length;
                    self.end_value(context, calls);
                    self.begin(head, context, calls);
                    return Go::On(length);
                }
                Match::Partial => perhaps = true,
                _ => {}
            }
        }
        if perhaps {
            return Go::More(0);
        }
        self.text(&text[..1], calls);
        Go::On(1)
    }

    fn data(&mut self, text: &str, calls: &mut Calls) -> Go {
        let found = text.find(DATA.1);
        let open = if text.ends_with("]]") { 2 } else { usize::from(text.ends_with(']')) };
        let length = found.unwrap_or(text.len() - open);
        if let Some(value) = &mut self.value {
            value.data(&text[..length], calls);
        }
        if found.is_none() {
            return Go::More(length);
        }
        self.raw(DATA.1, calls);
        self.state = State::Inside;
        self.line = false;
        Go::On(length + DATA.1.len())
    }

    /// What the text begins with, where a parameter may begin.
    fn next(&self, text: &str) -> Next {
        let closer = find(self.form.call_closers, text);
        if let Match::Full(_) = closer {
            return Next::Closer;
        }
        match self.form.head(text) {
            Match::Full(head) => Next::Head(head),
            Match::Partial => Next::Perhaps,
            Match::No if closer == Match::Partial => Next::Perhaps,
            Match::No => Next::Other,
        }
    }

    /// Whether this parameter may stand after a closer. Where each name makes a tag, a value may hold such tags too, so that it
    /// must be a parameter of the tool or begin a line.
    fn may_follow(&self, head: &Head, context: &Context<'_>) -> bool {
        let Style::Element { prefix } = self.form.style else { return true };
        let parameters = self.parameters(context);
        !prefix.is_empty() || !parameters.is_known() || self.is_due(head, &parameters) || self.held.contains('\n')
    }

    /// Whether this parameter ends a value that has no closer.
    fn may_cut(&self, head: &Head, context: &Context<'_>) -> bool {
        let parameters = self.parameters(context);
        let element = matches!(self.form.style, Style::Element { .. });
        if parameters.is_known() { self.is_due(head, &parameters) && (self.flat || !element) } else { !element }
    }

    fn is_due(&self, head: &Head, parameters: &Typed<'_>) -> bool {
        parameters.declares(&head.name) && !self.given.contains(&head.name)
    }

    fn begin(&mut self, head: Head, context: &Context<'_>, calls: &mut Calls) {
        if self.given.contains(&head.name) {
            calls.note("a parameter stands twice");
        }
        calls.arguments(if self.given.is_empty() { "{" } else { "," });
        calls.arguments(&event::quoted(&head.name));
        calls.arguments(":");
        let typed = self.parameters(context).property(&head.name);
        // What may be a string keeps its bytes, tags and all.
        self.flat =
            typed.allows(JsonType::String) || !(typed.allows(JsonType::Object) || typed.allows(JsonType::Array));
        self.value = Some(Value::new(self.form, head.says, &typed, calls));
        self.given.push(head.name);
        self.closer = head.closer;
        self.line = false;
        self.state = State::Start;
        if head.empty {
            self.end_value(context, calls);
        }
    }

    fn text(&mut self, piece: &str, calls: &mut Calls) {
        if self.behind > HELD {
            self.resume(calls);
        }
        if let Some(value) = &mut self.value {
            value.text(piece, calls);
        }
        self.line = piece.ends_with('\n');
    }

    /// A marker that a value keeps until its meaning is sought.
    fn raw(&mut self, mark: &str, calls: &mut Calls) {
        if let Some(value) = self.value.as_mut().filter(|value| !value.streams()) {
            value.data(mark, calls);
        }
    }

    fn end_value(&mut self, context: &Context<'_>, calls: &mut Calls) {
        if let (Some(mut value), Some(name)) = (self.value.take(), self.given.last()) {
            value.resume(calls);
            value.end(&self.parameters(context).property(name), calls);
        }
        self.state = State::Between;
    }

    fn close(&mut self, at: usize, calls: &mut Calls) -> Go {
        calls.arguments(if self.given.is_empty() { "{}" } else { "}" });
        self.state = State::Done;
        Go::End(at)
    }

    fn parameters<'a>(&self, context: &Context<'a>) -> Typed<'a> {
        context.tools.map(|tools| tools.parameters(&self.tool)).unwrap_or_default()
    }
}

/// How much white space a text begins with.
fn space(text: &str) -> usize {
    text.len() - text.trim_ascii_start().len()
}
