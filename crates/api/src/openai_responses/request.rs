//! Builds requests of OpenAI's Responses API: a flat list of items, without storage at the
//! provider.
//!
//! Source of the format: OpenAI's Responses API reference
//! (platform.openai.com/docs/api-reference/responses/create). Reasoning is sent back according to
//! "Keeping reasoning items in context" (platform.openai.com/docs/guides/reasoning).

use crate::conversation::{Conversation, Message, PastCall};
use crate::members::{GetText, Put};
use crate::openai_responses::stream::OpenaiResponses;
use crate::provider::{KeyRule, Provider};
use crate::request::options::{
    RequestBody, RequestError, RequestOptions, RequestTool, ToolChoice, is_system, system, value,
};
use crate::request::part::{MediaKind, Part, PartSource, parts};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// The API's name in the table, and the key of its data in a message.
const API: &str = "openai-responses";

/// The API's row in the table of APIs.
pub(crate) const PROVIDER: Provider = Provider {
    name: "openai-responses",
    aliases: &["responses"],
    base_url: "https://api.openai.com/v1",
    key_env: "OPENAI_API_KEY",
    path: |_| Ok("/responses".to_owned()),
    key: KeyRule::Bearer,
    headers: &[],
    has_refusals: true,
    has_text_results: false,
    decoder: || Box::new(OpenaiResponses::default()),
    body,
    answers: Some(&crate::openai_responses::writer::FORMAT),
};

/// Builds the request body.
pub(crate) fn body(
    talk: &Conversation,
    options: &RequestOptions,
) -> Result<RequestBody, RequestError> {
    let mut body = Map::new();
    body.put("model", options.model.as_str());
    if let Some(system) = system(talk, options) {
        body.put("instructions", system);
    }
    let input = items(talk, &mut OwnCalls::default())?;
    if input.is_empty() {
        return Err(RequestError::Empty);
    }
    body.put("input", input);
    let tools = options.tool_list();
    if !tools.is_empty() {
        body.insert("tools".to_owned(), tools.iter().map(tool).collect());
        if let Some(choice) = options.choice() {
            let choice = match choice {
                ToolChoice::Auto => "auto".into(),
                ToolChoice::None => "none".into(),
                ToolChoice::Required => "required".into(),
                ToolChoice::Name(name) => json!({"type": "function", "name": name}),
            };
            body.insert("tool_choice".to_owned(), choice);
        }
    }
    body.put("store", false);
    if may_reason(&options.model) {
        body.put("include", json!(["reasoning.encrypted_content"]));
    }
    if options.stream {
        body.put("stream", true);
    }
    Ok(body.into())
}

/// Whether the model may reason. Other models reject a request for encrypted reasoning.
fn may_reason(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    !["gpt-3", "gpt-4", "chatgpt", "ft:gpt-3", "ft:gpt-4"]
        .iter()
        .any(|old| name.starts_with(old))
        && !name.contains("-chat")
}

fn tool(tool: &RequestTool<'_>) -> Value {
    let tool = match tool {
        RequestTool::Function(tool) => tool,
        RequestTool::Provider(tool) => return value(&tool.text),
    };
    let mut out = Map::new();
    out.put("type", "function");
    out.put("name", tool.name.as_str());
    if let Some(description) = &tool.description {
        out.put("description", description.as_str());
    }
    out.insert("parameters".to_owned(), value(tool.schema()));
    // If omitted, `strict` defaults to true in this API, and the provider makes every member of the
    // schema required.
    out.put("strict", tool.strict.unwrap_or(false));
    Value::Object(out)
}

/// The item types of calls other than function calls, by call id. Their results have special types
/// as well.
pub(crate) type OwnCalls = HashMap<String, String>;

/// Converts all messages except system prompts to items. `own` contains the special calls of
/// earlier messages, and those of these messages are added to it.
///
/// # Errors
/// Fails if a message has an unknown role.
pub(crate) fn items(talk: &Conversation, own: &mut OwnCalls) -> Result<Vec<Value>, RequestError> {
    let mut input = Vec::new();
    for (position, message) in (1..).zip(&talk.messages) {
        match message.role() {
            role if is_system(role) => {}
            "user" => {
                let content = content(message);
                if content != json!([]) {
                    input.push(json!({"type": "message", "role": "user", "content": content}));
                }
            }
            "assistant" => answer(message, own, &mut input),
            "tool" => input.push(result(message, own)),
            role => return Err(RequestError::role(position, role)),
        }
    }
    Ok(input)
}

/// Returns the content of a user message or a result. A single text becomes a string.
fn content(message: &Message) -> Value {
    let parts = parts(message.content());
    if let [Part::Text(text)] = parts[..] {
        return text.into();
    }
    let part = |part: &Part<'_>| match part {
        Part::Text(text) => json!({"type": "input_text", "text": text}),
        Part::Media {
            kind: MediaKind::Image,
            source,
            detail,
            ..
        } => {
            json!({"type": "input_image", "image_url": source.url(), "detail": detail.unwrap_or("auto")})
        }
        Part::Media {
            kind: MediaKind::File,
            source: PartSource::Url(url),
            ..
        } => {
            json!({"type": "input_file", "file_url": url})
        }
        Part::Media {
            kind: MediaKind::File,
            source,
            name,
            ..
        } => {
            json!({"type": "input_file", "filename": name.unwrap_or("file"), "file_data": source.url()})
        }
        Part::Other(part) => (*part).clone(),
    };
    parts.iter().map(part).collect()
}

/// Converts a result to the type that matches its call.
fn result(message: &Message, own: &OwnCalls) -> Value {
    let id = message.tool_call_id();
    let kind = own.get(id).map_or("function_call", String::as_str);
    let failed = message.get("is_error") == Some(&Value::Bool(true));
    let text = || message.text();
    // A client that supports the format writes it itself.
    let formed = || serde_json::from_str::<Value>(&text()).ok();
    match kind {
        "shell_call" => {
            let output = formed().filter(Value::is_array).unwrap_or_else(|| {
                json!([{"stdout": text(), "stderr": "", "outcome": {"type": "exit", "exit_code": i32::from(failed)}}])
            });
            json!({"type": "shell_call_output", "call_id": id, "output": output})
        }
        "apply_patch_call" => {
            let status = if failed { "failed" } else { "completed" };
            json!({"type": "apply_patch_call_output", "call_id": id, "status": status, "output": text()})
        }
        // Only this type refers to the call as `id`.
        "local_shell_call" => {
            json!({"type": "local_shell_call_output", "id": id, "output": text()})
        }
        "computer_call" => {
            let output = parts(message.content()).iter().find_map(|part| match part {
                Part::Media { source, .. } => Some(source.url()),
                _ => None,
            });
            let output = match output {
                Some(url) => json!({"type": "computer_screenshot", "image_url": url}),
                None => formed().unwrap_or_else(|| text().into()),
            };
            json!({"type": "computer_call_output", "call_id": id, "output": output})
        }
        kind => {
            let output = content(message);
            let output = if output == json!([]) {
                "".into()
            } else {
                output
            };
            json!({"type": format!("{kind}_output"), "call_id": id, "output": output})
        }
    }
}

/// Converts an assistant message to items, in their original order. Adds calls other than function
/// calls to `own`.
fn answer(message: &Message, own: &mut OwnCalls, input: &mut Vec<Value>) {
    let calls = message.calls();
    let blocks: Vec<_> = message
        .blocks()
        .into_iter()
        .filter_map(|b| Some((b, b.data(API)?)))
        .collect();
    let mut texts = Texts::of(message, blocks.iter().map(|(_, data)| *data));
    let begin = input.len();
    let before_text = |calls: usize, text: bool| calls == 0 && !text;
    let mut waiting = blocks.iter().peekable();
    while let Some((_, data)) = waiting.next_if(|(b, _)| before_text(b.calls, b.text)) {
        input.extend(item(data));
    }
    if texts.is_one() {
        input.extend(texts.next());
    }
    for n in 0..=calls.len() {
        while let Some((_, data)) = waiting.next_if(|(b, _)| b.calls.min(calls.len()) <= n) {
            if data.get("message").is_some() {
                input.extend(texts.next());
            } else {
                input.extend(item(data));
            }
        }
        if let Some(past) = calls.get(n) {
            input.push(call(past, own));
        }
    }
    // The API rejects reasoning that nothing follows.
    while input.len() > begin && input.last().is_some_and(|i| i["type"] == "reasoning") {
        input.pop();
    }
}

/// Converts a call to the item type of its kind.
fn call(call: &PastCall<'_>, own: &mut OwnCalls) -> Value {
    let data = |name: &str| call.provider(API).and_then(|p| p.get(name));
    let arguments: Value = serde_json::from_str(call.arguments).unwrap_or_default();
    if let (Some(kind), Value::Object(members)) = (data("kind").and_then(Value::as_str), &arguments)
    {
        own.insert(call.id.to_owned(), kind.to_owned());
        let mut item = Map::new();
        item.put("type", kind);
        item.put("call_id", call.id);
        // Some of these types require an `id`, but the provider does not look it up, because it
        // stored nothing.
        if let Some(id) = data("id") {
            item.insert("id".to_owned(), id.clone());
        }
        item.put("status", "completed");
        item.extend(members.clone());
        return Value::Object(item);
    }
    let free = data("custom") == Some(&Value::Bool(true));
    match arguments.text_of("input").filter(|_| free) {
        Some(text) => {
            own.insert(call.id.to_owned(), "custom_tool_call".to_owned());
            json!({"type": "custom_tool_call", "call_id": call.id, "name": call.name, "input": text})
        }
        None => {
            json!({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments})
        }
    }
}

/// The answer's text, as one item for each message that it arrived in.
struct Texts {
    messages: std::vec::IntoIter<Value>,
    is_one: bool,
}

impl Texts {
    /// `blocks` contains the answer's data from this API.
    fn of<'d>(message: &Message, blocks: impl Iterator<Item = &'d Value>) -> Texts {
        let text = message.text();
        let refusal = message.refusal();
        let ends: Vec<(usize, &Value)> = blocks
            .filter_map(|data| data.get("message"))
            .map(|data| {
                let length = data
                    .get("length")
                    .and_then(Value::as_u64)
                    .unwrap_or_default();
                (usize::try_from(length).unwrap_or_default(), data)
            })
            .collect();
        let whole = ends.iter().map(|(length, _)| length).sum::<usize>();
        let mut messages = Vec::new();
        // Text that was edited, or that partly came from elsewhere, becomes a single message.
        let is_one = whole != text.chars().count() || !refusal.is_empty() || ends.is_empty();
        if is_one {
            let mut content = Vec::new();
            if !text.is_empty() {
                content.push(output_text(&text));
            }
            if !refusal.is_empty() {
                content.push(json!({"type": "refusal", "refusal": refusal}));
            }
            if !content.is_empty() {
                messages.push(said(content, ends.last().map(|(_, data)| *data)));
            }
        } else {
            let mut rest = text.as_str();
            for (length, data) in ends {
                let end = rest
                    .char_indices()
                    .nth(length)
                    .map_or(rest.len(), |(at, _)| at);
                let (text, more) = rest.split_at(end);
                messages.push(said(vec![output_text(text)], Some(data)));
                rest = more;
            }
        }
        Texts {
            messages: messages.into_iter(),
            is_one,
        }
    }

    /// Whether the whole text is one item, which is placed before the calls.
    fn is_one(&self) -> bool {
        self.is_one
    }

    fn next(&mut self) -> Option<Value> {
        self.messages.next()
    }
}

fn output_text(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": []})
}

/// Creates an assistant message. `phase` says whether the text was a comment or the answer. Models
/// that use it answer worse without it (`response_output_message.py` in openai-python).
fn said(content: Vec<Value>, data: Option<&Value>) -> Value {
    let mut item = Map::new();
    item.put("type", "message");
    item.put("role", "assistant");
    item.put("status", "completed");
    item.insert("content".to_owned(), content.into());
    if let Some(phase) = data.and_then(|data| data.get("phase")) {
        item.insert("phase".to_owned(), phase.clone());
    }
    Value::Object(item)
}

/// Returns the item to send back for a block of this API: reasoning, or an item that the provider
/// ran.
fn item(data: &Value) -> Option<Value> {
    reasoning(data).or_else(|| server_item(data))
}

/// The members that the provider accepts in items that it ran. For types not listed it accepts all
/// members. Source: `response_input_item_param.py` in openai-python.
const SERVER_ITEMS: [(&str, &[&str]); 6] = [
    ("web_search_call", &["id", "action", "status"]),
    ("file_search_call", &["id", "queries", "status", "results"]),
    (
        "code_interpreter_call",
        &["id", "code", "container_id", "outputs", "status"],
    ),
    ("image_generation_call", &["id", "result", "status"]),
    (
        "mcp_call",
        &[
            "id",
            "arguments",
            "name",
            "server_label",
            "approval_request_id",
            "error",
            "output",
            "status",
        ],
    ),
    ("mcp_list_tools", &["id", "server_label", "tools", "error"]),
];

/// Converts an item that the provider ran to the form it accepts. Without this item, the API
/// rejects the reasoning before it (github.com/microsoft/agent-framework/issues/8294).
fn server_item(data: &Value) -> Option<Value> {
    let item = data.get("server_item")?.as_object()?;
    let kind = item.get("type")?.as_str()?;
    let known = SERVER_ITEMS
        .iter()
        .find(|(name, _)| *name == kind)
        .map(|(_, members)| *members);
    let kept = item.iter().filter(|(name, value)| {
        let is_known = known.is_none_or(|members| members.contains(&name.as_str()));
        *name == "type" || (is_known && !value.is_null() && *name != "created_by")
    });
    Some(Value::Object(
        kept.map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    ))
}

/// Converts a reasoning item to the form the provider accepts: it rejects members of its own stream
/// such as `status`.
fn reasoning(data: &Value) -> Option<Value> {
    let item = data.get("item")?.as_object()?;
    let mut kept = Map::new();
    kept.put("type", "reasoning");
    for key in ["id", "summary", "content", "encrypted_content"] {
        let value = item.get(key).filter(|v| !v.is_null());
        // Only open models have `content`, because their reasoning is plain text.
        if let Some(value) =
            value.filter(|v| key != "content" || v.as_array().is_some_and(|v| !v.is_empty()))
        {
            kept.insert(key.to_owned(), value.clone());
        }
    }
    kept.entry("summary").or_insert_with(|| json!([]));
    Some(Value::Object(kept))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Api::OpenaiResponses;
    use crate::support::body;

    #[test]
    fn a_turn_of_calls_and_results() {
        let body = body(
            OpenaiResponses,
            &RequestOptions {
                system: Some("Be brief.".into()),
                tool_choice: Some("f".into()),
                ..RequestOptions::default()
            },
            r#"[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}},"strict":true}},{"type":"custom","name":"sql"}]"#,
            r#"{"role":"user","content":"Hello"}
            {"role":"assistant","content":"Two calls.","provider":[
                {"thinking":"hm","data":{"openai-responses":{"item":{"type":"reasoning","id":"rs","status":null,"summary":[],"content":[],"encrypted_content":"e"}}},"calls":0,"text":false},
                {"thinking":"","data":{"openai-responses":{"item":{"type":"reasoning","id":"rs2","content":[{"type":"reasoning_text","text":"x"}]}}},"calls":2,"text":true}],
             "tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},
                {"id":"b","type":"function","function":{"name":"sql","arguments":"{\"input\":\"SELECT 1\"}"},"provider":{"openai-responses":{"custom":true}}}]}
            {"role":"tool","tool_call_id":"a","content":"one"}
            {"role":"tool","tool_call_id":"b","content":[{"type":"text","text":"1"},{"type":"image_url","image_url":{"url":"https://x/y.png"}}]}"#,
        );
        let want = json!({
            "model": "m", "instructions": "Be brief.",
            "input": [
                {"type": "message", "role": "user", "content": "Hello"},
                {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "e"},
                {"type": "message", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "Two calls.", "annotations": []}]},
                {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{\"a\":1}"},
                {"type": "custom_tool_call", "call_id": "b", "name": "sql", "input": "SELECT 1"},
                {"type": "function_call_output", "call_id": "a", "output": "one"},
                {"type": "custom_tool_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "1"}, {"type": "input_image", "image_url": "https://x/y.png", "detail": "auto"}]},
            ],
            "tools": [
                {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": true},
                {"type": "custom", "name": "sql"},
            ],
            "tool_choice": {"type": "function", "name": "f"},
            "store": false, "include": ["reasoning.encrypted_content"], "stream": true,
        });
        assert_eq!(body, want);
    }

    fn input(log: &str) -> Value {
        let body = body(OpenaiResponses, &RequestOptions::default(), "[]", log);
        body["input"].clone()
    }

    #[test]
    fn items_of_the_provider_keep_their_places_and_reasoning_is_never_alone() {
        let block = |data: &str, calls: u8, text: bool| {
            format!(
                r#"{{"thinking":"","data":{{"openai-responses":{data}}},"calls":{calls},"text":{text}}}"#
            )
        };
        let rs = |id: &str| {
            format!(
                r#"{{"item":{{"type":"reasoning","id":"{id}","summary":[],"encrypted_content":"e"}}}}"#
            )
        };
        let search = r#"{"server_item":{"type":"web_search_call","id":"ws","status":"completed","action":{"type":"search"},"created_by":"x","results":null}}"#;
        let code = r#"{"server_item":{"type":"new_call","id":"n","output":null,"created_by":"x"}}"#;
        let note = r#"{"message":{"phase":"commentary","length":5}}"#;
        let last = r#"{"message":{"phase":"final_answer","length":3}}"#;
        let blocks = [
            block(&rs("a"), 0, false),
            block(search, 0, false),
            block(&rs("b"), 0, false),
            block(note, 0, true),
            block(code, 0, true),
            block(&rs("c"), 0, true),
            block(last, 1, true),
            block(&rs("d"), 1, true),
        ];
        let answer = |text: &str| {
            format!(
                r#"{{"role":"assistant","content":"{text}","provider":[{}],"tool_calls":[{{"id":"f1","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}]}}"#,
                blocks.join(",")
            )
        };
        // The call counts as answered because it was not run.
        let answered = |log: &str| {
            let mut list = input(log).as_array().cloned().unwrap_or_default();
            list.pop();
            Value::from(list)
        };
        let say = |text: &str, phase: &str| json!({"type": "message", "role": "assistant", "status": "completed", "content": [output_text(text)], "phase": phase});
        let rs = |id: &str| json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": "e"});
        let search = json!({"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search"}});
        let code = json!({"type": "new_call", "id": "n"});
        let call =
            json!({"type": "function_call", "call_id": "f1", "name": "f", "arguments": "{}"});
        assert_eq!(
            answered(&answer("hälloend")),
            json!([
                rs("a"),
                search,
                rs("b"),
                say("hällo", "commentary"),
                code,
                rs("c"),
                call,
                say("end", "final_answer")
            ])
        );
        // Edited text becomes a single message before the calls.
        assert_eq!(
            answered(&answer("other")),
            json!([
                rs("a"),
                search,
                rs("b"),
                say("other", "final_answer"),
                code,
                rs("c"),
                call
            ])
        );
    }

    #[test]
    fn calls_of_the_apis_own_tools_and_their_results_have_their_own_form() {
        let call = |kind: &str, id: &str, arguments: &str| {
            format!(
                r#"{{"id":"{id}","type":"function","function":{{"name":"x","arguments":{}}},"provider":{{"openai-responses":{{"kind":"{kind}"}}}}}}"#,
                Value::from(arguments)
            )
        };
        let calls = [
            call("shell_call", "s", r#"{"action":{"commands":["ls"]}}"#),
            call("shell_call", "t", r#"{"action":{"commands":["ls"]}}"#),
            call(
                "apply_patch_call",
                "p",
                r#"{"operation":{"type":"delete_file","path":"a"}}"#,
            ),
            call(
                "local_shell_call",
                "l",
                r#"{"action":{"type":"exec","command":["ls"]}}"#,
            ),
            call("computer_call", "c", r#"{"action":{"type":"screenshot"}}"#),
        ];
        let log = format!(
            r#"{{"role":"assistant","content":null,"tool_calls":[{}]}}
            {{"role":"tool","tool_call_id":"s","content":"no","is_error":true}}
            {{"role":"tool","tool_call_id":"t","content":"[{{\"stdout\":\"a\"}}]"}}
            {{"role":"tool","tool_call_id":"p","content":"done"}}
            {{"role":"tool","tool_call_id":"l","content":"a"}}
            {{"role":"tool","tool_call_id":"c","content":[{{"type":"image_url","image_url":{{"url":"https://x/y.png"}}}}]}}"#,
            calls.join(",")
        );
        let want = json!([
            {"type": "shell_call", "call_id": "s", "status": "completed", "action": {"commands": ["ls"]}},
            {"type": "shell_call", "call_id": "t", "status": "completed", "action": {"commands": ["ls"]}},
            {"type": "apply_patch_call", "call_id": "p", "status": "completed", "operation": {"type": "delete_file", "path": "a"}},
            {"type": "local_shell_call", "call_id": "l", "status": "completed", "action": {"type": "exec", "command": ["ls"]}},
            {"type": "computer_call", "call_id": "c", "status": "completed", "action": {"type": "screenshot"}},
            {"type": "shell_call_output", "call_id": "s", "output": [{"stdout": "no", "stderr": "", "outcome": {"type": "exit", "exit_code": 1}}]},
            {"type": "shell_call_output", "call_id": "t", "output": [{"stdout": "a"}]},
            {"type": "apply_patch_call_output", "call_id": "p", "status": "completed", "output": "done"},
            {"type": "local_shell_call_output", "id": "l", "output": "a"},
            {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot", "image_url": "https://x/y.png"}},
        ]);
        assert_eq!(input(&log), want);
    }

    #[test]
    fn only_models_that_reason_are_asked_for_it() {
        for (model, asked) in [
            ("gpt-5.1", true),
            ("openai/gpt-4o", false),
            ("gpt-4.1-mini", false),
            ("gpt-5-chat-latest", false),
            ("o3", true),
        ] {
            assert_eq!(may_reason(model), asked, "{model}");
        }
    }
}
