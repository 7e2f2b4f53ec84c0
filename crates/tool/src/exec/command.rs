//! A tool that runs a command: the members `command`, `env`, `cwd`, `limits` and `sandbox` of
//! `exec`.

use crate::approval::words;
use crate::argv::Template;
use crate::members::{BYTES, COUNT, MemberKind, Members, TEXT, TIME, strings};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// The members of `exec` that belong to a command.
pub(super) const MEMBERS: [&str; 5] = ["command", "env", "cwd", "limits", "sandbox"];

/// Limits that the system enforces on every process of a call. `None`: the runner's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandLimits {
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
    pub limits: CommandLimits,
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
        exec: &mut Members,
        declared: &dyn Fn(&str) -> bool,
    ) -> Result<Self, String> {
        let command = match exec.value("command") {
            Some(Value::String(_)) => {
                return Err("exec.command is one string, write a list: [\"program\",\"argument\"] (there is no shell)".to_owned());
            }
            Some(list @ Value::Array(_)) => {
                strings(&list).ok_or("exec.command must hold strings only")?
            }
            _ => {
                return Err(
                    "exec has no command, write \"command\":[\"program\",\"argument\"]".to_owned(),
                );
            }
        };
        let env = MemberKind(
            "a list of names of environment variables, such as [\"GITHUB_TOKEN\"]",
            |value| strings(value).filter(|names| names.iter().all(|name| is_variable(name))),
            false,
        );
        let limits = exec.value("limits").map(CommandLimits::read).transpose()?;
        let sandbox = exec.value("sandbox");
        Ok(CommandRun {
            template: Template::read(&command, declared)?,
            env: exec.take("env", &env)?.unwrap_or_default(),
            cwd: exec.take("cwd", &TEXT)?,
            limits: limits.unwrap_or_default(),
            sandbox: sandbox
                .map(|value| Sandbox::read(value, "exec.sandbox"))
                .transpose()?,
        })
    }
}

impl CommandLimits {
    fn read(value: Value) -> Result<CommandLimits, String> {
        let known = ["cpu", "memory", "files", "processes", "file_size", "home"];
        let mut limits = Members::of(value, "exec.limits", &known, "{\"memory\":\"1G\"}")?;
        Ok(CommandLimits {
            cpu: limits.take("cpu", &TIME)?,
            memory: limits.take("memory", &BYTES)?,
            files: limits.take("files", &COUNT)?,
            processes: limits.take("processes", &COUNT)?,
            file_size: limits.take("file_size", &BYTES)?,
            home: limits.take("home", &BYTES)?,
        })
    }
}

/// Whether a tools file may pass on an environment variable of this name. `TOOL_ARGUMENTS` holds
/// the arguments.
fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && name != "TOOL_ARGUMENTS"
}

// What a command may reach: the member `sandbox` of `exec`.

words! {
    /// What confines a command, from the least to the most.
    #[derive(Default, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    SandboxKind {
        /// Nothing.
        #[default]
        None = "none",
        /// Landlock: rules of the kernel about files, TCP and signals, and a network namespace.
        Landlock = "landlock",
        /// bubblewrap: namespaces of its own for files, processes and the network.
        Bwrap = "bwrap",
    }
}

/// What a command may reach of the network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CommandNetwork {
    /// Nothing, by any protocol.
    #[default]
    Off,
    /// Everything.
    On,
    /// Nothing by TCP. Other protocols are cut off where a network namespace can be had, and stay
    /// open where not.
    NoTcp,
    /// TCP connections to these ports, and no other TCP. Other protocols stay open.
    Ports(Vec<u16>),
}

/// What a command asks of its sandbox. Paths are as they were written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sandbox {
    /// The least that confines it; never [`SandboxKind::None`] in a tools file.
    pub kind: SandboxKind,
    /// Files and folders that it may read, besides those that programs need.
    pub read: Vec<String>,
    /// Files and folders that it may read and write, besides its home.
    pub write: Vec<String>,
    /// What it may reach of the network.
    pub network: CommandNetwork,
}

impl Sandbox {
    /// Reads the member.
    ///
    /// # Errors
    /// The first mistake, with the remedy.
    pub(crate) fn read(value: Value, path: &str) -> Result<Self, String> {
        if let Value::String(_) = value {
            return Ok(Sandbox {
                kind: kind(&value)?,
                ..Sandbox::default()
            });
        }
        let known = ["with", "read", "write", "network"];
        let mut members = Members::of(value, path, &known, "{\"write\":[\"out\"]}")?;
        let with = members.value("with");
        Ok(Sandbox {
            kind: with.map_or(Ok(SandboxKind::Landlock), |word| kind(&word))?,
            read: paths(&mut members, "read")?,
            write: paths(&mut members, "write")?,
            network: members.take("network", &NETWORK)?.unwrap_or_default(),
        })
    }
}

/// The kind that a tool asks for: one that confines it.
fn kind(value: &Value) -> Result<SandboxKind, String> {
    match value.as_str().and_then(SandboxKind::of) {
        Some(SandboxKind::None) => Err(
            "exec.sandbox cannot be \"none\": a tool can only be stricter than --sandbox"
                .to_owned(),
        ),
        Some(kind) => Ok(kind),
        None => Err(format!(
            "exec.sandbox must be with \"landlock\" or \"bwrap\", not {value}"
        )),
    }
}

/// A list of paths. They are those of the tools file alone: no shell reads them, and no argument of
/// a model fills them.
fn paths(members: &mut Members, key: &str) -> Result<Vec<String>, String> {
    let list = MemberKind("a list of paths, such as [\"data\"]", strings, true);
    let paths = members.take(key, &list)?.unwrap_or_default();
    for path in &paths {
        let wrong = if path.is_empty() || path.contains('\0') {
            "is not a path"
        } else if path.starts_with('~') {
            "begins with ~, which only a shell replaces; write the whole path, or ./~ for a file of that name"
        } else if path.contains(['{', '}']) {
            "holds a brace; an argument of a call cannot be a path of the sandbox"
        } else {
            continue;
        };
        return Err(format!("{}: {path:?} {wrong}", members.name(key)));
    }
    Ok(paths)
}

/// What a command may reach of the network.
const NETWORK: MemberKind<CommandNetwork> = MemberKind(
    "false, true, \"no-tcp\" or a list of TCP ports such as [443] (ports alone can be told apart, not hosts)",
    |value| match value {
        Value::Bool(false) => Some(CommandNetwork::Off),
        Value::Bool(true) => Some(CommandNetwork::On),
        Value::String(word) if word == "no-tcp" => Some(CommandNetwork::NoTcp),
        Value::Array(ports) if !ports.is_empty() => {
            let port = |value: &Value| u16::try_from(value.as_u64()?).ok().filter(|port| *port > 0);
            ports
                .iter()
                .map(port)
                .collect::<Option<_>>()
                .map(CommandNetwork::Ports)
        }
        _ => None,
    },
    true,
);

#[cfg(test)]
mod sandbox_tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_sandbox_is_a_word_or_lists() {
        let read = |value: Value| Sandbox::read(value, "exec.sandbox").unwrap();
        assert_eq!(
            read(json!("bwrap")),
            Sandbox {
                kind: SandboxKind::Bwrap,
                ..Sandbox::default()
            }
        );
        assert_eq!(
            read(json!({})),
            Sandbox {
                kind: SandboxKind::Landlock,
                ..Sandbox::default()
            }
        );
        let lists = read(
            json!({"read": ["a"], "write": ["b", "/c"], "network": [443, 80], "with": "landlock"}),
        );
        assert_eq!(
            (lists.read, lists.write),
            (vec!["a".to_owned()], vec!["b".to_owned(), "/c".to_owned()])
        );
        assert_eq!(lists.network, CommandNetwork::Ports(vec![443, 80]));
        assert_eq!(
            read(json!({"network": "no-tcp"})).network,
            CommandNetwork::NoTcp
        );
        assert_eq!(read(json!({"network": true})).network, CommandNetwork::On);
        assert_eq!(read(json!({"network": null})).network, CommandNetwork::Off);
    }

    #[test]
    fn mistakes_in_a_sandbox_name_the_remedy() {
        for (value, want) in [
            (json!(true), "must be an object"),
            (json!("none"), "only be stricter than --sandbox"),
            (json!({"with": "none"}), "only be stricter than --sandbox"),
            (
                json!({"with": "docker"}),
                "\"landlock\" or \"bwrap\", not \"docker\"",
            ),
            (json!({"reads": []}), "exec.sandbox.reads is unknown"),
            (
                json!({"read": "/a"}),
                "exec.sandbox.read must be a list of paths",
            ),
            (
                json!({"write": ["~/x"]}),
                "exec.sandbox.write: \"~/x\" begins with ~",
            ),
            (json!({"write": ["/data/{name}"]}), "holds a brace"),
            (json!({"read": [""]}), "is not a path"),
            (
                json!({"network": ["localhost:80"]}),
                "ports alone can be told apart",
            ),
            (json!({"network": [0]}), "a list of TCP ports"),
            (json!({"network": []}), "a list of TCP ports"),
            (json!({"network": "tcp"}), "\"no-tcp\""),
        ] {
            let said = Sandbox::read(value.clone(), "exec.sandbox").unwrap_err();
            assert!(
                said.contains(want) && !said.contains('\n'),
                "{value}: {said}"
            );
        }
    }

    #[test]
    fn kinds_are_ordered_by_what_they_confine() {
        assert!(
            SandboxKind::None < SandboxKind::Landlock && SandboxKind::Landlock < SandboxKind::Bwrap
        );
        assert_eq!(SandboxKind::of("bwrap"), Some(SandboxKind::Bwrap));
        assert_eq!(SandboxKind::of("chroot"), None);
    }
}
