//! What may end the command from outside.

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
use tokio::signal::unix::{Signal, SignalKind, signal};

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
