//! Which sessions there are, and whose they are. The folder is the truth; the file `index.ndjson` in
//! it keeps what the first lines say, so that not every file has to be opened. It may be removed at
//! any time.

use super::outline::{self, SessionHead};
use crate::keys::hex;
use event::Scanner;
use event::payload::{self, Payload, ProtocolVersion, Session};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::ffi::OsStr;
use store::{SessionId, SessionScan};

/// The longest first line of a session, which holds the metadata of a conversation at most.
pub(super) const HEAD: usize = 64 << 10;

/// The name of the file.
const FILE: &str = "index.ndjson";

/// How many first lines are read again and again before the file is written anew, at most.
const STALE: usize = 64;

/// A session as the index has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexedSession {
    /// Its id.
    pub id: SessionId,
    /// The hash of the key of the client that began it.
    pub key: Option<String>,
    /// When it began, in milliseconds since 1970.
    pub created: u64,
}

impl IndexedSession {
    /// Whether the client whose key has this hash began it.
    pub(crate) fn is_of(&self, key: Option<&str>) -> bool {
        self.key.as_deref() == key
    }

    /// What the first line of a session says; `None` where the file has no such line, or is gone.
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

/// All sessions of the folder, in no order. Files that are not sessions are left out.
///
/// # Errors
/// When the folder cannot be read.
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
        // Without the file all is the same, but slower.
        let _ = scan.root().write(OsStr::new(FILE), &written(&found));
    }
    Ok(found)
}

/// Removes the file, which has turned out to be wrong.
pub(crate) fn forget(scan: &SessionScan) {
    scan.root().remove(OsStr::new(FILE));
}

/// The sessions of the file; `None` where it is missing, cut or changed.
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

/// The file with these sessions: a line with the hash of the rest, and the first line of each
/// session without what only its own file needs.
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
