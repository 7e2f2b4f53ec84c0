//! The table of provider APIs.

use crate::provider::Provider;

/// Generates [`Api`] from its variants and the [`Provider`] constant of each.
macro_rules! table {
    ($($api:ident: $provider:path,)*) => {
        /// A provider API. `OpenaiChat` also covers DeepSeek, OpenRouter, Groq, Together, vLLM,
        /// llama.cpp, LM Studio and many other servers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "each variant is the API of its name in the table")]
        pub enum Api {
            $($api,)*
        }

        impl Api {
            /// Every API, in table order.
            pub const ALL: [Api; [$(Api::$api,)*].len()] = [$(Api::$api,)*];

            pub(crate) const fn provider(self) -> &'static Provider {
                match self {
                    $(Api::$api => &$provider,)*
                }
            }
        }
    };
}

table! {
    OpenaiChat: crate::openai_chat::request::PROVIDER,
    OpenaiResponses: crate::openai_responses::request::PROVIDER,
    Anthropic: crate::anthropic::request::PROVIDER,
    Gemini: crate::gemini::request::PROVIDER,
    Ollama: crate::ollama::PROVIDER,
    Mistral: crate::mistral::PROVIDER,
    Cohere: crate::cohere::PROVIDER,
}

impl Api {
    /// Returns the API with this name or alias, ignoring ASCII case; `None` if no API has it.
    pub fn from_name(name: &str) -> Option<Api> {
        Self::ALL
            .into_iter()
            .find(|api| api.names().any(|known| known.eq_ignore_ascii_case(name)))
    }

    fn names(self) -> impl Iterator<Item = &'static str> {
        let provider = self.provider();
        std::iter::once(provider.name).chain(provider.aliases.iter().copied())
    }

    /// Returns the API's name, as used in `--api` and `stream_start`.
    pub fn name(self) -> &'static str {
        self.provider().name
    }

    /// Returns the base URL of the provider's own service.
    pub fn base_url(self) -> &'static str {
        self.provider().base_url
    }

    /// Returns the environment variable that conventionally holds the API key.
    pub fn key_env(self) -> &'static str {
        self.provider().key_env
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_every_api_once() {
        for api in Api::ALL {
            assert_eq!(Api::from_name(api.name()), Some(api));
        }
        for (alias, name) in [
            ("openai", "openai-chat"),
            ("responses", "openai-responses"),
            ("Claude", "anthropic"),
            ("google", "gemini"),
        ] {
            assert_eq!(Api::from_name(alias).map(Api::name), Some(name));
        }
        let names: Vec<&str> = Api::ALL.iter().flat_map(|api| api.names()).collect();
        assert!(
            names
                .iter()
                .all(|name| names.iter().filter(|other| *other == name).count() == 1),
            "{names:?}"
        );
        assert_eq!(
            (Api::from_name(""), Api::from_name("openai-chatty")),
            (None, None)
        );
    }
}
