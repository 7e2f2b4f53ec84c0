//! Tracks the calls that the service itself runs, from their first delta to their result.

use crate::answer::step::{CallStep, CallStepKind, Step};
use event::payload::{Retract, Status, ToolCall, ToolCallDelta, ToolResult};
use event::{Event, Kind, Raw, Text};

/// The name of the service that runs the calls, used as the label of an MCP server.
pub(crate) const SERVICE: &str = "toolpipe";

/// The service's calls that have no result yet.
#[derive(Debug, Default)]
pub(crate) struct ServiceCalls {
    open: Vec<ServiceCall>,
}

/// One call of the service.
#[derive(Debug, Default)]
struct ServiceCall {
    id: String,
    name: String,
    arguments: String,
    /// Whether the call was announced, which requires its name.
    has_begun: bool,
    is_called: bool,
}

impl ServiceCalls {
    /// Processes the next event of a call and passes the resulting steps to `take`.
    pub(crate) fn push(&mut self, event: &Event<'_>, take: &mut dyn FnMut(&Step<'_>)) {
        match event.kind() {
            Kind::ToolCallDelta => self.delta(&ToolCallDelta::read(event), take),
            Kind::ToolCall => self.call(&ToolCall::read(event), take),
            Kind::ToolResult => self.result(&ToolResult::read(event), take),
            Kind::Retract => {
                let id = Retract::read(event).tool_id.map(Text::str);
                if let Some(call) = id.and_then(|id| self.take(&id)) {
                    call.end("the call was taken back", true, take);
                }
            }
            _ => {}
        }
    }

    /// Returns the open call `id`, or opens it.
    fn of(&mut self, id: &str) -> &mut ServiceCall {
        let at = self.open.iter().position(|call| call.id == id);
        let at = at.unwrap_or_else(|| {
            self.open.push(ServiceCall {
                id: id.to_owned(),
                ..ServiceCall::default()
            });
            self.open.len() - 1
        });
        &mut self.open[at]
    }

    fn take(&mut self, id: &str) -> Option<ServiceCall> {
        let at = self.open.iter().position(|call| call.id == id)?;
        Some(self.open.remove(at))
    }

    fn delta(&mut self, delta: &ToolCallDelta<'_>, take: &mut dyn FnMut(&Step<'_>)) {
        let Some(id) = delta.tool_id.map(Text::str).filter(|id| !id.is_empty()) else {
            return;
        };
        let call = self.of(&id);
        let mut piece = String::new();
        delta.arguments.unwrap_or_default().append_to(&mut piece);
        call.arguments.push_str(&piece);
        let name = delta.tool_name.map(Text::str).unwrap_or_default();
        if call.has_begun || !name.is_empty() {
            // Arguments that arrived before the name are sent with it.
            if call.begin(&name, take) {
                piece.clone_from(&call.arguments);
            }
            if !piece.is_empty() {
                call.step(take, CallStepKind::Arguments, &piece);
            }
        }
    }

    fn call(&mut self, event: &ToolCall<'_>, take: &mut dyn FnMut(&Step<'_>)) {
        // A call without a name cannot be run.
        if event.tool_name.is_empty() {
            return;
        }
        let call = self.of(&event.tool_id.str());
        call.begin(&event.tool_name.str(), take);
        let arguments = event.arguments.map(|json| json.text().into_owned());
        // A call that cannot run keeps its text for the user to read. The APIs require JSON.
        let text = || {
            let text = event.arguments_text.unwrap_or_default().str();
            let is_json = Raw::parse(&text).is_ok();
            if is_json {
                text.into_owned()
            } else {
                event::quoted(&text)
            }
        };
        call.arguments = arguments
            .filter(|json| Raw::parse(json).is_ok_and(Raw::is_object))
            .unwrap_or_else(text);
        call.called(take);
    }

    fn result(&mut self, result: &ToolResult<'_>, take: &mut dyn FnMut(&Step<'_>)) {
        let id = result.tool_id.str();
        if result.status == Status::Pending.name() {
            // The call stays open, because a user may approve it while the response continues.
            let Some(call) = self.open.iter().find(|call| call.id == id) else {
                return;
            };
            return call.step(take, CallStepKind::Pending, &call.arguments);
        }
        let Some(call) = self.take(&id) else {
            return;
        };
        let is_error = result.status != Status::Success.name();
        call.end(&result.output.str(), is_error, take);
    }
}

impl ServiceCall {
    /// Announces the call if it was not announced before. Returns whether it did so.
    fn begin(&mut self, name: &str, take: &mut dyn FnMut(&Step<'_>)) -> bool {
        if std::mem::replace(&mut self.has_begun, true) {
            return false;
        }
        name.clone_into(&mut self.name);
        self.step(take, CallStepKind::Begin, "");
        true
    }

    fn called(&mut self, take: &mut dyn FnMut(&Step<'_>)) {
        self.is_called = true;
        self.step(take, CallStepKind::Called, &self.arguments);
    }

    fn end(mut self, output: &str, is_error: bool, take: &mut dyn FnMut(&Step<'_>)) {
        if !self.has_begun {
            return;
        }
        // The AI SDK throws an exception for a result without a preceding call.
        if !self.is_called {
            "{}".clone_into(&mut self.arguments);
            self.called(take);
        }
        self.step(take, CallStepKind::Result { is_error }, output);
    }

    fn step(&self, take: &mut dyn FnMut(&Step<'_>), kind: CallStepKind, text: &str) {
        take(&Step::Call(CallStep {
            kind,
            is_own: true,
            id: (&self.id).into(),
            name: (&self.name).into(),
            text: text.into(),
            provider: None,
        }));
    }
}
