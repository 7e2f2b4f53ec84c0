//! The sessions of the service: the folder that holds them, who writes to which one, and who waits
//! for what is written.
//!
//! A session is a file of event lines (`store::Store`), and every answer is a view of it: the
//! [`producer`] of a response appends what the source of events gives, and each client, the first
//! one as one that comes again, gets its bytes from the lines of the file ([`view`]).

mod chat;
mod digest;
mod index;
mod lines;
mod outline;
mod outlines;
mod place;
mod producer;
mod quota;
mod retain;
mod run_file;
mod view;

pub(crate) use digest::{summary, whole};
pub(crate) use index::{IndexedSession, forget, sessions as indexed_sessions};
pub(crate) use lines::{event as event_of_line, line};
pub(crate) use outline::{
    ItemsPart, LEFT, Outline, PendingCall, ResponseId, ResponseOutline, status_of,
};
pub(crate) use place::{ContinuedMessage, PlaceError, SessionPlace, WantedPlace, WantedSession};
pub(crate) use producer::{
    Made, RunningResponse, SessionWriter, WaitingClient, not_written, one_turn, produce,
};
pub(crate) use quota::{FollowerPlace, SessionLimits};
pub(crate) use retain::Retain;
pub(crate) use run_file::RunFile;
pub(crate) use view::ResponseView;

use crate::budget::{MemoryBudget, NoRoom, Share};
use crate::metrics::ServiceMetrics;
use crate::pipe::Pipe;
use crate::traces::TraceFile;
use event::{Event, Kind, Scanner};
use sha2::{Digest, Sha256};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::convert::Infallible;
use std::ffi::OsStr;
use std::ops::Range;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use store::{Change, FolderStore, PrivateFolder, SessionId, Store, StoreError};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{Mutex, Notify, broadcast, mpsc, watch};

/// How many bytes of a session are read at once.
pub(crate) const PIECE: usize = 64 << 10;

/// How long changes are collected. What this service writes itself is told at once.
const PAUSE: Duration = Duration::from_millis(2);

/// How many changes of sessions a reader of all of them may be behind.
const NEWS: usize = 4096;

/// The sessions of the service.
pub(crate) struct Sessions {
    /// What holds them.
    pub store: FolderStore,
    /// The sessions that somebody writes or follows.
    live: RefCell<HashMap<SessionId, Weak<LiveSession>>>,
    /// What has changed, for those who follow all sessions.
    news: broadcast::Sender<Change>,
    /// How many responses are made now.
    producers: watch::Sender<usize>,
    quota: quota::Quota,
    outlines: outlines::Outlines,
    /// What messages that wait for the next turn may keep.
    budget: MemoryBudget,
    /// The file of `--otlp-file`.
    pub traces: Option<TraceFile>,
    /// Counts the bytes and events that are appended.
    pub metrics: ServiceMetrics,
}

/// What persons have said while a response is made.
struct Inbox {
    /// `message` lines.
    lines: Vec<u8>,
    share: Share,
}

/// A session that somebody writes or follows.
pub(crate) struct LiveSession {
    /// Its id.
    pub id: SessionId,
    changed: Notify,
    /// What was read since the last change, and where: all who follow the session want the same.
    pieces: RefCell<Vec<(u64, Vec<u8>)>>,
    /// The response that is made for it now.
    pub running: RefCell<Option<Rc<RunningResponse>>>,
    /// What a person has said while a response is made: `message` lines for the next turn.
    inbox: RefCell<Inbox>,
    /// Where the lines go that cancel calls of the turn whose tools run.
    retracts: RefCell<Option<mpsc::UnboundedSender<Vec<u8>>>>,
    /// Held by a turn of the loop, and by whoever gives an answer to a call that waits.
    pub deciding: Arc<Mutex<()>>,
    /// Whether this service holds the lease, so that nobody else writes.
    is_own: Cell<bool>,
}

impl Sessions {
    /// The sessions of this folder, with these limits for each key. The traces of their responses go
    /// to `traces`; `metrics` counts the bytes and events that are appended. What is kept in memory
    /// is a part of `budget`.
    pub(crate) fn new(
        store: FolderStore,
        limits: SessionLimits,
        budget: &MemoryBudget,
        traces: Option<TraceFile>,
        metrics: &ServiceMetrics,
    ) -> Sessions {
        Sessions {
            store,
            live: RefCell::default(),
            news: broadcast::Sender::new(NEWS),
            producers: watch::Sender::new(0),
            quota: quota::Quota::new(limits),
            outlines: outlines::Outlines::new(budget.clone()),
            budget: budget.clone(),
            traces,
            metrics: metrics.clone(),
        }
    }

    /// Tells followers what has changed, whoever writes. Returns when the system does not tell it any
    /// more.
    pub(crate) async fn watch(&self) -> StoreError {
        match self.try_watch().await {
            Err(error) => error,
            Ok(never) => match never {},
        }
    }

    async fn try_watch(&self) -> Result<Infallible, StoreError> {
        #[expect(
            deprecated,
            reason = "what takes its place is unsafe; the descriptor stays open with its owner"
        )]
        let changes = AsyncFd::with_interest(self.store.follow()?, Interest::READABLE)?;
        loop {
            let mut ready = changes.readable().await?;
            ready.clear_ready();
            for change in changes.get_ref().take()? {
                self.changed(change);
            }
            // The many writes of one answer are told once.
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The folder that has a file for each session whose response goes on when the service begins
    /// again. It only saves the look into all sessions.
    fn left_folder(&self) -> anyhow::Result<PrivateFolder> {
        self.store.root().inside(OsStr::new("left"), true)
    }

    /// Notes that the response of this session goes on when the service begins again.
    pub(crate) fn remember_left(&self, id: SessionId) {
        // Without the note the response is ended when somebody asks for it.
        let _ = self
            .left_folder()
            .and_then(|folder| Ok(folder.write(id.to_string().as_ref(), b"")?));
    }

    /// The response of this session has ended.
    pub(crate) fn forget_left(&self, id: SessionId) {
        if let Ok(folder) = self.left_folder() {
            folder.remove(id.to_string().as_ref());
        }
    }

    /// The sessions whose responses were left when a service ended.
    pub(crate) fn left(&self) -> Vec<SessionId> {
        let names = self.left_folder().and_then(|folder| Ok(folder.names()?));
        let names = names.unwrap_or_default();
        names
            .iter()
            .filter_map(|name| SessionId::of(name.to_str()?))
            .collect()
    }

    /// Waits until no response is made any more.
    pub(crate) async fn idle(&self) {
        // The sender is here, so the wait does not fail.
        let _ = self
            .producers
            .subscribe()
            .wait_for(|count| *count == 0)
            .await;
    }

    /// The responses that are made now, in no order.
    pub(crate) fn running(&self) -> Vec<Rc<RunningResponse>> {
        let live = self.live.borrow();
        let sessions = live.values().filter_map(Weak::upgrade);
        sessions
            .filter_map(|session| session.running.borrow().clone())
            .collect()
    }

    /// Tells followers of a change.
    fn changed(&self, change: Change) {
        // Without a receiver nobody wants to know.
        let _ = self.news.send(change);
        let live = self.live.borrow();
        match change {
            Change::Of(id) => {
                let session = live.get(&id).and_then(Weak::upgrade);
                // Its own writer tells those who follow it at once.
                if let Some(session) = session.filter(|session| !session.is_own.get()) {
                    session.notify();
                }
            }
            Change::Any => {
                let all = live.values().filter_map(Weak::upgrade);
                all.for_each(|session| session.notify());
            }
        }
    }

    /// The changes from now on, of all sessions.
    pub(crate) fn news(&self) -> broadcast::Receiver<Change> {
        self.news.subscribe()
    }

    /// The session `id`, of the client whose key has this hash.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] for a session that is not there, and likewise for one of another key;
    /// [`StoreError::Io`].
    pub(crate) fn open(
        &self,
        id: SessionId,
        key: Option<&str>,
    ) -> Result<Rc<LiveSession>, StoreError> {
        let line = match self.store.first_line(id, index::HEAD) {
            // The time of the answer must not say whether another key has this session.
            Err(StoreError::Unknown) => decoy()?,
            line => line?,
        };
        let is_own = outline::head(&line).is_some_and(|head| head.is_of(key));
        is_own.then(|| self.live(id)).ok_or(StoreError::Unknown)
    }

    /// The one value that all who deal with the session `id` share.
    pub(crate) fn live(&self, id: SessionId) -> Rc<LiveSession> {
        let mut live = self.live.borrow_mut();
        if let Some(session) = live.get(&id).and_then(Weak::upgrade) {
            return session;
        }
        if live.len() >= live.capacity() {
            live.retain(|_, session| session.strong_count() > 0);
        }
        let session = Rc::new(LiveSession {
            id,
            changed: Notify::new(),
            pieces: RefCell::default(),
            running: RefCell::default(),
            inbox: RefCell::new(Inbox {
                lines: Vec::new(),
                share: self.budget.share(),
            }),
            retracts: RefCell::default(),
            deciding: Arc::default(),
            is_own: Cell::new(false),
        });
        live.insert(id, Rc::downgrade(&session));
        session
    }

    /// Keeps a message for the next turn of the response that is made.
    ///
    /// # Errors
    /// See [`InboxFull`].
    pub(crate) fn put_off(&self, session: &LiveSession, lines: &[u8]) -> Result<(), InboxFull> {
        let waiting = session.inbox.borrow().lines.len() + lines.len();
        let end = self.store.end(session.id).unwrap_or_default();
        if !self.may_grow(end + waiting as u64) {
            return Err(InboxFull::Session);
        }
        session.put_off(lines).map_err(InboxFull::Memory)
    }

    /// Hands `take` each event between two offsets, which are ends of lines, with its place in bytes,
    /// as far as the session is written.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] and [`StoreError::Io`].
    pub(crate) fn each_event(
        &self,
        id: SessionId,
        place: Range<u64>,
        mut take: impl FnMut(&Event<'_>, Range<u64>),
    ) -> Result<(), StoreError> {
        let read = |offset| self.store.read(id, offset, PIECE);
        let mut scanner = Scanner::default();
        lines::each(read, place, |line, place| {
            lines::event(&mut scanner, line, |event| take(event, place));
        })
    }

    /// As [`Sessions::each_event`]. Other requests are answered between the pieces that it reads.
    ///
    /// # Errors
    /// Likewise.
    pub(crate) async fn read_events(
        &self,
        id: SessionId,
        place: Range<u64>,
        mut take: impl FnMut(&Event<'_>, Range<u64>),
    ) -> Result<(), StoreError> {
        let mut scanner = Scanner::default();
        let mut at = place.start;
        while at < place.end {
            let bytes = self.store.read(id, at, PIECE)?;
            if bytes.is_empty() {
                break;
            }
            let end = place.end.min(at + bytes.len() as u64);
            let begin = at;
            let piece = |offset: u64| {
                let from = usize::try_from(offset - begin).unwrap_or(usize::MAX);
                Ok(bytes.get(from..).unwrap_or_default().to_vec())
            };
            lines::each(piece, at..end, |line, place| {
                at = place.end;
                lines::event(&mut scanner, line, |event| take(event, place));
            })?;
            if at == begin {
                break;
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Counts the bytes and events that another process has appended between two offsets.
    pub(crate) fn count_appended(&self, id: SessionId, place: Range<u64>) {
        self.metrics.appended(place.end.saturating_sub(place.start));
        let mut meter = self.metrics.meter();
        // Lines that cannot be read are not counted; the next reader of the session reports them.
        let _ = self.each_event(id, place, |event, _| meter.push_appended(event));
    }

    /// Pushes the calls at these offsets of a session.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] and [`StoreError::Io`].
    pub(crate) fn calls(
        &self,
        id: SessionId,
        offsets: &[u64],
        pipe: &Pipe,
    ) -> Result<(), StoreError> {
        for offset in offsets {
            let line = self.store.read(id, *offset, 1)?;
            lines::first(&line, |event| {
                if event.kind() == Kind::ToolCall {
                    pipe.push(event);
                }
            });
        }
        Ok(())
    }
}

/// The first line of a session of a key that nobody has, after as much work as reading one takes.
fn decoy() -> Result<Vec<u8>, StoreError> {
    use std::os::unix::fs::FileExt as _;
    let file = std::fs::File::open("/dev/null")?;
    file.metadata()?;
    file.read_at(&mut [0; 1024], 0)?;
    let (id, key) = ("0".repeat(32), "-".repeat(64));
    Ok(format!(r#"{{"type":"session","v":1,"id":"{id}","key":"{key}","created":1}}"#).into_bytes())
}

/// Reads a session from an offset on, and waits for what is written behind its end.
pub(crate) struct SessionReader {
    sessions: Rc<Sessions>,
    session: Rc<LiveSession>,
    /// The offset of the next byte.
    pub offset: u64,
}

impl SessionReader {
    /// Reads from `offset` on.
    pub(crate) fn new(
        sessions: &Rc<Sessions>,
        session: &Rc<LiveSession>,
        offset: u64,
    ) -> SessionReader {
        SessionReader {
            sessions: Rc::clone(sessions),
            session: Rc::clone(session),
            offset,
        }
    }

    /// Pushes the calls at these offsets.
    ///
    /// # Errors
    /// As [`Store::read`].
    fn calls(&self, offsets: &[u64], pipe: &Pipe) -> Result<(), StoreError> {
        self.sessions.calls(self.session.id, offsets, pipe)
    }

    /// The next whole lines that are there, some [`PIECE`] bytes; empty at the end.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] once the session is removed, and as [`Store::read`].
    pub(crate) fn at_hand(&mut self) -> Result<Vec<u8>, StoreError> {
        let bytes = self.session.piece(&self.sessions.store, self.offset)?;
        self.offset += bytes.len() as u64;
        Ok(bytes)
    }

    /// The next whole lines, once there are some.
    ///
    /// # Errors
    /// As [`SessionReader::at_hand`].
    pub(crate) async fn next(&mut self) -> Result<Vec<u8>, StoreError> {
        let session = Rc::clone(&self.session);
        let look = || {
            self.at_hand()
                .map(|bytes| (!bytes.is_empty()).then_some(bytes))
        };
        session.until(look).await
    }
}

/// Why a message has to wait for another time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InboxFull {
    /// The memory budget has no room.
    Memory(NoRoom),
    /// The session may not become longer.
    Session,
}

/// How many pieces are kept for other followers, and of how many bytes each.
const PIECES: (usize, usize) = (4, 4096);

impl LiveSession {
    /// Keeps lines for the next turn of the response that is made.
    ///
    /// # Errors
    /// Where the memory budget has no room.
    pub(crate) fn put_off(&self, lines: &[u8]) -> Result<(), NoRoom> {
        let Inbox { lines: all, share } = &mut *self.inbox.borrow_mut();
        share.reserve(all.len() + lines.len(), 0)?;
        all.extend_from_slice(lines);
        Ok(())
    }

    /// Takes the lines that were kept for the next turn.
    pub(crate) fn take_put_off(&self) -> Vec<u8> {
        let Inbox { lines, share } = &mut *self.inbox.borrow_mut();
        share.keep(0);
        std::mem::take(lines)
    }

    /// The lines that cancel calls of a turn, for the one whose tools run from now on.
    pub(crate) fn retracts(&self) -> mpsc::UnboundedReceiver<Vec<u8>> {
        let (send, lines) = mpsc::unbounded_channel();
        self.retracts.replace(Some(send));
        lines
    }

    /// Cancels a call by this line. Returns whether tools of the session run here.
    pub(crate) fn retract(&self, line: Vec<u8>) -> bool {
        let retracts = self.retracts.borrow();
        let send = retracts.as_ref();
        send.is_some_and(|send| send.send(line).is_ok())
    }

    /// Wakes those who follow the session, which has changed.
    pub(crate) fn notify(&self) {
        self.pieces.borrow_mut().clear();
        self.changed.notify_waiters();
    }

    /// Notes that this service holds the lease. Followers look at the file once more, since the lines of
    /// another writer may be new to them: from now on the notices of the system are ignored.
    fn own(&self) {
        self.is_own.set(true);
        self.notify();
    }

    /// Hands what this service has appended at `begin` to those who follow the session: they take it
    /// from here, unless it is long, and know without the file that nothing is behind it yet.
    fn appended(&self, begin: u64, lines: &[u8]) {
        let mut pieces = self.pieces.borrow_mut();
        pieces.clear();
        if lines.len() <= PIECE {
            pieces.push((begin, lines.to_vec()));
        }
        pieces.push((begin + lines.len() as u64, Vec::new()));
        drop(pieces);
        self.changed.notify_waiters();
    }

    /// The whole lines from `offset` on, some [`PIECE`] bytes.
    fn piece(&self, store: &FolderStore, offset: u64) -> Result<Vec<u8>, StoreError> {
        let known = |pieces: &Vec<(u64, Vec<u8>)>| {
            let found = pieces.iter().find(|(at, _)| *at == offset);
            found.map(|(_, bytes)| bytes.clone())
        };
        if let Some(bytes) = known(&self.pieces.borrow()) {
            return Ok(bytes);
        }
        let bytes = store.read(self.id, offset, PIECE)?;
        let mut pieces = self.pieces.borrow_mut();
        if bytes.len() <= PIECES.1 && pieces.len() < PIECES.0 {
            pieces.push((offset, bytes.clone()));
        }
        Ok(bytes)
    }

    /// Waits until `look` finds something in the session, at each change of it.
    ///
    /// # Errors
    /// The first error of `look`.
    pub(crate) async fn until<T>(
        &self,
        mut look: impl FnMut() -> Result<Option<T>, StoreError>,
    ) -> Result<T, StoreError> {
        loop {
            // What changes from now on is not missed.
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(found) = look()? {
                return Ok(found);
            }
            changed.await;
        }
    }
}

/// A new id: 128 random bits.
///
/// # Errors
/// When the system has no random bytes.
pub(crate) fn random_id() -> Result<SessionId, StoreError> {
    Ok(SessionId(crate::keys::random()?))
}

/// The id that a client's own name of a session stands for: the same each time, and another one for
/// each key. Nobody can guess it without the key.
pub(crate) fn id_of_name(key: Option<&str>, what: &str, name: &str) -> SessionId {
    let hash = Sha256::new()
        .chain_update(key.unwrap_or_default())
        .chain_update([0])
        .chain_update(what)
        .chain_update([0])
        .chain_update(name)
        .finalize();
    let mut id = [0; 16];
    id.copy_from_slice(&hash[..16]);
    SessionId(id)
}
