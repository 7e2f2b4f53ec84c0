//! Sessions: what has to hold them, and a folder that does.
//!
//! A session is a file `xx/ID.ndjson` of event lines: its id is 128 random bits in hexadecimal, and
//! `xx` the first two digits of it. So `tail -f`, `grep`, `tc-view` and `react --log` work on a
//! session, and a copy of the folder is a backup.

use crate::files::{AppendedFile, FileId, is_locked, lock};
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
    /// The id that `text` is; `None` for anything but 32 digits of `0-9a-f`.
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

    /// The path of its file in the folder of the sessions.
    pub fn path(self) -> PathBuf {
        Path::new(&self.folder()).join(self.file())
    }

    /// The name of its folder.
    pub(crate) fn folder(self) -> OsString {
        format!("{:02x}", self.0[0]).into()
    }

    /// The name of its file.
    pub(crate) fn file(self) -> OsString {
        format!("{self}{SUFFIX}").into()
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// How the names of session files end.
const SUFFIX: &str = ".ndjson";

/// Why a store does not do what it is asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such session.
    #[error("there is no such session")]
    Unknown,
    /// There is a session of this id already.
    #[error("there is a session of this id already")]
    Exists,
    /// Somebody else appends to the session now.
    #[error("another process writes to the session")]
    Busy,
    /// The session does not end where the caller expected: it ends at this offset.
    #[error("the session has changed, and ends at byte {0} now")]
    Moved(u64),
    /// The disk is full or broken.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A session as a list has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredSession {
    /// Its id.
    pub id: SessionId,
    /// Its length in bytes.
    pub bytes: u64,
    /// When it was written last, in nanoseconds since 1970.
    pub modified: i128,
}

/// What holds sessions. Each is a list of bytes to whose end whole lines are appended; offsets
/// count its bytes.
pub trait Store {
    /// The right to append to one session, which one holder has at a time.
    type Lease;

    /// Begins the session `id` with these lines, and takes the lease of it.
    ///
    /// # Errors
    /// [`StoreError::Exists`] and [`StoreError::Io`].
    fn create(&self, id: SessionId, lines: &[u8]) -> Result<Self::Lease, StoreError>;

    /// Takes the right to append to a session. What a writer that was killed left of a line is
    /// healed first. Also returns the offset of the end.
    ///
    /// # Errors
    /// [`StoreError::Unknown`], [`StoreError::Busy`] and [`StoreError::Io`].
    fn lease(&self, id: SessionId) -> Result<(Self::Lease, u64), StoreError>;

    /// Appends whole lines at the offset `expected`, and returns the new end. After an error
    /// nothing of them is in the session.
    ///
    /// # Errors
    /// [`StoreError::Moved`] where the session does not end there, and [`StoreError::Io`].
    fn append(
        &self,
        lease: &mut Self::Lease,
        expected: u64,
        lines: &[u8],
    ) -> Result<u64, StoreError>;

    /// Reads up to `max` bytes from `offset` on, at least one whole line where there is one, and
    /// nothing of a line without its line feed. Empty at the end.
    ///
    /// # Errors
    /// [`StoreError::Unknown`], [`StoreError::Moved`] for an offset behind the end, and
    /// [`StoreError::Io`].
    fn read(&self, id: SessionId, offset: u64, max: usize) -> Result<Vec<u8>, StoreError>;

    /// The offset behind the last whole line.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] and [`StoreError::Io`].
    fn end(&self, id: SessionId) -> Result<u64, StoreError>;

    /// All sessions, in no order.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn list(&self) -> Result<Vec<StoredSession>, StoreError>;

    /// What tells which sessions have changed, whoever changed them.
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

/// A folder of sessions.
#[derive(Debug)]
pub struct FolderStore {
    root: PrivateFolder,
    /// The folders that were opened.
    folders: RefCell<HashMap<u8, Rc<PrivateFolder>>>,
    watch: OwnedFd,
    watched: Watched,
    /// The watch of the folder above the folders of the sessions.
    root_watch: i32,
    options: Filter,
}

/// The folder of each watch.
type Watched = Rc<RefCell<HashMap<i32, u8>>>;

/// The lease of a session in a folder: its file, locked until this is dropped or its process ends.
#[derive(Debug)]
pub struct Lease(AppendedFile);

impl Lease {
    /// Gives the lease back, and returns the file, by which another thread can wait until what was
    /// appended is on disk.
    ///
    /// # Errors
    /// When the system does not unlock the file; it is closed then.
    pub fn release(self) -> io::Result<File> {
        flock(&self.0.file, FlockOperation::NonBlockingUnlock)?;
        Ok(self.0.file)
    }
}

impl FolderStore {
    /// Opens the folder, and makes it and those above it if they are missing. `options` names the
    /// command in messages about files that are healed.
    ///
    /// # Errors
    /// One line for a folder that is a link, belongs to another user, that others may write into,
    /// or that cannot be made.
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
        // A folder that cannot be used is one of the start.
        for name in store.root.names()? {
            if let Some(number) = folder_number(&name) {
                store.folder(number, false)?;
            }
        }
        Ok(store)
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        self.root.path()
    }

    /// Whether somebody holds the lease of the session now, here or in another process.
    pub fn is_leased(&self, id: SessionId) -> bool {
        let file = self.file(id, OFlags::RDONLY);
        file.is_ok_and(|file| is_locked(&file).unwrap_or_default())
    }

    /// The path of a session's file.
    pub fn path_of(&self, id: SessionId) -> std::path::PathBuf {
        self.root.path().join(id.path())
    }

    /// The folder above the folders of the sessions, for a cache of what the sessions hold.
    pub fn root(&self) -> &PrivateFolder {
        &self.root
    }

    /// The folder of the ids that begin with this number.
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
        let folder = self.folder(id.0[0], makes).map_err(|error| {
            match (makes, error.downcast::<Errno>()) {
                (true, Ok(errno)) => StoreError::Io(errno.into()),
                (true, Err(other)) => StoreError::Io(io::Error::other(other.to_string())),
                (false, _) => StoreError::Unknown,
            }
        })?;
        folder
            .open_file(&id.file(), flags)
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => StoreError::Unknown,
                io::ErrorKind::AlreadyExists => StoreError::Exists,
                _ => StoreError::Io(error),
            })
    }

    /// Locks a file that was opened to be appended to.
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

/// What is watched in a folder of sessions.
const WATCHED: inotify::WatchFlags = inotify::WatchFlags::MODIFY
    .union(inotify::WatchFlags::CLOSE_WRITE)
    .union(inotify::WatchFlags::DELETE)
    .union(inotify::WatchFlags::ONLYDIR)
    .union(inotify::WatchFlags::DONT_FOLLOW);

/// How a file is opened that is appended to. It is read to be healed.
pub(crate) const APPENDED: OFlags = OFlags::RDWR.union(OFlags::APPEND);

impl Store for FolderStore {
    type Lease = Lease;

    fn create(&self, id: SessionId, lines: &[u8]) -> Result<Lease, StoreError> {
        let file = self.file(id, APPENDED | OFlags::CREATE | OFlags::EXCL)?;
        let mut lease = self.leased(id, file)?;
        match self.append(&mut lease, 0, lines) {
            Ok(_) => Ok(lease),
            Err(error) => {
                // A file without its first line would be an unknown session for ever.
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
    /// See [`crate::SessionScan::first_line`].
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

/// What tells which sessions have changed. Its descriptor can be read once one has.
#[derive(Debug)]
pub struct Changes {
    watch: OwnedFd,
    watched: Watched,
    /// The folder above those that are watched, and its watch.
    root: (i32, PathBuf),
}

impl AsRawFd for Changes {
    fn as_raw_fd(&self) -> RawFd {
        self.watch.as_raw_fd()
    }
}

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// This session has grown, or was removed.
    Of(SessionId),
    /// So much has changed that any session may have.
    Any,
}

impl Changes {
    /// The changes since the last call, without waiting for any.
    ///
    /// # Errors
    /// When the system does not tell.
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
    /// Watches a folder that somebody has made, and returns what was written there before.
    fn new_folder(&self, name: &OsStr) -> Vec<Change> {
        let Some(number) = folder_number(name) else {
            return Vec::new();
        };
        let path = self.root.1.join(name);
        // A folder that is gone again has nothing that could change.
        let Ok(watch) = inotify::add_watch(&self.watch, &path, WATCHED) else {
            return Vec::new();
        };
        self.watched.borrow_mut().insert(watch, number);
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        let ids = entries.filter_map(|entry| session_of(&entry.file_name()));
        ids.map(Change::Of).collect()
    }
}

/// The sessions in the folder of this name.
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

/// The first byte of the ids in the folder of this name.
pub(crate) fn folder_number(name: &OsStr) -> Option<u8> {
    let number = u8::from_str_radix(name.to_str()?, 16).ok()?;
    (name == OsStr::new(&format!("{number:02x}"))).then_some(number)
}

/// The session whose file has this name.
pub(crate) fn session_of(name: &OsStr) -> Option<SessionId> {
    SessionId::of(name.to_str()?.strip_suffix(SUFFIX)?)
}

/// See [`Store::read`].
pub(crate) fn read_lines(file: &File, offset: u64, max: usize) -> Result<Vec<u8>, StoreError> {
    let length = file.metadata()?.len();
    if offset > length {
        return Err(StoreError::Moved(length));
    }
    let mut bytes = Vec::new();
    // A follower reads a line at a time, for which it needs no more room than that.
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
    // The end of the file, and no line that is whole.
    Ok(Vec::new())
}

/// See [`Store::end`].
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

/// See [`crate::SessionScan::first_line`].
pub(crate) fn first_line(file: &File, most: usize) -> Result<Vec<u8>, StoreError> {
    /// What holds most first lines.
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

/// Reads until `into` is full or the file ends.
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
