//! A folder of sessions as another thread reads it, which looks at many of them.

use crate::files::{is_locked, lock};
use crate::folder::PrivateFolder;
use crate::session::{
    APPENDED, SessionId, StoreError, StoredSession, first_line, folder_number, read_lines,
    session_of, stored_sessions,
};
use rustix::fs::OFlags;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;

/// A folder of sessions, for work that takes long. Unlike [`crate::FolderStore`] it watches
/// nothing, so that it is made at once, and can be given to another thread.
#[derive(Debug)]
pub struct SessionScan {
    root: PrivateFolder,
}

impl SessionScan {
    /// The folder at `path`, which is there.
    ///
    /// # Errors
    /// As [`PrivateFolder::open`].
    pub fn open(path: &Path) -> anyhow::Result<SessionScan> {
        PrivateFolder::open(path, false).map(|root| SessionScan { root })
    }

    /// The folder above the folders of the sessions.
    pub fn root(&self) -> &PrivateFolder {
        &self.root
    }

    /// The ids of all sessions, in no order. No file is looked at.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn ids(&self) -> io::Result<Vec<SessionId>> {
        self.each_folder(|folder, name| {
            let names = folder.names().unwrap_or_default();
            let ids = names.iter().filter_map(|name| session_of(name));
            ids.filter(|id| id.folder() == *name).collect()
        })
    }

    /// All sessions, in no order.
    ///
    /// # Errors
    /// When the folder cannot be read.
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
        let folder = folder.map_err(|_| StoreError::Unknown)?;
        let opened = folder.open_file(&id.file(), flags);
        opened.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => StoreError::Unknown,
            _ => StoreError::Io(error),
        })
    }

    /// The session as it is now.
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

    /// Up to `most` bytes of the first line, without its line feed; empty for a file without one in
    /// these.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] and [`StoreError::Io`].
    pub fn first_line(&self, id: SessionId, most: usize) -> Result<Vec<u8>, StoreError> {
        let file = self.file(id, OFlags::RDONLY)?;
        first_line(&file, most)
    }

    /// See [`crate::Store::read`].
    ///
    /// # Errors
    /// Likewise.
    pub fn read(&self, id: SessionId, offset: u64, max: usize) -> Result<Vec<u8>, StoreError> {
        read_lines(&self.file(id, OFlags::RDONLY)?, offset, max)
    }

    /// Whether somebody holds the lease of the session now, here or in another process.
    pub fn is_leased(&self, id: SessionId) -> bool {
        let file = self.file(id, OFlags::RDONLY);
        file.is_ok_and(|file| is_locked(&file).unwrap_or_default())
    }

    /// See [`crate::Store::remove`].
    ///
    /// # Errors
    /// Likewise.
    pub fn remove(&self, id: SessionId) -> Result<(), StoreError> {
        let file = self.file(id, APPENDED)?;
        if !lock(&file)? {
            return Err(StoreError::Busy);
        }
        let folder = self.root.inside(&id.folder(), false);
        let folder = folder.map_err(|_| StoreError::Unknown)?;
        folder.remove(&id.file());
        Ok(())
    }
}
