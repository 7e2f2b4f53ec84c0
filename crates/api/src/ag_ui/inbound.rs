//! A client's request: `RunAgentInput` into a conversation. Source: `RunAgentInputSchema` of the
//! package `@ag-ui/core`, version 1.0.0, in `dist/schemas.mjs`.

use crate::inbound::draft::{
    AssistantDraft, InboundNotes, file, image, message, quoted, result, text,
};
use crate::inbound::parameters::keep_settings;
use crate::inbound::request::{ClientApproval, InboundError, InboundRequest};
use crate::members::GetText;
use crate::ui::{Chat, ChatMessage, ChatTrigger};
use serde_json::{Map, Value};

/// Reads the body.
///
/// # Errors
/// A body without messages, or whose `messages` is not a list.
pub(crate) fn read(
    mut body: Map<String, Value>,
    mut notes: InboundNotes,
) -> Result<InboundRequest, InboundError> {
    let mut take = |name: &str| body.shift_remove(name).filter(|value| !value.is_null());
    let Some(Value::Array(list)) = take("messages") else {
        return Err(InboundError::Member {
            member: "messages".to_owned(),
            why: "it is not a list of messages".to_owned(),
        });
    };
    let tools = take("tools");
    let context = take("context").unwrap_or_default();
    let resume = take("resume").unwrap_or_default();
    let text_of = |value: Option<Value>| match value {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    let mut chat = Chat {
        id: text_of(take("threadId")),
        run: Some(text_of(take("runId"))).filter(|run| !run.is_empty()),
        trigger: ChatTrigger::Submit,
        ..Chat::default()
    };
    // The model and its settings have no other place.
    let settings = match take("forwardedProps") {
        Some(Value::Object(settings)) => settings,
        _ => Map::new(),
    };
    let (mut request, _) = InboundRequest::begin(settings, &[]);
    keep_settings(&mut request.params, &mut notes);
    request.streams = true;
    request.set_tools(tools.as_ref(), None, &mut notes);
    request.approvals = approvals(&resume);
    let mut talk = Vec::new();
    let facts: Vec<String> = context
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|fact| {
            Some(format!(
                "{}: {}",
                fact.text_of("description")?,
                fact.text_of("value")?
            ))
        })
        .collect();
    if !facts.is_empty() {
        talk.push(message("system", vec![text(&facts.join("\n"))]));
    }
    let before = talk.len();
    let mut draft = AssistantDraft::default();
    for (at, value) in list.iter().enumerate() {
        let role = value.text_of("role").unwrap_or_default();
        // Reasoning is a message of its own before the one that it belongs to.
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
            _ => notes.add(format!(
                "messages[{at}]: the role {} is not known, the message is skipped",
                quoted(role)
            )),
        }
    }
    talk.extend(draft.take());
    let is_empty = talk.len() == before;
    request.chat = Some(Box::new(chat));
    request.end(talk, "messages", is_empty, notes)
}

/// The answers to interrupts, whose ids are those of calls and their hashes.
fn approvals(resume: &Value) -> Vec<ClientApproval> {
    let answer = |entry: &Value| {
        let (call, hash) = entry.text_of("interruptId")?.rsplit_once(':')?;
        let payload = |name: &str| entry.get("payload").and_then(|payload| payload.get(name));
        let is_resolved = entry.text_of("status") == Some("resolved");
        let is_refused = payload("approved") == Some(&Value::Bool(false));
        let reason = payload("reason").and_then(Value::as_str);
        Some(ClientApproval {
            call_id: call.to_owned(),
            is_approved: is_resolved && !is_refused,
            reason: reason.map(str::to_owned),
            hash: Some(hash.to_owned()),
        })
    };
    resume
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(answer)
        .collect()
}

/// The content of a message: a text, or parts.
fn content(message: &Value) -> Vec<Value> {
    match message.get("content") {
        Some(Value::String(words)) => vec![text(words)],
        Some(Value::Array(parts)) => parts.iter().filter_map(part).collect(),
        _ => Vec::new(),
    }
}

/// A part of a content.
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
