//! The answer to a call: the text for the model, the line for people, and the events.

pub use event::payload::Status;

use super::reference::CallHash;
use event::payload::{Millis, ToolResult};
use event::{Event, Object};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::time::Duration;

/// The answer to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolAnswer {
    /// How the call ended.
    pub status: Status,
    /// The text that the model reads.
    pub output: String,
    /// The number of bytes that the command wrote to its standard output, before the output was
    /// shortened or replaced.
    pub output_bytes: u64,
    /// Whether `output` lacks a part of the whole output.
    pub truncated: bool,
    /// Whether the output is binary data, which `output` only describes.
    pub binary: bool,
    /// The file with the whole standard output, from which secrets were removed.
    pub output_file: Option<String>,
    /// Whether U+FFFD replaces bytes in `output`: those that were not UTF-8, and U+0000.
    pub replaced: bool,
    /// Whether the answer comes from the cache.
    pub cached: bool,
    /// Whether the answer comes from the log of an earlier run.
    pub resumed: bool,
    /// The exit status of the command, or 128 plus the signal number if a signal ended it.
    pub exit_code: Option<i32>,
    /// How long the command ran.
    pub duration: Option<Duration>,
    /// Whether the tool's successful result is the turn's final answer.
    pub return_directly: bool,
    /// The hash of a call that waits for a person.
    pub hash: Option<CallHash>,
}

impl ToolAnswer {
    /// Creates an answer to a call that ran no command.
    pub fn new(status: Status, output: impl Into<String>) -> Self {
        let output = output.into();
        ToolAnswer {
            status,
            output_bytes: 0,
            output,
            truncated: false,
            binary: false,
            output_file: None,
            replaced: false,
            cached: false,
            resumed: false,
            exit_code: None,
            duration: None,
            return_directly: false,
            hash: None,
        }
    }

    /// Reads a `tool_result` of a log to answer the same call in this run. Returns `None` if its
    /// status is unknown or is `pending`, which does not answer the call.
    pub fn read(event: &Event<'_>) -> Option<Self> {
        let answer = Self::recorded(event).filter(|answer| answer.status != Status::Pending)?;
        Some(ToolAnswer {
            resumed: true,
            duration: None,
            hash: None,
            ..answer
        })
    }

    /// Reads a `tool_result` exactly as the earlier run wrote it. Returns `None` if its status is
    /// unknown.
    pub(crate) fn recorded(event: &Event<'_>) -> Option<Self> {
        let result = ToolResult::read(event);
        let duration = result.duration_ms;
        Some(ToolAnswer {
            output_bytes: result.output_bytes,
            truncated: result.truncated,
            binary: result.binary,
            output_file: result.output_file.map(|path| path.str().into_owned()),
            replaced: result.replaced,
            cached: result.cached,
            resumed: result.resumed,
            exit_code: result.exit_code.and_then(|n| i32::try_from(n).ok()),
            duration: duration.map(|time| Duration::from_micros(time.micros)),
            return_directly: result.return_directly,
            hash: result.hash.and_then(|hash| CallHash::read(&hash.str())),
            ..ToolAnswer::new(Status::of(&result.status.str())?, result.output.str())
        })
    }

    /// Returns the event that reports the answer. `summary` is [`one_line`](crate::one_line) of the
    /// output. `timestamp` is in milliseconds since 1970, or `None` under `--no-time`, which also
    /// omits the duration.
    pub fn event<'a>(
        &'a self,
        tool_id: &'a str,
        tool_name: &'a str,
        summary: &'a str,
        timestamp: Option<u64>,
    ) -> ToolResult<'a> {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        ToolResult {
            tool_id: tool_id.into(),
            tool_name: tool_name.into(),
            status: self.status.name().into(),
            output: (&self.output).into(),
            output_summary: summary.into(),
            output_bytes: self.output_bytes,
            truncated: self.truncated,
            output_file: self.output_file.as_deref().map(Into::into),
            binary: self.binary,
            cached: self.cached,
            replaced: self.replaced,
            resumed: self.resumed,
            exit_code: self.exit_code.map(Into::into),
            duration_ms: timestamp.and(self.duration).map(|time| Millis {
                micros: micros(time),
            }),
            timestamp,
            return_directly: self.return_directly,
            hash: self.hash.as_ref().map(|hash| hash.as_str().into()),
        }
    }

    /// Whether the answer ends the turn.
    pub fn is_final(&self) -> bool {
        self.return_directly && self.status == Status::Success
    }
}

/// Converts a command's output to text: U+FFFD replaces bytes that are not UTF-8, and U+0000.
/// Returns the text and whether anything was replaced.
pub fn text(bytes: &[u8]) -> (String, bool) {
    let text = String::from_utf8_lossy(bytes);
    let replaced = matches!(text, Cow::Owned(_)) || is_replaced(&text);
    (
        if replaced {
            text.replace('\0', "\u{fffd}")
        } else {
            text.into_owned()
        },
        replaced,
    )
}

/// Whether [`text`] would replace a character of `text`.
pub(crate) fn is_replaced(text: &str) -> bool {
    text.contains('\0')
}

/// Returns the chat message that answers a call, as one line of JSON.
pub fn message(tool_id: &str, tool_name: &str, answer: &ToolAnswer) -> String {
    let mut out = Vec::with_capacity(answer.output.len() + 128);
    let mut o = Object::open(&mut out);
    o.str("role", "tool")
        .str("tool_call_id", tool_id)
        .str("name", tool_name)
        .str("content", &answer.output);
    o.close();
    String::from_utf8(out).unwrap_or_default()
}

// Calls without a result from their tool, and whether the tool may have acted anyway.

/// The note for the model about a call that may have acted.
const MAY_HAVE_RUN: &str = "The call may have acted; look before you repeat it.";

/// Whether a call without a result may have acted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MayHaveRun {
    /// No byte of the call was sent, and no command was started.
    No,
    /// Part of the call was sent, or its command may have started.
    Maybe,
    /// The other side answered that the call failed. Its own message says what it did.
    Answered,
}

/// Why a call has no result from its tool. Once the first byte of its request was sent or the first
/// process of its command was started, the call may have acted, so no answer may claim that the
/// call did not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallFailure {
    /// The reason, for the model.
    pub why: String,
    /// Whether the call may have acted.
    pub ran: MayHaveRun,
}

impl CallFailure {
    /// Creates the failure of a call that did not run.
    pub fn not_run(why: impl Into<String>) -> Self {
        let why = why.into();
        CallFailure {
            why,
            ran: MayHaveRun::No,
        }
    }

    /// Creates the failure of a call that may have acted.
    pub fn may_have_run(why: impl Into<String>) -> Self {
        let why = why.into();
        CallFailure {
            why,
            ran: MayHaveRun::Maybe,
        }
    }

    /// Returns the answer to the call.
    pub fn answer(&self, status: Status) -> ToolAnswer {
        self.within(ToolAnswer::new(status, &*self.why))
    }

    /// Returns `answer`, whose output is the reason. If the call may have acted, a note that says so
    /// is appended to the output.
    pub fn within(&self, answer: ToolAnswer) -> ToolAnswer {
        if self.ran != MayHaveRun::Maybe {
            return answer;
        }
        let why = answer.output.trim_end();
        // Put the note on its own line after a text of several lines, which may be a program's
        // output.
        let between = match why {
            why if why.contains('\n') => "\n",
            why if why.ends_with(['.', '!', '?']) => " ",
            _ => ". ",
        };
        ToolAnswer {
            output: format!("{why}{between}{MAY_HAVE_RUN}"),
            ..answer
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::Scanner;

    #[test]
    fn bytes_that_are_no_text_are_replaced_and_flagged() {
        assert_eq!(text(b"a\0b\xffc"), ("a\u{fffd}b\u{fffd}c".to_owned(), true));
        assert_eq!(text("é\n".as_bytes()), ("é\n".to_owned(), false));
    }

    #[test]
    fn a_result_reads_back_as_it_was_written() {
        let mut answer = ToolAnswer::new(Status::Error, "one\n{\"type\":\"tool_result\"}");
        (
            answer.output_bytes,
            answer.exit_code,
            answer.truncated,
            answer.return_directly,
        ) = (7, Some(3), true, true);
        (answer.binary, answer.output_file) = (true, Some("/a \"b\".txt".to_owned()));
        let mut line = Vec::new();
        event::payload::line(
            &mut line,
            &answer.event("i", "n", "one", None).into(),
            None,
            0,
            None,
        );
        let line = String::from_utf8(line).unwrap();
        let mut scanner = Scanner::default();
        let read = ToolAnswer::read(&scanner.read(&line).unwrap()).unwrap();
        assert_eq!(
            read,
            ToolAnswer {
                resumed: true,
                ..answer
            }
        );
        assert!(
            ToolAnswer::read(
                &scanner
                    .read(r#"{"type":"tool_result","status":"pending"}"#)
                    .unwrap()
            )
            .is_none()
        );
    }
}

#[cfg(test)]
mod failure_tests {
    use super::*;

    #[test]
    fn only_a_call_that_may_have_run_says_so() {
        let text = |failure: CallFailure| failure.answer(Status::Error).output;
        assert_eq!(text(CallFailure::not_run("No.")), "No.");
        assert_eq!(
            text(CallFailure {
                why: "No.".to_owned(),
                ran: MayHaveRun::Answered
            }),
            "No."
        );
        assert_eq!(
            text(CallFailure::may_have_run("No.")),
            format!("No. {MAY_HAVE_RUN}")
        );
        assert_eq!(
            text(CallFailure::may_have_run("no")),
            format!("no. {MAY_HAVE_RUN}")
        );
        assert_eq!(
            text(CallFailure::may_have_run("a\nb\n")),
            format!("a\nb\n{MAY_HAVE_RUN}")
        );
    }
}
