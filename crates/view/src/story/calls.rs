//! The calls of a conversation, as the events tell of them.

use super::call::{BRIEF, CallCard, CallState};
use super::who::Who;
use crate::escape::one_line;
use crate::value::{content, json, plain};
use event::payload::{Retract, ToolCall, ToolCallDelta, ToolCallPartial, ToolProgress, ToolResult, ToolUse};
use event::{Event, Kind, Raw, Text};
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
            Kind::ToolUse => Some(self.used(event)),
            Kind::ToolProgress => Some(self.progressed(event)),
            Kind::ToolResult => Some(self.ended(event)),
            Kind::Retract => self.retract(event),
            _ => None,
        }
    }

    /// Takes the `tool_calls` of an assistant message that no other event told of; gives the positions of the new calls.
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
        let n = self.find(event, |c| c.id == id);
        let n = n.unwrap_or_else(|| self.new_call(event, Some(&id), &plain(message.get("name"))));
        if self.list[n].is_over() {
            return None;
        }
        self.list[n].state = CallState::Over("answered".to_owned());
        self.list[n].output = content(message);
        Some(n)
    }

    fn delta(&mut self, event: &Event<'_>) -> Option<usize> {
        let delta = ToolCallDelta::read(event);
        let [id, name, arguments] = [delta.tool_id, delta.tool_name, delta.arguments].map(|text| text.map(Text::str));
        let id = id.as_deref().filter(|id| !id.is_empty());
        let n = match id {
            Some(_) => self.open(event, id),
            None => self.find(event, |c| !c.closed && c.state == CallState::Arriving && c.index == delta.index),
        };
        if n.is_none()
            && id.is_none()
            && let Some(name) = name.as_deref()
            && let Some(n) = self.find(event, |c| c.whole_first && !c.closed && c.name == name)
        {
            self.list[n].whole_first = false;
            return None;
        }
        let n = match n {
            Some(n) if self.list[n].state == CallState::Arriving => n,
            Some(_) => return None, // the merged call is known already
            None if id.is_none() && name.is_none() => return None,
            None => self.new_call(event, id, ""),
        };
        let call = &mut self.list[n];
        call.index = delta.index;
        if let Some(name) = name.filter(|_| call.name.is_empty()) {
            call.name = name.into_owned();
        }
        call.arguments.push_str(arguments.as_deref().unwrap_or_default());
        if call.brief.len() < BRIEF {
            call.brief = one_line(&call.arguments, BRIEF);
        }
        Some(n)
    }

    /// A reading of the arguments so far: it stands in for them until the call is whole.
    fn partial(&mut self, event: &Event<'_>) -> Option<usize> {
        let partial = ToolCallPartial::read(event);
        let id = partial.tool_id.str();
        let n = self.open(event, Some(&id));
        let n = n.unwrap_or_else(|| self.new_call(event, Some(&id), &partial.tool_name.str()));
        if self.list[n].state != CallState::Arriving {
            return None;
        }
        self.list[n].set_arguments(json(partial.arguments));
        Some(n)
    }

    fn call(&mut self, event: &Event<'_>) -> usize {
        let whole = ToolCall::read(event);
        let (id, name) = (whole.tool_id.str(), whole.tool_name.str());
        let n = self.open(event, Some(&id));
        // A call without an id is given one when its deltas are merged: then it is the first of that name that has none.
        let n = n.or_else(|| {
            (self.without_id > 0).then_some(())?;
            self.list.iter().position(|c| {
                !c.closed && c.here(event) && c.state == CallState::Arriving && c.id.is_empty() && c.name == name
            })
        });
        let whole_first = n.is_none();
        let n = n.unwrap_or_else(|| self.new_call(event, None, ""));
        self.identify(n, &id);
        let call = &mut self.list[n];
        call.whole_first |= whole_first;
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

    /// The call that an event of its run is about.
    fn ran(&mut self, event: &Event<'_>, id: Text<'_>, name: Text<'_>) -> usize {
        let id = id.str();
        self.known(event, Some(&id)).unwrap_or_else(|| self.new_call(event, Some(&id), &name.str()))
    }

    fn used(&mut self, event: &Event<'_>) -> usize {
        let tool = ToolUse::read(event);
        let n = self.ran(event, tool.tool_id, tool.tool_name);
        let call = &mut self.list[n];
        call.state = CallState::Running;
        call.started = true;
        if call.arguments.is_empty() {
            call.set_arguments(tool.input_summary.str().into_owned());
        }
        n
    }

    fn progressed(&mut self, event: &Event<'_>) -> usize {
        let progress = ToolProgress::read(event);
        let n = self.ran(event, progress.tool_id, progress.tool_name);
        if let Some(line) = progress.text.str().lines().rfind(|l| !l.trim().is_empty()) {
            self.list[n].summary = line.to_owned();
        }
        n
    }

    fn ended(&mut self, event: &Event<'_>) -> usize {
        let result = ToolResult::read(event);
        let n = self.ran(event, result.tool_id, result.tool_name);
        let call = &mut self.list[n];
        call.state = CallState::Over(result.status.str().into_owned());
        call.output = result.output.str().into_owned();
        call.summary = result.output_summary.str().into_owned();
        call.duration_ms = result.duration_ms.map(|time| time.micros as f64 / 1000.0);
        call.exit_code = result.exit_code;
        call.is_answer = result.return_directly;
        call.cached = result.cached;
        n
    }

    fn retract(&mut self, event: &Event<'_>) -> Option<usize> {
        let retract = Retract::read(event);
        let n = match retract.tool_id {
            Some(id) => self.known(event, Some(&id.str())),
            None => retract.index.and_then(|i| self.find(event, |c| c.index == Some(i))),
        }?;
        let call = &mut self.list[n];
        if std::mem::replace(&mut call.retracted, true) {
            return None; // by its index and by its id
        }
        if !call.is_over() {
            call.state = CallState::Withdrawn;
            call.stream_failed = retract.reason == "stream_failed";
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

    fn new_call(&mut self, event: &Event<'_>, id: Option<&str>, name: &str) -> usize {
        self.list.push(CallCard::new(Who::of(event), name.to_owned()));
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
