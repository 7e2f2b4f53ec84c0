//! The state of a turn and of its calls.

use super::{Order, PlanStep};
use crate::call::RequestedCall;
use crate::judge::ReadyCall;
use crate::result::{Status, ToolAnswer};
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

/// The state of a call.
#[derive(Debug)]
pub(crate) enum PlannedState {
    /// The call may run, and waits for the commit point.
    Waits,
    /// The call waits for its question, or for the answer to it.
    Asked,
    /// The call waits for a free place.
    Queued,
    /// [`PlanStep::Start`] was returned.
    Runs,
    /// The call has its answer.
    Done(Rc<ToolAnswer>),
}

/// Why a call that runs is stopped; its own answer does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopCause {
    /// It was retracted before its message, or its turn failed.
    TakenBack,
    /// It was retracted after its message.
    Cancelled,
    /// Its message gives it another name or other arguments than its event did.
    Contradicted,
}

/// A call of a turn.
#[derive(Debug)]
pub(crate) struct PlannedCall {
    pub(crate) turn: u64,
    /// Its place in the order of its turn.
    pub(crate) place: usize,
    pub(crate) call: Rc<RequestedCall>,
    /// What would run; `None` for a call that was answered at once.
    pub(crate) ready: Option<Rc<ReadyCall>>,
    pub(crate) state: PlannedState,
    /// Whether an earlier run started it, and its result is not known.
    pub(crate) started: bool,
    /// Whether this run took a call of its id before, which answers it.
    pub(crate) is_repeated: bool,
    /// Whether this run started it.
    pub(crate) ran: bool,
    /// Whether its result is written, by this run or by one that wrote the log.
    pub(crate) told: bool,
    /// Whether its tool message is written.
    pub(crate) sent: bool,
    /// Why it was stopped while it ran, if it was.
    pub(crate) stopped: Option<StopCause>,
    /// Whether the input was searched for its result further on.
    pub(crate) foreseen: bool,
}

/// The calls of one assistant's message, which may still be to come.
#[derive(Debug, Default)]
pub(crate) struct MessageCalls {
    pub(crate) stream: Option<Box<str>>,
    /// The calls in order, by their numbers; `None` for one that is taken out, or has all of its
    /// lines.
    order: Vec<Option<u64>>,
    /// How many calls were let in to run. One that was taken back counts if it was started.
    pub(crate) admitted: usize,
    /// The calls that have got their answers, and whose results are not written yet, under
    /// [`Order::Completion`].
    answered: Vec<u64>,
    /// Those of them that did not run, and so wait for the message.
    early: Vec<u64>,
    /// Ids of calls that were retracted before the message.
    pub(crate) retracted: HashSet<Box<str>>,
    /// How many of its calls have waited for a person's answer.
    pub(crate) questions: usize,
    /// Whether its `stream_start` was seen, so that a `stream_end` follows.
    pub(crate) begun: bool,
    /// Whether it has deltas, which an earlier stage should have merged.
    pub(crate) deltas: bool,
    /// Whether its message was seen.
    pub(crate) committed: bool,
    /// Whether its `stream_end` was seen, or none follows.
    pub(crate) ended: bool,
    /// How many calls, from the first on, have their results written.
    told: usize,
    /// How many calls, from the first on, have their messages written.
    sent: usize,
}

impl MessageCalls {
    /// A turn of that stream without calls, to which so many count as let in.
    pub(crate) fn new(stream: Option<Box<str>>, admitted: usize) -> Self {
        MessageCalls {
            stream,
            admitted,
            ..MessageCalls::default()
        }
    }

    /// Its calls in order, but for those that are taken out or have all of their lines.
    pub(crate) fn calls(&self) -> impl Iterator<Item = u64> + '_ {
        self.order.iter().flatten().copied()
    }

    /// Adds a call at the end; returns its place.
    pub(crate) fn add(&mut self, key: u64) -> usize {
        self.order.push(Some(key));
        self.order.len() - 1
    }

    /// Removes the call at this place.
    pub(crate) fn remove(&mut self, place: usize) {
        if let Some(slot) = self.order.get_mut(place) {
            *slot = None;
        }
    }

    /// Sets the order of the calls to that of the message.
    pub(crate) fn reorder(&mut self, order: Vec<u64>, calls: &mut BTreeMap<u64, PlannedCall>) {
        for (place, key) in order.iter().enumerate() {
            calls.entry(*key).and_modify(|item| item.place = place);
        }
        self.order = order.into_iter().map(Some).collect();
        self.told = 0;
    }

    /// Notes that a call has got its answer.
    pub(crate) fn answered(&mut self, key: u64) {
        self.answered.push(key);
    }

    /// Writes the results and messages that are due; takes the calls that need nothing more out of
    /// `calls`, and puts them into `over`. Returns whether the turn is over.
    ///
    /// Before the message only the results of calls that ran early are written. Between the message
    /// and `stream_end` nothing is written, so that the place of a line does not depend on how fast
    /// a tool was. After that come the results; each tool message comes as soon as the calls before
    /// it have theirs.
    pub(crate) fn release(
        &mut self,
        calls: &mut BTreeMap<u64, PlannedCall>,
        order: Order,
        steps: &mut Vec<PlanStep>,
        over: &mut Vec<(u64, Rc<RequestedCall>)>,
    ) -> bool {
        match order {
            Order::Call => {
                self.answered.clear();
                while let Some(slot) = self.order.get(self.told) {
                    if let Some(key) = *slot
                        && let Some(item) = calls.get_mut(&key)
                        && !tell(key, item, self.committed, self.ended, steps)
                    {
                        break;
                    }
                    self.told += 1;
                    self.send(calls, steps, over);
                }
            }
            Order::Completion if self.committed && !self.ended => {}
            Order::Completion => {
                let mut answered = std::mem::take(&mut self.answered);
                if self.committed {
                    answered.append(&mut self.early);
                    answered.sort_by_key(|key| calls.get(key).map(|item| item.place));
                }
                for key in answered {
                    let Some(item) = calls.get_mut(&key) else {
                        continue;
                    };
                    if tell(key, item, self.committed, self.ended, steps) {
                        self.send(calls, steps, over);
                    } else {
                        self.early.push(key);
                    }
                }
            }
        }
        self.send(calls, steps, over);
        self.committed && self.ended && self.sent == self.order.len()
    }

    /// Writes the tool messages that are due, in call order.
    fn send(
        &mut self,
        calls: &mut BTreeMap<u64, PlannedCall>,
        steps: &mut Vec<PlanStep>,
        over: &mut Vec<(u64, Rc<RequestedCall>)>,
    ) {
        if !self.committed || !self.ended {
            return;
        }
        while let Some(slot) = self.order.get_mut(self.sent) {
            if let Some(key) = *slot
                && let Some(item) = calls.get(&key)
            {
                match &item.state {
                    // A call that waits for a person has no message yet. Those after it wait, too,
                    // to stay in call order.
                    PlannedState::Done(answer) if item.told && answer.status != Status::Pending => {
                        if !item.sent {
                            steps.push(PlanStep::Message {
                                call: Rc::clone(&item.call),
                                answer: Rc::clone(answer),
                            });
                        }
                    }
                    _ => break,
                }
                // Its output is needed no more: a turn of many calls must not hold all of them.
                *slot = None;
                over.extend(calls.remove(&key).map(|item| (key, item.call)));
            }
            self.sent += 1;
        }
    }
}

/// Writes the result of a call, unless it is written already; `false`: it is not due.
fn tell(
    key: u64,
    item: &mut PlannedCall,
    committed: bool,
    ended: bool,
    steps: &mut Vec<PlanStep>,
) -> bool {
    let is_due = if committed { ended } else { item.ran };
    let PlannedState::Done(answer) = &item.state else {
        return false;
    };
    if is_due && !std::mem::replace(&mut item.told, true) {
        steps.push(PlanStep::Result {
            key,
            call: Rc::clone(&item.call),
            answer: Rc::clone(answer),
        });
    }
    is_due
}
