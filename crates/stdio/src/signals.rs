//! SIGINT and SIGTERM, seen between reads instead of in the middle of a line.

use crate::{Failure, Filter, thread};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The first SIGINT or SIGTERM is remembered, and wakes a wait; the second ends the process at
/// once.
#[derive(Debug)]
pub struct StopSignals {
    seen: Arc<AtomicUsize>,
    interrupted: Arc<AtomicBool>,
    pub(crate) wake: UnixStream,
}

impl StopSignals {
    /// Takes over both signals for this process.
    ///
    /// # Errors
    /// [`Failure::Limit`].
    pub fn new() -> Result<Self, Failure> {
        Self::register(&[SIGINT, SIGTERM]).map_err(limit)
    }

    /// Takes over the signals that end the command: with `ignore_interrupts` only SIGTERM.
    ///
    /// # Errors
    /// [`Failure::Limit`].
    pub fn of(options: &Filter) -> Result<Self, Failure> {
        if !options.ignore_interrupts {
            return Self::new();
        }
        let signals = Self::register(&[SIGTERM]).map_err(limit)?;
        let taken = flag::register(SIGINT, Arc::clone(&signals.interrupted));
        taken.map(|_| signals).map_err(limit)
    }

    fn register(signals: &[i32]) -> io::Result<Self> {
        let again = Arc::new(AtomicBool::new(false));
        for &signal in signals {
            // In this order: the second signal finds `again` set by the first.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&again))?;
            flag::register(signal, Arc::clone(&again))?;
        }
        let seen = Arc::default();
        Ok(StopSignals {
            wake: watched(signals, &seen)?,
            seen,
            interrupted: Arc::default(),
        })
    }

    /// Whether a SIGINT that does not count has come since this was asked last.
    pub(crate) fn interrupted(&self) -> bool {
        self.interrupted.swap(false, Ordering::Relaxed)
    }

    /// The number of the signal that came, if one did.
    pub fn seen(&self) -> Option<i32> {
        match self.seen.load(Ordering::Relaxed) {
            0 => None,
            n => i32::try_from(n).ok(),
        }
    }
}

/// Calls `take` in a thread of its own with the number of each SIGINT and SIGTERM, for commands
/// that decide themselves how to end.
///
/// # Errors
/// [`Failure::Limit`].
pub fn each_signal(mut take: impl FnMut(i32) + Send + 'static) -> Result<(), Failure> {
    let latest = Arc::default();
    let mut wake = watched(&[SIGINT, SIGTERM], &latest).map_err(limit)?;
    wake.set_nonblocking(false).map_err(limit)?;
    thread(move || {
        // A byte for each signal.
        while wake.read_exact(&mut [0]).is_ok() {
            take(i32::try_from(latest.load(Ordering::Relaxed)).unwrap_or(SIGTERM));
        }
    })
}

/// Takes over SIGHUP for this process: a byte comes out of the stream for each.
///
/// # Errors
/// [`Failure::Limit`].
pub fn hangups() -> Result<UnixStream, Failure> {
    watched(&[SIGHUP], &Arc::default()).map_err(limit)
}

/// Gives a byte for each of these signals, and writes the number of the signal to `latest` before.
/// Reading never waits.
fn watched(signals: &[i32], latest: &Arc<AtomicUsize>) -> io::Result<UnixStream> {
    let (wake, write) = UnixStream::pair()?;
    wake.set_nonblocking(true)?;
    for &signal in signals {
        flag::register_usize(signal, Arc::clone(latest), signal.unsigned_abs() as usize)?;
        low_level::pipe::register(signal, write.try_clone()?)?;
    }
    Ok(wake)
}

fn limit(error: io::Error) -> Failure {
    Failure::limit("signals cannot be taken over")(error)
}

/// Becomes readable with the first signal and stays so, for commands that wait by means of their
/// own.
impl AsFd for StopSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}
