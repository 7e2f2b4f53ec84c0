//! What the headers of a request say of its client.

use api::Api;
use hyper::HeaderMap;

/// Whether a client wants server-sent events.
pub(super) fn accepts_sse(headers: &HeaderMap) -> bool {
    let accept = headers
        .get("accept")
        .and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/event-stream"))
}

/// The headers that a provider of the client's own API may get.
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

/// How the `user-agent` of clients begins that try again by themselves: Codex, Claude Code,
/// opencode, and `llm-stream` or another `tc-serve`. Codex has several names (`codex_cli_rs`,
/// `codex_exec`, `codex-tui`, `codex_vscode`): <https://github.com/openai/codex>,
/// `codex-rs/login/src/auth/default_client.rs`.
const AGENTS: [&str; 5] = [
    "codex",
    "claude-cli/",
    "claude-code/",
    "opencode/",
    "toolpipe/",
];

/// How the product begins that the AI SDK adds to the `user-agent` of its caller
/// (`@ai-sdk/provider-utils`, `withUserAgentSuffix`): `ai-sdk/provider-utils/4.0.40`, and
/// `ai-sdk-provider-utils/5.0.81` since version 7.
const AI_SDK: &str = "ai-sdk";

/// What each header of the official SDKs of OpenAI and Anthropic begins with,
/// `x-stainless-retry-count` among them.
const SDK: &str = "x-stainless-";

/// Whether a client with these headers sends a failed request again by itself. Two layers that do
/// multiply: three attempts of a client, each of which is made three times, are nine requests to a
/// provider that is overloaded already.
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
