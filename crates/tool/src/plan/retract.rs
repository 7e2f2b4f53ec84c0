//! Removes calls from the schedule: calls that a `retract` event names, that the message does not
//! list, or whose turn failed.

use super::turn::{MessageCalls, PlannedState, StopCause};
use super::{Plan, PlanStep};
use crate::call::StreamName;
use crate::result::{Status, ToolAnswer};
use std::rc::Rc;
use std::time::Duration;

impl Plan {
    /// Retracts the call with this id or index. Before its message the call is dropped. After its
    /// message the conversation lists the call and needs a result, so the call is cancelled and
    /// answered: this is how a user cancels one call (docs/tools-file.md).
    pub(crate) fn retract(&mut self, stream: &StreamName, id: Option<&str>, index: Option<i64>) {
        let Some(key) = self.names.latest(stream, id, index) else {
            return;
        };
        let Some(item) = self.calls.get(&key) else {
            return;
        };
        let turn = item.turn;
        if self.open.get(stream) == Some(&turn) {
            let id = item.call.id.clone();
            self.turn(turn).retracted.insert(id);
            self.drop_call(key);
        } else {
            self.cancel_call(key);
        }
        self.release(turn);
    }

    /// Cancels a call that its message lists. A call that already has an answer keeps it.
    pub(crate) fn cancel_call(&mut self, key: u64) {
        let Some(item) = self.calls.get_mut(&key) else {
            return;
        };
        match item.state {
            PlannedState::Runs => self.stop_call(key, StopCause::Cancelled),
            PlannedState::Done(_) => {}
            _ => self.answer_instead(key, cancelled(false, None)),
        }
    }

    /// Handles a call to which the message gives another name or other arguments than its event
    /// did. The call does not run, and is stopped if it is running.
    pub(crate) fn contradict(&mut self, key: u64) {
        let Some(item) = self.calls.get(&key) else {
            return;
        };
        match item.state {
            PlannedState::Runs => self.stop_call(key, StopCause::Contradicted),
            PlannedState::Done(_) if item.ran => {
                self.answer(key, Rc::new(contradicted(true, None)))
            }
            PlannedState::Done(_) => {}
            _ => self.answer_instead(key, contradicted(false, None)),
        }
    }

    /// Stops a running call.
    fn stop_call(&mut self, key: u64, cause: StopCause) {
        if let Some(item) = self.calls.get_mut(&key)
            && item.stopped.is_none()
        {
            item.stopped = Some(cause);
            self.steps.push(PlanStep::Stop { key });
        }
    }

    /// Answers a waiting call instead of running it.
    fn answer_instead(&mut self, key: u64, answer: ToolAnswer) {
        if let Some(PlannedState::Asked) = self.state(key) {
            self.withdraw(key);
        }
        self.answer(key, Rc::new(answer));
    }

    /// Ends a stream's turn without its message and drops its calls. The calls that the turn
    /// started count for the stream's next turn, which may be a retry of the same turn.
    pub(crate) fn cut(&mut self, stream: &StreamName) {
        let Some(turn) = self.open.remove(stream) else {
            return;
        };
        let calls: Vec<_> = self.turn(turn).calls().collect();
        calls.into_iter().for_each(|key| self.drop_call(key));
        if let Some(MessageCalls {
            admitted: admitted @ 1..,
            ..
        }) = self.turns.remove(&turn)
        {
            self.carried.insert(stream.clone(), admitted);
        }
    }

    pub(crate) fn drop_call(&mut self, key: u64) {
        let Some(item) = self.calls.get_mut(&key) else {
            return;
        };
        let turn = item.turn;
        let place = item.place;
        let call = Rc::clone(&item.call);
        let never_ran = item.ready.is_some() && !item.ran;
        match &item.state {
            PlannedState::Runs => {
                item.stopped = Some(StopCause::TakenBack);
                self.seen.take_back(key, &call);
                self.steps.push(PlanStep::Stop { key });
            }
            PlannedState::Done(answer) if item.ran && !item.told => {
                let answer = taken_back(ToolAnswer::clone(answer));
                self.steps.push(PlanStep::Result {
                    key,
                    call: Rc::clone(&call),
                    answer: Rc::new(answer),
                });
                self.calls.remove(&key);
            }
            state => {
                let is_asked = matches!(state, PlannedState::Asked);
                if !item.ran {
                    self.seen.forget(key, &call);
                }
                self.calls.remove(&key);
                if is_asked {
                    self.withdraw(key);
                }
            }
        }
        self.names.remove(&call, key);
        if let Some(turn) = self.turns.get_mut(&turn) {
            turn.remove(place);
            turn.admitted -= usize::from(never_ran);
        }
    }
}

/// Returns the answer to a cancelled call. `ran` is whether the call had started, and `duration` is
/// how long it ran.
pub(crate) fn cancelled(ran: bool, duration: Option<Duration>) -> ToolAnswer {
    let text = if ran {
        "The call was cancelled while it ran; it may have done a part of its work."
    } else {
        "The call was cancelled before it started."
    };
    ToolAnswer {
        duration,
        ..ToolAnswer::new(Status::Cancelled, text)
    }
}

/// Returns the answer to a call to which the message gives another name or other arguments than its
/// event did. `ran` is whether the call was started as the event described it, and `duration` is
/// how long it ran.
pub(crate) fn contradicted(ran: bool, duration: Option<Duration>) -> ToolAnswer {
    let ran = if ran {
        "The first version of the call was started; it was ended or its result is ignored, and \
         it may have taken effect in part"
    } else {
        "The call was not run"
    };
    let text = format!(
        "{ran}: it came a second time under the same id with another name or other arguments. Call it again."
    );
    ToolAnswer {
        duration,
        ..ToolAnswer::new(Status::Invalid, text)
    }
}

/// Returns the answer to a call that was retracted before its message but had already started.
pub(crate) fn taken_back(answer: ToolAnswer) -> ToolAnswer {
    ToolAnswer {
        duration: answer.duration,
        ..ToolAnswer::new(
            Status::Cancelled,
            "The call was retracted after it had started.",
        )
    }
}
