//! A folder of this run, empty at its start and gone at its end: the home of the commands.

use anyhow::Context;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The folder; removed with everything in it when this is dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes the folder below the system's folder for such things, for this user alone.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new() -> anyhow::Result<Self> {
        let base = std::env::temp_dir();
        let mut last = None;
        for n in 0..100 {
            let path = base.join(format!("tool-exec-{}-{n}", std::process::id()));
            // Fails where something is in its place already, a link too, so nothing of others is used.
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Scratch(path)),
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => last = Some(e),
                Err(e) => {
                    return Err(e)
                        .with_context(|| format!("{}: no folder for the commands, set TMPDIR", base.display()));
                }
            }
        }
        Err(last.unwrap_or_else(|| std::io::ErrorKind::AlreadyExists.into()))
            .with_context(|| format!("{}: clear out the folders tool-exec-*", base.display()))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0); // what a command made unremovable stays
    }
}
