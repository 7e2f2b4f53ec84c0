//! What was typed, with what the environment adds, as the settings of a provider.

use super::args::{
    AutoArgs, ConnectionArgs, FaultArgs, ProviderArgs, ReplayArgs, TapeModeArg, ToolsModeArgs,
};
use ::args::DefaultOption;
use anyhow::{Result, anyhow, bail};
use clap::{CommandFactory, Parser, ValueEnum};
use client::{Recorder, RecorderError, ReplayFaults, TapeMode};
use config::{Configured, Model, Spec};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use stdio::Status;

/// What a provider, and every turn with it, go by.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whom to ask. The environment has filled in what was not typed.
    pub provider: ProviderArgs,
    /// How models learn of their tools.
    pub tools: ToolsModeArgs,
    /// How the mode `auto` decides that.
    pub auto: AutoArgs,
    /// How the provider is reached.
    pub connection: ConnectionArgs,
    /// The most bytes of one event of a body.
    pub max_frame: usize,
}

impl Settings {
    /// The settings of a model that the configuration names, if it is `model`: the server gets its
    /// own name of it.
    pub fn of_model(mut self, model: Option<&Model>) -> Settings {
        let provider = &mut self.provider;
        if let Some(model) = model {
            provider.model = Some(model.asked().to_owned());
        }
        provider.base_url = provider.base_url.take().filter(|url| !url.is_empty());
        self
    }
}

/// The options by which a model is asked, each of which the configuration may have for a model.
#[derive(Clone, Debug, clap::Parser)]
#[command(no_binary_name = true)]
pub struct ModelArgs {
    /// Whom to ask.
    #[command(flatten)]
    pub provider: ProviderArgs,
    /// How models learn of their tools.
    #[command(flatten)]
    pub tools: ToolsModeArgs,
    /// How the mode `auto` decides that.
    #[command(flatten)]
    pub auto: AutoArgs,
    /// How the provider is reached.
    #[command(flatten)]
    pub connection: ConnectionArgs,
}

impl ModelArgs {
    /// The settings of a model of the configuration that is not the one that was typed, as
    /// [`Settings::of_model`].
    ///
    /// # Errors
    /// A value that its option does not take, with its place.
    pub fn settings(configured: &Configured, model: &Model, max_frame: usize) -> Result<Settings> {
        let ModelArgs {
            provider,
            tools,
            auto,
            connection,
        } = ModelArgs::of(configured, model)?;
        let settings = Settings {
            provider,
            tools,
            auto,
            connection,
            max_frame,
        };
        Ok(settings.of_model(Some(model)))
    }

    /// The options of a model of the configuration that is not the one that was typed.
    ///
    /// # Errors
    /// A value that its option does not take, with its place.
    fn of(configured: &Configured, model: &Model) -> Result<ModelArgs> {
        let words = configured.words_for(model)?;
        ModelArgs::try_parse_from(words.iter().map(DefaultOption::word))
            .map_err(|e| anyhow!("{}", ::args::misfit(configured.command(), &e, &words)))
    }
}

/// Runs a command that asks models, by the table `section` of the configuration. With `routes` each
/// request names its model.
pub fn run<A: Parser>(
    section: &'static str,
    variables: &'static str,
    routes: bool,
    remedy: impl Fn(&str) -> Option<String>,
    work: impl FnOnce(A, Configured) -> Result<Status>,
) -> ExitCode {
    let spec = Spec {
        section,
        variables,
        model: Some(ModelArgs::command()),
        shared: vec![],
        routes,
    };
    config::run(spec, remedy, work)
}

impl AutoArgs {
    /// The allow-list, if the user has a home.
    pub(crate) fn list(&self) -> Option<PathBuf> {
        let usual = || folder("XDG_CONFIG_HOME", ".config").map(|config| config.join("tools-mode"));
        self.tools_mode_file.clone().or_else(usual)
    }

    /// The folder of the cache; `None` turns it off.
    pub(crate) fn cache(&self) -> Option<PathBuf> {
        match &self.capability_cache {
            Some(none) if none.as_os_str() == "none" => None,
            Some(folder) => Some(folder.clone()),
            None => folder("XDG_CACHE_HOME", ".cache").map(|cache| cache.join("capabilities")),
        }
    }
}

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

impl FaultArgs {
    /// What goes wrong in a replay. A stall that is not shorter than the longest silence of a
    /// connection ends the answer at once.
    pub fn faults(self, connection: &ConnectionArgs) -> ReplayFaults {
        let FaultArgs {
            resplit,
            cut_at,
            stall_at,
            error_at,
            dup_at,
        } = self;
        ReplayFaults {
            resplit,
            cut_at,
            stall_at,
            error_at,
            dup_at,
            idle: Some(connection.idle_timeout),
        }
    }
}

impl ReplayArgs {
    /// Whether every answer comes from a tape.
    ///
    /// # Errors
    /// See [`ReplayArgs::tape`].
    pub fn is_offline(&self) -> Result<bool> {
        let tape = self.tape()?;
        Ok(tape.is_some_and(|(_, mode)| mode == TapeMode::Replay))
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
