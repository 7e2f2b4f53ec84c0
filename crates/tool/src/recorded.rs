//! The calls of a log, indexed by their request, for a replay that takes results from the log and
//! runs nothing.
//!
//! A call is found by its tool, its arguments (in any key order) and its occurrence: the second
//! call with the same arguments gets the second result. Ids are ignored, since a model assigns
//! other ids each time.

use crate::approval::Class;
use crate::argument::Arguments;
use crate::call::RequestedCall;
use crate::canonical::Hash;
use crate::log::LogReader;
use crate::result::{Status, ToolAnswer};
use conversation::{CallChange, Change, Keep, Talk};
use event::payload::{Approval, StreamStart, Verdict};
use event::{Event, Kind, Scanner, Text};
use serde_json::{Value, json};
use std::collections::HashMap;

/// The calls of a log or of the current run.
#[derive(Debug)]
pub struct RecordedCalls {
    talk: Talk,
    /// The outcome of each call of `talk`, by position.
    runs: Vec<RecordedRun>,
    /// The positions of equal calls, in the order in which they became complete.
    equal: HashMap<Hash, Vec<usize>>,
    /// The tools that were offered last.
    tools: Vec<Value>,
    has_stream: bool,
    /// The number of events since the last response began.
    events: usize,
    line: usize,
    scanner: Scanner,
}

/// The outcome of one call.
#[derive(Clone, Debug, Default)]
struct RecordedRun {
    /// A digest of the call's name and arguments, once the call is complete. The fields below hold
    /// the line on which it became complete and the number of equal calls before it.
    fingerprint: Option<Hash>,
    line: usize,
    occurrence: usize,
    /// Whether the call was started before the message that lists it.
    started_early: bool,
    /// The answers to the call, in order. There may be several, since the call may have waited for
    /// a person more than once.
    answers: Vec<ToolAnswer>,
    approvals: Vec<RecordedApproval>,
    /// The number of events between the start of the response and the result of the call.
    events_before: usize,
}

/// A person's or a rule's decision about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedApproval {
    /// The number of times the call had waited before.
    waited: usize,
    /// The hash of the call.
    pub hash: String,
    /// The decision.
    pub decision: String,
    /// The name of the person or rule that decided.
    pub by: String,
    /// The source of the decision.
    pub source: String,
    /// The reason for the decision, or `None` if none was given.
    pub reason: Option<String>,
}

impl RecordedRun {
    fn waited(&self) -> usize {
        let pending = |answer: &&ToolAnswer| answer.status == Status::Pending;
        self.answers.iter().filter(pending).count()
    }
}

impl Default for RecordedCalls {
    fn default() -> Self {
        let keep = Keep {
            text: false,
            arguments: true,
            results: false,
        };
        RecordedCalls {
            talk: Talk::new(keep),
            runs: Vec::new(),
            equal: HashMap::new(),
            tools: Vec::new(),
            has_stream: false,
            events: 0,
            line: 0,
            scanner: Scanner::default(),
        }
    }
}

impl LogReader for RecordedCalls {
    fn line(&mut self, line: &str) {
        self.line += 1;
        let mut scanner = std::mem::take(&mut self.scanner);
        if let Ok(event) = scanner.read(line) {
            self.event(&event);
        }
        self.scanner = scanner;
    }
}

impl RecordedCalls {
    /// Returns the number of events since the last response began, not counting progress events.
    pub fn events(&self) -> usize {
        self.events
    }

    /// Counts an event that the run has written.
    pub fn wrote(&mut self) {
        self.events += 1;
    }

    /// Whether a stream has begun.
    pub fn has_stream(&self) -> bool {
        self.has_stream
    }

    /// Records the next event.
    pub fn event(&mut self, event: &Event<'_>) {
        if event.kind() == Kind::StreamStart {
            self.has_stream = true;
            self.events = 0;
            if let Some(tools) = StreamStart::read(event).tools {
                self.tools = serde_json::from_str(&tools.text()).unwrap_or_default();
            }
        }
        let change = self.talk.push(event);
        let calls = self.talk.calls().end();
        self.runs.resize_with(calls, RecordedRun::default);
        match (event.kind(), change) {
            (Kind::Message, Change::Turn(turn)) => {
                for at in self.talk.turns()[turn].calls.clone() {
                    self.complete(at);
                }
            }
            (_, Change::Call(at, CallChange::Merged)) => self.complete(at),
            (Kind::ToolUse, Change::Call(at, _)) => {
                let turn = self.talk.calls()[at].turn;
                self.runs[at].started_early = self.talk.turns()[turn].is_streaming;
            }
            (Kind::ToolResult, Change::Call(at, _)) => {
                let run = &mut self.runs[at];
                run.answers.extend(ToolAnswer::recorded(event));
                run.events_before = self.events;
            }
            (Kind::Approval, Change::Call(at, _)) => {
                let approval = Approval::read(event);
                let run = &mut self.runs[at];
                let text = |text: Text<'_>| text.str().into_owned();
                run.approvals.push(RecordedApproval {
                    waited: run.waited(),
                    hash: text(approval.hash),
                    decision: text(approval.decision),
                    by: text(approval.by),
                    source: text(approval.source),
                    reason: approval.reason.map(text),
                });
            }
            _ => {}
        }
        self.events += usize::from(event.kind() != Kind::ToolProgress);
    }

    /// Indexes a call whose arguments are complete. A call with rejected arguments is skipped,
    /// since it never runs.
    fn complete(&mut self, at: usize) {
        let (call, run) = (&self.talk.calls()[at], &mut self.runs[at]);
        if run.fingerprint.is_some() || call.refusal.is_some() {
            return;
        }
        if let Ok(arguments) = Arguments::read(&call.arguments) {
            let fingerprint = arguments.fingerprint(&call.name);
            let equal = self.equal.entry(fingerprint).or_default();
            (run.fingerprint, run.occurrence) = (Some(fingerprint), equal.len());
            run.line = self.line;
            equal.push(at);
        }
    }

    /// Returns how many times this call has waited for a person in the run so far, and how many
    /// equal calls came before it.
    fn place(&self, call: &RequestedCall) -> (usize, usize) {
        let stream = call.stream.as_deref().unwrap_or_default();
        let at = self.talk.latest(stream, call.choice, &call.id);
        at.map_or((0, 0), |at| {
            (self.runs[at].waited(), self.runs[at].occurrence)
        })
    }
}

/// A recording of calls, and the run that replays it.
#[derive(Debug, Default)]
pub struct CallReplay {
    /// The recorded log.
    pub recorded: RecordedCalls,
    /// The run so far.
    pub run: RecordedCalls,
}

impl CallReplay {
    /// Returns the recorded result of this call, and the number of events between the start of its
    /// response and the result.
    ///
    /// # Errors
    /// Returns a message for people: the recorded call has no result, or how the nearest recorded
    /// call differs.
    pub fn result(&self, call: &RequestedCall) -> Result<(ToolAnswer, usize), String> {
        let run = self.find(call)?;
        let is_result = |answer: &&ToolAnswer| answer.status != Status::Pending;
        let result = run.answers.iter().find(is_result);
        let missing = || format!("the call of {} has no result in the recording", call.name);
        let result = result.cloned().ok_or_else(missing)?;
        Ok((result, run.events_before))
    }

    /// Returns the recorded call that equals this one.
    fn find(&self, call: &RequestedCall) -> Result<&RecordedRun, String> {
        let log = &self.recorded;
        let (_, before) = self.run.place(call);
        let equal = call
            .fingerprint()
            .and_then(|fingerprint| log.equal.get(&fingerprint));
        if let Some(at) = equal.and_then(|all| all.get(before)) {
            return Ok(&log.runs[*at]);
        }
        let name = &call.name;
        if let Some(all) = equal {
            let times = all.len();
            return Err(format!(
                "the same call of {name} is recorded {times} times, and all of them were played"
            ));
        }
        let arguments = call
            .arguments
            .as_ref()
            .map(|arguments| serde_json::from_str(arguments.text()).unwrap_or_default())
            .unwrap_or_default();
        // Choose the call of the same tool that shares the most arguments, and the first among
        // equals.
        let likeness = |other: &Value| match (&arguments, other) {
            (Value::Object(a), Value::Object(b)) => a
                .iter()
                .filter(|(key, value)| b.get(*key) == Some(value))
                .count(),
            _ => 0,
        };
        let named = log.talk.calls().iter().filter_map(|(at, other)| {
            let is_complete = log.runs[at].fingerprint.is_some() && other.name == **name;
            let arguments = || serde_json::from_str(&other.arguments).unwrap_or_default();
            is_complete.then(|| (log.runs[at].line, arguments()))
        });
        let named: Vec<(usize, Value)> = named.collect();
        match named.iter().rev().max_by_key(|(_, other)| likeness(other)) {
            Some((line, nearest)) => {
                let (path, here, there) = json::difference(&arguments, nearest);
                Err(format!(
                    "the nearest recorded call of {name} (line {line}) differs first at its \
                     argument {path}: {here} here, {there} in the recording"
                ))
            }
            None => Err(format!("no call of {name} is recorded")),
        }
    }

    /// Returns the recorded answer to use in place of one that this run gives without running
    /// anything. It has the same status, but its text refers to the recorded log and command.
    /// Returns `None` if the recording has no answer with that status.
    pub fn answer(&self, call: &RequestedCall, status: Status) -> Option<&ToolAnswer> {
        let (waited, _) = self.run.place(call);
        let answers = &self.find(call).ok()?.answers;
        let answer = if status == Status::Pending {
            answers.get(waited)
        } else {
            answers.last()
        };
        answer.filter(|answer| answer.status == status)
    }

    /// Returns the recorded decision for the call's current wait, or `None` if the call stayed
    /// pending or ran without a prompt.
    pub fn approval(&self, call: &RequestedCall) -> Option<&RecordedApproval> {
        let (waited, _) = self.run.place(call);
        let approvals = &self.find(call).ok()?.approvals;
        approvals.iter().find(|approval| approval.waited == waited)
    }

    /// Returns whether the call may run according to the recording, or `None` if the recording does
    /// not tell.
    pub fn verdict(&self, call: &RequestedCall) -> Option<Verdict> {
        let (waited, _) = self.run.place(call);
        match self.approval(call) {
            Some(approval) if approval.decision == Verdict::Denied.name() => Some(Verdict::Denied),
            Some(_) => Some(Verdict::Approved),
            None => {
                let next = self.find(call).ok()?.answers.get(waited)?;
                (next.status != Status::Pending).then_some(Verdict::Approved)
            }
        }
    }

    /// Returns the tools that the log offered as a tools file in which no tool can run, for a
    /// replay without the original tools file. The classes are those that the log shows.
    pub fn tools_file(&self) -> String {
        let log = &self.recorded;
        let class_of = |name: &str| {
            let calls = || {
                log.talk
                    .calls()
                    .iter()
                    .filter(|(_, call)| call.name == name)
            };
            let runs = || calls().map(|(at, _)| &log.runs[at]);
            let has_waited = |run: &RecordedRun| {
                run.waited() > 0 || run.approvals.iter().any(|a| a.source != "policy")
            };
            if runs().any(has_waited) {
                Class::Danger
            } else if runs().any(|run| run.started_early) {
                Class::Read
            } else {
                Class::Write
            }
        };
        let tools = log.tools.iter().cloned().map(|mut tool| {
            let name = tool["function"]["name"].as_str().unwrap_or_default();
            tool["exec"] = json!({"command": ["true"], "class": class_of(name).name()});
            tool
        });
        Value::Array(tools.collect()).to_string()
    }
}
