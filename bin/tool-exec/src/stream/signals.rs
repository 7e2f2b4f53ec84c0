//! SIGINT and SIGTERM: how many have come, and the latest.

use std::time::Duration;
use stdio::Failure;
use tokio::sync::watch;

/// How long the command gets to end by itself after the second signal: twice what it needs where it
/// waits.
const BUSY: Duration = Duration::from_secs(2);

/// The signals that have come; each clone sees all that its original has not seen.
#[derive(Clone, Debug)]
pub struct Signals {
    /// How many have come, and the latest.
    received: watch::Receiver<(u32, i32)>,
    seen: u32,
}

impl Signals {
    /// Takes over both signals. Some time after the second one the process ends, even in the middle
    /// of its work: the runtime sees a signal only where it waits, and the validation of arguments
    /// computes for seconds at worst. Supervisors end what still runs.
    ///
    /// # Errors
    /// [`Failure::Limit`].
    pub fn take() -> Result<Self, Failure> {
        let (send, received) = watch::channel((0, 0));
        stdio::each_signal(move |signal| {
            send.send_modify(|(count, latest)| (*count, *latest) = (*count + 1, signal));
            let end = move || {
                std::thread::sleep(BUSY);
                stdio::message(
                    "tool-exec",
                    "ended in the middle of its work by the second signal",
                );
                std::process::exit(128 + signal);
            };
            if send.borrow().0 == 2 && stdio::thread(end).is_err() {
                end();
            }
        })?;
        Ok(Signals { received, seen: 0 })
    }

    /// Waits for the next signal and returns its number.
    pub async fn next(&mut self) -> i32 {
        let seen = self.seen;
        match self
            .received
            .wait_for(|(count, _)| *count > seen)
            .await
            .map(|received| received.1)
        {
            Ok(signal) => {
                self.seen += 1;
                signal
            }
            Err(_) => std::future::pending().await, // the thread never ends
        }
    }
}
