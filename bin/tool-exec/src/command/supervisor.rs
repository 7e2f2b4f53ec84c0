//! The processes above a command: they start it under its limits, end it when its time is up, and
//! leave nothing of it behind.
//!
//! Each command has two processes of this program above it:
//!
//! - the *supervisor* (`tool-exec --supervise`, `watch.rs`) gets one [`Job`] over a socket, and
//!   keeps its deadline. It ends the command at the deadline, on an order, and when the socket
//!   closes: then `tool-exec` itself is gone.
//! - the *launch stage* (`tool-exec --launch`, `launch.rs`) enters the limits and starts the
//!   command. Where the system allows it, it is the init of a PID namespace of its own: the command
//!   sees no process outside, and the end of the init ends everything inside.
//!
//! What a library would do between fork and exec, with `unsafe`, is done in whole processes here.
//! [`start()`] is the one way in.

mod isolation;
mod launch;
mod messages;
mod start;
mod watch;
mod wire;

pub(crate) use isolation::{keep_private, map_user};
pub(crate) use messages::{Containment, Ended, InForce, Job, ProcessLimits};
pub(crate) use start::{Control, RunningCommand, StartError, Supervisor, prepare, start};

use std::process::ExitCode;

/// How many processes that could not be ended are listed.
const LISTED: usize = 20;

/// Does the work of a supervisor or of a launch stage if this process was started for that, and
/// returns the status to end with; else `None`.
pub(crate) fn run_if_asked() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    let first = args.next()?;
    let second = args.next();
    match (
        first.to_str()?,
        second.as_deref().and_then(std::ffi::OsStr::to_str),
    ) {
        (messages::SUPERVISE, mode) => Some(watch::supervise(mode == Some(messages::PLAIN))),
        (messages::LAUNCH, mode) => Some(launch::launch(mode == Some(messages::INIT))),
        _ => None,
    }
}
