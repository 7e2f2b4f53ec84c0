//! Telling the API from a body.

use crate::Api;
use crate::framing::{Frame, Framing};
use event::Raw;

/// The API whose body begins with `bytes` (some KiB are enough; a cut last frame does no harm). `None` when nothing tells.
///
/// It goes by the first frame that has a mark of one API. What many servers share is [`Api::OpenaiChat`]; an error object alone
/// tells little, and is taken for the API whose envelope it has.
pub fn recognise(bytes: &[u8]) -> Option<Api> {
    let mut found = None;
    let mut error = None;
    let mut on = |frame: Frame<'_>| {
        let (name, text) = match frame {
            Frame::Event { name, data } => (name, data),
            Frame::Value(text) | Frame::Broken(text) => (None, text),
            Frame::Foreign { .. } | Frame::TooLong => return,
        };
        if found.is_none() {
            match Raw::parse(text) {
                Ok(data) => {
                    found = by_frame(name, data);
                    error = error.or_else(|| by_error(data));
                }
                Err(_) => found = by_beginning(text),
            }
        }
    };
    let mut framing = Framing::default();
    framing.push(bytes, &mut on);
    framing.finish(&mut on);
    let array = bytes.trim_ascii_start().starts_with(b"[");
    found.or(if array && error.is_some() { Some(Api::Gemini) } else { error })
}

/// The API that a frame has a mark of.
pub(crate) fn by_frame(name: Option<&str>, data: Raw<'_>) -> Option<Api> {
    let has = |key: &str| data.get(key).is_some();
    if let Some(choices) = data.get("choices").filter(|c| c.is_array()) {
        // Mistral's own service names its responses by 32 hex digits; its models elsewhere speak as their servers do.
        let id = data.get_str("id").unwrap_or_default();
        let model = data.get_str("model").unwrap_or_default();
        let hex = id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit());
        let parts = choices.items().any(|c| c.at(&["delta", "content"]).is_some_and(Raw::is_array));
        return Some(if (hex || parts) && model.contains("stral") { Api::Mistral } else { Api::OpenaiChat });
    }
    if has("candidates") || has("usageMetadata") || has("promptFeedback") {
        return Some(Api::Gemini);
    }
    if data.get_str("object").is_some_and(|o| o == "response") {
        return Some(Api::OpenaiResponses);
    }
    if has("messageStart") || has("contentBlockStart") || has("contentBlockDelta") {
        return Some(Api::Anthropic);
    }
    if has("done") && (has("message") || has("response")) && has("model") {
        return Some(Api::Ollama);
    }
    let kind = data.get_str("type");
    match kind.as_deref().or(name) {
        Some(
            "message_start"
            | "message_delta"
            | "message_stop"
            | "content_block_start"
            | "content_block_delta"
            | "content_block_stop"
            | "ping",
        ) => Some(Api::Anthropic),
        Some("message") if has("content") => Some(Api::Anthropic),
        Some(
            "message-start" | "content-start" | "content-delta" | "tool-plan-delta" | "tool-call-start" | "message-end",
        ) => Some(Api::Cohere),
        Some(kind) if kind.starts_with("response.") => Some(Api::OpenaiResponses),
        None if data.at(&["message", "role"]).is_some() && has("finish_reason") => Some(Api::Cohere),
        _ => None,
    }
}

/// The envelopes that errors come in.
fn by_error(data: Raw<'_>) -> Option<Api> {
    let is_error = data.get_str("type").is_some_and(|t| t == "error");
    let error = data.get("error");
    match error {
        Some(_) if is_error => Some(Api::Anthropic),
        Some(error) if error.is_str() => Some(Api::Ollama),
        Some(error) if error.get("status").is_some_and(Raw::is_str) => Some(Api::Gemini),
        Some(_) => Some(Api::OpenaiChat),
        None if is_error => Some(Api::OpenaiResponses),
        None => None,
    }
}

/// A value of which only the beginning is there: the first of these names that stands in it as a string. A quote inside a
/// text is escaped, so that no text can look like one.
fn by_beginning(text: &str) -> Option<Api> {
    let names = [
        ("\"choices\"", Api::OpenaiChat),
        ("\"candidates\"", Api::Gemini),
        ("\"response\"", Api::OpenaiResponses),
        ("\"type\":\"message\"", Api::Anthropic),
        ("\"type\": \"message\"", Api::Anthropic),
        ("\"created_at\"", Api::Ollama),
        ("\"tool_plan\"", Api::Cohere),
    ];
    names
        .into_iter()
        .filter_map(|(name, api)| Some((text.find(name)?, api)))
        .min_by_key(|(at, _)| *at)
        .map(|(_, api)| api)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_api_has_its_mark() {
        for (body, api) in [
            (": hello\n\ndata: {\"id\":\"x\",\"choices\":[]}\n\n", Api::OpenaiChat),
            (
                "data: {\"id\":\"0123456789abcdef0123456789abcdef\",\"model\":\"mistral-small\",\"choices\":[]}\n\n",
                Api::Mistral,
            ),
            ("event: response.created\ndata: {\"type\":\"response.created\"}\n\n", Api::OpenaiResponses),
            ("event: message_start\ndata: {\"type\":\"message_start\"}\n\n", Api::Anthropic),
            ("event: message-start\ndata: {\"type\":\"message-start\",\"id\":\"1\"}\n\n", Api::Cohere),
            ("data: {\"candidates\":[]}\r\n\r\n", Api::Gemini),
            ("[{\n  \"candidates\": [\n    {\"content\": {\"parts\": [", Api::Gemini),
            ("[{\"error\":{\"code\":400,\"message\":\"m\"}}]", Api::Gemini),
            (
                "{\"model\":\"m\",\"created_at\":\"t\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":false}\n",
                Api::Ollama,
            ),
            ("{\"id\":\"x\",\"object\":\"response\",\"output\":[", Api::OpenaiResponses),
            ("{\"id\":\"x\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[", Api::Anthropic),
            ("{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"m\"}}", Api::Anthropic),
            ("{\"error\":{\"message\":\"m\",\"type\":\"t\"}}", Api::OpenaiChat),
            ("{\"id\":\"x\",\"finish_reason\":\"COMPLETE\",\"message\":{\"role\":\"assistant\"}}", Api::Cohere),
        ] {
            assert_eq!(recognise(body.as_bytes()), Some(api), "{body}");
        }
        for body in ["", "<html>", "data: [DONE]\n\n", "{\"a\":1}"] {
            assert_eq!(recognise(body.as_bytes()), None, "{body}");
        }
    }
}
