//! The headers of a client's request that an upstream gets.

use crate::Api;

/// The headers of a client that speaks `api` which an upstream of the same API gets, in lower case:
/// they choose features, and hold neither a key nor a name. Claude Code needs both of Anthropic's
/// (<https://code.claude.com/docs/en/llm-gateway>); `x-session-affinity` keeps the turns of a
/// conversation at one server. An upstream of another API gets none.
pub fn forwarded_headers(api: Api) -> &'static [&'static str] {
    match api {
        Api::Anthropic => &["anthropic-beta", "anthropic-version", "x-session-affinity"],
        Api::OpenaiChat | Api::OpenaiResponses => &["openai-beta", "x-session-affinity"],
        Api::Gemini | Api::Ollama | Api::Mistral | Api::Cohere => &[],
    }
}
