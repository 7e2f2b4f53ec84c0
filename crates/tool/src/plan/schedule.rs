//! The calls of all turns: the waiting calls, the running calls, and the next steps.

use super::turn::{MessageCalls, PlannedCall, PlannedState};
use super::{Plan, PlanStep};
use crate::approval::Class;
use crate::call::{RequestedCall, StreamName};
use crate::log::LoggedCall;
use crate::result::{Status, ToolAnswer};
use std::rc::Rc;

impl Plan {
    pub(crate) fn answer(&mut self, key: u64, answer: Rc<ToolAnswer>) {
        let Some(item) = self.calls.get_mut(&key) else {
            return;
        };
        if !item.is_repeated {
            self.seen.answer(key, &item.call, &answer);
        }
        item.state = PlannedState::Done(answer);
        if let Some(turn) = self.turns.get_mut(&item.turn) {
            turn.answered(key);
        }
    }

    pub(crate) fn enqueue(&mut self, key: u64) {
        self.set(key, PlannedState::Queued);
        self.queue.push_back(key);
    }

    pub(crate) fn set(&mut self, key: u64, state: PlannedState) {
        self.calls.entry(key).and_modify(|item| item.state = state);
    }

    /// Returns the state of a call, or `None` if the call is finished or was removed.
    pub(crate) fn state(&self, key: u64) -> Option<&PlannedState> {
        self.calls.get(&key).map(|item| &item.state)
    }

    pub(crate) fn release(&mut self, key: u64) {
        let Some(turn) = self.turns.get_mut(&key) else {
            return;
        };
        let from = self.steps.len();
        let mut done = Vec::new();
        let over = turn.release(
            &mut self.calls,
            self.settings.order,
            &mut self.steps,
            &mut done,
        );
        done.iter()
            .for_each(|(key, call)| self.names.remove(call, *key));
        for step in &self.steps[from..] {
            match step {
                PlanStep::Result { answer, .. } if answer.status == Status::Pending => {
                    self.tally.pending += 1
                }
                PlanStep::Message { call, answer } => {
                    self.history.result(call, answer.status, &answer.output);
                    self.tally.messages += 1;
                    self.tally.is_final |= answer.is_final();
                }
                _ => {}
            }
        }
        if over {
            self.turns.remove(&key);
        }
    }

    /// Starts queued calls while job slots are free. Limits count starts, so they are checked here,
    /// when a call starts.
    pub(crate) fn settle(&mut self) {
        while self.running < self.settings.jobs.max(1)
            && let Some(key) = self.queue.pop_front()
        {
            // Some queued calls were retracted in the meantime.
            let Some(item) = self
                .calls
                .get_mut(&key)
                .filter(|item| matches!(item.state, PlannedState::Queued))
            else {
                continue;
            };
            let Some(ready) = item.ready.clone() else {
                continue;
            };
            if let Some(why) = self
                .history
                .over(&item.call, self.settings.max_repeats, self.now)
            {
                let turn = item.turn;
                self.answer(key, Rc::new(ToolAnswer::new(Status::Denied, why)));
                self.release(turn);
                continue;
            }
            (item.state, item.ran) = (PlannedState::Runs, true);
            self.running += 1;
            self.tally.started += 1;
            self.history.started(&item.call, self.now);
            self.steps.push(PlanStep::Start {
                key,
                call: Rc::clone(&item.call),
                ready,
            });
        }
    }

    /// Returns the stream's turn that waits for its message, starting a new turn if there is none.
    pub(crate) fn open_turn(&mut self, stream: StreamName) -> u64 {
        if let Some(turn) = self.open.get(&stream) {
            return *turn;
        }
        let turn = self.new_turn(stream.clone());
        self.open.insert(stream, turn);
        turn
    }

    pub(crate) fn new_turn(&mut self, stream: StreamName) -> u64 {
        self.numbers += 1;
        let admitted = self.carried.remove(&stream).unwrap_or(0);
        self.turns
            .insert(self.numbers, MessageCalls::new(stream, admitted));
        self.numbers
    }

    /// Ends the stream of a complete turn and writes the results that waited for its end.
    pub(crate) fn ended(&mut self, stream: &StreamName) {
        if let Some(key) = self.ending.remove(stream) {
            self.turn(key).ended = true;
            self.release(key);
        }
    }

    pub(crate) fn turn(&mut self, key: u64) -> &mut MessageCalls {
        self.turns.entry(key).or_default()
    }
}

// The commit point of a turn, at which its calls start or wait for a person.

impl Plan {
    /// Marks a turn as complete and starts its calls. `order` is the order of the calls in the
    /// message, or `None` without a message.
    pub(crate) fn committed(&mut self, key: u64, order: Option<Vec<u64>>) {
        let turn = self.turn(key);
        turn.committed = true;
        turn.ended = !turn.begun;
        if let Some(order) = order
            && let Some(turn) = self.turns.get_mut(&key)
        {
            turn.reorder(order, &mut self.calls);
        }
        let turn = self.turn(key);
        if turn.begun {
            let stream = turn.stream.clone();
            self.ending.insert(stream, key);
        }
        self.start(key);
    }

    /// Starts the turn's calls that waited for the commit point, or cancels them after
    /// [`Plan::stop`].
    pub(crate) fn start(&mut self, turn: u64) {
        let Some(calls) = self
            .turns
            .get(&turn)
            .map(|turn| turn.calls().collect::<Vec<_>>())
        else {
            return;
        };
        for key in calls {
            if let Some(PlannedState::Waits) = self.state(key) {
                if let Some(reason) = self.stopped {
                    let answer = ToolAnswer::new(
                        Status::Cancelled,
                        format!("The call was not run: {reason}."),
                    );
                    self.answer(key, Rc::new(answer));
                } else {
                    self.admit(key);
                }
            }
        }
        self.ask();
        self.release(turn);
    }
}

// Adding calls to the schedule, with what the log and the input already contain about each call and
// the decision whether it may run.

impl Plan {
    /// Adds a call to a turn, and answers the call if it must not run. `past` is the record of the
    /// call further on in the input, or `None` if the input has none. Returns the call's number.
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
                .filter(LoggedCall::was_started)
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
                started = known.is_some_and(|past| past.was_started());
                self.judge
                    .look(&call, self.history.starts(&call))
                    .map(Rc::new)
                    .map_err(Rc::new)
            }
        };
        let (ready, state) = match verdict {
            Ok(ready) => (Some(ready), PlannedState::Waits),
            Err(answer) => (None, PlannedState::Done(answer)),
        };
        self.numbers += 1;
        let key = self.numbers;
        self.names.add(&call, key);
        let planned = self.turn(turn);
        let place = planned.add(key);
        planned.admitted += usize::from(ready.is_some());
        let is_done = matches!(state, PlannedState::Done(_));
        match &state {
            _ if is_repeated => {} // the first call of the id stays the one that is seen
            PlannedState::Done(answer) => self.seen.answer(key, &call, answer),
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

    /// Returns the answer to a call that repeats an earlier call of this run, or `None` if the call
    /// is new or may run again.
    fn again(&self, call: &RequestedCall) -> Option<Rc<ToolAnswer>> {
        let tool = self
            .judge
            .tools
            .get(&call.name)
            .and_then(|tool| tool.exec.as_ref());
        self.seen
            .again(call, tool.is_some_and(|exec| exec.class == Class::Read))
    }
}

fn crowded(most: usize) -> ToolAnswer {
    ToolAnswer::new(
        Status::Denied,
        format!(
            "The call was not run: at most {most} calls of one turn may run (--max-calls), and \
             so many came before it. Make fewer calls at once, \
             and the rest in later turns."
        ),
    )
}
