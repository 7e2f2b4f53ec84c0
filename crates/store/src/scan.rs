//! Reads a folder of sessions from another thread, for work that visits many sessions.

use crate::files::lock;
use crate::folder::PrivateFolder;
use crate::session::{
    APPENDED, SessionId, StoreError, StoredSession, first_line, folder_number, may_be_leased,
    not_opened, read_lines, session_of, stored_sessions,
};
use rustix::fs::OFlags;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;

/// A folder of sessions, for long-running work. Unlike [`crate::FolderStore`] it watches nothing,
/// so it is cheap to create and can be sent to another thread.
#[derive(Debug)]
pub struct SessionScan {
    root: PrivateFolder,
}

impl SessionScan {
    /// Opens the existing folder at `path`.
    ///
    /// # Errors
    /// As [`PrivateFolder::open`].
    pub fn open(path: &Path) -> anyhow::Result<SessionScan> {
        PrivateFolder::open(path, false).map(|root| SessionScan { root })
    }

    /// Returns the root folder, which contains the folders of the sessions.
    pub fn root(&self) -> &PrivateFolder {
        &self.root
    }

    /// Returns the ids of all sessions, unordered, without reading the session files' metadata.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn ids(&self) -> io::Result<Vec<SessionId>> {
        self.each_folder(|folder, name| {
            let names = folder.names().unwrap_or_default();
            let ids = names.iter().filter_map(|name| session_of(name));
            ids.filter(|id| id.folder() == *name).collect()
        })
    }

    /// Returns all sessions, unordered.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn list(&self) -> io::Result<Vec<StoredSession>> {
        self.each_folder(|folder, name| stored_sessions(folder, name))
    }

    fn each_folder<T>(
        &self,
        look: impl Fn(&PrivateFolder, &OsString) -> Vec<T>,
    ) -> io::Result<Vec<T>> {
        let mut all = Vec::new();
        for name in self.root.names()? {
            if folder_number(&name).is_some()
                && let Ok(folder) = self.root.inside(&name, false)
            {
                all.extend(look(&folder, &name));
            }
        }
        Ok(all)
    }

    fn file(&self, id: SessionId, flags: OFlags) -> Result<File, StoreError> {
        let folder = self.root.inside(&id.folder(), false);
        let folder = folder.map_err(|error| not_opened(error, false))?;
        let opened = folder.open_file(&id.file(), flags);
        opened.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => StoreError::Unknown,
            _ => StoreError::Io(error),
        })
    }

    /// Returns the current size and modification time of the session.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] and [`StoreError::Io`].
    pub fn stored(&self, id: SessionId) -> Result<StoredSession, StoreError> {
        use std::os::unix::fs::MetadataExt as _;
        let meta = self.file(id, OFlags::RDONLY)?.metadata()?;
        Ok(StoredSession {
            id,
            bytes: meta.len(),
            modified: i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec()),
        })
    }

    /// Returns the first line without its line feed. Returns an empty line if the first `most`
    /// bytes contain no line feed.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] and [`StoreError::Io`].
    pub fn first_line(&self, id: SessionId, most: usize) -> Result<Vec<u8>, StoreError> {
        let file = self.file(id, OFlags::RDONLY)?;
        first_line(&file, most)
    }

    /// Reads whole lines; see [`crate::Store::read`].
    ///
    /// # Errors
    /// As [`crate::Store::read`].
    pub fn read(&self, id: SessionId, offset: u64, max: usize) -> Result<Vec<u8>, StoreError> {
        read_lines(&self.file(id, OFlags::RDONLY)?, offset, max)
    }

    /// Whether this or another process currently holds the lease of the session. A lease that
    /// cannot be checked counts as held.
    pub fn is_leased(&self, id: SessionId) -> bool {
        may_be_leased(self.file(id, OFlags::RDONLY))
    }

    /// Removes the session; see [`crate::Store::remove`].
    ///
    /// # Errors
    /// As [`crate::Store::remove`].
    pub fn remove(&self, id: SessionId) -> Result<(), StoreError> {
        let file = self.file(id, APPENDED)?;
        if !lock(&file)? {
            return Err(StoreError::Busy);
        }
        let folder = self.root.inside(&id.folder(), false);
        let folder = folder.map_err(|error| not_opened(error, false))?;
        folder.remove(&id.file());
        Ok(())
    }
}
