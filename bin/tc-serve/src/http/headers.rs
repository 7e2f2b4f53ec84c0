//! What a request's headers reveal about its client.

use api::Api;
use hyper::HeaderMap;

/// Whether a client accepts server-sent events.
pub(super) fn accepts_sse(headers: &HeaderMap) -> bool {
    let accept = headers
        .get("accept")
        .and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/event-stream"))
}

/// Returns the headers to forward to a provider of the client's own API.
pub(super) fn forwarded(api: Api, headers: &HeaderMap) -> Vec<(String, String)> {
    let values = |name: &&'static str| {
        let values: Vec<&str> = headers
            .get_all(*name)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .collect();
        (!values.is_empty()).then(|| ((*name).to_owned(), values.join(",")))
    };
    api::forwarded_headers(api)
        .iter()
        .filter_map(values)
        .collect()
}

/// The `user-agent` prefixes of clients that retry by themselves: Codex, Claude Code, opencode, and
/// `llm-stream` or another `tc-serve`. Codex has several names (`codex_cli_rs`, `codex_exec`,
/// `codex-tui`, `codex_vscode`): <https://github.com/openai/codex>,
/// `codex-rs/login/src/auth/default_client.rs`.
const AGENTS: [&str; 5] = [
    "codex",
    "claude-cli/",
    "claude-code/",
    "opencode/",
    "toolpipe/",
];

/// The prefix of the product that the AI SDK adds to its caller's `user-agent`
/// (`@ai-sdk/provider-utils`, `withUserAgentSuffix`): `ai-sdk/provider-utils/4.0.40`, and
/// `ai-sdk-provider-utils/5.0.81` since version 7.
const AI_SDK: &str = "ai-sdk";

/// The prefix of the headers of the official OpenAI and Anthropic SDKs, such as
/// `x-stainless-retry-count`.
const SDK: &str = "x-stainless-";

/// Whether a client with these headers retries failed requests by itself. Retries in two layers
/// multiply: three attempts by the client, each made three times here, are nine requests to a
/// provider that is already overloaded.
pub(super) fn client_retries(headers: &HeaderMap) -> bool {
    let agent = headers
        .get("user-agent")
        .and_then(|agent| agent.to_str().ok())
        .unwrap_or_default();
    let agent = agent.to_ascii_lowercase();
    headers.keys().any(|name| name.as_str().starts_with(SDK))
        || AGENTS.iter().any(|begin| agent.starts_with(begin))
        || agent.split(' ').any(|product| product.starts_with(AI_SDK))
}
