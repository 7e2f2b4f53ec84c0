//! A call's run and its result.

use super::field::{As, Describe, Flag, Loose, Millis, Value, one_of, payload};
use crate::{Object, Raw, Text};

/// The status of a call that has begun to run: `running`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Running;

impl<'a> Value<'a> for Running {
    fn read(_: Raw<'a>) -> Option<Self> {
        Some(Running)
    }

    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\"running\"");
    }

    fn schema(o: &mut Object<'_>) {
        o.str("const", "running");
    }
}

/// What a person or a rule answered to a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// The call may run.
    #[default]
    Approved,
    /// The call must not run.
    Denied,
    /// The call ran in an earlier run, and a person gives its result.
    Answered,
}

impl Verdict {
    const ALL: [Verdict; 3] = [Verdict::Approved, Verdict::Denied, Verdict::Answered];

    /// The value of `decision`.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Approved => "approved",
            Verdict::Denied => "denied",
            Verdict::Answered => "answered",
        }
    }
}

impl Describe for Verdict {
    fn schema(o: &mut Object<'_>) {
        one_of(o, Self::ALL.map(Verdict::name));
    }
}

/// Where an approval comes from.
#[derive(Debug)]
pub(crate) struct Source;

impl Describe for Source {
    fn schema(o: &mut Object<'_>) {
        one_of(o, ["terminal", "option", "policy"]);
    }
}

payload! {
    /// A person or a rule has answered whether a call may run. A record for people: it grants
    /// nothing to a later run.
    Approval<'a> {
        /// The id of its call.
        tool_id: Text<'a>,
        /// The tool's name.
        tool_name: Text<'a>,
        /// The hash of the call: of its stream, its id, the tool's name and definition, and the
        /// arguments.
        hash: Text<'a>,
        /// `approved` or `denied`.
        decision: Text<'a> as As<Verdict>,
        /// The name of the user who runs `tool-exec`, or the user's number.
        by: Text<'a>,
        /// How the answer was given: `terminal` (asked there), `option` (`--approve-call`,
        /// `--deny-call`) or `policy` (a rule).
        source: Text<'a> as As<Source>,
        /// Milliseconds since 1970.
        timestamp: Option<u64>,
    }
}

payload! {
    /// A call is about to run.
    ToolUse<'a> {
        /// The tool's name.
        tool_name: Text<'a>,
        /// The id of its call.
        tool_id: Text<'a>,
        /// Always `running`.
        status: Running,
        /// The arguments on one short line, for people.
        input_summary: Text<'a> as Loose,
        /// Milliseconds since 1970.
        timestamp: Option<u64>,
    }
}

payload! {
    /// A piece of a tool's output as it appears, or how far it has come.
    ToolProgress<'a> {
        /// The id of its call.
        tool_id: Text<'a>,
        /// The tool's name.
        tool_name: Text<'a>,
        /// How far it has come, from 0 to 1.
        progress: Option<f64>,
        /// A piece of output.
        text: Text<'a> as Loose,
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The tool did what it was asked for.
    Success,
    /// The tool failed.
    Error,
    /// The tool took too long.
    Timeout,
    /// A person or a rule refused the call.
    Denied,
    /// The call was retracted, or the run was stopped.
    Cancelled,
    /// The arguments cannot be used.
    Invalid,
    /// No tool has this name.
    UnknownTool,
    /// The call waits for an approval.
    Pending,
}

impl Status {
    const ALL: [Status; 8] = [
        Status::Success,
        Status::Error,
        Status::Timeout,
        Status::Denied,
        Status::Cancelled,
        Status::Invalid,
        Status::UnknownTool,
        Status::Pending,
    ];

    /// The value that is written.
    pub fn name(self) -> &'static str {
        match self {
            Status::Success => "success",
            Status::Error => "error",
            Status::Timeout => "timeout",
            Status::Denied => "denied",
            Status::Cancelled => "cancelled",
            Status::Invalid => "invalid",
            Status::UnknownTool => "unknown_tool",
            Status::Pending => "pending",
        }
    }

    /// The status of that name.
    pub fn of(name: &str) -> Option<Status> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}

impl Describe for Status {
    fn schema(o: &mut Object<'_>) {
        one_of(o, Self::ALL.map(Status::name));
    }
}

payload! {
    /// The result of a call.
    ToolResult<'a> {
        /// The id of its call.
        tool_id: Text<'a>,
        /// The tool's name.
        tool_name: Text<'a>,
        /// How the call ended: `success`, `error`, `timeout`, `denied`, `cancelled`, `invalid`,
        /// `unknown_tool` or `pending`.
        status: Text<'a> as As<Status>,
        /// What the model gets to read.
        output: Text<'a> as Loose,
        /// One line for people.
        output_summary: Text<'a> as Loose,
        /// Bytes of standard output, before anything was cut.
        output_bytes: u64,
        /// Some of the output is left out of `output`.
        truncated: bool,
        /// The file that holds the whole standard output, but for secrets.
        output_file: Option<Text<'a>>,
        /// The output is binary data, which `output` describes.
        binary: bool as Flag,
        /// It was taken from the cache.
        cached: bool,
        /// Some bytes were not UTF-8, or U+0000; each reads U+FFFD.
        replaced: bool as Flag,
        /// It was taken from the log.
        resumed: bool as Flag,
        /// The exit status of the command; 128 and the signal's number when a signal ended it.
        exit_code: Option<i64>,
        /// How long the command ran.
        duration_ms: Option<Millis>,
        /// Milliseconds since 1970.
        timestamp: Option<u64>,
        /// It is the turn's final answer.
        return_directly: bool as Flag,
        /// The hash of a pending call, with which a person's answer names it:
        /// `--approve-call ID:HASH`.
        hash: Option<Text<'a>>,
    }
}
