//! The file beside a session whose response is made by a loop over tools. Between two turns nobody
//! holds the lease of the session, since a person may answer a call in a terminal. The lock of this
//! file says that the response goes on all the same; it ends with the process that holds it.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use store::StoreError;

/// The file of a response that is made. It is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct RunFile {
    _locked: File,
    path: PathBuf,
}

impl RunFile {
    /// Makes the file of the session in the file `log`, and locks it.
    ///
    /// # Errors
    /// [`StoreError::Busy`] while another process makes a response of this session;
    /// [`StoreError::Io`].
    pub(crate) fn take(log: &Path) -> Result<RunFile, StoreError> {
        let path = RunFile::path_of(log);
        loop {
            let file = OpenOptions::new()
                .append(true)
                .create(true)
                .mode(0o600)
                .open(&path)?;
            if !store::lock(&file)? {
                return Err(StoreError::Busy);
            }
            // The one who had it may have removed it meanwhile.
            let now = std::fs::metadata(&path).map(|now| now.ino()).ok();
            if now == Some(file.metadata()?.ino()) {
                return Ok(RunFile {
                    _locked: file,
                    path,
                });
            }
        }
    }

    /// The path of the file of the session in the file `log`.
    pub(crate) fn path_of(log: &Path) -> PathBuf {
        log.with_extension("run")
    }

    /// Whether a response of the session in the file `log` is made now, here or by another process.
    /// The session counts as in use if that cannot be checked.
    pub(crate) fn is_held(log: &Path) -> bool {
        store::may_be_locked(File::open(RunFile::path_of(log)))
    }
}

impl Drop for RunFile {
    fn drop(&mut self) {
        // What is left of it is not locked, and says nothing.
        let _ = std::fs::remove_file(&self.path);
    }
}
