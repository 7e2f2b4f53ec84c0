//! Handles SIGINT and SIGTERM between reads, not in the middle of a line.
//!
//! A signal that was ignored when the command started stays ignored, for the command and its child
//! processes, as POSIX requires of a utility: `nohup` ignores SIGHUP, and a shell without job
//! control ignores SIGINT and SIGQUIT for background commands.

use crate::own::{self, is_thread};
use crate::{Failure, Filter, thread};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{SigId, flag, low_level};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Remembers the first SIGINT or SIGTERM, which wakes up a wait. The second one ends the process at
/// once.
#[derive(Debug)]
pub struct StopSignals {
    seen: Arc<AtomicUsize>,
    interrupted: Arc<AtomicBool>,
    pub(crate) wake: UnixStream,
    /// Handlers to remove when a command in a thread ends. Empty in a process, which ends with its
    /// command.
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
    /// Installs handlers for both signals in this process.
    ///
    /// # Errors
    /// [`Failure::Limit`].
    pub fn new() -> Result<Self, Failure> {
        Self::register(&[SIGINT, SIGTERM]).map_err(limit)
    }

    /// Installs handlers for the signals that end the command: only SIGTERM with
    /// `ignore_interrupts`.
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
        // A signal cannot end a thread. The thread that waits for the command stops waiting at the
        // second signal.
        for signal in heeded(signals).filter(|_| !is_thread()) {
            // The order matters: `again` is set by the first signal and seen by the second.
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

    /// Whether a SIGINT that does not end the command has arrived since the last call.
    pub(crate) fn interrupted(&self) -> bool {
        self.interrupted.swap(false, Ordering::Relaxed)
    }

    /// Returns the number of the signal, or `None` if no signal has arrived.
    pub fn seen(&self) -> Option<i32> {
        match self.seen.load(Ordering::Relaxed) {
            0 => None,
            n => i32::try_from(n).ok(),
        }
    }
}

/// Calls `take` in a new thread with the number of each SIGINT and SIGTERM, for commands with their
/// own way to end.
///
/// # Errors
/// [`Failure::Limit`].
pub fn each_signal(mut take: impl FnMut(i32) + Send + 'static) -> Result<(), Failure> {
    let latest = Arc::default();
    let (mut wake, _) = watched(heeded(&[SIGINT, SIGTERM]), &latest).map_err(limit)?;
    wake.set_nonblocking(false).map_err(limit)?;
    thread(move || {
        // The stream has one byte per signal.
        while wake.read_exact(&mut [0]).is_ok() {
            take(i32::try_from(latest.load(Ordering::Relaxed)).unwrap_or(SIGTERM));
        }
    })
}

/// Installs a handler for SIGHUP in this process. The returned stream receives one byte for each
/// signal. SIGHUP is handled even under `nohup`, because commands that call this do not treat it as
/// a request to end.
///
/// # Errors
/// [`Failure::Limit`].
pub fn hangups() -> Result<UnixStream, Failure> {
    let (wake, _) = watched([SIGHUP], &Arc::default()).map_err(limit)?;
    Ok(wake)
}

/// Returns a stream that receives one byte for each of these signals, after the number of the
/// signal was stored in `latest`; and the ids of the installed handlers. Reading from the stream
/// does not block.
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

/// Returns those of `signals` that were not ignored when this process started.
pub fn heeded(signals: &[i32]) -> impl Iterator<Item = i32> {
    /// One bit for each ignored signal, starting with signal 1 in the lowest bit. Installing a
    /// handler removes the bit, so the mask must be read before the first handler is installed.
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

/// The file becomes readable at the first signal and stays readable, for commands with their own
/// way to wait.
impl AsFd for StopSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}
