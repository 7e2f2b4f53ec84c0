//! Messages in the form that the conventions give them: a role and parts, as JSON
//! (<https://github.com/open-telemetry/semantic-conventions-genai/blob/main/model/gen-ai/gen-ai-input-messages.json>).

use crate::escape::{content, plain};
use event::{Object, Raw, minify, object};

/// A chat message of the protocol; `finish_reason` is that of the model's own message.
pub(super) fn message(message: Raw<'_>, finish_reason: Option<&str>) -> String {
    object(|o| {
        let role = message.get_str("role").unwrap_or_default();
        o.str("role", &role);
        o.array("parts", |parts| {
            let mut part = |kind: &str, text: &str| {
                if !text.is_empty() {
                    parts.object(|o| {
                        o.str("type", kind).str("content", text);
                    });
                }
            };
            part("reasoning", &plain(message.get("reasoning")));
            if role == "tool" {
                parts.object(|o| {
                    o.str("type", "tool_call_response")
                        .maybe_str("id", message.get_str("tool_call_id").as_deref())
                        .str("response", &content(message));
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
    match Raw::parse(&arguments) {
        Ok(json) => o.minified("arguments", json.text()),
        Err(_) => o.str("arguments", &arguments),
    };
}

/// JSON values as one JSON array.
pub(super) fn list(values: &[String]) -> String {
    let mut out = Vec::new();
    minify(&mut out, &format!("[{}]", values.join(",")));
    String::from_utf8(out).unwrap_or_default()
}
