//! The server that a request goes to, as far as that decides which parameters it gets.

use crate::Api;

/// The server that a request goes to.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The API that it speaks.
    pub api: Api,
    /// Its address.
    pub url: &'a str,
    /// The model that is asked; "" where it is not known.
    pub model: &'a str,
}

impl Target<'_> {
    /// Whether the address is OpenAI's own, or OpenAI's models at Azure's
    /// (`NAME.openai.azure.com`). Any other server of chat completions is taken for one that
    /// ignores a parameter that it does not know, as vLLM, llama.cpp and SGLang do.
    pub(super) fn is_openai(&self) -> bool {
        let url = self.url;
        let authority = url
            .split_once("://")
            .map_or(url, |(_, rest)| rest)
            .split(['/', '?', '#'])
            .next()
            .unwrap_or_default();
        let host = authority
            .rsplit('@')
            .next()
            .unwrap_or_default()
            .split(':')
            .next()
            .unwrap_or_default();
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        ["openai.com", "azure.com"].iter().any(|domain| {
            host.strip_suffix(domain)
                .is_some_and(|before| before.is_empty() || before.ends_with('.'))
        })
    }
}
