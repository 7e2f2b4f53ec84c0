//! Whether a client sends a failed request again by itself. Two layers that do multiply: three attempts of a client, each of which is made
//! three times, are nine requests to a provider that is overloaded already.

use hyper::HeaderMap;

/// How the `user-agent` of clients begins that try again by themselves, and what they are.
const AGENTS: [(&str, &str); 5] = [
    // https://github.com/openai/codex, codex-rs/login/src/auth/default_client.rs: codex_cli_rs, codex_exec, codex-tui, codex_vscode
    ("codex", "Codex"),
    // Its SDK's header goes through most gateways, its name through all.
    ("claude-cli/", "Claude Code"),
    ("claude-code/", "Claude Code"),
    ("opencode/", "opencode"),
    ("toolpipe/", "llm-stream, or another tc-serve"),
];

/// How the product begins that the AI SDK adds to the `user-agent` of its caller (`@ai-sdk/provider-utils`, `withUserAgentSuffix`):
/// `ai-sdk/provider-utils/4.0.40`, and `ai-sdk-provider-utils/5.0.81` since version 7.
const AI_SDK: &str = "ai-sdk";

/// What each header of the official SDKs of OpenAI and Anthropic begins with, `x-stainless-retry-count` among them.
const SDK: &str = "x-stainless-";

/// Whether a client with these headers sends a failed request again by itself.
pub fn client_retries(headers: &HeaderMap) -> bool {
    let agent = headers.get("user-agent").and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    let agent = agent.to_ascii_lowercase();
    headers.keys().any(|name| name.as_str().starts_with(SDK))
        || AGENTS.iter().any(|(begin, _)| agent.starts_with(begin))
        || agent.split(' ').any(|product| product.starts_with(AI_SDK))
}
