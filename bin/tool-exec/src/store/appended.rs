//! A file to which whole lines are appended, and that is read again after a crash.

use super::file_id::FileId;
use super::lock::Locks;
use anyhow::{Context, bail};
use event::Raw;
use event::payload;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use stdio::{BadLine, BadLines, Filter};

/// The longest cut line that is moved into a warning, in bytes: what a warning carries whole.
const CARRIED: usize = 64 * 1024;

/// A file to which whole lines are appended. It is locked for this run.
#[derive(Debug)]
pub struct AppendedFile {
    /// Its handle.
    pub file: File,
    /// The file as it was named.
    pub name: String,
    /// Whether standard output is the same file.
    pub is_stdout: bool,
    /// Which file it is.
    pub id: FileId,
}

impl AppendedFile {
    /// Opens and locks the file, and creates it for this user alone if it is missing. `what` names
    /// it in messages. A last line without its line feed gets one if it is complete; a line that
    /// was cut goes into a `warning`, so that nothing that is appended becomes the rest of it.
    ///
    /// # Errors
    /// When it cannot be opened, written or locked, when it is a link, or not an ordinary file:
    /// that could not be read again.
    pub fn open(
        path: &Path,
        what: &str,
        locks: &mut Locks,
        options: &Filter,
    ) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        let cannot = || format!("{name}: the {what} cannot be used, check the path");
        let file = match open(path) {
            Err(e) if e.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
                bail!("{name}: the {what} is a link, which is not followed; name the file itself")
            }
            file => file.with_context(cannot)?,
        };
        AppendedFile::new(file, path, what, locks, options)
    }

    /// As [`AppendedFile::open`], for a path that leads to the file of standard output. It may be a
    /// link: whoever opened standard output has followed it already.
    ///
    /// # Errors
    /// When it cannot be opened, written or locked.
    pub fn open_stdout(
        path: &Path,
        what: &str,
        locks: &mut Locks,
        options: &Filter,
    ) -> anyhow::Result<Self> {
        let cannot = || {
            format!(
                "{}: the {what} cannot be used, check the path",
                path.display()
            )
        };
        let file = open_with(path, OFlags::empty()).with_context(cannot)?;
        AppendedFile::new(file, path, what, locks, options)
    }

    fn new(
        file: File,
        path: &Path,
        what: &str,
        locks: &mut Locks,
        options: &Filter,
    ) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        let Some(id) = FileId::of(&file) else {
            bail!(
                "{name}: the {what} is not an ordinary file and could not be read after a crash, name another"
            );
        };
        locks.take(&file, path)?;
        let mut appended = AppendedFile {
            file,
            name,
            is_stdout: FileId::of(io::stdout()) == Some(id),
            id,
        };
        let ended = appended.end_last_line(options);
        ended.with_context(|| {
            format!(
                "{}: the {what} cannot be used, check the path",
                appended.name
            )
        })?;
        Ok(appended)
    }

    /// Appends `pieces`, which end in a line feed together. After an error nothing of them is left
    /// in the file.
    ///
    /// # Errors
    /// When the disk is full or broken.
    pub fn append<'p>(&mut self, pieces: impl Iterator<Item = &'p [u8]>) -> io::Result<()> {
        let before = self.file.metadata()?.len();
        let mut written = 0;
        for mut piece in pieces {
            while !piece.is_empty() {
                match self.file.write(piece) {
                    Ok(n) => {
                        piece = &piece[n..];
                        written += n as u64;
                    }
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) => {
                        // Only what this call wrote is taken back: another program may have
                        // appended to the file since.
                        if written > 0 && self.file.metadata()?.len() == before + written {
                            self.file.set_len(before)?;
                        }
                        return Err(e);
                    }
                }
            }
        }
        Ok(())
    }

    /// Waits until all that was appended is on disk.
    ///
    /// # Errors
    /// When the disk is broken.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn end_last_line(&mut self, options: &Filter) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        let mut last = [0];
        if length == 0 || (self.file.read_exact_at(&mut last, length - 1).is_ok() && last == *b"\n")
        {
            return Ok(());
        }
        let (line, number) = self.last_line(length)?;
        let is_complete = std::str::from_utf8(&line).is_ok_and(|line| Raw::parse(line).is_ok());
        if is_complete || line.len() > CARRIED {
            return self.append([&b"\n"[..]].into_iter());
        }
        let mut warning = Vec::new();
        let bad = BadLine {
            file: &self.name,
            number,
            start: &line,
            length: line.len() as u64,
            what: "it was cut",
        };
        let _ = BadLines::default().warn(options, bad, |text| {
            payload::line(&mut warning, &(*text).into(), None, 0, None)
        });
        warning.push(b'\n');
        // The cut line is taken out, and put back where the warning does not fit.
        self.file.set_len(length - line.len() as u64)?;
        self.append([&warning[..]].into_iter())
            .or_else(|e| self.append([&line[..]].into_iter()).and(Err(e)))
    }

    /// The bytes after the last line feed, and the number of that line.
    fn last_line(&self, length: u64) -> io::Result<(Vec<u8>, u64)> {
        let (mut line, mut number, mut at) = (Vec::new(), 1, 0);
        let mut block = vec![0; CARRIED];
        while at < length {
            let n = self.file.read_at(&mut block, at)?;
            if n == 0 {
                break;
            }
            at += n as u64;
            let new = match block[..n].iter().rposition(|b| *b == b'\n') {
                Some(feed) => {
                    line.clear();
                    number += block[..n].iter().filter(|b| **b == b'\n').count() as u64;
                    &block[feed + 1..n]
                }
                None => &block[..n],
            };
            line.extend_from_slice(new);
        }
        Ok((line, number))
    }
}

/// Opens a file without following a link in its place, which somebody else may have put there, and
/// without waiting for the other end of a pipe. The names of open files (`/dev/fd/3`) are links of
/// the system and are followed.
fn open(path: &Path) -> io::Result<File> {
    let is_descriptor = ["/dev/fd", "/dev/stdout", "/proc/self/fd"]
        .iter()
        .any(|folder| path.starts_with(folder));
    let nofollow = if is_descriptor {
        OFlags::empty()
    } else {
        OFlags::NOFOLLOW
    };
    open_with(path, nofollow)
}

fn open_with(path: &Path, nofollow: OFlags) -> io::Result<File> {
    let flags =
        i32::try_from((nofollow | OFlags::NONBLOCK | OFlags::NOCTTY).bits()).unwrap_or_default();
    OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(flags)
        .open(path)
}
