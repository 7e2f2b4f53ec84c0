//! The sessions of the service: the folder that stores them, which response writes to each, and who
//! waits for new lines.
//!
//! A session is a file of event lines (`store::Store`), and every response is a view of it. The
//! [`producer`] of a response appends the source's events to the file, and each client, whether it
//! is the first or reconnects, gets bytes computed from the lines of the file ([`view`]).

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
pub(crate) use lines::{event as event_of_line, line, lines};
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
use rustix::io::Errno;
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

/// The number of bytes read from a session at once.
pub(crate) const PIECE: usize = 64 << 10;

/// How long changes made by other processes are collected before followers are notified. Changes
/// made by this service are reported at once.
const PAUSE: Duration = Duration::from_millis(2);

/// How many changes a follower of all sessions may fall behind.
const NEWS: usize = 4096;

/// The folder with one file for each session whose response resumes when the service restarts.
const LEFT_FOLDER: &str = "left";

/// The sessions of the service.
pub(crate) struct Sessions {
    /// The store that holds the sessions.
    pub store: FolderStore,
    /// The sessions that are being written or followed.
    live: RefCell<HashMap<SessionId, Weak<LiveSession>>>,
    /// Changes, for followers of all sessions.
    news: broadcast::Sender<Change>,
    /// The number of responses in progress.
    producers: watch::Sender<usize>,
    quota: quota::Quota,
    outlines: outlines::Outlines,
    /// The memory budget of messages that wait for the next turn.
    budget: MemoryBudget,
    /// The trace file set with `--otlp-file`; `None` if the option is absent.
    pub traces: Option<TraceFile>,
    /// Counts appended bytes and events.
    pub metrics: ServiceMetrics,
}

/// The messages that users sent during a response.
struct Inbox {
    /// `message` lines.
    lines: Vec<u8>,
    share: Share,
}

/// A session that is being written or followed.
pub(crate) struct LiveSession {
    /// The id of the session.
    pub id: SessionId,
    changed: Notify,
    /// The pieces read since the last change, with their offsets. All followers of the session read
    /// the same ones.
    pieces: RefCell<Vec<(u64, Vec<u8>)>>,
    /// The response in progress, if there is one.
    pub running: RefCell<Option<Rc<RunningResponse>>>,
    /// The messages that users sent during the response, as `message` lines for the next turn.
    inbox: RefCell<Inbox>,
    /// The channel for lines that cancel calls of the turn whose tools are running.
    retracts: RefCell<Option<mpsc::UnboundedSender<Vec<u8>>>>,
    /// Held while a turn runs or a pending call is being answered.
    pub deciding: Arc<Mutex<()>>,
    /// Whether this service holds the lease, so that no other process writes.
    is_own: Cell<bool>,
}

impl Sessions {
    /// Creates the sessions of the folder `store`, with these limits per key. Traces of their
    /// responses are written to `traces`; `metrics` counts appended bytes and events. What is kept
    /// in memory counts against `budget`.
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

    /// Notifies followers of changes made by any process. Returns when the system stops reporting
    /// changes.
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
            // Collects the many writes of one response into one notification.
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Returns the folder [`LEFT_FOLDER`], which only saves searching all sessions. Creates it if
    /// it is missing.
    fn left_folder(&self) -> anyhow::Result<PrivateFolder> {
        self.store.root().inside(OsStr::new(LEFT_FOLDER), true)
    }

    /// Records that the response of this session resumes when the service restarts.
    pub(crate) fn remember_left(&self, id: SessionId) {
        // If the record is missing, the response is ended when a client next requests it.
        let _ = self
            .left_folder()
            .and_then(|folder| Ok(folder.write(id.to_string().as_ref(), b"")?));
    }

    /// Removes the record, because the response of this session has ended.
    pub(crate) fn forget_left(&self, id: SessionId) {
        if let Ok(folder) = self.left_folder() {
            folder.remove(id.to_string().as_ref());
        }
    }

    /// Returns the sessions whose responses were unfinished when a service stopped.
    ///
    /// # Errors
    /// If the folder of their records exists and cannot be read.
    pub(crate) fn left(&self) -> anyhow::Result<Vec<SessionId>> {
        let folder = match self.store.root().inside(OsStr::new(LEFT_FOLDER), false) {
            Err(error) if error.downcast_ref() == Some(&Errno::NOENT) => return Ok(Vec::new()),
            folder => folder?,
        };
        let names = folder.names()?.into_iter();
        Ok(names
            .filter_map(|name| SessionId::of(name.to_str()?))
            .collect())
    }

    /// Waits until no response is in progress.
    pub(crate) async fn idle(&self) {
        // `self` holds the sender, so the wait cannot fail.
        let _ = self
            .producers
            .subscribe()
            .wait_for(|count| *count == 0)
            .await;
    }

    /// Returns the responses in progress, unordered.
    pub(crate) fn running(&self) -> Vec<Rc<RunningResponse>> {
        let live = self.live.borrow();
        let sessions = live.values().filter_map(Weak::upgrade);
        sessions
            .filter_map(|session| session.running.borrow().clone())
            .collect()
    }

    /// Notifies followers of a change.
    fn changed(&self, change: Change) {
        // Sending fails only if there are no receivers.
        let _ = self.news.send(change);
        let live = self.live.borrow();
        match change {
            Change::Of(id) => {
                let session = live.get(&id).and_then(Weak::upgrade);
                // A session that this service writes is excluded: its writer notifies followers
                // directly.
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

    /// Returns a receiver of all later changes to any session.
    pub(crate) fn news(&self) -> broadcast::Receiver<Change> {
        self.news.subscribe()
    }

    /// Opens the session `id` for the client whose key has this hash.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] if the session does not exist or belongs to another key, and
    /// [`StoreError::Io`].
    pub(crate) fn open(
        &self,
        id: SessionId,
        key: Option<&str>,
    ) -> Result<Rc<LiveSession>, StoreError> {
        let line = match self.store.first_line(id, index::HEAD) {
            // The response time must not reveal whether the session exists under another key.
            Err(StoreError::Unknown) => decoy()?,
            line => line?,
        };
        let is_own = outline::head(&line).is_some_and(|head| head.is_of(key));
        is_own.then(|| self.live(id)).ok_or(StoreError::Unknown)
    }

    /// Returns the shared state of the session `id`.
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

    /// Keeps a message for the next turn of the response in progress.
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

    /// Calls `take` with each event between two offsets, which must be at line ends, and the
    /// event's byte range. Stops at the end of the session. Other requests can run between the
    /// pieces that this reads.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] and [`StoreError::Io`].
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
            for (line, of_line) in lines(&bytes, at) {
                if of_line.end > place.end {
                    return Ok(());
                }
                at = of_line.end;
                if let Some(event) = event_of_line(&mut scanner, line) {
                    take(&event, of_line);
                }
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Counts the bytes and events that another process appended between two offsets.
    pub(crate) async fn count_appended(&self, id: SessionId, place: Range<u64>) {
        self.metrics.appended(place.end.saturating_sub(place.start));
        let mut meter = self.metrics.meter();
        // Unreadable lines are not counted; the next reader of the session reports them.
        let read = self.read_events(id, place, |event, _| meter.push_appended(event));
        let _ = read.await;
    }

    /// Pushes the calls at these offsets of a session into `pipe`.
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

/// Creates sessions in a scratch folder, with this memory budget in bytes.
#[cfg(test)]
pub(crate) fn sessions_in(folder: &testkit::Scratch, memory: usize) -> Sessions {
    let options = stdio::Filter {
        command: "test",
        files: vec![],
        no_time: true,
        strict: false,
        max_line: 1 << 20,
        emit: stdio::Emit::default(),
        stop_when_settled: false,
        ignore_interrupts: false,
    };
    let store = FolderStore::open(&folder.path("sessions"), options).expect("a folder");
    let limits = SessionLimits {
        sessions: 9,
        bytes: u64::MAX,
        followers: 9,
    };
    let budget = MemoryBudget::new(memory);
    Sessions::new(store, limits, &budget, None, &ServiceMetrics::default())
}

/// Returns the first line of a session whose key no client has. It does as much work as reading a
/// real session.
fn decoy() -> Result<Vec<u8>, StoreError> {
    use std::os::unix::fs::FileExt as _;
    let file = std::fs::File::open("/dev/null")?;
    file.metadata()?;
    file.read_at(&mut [0; 1024], 0)?;
    let (id, key) = ("0".repeat(32), "-".repeat(64));
    Ok(format!(r#"{{"type":"session","v":1,"id":"{id}","key":"{key}","created":1}}"#).into_bytes())
}

/// Reads a session from an offset on, and waits for lines appended after its end.
pub(crate) struct SessionReader {
    sessions: Rc<Sessions>,
    session: Rc<LiveSession>,
    /// The offset of the next byte.
    pub offset: u64,
}

impl SessionReader {
    /// Creates a reader that starts at `offset`.
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

    /// Pushes the calls at these offsets into `pipe`.
    ///
    /// # Errors
    /// As [`Store::read`].
    fn calls(&self, offsets: &[u64], pipe: &Pipe) -> Result<(), StoreError> {
        self.sessions.calls(self.session.id, offsets, pipe)
    }

    /// Returns the next whole lines without waiting, about [`PIECE`] bytes; empty at the end.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] if the session was removed, and as [`Store::read`].
    pub(crate) fn at_hand(&mut self) -> Result<Vec<u8>, StoreError> {
        let bytes = self.session.piece(&self.sessions.store, self.offset)?;
        self.offset += bytes.len() as u64;
        Ok(bytes)
    }

    /// Returns the next whole lines, waiting until there are some.
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

/// Why a message cannot be accepted now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InboxFull {
    /// The memory budget has no room.
    Memory(NoRoom),
    /// The session has reached its maximum length.
    Session,
}

/// How many pieces are kept for other followers, and the maximum size of each in bytes.
const PIECES: (usize, usize) = (4, 4096);

impl LiveSession {
    /// Keeps lines for the next turn of the response in progress.
    ///
    /// # Errors
    /// If the memory budget has no room.
    pub(crate) fn put_off(&self, lines: &[u8]) -> Result<(), NoRoom> {
        let Inbox { lines: all, share } = &mut *self.inbox.borrow_mut();
        share.reserve(all.len() + lines.len(), 0)?;
        all.extend_from_slice(lines);
        Ok(())
    }

    /// Removes and returns the lines kept for the next turn.
    pub(crate) fn take_put_off(&self) -> Vec<u8> {
        let Inbox { lines, share } = &mut *self.inbox.borrow_mut();
        share.keep(0);
        std::mem::take(lines)
    }

    /// Returns the channel of lines that cancel calls, for the turn whose tools start to run.
    pub(crate) fn retracts(&self) -> mpsc::UnboundedReceiver<Vec<u8>> {
        let (send, lines) = mpsc::unbounded_channel();
        self.retracts.replace(Some(send));
        lines
    }

    /// Cancels a call with this line. Returns whether tools of the session run in this process.
    pub(crate) fn retract(&self, line: Vec<u8>) -> bool {
        let retracts = self.retracts.borrow();
        let send = retracts.as_ref();
        send.is_some_and(|send| send.send(line).is_ok())
    }

    /// Wakes the followers of the session after a change.
    pub(crate) fn notify(&self) {
        self.pieces.borrow_mut().clear();
        self.changed.notify_waiters();
    }

    /// Records that this service holds the lease. Followers check the file once more for lines of
    /// an earlier writer, because the system's change notifications are ignored from now on.
    fn own(&self) {
        self.is_own.set(true);
        self.notify();
    }

    /// Passes the lines that this service appended at `begin` to the followers. Unless the lines
    /// are long, followers take them from memory and need not read the file to find its end.
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

    /// Returns the whole lines from `offset` on, about [`PIECE`] bytes.
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

    /// Calls `look` at each change of the session, and waits until `look` returns a value.
    ///
    /// # Errors
    /// The first error of `look`.
    pub(crate) async fn until<T>(
        &self,
        mut look: impl FnMut() -> Result<Option<T>, StoreError>,
    ) -> Result<T, StoreError> {
        loop {
            // Register before the check, so that no later change is missed.
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

/// Returns a new id of 128 random bits.
///
/// # Errors
/// If the system cannot supply random bytes.
pub(crate) fn random_id() -> Result<SessionId, StoreError> {
    Ok(SessionId(crate::keys::random()?))
}

/// Returns the id of a session that a client names itself. The same name gives the same id each
/// time, and different ids for different keys. The id cannot be guessed without the key.
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
