//! Lines from files and standard input, in blocks: whole lines at a time, in one buffer that is
//! used again.

use crate::{Failure, StandardFile, StopSignals};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// How much is read at once, in bytes: the capacity of two pipes.
const BLOCK: usize = 128 * 1024;
/// How much of a line that is too long is kept, in bytes.
const KEPT: usize = 64 * 1024;
/// After a signal: how long to wait for more lines, which an upstream writes while it ends too.
const GRACE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 500_000_000,
};

/// After a signal: how long to read on when the upstream does not end.
const LIMIT: Duration = Duration::from_secs(1);

/// A block of input: bytes in the input's own buffer, valid until the next call of
/// [`Input::block`].
#[derive(Debug)]
pub enum InputBlock<'a> {
    /// One or more whole lines, each with its line feed; only the very last line of a file may lack
    /// it.
    Lines(&'a [u8]),
    /// A line longer than allowed: its beginning, and its length in bytes without the line feed.
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

/// The inputs of a command, one after the other.
#[derive(Debug)]
pub struct Input {
    todo: VecDeque<(InputSource, Rc<str>)>,
    now: Option<(InputSource, Rc<str>)>,
    buffer: Vec<u8>,
    /// The bytes not yet given out are `buffer[from..to]`; up to `searched` they hold no line feed.
    from: usize,
    searched: usize,
    to: usize,
    max_line: usize,
    /// While the rest of an over-long line is dropped: how much of its beginning stays at the front
    /// of the buffer.
    dropping: Option<usize>,
    /// Bytes of that line seen so far.
    seen: u64,
    /// When a signal was first noticed.
    signalled: Option<Instant>,
}

impl Input {
    /// Opens `files` (`-` is standard input; none at all is standard input too). `max_line` is in
    /// bytes, at most 2 GiB.
    ///
    /// # Errors
    /// [`Failure::Read`] for the first file that cannot be opened: nothing was read then.
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

    /// Reads a pipe that another thread writes to. Messages name it `name`.
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

    /// The name of the input that the last block came from.
    pub fn now(&self) -> Rc<str> {
        self.now
            .as_ref()
            .map_or_else(|| "standard input".into(), |(_, name)| Rc::clone(name))
    }

    /// The next block; `None` at the end of this input (ask [`Input::advance`] for more). `idle` is
    /// called exactly when the next read would block: flush there. A signal ends the input once
    /// nothing has come for half a second, or after a second.
    ///
    /// # Errors
    /// [`Failure::Read`], [`Failure::Gone`] when the reader of standard output leaves during a
    /// wait, and the errors of `idle`.
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
                    // The over-long line ends at the first line feed, not at the last.
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

    /// Goes on to the next input; `false` after the last one.
    pub fn advance(&mut self) -> bool {
        let next = self.todo.pop_front();
        let more = next.is_some();
        if more {
            self.now = next;
        }
        more
    }

    /// Moves what is left to the front, and grows the buffer while one line fills it, up to the
    /// longest line allowed.
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
        // An upstream that ends too is read to its end; one that does not end is left.
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

/// Whether a read would not block: there are bytes, or the input has ended.
fn ready(source: &InputSource) -> bool {
    let mut fds = [PollFd::new(source, PollFlags::IN)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    !matches!(poll(&mut fds, Some(&now)), Ok(0))
}

/// Waits for input. `false`: a signal came and nothing more does.
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
