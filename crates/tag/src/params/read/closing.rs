//! Closers in a value: which of them end it.

use super::{Go, HELD, Next, Params, State, space};
use crate::calls::{Calls, Context};
use crate::mark::Match;
use crate::params::value::Value;

impl Params {
    pub(super) fn closed(&mut self, text: &str, context: &Context<'_>, calls: &mut Calls) -> Go {
        let at = space(text);
        self.held.push_str(&text[..at]);
        if at == text.len() {
            return Go::More(at);
        }
        match self.next(&text[at..]) {
            Next::Closer => {
                self.end_value(context, calls);
                return self.close(at, calls);
            }
            Next::Head(head) if self.may_follow(&head, context) => {
                let length = head.length;
                self.end_value(context, calls);
                self.begin(head, context, calls);
                return Go::On(at + length);
            }
            Next::Perhaps => return Go::More(at),
            _ => {}
        }
        self.release(calls);
        Go::On(at)
    }

    /// Behind closers of the call, in a value that holds them or lacks its own. They close the call where the text ends or another
    /// call begins. Before other text a closer alone is the value's; several, such as those of call and section, may be the end of
    /// the call too: the value is held, for at most [`HELD`] bytes, until its closer, another call or the end of the text decides.
    pub(super) fn ending(&mut self, text: &str, last: bool, calls: &mut Calls) -> Go {
        let at = space(text);
        self.held.push_str(&text[..at]);
        if at == text.len() {
            return Go::More(at);
        }
        let rest = &text[at..];
        match (self.outside.closer(rest, last), self.outside.opener(rest)) {
            (Match::Full(length), _) => {
                self.held.push_str(&rest[..length]);
                self.closers += 1;
                return Go::On(at + length);
            }
            (_, Match::Full(_)) => return Go::Ended,
            (Match::Partial, _) | (_, Match::Partial) if !last => return Go::More(at),
            _ => {}
        }
        if let Some(value) = self.value.as_mut().filter(|_| self.closers > 1) {
            value.suspend();
        }
        self.release(calls);
        Go::On(at)
    }

    /// Whether the call ends where the text does; with `all`, all of it was read.
    pub(super) fn ends_here(&self, all: bool) -> bool {
        match self.state {
            State::Ending => all || self.is_suspended(),
            State::Inside => self.is_suspended(),
            _ => false,
        }
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.behind <= HELD && self.value.as_ref().is_some_and(Value::is_suspended)
    }

    /// The value had not ended.
    pub(super) fn resume(&mut self, calls: &mut Calls) {
        if let Some(value) = &mut self.value {
            value.resume(calls);
        }
    }

    /// A closer that may count.
    pub(super) fn hold(&mut self, state: State, closer: &str) -> Go {
        self.held.clear();
        self.held.push_str(closer);
        self.state = state;
        Go::On(closer.len())
    }

    /// What was held is text.
    fn release(&mut self, calls: &mut Calls) {
        let held = std::mem::take(&mut self.held);
        self.text(&held, calls);
        self.held = held;
        self.state = State::Inside;
    }
}
