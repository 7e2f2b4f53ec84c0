//! Puts a confinement into force.

use super::confinement::{Confined, Confinement};
use super::{bwrap, filter, isolate, rules};
use std::io::{Error, ErrorKind};
use std::os::fd::IntoRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use tool::SandboxKind;

/// Confines this process, and returns the command to execute in it. What is started next cannot
/// undo it.
///
/// # Errors
/// A part of the confinement that cannot be had, in words. Nothing may be started then.
pub fn enter(confinement: &Confinement, confined: &Confined<'_>) -> Result<Command, String> {
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
            isolate::leave(&confinement.network)?;
            isolate::drop_capabilities()?;
            rules::restrict(confinement, confined.home)?;
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
pub fn explain(confinement: &Confinement, e: Error) -> Error {
    if e.kind() == ErrorKind::PermissionDenied && confinement.kind == SandboxKind::Landlock {
        let what = "a program outside the system's folders, or its interpreter, must be named in exec.sandbox.read";
        return Error::new(e.kind(), format!("{e}; in a sandbox {what}"));
    }
    e
}
