//! Tries a sandbox out: `tool-exec --confine …` confines itself and becomes a command.

use super::{Confined, Confinement, enter, explain};
use crate::command::scratch::{HomeNames, Scratch};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use tool::{Network, SandboxKind};

/// The first argument of this stage.
const FLAG: &str = "--confine";
/// The status where nothing was started.
const REFUSED: u8 = 126;

/// The command line, without its program, that runs `program` with `argv` confined. The first of
/// `argv` is the name that the program gets.
pub fn arguments(
    confinement: &Confinement,
    home: &Path,
    program: &Path,
    argv: &[OsString],
) -> Vec<OsString> {
    let mut all: Vec<OsString> = vec![
        FLAG.into(),
        serde_json::to_string(confinement)
            .unwrap_or_default()
            .into(),
        home.into(),
        program.into(),
    ];
    all.extend_from_slice(argv);
    all
}

/// Becomes a confined command if this process was started for that, and returns the status to end
/// with if that fails; else `None`.
pub fn run_if_asked() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != FLAG {
        return None;
    }
    let args: Vec<OsString> = args.collect();
    let [confinement, home, program, argv @ ..] = &args[..] else {
        return Some(ExitCode::from(2));
    };
    let confinement = confinement
        .to_str()
        .and_then(|text| serde_json::from_str(text).ok());
    let Some(confinement): Option<Confinement> = confinement else {
        return Some(ExitCode::from(2));
    };
    let cwd = std::env::current_dir().unwrap_or_else(|_| "/".into());
    let (program, home) = (Path::new(program), Path::new(home));
    let confined = Confined {
        program,
        argv,
        home,
        room: 1 << 20,
        cwd: &cwd,
    };
    let why = match enter(&confinement, &confined) {
        Ok(mut command) => explain(&confinement, command.exec()).to_string(),
        Err(why) => why,
    };
    stdio::message(
        "tool-exec",
        &format!("the command cannot be started: {why}"),
    );
    Some(ExitCode::from(REFUSED))
}

/// Checks that `confinement` can be had here, by running this program in it.
///
/// # Errors
/// Why not.
pub fn probe(confinement: &Confinement) -> Result<(), String> {
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
    trial.read.push(super::Place::find(&own)?);
    let home = HomeNames::new().next().ok_or("it has no home")?;
    let _kept = Scratch::make(&home).map_err(|e| format!("{}: {e}", home.display()))?;
    let argv = [own.clone().into_os_string(), "--version".into()];
    let mut command = Command::new(&own);
    command
        .args(arguments(&trial, &home, &own, &argv))
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
        (SandboxKind::Landlock, Network::Off) => format!(
            "{said} (Landlock covers TCP alone; \"network\":\"no-tcp\" in exec.sandbox accepts that other protocols stay open)"
        ),
        _ => said,
    })
}
