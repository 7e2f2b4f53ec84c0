//! Standard output, written in large blocks, with a reader that may go away at any time.

use crate::Failure;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::ops::Range;
use std::os::fd::AsFd;

/// How much is written at once, in bytes, unless it is flushed earlier.
const BLOCK: usize = 64 * 1024;

/// Standard output behind one buffer. Nothing is written before [`Output::flush`] or a full block.
#[derive(Debug, Default)]
pub struct Output {
    buffer: Vec<u8>,
    /// The lines of the buffer that the log of this output has already, by their places.
    recorded: Vec<Range<usize>>,
    is_deferred: bool,
}

impl Output {
    /// An empty buffer before standard output.
    pub fn new() -> Self {
        Output {
            buffer: Vec::with_capacity(BLOCK + BLOCK / 2),
            recorded: Vec::new(),
            is_deferred: false,
        }
    }

    /// The same, but written in [`Output::flush`] alone, for commands that do other work while a
    /// slow reader holds up a write.
    pub fn deferred() -> Self {
        Output {
            is_deferred: true,
            ..Output::new()
        }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Whether a block or more waits.
    pub fn is_full(&self) -> bool {
        self.buffer.len() >= BLOCK
    }

    /// Appends whole lines; large ones go out without a copy when nothing waits before them.
    ///
    /// # Errors
    /// [`Failure::Gone`] or [`Failure::Write`], as for every method here.
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.buffer.is_empty() && bytes.len() >= BLOCK / 2 && !self.is_deferred {
            return write_all(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        self.spill()
    }

    /// The buffer, to append whole lines to; follow it with [`Output::spill`].
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Marks the bytes from `from` to the end of the buffer as lines that the log of this output
    /// has already.
    pub(crate) fn mark_recorded(&mut self, from: usize) {
        if from < self.buffer.len() {
            self.recorded.push(from..self.buffer.len());
        }
    }

    /// What waits, without the lines that the log of this output has already (see
    /// [`LineWriter::write_recorded`](crate::LineWriter)).
    pub fn unrecorded(&self) -> impl Iterator<Item = &[u8]> {
        let ends = self
            .recorded
            .iter()
            .map(|range| range.start)
            .chain([self.buffer.len()]);
        let starts = [0]
            .into_iter()
            .chain(self.recorded.iter().map(|range| range.end));
        starts.zip(ends).map(|(from, to)| &self.buffer[from..to])
    }

    /// Drops what waits.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.recorded.clear();
    }

    /// Writes the buffer out if it has grown to a block.
    pub fn spill(&mut self) -> Result<(), Failure> {
        if self.is_full() && !self.is_deferred {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// Writes out all that waits.
    pub fn flush(&mut self) -> Result<(), Failure> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let result = write_all(&self.buffer);
        self.clear();
        result
    }
}

fn write_all(mut bytes: &[u8]) -> Result<(), Failure> {
    use rustix::io::Errno;
    let stdout = crate::stdout();
    while !bytes.is_empty() {
        match rustix::io::write(stdout.as_fd(), bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                // Another process made the pipe non-blocking: wait until it takes more, as a
                // blocking one does.
                let _ = poll(&mut [PollFd::new(&stdout, PollFlags::OUT)], None);
            }
            Err(Errno::PIPE) => return Err(Failure::Gone),
            Err(e) => return Err(Failure::Write(e.into())),
        }
    }
    Ok(())
}

/// Whether the reader of standard output has closed it. Waits up to `wait` for that (`None`: until
/// it happens), so that a command that has nothing to write for a while still notices.
pub fn reader_gone(wait: Option<std::time::Duration>) -> bool {
    let stdout = crate::stdout();
    let wait = wait.and_then(|d| Timespec::try_from(d).ok());
    let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
    poll(&mut fds, wait.as_ref()).is_ok() && fds[0].revents().contains(PollFlags::ERR)
}
