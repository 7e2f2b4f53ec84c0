//! Files by identity, locks on them, and files to which lines are appended.

use anyhow::{Context, bail};
use event::{Raw, payload};
use rustix::fs::{FileType, FlockOperation, OFlags, Stat, flock, fstat, stat};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};
use stdio::{BadLine, BadLines, Filter};

/// A regular file, identified by device and inode. Every name, link or descriptor of the same file
/// gives the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId(u64, u64);

impl FileId {
    /// Returns the id of an open file, or `None` if it is not a regular file.
    pub fn of(file: impl AsFd) -> Option<FileId> {
        FileId::of_state(fstat(file).ok()?)
    }

    /// Returns the id of the file at `path`, or `None` if it is missing or not a regular file.
    pub fn at(path: &Path) -> Option<FileId> {
        FileId::of_state(stat(path).ok()?)
    }

    /// Returns the id of the file that an operand names; `-` names standard input.
    pub fn of_operand(path: &Path) -> Option<FileId> {
        if path == Path::new("-") {
            FileId::of(std::io::stdin())
        } else {
            FileId::at(path)
        }
    }

    fn of_state(state: Stat) -> Option<FileId> {
        (FileType::from_raw_mode(state.st_mode) == FileType::RegularFile)
            .then_some(FileId(state.st_dev, state.st_ino))
    }
}

// Locks on the files that hold calls and results, so that two runs do not run the same call twice.

/// How long to wait for a lock. If a process is killed while it spawns a command, the forked child
/// keeps the lock until it has executed the command.
const ENDING: Duration = Duration::from_millis(500);

/// The locks of this run. The system releases them when the process ends, even if it is killed.
#[derive(Debug, Default)]
pub struct Locks {
    /// One handle per file. A second handle of the same file would wait for the first.
    held: Vec<(FileId, File)>,
}

impl Locks {
    /// Locks `file`, which was opened as `path`, unless this run has already locked it under
    /// another name. A file that is not regular, such as a pipe, is not locked: bytes read from a
    /// pipe are gone for other readers.
    ///
    /// # Errors
    /// If another process holds the lock, or the file system does not support locks.
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
        while !lock(&handle).with_context(cannot)? {
            if start.elapsed() > ENDING {
                bail!(
                    "{name}: another tool-exec works on it, wait until that has ended, or name \
                     another file"
                )
            }
            std::thread::sleep(ENDING / 50);
        }
        self.held.push((id, handle));
        Ok(())
    }
}

/// Locks `file` for this handle. Returns `false` if another handle holds the lock. If another
/// handle holds it only briefly to test it ([`may_be_locked`]), waits for that handle.
///
/// # Errors
/// If the file system does not support locks.
pub fn lock(file: &File) -> io::Result<bool> {
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) if is_locked(file)? => return Ok(false),
            Err(Errno::WOULDBLOCK) => std::thread::yield_now(),
            Err(e) => return Err(e.into()),
        }
    }
}

/// Whether another handle holds the lock that [`lock`] takes. To test that, this handle briefly
/// takes a shared lock.
///
/// # Errors
/// If the file system does not support locks.
fn is_locked(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => {
            flock(file, FlockOperation::NonBlockingUnlock)?;
            Ok(false)
        }
        Err(Errno::WOULDBLOCK) => Ok(true),
        Err(e) => Err(e.into()),
    }
}

/// Whether another handle may hold the lock of a file that was opened with this result. The answer
/// is `false` only for a missing file or a lock that is free: if the check fails, the file counts
/// as locked, so that nobody removes or continues what another process still writes.
pub fn may_be_locked(opened: io::Result<File>) -> bool {
    match opened.and_then(|file| is_locked(&file)) {
        Ok(is_locked) => is_locked,
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

// A file to which whole lines are appended, and which is read again after a crash.

/// The longest truncated line, in bytes, that is moved into a warning. A warning can hold this much
/// unabridged.
const CARRIED: usize = 64 * 1024;

/// A file to which whole lines are appended. It is locked for this run.
#[derive(Debug)]
pub struct AppendedFile {
    /// The open file.
    pub file: File,
    /// The path that the file was opened by.
    pub name: String,
    /// Whether standard output is the same file.
    pub is_stdout: bool,
    /// The identity of the file.
    pub id: FileId,
}

impl AppendedFile {
    /// Opens and locks the file. Creates a missing file with permissions for this user only. `what`
    /// describes the file in messages. If the last line has no line feed, a complete line gets one,
    /// and a truncated line is moved into a `warning`, so that the next appended line is not joined
    /// to it.
    ///
    /// Unless `follows` is set, a link at `path` is rejected, since another user may have put it
    /// there. The names of open files (`/dev/fd/3`) are links made by the system and are followed.
    ///
    /// # Errors
    /// If the file cannot be opened, written or locked, is a rejected link, or is not a regular
    /// file and so could not be read again.
    pub fn open(
        path: &Path,
        what: &str,
        follows: bool,
        locks: &mut Locks,
        options: &Filter,
    ) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        let cannot = || format!("{name}: the {what} cannot be used, check the path");
        let follows = follows
            || ["/dev/fd", "/dev/stdout", "/proc/self/fd"]
                .iter()
                .any(|folder| path.starts_with(folder));
        // Do not block until the other end of a pipe is opened.
        let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        flags.set(OFlags::NOFOLLOW, !follows);
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(i32::try_from(flags.bits()).unwrap_or_default())
            .open(path);
        let file = match file {
            Err(e) if e.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
                bail!("{name}: the {what} is a link, which is not followed; name the file itself")
            }
            file => file.with_context(cannot)?,
        };
        let Some(id) = FileId::of(&file) else {
            bail!(
                "{name}: the {what} is not an ordinary file and could not be read after a crash, \
                 name another"
            );
        };
        locks.take(&file, path)?;
        AppendedFile::healed(file, name.clone(), id, options).with_context(cannot)
    }

    /// Wraps a locked file `id`, which was opened as `name` for reading and appending. Repairs its
    /// last line as [`AppendedFile::open`] does.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub(crate) fn healed(
        file: File,
        name: String,
        id: FileId,
        options: &Filter,
    ) -> io::Result<Self> {
        let mut appended = AppendedFile {
            file,
            name,
            is_stdout: FileId::of(io::stdout()) == Some(id),
            id,
        };
        appended.end_last_line(options)?;
        Ok(appended)
    }

    /// Appends `pieces`, which together end in a line feed. If an error occurs, whole lines that
    /// were already written stay, since a follower may have read them. A partial line is removed.
    ///
    /// # Errors
    /// If the disk is full or broken. The error contains the number of bytes that stay.
    pub fn append<'p>(
        &mut self,
        pieces: impl Iterator<Item = &'p [u8]>,
    ) -> Result<(), FailedAppend> {
        let before = self.length()?;
        self.write(pieces).or_else(|(failed, written)| {
            self.take_back(before, written, failed.kept)?;
            Err(failed)
        })
    }

    /// Appends `pieces` to a file whose length is `before`. Unlike [`AppendedFile::append`], an
    /// error removes all of the pieces.
    ///
    /// # Errors
    /// As [`AppendedFile::append`].
    pub(crate) fn append_at<'p>(
        &mut self,
        before: u64,
        pieces: impl Iterator<Item = &'p [u8]>,
    ) -> io::Result<()> {
        self.write(pieces).or_else(|(failed, written)| {
            self.take_back(before, written, 0)?;
            Err(failed.error)
        })
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Writes `pieces`. An error includes the number of bytes written before it.
    fn write<'p>(
        &mut self,
        pieces: impl Iterator<Item = &'p [u8]>,
    ) -> Result<(), (FailedAppend, u64)> {
        let (mut written, mut kept) = (0, 0);
        for mut piece in pieces {
            while !piece.is_empty() {
                match self.file.write(piece) {
                    Ok(n) => {
                        let feed = piece[..n].iter().rposition(|byte| *byte == b'\n');
                        kept = feed.map_or(kept, |feed| written + feed as u64 + 1);
                        piece = &piece[n..];
                        written += n as u64;
                    }
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => {
                        return Err((FailedAppend { kept, error }, written));
                    }
                }
            }
        }
        Ok(())
    }

    /// Removes all but the first `kept` of the `written` bytes after `before`. Does nothing if
    /// another program has appended to the file since.
    fn take_back(&self, before: u64, written: u64, kept: u64) -> io::Result<()> {
        if written > kept && self.length()? == before + written {
            self.file.set_len(before + kept)?;
        }
        Ok(())
    }

    /// Waits until all appended bytes are on disk.
    ///
    /// # Errors
    /// If the disk is broken.
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
            return Ok(self.append([&b"\n"[..]].into_iter())?);
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
        // Remove the truncated line, and write it back if the warning does not fit on the disk.
        self.file.set_len(length - line.len() as u64)?;
        if let Err(failed) = self.append([&warning[..]].into_iter()) {
            self.append([&line[..]].into_iter())?;
            return Err(failed.error);
        }
        Ok(())
    }

    /// Returns the bytes after the last line feed, and the number of the line they form.
    fn last_line(&self, length: u64) -> io::Result<(Vec<u8>, u64)> {
        let mut line = Vec::new();
        let mut number = 1;
        let mut at = 0;
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

/// Why an append did not write all lines.
#[derive(Debug)]
pub struct FailedAppend {
    /// How many bytes of the lines stay in the file. They are whole lines.
    pub kept: u64,
    /// The error from the system.
    pub error: io::Error,
}

impl From<io::Error> for FailedAppend {
    fn from(error: io::Error) -> Self {
        FailedAppend { kept: 0, error }
    }
}

impl From<FailedAppend> for io::Error {
    fn from(failed: FailedAppend) -> Self {
        failed.error
    }
}

// Reading a file line by line.

/// Calls `look` with each line that is valid UTF-8.
///
/// # Errors
/// If the file cannot be read.
pub fn lines(from: impl Read, mut look: impl FnMut(&str)) -> io::Result<()> {
    let mut reader = BufReader::new(from);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        if let Ok(line) = std::str::from_utf8(&line) {
            look(line.trim_end_matches(['\n', '\r']));
        }
        line.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use testkit::Scratch;

    #[test]
    fn a_lock_that_cannot_be_checked_counts_as_held() {
        let scratch = Scratch::new();
        let open = || File::create(scratch.path("f"));
        let file = open().unwrap();
        assert!(!may_be_locked(open()));
        assert!(lock(&file).unwrap() && may_be_locked(open()));
        for (kind, may_be) in [
            (io::ErrorKind::NotFound, false),
            (io::ErrorKind::PermissionDenied, true),
            (io::ErrorKind::Other, true),
        ] {
            assert_eq!(may_be_locked(Err(kind.into())), may_be, "{kind:?}");
        }
    }

    #[test]
    fn whoever_asks_for_a_lock_keeps_nobody_from_it() {
        let scratch = Scratch::new();
        let open = || File::create(scratch.path("f")).unwrap();
        let (file, other, asking) = (open(), open(), open());
        let ends = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    is_locked(&asking).unwrap();
                }
            });
            let is_taken = |_| {
                let taken = lock(&file).unwrap();
                let refused = is_locked(&other).unwrap() && !lock(&other).unwrap();
                flock(&file, FlockOperation::NonBlockingUnlock).unwrap();
                taken && refused
            };
            let all = (0..10_000).all(is_taken);
            ends.store(true, Ordering::Relaxed);
            assert!(all);
        });
    }
}
