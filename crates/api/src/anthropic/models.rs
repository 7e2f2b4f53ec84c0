//! What the models of Claude take and may write.
//!
//! Sources: <https://platform.claude.com/docs/en/about-claude/models/overview>,
//! <https://platform.claude.com/docs/en/build-with-claude/extended-thinking>.

/// A family of models.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claude {
    /// How its names begin, without what gateways put before them.
    name: &'static str,
    /// The most tokens of an answer.
    pub max_tokens: u64,
    pub thinking: Thinking,
    /// It takes `output_config.effort`.
    pub takes_effort: bool,
}

/// How a model is asked to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thinking {
    Never,
    /// With a number of tokens.
    Budget,
    /// As much as it finds right.
    Adaptive,
}

/// The families. The first whose name fits counts; what is not listed is newer, and is like the last.
const FAMILIES: [Claude; 14] = {
    use Thinking::{Adaptive, Budget, Never};
    [
        family("claude-instant", 4096, Never, false),
        family("claude-2", 4096, Never, false),
        family("claude-3-5", 8192, Never, false),
        family("claude-3-7", 64_000, Budget, false),
        family("claude-3", 4096, Never, false),
        family("claude-haiku-4-5", 64_000, Budget, false),
        family("claude-sonnet-4-0", 64_000, Budget, false),
        family("claude-sonnet-4-2025", 64_000, Budget, false),
        family("claude-sonnet-4-5", 64_000, Budget, false),
        family("claude-opus-4-0", 32_000, Budget, false),
        family("claude-opus-4-1", 32_000, Budget, false),
        family("claude-opus-4-2025", 32_000, Budget, false),
        family("claude-opus-4-5", 64_000, Budget, true),
        family("claude-opus-4-6", 128_000, Adaptive, true),
    ]
};

/// One that is not listed.
const NEWER: Claude = family("claude-", 64_000, Thinking::Adaptive, true);

const fn family(
    name: &'static str,
    max_tokens: u64,
    thinking: Thinking,
    takes_effort: bool,
) -> Claude {
    Claude {
        name,
        max_tokens,
        thinking,
        takes_effort,
    }
}

/// The family of a model, whatever a gateway puts before its name (`us.anthropic.`, `anthropic/`);
/// `None` if it is no Claude.
pub(crate) fn claude(model: &str) -> Option<Claude> {
    let name = &model[model.find("claude-")?..];
    let known = FAMILIES.into_iter().find(|f| name.starts_with(f.name));
    Some(known.unwrap_or(NEWER))
}
