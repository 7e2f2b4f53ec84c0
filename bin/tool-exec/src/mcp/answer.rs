//! Converts the result of a server's tool into the answer of a call.

use crate::store::Outputs;
use crate::task::Terms;
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;
use tool::{Status, ToolAnswer};

/// Base64 with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The error for a response that is not a tool result.
pub(super) const NO_RESULT: &str = "its answer is not the result of a tool";

/// Converts a `tools/call` result into an answer. Texts are joined. Each image, audio or binary
/// resource is written to a file and described in one line. Structured content is appended unless a
/// text already contains it: servers should also serialize it as text, but many write a summary
/// there instead
/// (<https://modelcontextprotocol.io/specification/2025-11-25/server/tools#structured-content>).
///
/// # Errors
/// If the value is not a tool result. A server's mistake must not look like a tool with empty
/// output.
pub(super) fn answer(result: &Value, terms: &Terms<'_>) -> Result<ToolAnswer, String> {
    if !is_result(result) {
        return Err(NO_RESULT.to_owned());
    }
    let content = result.get("content").and_then(Value::as_array);
    let mut parts: Vec<String> = content
        .into_iter()
        .flatten()
        .map(|part| text_of(part, terms.outputs))
        .collect();
    if let Some(structured) = result.get("structuredContent").filter(|s| !s.is_null())
        && !is_text(structured, &parts)
    {
        parts.retain(|part| !part.is_empty());
        parts.push(structured.to_string());
    }
    let output = parts.join("\n");
    let has_failed = result.get("isError").and_then(Value::as_bool) == Some(true);
    if has_failed && output.trim().is_empty() {
        return Ok(ToolAnswer::new(
            Status::Error,
            "The tool failed and did not say why.",
        ));
    }
    Ok(of_text(
        if has_failed {
            Status::Error
        } else {
            Status::Success
        },
        &output,
        terms,
    ))
}

/// Whether the texts contain the whole structured content: as the JSON of one text, or as the value
/// of its only member, or as the items of that value. The official Python library wraps values that
/// are not objects in `result`, and the official file system server repeats its texts in `content`.
fn is_text(structured: &Value, texts: &[String]) -> bool {
    let is_of = |text: &String, value: &Value| {
        value.as_str() == Some(text)
            || serde_json::from_str::<Value>(text).is_ok_and(|read| read == *value)
    };
    let members = structured.as_object().filter(|members| members.len() == 1);
    let wrapped = members.and_then(|members| members.values().next());
    let is_any = |value: &Value| texts.iter().any(|text| is_of(text, value));
    is_any(structured)
        || wrapped.is_some_and(|value| {
            let is_each = |items: &Vec<Value>| {
                items.len() == texts.len()
                    && items
                        .iter()
                        .zip(texts)
                        .all(|(item, text)| is_of(text, item))
            };
            is_any(value) || value.as_array().is_some_and(is_each)
        })
}

/// Whether a value is a valid `tools/call` result.
fn is_result(value: &Value) -> bool {
    value.is_object()
        && value.get("content").is_none_or(Value::is_array)
        && value.get("isError").is_none_or(Value::is_boolean)
}

/// Returns an answer with this text, which may come from the server.
pub(super) fn of_text(status: Status, text: &str, terms: &Terms<'_>) -> ToolAnswer {
    ToolAnswer {
        status,
        ..terms.readable(text.as_bytes())
    }
}

/// Returns one part of the content as text.
fn text_of(part: &Value, outputs: &Outputs) -> String {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let kind = text(part, "type").unwrap_or_default();
    match &*kind {
        "text" => text(part, "text").unwrap_or_default(),
        "image" | "audio" => describe(&kind, part, "data", outputs),
        "resource" => match part.get("resource") {
            Some(resource) => match text(resource, "text") {
                Some(inner) => inner,
                None => {
                    let uri = text(resource, "uri").unwrap_or_default();
                    describe(&format!("resource {uri}"), resource, "blob", outputs)
                }
            },
            None => "[a resource without content]".to_owned(),
        },
        "resource_link" => {
            let named = |key| {
                text(part, key)
                    .map(|value| format!(" {value}"))
                    .unwrap_or_default()
            };
            format!(
                "[a resource:{}{}{}]",
                named("uri"),
                named("name"),
                named("mimeType")
            )
        }
        _ => part.to_string(),
    }
}

/// Describes a binary part in one line: what it is, its size, and the file it was written to.
fn describe(what: &str, part: &Value, key: &str, outputs: &Outputs) -> String {
    let data = part.get(key).and_then(Value::as_str).unwrap_or_default();
    let media = part
        .get("mimeType")
        .and_then(Value::as_str)
        .unwrap_or("of an unknown type");
    let Ok(bytes) = BASE64.decode(data) else {
        return format!("[{what}: {media}, which is not readable as base64]");
    };
    let length = bytes.len();
    match outputs.keep(&bytes, extension(media)) {
        Ok(path) => format!("[{what}: {media}, {length} bytes, in the file {path}]"),
        Err(why) => format!("[{what}: {media}, {length} bytes, not kept: {why}]"),
    }
}

/// Returns the file name extension for a media type: the part after the slash (`image/png`),
/// without a suffix (`image/svg+xml`).
fn extension(media: &str) -> &str {
    let media = media.split(';').next().unwrap_or_default().trim();
    match media {
        "image/jpeg" => "jpg",
        "audio/mpeg" => "mp3",
        "text/plain" => "txt",
        _ => media
            .split_once('/')
            .map_or("", |(_, kind)| kind.split('+').next().unwrap_or_default()),
    }
}
