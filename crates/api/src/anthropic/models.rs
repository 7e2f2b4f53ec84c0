//! The limits and features of the Claude models.
//!
//! Sources: <https://platform.claude.com/docs/en/about-claude/models/overview>, and each model's
//! migration guide, such as <https://platform.claude.com/docs/en/models/opus-5-5/migration-guide>.

/// A family of models.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claude {
    /// The prefix of the family's model names, without a gateway's own prefix.
    name: &'static str,
    /// The maximum number of tokens in an answer.
    pub max_tokens: u64,
    pub thinking: Thinking,
    /// Whether the models accept `output_config.effort`.
    pub takes_effort: bool,
}

/// How a model's reasoning is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thinking {
    Never,
    /// Reasoning with a token budget.
    Budget,
    /// The model decides how much to reason, and accepts sampling settings.
    Adaptive,
    /// The model decides how much to reason. This and the following kinds reject sampling settings.
    AdaptiveAlone,
    /// The model reasons unless `thinking` has this type.
    Unless(&'static str),
    /// The model reasons in every answer.
    Always,
}

/// The type that turns reasoning off, so that a tool choice can be forced.
pub(crate) const DISABLED: &str = "disabled";

impl Thinking {
    /// Whether the model accepts values of `temperature`, `top_p` and `top_k` other than its own.
    pub(crate) fn takes_sampling(self) -> bool {
        matches!(
            self,
            Thinking::Never | Thinking::Budget | Thinking::Adaptive
        )
    }

    /// Whether a request can force the model to call a tool, which is impossible while the model
    /// reasons.
    pub(crate) fn can_be_forced(self) -> bool {
        match self {
            Thinking::Unless(off) => off == DISABLED,
            thinking => thinking != Thinking::Always,
        }
    }
}

/// The known families. The first matching name applies. Models not listed are newer: see [`NEWER`].
const FAMILIES: [Claude; 19] = {
    use Thinking::{Adaptive, AdaptiveAlone, Always, Budget, Never, Unless};
    [
        family("claude-instant", 4096, Never, false),
        family("claude-2", 4096, Never, false),
        family("claude-3-5", 8192, Never, false),
        family("claude-3-7", 64_000, Budget, false),
        family("claude-3", 4096, Never, false),
        family("claude-haiku-4", 64_000, Budget, false),
        family("claude-sonnet-4-6", 64_000, Adaptive, true),
        family("claude-sonnet-4", 64_000, Budget, false),
        family("claude-opus-4-5", 64_000, Budget, true),
        family("claude-opus-4-6", 128_000, Adaptive, true),
        family("claude-opus-4-7", 128_000, AdaptiveAlone, true),
        family("claude-opus-4-8", 128_000, AdaptiveAlone, true),
        family("claude-opus-4", 32_000, Budget, false),
        family("claude-haiku-5-5", 128_000, Unless(DISABLED), true),
        family("claude-sonnet-5-5", 128_000, Unless("between_tools"), true),
        family("claude-sonnet-5", 128_000, Unless(DISABLED), true),
        family("claude-opus-5-5", 128_000, Always, true),
        family("claude-opus-5", 128_000, Unless(DISABLED), true),
        family("claude-fable-5", 128_000, Always, true),
    ]
};

/// The settings for models that are not listed. They avoid everything that one of the newest models
/// rejects.
const NEWER: Claude = family("claude-", 64_000, Thinking::Always, true);

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

/// Returns the family of a Claude model; `None` for other models. Gateways may add a prefix to the
/// name (`us.anthropic.`, `anthropic/`) or write the version with a dot.
pub(crate) fn claude(model: &str) -> Option<Claude> {
    let name = model[model.find("claude-")?..].replace('.', "-");
    let known = FAMILIES.into_iter().find(|f| name.starts_with(f.name));
    Some(known.unwrap_or(NEWER))
}
