//! Requests for other paths, which are forwarded to a server unchanged.

use crate::Api;
use crate::request::{Request, RequestOptions, headers, url};
use redact::is_secret_parameter;

/// Returns the URL that the API's paths are appended to, including its version if it has one.
pub(crate) fn versioned(api: Api, options: &RequestOptions) -> String {
    let provider = api.provider();
    let base = options.base_url.as_deref().unwrap_or(provider.base_url);
    let bare = base.split('?').next().unwrap_or(base);
    if api == Api::Gemini {
        // Only this API has a model name in its path, and requests for other paths have no model.
        let bare = bare.split("/models/").next().unwrap_or(bare);
        return bare.trim_end_matches('/').to_owned();
    }
    let whole = url(bare, &(provider.path)(options).unwrap_or_default());
    let tails = [
        "/chat/completions",
        "/responses",
        "/messages",
        "/api/chat",
        "/v2/chat",
    ];
    let versioned = tails.iter().find_map(|tail| whole.strip_suffix(tail));
    versioned.map(str::to_owned).unwrap_or(whole)
}

/// Builds a request for `path` at the server of `api`, without a body. Its headers are the
/// provider's key, the provider's own headers, and the client's headers in `clients`. A path that
/// starts with `/v1` is appended to the API's URL (`https://host/openai/v1`), any other path to the
/// URL above that. The client's query is copied except for parameters that are named like
/// credentials.
pub fn passed_request(
    api: Api,
    options: &RequestOptions,
    method: &'static str,
    path: &str,
    query: Option<&str>,
    clients: &[(String, String)],
) -> Request {
    let provider = api.provider();
    let base = options.base_url.as_deref().unwrap_or(provider.base_url);
    let own = base.split_once('?').map(|(_, query)| query);
    let versioned = versioned(api, options);
    let root = ["/api/v0", "/v1beta", "/v1"]
        .iter()
        .find_map(|tail| versioned.strip_suffix(tail))
        .unwrap_or(&versioned);
    let mut url = match path.strip_prefix("/v1") {
        // The base URLs of these APIs have no version.
        Some(_) if matches!(api, Api::Ollama | Api::Cohere) => format!("{root}{path}"),
        Some(rest) if rest.starts_with('/') => format!("{versioned}{rest}"),
        _ => format!("{root}{path}"),
    };
    let is_public = |pair: &&str| !is_secret_parameter(pair.split('=').next().unwrap_or_default());
    let pairs = own.into_iter().flat_map(|own| own.split('&'));
    let pairs = pairs.chain(
        query
            .into_iter()
            .flat_map(|query| query.split('&').filter(is_public)),
    );
    for (at, pair) in pairs.filter(|pair| !pair.is_empty()).enumerate() {
        url.push(if at == 0 { '?' } else { '&' });
        url.push_str(pair);
    }
    let mut headers = headers(provider, options);
    headers.retain(|(name, _)| name != "content-type");
    for (name, value) in clients {
        if !headers.iter().any(|(own, _)| own == name) {
            headers.push((name.clone(), value.clone()));
        }
    }
    Request {
        method,
        url,
        headers,
        body: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_goes_below_the_address_of_the_api_or_above_its_version() {
        for (api, base, path, query, want) in [
            (
                Api::OpenaiChat,
                "http://h:1/v1",
                "/v1/embeddings",
                None,
                "http://h:1/v1/embeddings",
            ),
            (
                Api::OpenaiChat,
                "http://h:1/v1",
                "/tokenize",
                None,
                "http://h:1/tokenize",
            ),
            (
                Api::OpenaiChat,
                "http://h/x/v1/chat/completions",
                "/v1/rerank",
                None,
                "http://h/x/v1/rerank",
            ),
            (
                Api::OpenaiChat,
                "https://h/d?api-version=2",
                "/v1/embeddings",
                Some("a=1"),
                "https://h/d/embeddings?api-version=2&a=1",
            ),
            (
                Api::OpenaiChat,
                "http://h/v1",
                "/slots",
                Some("x=1&api_key=s&y"),
                "http://h/slots?x=1&y",
            ),
            (
                Api::OpenaiResponses,
                "https://api.openai.com/v1",
                "/v1/audio/speech",
                None,
                "https://api.openai.com/v1/audio/speech",
            ),
            (
                Api::Anthropic,
                "http://h:1",
                "/v1/messages/count_tokens",
                None,
                "http://h:1/v1/messages/count_tokens",
            ),
            (
                Api::Anthropic,
                "https://api.anthropic.com/v1",
                "/v1/messages/count_tokens",
                None,
                "https://api.anthropic.com/v1/messages/count_tokens",
            ),
            (
                Api::Ollama,
                "http://h:1",
                "/v1/embeddings",
                None,
                "http://h:1/v1/embeddings",
            ),
            (
                Api::Ollama,
                "http://h:1",
                "/api/tags",
                None,
                "http://h:1/api/tags",
            ),
            (
                Api::Cohere,
                "https://api.cohere.com",
                "/v1/rerank",
                None,
                "https://api.cohere.com/v1/rerank",
            ),
            (
                Api::Gemini,
                "https://h/v1beta",
                "/v1/embeddings",
                None,
                "https://h/v1beta/embeddings",
            ),
        ] {
            let options = RequestOptions {
                base_url: Some(base.into()),
                key: Some("k".into()),
                ..RequestOptions::default()
            };
            let clients = [
                ("content-type".to_owned(), "a/b".to_owned()),
                ("authorization".to_owned(), "mine".to_owned()),
            ];
            let request = passed_request(api, &options, "POST", path, query, &clients);
            assert_eq!(request.url, want, "{api:?} {base}");
            let value = |name: &str| {
                request
                    .headers
                    .iter()
                    .filter(|(n, _)| n == name)
                    .map(|(_, v)| v.as_str())
                    .collect::<Vec<_>>()
            };
            assert_eq!(value("content-type"), ["a/b"]);
            assert!(api != Api::OpenaiChat || value("authorization") == ["Bearer k"]);
        }
    }
}
