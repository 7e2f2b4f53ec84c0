//! What may end the command from outside.

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use stdio::Failure;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How long the work gets to end by itself after the second signal: twice what it needs where it waits.
const BUSY: Duration = Duration::from_secs(2);

/// SIGINT and SIGTERM, by their numbers.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Takes over both.
    ///
    /// # Errors
    /// When the system has no more file descriptors.
    pub fn new() -> anyhow::Result<Self> {
        let take = |kind| signal(kind).context("signals cannot be taken over");
        Ok(Signals { interrupt: take(SignalKind::interrupt())?, terminate: take(SignalKind::terminate())? })
    }

    /// Waits for either.
    pub async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.interrupt.recv() => SIGINT,
            _ = self.terminate.recv() => SIGTERM,
        }
    }
}

/// Ends the process some time after the second signal, if it has not ended by itself. The runtime sees a signal only where it waits,
/// and the validation of arguments computes for seconds at worst. What still runs ends with this process, see `supervise.rs`.
///
/// # Errors
/// [`Failure::Limit`].
pub fn end_when_busy() -> Result<(), Failure> {
    let (mut wake, seen) = watched().map_err(|error| Failure::Limit { what: "signals cannot be taken over", error })?;
    stdio::thread(move || {
        // A byte for each signal.
        if wake.read_exact(&mut [0; 2]).is_ok() {
            std::thread::sleep(BUSY);
            stdio::message("tool-exec", "ended in the middle of its work by the second signal");
            let signal = i32::try_from(seen.load(Ordering::Relaxed)).unwrap_or(SIGTERM);
            std::process::exit(128 + signal);
        }
    })
}

fn watched() -> std::io::Result<(UnixStream, Arc<AtomicUsize>)> {
    let (wake, write) = UnixStream::pair()?;
    let seen = Arc::new(AtomicUsize::new(0));
    for signal in [SIGINT, SIGTERM] {
        flag::register_usize(signal, Arc::clone(&seen), signal.unsigned_abs() as usize)?;
        low_level::pipe::register(signal, write.try_clone()?)?;
    }
    Ok((wake, seen))
}
