//! A session as a list has it: what it holds, in short.

use super::index::IndexedSession;
use super::lines;
use super::outline::Outline;
use super::run_file::RunFile;
use event::payload::{Message, ToolCall, ToolResult};
use event::{Event, Kind, Scanner};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::ops::Range;
use store::{SessionId, SessionScan, StoreError, StoredSession};

/// How much of a message is the title of its session, in bytes.
const TITLE: usize = 200;

/// What a session holds, in short.
#[derive(Default)]
struct Digest {
    outline: Outline,
    /// The offset of the end.
    end: u64,
    title: Option<String>,
    /// The arguments of calls without a result.
    arguments: HashMap<String, String>,
    /// The messages, if they are wanted.
    messages: Option<Vec<Value>>,
}

impl Digest {
    fn event(&mut self, event: &Event<'_>) {
        match event.kind() {
            Kind::Message => {
                let message = Message::read(event);
                let is_first = self.title.is_none() && !message.once && message.is_of("user");
                if is_first || self.messages.is_some() {
                    let value = serde_json::from_str(&message.message.text()).unwrap_or_default();
                    if is_first {
                        self.title = Some(title(&value));
                    }
                    self.messages
                        .iter_mut()
                        .for_each(|all| all.push(value.clone()));
                }
            }
            Kind::ToolCall => {
                let call = ToolCall::read(event);
                let id = call.tool_id.str().into_owned();
                let arguments = call.arguments.map(|json| json.text().into_owned());
                self.arguments.extend(arguments.map(|json| (id, json)));
            }
            Kind::ToolResult => {
                let result = ToolResult::read(event);
                let id = result.tool_id.str();
                if result.status != "pending" {
                    self.arguments.remove(&*id);
                }
            }
            _ => {}
        }
    }

    /// The calls that wait for a person.
    fn pending(&self) -> Vec<Value> {
        let calls = self.outline.pending.iter();
        let call = calls.map(|call| {
            let arguments = self.arguments.get(&call.tool_id);
            let arguments = arguments.and_then(|json| serde_json::from_str::<Value>(json).ok());
            let mut scanner = Scanner::default();
            let why = scanner
                .read(&call.line)
                .ok()
                .map(|event| ToolResult::read(&event).output.str().into_owned());
            json!({
                "tool_id": call.tool_id,
                "tool_name": call.tool_name,
                "arguments": arguments,
                "hash": call.hash,
                "why": why,
            })
        });
        call.collect()
    }

    /// The session as a list has it.
    fn summary(
        &self,
        scan: &SessionScan,
        stored: StoredSession,
        indexed: &IndexedSession,
    ) -> Map<String, Value> {
        let unended = self.outline.active().map(|response| response.id.as_str());
        // A service that was killed cannot write that its answer has ended, but it holds no lock.
        let is_made = |_: &&str| {
            let log = scan.root().path().join(indexed.id.path());
            scan.is_leased(indexed.id) || RunFile::is_held(&log)
        };
        let active = unended.filter(is_made);
        let summary = json!({
            "id": indexed.id.to_string(),
            "object": "session",
            "created": indexed.created,
            "modified": u64::try_from(stored.modified / 1_000_000).unwrap_or_default(),
            "bytes": self.end,
            "title": self.title,
            "active_response_id": active,
            "interrupted_response_id": unended.filter(|_| active.is_none()),
            "pending": self.pending(),
        });
        match summary {
            Value::Object(summary) => summary,
            _ => Map::new(),
        }
    }

    /// The responses that were not deleted.
    fn responses(&self) -> Vec<Value> {
        let all = self.outline.responses.iter();
        let left = all.filter(|response| !self.outline.deleted.contains(&response.id));
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
}

/// The first line of what a message says.
fn title(message: &Value) -> String {
    let content = &message["content"];
    let parts = content.as_array().into_iter().flatten();
    let text = content
        .as_str()
        .or_else(|| parts.filter_map(|part| part["text"].as_str()).next());
    let line = text.unwrap_or_default().trim().lines().next();
    event::cut(line.unwrap_or_default(), TITLE).to_owned()
}

/// Reads a session to its end.
fn digest(
    scan: &SessionScan,
    indexed: &IndexedSession,
    messages: bool,
) -> Result<Digest, StoreError> {
    let mut digest = Digest {
        outline: Outline::brief(),
        messages: messages.then(Vec::new),
        ..Digest::default()
    };
    let mut scanner = Scanner::default();
    each_line(scan, indexed.id, |line, place| {
        digest.end = place.end;
        if !is_piece(line) {
            lines::event(&mut scanner, line, |event| {
                digest.outline.push(event, place);
                digest.event(event);
            });
        }
    })?;
    Ok(digest)
}

/// Hands `take` each line of a session, and its place.
fn each_line(
    scan: &SessionScan,
    id: SessionId,
    take: impl FnMut(&[u8], Range<u64>),
) -> Result<(), StoreError> {
    lines::each(|at| scan.read(id, at, super::PIECE), 0..u64::MAX, take)
}

/// Whether a line as the service writes it is a piece of an answer. Most lines are, and no list needs
/// what they say.
fn is_piece(line: &[u8]) -> bool {
    const PIECES: [&[u8]; 3] = [
        b"{\"type\":\"content_delta\"",
        b"{\"type\":\"tool_call_delta\"",
        b"{\"type\":\"thinking\"",
    ];
    PIECES.iter().any(|piece| line.starts_with(piece))
}

/// A session as a list has it.
///
/// # Errors
/// [`StoreError::Unknown`] and [`StoreError::Io`].
pub(crate) fn summary(
    scan: &SessionScan,
    indexed: &IndexedSession,
) -> Result<Map<String, Value>, StoreError> {
    let stored = scan.stored(indexed.id)?;
    Ok(digest(scan, indexed, false)?.summary(scan, stored, indexed))
}

/// The same with its responses and messages.
///
/// # Errors
/// [`StoreError::Unknown`] and [`StoreError::Io`].
pub(crate) fn whole(
    scan: &SessionScan,
    indexed: &IndexedSession,
) -> Result<Map<String, Value>, StoreError> {
    let stored = scan.stored(indexed.id)?;
    let mut digest = digest(scan, indexed, true)?;
    let mut whole = digest.summary(scan, stored, indexed);
    whole.insert("responses".to_owned(), digest.responses().into());
    let messages = digest.messages.take().unwrap_or_default();
    whole.insert("messages".to_owned(), messages.into());
    Ok(whole)
}
