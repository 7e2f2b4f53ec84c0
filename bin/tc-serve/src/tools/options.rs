//! The options of the tools that the service runs.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// What clients see of the calls that the service runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ToolsMode {
    /// Each step, in the form that the client's API has for it
    #[default]
    Standard,
    /// The final answer alone
    Auto,
    /// The service runs no tools: the client gets every call
    Pass,
}

impl ToolsMode {
    /// The mode that a word names.
    pub(crate) fn of(word: &str) -> Option<ToolsMode> {
        clap::ValueEnum::from_str(word, true).ok()
    }

    /// The word for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ToolsMode::Standard => "standard",
            ToolsMode::Auto => "auto",
            ToolsMode::Pass => "pass",
        }
    }
}

/// Tools that the service runs. The options of `tool-exec` go to it as they were typed.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Tools")]
pub(crate) struct ToolArgs {
    /// Run the calls of these tools here, and ask the model again: a tools file, a program, a folder
    /// of programs or an OpenAPI document (may be given many times); needs --sessions, where each
    /// call is written down before it runs
    #[arg(short, long, value_name = "FILE", requires = "sessions")]
    pub tools: Vec<PathBuf>,
    /// What clients see of these calls; a request may say otherwise in the header x-toolpipe-mode
    #[arg(long, value_enum, value_name = "MODE", default_value_t)]
    pub mode: ToolsMode,
    /// How often the model may answer one request
    #[arg(long, value_name = "N", default_value_t = 20, alias = "steps", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_steps: u32,
    /// As for tool-exec: ask a person before calls of this class and above [default: danger]
    #[arg(long, value_name = "CLASS", alias = "approve")]
    pub ask: Option<String>,
    /// As for tool-exec: run only tools whose name matches
    #[arg(long, value_name = "GLOB")]
    pub allow: Vec<String>,
    /// As for tool-exec: never run tools whose name matches
    #[arg(long, value_name = "GLOB")]
    pub deny: Vec<String>,
    /// As for tool-exec: rules by tool and by argument, and limits of a conversation
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// As for tool-exec: what confines each command at the least
    #[arg(long, value_name = "HOW")]
    pub sandbox: Option<String>,
    /// As for tool-exec: the folder of kept results
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// As for tool-exec: how many calls run at once
    #[arg(short, long, value_name = "N")]
    pub jobs: Option<String>,
    /// As --timeout of tool-exec: how long a call may take
    #[arg(long, value_name = "TIME")]
    pub call_timeout: Option<String>,
    /// As for tool-exec: use files that other users can write
    #[arg(long)]
    pub trust: bool,
}

impl ToolArgs {
    /// The options that name the tools.
    pub(super) fn sources(&self) -> impl Iterator<Item = &OsStr> {
        self.tools
            .iter()
            .flat_map(|source| ["--tools".as_ref(), source.as_os_str()])
    }

    /// The options for `tool-exec`, beginning with the tools.
    pub(super) fn words(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = self.sources().map(OsStr::to_owned).collect();
        let mut pair = |name: &str, value: Option<&OsStr>| {
            words.extend(
                value
                    .into_iter()
                    .flat_map(|value| [name.into(), value.to_owned()]),
            );
        };
        let text = |text: &Option<String>| text.as_deref().map(OsStr::new).map(OsStr::to_owned);
        pair("--ask", text(&self.ask).as_deref());
        self.allow
            .iter()
            .for_each(|glob| pair("--allow", Some(glob.as_ref())));
        self.deny
            .iter()
            .for_each(|glob| pair("--deny", Some(glob.as_ref())));
        pair("--policy", self.policy.as_deref().map(Path::as_os_str));
        pair("--sandbox", text(&self.sandbox).as_deref());
        pair("--cache", self.cache.as_deref().map(Path::as_os_str));
        pair("--jobs", text(&self.jobs).as_deref());
        pair("--timeout", text(&self.call_timeout).as_deref());
        if self.trust {
            words.push("--trust".into());
        }
        words
    }
}
