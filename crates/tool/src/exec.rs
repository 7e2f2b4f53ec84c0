//! How a tool is run: the member `exec` of its entry. This file holds what all tools share; each
//! way to run a tool has its own file.

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

/// How a tool's calls are run. A new way to run tools needs a variant here and one in [`Work`].
#[derive(Clone, Debug)]
pub enum RunnerKind {
    /// Runs a command.
    Command(CommandRun),
    /// Sends a request to an HTTP server.
    Http(HttpRun),
    /// Calls a tool on an MCP server.
    Mcp(McpRun),
}

/// The work of one call: the tool's [`RunnerKind`] with the arguments filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// A command line, whose first item is the program.
    Command(Vec<String>),
    /// An HTTP request.
    Http(HttpRequest),
    /// A call to an MCP tool; the arguments are forwarded unchanged.
    Mcp(McpRun),
}

/// The settings for running a tool.
#[derive(Clone, Debug)]
pub struct Exec {
    /// How its calls are run.
    pub run: RunnerKind,
    /// How a call may affect the outside world.
    pub class: Class,
    /// Maximum run time of a call, or `None` for the runner's default.
    pub timeout: Option<Duration>,
    /// How long a result stays in the cache, or `None` if results are not cached.
    pub cache: Option<Duration>,
    /// Whether a successful result is the turn's final answer.
    pub return_directly: bool,
    /// Maximum bytes that a call may write to each of its outputs, or `None` for the runner's
    /// default.
    pub max_output: Option<usize>,
    /// Maximum bytes of an output that are passed to the model, or `None` for the runner's default.
    pub max_result: Option<usize>,
}

/// The known members of `exec`.
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
    /// Parses the member `exec`. `declared` returns whether the schema declares an argument with
    /// that name.
    ///
    /// # Errors
    /// Returns the first mistake and how to fix it.
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

    /// Checks that leaving out an optional argument cannot change the meaning of the rest of the
    /// command line. `always` returns whether every valid call has the argument with that name.
    ///
    /// # Errors
    /// Returns the first mistake and how to fix it.
    pub(crate) fn check_places(&self, always: &dyn Fn(&str) -> bool) -> Result<(), String> {
        match &self.run {
            RunnerKind::Command(command) => command.template.check_places(always),
            RunnerKind::Http(_) | RunnerKind::Mcp(_) => Ok(()),
        }
    }

    /// Returns the work of a call with these arguments.
    ///
    /// # Errors
    /// Returns an [`ArgumentRefusal`] whose message is written for the model.
    pub(crate) fn work(&self, arguments: &Arguments) -> Result<Work, ArgumentRefusal> {
        match &self.run {
            RunnerKind::Command(command) => command.template.fill(arguments).map(Work::Command),
            RunnerKind::Http(request) => request.fill(arguments).map(Work::Http),
            RunnerKind::Mcp(tool) => Ok(Work::Mcp(tool.clone())),
        }
    }
}

/// A tool on an MCP server. No tools file can set this variant under `exec`: these tools come from
/// the servers listed under `mcpServers`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpRun {
    /// The server's name in the tools file.
    pub server: String,
    /// The tool's name on the server.
    pub tool: String,
    /// The digest of the tool's definition in the lock file.
    pub definition: Hash,
    /// The working folder of the server's program, relative to the folder of the tools file, or
    /// `None` for the caller's own.
    pub cwd: Option<String>,
}
