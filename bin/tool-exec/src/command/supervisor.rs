//! The processes above a command: they start it under its limits, end it when its time is up, and
//! leave nothing of it behind.
//!
//! Each command has two processes of this program above it:
//!
//! - the *supervisor* (`watch.rs`) gets one [`Job`] over a socket, and keeps its deadline. It ends
//!   the command at the deadline, on an order, and when the socket closes: then `tool-exec` itself
//!   is gone.
//! - the *launch stage* (`launch.rs`) enters the limits and starts the command. Where the system
//!   allows it, it is the init of a PID namespace of its own: the command sees no process outside,
//!   and the end of the init ends everything inside.
//!
//! Both are forks, which cost less than the start of a program: the supervisors those of a *zygote*
//! (`tool-exec --supervise`), which the first call starts, and the launch stages those of
//! their supervisors. `tool-exec` itself has threads, and cannot be forked.
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
pub(crate) use start::{Control, RunningCommand, StartError, Supervisor, start};

use std::process::ExitCode;

/// How many processes that could not be ended are listed.
const LISTED: usize = 20;

/// Does the work of a zygote, and of the supervisors that it forks, if this process was started for
/// that, and returns the status to end with; else `None`.
pub(crate) fn run_if_asked() -> Option<ExitCode> {
    (std::env::args_os().nth(1)? == messages::SUPERVISE).then(watch::serve)
}
