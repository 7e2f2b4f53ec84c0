//! System resources of a command: the terminal, files and threads.

use crate::Failure;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Checks that `count` more files can be opened, for libraries that panic if a file cannot be
/// opened.
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

/// Writes a message on standard error unless it is dropped within two seconds, so that a command
/// that seems to hang shows what it waits for.
#[derive(Debug)]
pub struct Patience {
    _over: Option<Sender<()>>,
}

impl Patience {
    /// Starts the two seconds.
    pub fn new(command: &'static str, message: &'static str) -> Patience {
        let (over, wait) = channel::<()>();
        let report = move || {
            if wait.recv_timeout(QUIET) == Err(RecvTimeoutError::Timeout) {
                crate::message(command, message);
            }
        };
        // If the thread cannot be started, the command waits without this message.
        Patience {
            _over: thread(report).is_ok().then_some(over),
        }
    }
}

/// The time until [`Patience`] writes its message.
const QUIET: Duration = Duration::from_secs(2);

/// Returns the size of the terminal on standard output, in columns and rows. Returns `None` if
/// standard output is not a terminal or its cursor cannot be moved (`TERM=dumb`). `COLUMNS` and
/// `LINES` are used if the terminal does not report its size.
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
