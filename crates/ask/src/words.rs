//! The words of the commands in messages about a provider.

use api::Words;

/// Those of `llm-stream`.
pub const COMMAND: Words = Words {
    source: "llm-stream",
    overflow: "leave old messages out of the log (docs/protocol.md shows how), lower max_tokens, \
               or ask a model with a longer context",
    no_tools: Some("--tools-mode auto (or tag) puts the tools into the prompt instead"),
    other_api: "use --api",
    max_frame: "--max-line",
};

/// Those of a service, whose clients know neither its options nor a log.
pub const SERVICE: Words = Words {
    overflow: "send fewer or shorter messages, lower the most tokens of the answer, or ask a model \
               with a longer context",
    no_tools: None,
    max_frame: "--max-answer",
    ..COMMAND
};
