//! SIGINT and SIGTERM, seen between reads instead of in the middle of a line.
//!
//! A signal that was ignored when the command started stays ignored, for the command and for what
//! it starts, as POSIX wants it of a utility: `nohup` ignores SIGHUP, and a shell without job
//! control ignores SIGINT and SIGQUIT for what it starts in the background.

use crate::own::{self, is_thread};
use crate::{Failure, Filter, thread};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{SigId, flag, low_level};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The first SIGINT or SIGTERM is remembered, and wakes a wait; the second ends the process at
/// once.
#[derive(Debug)]
pub struct StopSignals {
    seen: Arc<AtomicUsize>,
    interrupted: Arc<AtomicBool>,
    pub(crate) wake: UnixStream,
    /// What a thread takes back when its command ends; a process ends with its command.
    registered: Vec<SigId>,
}

impl Drop for StopSignals {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            low_level::unregister(id);
        }
    }
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
        let mut signals = Self::register(&[SIGTERM]).map_err(limit)?;
        for signal in heeded(&[SIGINT]) {
            let id = flag::register(signal, Arc::clone(&signals.interrupted)).map_err(limit)?;
            signals.registered.extend(is_thread().then_some(id));
        }
        Ok(signals)
    }

    fn register(signals: &[i32]) -> io::Result<Self> {
        let again = Arc::new(AtomicBool::new(false));
        // A thread cannot be ended: whoever waits for it stops waiting at the second signal.
        for signal in heeded(signals).filter(|_| !is_thread()) {
            // In this order: the second signal finds `again` set by the first.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&again))?;
            flag::register(signal, Arc::clone(&again))?;
        }
        let seen = Arc::default();
        let (wake, mut registered) = watched(heeded(signals), &seen)?;
        registered.retain(|_| is_thread());
        own::takes_signals();
        Ok(StopSignals {
            wake,
            seen,
            interrupted: Arc::default(),
            registered,
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
    let (mut wake, _) = watched(heeded(&[SIGINT, SIGTERM]), &latest).map_err(limit)?;
    wake.set_nonblocking(false).map_err(limit)?;
    thread(move || {
        // A byte for each signal.
        while wake.read_exact(&mut [0]).is_ok() {
            take(i32::try_from(latest.load(Ordering::Relaxed)).unwrap_or(SIGTERM));
        }
    })
}

/// Takes over SIGHUP for this process: a byte comes out of the stream for each. A command to which
/// SIGHUP means something else than an end heeds it under `nohup` too.
///
/// # Errors
/// [`Failure::Limit`].
pub fn hangups() -> Result<UnixStream, Failure> {
    let (wake, _) = watched([SIGHUP], &Arc::default()).map_err(limit)?;
    Ok(wake)
}

/// Gives a byte for each of these signals, and writes the number of the signal to `latest` before.
/// Reading never waits.
fn watched(
    signals: impl IntoIterator<Item = i32>,
    latest: &Arc<AtomicUsize>,
) -> io::Result<(UnixStream, Vec<SigId>)> {
    let (wake, write) = UnixStream::pair()?;
    wake.set_nonblocking(true)?;
    let mut registered = Vec::new();
    for signal in signals {
        let number = signal.unsigned_abs() as usize;
        registered.push(flag::register_usize(signal, Arc::clone(latest), number)?);
        registered.push(low_level::pipe::register(signal, write.try_clone()?)?);
    }
    Ok((wake, registered))
}

/// Those of `signals` that were not ignored when this process started.
pub fn heeded(signals: &[i32]) -> impl Iterator<Item = i32> {
    /// A bit for each ignored signal, the lowest for signal 1. What this process handles is not
    /// ignored, so the mask is read before the first handler is there.
    static IGNORED: OnceLock<u64> = OnceLock::new();
    let ignored = *IGNORED.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status
            .split_once("SigIgn:")
            .and_then(|(_, rest)| rest.lines().next());
        mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
            .unwrap_or(0)
    });
    let is_ignored = move |signal: i32| ignored >> (signal - 1) & 1 == 1;
    signals
        .iter()
        .copied()
        .filter(move |signal| !is_ignored(*signal))
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
