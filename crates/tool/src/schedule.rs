//! The calls of all turns: which of them wait, which run, and the next steps.

use crate::history::History;
use crate::judge::Judge;
use crate::log::Log;
use crate::names::CallNames;
use crate::result::{Answer, Status};
use crate::seen::SeenCalls;
use crate::step::{PlanStep, Settings};
use crate::tally::Tally;
use crate::turn::{CallState, PlannedCall, Turn};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::rc::Rc;

/// A stream's name, as JSON; `None` for the unnamed stream.
pub(crate) type StreamName = Option<Box<str>>;

/// The calls and turns of a plan. They are numbered as they come, and steps for several of them
/// have that order, so that the same input gives the same steps.
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
    /// How many calls the turns of a stream have started that were cut since its last message: they
    /// count for its next turn.
    pub(crate) carried: HashMap<StreamName, usize>,
    /// The calls that were cancelled before they came, by stream (`None`: any) and id.
    pub(crate) cancels: HashSet<(Option<StreamName>, Box<str>)>,
    /// The calls by their names.
    pub(crate) names: CallNames,
    /// The calls that wait for a free place, and some that wait no more.
    pub(crate) queue: VecDeque<u64>,
    /// The call that a person is being asked about.
    pub(crate) asked: Option<u64>,
    /// The calls that wait for their questions.
    pub(crate) questions: VecDeque<u64>,
    /// What limits need to know of the log, the input and this run.
    pub(crate) history: History,
    /// The time, in milliseconds since 1970.
    pub(crate) now: u64,
    pub(crate) running: usize,
    /// The calls of this run, with their answers.
    pub(crate) seen: SeenCalls,
    pub(crate) numbers: u64,
    /// Why no further call starts: the end of a sentence.
    pub(crate) stopped: Option<&'static str>,
    pub(crate) steps: Vec<PlanStep>,
    pub(crate) tally: Tally,
}

impl Schedule {
    pub(crate) fn answer(&mut self, key: u64, answer: Rc<Answer>) {
        let Some(item) = self.calls.get_mut(&key) else {
            return;
        };
        if !item.is_repeated {
            self.seen.answer(key, &item.call, &answer);
        }
        item.state = CallState::Done(answer);
        if let Some(turn) = self.turns.get_mut(&item.turn) {
            turn.answered(key);
        }
    }

    pub(crate) fn enqueue(&mut self, key: u64) {
        self.calls
            .entry(key)
            .and_modify(|item| item.state = CallState::Queued);
        self.queue.push_back(key);
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

    /// Starts calls of the queue while there are free places. A limit is looked at when a call
    /// starts: it counts starts.
    pub(crate) fn settle(&mut self) {
        while self.running < self.settings.jobs.max(1)
            && let Some(key) = self.queue.pop_front()
        {
            // Some of the queue were taken back meanwhile.
            let Some(item) = self
                .calls
                .get_mut(&key)
                .filter(|item| matches!(item.state, CallState::Queued))
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
                self.answer(key, Rc::new(Answer::new(Status::Denied, why)));
                self.release(turn);
                continue;
            }
            (item.state, item.ran) = (CallState::Runs, true);
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
        let admitted = self.carried.remove(&stream).unwrap_or(0);
        self.turns.insert(self.numbers, Turn::new(stream, admitted));
        self.numbers
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
