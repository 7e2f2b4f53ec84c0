//! Follows a growing file by its name, like `tail -F`: the file may not exist yet, and may be
//! replaced, truncated or removed.

use super::{BLOCK, Piece, Source};
use anyhow::{Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{FileType, OFlags, Stat, fstat, stat};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use stdio::{Failure, Filter, StopSignals};

/// The interval at which the file is checked. inotify alone is not enough: the name may refer to
/// another file by now, another machine may write to the file, and the system may have run out of
/// watches.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 250_000_000,
};

/// A file that is followed by its name.
#[derive(Debug)]
pub(super) struct GrowingFile {
    path: PathBuf,
    signals: StopSignals,
    file: Option<File>,
    /// An inotify descriptor that becomes readable when `file` changes; `None` if there is none.
    changes: Option<OwnedFd>,
    /// The number of bytes of the file that were returned. An incomplete last line is returned only
    /// if it fills a block: a writer that died may leave one, and the next writer removes it.
    returned: u64,
    block: Vec<u8>,
    /// Whether another file has the name now, so that the last line of this file can no longer be
    /// completed and is returned as it is.
    takes_rest: bool,
    /// Whether the missing file was reported.
    has_reported_missing: bool,
}

impl GrowingFile {
    /// Opens the file at `path`, or waits until it exists. Returns `None` if the path is not a
    /// regular file, such as a FIFO.
    ///
    /// # Errors
    /// Fails with one line for a folder, and for a file that cannot be opened.
    pub(super) fn open(path: &Path, filter: &Filter) -> Result<Option<GrowingFile>> {
        let kind = stat(path).map(|state| FileType::from_raw_mode(state.st_mode));
        let file = match kind {
            Ok(FileType::RegularFile) => Some(open(path).map_err(|error| unreadable(path, error))?),
            Ok(FileType::Directory) => bail!(
                "{}: a folder cannot be followed, name one of its files",
                path.display()
            ),
            Ok(_) => return Ok(None),
            Err(_) => None,
        };
        let mut growing = GrowingFile {
            path: path.to_owned(),
            signals: StopSignals::of(filter)?,
            file: None,
            changes: None,
            returned: 0,
            block: vec![0; BLOCK],
            takes_rest: false,
            has_reported_missing: false,
        };
        if let Some(file) = file {
            growing.begin(file);
        }
        Ok(Some(growing))
    }

    /// Follows this file from its beginning.
    fn begin(&mut self, file: File) {
        self.changes = changes(&file);
        self.file = Some(file);
        self.returned = 0;
        self.takes_rest = false;
        self.has_reported_missing = false;
    }

    /// Reads the next bytes into the block. Returns how many of them can be returned now.
    fn read(&mut self) -> Result<usize> {
        let Some(file) = &self.file else { return Ok(0) };
        let count = loop {
            match file.read_at(&mut self.block, self.returned) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read.map_err(|error| unreadable(&self.path, error))?,
            }
        };
        let feed = self.block[..count].iter().rposition(|byte| *byte == b'\n');
        Ok(match feed {
            Some(feed) => feed + 1,
            None if self.takes_rest || count == self.block.len() => count,
            None => 0,
        })
    }

    /// Compares the open file, whose complete lines were all returned, with the file that has the
    /// name now.
    fn look(&mut self) -> Look {
        let name = self.path.display();
        let named = stat(&self.path).ok().filter(|state| is_file(*state));
        let open_file = self.file.as_ref().and_then(|file| fstat(file).ok());
        let length = open_file.map_or(0, |state| u64::try_from(state.st_size).unwrap_or(0));
        match (named, open_file) {
            (Some(named), Some(open_file)) if id(named) == id(open_file) => {
                self.has_reported_missing = false;
                if length >= self.returned {
                    return Look::Unchanged;
                }
                self.returned = 0;
                let text = format!("{name} was truncated; continuing from its beginning");
                Look::Report(Piece::Restart("file_truncated", text))
            }
            (Some(_), Some(_)) if length > self.returned && !self.takes_rest => {
                self.takes_rest = true;
                Look::HasMore
            }
            (Some(_), _) => {
                let Ok(file) = open(&self.path) else {
                    return self.missing("cannot be read");
                };
                let text = format!("{name} was replaced; continuing with the new file");
                self.begin(file);
                match open_file {
                    Some(_) => Look::Report(Piece::Restart("file_replaced", text)),
                    None => Look::HasMore,
                }
            }
            (None, Some(_)) => self.missing("was removed"),
            (None, None) => self.missing("is not there yet"),
        }
    }

    /// Reports once that the file is missing.
    fn missing(&mut self, how: &str) -> Look {
        if std::mem::replace(&mut self.has_reported_missing, true) {
            return Look::Unchanged;
        }
        let text = format!("{} {how}, waiting for it", self.path.display());
        Look::Report(Piece::Waiting(text))
    }

    /// Waits until the file may have changed, at most until the next check is due.
    ///
    /// # Errors
    /// Fails if the system cannot wait.
    fn wait(&self) -> Result<()> {
        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
        fds.extend(self.changes.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
        match poll(&mut fds, Some(&LOOK)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        // The notifications are dropped: the next read shows what has changed.
        if let Some(changes) = &self.changes {
            while rustix::io::read(changes, &mut [0; 4096]).is_ok() {}
        }
        Ok(())
    }
}

/// The result of a check of the file.
enum Look {
    /// The file is unchanged.
    Unchanged,
    /// More bytes can be read now.
    HasMore,
    /// A change to report.
    Report(Piece<'static>),
}

impl Source for GrowingFile {
    fn next(&mut self) -> Result<Piece<'_>> {
        while self.signals.seen().is_none() {
            let count = self.read()?;
            if count > 0 {
                self.returned += count as u64;
                return Ok(Piece::Lines(&self.block[..count]));
            }
            match self.look() {
                Look::Unchanged => self.wait()?,
                Look::HasMore => {}
                Look::Report(piece) => return Ok(piece),
            }
        }
        Ok(Piece::Stopped)
    }
}

/// Opens a regular file. Without the flag, `open` would block if the name refers to a FIFO by now.
fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    match fstat(&file) {
        Ok(state) if is_file(state) => Ok(file),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// Returns a descriptor that becomes readable when the file changes or loses its name; `None` if
/// the system has run out of them.
fn changes(file: &File) -> Option<OwnedFd> {
    let changes = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
    let flags = WatchFlags::MODIFY | WatchFlags::ATTRIB | WatchFlags::MOVE_SELF;
    // The name may refer to another file by now, so the watch is set through the open descriptor.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    inotify::add_watch(&changes, path, flags).ok()?;
    Some(changes)
}

fn is_file(state: Stat) -> bool {
    FileType::from_raw_mode(state.st_mode) == FileType::RegularFile
}

/// Returns the device and inode, which identify a file under any name.
fn id(state: Stat) -> (u64, u64) {
    (state.st_dev, state.st_ino)
}

fn unreadable(path: &Path, error: io::Error) -> Failure {
    Failure::Read {
        file: path.display().to_string(),
        error,
    }
}
