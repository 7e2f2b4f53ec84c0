//! A folder for one command, empty at its start and removed at its end: its home, and its place for
//! temporary files.

use super::removal;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A folder that is removed, with everything in it, when this is dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes the folder, for this user alone.
    ///
    /// # Errors
    /// When it cannot be made, or something has that name already, even a link: another user may
    /// have put it there.
    pub fn make(path: &Path) -> std::io::Result<Self> {
        std::fs::DirBuilder::new().mode(0o700).create(path)?;
        Ok(Scratch(path.to_owned()))
    }

    /// Takes over a folder that [`Scratch::make`] made in a process that is gone.
    pub fn adopt(path: PathBuf) -> Self {
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = removal::remove(&self.0); // a command may have made a part of it unremovable
    }
}

/// Names for folders that nobody else uses, below the system's folder for temporary files.
#[derive(Debug)]
pub struct HomeNames {
    prefix: String,
    next: u64,
}

impl HomeNames {
    /// Names for the folders of this run.
    pub fn new() -> Self {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        HomeNames {
            prefix: format!("tool-exec-{}-{:x}", std::process::id(), now.as_nanos()),
            next: 0,
        }
    }
}

impl Iterator for HomeNames {
    type Item = PathBuf;

    fn next(&mut self) -> Option<PathBuf> {
        self.next += 1;
        Some(std::env::temp_dir().join(format!("{}-{}", self.prefix, self.next)))
    }
}
