//! What ends the work from outside: a signal, or a reader of standard output that leaves.

use std::future::pending;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as StdStream;
use std::time::Duration;
use stdio::{Failure, Signals};
use tokio::io::Interest;
use tokio::net::{UnixStream, unix::pipe};

/// Why to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// The reader of standard output left.
    Gone,
    /// This signal came.
    Signal(i32),
}

impl Interrupt {
    /// The signal.
    ///
    /// # Errors
    /// [`Failure::Gone`] when it is the reader that left.
    pub fn signal(self) -> Result<i32, Failure> {
        match self {
            Interrupt::Signal(signal) => Ok(signal),
            Interrupt::Gone => Err(Failure::Gone),
        }
    }
}

/// Watches for both, inside a runtime.
#[derive(Debug)]
pub struct Watch {
    signals: Signals,
    wake: UnixStream,
    /// Never written to; an error on it means that the reader left. `None` when standard output is
    /// a file, which has no reader.
    stdout: Option<pipe::Sender>,
}

impl Watch {
    /// Takes over SIGINT and SIGTERM.
    ///
    /// # Errors
    /// [`Failure::Limit`] when the system has no more file descriptors.
    pub fn new() -> Result<Watch, Failure> {
        let signals = Signals::new()?;
        let wake = signals
            .as_fd()
            .try_clone_to_owned()
            .and_then(|fd| UnixStream::from_std(StdStream::from(fd)));
        let wake = wake.map_err(|error| Failure::Limit {
            what: "signals cannot be watched",
            error,
        })?;
        // Unchecked, since the check would make it non-blocking for all processes that share it.
        let stdout = io::stdout()
            .as_fd()
            .try_clone_to_owned()
            .and_then(pipe::Sender::from_owned_fd_unchecked)
            .ok();
        Ok(Watch {
            signals,
            wake,
            stdout,
        })
    }

    /// The signals, for reading standard input before the runtime waits for anything.
    pub fn signals(&self) -> &Signals {
        &self.signals
    }

    /// The signal that came, if one did.
    pub fn signal(&self) -> Option<i32> {
        self.signals.seen()
    }

    /// Waits for either. Later calls return the same at once.
    pub async fn interrupt(&self) -> Interrupt {
        tokio::select! {
            signal = self.signalled() => Interrupt::Signal(signal),
            () = self.gone() => Interrupt::Gone,
        }
    }

    /// What has happened already, for work that never waits. Whether the reader left is looked at
    /// only if `and_reader`: that is a system call.
    pub fn seen(&self, and_reader: bool) -> Option<Interrupt> {
        let gone =
            || (and_reader && stdio::reader_gone(Some(Duration::ZERO))).then_some(Interrupt::Gone);
        self.signal().map(Interrupt::Signal).or_else(gone)
    }

    async fn signalled(&self) -> i32 {
        loop {
            if let Some(signal) = self.signals.seen() {
                return signal;
            }
            // An error means that the runtime ends.
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
    let limit = |error| Failure::Limit {
        what: "the runtime cannot be started",
        error,
    };
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(limit)
}
