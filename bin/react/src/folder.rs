//! A temporary folder for the files of a run.

use anyhow::Context;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A folder with access for this user only; dropping it removes it.
#[derive(Debug)]
pub(crate) struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Creates a new folder.
    ///
    /// # Errors
    /// Fails if no folder can be created there.
    pub(crate) fn new() -> anyhow::Result<TemporaryFolder> {
        let parent = std::env::temp_dir();
        let mut number = 0;
        loop {
            let path = parent.join(format!("toolpipe-react-{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(TemporaryFolder(path)),
                // The folder was left by a process that was killed, or planted by an attacker; it
                // is not used.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(e) => {
                    return Err(e).with_context(|| {
                        format!(
                            "{}: no folder can be made there, set TMPDIR to one that can be \
                             written",
                            parent.display()
                        )
                    });
                }
            }
        }
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // Where that fails, the system's cleaning of temporary files takes it.
        let _ = fs::remove_dir_all(&self.0);
    }
}
