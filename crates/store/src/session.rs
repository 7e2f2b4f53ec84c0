//! Sessions: the interface of a session store, and a store in a folder.
//!
//! A session is a file `xx/ID.ndjson` of event lines. Its id is 128 random bits in hexadecimal, and
//! `xx` is the first two digits of the id. Because sessions are plain files, `tail -f`, `grep`,
//! `tc-view` and `react --log` work on them, and copying the folder makes a backup.

use crate::files::{AppendedFile, FileId, lock, may_be_locked};
use crate::folder::PrivateFolder;
use rustix::fs::{FlockOperation, OFlags, flock, inotify};
use rustix::io::Errno;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use stdio::Filter;

/// The id of a session: 128 bits, written as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub [u8; 16]);

impl SessionId {
    /// Parses an id. Returns `None` unless `text` is exactly 32 digits of `0-9a-f`.
    pub fn of(text: &str) -> Option<SessionId> {
        let digits = text.as_bytes();
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if digits.len() != 32 || !digits.iter().all(is_digit) {
            return None;
        }
        u128::from_str_radix(text, 16)
            .ok()
            .map(|number| SessionId(number.to_be_bytes()))
    }

    /// Returns the path of the session's file, relative to the folder of the sessions.
    pub fn path(self) -> PathBuf {
        Path::new(&self.folder()).join(self.file())
    }

    /// Returns the name of the folder that contains the session's file.
    pub(crate) fn folder(self) -> OsString {
        format!("{:02x}", self.0[0]).into()
    }

    /// Returns the name of the session's file.
    pub(crate) fn file(self) -> OsString {
        format!("{self}{SUFFIX}").into()
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// The suffix of session file names.
const SUFFIX: &str = ".ndjson";

/// Why a store operation failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No session has this id.
    #[error("there is no such session")]
    Unknown,
    /// A session with this id already exists.
    #[error("there is a session of this id already")]
    Exists,
    /// Another lease holder currently appends to the session.
    #[error("another process writes to the session")]
    Busy,
    /// The session does not end at the offset that the caller expected; this is its actual end.
    #[error("the session has changed, and ends at byte {0} now")]
    Moved(u64),
    /// The disk is full or broken.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A session as returned by [`Store::list`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredSession {
    /// The id of the session.
    pub id: SessionId,
    /// The length in bytes.
    pub bytes: u64,
    /// The time of the last write, in nanoseconds since 1970.
    pub modified: i128,
}

/// A store of sessions. Each session is a sequence of bytes to which whole lines are appended;
/// offsets are in bytes.
pub trait Store {
    /// The exclusive right to append to one session.
    type Lease;

    /// Creates the session `id` with these first lines, and takes its lease.
    ///
    /// # Errors
    /// [`StoreError::Exists`] and [`StoreError::Io`].
    fn create(&self, id: SessionId, lines: &[u8]) -> Result<Self::Lease, StoreError>;

    /// Takes the lease of a session. Also returns the offset of its end. If a killed writer left a
    /// partial last line, that line is repaired first.
    ///
    /// # Errors
    /// [`StoreError::Unknown`], [`StoreError::Busy`] and [`StoreError::Io`].
    fn lease(&self, id: SessionId) -> Result<(Self::Lease, u64), StoreError>;

    /// Appends whole lines at the offset `expected`, and returns the new end. On error, none of the
    /// lines is appended.
    ///
    /// # Errors
    /// [`StoreError::Moved`] if the session does not end at `expected`, and [`StoreError::Io`].
    fn append(
        &self,
        lease: &mut Self::Lease,
        expected: u64,
        lines: &[u8],
    ) -> Result<u64, StoreError>;

    /// Reads whole lines from `offset` on: up to `max` bytes, but at least one line if there is
    /// one. Never returns part of a line that has no line feed yet. Returns an empty vector at the
    /// end.
    ///
    /// # Errors
    /// [`StoreError::Unknown`], [`StoreError::Moved`] for an offset past the end, and
    /// [`StoreError::Io`].
    fn read(&self, id: SessionId, offset: u64, max: usize) -> Result<Vec<u8>, StoreError>;

    /// Returns the offset after the last whole line.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] and [`StoreError::Io`].
    fn end(&self, id: SessionId) -> Result<u64, StoreError>;

    /// Returns all sessions, unordered.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn list(&self) -> Result<Vec<StoredSession>, StoreError>;

    /// Returns a watch that reports changed sessions, including those changed by other processes.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn follow(&self) -> Result<Changes, StoreError>;

    /// Removes a session.
    ///
    /// # Errors
    /// [`StoreError::Unknown`], [`StoreError::Busy`] and [`StoreError::Io`].
    fn remove(&self, id: SessionId) -> Result<(), StoreError>;
}

/// A session store in a folder.
#[derive(Debug)]
pub struct FolderStore {
    root: PrivateFolder,
    /// The folders opened so far, by the first byte of their session ids.
    folders: RefCell<HashMap<u8, Rc<PrivateFolder>>>,
    watch: OwnedFd,
    watched: Watched,
    /// The inotify watch of the root folder.
    root_watch: i32,
    options: Filter,
}

/// Maps each inotify watch to the number of its folder.
type Watched = Rc<RefCell<HashMap<i32, u8>>>;

/// The lease of a session in a folder. It holds the session's file, which stays locked until the
/// lease is dropped or the process ends.
#[derive(Debug)]
pub struct Lease(AppendedFile);

impl Lease {
    /// Releases the lease and returns the file, so that another thread can wait until the appended
    /// lines are on disk.
    ///
    /// # Errors
    /// If the system fails to unlock the file. The file is then closed.
    pub fn release(self) -> io::Result<File> {
        flock(&self.0.file, FlockOperation::NonBlockingUnlock)?;
        Ok(self.0.file)
    }
}

impl FolderStore {
    /// Opens the folder, and creates it and its parents if they are missing. `options` supplies the
    /// command's name for messages about repaired files.
    ///
    /// # Errors
    /// A one-line error if the folder is a link, belongs to another user, is writable by other
    /// users, or cannot be created.
    pub fn open(path: &Path, options: Filter) -> anyhow::Result<FolderStore> {
        use anyhow::Context as _;
        let watch = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)
            .context(
            "changes of files cannot be watched, raise fs.inotify.max_user_instances",
        )?;
        let root = PrivateFolder::open(path, true)?;
        let flags = inotify::WatchFlags::CREATE | inotify::WatchFlags::ONLYDIR;
        let root_watch = inotify::add_watch(&watch, root.path(), flags)?;
        let store = FolderStore {
            root,
            folders: RefCell::default(),
            watch,
            watched: Rc::default(),
            root_watch,
            options,
        };
        // Opening all folders now reports an unusable folder at startup.
        for name in store.root.names()? {
            if let Some(number) = folder_number(&name) {
                store.folder(number, false)?;
            }
        }
        Ok(store)
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        self.root.path()
    }

    /// Whether this or another process currently holds the lease of the session. A lease that
    /// cannot be checked counts as held.
    pub fn is_leased(&self, id: SessionId) -> bool {
        may_be_leased(self.file(id, OFlags::RDONLY))
    }

    /// Returns the path of a session's file.
    pub fn path_of(&self, id: SessionId) -> std::path::PathBuf {
        self.root.path().join(id.path())
    }

    /// Returns the root folder, in which a cache of session contents can be kept.
    pub fn root(&self) -> &PrivateFolder {
        &self.root
    }

    /// Opens the folder of the ids whose first byte is `number`. If `makes` is set, creates a
    /// missing folder.
    fn folder(&self, number: u8, makes: bool) -> anyhow::Result<Rc<PrivateFolder>> {
        if let Some(folder) = self.folders.borrow().get(&number) {
            return Ok(Rc::clone(folder));
        }
        let name = OsString::from(format!("{number:02x}"));
        let folder = Rc::new(self.root.inside(&name, makes)?);
        let watch = inotify::add_watch(&self.watch, folder.path(), WATCHED)?;
        self.watched.borrow_mut().insert(watch, number);
        self.folders.borrow_mut().insert(number, Rc::clone(&folder));
        Ok(folder)
    }

    /// Opens the file of a session.
    fn file(&self, id: SessionId, flags: OFlags) -> Result<File, StoreError> {
        let makes = flags.contains(OFlags::CREATE);
        let folder = self
            .folder(id.0[0], makes)
            .map_err(|error| not_opened(error, makes))?;
        folder
            .open_file(&id.file(), flags)
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => StoreError::Unknown,
                io::ErrorKind::AlreadyExists => StoreError::Exists,
                _ => StoreError::Io(error),
            })
    }

    /// Locks a file that was opened for appending, and returns its lease.
    fn leased(&self, id: SessionId, file: File) -> Result<Lease, StoreError> {
        if !lock(&file)? {
            return Err(StoreError::Busy);
        }
        let file_id = FileId::of(&file).ok_or(StoreError::Unknown)?;
        let name = self.path_of(id).display().to_string();
        let file = AppendedFile::healed(file, name, file_id, &self.options)?;
        Ok(Lease(file))
    }
}

/// Returns the error for the folder of a session that could not be opened. Without its folder a
/// session does not exist, and a link or a file in its place counts as missing, as for files
/// ([`PrivateFolder::open_file`]). Any other error says nothing about the session.
pub(crate) fn not_opened(error: anyhow::Error, makes: bool) -> StoreError {
    match error.downcast::<Errno>() {
        Ok(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if !makes => StoreError::Unknown,
        Ok(errno) => StoreError::Io(errno.into()),
        Err(other) => StoreError::Io(io::Error::other(other.to_string())),
    }
}

/// Whether the lease of the session whose file was opened with this result may be held. A lease
/// that cannot be checked counts as held, see [`may_be_locked`].
pub(crate) fn may_be_leased(opened: Result<File, StoreError>) -> bool {
    may_be_locked(opened.map_err(|error| match error {
        StoreError::Unknown => io::ErrorKind::NotFound.into(),
        other => io::Error::other(other),
    }))
}

/// The inotify events to watch for in a folder of sessions.
const WATCHED: inotify::WatchFlags = inotify::WatchFlags::MODIFY
    .union(inotify::WatchFlags::CLOSE_WRITE)
    .union(inotify::WatchFlags::DELETE)
    .union(inotify::WatchFlags::ONLYDIR)
    .union(inotify::WatchFlags::DONT_FOLLOW);

/// The flags to open a file for appending. Reading is needed to repair the last line.
pub(crate) const APPENDED: OFlags = OFlags::RDWR.union(OFlags::APPEND);

impl Store for FolderStore {
    type Lease = Lease;

    fn create(&self, id: SessionId, lines: &[u8]) -> Result<Lease, StoreError> {
        let file = self.file(id, APPENDED | OFlags::CREATE | OFlags::EXCL)?;
        let mut lease = self.leased(id, file)?;
        match self.append(&mut lease, 0, lines) {
            Ok(_) => Ok(lease),
            Err(error) => {
                // Remove the file: without a first line it would stay an unknown session forever.
                let _ = self.remove_file(id);
                Err(error)
            }
        }
    }

    fn lease(&self, id: SessionId) -> Result<(Lease, u64), StoreError> {
        let file = self.file(id, APPENDED)?;
        let lease = self.leased(id, file)?;
        let end = lease.0.file.metadata()?.len();
        Ok((lease, end))
    }

    fn append(&self, lease: &mut Lease, expected: u64, lines: &[u8]) -> Result<u64, StoreError> {
        let end = lease.0.file.metadata()?.len();
        if end != expected {
            return Err(StoreError::Moved(end));
        }
        lease.0.append_at(end, [lines].into_iter())?;
        Ok(end + lines.len() as u64)
    }

    fn read(&self, id: SessionId, offset: u64, max: usize) -> Result<Vec<u8>, StoreError> {
        read_lines(&self.file(id, OFlags::RDONLY)?, offset, max)
    }

    fn end(&self, id: SessionId) -> Result<u64, StoreError> {
        Ok(end_of_lines(&self.file(id, OFlags::RDONLY)?)?)
    }

    fn list(&self) -> Result<Vec<StoredSession>, StoreError> {
        let mut all = Vec::new();
        for name in self.root.names()? {
            let folder = folder_number(&name).and_then(|number| self.folder(number, false).ok());
            all.extend(
                folder
                    .iter()
                    .flat_map(|folder| stored_sessions(folder, &name)),
            );
        }
        Ok(all)
    }

    fn follow(&self) -> Result<Changes, StoreError> {
        Ok(Changes {
            watch: self.watch.try_clone()?,
            watched: Rc::clone(&self.watched),
            root: (self.root_watch, self.root.path().to_owned()),
        })
    }

    fn remove(&self, id: SessionId) -> Result<(), StoreError> {
        let file = self.file(id, APPENDED)?;
        if !lock(&file)? {
            return Err(StoreError::Busy);
        }
        self.remove_file(id)
    }
}

impl FolderStore {
    /// Returns the first line; see [`crate::SessionScan::first_line`].
    ///
    /// # Errors
    /// [`StoreError::Unknown`] and [`StoreError::Io`].
    pub fn first_line(&self, id: SessionId, most: usize) -> Result<Vec<u8>, StoreError> {
        first_line(&self.file(id, OFlags::RDONLY)?, most)
    }

    fn remove_file(&self, id: SessionId) -> Result<(), StoreError> {
        let folder = self
            .folder(id.0[0], false)
            .map_err(|_| StoreError::Unknown)?;
        folder.remove(&id.file());
        Ok(())
    }
}

/// A watch that reports changed sessions. Its descriptor becomes readable once a session has
/// changed.
#[derive(Debug)]
pub struct Changes {
    watch: OwnedFd,
    watched: Watched,
    /// The inotify watch of the root folder, and the folder's path.
    root: (i32, PathBuf),
}

impl AsRawFd for Changes {
    fn as_raw_fd(&self) -> RawFd {
        self.watch.as_raw_fd()
    }
}

/// A change in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// This session has grown or was removed.
    Of(SessionId),
    /// The system dropped events, so any session may have changed.
    Any,
}

impl Changes {
    /// Returns the changes since the last call, without blocking.
    ///
    /// # Errors
    /// If the system fails to report changes.
    pub fn take(&self) -> io::Result<Vec<Change>> {
        let mut changes: Vec<Change> = Vec::new();
        let mut block = [MaybeUninit::uninit(); 16 << 10];
        let mut reader = inotify::Reader::new(&self.watch, &mut block);
        loop {
            let event = match reader.next() {
                Err(Errno::WOULDBLOCK) => return Ok(changes),
                Err(Errno::INTR) => continue,
                event => event?,
            };
            let change = if event.events().contains(inotify::ReadFlags::QUEUE_OVERFLOW) {
                Some(Change::Any)
            } else {
                let name = event
                    .file_name()
                    .map(|name| OsStr::from_bytes(name.to_bytes()));
                if event.wd() == self.root.0 {
                    changes.extend(name.map(|name| self.new_folder(name)).unwrap_or_default());
                    continue;
                }
                let is_known = self.watched.borrow().contains_key(&event.wd());
                name.filter(|_| is_known)
                    .and_then(session_of)
                    .map(Change::Of)
            };
            if changes.last() != change.as_ref() {
                changes.extend(change);
            }
        }
    }
}

impl Changes {
    /// Watches a folder that was just created, and returns the sessions already in it as changes.
    fn new_folder(&self, name: &OsStr) -> Vec<Change> {
        let Some(number) = folder_number(name) else {
            return Vec::new();
        };
        let path = self.root.1.join(name);
        // If the folder is already gone, no session in it can change.
        let Ok(watch) = inotify::add_watch(&self.watch, &path, WATCHED) else {
            return Vec::new();
        };
        self.watched.borrow_mut().insert(watch, number);
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        let ids = entries.filter_map(|entry| session_of(&entry.file_name()));
        ids.map(Change::Of).collect()
    }
}

/// Returns the sessions in the folder `name`.
pub(crate) fn stored_sessions(folder: &PrivateFolder, name: &OsStr) -> Vec<StoredSession> {
    let entries = folder.entries().into_iter();
    entries
        .filter_map(|entry| {
            let id = session_of(&entry.name).filter(|id| id.folder() == name)?;
            Some(StoredSession {
                id,
                bytes: entry.bytes,
                modified: entry.modified,
            })
        })
        .collect()
}

/// Returns the first byte of the ids in the folder `name`, or `None` if `name` is not two lowercase
/// hexadecimal digits.
pub(crate) fn folder_number(name: &OsStr) -> Option<u8> {
    let number = u8::from_str_radix(name.to_str()?, 16).ok()?;
    (name == OsStr::new(&format!("{number:02x}"))).then_some(number)
}

/// Returns the session whose file has this name, or `None` if no session's file does.
pub(crate) fn session_of(name: &OsStr) -> Option<SessionId> {
    SessionId::of(name.to_str()?.strip_suffix(SUFFIX)?)
}

/// Reads whole lines; see [`Store::read`].
pub(crate) fn read_lines(file: &File, offset: u64, max: usize) -> Result<Vec<u8>, StoreError> {
    let length = file.metadata()?.len();
    if offset > length {
        return Err(StoreError::Moved(length));
    }
    let mut bytes = Vec::new();
    // Start with no more room than the rest of the file, since a follower usually reads one line.
    let mut room = usize::try_from(length - offset).map_or(max, |rest| rest.min(max));
    while room > 0 {
        let before = bytes.len();
        bytes.resize(room, 0);
        let count = read_at(file, &mut bytes[before..], offset + before as u64)?;
        bytes.truncate(before + count);
        if let Some(feed) = bytes[before..].iter().rposition(|byte| *byte == b'\n') {
            bytes.truncate(before + feed + 1);
            return Ok(bytes);
        }
        if bytes.len() < room {
            break;
        }
        room *= 2;
    }
    // The file ended before a line feed.
    Ok(Vec::new())
}

/// Returns the offset after the last whole line; see [`Store::end`].
fn end_of_lines(file: &File) -> io::Result<u64> {
    let mut end = file.metadata()?.len();
    let mut block = [0; 4096];
    while end > 0 {
        let from = end.saturating_sub(block.len() as u64);
        let length = usize::try_from(end - from).unwrap_or(block.len());
        let count = read_at(file, &mut block[..length], from)?;
        if let Some(feed) = block[..count].iter().rposition(|byte| *byte == b'\n') {
            return Ok(from + feed as u64 + 1);
        }
        end = from;
    }
    Ok(0)
}

/// Returns the first line; see [`crate::SessionScan::first_line`].
pub(crate) fn first_line(file: &File, most: usize) -> Result<Vec<u8>, StoreError> {
    /// The initial buffer size in bytes, enough for most first lines.
    const FIRST: usize = 1024;
    let mut bytes = Vec::new();
    let mut room = FIRST.min(most);
    loop {
        let before = bytes.len();
        bytes.resize(room, 0);
        let count = read_at(file, &mut bytes[before..], before as u64)?;
        bytes.truncate(before + count);
        if let Some(feed) = bytes.iter().position(|byte| *byte == b'\n') {
            bytes.truncate(feed);
            return Ok(bytes);
        }
        if bytes.len() < room || room >= most {
            return Ok(Vec::new());
        }
        room = room.saturating_mul(8).min(most);
    }
}

/// Reads until `into` is full or the file ends. Returns the number of bytes read.
pub(crate) fn read_at(file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut count = 0;
    while count < into.len() {
        match file.read_at(&mut into[count..], offset + count as u64) {
            Ok(0) => break,
            Ok(n) => count += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(count)
}
