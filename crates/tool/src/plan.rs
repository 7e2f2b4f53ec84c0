//! Decides which calls to run, when to run them, and in which order to write their results: a state
//! machine without a clock, processes or file handles.
//!
//! - A `read` call starts at its `tool_call` event. Every other call starts at the assistant's
//!   `message`, the commit point. A call without a `tool_call` event is taken from the message.
//! - At most [`PlanSettings::jobs`] calls run at once. The others wait, in the order in which they
//!   became ready to start.
//! - A call is not started, or is stopped if it already runs, if it was retracted or if its turn
//!   failed or was cut off.
//! - No call runs twice: a call that a log already answers or that the input repeats is not run
//!   again.

mod questions;
mod retract;
mod schedule;
mod seen;
mod turn;

use super::approval::{AnswerSource, PersonAnswer, Reason};
use super::call::{RequestedCall, StreamName, stream_of};
use super::history::History;
use super::judge::{Judge, ReadyCall};
use super::log::{Log, LogReader};
use super::reference::{CallHash, CallReference, UnusedAnswer};
use super::result::ToolAnswer;
use event::payload::{Message, Retract, StreamEnd, StreamStart, Verdict, Warning};
use event::{Event, Kind, Text};
use retract::{cancelled, contradicted, taken_back};
use seen::{CallNames, SeenCalls};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::rc::Rc;
use turn::{MessageCalls, PlannedCall, PlannedState, StopCause};

/// The plan. Pass it events and the answers of calls that ran, and take [`Plan::steps`] after each.
/// Calls and turns are numbered in order of arrival, and steps are returned in that order, so the
/// same input always gives the same steps.
#[derive(Debug, Default)]
pub struct Plan {
    judge: Judge,
    settings: PlanSettings,
    /// The log of earlier runs.
    log: Log,
    calls: BTreeMap<u64, PlannedCall>,
    turns: BTreeMap<u64, MessageCalls>,
    /// For each stream, the turn that waits for its message.
    open: HashMap<StreamName, u64>,
    /// For each stream, the turn that waits for its `stream_end`.
    ending: HashMap<StreamName, u64>,
    /// For each stream, the number of calls started by turns that were cut off since its last
    /// message. They count toward the limit of its next turn.
    carried: HashMap<StreamName, usize>,
    /// The calls by id and by index.
    names: CallNames,
    /// The calls that wait for a free job slot, and some that no longer wait.
    queue: VecDeque<u64>,
    /// The call whose approval prompt is open.
    asked: Option<u64>,
    /// The calls that wait for their approval prompts.
    questions: VecDeque<u64>,
    /// The calls that were decided by a person's answer given as an option.
    used_answers: HashSet<CallReference>,
    /// The history that limits need, from the log, the input and this run.
    history: History,
    /// The current time, in milliseconds since 1970.
    now: u64,
    running: usize,
    /// The calls of this run, with their answers.
    seen: SeenCalls,
    numbers: u64,
    /// Why no further call starts, as the end of a sentence.
    stopped: Option<&'static str>,
    steps: Vec<PlanStep>,
    tally: PlanTally,
    /// The calls of the input that were read ahead.
    ahead: Log,
    /// Whether a line that is not an event has appeared since the last stream began. It may have
    /// been an event of that stream.
    lost: bool,
    /// The id of each stream's current response, or `None` if the response has no id.
    responses: HashMap<StreamName, Option<Box<str>>>,
    /// Whether the input continues after the turn that ends the log. The model has then already
    /// seen that turn as it is.
    is_superseded: bool,
}

impl Plan {
    /// Creates a plan for the tools of `judge`. `log` contains the calls of earlier runs.
    pub fn new(judge: Judge, settings: PlanSettings, log: Log) -> Self {
        let mut log = log;
        let history = std::mem::take(&mut log.history);
        Plan {
            judge,
            settings,
            log,
            history,
            ahead: Log::of_choice(settings.choice),
            ..Plan::default()
        }
    }

    /// Sets the time for limits, in milliseconds since 1970.
    pub fn at(&mut self, now: u64) {
        self.now = now;
    }

    /// Takes the next steps, in order. Each step is returned once.
    pub fn steps(&mut self) -> Vec<PlanStep> {
        std::mem::take(&mut self.steps)
    }

    /// Whether no call is running, queued or waiting for a person's answer.
    pub fn is_idle(&self) -> bool {
        self.running == 0 && self.queue.is_empty() && self.asked.is_none()
    }

    /// Returns the counts so far.
    pub fn tally(&self) -> PlanTally {
        self.tally
    }

    /// Returns a person's answers that matched no call, in the order of their calls. Reporting them
    /// shows a mistyped answer, or an answer to a call that already has one, which would otherwise
    /// be ignored silently.
    pub fn unused_answers(&self) -> Vec<UnusedAnswer> {
        let rules = &self.judge.rules;
        let all = [
            (Verdict::Approved, rules.approved.iter().collect::<Vec<_>>()),
            (Verdict::Answered, rules.results.keys().collect()),
            (Verdict::Denied, rules.denied.iter().collect()),
        ];
        // A rejection overrides an approval.
        let mut unused = BTreeMap::new();
        for (verdict, calls) in all {
            for call in calls {
                if !self.used_answers.contains(call) {
                    let first = self.history.first_answer(call).cloned();
                    let call = call.clone();
                    let text = call.to_string();
                    unused.insert(
                        text,
                        UnusedAnswer {
                            call,
                            verdict,
                            first,
                        },
                    );
                }
            }
        }
        unused.into_values().collect()
    }

    /// Reads ahead: takes a line that may be an event which [`Plan::event`] will receive later. A
    /// call that the input itself answers is not run.
    pub fn foresee(&mut self, line: &str) {
        // The log, the input and this run share one history.
        std::mem::swap(&mut self.ahead.history, &mut self.history);
        self.ahead.line(line);
        std::mem::swap(&mut self.ahead.history, &mut self.history);
    }

    /// Processes the next event.
    pub fn event(&mut self, event: &Event<'_>) {
        let stream = || stream_of(event);
        let mine = event.choice() == self.settings.choice;
        match event.kind() {
            Kind::StreamStart => {
                let stream = stream();
                self.cut(&stream);
                self.ended(&stream);
                // A line that is not an event does not name its stream, so it may belong to any
                // stream that is still open.
                self.lost &= !(self.open.is_empty() && self.ending.is_empty());
                let key = self.new_turn(stream.clone());
                self.turn(key).begun = true;
                let id = StreamStart::read(event).id.filter(|id| !id.is_empty());
                self.responses
                    .insert(stream.clone(), id.map(|id| id.str().into()));
                self.is_superseded = true;
                self.open.insert(stream, key);
            }
            Kind::ContentDelta if mine => {
                let turn = self
                    .open
                    .get(&stream())
                    .and_then(|key| self.turns.get_mut(key));
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
            Kind::ToolCall if mine => {
                let call = RequestedCall::of_event(event);
                if !self.judge.leaves(&call.name) {
                    self.tool_call(call);
                }
            }
            Kind::Retract if mine => {
                let Retract { index, tool_id, .. } = Retract::read(event);
                self.retract(&stream(), tool_id.map(Text::str).as_deref(), index);
            }
            Kind::Message if mine => {
                let message = Message::read(event);
                self.is_superseded |= message.is_of("user");
                if message.is_of("assistant") {
                    let mut calls = message
                        .message
                        .with(|message| RequestedCall::of_message(Some(event), message));
                    calls.retain(|call| !self.judge.leaves(&call.name));
                    self.commit(&stream(), calls);
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
                } else if let Some(key) = self.open.get(&stream) {
                    self.tally.unconfirmed(&self.turns[key]);
                }
                self.tally.lost |= self.lost;
                self.cut(&stream);
                self.ended(&stream);
            }
            _ => {}
        }
        self.settle();
    }

    /// Takes the answer of the call that was started under `key`. Returns the answer that is used,
    /// which is a different one if the call was cancelled or retracted in the meantime.
    pub fn done(&mut self, key: u64, answer: ToolAnswer) -> Rc<ToolAnswer> {
        self.running -= 1;
        let Some(planned) = self.calls.get(&key) else {
            return Rc::new(answer);
        };
        let turn = planned.turn;
        let stopped = planned.stopped;
        let answer = Rc::new(match stopped {
            Some(StopCause::TakenBack) => taken_back(answer),
            Some(StopCause::Cancelled) => cancelled(true, answer.duration),
            Some(StopCause::Contradicted) => contradicted(true, answer.duration),
            None => answer,
        });
        if stopped == Some(StopCause::TakenBack) {
            self.steps.push(PlanStep::Result {
                key,
                call: Rc::clone(&planned.call),
                answer: Rc::clone(&answer),
            });
            self.calls.remove(&key);
        } else {
            self.answer(key, Rc::clone(&answer));
            self.release(turn);
        }
        self.settle();
        answer
    }

    /// Takes the answer to the prompt of a [`PlanStep::Ask`]. `shown` is the hash of the call that
    /// the person saw.
    pub fn answered(&mut self, key: u64, shown: CallHash, answer: PersonAnswer) {
        self.take_answer(key, shown, answer);
        self.settle();
    }

    /// Ends the input. An incomplete turn counts as cut off, and the turn that ends the log is
    /// continued.
    pub fn finish(&mut self) {
        self.tally.lost |= self.lost;
        for stream in in_order(&self.open) {
            let turn = &self.turns[&self.open[&stream]];
            if turn.begun {
                self.tally.failed += 1;
            } else {
                self.tally.unconfirmed(turn);
            }
            self.cut(&stream);
        }
        in_order(&self.ending)
            .iter()
            .for_each(|stream| self.ended(stream));
        let logged = if self.is_superseded {
            &[]
        } else {
            self.log.open_turn()
        };
        let calls: Vec<_> = logged
            .iter()
            .filter(|call| !self.seen.contains(call) && !self.judge.leaves(&call.name))
            .cloned()
            .collect();
        if !calls.is_empty() {
            let turn = self.new_turn(calls[0].stream.clone());
            for call in calls {
                let logged = self.log.last(&call).cloned();
                let key = self.add(turn, call, None);
                // Write only the lines that the log lacks.
                if let (Some(logged), Some(planned)) = (logged, self.calls.get_mut(&key)) {
                    (planned.told, planned.sent) = (logged.answer.is_some(), logged.sent);
                }
            }
            self.committed(turn, None);
        }
        self.settle();
    }

    /// Starts no further call. Running calls may finish, and calls that wait for a person stay
    /// pending. Every other call of a complete turn gets the answer `cancelled`, so that the log
    /// has a result for each call.
    pub fn stop(&mut self) {
        self.stop_because("the user stopped the turn");
    }

    /// Like [`Plan::stop`], with another reason: the end of the sentence that the model reads. Only
    /// the first reason is kept.
    pub fn stop_because(&mut self, reason: &'static str) {
        self.stopped.get_or_insert(reason);
        self.withdraw_all();
        for key in std::mem::take(&mut self.queue) {
            if let Some(PlannedState::Queued) = self.state(key) {
                self.set(key, PlannedState::Waits);
            }
        }
        let turns: Vec<_> = self
            .turns
            .iter()
            .filter(|(_, turn)| turn.committed)
            .map(|(key, _)| *key)
            .collect();
        turns.into_iter().for_each(|turn| self.start(turn));
    }

    /// Like [`Plan::stop`], but also stops the running calls.
    pub fn abort(&mut self) {
        self.stop();
        let runs = self
            .calls
            .iter()
            .filter(|(_, planned)| matches!(planned.state, PlannedState::Runs));
        self.steps
            .extend(runs.map(|(key, _)| PlanStep::Stop { key: *key }));
    }

    fn tool_call(&mut self, mut call: RequestedCall) {
        call.response = self.responses.get(&call.stream).cloned().flatten();
        let turn = self.open_turn(call.stream.clone());
        let known = self
            .names
            .latest(&call.stream, Some(&call.id), None)
            .and_then(|key| self.calls.get(&key));
        if known.is_some_and(|known| known.turn == turn) {
            return;
        }
        self.turn(turn).retracted.remove(&call.id);
        let ahead = self.ahead.take_first(&call);
        let key = self.add(turn, call, ahead);
        if self.starts_early(key) && self.stopped.is_none() {
            self.enqueue(key);
        }
    }

    /// Takes the assistant's message, which commits the calls that it lists and drops the other
    /// calls of its stream.
    fn commit(&mut self, stream: &StreamName, calls: Vec<RequestedCall>) {
        // A message after its stream's commit point starts a new turn.
        let turn = self
            .open
            .remove(stream)
            .unwrap_or_else(|| self.new_turn(stream.clone()));
        let before: Vec<_> = self.turns[&turn].calls().collect();
        let known: HashMap<_, _> = before
            .iter()
            .map(|key| (self.calls[key].call.id.clone(), *key))
            .collect();
        let mut order = Vec::with_capacity(calls.len());
        let mut listed: HashMap<Box<str>, u64> = HashMap::new();
        for mut call in calls {
            call.response = self.responses.get(stream).cloned().flatten();
            // An id stands for one call, so an entry with a known id must have the same name and
            // arguments.
            if let Some(&key) = listed.get(&call.id).or_else(|| known.get(&call.id))
                && let Some(planned) = self.calls.get_mut(&key)
            {
                let is_first = listed.insert(call.id.clone(), key).is_none();
                if is_first && !std::mem::replace(&mut planned.foreseen, true) {
                    planned.sent |= self.ahead.take_first(&call).is_some_and(|ahead| ahead.sent);
                }
                order.extend(is_first.then_some(key));
                if planned.call.is_contradicted_by(&call) {
                    self.contradict(key);
                }
                continue;
            }
            let retracted = self.turn(turn).retracted.contains(&call.id);
            let ahead = self.ahead.take_first(&call);
            let id = call.id.clone();
            let key = self.add(turn, call, ahead);
            if retracted {
                self.cancel_call(key);
            }
            listed.insert(id, key);
            order.push(key);
        }
        let kept: HashSet<u64> = order.iter().copied().collect();
        before
            .into_iter()
            .filter(|key| !kept.contains(key))
            .for_each(|key| self.drop_call(key));
        self.committed(turn, Some(order));
    }
}

/// Returns the streams of a map in the order of their turns, since the order of a hash map differs
/// between runs.
fn in_order(turns: &HashMap<StreamName, u64>) -> Vec<StreamName> {
    let mut streams: Vec<_> = turns.iter().collect();
    streams.sort_by_key(|(_, turn)| **turn);
    streams
        .into_iter()
        .map(|(stream, _)| stream.clone())
        .collect()
}

// The settings and steps of a plan.

/// The order in which results are written. Tool messages are always written in call order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// In the order of the calls in the message.
    #[default]
    Call,
    /// In the order in which the calls end.
    Completion,
}

/// The settings of a plan.
#[derive(Clone, Copy, Debug)]
pub struct PlanSettings {
    /// Maximum number of calls that run at once, at least 1.
    pub jobs: usize,
    /// The order in which results are written.
    pub order: Order,
    /// The choice whose calls are run.
    pub choice: u32,
    /// Maximum number of calls per turn that are run. Further calls are denied.
    pub max_calls: usize,
    /// Whether a person can be asked. If not, a call that needs approval stays pending.
    pub can_ask: bool,
    /// Maximum number of calls per turn that may wait for a person's answer. Further calls are
    /// denied.
    pub max_questions: usize,
    /// Number of turns in a row with the same result after which a call is not run again. 0
    /// disables this limit.
    pub max_repeats: u32,
}

impl Default for PlanSettings {
    fn default() -> Self {
        PlanSettings {
            jobs: 8,
            order: Order::Call,
            choice: 0,
            max_calls: 1024,
            can_ask: false,
            max_questions: 20,
            max_repeats: 3,
        }
    }
}

/// A step that the caller must perform.
#[derive(Debug)]
pub enum PlanStep {
    /// Start this call, and pass its answer to [`super::Plan::done`].
    Start {
        /// The call's key for [`super::Plan::done`] and [`PlanStep::Stop`].
        key: u64,
        /// The call.
        call: Rc<RequestedCall>,
        /// The work to run.
        ready: Rc<ReadyCall>,
    },
    /// Ask a person whether this call may run, and pass the answer to [`super::Plan::answered`].
    /// Only one prompt is open at a time.
    Ask(Question),
    /// Close the approval prompt. An answer is no longer expected.
    Withdraw {
        /// The key of the call.
        key: u64,
    },
    /// Write the `approval` event: a person or a rule decided about a call.
    Approval {
        /// The call.
        call: Rc<RequestedCall>,
        /// The work that the call would run.
        ready: Rc<ReadyCall>,
        /// The decision.
        verdict: Verdict,
        /// The source of the decision.
        source: AnswerSource,
        /// The person's reason, or `None` if the person gave none.
        reason: Option<String>,
    },
    /// Stop a running call. Its answer must still be passed to [`super::Plan::done`].
    Stop {
        /// The key under which the call was started.
        key: u64,
    },
    /// Write the `tool_result` event.
    Result {
        /// The key of the call. For a started call it equals the key of its start.
        key: u64,
        /// The call.
        call: Rc<RequestedCall>,
        /// The answer to the call.
        answer: Rc<ToolAnswer>,
    },
    /// Write the tool message.
    Message {
        /// The call.
        call: Rc<RequestedCall>,
        /// The answer to the call.
        answer: Rc<ToolAnswer>,
    },
}

/// An approval prompt for a person.
#[derive(Debug)]
pub struct Question {
    /// The key of the call.
    pub key: u64,
    /// The call.
    pub call: Rc<RequestedCall>,
    /// The work that the call would run.
    pub ready: Rc<ReadyCall>,
    /// Why the call needs approval.
    pub reason: Reason,
}

/// The counts of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanTally {
    /// The number of tool messages written.
    pub messages: u64,
    /// Whether a result is the turn's final answer.
    pub is_final: bool,
    /// The number of calls that are pending, waiting for approval.
    pub pending: u64,
    /// The number of calls that no message committed although their stream did not fail.
    pub unconfirmed: u64,
    /// The number of calls started.
    pub started: u64,
    /// The number of streams that failed or ended without a `stream_end`.
    pub failed: u64,
    /// The number of streams whose deltas no earlier stage merged: they ended without a `tool_call`
    /// and without the assistant's message.
    pub unmerged: u64,
    /// Whether a line within a turn was not an event. It may have been a call or the message.
    pub lost: bool,
}

impl PlanTally {
    /// Counts a turn that ended without its message.
    pub(crate) fn unconfirmed(&mut self, turn: &MessageCalls) {
        let calls = turn.calls().count() as u64;
        self.unconfirmed += calls;
        self.unmerged += u64::from(turn.deltas && calls == 0);
    }

    /// Whether the turn failed, even without an `error` event.
    pub fn is_failure(&self) -> bool {
        let answered = self.messages == 0 || self.is_final;
        self.failed + self.unconfirmed + self.unmerged > 0
            || (self.lost && answered && self.pending == 0)
    }
}

/// Whether a line that is not an event may be a truncated or overlong event: it starts or ends like
/// a JSON object. `raw` is the line or its start.
pub(crate) fn may_hold_event(raw: &str) -> bool {
    let text = raw.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    text.is_empty() || text.starts_with('{') || text.ends_with('}')
}
