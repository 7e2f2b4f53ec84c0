//! The host of a turn in this command: events go to standard output, and a signal or a reader that
//! closes the pipe ends the turn.

use crate::output::Out;
use ::ask::{Host, Note};
use event::Sink;
use event::payload::{Millis, Payload};
use std::future::pending;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as StdStream;
use std::time::Duration;
use stdio::{Failure, StopSignals};
use tokio::io::Interest;
use tokio::net::{UnixStream, unix::pipe};
use tokio::time::Instant;

/// The longest time that events stay in the buffer, and that a closed reader goes unnoticed.
const PULSE: Duration = Duration::from_millis(100);

/// Writes the events of one stream after another. `t` counts from the first bytes of a stream that
/// produced an event.
pub(crate) struct StdoutHost<'o> {
    watch: &'o StopWatch,
    out: &'o Out,
    /// The name of the stream as JSON; `None` if it has no name.
    name: Option<&'o str>,
    begin: Option<Duration>,
    t: Option<String>,
    /// When the current [`PULSE`] started.
    pulse: Option<Instant>,
}

impl<'o> StdoutHost<'o> {
    /// Creates a host; `name` (as JSON) is the name of every stream that follows.
    pub(crate) fn new(watch: &'o StopWatch, out: &'o Out, name: Option<&'o str>) -> StdoutHost<'o> {
        StdoutHost {
            watch,
            out,
            name,
            begin: None,
            t: None,
            pulse: None,
        }
    }
}

impl Host for StdoutHost<'_> {
    /// The number of the signal that stopped the turn.
    type Stop = i32;
    type Failure = Failure;

    fn command(&self) -> &'static str {
        "llm-stream"
    }

    fn set_time(&mut self, at: Option<Duration>, has_started: bool) {
        if !has_started {
            self.begin = at;
        }
        let t = at
            .zip(self.begin)
            .filter(|_| self.has_times())
            .map(|(at, begin)| at.saturating_sub(begin));
        self.t = t.map(|t| Millis::from(t).to_string());
    }

    fn has_times(&self) -> bool {
        !self.out.no_time()
    }

    fn sink(&mut self) -> &mut dyn Sink {
        self
    }

    fn check(&mut self) -> Result<(), Failure> {
        self.out.check()
    }

    async fn flush(&mut self) -> Result<(), Failure> {
        self.out.flush()
    }

    fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = now.saturating_duration_since(*self.pulse.get_or_insert(now)) >= PULSE;
        if is_due {
            self.pulse = Some(now);
        }
        is_due
    }

    async fn stop(&self) -> Result<i32, Failure> {
        self.watch.interrupt().await
    }

    fn stopped(&self, and_reader: bool) -> Option<Result<i32, Failure>> {
        self.watch.seen(and_reader)
    }

    fn note(&self, note: Note<'_>) {
        let messages = self.out.messages();
        match note {
            Note::Important(what) => messages.always(what),
            Note::Detail(what) => messages.verbose(what),
            Note::At(what, time) => messages.at(what, time),
            Note::Request(request) => messages.verbose(messages.line(request)),
        }
    }
}

impl Sink for StdoutHost<'_> {
    fn pass(&mut self) {} // events come from a provider's bytes, not from a line

    fn write(&mut self, choice: u32, event: &Payload<'_>) {
        self.out.write(self.name, choice, self.t.as_deref(), event);
    }
}

/// Watches, inside a runtime, for signals and for a closed reader of standard output.
#[derive(Debug)]
pub(crate) struct StopWatch {
    signals: StopSignals,
    wake: UnixStream,
    /// A handle that is never written to; an error on it means that the reader closed the pipe.
    /// `None` if standard output is a file, which has no reader.
    stdout: Option<pipe::Sender>,
}

impl StopWatch {
    /// Installs the handlers for SIGINT and SIGTERM.
    ///
    /// # Errors
    /// Returns [`Failure::Limit`] if the system has no more file descriptors.
    pub(crate) fn new() -> Result<StopWatch, Failure> {
        let signals = StopSignals::new()?;
        let wake = signals
            .as_fd()
            .try_clone_to_owned()
            .and_then(|fd| UnixStream::from_std(StdStream::from(fd)));
        let wake = wake.map_err(Failure::limit("signals cannot be watched"))?;
        // The unchecked constructor is needed: the check would make standard output non-blocking
        // for every process that shares it.
        let stdout = stdio::stdout()
            .as_fd()
            .try_clone_to_owned()
            .and_then(pipe::Sender::from_owned_fd_unchecked)
            .ok();
        Ok(StopWatch {
            signals,
            wake,
            stdout,
        })
    }

    /// Returns the signals, for reading standard input before the runtime waits for anything.
    pub(crate) fn signals(&self) -> &StopSignals {
        &self.signals
    }

    /// Returns the signal that arrived; `None` if no signal arrived.
    pub(crate) fn signal(&self) -> Option<i32> {
        self.signals.seen()
    }

    /// Waits for a signal. After the first signal, later calls return it immediately.
    ///
    /// # Errors
    /// Returns [`Failure::Gone`] if the reader closes the pipe first.
    pub(crate) async fn interrupt(&self) -> Result<i32, Failure> {
        tokio::select! {
            signal = self.signalled() => Ok(signal),
            () = self.gone() => Err(Failure::Gone),
        }
    }

    /// Returns the stop that has already happened, for code that never waits. The reader is checked
    /// only if `and_reader` is true, because the check is a system call.
    pub(crate) fn seen(&self, and_reader: bool) -> Option<Result<i32, Failure>> {
        let is_gone = || and_reader && stdio::reader_gone(Some(Duration::ZERO));
        let signal = self.signal().map(Ok);
        signal.or_else(|| is_gone().then_some(Err(Failure::Gone)))
    }

    async fn signalled(&self) -> i32 {
        loop {
            if let Some(signal) = self.signals.seen() {
                return signal;
            }
            // An error means that the runtime is shutting down.
            if self.wake.readable().await.is_err() {
                pending::<()>().await;
            }
        }
    }

    async fn gone(&self) {
        match &self.stdout {
            Some(stdout) if stdout.ready(Interest::ERROR).await.is_ok() => {}
            _ => pending().await,
        }
    }
}

/// Creates the single-threaded runtime of this command.
///
/// # Errors
/// Returns [`Failure::Limit`] if the system has no more file descriptors.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    // tokio panics if no file descriptors are left for its signal handling.
    stdio::check_descriptors(8)?;
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::limit("the runtime cannot be started"))
}
