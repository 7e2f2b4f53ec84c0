//! How a tool is run: the member `exec` of its entry.

use crate::argv::Template;
use crate::class::Class;
use event::unit;
use serde_json::{Map, Value};
use std::time::Duration;

/// Limits that the system enforces on every process of a call. `None`: the runner's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Processor time of each process.
    pub cpu: Option<Duration>,
    /// Private memory of each process, in bytes.
    pub memory: Option<u64>,
    /// Open files of each process.
    pub files: Option<u64>,
    /// Processes and threads of the user.
    pub processes: Option<u64>,
}

/// How a tool is run.
#[derive(Clone, Debug)]
pub struct Exec {
    /// The command line.
    pub command: Template,
    /// What a call may do to the world.
    pub class: Class,
    /// How long a call may take; `None`: the runner's default.
    pub timeout: Option<Duration>,
    /// How long a result is kept in the cache; `None`: not at all.
    pub cache: Option<Duration>,
    /// Names of environment variables that the command gets.
    pub env: Vec<String>,
    /// Whether a successful result is the turn's final answer.
    pub return_directly: bool,
    /// The folder of the command, relative to the tools file's folder; `None`: the runner's own.
    pub cwd: Option<String>,
    /// The most bytes that the command may write to each of its two outputs; `None`: the runner's default.
    pub max_output: Option<usize>,
    /// Limits that the system enforces.
    pub limits: Limits,
}

/// The members of `exec`; the last two are for later versions.
const EXEC: [&str; 11] =
    ["command", "class", "timeout", "cache", "env", "return_directly", "cwd", "max_output", "limits", "http", "mcp"];

impl Exec {
    /// Reads the member. `declared` returns whether the schema declares an argument of that name.
    ///
    /// # Errors
    /// The first mistake, with the remedy.
    pub(crate) fn read(exec: Value, declared: &dyn Fn(&str) -> bool) -> Result<Exec, String> {
        let Value::Object(mut exec) = exec else {
            return Err("exec is not an object, write {\"command\":[…]}".to_owned());
        };
        if let Some(key) = exec.keys().find(|key| !EXEC.contains(&key.as_str())) {
            return Err(format!("exec.{key} is unknown, exec may have {}", EXEC[..9].join(", ")));
        }
        for key in ["http", "mcp"] {
            if exec.contains_key(key) {
                return Err(format!("exec.{key} is not supported by this version, use exec.command"));
            }
        }
        exec.retain(|_, value| !value.is_null());
        let command = match exec.remove("command") {
            Some(Value::Array(items)) => strings(items).ok_or("exec.command must hold strings only")?,
            Some(Value::String(_)) => {
                return Err("exec.command is one string, write a list: [\"program\",\"argument\"] (there is no shell)"
                    .to_owned());
            }
            _ => return Err("exec has no command, write \"command\":[\"program\",\"argument\"]".to_owned()),
        };
        let env = match exec.remove("env") {
            Some(Value::Array(names)) => strings(names).filter(|names| names.iter().all(|name| is_variable(name))),
            None => Some(Vec::new()),
            _ => None,
        };
        let class = match exec.remove("class") {
            Some(Value::String(word)) => Class::of(&word),
            None => Some(Class::default()),
            _ => None,
        };
        Ok(Exec {
            command: Template::read(&command, declared)?,
            class: class.ok_or("exec.class must be \"read\", \"write\" or \"danger\"")?,
            env: env.ok_or("exec.env must be a list of names of environment variables, such as [\"GITHUB_TOKEN\"]")?,
            timeout: take(&mut exec, "timeout", "a time above 0, such as \"30s\" or 30", time)?,
            cache: take(&mut exec, "cache", "a time to live above 0, such as \"10m\" or 600", time)?,
            return_directly: take(&mut exec, "return_directly", "true or false", Value::as_bool)?.unwrap_or(false),
            cwd: take(&mut exec, "cwd", "a folder", |v| v.as_str().filter(|s| !s.is_empty()).map(str::to_owned))?,
            max_output: take(&mut exec, "max_output", "a number of bytes, such as 65536 or \"64K\"", bytes)?
                .map(|n| usize::try_from(n).unwrap_or(usize::MAX)),
            limits: match exec.remove("limits") {
                None => Limits::default(),
                Some(Value::Object(limits)) => read_limits(limits)?,
                Some(_) => return Err("exec.limits must be an object, such as {\"memory\":\"1G\"}".to_owned()),
            },
        })
    }
}

fn read_limits(mut limits: Map<String, Value>) -> Result<Limits, String> {
    let found = Limits {
        cpu: take(&mut limits, "cpu", "a time above 0, such as \"10s\"", time)?,
        memory: take(&mut limits, "memory", "a number of bytes, such as \"1G\"", bytes)?,
        files: take(&mut limits, "files", "a number above 0", |v| v.as_u64().filter(|n| *n > 0))?,
        processes: take(&mut limits, "processes", "a number above 0", |v| v.as_u64().filter(|n| *n > 0))?,
    };
    match limits.keys().next() {
        Some(key) => Err(format!("exec.limits.{key} is unknown, there are cpu, memory, files and processes")),
        None => Ok(found),
    }
}

/// Takes the member `key`, if there is one, and reads it with `read`. `wanted` describes what it should be, for the error.
fn take<T>(
    exec: &mut Map<String, Value>,
    key: &str,
    wanted: &str,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Result<Option<T>, String> {
    match exec.remove(key) {
        None => Ok(None),
        Some(value) => read(&value).map(Some).ok_or_else(|| format!("exec: {key} must be {wanted}, not {value}")),
    }
}

fn strings(items: Vec<Value>) -> Option<Vec<String>> {
    items.into_iter().map(|item| if let Value::String(text) = item { Some(text) } else { None }).collect()
}

/// Whether a tools file may pass on an environment variable of this name. `TOOL_ARGUMENTS` holds the arguments.
fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && name != "TOOL_ARGUMENTS"
}

/// A time above 0, as a number of seconds or as a text with a unit.
fn time(value: &Value) -> Option<Duration> {
    unit::time(&text(value)).ok().filter(|time| !time.is_zero())
}

/// A number of bytes above 0, or a text with a unit.
fn bytes(value: &Value) -> Option<u64> {
    unit::size(&text(value)).ok().filter(|n| *n > 0)
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
