//! The conversation history that limits need: the calls started, the tokens used, and the results
//! received.

use super::argument::Arguments;
use super::call::{CallKey, RequestedCall, stream_of};
use super::canonical::{Hash, digest};
use super::policy::Policy;
use super::policy::counts::UseCounts;
use super::reference::{CallHash, CallReference, PastAnswer};
use super::result::Status;
use event::payload::{Approval, SessionStats, ToolResult, ToolUse};
use event::{Event, Kind};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// The conversation history that limits need. It is built from a log, from the input, and from this
/// run.
#[derive(Debug, Default)]
pub(crate) struct History {
    policy: Rc<Policy>,
    starts: Starts,
    /// The arguments of the calls that have no tool message yet, or `None` if they were rejected.
    calls: HashMap<CallKey, Option<Arguments>>,
    counts: UseCounts,
    repeats: Repeats,
    /// The first answer recorded for each call. A recorded answer does not approve a call.
    answers: HashMap<CallReference, PastAnswer>,
}

impl History {
    /// Creates an empty history that counts for the rules of `policy`.
    pub(crate) fn new(policy: Rc<Policy>) -> Self {
        History {
            policy,
            ..History::default()
        }
    }

    /// Records an event from the log or the input. Messages are passed to [`History::assistant`],
    /// [`History::tool`] and [`History::user`] instead.
    pub(crate) fn event(&mut self, event: &Event<'_>) {
        let key = |id: event::Text<'_>| (stream_of(event), id.str().into());
        match event.kind() {
            Kind::ToolCall => self.call(&RequestedCall::of_event(event)),
            Kind::ToolUse => {
                let used = ToolUse::read(event);
                if self.starts.event(event) {
                    let arguments = self.calls.get(&key(used.tool_id)).and_then(Option::as_ref);
                    self.counts.start(
                        &self.policy,
                        &used.tool_name.str(),
                        arguments,
                        used.timestamp,
                    );
                }
            }
            Kind::ToolResult => {
                let result = ToolResult::read(event);
                result
                    .timestamp
                    .into_iter()
                    .for_each(|time| self.counts.at(time));
                if let Some(status) = Status::of(&result.status.str()) {
                    self.repeats.status(key(result.tool_id), status);
                }
            }
            Kind::Approval => {
                let approval = Approval::read(event);
                if let Some(hash) = CallHash::read(&approval.hash.str())
                    && let Some(answer) = PastAnswer::read(&approval)
                {
                    let id = approval.tool_id.str().into();
                    let call = CallReference { id, hash };
                    self.answers.entry(call).or_insert(answer);
                }
            }
            Kind::SessionStats => {
                // Some servers report a total of 0 or leave a part out of the total, so take the
                // largest of the counts.
                let stats = SessionStats::read(event);
                let known = [stats.total(), stats.prompt_tokens, stats.completion_tokens];
                self.counts
                    .tokens(known.into_iter().flatten().max().unwrap_or_default());
            }
            _ => {}
        }
    }

    fn call(&mut self, call: &RequestedCall) {
        if self.policy.rules.is_empty() {
            return; // nothing counts by arguments
        }
        self.calls
            .insert(call.key(), call.arguments.as_ref().ok().cloned());
    }

    /// Records the calls listed in an assistant's message.
    pub(crate) fn assistant(&mut self, calls: &[RequestedCall]) {
        self.repeats.turn(calls);
        calls.iter().for_each(|call| self.call(call));
    }

    /// Records the text of a tool message.
    pub(crate) fn tool(&mut self, call: &CallKey, text: &str) {
        self.calls.remove(call);
        self.repeats.result(call, text);
    }

    /// Records a user message.
    pub(crate) fn user(&mut self) {
        self.repeats.user();
    }

    /// Records the result of a call of this run; its tool message has been written.
    pub(crate) fn result(&mut self, call: &RequestedCall, status: Status, text: &str) {
        self.repeats.status(call.key(), status);
        self.tool(&call.key(), text);
    }

    /// Records that a call of this run started at `now`, in milliseconds since 1970.
    pub(crate) fn started(&mut self, call: &RequestedCall, now: u64) {
        self.starts.count(call.key(), None);
        self.counts.start(
            &self.policy,
            &call.name,
            call.arguments.as_ref().ok(),
            Some(now),
        );
    }

    /// Returns the first answer recorded for this call in an earlier run, or `None` if there is
    /// none.
    pub(crate) fn first_answer(&self, call: &CallReference) -> Option<&PastAnswer> {
        self.answers.get(call)
    }

    /// Returns how many times a call with this stream and id was started.
    pub(crate) fn starts(&self, call: &RequestedCall) -> u32 {
        self.starts.of(&call.key())
    }

    /// Returns why a call may not start now, as a text for the model, or `None` if it may start. A
    /// call that had the same result in `repeats` turns in a row is not run again; 0 disables that
    /// check.
    pub(crate) fn over(&mut self, call: &RequestedCall, repeats: u32, now: u64) -> Option<String> {
        let seen = self.repeats.of(call);
        if repeats > 0 && seen >= repeats {
            return Some(format!(
                "The call was not run: in {seen} turns it was made with the same arguments and \
                 had the same result. Running it again does not \
                 help. Use the result that you have, change the arguments, try another way, or ask the user."
            ));
        }
        let arguments = call.arguments.as_ref().ok()?;
        let why = self.counts.over(&self.policy, &call.name, arguments, now)?;
        Some(format!("The call was not run: {why}. Go on without it."))
    }
}

/// The number of starts of each call, by stream and id.
#[derive(Debug, Default)]
pub(crate) struct Starts(HashMap<CallKey, HistoryCount>);

#[derive(Debug, Default)]
struct HistoryCount {
    /// The start times, in milliseconds since 1970. A log and a journal hold the same start with
    /// the same time, so it counts once.
    times: HashSet<u64>,
    /// The number of starts without a time.
    untimed: u32,
}

impl Starts {
    /// Records a `tool_use` event. Returns whether the event is a start that was not yet counted.
    pub(crate) fn event(&mut self, event: &Event<'_>) -> bool {
        let ToolUse {
            tool_id, timestamp, ..
        } = ToolUse::read(event);
        !tool_id.is_empty() && self.count((stream_of(event), tool_id.str().into()), timestamp)
    }

    /// Counts a start at `time`, in milliseconds since 1970, or `None` if the time is unknown.
    /// Returns whether the start was not yet counted.
    pub(crate) fn count(&mut self, call: CallKey, time: Option<u64>) -> bool {
        let count = self.0.entry(call).or_default();
        match time {
            Some(time) => count.times.insert(time),
            None => {
                count.untimed += 1;
                true
            }
        }
    }

    /// Returns how many times this call was started.
    pub(crate) fn of(&self, call: &CallKey) -> u32 {
        let count = |count: &HistoryCount| {
            u32::try_from(count.times.len())
                .unwrap_or(u32::MAX)
                .saturating_add(count.untimed)
        };
        self.0.get(call).map_or(0, count)
    }
}

// The loop guard, which detects the same call repeated with the same result.

/// The calls since the last user message, with their results. A call counts once per turn, however
/// many times it appears in the turn.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    /// The number of turns so far.
    turns: u64,
    /// The calls that still lack a result, each with the digest of its meaning and its turn.
    open: HashMap<CallKey, (Hash, u64)>,
    /// The calls that did not run, so their results do not count.
    unrun: HashSet<CallKey>,
    /// For each call: the digest of its last result, the number of turns in a row with that result,
    /// and the last of those turns.
    results: HashMap<Hash, (Hash, u32, u64)>,
}

impl Repeats {
    /// Records a user message. It starts a new task, so all counts are reset.
    pub(crate) fn user(&mut self) {
        *self = Repeats::default();
    }

    /// Records the calls listed in an assistant's message.
    pub(crate) fn turn(&mut self, calls: &[RequestedCall]) {
        self.turns += 1;
        for call in calls {
            self.unrun.remove(&call.key());
            if let Some(meaning) = call.meaning() {
                self.open.insert(call.key(), (meaning, self.turns));
            }
        }
    }

    /// Records the status of a call's result. The tool message with the text follows.
    pub(crate) fn status(&mut self, call: CallKey, status: Status) {
        if matches!(status, Status::Denied | Status::Cancelled | Status::Pending) {
            self.unrun.insert(call);
        }
    }

    /// Records the text of a tool message.
    pub(crate) fn result(&mut self, call: &CallKey, text: &str) {
        let Some((meaning, turn)) = self.open.remove(call) else {
            return;
        };
        if self.unrun.remove(call) {
            return;
        }
        let result = digest([text.as_bytes()]);
        let seen = self.results.entry(meaning).or_insert((result, 0, 0));
        if seen.0 != result {
            *seen = (result, 1, turn);
        } else if seen.2 != turn {
            (seen.1, seen.2) = (seen.1 + 1, turn);
        }
    }

    /// Returns in how many turns in a row the call had the same result.
    pub(crate) fn of(&self, call: &RequestedCall) -> u32 {
        let seen = call
            .meaning()
            .and_then(|meaning| self.results.get(&meaning));
        seen.map_or(0, |(_, count, _)| *count)
    }
}

#[cfg(test)]
mod starts_tests {
    use super::*;
    use event::Scanner;

    #[test]
    fn a_start_in_two_logs_is_one() {
        let mut starts = Starts::default();
        let mut take = |line: &str| starts.event(&Scanner::default().read(line).unwrap());
        let line = r#"{"type":"tool_use","tool_id":"a","tool_name":"w","timestamp":7}"#;
        assert!(take(line) && !take(line));
        take(&line.replace('7', "8"));
        take(&line.replace("\"a\"", "\"b\""));
        take(&line.replace("\"type\"", "\"stream\":\"s\",\"type\""));
        take(r#"{"type":"tool_use","tool_id":"b","tool_name":"w"}"#);
        take(r#"{"type":"tool_use","tool_name":"w"}"#);
        let key = |id: &str| (None, id.into());
        assert_eq!(
            (
                starts.of(&key("a")),
                starts.of(&key("b")),
                starts.of(&key("c"))
            ),
            (2, 2, 0)
        );
    }
}
