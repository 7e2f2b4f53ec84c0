//! The sandboxes of a tools file: checked once before anything runs, and made for each call.

use super::{Confinement, HostPath, stage};
use crate::command::program;
use anyhow::{anyhow, bail};
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tool::{CommandNetwork, CommandRun, RunnerKind, Sandbox, SandboxKind, Tools};

/// What confines the commands of one tools file.
#[derive(Debug, Default)]
pub(crate) struct Sandboxes {
    /// What confines each command, but for what depends on the call: by what its tool asks for.
    confinements: HashMap<Option<Sandbox>, Confinement>,
}

impl Sandboxes {
    /// Checks that all commands of `tools` can be confined as they ask for, and at least by
    /// `least`. Paths are relative to `folder`, the folder of the tools file. No command may write
    /// one of the files `protected`.
    ///
    /// # Errors
    /// What cannot be had, and what to do.
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

    /// What confines a program that is not a tool's command: at least `least`, and what it asks
    /// for. It is the file `program`, which the tools file names as `name`, and it runs in `cwd`.
    ///
    /// # Errors
    /// What cannot be had, and what to do.
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

    /// Checks that this kind of sandbox can be had here.
    ///
    /// # Errors
    /// Why not, and what to do.
    pub(crate) fn require(kind: SandboxKind) -> anyhow::Result<()> {
        let confinement = confinement(kind, None, Path::new("/"), &[]).map_err(|e| anyhow!(e))?;
        probe(&format!("--sandbox {}", kind.name()), &confinement)
    }

    /// Why this kind of sandbox cannot be had here for commands without a network; `None`: it can.
    pub(crate) fn lacks(kind: SandboxKind) -> Option<String> {
        let confinement = confinement(kind, None, Path::new("/"), &[]);
        confinement
            .and_then(|confinement| stage::probe(&confinement))
            .err()
    }

    /// Whether each command of `tools` is confined by something.
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

    /// What confines a call of `command`, whose tool names its program as `name`. That is the file
    /// `program`, and it runs in `cwd`.
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

/// Checks that `confinement` can be had, which `by` asks for.
fn probe(by: &str, confinement: &Confinement) -> anyhow::Result<()> {
    if let Err(e) = stage::probe(confinement) {
        bail!(
            "{by} is unavailable: {e}; no command runs without it ('tool-exec --doctor' shows what is available)"
        );
    }
    Ok(())
}

/// What confines a command that asks for `asked`, without its own surroundings.
///
/// # Errors
/// What is wrong with a member of `exec.sandbox`, which the message begins with.
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

// What a command may read besides its lists: what programs need to run at all, the program itself
// and its working folder.

/// Programs, libraries and their settings.
const SYSTEM: [&str; 10] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix",
];
/// Devices without a state. Under bubblewrap a command has its own.
const DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// What every command may read and execute under this kind of sandbox.
pub(crate) fn system(kind: SandboxKind, network: &CommandNetwork) -> Vec<HostPath> {
    let devices = DEVICES.iter().filter(|_| kind == SandboxKind::Landlock);
    // The file with the name servers, which is often a link to a file of a service.
    let servers = ["/etc/resolv.conf"]
        .into_iter()
        .filter(|_| matches!(network, CommandNetwork::On | CommandNetwork::Ports(_)));
    let all = SYSTEM.iter().chain(devices).copied().chain(servers);
    all.filter_map(|path| HostPath::find(Path::new(path)).ok())
        .collect()
}

/// What a command may read of where it is: its program, the folder of a program that its tool names
/// by a path, and its working folder. A folder that holds a person's home is not among them: a
/// command that needs one names what it reads.
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

/// Whether the home of this user is in `folder`, or is it.
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

// The files of `tool-exec` itself, which no command may write: a command that could change its
// log, its tools or what is approved could choose what runs next.

/// A file or folder of `tool-exec`, with the words for it in a message. It need not exist yet.
#[derive(Clone, Debug)]
pub(crate) struct ProtectedFile {
    /// What it is: "the log".
    pub what: &'static str,
    /// Where it is.
    pub path: PathBuf,
}

/// The first of `files` that a command which may write `place` could change, remove or replace.
pub(crate) fn covered<'a>(
    place: &HostPath,
    files: &'a [ProtectedFile],
) -> Option<&'a ProtectedFile> {
    let written = identity(&place.real)?;
    files.iter().find(|file| {
        let path = std::path::absolute(&file.path).unwrap_or_else(|_| file.path.clone());
        // Where a part of the path is a link, both the folder of the link and what it leads to must
        // stay as they are.
        let real = path.canonicalize().ok();
        let above = |path: &Path| {
            path.ancestors()
                .any(|folder| identity(folder) == Some(written))
        };
        above(&path) || real.is_some_and(|real| above(&real))
    })
}

/// What tells a file from all others, whatever the path by which it is reached; `None` where there
/// is nothing.
fn identity(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|data| (data.dev(), data.ino()))
}

/// The regular files that this process reads from or writes to as its standard files: a log is
/// often one of them.
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
        // The path of a file that was removed ends in " (deleted)".
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
