//! Messages in the format of the conventions: a role and parts, as JSON
//! (<https://github.com/open-telemetry/semantic-conventions-genai/blob/main/model/gen-ai/gen-ai-input-messages.json>).
//!
//! The size of contents is limited, since tracing systems reject spans of megabytes (the
//! collector's gRPC receiver accepts 4 MiB by default).

use conversation::{content, plain};
use event::{Object, Raw, cut, object};
use std::borrow::Cow;
use std::collections::VecDeque;

/// Maximum length in bytes of a text in a message, of arguments, of a result or of an error.
const TEXT: usize = 16 << 10;

/// Maximum size in bytes of the messages of one attribute.
const MESSAGES: usize = 128 << 10;

/// Truncates a text to [`TEXT`] bytes and adds its original length.
pub(super) fn shortened(text: &str) -> Cow<'_, str> {
    let kept = cut(text, TEXT);
    if kept.len() == text.len() {
        return text.into();
    }
    format!("{kept}… ({} bytes)", text.len()).into()
}

/// The messages of one attribute: the newest ones that fit into [`MESSAGES`] bytes.
#[derive(Debug, Default)]
pub(super) struct Messages {
    messages: VecDeque<String>,
    bytes: usize,
}

impl Messages {
    pub(super) fn push(&mut self, message: String) {
        self.bytes += message.len();
        self.messages.push_back(message);
        while self.bytes > MESSAGES
            && let Some(oldest) = self.messages.pop_front()
        {
            self.bytes -= oldest.len();
        }
    }

    /// Removes the messages and returns them as a JSON array; `None` for an empty list.
    pub(super) fn take(&mut self) -> Option<String> {
        let Messages { messages, .. } = std::mem::take(self);
        let messages = Vec::from(messages);
        (!messages.is_empty()).then(|| format!("[{}]", messages.join(",")))
    }
}

/// Formats a chat message of the protocol; `finish_reason` is set for the model's own message.
pub(super) fn message(message: Raw<'_>, finish_reason: Option<&str>) -> String {
    object(|o| {
        let role = message.get_str("role").unwrap_or_default();
        o.str("role", &role);
        o.array("parts", |parts| {
            let mut part = |kind: &str, text: &str| {
                if !text.is_empty() {
                    parts.object(|o| {
                        o.str("type", kind).str("content", &shortened(text));
                    });
                }
            };
            part("reasoning", &plain(message.get("reasoning")));
            if role == "tool" {
                parts.object(|o| {
                    o.str("type", "tool_call_response")
                        .maybe_str("id", message.get_str("tool_call_id").as_deref())
                        .str("response", &shortened(&content(message)));
                });
                return;
            }
            part("text", &content(message));
            part("text", &plain(message.get("refusal")));
            for call in message.list("tool_calls") {
                parts.object(|o| tool_call(o, call));
            }
        });
        o.maybe_str("finish_reason", finish_reason);
    })
}

fn tool_call(o: &mut Object<'_>, call: Raw<'_>) {
    o.str("type", "tool_call")
        .maybe_str("id", call.get_str("id").as_deref())
        .str("name", &plain(call.at(&["function", "name"])));
    let arguments = plain(call.at(&["function", "arguments"]));
    let kept = shortened(&arguments);
    match Raw::parse(&kept) {
        Ok(json) => o.minified("arguments", json.text()),
        Err(_) => o.str("arguments", &kept),
    };
}

#[cfg(test)]
mod tests {
    use super::{MESSAGES, TEXT};
    use crate::TraceView;
    use event::{Scanner, View};

    #[test]
    fn the_contents_of_a_span_have_a_limit_of_size() {
        let long = "é".repeat(100_000);
        let question =
            format!(r#"{{"type":"message","message":{{"role":"user","content":"{long}"}}}}"#);
        let mut log = vec![question; 100];
        log.push(r#"{"type":"stream_start"}"#.to_owned());
        log.push(format!(
            r#"{{"type":"tool_call","tool_id":"a","tool_name":"t","arguments":{{"x":"{long}"}}}}"#
        ));
        log.push(format!(
            r#"{{"type":"message","message":{{"role":"assistant","content":"{long}"}}}}"#
        ));
        log.push(format!(
            r#"{{"type":"warning","code":"tag_note","message":"{long}"}}"#
        ));
        log.push(r#"{"type":"stream_end","finish_reason":"tool_calls"}"#.to_owned());
        log.push(format!(
            r#"{{"type":"tool_result","tool_id":"a","tool_name":"t","status":"error","output":"{long}","output_summary":"{long}"}}"#
        ));
        let (mut scanner, mut view, mut out) =
            (Scanner::default(), TraceView::new(true), Vec::new());
        for line in &log {
            view.push(&scanner.read(line).unwrap(), &mut out);
        }
        view.finish(&mut out);
        let out = String::from_utf8(out).unwrap();
        // The messages are in the spans of the turn and of the stream. Seven further texts are
        // limited to `TEXT`.
        let most = 2 * MESSAGES + 7 * TEXT + 4096;
        assert!((MESSAGES..most).contains(&out.len()), "{}", out.len());
        for end in ["… (200000 bytes)", "… (200008 bytes)"] {
            assert!(out.contains(end), "{end}");
        }
        // The newest messages are kept, whole.
        let questions = out.matches(r#"{\"role\":\"user\""#).count();
        assert_eq!(questions, 2 * (MESSAGES / TEXT - 1), "{questions}");
    }
}
