//! What was typed, with what the environment adds, as the settings of a provider.

use super::args::{
    AutoArgs, ConnectionArgs, Fallback, ProviderArgs, ReplayArgs, TapeModeArg, ToolsModeArgs,
};
use super::auto::{AutoSettings, Capabilities};
use super::provider::{KeySource, ProviderSettings};
use anyhow::{Result, anyhow, bail};
use api::Api;
use clap::ValueEnum;
use client::{Faults, Recorder, RecorderError, TapeMode};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// How a provider is reached.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionSettings {
    /// How often a request is sent again.
    pub retries: u32,
    /// Whether that is done after a lost connection alone: see
    /// [`client::AttemptPolicy::only_lost`].
    pub only_lost: bool,
    /// The longest time for everything.
    pub timeout: Option<Duration>,
    /// The longest time to connect.
    pub connect_timeout: Duration,
    /// The longest silence.
    pub idle_timeout: Duration,
    /// Whether to ask for the whole answer when streaming is refused.
    pub falls_back: bool,
}

/// How often a request is sent again by a command that nobody else asks again.
const RETRIES: u32 = 2;

/// A tape, and how it is used.
pub type TapeSettings = (PathBuf, TapeMode);

/// Opens a tape.
///
/// # Errors
/// One line that names the file and the remedy.
pub fn open_tape((path, mode): TapeSettings) -> Result<Recorder> {
    Recorder::open(path, mode).map_err(|e| match e {
        RecorderError::Missing(_) => anyhow!("{e}, record one with --tape-mode record"),
        e => e.into(),
    })
}

impl ProviderArgs {
    /// The settings of a provider. `max_frame` is the most bytes of one event of a body.
    ///
    /// # Errors
    /// An unknown API in the environment.
    pub fn settings(
        self,
        tools: &ToolsModeArgs,
        connection: &ConnectionArgs,
        max_frame: usize,
    ) -> Result<ProviderSettings> {
        let api =
            match (self.api, text("LLM_API")) {
                (Some(api), _) => Some(api),
                (None, Some(name)) => Some(Api::from_name(&name).ok_or_else(|| {
                    anyhow!("LLM_API: unknown API {name:?}, see --api in '--help'")
                })?),
                (None, None) => None,
            };
        Ok(ProviderSettings {
            api,
            base_url: self
                .base_url
                .or_else(|| text("LLM_BASE_URL"))
                .filter(|url| !url.is_empty()),
            model: self.model.or_else(|| text("LLM_MODEL")),
            key: KeySource {
                file: self.api_key_file,
                variable: self.api_key_env,
            },
            headers: self.headers,
            params: self.params,
            tools_mode: tools.tools_mode,
            dialect: tools.dialect.clone(),
            dialect_file: tools.dialect_file.clone(),
            prefill: tools.prefill.clone(),
            max_frame,
            allows_insecure: connection.allow_insecure,
        })
    }
}

impl AutoArgs {
    /// How the mode `auto` decides.
    pub fn settings(self, tools: &ToolsModeArgs, connection: &ConnectionArgs) -> AutoSettings {
        let list = || folder("XDG_CONFIG_HOME", ".config").map(|config| config.join("tools-mode"));
        let cache = match self.capability_cache {
            Some(none) if none.as_os_str() == "none" => None,
            Some(folder) => Some(folder),
            None => folder("XDG_CACHE_HOME", ".cache").map(|cache| cache.join("capabilities")),
        };
        AutoSettings {
            is_list_named: self.tools_mode_file.is_some(),
            list: self.tools_mode_file.or_else(list),
            capabilities: Capabilities {
                folder: cache,
                time_to_live: self.capability_ttl,
            },
            patience: connection
                .idle_timeout
                .min(connection.timeout.unwrap_or(Duration::MAX)),
            is_dialect_named: tools.dialect.is_some(),
        }
    }
}

impl ConnectionArgs {
    /// How the provider is reached.
    pub fn settings(&self) -> ConnectionSettings {
        ConnectionSettings {
            retries: self.retries.unwrap_or(RETRIES),
            only_lost: false,
            timeout: self.timeout,
            connect_timeout: self.connect_timeout,
            idle_timeout: self.idle_timeout,
            falls_back: self.fallback == Fallback::Sync,
        }
    }
}

impl ReplayArgs {
    /// What goes wrong in a replay.
    pub fn faults(&self) -> Faults {
        let ReplayArgs {
            resplit,
            cut_at,
            stall_at,
            error_at,
            dup_at,
            ..
        } = *self;
        Faults {
            resplit,
            cut_at,
            stall_at,
            error_at,
            dup_at,
        }
    }

    /// The tape, from the command line or the environment.
    ///
    /// # Errors
    /// An unknown mode in the environment; a mode without a tape, which would send requests that
    /// nobody wants.
    pub fn tape(&self) -> Result<Option<TapeSettings>> {
        let (mode, origin) = match (self.tape_mode, variable("LLM_TAPE_MODE")) {
            (Some(mode), _) => (Some(mode), "--tape-mode"),
            (None, Some(word)) => {
                let word = word.to_string_lossy();
                let mode = TapeModeArg::from_str(&word, false).map_err(|_| {
                    anyhow!("LLM_TAPE_MODE: {word:?} is not replay, record or auto")
                })?;
                (Some(mode), "LLM_TAPE_MODE")
            }
            (None, None) => (None, ""),
        };
        match (
            self.tape
                .clone()
                .or_else(|| variable("LLM_TAPE").map(PathBuf::from)),
            mode,
        ) {
            (Some(path), _) if path.as_os_str().is_empty() => {
                bail!("--tape: the file has no name, write --tape FILE")
            }
            (Some(path), mode) => Ok(Some((path, mode.unwrap_or(TapeModeArg::Replay).into()))),
            (None, Some(_)) => {
                bail!("{origin} needs a tape: name one with --tape FILE, or export LLM_TAPE")
            }
            (None, None) => Ok(None),
        }
    }
}

impl From<TapeModeArg> for TapeMode {
    fn from(typed: TapeModeArg) -> Self {
        match typed {
            TapeModeArg::Replay => TapeMode::Replay,
            TapeModeArg::Record => TapeMode::Record,
            TapeModeArg::Auto => TapeMode::Auto,
        }
    }
}

/// A variable of the environment that is set and not empty.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn text(name: &str) -> Option<String> {
    variable(name)?.into_string().ok()
}

/// The folder `toolpipe` in one of the user's: in the one that the variable `name` holds if that is
/// an absolute path, else in `usual` in the home folder.
fn folder(name: &str, usual: &str) -> Option<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let folder = absolute(name).or_else(|| Some(absolute("HOME")?.join(usual)))?;
    Some(folder.join("toolpipe"))
}
