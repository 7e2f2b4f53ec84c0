//! What the models of Claude take and may write.
//!
//! Sources: <https://platform.claude.com/docs/en/about-claude/models/overview>, and of each model
//! its migration guide, such as
//! <https://platform.claude.com/docs/en/models/opus-5-5/migration-guide>.

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
    /// As much as it finds right, and it takes settings of sampling.
    Adaptive,
    /// As much as it finds right. Here and below settings of sampling are refused.
    AdaptiveAlone,
    /// So unless `thinking` has this type.
    Unless(&'static str),
    /// So in each answer.
    Always,
}

/// Turns thinking off, so that the choice of a tool can be forced.
pub(crate) const DISABLED: &str = "disabled";

impl Thinking {
    /// Whether the model takes another `temperature`, `top_p` or `top_k` than its own.
    pub(crate) fn takes_sampling(self) -> bool {
        matches!(
            self,
            Thinking::Never | Thinking::Budget | Thinking::Adaptive
        )
    }

    /// Whether a request can force the model to call a tool. It cannot while the model thinks.
    pub(crate) fn can_be_forced(self) -> bool {
        match self {
            Thinking::Unless(off) => off == DISABLED,
            thinking => thinking != Thinking::Always,
        }
    }
}

/// The families. The first whose name fits counts; what is not listed is newer, and is [`NEWER`].
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

/// One that is not listed: nothing is asked of it that one of the newest refuses.
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

/// The family of a Claude model; `None` for other models. A gateway may put a prefix before the name
/// (`us.anthropic.`, `anthropic/`) or write a dot in its version.
pub(crate) fn claude(model: &str) -> Option<Claude> {
    let name = model[model.find("claude-")?..].replace('.', "-");
    let known = FAMILIES.into_iter().find(|f| name.starts_with(f.name));
    Some(known.unwrap_or(NEWER))
}
