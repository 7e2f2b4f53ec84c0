//! A child process of a checker. Threads write its input and read its output, so that neither side
//! blocks the other.

use group::ProcessGroup;
use rustix::process::Signal;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum length of a line in bytes; longer lines are ignored.
const LINE: u64 = 1 << 20;
/// Maximum input in bytes that is buffered before this process waits for the command to read.
const WAITING: usize = 1 << 16;
/// How often a silent command is looked at: where a child of it holds its output open, nothing else
/// shows that it has ended.
const LOOK: Duration = Duration::from_millis(50);
/// Maximum number of buffered output lines.
const LINES: usize = 1 << 10;
/// Maximum bytes kept of the last line of standard error.
const LAST_WORDS: usize = 300;

/// The result of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitProgress {
    /// The awaited condition is met.
    Done,
    /// The command closed its output, so no further answers can arrive.
    Closed,
    /// The command neither read nor answered within its timeout.
    Late,
}

/// A message from one of the threads.
enum CheckerReport {
    /// The command wrote a line.
    Line(String),
    /// The command closed its output.
    End,
    /// This many bytes of input were written, or dropped because the command closed its input.
    Written(usize),
}

/// A running command.
#[derive(Debug)]
pub(super) struct CheckerProcess {
    group: ProcessGroup,
    /// The command itself.
    command: Child,
    /// Input that was not sent to the writer thread yet.
    input: Vec<u8>,
    /// The channel to the writer thread; `None` once the input is to be closed.
    writer: Option<Sender<Vec<u8>>>,
    /// The number of bytes that the writer thread has received but not written.
    unwritten: usize,
    reads_no_more: Arc<AtomicBool>,
    reports: Receiver<CheckerReport>,
    last_words: Arc<Mutex<String>>,
    /// A channel that is closed when standard error has been read to its end.
    errors: Receiver<()>,
    patience: Duration,
}

impl CheckerProcess {
    /// Starts `command` with `sh -c`. `patience` is how long it may take to read or to answer.
    ///
    /// # Errors
    /// Fails if the shell or a thread cannot be started.
    pub(super) fn start(command: &str, patience: Duration) -> io::Result<Self> {
        let group = ProcessGroup::start()?;
        let mut command = Command::new("sh")
            .args(["-c", command])
            .process_group(group.number())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (report, reports) = sync_channel(LINES);
        let (writer, chunks) = channel();
        let (end_of_errors, errors) = channel::<()>();
        let reads_no_more = Arc::new(AtomicBool::new(false));
        let last_words = Arc::new(Mutex::new(String::new()));
        if let Some(stdin) = command.stdin.take() {
            let report = report.clone();
            let is_closed = Arc::clone(&reads_no_more);
            let write = move || write_input(stdin, &chunks, &report, &is_closed);
            thread::Builder::new().spawn(write)?;
        }
        if let Some(stdout) = command.stdout.take() {
            thread::Builder::new().spawn(move || {
                each_line(stdout, |line| {
                    report.send(CheckerReport::Line(line)).is_ok()
                });
                // Fails if no receiver is left.
                let _ = report.send(CheckerReport::End);
            })?;
        }
        if let Some(stderr) = command.stderr.take() {
            let words = Arc::clone(&last_words);
            thread::Builder::new().spawn(move || {
                let _end = end_of_errors;
                each_line(stderr, |line| {
                    if !line.trim().is_empty() {
                        let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
                        event::cut(line.trim(), LAST_WORDS).clone_into(&mut words);
                    }
                    true
                });
            })?;
        }
        Ok(CheckerProcess {
            group,
            command,
            input: Vec::new(),
            writer: Some(writer),
            unwritten: 0,
            reads_no_more,
            reports,
            last_words,
            errors,
            patience,
        })
    }

    /// Whether the command has closed its input.
    pub(super) fn reads_no_more(&self) -> bool {
        self.reads_no_more.load(Ordering::Relaxed)
    }

    /// Gives a line to the command. `take` gets each line that the command writes meanwhile, and
    /// returns whether it was an answer.
    pub(super) fn push(&mut self, line: &[u8], take: &mut dyn FnMut(&str) -> bool) -> WaitProgress {
        self.input.extend_from_slice(line);
        if self.input.len() < WAITING / 2 {
            return WaitProgress::Done;
        }
        self.send();
        self.wait(take, |process, _| process.unwritten < WAITING)
    }

    /// Waits for the next answer: until `take` has returned `true`.
    pub(super) fn answer(&mut self, take: &mut dyn FnMut(&str) -> bool) -> WaitProgress {
        self.send();
        self.wait(take, |_, is_answered| is_answered)
    }

    /// Closes the input of the command, and lets it run until it ends by itself or is late.
    pub(super) fn close(&mut self) {
        self.send();
        self.writer = None;
        self.wait(&mut |_| false, |_, _| false);
    }

    /// Ends the command and all its children; returns how it ended, and the last line of its
    /// standard error.
    pub(super) fn end(mut self) -> (io::Result<ExitStatus>, String) {
        self.group.signal(Signal::KILL);
        let ended = self.command.wait();
        self.wait_for_errors();
        let mut words = self
            .last_words
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        (ended, std::mem::take(&mut words))
    }

    /// Sends the buffered input to the writer thread.
    fn send(&mut self) {
        let input = std::mem::take(&mut self.input);
        let length = input.len();
        if let Some(writer) = self.writer.as_ref().filter(|_| length > 0)
            && writer.send(input).is_ok()
        {
            self.unwritten += length;
        }
    }

    /// Waits until `is_done`, which gets whether `take` took an answer. The command is late where
    /// it neither reads nor answers for as long as it may take.
    fn wait(
        &mut self,
        take: &mut dyn FnMut(&str) -> bool,
        is_done: impl Fn(&CheckerProcess, bool) -> bool,
    ) -> WaitProgress {
        let mut begin = Instant::now();
        let mut is_answered = false;
        loop {
            if is_done(self, is_answered) {
                return WaitProgress::Done;
            }
            let left = self.patience.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return WaitProgress::Late;
            }
            let has_moved = match self.reports.recv_timeout(left.min(LOOK)) {
                Ok(CheckerReport::Line(line)) => {
                    let is_answer = take(&line);
                    is_answered |= is_answer;
                    is_answer
                }
                Ok(CheckerReport::Written(bytes)) => {
                    self.unwritten -= bytes;
                    true
                }
                Err(RecvTimeoutError::Timeout)
                    if !matches!(self.command.try_wait(), Ok(Some(_))) =>
                {
                    false
                }
                Ok(CheckerReport::End) | Err(_) => {
                    // The last lines arrive as the command ends.
                    self.wait_for_errors();
                    return WaitProgress::Closed;
                }
            };
            if has_moved {
                begin = Instant::now();
            }
        }
    }

    /// Waits until standard error is read to its end, for a second at most: a child of the command
    /// may hold it open.
    fn wait_for_errors(&self) {
        // An error means that the channel was closed, or that the timeout expired.
        let _ = self.errors.recv_timeout(Duration::from_secs(1));
    }
}

/// Writes the chunks to the command's input until the sender is closed, and reports the length of
/// each. Once the command has closed its input, the chunks are dropped: its answers still count.
fn write_input(
    mut stdin: impl Write,
    chunks: &Receiver<Vec<u8>>,
    report: &SyncSender<CheckerReport>,
    reads_no_more: &AtomicBool,
) {
    for chunk in chunks {
        if !reads_no_more.load(Ordering::Relaxed) && stdin.write_all(&chunk).is_err() {
            reads_no_more.store(true, Ordering::Relaxed);
        }
        if report.send(CheckerReport::Written(chunk.len())).is_err() {
            return;
        }
    }
}

/// Passes each line to `take` until it returns `false`.
fn each_line(from: impl Read, mut take: impl FnMut(String) -> bool) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    let mut is_rest = false;
    loop {
        line.clear();
        match from.by_ref().take(LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let is_whole = line.ends_with(b"\n");
        let is_too_long = !is_whole && line.len() as u64 == LINE;
        if !is_rest && !is_too_long {
            let text = String::from_utf8_lossy(&line);
            if !take(text.trim_end_matches(['\n', '\r']).to_owned()) {
                return;
            }
        }
        is_rest = !is_whole && (is_rest || is_too_long);
    }
}
