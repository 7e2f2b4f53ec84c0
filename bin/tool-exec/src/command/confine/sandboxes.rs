//! The sandboxes of a tools file: checked once before anything runs, and created for each call.

use super::{Confinement, HostPath, stage};
use crate::command::program;
use anyhow::{anyhow, bail};
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tool::{CommandNetwork, CommandRun, RunnerKind, Sandbox, SandboxKind, Tools};

/// The sandboxes of all commands of one tools file.
#[derive(Debug, Default)]
pub(crate) struct Sandboxes {
    /// The confinement of each command, without the parts that depend on the call, by the sandbox
    /// that its tool requests.
    confinements: HashMap<Option<Sandbox>, Confinement>,
}

impl Sandboxes {
    /// Checks that all commands of `tools` can be confined as they request, and by `least` as a
    /// minimum. Paths are relative to `folder`, the folder of the tools file. No command may write
    /// to one of the files `protected`.
    ///
    /// # Errors
    /// What is unavailable, and the remedy.
    pub(crate) fn check(
        least: SandboxKind,
        tools: &Tools,
        folder: &Path,
        protected: &[ProtectedFile],
    ) -> anyhow::Result<Self> {
        let mut all = Sandboxes::default();
        let mut probed: Vec<(SandboxKind, CommandNetwork)> = Vec::new();
        for tool in tools.iter() {
            let Some(RunnerKind::Command(command)) = tool.exec.as_ref().map(|exec| &exec.run)
            else {
                continue;
            };
            let asked = command.sandbox.clone();
            let kind = asked.as_ref().map_or(least, |asked| asked.kind.max(least));
            if kind == SandboxKind::None || all.confinements.contains_key(&asked) {
                continue;
            }
            let confinement = confinement(kind, asked.as_ref(), folder, protected)
                .map_err(|e| anyhow!("the tool {:?}: exec.sandbox.{e}", tool.name))?;
            let by = match &asked {
                Some(asked) if asked.kind == kind => {
                    format!("exec.sandbox of the tool {:?}", tool.name)
                }
                _ => format!("--sandbox {}", kind.name()),
            };
            let what = (kind, confinement.network.clone());
            if !probed.contains(&what) {
                probe(&by, &confinement)?;
                probed.push(what);
            }
            all.confinements.insert(asked, confinement);
        }
        if probed.is_empty() && least != SandboxKind::None {
            Self::require(least)?;
        }
        Ok(all)
    }

    /// Returns the confinement of a program that is not a tool's command: `asked`, or `least` if
    /// that is stricter. `program` is the path of the executable, which the tools file calls
    /// `name`; it runs in `cwd`.
    ///
    /// # Errors
    /// What is unavailable, and the remedy.
    pub(crate) fn of_program(
        least: SandboxKind,
        asked: Option<&Sandbox>,
        folder: &Path,
        protected: &[ProtectedFile],
        (name, program, cwd): (&str, &Path, &Path),
    ) -> anyhow::Result<Confinement> {
        let kind = asked.map_or(least, |asked| asked.kind.max(least));
        if kind == SandboxKind::None {
            return Ok(Confinement::default());
        }
        let mut confinement =
            confinement(kind, asked, folder, protected).map_err(|e| anyhow!("sandbox.{e}"))?;
        probe("its sandbox", &confinement)?;
        confinement
            .read
            .extend(surroundings(program, name.contains('/'), cwd));
        Ok(confinement)
    }

    /// Checks that this kind of sandbox is available.
    ///
    /// # Errors
    /// Why the sandbox is unavailable, and the remedy.
    pub(crate) fn require(kind: SandboxKind) -> anyhow::Result<()> {
        let confinement = confinement(kind, None, Path::new("/"), &[]).map_err(|e| anyhow!(e))?;
        probe(&format!("--sandbox {}", kind.name()), &confinement)
    }

    /// Returns why this kind of sandbox is unavailable for commands without a network, or `None` if
    /// it is available.
    pub(crate) fn lacks(kind: SandboxKind) -> Option<String> {
        let confinement = confinement(kind, None, Path::new("/"), &[]);
        confinement
            .and_then(|confinement| stage::probe(&confinement))
            .err()
    }

    /// Whether every command of `tools` is confined.
    pub(crate) fn confine_all(&self, tools: &Tools) -> bool {
        tools
            .iter()
            .all(|tool| match tool.exec.as_ref().map(|exec| &exec.run) {
                Some(RunnerKind::Command(command)) => {
                    self.confinements.contains_key(&command.sandbox)
                }
                _ => true,
            })
    }

    /// Returns the confinement for a call of `command`. `program` is the path of the executable,
    /// which the tool calls `name`; it runs in `cwd`.
    pub(crate) fn of(
        &self,
        command: &CommandRun,
        name: &str,
        program: &Path,
        cwd: &Path,
    ) -> Confinement {
        let Some(confinement) = self.confinements.get(&command.sandbox) else {
            return Confinement::default();
        };
        let mut confinement = confinement.clone();
        confinement
            .read
            .extend(surroundings(program, name.contains('/'), cwd));
        confinement
    }
}

/// Checks that `confinement` is available. `by` names what requests it.
fn probe(by: &str, confinement: &Confinement) -> anyhow::Result<()> {
    if let Err(e) = stage::probe(confinement) {
        bail!(
            "{by} is unavailable: {e}; no command runs without it ('tool-exec --doctor' shows what is available)"
        );
    }
    Ok(())
}

/// Returns the confinement for the request `asked`, without the surroundings of the command.
///
/// # Errors
/// What is wrong with `exec.sandbox`. The message starts with the name of the member.
fn confinement(
    kind: SandboxKind,
    asked: Option<&Sandbox>,
    folder: &Path,
    protected: &[ProtectedFile],
) -> Result<Confinement, String> {
    let none = Sandbox::default();
    let asked = asked.unwrap_or(&none);
    if let (SandboxKind::Bwrap, CommandNetwork::Ports(_)) = (kind, &asked.network) {
        return Err(
            "network lists ports, which bwrap cannot tell apart; use true, or landlock".to_owned(),
        );
    }
    let places = |member: &str, paths: &[String]| {
        paths
            .iter()
            .map(|path| find(member, path, folder))
            .collect::<Result<Vec<_>, _>>()
    };
    let write = places("write", &asked.write)?;
    for (place, path) in write.iter().zip(&asked.write) {
        if let Some(ProtectedFile { what, path: own }) = covered(place, protected) {
            let own = own.display();
            return Err(format!(
                "write: {path:?} holds {what} ({own}), which no command may write; name another folder, or move it away"
            ));
        }
    }
    let mut read = system(kind, &asked.network);
    read.extend(places("read", &asked.read)?);
    let bwrap = if kind == SandboxKind::Bwrap {
        program::find("bwrap", folder).unwrap_or_default()
    } else {
        PathBuf::new()
    };
    Ok(Confinement {
        kind,
        bwrap,
        read,
        write,
        network: asked.network.clone(),
    })
}

fn find(member: &str, path: &str, folder: &Path) -> Result<HostPath, String> {
    let whole = folder.join(path);
    HostPath::find(&whole).map_err(|e| {
        let whole = whole.display();
        format!("{member}: {path:?} ({whole}): {e}; create it, or take it out of the list")
    })
}

// What a command may read in addition to its lists: what every program needs to run, the program
// itself and its working folder.

/// Programs, libraries and their configuration.
const SYSTEM: [&str; 10] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix",
];
/// Stateless devices. Under bubblewrap a command has its own.
const DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// Returns what every command may read and execute in this kind of sandbox.
pub(crate) fn system(kind: SandboxKind, network: &CommandNetwork) -> Vec<HostPath> {
    let devices = DEVICES.iter().filter(|_| kind == SandboxKind::Landlock);
    // The list of name servers is often a link to a file maintained by a service.
    let servers = ["/etc/resolv.conf"]
        .into_iter()
        .filter(|_| matches!(network, CommandNetwork::On | CommandNetwork::Ports(_)));
    let all = SYSTEM.iter().chain(devices).copied().chain(servers);
    all.filter_map(|path| HostPath::find(Path::new(path)).ok())
        .collect()
}

/// Returns what a command may read around it: its program, the program's folder if the tool names
/// the program by path, and its working folder. A folder that contains a user's home is excluded; a
/// command that needs such a folder must list it.
pub(crate) fn surroundings(program: &Path, is_path: bool, cwd: &Path) -> Vec<HostPath> {
    let folder = program.parent().filter(|_| is_path);
    let folders = folder
        .into_iter()
        .chain([cwd])
        .filter(|folder| !holds_home(folder));
    [program]
        .into_iter()
        .chain(folders)
        .filter_map(|path| HostPath::find(path).ok())
        .collect()
}

/// Whether `folder` is this user's home or contains it.
fn holds_home(folder: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let home = std::env::var_os("HOME")
        .map(PathBuf::from)
        .filter(|home| home.is_absolute());
    let folder = real(folder);
    folder == Path::new("/")
        || folder == Path::new("/home")
        || home.is_some_and(|home| real(&home).starts_with(&folder))
}

// Files of `tool-exec` itself, which no command may write. A command that could change the log, the
// tools or the approvals could choose what runs next.

/// A file or folder of `tool-exec`, and its name for messages. It need not exist yet.
#[derive(Clone, Debug)]
pub(crate) struct ProtectedFile {
    /// The name in messages, such as "the log".
    pub what: &'static str,
    /// The path of the file.
    pub path: PathBuf,
}

/// Returns the first of `files` that a command with write access to `place` could change, remove or
/// replace.
pub(crate) fn covered<'a>(
    place: &HostPath,
    files: &'a [ProtectedFile],
) -> Option<&'a ProtectedFile> {
    let written = identity(&place.real)?;
    files.iter().find(|file| {
        let path = std::path::absolute(&file.path).unwrap_or_else(|_| file.path.clone());
        // If a part of the path is a link, neither the link's folder nor its target may be
        // writable.
        let real = path.canonicalize().ok();
        let above = |path: &Path| {
            path.ancestors()
                .any(|folder| identity(folder) == Some(written))
        };
        above(&path) || real.is_some_and(|real| above(&real))
    })
}

/// Returns the device and inode of a file, which identify it under any path, or `None` if it does
/// not exist.
fn identity(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|data| (data.dev(), data.ino()))
}

/// Returns the regular files that are this process's standard streams; a log is often one of them.
pub(crate) fn standard_files() -> impl Iterator<Item = ProtectedFile> {
    let names = [
        (0, "standard input"),
        (1, "standard output"),
        (2, "standard error"),
    ];
    names.into_iter().filter_map(|(number, what)| {
        let path = PathBuf::from(format!("/proc/self/fd/{number}"));
        let file = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let path = std::fs::read_link(path).ok()?;
        // The path of a removed file ends in " (deleted)".
        (identity(&path) == Some((file.dev(), file.ino()))).then_some(ProtectedFile { what, path })
    })
}

#[cfg(test)]
mod reach_tests {
    use super::*;

    #[test]
    fn programs_find_what_they_need_and_no_home() {
        let names = |places: Vec<HostPath>| {
            places
                .into_iter()
                .map(|place| place.name)
                .collect::<Vec<_>>()
        };
        assert!(
            names(system(SandboxKind::Landlock, &CommandNetwork::Off))
                .contains(&"/dev/null".into())
        );
        assert!(
            !names(system(SandboxKind::Bwrap, &CommandNetwork::Off)).contains(&"/dev/null".into())
        );
        let around = surroundings(Path::new("/bin/sh"), false, Path::new("/"));
        assert_eq!(names(around), [PathBuf::from("/bin/sh")]);
        let around = surroundings(Path::new("/bin/sh"), true, Path::new("/etc"));
        assert_eq!(
            names(around),
            ["/bin/sh", "/bin", "/etc"].map(PathBuf::from)
        );
    }
}
