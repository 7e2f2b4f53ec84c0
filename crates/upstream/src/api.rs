//! The table of provider APIs.

use crate::decoder::Decoder;
use crate::request::{self, Body, RequestOptions};
use crate::stream;

/// A provider API. `OpenaiChat` is also what DeepSeek, OpenRouter, Groq, Together, vLLM, llama.cpp, LM Studio and many more speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is the API of its name in the table")]
pub enum Api {
    OpenaiChat,
    OpenaiResponses,
    Anthropic,
    Gemini,
    Ollama,
    Mistral,
    Cohere,
}

/// How a key goes into the headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyRule {
    /// `authorization: Bearer KEY`
    Bearer,
    /// `x-api-key: KEY`
    XApiKey,
    /// `x-goog-api-key: KEY`
    Google,
}

/// What is known of one API.
pub(crate) struct Row {
    api: Api,
    /// As `--api` names it.
    pub name: &'static str,
    /// Other names that people type for it.
    aliases: &'static [&'static str],
    /// With the version, if official clients have it in their base URL.
    pub base_url: &'static str,
    /// The environment variable that holds the key by custom.
    pub key_env: &'static str,
    /// What follows the base URL; it may hold a query.
    pub path: fn(&RequestOptions) -> String,
    pub key: KeyRule,
    /// Headers that every request has.
    pub headers: &'static [(&'static str, &'static str)],
    pub decoder: fn() -> Box<dyn Decoder>,
    pub body: Body,
}

const TABLE: [Row; 7] = [
    Row {
        api: Api::OpenaiChat,
        name: "openai-chat",
        aliases: &["openai", "chat-completions"],
        base_url: "https://api.openai.com/v1",
        key_env: "OPENAI_API_KEY",
        path: |_| "/chat/completions".to_owned(),
        key: KeyRule::Bearer,
        headers: &[],
        decoder: || Box::new(stream::openai_chat::OpenaiChat::default()),
        body: request::openai_chat::body,
    },
    Row {
        api: Api::OpenaiResponses,
        name: "openai-responses",
        aliases: &["responses"],
        base_url: "https://api.openai.com/v1",
        key_env: "OPENAI_API_KEY",
        path: |_| "/responses".to_owned(),
        key: KeyRule::Bearer,
        headers: &[],
        decoder: || Box::new(stream::openai_responses::OpenaiResponses::default()),
        body: request::openai_responses::body,
    },
    Row {
        api: Api::Anthropic,
        name: "anthropic",
        aliases: &["claude"],
        base_url: "https://api.anthropic.com",
        key_env: "ANTHROPIC_API_KEY",
        path: |_| "/v1/messages".to_owned(),
        key: KeyRule::XApiKey,
        headers: &[("anthropic-version", "2023-06-01")],
        decoder: || Box::new(stream::anthropic::Anthropic::default()),
        body: request::anthropic::body,
    },
    Row {
        api: Api::Gemini,
        name: "gemini",
        aliases: &["google"],
        base_url: "https://generativelanguage.googleapis.com/v1beta",
        key_env: "GEMINI_API_KEY",
        path: request::gemini::path,
        key: KeyRule::Google,
        headers: &[],
        decoder: || Box::new(stream::gemini::Gemini::default()),
        body: request::gemini::body,
    },
    Row {
        api: Api::Ollama,
        name: "ollama",
        aliases: &[],
        base_url: "http://localhost:11434",
        key_env: "OLLAMA_API_KEY",
        path: |_| "/api/chat".to_owned(),
        key: KeyRule::Bearer,
        headers: &[],
        decoder: || Box::new(stream::ollama::Ollama::default()),
        body: request::ollama::body,
    },
    Row {
        api: Api::Mistral,
        name: "mistral",
        aliases: &[],
        base_url: "https://api.mistral.ai/v1",
        key_env: "MISTRAL_API_KEY",
        path: |_| "/chat/completions".to_owned(),
        key: KeyRule::Bearer,
        headers: &[],
        decoder: || Box::new(stream::openai_chat::OpenaiChat::mistral()),
        body: request::mistral::body,
    },
    Row {
        api: Api::Cohere,
        name: "cohere",
        aliases: &[],
        base_url: "https://api.cohere.com",
        key_env: "COHERE_API_KEY",
        path: |_| "/v2/chat".to_owned(),
        key: KeyRule::Bearer,
        headers: &[],
        decoder: || Box::new(stream::cohere::Cohere::default()),
        body: request::cohere::body,
    },
];

impl Api {
    /// Every API, in the order of the table.
    pub const ALL: [Api; 7] =
        [Api::OpenaiChat, Api::OpenaiResponses, Api::Anthropic, Api::Gemini, Api::Ollama, Api::Mistral, Api::Cohere];

    /// The API that `--api` calls `name`, or that people do, whatever the case of its letters.
    pub fn from_name(name: &str) -> Option<Api> {
        let named = |row: &&Row| [row.name].iter().chain(row.aliases).any(|known| known.eq_ignore_ascii_case(name));
        TABLE.iter().find(named).map(|row| row.api)
    }

    /// Its name, as `--api` and `stream_start` have it.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Where the provider itself serves it.
    pub fn base_url(self) -> &'static str {
        self.row().base_url
    }

    /// The environment variable that holds its key by custom.
    pub fn key_env(self) -> &'static str {
        self.row().key_env
    }

    pub(crate) fn row(self) -> &'static Row {
        const { &TABLE }.iter().find(|row| row.api == self).unwrap_or(const { &TABLE[0] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_every_api_once() {
        for api in Api::ALL {
            assert_eq!(Api::from_name(api.name()), Some(api));
            assert_eq!(api.row().api, api);
        }
        for (alias, name) in [
            ("openai", "openai-chat"),
            ("responses", "openai-responses"),
            ("Claude", "anthropic"),
            ("google", "gemini"),
        ] {
            assert_eq!(Api::from_name(alias).map(Api::name), Some(name));
        }
        let names: Vec<&str> =
            TABLE.iter().flat_map(|row| [row.name].into_iter().chain(row.aliases.iter().copied())).collect();
        assert!(names.iter().all(|name| names.iter().filter(|other| *other == name).count() == 1), "{names:?}");
        assert_eq!((Api::from_name(""), Api::from_name("openai-chatty")), (None, None));
    }
}
