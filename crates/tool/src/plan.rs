//! What to run, when, and in which order to write results: a state machine without a clock, a process or a handle.
//!
//! - A `read` call starts at its `tool_call`; all others start at the assistant's `message`, the commit point. A call without a `tool_call`
//!   is taken from the message.
//! - At most [`Settings::jobs`] calls run at once; the others wait in the order in which they may start.
//! - A call that was retracted, or whose turn failed or was cut, is not started; if it runs, it is stopped.
//! - No call runs twice: neither one that a log answers nor one that the input repeats.

use crate::call::RequestedCall;
use crate::class::Class;
use crate::judge::Judge;
use crate::log::Log;
use crate::result::Answer;
use crate::retract::{cancelled, taken_back};
use crate::schedule::{Schedule, StreamName};
use crate::step::{PlanStep, Settings};
use crate::tally::{Tally, may_hold_event};
use crate::turn::CallState;
use event::payload::{Message, Retract, StreamEnd, Warning};
use event::{Event, Kind, Text};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// The plan. It takes events and the answers of calls that ran; take [`Plan::steps`] after each.
#[derive(Debug, Default)]
pub struct Plan {
    schedule: Schedule,
    /// The calls of the input itself, as far as it was read ahead.
    ahead: Log,
    /// Whether a line that is not an event has come since the last stream began: it may have been an event of that stream.
    lost: bool,
}

impl Plan {
    /// A plan for the tools of `judge`. `log` holds the calls of earlier runs.
    pub fn new(judge: Judge, settings: Settings, log: Log) -> Self {
        let schedule = Schedule { judge, settings, log, ..Schedule::default() };
        Plan { schedule, ahead: Log::of_choice(settings.choice), lost: false }
    }

    /// The next steps, in order. Each step is returned once.
    pub fn steps(&mut self) -> Vec<PlanStep> {
        std::mem::take(&mut self.schedule.steps)
    }

    /// Whether no call runs or waits for a free place.
    pub fn is_idle(&self) -> bool {
        self.schedule.running == 0 && self.schedule.queue.is_empty()
    }

    /// The counts so far.
    pub fn tally(&self) -> Tally {
        self.schedule.tally
    }

    /// Reads ahead: takes a line that [`Plan::event`] will get later. A call that the input itself answers is not run.
    pub fn foresee(&mut self, event: &Event<'_>) {
        self.ahead.event(event);
    }

    /// As [`Plan::foresee`], for a line that may be an event.
    pub fn foresee_line(&mut self, line: &str) {
        self.ahead.line(line);
    }

    /// Takes the next event.
    pub fn event(&mut self, event: &Event<'_>) {
        let stream = || event.stream().map(|s| Box::from(s.text()));
        let schedule = &mut self.schedule;
        let mine = event.choice() == schedule.settings.choice;
        match event.kind() {
            Kind::StreamStart => {
                let stream = stream();
                schedule.cut(&stream);
                schedule.ended(&stream);
                // A line that is not an event does not name its stream: while others are open it may be one of theirs.
                self.lost &= !(schedule.open.is_empty() && schedule.ending.is_empty());
                let key = schedule.new_turn(stream.clone());
                schedule.turn(key).begun = true;
                schedule.open.insert(stream, key);
            }
            Kind::ContentDelta if mine => {
                let turn = schedule.open.get(&stream()).and_then(|key| schedule.turns.get_mut(key));
                turn.into_iter().for_each(|turn| turn.deltas = true);
            }
            Kind::ToolCallDelta if mine => {
                let turn = schedule.open_turn(stream());
                schedule.turn(turn).deltas = true;
            }
            Kind::Warning => {
                let warning = Warning::read(event);
                let lost = warning.code == "not_an_event";
                self.lost |= lost && may_hold_event(&warning.raw.unwrap_or_default().str());
            }
            Kind::ToolCall if mine => self.tool_call(RequestedCall::of_event(event)),
            Kind::Retract if mine => {
                let Retract { index, tool_id, .. } = Retract::read(event);
                schedule.retract(&stream(), tool_id.map(Text::str).as_deref(), index);
            }
            Kind::Message if mine => {
                let message = Message::read(event);
                if message.is_of("assistant") {
                    self.commit(
                        &stream(),
                        message.message.with(|message| RequestedCall::of_message(Some(event), message)),
                    );
                }
            }
            Kind::Error => {
                let stream = stream();
                schedule.tally.failed += u64::from(schedule.open.contains_key(&stream));
                schedule.cut(&stream);
            }
            Kind::StreamEnd => {
                let stream = stream();
                if StreamEnd::read(event).finish_reason.is_failure() {
                    schedule.tally.failed += 1;
                } else if let Some(key) = schedule.open.get(&stream) {
                    schedule.tally.unconfirmed(&schedule.turns[key]);
                }
                schedule.tally.lost |= self.lost;
                schedule.cut(&stream);
                schedule.ended(&stream);
            }
            _ => {}
        }
        self.schedule.settle();
    }

    /// Takes the answer of the call that was started under `key`.
    pub fn done(&mut self, key: u64, answer: Answer) {
        let schedule = &mut self.schedule;
        schedule.running -= 1;
        let Some(planned) = schedule.calls.get(&key) else { return };
        if planned.dropped {
            let answer = taken_back(answer);
            schedule.seen.insert(planned.call.key(), (Rc::clone(&planned.call), None));
            schedule.steps.push(PlanStep::Result { call: Rc::clone(&planned.call), answer: Rc::new(answer) });
            schedule.calls.remove(&key);
        } else {
            let turn = planned.turn;
            let answer = if planned.cancelled { cancelled(true, answer.duration) } else { answer };
            schedule.answer(key, Rc::new(answer));
            schedule.release(turn);
        }
        schedule.settle();
    }

    /// Ends the input. A turn that is not complete was cut; the turn that the log ends in is continued.
    pub fn finish(&mut self) {
        let schedule = &mut self.schedule;
        schedule.tally.lost |= self.lost;
        for stream in in_order(&schedule.open) {
            let turn = &schedule.turns[&schedule.open[&stream]];
            if turn.begun {
                schedule.tally.failed += 1;
            } else {
                schedule.tally.unconfirmed(turn);
            }
            schedule.cut(&stream);
        }
        in_order(&schedule.ending).iter().for_each(|stream| schedule.ended(stream));
        let logged = schedule.log.open_turn().iter();
        let calls: Vec<_> = logged.filter(|call| !schedule.seen.contains_key(&call.key())).cloned().collect();
        if !calls.is_empty() {
            let turn = schedule.new_turn(calls[0].stream.clone());
            for call in calls {
                let logged = schedule.log.last(&call).cloned();
                let key = schedule.add(turn, call, None);
                // Only the lines that the log lacks are written.
                if let (Some(logged), Some(planned)) = (logged, schedule.calls.get_mut(&key)) {
                    (planned.told, planned.sent) = (logged.answer.is_some(), logged.sent);
                }
            }
            schedule.committed(turn, None);
        }
        schedule.settle();
    }

    /// Starts no further call. Calls that run may finish; every other call of a complete turn gets the answer `cancelled`, so that the log has
    /// a result for each call.
    pub fn stop(&mut self) {
        let schedule = &mut self.schedule;
        schedule.stopped = true;
        for key in std::mem::take(&mut schedule.queue) {
            schedule.calls.entry(key).and_modify(|planned| planned.state = CallState::Waits);
        }
        let turns: Vec<_> = schedule.turns.iter().filter(|(_, turn)| turn.committed).map(|(key, _)| *key).collect();
        turns.into_iter().for_each(|turn| schedule.start(turn));
    }

    /// As [`Plan::stop`], and stops the calls that run.
    pub fn abort(&mut self) {
        self.stop();
        let runs = self.schedule.calls.iter().filter(|(_, planned)| matches!(planned.state, CallState::Runs));
        self.schedule.steps.extend(runs.map(|(key, _)| PlanStep::Stop { key: *key }));
    }

    fn tool_call(&mut self, call: RequestedCall) {
        let schedule = &mut self.schedule;
        let turn = schedule.open_turn(call.stream.clone());
        if schedule.turns[&turn].order.iter().any(|key| schedule.calls[key].call.id == call.id) {
            return;
        }
        schedule.turn(turn).retracted.remove(&call.id);
        let ahead = self.ahead.take_first(&call);
        let key = schedule.add(turn, call, ahead);
        if schedule.calls[&key].ready.as_ref().is_some_and(|ready| ready.class == Class::Read) && !schedule.stopped {
            schedule.enqueue(key);
        }
    }

    /// Takes the assistant's message, which confirms the calls that it lists and drops the others.
    fn commit(&mut self, stream: &StreamName, calls: Vec<RequestedCall>) {
        let schedule = &mut self.schedule;
        // A message after the commit point of its stream is another turn.
        let turn = schedule.open.remove(stream).unwrap_or_else(|| schedule.new_turn(stream.clone()));
        let before = schedule.turns[&turn].order.clone();
        let known: HashMap<_, _> = before.iter().map(|key| (schedule.calls[key].call.id.clone(), *key)).collect();
        let mut order = Vec::with_capacity(calls.len());
        let mut listed = HashSet::new();
        for call in calls {
            if !listed.insert(call.id.clone()) {
                continue; // one id, one call
            }
            let key = known.get(&call.id).copied();
            if let Some(planned) = key.and_then(|key| schedule.calls.get_mut(&key)) {
                if !std::mem::replace(&mut planned.foreseen, true) {
                    planned.sent |= self.ahead.take_first(&call).is_some_and(|ahead| ahead.sent);
                }
                order.extend(key);
                continue;
            }
            let retracted = schedule.turn(turn).retracted.contains(&call.id);
            let ahead = self.ahead.take_first(&call);
            let key = schedule.add(turn, call, ahead);
            if retracted {
                schedule.cancel(key);
            }
            order.push(key);
        }
        before.into_iter().filter(|key| !order.contains(key)).for_each(|key| schedule.drop_call(key));
        schedule.committed(turn, Some(order));
    }
}

/// The streams of a map in the order of their turns, since the order of a hash map differs from run to run.
fn in_order(turns: &HashMap<StreamName, u64>) -> Vec<StreamName> {
    let mut streams: Vec<_> = turns.iter().collect();
    streams.sort_by_key(|(_, turn)| **turn);
    streams.into_iter().map(|(stream, _)| stream.clone()).collect()
}
