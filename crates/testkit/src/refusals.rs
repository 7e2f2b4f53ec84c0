//! The requests that real providers reject, with the status of each. Limited to what each provider
//! checks in every request, and what a client that rewrites a conversation can break.

use crate::request::Request;
use crate::turn::Protocol;
use serde_json::{Value, json};
use std::collections::HashSet;

/// The status and the message of a rejected request.
type Refusal = (u16, String);

/// Returns the status and the body with which a provider of this protocol rejects the request;
/// `None` if it accepts it. `issued` is the text of the responses that the provider has stored: it
/// contains the ids that a request may reference.
pub fn refusal(protocol: Protocol, request: &Request, issued: &str) -> Option<(u16, String)> {
    let body = &request.body;
    let (status, message) = match protocol {
        Protocol::Chat | Protocol::Mistral => chat(body),
        Protocol::Messages => messages(request),
        Protocol::Responses => responses(body, issued),
        Protocol::Gemini => gemini(body),
        Protocol::Ollama | Protocol::Cohere => Ok(()),
    }
    .err()?;
    let body = match protocol {
        Protocol::Messages => {
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}})
        }
        Protocol::Gemini => {
            json!({"error": {"code": status, "message": message, "status": "INVALID_ARGUMENT"}})
        }
        _ => {
            let is_unknown = message.starts_with("Previous response");
            let param = is_unknown.then_some("previous_response_id");
            let code = is_unknown.then_some("previous_response_not_found");
            json!({"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}})
        }
    };
    Some((status, body.to_string()))
}

fn rule(holds: bool, message: impl FnOnce() -> String) -> Result<(), Refusal> {
    holds.then_some(()).ok_or_else(|| (400, message()))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Source: <https://platform.openai.com/docs/guides/function-calling>. The messages are those of
/// the server.
fn chat(body: &Value) -> Result<(), Refusal> {
    let messages = list(&body["messages"]);
    rule(!messages.is_empty(), || {
        "Invalid 'messages': empty array. Expected an array with minimum length 1.".to_owned()
    })?;
    rule(
        body.get("stream_options").is_none_or(Value::is_null) || body["stream"] == true,
        || "The 'stream_options' parameter is only allowed when 'stream' is enabled.".to_owned(),
    )?;
    tools(body)?;
    // The calls without a result so far.
    let mut open: Vec<&str> = vec![];
    for (at, message) in messages.iter().enumerate() {
        if message["role"] == "tool" {
            let id = text(&message["tool_call_id"]);
            let called = open.iter().position(|open| *open == id);
            let called = called.ok_or_else(|| {
                (400, format!("Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls' (messages[{at}])."))
            })?;
            open.remove(called);
            continue;
        }
        all_answered(&open)?;
        let calls = list(&message["tool_calls"]);
        open = calls.iter().map(|call| text(&call["id"])).collect();
        for call in calls {
            let named = &call["function"];
            rule(
                call["type"] == "custom" || named["arguments"].is_string(),
                || format!("Invalid 'messages[{at}].tool_calls': {call}"),
            )?;
        }
        rule(
            !calls.is_empty()
                || !message["content"].is_null()
                || !message["refusal"].is_null()
                || !message["audio"].is_null()
                || !message["function_call"].is_null(),
            || {
                format!(
                    "Invalid value for 'content': expected a string, got null (messages[{at}])."
                )
            },
        )?;
    }
    all_answered(&open)
}

fn all_answered(open: &[&str]) -> Result<(), Refusal> {
    rule(open.is_empty(), || {
        format!(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
            open.join(", ")
        )
    })
}

/// Rejects an empty list of tools. Names are not checked, since servers differ: those of open
/// models allow dots.
fn tools(body: &Value) -> Result<(), Refusal> {
    let is_empty = body["tools"].as_array().is_some_and(Vec::is_empty);
    rule(!is_empty, || "[] is too short - 'tools'".to_owned())
}

fn is_name(name: &str, limit: usize) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    !name.is_empty() && name.len() <= limit && name.chars().all(is_allowed)
}

/// Source: <https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use>. The
/// messages are those of the server.
fn messages(request: &Request) -> Result<(), Refusal> {
    let body = &request.body;
    let messages = list(&body["messages"]);
    rule(request.header("anthropic-version").is_some(), || {
        "anthropic-version: header is required".to_owned()
    })?;
    rule(body["max_tokens"].is_u64(), || {
        "max_tokens: Field required".to_owned()
    })?;
    rule(!messages.is_empty(), || {
        "messages: at least one message is required".to_owned()
    })?;
    for tool in list(&body["tools"]) {
        let name = text(&tool["name"]);
        let is_mcp = tool["type"] == "mcp_toolset";
        rule(is_mcp || is_name(name, 128), || {
            format!("tools: invalid name: {name}")
        })?;
    }
    let mut open: Vec<&str> = vec![];
    let mut seen = HashSet::new();
    for (at, message) in messages.iter().enumerate() {
        let blocks = list(&message["content"]);
        let is_last = at + 1 == messages.len() && message["role"] == "assistant";
        rule(
            is_last || !blocks.is_empty() || !text(&message["content"]).is_empty(),
            || {
                format!(
                    "messages.{at}: all messages must have non-empty content except for the optional final assistant message"
                )
            },
        )?;
        let of_type = |kind: &'static str| {
            let blocks = blocks.iter();
            blocks.filter(move |block| block["type"] == kind)
        };
        for block in of_type("tool_result") {
            let id = text(&block["tool_use_id"]);
            let called = open.iter().position(|open| *open == id);
            let called = called.ok_or_else(|| {
                (400, format!("messages.{at}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."))
            })?;
            open.remove(called);
        }
        rule(open.is_empty(), || {
            format!(
                "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {}",
                open.join(", ")
            )
        })?;
        for block in of_type("tool_use") {
            let id = text(&block["id"]);
            rule(
                is_name(id, usize::MAX) && block["input"].is_object(),
                || format!("messages.{at}: invalid `tool_use` block: {block}"),
            )?;
            rule(seen.insert(id), || {
                "messages: `tool_use` ids must be unique".to_owned()
            })?;
            open.push(id);
        }
        for block in of_type("text") {
            rule(!text(&block["text"]).trim().is_empty(), || {
                "messages: text content blocks must contain non-whitespace text".to_owned()
            })?;
        }
        for block in of_type("thinking") {
            rule(block["signature"].is_string(), || {
                format!("messages.{at}: thinking.signature: Field required")
            })?;
        }
    }
    rule(open.is_empty(), || {
        format!(
            "messages: `tool_use` ids were found without `tool_result` blocks immediately after: {}",
            open.join(", ")
        )
    })
}

/// Source: <https://platform.openai.com/docs/api-reference/responses/create>. The messages are
/// those of the server.
fn responses(body: &Value, issued: &str) -> Result<(), Refusal> {
    tools(body)?;
    let knows = |id: &str| issued.contains(&format!("\"id\":\"{id}\""));
    let before = text(&body["previous_response_id"]);
    rule(before.is_empty() || knows(before), || {
        format!("Previous response with id '{before}' not found.")
    })?;
    let goes_on = ["previous_response_id", "conversation", "prompt"]
        .iter()
        .any(|name| body.get(name).is_some_and(|value| !value.is_null()));
    rule(goes_on || body.get("input").is_some(), || {
        "Missing required parameter: 'input'.".to_owned()
    })?;
    let items = list(&body["input"]);
    let mut open: Vec<&str> = vec![];
    for (at, item) in items.iter().enumerate() {
        let kind = item["type"].as_str().unwrap_or("message");
        let id = text(&item["id"]);
        let call = text(&item["call_id"]);
        let prefix = match kind {
            "message" => "msg",
            "function_call" => "fc",
            "reasoning" => "rs",
            _ => "",
        };
        // Servers other than OpenAI's use ids of their own form, and accept these.
        rule(id.is_empty() || id.starts_with(prefix) || knows(id), || {
            format!("Invalid 'input[{at}].id': '{id}'. Expected an ID that begins with '{prefix}'.")
        })?;
        match kind {
            "item_reference" if !knows(id) => {
                return Err((404, format!("Item with id '{id}' not found.")));
            }
            "reasoning" => {
                let follows = items.get(at + 1);
                let is_own = |next: &Value| {
                    next["role"] == "assistant"
                        || next["type"]
                            .as_str()
                            .is_some_and(|t| t != "message" && !t.ends_with("_output"))
                };
                rule(follows.is_some_and(is_own), || {
                    format!(
                        "Item '{id}' of type 'reasoning' was provided without its required following item."
                    )
                })?;
            }
            "function_call" => open.push(call),
            "function_call_output" => match open.iter().position(|open| *open == call) {
                Some(called) => drop(open.remove(called)),
                // The call may be in the response or item that is referenced.
                None => rule(
                    goes_on || issued.contains(&format!("\"call_id\":\"{call}\"")),
                    || format!("No tool call found for function call output with call_id {call}."),
                )?,
            },
            _ => {}
        }
    }
    rule(open.is_empty(), || {
        format!(
            "No tool output found for function call {}.",
            open.join(", ")
        )
    })
}

/// Source: <https://ai.google.dev/api/caching#Content>. The messages are those of the server.
fn gemini(body: &Value) -> Result<(), Refusal> {
    let contents = list(&body["contents"]);
    rule(!contents.is_empty(), || {
        "contents is not specified".to_owned()
    })?;
    let mut called = 0;
    for content in contents {
        let parts = list(&content["parts"]);
        rule(!parts.is_empty(), || {
            "contents.parts must not be empty.".to_owned()
        })?;
        let count = |member: &str| {
            parts
                .iter()
                .filter(|part| part.get(member).is_some())
                .count()
        };
        rule(count("functionResponse") == called, || {
            "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.".to_owned()
        })?;
        called = count("functionCall");
    }
    Ok(())
}
