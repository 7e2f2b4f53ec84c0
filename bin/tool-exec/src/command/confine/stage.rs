//! Tests a sandbox: `tool-exec --confine CONFINEMENT HOME` confines itself and executes this
//! program again.

use super::{Confined, Confinement, enter, explain};
use crate::command::scratch::{ScratchFolder, unused_name};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use tool::{CommandNetwork, SandboxKind};

/// The first argument that selects this stage.
const FLAG: &str = "--confine";
/// The exit status if nothing was started.
const REFUSED: u8 = 126;

/// Confines this process and prints the version, if it was started for that; returns the exit
/// status if that fails. Otherwise returns `None`.
pub(crate) fn run_if_asked() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != FLAG {
        return None;
    }
    let confinement = args.next()?;
    let home = PathBuf::from(args.next()?);
    let confinement = serde_json::from_slice::<Confinement>(confinement.as_bytes());
    let (Ok(confinement), Ok(own)) = (confinement, std::env::current_exe()) else {
        return Some(ExitCode::from(2));
    };
    let confined = Confined {
        program: &own,
        argv: &["tool-exec".into(), "--version".into()],
        home: &home,
        room: 1 << 20,
        cwd: Path::new("/"),
    };
    let why = match enter(&confinement, &confined) {
        Ok(mut command) => explain(&confinement, command.exec()).to_string(),
        Err(why) => why,
    };
    crate::say(&format!("the command cannot be started: {why}"));
    Some(ExitCode::from(REFUSED))
}

/// Checks that `confinement` is available, by running this program in it.
///
/// # Errors
/// Why the confinement is unavailable.
pub(crate) fn probe(confinement: &Confinement) -> Result<(), String> {
    match confinement.kind {
        SandboxKind::None => return Ok(()),
        SandboxKind::Landlock => {
            super::landlock::lacks(&confinement.network).map_or(Ok(()), Err)?
        }
        SandboxKind::Bwrap if confinement.bwrap.as_os_str().is_empty() => {
            return Err("bwrap is not found in PATH, install bubblewrap".to_owned());
        }
        SandboxKind::Bwrap => {}
    }
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut trial = confinement.clone();
    trial.write.clear();
    trial.read.push(super::HostPath::find(&own)?);
    let home = unused_name();
    let _kept = ScratchFolder::make(&home).map_err(|e| format!("{}: {e}", home.display()))?;
    let mut command = Command::new(&own);
    command
        .arg0("tool-exec")
        .arg(FLAG)
        .arg(serde_json::to_string(&trial).unwrap_or_default())
        .arg(&home)
        .current_dir("/")
        .stdin(Stdio::null());
    let out = command.env_clear().output().map_err(|e| e.to_string())?;
    if out.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&out.stderr);
    let said = said.lines().last().unwrap_or("it failed without a word");
    let said = said
        .trim_start_matches("tool-exec: the command cannot be started: ")
        .to_owned();
    Err(match (&confinement.kind, &confinement.network) {
        (SandboxKind::Landlock, CommandNetwork::Off) => format!(
            "{said} (Landlock covers TCP alone; \"network\":\"no-tcp\" in exec.sandbox accepts \
             that other protocols stay open)"
        ),
        _ => said,
    })
}
