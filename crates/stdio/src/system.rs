//! What the system gives a command: a terminal, files and threads.

use crate::Failure;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Checks that `count` more files can be opened, for libraries that panic where one cannot.
///
/// # Errors
/// [`Failure::Limit`].
pub fn check_descriptors(count: usize) -> Result<(), Failure> {
    let stderr = std::io::stderr();
    let spare: Result<Vec<OwnedFd>, _> = (0..count).map(|_| rustix::io::dup(&stderr)).collect();
    spare
        .map(drop)
        .map_err(Failure::limit("files cannot be opened"))
}

/// Starts a thread.
///
/// # Errors
/// [`Failure::Limit`].
pub fn thread(work: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let started = std::thread::Builder::new().spawn(work);
    started
        .map(drop)
        .map_err(Failure::limit("a thread cannot be started"))
}

/// Writes one message on standard error, unless it is dropped within two seconds: what a command
/// that seems to hang waits for.
#[derive(Debug)]
pub struct Patience {
    _over: Option<Sender<()>>,
}

impl Patience {
    /// Begins to wait.
    pub fn new(command: &'static str, message: &'static str) -> Patience {
        let (over, wait) = channel::<()>();
        let report = move || {
            if wait.recv_timeout(QUIET) == Err(RecvTimeoutError::Timeout) {
                crate::message(command, message);
            }
        };
        // Where the thread cannot start, the command waits without this message.
        Patience {
            _over: thread(report).is_ok().then_some(over),
        }
    }
}

/// The time before the message of [`Patience`].
const QUIET: Duration = Duration::from_secs(2);

/// The size of the terminal on standard output, in columns and rows; `None` without a terminal, and
/// for one that cannot move its cursor (`TERM=dumb`). `COLUMNS` and `LINES` are used where the
/// terminal does not report its size.
pub fn terminal() -> Option<(usize, usize)> {
    let stdout = crate::stdout();
    if !rustix::termios::isatty(&stdout) || std::env::var_os("TERM").is_some_and(|t| t == "dumb") {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&stdout).ok();
    let or = |n: Option<u16>, name: &str, default| match n {
        Some(n) if n > 0 => usize::from(n),
        _ => std::env::var(name)
            .ok()
            .and_then(|v| v.parse().ok())
            .filter(|n| *n > 0)
            .unwrap_or(default),
    };
    Some((
        or(size.map(|s| s.ws_col), "COLUMNS", 80),
        or(size.map(|s| s.ws_row), "LINES", 24),
    ))
}
