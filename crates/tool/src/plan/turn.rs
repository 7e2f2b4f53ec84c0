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
    /// The call may run and waits for the commit point.
    Waits,
    /// The call waits for its approval prompt or for the person's answer.
    Asked,
    /// The call waits for a free job slot.
    Queued,
    /// [`PlanStep::Start`] was returned.
    Runs,
    /// The call has its answer.
    Done(Rc<ToolAnswer>),
}

/// Why a running call is stopped. The call's own answer is then ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopCause {
    /// The call was retracted before its message, or its turn failed.
    TakenBack,
    /// The call was retracted after its message.
    Cancelled,
    /// The message gives the call another name or other arguments than its event did.
    Contradicted,
}

/// A call of a turn.
#[derive(Debug)]
pub(crate) struct PlannedCall {
    pub(crate) turn: u64,
    /// The position of the call in its turn.
    pub(crate) place: usize,
    pub(crate) call: Rc<RequestedCall>,
    /// The work to run, or `None` if the call was answered at once.
    pub(crate) ready: Option<Rc<ReadyCall>>,
    pub(crate) state: PlannedState,
    /// Whether an earlier run started the call without recording its result.
    pub(crate) started: bool,
    /// Whether an earlier call of this run has the same id, so that its answer is used.
    pub(crate) is_repeated: bool,
    /// Whether this run started the call.
    pub(crate) ran: bool,
    /// Whether the result was written, by this run or by the one that wrote the log.
    pub(crate) told: bool,
    /// Whether the tool message was written.
    pub(crate) sent: bool,
    /// Why the call was stopped while it ran, or `None` if it was not stopped.
    pub(crate) stopped: Option<StopCause>,
    /// Whether the input was searched for a later result of the call.
    pub(crate) foreseen: bool,
}

/// The calls of one assistant's message, which may not have arrived yet.
#[derive(Debug, Default)]
pub(crate) struct MessageCalls {
    pub(crate) stream: Option<Box<str>>,
    /// The numbers of the calls, in order; `None` for a call that was removed or is completely
    /// written.
    order: Vec<Option<u64>>,
    /// The number of calls that were accepted to run. A retracted call counts if it was started.
    pub(crate) admitted: usize,
    /// The calls that have an answer but no written result yet. Only used for
    /// [`Order::Completion`].
    answered: Vec<u64>,
    /// The answered calls that did not run, and so wait for the message.
    early: Vec<u64>,
    /// The ids of the calls that were retracted before the message.
    pub(crate) retracted: HashSet<Box<str>>,
    /// The number of calls that have waited for a person's answer.
    pub(crate) questions: usize,
    /// Whether the turn's `stream_start` was seen, so that a `stream_end` follows.
    pub(crate) begun: bool,
    /// Whether the turn has deltas that an earlier stage should have merged.
    pub(crate) deltas: bool,
    /// Whether the turn's message was seen.
    pub(crate) committed: bool,
    /// Whether the turn's `stream_end` was seen, or none follows.
    pub(crate) ended: bool,
    /// The number of calls, counted from the first, whose results are written.
    told: usize,
    /// The number of calls, counted from the first, whose tool messages are written.
    sent: usize,
}

impl MessageCalls {
    /// Creates a turn without calls. `admitted` is the number of calls that already count toward
    /// its limit.
    pub(crate) fn new(stream: Option<Box<str>>, admitted: usize) -> Self {
        MessageCalls {
            stream,
            admitted,
            ..MessageCalls::default()
        }
    }

    /// Returns the calls in order, without those that were removed or are completely written.
    pub(crate) fn calls(&self) -> impl Iterator<Item = u64> + '_ {
        self.order.iter().flatten().copied()
    }

    /// Appends a call and returns its position.
    pub(crate) fn add(&mut self, key: u64) -> usize {
        self.order.push(Some(key));
        self.order.len() - 1
    }

    /// Removes the call at this position.
    pub(crate) fn remove(&mut self, place: usize) {
        if let Some(slot) = self.order.get_mut(place) {
            *slot = None;
        }
    }

    /// Changes the order of the calls to the order in the message.
    pub(crate) fn reorder(&mut self, order: Vec<u64>, calls: &mut BTreeMap<u64, PlannedCall>) {
        for (place, key) in order.iter().enumerate() {
            calls.entry(*key).and_modify(|item| item.place = place);
        }
        self.order = order.into_iter().map(Some).collect();
        self.told = 0;
    }

    /// Records that a call has its answer.
    pub(crate) fn answered(&mut self, key: u64) {
        self.answered.push(key);
    }

    /// Writes the results and messages that are due, and moves the completely written calls from
    /// `calls` to `over`. Returns whether the turn is over.
    ///
    /// Before the message, only the results of calls that ran early are written. Between the
    /// message and `stream_end` nothing is written, so that the position of a line does not depend
    /// on the speed of a tool. After `stream_end` the results follow, and each tool message is
    /// written as soon as all calls before it have theirs.
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
                    // A call that waits for a person has no message yet. The messages after it wait
                    // too, to stay in call order.
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
                // Free the call's output: a turn of many calls must not keep all of them in memory.
                *slot = None;
                over.extend(calls.remove(&key).map(|item| (key, item.call)));
            }
            self.sent += 1;
        }
    }
}

/// Writes the result of a call unless it is already written. Returns whether the result is due.
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
