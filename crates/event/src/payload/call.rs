//! Calls, from a checker's decision to a retraction.

use super::field::{As, Codec, Describe, Flag, Value, one_of, payload};
use crate::{Json, Object, Raw, Text};

payload! {
    /// What a checker found.
    Decision<'a> {
        /// Whether the stream calls a tool.
        tool_call: bool,
        /// The checker's name, as it was given.
        checker: Text<'a>,
        /// Why, in a few words.
        reason: Text<'a>,
        /// The 1-based number of the deciding event of its stream.
        event: u64,
        /// Bytes of content text until then.
        bytes: u64,
        /// A second decision, which overturns the first.
        revised: bool as Flag,
        /// The stream failed before the checker could decide; `tool_call` is false then, and means
        /// nothing.
        undecided: bool as Flag,
    }
}

/// How certain it is that a call is complete.
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
    const ALL: [Commit; 3] = [Commit::Balanced, Commit::Sealed, Commit::Final];

    /// The value of `commit`.
    pub fn name(self) -> &'static str {
        match self {
            Commit::Balanced => "balanced",
            Commit::Sealed => "sealed",
            Commit::Final => "final",
        }
    }
}

impl<'a> Value<'a> for Commit {
    fn read(value: Raw<'a>) -> Option<Self> {
        let name = value.str()?;
        Self::ALL.into_iter().find(|commit| commit.name() == name)
    }

    fn write(self, out: &mut Vec<u8>) {
        Text::from(self.name()).write(out);
    }

    fn schema(o: &mut Object<'_>) {
        one_of(o, Self::ALL.map(Commit::name));
    }
}

/// A call's arguments: an object, or `null`.
#[derive(Debug)]
pub(crate) struct Arguments;

impl<'a> Codec<'a, Option<Json<'a>>> for Arguments {
    const ALWAYS: bool = true;

    fn read(value: Raw<'a>) -> Option<Json<'a>> {
        Json::read(value)
    }

    fn write(value: &Option<Json<'a>>, key: &'static str, o: &mut Object<'_>) {
        value.unwrap_or_default().write(o.member(key));
    }

    fn schema(o: &mut Object<'_>) {
        o.array("type", |a| {
            a.str("object").str("null");
        });
    }
}

/// The edits of a repair.
#[derive(Debug)]
pub(crate) struct Repairs;

impl Describe for Repairs {
    fn schema(o: &mut Object<'_>) {
        o.str("type", "array").object("items", |o| {
            o.str("type", "object").object("properties", |o| {
                o.object("offset", u64::schema).object("kind", Text::schema);
                o.object("before", Text::schema)
                    .object("after", Text::schema);
            });
        });
    }
}

/// Why a call must not run.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallError<'a> {
    /// `incomplete`, `invalid_json`, `schema` or `no_name`.
    pub code: Text<'a>,
    /// A sentence that a model or a person can act on.
    pub message: Text<'a>,
}

impl<'a> Value<'a> for CallError<'a> {
    fn read(value: Raw<'a>) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Text::of).unwrap_or_default();
        (!value.is_null()).then(|| CallError {
            code: text("code"),
            message: text("message"),
        })
    }

    fn write(self, out: &mut Vec<u8>) {
        let mut o = Object::open(out);
        self.code.write(o.member("\"code\":"));
        self.message.write(o.member("\"message\":"));
        o.close();
    }

    fn schema(o: &mut Object<'_>) {
        o.str("type", "object").object("properties", |o| {
            o.object("code", Text::schema)
                .object("message", Text::schema);
        });
        o.array("required", |a| {
            a.str("code").str("message");
        });
    }
}

payload! {
    /// One call, merged from its deltas.
    ToolCall<'a> {
        /// Its place among the calls of its choice: 0, 1, 2 …
        index: Option<i64>,
        /// The provider's id, or one that was made.
        tool_id: Text<'a>,
        /// The tool's name; empty only with the error `no_name`.
        tool_name: Text<'a>,
        /// The arguments, an object; null with an error.
        arguments: Option<Json<'a>> as Arguments,
        /// How certain it is that the call is complete; absent with an error.
        commit: Option<Commit>,
        /// The edits of a repair: a list of `{offset, kind, before, after}`.
        repairs: Option<Json<'a>> as As<Repairs>,
        /// What came, where `arguments` is not exactly that: after a repair, and with an error.
        arguments_text: Option<Text<'a>>,
        /// Why the call must not run.
        error: Option<CallError<'a>>,
        /// Opaque data that must go back to the same provider.
        provider: Option<Json<'a>>,
    }
}

payload! {
    /// The best reading of a call's arguments so far, for user interfaces. Not a part of the
    /// conversation.
    ToolCallPartial<'a> {
        /// The place of its call.
        index: Option<i64>,
        /// The id of its call.
        tool_id: Text<'a>,
        /// The tool's name.
        tool_name: Text<'a>,
        /// The arguments so far.
        arguments: Option<Json<'a>> as Arguments,
    }
}

payload! {
    /// A call that was begun or emitted does not hold.
    Retract<'a> {
        /// The call's index.
        index: Option<i64>,
        /// The call's id.
        tool_id: Option<Text<'a>>,
        /// Why.
        reason: Text<'a>,
    }
}
