//! A conversation into the request of the next turn.

pub(crate) mod anthropic;
pub(crate) mod cohere;
pub(crate) mod gemini;
pub(crate) mod mistral;
pub(crate) mod ollama;
pub(crate) mod openai_chat;
pub(crate) mod openai_responses;
mod part;
mod prompt;
#[cfg(test)]
pub(crate) mod sample;
mod tools;

pub(crate) use prompt::is_system;
pub(crate) use tools::{Tool, ToolChoice, value};

use crate::api::{KeyRule, Row};
use crate::conversation::{NATIVE, tagged};
use crate::{Api, Conversation};
use json::ToolList;
use serde_json::{Map, Value, json};
use sha2::Digest as _;
use std::sync::Arc;

/// The builder of one API's body. It gets a conversation that went through the history gate.
pub(crate) type Body = fn(&Conversation, &RequestOptions) -> Result<Map<String, Value>, RequestError>;

/// What the user asks for beside the conversation.
#[derive(Clone, Debug)]
pub struct RequestOptions {
    /// The model's name, as the provider knows it.
    pub model: String,
    /// Where to send it; the provider's own address if there is none. What it holds beyond that (a path, a query) is kept.
    pub base_url: Option<String>,
    /// The key, if one is needed.
    pub key: Option<String>,
    /// A system prompt, before those of the conversation.
    pub system: Option<String>,
    /// The tools the model may call.
    pub tools: Option<Arc<ToolList>>,
    /// `auto`, `none`, `required` or a tool's name.
    pub tool_choice: Option<String>,
    /// Tag mode: tools and calls are text in this dialect, and no member of the body speaks of them.
    pub dialect: Option<&'static tag::Dialect>,
    /// Members of the body, which go in last and take the place of what is there.
    pub params: Vec<(String, Value)>,
    /// Headers of the user's, which take the place of those of the same name.
    pub headers: Vec<(String, String)>,
    /// Whether to ask for a stream.
    pub stream: bool,
}

impl Default for RequestOptions {
    fn default() -> Self {
        RequestOptions {
            model: String::new(),
            base_url: None,
            key: None,
            system: None,
            tools: None,
            tool_choice: None,
            dialect: None,
            params: Vec::new(),
            headers: Vec::new(),
            stream: true,
        }
    }
}

/// A request, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// `POST`, or `GET` for a [`crate::Question`].
    pub method: &'static str,
    /// Absolute, with its query.
    pub url: String,
    /// Names in lower case, `content-type` and the key's among them.
    pub headers: Vec<(String, String)>,
    /// JSON on one line.
    pub body: String,
}

impl RequestOptions {
    /// The messages of a chat body so far: the system prompt as a message, if there is one.
    fn opening(&self, talk: &Conversation) -> Vec<Value> {
        let mut messages = Vec::with_capacity(talk.messages.len() + 1);
        messages.extend(self.system.as_ref().map(|text| json!({"role": "system", "content": text})));
        messages
    }

    /// A chat body with its model and messages, which every API of that family begins with.
    fn chat(&self, messages: Vec<Value>) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("model".into(), self.model.as_str().into());
        body.insert("messages".into(), messages.into());
        body
    }
}

impl Request {
    /// A name for the response, where the provider gives it none: the beginning of the SHA-256 of the body, which holds the whole
    /// conversation and so differs from turn to turn.
    pub fn name(&self) -> String {
        let hash = sha2::Sha256::digest(self.body.as_bytes());
        hash.iter().take(8).fold("request-".to_owned(), |name, b| name + &format!("{b:02x}"))
    }
}

/// Why no request can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// A message cannot be put into this API's shape.
    #[error("message {position}: {why}")]
    Message {
        /// The message's 1-based position in the conversation.
        position: usize,
        /// What is wrong with it.
        why: String,
    },
    /// There is no message to answer.
    #[error("the conversation has no message: give a PROMPT, or a log with \"message\" events on standard input")]
    Empty,
}

/// Makes the request of the next turn.
///
/// # Errors
/// When the conversation is empty, or a message cannot be put into the API's shape.
pub fn request(api: Api, talk: &Conversation, options: &RequestOptions) -> Result<Request, RequestError> {
    let row = api.row();
    if talk.messages.is_empty() && options.system.is_none() {
        return Err(RequestError::Empty);
    }
    let talk = match api {
        Api::OpenaiChat | Api::OpenaiResponses => talk.gated(),
        _ => talk.gated().with_refusals_as_text(),
    };
    let mut body = match options.dialect {
        Some(dialect) => {
            let (talk, options) = tagged(talk, options, dialect)?;
            (row.body)(&talk, &options)?
        }
        None => (row.body)(&talk, options)?,
    };
    for (key, value) in &options.params {
        body.insert(key.clone(), value.clone());
    }
    if options.dialect.is_some() {
        body.retain(|key, _| !NATIVE.contains(&key.as_str()));
    }
    let url = url(options.base_url.as_deref().unwrap_or(row.base_url), &(row.path)(options));
    Ok(Request { method: "POST", url, headers: headers(row, options), body: Value::Object(body).to_string() })
}

/// The headers of every request to this API, with the key's among them.
pub(crate) fn headers(row: &Row, options: &RequestOptions) -> Vec<(String, String)> {
    let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    headers.extend(row.headers.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
    if let Some(key) = &options.key {
        headers.push(match row.key {
            KeyRule::Bearer => ("authorization".to_owned(), format!("Bearer {key}")),
            KeyRule::XApiKey => ("x-api-key".to_owned(), key.clone()),
            KeyRule::Google => ("x-goog-api-key".to_owned(), key.clone()),
        });
    }
    for (name, value) in &options.headers {
        let name = name.to_ascii_lowercase();
        headers.retain(|(k, _)| *k != name);
        headers.push((name, value.clone()));
    }
    headers
}

/// Joins them. A segment that the base ends with and the path begins with stands once (`…/v1` and `/v1/messages`); a base that
/// holds the whole path already is kept; the query of the base (Azure's `api-version`) goes behind the path.
pub(crate) fn url(base: &str, path: &str) -> String {
    let (base, query) = base.split_once('?').map_or((base, None), |(base, query)| (base, Some(query)));
    let (path, own) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    let base = base.trim_end_matches('/');
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    let authority = base.split_once("://").map_or(base, |(_, rest)| rest);
    let ends_with = |segment: &str| authority.split('/').skip(1).last() == Some(segment);
    let mut url = if base.ends_with(path) {
        base.to_owned()
    } else if ends_with(first) {
        format!("{base}{}", &path[first.len() + 1..])
    } else {
        format!("{base}{path}")
    };
    for (at, query) in query.into_iter().chain(own).filter(|q| !q.is_empty()).enumerate() {
        url.push(if at == 0 { '?' } else { '&' });
        url.push_str(query);
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const LOG: &str = concat!(
        r#"{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}"#,
        "\n",
        r#"{"type":"message","message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"n\":1.10}"},"provider":{"openai-chat":{"extra_content":{"google":{"thought_signature":"s"}}},"gemini":{"thoughtSignature":"g"}}},{"id":"call_2","type":"function","function":{"name":"g","arguments":"{}"}}],"reasoning":"hm","provider":[{"thinking":"h","data":{"openai-chat":{"field":"reasoning_content"}},"calls":0,"text":false},{"thinking":"m","data":{"mistral":{"field":"thinking"}},"calls":0,"text":false},{"thinking":"p","data":{"cohere":{"field":"tool_plan"}},"calls":0,"text":false},{"thinking":"o","data":{"ollama":{"field":"thinking"}},"calls":0,"text":false}]}}"#,
        "\n",
        r#"{"role":"tool","tool_call_id":"call_1","name":"f","content":"42"}"#,
        "\n",
        r#"{"role":"user","content":"go on"}"#,
    );

    fn made(api: Api) -> Value {
        let (talk, problems) = Conversation::read(LOG);
        assert!(problems.is_empty());
        let options = RequestOptions {
            model: "m".into(),
            system: Some("be brief".into()),
            tools: sample::list(
                r#"[{"name": "f", "description": "F", "inputSchema": {"type": "object"}, "exec": {"command": ["f"]}}]"#,
            ),
            tool_choice: Some("f".into()),
            params: vec![("temperature".into(), json!(0))],
            ..RequestOptions::default()
        };
        let request = request(api, &talk, &options).unwrap();
        assert_eq!(request.url, url(api.base_url(), &(api.row().path)(&options)));
        serde_json::from_str(&request.body).unwrap()
    }

    #[test]
    fn chat_completions() {
        let body = made(Api::OpenaiChat);
        assert_eq!(body["stream_options"], json!({"include_usage": true}));
        assert_eq!(body["tool_choice"], json!({"type": "function", "function": {"name": "f"}}));
        assert_eq!(
            body["tools"],
            json!([{"type": "function", "function": {"name": "f", "description": "F", "parameters": {"type": "object"}}}])
        );
        assert_eq!(body["temperature"], json!(0));
        let messages = body["messages"].as_array().unwrap();
        assert_eq!(
            messages.iter().map(|m| m["role"].as_str().unwrap()).collect::<Vec<_>>(),
            ["system", "user", "assistant", "tool", "tool", "user"]
        );
        assert_eq!(messages[1]["content"][1]["image_url"]["url"], "data:image/png;base64,AAAA");
        assert_eq!(
            messages[2].to_string(),
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"n\":1.10}"},"extra_content":{"google":{"thought_signature":"s"}}},{"id":"call_2","type":"function","function":{"name":"g","arguments":"{}"}}],"reasoning_content":"h"}"#
        );
        assert_eq!(messages[4]["content"], "cancelled: this call was not run");
    }

    #[test]
    fn mistral_has_ids_of_its_own_form_and_its_own_order() {
        let body = made(Api::Mistral);
        let messages = body["messages"].as_array().unwrap();
        assert_eq!(
            messages.iter().map(|m| m["role"].as_str().unwrap()).collect::<Vec<_>>(),
            ["system", "user", "assistant", "tool", "tool", "assistant", "user"]
        );
        let id = messages[2]["tool_calls"][0]["id"].as_str().unwrap();
        assert!(id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric()) && messages[3]["tool_call_id"] == id);
        assert_ne!(messages[4]["tool_call_id"], id);
        assert_eq!(messages[2]["content"], json!([{"type": "thinking", "thinking": [{"type": "text", "text": "m"}]}]));
        assert!(body.get("stream_options").is_none());
    }

    #[test]
    fn cohere_has_a_plan_and_no_choice_by_name() {
        let body = made(Api::Cohere);
        assert_eq!(body["tool_choice"], "REQUIRED");
        assert_eq!(body["messages"][2]["tool_plan"], "p");
        assert!(body["messages"][2].get("content").is_none());
    }

    #[test]
    fn ollama_has_objects_images_and_names() {
        let body = made(Api::Ollama);
        assert_eq!(body["messages"][1], json!({"role": "user", "content": "look", "images": ["AAAA"]}));
        assert_eq!(
            body["messages"][2]["tool_calls"][0].to_string(),
            r#"{"id":"call_1","function":{"name":"f","arguments":{"n":1.10}}}"#
        );
        assert_eq!((&body["messages"][2]["thinking"], &body["messages"][3]["tool_name"]), (&json!("o"), &json!("f")));
        assert_eq!(body["messages"][4]["tool_name"], "g");
    }

    #[test]
    fn addresses_and_headers() {
        for (base, path, want) in [
            ("https://a/v1", "/chat/completions", "https://a/v1/chat/completions"),
            ("https://a/v1/", "/v1/messages", "https://a/v1/messages"),
            ("https://a", "/v1/messages", "https://a/v1/messages"),
            ("http://v1", "/v1/messages", "http://v1/v1/messages"),
            ("http://localhost:11434/api", "/api/chat", "http://localhost:11434/api/chat"),
            (
                "https://a/d/chat/completions?api-version=1",
                "/chat/completions",
                "https://a/d/chat/completions?api-version=1",
            ),
            ("https://a/v1beta?x=y", "/models/m:stream?alt=sse", "https://a/v1beta/models/m:stream?x=y&alt=sse"),
        ] {
            assert_eq!(url(base, path), want, "{base} {path}");
        }
        let mut talk = Conversation::default();
        assert_eq!(request(Api::Anthropic, &talk, &RequestOptions::default()).unwrap_err(), RequestError::Empty);
        talk.push_user("hi");
        let options = RequestOptions {
            key: Some("k".into()),
            headers: vec![("Authorization".into(), "x".into())],
            ..RequestOptions::default()
        };
        let headers = request(Api::Cohere, &talk, &options).unwrap().headers;
        assert_eq!(headers, [("content-type".into(), "application/json".into()), ("authorization".into(), "x".into())]);
        let headers =
            request(Api::OpenaiChat, &talk, &RequestOptions { key: Some("k".into()), ..RequestOptions::default() })
                .unwrap()
                .headers;
        assert_eq!(headers[1], ("authorization".into(), "Bearer k".into()));
    }
}
