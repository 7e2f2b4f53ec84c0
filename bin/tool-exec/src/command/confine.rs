//! The confinement of a command: which files, ports and processes it may access.
//!
//! A [`Confinement`] is created by [`Sandboxes`], is sent along with the job, and is applied in the
//! launch stage of the command ([`enter()`]). An unavailable sandbox is an error before anything
//! runs.

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

/// The confinement of one command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Confinement {
    /// The kind of sandbox.
    pub kind: SandboxKind,
    /// The path of bubblewrap's executable, for [`SandboxKind::Bwrap`].
    pub bwrap: PathBuf,
    /// What the command may read and execute.
    pub read: Vec<HostPath>,
    /// What the command may read, execute, write, create and remove, in addition to its home.
    pub write: Vec<HostPath>,
    /// Which parts of the network the command may use.
    pub network: CommandNetwork,
}

/// The command to be confined.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Confined<'a> {
    /// The path of the program.
    pub program: &'a Path,
    /// The arguments. The first is the name passed to the program.
    pub argv: &'a [OsString],
    /// The home of the command, which exists.
    pub home: &'a Path,
    /// The size limit of each in-memory folder of the command, in bytes.
    pub room: u64,
    /// The working folder.
    pub cwd: &'a Path,
}

impl Confinement {
    /// Returns how many processes between the supervisor and the command are in the command's
    /// control group: the launch stage, and those of bubblewrap.
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
    /// The absolute path as the command uses it, possibly with symbolic links.
    pub name: PathBuf,
    /// The path with all symbolic links resolved.
    pub real: PathBuf,
}

impl HostPath {
    /// Returns the path with its resolved form. `name` is absolute.
    ///
    /// # Errors
    /// If the path does not exist or is not UTF-8.
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

    /// Whether no part of the path has become a symbolic link since the path was resolved.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.real.canonicalize().is_ok_and(|now| now == self.real)
    }
}

/// Returns the path without `.`, which `Path::join` keeps. `..` stays, because its meaning depends
/// on the links before it.
fn normal(path: &Path) -> PathBuf {
    path.components()
        .filter(|part| !matches!(part, std::path::Component::CurDir))
        .collect()
}

// Applies a confinement.

/// Confines this process, and returns the command to execute in it. The command cannot undo the
/// confinement.
///
/// # Errors
/// If a part of the confinement is unavailable. Nothing may be started then.
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
            // bubblewrap closes the file before it starts the command. This process keeps the file
            // open until it ends, and starts nothing else.
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

/// Returns why the command of [`enter`] could not be executed, with the remedy.
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
