//! The settings of a probe, a dry run and a turn.

use crate::auto::AutoSettings;
use crate::turn::TurnSettings;
use client::{Speed, TapeMode};
use std::path::PathBuf;
use std::time::Duration;
use stdio::Filter;

/// The settings of a probe, a dry run and a turn.
#[derive(Clone, Debug)]
pub struct AskSettings {
    /// What was typed as the question.
    pub prompt: Option<String>,
    /// What to ask for.
    pub turn: TurnSettings,
    /// How to decide between native calls and tags; also for a turn in another mode, which `--probe` may ask about.
    pub auto: AutoSettings,
    /// How to reach the provider.
    pub connection: ConnectionSettings,
    /// The tape, if one is used.
    pub tape: Option<(PathBuf, TapeMode)>,
    /// How fast a recorded answer is played.
    pub speed: Speed,
    /// The most answers since the last user's message.
    pub max_steps: Option<usize>,
    /// How standard input is read.
    pub filter: Filter,
    /// `--verbose`.
    pub is_verbose: bool,
}

/// How a provider is reached.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionSettings {
    /// How often a request is sent again.
    pub retries: u32,
    /// The longest time for everything.
    pub timeout: Option<Duration>,
    /// The longest time to connect.
    pub connect_timeout: Duration,
    /// The longest silence.
    pub idle_timeout: Duration,
    /// Whether to ask for the whole answer when streaming is refused.
    pub falls_back: bool,
}
