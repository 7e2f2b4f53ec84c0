//! The output of the service beside its answers: a line of the access log for each request, and
//! notices for people. Each of the two goes through a thread of its own, since no client may wait
//! for a slow reader.

use event::Object;
use hyper::header::HeaderValue;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use std::time::Duration;
use stdio::Failure;

/// How many lines wait for a slow reader; further lines are counted and dropped.
const WAITING: usize = 4096;

/// How long the end of the service waits for a slow reader.
const FLUSH: Duration = Duration::from_millis(200);

/// Where `--access-log` writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LogTarget {
    /// Standard error. Each line there is an event then.
    StandardError,
    /// A file, which is appended to.
    File(PathBuf),
}

impl From<&str> for LogTarget {
    fn from(typed: &str) -> Self {
        if typed == "-" {
            LogTarget::StandardError
        } else {
            LogTarget::File(typed.into())
        }
    }
}

/// How many bytes the header with the notes has, at most.
const NOTES: usize = 2000;

#[derive(Debug)]
enum LogItem {
    Line(Vec<u8>),
    /// All lines before this one are written.
    Flush(SyncSender<()>),
}

/// Lines on their way to a file or to standard error.
#[derive(Clone, Debug)]
pub(crate) struct LogLines {
    lines: SyncSender<LogItem>,
    dropped: Arc<AtomicU64>,
}

impl LogLines {
    /// Lines that are appended to the file at `path`.
    ///
    /// # Errors
    /// A file that cannot be opened, [`Failure::Limit`].
    fn file(path: &Path) -> anyhow::Result<LogLines> {
        let file = OpenOptions::new().append(true).create(true).open(path);
        let file = file.map_err(|e| {
            anyhow::anyhow!(
                "--access-log {}: {e}, check the path and its permissions",
                path.display()
            )
        })?;
        Ok(LogLines::to(file)?)
    }

    fn to(mut out: impl Write + Send + 'static) -> Result<LogLines, Failure> {
        let (lines, taken) = sync_channel(WAITING);
        stdio::thread(move || {
            for item in taken {
                // Errors are ignored: a log that cannot be written must not end the service, and
                // the thread that asked for a flush may have stopped waiting.
                let _ = match item {
                    LogItem::Line(line) => out.write_all(&line).map_err(drop),
                    LogItem::Flush(done) => done.send(()).map_err(drop),
                };
            }
        })?;
        Ok(LogLines {
            lines,
            dropped: Arc::default(),
        })
    }

    /// Appends the line that `make` writes; `make` gets the number of lines that were dropped
    /// before this line.
    pub(crate) fn write(&self, make: impl FnOnce(u64, &mut Vec<u8>)) {
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        let mut line = Vec::with_capacity(256);
        make(dropped, &mut line);
        if self.lines.try_send(LogItem::Line(line)).is_err() {
            self.dropped.fetch_add(dropped + 1, Ordering::Relaxed);
        }
    }

    /// Waits until the lines so far are written, for a moment at most.
    pub(crate) fn flush(&self) {
        let (done, is_done) = sync_channel(1);
        if self.lines.try_send(LogItem::Flush(done)).is_ok() {
            let _ = is_done.recv_timeout(FLUSH);
        }
    }
}

/// Notices for people: lines of text on standard error, or events there.
#[derive(Clone, Debug)]
pub(crate) struct Notices {
    lines: LogLines,
    is_events: bool,
}

/// One notice.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LogLine<'n> {
    /// The service listens: its address, the key that was made for this run, and how clients are
    /// set up.
    Start {
        address: &'n str,
        key: Option<&'n str>,
        text: &'n str,
    },
    /// Something is wrong: a word to match on, a sentence, and the id of the request that the
    /// warning is about.
    Warning {
        code: &'n str,
        message: &'n str,
        request: Option<&'n str>,
    },
    /// A line that the COMMAND of a request wrote to its standard error.
    Command { request: &'n str, text: &'n str },
}

impl Notices {
    /// Writes `notice`.
    pub(crate) fn write(&self, notice: LogLine<'_>) {
        self.lines.write(|_, out| {
            if self.is_events {
                notice.event(out)
            } else {
                notice.text(out)
            }
        });
    }

    /// Waits until the notices so far can be read, for a moment at most.
    pub(crate) fn flush(&self) {
        self.lines.flush();
    }

    /// Writes a warning that is about no request.
    pub(crate) fn warn(&self, code: &str, message: &str) {
        self.write(LogLine::Warning {
            code,
            message,
            request: None,
        });
    }
}

impl LogLine<'_> {
    /// An event on one line.
    fn event(self, out: &mut Vec<u8>) {
        let mut line = Object::open(out);
        match self {
            LogLine::Start { address, key, .. } => {
                line.str("type", "start")
                    .str("source", SOURCE)
                    .str("address", address)
                    .maybe_str("key", key);
            }
            LogLine::Warning {
                code,
                message,
                request,
            } => {
                line.str("type", "warning")
                    .str("source", SOURCE)
                    .str("code", code)
                    .str("message", message);
                line.maybe_str("id", request);
            }
            LogLine::Command { request, text } => {
                line.str("type", "stderr")
                    .str("source", "command")
                    .str("id", request)
                    .str("text", text);
            }
        }
        line.close();
        out.push(b'\n');
    }

    /// Lines for people, in which no control character is raw.
    fn text(self, out: &mut Vec<u8>) {
        let (text, request) = match self {
            LogLine::Start { text, .. } => return out.extend_from_slice(text.as_bytes()),
            LogLine::Warning {
                message, request, ..
            } => (message, request),
            LogLine::Command { request, text } => (text, Some(request)),
        };
        out.extend_from_slice(SOURCE.as_bytes());
        if let Some(request) = request {
            out.extend_from_slice(format!(": request {request}").as_bytes());
        }
        let text = event::escaped(text, |c, out| {
            std::fmt::Write::write_fmt(out, format_args!("\\u{{{:x}}}", u32::from(c)))
        });
        out.extend_from_slice(format!(": {text}\n").as_bytes());
    }
}

/// The source of the events.
const SOURCE: &str = "tc-serve";

/// Opens the target of `--log`. Returns the lines of the access log, if there is one, and the
/// notices.
///
/// # Errors
/// A file that cannot be opened, [`Failure::Limit`].
pub(crate) fn open(target: Option<&LogTarget>) -> anyhow::Result<(Option<LogLines>, Notices)> {
    let lines = LogLines::to(std::io::stderr())?;
    let is_events = target == Some(&LogTarget::StandardError);
    let access = match target {
        None => None,
        Some(LogTarget::StandardError) => Some(lines.clone()),
        Some(LogTarget::File(path)) => Some(LogLines::file(path)?),
    };
    Ok((access, Notices { lines, is_events }))
}

/// Reports `error`, which ends the service, as an event on standard error.
pub(crate) fn fail(error: &anyhow::Error) {
    let mut out = Vec::new();
    let mut line = Object::open(&mut out);
    line.str("type", "error")
        .str("source", SOURCE)
        .str("code", "start_failed");
    line.str("message", &format!("{error:#}"))
        .bool("retryable", false);
    line.close();
    out.push(b'\n');
    // A failure to write to standard error is ignored, since it could be reported nowhere else.
    let _ = std::io::stderr().lock().write_all(&out);
}

/// The fields of a line of the access log.
#[derive(Clone, Debug, Default)]
pub(crate) struct AccessLine {
    /// The id of the request.
    pub id: String,
    /// The method of the request.
    pub method: String,
    /// The path of the request, without the query.
    pub path: String,
    /// The API that the client speaks, where the path has one.
    pub front: Option<&'static str>,
    /// The status of the response; 499 where the client left before a response.
    pub status: u16,
    /// The time from the head of the request to the end of the response.
    pub time: Duration,
    /// Bytes of the response's body.
    pub bytes: u64,
    /// Whole calls.
    pub calls: u64,
    /// Warnings about the upstream's answer.
    pub warnings: u64,
    /// The beginning of the hash of the client's key.
    pub key: Option<String>,
    /// The code of the error, if the request failed.
    pub error: Option<String>,
    /// Whether the client left before the end of the answer.
    pub is_cut: bool,
    /// The parts of the request that were left out.
    pub notes: Vec<String>,
    /// What was not sent to the provider, and what part of its answer the client did not get.
    pub answer_notes: Vec<String>,
}

impl AccessLine {
    /// The notes as the value of a header, if there are some.
    pub(crate) fn notes_header(&self) -> Option<HeaderValue> {
        let notes: Vec<&str> = self
            .notes
            .iter()
            .chain(&self.answer_notes)
            .map(String::as_str)
            .collect();
        if notes.is_empty() {
            return None;
        }
        // Names of a request may have any characters.
        let text = notes.join("; ");
        let shown = event::cut(&text, NOTES).chars();
        let shown: String = shown
            .map(|c| if matches!(c, ' '..='~') { c } else { '?' })
            .collect();
        HeaderValue::from_str(&shown).ok()
    }

    /// Writes the line. `dropped`: how many lines before it were dropped.
    pub(crate) fn write(&self, dropped: u64, out: &mut Vec<u8>) {
        let ms = u64::try_from(self.time.as_millis()).unwrap_or(u64::MAX);
        let mut line = Object::open(out);
        line.str("type", "access")
            .str("id", &self.id)
            .str("method", &self.method)
            .str("path", &self.path);
        line.maybe_str("front", self.front);
        line.int("status", self.status)
            .int("ms", ms)
            .int("bytes", self.bytes)
            .int("calls", self.calls);
        if self.warnings > 0 {
            line.int("warnings", self.warnings);
        }
        line.maybe_str("key", self.key.as_deref())
            .maybe_str("error", self.error.as_deref());
        if self.is_cut {
            line.bool("cut", true);
        }
        if !self.notes.is_empty() || !self.answer_notes.is_empty() {
            line.array("notes", |notes| {
                for note in self.notes.iter().chain(&self.answer_notes) {
                    notes.str(note);
                }
            });
        }
        if dropped > 0 {
            line.int("dropped", dropped);
        }
        line.close();
        out.push(b'\n');
    }
}
