//! The commit point of a turn: its calls start, or wait for a person.

use crate::result::{Answer, Status};
use crate::schedule::Schedule;
use crate::turn::{CallState, PlannedCall};
use std::rc::Rc;

impl Schedule {
    /// Marks a turn as complete, in the order of its message if there is one, and starts its calls.
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

    /// Starts the calls of a turn that waited for the commit point, or cancels them after
    /// [`crate::Plan::stop`].
    pub(crate) fn start(&mut self, turn: u64) {
        let Some(calls) = self
            .turns
            .get(&turn)
            .map(|turn| turn.calls().collect::<Vec<_>>())
        else {
            return;
        };
        for key in calls {
            if matches!(
                self.calls.get(&key),
                Some(PlannedCall {
                    state: CallState::Waits,
                    ..
                })
            ) {
                if let Some(reason) = self.stopped {
                    let answer = Answer::new(
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
