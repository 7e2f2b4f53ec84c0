//! Builds Gemini requests: contents with the roles `user` and `model`, and calls and results
//! identified by function name.
//!
//! Source of the format: the Gemini API reference of `generateContent`, and "Thought signatures".

use crate::conversation::{Conversation, Message, PastBlock};
use crate::gemini::stream::Gemini;
use crate::members::Put;
use crate::provider::{KeyRule, Provider};
use crate::request::options::{
    RequestBody, RequestError, RequestOptions, RequestTool, ToolChoice, is_system, system, value,
};
use crate::request::part::{Part, PartSource, parts};
use event::url::{leads_elsewhere, percent_encoded};
use json::ToolEntry;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// The API's name in the table, and the key of its data in a message.
const API: &str = "gemini";

/// The placeholder signature that Google documents for calls of another model. Gemini 3 rejects
/// calls without a signature.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// The folders that may prefix a model name (<https://ai.google.dev/api/models>,
/// <https://ai.google.dev/api/tuning>).
const FOLDERS: [&str; 2] = ["models/", "tunedModels/"];

/// Returns the path after the base URL. A known folder prefix of the model name is kept, and the
/// rest is encoded as one segment. Otherwise a client could name a model `../../admin` and use the
/// service's key for another path.
pub(crate) fn path(options: &RequestOptions) -> Result<String, RequestError> {
    let method = if options.stream {
        "streamGenerateContent?alt=sse"
    } else {
        "generateContent"
    };
    let found = FOLDERS
        .into_iter()
        .find_map(|folder| Some((folder, options.model.strip_prefix(folder)?)));
    let (folder, model) = found.unwrap_or((FOLDERS[0], &options.model));
    if leads_elsewhere(model) {
        return Err(RequestError::Model(
            event::cut(&options.model, 200).to_owned(),
        ));
    }
    Ok(format!("/{folder}{}:{method}", percent_encoded(model)))
}

/// Gemini's row in the table of APIs.
pub(crate) const PROVIDER: Provider = Provider {
    name: "gemini",
    aliases: &["google"],
    base_url: "https://generativelanguage.googleapis.com/v1beta",
    key_env: "GEMINI_API_KEY",
    path,
    key: KeyRule::Google,
    headers: &[],
    has_refusals: false,
    has_text_results: true,
    decoder: || Box::new(Gemini::default()),
    body,
    answers: Some(&crate::gemini::writer::FORMAT),
};

/// Builds the request body.
pub(crate) fn body(
    talk: &Conversation,
    options: &RequestOptions,
) -> Result<RequestBody, RequestError> {
    let mut body = Map::new();
    if let Some(system) = system(talk, options) {
        body.put("systemInstruction", json!({"parts": [{"text": system}]}));
    }
    let contents = contents(talk, options)?;
    if contents.is_empty() {
        return Err(RequestError::Empty);
    }
    body.put("contents", contents);
    let mut functions = Vec::new();
    let mut tools = Vec::new();
    for tool in options.tool_list() {
        match tool {
            RequestTool::Function(tool) => functions.push(declaration(tool)),
            RequestTool::Provider(tool) => tools.push(value(&tool.text)),
        }
    }
    if !functions.is_empty() {
        tools.insert(0, json!({"functionDeclarations": functions}));
        if let Some(choice) = options.choice() {
            let config = match choice {
                ToolChoice::Auto => json!({"mode": "AUTO"}),
                ToolChoice::None => json!({"mode": "NONE"}),
                ToolChoice::Required => json!({"mode": "ANY"}),
                ToolChoice::Name(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
            };
            body.put("toolConfig", json!({"functionCallingConfig": config}));
        }
    }
    if !tools.is_empty() {
        body.put("tools", tools);
    }
    Ok(body.into())
}

/// Declares a function. This member accepts any JSON Schema, while `parameters` only accepts a part
/// of OpenAPI's.
fn declaration(tool: &ToolEntry) -> Value {
    let mut schema = value(tool.schema());
    if let Some(schema) = schema.as_object_mut() {
        schema.shift_remove("$schema");
    }
    let mut declaration = Map::new();
    declaration.put("name", tool.name.as_str());
    if let Some(description) = &tool.description {
        declaration.put("description", description.as_str());
    }
    declaration.insert("parametersJsonSchema".to_owned(), schema);
    Value::Object(declaration)
}

/// The members of a call that its result repeats.
struct Called<'a> {
    name: &'a str,
    id: Option<&'a Value>,
}

fn contents(talk: &Conversation, options: &RequestOptions) -> Result<Vec<Value>, RequestError> {
    let mut contents = Vec::new();
    let mut results: Vec<Value> = Vec::new();
    let mut called: HashMap<&str, Called<'_>> = HashMap::new();
    for (position, message) in (1..).zip(&talk.messages) {
        if message.role() != "tool" && !results.is_empty() {
            contents.push(json!({"role": "user", "parts": std::mem::take(&mut results)}));
        }
        let (role, parts) = match message.role() {
            role if is_system(role) => continue,
            "user" => ("user", said(message)),
            "assistant" => {
                for call in message.calls() {
                    let id = call.provider(API).and_then(|p| p.get("id"));
                    called.insert(
                        call.id,
                        Called {
                            name: call.name,
                            id,
                        },
                    );
                }
                ("model", answer(message, options))
            }
            "tool" => {
                results.push(result(message, called.get(message.tool_call_id())));
                continue;
            }
            role => return Err(RequestError::role(position, role)),
        };
        if !parts.is_empty() {
            contents.push(json!({"role": role, "parts": parts}));
        }
    }
    if !results.is_empty() {
        contents.push(json!({"role": "user", "parts": results}));
    }
    Ok(contents)
}

fn said(message: &Message) -> Vec<Value> {
    let part = |part| match part {
        Part::Text(text) => json!({"text": text}),
        Part::Media {
            source: PartSource::Base64 { mime, data },
            ..
        } => {
            json!({"inlineData": {"mimeType": mime, "data": data}})
        }
        Part::Media {
            source: PartSource::Url(url),
            ..
        } => json!({"fileData": {"fileUri": url}}),
        Part::Other(part) => match (
            part.pointer("/input_audio/data"),
            part.pointer("/input_audio/format"),
        ) {
            (Some(data), Some(Value::String(format))) => {
                json!({"inlineData": {"mimeType": format!("audio/{format}"), "data": data}})
            }
            _ => part.clone(),
        },
    };
    parts(message.content()).into_iter().map(part).collect()
}

fn result(message: &Message, call: Option<&Called<'_>>) -> Value {
    let text = message.text();
    // The API requires an object. A result that is already an object stays unchanged.
    let response = serde_json::from_str(&text)
        .ok()
        .filter(Value::is_object)
        .unwrap_or_else(|| json!({"result": text}));
    let name = call
        .map(|c| c.name)
        .or_else(|| message.get_str("name"))
        .unwrap_or("unknown");
    let mut result = Map::new();
    if let Some(id) = call.and_then(|c| c.id) {
        result.insert("id".to_owned(), id.clone());
    }
    result.put("name", name);
    result.insert("response".to_owned(), response);
    json!({"functionResponse": result})
}

/// Converts an assistant message. Each signature is placed on the part that it arrived with.
fn answer(message: &Message, options: &RequestOptions) -> Vec<Value> {
    let calls = message.calls();
    let own: Vec<(PastBlock<'_>, &Value)> = message
        .blocks()
        .into_iter()
        .filter_map(|b| Some((b, b.data(API)?)))
        .collect();
    let is_text = |data: &Value| data.get("of").is_some_and(|of| of == "text");
    let mut parts = Vec::new();
    let before = |b: &PastBlock<'_>| b.calls == 0 && !b.text;
    parts.extend(
        own.iter()
            .filter(|(b, data)| before(b) && !is_text(data))
            .filter_map(|(b, data)| kept(b, data)),
    );
    let said = message.text();
    // The signature of a text arrives with its last piece, or with an empty piece after it.
    let of_text = own
        .iter()
        .rev()
        .find(|(b, data)| is_text(data) && b.calls == 0)
        .and_then(|(_, d)| d.get("thoughtSignature"));
    match (said.is_empty(), of_text) {
        (false, None) => parts.push(json!({"text": said})),
        (_, Some(signature)) => parts.push(json!({"text": said, "thoughtSignature": signature})),
        (true, None) => {}
    }
    let mut signed = own
        .iter()
        .any(|(_, data)| data.get("thoughtSignature").is_some());
    signed |= calls.iter().any(|call| {
        call.provider(API)
            .is_some_and(|p| p.get("thoughtSignature").is_some())
    });
    for n in 0..=calls.len() {
        let here = own
            .iter()
            .filter(|(b, _)| !before(b) && b.calls.min(calls.len()) == n);
        let here = here.filter(|(b, data)| !is_text(data) || b.calls > 0);
        parts.extend(here.filter_map(|(b, data)| {
            if is_text(data) {
                empty(data)
            } else {
                kept(b, data)
            }
        }));
        let Some(call) = calls.get(n) else { continue };
        let mut function = Map::new();
        let own = call.provider(API);
        if let Some(id) = own.and_then(|p| p.get("id")) {
            function.insert("id".to_owned(), id.clone());
        }
        function.put("name", call.name);
        let arguments = serde_json::from_str(call.arguments).unwrap_or_else(|_| json!({}));
        function.insert("args".to_owned(), arguments);
        let mut part = Map::new();
        part.put("functionCall", function);
        if let Some(signature) = own.and_then(|p| p.get("thoughtSignature")) {
            part.insert("thoughtSignature".to_owned(), signature.clone());
        } else if n == 0 && !signed && wants_signature(&options.model) {
            part.put("thoughtSignature", NO_SIGNATURE);
        }
        parts.push(part.into());
    }
    // The API rejects a turn that only contains thoughts.
    if parts.iter().all(|p| p.get("thought").is_some()) {
        Vec::new()
    } else {
        parts
    }
}

/// Returns a thought with its signature, or a part that the provider ran itself.
fn kept(block: &PastBlock<'_>, data: &Value) -> Option<Value> {
    if let Some(part) = data.get("part") {
        return Some(part.clone());
    }
    let signature = data.get("thoughtSignature")?;
    Some(json!({"text": block.thinking, "thought": true, "thoughtSignature": signature}))
}

/// Returns an empty text with its signature, to be placed after the calls.
fn empty(data: &Value) -> Option<Value> {
    Some(json!({"text": "", "thoughtSignature": data.get("thoughtSignature")?}))
}

/// Whether the model is of generation 3 or later.
fn wants_signature(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let digits = name
        .strip_prefix("gemini-")
        .and_then(|rest| rest.split(['.', '-']).next());
    digits
        .and_then(|d| d.parse::<u32>().ok())
        .is_some_and(|generation| generation >= 3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Api::Gemini;
    use crate::support::body;

    #[test]
    fn a_turn_of_calls_and_results() {
        let body = body(
            Gemini,
            &RequestOptions {
                tool_choice: Some("f".into()),
                ..RequestOptions::default()
            },
            r#"[{"type":"function","function":{"name":"f","parameters":{"$schema":"x","type":"object","properties":{},"additionalProperties":false}}},{"googleSearch":{}}]"#,
            r#"{"role":"system","content":"Be kind."}
            {"role":"user","content":[{"type":"text","text":"See:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}
            {"role":"assistant","content":"Two calls.","provider":[
                {"thinking":"","data":{"gemini":{"part":{"executableCode":{"code":"1"}}}},"calls":0,"text":false},
                {"thinking":"hm","data":{"gemini":{"thoughtSignature":"s0"}},"calls":0,"text":false},
                {"thinking":"unsigned","data":{"gemini":{"thoughtSignature":"s1","of":"text"}},"calls":0,"text":true},
                {"thinking":"","data":{"gemini":{"thoughtSignature":"s4","of":"text"}},"calls":2,"text":true}],
             "tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"a\":1}"},"provider":{"gemini":{"id":"a","thoughtSignature":"s2"}}},
                {"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]}
            {"role":"tool","tool_call_id":"a","content":"{\"n\":1}"}
            {"role":"tool","tool_call_id":"b","content":"[2]"}"#,
        );
        let want = json!({
            "systemInstruction": {"parts": [{"text": "Be kind."}]},
            "contents": [
                {"role": "user", "parts": [{"text": "See:"}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]},
                {"role": "model", "parts": [
                    {"executableCode": {"code": "1"}},
                    {"text": "hm", "thought": true, "thoughtSignature": "s0"},
                    {"text": "Two calls.", "thoughtSignature": "s1"},
                    {"functionCall": {"id": "a", "name": "f", "args": {"a": 1}}, "thoughtSignature": "s2"},
                    {"functionCall": {"name": "f", "args": {}}},
                    {"text": "", "thoughtSignature": "s4"},
                ]},
                {"role": "user", "parts": [
                    {"functionResponse": {"id": "a", "name": "f", "response": {"n": 1}}},
                    {"functionResponse": {"name": "f", "response": {"result": "[2]"}}},
                ]},
            ],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
            "tools": [
                {"functionDeclarations": [{"name": "f", "parametersJsonSchema": {"type": "object", "properties": {}, "additionalProperties": false}}]},
                {"googleSearch": {}},
            ],
        });
        assert_eq!(body, want);
    }

    #[test]
    fn calls_of_another_model_get_the_mark_that_generation_3_wants() {
        let talk = r#"{"role":"user","content":"a"}
            {"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}
            {"role":"tool","tool_call_id":"a","content":"x"}"#;
        let of = |model: &str| {
            let options = RequestOptions {
                model: model.to_owned(),
                ..RequestOptions::default()
            };
            body(Gemini, &options, "null", talk)["contents"][1]["parts"][0]["thoughtSignature"]
                .take()
        };
        assert_eq!(of("models/gemini-3-pro-preview"), NO_SIGNATURE);
        assert_eq!(of("gemini-2.5-flash"), Value::Null);
    }

    #[test]
    fn the_method_and_the_model_are_in_the_path() {
        let of = |model: &str, stream| {
            path(&RequestOptions {
                model: model.to_owned(),
                stream,
                ..RequestOptions::default()
            })
        };
        let whole = |model: &str| of(model, false).unwrap();
        assert_eq!(
            of("models/gemini-2.5-pro", true).unwrap(),
            "/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
        );
        for (model, segments) in [
            ("gemini-2.5-pro", "models/gemini-2.5-pro"),
            ("tunedModels/mine", "tunedModels/mine"),
            ("models/models/x", "models/models%2Fx"),
            ("models/tunedModels/x", "models/tunedModels%2Fx"),
            ("org/x?key=1#", "models/org%2Fx%3Fkey%3D1%23"),
            ("x:embedContent", "models/x%3AembedContent"),
            ("é %2f", "models/%C3%A9%20%252f"),
            ("a..b", "models/a..b"),
        ] {
            assert_eq!(whole(model), format!("/{segments}:generateContent"));
        }
        for model in [
            "",
            "models/",
            ".",
            "..",
            "models/..",
            "tunedModels/..",
            "../../admin/keys?x=#",
            "a/../b",
            "..\\a",
            "%2e%2e",
            "..%2Fadmin",
            "..;x",
            ".. ",
        ] {
            assert_eq!(
                of(model, true),
                Err(RequestError::Model(model.to_owned())),
                "{model}"
            );
        }
    }
}
