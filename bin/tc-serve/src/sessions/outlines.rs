//! Caches the outlines of sessions. A session only grows, so a request reads only what was appended
//! since the last one, and the cost of a turn does not grow with its session. A long unread part is
//! read on another thread.

use super::outline::Outline;
use super::{PIECE, Sessions, index, lines, outline};
use crate::budget::{MemoryBudget, Share};
use event::Scanner;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io::{Error, ErrorKind};
use std::rc::Rc;
use store::{SessionId, SessionScan, Store, StoreError};
use tokio::sync::Mutex;

/// The cached outlines, the most recently used ones. They use at most an eighth of the memory
/// budget, unless a single one is larger.
pub(super) struct Outlines {
    budget: MemoryBudget,
    known: RefCell<HashMap<SessionId, KnownOutline>>,
    /// How often an outline was used.
    uses: Cell<u64>,
    /// Held while another thread reads a session, so that only one session is read at a time, and
    /// only once.
    reading: Mutex<()>,
}

struct KnownOutline {
    outline: Rc<Outline>,
    share: Share,
    used: u64,
}

/// The most bytes of a session that are read on the thread that answers requests.
const AT_ONCE: u64 = 8 * PIECE as u64;

impl Outlines {
    pub(super) fn new(budget: MemoryBudget) -> Outlines {
        Outlines {
            budget,
            known: RefCell::default(),
            uses: Cell::new(0),
            reading: Mutex::default(),
        }
    }

    /// Removes the outline of a removed session.
    pub(super) fn forget(&self, id: SessionId) {
        self.known.borrow_mut().remove(&id);
    }

    /// Takes the share of a session's outline, and forgets others to make room for what is read of it
    /// next, so many bytes at most.
    fn share(&self, id: SessionId, rest: u64) -> Share {
        let mut known = self.known.borrow_mut();
        let before = known.remove(&id).map(|known| known.share);
        let share = before.unwrap_or_else(|| self.budget.share());
        if rest > AT_ONCE {
            let size = share.kept() as u64 + rest;
            let limit = self.budget.most() as u64 / 8;
            known.retain(|_, _| size <= limit);
        }
        share
    }

    /// Caches an outline, and evicts others to make room for it.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the outline does not fit even after all others are evicted.
    fn keep(
        &self,
        id: SessionId,
        outline: Rc<Outline>,
        mut share: Share,
    ) -> Result<(), StoreError> {
        let mut known = self.known.borrow_mut();
        known.remove(&id);
        let size = outline.kept();
        let limit = self.budget.most() / 8;
        loop {
            let all = known
                .values()
                .map(|known| known.share.kept())
                .sum::<usize>();
            let has_room = known.is_empty() || all.saturating_add(size) <= limit;
            if has_room && share.keep(size) {
                break;
            }
            let oldest = known.iter().min_by_key(|(_, known)| known.used);
            let oldest = oldest.map(|(id, _)| *id);
            let oldest = oldest.ok_or_else(|| no_room(&share, size))?;
            known.remove(&oldest);
        }
        self.uses.set(self.uses.get() + 1);
        let used = self.uses.get();
        known.insert(
            id,
            KnownOutline {
                outline,
                share,
                used,
            },
        );
        Ok(())
    }
}

impl Sessions {
    /// Returns the outline of the session.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] and [`StoreError::Io`], the latter also if the memory budget has no
    /// room.
    pub(crate) fn outline(&self, id: SessionId) -> Result<Rc<Outline>, StoreError> {
        let mut outline = self.known_outline(id)?.unwrap_or_default();
        // Nobody else has it now, unless a request holds it while it waits.
        let rest = self.store.end(id)?.saturating_sub(outline.end);
        let mut share = self.outlines.share(id, rest);
        if rest > 0 {
            let read = |offset| self.store.read(id, offset, PIECE);
            read_on(Rc::make_mut(&mut outline), &mut share, read)?;
        }
        self.outlines.keep(id, Rc::clone(&outline), share)?;
        Ok(outline)
    }

    /// Reads a session on another thread for a request, so that [`Sessions::outline`] has little
    /// left to read.
    ///
    /// # Errors
    /// As [`Sessions::outline`].
    pub(crate) async fn read_ahead(&self, id: SessionId) -> Result<(), StoreError> {
        let is_far = || {
            let known = self.known_outline(id)?.unwrap_or_default();
            let rest = self.store.end(id)?.saturating_sub(known.end);
            Ok::<_, StoreError>((rest > AT_ONCE).then_some((known, rest)))
        };
        if is_far()?.is_none() {
            return Ok(());
        }
        let _one = self.outlines.reading.lock().await;
        // Another request may have read it in the meantime.
        let Some((known, rest)) = is_far()? else {
            return Ok(());
        };
        let mut share = self.outlines.share(id, rest);
        let mut outline = Rc::unwrap_or_clone(known);
        let folder = self.store.path().to_owned();
        let read = tokio::task::spawn_blocking(move || {
            let scan = SessionScan::open(&folder).map_err(|_| StoreError::Unknown)?;
            read_on(&mut outline, &mut share, |at| scan.read(id, at, PIECE))?;
            Ok::<_, StoreError>((outline, share))
        });
        let (outline, share) = read.await.map_err(Error::other)??;
        self.outlines.keep(id, Rc::new(outline), share)
    }

    /// As [`Sessions::read_ahead`] for a session of the client whose key has this hash, if there is
    /// one.
    ///
    /// # Errors
    /// Likewise.
    pub(crate) async fn read_ahead_of(
        &self,
        id: Option<SessionId>,
        key: Option<&str>,
    ) -> Result<(), StoreError> {
        match id.filter(|id| self.open(*id, key).is_ok()) {
            Some(id) => self.read_ahead(id).await,
            None => Ok(()),
        }
    }

    /// Returns the cached outline of the session, if there is one. The session may have been
    /// replaced by another since.
    fn known_outline(&self, id: SessionId) -> Result<Option<Rc<Outline>>, StoreError> {
        let known = self.outlines.known.borrow();
        let Some(known) = known.get(&id) else {
            return Ok(None);
        };
        let line = self.store.first_line(id, index::HEAD)?;
        let is_same = outline::head(&line).is_some_and(|head| known.outline.head.is_of_file(&head))
            && known.outline.end <= self.store.end(id)?;
        Ok(is_same.then(|| Rc::clone(&known.outline)))
    }
}

/// Extends an outline with the lines after its end. If its memory share has no more room, the rest
/// is read and discarded, to tell whether the session is larger than the whole budget or would fit
/// once others have ended.
fn read_on(
    outline: &mut Outline,
    share: &mut Share,
    read: impl Fn(u64) -> Result<Vec<u8>, StoreError>,
) -> Result<(), StoreError> {
    let dropped = Cell::new(None::<usize>);
    let mut counted = outline.end;
    let mut scanner = Scanner::default();
    let most = share.budget().most();
    let piece = |offset| match dropped.get() {
        Some(bytes) if bytes > most => Ok(Vec::new()),
        _ => read(offset),
    };
    lines::each(piece, counted, |line, place| {
        let end = place.end;
        outline.line(&mut scanner, line, place, |_| {});
        if end - counted >= PIECE as u64 {
            counted = end;
            let bytes = outline.kept();
            if dropped.get().is_some() || !share.keep(bytes) {
                *outline = Outline::default();
                share.keep(0);
                dropped.set(Some(dropped.get().unwrap_or_default() + bytes));
            }
        }
    })?;
    match dropped.get() {
        None => Ok(()),
        Some(bytes) => Err(no_room(share, bytes + outline.kept())),
    }
}

/// Returns the error for an outline of this many bytes, which does not fit the memory budget.
fn no_room(share: &Share, bytes: usize) -> StoreError {
    let no_room = share.no_room(bytes);
    StoreError::Io(Error::new(ErrorKind::OutOfMemory, no_room))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::{not_written, sessions_in};
    use std::fmt::Write as _;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    const ID: SessionId = SessionId([7; 16]);

    /// The lines of a session with this many messages of a kilobyte.
    fn lines(count: usize) -> String {
        let mut lines = format!("{{\"type\":\"session\",\"v\":1,\"id\":\"{ID}\",\"created\":1}}\n");
        for number in 0..count {
            let text = "x".repeat(1000);
            let _ = writeln!(
                lines,
                r#"{{"type":"message","message":{{"role":"user","content":"{number} {text}"}}}}"#
            );
        }
        lines
    }

    #[test]
    fn a_request_reads_what_was_appended_since_the_last_one() {
        let folder = testkit::Scratch::new();
        let sessions = sessions_in(&folder, 1 << 30);
        let begin = lines(3);
        let mut lease = sessions.store.create(ID, begin.as_bytes()).unwrap();
        assert_eq!(
            sessions.outline(ID).unwrap().conversation().messages.len(),
            3
        );
        // What was read before is not read again: it could not be any more.
        let file = folder.path("sessions").join(ID.path());
        let text = std::fs::read_to_string(&file).unwrap();
        let head = text.find('\n').unwrap() + 1;
        let spaces = " ".repeat(text.len() - head - 1);
        std::fs::write(&file, format!("{}{spaces}\n", &text[..head])).unwrap();
        let more = r#"{"type":"message","message":{"role":"assistant","content":"4"}}"#;
        let more = format!("{more}\n");
        let end = begin.len() as u64;
        sessions
            .store
            .append(&mut lease, end, more.as_bytes())
            .unwrap();
        let outline = sessions.outline(ID).unwrap();
        assert_eq!(outline.conversation().messages.len(), 4);
        // Another session of this id is another one.
        drop(lease);
        sessions.remove(ID, None).unwrap();
        drop(sessions.store.create(ID, lines(1).as_bytes()).unwrap());
        assert_eq!(
            sessions.outline(ID).unwrap().conversation().messages.len(),
            1
        );
    }

    #[test]
    fn a_request_shares_the_messages_of_its_session() {
        let folder = testkit::Scratch::new();
        let sessions = sessions_in(&folder, 1 << 30);
        let begin = lines(30);
        let mut lease = sessions.store.create(ID, begin.as_bytes()).unwrap();
        let before = sessions.outline(ID).unwrap().conversation();
        let more = [
            r#"{"type":"response","id":"r"}"#,
            r#"{"type":"message","message":{"role":"system","content":"now"},"once":true}"#,
            r#"{"type":"message","message":{"role":"user","content":"31"}}"#,
            "",
        ];
        let end = begin.len() as u64;
        let more = more.join("\n");
        sessions
            .store
            .append(&mut lease, end, more.as_bytes())
            .unwrap();
        let outline = sessions.outline(ID).unwrap();
        let open = outline.open_conversation();
        assert_eq!(open.messages.len(), 32);
        for after in [&outline.conversation().messages[..], &open.messages[1..]] {
            assert_eq!(after.len(), 31);
            for (one, other) in before.messages.iter().zip(after) {
                assert!(std::ptr::eq(one.fields(), other.fields()));
            }
        }
    }

    #[tokio::test]
    async fn a_long_session_is_read_by_another_thread_once() {
        let folder = testkit::Scratch::new();
        let sessions = sessions_in(&folder, 1 << 30);
        drop(sessions.store.create(ID, lines(2000).as_bytes()).unwrap());
        {
            let mut reads = [(); 3].map(|()| Box::pin(sessions.read_ahead(ID)));
            for read in &mut reads {
                let polled = read.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                assert!(
                    polled.is_pending(),
                    "the thread that answers requests has read it"
                );
            }
            for read in reads {
                read.await.unwrap();
            }
        }
        // The rest is short.
        let again = pin!(sessions.read_ahead(ID));
        let polled = again.poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(polled, Poll::Ready(Ok(()))));
        assert_eq!(
            sessions.outline(ID).unwrap().conversation().messages.len(),
            2000
        );
    }

    #[test]
    fn followers_read_what_is_long_from_the_file() {
        let folder = testkit::Scratch::new();
        let sessions = sessions_in(&folder, 1 << 30);
        let session = sessions.live(ID);
        for (length, copied) in [(PIECE, PIECE), (PIECE + 1, 0)] {
            session.appended(7, &vec![b'x'; length]);
            let pieces = session.pieces.borrow();
            let bytes = pieces.iter().map(|(_, bytes)| bytes.len());
            assert_eq!(bytes.sum::<usize>(), copied);
        }
    }

    #[test]
    fn outlines_stay_within_their_part_of_the_memory() {
        let folder = testkit::Scratch::new();
        let sessions = sessions_in(&folder, 800 << 10);
        let ids = [1, 2, 3, 4].map(|number| SessionId([number; 16]));
        for id in ids {
            let lines = lines(30).replace(&ID.to_string(), &id.to_string());
            drop(sessions.store.create(id, lines.as_bytes()).unwrap());
            assert_eq!(
                sessions.outline(id).unwrap().conversation().messages.len(),
                30
            );
        }
        let known = sessions.outlines.known.borrow().len();
        assert!((1..4).contains(&known), "{known}");
        let refused = || {
            let Err(error) = sessions.outline(ID) else {
                panic!("it has found room");
            };
            let failure = not_written(&error);
            (failure.status, failure.retry_after_ms)
        };
        // One that finds no room beside others does when they have ended.
        drop(sessions.store.create(ID, lines(500).as_bytes()).unwrap());
        let mut other = sessions.outlines.budget.share();
        assert!(other.keep(400 << 10));
        assert_eq!(refused(), (503, Some(1000)));
        assert!(other.keep(0));
        assert!(sessions.outline(ID).is_ok());
        sessions.remove(ID, None).unwrap();
        // One that is larger than all of it does not, whoever else is there; and is not read into
        // memory.
        drop(sessions.store.create(ID, lines(1000).as_bytes()).unwrap());
        assert_eq!(refused(), (413, None));
        assert!(other.keep(400 << 10));
        assert_eq!(refused(), (413, None));
        let (mut outline, mut share) = (Outline::default(), sessions.outlines.budget.share());
        let read = |at| sessions.store.read(ID, at, PIECE);
        let cut = read_on(&mut outline, &mut share, read);
        assert!(matches!(cut, Err(StoreError::Io(_))));
        assert!(outline.kept() < 1 << 20, "{}", outline.kept());
    }
}
