//! Calls: their deltas, the decision of a checker, and their runs.

use super::field::*;

/// The next fragment of a call's arguments. An object counts as its text.
#[derive(Debug)]
pub(crate) struct Fragment;

impl<'a> Codec<'a, Option<Text<'a>>> for Fragment {
    const ALWAYS: bool = false;
    const SCHEMA: &'static str = r#""type":["string","object"]"#;

    #[inline]
    fn read(value: Raw<'a>) -> Option<Text<'a>> {
        Text::of(value).or_else(|| value.is_object().then(|| value.text().into()))
    }

    #[inline(always)]
    fn read_member(member: LineMember<'a>) -> Option<Text<'a>> {
        match Text::of_member(member) {
            None => other_fragment(member),
            text => text,
        }
    }

    #[inline]
    fn write(value: &Option<Text<'a>>, key: &'static str, o: &mut Object<'_>) {
        PlainField::write(value, key, o);
    }
}

/// Reads a fragment that is not a string.
#[cold]
#[inline(never)]
fn other_fragment(member: LineMember<'_>) -> Option<Text<'_>> {
    Fragment::read(member.value())
}

payload! {
    /// The next piece of a tool call.
    ToolCallDelta<'a> {
        /// The provider's label for the call; not a position.
        index: Option<i64>,
        /// The provider's id of the call.
        tool_id: Option<Text<'a>>,
        /// The tool's name, or a piece of it.
        tool_name: Option<Text<'a>>,
        /// The next fragment of the arguments, never the text so far. An object counts as its text.
        arguments: Option<Text<'a>> as Fragment,
        /// The provider closed the call's block.
        done: bool as Flag,
        /// The call was written as text: in its first event.
        from_text: bool as Flag,
        /// Opaque data that must go back to the same provider.
        provider: Option<Json<'a>>,
    }
}

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

words! {
    /// How certain it is that a call is complete.
    #[derive(PartialOrd, Ord)]
    Commit {
        /// The top-level `{…}` of the arguments has closed.
        Balanced = "balanced",
        /// The provider closed the call's block, or a later call began after this one was balanced.
        Sealed = "sealed",
        /// The stream ended with a finish reason that means the model had finished.
        Final = "final",
    }
}

/// A call's arguments: an object, or `null`.
#[derive(Debug)]
pub(crate) struct ArgumentsField;

impl<'a> Codec<'a, Option<Json<'a>>> for ArgumentsField {
    const ALWAYS: bool = true;
    const SCHEMA: &'static str = r#""type":["object","null"]"#;

    fn read(value: Raw<'a>) -> Option<Json<'a>> {
        Json::read(value)
    }

    fn write(value: &Option<Json<'a>>, key: &'static str, o: &mut Object<'_>) {
        value.unwrap_or_default().write(o.member(key));
    }
}

words! {
    /// What is wrong with a call that must not run.
    CallErrorCode {
        /// Its arguments were cut.
        Incomplete = "incomplete",
        /// Its arguments are not a JSON object.
        InvalidJson = "invalid_json",
        /// Its arguments do not fit the schema of the tool.
        Schema = "schema",
        /// It has no name.
        NoName = "no_name",
    }
}

/// Why a call must not run.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallError<'a> {
    /// The word of a [`CallErrorCode`].
    pub code: Text<'a>,
    /// A sentence that a model or a person can act on.
    pub message: Text<'a>,
}

impl<'a> FieldValue<'a> for CallError<'a> {
    const SCHEMA: &'static str = r#""type":"object","properties":{"code":{"type":"string"},"message":{"type":"string"}},
        "required":["code","message"]"#;

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
}

words! {
    /// What an edit of a repair does.
    RepairKind {
        /// A comment was removed.
        Comment = "comment",
        /// A value was taken out of a JSON string.
        DoubleEncoded = "double_encoded",
        /// An end tag behind the arguments was removed.
        EndTag = "end_tag",
        /// Characters inside a string were escaped, their escapes mended, or escapes between values
        /// removed.
        Escape = "escape",
        /// A bracket too many was removed.
        ExtraBracket = "extra_bracket",
        /// A code fence around the arguments was removed.
        Fence = "fence",
        /// A word such as `True` or `None` became a JSON literal.
        Literal = "literal",
        /// A bracket was added.
        MissingBracket = "missing_bracket",
        /// A colon was added.
        MissingColon = "missing_colon",
        /// A comma was added.
        MissingComma = "missing_comma",
        /// A number was written as JSON has it.
        Number = "number",
        /// Quotes were added or mended.
        Quotes = "quotes",
        /// Single quotes became double quotes.
        SingleQuotes = "single_quotes",
        /// Other text was added.
        TextAdded = "text_added",
        /// Other text was removed.
        TextRemoved = "text_removed",
        /// Other text was replaced.
        TextReplaced = "text_replaced",
        /// A trailing comma was removed.
        TrailingComma = "trailing_comma",
        /// A key got its quotes.
        UnquotedKey = "unquoted_key",
        /// A string got its quotes.
        UnquotedString = "unquoted_string",
        /// White space around the arguments was removed.
        WhiteSpace = "white_space",
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
        arguments: Option<Json<'a>> as ArgumentsField,
        /// How certain it is that the call is complete; absent with an error.
        commit: Option<Commit>,
        /// The edits of a repair: a list of `{offset, kind, before, after}`.
        repairs: Option<Json<'a>> = r#""type":"array","items":{"type":"object","properties":{"offset":{"type":"integer","minimum":0},
            "kind":{"type":"string"},"before":{"type":"string"},"after":{"type":"string"}}}"#,
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
        arguments: Option<Json<'a>> as ArgumentsField,
    }
}

words! {
    /// Why a call that was begun or emitted does not hold.
    RetractReason {
        /// The stream has failed.
        StreamFailed = "stream_failed",
        /// The text that looked like a call is not a call.
        Unparsed = "unparsed",
        /// The call turned out to be inside reasoning.
        Reasoning = "reasoning",
        /// The provider's own calls take the place of the calls in the text.
        NativeCall = "native_call",
        /// The provider sent other arguments than its deltas had.
        ArgumentsReplaced = "arguments_replaced",
        /// The provider sent the pieces of the arguments in an order in which they cannot be written.
        ArgumentsReordered = "arguments_reordered",
        /// The provider began its message again.
        MessageRestarted = "message_restarted",
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

/// The status of a call that has begun to run: `running`.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunningStatus;

impl<'a> FieldValue<'a> for RunningStatus {
    const SCHEMA: &'static str = r#""const":"running""#;

    fn read(_: Raw<'a>) -> Option<Self> {
        Some(RunningStatus)
    }

    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\"running\"");
    }
}

words! {
    /// What a person or a rule answered to a call.
    #[derive(Default)]
    Verdict {
        /// The call may run.
        #[default]
        Approved = "approved",
        /// The call must not run.
        Denied = "denied",
        /// The call ran in an earlier run, and a person gives its result.
        Answered = "answered",
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
        decision: Text<'a> = Verdict::SCHEMA,
        /// The name of the user who runs `tool-exec`, or the user's number; for an answer over HTTP,
        /// who gave it.
        by: Text<'a>,
        /// How the answer was given: `terminal` (asked there), `option` (`--approve-call`,
        /// `--deny-call`), `policy` (a rule) or `http` (asked of `tc-serve`).
        source: Text<'a> = one_of!("terminal" "option" "policy" "http"),
        /// Why, in the words of the person who answered.
        reason: Option<Text<'a>>,
        /// Milliseconds since 1970.
        timestamp: Option<u64>,
    }
}

impl<'a> Approval<'a> {
    /// Who answered, for people: `the policy` where a rule did.
    pub fn answerer(&self) -> std::borrow::Cow<'a, str> {
        if self.source == "policy" {
            "the policy".into()
        } else {
            self.by.str()
        }
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
        status: RunningStatus,
        /// The arguments on one short line, for people.
        input_summary: Text<'a> as Loose,
        /// Milliseconds since 1970.
        timestamp: Option<u64>,
        /// The `traceparent` that was sent to the tool: names the span of this call.
        traceparent: Option<Text<'a>>,
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

words! {
    /// How a call ended.
    Status {
        /// The tool did what it was asked for.
        Success = "success",
        /// The tool failed.
        Error = "error",
        /// The tool took too long.
        Timeout = "timeout",
        /// A person or a rule refused the call.
        Denied = "denied",
        /// The call was retracted, or the run was stopped.
        Cancelled = "cancelled",
        /// The arguments cannot be used.
        Invalid = "invalid",
        /// No tool has this name.
        UnknownTool = "unknown_tool",
        /// The call waits for an approval.
        Pending = "pending",
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
        status: Text<'a> = Status::SCHEMA,
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
