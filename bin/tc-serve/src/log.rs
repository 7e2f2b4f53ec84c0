//! The service's logs: one access log line per request, and notices for users. Each is written by a
//! separate thread, so that a slow reader of the logs never delays a client.

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

/// How many lines are buffered for a slow reader. Further lines are counted and dropped.
const WAITING: usize = 4096;

/// How long shutdown waits for a slow reader.
const FLUSH: Duration = Duration::from_millis(200);

/// The target of `--access-log`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LogTarget {
    /// Standard error. Every line there is then an event.
    StandardError,
    /// A file, to which lines are appended.
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

/// The maximum length of the notes header in bytes.
const NOTES: usize = 2000;

#[derive(Debug)]
enum LogItem {
    Line(Vec<u8>),
    /// Signals that all earlier lines are written.
    Flush(SyncSender<()>),
}

/// Lines on their way to a file or to standard error.
#[derive(Clone, Debug)]
pub(crate) struct LogLines {
    lines: SyncSender<LogItem>,
    dropped: Arc<AtomicU64>,
}

impl LogLines {
    /// Opens the file at `path` for appending lines.
    ///
    /// # Errors
    /// If the file cannot be opened, [`Failure::Limit`].
    fn file(path: &Path) -> anyhow::Result<LogLines> {
        let file = OpenOptions::new().append(true).create(true).open(path);
        let file = file.map_err(|error| {
            let error = stdio::unreadable(path, &error);
            anyhow::anyhow!("--access-log {error}")
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

    /// Appends the line that `make` writes. `make` receives the number of lines dropped before it.
    pub(crate) fn write(&self, make: impl FnOnce(u64, &mut Vec<u8>)) {
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        let mut line = Vec::with_capacity(256);
        make(dropped, &mut line);
        if self.lines.try_send(LogItem::Line(line)).is_err() {
            self.dropped.fetch_add(dropped + 1, Ordering::Relaxed);
        }
    }

    /// Waits briefly until all lines so far are written.
    pub(crate) fn flush(&self) {
        let (done, is_done) = sync_channel(1);
        if self.lines.try_send(LogItem::Flush(done)).is_ok() {
            let _ = is_done.recv_timeout(FLUSH);
        }
    }
}

/// Notices for users on standard error, as text or as events.
#[derive(Clone, Debug)]
pub(crate) struct Notices {
    lines: LogLines,
    is_events: bool,
}

/// One notice.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LogLine<'n> {
    /// The service is listening at `address`. The notice includes the key generated for this run,
    /// and how to set up clients.
    Start {
        address: &'n str,
        key: Option<&'n str>,
        text: &'n str,
    },
    /// A warning: a code to match on, a sentence, and the id of the request that the warning is
    /// about.
    Warning {
        code: &'n str,
        message: &'n str,
        request: Option<&'n str>,
    },
    /// A line that a request's COMMAND wrote to standard error.
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

    /// Waits briefly until all notices so far are written.
    pub(crate) fn flush(&self) {
        self.lines.flush();
    }

    /// Writes a warning that does not concern a particular request.
    pub(crate) fn warn(&self, code: &str, message: &str) {
        self.write(LogLine::Warning {
            code,
            message,
            request: None,
        });
    }
}

impl LogLine<'_> {
    /// Writes the notice as an event line.
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

    /// Writes the notice as text with control characters escaped.
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

/// The `source` of the events.
const SOURCE: &str = "tc-serve";

/// Opens `target`. Returns the access log, if there is one, and the notices.
///
/// # Errors
/// If the file cannot be opened, [`Failure::Limit`].
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

/// Reports the fatal `error` as an event on standard error.
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
    // A failure to write to standard error is ignored, since there is nowhere else to report it.
    let _ = std::io::stderr().lock().write_all(&out);
}

/// The fields of an access log line.
#[derive(Clone, Debug, Default)]
pub(crate) struct AccessLine {
    /// The id of the request.
    pub id: String,
    /// The method of the request.
    pub method: String,
    /// The path of the request, without the query.
    pub path: String,
    /// The protocol that the client speaks; `None` if the path has none.
    pub front: Option<&'static str>,
    /// The status of the response; 499 if the client left before the response.
    pub status: u16,
    /// The time from the request's head to the end of the response.
    pub time: Duration,
    /// The number of bytes in the response's body.
    pub bytes: u64,
    /// The number of complete calls.
    pub calls: u64,
    /// The number of warnings about the upstream's response.
    pub warnings: u64,
    /// The start of the hash of the client's key.
    pub key: Option<String>,
    /// The code of the error; `None` if the request succeeded.
    pub error: Option<String>,
    /// Whether the client left before the end of the response.
    pub is_cut: bool,
    /// The parts of the request that were dropped.
    pub notes: Vec<String>,
    /// What was not sent to the provider, and which parts of its response the client did not
    /// receive.
    pub answer_notes: Vec<String>,
}

impl AccessLine {
    /// Returns the notes as a header value, or `None` if there are none.
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
        // Names in a request may contain any characters.
        let text = notes.join("; ");
        let shown = event::cut(&text, NOTES).chars();
        let shown: String = shown
            .map(|c| if matches!(c, ' '..='~') { c } else { '?' })
            .collect();
        HeaderValue::from_str(&shown).ok()
    }

    /// Writes the line. `dropped` is the number of lines dropped before it.
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
