//! Finds out whether a model supports native calls: which requests to send to a server, and how to
//! interpret the responses.
//!
//! Sources: OpenRouter's list of models (`supported_parameters`), and lists of the same shape with
//! `features.tool_calls` or, like Mistral's, `capabilities.function_calling`; Ollama's
//! `POST /api/show` (`capabilities`), LM Studio's `GET /api/v0/models` (`capabilities`),
//! llama.cpp's `GET /props` (`chat_template_caps`, `chat_template`).

use crate::Api;
use crate::request::{Request, RequestOptions, headers, url};
use event::Raw;
use serde_json::json;
use sha2::Digest as _;
use std::borrow::Cow;

/// One request that asks a server about its capabilities. A failed response is inconclusive.
#[derive(Clone, Debug)]
pub struct ProbeQuestion {
    /// The request to send.
    pub request: Request,
    model: String,
    kind: ProbeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProbeKind {
    /// The list of models, which every server of OpenAI's API has. Some servers include
    /// capabilities.
    Models,
    /// llama.cpp
    Props,
    /// LM Studio
    Studio,
    /// Checks whether the server is Ollama. Later questions are only for Ollama, because another
    /// server might treat them as a turn.
    Version,
    /// Ollama
    Show,
}

/// The result of a [`ProbeQuestion`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeAnswer {
    /// Whether the model supports native calls, and the member that says so.
    Tells(bool, String),
    /// Inconclusive: ask the next question.
    Nothing,
    /// Inconclusive, and the remaining questions do not apply to this server.
    Over,
}

/// Returns the questions to ask in order until one is conclusive. `local` means that the server is
/// on this machine or network and so may be self-hosted. Returns no questions for a provider's own
/// URL, because its models are known to support native calls.
pub fn questions(api: Api, options: &RequestOptions, local: bool) -> Vec<ProbeQuestion> {
    let provider = api.provider();
    let base = options.base_url.as_deref().unwrap_or(provider.base_url);
    let bare = base.split('?').next().unwrap_or(base);
    // An invalid model name is rejected before any server is asked.
    let Ok(path) = (provider.path)(options) else {
        return vec![];
    };
    let whole = url(bare, &path);
    let own = host(base) == host(provider.base_url);
    let question = |kind, method, url: String, body: String| ProbeQuestion {
        request: Request {
            method,
            url,
            headers: headers(provider, options),
            body,
        },
        model: options.model.clone(),
        kind,
    };
    let get = |kind, url: String| question(kind, "GET", url, String::new());
    let show = |root: &str| {
        question(
            ProbeKind::Show,
            "POST",
            format!("{root}/api/show"),
            json!({"model": options.model}).to_string(),
        )
    };
    let versioned = ["/chat/completions", "/responses", "/messages"]
        .iter()
        .find_map(|tail| whole.strip_suffix(tail));
    match (api, versioned) {
        (Api::Ollama, _) => vec![show(whole.strip_suffix("/api/chat").unwrap_or(&whole))],
        (_, Some(versioned)) if !own => {
            let mut questions = vec![get(ProbeKind::Models, format!("{versioned}/models"))];
            if local {
                let root = ["/api/v0", "/v1"]
                    .iter()
                    .find_map(|v| versioned.strip_suffix(v))
                    .unwrap_or(versioned);
                questions.push(get(ProbeKind::Props, format!("{root}/props")));
                questions.push(get(ProbeKind::Studio, format!("{root}/api/v0/models")));
                questions.push(get(ProbeKind::Version, format!("{root}/api/version")));
                questions.push(show(root));
            }
            questions
        }
        _ => vec![],
    }
}

/// The type of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerKind {
    /// llama.cpp
    LlamaCpp,
    /// Ollama
    Ollama,
    /// Another server, or a server that did not answer.
    #[default]
    Unknown,
}

/// A server's description of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerReport {
    /// The server's type.
    pub kind: ServerKind,
    /// The model's chat template; the one for requests with tools if there are two.
    pub template: Option<String>,
}

/// Returns the questions to ask in order until one identifies the server: those of [`questions`]
/// that are for self-hosted servers.
pub fn server_questions(api: Api, options: &RequestOptions, local: bool) -> Vec<ProbeQuestion> {
    let mut all = questions(api, options, local);
    all.retain(|question| {
        matches!(
            question.kind,
            ProbeKind::Props | ProbeKind::Version | ProbeKind::Show
        )
    });
    all
}

impl ProbeQuestion {
    /// Identifies the server from its response to one of [`server_questions`]. `body` is the body
    /// of a successful response, otherwise `None`. Returns `None` if the next question must be
    /// asked.
    ///
    /// Sources (2026-11):
    /// <https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md> (`GET /props`),
    /// <https://github.com/ollama/ollama/blob/main/docs/api.md#show-model-information>.
    pub fn server(&self, body: Option<&str>) -> Option<ServerReport> {
        let body = body.and_then(|body| Raw::parse(body).ok());
        let text = |key: &str| {
            body?
                .get_str(key)
                .filter(|text| !text.is_empty())
                .map(Cow::into_owned)
        };
        match self.kind {
            ProbeKind::Props => {
                let template = text("chat_template_tool_use").or_else(|| text("chat_template"));
                let is_llama =
                    template.is_some() || body?.get("default_generation_settings").is_some();
                is_llama.then_some(ServerReport {
                    kind: ServerKind::LlamaCpp,
                    template,
                })
            }
            ProbeKind::Version => text("version").is_none().then(ServerReport::default),
            ProbeKind::Show => {
                let kind = if body.is_some() {
                    ServerKind::Ollama
                } else {
                    ServerKind::Unknown
                };
                Some(ServerReport {
                    kind,
                    template: text("template"),
                })
            }
            ProbeKind::Models | ProbeKind::Studio => None,
        }
    }

    /// Interprets the server's response. `body` is the body of a successful response, otherwise
    /// `None`.
    pub fn answer(&self, body: Option<&str>) -> ProbeAnswer {
        let body = body.and_then(|body| Raw::parse(body).ok());
        match body.and_then(|body| self.read(body)) {
            Some((native, what)) => ProbeAnswer::Tells(
                native,
                format!("{what} of {}", plain_url(&self.request.url)),
            ),
            None if self.kind == ProbeKind::Version
                && body.is_none_or(|v| v.get_str("version").is_none()) =>
            {
                ProbeAnswer::Over
            }
            None => ProbeAnswer::Nothing,
        }
    }

    fn read(&self, body: Raw<'_>) -> Option<(bool, &'static str)> {
        Some(match self.kind {
            ProbeKind::Models => listed(self.entry(body)?)?,
            ProbeKind::Props => template(body)?,
            ProbeKind::Studio => (self.studio(body)?, "capabilities"),
            ProbeKind::Version => return None,
            ProbeKind::Show => (has(body.get("capabilities")?, "tools")?, "capabilities"),
        })
    }

    /// Reads LM Studio's list. If any model lists capabilities, a model without them has none.
    fn studio(&self, body: Raw<'_>) -> Option<bool> {
        let lists = |entry: Raw<'_>| has(entry.get("capabilities")?, "tool_use");
        let mine = lists(self.entry(body)?);
        mine.or_else(|| {
            body.get("data")?
                .items()
                .any(|entry| lists(entry).is_some())
                .then_some(false)
        })
    }

    /// Returns the model's entry in a list. An OpenRouter variant (`author/model:free`) may be
    /// listed without its suffix.
    fn entry<'a>(&self, body: Raw<'a>) -> Option<Raw<'a>> {
        let list = if body.is_array() {
            body
        } else {
            body.get("data")?
        };
        let named = |name: &str| {
            list.items()
                .find(|entry| entry.get_str("id").is_some_and(|id| id == name))
        };
        named(&self.model).or_else(|| named(self.model.rsplit_once(':')?.0))
    }
}

/// Reads the capability in one entry of a list of models.
fn listed(entry: Raw<'_>) -> Option<(bool, &'static str)> {
    let parameters = entry
        .get("supported_parameters")
        .and_then(|list| Some((has(list, "tools")?, "supported_parameters")));
    let feature = || {
        Some((
            entry.at(&["features", "tool_calls"])?.bool()?,
            "features.tool_calls",
        ))
    };
    let mistral = || {
        Some((
            entry.at(&["capabilities", "function_calling"])?.bool()?,
            "capabilities.function_calling",
        ))
    };
    parameters.or_else(feature).or_else(mistral)
}

/// Reads llama.cpp's report about the model's chat template. A template without tool support
/// silently ignores tools.
fn template(props: Raw<'_>) -> Option<(bool, &'static str)> {
    let caps = |key: &str| props.at(&["chat_template_caps", key])?.bool();
    let caps = caps("supports_tools").or_else(|| caps("supports_tool_calls"));
    let known = caps.map(|native| (native, "chat_template_caps"));
    known.or_else(|| {
        let templates = ["chat_template", "chat_template_tool_use"].map(|key| props.get_str(key));
        let mut there = templates
            .iter()
            .flatten()
            .filter(|t| !t.is_empty())
            .peekable();
        there.peek()?;
        Some((
            there.any(|template| template.contains("tools")),
            "chat_template",
        ))
    })
}

/// Whether a list of strings contains `word`; `None` if it is not a list.
fn has(list: Raw<'_>, word: &str) -> Option<bool> {
    list.is_array().then(|| {
        list.items()
            .any(|item| item.str().is_some_and(|s| s == word))
    })
}

/// Returns the host and port of a URL, without the user name.
pub(crate) fn host(url: &str) -> Option<&str> {
    let authority = url.split_once("://")?.1.split(['/', '?', '#']).next()?;
    authority.rsplit('@').next()
}

/// Returns the host and port of a URL for messages, without possible credentials.
pub fn host_of(url: &str) -> String {
    host(url).unwrap_or("the model's server").to_owned()
}

/// Returns a key for a model's capabilities at a server: the hexadecimal SHA-256 of URL, API and
/// model. Possible credentials in the URL are ignored.
pub fn capability_key(api: Api, base_url: &str, model: &str) -> String {
    let what = json!([plain_url(base_url), api.name(), model]).to_string();
    sha2::Sha256::digest(what.as_bytes())
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}

/// Returns a URL without the parts that may contain credentials: the user name and the query.
pub fn plain_url(url: &str) -> String {
    let bare = url
        .split(['?', '#'])
        .next()
        .unwrap_or(url)
        .trim_end_matches('/');
    match bare.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest
                .split_once('/')
                .map_or((rest, None), |(a, p)| (a, Some(p)));
            let host = authority.rsplit('@').next().unwrap_or(authority);
            path.map_or_else(
                || format!("{scheme}://{host}"),
                |path| format!("{scheme}://{host}/{path}"),
            )
        }
        None => bare.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(api: Api, base: Option<&str>, model: &str) -> Vec<ProbeQuestion> {
        let options = RequestOptions {
            model: model.to_owned(),
            base_url: base.map(str::to_owned),
            key: Some("k".to_owned()),
            ..RequestOptions::default()
        };
        questions(api, &options, base.is_some_and(|b| b.starts_with("http:")))
    }

    #[test]
    fn only_servers_that_may_answer_are_asked() {
        let of = |api, base| {
            asked(api, base, "m")
                .into_iter()
                .map(|q| q.request.url)
                .collect::<Vec<_>>()
        };
        assert!(
            Api::ALL
                .into_iter()
                .filter(|api| *api != Api::Ollama)
                .all(|api| of(api, None).is_empty())
        );
        assert!(of(Api::OpenaiChat, Some("https://api.openai.com/v1")).is_empty());
        assert!(of(Api::Gemini, Some("http://h:1")).is_empty());
        assert_eq!(
            of(Api::OpenaiChat, Some("https://openrouter.ai/api/v1")),
            ["https://openrouter.ai/api/v1/models"]
        );
        assert_eq!(of(Api::Ollama, None), ["http://localhost:11434/api/show"]);
        assert_eq!(
            of(Api::Ollama, Some("https://h/api?key=x")),
            ["https://h/api/show"]
        );
        let all = [
            "v1/models",
            "props",
            "api/v0/models",
            "api/version",
            "api/show",
        ]
        .map(|p| format!("http://h:1/{p}"));
        for (api, base) in [
            (Api::OpenaiChat, "http://h:1/v1"),
            (Api::OpenaiChat, "http://h:1/v1/chat/completions"),
            (Api::OpenaiResponses, "http://h:1/v1/"),
            (Api::Anthropic, "http://h:1"),
        ] {
            assert_eq!(of(api, Some(base)), all, "{base}");
        }
        let show = &asked(Api::Ollama, None, "a:b")[0].request;
        assert_eq!(
            (show.method, show.body.as_str()),
            ("POST", r#"{"model":"a:b"}"#)
        );
        assert!(
            show.headers
                .contains(&("authorization".to_owned(), "Bearer k".to_owned()))
        );
    }

    #[test]
    fn answers_are_read_in_the_shape_of_their_server() {
        let all = asked(Api::OpenaiChat, Some("http://h/v1"), "a/m:free");
        for (at, body, want) in [
            (
                0,
                r#"{"data":[{"id":"x"},{"id":"a/m:free","supported_parameters":["max_tokens","tools"]}]}"#,
                Some(true),
            ),
            (
                0,
                r#"{"data":[{"id":"a/m","supported_parameters":["max_tokens","tool_choice"]}]}"#,
                Some(false),
            ),
            (
                0,
                r#"{"data":[{"id":"a/m:free","features":{"tool_calls":false}}]}"#,
                Some(false),
            ),
            (
                0,
                r#"{"data":[{"id":"a/m:free","capabilities":{"function_calling":true}}]}"#,
                Some(true),
            ),
            (
                0,
                r#"{"object":"list","data":[{"id":"a/m:free","object":"model"}]}"#,
                None,
            ),
            (
                0,
                r#"{"data":[{"id":"other","supported_parameters":["tools"]}]}"#,
                None,
            ),
            (0, "<html>", None),
            (
                1,
                r#"{"chat_template":"{% if tools %}","chat_template_caps":{"supports_tools":false,"supports_tool_calls":true}}"#,
                Some(false),
            ),
            (
                1,
                r#"{"chat_template":"x","chat_template_caps":{"supports_tool_calls":true}}"#,
                Some(true),
            ),
            (
                1,
                r#"{"chat_template":"{%- if tools %}…","chat_template_caps":{}}"#,
                Some(true),
            ),
            (1, r#"{"chat_template":"{{ messages }}"}"#, Some(false)),
            (
                1,
                r#"{"chat_template":"{{ messages }}","chat_template_tool_use":"{{ tools }}"}"#,
                Some(true),
            ),
            (1, r#"{"chat_template":""}"#, None),
            (1, r#"{"error":"Unexpected endpoint or method."}"#, None),
            (
                2,
                r#"{"object":"list","data":[{"id":"a/m:free","type":"llm","state":"loaded","capabilities":["tool_use"]}]}"#,
                Some(true),
            ),
            (
                2,
                r#"{"data":[{"id":"a/m:free","type":"vlm","capabilities":["vision"]}]}"#,
                Some(false),
            ),
            (
                2,
                r#"{"data":[{"id":"a/m:free","type":"llm"},{"id":"x","capabilities":["tool_use"]}]}"#,
                Some(false),
            ),
            (2, r#"{"data":[{"id":"a/m:free","type":"llm"}]}"#, None),
            (
                4,
                r#"{"details":{},"capabilities":["completion","tools","thinking"]}"#,
                Some(true),
            ),
            (4, r#"{"capabilities":["completion"]}"#, Some(false)),
            (4, r#"{"template":"old"}"#, None),
        ] {
            let native = match all[at].answer(Some(body)) {
                ProbeAnswer::Tells(native, what) => {
                    assert!(what.ends_with(&all[at].request.url), "{what}");
                    Some(native)
                }
                _ => None,
            };
            assert_eq!(native, want, "{body}");
        }
        assert_eq!(
            all[3].answer(Some(r#"{"version":"0.13.5"}"#)),
            ProbeAnswer::Nothing
        );
        assert_eq!(all[0].answer(None), ProbeAnswer::Nothing);
        for body in [None, Some("<html>"), Some("{}")] {
            assert_eq!(all[3].answer(body), ProbeAnswer::Over);
        }
    }

    #[test]
    fn a_server_is_known_by_the_first_question_that_it_answers() {
        let options = RequestOptions {
            model: "m".into(),
            base_url: Some("http://h/v1".into()),
            ..RequestOptions::default()
        };
        let all = server_questions(Api::OpenaiChat, &options, true);
        let urls: Vec<&str> = all
            .iter()
            .map(|question| question.request.url.as_str())
            .collect();
        assert_eq!(
            urls,
            [
                "http://h/props",
                "http://h/api/version",
                "http://h/api/show"
            ]
        );
        let of = |kind, template: Option<&str>| {
            Some(ServerReport {
                kind,
                template: template.map(str::to_owned),
            })
        };
        for (at, body, server) in [
            (
                0,
                Some(r#"{"chat_template":"t","chat_template_tool_use":"u"}"#),
                of(ServerKind::LlamaCpp, Some("u")),
            ),
            (
                0,
                Some(r#"{"chat_template":"t","build_info":"b1"}"#),
                of(ServerKind::LlamaCpp, Some("t")),
            ),
            (
                0,
                Some(r#"{"default_generation_settings":{}}"#),
                of(ServerKind::LlamaCpp, None),
            ),
            (0, Some("{}"), None),
            (0, Some("<html>"), None),
            (0, None, None),
            (1, Some(r#"{"version":"0.13.5"}"#), None),
            (1, None, of(ServerKind::Unknown, None)),
            (
                2,
                Some(r#"{"template":"{{ .Prompt }}"}"#),
                of(ServerKind::Ollama, Some("{{ .Prompt }}")),
            ),
            (2, None, of(ServerKind::Unknown, None)),
        ] {
            assert_eq!(all[at].server(body), server, "{at} {body:?}");
        }
        assert!(server_questions(Api::OpenaiChat, &options, false).is_empty());
    }

    #[test]
    fn what_is_known_is_filed_under_the_address_without_a_credential() {
        let key = |url: &str| capability_key(Api::OpenaiChat, url, "m");
        assert_eq!(key("http://h/v1"), key("http://me:secret@h/v1/?key=secret"));
        assert_ne!(key("http://h/v1"), key("http://h/v2"));
        assert_ne!(
            key("http://h/v1"),
            capability_key(Api::Ollama, "http://h/v1", "m")
        );
        assert_eq!(
            plain_url("https://me:secret@h:1/v1?key=x"),
            "https://h:1/v1"
        );
        assert_eq!(plain_url("https://me:secret@h?key=x"), "https://h");
    }
}
