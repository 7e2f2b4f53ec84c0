//! Reads lines from files and standard input, in blocks of whole lines in one reused buffer.

use crate::{Failure, StandardFile, StopSignals};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The number of bytes per read: the capacity of two pipes.
const BLOCK: usize = 128 * 1024;
/// The number of bytes that are kept of a line that is too long.
const KEPT: usize = 64 * 1024;
/// How long to wait for further lines after a signal, because an upstream that is also stopping may
/// still write some.
const GRACE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 500_000_000,
};

/// How long to continue reading after a signal if the upstream does not stop.
const LIMIT: Duration = Duration::from_secs(1);

/// A block of input. Its bytes are in the input's buffer, and are valid until the next call of
/// [`Input::block`].
#[derive(Debug)]
pub enum InputBlock<'a> {
    /// One or more whole lines, each with its line feed. Only the last line of a file can lack the
    /// line feed.
    Lines(&'a [u8]),
    /// A line that is longer than allowed: its start, and its length in bytes without the line
    /// feed.
    TooLong(&'a [u8], u64),
}

#[derive(Debug)]
enum InputSource {
    Stdin(StandardFile),
    File(File),
}

impl AsFd for InputSource {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            InputSource::Stdin(stdin) => stdin.as_fd(),
            InputSource::File(f) => f.as_fd(),
        }
    }
}

/// The inputs of a command, read one after the other.
#[derive(Debug)]
pub struct Input {
    todo: VecDeque<(InputSource, Rc<str>)>,
    now: Option<(InputSource, Rc<str>)>,
    buffer: Vec<u8>,
    /// The bytes not yet returned are `buffer[from..to]`; those before `searched` have no line
    /// feed.
    from: usize,
    searched: usize,
    to: usize,
    max_line: usize,
    /// While the rest of a line that is too long is dropped: the number of its first bytes that
    /// stay at the start of the buffer.
    dropping: Option<usize>,
    /// The number of bytes of that line read so far.
    seen: u64,
    /// The time at which a signal was first noticed.
    signalled: Option<Instant>,
}

impl Input {
    /// Opens `files`. `-` and an empty list mean standard input. `max_line` is in bytes, at most 2
    /// GiB.
    ///
    /// # Errors
    /// [`Failure::Read`] for the first file that cannot be opened. Nothing has been read in that
    /// case.
    pub fn open(files: &[PathBuf], max_line: usize) -> Result<Self, Failure> {
        let mut todo = VecDeque::new();
        for path in files {
            let name = path.display().to_string();
            if path == Path::new("-") {
                todo.push_back((InputSource::Stdin(crate::stdin()), "standard input".into()));
            } else {
                let file = File::open(path).map_err(|error| Failure::Read {
                    file: name.clone(),
                    error,
                })?;
                todo.push_back((InputSource::File(file), name.into()));
            }
        }
        if files.is_empty() {
            todo.push_back((InputSource::Stdin(crate::stdin()), "standard input".into()));
        }
        Ok(Input::of(todo, max_line))
    }

    /// Returns an input that reads a pipe to which another thread writes. Messages refer to it as
    /// `name`.
    pub fn of_pipe(pipe: impl Into<OwnedFd>, name: &str, max_line: usize) -> Self {
        let source = InputSource::File(File::from(pipe.into()));
        Input::of(VecDeque::from([(source, name.into())]), max_line)
    }

    fn of(mut todo: VecDeque<(InputSource, Rc<str>)>, max_line: usize) -> Self {
        let now = todo.pop_front();
        let max_line = max_line.min(2 << 30);
        Input {
            todo,
            now,
            buffer: vec![0; BLOCK],
            from: 0,
            searched: 0,
            to: 0,
            max_line,
            dropping: None,
            seen: 0,
            signalled: None,
        }
    }

    /// Returns the name of the input that the last block came from.
    pub fn now(&self) -> Rc<str> {
        self.now
            .as_ref()
            .map_or_else(|| "standard input".into(), |(_, name)| Rc::clone(name))
    }

    /// Returns the next block, or `None` at the end of the current input; [`Input::advance`]
    /// continues with the next one. `idle` is called whenever the next read would block, so that it
    /// can flush. After a signal the input ends once no bytes have arrived for half a second, and
    /// after one second at the latest.
    ///
    /// # Errors
    /// [`Failure::Read`], [`Failure::Gone`] if the reader of standard output exits during a wait,
    /// and the errors of `idle`.
    pub fn block(
        &mut self,
        signals: Option<&StopSignals>,
        idle: &mut dyn FnMut() -> Result<(), Failure>,
    ) -> Result<Option<InputBlock<'_>>, Failure> {
        loop {
            if let Some(at) = memchr::memrchr(b'\n', &self.buffer[self.searched..self.to]) {
                let from = self.from;
                let end = self.searched + at + 1;
                if let Some(kept) = self.dropping.take() {
                    // The line that is too long ends at the first line feed, not at the last.
                    let first =
                        from + memchr::memchr(b'\n', &self.buffer[from..self.to]).unwrap_or(at);
                    let length = self.seen + (first - from) as u64;
                    (self.from, self.searched) = (first + 1, first + 1);
                    return Ok(Some(InputBlock::TooLong(&self.buffer[..kept], length)));
                }
                (self.from, self.searched) = (end, end);
                return Ok(Some(InputBlock::Lines(&self.buffer[from..end])));
            }
            self.searched = self.to;
            self.make_room();
            if self.read(signals, idle)? == 0 {
                let from = self.from;
                let to = self.to;
                (self.from, self.searched, self.to) = (0, 0, 0);
                if let Some(kept) = self.dropping.take() {
                    return Ok(Some(InputBlock::TooLong(&self.buffer[..kept], self.seen)));
                }
                return Ok(if from == to {
                    None
                } else {
                    Some(InputBlock::Lines(&self.buffer[from..to]))
                });
            }
        }
    }

    /// Continues with the next input. Returns `false` after the last one.
    pub fn advance(&mut self) -> bool {
        let next = self.todo.pop_front();
        let more = next.is_some();
        if more {
            self.now = next;
        }
        more
    }

    /// Moves the remaining bytes to the start of the buffer. If a single line fills the buffer,
    /// grows it, up to the maximum length of a line.
    fn make_room(&mut self) {
        if let Some(kept) = self.dropping {
            self.seen += (self.to - self.from) as u64;
            (self.from, self.searched, self.to) = (kept, kept, kept);
            return;
        }
        if self.from > 0 {
            self.buffer.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
            self.searched = self.to;
        }
        if self.to > self.max_line {
            let kept = KEPT.min(self.to);
            self.dropping = Some(kept);
            self.seen = self.to as u64;
            (self.from, self.searched, self.to) = (kept, kept, kept);
            self.buffer.resize(KEPT + BLOCK, 0);
        } else if self.to == self.buffer.len() {
            self.buffer.resize(
                (self.buffer.len() * 2).min(self.max_line.saturating_add(BLOCK)),
                0,
            );
        }
    }

    fn read(
        &mut self,
        signals: Option<&StopSignals>,
        idle: &mut dyn FnMut() -> Result<(), Failure>,
    ) -> Result<usize, Failure> {
        use rustix::io::Errno;
        let Some((source, name)) = &self.now else {
            return Ok(0);
        };
        // After a signal, an upstream that stops soon is read to its end, and one that does not is
        // abandoned.
        if signals.is_some_and(|s| s.seen().is_some())
            && self.signalled.get_or_insert_with(Instant::now).elapsed() > LIMIT
        {
            return Ok(0);
        }
        loop {
            if !ready(source) {
                idle()?;
                if !wait(source, signals)? {
                    return Ok(0);
                }
            }
            match rustix::io::read(source, &mut self.buffer[self.to..]) {
                Ok(n) => {
                    self.to += n;
                    return Ok(n);
                }
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(e) => {
                    return Err(Failure::Read {
                        file: name.to_string(),
                        error: e.into(),
                    });
                }
            }
        }
    }
}

/// Whether a read would not block, because bytes are available or the input has ended.
fn ready(source: &InputSource) -> bool {
    let mut fds = [PollFd::new(source, PollFlags::IN)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    !matches!(poll(&mut fds, Some(&now)), Ok(0))
}

/// Waits for input. Returns `false` if a signal arrived and no more input followed.
fn wait(source: &InputSource, signals: Option<&StopSignals>) -> Result<bool, Failure> {
    let stdout = crate::stdout();
    loop {
        let seen = signals.is_some_and(|s| s.seen().is_some());
        let mut fds = vec![
            PollFd::new(source, PollFlags::IN),
            PollFd::new(&stdout, PollFlags::empty()),
        ];
        if let (Some(s), false) = (signals, seen) {
            fds.push(PollFd::new(&s.wake, PollFlags::IN));
        }
        match poll(&mut fds, seen.then_some(&GRACE)) {
            Ok(0) => return Ok(false),
            Ok(_) if !fds[0].revents().is_empty() => return Ok(true),
            Ok(_) if fds[1].revents().contains(PollFlags::ERR) => return Err(Failure::Gone),
            // POLLHUP or POLLNVAL of a closed standard output is unrelated to the input.
            Ok(_) if fds.len() == 2 || fds[2].revents().is_empty() => return Ok(true),
            Ok(_) | Err(_) => {}
        }
    }
}
