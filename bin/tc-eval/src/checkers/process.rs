//! A command that runs beside this process: what it reads and writes, without ever blocking.

use group::Group;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionbio;
use rustix::process::Signal;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The longest line that is read, in bytes. The rest of a longer line is ignored, and with it the
/// line.
const LINE: usize = 1 << 20;
/// How much input may wait for the command to read it, in bytes, before this process waits for the
/// command.
const WAITING: usize = 1 << 16;
/// How often a silent command is looked at: where a child of it holds its output open, no file
/// shows that it has ended.
const LOOK: Duration = Duration::from_millis(50);
/// How many blocks are read before the other files are looked at.
const BLOCKS: usize = 64;
/// How much of the last line of standard error is kept, in bytes.
const LAST_WORDS: usize = 300;

/// How far a wait got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// What was waited for is there.
    Done,
    /// The command closed its output, so it gives no more answers.
    Closed,
    /// It neither read nor answered for as long as it may take.
    Late,
}

/// A running command.
#[derive(Debug)]
pub struct Process {
    group: Group,
    /// The command itself.
    command: Child,
    stdin: Option<ChildStdin>,
    /// Input that the command has not read: the bytes from `sent` on.
    input: Vec<u8>,
    sent: usize,
    stdout: Option<ChildStdout>,
    lines: Lines,
    stderr: Option<ChildStderr>,
    errors: Lines,
    last_words: String,
    patience: Duration,
}

impl Process {
    /// Starts `command` with `sh -c`. `patience` is how long it may take to read or to answer.
    ///
    /// # Errors
    /// When the shell cannot be started.
    pub fn start(command: &str, patience: Duration) -> io::Result<Self> {
        let group = Group::start()?;
        let mut command = Command::new("sh")
            .args(["-c", command])
            .process_group(group.number())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let stdin = command.stdin.take();
        let stdout = command.stdout.take();
        let stderr = command.stderr.take();
        let process = Process {
            group,
            command,
            stdin,
            input: Vec::new(),
            sent: 0,
            stdout,
            lines: Lines::default(),
            stderr,
            errors: Lines::default(),
            last_words: String::new(),
            patience,
        };
        if let (Some(stdin), Some(stdout), Some(stderr)) =
            (&process.stdin, &process.stdout, &process.stderr)
        {
            ioctl_fionbio(stdin, true)?;
            ioctl_fionbio(stdout, true)?;
            ioctl_fionbio(stderr, true)?;
        }
        Ok(process)
    }

    /// Whether the command has closed its input.
    pub fn reads_no_more(&self) -> bool {
        self.stdin.is_none()
    }

    /// Gives a line to the command. `take` gets each line that the command writes meanwhile, and
    /// returns whether it was an answer.
    pub fn push(&mut self, line: &[u8], take: &mut dyn FnMut(&str) -> bool) -> Progress {
        if self.stdin.is_none() {
            return Progress::Done; // it reads no more, and may still answer
        }
        self.input.extend_from_slice(line);
        if self.input.len() - self.sent < WAITING {
            return Progress::Done;
        }
        self.wait(take, |process| {
            process.input.len() - process.sent < WAITING / 2
        })
    }

    /// Waits for the next answer: until `take` has returned `true`.
    pub fn answer(&mut self, take: &mut dyn FnMut(&str) -> bool) -> Progress {
        loop {
            let mut is_answered = false;
            let step = self.wait_once(&mut |line| {
                let is_answer = take(line);
                is_answered |= is_answer;
                is_answer
            });
            match step {
                _ if is_answered => return Progress::Done,
                Some(progress) => return progress,
                None => {}
            }
        }
    }

    /// Closes the input of the command, and lets it run until it ends by itself or is late.
    pub fn close(&mut self) {
        let mut ignore = |_: &str| false;
        if self.wait(&mut ignore, |process| process.sent == process.input.len()) == Progress::Done {
            self.stdin = None;
            self.wait(&mut ignore, |_| false);
        }
    }

    /// Ends the command and all its children; returns how it ended, and the last line of its
    /// standard error.
    pub fn end(mut self) -> (io::Result<ExitStatus>, String) {
        self.stdin = None;
        let ended = self.kill();
        // What was in the pipe when it ended.
        self.read_errors();
        let rest = self.errors.rest();
        if let Some(rest) = rest {
            keep_last(&mut self.last_words, &rest);
        }
        (ended, std::mem::take(&mut self.last_words))
    }

    /// Kills the command and all its children, and returns how the command ended: by itself, if it
    /// had done so already.
    fn kill(&mut self) -> io::Result<ExitStatus> {
        self.group.signal(Signal::KILL);
        self.command.wait()
    }

    /// Waits until `is_done`.
    fn wait(
        &mut self,
        take: &mut dyn FnMut(&str) -> bool,
        is_done: impl Fn(&Process) -> bool,
    ) -> Progress {
        loop {
            if is_done(self) {
                return Progress::Done;
            }
            if let Some(progress) = self.wait_once(take) {
                return progress;
            }
        }
    }

    /// Waits until the command reads or answers; `None` when it has done so.
    fn wait_once(&mut self, take: &mut dyn FnMut(&str) -> bool) -> Option<Progress> {
        let begin = Instant::now();
        loop {
            let left = self.patience.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return Some(Progress::Late);
            }
            let mut has_moved = false;
            match self.poll(left.min(LOOK)) {
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return Some(Progress::Closed),
                Ok([false, false, false]) if matches!(self.command.try_wait(), Ok(Some(_))) => {
                    return Some(Progress::Closed);
                }
                Ok([may_write, may_read, may_read_errors]) => {
                    if may_read_errors {
                        self.read_errors();
                    }
                    if may_write {
                        has_moved |= self.write();
                    }
                    if may_read && !self.read(&mut |line| has_moved |= take(line)) {
                        // Its last words come as it ends.
                        self.stdout = None;
                        self.wait_for_errors();
                        return Some(Progress::Closed);
                    }
                }
            }
            if has_moved {
                return None;
            }
        }
    }

    /// Waits until one of the three files is ready: input, output, standard error.
    fn poll(&self, left: Duration) -> rustix::io::Result<[bool; 3]> {
        let Some(stdout) = &self.stdout else {
            return Err(rustix::io::Errno::PIPE);
        };
        let mut files = vec![PollFd::new(stdout, PollFlags::IN)];
        if let Some(stderr) = &self.stderr {
            files.push(PollFd::new(stderr, PollFlags::IN));
        }
        let has_input = self.sent < self.input.len();
        if let Some(stdin) = self.stdin.as_ref().filter(|_| has_input) {
            files.push(PollFd::new(stdin, PollFlags::OUT));
        }
        poll(&mut files, Some(&timespec(left)))?;
        let is_ready = |at: Option<usize>| {
            at.and_then(|at| files.get(at))
                .is_some_and(|f| !f.revents().is_empty())
        };
        let stderr = self.stderr.is_some().then_some(1);
        let stdin =
            (self.stdin.is_some() && has_input).then_some(1 + usize::from(self.stderr.is_some()));
        Ok([is_ready(stdin), is_ready(Some(0)), is_ready(stderr)])
    }

    /// Writes input until the pipe is full; returns whether the command read some, or reads no
    /// more.
    fn write(&mut self) -> bool {
        let Some(stdin) = &mut self.stdin else {
            return false;
        };
        let before = self.sent;
        while self.sent < self.input.len() {
            match stdin.write(&self.input[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => {
                    // It closed its input, or ended. What it wrote before that counts, so its
                    // output is read on.
                    self.stdin = None;
                    break;
                }
            }
        }
        let has_moved = self.sent > before || self.stdin.is_none();
        if self.stdin.is_none() || self.sent == self.input.len() {
            self.input.clear();
            self.sent = 0;
        } else if self.sent >= WAITING {
            self.input.drain(..self.sent);
            self.sent = 0;
        }
        has_moved
    }

    /// Reads output as far as it is there, but not without end; `false` at its end.
    fn read(&mut self, take: &mut dyn FnMut(&str)) -> bool {
        let Some(stdout) = &mut self.stdout else {
            return false;
        };
        for _ in 0..BLOCKS {
            match self.lines.read(stdout, take) {
                Block::Read => {}
                Block::Later => return true,
                Block::End => return false,
            }
        }
        true
    }

    /// Reads standard error as far as it is there.
    fn read_errors(&mut self) {
        let (words, errors) = (&mut self.last_words, &mut self.errors);
        for _ in 0..BLOCKS {
            let Some(stderr) = &mut self.stderr else {
                return;
            };
            match errors.read(stderr, &mut |line| keep_last(words, line)) {
                Block::Read => {}
                Block::Later => return,
                Block::End => self.stderr = None,
            }
        }
    }

    /// Reads standard error to its end, for a second at most: a child of the command may hold it.
    fn wait_for_errors(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(1);
        while let Some(stderr) = &self.stderr {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero()
                || poll(
                    &mut [PollFd::new(stderr, PollFlags::IN)],
                    Some(&timespec(left)),
                )
                .is_err()
            {
                return;
            }
            self.read_errors();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

fn timespec(time: Duration) -> Timespec {
    let longest = Duration::from_secs(1 << 30);
    Timespec::try_from(time.min(longest)).unwrap_or(Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    })
}

fn keep_last(words: &mut String, line: &str) {
    if !line.trim().is_empty() {
        event::cut(line.trim(), LAST_WORDS).clone_into(words);
    }
}

/// The result of reading once.
enum Block {
    Read,
    Later,
    End,
}

/// Cuts bytes into lines.
#[derive(Debug, Default)]
struct Lines {
    /// The line at the end, which is not complete.
    open: Vec<u8>,
    is_too_long: bool,
}

impl Lines {
    fn read(&mut self, from: &mut impl Read, take: &mut dyn FnMut(&str)) -> Block {
        let mut block = [0; 1 << 14];
        match from.read(&mut block) {
            Ok(0) => {
                if let Some(rest) = self.rest() {
                    take(&rest);
                }
                Block::End
            }
            Ok(count) => {
                self.push(&block[..count], take);
                Block::Read
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                Block::Later
            }
            Err(_) => Block::End,
        }
    }

    fn push(&mut self, mut bytes: &[u8], take: &mut dyn FnMut(&str)) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.extend(&bytes[..end]);
            if !self.is_too_long {
                take(&String::from_utf8_lossy(&self.open));
            }
            (self.is_too_long, bytes) = (false, &bytes[end + 1..]);
            self.open.clear();
        }
        self.extend(bytes);
    }

    fn extend(&mut self, bytes: &[u8]) {
        self.is_too_long |= self.open.len() + bytes.len() > LINE;
        if self.is_too_long {
            self.open = Vec::new();
        } else {
            self.open.extend_from_slice(bytes);
        }
    }

    /// The last line, which has no line feed.
    fn rest(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.open);
        (!rest.is_empty() && !self.is_too_long).then(|| String::from_utf8_lossy(&rest).into_owned())
    }
}
