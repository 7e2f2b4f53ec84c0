//! What came of a call: the text for the model, the line for people, and the events.

use event::{Event, Kind, Object, Payload};
use std::borrow::Cow;
use std::time::Duration;

/// How long a summary may be, in characters.
pub const SUMMARY: usize = 120;

/// The `status` of a `tool_result`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants are the values of `status`")]
pub enum Status {
    Success,
    Error,
    Timeout,
    Denied,
    Cancelled,
    Invalid,
    UnknownTool,
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

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// How it ended.
    pub status: Status,
    /// What the model gets to read.
    pub output: String,
    /// How much the command wrote to its standard output, in bytes, before anything was cut or replaced.
    pub output_bytes: u64,
    /// Whether output was cut.
    pub truncated: bool,
    /// Whether some bytes were no UTF-8, or U+0000: each of them reads U+FFFD in `output`.
    pub replaced: bool,
    /// Whether it was taken from the cache.
    pub cached: bool,
    /// Whether it was taken from the log, where an earlier run had put it.
    pub resumed: bool,
    /// The exit status of the command; 128 and the signal's number when a signal ended it.
    pub exit_code: Option<i32>,
    /// How long the command ran.
    pub duration: Option<Duration>,
    /// Whether this is the turn's final answer.
    pub return_directly: bool,
}

impl Answer {
    /// An answer of our own, without a command.
    pub fn new(status: Status, output: impl Into<String>) -> Self {
        let output = output.into();
        Answer {
            status,
            output_bytes: 0,
            output,
            truncated: false,
            replaced: false,
            cached: false,
            resumed: false,
            exit_code: None,
            duration: None,
            return_directly: false,
        }
    }

    /// Reads a `tool_result` of a log. `None` for one that is no answer: `pending`, or without a known status.
    pub fn read(event: &Event<'_>) -> Option<Self> {
        let status = Status::of(&event.get_str("status")?).filter(|status| *status != Status::Pending)?;
        let flag = |key| event.get(key).and_then(event::Raw::bool).unwrap_or(false);
        let number = |key| event.get(key).and_then(event::Raw::i64);
        Some(Answer {
            output_bytes: number("output_bytes").and_then(|n| u64::try_from(n).ok()).unwrap_or(0),
            truncated: flag("truncated"),
            replaced: flag("replaced"),
            cached: flag("cached"),
            resumed: true,
            exit_code: number("exit_code").and_then(|n| i32::try_from(n).ok()),
            duration: None,
            return_directly: flag("return_directly"),
            ..Answer::new(status, event.get_str("output").unwrap_or_default())
        })
    }

    /// Whether it ends the turn.
    pub fn is_final(&self) -> bool {
        self.return_directly && self.status == Status::Success
    }
}

/// Bytes of a command as text: what is no UTF-8, and U+0000, becomes U+FFFD. Gives whether anything did.
pub fn text(bytes: &[u8]) -> (String, bool) {
    let text = String::from_utf8_lossy(bytes);
    let replaced = matches!(text, Cow::Owned(_)) || text.contains('\0');
    (if replaced { text.replace('\0', "\u{fffd}") } else { text.into_owned() }, replaced)
}

/// The first line of `text` that is not blank, for people: control characters as spaces, cut at [`SUMMARY`] characters, with the
/// number of lines that follow.
pub fn one_line(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let more = lines.count();
    let more = if more > 0 { format!(" (+{more} lines)") } else { String::new() };
    let room = SUMMARY - more.len();
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    if first.chars().nth(room).is_none() {
        return first.chars().map(plain).collect::<String>() + &more;
    }
    first.chars().take(room - 1).map(plain).chain(['…']).collect::<String>() + &more
}

/// `tool_use`: a call is about to run.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are those of the event")]
pub struct ToolUse<'a> {
    pub tool_name: &'a str,
    pub tool_id: &'a str,
    pub input_summary: &'a str,
    /// Milliseconds since 1970; `None` under `--no-time`.
    pub timestamp: Option<u64>,
}

impl Payload for ToolUse<'_> {
    fn kind(&self) -> Kind {
        Kind::ToolUse
    }

    fn fields(&self, o: &mut Object<'_>) {
        o.str("tool_name", self.tool_name).str("tool_id", self.tool_id).str("status", "running");
        o.str("input_summary", self.input_summary);
        if let Some(now) = self.timestamp {
            o.int("timestamp", now);
        }
    }
}

/// `tool_progress`: a piece of output as it appears.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are those of the event")]
pub struct ToolProgress<'a> {
    pub tool_id: &'a str,
    pub tool_name: &'a str,
    pub text: &'a str,
}

impl Payload for ToolProgress<'_> {
    fn kind(&self) -> Kind {
        Kind::ToolProgress
    }

    fn fields(&self, o: &mut Object<'_>) {
        o.str("tool_id", self.tool_id).str("tool_name", self.tool_name).str("text", self.text);
    }
}

/// `tool_result`: what came of a call.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are those of the event")]
pub struct ToolResult<'a> {
    pub tool_id: &'a str,
    pub tool_name: &'a str,
    pub answer: &'a Answer,
    /// Milliseconds since 1970; `None` under `--no-time`, which leaves out the duration too.
    pub timestamp: Option<u64>,
}

impl Payload for ToolResult<'_> {
    fn kind(&self) -> Kind {
        Kind::ToolResult
    }

    fn fields(&self, o: &mut Object<'_>) {
        let a = self.answer;
        o.str("tool_id", self.tool_id).str("tool_name", self.tool_name).str("status", a.status.name());
        o.str("output", &a.output).str("output_summary", &one_line(&a.output)).int("output_bytes", a.output_bytes);
        o.bool("truncated", a.truncated).bool("cached", a.cached);
        for (key, set) in [("replaced", a.replaced), ("resumed", a.resumed)] {
            if set {
                o.bool(key, true);
            }
        }
        if let Some(code) = a.exit_code {
            o.int("exit_code", code);
        }
        if let Some(now) = self.timestamp {
            if let Some(duration) = a.duration {
                o.millis("duration_ms", u64::try_from(duration.as_micros()).unwrap_or(u64::MAX));
            }
            o.int("timestamp", now);
        }
        if a.return_directly {
            o.bool("return_directly", true);
        }
    }
}

/// The chat message that answers a call, as JSON on one line.
pub fn message(tool_id: &str, tool_name: &str, answer: &Answer) -> String {
    let mut out = Vec::with_capacity(answer.output.len() + 128);
    let mut o = Object::open(&mut out);
    o.str("role", "tool").str("tool_call_id", tool_id).str("name", tool_name).str("content", &answer.output);
    o.close();
    String::from_utf8(out).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::Scanner;

    #[test]
    fn summaries_are_one_short_line() {
        assert_eq!(one_line("\n  a\tb\u{1b}[2J\nc\n\nd\n"), "a b [2J (+2 lines)");
        assert_eq!(one_line(""), "");
        let long = one_line(&format!("{}\nx", "é".repeat(500)));
        assert_eq!(long.chars().count(), SUMMARY);
        assert!(long.ends_with("é… (+1 lines)"));
        assert_eq!(one_line(&"x".repeat(SUMMARY)), "x".repeat(SUMMARY));
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced_and_flagged() {
        assert_eq!(text(b"a\0b\xffc"), ("a\u{fffd}b\u{fffd}c".to_owned(), true));
        assert_eq!(text("é\n".as_bytes()), ("é\n".to_owned(), false));
    }

    #[test]
    fn a_result_reads_back_as_it_was_written() {
        let mut answer = Answer::new(Status::Error, "one\n{\"type\":\"tool_result\"}");
        (answer.output_bytes, answer.exit_code, answer.truncated, answer.return_directly) = (7, Some(3), true, true);
        let mut line = Vec::new();
        event::payload::line(
            &mut line,
            &ToolResult { tool_id: "i", tool_name: "n", answer: &answer, timestamp: None },
            None,
            0,
            None,
        );
        let line = String::from_utf8(line).unwrap();
        let mut scanner = Scanner::default();
        let read = Answer::read(&scanner.read(&line).unwrap()).unwrap();
        assert_eq!(read, Answer { resumed: true, ..answer });
        assert!(Answer::read(&scanner.read(r#"{"type":"tool_result","status":"pending"}"#).unwrap()).is_none());
    }
}
