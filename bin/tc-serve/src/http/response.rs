//! A response and its body. While an answer streams, the body is what drives it: dropping the body
//! ends the source of its events.

use super::answering::Answering;
use super::passed_body::PassedBody;
use crate::access_log::AccessLine;
use crate::budget::Share;
use crate::log::LogLines;
use crate::server::ConnectionPhase;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::HeaderValue;
use hyper::{Response, StatusCode};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::time::Instant;

/// The body of a response.
pub struct ResponseBody {
    content: Content,
    exchange: Option<Exchange>,
}

enum Content {
    Whole(Bytes),
    Stream(Box<Answering>),
    Passed(PassedBody),
    Ended,
}

/// Bytes with their share of what the service keeps, until the last of them is sent.
pub struct KeptBytes {
    bytes: Vec<u8>,
    _share: Share,
}

impl KeptBytes {
    /// `bytes`, which `share` counts.
    pub fn of(bytes: Vec<u8>, share: Share) -> Bytes {
        Bytes::from_owner(KeptBytes {
            bytes,
            _share: share,
        })
    }
}

impl AsRef<[u8]> for KeptBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// One request and its response, for the connection and for the log. Both get what they need when
/// this is dropped.
pub struct Exchange {
    phase: Rc<ConnectionPhase>,
    log: Option<LogLines>,
    line: AccessLine,
    begun: Instant,
    has_ended: bool,
}

impl Exchange {
    /// An exchange whose request has just come.
    pub fn new(phase: Rc<ConnectionPhase>, log: Option<LogLines>, line: AccessLine) -> Exchange {
        phase.begin_request();
        Exchange {
            phase,
            log,
            line,
            begun: Instant::now(),
            has_ended: false,
        }
    }

    /// The whole request has come, and the client waits for its answer.
    pub fn begin_answer(&self) {
        self.phase.begin_answer();
    }

    /// What the log will have.
    pub fn line(&mut self) -> &mut AccessLine {
        &mut self.line
    }
}

impl Drop for Exchange {
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
    /// A body that is at hand.
    pub fn whole(bytes: impl Into<Bytes>) -> ResponseBody {
        ResponseBody {
            content: Content::Whole(bytes.into()),
            exchange: None,
        }
    }

    /// An answer that goes on.
    pub fn stream(answering: Box<Answering>) -> ResponseBody {
        ResponseBody {
            content: Content::Stream(answering),
            exchange: None,
        }
    }

    /// A body that comes from the provider as it is.
    pub fn passed(body: PassedBody) -> ResponseBody {
        ResponseBody {
            content: Content::Passed(body),
            exchange: None,
        }
    }

    /// Keeps the exchange until this body has ended.
    pub fn carry(&mut self, exchange: Exchange) {
        self.exchange = Some(exchange);
    }

    /// Takes what the log needs of the answer.
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
    /// What is passed was lost: the connection breaks, so that the client does not take the
    /// beginning for the whole.
    type Error = std::io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        let bytes = match &mut this.content {
            Content::Whole(bytes) => Some(std::mem::take(bytes)).filter(|bytes| !bytes.is_empty()),
            Content::Stream(answering) => match answering.poll_bytes(cx) {
                Poll::Ready(bytes) => bytes.map(Bytes::from),
                Poll::Pending => return Poll::Pending,
            },
            Content::Passed(body) => match body.poll_bytes(cx) {
                Poll::Ready(Ok(bytes)) => bytes.map(Bytes::from),
                Poll::Ready(Err(failure)) => {
                    if let Some(exchange) = &mut this.exchange {
                        (exchange.line.error, exchange.has_ended) = (Some(failure.code), true);
                    }
                    this.content = Content::Ended;
                    return Poll::Ready(Some(Err(std::io::Error::other(failure.message))));
                }
                Poll::Pending => return Poll::Pending,
            },
            Content::Ended => None,
        };
        this.note(bytes.as_ref().map_or(0, Bytes::len));
        if matches!(this.content, Content::Whole(_)) || bytes.is_none() {
            this.content = Content::Ended;
            if let Some(exchange) = &mut this.exchange {
                exchange.has_ended = true;
            }
        }
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Whole(bytes) => bytes.is_empty(),
            Content::Stream(_) | Content::Passed(_) => false,
            Content::Ended => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Stream(_) | Content::Passed(_) => SizeHint::default(),
            Content::Ended => SizeHint::with_exact(0),
        }
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.note(0);
        // Without a body (HEAD, 204) nothing is polled.
        if let (Content::Whole(bytes), Some(exchange)) = (&self.content, &mut self.exchange) {
            exchange.has_ended |= bytes.is_empty() || exchange.line.method == "HEAD";
        }
    }
}

/// A response whose body is at hand.
pub fn whole(
    status: StatusCode,
    kind: &'static str,
    body: impl Into<Bytes>,
) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::whole(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert("content-type", HeaderValue::from_static(kind));
    headers.insert("cache-control", HeaderValue::from_static("no-store"));
    response
}
