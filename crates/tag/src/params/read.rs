//! Tagged parameters, read as they stream in and emitted as one JSON object.

mod closing;
mod state;

pub(crate) use state::Params;

use super::plain::{self, DATA};
use super::value::ParamValue;
use crate::calls::{Context, FoundCalls, Step};
use crate::dialect::params::Trim;
use crate::mark::{Match, find, space, starts};
use state::{Follower, ParamsState};

impl Params {
    /// Takes the next piece. After [`Step::Done`] or [`Step::Back`] the end of the call follows,
    /// which is not taken.
    pub fn push(&mut self, text: &str, context: &Context<'_>, calls: &mut FoundCalls) -> Step {
        self.read(text, false, context, calls)
    }

    /// Takes the rest of the text, which was not cut.
    pub fn finish(&mut self, text: &str, context: &Context<'_>, calls: &mut FoundCalls) -> Step {
        self.read(text, true, context, calls)
    }

    fn read(
        &mut self,
        text: &str,
        last: bool,
        context: &Context<'_>,
        calls: &mut FoundCalls,
    ) -> Step {
        let mut at = 0;
        loop {
            let rest = &text[at..];
            let step = match self.state {
                ParamsState::Done => Step::Done(0),
                _ if rest.is_empty() => Step::More(0),
                ParamsState::Between => self.between(rest, context, calls),
                ParamsState::Start => self.start(rest),
                ParamsState::Inside => self.inside(rest, context, calls),
                ParamsState::Data => self.data(rest, calls),
                ParamsState::Closed => self.closed(rest, context, calls),
                ParamsState::Ending => self.ending(rest, last, context, calls),
            };
            let step = match step {
                Step::More(n) if last && self.ends_here(n == rest.len()) => {
                    self.end_at_closers(context, calls)
                }
                Step::More(n) if last && n == rest.len() && self.has_ended() => {
                    self.end_value(context, calls);
                    self.close(n, calls)
                }
                step => step,
            };
            match step {
                Step::On(n) => (at, self.behind) = (at + n, self.behind + n),
                Step::Back(n) if n <= at => at -= n,
                Step::More(n) => {
                    self.behind += n;
                    return Step::More(at + n);
                }
                step => return step.after(at),
            }
        }
    }

    fn between(&mut self, text: &str, context: &Context<'_>, calls: &mut FoundCalls) -> Step {
        let at = space(text);
        if at == text.len() {
            return Step::More(at);
        }
        match self.next(&text[at..]) {
            Match::Full(Follower::Parameter(head)) => {
                let length = head.length;
                self.begin(head, context, calls);
                Step::On(at + length)
            }
            Match::Full(Follower::CallCloser) => self.close(at, calls),
            Match::Partial => Step::More(at),
            Match::No => Step::Fail(at, "neither a parameter nor the end of the call follows"),
        }
    }

    fn start(&mut self, text: &str) -> Step {
        let length = match self.form.trim {
            Trim::None => 0,
            Trim::OneNewline if text == "\r" => return Step::More(0),
            Trim::OneNewline if text.starts_with("\r\n") => 2,
            Trim::OneNewline => usize::from(text.starts_with('\n')),
        };
        if length > 0 {
            self.is_line_start = text.as_bytes()[length - 1] == b'\n';
        }
        self.state = ParamsState::Inside;
        Step::On(length)
    }

    fn inside(&mut self, text: &str, context: &Context<'_>, calls: &mut FoundCalls) -> Step {
        let first = self.closer.as_bytes().first().copied().unwrap_or(b'<');
        match memchr::memchr3(first, b'<', b'&', text.as_bytes()) {
            Some(0) => self.marker(text, context, calls),
            found => {
                let length = found.unwrap_or(text.len());
                self.text(&text[..length], calls);
                Step::On(length)
            }
        }
    }

    /// At a byte that a marker may begin with.
    fn marker(&mut self, text: &str, context: &Context<'_>, calls: &mut FoundCalls) -> Step {
        let mut perhaps = false;
        match starts(&self.closer, text) {
            Match::Full(length) => return self.hold(ParamsState::Closed, &text[..length]),
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
                return self.hold(ParamsState::Ending, &text[..length]);
            }
            Match::Partial => perhaps = true,
            Match::No => {}
        }
        if self.form.cdata {
            match starts(DATA.0, text) {
                Match::Full(length) => {
                    self.raw(DATA.0, calls);
                    self.state = ParamsState::Data;
                    return Step::On(length);
                }
                Match::Partial => perhaps = true,
                Match::No => {}
            }
        }
        if self.form.entities && self.value.as_ref().is_some_and(ParamValue::is_streaming) {
            match plain::entity(text) {
                Match::Full((length, meant)) => {
                    self.text(&meant, calls);
                    self.is_line_start = false;
                    return Step::On(length);
                }
                Match::Partial => perhaps = true,
                Match::No => {}
            }
        }
        if self.is_line_start && self.is_suspended() {
            match self.outside.opener(text) {
                Match::Full(_) => return self.end_at_closers(context, calls),
                Match::Partial => perhaps = true,
                Match::No => {}
            }
        }
        if self.is_line_start {
            match self.form.head(text) {
                Match::Full(head) if self.may_cut(&head, context) => {
                    let length = head.length;
                    self.end_value(context, calls);
                    self.begin(head, context, calls);
                    return Step::On(length);
                }
                Match::Partial => perhaps = true,
                _ => {}
            }
        }
        if perhaps {
            return Step::More(0);
        }
        self.text(&text[..1], calls);
        Step::On(1)
    }

    fn data(&mut self, text: &str, calls: &mut FoundCalls) -> Step {
        let found = text.find(DATA.1);
        let open = if text.ends_with("]]") {
            2
        } else {
            usize::from(text.ends_with(']'))
        };
        let length = found.unwrap_or(text.len() - open);
        if let Some(value) = &mut self.value {
            value.data(&text[..length], calls);
        }
        if found.is_none() {
            return Step::More(length);
        }
        self.raw(DATA.1, calls);
        self.state = ParamsState::Inside;
        self.is_line_start = false;
        Step::On(length + DATA.1.len())
    }
}
