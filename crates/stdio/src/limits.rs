//! Limits of the system on open files and threads.

use crate::Failure;
use std::os::fd::OwnedFd;

/// Checks that `count` more files can be opened, for libraries that panic where one cannot.
///
/// # Errors
/// [`Failure::Limit`].
pub fn check_descriptors(count: usize) -> Result<(), Failure> {
    let stderr = std::io::stderr();
    let spare: Result<Vec<OwnedFd>, _> = (0..count).map(|_| rustix::io::dup(&stderr)).collect();
    spare.map(drop).map_err(|e| Failure::Limit {
        what: "files cannot be opened",
        error: e.into(),
    })
}

/// Starts a thread.
///
/// # Errors
/// [`Failure::Limit`].
pub fn thread(work: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let started = std::thread::Builder::new().spawn(work);
    started.map(drop).map_err(|error| Failure::Limit {
        what: "a thread cannot be started",
        error,
    })
}
