//! The processes above a command. They start it under its limits, end it at its deadline, and leave
//! no process of it running.
//!
//! Each command has two processes of this program above it:
//!
//! - the *supervisor* (`watch.rs`) receives one [`Job`] over a socket and enforces its deadline. It
//!   ends the command at the deadline, on request, and when the socket closes because `tool-exec`
//!   itself has ended.
//! - the *launch stage* (`launch.rs`) applies the limits and starts the command. Where the system
//!   allows it, the launch stage is the init of its own PID namespace: the command sees no process
//!   outside, and the end of the init ends every process inside.
//!
//! Both are forked, which is cheaper than starting a program: supervisors are forked from a
//! *zygote* (`tool-exec --supervise`), which the first call starts, and launch stages are forked
//! from their supervisors. `tool-exec` itself has threads and cannot be forked.
//!
//! A library would do this work between fork and exec, with `unsafe`. Here separate processes do
//! it. [`start()`] is the only entry point.

mod isolation;
mod launch;
mod messages;
mod start;
mod watch;
mod wire;

pub(crate) use isolation::{keep_private, map_user};
pub(crate) use messages::{Containment, Ended, InForce, Job, ProcessLimits};
pub(crate) use start::{Control, RunningCommand, StartError, Supervisor, start};

use std::process::ExitCode;

/// The maximum number of listed processes that could not be ended.
const LISTED: usize = 20;

/// Runs as a zygote, or as a supervisor forked from it, if this process was started for that, and
/// returns the exit status. Otherwise returns `None`.
pub(crate) fn run_if_asked() -> Option<ExitCode> {
    (std::env::args_os().nth(1)? == messages::SUPERVISE).then(watch::serve)
}
