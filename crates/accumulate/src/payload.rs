//! The `tool_call` event.

use event::{Kind, Object, Payload};
use json::Repair;

/// How sure it is that a call is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Commit {
    /// The top-level `{…}` of the arguments has closed.
    Balanced,
    /// The provider closed the call's block, or a later call began after this one was balanced.
    Sealed,
    /// The stream ended with a finish reason that means the model had finished.
    Final,
}

impl Commit {
    /// The value of `commit`.
    pub fn name(self) -> &'static str {
        match self {
            Commit::Balanced => "balanced",
            Commit::Sealed => "sealed",
            Commit::Final => "final",
        }
    }
}

/// Why a call must not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    /// `incomplete`, `invalid_json`, `schema` or `no_name`.
    pub code: &'static str,
    /// A sentence that a model or a person can act on.
    pub message: String,
}

/// One call, merged.
#[derive(Clone, Debug)]
pub struct ToolCall<'a> {
    /// Its place among the calls of its choice, dense from 0.
    pub index: usize,
    /// The provider's id, or one that was made.
    pub tool_id: &'a str,
    /// Empty only with the error `no_name`.
    pub tool_name: &'a str,
    /// The arguments, an object on one line; `None` with an error.
    pub arguments: Option<&'a str>,
    /// How sure it is that it is whole; `None` with an error.
    pub commit: Option<Commit>,
    /// What had to be mended, each edit.
    pub repairs: &'a [Repair],
    /// What came, where `arguments` is not exactly that: after a repair, and with an error.
    pub arguments_text: Option<&'a str>,
    /// Why it must not run.
    pub error: Option<&'a CallError>,
    /// Opaque data of the provider, as JSON.
    pub provider: Option<&'a str>,
}

impl Payload for ToolCall<'_> {
    fn kind(&self) -> Kind {
        Kind::ToolCall
    }

    fn fields(&self, o: &mut Object<'_>) {
        o.int("index", self.index as u64).str("tool_id", self.tool_id).str("tool_name", self.tool_name);
        o.raw("arguments", self.arguments.unwrap_or("null")).maybe_str("commit", self.commit.map(Commit::name));
        if !self.repairs.is_empty() {
            o.array("repairs", |list| {
                for r in self.repairs {
                    list.object(|o| {
                        o.int("offset", r.offset as u64)
                            .str("kind", r.kind)
                            .str("before", &r.before)
                            .str("after", &r.after);
                    });
                }
            });
        }
        o.maybe_str("arguments_text", self.arguments_text);
        if let Some(e) = self.error {
            o.object("error", |o| {
                o.str("code", e.code).str("message", &e.message);
            });
        }
        if let Some(p) = self.provider {
            o.raw("provider", p);
        }
    }
}

/// A reading of the arguments so far, for user interfaces (`--partial`). Its `type` is `tool_call_partial`; it is no part of
/// the conversation, and any other filter passes it on.
#[derive(Clone, Debug)]
pub(crate) struct Partial<'a> {
    pub index: usize,
    pub tool_id: &'a str,
    pub tool_name: &'a str,
    pub arguments: &'a str,
}

impl Payload for Partial<'_> {
    fn kind(&self) -> Kind {
        Kind::ToolCallPartial
    }

    fn fields(&self, o: &mut Object<'_>) {
        o.int("index", self.index as u64).str("tool_id", self.tool_id).str("tool_name", self.tool_name);
        o.minified("arguments", self.arguments);
    }
}
