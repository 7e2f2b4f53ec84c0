//! Closers in a value, of which some end it and others are its text.

use super::state::{Follower, HELD, Params, ParamsState};
use crate::calls::{Context, FoundCalls, Step};
use crate::mark::{Match, space};
use crate::params::value::ParamValue;

impl Params {
    pub(super) fn closed(
        &mut self,
        text: &str,
        context: &Context<'_>,
        calls: &mut FoundCalls,
    ) -> Step {
        let at = space(text);
        self.held.push_str(&text[..at]);
        if at == text.len() {
            return Step::More(at);
        }
        match self.next(&text[at..]) {
            Match::Full(Follower::CallCloser) => {
                self.end_value(context, calls);
                return self.close(at, calls);
            }
            Match::Full(Follower::Parameter(head)) if self.may_follow(&head, context) => {
                let length = head.length;
                self.end_value(context, calls);
                self.begin(head, context, calls);
                return Step::On(at + length);
            }
            Match::Partial => return Step::More(at),
            _ => {}
        }
        self.release(calls);
        Step::On(at)
    }

    /// After closers of the call, in a value that holds them or lacks its own closer. They close
    /// the call where the text ends or another call begins. Before other text a single closer
    /// belongs to the value. Several, such as those of call and section, may be the end of the
    /// call: the value is held back, for at most [`HELD`] bytes, until its closer, another call or
    /// the end of the text decides.
    pub(super) fn ending(
        &mut self,
        text: &str,
        last: bool,
        context: &Context<'_>,
        calls: &mut FoundCalls,
    ) -> Step {
        let at = space(text);
        self.held.push_str(&text[..at]);
        if at == text.len() {
            return Step::More(at);
        }
        let rest = &text[at..];
        match (self.outside.closer(rest, last), self.outside.opener(rest)) {
            (Match::Full(length), _) => {
                self.held.push_str(&rest[..length]);
                self.closers += 1;
                return Step::On(at + length);
            }
            (_, Match::Full(_)) => return self.end_at_closers(context, calls),
            (Match::Partial, _) | (_, Match::Partial) if !last => return Step::More(at),
            _ => {}
        }
        if let Some(value) = self.value.as_mut().filter(|_| self.closers > 1) {
            value.suspend();
        }
        self.release(calls);
        Step::On(at)
    }

    /// The value has no closer of its own: the call's end begins with the first of its closers that
    /// are held.
    pub(super) fn end_at_closers(&mut self, context: &Context<'_>, calls: &mut FoundCalls) -> Step {
        if let Some(value) = &mut self.value {
            value.cut();
        }
        self.end_value(context, calls);
        self.close(0, calls);
        Step::Back(self.behind)
    }

    /// Whether the call ends with the text; `all`: all of the text was read.
    pub(super) fn ends_here(&self, all: bool) -> bool {
        match self.state {
            ParamsState::Ending => all || self.is_suspended(),
            ParamsState::Inside => self.is_suspended(),
            _ => false,
        }
    }

    /// Whether the text may end here: after a parameter.
    pub(super) fn has_ended(&self) -> bool {
        match self.state {
            ParamsState::Between => !self.given.is_empty(),
            ParamsState::Closed => true,
            _ => false,
        }
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.behind <= HELD && self.value.as_ref().is_some_and(ParamValue::is_suspended)
    }

    /// At a closer that may count.
    pub(super) fn hold(&mut self, state: ParamsState, closer: &str) -> Step {
        self.held.clear();
        self.held.push_str(closer);
        self.state = state;
        Step::On(closer.len())
    }

    /// What was held back is text.
    fn release(&mut self, calls: &mut FoundCalls) {
        let held = std::mem::take(&mut self.held);
        self.text(&held, calls);
        self.held = held;
        self.state = ParamsState::Inside;
    }
}
