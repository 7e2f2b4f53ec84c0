//! Builds the request for a conversation's next turn.

pub(crate) mod gate;
pub(crate) mod options;
pub(crate) mod part;
pub(crate) mod results;
pub(crate) mod tagged;

use crate::Api;
use crate::conversation::{Conversation, Message};
use crate::provider::{KeyRule, Provider};
use crate::request::gate::gated;
use crate::request::results::with_text_results;
use crate::request::tagged::{NATIVE, tagged};
use sha2::Digest as _;

pub(crate) use crate::request::gate::result_without_call;
pub use crate::request::options::{RequestError, RequestOptions};

/// A complete HTTP request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// `POST`, or `GET` for a [`crate::ProbeQuestion`].
    pub method: &'static str,
    /// The absolute URL, with its query.
    pub url: String,
    /// The headers, with names in lower case. Includes `content-type` and the API key's header.
    pub headers: Vec<(String, String)>,
    /// The body: JSON on one line.
    pub body: String,
}

impl Request {
    /// Returns a name for the response, for providers that send no id. It is the start of the
    /// body's SHA-256: the body contains the whole conversation, so the name differs in every turn.
    pub fn name(&self) -> String {
        let hash = sha2::Sha256::digest(self.body.as_bytes());
        hash.iter()
            .take(8)
            .fold("request-".to_owned(), |name, b| name + &format!("{b:02x}"))
    }
}

/// Builds the request for the next turn.
///
/// # Errors
/// Fails if the conversation is empty, or if a message cannot be represented in the API.
pub fn request(
    api: Api,
    talk: &Conversation,
    options: &RequestOptions,
) -> Result<Request, RequestError> {
    let provider = api.provider();
    let verbatim = talk
        .verbatim
        .as_ref()
        .filter(|verbatim| verbatim.fits(provider.name, talk.messages.len()));
    let verbatim = verbatim.filter(|_| options.dialect.is_none() && options.system.is_none());
    let is_partial = verbatim.is_some_and(|verbatim| verbatim.is_partial);
    if !is_partial
        && talk
            .verbatim
            .as_ref()
            .is_some_and(|verbatim| verbatim.is_partial)
    {
        return Err(RequestError::Partial);
    }
    if !is_partial && talk.messages.is_empty() && options.system.is_none() {
        return Err(RequestError::Empty);
    }
    let client = talk.client;
    // Takes the conversation by value: it may be large, and this frees each copy before making the
    // next.
    let made = |talk: Conversation| match options.dialect {
        Some(dialect) => {
            let (talk, options) = tagged(talk, options, dialect);
            (provider.body)(&talk, &options)
        }
        // A client that speaks the same API knows which parts its server accepts.
        None if provider.has_text_results && client != Some(provider.name) => {
            (provider.body)(&with_text_results(talk), options)
        }
        None => (provider.body)(&talk, options),
    };
    // A partial request needs a placeholder message, which the client's own messages replace.
    let talk = if is_partial {
        Conversation::of(vec![Message::user("-")])
    } else {
        gated(talk, options.tools.as_deref())
    };
    let mut body = made(if provider.has_refusals {
        talk
    } else {
        // In a client's conversation, this provider produced the answers.
        talk.with_refusals_as_text(client.is_some() && provider.name == "anthropic")
    })?;
    if let Some(verbatim) = verbatim {
        // The original members replace the tools, too.
        body.tools = None;
        verbatim.put(&mut body.members);
    }
    for (key, value) in &options.params {
        body.set(key, value.clone());
    }
    if options.dialect.is_some() {
        body.members
            .retain(|key, _| !NATIVE.contains(&key.as_str()));
    }
    let body = body.text();
    let url = url(
        options.base_url.as_deref().unwrap_or(provider.base_url),
        &(provider.path)(options)?,
    );
    Ok(Request {
        method: "POST",
        url,
        headers: headers(provider, options),
        body,
    })
}

/// Returns the headers for every request to this API, including the API key's.
pub(crate) fn headers(provider: &Provider, options: &RequestOptions) -> Vec<(String, String)> {
    let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    headers.extend(
        provider
            .headers
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned())),
    );
    if let Some(key) = &options.key {
        headers.push(match provider.key {
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

/// Joins a base URL and a path. A segment that ends `base` and starts `path` is written once
/// (`…/v1` and `/v1/messages`). A base that already ends with the whole path is kept. The base's
/// query (Azure's `api-version`) is moved behind the path.
pub(crate) fn url(base: &str, path: &str) -> String {
    let (base, query) = base
        .split_once('?')
        .map_or((base, None), |(base, query)| (base, Some(query)));
    let (path, own) = path
        .split_once('?')
        .map_or((path, None), |(path, query)| (path, Some(query)));
    let base = base.trim_end_matches('/');
    let first = path
        .trim_start_matches('/')
        .split('/')
        .next()
        .unwrap_or_default();
    let authority = base.split_once("://").map_or(base, |(_, rest)| rest);
    let ends_with = |segment: &str| authority.split('/').skip(1).last() == Some(segment);
    let mut url = if base.ends_with(path) {
        base.to_owned()
    } else if ends_with(first) {
        format!("{base}{}", &path[first.len() + 1..])
    } else {
        format!("{base}{path}")
    };
    for (at, query) in query
        .into_iter()
        .chain(own)
        .filter(|q| !q.is_empty())
        .enumerate()
    {
        url.push(if at == 0 { '?' } else { '&' });
        url.push_str(query);
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

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
            tools: crate::support::list(
                r#"[{"name": "f", "description": "F", "inputSchema": {"type": "object"}, "exec": {"command": ["f"]}}]"#,
            ),
            tool_choice: Some("f".into()),
            params: vec![("temperature".into(), json!(0))],
            ..RequestOptions::default()
        };
        let request = request(api, &talk, &options).unwrap();
        assert_eq!(
            request.url,
            url(api.base_url(), &(api.provider().path)(&options).unwrap())
        );
        serde_json::from_str(&request.body).unwrap()
    }

    #[test]
    fn a_body_is_what_a_tree_of_it_writes_also_with_other_tools() {
        let (talk, _) = Conversation::read(LOG);
        let tools = r#"[{"name": "f", "description": "F\t\"é\"", "strict": true, "inputSchema": {"type": "object", "maxProperties": 1.50}},
            {"type": "web_search", "limit": 3}]"#;
        for api in Api::ALL {
            for params in [
                vec![],
                vec![(options::TOOLS.to_owned(), json!([{"own": 1}]))],
            ] {
                let options = RequestOptions {
                    model: "m".into(),
                    tools: crate::support::list(tools),
                    params: params.clone(),
                    ..RequestOptions::default()
                };
                let body = request(api, &talk, &options).unwrap().body;
                let tree: Value = serde_json::from_str(&body).unwrap();
                assert_eq!(tree.to_string(), body, "{}", api.name());
                let has_tools = body.contains(r#"\"é\""#) && body.contains("1.50");
                assert_eq!(has_tools, params.is_empty(), "{body}");
                let is_strict = params.is_empty()
                    && matches!(api, Api::OpenaiChat | Api::OpenaiResponses | Api::Mistral);
                assert!(!is_strict || body.contains(r#""strict":true"#), "{body}");
                assert!(api != Api::Cohere || !body.contains("strict"), "{body}");
            }
        }
    }

    #[test]
    fn chat_completions() {
        let body = made(Api::OpenaiChat);
        assert_eq!(body["stream_options"], json!({"include_usage": true}));
        assert_eq!(
            body["tool_choice"],
            json!({"type": "function", "function": {"name": "f"}})
        );
        assert_eq!(
            body["tools"],
            json!([{"type": "function", "function": {"name": "f", "description": "F", "parameters": {"type": "object"}}}])
        );
        assert_eq!(body["temperature"], json!(0));
        let messages = body["messages"].as_array().unwrap();
        assert_eq!(
            messages
                .iter()
                .map(|m| m["role"].as_str().unwrap())
                .collect::<Vec<_>>(),
            ["system", "user", "assistant", "tool", "tool", "user"]
        );
        assert_eq!(
            messages[1]["content"][1]["image_url"]["url"],
            "data:image/png;base64,AAAA"
        );
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
            messages
                .iter()
                .map(|m| m["role"].as_str().unwrap())
                .collect::<Vec<_>>(),
            [
                "system",
                "user",
                "assistant",
                "tool",
                "tool",
                "assistant",
                "user"
            ]
        );
        let id = messages[2]["tool_calls"][0]["id"].as_str().unwrap();
        assert!(
            id.len() == 9
                && id.bytes().all(|b| b.is_ascii_alphanumeric())
                && messages[3]["tool_call_id"] == id
        );
        assert_ne!(messages[4]["tool_call_id"], id);
        assert_eq!(
            messages[2]["content"],
            json!([{"type": "thinking", "thinking": [{"type": "text", "text": "m"}]}])
        );
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
        assert_eq!(
            body["messages"][1],
            json!({"role": "user", "content": "look", "images": ["AAAA"]})
        );
        assert_eq!(
            body["messages"][2]["tool_calls"][0].to_string(),
            r#"{"id":"call_1","function":{"name":"f","arguments":{"n":1.10}}}"#
        );
        assert_eq!(
            (
                &body["messages"][2]["thinking"],
                &body["messages"][3]["tool_name"]
            ),
            (&json!("o"), &json!("f"))
        );
        assert_eq!(body["messages"][4]["tool_name"], "g");
    }

    #[test]
    fn addresses_and_headers() {
        for (base, path, want) in [
            (
                "https://a/v1",
                "/chat/completions",
                "https://a/v1/chat/completions",
            ),
            ("https://a/v1/", "/v1/messages", "https://a/v1/messages"),
            ("https://a", "/v1/messages", "https://a/v1/messages"),
            ("http://v1", "/v1/messages", "http://v1/v1/messages"),
            (
                "http://localhost:11434/api",
                "/api/chat",
                "http://localhost:11434/api/chat",
            ),
            (
                "https://a/d/chat/completions?api-version=1",
                "/chat/completions",
                "https://a/d/chat/completions?api-version=1",
            ),
            (
                "https://a/v1beta?x=y",
                "/models/m:stream?alt=sse",
                "https://a/v1beta/models/m:stream?x=y&alt=sse",
            ),
        ] {
            assert_eq!(url(base, path), want, "{base} {path}");
        }
        let mut talk = Conversation::default();
        assert_eq!(
            request(Api::Anthropic, &talk, &RequestOptions::default()).unwrap_err(),
            RequestError::Empty
        );
        talk.push_user("hi");
        let options = RequestOptions {
            key: Some("k".into()),
            headers: vec![("Authorization".into(), "x".into())],
            ..RequestOptions::default()
        };
        let headers = request(Api::Cohere, &talk, &options).unwrap().headers;
        assert_eq!(
            headers,
            [
                ("content-type".into(), "application/json".into()),
                ("authorization".into(), "x".into())
            ]
        );
        let headers = request(
            Api::OpenaiChat,
            &talk,
            &RequestOptions {
                key: Some("k".into()),
                ..RequestOptions::default()
            },
        )
        .unwrap()
        .headers;
        assert_eq!(headers[1], ("authorization".into(), "Bearer k".into()));
    }
}
