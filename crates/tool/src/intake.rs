//! Takes calls into the schedule: what the log and the input have of a call already, and whether it may run.

use crate::call::RequestedCall;
use crate::class::Class;
use crate::judge::ReadyCall;
use crate::log::LoggedCall;
use crate::result::{Answer, Status};
use crate::schedule::Schedule;
use crate::turn::{CallState, PlannedCall};
use std::rc::Rc;

impl Schedule {
    /// Takes a call into a turn, and answers it if it must not run. `past` is what the input itself has of the call further on. Returns the
    /// number of the call.
    pub(crate) fn add(&mut self, turn: u64, call: RequestedCall, past: Option<LoggedCall>) -> u64 {
        let call = Rc::new(call);
        let foreseen = past.is_some();
        let (mut told, mut sent) = (false, false);
        let known = match past {
            Some(past) if past.answer.is_some() => {
                (told, sent) = (true, past.sent);
                Some(past)
            }
            past => past.filter(|past| past.started).or_else(|| self.log.last(&call).cloned()),
        };
        let too_many = self.turns.get(&turn).is_some_and(|turn| turn.order.len() >= self.settings.max_calls);
        let verdict = match (self.again(&call), known) {
            (Some(answer), _) => Err(answer),
            (None, Some(LoggedCall { answer: Some(answer), .. })) => Err(answer),
            (None, _) if too_many => Err(Rc::new(crowded(self.settings.max_calls))),
            (None, known) if self.judge.rules.denied.contains(call.id.as_ref()) => {
                Err(Rc::new(denied(known.is_some_and(|past| past.started))))
            }
            (None, known) => match self.judge.look(&call) {
                Ok(ready) if known.is_some_and(|past| past.started) && !self.may_run_again(&call, &ready) => {
                    Err(Rc::new(interrupted(&call)))
                }
                Ok(ready) => Ok(Rc::new(ready)),
                Err(answer) => Err(Rc::new(answer)),
            },
        };
        let (ready, state) = match verdict {
            Ok(ready) => (Some(ready), CallState::Waits),
            Err(answer) => (None, CallState::Done(answer)),
        };
        self.numbers += 1;
        let answer = if let CallState::Done(answer) = &state { Some(Rc::clone(answer)) } else { None };
        self.seen.insert(call.key(), (Rc::clone(&call), answer));
        self.calls.insert(
            self.numbers,
            PlannedCall {
                turn,
                call,
                ready,
                state,
                ran: false,
                told,
                sent,
                dropped: false,
                cancelled: false,
                foreseen,
            },
        );
        let key = self.numbers;
        self.turn(turn).order.push(key);
        key
    }

    /// The answer to a call that this run has taken before.
    fn again(&self, call: &RequestedCall) -> Option<Rc<Answer>> {
        let (first, answer) = self.seen.get(&call.key())?;
        if first.fingerprint().is_none() || first.fingerprint() != call.fingerprint() {
            return None;
        }
        let reads = |tool: &std::rc::Rc<crate::Tool>| tool.exec.as_ref().is_some_and(|exec| exec.class == Class::Read);
        if answer.is_none() && self.judge.tools.get(&call.name).is_some_and(reads) {
            return None; // It was taken back; a call that changes nothing may run again.
        }
        Some(answer.as_ref().map_or_else(
            || {
                Rc::new(Answer::new(
                    Status::Cancelled,
                    "The call was started before and taken back; it is not run twice.",
                ))
            },
            |answer| Rc::new(Answer { resumed: true, ..Answer::clone(answer) }),
        ))
    }

    /// Whether a call that an earlier run started, without a known result, may run again without a person's approval.
    fn may_run_again(&self, call: &RequestedCall, ready: &ReadyCall) -> bool {
        ready.class == Class::Read || self.judge.rules.approved.contains(call.id.as_ref())
    }
}

fn interrupted(call: &RequestedCall) -> Answer {
    let id = &call.id;
    Answer::new(
        Status::Pending,
        format!(
            "The call was started before and its result was never recorded, so it may have done its work. It is not run again without a \
             person's yes: look what it did, then continue with --approve-call {id:?}, or with --deny-call {id:?}."
        ),
    )
}

/// The answer to a call that a person has refused. `started`: an earlier run started it.
fn denied(started: bool) -> Answer {
    let what = if started {
        "A person decided not to run the call again. It had been started before, and its result is not known"
    } else {
        "A person refused the call, and it was not run"
    };
    Answer::new(Status::Denied, format!("{what}. Do not repeat it; go on without it, or ask the user."))
}

fn crowded(most: usize) -> Answer {
    Answer::new(
        Status::Denied,
        format!("The call was not run: the turn has more than {most} calls, which is as many as may run."),
    )
}
