//! Reads and parses the body of a request.

use super::response::Refusal;
use crate::args::LimitArgs;
use crate::budget::Share;
use crate::front::AnyFront;
use crate::pipe::JSON;
use api::{InboundError, InboundRequest};
use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use hyper::{HeaderMap, Request};

/// The media type of most bodies.
pub(super) const ONLY_JSON: &[&str] = &[JSON];

/// The media types of bodies that may contain files.
pub(super) const FORMS: &[&str] = &[JSON, "multipart/form-data"];

/// Reads the body of a request, which must have one of the media types `types`.
///
/// # Errors
/// 415 for another type, because web pages can send form types without a preflight; 413 for a body
/// that is too long, 408 for one that is too slow, 400 for one that is cut off, and 503 if `share`
/// has no room for it.
pub(super) async fn read(
    request: Request<Incoming>,
    types: &[&str],
    limits: &LimitArgs,
    share: &mut Share,
) -> Result<(HeaderMap, Bytes), Refusal> {
    let (head, body) = request.into_parts();
    let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
    let kind = header("content-type").unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !types.iter().any(|known| kind.eq_ignore_ascii_case(known)) {
        let message = format!("send the body as 'content-type: {}'", types.join("' or '"));
        return Err(Refusal::new(415, "unsupported_media_type", message));
    }
    let coding = head.headers.get("content-encoding");
    if coding.is_some_and(|coding| coding != "identity") {
        let message = "send the body without a content-encoding";
        return Err(Refusal::new(415, "unsupported_encoding", message));
    }
    let length = header("content-length").and_then(|length| length.parse::<u64>().ok());
    if length.is_some_and(|length| length > limits.max_body as u64) {
        return Err(too_long(limits));
    }
    let length = length.and_then(|length| usize::try_from(length).ok());
    let whole = whole(body, length.unwrap_or_default(), limits, share);
    match tokio::time::timeout(limits.body_timeout, whole).await {
        Ok(bytes) => Ok((head.headers, bytes?)),
        Err(_) => Err(Refusal::new(408, "body_timeout", "the body took too long")),
    }
}

/// Reads a body to its end. Its pieces are copied into one buffer, since each piece may be one byte
/// that keeps a large block alive.
async fn whole(
    mut body: Incoming,
    length: usize,
    limits: &LimitArgs,
    share: &mut Share,
) -> Result<Bytes, Refusal> {
    let mut bytes = Vec::new();
    // Reserved memory costs nothing until it is written, so a client cannot claim memory just by
    // announcing a long body. A failed reservation is reported when the first bytes are stored.
    let _ = bytes.try_reserve_exact(length);
    while let Some(frame) = body.frame().await {
        let message = "the body was cut, or its chunks are not valid";
        let frame = frame.map_err(|_| Refusal::new(400, "bad_body", message))?;
        let Some(piece) = frame.data_ref() else {
            continue;
        };
        if bytes.len() + piece.len() > limits.max_body {
            return Err(too_long(limits));
        }
        bytes.extend_from_slice(piece);
        share.reserve(bytes.len(), 0)?;
    }
    Ok(bytes.into())
}

/// Parses the body of a request in the protocol `front`. A large body is parsed on another thread,
/// so that other requests do not wait. From now on `share` accounts for the parsed request and for
/// the request to a provider built from it.
///
/// # Errors
/// 400 for an invalid request, 413 for one with too many values, and 503 if `share` has no room.
pub(super) async fn inbound(
    front: AnyFront,
    body: &Bytes,
    share: &mut Share,
) -> Result<InboundRequest, Refusal> {
    share.reserve(api::inbound_size(body).saturating_add(body.len()), 0)?;
    let read = if body.len() < AT_ONCE {
        front.read(body)
    } else {
        let body = body.clone();
        let read = tokio::task::spawn_blocking(move || front.read(&body));
        read.await
            .map_err(|_| Refusal::new(500, "internal_error", "the body was not read"))?
    };
    read.map_err(refused)
}

/// Returns the refusal for a request with this error.
pub(super) fn refused(error: InboundError) -> Refusal {
    let (status, code) = match &error {
        InboundError::TooMany => (413, "body_too_long"),
        InboundError::NotFound { code, .. } => (400, *code),
        _ => (400, "invalid_request_error"),
    };
    let mut refusal = Refusal::new(status, code, error.to_string());
    refusal.failure.param = error.member().map(Into::into);
    refusal
}

/// The largest body in bytes that is parsed on this thread, which takes at most a millisecond.
const AT_ONCE: usize = 64 << 10;

fn too_long(limits: &LimitArgs) -> Refusal {
    let message = format!(
        "the body has more than {} bytes; raise --max-body if that is right",
        limits.max_body
    );
    Refusal::new(413, "body_too_long", message)
}
