//! Standard output, written in large blocks. Its reader may exit at any time.

use crate::Failure;
use event::{Encoder, Payload};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::ops::Range;
use std::os::fd::AsFd;

/// The size of a block in bytes. Less is written only by an explicit flush.
const BLOCK: usize = 64 * 1024;

/// Buffered standard output. Nothing is written before [`Output::flush`] or before a block is full.
#[derive(Debug, Default)]
pub struct Output {
    buffer: Vec<u8>,
    /// The ranges of the buffer whose lines the log of this output already contains.
    recorded: Vec<Range<usize>>,
    is_deferred: bool,
    /// Writes the events of this output.
    encoder: Encoder,
}

impl Output {
    /// Returns an output with an empty buffer.
    pub fn new() -> Self {
        Output {
            buffer: Vec::with_capacity(BLOCK + BLOCK / 2),
            recorded: Vec::new(),
            is_deferred: false,
            encoder: Encoder::default(),
        }
    }

    /// Returns an output that writes only in [`Output::flush`], for commands that do other work
    /// while a slow reader blocks a write.
    pub fn deferred() -> Self {
        Output {
            is_deferred: true,
            ..Output::new()
        }
    }

    /// Whether the buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Whether the buffer has at least one block.
    pub fn is_full(&self) -> bool {
        self.buffer.len() >= BLOCK
    }

    /// Appends whole lines. Large ones are written without a copy if the buffer is empty.
    ///
    /// # Errors
    /// [`Failure::Gone`] or [`Failure::Write`], as for all methods of this type.
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.buffer.is_empty() && bytes.len() >= BLOCK / 2 && !self.is_deferred {
            return write_all(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        self.spill()
    }

    /// Appends an event as a line without its line feed; see [`event::payload::line`].
    #[inline]
    pub(crate) fn push_event(
        &mut self,
        payload: &Payload<'_>,
        stream: Option<&str>,
        choice: u32,
        t: Option<&str>,
    ) {
        self.encoder
            .line(&mut self.buffer, payload, stream, choice, t);
    }

    /// Returns the buffer, so that whole lines can be appended. Call [`Output::spill`] afterwards.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Marks the bytes from `from` to the end of the buffer as lines that the log of this output
    /// already contains.
    pub(crate) fn mark_recorded(&mut self, from: usize) {
        if from < self.buffer.len() {
            self.recorded.push(from..self.buffer.len());
        }
    }

    /// Returns the buffered bytes, without lines that the log of this output already contains (see
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

    /// Discards the buffered bytes.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.recorded.clear();
    }

    /// Writes the buffer if it has grown to a block.
    pub fn spill(&mut self) -> Result<(), Failure> {
        if self.is_full() && !self.is_deferred {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// Writes all buffered bytes.
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
                // Another process made the pipe non-blocking: wait until the pipe accepts more
                // bytes, as a blocking write would.
                let _ = poll(&mut [PollFd::new(&stdout, PollFlags::OUT)], None);
            }
            Err(Errno::PIPE) => return Err(Failure::Gone),
            Err(e) => return Err(Failure::Write(e.into())),
        }
    }
    Ok(())
}

/// Whether the reader of standard output has closed it. Waits up to `wait` for that (`None`:
/// without a limit), so that a command notices it even while it has nothing to write.
pub fn reader_gone(wait: Option<std::time::Duration>) -> bool {
    let stdout = crate::stdout();
    let wait = wait.and_then(|d| Timespec::try_from(d).ok());
    let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
    poll(&mut fds, wait.as_ref()).is_ok() && fds[0].revents().contains(PollFlags::ERR)
}
