//! How a tool is run: the member `exec` of its entry. What all tools share is here; each way to run
//! one has a file below.

mod command;
mod http;

pub use command::{CommandLimits, CommandNetwork, CommandRun, Sandbox, SandboxKind};
pub use http::{AllowedAddresses, HttpRequest, HttpRun};

use super::approval::Class;
use super::argument::{ArgumentRefusal, Arguments};
use super::canonical::Hash;
use super::members::{BYTES, FLAG, MemberKind, Members, TIME};
use serde_json::Value;
use std::time::Duration;

/// What the calls of a tool start. A new way to run a tool is a variant here and one of [`Work`].
#[derive(Clone, Debug)]
pub enum RunnerKind {
    /// A command.
    Command(CommandRun),
    /// A request to a server.
    Http(HttpRun),
    /// A tool of a server of tools.
    Mcp(McpRun),
}

/// What one call starts: the [`RunnerKind`] of its tool with the arguments in their places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// A command line; the program is the first item.
    Command(Vec<String>),
    /// A request.
    Http(HttpRequest),
    /// A call of a tool of a server; the arguments go there as they are.
    Mcp(McpRun),
}

/// How a tool is run.
#[derive(Clone, Debug)]
pub struct Exec {
    /// What a call starts.
    pub run: RunnerKind,
    /// What a call may do to the world.
    pub class: Class,
    /// How long a call may take; `None`: the runner's default.
    pub timeout: Option<Duration>,
    /// How long a result is kept in the cache; `None`: not at all.
    pub cache: Option<Duration>,
    /// Whether a successful result is the turn's final answer.
    pub return_directly: bool,
    /// The most bytes that a call may write to each of its outputs; `None`: the runner's default.
    pub max_output: Option<usize>,
    /// The most bytes of an output that the model reads; `None`: the runner's default.
    pub max_result: Option<usize>,
}

/// The members of `exec`.
pub(crate) const MEMBERS: [&str; 12] = [
    "command",
    "env",
    "cwd",
    "limits",
    "sandbox",
    "class",
    "timeout",
    "cache",
    "return_directly",
    "max_output",
    "max_result",
    "http",
];

impl Exec {
    /// Reads the member. `declared` returns whether the schema declares an argument of that name.
    ///
    /// # Errors
    /// The first mistake, with the remedy.
    pub(crate) fn read(exec: Value, declared: &dyn Fn(&str) -> bool) -> Result<Exec, String> {
        let example = "{\"command\":[\"program\",\"argument\"]}";
        let mut exec = Members::of(exec, "exec", &MEMBERS, example)?;
        let run = match exec.value("http") {
            None => RunnerKind::Command(CommandRun::read(&mut exec, declared)?),
            Some(member) => {
                if let Some(key) = command::MEMBERS.iter().find(|key| exec.has(key)) {
                    return Err(format!(
                        "exec.{key} is for a command and exec.http for a request, keep one of them"
                    ));
                }
                RunnerKind::Http(HttpRun::read(member, declared)?)
            }
        };
        let class = MemberKind(
            "\"read\", \"write\" or \"danger\"",
            |value| Class::of(value.as_str()?),
            true,
        );
        let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        Ok(Exec {
            run,
            class: exec.take("class", &class)?.unwrap_or_default(),
            timeout: exec.take("timeout", &TIME)?,
            cache: exec.take("cache", &TIME)?,
            return_directly: exec.take("return_directly", &FLAG)?.unwrap_or(false),
            max_output: exec.take("max_output", &BYTES)?.map(size),
            max_result: exec.take("max_result", &BYTES)?.map(size),
        })
    }

    /// Checks that no part of what a call starts gets another meaning where an argument is missing.
    /// `always` returns whether every valid call has an argument.
    ///
    /// # Errors
    /// The first mistake, with the remedy.
    pub(crate) fn check_places(&self, always: &dyn Fn(&str) -> bool) -> Result<(), String> {
        match &self.run {
            RunnerKind::Command(command) => command.template.check_places(always),
            RunnerKind::Http(_) | RunnerKind::Mcp(_) => Ok(()),
        }
    }

    /// What a call with these arguments starts.
    ///
    /// # Errors
    /// A [`ArgumentRefusal`], written for the model.
    pub(crate) fn work(&self, arguments: &Arguments) -> Result<Work, ArgumentRefusal> {
        match &self.run {
            RunnerKind::Command(command) => command.template.fill(arguments).map(Work::Command),
            RunnerKind::Http(request) => request.fill(arguments).map(Work::Http),
            RunnerKind::Mcp(tool) => Ok(Work::Mcp(tool.clone())),
        }
    }
}

/// A tool of a server of tools. No tools file has this member of `exec`: the tools come from the
/// servers of `mcpServers`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpRun {
    /// The server's name in the tools file.
    pub server: String,
    /// The tool's name at the server.
    pub tool: String,
    /// The digest of its definition as it was locked.
    pub definition: Hash,
    /// The working folder of the server's program, relative to the folder of the tools file;
    /// `None`: the caller's own.
    pub cwd: Option<String>,
}
