//! Converts a client's `RunAgentInput` to a conversation. Source: `RunAgentInputSchema` in the
//! package `@ag-ui/core`, version 1.0.0, in `dist/schemas.mjs`.

use crate::inbound::draft::{AssistantDraft, InboundNotes, file, image, message, result, text};
use crate::inbound::request::{ClientApproval, InboundError, InboundRequest};
use crate::members::{GetText, Take};
use crate::ui::step::UiAsk;
use crate::ui::{Chat, ChatMessage};
use serde_json::{Map, Value};

/// Parses the body.
///
/// # Errors
/// See [`crate::inbound`].
pub(crate) fn read(
    mut body: Map<String, Value>,
    mut notes: InboundNotes,
) -> Result<InboundRequest, InboundError> {
    // AG-UI has no members for the model and its settings.
    let settings = match body.take_member("forwardedProps") {
        Some(Value::Object(settings)) => settings,
        _ => Map::new(),
    };
    let tools = body.take_member("tools");
    let mut request = InboundRequest::begin_ui(settings, tools.as_ref(), None, &mut notes);
    request.approvals = body.list_of("resume").iter().filter_map(approval).collect();
    let mut chat = Chat {
        id: body.take_text("threadId").unwrap_or_default(),
        run: body.take_text("runId"),
        ..Chat::default()
    };
    let mut talk = Vec::new();
    let fact = |fact: &Value| {
        let (name, value) = (fact.text_of("description")?, fact.text_of("value")?);
        Some(format!("{name}: {value}"))
    };
    let facts: Vec<String> = body.list_of("context").iter().filter_map(fact).collect();
    if !facts.is_empty() {
        talk.push(message("system", vec![text(&facts.join("\n"))]));
    }
    let before = talk.len();
    let mut draft = AssistantDraft::default();
    for (at, value) in body.list_of("messages").iter().enumerate() {
        let role = value.text_of("role").unwrap_or_default();
        // A turn's reasoning is a separate message before the turn's answer.
        if role != "assistant" && role != "reasoning" {
            talk.extend(draft.take());
        }
        chat.messages.push(ChatMessage {
            id: value.text_of("id").unwrap_or_default().to_owned(),
            is_answer: !matches!(role, "user" | "system" | "developer"),
            first: talk.len(),
        });
        match role {
            "system" | "developer" => talk.push(message("system", content(value))),
            "user" => talk.push(message("user", content(value))),
            "reasoning" => {
                let data = value.text_of("encryptedValue");
                let data = data.and_then(|data| serde_json::from_str(data).ok());
                let words = value.text_of("content").unwrap_or_default();
                draft.think(words, data.filter(Value::is_object));
            }
            "assistant" => {
                draft.say(value.text_of("content").unwrap_or_default());
                for call in value.list_of("toolCalls") {
                    let id = call.text_of("id").unwrap_or_default();
                    let function = call.get("function");
                    let part = |name: &str| function.and_then(|function| function.text_of(name));
                    if let (false, Some(name)) = (id.is_empty(), part("name")) {
                        draft.call(id, name, part("arguments").unwrap_or("{}"), None);
                    }
                }
                talk.extend(draft.take());
            }
            "tool" => {
                let id = value.text_of("toolCallId").unwrap_or_default();
                talk.push(result(id, content(value)));
            }
            "activity" => {}
            _ => notes.unknown_role("messages", at, role),
        }
    }
    talk.extend(draft.take());
    let is_empty = talk.len() == before;
    request.chat = Some(Box::new(chat));
    request.end(talk, "messages", is_empty, notes)
}

/// Parses the answer to an interrupt.
fn approval(entry: &Value) -> Option<ClientApproval> {
    let (call, hash) = UiAsk::call_and_hash(entry.text_of("interruptId")?)?;
    let payload = entry.get("payload");
    let is_refused =
        payload.and_then(|payload| payload.get("approved")) == Some(&Value::Bool(false));
    let reason = payload.and_then(|payload| payload.text_of("reason"));
    Some(ClientApproval {
        call_id: call.to_owned(),
        is_approved: entry.text_of("status") == Some("resolved") && !is_refused,
        reason: reason.map(str::to_owned),
        hash: Some(hash.to_owned()),
    })
}

/// Parses the content of a message: a string or parts.
fn content(message: &Value) -> Vec<Value> {
    match message.get("content") {
        Some(Value::String(words)) => vec![text(words)],
        Some(Value::Array(parts)) => parts.iter().filter_map(part).collect(),
        _ => Vec::new(),
    }
}

/// Converts a content part.
fn part(part: &Value) -> Option<Value> {
    let kind = part.text_of("type")?;
    if kind == "text" {
        return part.text_of("text").map(text);
    }
    let source = part.get("source")?;
    let value = source.text_of("value").or_else(|| source.text_of("url"))?;
    let is_data = source.text_of("type") == Some("data");
    let url = match source.text_of("mimeType").filter(|_| is_data) {
        Some(mime) => format!("data:{mime};base64,{value}"),
        None => value.to_owned(),
    };
    Some(match kind {
        "image" => image(&url, None),
        _ if is_data => file("file_data", &url, None),
        _ => file("file_url", &url, None),
    })
}
