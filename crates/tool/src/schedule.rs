//! The calls of all turns: which of them wait, which run, and the next steps.

use crate::call::{CallKey, RequestedCall};
use crate::judge::Judge;
use crate::log::Log;
use crate::result::{Answer, Status};
use crate::step::{PlanStep, Settings};
use crate::tally::Tally;
use crate::turn::{CallState, PlannedCall, Turn};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;

/// A stream's name, as JSON; `None` for the unnamed stream.
pub(crate) type StreamName = Option<Box<str>>;

/// The calls and turns of a plan. They are numbered as they come, and steps for several of them have that order, so that the same input
/// gives the same steps.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    pub(crate) judge: Judge,
    pub(crate) settings: Settings,
    /// The log of earlier runs.
    pub(crate) log: Log,
    pub(crate) calls: BTreeMap<u64, PlannedCall>,
    pub(crate) turns: BTreeMap<u64, Turn>,
    /// The turn of a stream that waits for its message.
    pub(crate) open: HashMap<StreamName, u64>,
    /// The turn of a stream that waits for its `stream_end`.
    pub(crate) ending: HashMap<StreamName, u64>,
    pub(crate) queue: VecDeque<u64>,
    pub(crate) running: usize,
    /// The calls of this run by stream and id, with their answers.
    pub(crate) seen: HashMap<CallKey, (Rc<RequestedCall>, Option<Rc<Answer>>)>,
    pub(crate) numbers: u64,
    pub(crate) stopped: bool,
    pub(crate) steps: Vec<PlanStep>,
    pub(crate) tally: Tally,
}

impl Schedule {
    pub(crate) fn answer(&mut self, key: u64, answer: Rc<Answer>) {
        let Some(item) = self.calls.get_mut(&key) else { return };
        self.seen.insert(item.call.key(), (Rc::clone(&item.call), Some(Rc::clone(&answer))));
        item.state = CallState::Done(answer);
    }

    pub(crate) fn enqueue(&mut self, key: u64) {
        self.calls.entry(key).and_modify(|item| item.state = CallState::Queued);
        self.queue.push_back(key);
    }

    pub(crate) fn release(&mut self, key: u64) {
        let Some(turn) = self.turns.get_mut(&key) else { return };
        let from = self.steps.len();
        let over = turn.release(&mut self.calls, self.settings.order, &mut self.steps);
        for step in &self.steps[from..] {
            match step {
                PlanStep::Result { answer, .. } if answer.status == Status::Pending => self.tally.pending += 1,
                PlanStep::Message { answer, .. } => {
                    self.tally.messages += 1;
                    self.tally.is_final |= answer.is_final();
                }
                _ => {}
            }
        }
        if over && let Some(turn) = self.turns.remove(&key) {
            turn.order.iter().for_each(|key| {
                self.calls.remove(key);
            });
        }
    }

    /// Starts calls of the queue while there are free places.
    pub(crate) fn settle(&mut self) {
        while self.running < self.settings.jobs.max(1)
            && let Some(key) = self.queue.pop_front()
        {
            let Some(item) = self.calls.get_mut(&key) else { continue };
            let Some(ready) = item.ready.clone() else { continue };
            (item.state, item.ran) = (CallState::Runs, true);
            self.running += 1;
            self.steps.push(PlanStep::Start { key, call: Rc::clone(&item.call), ready });
        }
    }

    /// The turn of a stream that waits for its message; begins one if the stream has none.
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
        self.turns.insert(self.numbers, Turn { stream, ..Turn::default() });
        self.numbers
    }

    pub(crate) fn committed(&mut self, key: u64, order: Option<Vec<u64>>) {
        let turn = self.turn(key);
        turn.committed = true;
        turn.ended = !turn.begun;
        if let Some(order) = order {
            turn.reorder(order);
        }
        if turn.begun {
            let stream = turn.stream.clone();
            self.ending.insert(stream, key);
        }
        self.start(key);
    }

    /// Starts the calls of a turn that waited for the commit point, or cancels them after [`crate::Plan::stop`].
    pub(crate) fn start(&mut self, turn: u64) {
        let Some(calls) = self.turns.get(&turn).map(|turn| turn.order.clone()) else { return };
        for key in calls {
            if matches!(self.calls.get(&key), Some(PlannedCall { state: CallState::Waits, .. })) {
                if self.stopped {
                    let answer = Answer::new(Status::Cancelled, "The call was not run: the user stopped the turn.");
                    self.answer(key, Rc::new(answer));
                } else {
                    self.enqueue(key);
                }
            }
        }
        self.release(turn);
    }

    /// Ends the stream of a complete turn, and writes the results that waited for that.
    pub(crate) fn ended(&mut self, stream: &StreamName) {
        if let Some(key) = self.ending.remove(stream) {
            self.turn(key).ended = true;
            self.release(key);
        }
    }

    pub(crate) fn turn(&mut self, key: u64) -> &mut Turn {
        self.turns.entry(key).or_default()
    }
}
