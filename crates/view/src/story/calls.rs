//! The calls of a conversation, put together from its events.

use super::call::{BRIEF, CallCard, CallState};
use super::who::Who;
use crate::escape::one_line;
use crate::value::{content, json, plain};
use event::payload::{
    Retract, ToolCall, ToolCallDelta, ToolCallPartial, ToolProgress, ToolResult, ToolUse,
};
use event::{Event, Payload, Raw, Text};
use std::collections::HashMap;

/// The calls in the order of their first event.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallCards {
    pub list: Vec<CallCard>,
    /// The position of the latest call of an id, in any stream.
    by_id: HashMap<String, usize>,
    /// How many calls have no id yet.
    without_id: usize,
}

impl CallCards {
    /// Takes an event about a call, and returns the position of the call that is new or has
    /// changed.
    pub fn push(&mut self, event: &Event<'_>) -> Option<usize> {
        match event.payload()? {
            Payload::ToolCallDelta(delta) => self.delta(event, &delta),
            Payload::ToolCallPartial(partial) => self.partial(event, &partial),
            Payload::ToolCall(call) => Some(self.call(event, &call)),
            Payload::ToolUse(intent) => Some(self.used(event, &intent)),
            Payload::ToolProgress(progress) => Some(self.progressed(event, &progress)),
            Payload::ToolResult(result) => Some(self.ended(event, &result)),
            Payload::Retract(retract) => self.retract(event, &retract),
            _ => None,
        }
    }

    /// Takes the `tool_calls` of an assistant message whose turn has no other events; returns the
    /// positions of the new calls.
    pub fn asked(&mut self, event: &Event<'_>, message: Raw<'_>) -> std::ops::Range<usize> {
        let first = self.list.len();
        for call in message.get("tool_calls").into_iter().flat_map(Raw::items) {
            let name = plain(call.at(&["function", "name"]));
            let n = self.new_call(event, call.get_str("id").as_deref(), &name);
            self.list[n].state = CallState::Called;
            self.list[n].set_arguments(plain(call.at(&["function", "arguments"])));
        }
        first..self.list.len()
    }

    /// The event's stream was cancelled, and with it each of its calls that has no result.
    pub fn cancel(&mut self, event: &Event<'_>) {
        let open = |c: &&mut CallCard| {
            c.who.shares_stream(event) && !c.is_closed && !matches!(c.state, CallState::Ended(_))
        };
        self.list
            .iter_mut()
            .filter(open)
            .for_each(|c| c.is_cancelled = true);
    }

    /// Whether any call runs.
    pub fn any_runs(&self) -> bool {
        self.list
            .iter()
            .any(|c| c.was_started && matches!(c.state, CallState::Running | CallState::Retracted))
    }

    /// The input has ended.
    pub fn end(&mut self) {
        self.list
            .iter_mut()
            .filter(|c| c.state == CallState::Running)
            .for_each(|c| c.is_lost = true);
    }

    /// Removes the first calls of the list.
    pub fn forget(&mut self, first: usize) {
        for call in self.list.drain(..first) {
            self.without_id -= usize::from(call.id.is_empty());
        }
        self.by_id = self
            .list
            .iter()
            .enumerate()
            .map(|(n, call)| (call.id.clone(), n))
            .collect();
    }

    /// Takes a `tool` message, which is the result of a call without a `tool_result` in the log.
    pub fn answered(&mut self, event: &Event<'_>, message: Raw<'_>) -> Option<usize> {
        let id = message.get_str("tool_call_id")?;
        let n = self.find(event, |c| c.id == id);
        let n = n.unwrap_or_else(|| self.new_call(event, Some(&id), &plain(message.get("name"))));
        if self.list[n].has_ended() {
            return None;
        }
        self.list[n].state = CallState::Ended("answered".to_owned());
        self.list[n].output = content(message);
        Some(n)
    }

    fn delta(&mut self, event: &Event<'_>, delta: &ToolCallDelta<'_>) -> Option<usize> {
        let [id, name, arguments] =
            [delta.tool_id, delta.tool_name, delta.arguments].map(|text| text.map(Text::str));
        let id = id.as_deref().filter(|id| !id.is_empty());
        let n = match id {
            Some(_) => self.open(event, id),
            None => self.find(event, |c| {
                !c.is_closed && c.state == CallState::Arriving && c.index == delta.index
            }),
        };
        if n.is_none()
            && id.is_none()
            && let Some(name) = name.as_deref()
            && let Some(n) = self.find(event, |c| c.came_whole && !c.is_closed && c.name == name)
        {
            self.list[n].came_whole = false;
            return None;
        }
        let n = match n {
            Some(n) if self.list[n].state == CallState::Arriving => n,
            Some(_) => return None, // its `tool_call` has come
            None if id.is_none() && name.is_none() => return None,
            None => self.new_call(event, id, ""),
        };
        let call = &mut self.list[n];
        call.index = delta.index;
        if let Some(name) = name.filter(|_| call.name.is_empty()) {
            call.name = name.into_owned();
        }
        call.arguments
            .push_str(arguments.as_deref().unwrap_or_default());
        if call.brief.len() < BRIEF {
            call.brief = one_line(&call.arguments, BRIEF);
        }
        Some(n)
    }

    /// Takes the arguments so far; they are shown until the call is complete.
    fn partial(&mut self, event: &Event<'_>, partial: &ToolCallPartial<'_>) -> Option<usize> {
        let id = partial.tool_id.str();
        let n = self.open(event, Some(&id));
        let n = n.unwrap_or_else(|| self.new_call(event, Some(&id), &partial.tool_name.str()));
        if self.list[n].state != CallState::Arriving {
            return None;
        }
        self.list[n].set_arguments(json(partial.arguments));
        Some(n)
    }

    fn call(&mut self, event: &Event<'_>, whole: &ToolCall<'_>) -> usize {
        let (id, name) = (whole.tool_id.str(), whole.tool_name.str());
        let n = self.open(event, Some(&id));
        // A call without an id gets one when its deltas are merged: it is the first of that name
        // without an id.
        let n = n.or_else(|| {
            (self.without_id > 0).then_some(())?;
            self.list.iter().position(|c| {
                !c.is_closed
                    && c.belongs_to(event)
                    && c.state == CallState::Arriving
                    && c.id.is_empty()
                    && c.name == name
            })
        });
        let whole_first = n.is_none();
        let n = n.unwrap_or_else(|| self.new_call(event, None, ""));
        self.identify(n, &id);
        let call = &mut self.list[n];
        call.came_whole |= whole_first;
        call.name = name.into_owned();
        call.index = whole.index;
        call.set_arguments(match whole.arguments {
            None => whole.arguments_text.unwrap_or_default().str().into_owned(),
            arguments => json(arguments),
        });
        if let CallState::Arriving | CallState::Called = call.state {
            call.state = match whole.error {
                Some(error) => {
                    call.summary = error.message.str().into_owned();
                    CallState::Refused(error.code.str().into_owned())
                }
                None => CallState::Called,
            };
        }
        n
    }

    /// The position of the call that an event of its run names.
    fn ran(&mut self, event: &Event<'_>, id: Text<'_>, name: Text<'_>) -> usize {
        let id = id.str();
        self.known(event, Some(&id))
            .unwrap_or_else(|| self.new_call(event, Some(&id), &name.str()))
    }

    fn used(&mut self, event: &Event<'_>, intent: &ToolUse<'_>) -> usize {
        let n = self.ran(event, intent.tool_id, intent.tool_name);
        let call = &mut self.list[n];
        call.state = CallState::Running;
        call.was_started = true;
        if call.arguments.is_empty() {
            call.set_arguments(intent.input_summary.str().into_owned());
        }
        n
    }

    fn progressed(&mut self, event: &Event<'_>, progress: &ToolProgress<'_>) -> usize {
        let n = self.ran(event, progress.tool_id, progress.tool_name);
        if let Some(line) = progress.text.str().lines().rfind(|l| !l.trim().is_empty()) {
            self.list[n].summary = line.to_owned();
        }
        n
    }

    fn ended(&mut self, event: &Event<'_>, result: &ToolResult<'_>) -> usize {
        let n = self.ran(event, result.tool_id, result.tool_name);
        let call = &mut self.list[n];
        call.state = CallState::Ended(result.status.str().into_owned());
        call.output = result.output.str().into_owned();
        call.summary = result.output_summary.str().into_owned();
        call.duration_ms = result.duration_ms.map(|time| time.micros as f64 / 1000.0);
        call.exit_code = result.exit_code;
        call.is_answer = result.return_directly;
        call.is_cached = result.cached;
        n
    }

    fn retract(&mut self, event: &Event<'_>, retract: &Retract<'_>) -> Option<usize> {
        let n = match retract.tool_id {
            Some(id) => self.known(event, Some(&id.str())),
            None => retract
                .index
                .and_then(|i| self.find(event, |c| c.index == Some(i))),
        }?;
        let call = &mut self.list[n];
        if std::mem::replace(&mut call.is_retracted, true) {
            return None; // by its index and by its id
        }
        if !call.has_ended() {
            call.state = CallState::Retracted;
            call.stream_failed = retract.reason == "stream_failed";
        }
        Some(n)
    }

    /// The call of this id, even after its turn, since tools may take longer than that.
    fn known(&self, event: &Event<'_>, id: Option<&str>) -> Option<usize> {
        let id = id.filter(|id| !id.is_empty())?;
        let n = *self.by_id.get(id)?;
        if self.list[n].belongs_to(event) {
            Some(n)
        } else {
            self.find(event, |c| c.id == id)
        }
    }

    /// The call of this id in the current turn. Some servers number the calls of each turn anew.
    fn open(&self, event: &Event<'_>, id: Option<&str>) -> Option<usize> {
        self.known(event, id).filter(|n| !self.list[*n].is_closed)
    }

    /// The latest call of the event's stream and choice for which `is` holds.
    fn find(&self, event: &Event<'_>, is: impl Fn(&CallCard) -> bool) -> Option<usize> {
        self.list.iter().rposition(|c| c.belongs_to(event) && is(c))
    }

    fn new_call(&mut self, event: &Event<'_>, id: Option<&str>, name: &str) -> usize {
        self.list
            .push(CallCard::new(Who::of(event), name.to_owned()));
        self.without_id += 1;
        self.identify(self.list.len() - 1, id.unwrap_or_default());
        self.list.len() - 1
    }

    /// Sets the id of the call, if it has none.
    fn identify(&mut self, n: usize, id: &str) {
        if self.list[n].id.is_empty() && !id.is_empty() {
            self.list[n].id = id.to_owned();
            self.without_id -= 1;
            self.by_id.insert(id.to_owned(), n);
        }
    }
}
