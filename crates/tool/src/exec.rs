//! How a tool is run: the member `exec` of its entry. What all tools share is here; each way to run
//! one has a file below.

mod command;
mod http;
mod mcp;
pub(crate) mod members;
mod sandbox;

pub use command::{CommandRun, Limits};
pub use http::{AllowedAddresses, CALL_ID, HttpRequest, HttpRun, VariableError, VariableText};
pub use mcp::McpRun;
pub use sandbox::{Network, Sandbox, SandboxKind};

use crate::argument::Arguments;
use crate::class::Class;
use crate::refusal::Refusal;
use members::{bytes, take, time};
use serde_json::Value;
use std::time::Duration;

/// What the calls of a tool start. A new way to run a tool is a variant here and one of [`Work`].
#[derive(Clone, Debug)]
pub enum Run {
    /// A command.
    Command(CommandRun),
    /// A request to a server.
    Http(HttpRun),
    /// A tool of a server of tools.
    Mcp(McpRun),
}

/// What one call starts: the [`Run`] of its tool with the arguments in their places.
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
    pub run: Run,
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

/// The members of `exec` that every way to run a tool shares.
const SHARED: [&str; 6] = [
    "class",
    "timeout",
    "cache",
    "return_directly",
    "max_output",
    "max_result",
];

impl Exec {
    /// Reads the member. `declared` returns whether the schema declares an argument of that name.
    ///
    /// # Errors
    /// The first mistake, with the remedy.
    pub(crate) fn read(exec: Value, declared: &dyn Fn(&str) -> bool) -> Result<Exec, String> {
        let Value::Object(mut exec) = exec else {
            return Err("exec is not an object, write {\"command\":[…]}".to_owned());
        };
        let known = || {
            command::MEMBERS
                .into_iter()
                .chain(SHARED)
                .chain([http::MEMBER])
        };
        if let Some(key) = exec
            .keys()
            .find(|key| !known().any(|known| known == key.as_str()))
        {
            return Err(format!(
                "exec.{key} is unknown, exec may have {}",
                known().collect::<Vec<_>>().join(", ")
            ));
        }
        exec.retain(|_, value| !value.is_null());
        let run = match exec.remove(http::MEMBER) {
            None => Run::Command(CommandRun::read(&mut exec, declared)?),
            Some(member) => {
                if let Some(key) = command::MEMBERS
                    .into_iter()
                    .find(|key| exec.contains_key(*key))
                {
                    return Err(format!(
                        "exec.{key} is for a command and exec.http for a request, keep one of them"
                    ));
                }
                Run::Http(HttpRun::read(member, declared)?)
            }
        };
        let class = match exec.remove("class") {
            Some(Value::String(word)) => Class::of(&word),
            None => Some(Class::default()),
            _ => None,
        };
        let mut size = |key: &str| -> Result<Option<usize>, String> {
            let size = take(
                &mut exec,
                key,
                "a number of bytes, such as 65536 or \"64K\"",
                bytes,
            )?;
            Ok(size.map(|n| usize::try_from(n).unwrap_or(usize::MAX)))
        };
        let (max_output, max_result) = (size("max_output")?, size("max_result")?);
        Ok(Exec {
            run,
            class: class.ok_or("exec.class must be \"read\", \"write\" or \"danger\"")?,
            timeout: take(
                &mut exec,
                "timeout",
                "a time above 0, such as \"30s\" or 30",
                time,
            )?,
            cache: take(
                &mut exec,
                "cache",
                "a time to live above 0, such as \"10m\" or 600",
                time,
            )?,
            return_directly: take(
                &mut exec,
                "return_directly",
                "true or false",
                Value::as_bool,
            )?
            .unwrap_or(false),
            max_output,
            max_result,
        })
    }

    /// Checks that no part of what a call starts gets another meaning where an argument is missing.
    /// `always` returns whether every valid call has an argument.
    ///
    /// # Errors
    /// The first mistake, with the remedy.
    pub(crate) fn check_places(&self, always: &dyn Fn(&str) -> bool) -> Result<(), String> {
        #[allow(irrefutable_let_patterns, reason = "only a command has places")]
        if let Run::Command(command) = &self.run {
            command.template.check_places(always)
        } else {
            Ok(())
        }
    }

    /// What a call with these arguments starts.
    ///
    /// # Errors
    /// A [`Refusal`], written for the model.
    pub(crate) fn work(&self, arguments: &Arguments) -> Result<Work, Refusal> {
        match &self.run {
            Run::Command(command) => command.template.fill(arguments).map(Work::Command),
            Run::Http(request) => request.fill(arguments).map(Work::Http),
            Run::Mcp(tool) => Ok(Work::Mcp(tool.clone())),
        }
    }
}
