//! Locks on the files that hold calls and results, so that two runs do not run one call twice.

use super::file_id::FileId;
use anyhow::{Context, bail};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a lock is waited for. A process that was killed while it started a command leaves its
/// lock to the new process until that has become the command.
const ENDING: Duration = Duration::from_millis(500);

/// The locks of this run. The system releases them when the process ends, however it ends.
#[derive(Debug, Default)]
pub struct Locks {
    /// A handle of each file: a second handle of the same file would wait for the first.
    held: Vec<(FileId, File)>,
}

impl Locks {
    /// Locks `file`, which was opened as `path`, unless this run has it already under another name.
    /// A file that is not an ordinary one (a pipe) is not locked: whoever reads it empties it.
    ///
    /// # Errors
    /// When another process holds the lock, or the file system has no locks.
    pub fn take(&mut self, file: &File, path: &Path) -> anyhow::Result<()> {
        let name = path.display();
        let cannot =
            || format!("{name}: the file cannot be locked, put it on a file system with locks");
        let Some(id) = FileId::of(file).filter(|id| self.held.iter().all(|held| held.0 != *id))
        else {
            return Ok(());
        };
        let handle = file.try_clone().with_context(cannot)?;
        let start = Instant::now();
        loop {
            match flock(&handle, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK) if start.elapsed() < ENDING => {
                    std::thread::sleep(ENDING / 50)
                }
                Err(Errno::WOULDBLOCK) => {
                    bail!(
                        "{name}: another tool-exec works on it, wait until that has ended, or name another file"
                    )
                }
                Err(e) => return Err(e).with_context(cannot),
            }
        }
        self.held.push((id, handle));
        Ok(())
    }
}
