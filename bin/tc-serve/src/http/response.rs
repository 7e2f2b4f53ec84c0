//! Responses, their bodies, and refusals. While a response streams, its body drives the source of
//! its events: dropping the body ends the source.

use super::sessions::FollowBody;
use crate::budget::{FULL_MS, NoRoom, Share};
use crate::front::AnyFront;
use crate::keys::KEY_REMOVED;
use crate::life::ConnectionPhase;
use crate::log::{AccessLine, LogLines};
use crate::panics::{self, Panicked, caught_now};
use crate::pipe::{JSON, Pipe};
use crate::places::AnswerSlot;
use crate::woken::WokenWork;
use api::{FailedAnswer, Front};
use client::{Error, LazyTimer, PieceContent};
use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{ALLOW, CONNECTION, HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, Response, StatusCode};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Instant;

/// The body of a response.
pub(crate) struct ResponseBody {
    content: Content,
    exchange: Option<RequestRecord>,
    /// Becomes ready when the client's key is removed.
    removed: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

/// The content of a body.
pub(crate) enum Content {
    /// Bytes that are all available.
    Whole(Bytes),
    /// A response in progress.
    Stream(Box<Answering>),
    /// Bytes forwarded unchanged from the provider.
    Passed(PassedBody),
    /// Events read from sessions.
    Follow(FollowBody),
    /// Nothing: the connection has taken the body, and sends it without hyper.
    Elsewhere,
    /// No more bytes.
    Ended,
}

/// Bytes and their share of the memory budget, kept until the last byte is sent.
pub(super) struct KeptBytes {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The share of the memory budget.
    pub _share: Share,
}

impl AsRef<[u8]> for KeptBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// One request and its response, as needed by the connection and the access log. Both are updated
/// when the record is dropped.
pub(crate) struct RequestRecord {
    phase: Rc<ConnectionPhase>,
    log: Option<LogLines>,
    /// The line for the access log.
    pub line: AccessLine,
    begun: Instant,
    has_ended: bool,
}

impl RequestRecord {
    /// Creates the record of a request that just arrived.
    pub(crate) fn new(
        phase: Rc<ConnectionPhase>,
        log: Option<LogLines>,
        line: AccessLine,
    ) -> RequestRecord {
        phase.begin_request();
        RequestRecord {
            phase,
            log,
            line,
            begun: Instant::now(),
            has_ended: false,
        }
    }

    /// Records that the whole request has arrived, and that the client waits for its response.
    pub(crate) fn begin_answer(&self) {
        self.phase.begin_answer();
    }
}

impl Drop for RequestRecord {
    fn drop(&mut self) {
        self.phase.end_request();
        if let Some(log) = &self.log {
            self.line.time = self.begun.elapsed();
            self.line.is_cut = !self.has_ended;
            log.write(|dropped, out| self.line.write(dropped, out));
        }
    }
}

impl ResponseBody {
    /// Creates a body with this content.
    pub(crate) fn new(content: Content) -> ResponseBody {
        ResponseBody {
            content,
            exchange: None,
            removed: None,
        }
    }

    /// Whether the body follows sessions, and so may continue for hours.
    pub(crate) fn is_long(&self) -> bool {
        matches!(&self.content, Content::Follow(body) if body.length.is_none())
    }

    /// Takes the body for the connection, which sends it without hyper. An empty body that never
    /// ends remains.
    pub(crate) fn take(&mut self) -> ResponseBody {
        std::mem::replace(self, ResponseBody::new(Content::Elsewhere))
    }

    /// Keeps the record until this body has ended.
    pub(crate) fn carry(&mut self, exchange: RequestRecord) {
        self.exchange = Some(exchange);
    }

    /// Ends the body when `removed` becomes ready.
    pub(crate) fn end_with(&mut self, removed: impl Future<Output = ()> + 'static) {
        if !self.is_end_stream() && !matches!(self.content, Content::Whole(_)) {
            self.removed = Some(Box::pin(removed));
        }
    }

    /// Breaks the connection, so that the client does not mistake a partial response for a complete
    /// one.
    fn fail(&mut self, failure: FailedAnswer) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
        if let Some(exchange) = &mut self.exchange {
            exchange.line.error = Some(failure.code);
            exchange.has_ended = true;
        }
        self.content = Content::Ended;
        Poll::Ready(Some(Err(std::io::Error::other(failure.message))))
    }

    /// Copies the response's fields into the access log line.
    fn note(&mut self, sent: usize) {
        let Some(exchange) = &mut self.exchange else {
            return;
        };
        exchange.line.bytes += sent as u64;
        if let Content::Stream(answering) = &self.content {
            answering.note(&mut exchange.line);
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    /// If a forwarded body is lost, the connection is broken, so that the client does not mistake a
    /// partial response for a complete one.
    type Error = std::io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        let removed = this.removed.as_mut();
        if removed.is_some_and(|removed| removed.as_mut().poll(cx).is_ready()) {
            this.removed = None;
            match &mut this.content {
                Content::Stream(answering) => answering.end_removed(),
                Content::Passed(_) | Content::Follow(_) => return this.fail(key_removed()),
                Content::Whole(_) | Content::Elsewhere | Content::Ended => {}
            }
        }
        let polled = caught_now(|| match &mut this.content {
            Content::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                Poll::Ready(Ok(Some(bytes).filter(|bytes| !bytes.is_empty())))
            }
            Content::Stream(answering) => answering
                .poll_bytes(cx)
                .map_ok(|bytes| bytes.map(Bytes::from))
                .map_err(Ok),
            Content::Passed(body) => body
                .poll_bytes(cx)
                .map_ok(|bytes| bytes.map(Bytes::from))
                .map_err(Ok),
            Content::Follow(body) => body.poll_bytes(cx).map_err(Err),
            Content::Elsewhere => Poll::Pending,
            Content::Ended => Poll::Ready(Ok(None)),
        });
        let bytes = match polled {
            Ok(polled) => match ready!(polled) {
                Ok(bytes) => bytes,
                Err(Ok(failure)) => return this.fail(failure),
                Err(Err(error)) => {
                    this.content = Content::Ended;
                    return Poll::Ready(Some(Err(error)));
                }
            },
            Err(Panicked) => return this.fail(failure(500, panics::CODE, panics::MESSAGE)),
        };
        this.note(bytes.as_ref().map_or(0, Bytes::len));
        if matches!(this.content, Content::Whole(_)) || bytes.is_none() {
            this.content = Content::Ended;
            this.removed = None;
            if let Some(exchange) = &mut this.exchange {
                exchange.has_ended = true;
            }
        }
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Whole(bytes) => bytes.is_empty(),
            Content::Stream(_) | Content::Passed(_) | Content::Follow(_) | Content::Elsewhere => {
                false
            }
            Content::Ended => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Stream(_) | Content::Passed(_) | Content::Elsewhere => SizeHint::default(),
            Content::Follow(body) => body
                .length
                .map_or_else(SizeHint::default, SizeHint::with_exact),
            Content::Ended => SizeHint::with_exact(0),
        }
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.note(0);
        // A response without a body (HEAD, 204) is never polled.
        if let (Content::Whole(bytes), Some(exchange)) = (&self.content, &mut self.exchange) {
            exchange.has_ended |= bytes.is_empty() || exchange.line.method == "HEAD";
        }
    }
}

/// Returns a response whose whole body is available.
pub(super) fn whole(
    status: StatusCode,
    kind: &'static str,
    body: impl Into<Bytes>,
) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::new(Content::Whole(body.into())));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert("content-type", HeaderValue::from_static(kind));
    headers.insert("cache-control", HeaderValue::from_static("no-store"));
    response
}

/// Returns a response of plain text.
pub(super) fn text(status: StatusCode, text: &'static str) -> Response<ResponseBody> {
    whole(status, "text/plain; charset=utf-8", text)
}

/// Returns a response without a body, marked as not cacheable.
pub(super) fn no_content() -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::new(Content::Whole(Bytes::new())));
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert("cache-control", HeaderValue::from_static("no-store"));
    response
}

/// A response in progress. The response's body polls it, so a client that reads slowly slows down
/// the source, and a client that leaves ends it.
pub(crate) struct Answering {
    work: WokenWork,
    /// The pipe that the events go through.
    pub pipe: Rc<Pipe>,
    has_ended: bool,
    /// Fires when the next keep-alive is due.
    timer: LazyTimer,
    keep_alive: Duration,
    /// When the last bytes were passed on.
    passed: Instant,
}

impl Answering {
    /// Creates the response whose events `work` pushes into `pipe`. A keep-alive is sent after each
    /// pause of `keep_alive`.
    pub(crate) fn new(
        work: impl Future<Output = ()> + 'static,
        pipe: Rc<Pipe>,
        keep_alive: Duration,
    ) -> Answering {
        Answering {
            work: WokenWork::new(work),
            pipe,
            has_ended: false,
            timer: LazyTimer::default(),
            keep_alive,
            passed: Instant::now(),
        }
    }

    /// Polls the source until it has to wait.
    fn poll_work(&mut self, cx: &Context<'_>) {
        if !self.has_ended && self.work.poll(cx).is_ready() {
            self.has_ended = true;
            self.pipe.finish();
            // Drop everything the source held before the last byte is sent.
            self.work = WokenWork::new(async {});
        }
    }

    /// Ends the response because the client's key was removed.
    fn end_removed(&mut self) {
        if !self.has_ended {
            self.has_ended = true;
            let FailedAnswer {
                status,
                code,
                message,
                ..
            } = key_removed();
            self.pipe.fail(&code, &message, status, None);
            self.pipe.finish();
            self.work = WokenWork::new(async {});
        }
    }

    /// Returns the next bytes of the response, or `None` after the last.
    ///
    /// # Errors
    /// Why the rest of a stored response cannot currently be read.
    pub(crate) fn poll_bytes(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Vec<u8>>, FailedAnswer>> {
        self.poll_work(cx);
        if let Some(unread) = self.pipe.unread() {
            return Poll::Ready(Err(unread));
        }
        let mut bytes = self.pipe.take();
        if bytes.is_empty() {
            if self.has_ended {
                return Poll::Ready(Ok(None));
            }
            ready!(self.timer.poll(self.passed + self.keep_alive, cx));
            self.pipe.keep_alive();
            bytes = self.pipe.take();
        }
        self.passed = Instant::now();
        Poll::Ready(Ok(Some(bytes)))
    }

    /// Waits until the response has content or has ended, so that its status is known. For a
    /// stream, waits at most `most`.
    pub(crate) async fn until_known(&mut self, most: Option<Duration>) {
        let known = poll_fn(|cx| {
            self.poll_work(cx);
            let is_known = self.has_ended || (most.is_some() && self.pipe.has_begun());
            if is_known {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        });
        match most {
            // A timeout also ends the wait, so its error is ignored.
            Some(most) => drop(tokio::time::timeout(most, known).await),
            None => known.await,
        }
    }

    /// Returns the failure to report in the response's status and body: the response failed before
    /// any content was sent. Otherwise returns `None`.
    pub(crate) fn refusal(&self) -> Option<FailedAnswer> {
        let failure = || {
            let failure = self.pipe.failure();
            failure.filter(|_| self.has_ended && !self.pipe.has_begun())
        };
        self.pipe.unread().or_else(failure)
    }

    /// Adds the response's counts and error to the access log line.
    pub(crate) fn note(&self, line: &mut AccessLine) {
        let counts = self.pipe.counts();
        (line.calls, line.warnings) = (counts.calls, counts.warnings);
        line.answer_notes = self.pipe.notes();
        line.error = self.pipe.failure().map(|failure| failure.code);
    }
}

/// Why a request is rejected.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    /// The status, and the message for the body.
    pub failure: Box<FailedAnswer>,
    /// Additional headers.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

impl From<FailedAnswer> for Refusal {
    fn from(failure: FailedAnswer) -> Refusal {
        Refusal {
            failure: Box::new(failure),
            headers: Vec::new(),
        }
    }
}

impl From<NoRoom> for Refusal {
    fn from(no_room: NoRoom) -> Refusal {
        no_room.failure().into()
    }
}

impl Refusal {
    /// Creates a refusal with this status.
    pub(super) fn new(status: u16, code: &str, message: impl Into<String>) -> Refusal {
        failure(status, code, message).into()
    }

    /// Returns the refusal for a missing or wrong key.
    pub(super) fn unauthorized(has_key: bool) -> Refusal {
        let what = if has_key {
            "the key is wrong"
        } else {
            "a key is missing"
        };
        let how = "send it as 'Authorization: Bearer KEY' or 'x-api-key: KEY'";
        Refusal::new(401, "invalid_api_key", format!("{what}, {how}"))
    }

    /// Returns the refusal for a request that arrives during shutdown.
    pub(super) fn ending() -> Refusal {
        let mut refusal = Refusal::full(503, "shutting_down", "the server is being stopped");
        let close = (CONNECTION, HeaderValue::from_static("close"));
        refusal.headers.push(close);
        refusal
    }

    /// Returns the refusal of a service that is full, with the time to wait before a retry.
    pub(super) fn full(status: u16, code: &str, message: &str) -> Refusal {
        let mut refusal = Refusal::new(status, code, message);
        refusal.failure.retry_after_ms = Some(FULL_MS);
        refusal
    }

    /// Returns the refusal for an unknown path.
    pub(super) fn not_found(path: &str) -> Refusal {
        let paths = "use /v1/chat/completions, /v1/responses, /v1/messages or /v1/models";
        Refusal::new(
            404,
            "not_found",
            format!("{}: no such path, {paths}", event::cut(path, 200)),
        )
    }

    /// Returns the refusal for a request that panicked.
    pub(super) fn panicked() -> Refusal {
        Refusal::new(500, panics::CODE, panics::MESSAGE)
    }

    /// Returns the refusal for a method that the path does not support.
    pub(super) fn method(method: &Method, allowed: &str) -> Refusal {
        let method = event::cut(method.as_str(), 40);
        let message = format!("{method}: not allowed here, use {allowed}");
        let mut refusal = Refusal::new(405, "method_not_allowed", message);
        refusal.headers = (allowed.parse().map(|allowed| (ALLOW, allowed)))
            .into_iter()
            .collect();
        refusal
    }

    /// Returns the response. Its body has the format of `front`, or OpenAI's if `front` is `None`.
    pub(super) fn response(&self, front: Option<Front>) -> Response<ResponseBody> {
        let failure = &self.failure;
        let status = StatusCode::from_u16(failure.status)
            .ok()
            .filter(|status| status.as_u16() >= 400);
        let status = status.unwrap_or(StatusCode::BAD_GATEWAY);
        let mut response = whole(status, JSON, front.unwrap_or(Front::Chat).failure(failure));
        let headers = response.headers_mut();
        if let Some(ms) = failure.retry_after_ms {
            headers.insert("retry-after", HeaderValue::from(ms.div_ceil(1000)));
            headers.insert("retry-after-ms", HeaderValue::from(ms));
        }
        headers.extend(self.headers.iter().cloned());
        let may_retry = matches!(status.as_u16(), 408 | 409 | 429 | 500..);
        headers.insert(
            "x-should-retry",
            HeaderValue::from_static(if may_retry { "true" } else { "false" }),
        );
        if status == StatusCode::UNAUTHORIZED {
            headers.insert("www-authenticate", HeaderValue::from_static("Bearer"));
        }
        // Close the connection, because the rest of the rejected body is not read.
        if matches!(status.as_u16(), 408 | 413 | 415) {
            headers.insert("connection", HeaderValue::from_static("close"));
        }
        response
    }
}

/// Returns the failure of a response whose client's key was removed.
fn key_removed() -> FailedAnswer {
    failure(
        401,
        KEY_REMOVED,
        "the key was removed from the server's list",
    )
}

/// Returns a failure without further details.
pub(super) fn failure(status: u16, code: &str, message: impl Into<String>) -> FailedAnswer {
    FailedAnswer {
        status,
        code: code.to_owned(),
        message: message.into(),
        ..FailedAnswer::default()
    }
}

/// The body of a provider's response that is forwarded to the client. Dropping it closes the
/// connection to the provider.
pub(crate) struct PassedBody {
    next: Pin<Box<dyn Future<Output = (client::Body, NextBytes)>>>,
    failure: Box<dyn Fn(&Error) -> FailedAnswer>,
    _place: AnswerSlot,
}

impl PassedBody {
    /// Forwards `body`, and holds `place` until its end. `failure` reports a lost connection.
    pub(crate) fn new(
        body: client::Body,
        place: AnswerSlot,
        failure: impl Fn(&Error) -> FailedAnswer + 'static,
    ) -> PassedBody {
        PassedBody {
            next: Box::pin(next(body)),
            failure: Box::new(failure),
            _place: place,
        }
    }

    /// Returns the next bytes, or `None` after the last.
    pub(crate) fn poll_bytes(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Vec<u8>>, FailedAnswer>> {
        let (body, came) = ready!(self.next.as_mut().poll(cx));
        if matches!(came, Ok(Some(_))) {
            self.next = Box::pin(next(body));
        }
        Poll::Ready(came.map_err(|error| (self.failure)(&error)))
    }
}

/// The next bytes of a body, `None` after the last, or the error that cut the body off.
type NextBytes = Result<Option<Vec<u8>>, Error>;

async fn next(mut body: client::Body) -> (client::Body, NextBytes) {
    let came = match body.next().await.what {
        PieceContent::Bytes(bytes) => Ok(Some(bytes.to_vec())),
        PieceContent::End => Ok(None),
        PieceContent::Lost(error) => Err(error),
    };
    (body, came)
}

/// Returns the response to a request whose status is known.
pub(super) fn respond(
    answering: Box<Answering>,
    is_stream: bool,
    kind: &'static str,
    front: AnyFront,
) -> Response<ResponseBody> {
    let limits = answering.pipe.limits();
    let mut response = if is_stream {
        answering.pipe.begin();
        let mut response = Response::new(ResponseBody::new(Content::Stream(answering)));
        stream_headers(response.headers_mut(), kind);
        for (name, value) in front.headers() {
            let value = HeaderValue::from_static(value);
            response.headers_mut().insert(*name, value);
        }
        response
    } else {
        let (bytes, share) = answering.pipe.take_whole();
        whole(
            StatusCode::OK,
            kind,
            Bytes::from_owner(KeptBytes {
                bytes,
                _share: share,
            }),
        )
    };
    response.headers_mut().extend(limits);
    response
}

/// Adds the headers of a streamed response, which tell proxies not to buffer it.
pub(super) fn stream_headers(headers: &mut HeaderMap, kind: &'static str) {
    headers.insert("content-type", HeaderValue::from_static(kind));
    headers.insert("cache-control", HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    async fn fails() -> (client::Body, NextBytes) {
        panic!("a bug")
    }

    #[tokio::test]
    async fn a_body_that_panics_breaks_the_connection_and_is_in_the_log() {
        let file = testkit::File::absent("access.log");
        let target = crate::log::LogTarget::File(file.path().into());
        let (log, _) = crate::log::open(Some(&target)).unwrap();
        #[derive(clap::Parser)]
        struct Limits {
            #[command(flatten)]
            limits: crate::args::LimitArgs,
        }
        let Limits { limits } = clap::Parser::parse_from(["tc-serve"]);
        let phase = Rc::new(ConnectionPhase::new(&limits));
        let line = AccessLine::default();
        let places = crate::places::AnswerSlots::new(1, 1);
        let place = places.take(None);
        let mut body = ResponseBody::new(Content::Passed(PassedBody {
            next: Box::pin(fails()),
            failure: Box::new(|_| FailedAnswer::default()),
            _place: place.await.unwrap(),
        }));
        body.carry(RequestRecord::new(phase, log.clone(), line));
        let mut cx = Context::from_waker(Waker::noop());
        let Poll::Ready(Some(Err(error))) = Pin::new(&mut body).poll_frame(&mut cx) else {
            panic!("the connection does not break")
        };
        assert_eq!(error.to_string(), panics::MESSAGE);
        drop(body);
        log.unwrap().flush();
        let text = std::fs::read_to_string(file.path()).unwrap();
        assert!(text.contains(r#""error":"internal_error""#), "{text}");
    }
}
