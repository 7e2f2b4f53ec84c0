//! Traces of answers: the span that a client names, and `--otlp-file`, to which each answer that has
//! ended appends a line.
//!
//! The line is derived from the events, in a thread of its own, so that no answer waits for it: from
//! the lines of the session where there is one, else from the events as they pass.

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

/// How many answers wait for a slow disk; the lines of further ones are dropped.
const WAITING: usize = 1024;

/// How long the end of the service waits for a slow disk.
const FLUSH: Duration = Duration::from_secs(1);

/// The context of a client's request: one valid `traceparent`, and the `tracestate` beside it.
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

/// The variables of the environment of a process that works for this span; without one it gets none,
/// whatever this process was started with.
pub(crate) fn variables(
    trace: Option<&TraceContext>,
) -> impl Iterator<Item = (&'static str, Option<String>)> {
    let state = trace.and_then(|trace| trace.state.clone());
    let parent = trace.map(|trace| trace.span.to_string());
    [("TRACEPARENT", parent), ("TRACESTATE", state)].into_iter()
}

/// Lines on their way to the file of `--otlp-file`.
#[derive(Clone, Debug)]
pub(crate) struct TraceFile {
    items: SyncSender<TraceItem>,
    lost: Lost,
}

/// Tells people once that lines are lost, until one is written again.
#[derive(Clone, Debug)]
struct Lost {
    is_told: Arc<AtomicBool>,
    notices: Notices,
    path: PathBuf,
}

#[derive(Debug)]
enum TraceItem {
    Line(Vec<u8>),
    /// The lines of a session that a response consists of.
    Response {
        file: File,
        lines: Range<u64>,
        session: String,
    },
    /// All lines before this one are written.
    Flush(SyncSender<()>),
}

impl TraceFile {
    /// Lines that are appended to the file at `path`, which is there from now on. `has_contents` adds
    /// messages, arguments and results of sessions.
    ///
    /// # Errors
    /// A file that cannot be opened, [`stdio::Failure::Limit`].
    pub(crate) fn open(
        path: &Path,
        has_contents: bool,
        notices: &Notices,
    ) -> anyhow::Result<TraceFile> {
        open(path).map_err(|error| {
            anyhow::anyhow!(
                "--otlp-file {}: {error}, check the path and its permissions",
                path.display()
            )
        })?;
        let lost = Lost {
            is_told: Arc::default(),
            notices: notices.clone(),
            path: path.to_owned(),
        };
        let (items, taken) = sync_channel(WAITING);
        let file = lost.clone();
        stdio::thread(move || {
            for item in taken {
                let written = match item {
                    TraceItem::Line(line) => file.append(&line),
                    TraceItem::Response {
                        file: from,
                        lines,
                        session,
                    } => derived(from, lines, &session, has_contents)
                        .and_then(|line| file.append(&line)),
                    TraceItem::Flush(done) => {
                        // Who asked may have stopped waiting.
                        let _ = done.send(());
                        continue;
                    }
                };
                match written {
                    Ok(()) => file.is_told.store(false, Ordering::Relaxed),
                    Err(error) => file.tell(&error.to_string()),
                }
            }
        })?;
        Ok(TraceFile { items, lost })
    }

    /// A response has ended, and its session, the file at `path`, ends at `end`.
    pub(crate) fn response(&self, path: &Path, id: ResponseId, end: u64) {
        // Opened now: the file may be removed with the answer's last byte.
        match File::open(path) {
            Ok(file) => self.send(TraceItem::Response {
                file,
                lines: id.offset..end,
                session: id.session.to_string(),
            }),
            Err(error) => self.lost.tell(&error.to_string()),
        }
    }

    fn send(&self, item: TraceItem) {
        if self.items.try_send(item).is_err() {
            self.lost.tell("the disk is too slow");
        }
    }

    /// Waits until the lines so far are written, for a moment at most.
    pub(crate) fn flush(&self) {
        let (done, is_done) = sync_channel(1);
        if self.items.try_send(TraceItem::Flush(done)).is_ok() {
            let _ = is_done.recv_timeout(FLUSH);
        }
    }
}

impl Lost {
    fn tell(&self, why: &str) {
        if !self.is_told.swap(true, Ordering::Relaxed) {
            let path = self.path.display();
            let message =
                format!("--otlp-file {path}: {why}; traces are lost until it can be written");
            self.notices.warn("traces_lost", &message);
        }
    }

    /// Appends whole lines, or nothing. The file is opened anew, so that it may be moved away at any
    /// time.
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
                    // Nobody else has written behind the part of a line.
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

/// The trace of these lines of a session.
fn derived(
    mut file: File,
    lines: Range<u64>,
    session: &str,
    has_contents: bool,
) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(lines.start))?;
    let mut trace = begun(session, has_contents);
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

fn begun(session: &str, has_contents: bool) -> TraceView {
    let mut trace = TraceView::new(has_contents);
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

/// The trace of one answer that no session keeps, made of its events as they pass. An answer whose
/// client leaves ends as cancelled.
#[derive(Debug)]
pub(crate) struct AnswerTrace {
    view: TraceView,
    id: String,
    file: TraceFile,
    reason: Option<FinishReason>,
    has_ended: bool,
}

impl AnswerTrace {
    /// The answer `id` to a client of this front begins; the client has named its span, if it has one.
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
        // The line comes with the end of the response.
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
        // Streams of a COMMAND that have names of their own.
        self.view.finish(&mut line);
        self.file.send(TraceItem::Line(line));
    }

    /// The source has no further event.
    pub(crate) fn finish(&mut self) {
        self.end(status_of(self.reason));
    }
}

impl Drop for AnswerTrace {
    fn drop(&mut self) {
        self.end(ResponseStatus::Cancelled);
    }
}
