//! Standard output, written by one hand: lines of many calls never mix.

use event::{Payload, payload};
use std::sync::mpsc::Sender;
use stdio::{Failure, Output};
use tokio::sync::mpsc::Receiver;

/// The output. While it is written the commands go on: a reader that is slow holds up no clock and no pipe of theirs.
///
/// A thread writes, started by hand: tokio's own panics where the system gives no more threads.
#[derive(Debug)]
pub struct Writer {
    output: Output,
    work: Sender<Output>,
    done: Receiver<(Output, Result<(), Failure>)>,
    no_time: bool,
    waiting: usize,
}

/// What waits at most before it is written although more is at hand.
const BLOCK: usize = 64 * 1024;

impl Writer {
    /// `no_time` leaves `t` out of what is written.
    ///
    /// # Errors
    /// When the thread that writes cannot be started.
    pub fn new(no_time: bool) -> Result<Self, Failure> {
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
        Ok(Writer { output: Output::new(), work, done, no_time, waiting: 0 })
    }

    /// Passes a line on as it came.
    pub fn pass(&mut self, line: &[u8]) {
        let buffer = self.output.buffer();
        buffer.extend_from_slice(line);
        if line.last() != Some(&b'\n') {
            buffer.push(b'\n'); // the last line of a file that lacks its line feed
        }
        self.waiting = buffer.len();
    }

    /// Writes an event.
    pub fn event(&mut self, payload: &dyn Payload, stream: Option<&str>, choice: u32, t: Option<&str>) {
        let no_time = self.no_time;
        let buffer = self.output.buffer();
        payload::line(buffer, payload, stream, choice, t.filter(|_| !no_time));
        buffer.push(b'\n');
        self.waiting = buffer.len();
    }

    /// Whether anything waits.
    pub fn waits(&self) -> bool {
        self.waiting > 0
    }

    /// Whether so much waits that it should go out now.
    pub fn is_full(&self) -> bool {
        self.waiting >= BLOCK
    }

    /// Writes out what waits.
    ///
    /// # Errors
    /// [`Failure::Gone`] and [`Failure::Write`].
    pub async fn flush(&mut self) -> Result<(), Failure> {
        if std::mem::take(&mut self.waiting) == 0 {
            return Ok(());
        }
        let gone = || Failure::Write(std::io::Error::other("the thread that writes has ended"));
        self.work.send(std::mem::take(&mut self.output)).map_err(|_| gone())?;
        let (output, result) = self.done.recv().await.ok_or_else(gone)?;
        self.output = output;
        result
    }
}
