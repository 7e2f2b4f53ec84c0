//! What confines a command: which files, ports and processes it may reach.
//!
//! A [`Confinement`] is made where the tools are known ([`Sandboxes`]), travels with its job, and
//! is put into force in the launch stage of the command ([`enter()`]). A sandbox that cannot be had
//! is an error before anything runs.

mod bwrap;
mod filter;
pub(crate) mod groups;
mod landlock;
pub(crate) mod sandboxes;
pub(crate) mod stage;

pub(crate) use landlock::version as landlock_version;
pub(crate) use sandboxes::Sandboxes;

use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::{Error, ErrorKind};
use std::os::fd::IntoRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tool::{CommandNetwork, SandboxKind};

/// What confines one command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Confinement {
    /// What confines it.
    pub kind: SandboxKind,
    /// The program of bubblewrap, for [`SandboxKind::Bwrap`].
    pub bwrap: PathBuf,
    /// What it may read and execute.
    pub read: Vec<HostPath>,
    /// What it may read, execute, write, make and remove, besides its home.
    pub write: Vec<HostPath>,
    /// What it may reach of the network.
    pub network: CommandNetwork,
}

/// The command that a confinement holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Confined<'a> {
    /// Its program.
    pub program: &'a Path,
    /// Its arguments; the first is the name that the program gets.
    pub argv: &'a [OsString],
    /// Its home, which exists.
    pub home: &'a Path,
    /// How much each of its folders in memory may hold, in bytes.
    pub room: u64,
    /// Its working folder.
    pub cwd: &'a Path,
}

impl Confinement {
    /// How many processes between the supervisor and the command belong to its group: the launch
    /// stage, and those of bubblewrap.
    pub(crate) fn own_processes(&self) -> u64 {
        if self.kind == SandboxKind::Bwrap {
            3
        } else {
            1
        }
    }
}

/// A file or folder that exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostPath {
    /// Its absolute path as the command knows it, maybe with symbolic links.
    pub name: PathBuf,
    /// Its path without symbolic links.
    pub real: PathBuf,
}

impl HostPath {
    /// The place of this absolute path.
    ///
    /// # Errors
    /// When there is nothing, or its path is not UTF-8.
    pub(crate) fn find(name: &Path) -> Result<Self, String> {
        let real = name.canonicalize().map_err(|e| e.to_string())?;
        match (name.to_str(), real.to_str()) {
            (Some(_), Some(_)) => Ok(HostPath {
                name: normal(name),
                real,
            }),
            _ => Err("its path is not UTF-8".to_owned()),
        }
    }

    /// Whether no part of its path has become a symbolic link since it was found.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.real.canonicalize().is_ok_and(|now| now == self.real)
    }
}

/// The path without `.`, which `Path::join` keeps. `..` stays: what it leads to depends on the
/// links before it.
fn normal(path: &Path) -> PathBuf {
    path.components()
        .filter(|part| !matches!(part, std::path::Component::CurDir))
        .collect()
}

// Puts a confinement into force.

/// Confines this process, and returns the command to execute in it. What is started next cannot
/// undo it.
///
/// # Errors
/// A part of the confinement that cannot be had, in words. Nothing may be started then.
pub(crate) fn enter(confinement: &Confinement, confined: &Confined<'_>) -> Result<Command, String> {
    let (name, rest) = confined
        .argv
        .split_first()
        .ok_or("the command line is empty")?;
    let mut command = Command::new(confined.program);
    command.arg0(name).args(rest);
    if confinement.kind != SandboxKind::None {
        rustix::thread::set_no_new_privs(true).map_err(|e| e.to_string())?;
    }
    if let Some(place) = confinement
        .read
        .iter()
        .chain(&confinement.write)
        .find(|place| !place.is_unchanged())
    {
        return Err(format!(
            "{} of exec.sandbox has become a link since it was checked",
            place.real.display()
        ));
    }
    match confinement.kind {
        SandboxKind::None => {}
        SandboxKind::Landlock => {
            landlock::leave(&confinement.network)?;
            landlock::drop_capabilities()?;
            landlock::restrict(confinement, confined.home)?;
            filter::install(&confinement.network)?;
        }
        SandboxKind::Bwrap => {
            // bubblewrap closes it before it starts the command. This process has it to its end,
            // and starts nothing else.
            let filter = filter::file(&confinement.network)?.into_raw_fd();
            command = Command::new(&confinement.bwrap);
            command
                .args(bwrap::arguments(confinement, confined, filter))
                .arg(confined.program)
                .args(rest);
        }
    }
    Ok(command)
}

/// Why the command of [`enter`] could not be executed, with what to do about it.
pub(crate) fn explain(confinement: &Confinement, e: Error) -> Error {
    if e.kind() == ErrorKind::PermissionDenied && confinement.kind == SandboxKind::Landlock {
        let what =
            "list a program outside the system's folders, or its interpreter, in exec.sandbox.read";
        return Error::new(e.kind(), format!("{e}; in a sandbox {what}"));
    }
    e
}

#[cfg(test)]
mod confinement_tests {
    use super::*;

    #[test]
    fn a_confinement_survives_its_way_through_json() {
        for network in [
            CommandNetwork::Off,
            CommandNetwork::On,
            CommandNetwork::NoTcp,
            CommandNetwork::Ports(vec![1, 65535]),
        ] {
            for kind in [SandboxKind::Landlock, SandboxKind::Bwrap] {
                let place = |name: &str, real: &str| HostPath {
                    name: name.into(),
                    real: real.into(),
                };
                let read = vec![place("/a b", "/c"), place("/é", "/é")];
                let write = vec![place("/w", "/w")];
                let given = Confinement {
                    kind,
                    bwrap: "/bin/b".into(),
                    read,
                    write,
                    network: network.clone(),
                };
                let json = serde_json::to_string(&given).unwrap();
                assert_eq!(serde_json::from_str::<Confinement>(&json).unwrap(), given);
            }
        }
        assert!(serde_json::from_str::<Confinement>(r#"{"kind": "Landlock"}"#).is_err());
    }
}
