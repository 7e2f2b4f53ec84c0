//! What limits need to know of a conversation: what was started, what it used, and which results
//! came.

use crate::argument::Arguments;
use crate::call::{CallKey, RequestedCall};
use crate::policy::Policy;
use crate::policy::counts::Counts;
use crate::repeats::Repeats;
use crate::result::Status;
use crate::starts::Starts;
use event::payload::{SessionStats, ToolResult, ToolUse};
use event::{Event, Kind};
use std::collections::HashMap;
use std::rc::Rc;

/// What limits need to know of a conversation. It comes from a log, from the input, and from this
/// run.
#[derive(Debug, Default)]
pub(crate) struct History {
    policy: Rc<Policy>,
    starts: Starts,
    /// The arguments of the calls that have no tool message yet.
    calls: HashMap<CallKey, Option<Arguments>>,
    counts: Counts,
    repeats: Repeats,
}

impl History {
    /// An empty history, which counts for the rules of this policy.
    pub fn new(policy: Rc<Policy>) -> Self {
        History {
            policy,
            ..History::default()
        }
    }

    /// Takes an event of the log or of the input. Messages go to [`History::assistant`],
    /// [`History::tool`] and [`History::user`].
    pub fn event(&mut self, event: &Event<'_>) {
        let key = |id: event::Text<'_>| (event.stream().map(|s| s.text().into()), id.str().into());
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
            Kind::SessionStats => {
                // Some servers write a total of 0, or leave a part out of it: the largest of the
                // counts.
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

    /// Takes the calls of an assistant's message.
    pub fn assistant(&mut self, calls: &[RequestedCall]) {
        self.repeats.turn(calls);
        calls.iter().for_each(|call| self.call(call));
    }

    /// Takes the text of a tool message.
    pub fn tool(&mut self, call: &CallKey, text: &str) {
        self.calls.remove(call);
        self.repeats.result(call, text);
    }

    /// Takes a message of a user.
    pub fn user(&mut self) {
        self.repeats.user();
    }

    /// Takes the result of a call of this run, whose tool message is written.
    pub fn result(&mut self, call: &RequestedCall, status: Status, text: &str) {
        self.repeats.status(call.key(), status);
        self.tool(&call.key(), text);
    }

    /// Counts the start of a call of this run at `now`, in milliseconds since 1970.
    pub fn started(&mut self, call: &RequestedCall, now: u64) {
        self.starts.count(call.key(), None);
        self.counts.start(
            &self.policy,
            &call.name,
            call.arguments.as_ref().ok(),
            Some(now),
        );
    }

    /// How often a call of this id was started.
    pub fn starts(&self, call: &RequestedCall) -> u32 {
        self.starts.of(&call.key())
    }

    /// Why a call may not start now, if it may not; a text for the model. `repeats`: after how many
    /// turns in a row with the same result it is not run again; 0: never.
    pub fn over(&mut self, call: &RequestedCall, repeats: u32, now: u64) -> Option<String> {
        let seen = self.repeats.of(call);
        if repeats > 0 && seen >= repeats {
            return Some(format!(
                "The call was not run: in {seen} turns it was made with the same arguments and had the same result. Running it again does not \
                 help. Use the result that you have, change the arguments, try another way, or ask the user."
            ));
        }
        let arguments = call.arguments.as_ref().ok()?;
        let why = self.counts.over(&self.policy, &call.name, arguments, now)?;
        Some(format!("The call was not run: {why}. Go on without it."))
    }
}
