//! The calls of a log by what they ask, for a run that takes their results from it and runs
//! nothing.
//!
//! A call is found by its tool, its arguments (the order of keys does not count) and its
//! occurrence: the second call with the same arguments gets the second result. Ids do not count,
//! since a model gives other ids each time.

use crate::approval::Class;
use crate::call::{CallKey, RequestedCall};
use crate::canonical::Hash;
use crate::reference::CallHash;
use crate::result::{Status, ToolAnswer};
use event::payload::{Approval, Message, StreamStart, ToolResult, ToolUse, Verdict};
use event::{Event, Kind, Scanner, Text};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Duration;

/// The calls of a log, or of a run so far.
#[derive(Debug, Default)]
pub struct RecordedCalls {
    calls: Vec<RecordedCall>,
    /// The places of equal calls in `calls`, in their order.
    equal: HashMap<Hash, Vec<usize>>,
    /// The places of the calls of the response that each stream has open, or had last.
    latest: HashMap<CallKey, usize>,
    /// The tools that were offered last.
    tools: Vec<Value>,
    has_stream: bool,
    /// How many events have come since the last response began.
    events: usize,
    line: usize,
    scanner: Scanner,
}

/// A call of a log.
#[derive(Clone, Debug)]
pub struct RecordedCall {
    name: Box<str>,
    arguments: Value,
    fingerprint: Hash,
    line: usize,
    /// Whether an assistant's message lists it, and whether it was started before that.
    listed: bool,
    started_early: bool,
    /// What it was answered, in order: it may have waited for a person more than once.
    answers: Vec<ToolAnswer>,
    approvals: Vec<RecordedApproval>,
    /// How many events since the beginning of its response come before its result.
    pub events_before: usize,
}

/// What a person or a rule answered about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedApproval {
    /// How often the call had waited before.
    waited: usize,
    /// The hash of the call.
    pub hash: String,
    /// What was answered.
    pub decision: String,
    /// Who answered.
    pub by: String,
    /// How.
    pub source: String,
    /// Why.
    pub reason: Option<String>,
}

impl RecordedCall {
    fn waited(&self) -> usize {
        let pending = |answer: &&ToolAnswer| answer.status == Status::Pending;
        self.answers.iter().filter(pending).count()
    }

    /// Its result.
    pub fn result(&self) -> Option<&ToolAnswer> {
        let is_result = |answer: &&ToolAnswer| answer.status != Status::Pending;
        self.answers.iter().find(is_result)
    }
}

impl RecordedCalls {
    /// Takes the next line of a log. One that is not an event is skipped.
    pub fn line(&mut self, line: &str) {
        self.line += 1;
        let mut scanner = std::mem::take(&mut self.scanner);
        if let Ok(event) = scanner.read(line) {
            self.event(&event);
        }
        self.scanner = scanner;
    }

    /// How many events have come since the last response began, without those that report progress.
    pub fn events(&self) -> usize {
        self.events
    }

    /// Notes that the run has written an event.
    pub fn wrote(&mut self) {
        self.events += 1;
    }

    /// Whether a stream has begun.
    pub fn has_stream(&self) -> bool {
        self.has_stream
    }

    /// Takes the next event.
    pub fn event(&mut self, event: &Event<'_>) {
        let stream = || event.stream().map(|s| s.text().into());
        let of = |id: Text<'_>| -> CallKey { (stream(), id.str().into()) };
        match event.kind() {
            Kind::StreamStart => {
                self.has_stream = true;
                self.events = 0;
                let stream = stream();
                self.latest.retain(|(of, _), _| *of != stream);
                if let Some(tools) = StreamStart::read(event).tools {
                    self.tools = serde_json::from_str(&tools.text()).unwrap_or_default();
                }
            }
            Kind::ToolCall => {
                self.add(&RequestedCall::of_event(event));
            }
            Kind::Message => {
                Message::read(event).message.with(|message| {
                    if message.get_str("role").as_deref() == Some("assistant") {
                        for call in RequestedCall::of_message(Some(event), message) {
                            if let Some(at) = self.add(&call) {
                                self.calls[at].listed = true;
                            }
                        }
                    }
                });
            }
            Kind::ToolUse => {
                if let Some(call) = self.latest_mut(&of(ToolUse::read(event).tool_id)) {
                    call.started_early = !call.listed;
                }
            }
            Kind::ToolResult => {
                let result = ToolResult::read(event);
                let events = self.events;
                if let Some(call) = self.latest_mut(&of(result.tool_id)) {
                    call.answers.extend(answer(event, &result));
                    call.events_before = events;
                }
            }
            Kind::Approval => {
                let approval = Approval::read(event);
                if let Some(call) = self.latest_mut(&of(approval.tool_id)) {
                    let waited = call.waited();
                    let text = |text: Text<'_>| text.str().into_owned();
                    call.approvals.push(RecordedApproval {
                        waited,
                        hash: text(approval.hash),
                        decision: text(approval.decision),
                        by: text(approval.by),
                        source: text(approval.source),
                        reason: approval.reason.map(text),
                    });
                }
            }
            _ => {}
        }
        self.events += usize::from(event.kind() != Kind::ToolProgress);
    }

    /// Takes a call in, unless its response has it already; returns its place. `None` for a call
    /// whose arguments are refused, which never runs.
    fn add(&mut self, call: &RequestedCall) -> Option<usize> {
        let fingerprint = call.fingerprint()?;
        if let Some(at) = self.latest.get(&call.key())
            && self.calls[*at].fingerprint == fingerprint
        {
            return Some(*at);
        }
        let at = self.calls.len();
        let arguments = call.arguments.as_ref().ok()?.text();
        self.calls.push(RecordedCall {
            name: call.name.clone(),
            arguments: serde_json::from_str(arguments).unwrap_or_default(),
            fingerprint,
            line: self.line,
            listed: false,
            started_early: false,
            answers: Vec::new(),
            approvals: Vec::new(),
            events_before: 0,
        });
        self.equal.entry(fingerprint).or_default().push(at);
        self.latest.insert(call.key(), at);
        Some(at)
    }

    fn latest_mut(&mut self, key: &CallKey) -> Option<&mut RecordedCall> {
        self.latest.get(key).map(|at| &mut self.calls[*at])
    }

    /// How often this call of the run so far has waited for a person, and how many equal calls came
    /// before it.
    fn place(&self, call: &RequestedCall) -> (usize, usize) {
        let Some(at) = self.latest.get(&call.key()) else {
            return (0, 0);
        };
        let own = &self.calls[*at];
        let equal = self.equal.get(&own.fingerprint);
        let before = equal.map_or(0, |all| all.iter().take_while(|other| *other < at).count());
        (own.waited(), before)
    }
}

/// A recording of calls, and the run that takes their results from it.
#[derive(Debug, Default)]
pub struct CallReplay {
    /// The log.
    pub recorded: RecordedCalls,
    /// The run so far.
    pub run: RecordedCalls,
}

impl CallReplay {
    /// The call of the log that this one repeats.
    ///
    /// # Errors
    /// How the nearest call of the log differs, for people.
    pub fn find(&self, call: &RequestedCall) -> Result<&RecordedCall, String> {
        let log = &self.recorded;
        let (_, before) = self.run.place(call);
        let equal = call
            .fingerprint()
            .and_then(|fingerprint| log.equal.get(&fingerprint));
        if let Some(at) = equal.and_then(|all| all.get(before)) {
            return Ok(&log.calls[*at]);
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
        // The call of the same tool that shares most of its arguments, and of those the first.
        let likeness = |other: &Value| match (&arguments, other) {
            (Value::Object(a), Value::Object(b)) => a
                .iter()
                .filter(|(key, value)| b.get(*key) == Some(value))
                .count(),
            _ => 0,
        };
        let named = log.calls.iter().rev().filter(|other| other.name == *name);
        match named.max_by_key(|other| likeness(&other.arguments)) {
            Some(nearest) => {
                let (path, here, there) = json::difference(&arguments, &nearest.arguments);
                Err(format!(
                    "the nearest recorded call of {name} (line {}) differs first at its argument {path}: {here} here, {there} in the recording",
                    nearest.line
                ))
            }
            None => Err(format!("no call of {name} is recorded")),
        }
    }

    /// The recorded answer in the place of one that this run gives without running anything: it has
    /// the same status, but another log and another command in its words.
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

    /// What was answered when this call waited for a person; `None`: it was left waiting, or was
    /// run without a question.
    pub fn approval(&self, call: &RequestedCall) -> Option<&RecordedApproval> {
        let (waited, _) = self.run.place(call);
        let approvals = &self.find(call).ok()?.approvals;
        approvals.iter().find(|approval| approval.waited == waited)
    }

    /// Whether this call may run: as the recording has it.
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

    /// The tools that the log offered, as a tools file whose tools run nothing: for a replay without
    /// the tools file of the run. Their classes are those that the log shows.
    pub fn tools_file(&self) -> String {
        let log = &self.recorded;
        let class_of = |name: &str| {
            let calls = || log.calls.iter().filter(|call| &*call.name == name);
            let has_waited = |call: &RecordedCall| {
                call.waited() > 0 || call.approvals.iter().any(|a| a.source != "policy")
            };
            if calls().any(has_waited) {
                Class::Danger
            } else if calls().any(|call| call.started_early) {
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

/// The answer of a `tool_result`, as the run that wrote it gave it.
fn answer(event: &Event<'_>, result: &ToolResult<'_>) -> Option<ToolAnswer> {
    let hash = result.hash.and_then(|hash| CallHash::read(&hash.str()));
    let duration = result
        .duration_ms
        .map(|time| Duration::from_micros(time.micros));
    if Status::of(&result.status.str()) == Some(Status::Pending) {
        return Some(ToolAnswer {
            hash,
            ..ToolAnswer::new(Status::Pending, result.output.str())
        });
    }
    let answer = ToolAnswer::read(event)?;
    Some(ToolAnswer {
        resumed: result.resumed,
        duration,
        hash,
        ..answer
    })
}
