//! A session as JSON, for lists of sessions and for a single one.

use super::index::IndexedSession;
use super::lines;
use super::outline::{Outline, PendingCall};
use super::run_file::RunFile;
use event::payload::{Message, ToolCall, ToolResult};
use event::{Event, Kind, Scanner};
use serde_json::{Value, json};
use store::{SessionScan, StoreError};

/// Returns a session as it appears in a list.
///
/// # Errors
/// [`StoreError::Unknown`] and [`StoreError::Io`].
pub(crate) fn summary(scan: &SessionScan, indexed: &IndexedSession) -> Result<Value, StoreError> {
    let outline = read(scan, indexed, |_| {})?;
    short(scan, indexed, &outline)
}

/// Returns the same as [`summary`] with the session's responses and messages.
///
/// # Errors
/// [`StoreError::Unknown`] and [`StoreError::Io`].
pub(crate) fn whole(scan: &SessionScan, indexed: &IndexedSession) -> Result<Value, StoreError> {
    let mut messages: Vec<Value> = Vec::new();
    let outline = read(scan, indexed, |event| {
        if event.kind() == Kind::Message {
            let message = Message::read(event).message.text();
            messages.push(serde_json::from_str(&message).unwrap_or_default());
        }
    })?;
    let mut whole = short(scan, indexed, &outline)?;
    whole["responses"] = responses(&outline).into();
    whole["messages"] = messages.into();
    Ok(whole)
}

/// Returns the outline of a session without its messages. `also` receives every event.
fn read(
    scan: &SessionScan,
    indexed: &IndexedSession,
    mut also: impl FnMut(&Event<'_>),
) -> Result<Outline, StoreError> {
    let mut outline = Outline::brief();
    let mut scanner = Scanner::default();
    let piece = |at| scan.read(indexed.id, at, super::PIECE);
    lines::each(piece, 0, |line, place| {
        outline.line(&mut scanner, line, place, &mut also);
    })?;
    Ok(outline)
}

fn short(
    scan: &SessionScan,
    indexed: &IndexedSession,
    outline: &Outline,
) -> Result<Value, StoreError> {
    let id = indexed.id;
    let modified = scan.stored(id)?.modified / 1_000_000;
    let unended = outline.active().map(|response| response.id.as_str());
    // A killed service has not written the end of its response, but it holds no lock either.
    let log = scan.root().path().join(id.path());
    let active = unended.filter(|_| scan.is_leased(id) || RunFile::is_held(&log));
    let pending: Result<Vec<Value>, StoreError> = (outline.pending.iter())
        .map(|call| waiting(scan, indexed, call))
        .collect();
    Ok(json!({
        "id": id.to_string(),
        "object": "session",
        "created": indexed.created,
        "modified": u64::try_from(modified).unwrap_or_default(),
        "bytes": outline.end,
        "title": outline.title,
        "active_response_id": active,
        "interrupted_response_id": unended.filter(|_| active.is_none()),
        "pending": pending?,
    }))
}

/// Returns a call that waits for approval.
fn waiting(
    scan: &SessionScan,
    indexed: &IndexedSession,
    call: &PendingCall,
) -> Result<Value, StoreError> {
    let mut arguments = None;
    if let Some(offset) = call.offset {
        let line = scan.read(indexed.id, offset, 1)?;
        lines::first(&line, |event| {
            let json = ToolCall::read(event).arguments;
            arguments = json.and_then(|json| serde_json::from_str::<Value>(&json.text()).ok());
        });
    }
    let mut why = None;
    lines::first(call.line.as_bytes(), |event| {
        why = Some(ToolResult::read(event).output.str().into_owned());
    });
    Ok(json!({
        "tool_id": call.tool_id,
        "tool_name": call.tool_name,
        "arguments": arguments,
        "hash": call.hash,
        "why": why,
    }))
}

/// Returns the responses that are not deleted.
fn responses(outline: &Outline) -> Vec<Value> {
    let left =
        (outline.responses.iter()).filter(|response| !outline.deleted.contains(&response.id));
    let response = left.map(|response| {
        json!({
            "id": response.id,
            "status": response.status.map_or("in_progress", |status| status.name()),
            "front": response.front,
            "background": response.is_background,
            "created": response.timestamp,
            "offset": response.offset,
            "cancelled_by": response.cancelled_by,
        })
    });
    response.collect()
}
