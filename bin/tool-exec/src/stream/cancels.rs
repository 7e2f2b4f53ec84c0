//! `--cancel-on`: the lines of a file or a named pipe, each of which cancels a call, as they come.

use anyhow::{Context, bail};
use std::fs::{File, FileType};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

/// How often a file is looked at. A pipe needs no looking.
const PAUSE: Duration = Duration::from_millis(100);

/// The longest line; a longer one is not the id of a call.
const MOST: usize = 64 * 1024;

/// The lines that cancel calls.
#[derive(Debug, Default)]
pub(crate) struct Cancels {
    path: Option<PathBuf>,
    lines: Option<mpsc::Receiver<String>>,
}

/// Where they come from.
#[derive(Debug, Default)]
struct CancelSource {
    path: PathBuf,
    file: FileState,
    lines: CancelLines,
}

/// How far a file was read.
#[derive(Debug, Default)]
struct FileState {
    /// Which file it was: a new one with the same name is read from its beginning.
    identity: (u64, u64),
    at: u64,
}

/// Bytes that come in pieces, as lines.
#[derive(Debug, Default)]
struct CancelLines {
    rest: Vec<u8>,
    /// Whether the line that comes is too long, and is skipped.
    is_skipped: bool,
}

impl Cancels {
    /// The lines of `path`, which may not exist yet. Nothing is waited for.
    ///
    /// # Errors
    /// When it is neither a file nor a named pipe.
    pub(crate) fn of(path: Option<&Path>) -> anyhow::Result<Self> {
        if let Some(path) = path
            && let Ok(meta) = path.metadata()
            && !(meta.is_file() || meta.file_type().is_fifo())
        {
            bail!(
                "{}: neither a file nor a named pipe, name one of them for --cancel-on",
                path.display()
            );
        }
        Ok(Cancels {
            path: path.map(Path::to_owned),
            lines: None,
        })
    }

    /// Begins to read in a task of its own, and returns the lines that are there already, if it is
    /// a file.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn begin(&mut self) -> anyhow::Result<Vec<String>> {
        let Some(path) = self.path.take() else {
            return Ok(Vec::new());
        };
        let mut source = CancelSource {
            path,
            ..CancelSource::default()
        };
        let first = match kind(&source.path) {
            Some(kind) if kind.is_file() => source.more(),
            _ => Ok(Vec::new()),
        };
        let first = first.with_context(|| {
            format!(
                "{}: the file of --cancel-on cannot be read",
                source.path.display()
            )
        })?;
        let (send, lines) = mpsc::channel(64);
        self.lines = Some(lines);
        tokio::task::spawn_local(source.send(send));
        Ok(first)
    }

    /// The next line; `None` without a file to read.
    pub(crate) async fn next(&mut self) -> Option<String> {
        self.lines.as_mut()?.recv().await
    }

    /// A line that is there already.
    pub(crate) fn next_now(&mut self) -> Option<String> {
        self.lines.as_mut()?.try_recv().ok()
    }
}

impl CancelSource {
    /// Sends the lines that come from now on, until the run has ended.
    async fn send(mut self, send: mpsc::Sender<String>) {
        loop {
            let lines = match kind(&self.path) {
                Some(kind) if kind.is_fifo() => self.pipe(&send).await,
                Some(kind) if kind.is_file() => self.more(),
                _ => Ok(Vec::new()),
            };
            // What cannot be read now may be readable later: the user may mend it.
            for line in lines.unwrap_or_default() {
                if send.send(line).await.is_err() {
                    return;
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Sends the lines of a named pipe. It is opened for writing too: then it never ends, however
    /// many writers come and go.
    async fn pipe(&mut self, send: &mpsc::Sender<String>) -> std::io::Result<Vec<String>> {
        let mut pipe = pipe::OpenOptions::new()
            .read_write(true)
            .open_receiver(&self.path)?;
        let mut bytes = [0; 4096];
        loop {
            let n = pipe.read(&mut bytes).await?;
            for line in self.lines.take(&bytes[..n]) {
                if send.send(line).await.is_err() {
                    return Ok(Vec::new());
                }
            }
        }
    }

    /// The lines that have been added to the file. One that has become shorter, or was replaced, is
    /// read from its beginning.
    fn more(&mut self) -> std::io::Result<Vec<String>> {
        let flags = rustix::fs::OFlags::NONBLOCK.bits(); // it may have become a pipe meanwhile
        let flags = i32::try_from(flags).unwrap_or_default();
        let mut file: File = std::fs::OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(&self.path)?;
        let meta = file.metadata()?;
        let identity = (meta.dev(), meta.ino());
        if identity != self.file.identity || meta.len() < self.file.at {
            (self.file, self.lines) = (FileState { identity, at: 0 }, CancelLines::default());
        }
        let mut lines = Vec::new();
        let mut bytes = [0; 4096];
        file.seek(SeekFrom::Start(self.file.at))?;
        // What is written while this reads comes the next time.
        while self.file.at < meta.len() {
            let n = file.read(&mut bytes)?;
            if n == 0 {
                break;
            }
            self.file.at += n as u64;
            lines.extend(self.lines.take(&bytes[..n]));
        }
        Ok(lines)
    }
}

fn kind(path: &Path) -> Option<FileType> {
    path.metadata().ok().map(|meta| meta.file_type())
}

impl CancelLines {
    /// The lines that these bytes complete.
    fn take(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        for piece in bytes.split_inclusive(|b| *b == b'\n') {
            self.rest.extend_from_slice(piece);
            self.is_skipped |= self.rest.len() > MOST;
            if self.is_skipped {
                self.rest.clear();
            }
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.rest);
                if !std::mem::take(&mut self.is_skipped) {
                    lines.extend(
                        String::from_utf8(line)
                            .ok()
                            .filter(|line| !line.trim().is_empty()),
                    );
                }
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_and_are_bounded() {
        let mut lines = CancelLines::default();
        assert!(lines.take(b"a").is_empty());
        assert_eq!(lines.take(b"b\n\n c\nd"), ["ab\n", " c\n"]);
        for _ in 0..40 {
            assert!(lines.take(&[b'x'; 4096]).is_empty() && lines.rest.len() <= MOST);
        }
        assert_eq!(lines.take(b"x\ne\n"), ["e\n"]);
    }
}
