//! A call between its events and its steps.

use super::emitter::Emitter;
use crate::answer::step::Step;
use event::Raw;
use event::payload::ToolCall;

/// How far a call has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallState {
    /// More of it may come.
    Open,
    /// It is complete, and nothing of it was announced before. A call in the text is like this, and
    /// it is taken back if the provider sends the same natively just behind it.
    Whole,
    /// It is complete, and may be sent.
    Complete,
    /// It was cut.
    Cut,
}

/// A call that is not complete, or waits for another one.
#[derive(Debug)]
pub(super) struct HeldCall {
    pub id: String,
    pub name: String,
    /// All of its arguments so far.
    pub arguments: String,
    /// How many bytes of the arguments were emitted.
    pub sent: usize,
    pub has_begun: bool,
    pub state: CallState,
    /// What must go back to the provider with it, as JSON.
    pub provider: Option<String>,
}

/// Why the end of a call does not fit a client.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    /// It has another name or other arguments than the sent bytes began.
    Changed,
    /// See [`Verdict::Unusable`].
    Unusable(String),
}

impl HeldCall {
    /// A call before its first bytes.
    pub fn new(id: String, state: CallState) -> HeldCall {
        let (name, arguments) = (String::new(), String::new());
        HeldCall {
            id,
            name,
            arguments,
            sent: 0,
            has_begun: false,
            state,
            provider: None,
        }
    }

    /// The bytes that are kept of it.
    pub fn kept(&self) -> usize {
        let provider = self.provider.as_ref().map_or(0, String::len);
        self.id.len() + self.name.len() + self.arguments.len() + provider
    }

    /// Takes the end of the call.
    pub fn take(&mut self, event: &ToolCall<'_>) -> Result<(), Unfit> {
        let all = match verdict(event) {
            Verdict::Cut => {
                self.state = CallState::Cut;
                return Ok(());
            }
            Verdict::Unusable(message) => return Err(Unfit::Unusable(message)),
            Verdict::Arguments(all) => all,
        };
        let name = event.tool_name.str();
        if self.has_begun && (self.name != name || !all.starts_with(&self.arguments[..self.sent])) {
            return Err(Unfit::Changed);
        }
        self.name = name.into_owned();
        self.arguments = all;
        self.provider = event.provider.map(|json| json.text().into_owned());
        if self.state == CallState::Open {
            self.state = CallState::Complete;
        }
        Ok(())
    }

    /// Whether [`HeldCall::send`] emits anything.
    pub fn may_be_sent(&self) -> bool {
        match self.state {
            CallState::Open => self.sent < self.arguments.len(),
            CallState::Complete => true,
            CallState::Whole | CallState::Cut => false,
        }
    }

    /// Emits what can be sent. Returns whether the call has ended. The call begins with its first
    /// byte of arguments, so that one which is cut never has the empty arguments that many clients
    /// read as `{}`.
    pub fn send(&mut self, out: &mut Emitter<'_, '_>) -> bool {
        if !std::mem::replace(&mut self.has_begun, true) {
            out.emit(&Step::CallBegin {
                id: &self.id,
                name: &self.name,
                provider: self.provider.as_deref(),
            });
        }
        if let Some(more) = self
            .arguments
            .get(self.sent..)
            .filter(|more| !more.is_empty())
        {
            out.emit(&Step::CallArguments(more));
            self.sent = self.arguments.len();
        }
        let is_complete = self.state == CallState::Complete;
        if is_complete {
            out.emit(&Step::CallEnd {
                arguments: &self.arguments,
                provider: self.provider.as_deref(),
            });
        }
        is_complete
    }
}

/// What an event `tool_call` means for a client.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// The client gets these arguments: a JSON object on one line.
    Arguments(String),
    /// The call was cut.
    Cut,
    /// Its arguments are not a JSON object, or it has no name: no client can use it.
    Unusable(String),
}

/// Reads what a `tool_call` says of its arguments. Arguments that do not fit their schema, or in
/// which a key appears twice, are JSON: the client judges them by itself.
fn verdict(call: &ToolCall<'_>) -> Verdict {
    let Some(error) = call.error else {
        if call.tool_name.is_empty() {
            return Verdict::Unusable("a call came without a name".to_owned());
        }
        let arguments = call
            .arguments
            .map(|json| json.text().into_owned())
            .filter(|json| json.starts_with('{'));
        return Verdict::Arguments(arguments.unwrap_or_else(|| "{}".to_owned()));
    };
    if error.code == "incomplete" {
        return Verdict::Cut;
    }
    let text = call.arguments_text.unwrap_or_default().str();
    match Raw::parse(text.trim_ascii()) {
        _ if call.tool_name.is_empty() => {
            Verdict::Unusable("a call came without a name".to_owned())
        }
        Ok(value) if value.is_object() => {
            let mut out = Vec::new();
            event::minify(&mut out, value.text());
            Verdict::Arguments(String::from_utf8(out).unwrap_or_default())
        }
        _ => Verdict::Unusable(error.message.str().into_owned()),
    }
}
