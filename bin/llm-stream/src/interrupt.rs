//! What may end the work from outside: a signal, or a reader of standard output that has enough.

use std::future::pending;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as StdStream;
use stdio::{Failure, Signals};
use tokio::io::Interest;
use tokio::net::{UnixStream, unix::pipe};

/// Why to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The reader went away.
    Gone,
    /// This signal came.
    Signal(i32),
}

/// Watches for both, inside a runtime.
#[derive(Debug)]
pub struct Watch {
    signals: Signals,
    wake: UnixStream,
    /// Only ever asked whether its reader is there. `None` when standard output is a file, whose end nobody can leave.
    stdout: Option<pipe::Sender>,
}

impl Watch {
    /// Takes over SIGINT and SIGTERM.
    ///
    /// # Errors
    /// [`Failure::Limit`] when the system has no more file descriptors.
    pub fn new() -> Result<Watch, Failure> {
        let signals = Signals::new()?;
        let wake = signals.as_fd().try_clone_to_owned().and_then(|fd| UnixStream::from_std(StdStream::from(fd)));
        let wake = wake.map_err(|error| Failure::Limit { what: "signals cannot be watched", error })?;
        // Unchecked, so that it stays as blocking as it is: others may share it, and nothing is written here.
        let stdout = io::stdout().as_fd().try_clone_to_owned().and_then(pipe::Sender::from_owned_fd_unchecked).ok();
        Ok(Watch { signals, wake, stdout })
    }

    /// The signals, for reading standard input before the runtime waits for anything.
    pub fn signals(&self) -> &Signals {
        &self.signals
    }

    /// The signal that came, if one did.
    pub fn signal(&self) -> Option<i32> {
        self.signals.seen()
    }

    /// Waits for either. What happened once is told again by the next call.
    pub async fn stop(&self) -> Stop {
        tokio::select! {
            signal = self.signalled() => Stop::Signal(signal),
            () = self.gone() => Stop::Gone,
        }
    }

    async fn signalled(&self) -> i32 {
        loop {
            if let Some(signal) = self.signals.seen() {
                return signal;
            }
            // An error here means that the runtime is going down.
            if self.wake.readable().await.is_err() {
                pending::<()>().await;
            }
        }
    }

    async fn gone(&self) {
        match &self.stdout {
            Some(stdout) if stdout.ready(Interest::ERROR).await.is_ok() => {}
            _ => pending().await,
        }
    }
}

/// The runtime of this command: one thread.
///
/// # Errors
/// [`Failure::Limit`] when the system has no more file descriptors.
pub fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    // Together with the commands that use its signals, tokio panics where it has no files for them.
    stdio::check_descriptors(8)?;
    let limit = |error| Failure::Limit { what: "the runtime cannot be started", error };
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(limit)
}
