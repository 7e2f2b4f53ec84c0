//! What was typed, with what the environment adds, as the values of a task.

use crate::args::{Args, Fallback, ReplayArgs, TapeModeArg};
use crate::ask::{AskSettings, ConnectionSettings};
use crate::auto::{AutoSettings, Capabilities};
use crate::replay::ReplaySettings;
use crate::turn::{KeySource, TurnSettings};
use anyhow::{Result, anyhow, bail};
use clap::ValueEnum;
use client::Faults;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use upstream::Api;

/// What the command is to do.
#[derive(Debug)]
pub enum Task {
    /// Print how a model learns of its tools.
    Probe(Box<AskSettings>),
    /// Print the request.
    DryRun(Box<AskSettings>),
    /// Ask for the next turn.
    Turn(Box<AskSettings>),
    /// Play what was recorded.
    Replay(Box<ReplaySettings>),
}

impl Args {
    /// The task, with its settings.
    ///
    /// # Errors
    /// One line for options that contradict each other, and for an invalid variable of the environment.
    pub fn task(self) -> Result<Task> {
        if !self.replay.files.is_empty() {
            return Ok(Task::Replay(Box::new(self.replay_settings())));
        }
        if self.replay.faults().any() {
            bail!("faults are put into recorded bodies only, name one with --replay");
        }
        let (is_probe, is_dry) = (self.auto.probe, self.request.dry_run);
        let settings = Box::new(self.ask_settings()?);
        Ok(match (is_probe, is_dry) {
            (true, _) => Task::Probe(settings),
            (_, true) => Task::DryRun(settings),
            _ => Task::Turn(settings),
        })
    }

    fn replay_settings(self) -> ReplaySettings {
        ReplaySettings {
            faults: self.replay.faults(),
            files: self.replay.files,
            api: self.request.api,
            speed: self.replay.speed,
            tools_mode: self.request.tools_mode,
            dialect: self.request.dialect,
            dialect_file: self.request.dialect_file,
            tools: self.request.tools,
            prefill: self.request.prefill,
            max_frame: self.common.max_line,
            no_time: self.common.no_time,
            is_verbose: self.verbose,
        }
    }

    fn ask_settings(self) -> Result<AskSettings> {
        let tape = self.replay.tape()?;
        let filter = self.common.filter("llm-stream", vec![]);
        let (request, auto, connection) = (self.request, self.auto, self.connection);
        let list = || folder("XDG_CONFIG_HOME", ".config").map(|config| config.join("tools-mode"));
        let cache = match auto.capability_cache {
            Some(none) if none.as_os_str() == "none" => None,
            Some(folder) => Some(folder),
            None => folder("XDG_CACHE_HOME", ".cache").map(|cache| cache.join("capabilities")),
        };
        let auto = AutoSettings {
            is_list_named: auto.tools_mode_file.is_some(),
            list: auto.tools_mode_file.or_else(list),
            capabilities: Capabilities { folder: cache, time_to_live: auto.capability_ttl },
            patience: connection.idle_timeout.min(connection.timeout.unwrap_or(Duration::MAX)),
            is_dialect_named: request.dialect.is_some(),
        };
        let api = match (request.api, text("LLM_API")) {
            (Some(api), _) => Some(api),
            (None, Some(name)) => Some(
                Api::from_name(&name).ok_or_else(|| anyhow!("LLM_API: unknown API {name:?}, see --api in '--help'"))?,
            ),
            (None, None) => None,
        };
        let turn = TurnSettings {
            api,
            base_url: request.base_url.or_else(|| text("LLM_BASE_URL")).filter(|url| !url.is_empty()),
            model: request.model.or_else(|| text("LLM_MODEL")),
            key: KeySource { file: request.api_key_file, variable: request.api_key_env },
            headers: request.headers,
            params: request.params,
            system: request.system,
            tools: request.tools,
            tool_choice: request.tool_choice,
            tools_mode: request.tools_mode,
            dialect: request.dialect,
            dialect_file: request.dialect_file,
            prefill: request.prefill,
            streams: !request.no_stream,
            max_frame: filter.max_line,
            allows_insecure: connection.allow_insecure,
        };
        let connection = ConnectionSettings {
            retries: connection.retries,
            timeout: connection.timeout,
            connect_timeout: connection.connect_timeout,
            idle_timeout: connection.idle_timeout,
            falls_back: connection.fallback == Fallback::Sync,
        };
        let (speed, max_steps, is_verbose) = (self.replay.speed, request.max_steps, self.verbose);
        Ok(AskSettings { prompt: self.prompt, turn, auto, connection, tape, speed, max_steps, filter, is_verbose })
    }
}

impl ReplayArgs {
    fn faults(&self) -> Faults {
        let ReplayArgs { resplit, cut_at, stall_at, error_at, dup_at, .. } = *self;
        Faults { resplit, cut_at, stall_at, error_at, dup_at }
    }

    /// The tape, from the command line or the environment.
    ///
    /// # Errors
    /// An unknown mode in the environment; a mode without a tape, which would send requests that nobody wants.
    fn tape(&self) -> Result<Option<(PathBuf, client::TapeMode)>> {
        let (mode, origin) = match (self.tape_mode, variable("LLM_TAPE_MODE")) {
            (Some(mode), _) => (Some(mode), "--tape-mode"),
            (None, Some(word)) => {
                let word = word.to_string_lossy();
                let mode = TapeModeArg::from_str(&word, false)
                    .map_err(|_| anyhow!("LLM_TAPE_MODE: {word:?} is not replay, record or auto"))?;
                (Some(mode), "LLM_TAPE_MODE")
            }
            (None, None) => (None, ""),
        };
        match (self.tape.clone().or_else(|| variable("LLM_TAPE").map(PathBuf::from)), mode) {
            (Some(path), _) if path.as_os_str().is_empty() => bail!("--tape: the file has no name, write --tape FILE"),
            (Some(path), mode) => Ok(Some((path, mode.unwrap_or(TapeModeArg::Replay).into()))),
            (None, Some(_)) => bail!("{origin} needs a tape: name one with --tape FILE, or export LLM_TAPE"),
            (None, None) => Ok(None),
        }
    }
}

impl From<TapeModeArg> for client::TapeMode {
    fn from(typed: TapeModeArg) -> Self {
        match typed {
            TapeModeArg::Replay => client::TapeMode::Replay,
            TapeModeArg::Record => client::TapeMode::Record,
            TapeModeArg::Auto => client::TapeMode::Auto,
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

/// The folder `toolpipe` in one of the user's: in the one that the variable `name` holds if that is an absolute path, else in `usual` in
/// the home folder.
fn folder(name: &str, usual: &str) -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute(name).or_else(|| Some(absolute("HOME")?.join(usual)))?;
    Some(folder.join("toolpipe"))
}
