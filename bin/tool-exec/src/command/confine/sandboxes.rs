//! The sandboxes of a tools file: checked once before anything runs, and made for each call.

use super::confinement::Confinement;
use super::place::Place;
use super::protect::{self, ProtectedFile};
use super::{reach, stage};
use crate::command::program;
use anyhow::{anyhow, bail};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use tool::{CommandRun, Network, Run, Sandbox, SandboxKind, Tools};

/// What confines the commands of one tools file.
#[derive(Debug, Default)]
pub struct Sandboxes {
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
    pub fn check(
        least: SandboxKind,
        tools: &Tools,
        folder: &Path,
        protected: &[ProtectedFile],
    ) -> anyhow::Result<Self> {
        let mut all = Sandboxes::default();
        let mut probed: Vec<(SandboxKind, Network)> = Vec::new();
        for tool in tools.iter() {
            let Some(Run::Command(command)) = tool.exec.as_ref().map(|exec| &exec.run) else {
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
    pub fn of_program(
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
            .extend(reach::surroundings(program, name.contains('/'), cwd));
        Ok(confinement)
    }

    /// Checks that this kind of sandbox can be had here.
    ///
    /// # Errors
    /// Why not, and what to do.
    pub fn require(kind: SandboxKind) -> anyhow::Result<()> {
        let confinement = confinement(kind, None, Path::new("/"), &[]).map_err(|e| anyhow!(e))?;
        probe(&format!("--sandbox {}", kind.name()), &confinement)
    }

    /// Why this kind of sandbox cannot be had here for commands without a network; `None`: it can.
    pub fn lacks(kind: SandboxKind) -> Option<String> {
        let confinement = confinement(kind, None, Path::new("/"), &[]);
        confinement
            .and_then(|confinement| stage::probe(&confinement))
            .err()
    }

    /// Whether each command of `tools` is confined by something.
    pub fn confine_all(&self, tools: &Tools) -> bool {
        tools
            .iter()
            .all(|tool| match tool.exec.as_ref().map(|exec| &exec.run) {
                Some(Run::Command(command)) => self.confinements.contains_key(&command.sandbox),
                _ => true,
            })
    }

    /// What confines a call of `command`, whose tool names its program as `name`. That is the file
    /// `program`, and it runs in `cwd`.
    pub fn of(&self, command: &CommandRun, name: &str, program: &Path, cwd: &Path) -> Confinement {
        let Some(confinement) = self.confinements.get(&command.sandbox) else {
            return Confinement::default();
        };
        let mut confinement = confinement.clone();
        confinement
            .read
            .extend(reach::surroundings(program, name.contains('/'), cwd));
        confinement
    }
}

/// Checks that `confinement` can be had, which `by` asks for.
fn probe(by: &str, confinement: &Confinement) -> anyhow::Result<()> {
    if let Err(e) = stage::probe(confinement) {
        bail!(
            "{by} cannot be had: {e}; nothing runs without it ('tool-exec --doctor' shows what can be had)"
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
    if let (SandboxKind::Bwrap, Network::Ports(_)) = (kind, &asked.network) {
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
        if let Some(ProtectedFile { what, path: own }) = protect::covered(place, protected) {
            let own = own.display();
            return Err(format!(
                "write: {path:?} holds {what} ({own}), which no command may write; name another folder, or move it away"
            ));
        }
    }
    let mut read = reach::system(kind, &asked.network);
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

fn find(member: &str, path: &str, folder: &Path) -> Result<Place, String> {
    let whole = folder.join(path);
    Place::find(&whole).map_err(|e| {
        let whole = whole.display();
        format!("{member}: {path:?} ({whole}): {e}; create it, or take it out of the list")
    })
}
