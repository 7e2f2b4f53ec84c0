//! Standard output, written by a thread while commands run.

use std::sync::mpsc::Sender;
use stdio::{Failure, Output};
use tokio::sync::mpsc::Receiver;

/// The output. While it is written the commands run on: a slow reader stops neither their timeouts nor their pipes.
///
/// A thread of its own writes: tokio would panic where the system allows no more threads.
#[derive(Debug)]
pub struct Writer {
    /// What waits for [`Writer::flush`].
    pub output: Output,
    work: Sender<Output>,
    done: Receiver<(Output, Result<(), Failure>)>,
}

impl Writer {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`Failure::Limit`].
    pub fn new() -> Result<Self, Failure> {
        let (work, outputs) = std::sync::mpsc::channel::<Output>();
        let (written, done) = tokio::sync::mpsc::channel(1);
        stdio::thread(move || {
            for mut output in outputs {
                let result = output.flush();
                if written.blocking_send((output, result)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Writer { output: Output::deferred(), work, done })
    }

    /// Writes out what waits.
    ///
    /// # Errors
    /// [`Failure::Gone`] and [`Failure::Write`].
    pub async fn flush(&mut self) -> Result<(), Failure> {
        if self.output.is_empty() {
            return Ok(());
        }
        let ended = || Failure::Write(std::io::Error::other("the thread that writes has ended"));
        self.work.send(std::mem::take(&mut self.output)).map_err(|_| ended())?;
        let (output, result) = self.done.recv().await.ok_or_else(ended)?;
        self.output = output;
        result
    }
}
