//! The log of a conversation, with its lock.

use anyhow::{Context, anyhow, bail};
use rustix::io::{FdFlags, fcntl_setfd};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A log that only this run writes.
#[derive(Debug)]
pub(crate) struct Log {
    /// The path as the user gave it.
    pub name: PathBuf,
    /// The canonical path, with links resolved.
    pub file: PathBuf,
    /// Its length in bytes when this run started.
    before: u64,
    _lock: File,
}

impl Log {
    /// Opens and locks the log, and creates it if it is missing.
    ///
    /// Two runs on one log would mix their turns. The stages inherit the lock, so it is held until
    /// the last stage has ended, even if react was killed. The tools do not inherit it, because
    /// `tool-exec` passes no open files to them.
    ///
    /// # Errors
    /// Fails if the log cannot be written or is not a regular file, or if another run holds the
    /// lock.
    pub(crate) fn open(name: &Path) -> anyhow::Result<Log> {
        let shown = name.display();
        let open = |path: &Path| {
            OpenOptions::new()
                .append(true)
                .create(true)
                .mode(0o600)
                .open(path)
        };
        let opened = open(name)
            .map_err(|e| anyhow!("{shown}: {e}, give another --log"))?
            .metadata()?;
        if !opened.is_file() {
            bail!("{shown} is not an ordinary file, give another --log");
        }
        let file = name.canonicalize().with_context(|| shown.to_string())?;
        let mut lock_name = file.clone().into_os_string();
        lock_name.push(".lock");
        let lock = open(Path::new(&lock_name))
            .map_err(|e| anyhow!("{}: {e}, give another --log", lock_name.display()))?;
        if store::Locks::default()
            .take(&lock, Path::new(&lock_name))
            .is_err()
        {
            bail!("another react works on {shown}, wait until it has ended, or give another --log");
        }
        fcntl_setfd(&lock, FdFlags::empty())?;
        Ok(Log {
            name: name.to_owned(),
            file,
            before: opened.len(),
            _lock: lock,
        })
    }

    /// Opens the log as the input of a stage.
    ///
    /// # Errors
    /// Fails if the log cannot be opened.
    pub(crate) fn input(&self) -> anyhow::Result<File> {
        File::open(&self.file).with_context(|| self.unreadable())
    }

    /// Returns the text of the log.
    ///
    /// # Errors
    /// Fails if the log cannot be read: a schema would otherwise be checked against an empty
    /// answer.
    pub(crate) fn read(&self) -> anyhow::Result<String> {
        let bytes = std::fs::read(&self.file).with_context(|| self.unreadable())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Appends the lines of a file, which are the conversation so far. They do not count as written
    /// by this run.
    ///
    /// # Errors
    /// Fails if the log already has a conversation, or cannot be written.
    pub(crate) fn begin_with(&mut self, lines: &Path) -> anyhow::Result<()> {
        let name = self.name.display();
        if !self.is_empty() {
            bail!(
                "standard input and {name} both hold a conversation, leave one of them out \
                 (</dev/null, or another --log)"
            );
        }
        let copied = OpenOptions::new()
            .append(true)
            .open(&self.file)
            .and_then(|mut log| std::io::copy(&mut File::open(lines)?, &mut log));
        self.before = copied.with_context(|| format!("{name}: the log cannot be written"))?;
        Ok(())
    }

    fn unreadable(&self) -> String {
        format!("{}: the log cannot be read", self.name.display())
    }

    /// Whether the log contains no events.
    pub(crate) fn is_empty(&self) -> bool {
        self.file.metadata().is_ok_and(|meta| meta.len() == 0)
    }

    /// Whether this run has written a question to the log.
    pub(crate) fn has_question(&self) -> bool {
        let Ok(mut file) = File::open(&self.file) else {
            return false;
        };
        file.seek(SeekFrom::Start(self.before)).is_ok()
            && BufReader::new(file)
                .split(b'\n')
                .map_while(Result::ok)
                .any(|line| line.starts_with(QUESTION))
    }
}

/// The first bytes of a question that `llm-stream` writes.
const QUESTION: &[u8] = br#"{"type":"message","message":{"role":"user""#;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::TemporaryFolder;

    #[test]
    fn a_log_that_cannot_be_read_is_not_an_empty_one() {
        let folder = TemporaryFolder::new().expect("a folder");
        let log = Log::open(&folder.path().join("log")).expect("a log");
        assert_eq!(log.read().expect("an empty log"), "");
        std::fs::remove_file(&log.file).expect("removed");
        let error = log.read().expect_err("no log").to_string();
        assert!(error.ends_with("the log cannot be read"), "{error}");
    }
}
