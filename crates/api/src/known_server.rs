//! The servers of well-known models, by the names that their providers give them.
//!
//! The names are from the providers' lists of models, as of November 2026:
//! <https://docs.claude.com/en/docs/about-claude/models/overview>,
//! <https://ai.google.dev/gemini-api/docs/models>, <https://platform.openai.com/docs/models>,
//! <https://docs.x.ai/docs/models>, <https://api-docs.deepseek.com/quick_start/pricing>,
//! <https://docs.mistral.ai/getting-started/models> and <https://docs.cohere.com/docs/models>.

use crate::api::Api;

/// The server of a provider's own models.
#[derive(Debug, PartialEq, Eq)]
pub struct KnownServer {
    /// The provider's name, for people.
    pub provider: &'static str,
    /// The API that the server has.
    pub api: Api,
    /// The base URL.
    pub base_url: &'static str,
    /// The environment variable that conventionally holds the API key.
    pub key_env: &'static str,
    /// Patterns of the models' names: `*` matches any text, `#` one digit. Names that are used for
    /// open weights too match no pattern, because a local server may have such a model: `gpt-oss`,
    /// `deepseek-r1`, `command-r`.
    names: &'static [&'static str],
}

static SERVERS: [KnownServer; 7] = [
    of_api("Anthropic", Api::Anthropic, &["claude-*"]),
    of_api("Google", Api::Gemini, &["gemini-*"]),
    of_api(
        "OpenAI",
        Api::OpenaiChat,
        &["gpt-#*", "chatgpt-*", "ft:gpt-#*", "o#", "o#-*"],
    ),
    of_api(
        "Mistral",
        Api::Mistral,
        &[
            "mistral-*-latest",
            "ministral-*-latest",
            "magistral-*-latest",
            "codestral-latest",
            "devstral-*-latest",
            "pixtral-*-latest",
        ],
    ),
    of_api("Cohere", Api::Cohere, &["command-*-##-20##"]),
    KnownServer {
        provider: "xAI",
        api: Api::OpenaiChat,
        base_url: "https://api.x.ai/v1",
        key_env: "XAI_API_KEY",
        names: &["grok-*"],
    },
    KnownServer {
        provider: "DeepSeek",
        api: Api::OpenaiChat,
        base_url: "https://api.deepseek.com/v1",
        key_env: "DEEPSEEK_API_KEY",
        names: &["deepseek-chat", "deepseek-reasoner"],
    },
];

const fn of_api(provider: &'static str, api: Api, names: &'static [&'static str]) -> KnownServer {
    let row = api.provider();
    KnownServer {
        provider,
        api,
        base_url: row.base_url,
        key_env: row.key_env,
        names,
    }
}

impl KnownServer {
    /// Returns the server of the provider that names one of its models `model`; `None` if no
    /// provider in the table does.
    pub fn of_model(model: &str) -> Option<&'static KnownServer> {
        let named = |server: &&KnownServer| {
            let mut names = server.names.iter();
            names.any(|pattern| matches(pattern.as_bytes(), model.as_bytes()))
        };
        SERVERS.iter().find(named)
    }
}

/// Whether the whole of `name` matches `pattern`.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => (0..=name.len()).any(|at| matches(rest, &name[at..])),
        ([b'#', rest @ ..], [digit, name @ ..]) => digit.is_ascii_digit() && matches(rest, name),
        ([byte, rest @ ..], [other, name @ ..]) => byte == other && matches(rest, name),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names from the providers' own pages.
    const DOCUMENTED: [(&str, &str); 7] = [
        (
            "Anthropic",
            "claude-opus-4-5 claude-sonnet-4-5-20250929 claude-haiku-4-5 claude-3-5-haiku-latest",
        ),
        (
            "Google",
            "gemini-3-pro-preview gemini-2.5-pro gemini-2.5-flash-lite gemini-flash-latest",
        ),
        (
            "OpenAI",
            "gpt-5.1 gpt-5-mini gpt-5 gpt-4.1-nano gpt-4o-2024-08-06 gpt-3.5-turbo o1 o3-mini \
             o4-mini-2025-04-16 chatgpt-4o-latest ft:gpt-4o-mini-2024-07-18:org::id",
        ),
        (
            "Mistral",
            "mistral-large-latest mistral-medium-latest ministral-8b-latest codestral-latest \
             magistral-medium-latest devstral-medium-latest pixtral-large-latest",
        ),
        (
            "Cohere",
            "command-a-03-2025 command-a-reasoning-08-2025 command-r-plus-08-2024 \
             command-r7b-12-2024",
        ),
        (
            "xAI",
            "grok-4 grok-4-fast-reasoning grok-code-fast-1 grok-3-mini",
        ),
        ("DeepSeek", "deepseek-chat deepseek-reasoner"),
    ];

    /// Names of open weights in the library of Ollama and on Hugging Face, of aliases, and of other
    /// providers for the same models.
    const OTHERS: &str = "gpt-oss:20b gpt-oss-120b gpt-j-6b gpt-neox-20b gpt2 openai/gpt-5 o o1x \
                          olmo2 orca-mini anthropic/claude-opus-4.5 anthropic.claude-opus-4-5 \
                          claude google/gemini-2.5-pro gemma3 deepseek-r1 deepseek-v3.1 \
                          deepseek-ai/DeepSeek-V3 deepseek-coder command-r command-r-plus \
                          command-a command-r7b command-r:35b-08-2024-q4_K_M mistral \
                          mistral-large mistral-small3.2:latest mistral:latest Mistral-7B-v0.3 \
                          magistral:24b devstral qwen3-8b llama3.2 kimi-k2 xai/grok-4 default";

    #[test]
    fn documented_names_lead_to_their_provider() {
        for (provider, names) in DOCUMENTED {
            for name in names.split_whitespace() {
                let found = KnownServer::of_model(name).map(|server| server.provider);
                assert_eq!(found, Some(provider), "{name}");
            }
        }
        let tested = DOCUMENTED.map(|(provider, _)| provider);
        assert_eq!(SERVERS.each_ref().map(|server| server.provider), tested);
    }

    #[test]
    fn each_pattern_is_that_of_a_documented_name() {
        for server in &SERVERS {
            for pattern in server.names {
                let mut names = DOCUMENTED.iter().flat_map(|(_, names)| names.split(' '));
                let is_used = |name: &str| matches(pattern.as_bytes(), name.as_bytes());
                assert!(names.any(is_used), "{pattern}");
            }
        }
    }

    #[test]
    fn names_that_other_servers_use_lead_nowhere() {
        for name in OTHERS.split_whitespace() {
            assert_eq!(KnownServer::of_model(name), None, "{name}");
        }
    }

    #[test]
    fn a_provider_has_one_key_at_one_address() {
        for server in &SERVERS {
            for other in &SERVERS {
                let same = (
                    server.base_url == other.base_url,
                    server.key_env == other.key_env,
                );
                assert!(same == (true, true) || same == (false, false), "{server:?}");
            }
            assert!(server.base_url.starts_with("https://"), "{server:?}");
        }
    }
}
