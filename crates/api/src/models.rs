//! Lists a provider's models: builds the request and parses the response.
//!
//! Sources (2026-11): <https://platform.openai.com/docs/api-reference/models/list>,
//! <https://docs.anthropic.com/en/api/models-list>, <https://ai.google.dev/api/models>,
//! <https://github.com/ollama/ollama/blob/main/docs/api.md#list-local-models>,
//! <https://docs.mistral.ai/api/#tag/models>, <https://docs.cohere.com/reference/list-models>.

use crate::Api;
use crate::passed::versioned;
use crate::request::{Request, RequestOptions, headers, url};
use event::Raw;
use std::borrow::Cow;

/// Builds the request for the list of models.
pub fn models_request(api: Api, options: &RequestOptions) -> Request {
    let versioned = versioned(api, options);
    let url = match api {
        Api::OpenaiChat | Api::OpenaiResponses | Api::Mistral => versioned + "/models",
        Api::Anthropic => versioned + "/models?limit=1000",
        Api::Gemini => url(&versioned, "/models?pageSize=1000"),
        Api::Ollama => versioned + "/api/tags",
        Api::Cohere => versioned + "/v1/models?page_size=1000",
    };
    Request {
        method: "GET",
        url,
        headers: headers(api.provider(), options),
        body: String::new(),
    }
}

/// A model in a server's list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedModel {
    /// The model's name, as used in requests.
    pub name: String,
    /// When the model was created, in seconds since 1970 (`created` in OpenAI's list).
    pub created: Option<i64>,
    /// The model's owner (`owned_by` in OpenAI's list).
    pub owned_by: Option<String>,
}

impl From<&str> for ListedModel {
    fn from(name: &str) -> Self {
        ListedModel {
            name: name.to_owned(),
            ..ListedModel::default()
        }
    }
}

/// Returns the models in a response, in order. Returns an empty list if its format is unknown.
pub fn listed_models(body: &str) -> Vec<ListedModel> {
    let Ok(body) = Raw::parse(body) else {
        return vec![];
    };
    let list = if body.is_array() {
        Some(body)
    } else {
        body.get("data").or_else(|| body.get("models"))
    };
    let model = |model: Raw<'_>| {
        let name: Cow<'_, str> = ["id", "name", "model"]
            .iter()
            .find_map(|key| model.get(key)?.str())?;
        // Gemini's model names are paths.
        let name = Some(name.strip_prefix("models/").unwrap_or(&name).to_owned())
            .filter(|name| !name.is_empty())?;
        let owned_by = model.get_str("owned_by").map(Cow::into_owned);
        Some(ListedModel {
            name,
            created: model.get("created").and_then(Raw::i64),
            owned_by,
        })
    };
    list.into_iter()
        .flat_map(|list| list.items().filter_map(model))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_api_has_its_list_under_its_address() {
        for (api, base, url) in [
            (Api::OpenaiChat, None, "https://api.openai.com/v1/models"),
            (
                Api::OpenaiChat,
                Some("http://h:1/v1"),
                "http://h:1/v1/models",
            ),
            (
                Api::OpenaiChat,
                Some("http://h/x/chat/completions?v=1"),
                "http://h/x/models",
            ),
            (
                Api::OpenaiResponses,
                None,
                "https://api.openai.com/v1/models",
            ),
            (
                Api::Anthropic,
                None,
                "https://api.anthropic.com/v1/models?limit=1000",
            ),
            (
                Api::Gemini,
                None,
                "https://generativelanguage.googleapis.com/v1beta/models?pageSize=1000",
            ),
            (
                Api::Gemini,
                Some("http://h/v1beta/models"),
                "http://h/v1beta/models?pageSize=1000",
            ),
            (
                Api::Gemini,
                Some("http://h/v1beta/models/x:generateContent"),
                "http://h/v1beta/models?pageSize=1000",
            ),
            (Api::Ollama, Some("http://h:1"), "http://h:1/api/tags"),
            (Api::Mistral, None, "https://api.mistral.ai/v1/models"),
            (
                Api::Cohere,
                None,
                "https://api.cohere.com/v1/models?page_size=1000",
            ),
        ] {
            let options = RequestOptions {
                model: "tunedModels/..".into(),
                base_url: base.map(str::to_owned),
                key: Some("k".into()),
                ..RequestOptions::default()
            };
            let request = models_request(api, &options);
            assert_eq!(
                (request.url.as_str(), request.method),
                (url, "GET"),
                "{api:?}"
            );
            assert!(
                request
                    .headers
                    .iter()
                    .any(|(_, value)| value.ends_with('k')),
                "{api:?}"
            );
        }
    }

    #[test]
    fn names_are_read_in_every_shape() {
        for (body, names) in [
            (
                r#"{"object":"list","data":[{"id":"a"},{"id":"b"},{"x":1},{"id":""}]}"#,
                &["a", "b"][..],
            ),
            (
                r#"{"models":[{"name":"models/gemini-x","displayName":"X"}]}"#,
                &["gemini-x"],
            ),
            (
                r#"{"models":[{"name":"qwen3:4b","model":"qwen3:4b"}]}"#,
                &["qwen3:4b"],
            ),
            (r#"[{"id":"a"}]"#, &["a"]),
            (r#"{"error":"no"}"#, &[]),
            ("nonsense", &[]),
        ] {
            let found: Vec<String> = listed_models(body)
                .into_iter()
                .map(|model| model.name)
                .collect();
            assert_eq!(found, names, "{body}");
        }
    }
}
