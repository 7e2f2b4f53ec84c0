//! Standard output, written by one hand: lines of many calls never mix.

use event::{Payload, payload};
use stdio::{Failure, Output};

/// The output. While it is written the commands go on: a reader that is slow holds up no clock and no pipe of theirs.
#[derive(Debug)]
pub struct Writer {
    output: Output,
    no_time: bool,
    waiting: usize,
}

/// What waits at most before it is written although more is at hand.
const BLOCK: usize = 64 * 1024;

impl Writer {
    /// `no_time` leaves `t` out of what is written.
    pub fn new(no_time: bool) -> Self {
        Writer { output: Output::new(), no_time, waiting: 0 }
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
        let mut output = std::mem::take(&mut self.output);
        let written = tokio::task::spawn_blocking(move || {
            let result = output.flush();
            (output, result)
        });
        match written.await {
            Ok((output, result)) => {
                self.output = output;
                result
            }
            Err(e) => Err(Failure::Write(std::io::Error::other(e))),
        }
    }
}
