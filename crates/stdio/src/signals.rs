//! SIGINT and SIGTERM, seen between reads instead of in the middle of a line.

use crate::{Failure, thread};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The first SIGINT or SIGTERM is remembered, and wakes a wait; the second ends the process at
/// once.
#[derive(Debug)]
pub struct Signals {
    seen: Arc<AtomicUsize>,
    interrupted: Arc<AtomicBool>,
    pub(crate) wake: UnixStream,
}

impl Signals {
    /// Takes over both signals for this process.
    ///
    /// # Errors
    /// [`Failure::Limit`].
    pub fn new() -> Result<Self, Failure> {
        Self::take(&[SIGINT, SIGTERM])
    }

    /// The same, but SIGINT does not end the command.
    ///
    /// # Errors
    /// [`Failure::Limit`].
    pub fn without_interrupt() -> Result<Self, Failure> {
        let signals = Self::take(&[SIGTERM])?;
        let taken = signal_hook::flag::register(SIGINT, Arc::clone(&signals.interrupted));
        taken.map(|_| signals).map_err(limit)
    }

    fn take(signals: &[i32]) -> Result<Self, Failure> {
        Self::register(signals).map_err(limit)
    }

    fn register(signals: &[i32]) -> std::io::Result<Self> {
        let (wake, write) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let (seen, again) = (
            Arc::new(AtomicUsize::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        for &signal in signals {
            // In this order: the second signal finds `again` set by the first.
            signal_hook::flag::register_conditional_shutdown(
                signal,
                128 + signal,
                Arc::clone(&again),
            )?;
            signal_hook::flag::register(signal, Arc::clone(&again))?;
            signal_hook::flag::register_usize(signal, Arc::clone(&seen), signal as usize)?;
            signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
        }
        Ok(Signals {
            seen,
            interrupted: Arc::default(),
            wake,
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
    let (mut wake, latest) = watched().map_err(limit)?;
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
    let register = || {
        let (wake, write) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(SIGHUP, write)?;
        Ok(wake)
    };
    register().map_err(limit)
}

fn watched() -> std::io::Result<(UnixStream, Arc<AtomicUsize>)> {
    let (wake, write) = UnixStream::pair()?;
    let latest = Arc::new(AtomicUsize::new(0));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_usize(
            signal,
            Arc::clone(&latest),
            signal.unsigned_abs() as usize,
        )?;
        signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
    }
    Ok((wake, latest))
}

fn limit(error: std::io::Error) -> Failure {
    Failure::Limit {
        what: "signals cannot be taken over",
        error,
    }
}

/// Becomes readable with the first signal and stays so, for commands that wait by means of their
/// own.
impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}
