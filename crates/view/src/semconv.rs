//! The names of spans and attributes, in one place and of one version: OpenTelemetry's
//! [conventions for generative AI](https://github.com/open-telemetry/semantic-conventions-genai), all
//! of which are in development, and our own below `toolpipe.`. A log contains none of these names, so
//! that a later version of the conventions only changes this table; the trace of an old log is derived
//! again.
//!
//! The names are those of the pages
//! [client-inference](https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/client-inference.md),
//! [agent spans](https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-agent-spans.md) and
//! [execute-tool](https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/execute-tool.md)
//! in autumn 2026 (`cache_write`, `time_to_first_chunk`).

/// The version of the conventions, as named in their registry (`model/manifest.yaml`).
pub(crate) const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev";

/// The name of the service and of the instrumentation.
pub(crate) const SERVICE: &str = "toolpipe";

/// The resource attribute with the name of the service.
pub(crate) const SERVICE_NAME: &str = "service.name";

/// Operations: the values of [`OPERATION_NAME`], and the first words of span names.
pub(crate) mod operation {
    pub(crate) const INVOKE_AGENT: &str = "invoke_agent";
    pub(crate) const CHAT: &str = "chat";
    /// The operation for Gemini's API, which has its own name.
    pub(crate) const GENERATE_CONTENT: &str = "generate_content";
    pub(crate) const EXECUTE_TOOL: &str = "execute_tool";
}

pub(crate) const OPERATION_NAME: &str = "gen_ai.operation.name";
pub(crate) const PROVIDER_NAME: &str = "gen_ai.provider.name";
pub(crate) const CONVERSATION_ID: &str = "gen_ai.conversation.id";
pub(crate) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(crate) const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub(crate) const RESPONSE_ID: &str = "gen_ai.response.id";
pub(crate) const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
pub(crate) const TIME_TO_FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";
pub(crate) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(crate) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(crate) const CACHED_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
pub(crate) const REASONING_TOKENS: &str = "gen_ai.usage.reasoning.output_tokens";
pub(crate) const TOOL_NAME: &str = "gen_ai.tool.name";
pub(crate) const TOOL_TYPE: &str = "gen_ai.tool.type";
pub(crate) const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
pub(crate) const ERROR_TYPE: &str = "error.type";

/// The value of [`TOOL_TYPE`] for tools that the client runs.
pub(crate) const FUNCTION: &str = "function";

/// The value of [`PROVIDER_NAME`] if the log does not name the API.
pub(crate) const OTHER_PROVIDER: &str = "_OTHER";

// Contents, which are written only on request.
pub(crate) const INPUT_MESSAGES: &str = "gen_ai.input.messages";
pub(crate) const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
pub(crate) const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(crate) const TOOL_RESULT: &str = "gen_ai.tool.call.result";

// Our own attributes: the id and the front of a response of `tc-serve`, and values for which the
// conventions have no name.
pub(crate) const OUR_RESPONSE_ID: &str = "toolpipe.response.id";
pub(crate) const FRONT: &str = "toolpipe.front";
pub(crate) const RETRIES: &str = "toolpipe.retries";
pub(crate) const CACHED: &str = "toolpipe.tool.cached";
pub(crate) const EXIT_CODE: &str = "toolpipe.tool.exit_code";

/// Names of span events are event types of the protocol, and their attributes are its fields.
pub(crate) mod event {
    pub(crate) const DECISION: &str = "toolpipe.decision";
    pub(crate) const RETRACT: &str = "toolpipe.retract";
    pub(crate) const WARNING: &str = "toolpipe.warning";
    pub(crate) const APPROVAL: &str = "toolpipe.approval";

    pub(crate) const CHECKER: &str = "toolpipe.decision.checker";
    pub(crate) const TOOL_CALL: &str = "toolpipe.decision.tool_call";
    pub(crate) const REASON: &str = "toolpipe.reason";
    pub(crate) const SOURCE: &str = "toolpipe.source";
    pub(crate) const CODE: &str = "toolpipe.code";
    pub(crate) const VERDICT: &str = "toolpipe.approval.decision";
    // Contents.
    pub(crate) const MESSAGE: &str = "toolpipe.message";
    pub(crate) const BY: &str = "toolpipe.approval.by";
}

/// Returns the conventions' name for the provider with this API. A server with OpenAI's API counts
/// as OpenAI, as the conventions require: the name tells which attributes to expect.
pub(crate) fn provider(api: &str) -> &str {
    match api {
        "openai-chat" | "openai-responses" => "openai",
        "gemini" => "gcp.gemini",
        "mistral" => "mistral_ai",
        "" => OTHER_PROVIDER,
        api => api,
    }
}

/// Returns the operation for a turn with this API.
pub(crate) fn inference(api: &str) -> &'static str {
    match api {
        "gemini" => operation::GENERATE_CONTENT,
        _ => operation::CHAT,
    }
}
