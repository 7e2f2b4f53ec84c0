//! A conversation into the request of the next turn.

pub(crate) mod anthropic;
pub(crate) mod cohere;
pub(crate) mod gemini;
pub(crate) mod mistral;
pub(crate) mod ollama;
pub(crate) mod openai_chat;
pub(crate) mod openai_responses;

use crate::api::KeyRule;
use crate::{Api, Conversation};
use serde_json::{Map, Value};

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
    /// An array of tools in OpenAI's shape.
    pub tools: Option<Value>,
    /// `auto`, `none`, `required` or a tool's name.
    pub tool_choice: Option<String>,
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
            params: Vec::new(),
            headers: Vec::new(),
            stream: true,
        }
    }
}

/// A request, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// `POST`.
    pub method: &'static str,
    /// Absolute, with its query.
    pub url: String,
    /// Names in lower case, `content-type` and the key's among them.
    pub headers: Vec<(String, String)>,
    /// JSON on one line.
    pub body: String,
}

/// Why no request can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The tools are no array of function tools.
    #[error("the tools are wrong: {0}")]
    Tools(String),
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
/// When the conversation is empty, or the tools or a message cannot be put into the API's shape.
pub fn request(api: Api, talk: &Conversation, options: &RequestOptions) -> Result<Request, RequestError> {
    let row = api.row();
    let mut body = (row.body)(&talk.gated(), options)?;
    for (key, value) in &options.params {
        body.insert(key.clone(), value.clone());
    }
    let url = url(options.base_url.as_deref().unwrap_or(row.base_url), &(row.path)(options));
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
    Ok(Request { method: "POST", url, headers, body: Value::Object(body).to_string() })
}

fn url(base: &str, path: &str) -> String {
    format!("{}{path}", base.trim_end_matches('/'))
}
