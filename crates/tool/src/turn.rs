//! The state of a turn and of its calls.

use crate::call::RequestedCall;
use crate::judge::ReadyCall;
use crate::result::{Answer, Status};
use crate::step::{Order, PlanStep};
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

/// The state of a call.
#[derive(Debug)]
pub(crate) enum CallState {
    /// The call may run, and waits for the commit point.
    Waits,
    /// The call waits for a free place.
    Queued,
    /// [`PlanStep::Start`] was returned.
    Runs,
    /// The call has its answer.
    Done(Rc<Answer>),
}

/// A call of a turn.
#[derive(Debug)]
pub(crate) struct PlannedCall {
    pub(crate) turn: u64,
    pub(crate) call: Rc<RequestedCall>,
    /// What would run; `None` for a call that was answered at once.
    pub(crate) ready: Option<Rc<ReadyCall>>,
    pub(crate) state: CallState,
    /// Whether this run started it.
    pub(crate) ran: bool,
    /// Whether its result is written, by this run or by one that wrote the log.
    pub(crate) told: bool,
    /// Whether its tool message is written.
    pub(crate) sent: bool,
    /// Whether it was retracted while it ran, before its message.
    pub(crate) dropped: bool,
    /// Whether it was retracted while it ran, after its message.
    pub(crate) cancelled: bool,
    /// Whether the input was searched for its result further on.
    pub(crate) foreseen: bool,
}

/// The calls of one assistant's message, which may still be to come.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    pub(crate) stream: Option<Box<str>>,
    /// The calls in order, by their numbers.
    pub(crate) order: Vec<u64>,
    /// Ids of calls that were retracted before the message.
    pub(crate) retracted: HashSet<Box<str>>,
    /// Whether its `stream_start` was seen, so that a `stream_end` follows.
    pub(crate) begun: bool,
    /// Whether it has deltas, which an earlier stage should have merged.
    pub(crate) deltas: bool,
    /// Whether its message was seen.
    pub(crate) committed: bool,
    /// Whether its `stream_end` was seen, or none follows.
    pub(crate) ended: bool,
    /// How many calls, from the first on, have their results written.
    pub(crate) told: usize,
    /// How many calls, from the first on, have their messages written.
    pub(crate) sent: usize,
}

impl Turn {
    /// Writes the results and messages that are due. Returns whether the turn is over.
    ///
    /// Before the message only the results of calls that ran early are written. Between the message and `stream_end` nothing is written, so
    /// that the place of a line does not depend on how fast a tool was. After that come the results; each tool message comes as soon as the
    /// calls before it have theirs.
    pub(crate) fn release(
        &mut self,
        calls: &mut BTreeMap<u64, PlannedCall>,
        order: Order,
        steps: &mut Vec<PlanStep>,
    ) -> bool {
        self.send(calls, steps);
        let mut all = true; // every call before this one is told
        for n in self.told..self.order.len() {
            let Some(item) = calls.get_mut(&self.order[n]) else { continue };
            let ripe = if self.committed { self.ended } else { item.ran };
            match &item.state {
                CallState::Done(answer) if ripe => {
                    if !item.told {
                        item.told = true;
                        steps.push(PlanStep::Result { call: Rc::clone(&item.call), answer: Rc::clone(answer) });
                    }
                }
                _ if order == Order::Call => break,
                _ => all = false,
            }
            if all {
                self.told = n + 1;
            }
            self.send(calls, steps);
        }
        self.committed && self.ended && self.sent == self.order.len()
    }

    /// Writes the tool messages that are due, in call order.
    fn send(&mut self, calls: &mut BTreeMap<u64, PlannedCall>, steps: &mut Vec<PlanStep>) {
        if !self.committed || !self.ended {
            return;
        }
        while let Some(item) = self.order.get(self.sent).and_then(|key| calls.get_mut(key)) {
            match &item.state {
                // A call that waits for a person has no message yet. Those after it wait, too, to stay in call order.
                CallState::Done(answer) if item.told && answer.status != Status::Pending => {
                    if !item.sent {
                        item.sent = true;
                        steps.push(PlanStep::Message { call: Rc::clone(&item.call), answer: Rc::clone(answer) });
                    }
                }
                _ => break,
            }
            self.sent += 1;
        }
    }

    /// Takes a call out.
    pub(crate) fn remove(&mut self, key: u64) {
        if let Some(n) = self.order.iter().position(|k| *k == key) {
            self.order.remove(n);
            self.told -= usize::from(n < self.told);
        }
    }

    /// Sets the order of the calls to that of the message.
    pub(crate) fn reorder(&mut self, order: Vec<u64>) {
        self.order = order;
        self.told = 0;
    }
}
