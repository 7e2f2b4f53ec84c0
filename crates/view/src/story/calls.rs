//! The calls of a conversation, as the events tell of them.

use super::call::{BRIEF, CallCard, CallState};
use super::who::Who;
use crate::escape::one_line;
use crate::value::{content, plain};
use event::payload::ToolCallDelta;
use event::{Event, Kind, Raw};
use std::collections::HashMap;

/// The calls in the order of their first event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    pub list: Vec<CallCard>,
    /// Where the latest call of an id stands, whatever its stream.
    by_id: HashMap<String, usize>,
    /// How many calls have no id yet.
    without_id: usize,
}

impl Calls {
    /// Takes an event about a call, and gives the position of the call that is new or has changed.
    pub fn push(&mut self, event: &Event<'_>) -> Option<usize> {
        match event.kind() {
            Kind::ToolCallDelta => self.delta(event),
            Kind::ToolCallPartial => self.partial(event),
            Kind::ToolCall => Some(self.call(event)),
            Kind::ToolUse | Kind::ToolProgress | Kind::ToolResult => Some(self.run(event)),
            Kind::Retract => self.retract(event),
            _ => None,
        }
    }

    /// Takes the `tool_calls` of an assistant message that no other event told of; gives the positions of the new calls.
    pub fn asked(&mut self, event: &Event<'_>, message: Raw<'_>) -> std::ops::Range<usize> {
        let first = self.list.len();
        for call in message.get("tool_calls").into_iter().flat_map(Raw::items) {
            let n = self.new_call(event, call.get_str("id").as_deref(), call.at(&["function", "name"]));
            self.list[n].state = CallState::Called;
            self.list[n].set_arguments(plain(call.at(&["function", "arguments"])));
        }
        first..self.list.len()
    }

    /// The event's stream was cancelled, and with it every call that it had asked for and that has no result.
    pub fn cancel(&mut self, event: &Event<'_>) {
        let open =
            |c: &&mut CallCard| c.who.shares_stream(event) && !c.closed && !matches!(c.state, CallState::Over(_));
        self.list.iter_mut().filter(open).for_each(|c| c.cancelled = true);
    }

    /// Whether a call is running.
    pub fn run_on(&self) -> bool {
        self.list.iter().any(|c| c.started && matches!(c.state, CallState::Running | CallState::Withdrawn))
    }

    /// The input has ended.
    pub fn end(&mut self) {
        self.list.iter_mut().filter(|c| c.state == CallState::Running).for_each(|c| c.lost = true);
    }

    /// Lets go of the first calls of the list.
    pub fn forget(&mut self, first: usize) {
        for call in self.list.drain(..first) {
            self.without_id -= usize::from(call.id.is_empty());
        }
        self.by_id = self.list.iter().enumerate().map(|(n, call)| (call.id.clone(), n)).collect();
    }

    /// Takes a `tool` message: it is the result of a call whose `tool_result` is not in the log.
    pub fn answered(&mut self, event: &Event<'_>, message: Raw<'_>) -> Option<usize> {
        let id = message.get_str("tool_call_id")?;
        let n =
            self.find(event, |c| c.id == id).unwrap_or_else(|| self.new_call(event, Some(&id), message.get("name")));
        if self.list[n].is_over() {
            return None;
        }
        self.list[n].state = CallState::Over("answered".to_owned());
        self.list[n].output = content(message);
        Some(n)
    }

    fn delta(&mut self, event: &Event<'_>) -> Option<usize> {
        let delta = ToolCallDelta::read(event);
        let id = delta.tool_id.as_deref().filter(|id| !id.is_empty());
        let n = match id {
            Some(_) => self.open(event, id),
            None => self.find(event, |c| !c.closed && c.state == CallState::Arriving && c.index == delta.index),
        };
        if n.is_none()
            && id.is_none()
            && let Some(name) = delta.tool_name.as_deref()
            && let Some(n) = self.find(event, |c| c.whole_first && !c.closed && c.name == name)
        {
            self.list[n].whole_first = false;
            return None;
        }
        let n = match n {
            Some(n) if self.list[n].state == CallState::Arriving => n,
            Some(_) => return None, // the merged call is known already
            None if id.is_none() && delta.tool_name.is_none() => return None,
            None => self.new_call(event, id, None),
        };
        let call = &mut self.list[n];
        call.index = delta.index;
        if let Some(name) = delta.tool_name.filter(|_| call.name.is_empty()) {
            call.name = name.into_owned();
        }
        call.arguments.push_str(delta.arguments.as_deref().unwrap_or_default());
        if call.brief.len() < BRIEF {
            call.brief = one_line(&call.arguments, BRIEF);
        }
        Some(n)
    }

    /// A reading of the arguments so far: it stands in for them until the call is whole.
    fn partial(&mut self, event: &Event<'_>) -> Option<usize> {
        let id = event.get_str("tool_id").unwrap_or_default();
        let n = self.open(event, Some(&id));
        let n = n.unwrap_or_else(|| self.new_call(event, Some(&id), event.get("tool_name")));
        if self.list[n].state != CallState::Arriving {
            return None;
        }
        self.list[n].set_arguments(plain(event.get("arguments")));
        Some(n)
    }

    fn call(&mut self, event: &Event<'_>) -> usize {
        let id = event.get_str("tool_id");
        let name = event.get_str("tool_name").unwrap_or_default();
        let n = self.open(event, id.as_deref());
        // A call without an id is given one when its deltas are merged: then it is the first of that name that has none.
        let n = n.or_else(|| {
            (self.without_id > 0).then_some(())?;
            self.list.iter().position(|c| {
                !c.closed && c.here(event) && c.state == CallState::Arriving && c.id.is_empty() && c.name == name
            })
        });
        let whole_first = n.is_none();
        let n = n.unwrap_or_else(|| self.new_call(event, None, None));
        self.identify(n, id.as_deref().unwrap_or_default());
        let call = &mut self.list[n];
        call.whole_first |= whole_first;
        call.name = name.into_owned();
        call.index = event.get("index").and_then(Raw::i64);
        call.set_arguments(plain(event.get("arguments").or_else(|| event.get("arguments_text"))));
        if let CallState::Arriving | CallState::Called = call.state {
            call.state = match event.get("error") {
                Some(error) => {
                    call.summary = plain(error.get("message"));
                    CallState::Refused(plain(error.get("code")))
                }
                None => CallState::Called,
            };
        }
        n
    }

    fn run(&mut self, event: &Event<'_>) -> usize {
        let id = event.get_str("tool_id");
        let n = self.known(event, id.as_deref());
        let n = n.unwrap_or_else(|| self.new_call(event, id.as_deref(), event.get("tool_name")));
        let call = &mut self.list[n];
        let text = |key: &str| plain(event.get(key));
        match event.kind() {
            Kind::ToolUse => {
                call.state = CallState::Running;
                call.started = true;
                if call.arguments.is_empty() {
                    call.set_arguments(text("input_summary"));
                }
            }
            Kind::ToolProgress => {
                let piece = text("text");
                if let Some(line) = piece.lines().rfind(|l| !l.trim().is_empty()) {
                    call.summary = line.to_owned();
                }
            }
            _ => {
                call.state = CallState::Over(text("status"));
                call.output = text("output");
                call.summary = text("output_summary");
                call.duration_ms = event.get("duration_ms").and_then(Raw::f64);
                call.exit_code = event.get("exit_code").and_then(Raw::i64);
                call.is_answer = event.get("return_directly").and_then(Raw::bool) == Some(true);
                call.cached = event.get("cached").and_then(Raw::bool) == Some(true);
            }
        }
        n
    }

    fn retract(&mut self, event: &Event<'_>) -> Option<usize> {
        let index = event.get("index").and_then(Raw::i64);
        let n = match event.get_str("tool_id") {
            Some(id) => self.known(event, Some(&id)),
            None => index.and_then(|i| self.find(event, |c| c.index == Some(i))),
        }?;
        let call = &mut self.list[n];
        if std::mem::replace(&mut call.retracted, true) {
            return None; // by its index and by its id
        }
        if !call.is_over() {
            call.state = CallState::Withdrawn;
            call.stream_failed = event.get_str("reason").as_deref() == Some("stream_failed");
        }
        Some(n)
    }

    /// The call of this id, for what comes of it: also after its turn, since tools may take longer than that.
    fn known(&self, event: &Event<'_>, id: Option<&str>) -> Option<usize> {
        let id = id.filter(|id| !id.is_empty())?;
        let n = *self.by_id.get(id)?;
        if self.list[n].here(event) { Some(n) } else { self.find(event, |c| c.id == id) }
    }

    /// The call of this id in the turn at hand. Some servers number the calls of each turn anew.
    fn open(&self, event: &Event<'_>, id: Option<&str>) -> Option<usize> {
        self.known(event, id).filter(|n| !self.list[*n].closed)
    }

    /// The latest call of the event's stream and choice that `is` the one meant.
    fn find(&self, event: &Event<'_>, is: impl Fn(&CallCard) -> bool) -> Option<usize> {
        self.list.iter().rposition(|c| c.here(event) && is(c))
    }

    fn new_call(&mut self, event: &Event<'_>, id: Option<&str>, name: Option<Raw<'_>>) -> usize {
        self.list.push(CallCard::new(Who::of(event), plain(name)));
        self.without_id += 1;
        self.identify(self.list.len() - 1, id.unwrap_or_default());
        self.list.len() - 1
    }

    /// Gives the call its id, if it has none.
    fn identify(&mut self, n: usize, id: &str) {
        if self.list[n].id.is_empty() && !id.is_empty() {
            self.list[n].id = id.to_owned();
            self.without_id -= 1;
            self.by_id.insert(id.to_owned(), n);
        }
    }
}
