//! A tool that runs a command: the members `command`, `env`, `cwd`, `limits` and `sandbox` of
//! `exec`.

use super::members::{bytes, count, strings, take, time};
use super::sandbox::Sandbox;
use crate::argv::Template;
use serde_json::{Map, Value};
use std::time::Duration;

/// The members of `exec` that belong to a command.
pub(crate) const MEMBERS: [&str; 5] = ["command", "env", "cwd", "limits", "sandbox"];

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
    /// Size of each file that a process writes, in bytes.
    pub file_size: Option<u64>,
    /// How much the command's home may hold, in bytes.
    pub home: Option<u64>,
}

/// A command that a tool runs.
#[derive(Clone, Debug)]
pub struct CommandRun {
    /// The command line.
    pub template: Template,
    /// Names of environment variables that the command gets.
    pub env: Vec<String>,
    /// The folder of the command, relative to the tools file's folder; `None`: the runner's own.
    pub cwd: Option<String>,
    /// Limits that the system enforces.
    pub limits: Limits,
    /// What it asks of its sandbox; `None`: it asks for none.
    pub sandbox: Option<Sandbox>,
}

impl CommandRun {
    /// Reads the members of a command and takes them out of `exec`. `declared` returns whether the
    /// schema declares an argument of that name.
    ///
    /// # Errors
    /// The first mistake, with the remedy.
    pub(crate) fn read(
        exec: &mut Map<String, Value>,
        declared: &dyn Fn(&str) -> bool,
    ) -> Result<Self, String> {
        let command = match exec.remove("command") {
            Some(Value::Array(items)) => {
                strings(items).ok_or("exec.command must hold strings only")?
            }
            Some(Value::String(_)) => {
                return Err("exec.command is one string, write a list: [\"program\",\"argument\"] (there is no shell)"
                    .to_owned());
            }
            _ => {
                return Err(
                    "exec has no command, write \"command\":[\"program\",\"argument\"]".to_owned(),
                );
            }
        };
        let env = match exec.remove("env") {
            Some(Value::Array(names)) => {
                strings(names).filter(|names| names.iter().all(|name| is_variable(name)))
            }
            None => Some(Vec::new()),
            _ => None,
        };
        Ok(CommandRun {
            template: Template::read(&command, declared)?,
            env: env.ok_or("exec.env must be a list of names of environment variables, such as [\"GITHUB_TOKEN\"]")?,
            cwd: take(exec, "cwd", "a folder", |v| v.as_str().filter(|s| !s.is_empty()).map(str::to_owned))?,
            limits: match exec.remove("limits") {
                None => Limits::default(),
                Some(Value::Object(limits)) => read_limits(limits)?,
                Some(_) => return Err("exec.limits must be an object, such as {\"memory\":\"1G\"}".to_owned()),
            },
            sandbox: exec.remove("sandbox").map(Sandbox::read).transpose()?,
        })
    }
}

fn read_limits(mut limits: Map<String, Value>) -> Result<Limits, String> {
    let found = Limits {
        cpu: take(&mut limits, "cpu", "a time above 0, such as \"10s\"", time)?,
        memory: take(
            &mut limits,
            "memory",
            "a number of bytes, such as \"1G\"",
            bytes,
        )?,
        files: take(&mut limits, "files", "a number above 0", count)?,
        processes: take(&mut limits, "processes", "a number above 0", count)?,
        file_size: take(
            &mut limits,
            "file_size",
            "a number of bytes, such as \"1G\"",
            bytes,
        )?,
        home: take(
            &mut limits,
            "home",
            "a number of bytes, such as \"1G\"",
            bytes,
        )?,
    };
    match limits.keys().next() {
        Some(key) => Err(format!(
            "exec.limits.{key} is unknown, there are cpu, memory, files, processes, file_size and home"
        )),
        None => Ok(found),
    }
}

/// Whether a tools file may pass on an environment variable of this name. `TOOL_ARGUMENTS` holds
/// the arguments.
fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && name != "TOOL_ARGUMENTS"
}
