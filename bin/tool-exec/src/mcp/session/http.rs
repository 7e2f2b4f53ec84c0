//! The transport to an HTTP server ("streamable HTTP",
//! <https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http>):
//! each message is a request, and the response is JSON or an event stream.

use super::stdio::{MOST_ASKED, asks_on, failed_by_server, not_a_message};
use api::Request;
use client::{Body, Error, Network, PieceContent, TimeLimits};
use futures::{Stream, StreamExt};
use http::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::http_header::{
    EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE,
};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use std::collections::HashMap;
use std::io::{self, Cursor};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tool::fill;
use tool::mcp::Endpoint;

/// The maximum message size, in bytes.
const LONGEST: usize = 16 << 20;
/// How much of an error response is read, in bytes.
const LONGEST_ERROR: usize = 4096;

/// The events of a response.
type Events = Pin<Box<dyn Stream<Item = Result<Sse, SseError>> + Send>>;

/// Sends messages to one HTTP server, with the headers from the tools file. Does not follow
/// redirects or use a proxy.
#[derive(Clone, Debug)]
pub(super) struct HttpClient {
    network: Network,
    headers: Arc<Vec<(String, String)>>,
    /// How many requests from the server it has not yet accepted an answer to.
    asked: Arc<AtomicUsize>,
}

/// The connection to an HTTP server.
pub(super) type HttpTransport = StreamableHttpClientTransport<HttpClient>;

/// Returns the transport to the server at a URL. It connects only to public internet addresses, to
/// this machine if the URL names it, and to addresses that the tools file allows.
///
/// # Errors
/// What is wrong with the URL or a header, for the user.
pub(super) fn connect(to: &Endpoint) -> Result<HttpTransport, String> {
    let mut headers = Vec::new();
    let mut has_secret = !client::secrets_in_url(&to.url).is_empty();
    for (name, value) in &to.headers {
        let wrong = |e: &dyn std::fmt::Display| format!("headers.{name}: {e}");
        let (value, is_filled) = fill(value, crate::variable).map_err(|e| wrong(&e))?;
        let value = value.trim();
        let is_taken = [
            HEADER_SESSION_ID,
            HEADER_LAST_EVENT_ID,
            "mcp-protocol-version",
            "accept",
            "content-type",
            "host",
        ];
        if HeaderName::try_from(name).is_err()
            || is_taken
                .iter()
                .any(|taken| taken.eq_ignore_ascii_case(name))
        {
            return Err(wrong(&"not a name of a header that may be set here"));
        }
        HeaderValue::try_from(value)
            .map_err(|_| wrong(&"the value has a character that no header may have"))?;
        has_secret |= is_filled || redact::is_secret_header(name);
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let only_loopback = has_secret && to.url.starts_with("http:");
    let network = crate::http::guarded(&to.url, true, &to.allow, only_loopback, None)
        .map_err(|e| e.to_string())?;
    let config = StreamableHttpClientTransportConfig::with_uri(to.url.as_str());
    Ok(HttpTransport::with_client(
        HttpClient {
            network,
            headers: Arc::new(headers),
            asked: Arc::default(),
        },
        config,
    ))
}

type Failure = StreamableHttpError<Error>;

impl HttpClient {
    async fn send(
        &self,
        method: &'static str,
        uri: &str,
        session: Option<&str>,
        more: HashMap<HeaderName, HeaderValue>,
        body: String,
    ) -> Result<client::Response, Failure> {
        let accept = format!("{JSON_MIME_TYPE}, {EVENT_STREAM_MIME_TYPE}");
        let mut headers = vec![("accept".to_owned(), accept)];
        if !body.is_empty() {
            headers.push(("content-type".to_owned(), JSON_MIME_TYPE.to_owned()));
        }
        headers.extend(session.map(|id| (HEADER_SESSION_ID.to_owned(), id.to_owned())));
        headers.extend(self.headers.iter().cloned());
        for (name, value) in more {
            headers.extend(
                value
                    .to_str()
                    .ok()
                    .map(|value| (name.to_string(), value.to_owned())),
            );
        }
        let request = Request {
            method,
            url: uri.to_owned(),
            headers,
            body,
        };
        self.network
            .send(request, TimeLimits::default(), None)
            .await
            .map_err(|(e, _)| Failure::Client(e))
    }
}

impl StreamableHttpClient for HttpClient {
    type Error = Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let text = serde_json::to_string(&message)?;
        let is_answer = matches!(
            message,
            ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_)
        );
        let id = match message {
            ClientJsonRpcMessage::Request(request) => Some(request.id),
            _ => None,
        };
        let response = self
            .send("POST", &uri, session.as_deref(), headers, text)
            .await;
        if is_answer {
            // A request from the server outside a stream was not counted, so the count may be 0.
            let less = |asked: usize| asked.checked_sub(1);
            let _ = (self.asked).fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        }
        let response = response?;
        let session_id = response.head.header("mcp-session-id").map(str::to_owned);
        match (response.head.status, kind(&response)) {
            (202 | 204, _) => Ok(StreamableHttpPostResponse::Accepted),
            (404, _) if session.is_some() => Err(Failure::SessionExpired),
            (200..300, EVENT_STREAM_MIME_TYPE) => Ok(StreamableHttpPostResponse::Sse(
                self.messages(of_body(response.body, LONGEST), id),
                session_id,
            )),
            (200..300, JSON_MIME_TYPE) => {
                let text = read(response.body, LONGEST).await?;
                Ok(StreamableHttpPostResponse::Json(
                    serde_json::from_slice(&text)?,
                    session_id,
                ))
            }
            (200..300, _) => Err(Failure::UnexpectedContentType(
                response.head.header("content-type").map(str::to_owned),
            )),
            (status, JSON_MIME_TYPE) => {
                let text = read(response.body, LONGEST).await?;
                match serde_json::from_slice(&text) {
                    // Some servers send the JSON-RPC error of a call with an HTTP error status.
                    Ok(message @ ServerJsonRpcMessage::Error(_)) => {
                        Ok(StreamableHttpPostResponse::Json(message, session_id))
                    }
                    _ => Err(refused(status, &text)),
                }
            }
            (300..400, _) => {
                let to = response.head.header("location").unwrap_or("nowhere");
                let what = format!(
                    "it redirects to {to}, which is not followed; write that address if you trust it"
                );
                Err(Failure::UnexpectedServerResponse(what.into()))
            }
            (status, _) => {
                let text = read(response.body, LONGEST_ERROR).await.unwrap_or_default();
                Err(refused(status, &text))
            }
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        self.send("DELETE", &uri, Some(&session), headers, String::new())
            .await
            .map(|_| ())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        _: Option<String>,
        mut headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, Failure> {
        if let Some(value) = last.and_then(|last| HeaderValue::try_from(last).ok()) {
            headers.insert(HeaderName::from_static("last-event-id"), value);
        }
        let response = self
            .send("GET", &uri, session.as_deref(), headers, String::new())
            .await?;
        match (response.head.status, kind(&response)) {
            (200..300, EVENT_STREAM_MIME_TYPE) => {
                Ok(self.messages(of_body(response.body, LONGEST), None))
            }
            // Servers need not offer this stream.
            _ => Err(Failure::ServerDoesNotSupportSse),
        }
    }
}

/// Whether an error of this transport occurred before the first byte of its message was sent.
pub(super) fn is_before_sending(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    matches!(error.downcast_ref::<Failure>(), Some(Failure::Client(error)) if error.kind.is_before_sending())
}

/// Returns the media type without parameters, or an empty string if the protocol does not use it.
fn kind(response: &client::Response) -> &'static str {
    let kind = response
        .head
        .header("content-type")
        .and_then(|kind| kind.split(';').next())
        .unwrap_or_default()
        .trim();
    [EVENT_STREAM_MIME_TYPE, JSON_MIME_TYPE]
        .into_iter()
        .find(|known| known.eq_ignore_ascii_case(kind))
        .unwrap_or_default()
}

/// Reads the whole body, of at most `most` bytes.
async fn read(mut body: Body, most: usize) -> Result<Vec<u8>, Failure> {
    let mut all = Vec::new();
    loop {
        match body.next().await.what {
            PieceContent::Bytes(bytes) if all.len() + bytes.len() <= most => {
                all.extend_from_slice(bytes)
            }
            PieceContent::Bytes(_) => return Err(Failure::ResponseBodyTooLarge { max_size: most }),
            PieceContent::End => return Ok(all),
            PieceContent::Lost(error) => return Err(Failure::Client(error)),
        }
    }
}

fn refused(status: u16, text: &[u8]) -> Failure {
    let text: String = String::from_utf8_lossy(text).chars().take(500).collect();
    let hint = if matches!(status, 401 | 403) {
        " (the server wants a credential: set headers in the tools file)"
    } else {
        ""
    };
    let colon = if text.trim().is_empty() { "" } else { ": " };
    Failure::UnexpectedServerResponse(
        format!("HTTP status {status}{hint}{colon}{}", text.trim()).into(),
    )
}

// The event stream of a response, in the form that `rmcp` expects.

/// Returns the events of a body. An event of more than `longest` bytes ends the stream with an
/// error.
fn of_body(body: Body, longest: usize) -> Events {
    let from = Some((body, EventSize::default()));
    let pieces = futures::stream::unfold(from, move |from| async move {
        let (mut body, mut size) = from?;
        let piece = match body.next().await.what {
            PieceContent::Bytes(bytes) if size.add(bytes) <= longest => {
                return Some((Ok(Cursor::new(bytes.to_vec())), Some((body, size))));
            }
            PieceContent::Bytes(_) => {
                let what = format!("an event of more than {longest} bytes");
                io::Error::new(io::ErrorKind::InvalidData, what)
            }
            PieceContent::End => return None,
            PieceContent::Lost(error) => io::Error::other(error),
        };
        Some((Err(piece), None))
    });
    Box::pin(SseStream::from_bytes_stream(pieces))
}

impl HttpClient {
    /// Checks the events of a stream. In the response to the request `id`, an event whose data is
    /// not a message is replaced by an error of that request, since no other answer will follow. So
    /// is a request from the server once [`MOST_ASKED`] of its requests have answers that it has
    /// not accepted.
    fn messages(&self, events: Events, id: Option<RequestId>) -> Events {
        let asked = Arc::clone(&self.asked);
        Box::pin(events.map(move |event| {
            let mut event = event?;
            let data = event.data.as_deref().filter(|data| !data.is_empty());
            let is_message = event.event.as_deref().is_none_or(|name| name == "message");
            let Some(data) = data.filter(|_| is_message) else {
                return Ok(event);
            };
            let error = match serde_json::from_str(data) {
                Ok(ServerJsonRpcMessage::Request(_))
                    if asked.fetch_add(1, Ordering::Relaxed) >= MOST_ASKED =>
                {
                    let what = asks_on();
                    match &id {
                        None => return Err(SseError::Body(what.into())),
                        Some(id) => failed_by_server(id.clone(), format!("the server {what}")),
                    }
                }
                Err(_) => match &id {
                    None => return Ok(event),
                    Some(id) => not_a_message(id.clone()),
                },
                Ok(_) => return Ok(event),
            };
            event.data = serde_json::to_string(&error).ok();
            Ok(event)
        }))
    }
}

/// Counts the bytes of the current event. An event ends at an empty line.
#[derive(Debug, Default)]
struct EventSize {
    size: usize,
    is_line_empty: bool,
}

impl EventSize {
    /// Counts the next bytes and returns the size of the largest event that they belong to.
    fn add(&mut self, bytes: &[u8]) -> usize {
        let mut largest = 0;
        for byte in bytes {
            self.size += 1;
            match byte {
                b'\n' if self.is_line_empty => self.size = 0,
                b'\n' => self.is_line_empty = true,
                b'\r' => {}
                _ => self.is_line_empty = false,
            }
            largest = largest.max(self.size);
        }
        largest
    }
}

#[cfg(test)]
mod events_tests {
    use super::*;

    #[test]
    fn events_are_counted_each_for_itself() {
        let mut size = EventSize::default();
        assert_eq!(
            (
                size.add(b"data: x\n\ndata"),
                size.add(b": yy\n\r\n"),
                size.add(b"a")
            ),
            (8, 10, 1)
        );
    }
}
