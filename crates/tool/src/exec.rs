//! How a tool is run: the member `exec` of its entry. What all tools share is here; each way to run
//! one has a file below.

mod command;
mod http;

pub use command::{CommandRun, Limits, Network, Sandbox, SandboxKind};
pub use http::{AllowedAddresses, CALL_ID, HttpRequest, HttpRun, VariableError, VariableText};

use super::approval::Class;
use super::argument::{Arguments, Refusal};
use super::canonical::Hash;
use event::unit;
use serde_json::{Map, Value};
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

// Members of a JSON object, each taken out once and read with a message that names the remedy.

/// Takes the member `key`, if there is one, and reads it with `read`. `wanted` describes what it
/// should be, for the error.
///
/// # Errors
/// What the member is and should be, if `read` returns `None`.
pub(crate) fn take<T>(
    exec: &mut Map<String, Value>,
    key: &str,
    wanted: &str,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Result<Option<T>, String> {
    match exec.remove(key) {
        None => Ok(None),
        Some(value) => read(&value)
            .map(Some)
            .ok_or_else(|| format!("exec: {key} must be {wanted}, not {value}")),
    }
}

/// The items of a list of strings; `None` if one is not a string.
pub(crate) fn strings(items: Vec<Value>) -> Option<Vec<String>> {
    items
        .into_iter()
        .map(|item| {
            if let Value::String(text) = item {
                Some(text)
            } else {
                None
            }
        })
        .collect()
}

/// A time above 0, as a number of seconds or as a text with a unit.
pub(crate) fn time(value: &Value) -> Option<Duration> {
    unit::time(&text(value)).ok().filter(|time| !time.is_zero())
}

/// A number of bytes above 0, or a text with a unit.
pub(crate) fn bytes(value: &Value) -> Option<u64> {
    unit::size(&text(value)).ok().filter(|n| *n > 0)
}

/// A number above 0.
pub(crate) fn count(value: &Value) -> Option<u64> {
    value.as_u64().filter(|n| *n > 0)
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

// A tool of a server of tools.

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
