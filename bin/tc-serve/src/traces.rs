//! Traces of answers: reads the span that a client names, and appends a line to `--otlp-file` when an
//! answer ends.
//!
//! The line is derived from the lines of the session, or without a session from the events as they
//! pass. A thread of its own writes it, so that no answer waits for the disk.

use crate::log::Notices;
use crate::sessions::{ResponseId, status_of};
use event::payload::{FinishReason, Response, ResponseEnd, ResponseStatus, Session, StreamEnd};
use event::{Event, Kind, Payload, Scanner, View};
use hyper::HeaderMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;
use trace::{SpanContext, TRACEPARENT, TRACESTATE, TraceContext};
use view::TraceView;

/// How many traces are queued for a slow disk. Further ones are dropped.
const WAITING: usize = 1024;

/// How long the service waits for a slow disk before it ends.
const FLUSH: Duration = Duration::from_secs(1);

/// The trace context of a client's request, which has exactly one `traceparent`.
pub(crate) fn client_trace(headers: &HeaderMap) -> Option<TraceContext> {
    let mut parents = headers.get_all(TRACEPARENT).iter();
    let parent = parents.next().filter(|_| parents.next().is_none())?;
    let states = headers.get_all(TRACESTATE).iter();
    let states: Vec<&str> = states.filter_map(|state| state.to_str().ok()).collect();
    TraceContext::of(parent.to_str().ok()?, Some(&states.join(",")))
}

/// The span of the answer `id` to a client's request.
pub(crate) fn answer_trace(id: &str, client: Option<&TraceContext>) -> TraceContext {
    TraceContext {
        span: view::response_span(id, client.map(|client| client.span)),
        state: client.and_then(|client| client.state.clone()),
    }
}

/// The queue of the thread that writes `--otlp-file`.
#[derive(Clone, Debug)]
pub(crate) struct TraceFile {
    items: SyncSender<TraceItem>,
    target: TraceTarget,
}

/// Appends to `--otlp-file`. After a failure it warns once, and again only after a line was written.
#[derive(Clone, Debug)]
struct TraceTarget {
    is_reported: Arc<AtomicBool>,
    notices: Notices,
    path: PathBuf,
}

#[derive(Debug)]
enum TraceItem {
    Line(Vec<u8>),
    /// The lines of a response in the file of its session.
    Response {
        file: File,
        lines: Range<u64>,
        session: String,
    },
    /// Reports that all earlier items are written.
    Flush(SyncSender<()>),
}

impl TraceFile {
    /// Creates the file at `path` if it does not exist, and starts the thread that appends to it.
    ///
    /// # Errors
    /// A file that cannot be opened, [`stdio::Failure::Limit`].
    pub(crate) fn open(path: &Path, notices: &Notices) -> anyhow::Result<TraceFile> {
        open(path).map_err(|error| {
            let error = stdio::unreadable(path, &error);
            anyhow::anyhow!("--otlp-file {error}")
        })?;
        let target = TraceTarget {
            is_reported: Arc::default(),
            notices: notices.clone(),
            path: path.to_owned(),
        };
        let (items, taken) = sync_channel(WAITING);
        let file = target.clone();
        stdio::thread(move || {
            for item in taken {
                let written = match item {
                    TraceItem::Line(line) => file.append(&line),
                    TraceItem::Response {
                        file: from,
                        lines,
                        session,
                    } => derived(from, lines, &session).and_then(|line| file.append(&line)),
                    TraceItem::Flush(done) => {
                        // `flush` may have timed out.
                        let _ = done.send(());
                        continue;
                    }
                };
                match written {
                    Ok(()) => file.is_reported.store(false, Ordering::Relaxed),
                    Err(error) => file.report(&error.to_string()),
                }
            }
        })?;
        Ok(TraceFile { items, target })
    }

    /// Writes the trace of a response that has ended, whose last line in the file of its session, at
    /// `path`, ends at `end`.
    pub(crate) fn response(&self, path: &Path, id: ResponseId, end: u64) {
        // The file is opened at once, since it may be removed after the last byte of the answer.
        match File::open(path) {
            Ok(file) => self.send(TraceItem::Response {
                file,
                lines: id.offset..end,
                session: id.session.to_string(),
            }),
            Err(error) => self.target.report(&error.to_string()),
        }
    }

    fn send(&self, item: TraceItem) {
        if self.items.try_send(item).is_err() {
            self.target.report("the disk is too slow");
        }
    }

    /// Waits until all earlier traces are written, or [`FLUSH`] has passed.
    pub(crate) fn flush(&self) {
        let (done, is_done) = sync_channel(1);
        if self.items.try_send(TraceItem::Flush(done)).is_ok() {
            let _ = is_done.recv_timeout(FLUSH);
        }
    }
}

impl TraceTarget {
    fn report(&self, why: &str) {
        if !self.is_reported.swap(true, Ordering::Relaxed) {
            let path = self.path.display();
            let message =
                format!("--otlp-file {path}: {why}; traces are dropped until it can be written");
            self.notices.warn("traces_lost", &message);
        }
    }

    /// Appends whole lines, or nothing. The file is opened for each call, so that it can be rotated at
    /// any time.
    fn append(&self, lines: &[u8]) -> io::Result<()> {
        let mut file = open(&self.path)?;
        let before = file.metadata()?.len();
        let mut left = lines;
        while !left.is_empty() {
            match file.write(left) {
                Ok(written @ 1..) => left = &left[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                failed => {
                    let written = (lines.len() - left.len()) as u64;
                    // Only if no other process has written after the incomplete line.
                    if written > 0 && file.metadata()?.len() == before + written {
                        file.set_len(before)?;
                    }
                    return failed.and(Err(io::ErrorKind::WriteZero.into()));
                }
            }
        }
        Ok(())
    }
}

/// Opens the file for appending; a new one is for this user alone.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600).open(path)
}

/// Derives a trace from these lines of a session.
fn derived(mut file: File, lines: Range<u64>, session: &str) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(lines.start))?;
    let mut trace = begun(session);
    let mut out = Vec::new();
    let mut scanner = Scanner::default();
    store::lines(file.take(lines.end - lines.start), |line| {
        if let Ok(event) = scanner.read(line) {
            trace.push(&event, &mut out);
        }
    })?;
    trace.finish(&mut out);
    Ok(out)
}

fn begun(session: &str) -> TraceView {
    let mut trace = TraceView::new(false);
    let begin = Session {
        id: session.into(),
        ..Session::default()
    };
    push(&mut trace, &begin.into(), &mut Vec::new());
    trace
}

fn push(trace: &mut TraceView, payload: &Payload<'_>, out: &mut Vec<u8>) {
    trace.push(&Event::of(payload, None, 0, None), out);
}

/// The trace of an answer without a session, derived from its events as they pass. If the client
/// disconnects, the answer ends as cancelled.
#[derive(Debug)]
pub(crate) struct AnswerTrace {
    view: TraceView,
    id: String,
    file: TraceFile,
    reason: Option<FinishReason>,
    has_ended: bool,
}

impl AnswerTrace {
    /// Begins the trace of the answer `id`. `client` is the span that the client has named.
    pub(crate) fn new(
        file: &TraceFile,
        id: &str,
        front: &str,
        client: Option<SpanContext>,
    ) -> AnswerTrace {
        let mut view = TraceView::new(false);
        let client = client.map(|span| span.to_string());
        let response = Response {
            id: id.into(),
            front: front.into(),
            timestamp: Some(store::now()),
            traceparent: client.as_deref().map(Into::into),
            ..Response::default()
        };
        push(&mut view, &response.into(), &mut Vec::new());
        AnswerTrace {
            view,
            id: id.to_owned(),
            file: file.clone(),
            reason: None,
            has_ended: false,
        }
    }

    /// Takes the next event.
    pub(crate) fn push(&mut self, event: &Event<'_>) {
        if event.kind() == Kind::StreamEnd {
            self.reason = Some(StreamEnd::read(event).finish_reason);
        }
        // The view writes the line at the end of the response.
        self.view.push(event, &mut Vec::new());
    }

    /// The answer has ended.
    pub(crate) fn end(&mut self, status: ResponseStatus) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        let end = ResponseEnd {
            id: (&self.id).into(),
            status: status.name().into(),
            timestamp: Some(store::now()),
            ..ResponseEnd::default()
        };
        let mut line = Vec::new();
        push(&mut self.view, &end.into(), &mut line);
        // Named streams of a COMMAND are still open.
        self.view.finish(&mut line);
        self.file.send(TraceItem::Line(line));
    }

    /// Ends the trace after the last event.
    pub(crate) fn finish(&mut self) {
        self.end(status_of(self.reason));
    }
}

impl Drop for AnswerTrace {
    fn drop(&mut self) {
        self.end(ResponseStatus::Cancelled);
    }
}
