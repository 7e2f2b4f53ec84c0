//! Lists all sessions with their owners. The file `index.ndjson` in the folder caches the first
//! lines, so that listing need not open every session. The session files are authoritative: the
//! cache may be removed at any time.

use super::outline::{self, SessionHead};
use crate::keys::hex;
use event::Scanner;
use event::payload::{self, Payload, ProtocolVersion, Session};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::ffi::OsStr;
use store::{SessionId, SessionScan};

/// The most bytes in the first line of a session. The metadata of a conversation is its longest
/// part.
pub(super) const HEAD: usize = 64 << 10;

/// The name of the cache file.
const FILE: &str = "index.ndjson";

/// The most sessions in which folder and cache may differ before the cache is rewritten.
const STALE: usize = 64;

/// A session in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexedSession {
    /// The id of the session.
    pub id: SessionId,
    /// The hash of the key of the client that created the session; `None` if no key was required.
    pub key: Option<String>,
    /// The time of creation, in milliseconds since 1970.
    pub created: u64,
}

impl IndexedSession {
    /// Whether the client whose key has this hash created the session.
    pub(crate) fn is_of(&self, key: Option<&str>) -> bool {
        self.key.as_deref() == key
    }

    /// Reads the first line of a session. Returns `None` if the file is gone, or does not begin
    /// with a `session` event.
    pub(crate) fn read(scan: &SessionScan, id: SessionId) -> Option<IndexedSession> {
        let line = scan.first_line(id, HEAD).ok()?;
        outline::head(&line).map(|head| IndexedSession::of(id, head))
    }

    fn of(id: SessionId, head: SessionHead) -> IndexedSession {
        IndexedSession {
            id,
            key: head.key,
            created: head.created,
        }
    }
}

/// Returns all sessions of the folder, unordered. Files that are not sessions are omitted.
///
/// # Errors
/// If the folder cannot be read.
pub(crate) fn sessions(scan: &SessionScan) -> std::io::Result<Vec<IndexedSession>> {
    let mut known = read(scan).unwrap_or_default();
    let count = known.len();
    let mut changes = 0;
    let mut found = Vec::new();
    for id in scan.ids()? {
        let indexed = known.remove(&id).or_else(|| {
            changes += 1;
            IndexedSession::read(scan, id)
        });
        found.extend(indexed);
    }
    changes += known.len();
    if changes > STALE || changes * 4 > count {
        // If this fails, the next listing is only slower.
        let _ = scan.root().write(OsStr::new(FILE), &written(&found));
    }
    Ok(found)
}

/// Removes the cache, which has turned out to be wrong.
pub(crate) fn forget(scan: &SessionScan) {
    scan.root().remove(OsStr::new(FILE));
}

/// Reads the cache. Returns `None` if it is missing, truncated or modified.
fn read(scan: &SessionScan) -> Option<HashMap<SessionId, IndexedSession>> {
    let bytes = scan.root().read(OsStr::new(FILE))?;
    let feed = bytes.iter().position(|byte| *byte == b'\n')?;
    let (check, lines) = (&bytes[..feed], &bytes[feed + 1..]);
    if check != sum(lines).as_bytes() {
        return None;
    }
    let mut scanner = Scanner::default();
    let mut all = HashMap::new();
    for line in std::str::from_utf8(lines).ok()?.lines() {
        let event = scanner.read(line).ok()?;
        let session = Session::read(&event);
        let id = SessionId::of(&session.id.str())?;
        let key = session.key.map(|key| key.str().into_owned());
        let created = session.created;
        all.insert(id, IndexedSession { id, key, created });
    }
    Some(all)
}

/// Returns the cache for these sessions: a line with the hash of the rest, then the first line of
/// each session, without the members that only its own file needs.
fn written(sessions: &[IndexedSession]) -> Vec<u8> {
    let mut lines = Vec::with_capacity(sessions.len() * 160);
    for session in sessions {
        let id = session.id.to_string();
        let head = Session {
            v: ProtocolVersion,
            id: id.as_str().into(),
            key: session.key.as_deref().map(Into::into),
            created: session.created,
            fork: None,
            metadata: None,
        };
        payload::line(&mut lines, &Payload::from(head), None, 0, None);
        lines.push(b'\n');
    }
    let mut file = sum(&lines).into_bytes();
    file.push(b'\n');
    file.extend_from_slice(&lines);
    file
}

fn sum(lines: &[u8]) -> String {
    format!("{{\"sha256\":\"{}\"}}", hex(&Sha256::digest(lines)))
}
