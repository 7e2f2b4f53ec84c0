//! A tool that runs a command: the members `command`, `env`, `cwd`, `limits` and `sandbox` of
//! `exec`.

use crate::approval::words;
use crate::argv::Template;
use crate::members::{BYTES, COUNT, MemberKind, Members, TEXT, TIME, strings};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// The members of `exec` that configure a command.
pub(super) const MEMBERS: [&str; 5] = ["command", "env", "cwd", "limits", "sandbox"];

/// Limits that the operating system enforces on each process of a call. `None` means the runner's
/// default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandLimits {
    /// CPU time of each process.
    pub cpu: Option<Duration>,
    /// Private memory of each process, in bytes.
    pub memory: Option<u64>,
    /// Open files of each process.
    pub files: Option<u64>,
    /// Total number of the user's processes and threads.
    pub processes: Option<u64>,
    /// Size of each file that a process writes, in bytes.
    pub file_size: Option<u64>,
    /// Total size of the command's home folder, in bytes.
    pub home: Option<u64>,
}

/// A command that a tool runs.
#[derive(Clone, Debug)]
pub struct CommandRun {
    /// The command line.
    pub template: Template,
    /// The names of the environment variables that are passed to the command.
    pub env: Vec<String>,
    /// The working folder of the command, relative to the folder of the tools file, or `None` for
    /// the runner's own.
    pub cwd: Option<String>,
    /// The limits that the operating system enforces.
    pub limits: CommandLimits,
    /// The sandbox that the tool requests, or `None` if it requests none.
    pub sandbox: Option<Sandbox>,
}

impl CommandRun {
    /// Takes and parses the members that configure a command from `exec`. `declared` returns
    /// whether the schema declares an argument with that name.
    ///
    /// # Errors
    /// Returns the first mistake and how to fix it.
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

/// Whether a tools file may pass an environment variable with this name to a command.
/// `TOOL_ARGUMENTS` is reserved, since it contains the call's arguments.
fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && name != "TOOL_ARGUMENTS"
}

// The access of a command to files and the network: the member `sandbox` of `exec`.

words! {
    /// The kind of sandbox that confines a command, from the weakest to the strongest.
    #[derive(Default, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    SandboxKind {
        /// No sandbox.
        #[default]
        None = "none",
        /// Landlock: kernel rules for files, TCP and signals, and a network namespace.
        Landlock = "landlock",
        /// bubblewrap: separate namespaces for files, processes and the network.
        Bwrap = "bwrap",
    }
}

/// The network access of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CommandNetwork {
    /// No network access by any protocol.
    #[default]
    Off,
    /// Full network access.
    On,
    /// No TCP. Other protocols are blocked if a network namespace is available, and stay open
    /// otherwise.
    NoTcp,
    /// TCP connections only to these ports. Other protocols stay open.
    Ports(Vec<u16>),
}

/// The sandbox that a command requests. Paths are kept as written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sandbox {
    /// The minimum kind of sandbox; never [`SandboxKind::None`] in a tools file.
    pub kind: SandboxKind,
    /// Files and folders that the command may read, in addition to those that programs need.
    pub read: Vec<String>,
    /// Files and folders that the command may read and write, in addition to its home folder.
    pub write: Vec<String>,
    /// The network access of the command.
    pub network: CommandNetwork,
}

impl Sandbox {
    /// Parses the member `sandbox`.
    ///
    /// # Errors
    /// Returns the first mistake and how to fix it.
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

/// Parses the kind of sandbox that a tool requests and rejects `none`.
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

/// Parses a list of paths. The paths come only from the tools file: no shell expands them, and they
/// contain no placeholders for a model's arguments.
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

/// The network access of a command.
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
