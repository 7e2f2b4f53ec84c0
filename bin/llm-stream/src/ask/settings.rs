//! The settings of a probe, a dry run and a turn.

use ::ask::{AutoSettings, ConnectionSettings, ProviderSettings, TapeSettings};
use client::Speed;
use std::path::PathBuf;
use stdio::Filter;

/// The settings of a probe, a dry run and a turn.
#[derive(Clone, Debug)]
pub struct AskSettings {
    /// What was typed as the question.
    pub prompt: Option<String>,
    /// Whom to ask.
    pub provider: ProviderSettings,
    /// The system prompt.
    pub system: Option<String>,
    /// The file of the tools.
    pub tools: Option<PathBuf>,
    /// `auto`, `none`, `required` or a tool's name.
    pub tool_choice: Option<String>,
    /// Whether to ask for a stream.
    pub streams: bool,
    /// How to decide between native calls and tags; also for a turn in another mode, which
    /// `--probe` may ask about.
    pub auto: AutoSettings,
    /// How to reach the provider.
    pub connection: ConnectionSettings,
    /// The tape, if one is used.
    pub tape: Option<TapeSettings>,
    /// How fast a recorded answer is played.
    pub speed: Speed,
    /// The most answers since the last user's message.
    pub max_steps: Option<usize>,
    /// How standard input is read.
    pub filter: Filter,
    /// `--verbose`.
    pub is_verbose: bool,
}
