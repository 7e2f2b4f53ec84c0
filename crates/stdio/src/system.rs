//! What the system gives a command: its standard files, a terminal, files and threads.
//!
//! Standard files may be closed when the command starts, as `>&-` leaves them. Rust's runtime opens
//! `/dev/null` in their place before `main`, so that no other file takes their number. Everything
//! that is written is then lost without an error, and such a file looks like one that the caller
//! opened: Python's `DEVNULL` and Node's `ignore` are open for reading and writing too. So the
//! command looks before the runtime does.

use crate::Failure;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

static STDIN: AtomicBool = AtomicBool::new(false);
static STDOUT: AtomicBool = AtomicBool::new(false);

/// Runs before `main`, where little of the standard library may be used: it makes two system calls.
#[ctor::ctor]
fn look() {
    let is_closed = |file: BorrowedFd<'_>| rustix::io::fcntl_getfd(file).is_err();
    STDIN.store(is_closed(rustix::stdio::stdin()), Ordering::Relaxed);
    STDOUT.store(is_closed(rustix::stdio::stdout()), Ordering::Relaxed);
}

/// Refuses a standard output that was closed when the command started: what it writes would be
/// lost.
///
/// # Errors
/// [`Failure::Closed`].
pub fn check_output() -> Result<(), Failure> {
    let remedy = "send it to a file, a pipe or /dev/null";
    check(&STDOUT, "standard output", remedy)
}

/// Refuses a standard input that was closed when the command started: it would read as empty.
///
/// # Errors
/// [`Failure::Closed`].
pub fn check_input() -> Result<(), Failure> {
    let remedy = "give a file, or </dev/null for an empty input";
    check(&STDIN, "standard input", remedy)
}

fn check(is_closed: &AtomicBool, file: &'static str, remedy: &'static str) -> Result<(), Failure> {
    if is_closed.load(Ordering::Relaxed) {
        Err(Failure::Closed { file, remedy })
    } else {
        Ok(())
    }
}

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
    let stdout = std::io::stdout();
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
