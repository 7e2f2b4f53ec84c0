//! What to run, and when, and in which order to say what came of it: a state machine without a clock, a process or a handle.
//!
//! - A `read` call starts at its `tool_call`; all others at the assistant's `message`, the commit point. Calls that only the message
//!   lists are taken from there.
//! - At most so many run at once; the others wait in the order in which they may start.
//! - A call that was taken back, or whose turn failed or was cut, is not started; if it runs, it is stopped.
//! - No call runs twice: not one that a log answers, not one that comes again.

use crate::call::{Call, Key};
use crate::class::Class;
use crate::judge::{Judge, Ready};
use crate::result::{Answer, Status};
use crate::resume::Log;
use crate::retract::{cancelled, taken_back};
use crate::tally::{Tally, may_hold_event};
use crate::turn::{Item, State, Turn};
use event::payload::{Message, Retract, StreamEnd, Warning};
use event::{Event, Kind, Text};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

/// The order in which results are written. Tool messages are in call order always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As the calls stand in the message.
    #[default]
    Call,
    /// As they are done.
    Completion,
}

/// How the plan works.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How many calls run at once, at least 1.
    pub jobs: usize,
    /// The order of results.
    pub order: Order,
    /// The choice whose calls are run; those of others pass.
    pub choice: u32,
    /// How many calls of one turn are run; further ones are denied.
    pub max_calls: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { jobs: 8, order: Order::Call, choice: 0, max_calls: 1024 }
    }
}

/// What is to be done now.
#[derive(Debug)]
pub enum Step {
    /// Start this call, and tell [`Plan::done`] under this key.
    Start {
        /// Names the call in [`Plan::done`] and [`Step::Stop`].
        key: u64,
        /// The call.
        call: Rc<Call>,
        /// What to run.
        ready: Rc<Ready>,
    },
    /// Stop that call, which runs; [`Plan::done`] is still to be told.
    Stop {
        /// The key of its start.
        key: u64,
    },
    /// Write the `tool_result`.
    Result {
        /// The call.
        call: Rc<Call>,
        /// What came of it.
        answer: Rc<Answer>,
    },
    /// Write the tool message.
    Message {
        /// The call.
        call: Rc<Call>,
        /// What came of it.
        answer: Rc<Answer>,
    },
}

/// The plan. Feed it with events and with what is done; take [`Plan::steps`] after each.
#[derive(Debug, Default)]
pub struct Plan {
    pub(crate) judge: Judge,
    pub(crate) settings: Settings,
    /// The log of earlier runs.
    pub(crate) log: Log,
    /// What the input itself says further on.
    ahead: Log,
    pub(crate) items: HashMap<u64, Item>,
    pub(crate) turns: HashMap<u64, Turn>,
    /// The turn of a stream that waits for its message.
    pub(crate) open: HashMap<Option<Box<str>>, u64>,
    /// The turn of a stream that waits for its `stream_end`.
    ending: HashMap<Option<Box<str>>, u64>,
    pub(crate) queue: VecDeque<u64>,
    running: usize,
    /// Calls of this run by stream and id, and what came of them.
    pub(crate) seen: HashMap<Key, (Rc<Call>, Option<Rc<Answer>>)>,
    pub(crate) numbers: u64,
    stopped: bool,
    pub(crate) steps: Vec<Step>,
    /// A line that is not an event has come since the last stream began, and may have been one of its events.
    lost: bool,
    tally: Tally,
}

impl Plan {
    /// A plan over these tools. `log` is what earlier runs left.
    pub fn new(judge: Judge, settings: Settings, log: Log) -> Self {
        Plan { judge, settings, log, ahead: Log::of_choice(settings.choice), ..Plan::default() }
    }

    /// What is to be done now, in this order.
    pub fn steps(&mut self) -> Vec<Step> {
        std::mem::take(&mut self.steps)
    }

    /// Whether nothing runs and nothing waits for a place.
    pub fn is_idle(&self) -> bool {
        self.running == 0 && self.queue.is_empty()
    }

    /// What was seen so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Reads ahead: takes a line that [`Plan::event`] will get later. A call that the input itself answers is not run.
    pub fn foresee(&mut self, event: &Event<'_>) {
        self.ahead.event(event);
    }

    /// Reads ahead, likewise: a line that may be an event.
    pub fn foresee_line(&mut self, line: &str) {
        self.ahead.line(line);
    }

    /// Takes the next event.
    pub fn event(&mut self, event: &Event<'_>) {
        let stream = || event.stream().map(|s| Box::from(s.text()));
        let mine = event.choice() == self.settings.choice;
        match event.kind() {
            Kind::StreamStart => {
                let stream = stream();
                self.cut(&stream);
                self.ended(&stream);
                // A line says nothing of the stream that it was to belong to: while others are open it may be one of theirs.
                self.lost &= !(self.open.is_empty() && self.ending.is_empty());
                let key = self.new_turn(stream.clone());
                self.turn(key).begun = true;
                self.open.insert(stream, key);
            }
            Kind::ContentDelta if mine => {
                let turn = self.open.get(&stream()).and_then(|key| self.turns.get_mut(key));
                turn.into_iter().for_each(|turn| turn.deltas = true);
            }
            Kind::ToolCallDelta if mine => {
                let turn = self.open_turn(stream());
                self.turn(turn).deltas = true;
            }
            Kind::Warning => {
                let warning = Warning::read(event);
                let lost = warning.code == "not_an_event";
                self.lost |= lost && may_hold_event(&warning.raw.unwrap_or_default().str());
            }
            Kind::ToolCall if mine => self.tool_call(Call::of_event(event)),
            Kind::Retract if mine => {
                let Retract { index, tool_id, .. } = Retract::read(event);
                self.retract(&stream(), tool_id.map(Text::str).as_deref(), index);
            }
            Kind::Message if mine => {
                let message = Message::read(event);
                if message.is_of("assistant") {
                    self.commit(&stream(), message.message.with(|message| Call::of_message(Some(event), message)));
                }
            }
            Kind::Error => {
                let stream = stream();
                self.tally.failed += u64::from(self.open.contains_key(&stream));
                self.cut(&stream);
            }
            Kind::StreamEnd => {
                let stream = stream();
                if StreamEnd::read(event).finish_reason.is_failure() {
                    self.tally.failed += 1;
                } else if let Some(turn) = self.open.get(&stream).map(|key| &self.turns[key]) {
                    self.tally.unconfirmed += turn.order.len() as u64;
                    self.tally.unmerged += u64::from(turn.deltas && turn.order.is_empty());
                }
                self.tally.lost |= self.lost;
                self.cut(&stream);
                self.ended(&stream);
            }
            _ => {}
        }
        self.settle();
    }

    /// What was started under `key` has ended.
    pub fn done(&mut self, key: u64, answer: Answer) {
        self.running -= 1;
        let Some(item) = self.items.get(&key) else { return };
        if item.dropped {
            let answer = taken_back(answer);
            self.seen.insert(item.call.key(), (Rc::clone(&item.call), None));
            self.steps.push(Step::Result { call: Rc::clone(&item.call), answer: Rc::new(answer) });
            self.items.remove(&key);
        } else {
            let turn = item.turn;
            let answer = if item.cancelled { cancelled(true, answer.duration) } else { answer };
            self.answer(key, Rc::new(answer));
            self.release(turn);
        }
        self.settle();
    }

    /// The input has ended. A turn that is not complete was cut; the turn that the log ends in is finished.
    pub fn finish(&mut self) {
        self.tally.lost |= self.lost;
        let open: Vec<_> = self.open.keys().cloned().collect();
        for stream in open {
            let turn = &self.turns[&self.open[&stream]];
            if turn.begun {
                self.tally.failed += 1;
            } else {
                self.tally.unconfirmed += turn.order.len() as u64;
                self.tally.unmerged += u64::from(turn.deltas && turn.order.is_empty());
            }
            self.cut(&stream);
        }
        let ending: Vec<_> = self.ending.keys().cloned().collect();
        ending.iter().for_each(|stream| self.ended(stream));
        let calls: Vec<_> =
            self.log.open_turn().iter().filter(|call| !self.seen.contains_key(&call.key())).cloned().collect();
        if !calls.is_empty() {
            let key = self.new_turn(calls[0].stream.clone());
            for call in calls {
                let past = self.log.last(&call).cloned();
                let item = self.add(key, call, None);
                // The log holds what an earlier run wrote: only what is missing there is written.
                if let (Some(past), Some(item)) = (past, self.items.get_mut(&item)) {
                    (item.told, item.sent) = (past.answer.is_some(), past.sent);
                }
            }
            self.committed(key, None);
        }
        self.settle();
    }

    /// Starts nothing more. What runs may finish; every other call of a complete turn is answered as cancelled, so that the log is whole.
    pub fn stop(&mut self) {
        self.stopped = true;
        let queue = std::mem::take(&mut self.queue);
        for key in queue {
            self.items.entry(key).and_modify(|item| item.state = State::Waits);
        }
        let turns: Vec<_> = self.turns.iter().filter(|(_, turn)| turn.committed).map(|(key, _)| *key).collect();
        turns.into_iter().for_each(|turn| self.start(turn));
    }

    /// Stops what runs as well.
    pub fn abort(&mut self) {
        self.stop();
        let runs: Vec<_> =
            self.items.iter().filter(|(_, i)| matches!(i.state, State::Runs)).map(|(key, _)| *key).collect();
        self.steps.extend(runs.into_iter().map(|key| Step::Stop { key }));
    }

    fn tool_call(&mut self, call: Call) {
        let stream = call.stream.clone();
        let turn = self.open_turn(stream);
        if self.turns[&turn].order.iter().any(|key| self.items[key].call.id == call.id) {
            return;
        }
        self.turn(turn).retracted.remove(&call.id);
        let past = self.ahead.take_first(&call);
        let key = self.add(turn, call, past);
        if self.items[&key].ready.as_ref().is_some_and(|ready| ready.class == Class::Read) && !self.stopped {
            self.enqueue(key);
        }
    }

    /// The assistant's message: it confirms the calls that it lists, and no others.
    fn commit(&mut self, stream: &Option<Box<str>>, calls: Vec<Call>) {
        // A message after the commit point of its stream is another turn.
        let turn = self.open.remove(stream).unwrap_or_else(|| self.new_turn(stream.clone()));
        let mut order = Vec::with_capacity(calls.len());
        let known: HashMap<_, _> =
            self.turns[&turn].order.iter().map(|key| (self.items[key].call.id.clone(), *key)).collect();
        let mut listed = std::collections::HashSet::new();
        for call in calls {
            if !listed.insert(call.id.clone()) {
                continue; // one id, one call
            }
            match known.get(&call.id) {
                Some(key) => {
                    let foreseen =
                        self.items.get_mut(key).is_some_and(|item| std::mem::replace(&mut item.foreseen, true));
                    if !foreseen && let Some(past) = self.ahead.take_first(&call) {
                        self.items.entry(*key).and_modify(|item| item.sent |= past.sent);
                    }
                    order.push(*key);
                }
                None => {
                    let retracted = self.turn(turn).retracted.contains(&call.id);
                    let past = self.ahead.take_first(&call);
                    let key = self.add(turn, call, past);
                    if retracted {
                        self.cancel(key);
                    }
                    order.push(key);
                }
            }
        }
        for key in known.into_values().filter(|key| !order.contains(key)) {
            self.drop_call(key);
        }
        self.committed(turn, Some(order));
    }

    fn committed(&mut self, key: u64, order: Option<Vec<u64>>) {
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

    /// Starts what waited for the commit point, or answers it when nothing is started any more.
    fn start(&mut self, turn: u64) {
        let Some(calls) = self.turns.get(&turn).map(|turn| turn.order.clone()) else { return };
        for key in calls {
            if matches!(self.items.get(&key), Some(Item { state: State::Waits, .. })) {
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

    /// The stream of a complete turn has ended: what waited for that may be written.
    fn ended(&mut self, stream: &Option<Box<str>>) {
        if let Some(key) = self.ending.remove(stream) {
            self.turn(key).ended = true;
            self.release(key);
        }
    }

    pub(crate) fn answer(&mut self, key: u64, answer: Rc<Answer>) {
        let Some(item) = self.items.get_mut(&key) else { return };
        self.seen.insert(item.call.key(), (Rc::clone(&item.call), Some(Rc::clone(&answer))));
        item.state = State::Done(answer);
    }

    fn enqueue(&mut self, key: u64) {
        self.items.entry(key).and_modify(|item| item.state = State::Queued);
        self.queue.push_back(key);
    }

    pub(crate) fn release(&mut self, key: u64) {
        let Some(turn) = self.turns.get_mut(&key) else { return };
        let from = self.steps.len();
        let over = turn.release(&mut self.items, self.settings.order, &mut self.steps);
        for step in &self.steps[from..] {
            match step {
                Step::Result { answer, .. } if answer.status == Status::Pending => self.tally.pending += 1,
                Step::Message { answer, .. } => {
                    self.tally.messages += 1;
                    self.tally.is_final |= answer.is_final();
                }
                _ => {}
            }
        }
        if over && let Some(turn) = self.turns.remove(&key) {
            turn.order.iter().for_each(|key| {
                self.items.remove(key);
            });
        }
    }

    /// Starts as many as there is room for.
    fn settle(&mut self) {
        while self.running < self.settings.jobs.max(1)
            && let Some(key) = self.queue.pop_front()
        {
            let Some(item) = self.items.get_mut(&key) else { continue };
            let Some(ready) = item.ready.clone() else { continue };
            (item.state, item.ran) = (State::Runs, true);
            self.running += 1;
            self.steps.push(Step::Start { key, call: Rc::clone(&item.call), ready });
        }
    }

    /// The turn of a stream that waits for its message; begins one where none does.
    fn open_turn(&mut self, stream: Option<Box<str>>) -> u64 {
        if let Some(turn) = self.open.get(&stream) {
            return *turn;
        }
        let turn = self.new_turn(stream.clone());
        self.open.insert(stream, turn);
        turn
    }

    fn new_turn(&mut self, stream: Option<Box<str>>) -> u64 {
        self.numbers += 1;
        self.turns.insert(self.numbers, Turn { stream, ..Turn::default() });
        self.numbers
    }

    pub(crate) fn turn(&mut self, key: u64) -> &mut Turn {
        self.turns.entry(key).or_default()
    }
}
