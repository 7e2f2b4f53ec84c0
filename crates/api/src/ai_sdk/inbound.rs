//! Converts a client's UI messages to a conversation. Source: `src/ui/http-chat-transport.ts` (the
//! body), `src/ui/ui-messages.ts` (the parts) and `src/ui/convert-to-model-messages.ts` (their
//! meaning) in the package `ai`, version 7.0.173.

use super::stream::PROVIDER;
use crate::conversation::Message;
use crate::inbound::draft::{
    AssistantDraft, InboundNotes, file, image, message, quoted, result, text,
};
use crate::inbound::request::{ClientApproval, InboundError, InboundRequest};
use crate::members::{GetText, Take};
use crate::ui::step::UiAsk;
use crate::ui::{Chat, ChatMessage, ChatTrigger};
use serde_json::{Map, Value, json};

/// Parses the body.
///
/// # Errors
/// See [`crate::inbound`].
pub(crate) fn read(
    mut body: Map<String, Value>,
    mut notes: InboundNotes,
) -> Result<InboundRequest, InboundError> {
    // Clients that leave the history to the server send only the last message, as `message`
    // (https://ai-sdk.dev/docs/ai-sdk-ui/chatbot-message-persistence).
    let list = match (body.take_member("messages"), body.take_member("message")) {
        (Some(Value::Array(list)), _) => list,
        (None, Some(single)) => vec![single],
        _ => Vec::new(),
    };
    let tools = body.take_member("tools").map(listed);
    let choice = body.take_member("toolChoice");
    let choice = choice.or_else(|| body.take_member("tool_choice"));
    let system = body.take_text("system");
    let mut chat = Chat {
        id: body.take_text("id").unwrap_or_default(),
        trigger: match body.take_text("trigger").as_deref() {
            Some("regenerate-message") => ChatTrigger::Regenerate,
            _ => ChatTrigger::Submit,
        },
        message_id: body.take_text("messageId"),
        ..Chat::default()
    };
    let mut request = InboundRequest::begin_ui(body, tools.as_ref(), choice.as_ref(), &mut notes);
    let mut talk = Talk::default();
    let system = system.map(|prompt| message("system", vec![text(&prompt)]));
    talk.messages.extend(system);
    let before = talk.messages.len();
    for (at, value) in list.iter().enumerate() {
        let first = talk.messages.len();
        let role = value.text_of("role").unwrap_or_default();
        let parts = value.list_of("parts");
        match role {
            "system" => talk.system(parts),
            "user" => talk.user(parts, at, &mut notes),
            "assistant" => talk.assistant(parts, at, &mut notes),
            _ => notes.unknown_role("messages", at, role),
        }
        chat.messages.push(ChatMessage {
            id: value.text_of("id").unwrap_or_default().to_owned(),
            is_answer: role == "assistant",
            first,
        });
    }
    let is_empty = talk.messages.len() == before;
    request.approvals = talk.approvals;
    request.chat = Some(Box::new(chat));
    request.end(talk.messages, "messages", is_empty, notes)
}

/// Returns the tools as a list. Some clients send an object with the tools by name
/// (<https://www.assistant-ui.com/docs/runtimes/ai-sdk/use-chat>).
fn listed(tools: Value) -> Value {
    let Value::Object(tools) = tools else {
        return tools;
    };
    let named = tools.into_iter().filter_map(|(name, tool)| {
        let Value::Object(mut tool) = tool else {
            return None;
        };
        // In this form `type` says who runs the tool, such as `frontend`.
        tool.shift_remove("type");
        tool.insert("name".to_owned(), name.into());
        Some(Value::from(tool))
    });
    named.collect()
}

/// The conversation so far.
#[derive(Default)]
struct Talk {
    messages: Vec<Message>,
    approvals: Vec<ClientApproval>,
}

impl Talk {
    fn system(&mut self, parts: &[Value]) {
        let texts: Vec<&str> = parts
            .iter()
            .filter_map(|part| part.text_of("text"))
            .collect();
        if !texts.is_empty() {
            self.messages
                .push(message("system", vec![text(&texts.concat())]));
        }
    }

    fn user(&mut self, parts: &[Value], at: usize, notes: &mut InboundNotes) {
        let mut content = Vec::new();
        for part in parts {
            match part.text_of("type").unwrap_or_default() {
                "text" => content.extend(part.text_of("text").map(text)),
                "file" => match attached(part) {
                    Some(file) => content.push(file),
                    None => notes.add(format!(
                        "messages[{at}].parts: a file without an address is left out"
                    )),
                },
                kind => notes.add(format!(
                    "messages[{at}].parts: {} of a user is left out",
                    quoted(kind)
                )),
            }
        }
        if !content.is_empty() {
            self.messages.push(message("user", content));
        }
    }

    /// Parses a message of the model, which contains all turns of an answer and the results of
    /// their calls.
    fn assistant(&mut self, parts: &[Value], at: usize, notes: &mut InboundNotes) {
        let mut draft = AssistantDraft::default();
        let mut results = Vec::new();
        for part in parts {
            let kind = part.text_of("type").unwrap_or_default();
            let words = part.text_of("text").unwrap_or_default();
            match kind {
                "text" => draft.say(words),
                "reasoning" => {
                    let data = carried(part, "providerMetadata");
                    draft.think(words, data.filter(Value::is_object));
                }
                "step-start" => self.flush(&mut draft, &mut results),
                "steering-message" => {
                    self.flush(&mut draft, &mut results);
                    self.user(part.list_of("parts"), at, notes);
                }
                "source-url" | "source-document" => {}
                "dynamic-tool" => {
                    let name = part.text_of("toolName").unwrap_or_default();
                    self.call(part, name, &mut draft, &mut results);
                }
                kind => match kind.strip_prefix("tool-") {
                    Some(name) => self.call(part, name, &mut draft, &mut results),
                    None => notes.add(format!(
                        "messages[{at}].parts: {} of an answer is left out",
                        quoted(kind)
                    )),
                },
            }
        }
        self.flush(&mut draft, &mut results);
    }

    /// Ends a turn.
    fn flush(&mut self, draft: &mut AssistantDraft, results: &mut Vec<Message>) {
        self.messages.extend(draft.take());
        self.messages.append(results);
    }

    fn call(
        &mut self,
        part: &Value,
        name: &str,
        draft: &mut AssistantDraft,
        results: &mut Vec<Message>,
    ) {
        let id = part.text_of("toolCallId").unwrap_or_default();
        let state = part.text_of("state").unwrap_or_default();
        if id.is_empty() || name.is_empty() || state == "input-streaming" {
            return;
        }
        let input = part.get("input").or_else(|| part.get("rawInput"));
        let arguments = match input {
            Some(input @ Value::Object(_)) => input.to_string(),
            _ => "{}".to_owned(),
        };
        let data = carried(part, "callProviderMetadata");
        draft.call(id, name, &arguments, data.filter(Value::is_object));
        let approval = |key: &str| part.get("approval").and_then(|approval| approval.get(key));
        let reason = approval("reason").and_then(Value::as_str);
        let output = match state {
            "output-available" if part.get("preliminary") != Some(&Value::Bool(true)) => {
                match part.get("output") {
                    Some(Value::String(text)) => text.clone(),
                    None | Some(Value::Null) => String::new(),
                    Some(value) => value.to_string(),
                }
            }
            "output-error" => part
                .text_of("errorText")
                .unwrap_or("the call has failed")
                .to_owned(),
            "output-denied" => format!("denied: {}", reason.unwrap_or("a person refused the call")),
            "approval-responded" => {
                if let Some(is_approved) = approval("approved").and_then(Value::as_bool) {
                    let question = approval("id").and_then(Value::as_str);
                    let asked = question.and_then(UiAsk::call_and_hash);
                    let hash = asked.filter(|(call, _)| *call == id).map(|(_, hash)| hash);
                    self.approvals.push(ClientApproval {
                        call_id: id.to_owned(),
                        is_approved,
                        reason: reason.map(str::to_owned),
                        hash: hash.map(str::to_owned),
                    });
                }
                return;
            }
            _ => return,
        };
        results.push(result(id, vec![text(&output)]));
    }
}

/// Returns the data in a part that must be sent back to the provider.
fn carried(part: &Value, member: &str) -> Option<Value> {
    part.get(member)?.get(PROVIDER).cloned()
}

/// Converts a file that a user attached.
fn attached(part: &Value) -> Option<Value> {
    let url = part.text_of("url").filter(|url| !url.is_empty())?;
    let media_type = part.text_of("mediaType").unwrap_or_default();
    if media_type == "image" || media_type.starts_with("image/") {
        return Some(image(url, None));
    }
    let name = part.text_of("filename");
    let (is_data, format) = (url.starts_with("data:"), media_type.strip_prefix("audio/"));
    match format.filter(|_| is_data).zip(url.split_once(";base64,")) {
        Some((format, (_, data))) => {
            let format = match format {
                "mpeg" => "mp3",
                "x-wav" | "wave" => "wav",
                other => other,
            };
            Some(json!({"type": "input_audio", "input_audio": {"data": data, "format": format}}))
        }
        None if is_data => Some(file("file_data", url, name)),
        None => Some(file("file_url", url, name)),
    }
}
