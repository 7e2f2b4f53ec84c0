//! The settings of a provider, from the command line and the environment.

use super::args::{
    AutoArgs, ConnectionArgs, FaultArgs, ProviderArgs, ReplayArgs, TapeModeArg, ToolsModeArgs,
};
use ::args::DefaultOption;
use anyhow::{Result, anyhow, bail};
use clap::{CommandFactory, FromArgMatches, Parser, ValueEnum};
use client::{Recorder, RecorderError, ReplayFaults, TapeMode};
use config::{Configured, Model, Spec};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use stdio::Status;

/// The settings of a provider, shared by all turns with it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The provider's options. Missing ones were filled in from the environment.
    pub provider: ProviderArgs,
    /// How tools are presented to models.
    pub tools: ToolsModeArgs,
    /// The options of the mode `auto`.
    pub auto: AutoArgs,
    /// The connection options.
    pub connection: ConnectionArgs,
    /// The most bytes in one event of a response body.
    pub max_frame: usize,
}

impl Settings {
    /// Adapts the settings to the configured `model`, if there is one: requests use the server's
    /// own name for it.
    pub fn of_model(mut self, model: Option<&Model>) -> Settings {
        let provider = &mut self.provider;
        if let Some(model) = model {
            provider.model = Some(model.asked().to_owned());
        }
        provider.base_url = provider.base_url.take().filter(|url| !url.is_empty());
        self
    }
}

/// The options for requests to a model. The configuration may set each of them per model.
#[derive(Clone, Debug, clap::Parser)]
#[command(no_binary_name = true)]
struct ModelArgs {
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

/// Reads the settings of configured models other than the one on the command line.
#[derive(Debug)]
pub struct ModelReader<'c> {
    configured: &'c Configured,
    /// The most bytes in one event of a response body.
    max_frame: usize,
    /// The parser of the options, which all models share.
    command: Option<clap::Command>,
}

impl<'c> ModelReader<'c> {
    /// Creates a reader of the models in `configured`.
    pub fn new(configured: &'c Configured, max_frame: usize) -> ModelReader<'c> {
        ModelReader {
            configured,
            max_frame,
            command: None,
        }
    }

    /// Returns the settings of a model, as [`Settings::of_model`] does.
    ///
    /// # Errors
    /// An invalid value of an option, with its place in the configuration.
    pub fn settings(&mut self, model: &Model) -> Result<Settings> {
        let ModelArgs {
            provider,
            tools,
            auto,
            connection,
        } = self.options(model)?;
        let settings = Settings {
            provider,
            tools,
            auto,
            connection,
            max_frame: self.max_frame,
        };
        Ok(settings.of_model(Some(model)))
    }

    fn options(&mut self, model: &Model) -> Result<ModelArgs> {
        let words = self.configured.words_for(model)?;
        let command = self.command.get_or_insert_with(ModelArgs::command);
        let matches = command.try_get_matches_from_mut(words.iter().map(DefaultOption::word));
        let options = matches.and_then(|mut matches| ModelArgs::from_arg_matches_mut(&mut matches));
        options.map_err(|e| anyhow!("{}", ::args::misfit(self.configured.command(), &e, &words)))
    }
}

/// Runs a command that sends requests to models, with the configuration's table `section`. With
/// `routes`, each request names its model.
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
        agent: None,
    };
    config::run(spec, remedy, work)
}

impl AutoArgs {
    /// Returns the path of the allow-list, or `None` if the user has no home folder.
    pub(crate) fn list(&self) -> Option<PathBuf> {
        let usual = || folder("XDG_CONFIG_HOME", ".config").map(|config| config.join("tools-mode"));
        self.tools_mode_file.clone().or_else(usual)
    }

    /// Returns the folder of the cache, or `None` if the cache is turned off.
    pub(crate) fn cache(&self) -> Option<PathBuf> {
        match &self.capability_cache {
            Some(none) if none.as_os_str() == "none" => None,
            Some(folder) => Some(folder.clone()),
            None => folder("XDG_CACHE_HOME", ".cache").map(|cache| cache.join("capabilities")),
        }
    }
}

/// The path of a tape, and how it is used.
pub type TapeSettings = (PathBuf, TapeMode);

/// Opens a tape.
///
/// # Errors
/// A one-line error that names the file and the remedy.
pub fn open_tape((path, mode): TapeSettings) -> Result<Recorder> {
    Recorder::open(path, mode).map_err(|e| match e {
        RecorderError::Missing(_) => anyhow!("{e}, record one with --tape-mode record"),
        e => e.into(),
    })
}

impl FaultArgs {
    /// Returns the faults to inject into a replay. A stall that lasts at least as long as the
    /// connection's idle limit ends the response at once.
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
    /// Whether every response comes from a tape.
    ///
    /// # Errors
    /// See [`ReplayArgs::tape`].
    pub fn is_offline(&self) -> Result<bool> {
        let tape = self.tape()?;
        Ok(tape.is_some_and(|(_, mode)| mode == TapeMode::Replay))
    }

    /// Returns the tape, or `None` if neither the command line nor the environment names one.
    ///
    /// # Errors
    /// If the environment names an unknown mode, or sets a mode without a tape, which would send
    /// unintended requests.
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

/// Returns the value of an environment variable, or `None` if it is unset or empty.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns the folder `toolpipe` inside a user's folder: the one in the variable `name` if that is
/// an absolute path, else `usual` in the home folder.
fn folder(name: &str, usual: &str) -> Option<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let folder = absolute(name).or_else(|| Some(absolute("HOME")?.join(usual)))?;
    Some(folder.join("toolpipe"))
}
