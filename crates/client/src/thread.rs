//! Threads for what the system can only do by blocking.

use std::io;

/// Starts a thread that ends by itself.
///
/// # Errors
/// When the system has no more threads.
pub(crate) fn start(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let started = std::thread::Builder::new().spawn(work);
    started.map(drop).map_err(|e| {
        io::Error::new(
            e.kind(),
            format!("a thread cannot be started: {e}, raise the limit (ulimit -u)"),
        )
    })
}
