//! What the plan keeps of a turn and of each of its calls.

use crate::call::RequestedCall;
use crate::judge::ReadyCall;
use crate::result::{Answer, Status};
use crate::step::{Order, PlanStep};
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

/// Where a call stands.
#[derive(Debug)]
pub(crate) enum CallState {
    /// It may run, and waits for the commit point.
    Waits,
    /// It waits for a free place.
    Queued,
    /// It was given out as [`PlanStep::Start`].
    Runs,
    /// It is answered.
    Done(Rc<Answer>),
}

/// A call of a turn.
#[derive(Debug)]
pub(crate) struct PlannedCall {
    pub(crate) turn: u64,
    pub(crate) call: Rc<RequestedCall>,
    /// What would run; `None` for a call that was answered without.
    pub(crate) ready: Option<Rc<ReadyCall>>,
    pub(crate) state: CallState,
    /// It was started in this run.
    pub(crate) ran: bool,
    /// Its result is written, here or in an earlier run whose log this is.
    pub(crate) told: bool,
    /// Its tool message is there already.
    pub(crate) sent: bool,
    /// It was taken back while it ran, before its message.
    pub(crate) dropped: bool,
    /// It was taken back while it ran, after its message.
    pub(crate) cancelled: bool,
    /// What the input says of it further on was looked up.
    pub(crate) foreseen: bool,
}

/// The calls of one assistant's message, or what will become one.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    pub(crate) stream: Option<Box<str>>,
    /// The calls in order, by their numbers.
    pub(crate) order: Vec<u64>,
    /// Ids of calls that were taken back before the message.
    pub(crate) retracted: HashSet<Box<str>>,
    /// Its `stream_start` was seen, so a `stream_end` will come.
    pub(crate) begun: bool,
    /// It has deltas, which a stage before this one should have merged.
    pub(crate) deltas: bool,
    /// Its message was seen.
    pub(crate) committed: bool,
    /// Its `stream_end` was seen, or none will come.
    pub(crate) ended: bool,
    /// The first so many calls have their results written.
    pub(crate) told: usize,
    /// The first so many calls have their messages written.
    pub(crate) sent: usize,
}

impl Turn {
    /// Writes what may be written now. Gives whether the turn is over.
    ///
    /// Before the message only results of calls that ran early are written. Between the message and `stream_end` nothing is, so that
    /// the place of a line does not depend on how fast a tool was. Then come the results, and each tool message as soon as those of all
    /// calls before it are there.
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

    /// Writes the tool messages whose turn it is, in call order.
    fn send(&mut self, calls: &mut BTreeMap<u64, PlannedCall>, steps: &mut Vec<PlanStep>) {
        if !self.committed || !self.ended {
            return;
        }
        while let Some(item) = self.order.get(self.sent).and_then(|key| calls.get_mut(key)) {
            match &item.state {
                // A call that waits for a person has no message yet, and those after it wait, to stay in call order.
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

    /// Puts the calls into the order of the message.
    pub(crate) fn reorder(&mut self, order: Vec<u64>) {
        self.order = order;
        self.told = 0;
    }
}
