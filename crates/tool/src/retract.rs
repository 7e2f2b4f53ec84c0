//! Takes calls out of the schedule: calls that a `retract` names, that the message does not list, or whose turn failed.

use crate::call::RequestedCall;
use crate::result::{Answer, Status};
use crate::schedule::{Schedule, StreamName};
use crate::step::PlanStep;
use crate::turn::{CallState, PlannedCall, Turn};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

impl Schedule {
    /// Takes back the call of this id or index. Before its message the call is dropped. After it the history lists the call and needs a result,
    /// so the call is cancelled and answered: this is how a user cancels one call (docs/ci.md).
    pub(crate) fn retract(&mut self, stream: &StreamName, id: Option<&str>, index: Option<i64>) {
        let matches =
            |call: &RequestedCall| id.map_or_else(|| index.is_some() && call.index == index, |id| id == &*call.id);
        let find = |turn: &Turn, calls: &BTreeMap<u64, PlannedCall>| {
            turn.order.iter().copied().find(|key| calls.get(key).is_some_and(|item| matches(&item.call)))
        };
        if let Some(&key) = self.open.get(stream)
            && let Some(call) = find(&self.turns[&key], &self.calls)
        {
            let id = self.calls[&call].call.id.clone();
            self.turn(key).retracted.insert(id);
            self.drop_call(call);
            self.release(key);
            return;
        }
        let committed = self.turns.iter().filter(|(_, turn)| turn.committed && turn.stream == *stream);
        let latest = committed.filter_map(|(key, turn)| Some((*key, find(turn, &self.calls)?))).max();
        if let Some((turn, call)) = latest {
            self.cancel(call);
            self.release(turn);
        }
    }

    /// Cancels a call that its message lists. A call that is answered keeps its answer.
    pub(crate) fn cancel(&mut self, key: u64) {
        let Some(item) = self.calls.get_mut(&key) else { return };
        match item.state {
            CallState::Runs if !item.cancelled => {
                item.cancelled = true;
                self.steps.push(PlanStep::Stop { key });
            }
            CallState::Waits | CallState::Queued => {
                self.queue.retain(|queued| *queued != key);
                self.answer(key, Rc::new(cancelled(false, None)));
            }
            CallState::Runs | CallState::Done(_) => {}
        }
    }

    /// Ends the turn of a stream without its message, and drops its calls.
    pub(crate) fn cut(&mut self, stream: &StreamName) {
        if let Some(turn) = self.open.remove(stream).and_then(|key| self.turns.remove(&key)) {
            turn.order.into_iter().for_each(|key| self.drop_call(key));
        }
    }

    pub(crate) fn drop_call(&mut self, key: u64) {
        let Some(item) = self.calls.get_mut(&key) else { return };
        let turn = item.turn;
        match &item.state {
            CallState::Runs => {
                item.dropped = true;
                self.steps.push(PlanStep::Stop { key });
            }
            CallState::Done(answer) if item.ran && !item.told => {
                let answer = taken_back(Answer::clone(answer));
                self.steps.push(PlanStep::Result { call: Rc::clone(&item.call), answer: Rc::new(answer) });
                self.calls.remove(&key);
            }
            _ => {
                if !item.ran {
                    self.seen.remove(&item.call.key());
                }
                self.calls.remove(&key);
                self.queue.retain(|k| *k != key);
            }
        }
        if let Some(turn) = self.turns.get_mut(&turn) {
            turn.remove(key);
        }
    }
}

/// The answer to a call that was cancelled. `ran`: the call had started; `duration`: how long it ran.
pub(crate) fn cancelled(ran: bool, duration: Option<Duration>) -> Answer {
    let text = if ran {
        "The call was cancelled while it ran; it may have done a part of its work."
    } else {
        "The call was cancelled before it started."
    };
    Answer { duration, ..Answer::new(Status::Cancelled, text) }
}

/// The answer to a call that was retracted before its message and had started.
pub(crate) fn taken_back(answer: Answer) -> Answer {
    Answer {
        duration: answer.duration,
        ..Answer::new(Status::Cancelled, "The call was taken back after it had started.")
    }
}
