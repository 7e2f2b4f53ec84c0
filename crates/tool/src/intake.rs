//! Takes calls into the schedule: what the log and the input have of a call already, and whether it
//! may run.

use crate::call::RequestedCall;
use crate::class::Class;
use crate::logged_call::LoggedCall;
use crate::result::{Answer, Status};
use crate::schedule::Schedule;
use crate::turn::{CallState, PlannedCall};
use std::rc::Rc;

impl Schedule {
    /// Takes a call into a turn, and answers it if it must not run. `past` is what the input itself
    /// has of the call further on. Returns the number of the call.
    pub(crate) fn add(
        &mut self,
        turn: u64,
        mut call: RequestedCall,
        past: Option<LoggedCall>,
    ) -> u64 {
        call.occurrence = self.log.occurrence(&call);
        let call = Rc::new(call);
        let foreseen = past.is_some();
        let (mut told, mut sent, mut started) = (false, false, false);
        let known = match past {
            Some(past) if past.answer.is_some() => {
                (told, sent) = (true, past.sent);
                Some(past)
            }
            past => past
                .filter(|past| past.started)
                .or_else(|| self.log.last(&call).cloned()),
        };
        let too_many = self
            .turns
            .get(&turn)
            .is_some_and(|turn| turn.admitted >= self.settings.max_calls);
        let again = self.again(&call);
        let is_repeated = again.is_some();
        let verdict = match (again, known) {
            (Some(answer), _) => Err(answer),
            (
                None,
                Some(LoggedCall {
                    answer: Some(answer),
                    ..
                }),
            ) => Err(answer),
            (None, _) if too_many => Err(Rc::new(crowded(self.settings.max_calls))),
            (None, known) => {
                started = known.is_some_and(|past| past.started);
                self.judge
                    .look(&call, self.history.starts(&call))
                    .map(Rc::new)
                    .map_err(Rc::new)
            }
        };
        let (ready, state) = match verdict {
            Ok(ready) => (Some(ready), CallState::Waits),
            Err(answer) => (None, CallState::Done(answer)),
        };
        self.numbers += 1;
        let key = self.numbers;
        self.names.add(&call, key);
        let planned = self.turn(turn);
        let place = planned.add(key);
        planned.admitted += usize::from(ready.is_some());
        let is_done = matches!(state, CallState::Done(_));
        match &state {
            _ if is_repeated => {} // the first call of the id stays the one that is seen
            CallState::Done(answer) => self.seen.answer(key, &call, answer),
            _ => self.seen.begin(key, &call),
        }
        self.calls.insert(
            key,
            PlannedCall {
                turn,
                place,
                call,
                ready,
                state,
                started,
                ran: false,
                told,
                sent,
                is_repeated,
                stopped: None,
                foreseen,
            },
        );
        if is_done {
            self.turn(turn).answered(key);
        }
        key
    }

    /// The answer to a call that this run has taken before.
    fn again(&self, call: &RequestedCall) -> Option<Rc<Answer>> {
        let tool = self
            .judge
            .tools
            .get(&call.name)
            .and_then(|tool| tool.exec.as_ref());
        self.seen
            .again(call, tool.is_some_and(|exec| exec.class == Class::Read))
    }
}

fn crowded(most: usize) -> Answer {
    Answer::new(
        Status::Denied,
        format!(
            "The call was not run: at most {most} calls of one turn may run (--max-calls), and so many came before it. Make fewer calls at once, \
             and the rest in later turns."
        ),
    )
}
