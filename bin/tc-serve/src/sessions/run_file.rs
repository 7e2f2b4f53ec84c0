//! The run file: a locked file beside a session while a loop over tools produces its response.
//! Between two turns the loop releases the lease of the session, so that a user can answer a call
//! in a terminal. The lock shows that the response is still in progress. The system releases the
//! lock when the process ends.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use store::StoreError;

/// The run file of a response in progress. Dropping it removes the file.
#[derive(Debug)]
pub(crate) struct RunFile {
    _locked: File,
    path: PathBuf,
}

impl RunFile {
    /// Creates and locks the run file of the session in the file `log`.
    ///
    /// # Errors
    /// [`StoreError::Busy`] while another process produces a response in this session, and
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
            // The previous holder may have removed the file in the meantime.
            let now = std::fs::metadata(&path).map(|now| now.ino()).ok();
            if now == Some(file.metadata()?.ino()) {
                return Ok(RunFile {
                    _locked: file,
                    path,
                });
            }
        }
    }

    /// Returns the path of the run file of the session in the file `log`.
    pub(crate) fn path_of(log: &Path) -> PathBuf {
        log.with_extension("run")
    }

    /// Whether this or another process is producing a response in the session in the file `log`. If
    /// the lock cannot be checked, the response counts as in progress.
    pub(crate) fn is_held(log: &Path) -> bool {
        store::may_be_locked(File::open(RunFile::path_of(log)))
    }
}

impl Drop for RunFile {
    fn drop(&mut self) {
        // A file that remains is not locked, and so has no effect.
        let _ = std::fs::remove_file(&self.path);
    }
}
