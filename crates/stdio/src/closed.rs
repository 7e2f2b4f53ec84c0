//! Standard files that were closed when the command started, as `>&-` leaves them.
//!
//! Rust's runtime opens `/dev/null` in their place before `main`, so that no other file takes their
//! number. Everything that is written is then lost without an error, and such a file looks like one
//! that the caller opened: Python's `DEVNULL` and Node's `ignore` are open for reading and writing
//! too. So the command looks before the runtime does.

use crate::Failure;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

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
    if STDOUT.load(Ordering::Relaxed) {
        Err(Failure::Closed {
            file: "standard output",
            remedy,
        })
    } else {
        Ok(())
    }
}

/// Refuses a standard input that was closed when the command started: it would read as empty.
///
/// # Errors
/// [`Failure::Closed`].
pub fn check_input() -> Result<(), Failure> {
    let remedy = "give a file, or </dev/null for an empty input";
    if STDIN.load(Ordering::Relaxed) {
        Err(Failure::Closed {
            file: "standard input",
            remedy,
        })
    } else {
        Ok(())
    }
}
