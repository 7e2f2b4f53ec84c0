//! A file that grows, by its name: it may not be there yet, and it may be replaced, truncated and
//! removed, as `tail -F` follows it.

use super::{BLOCK, Piece, Source};
use anyhow::{Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{FileType, OFlags, Stat, fstat, fstatfs, stat};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use stdio::Failure;

/// A file that is followed by its name.
#[derive(Debug)]
pub(super) struct GrowingFile {
    path: PathBuf,
    file: Option<File>,
    /// How many bytes of the file were returned. Nothing behind a line's end counts, unless the line
    /// is longer than a block: a writer that died may leave a part of a line, which the next writer
    /// takes out.
    returned: u64,
    block: Vec<u8>,
    watch: Watch,
    /// Whether the file has been replaced, so that the rest of it is returned without a line feed.
    takes_rest: bool,
    /// Whether it was reported that there is no file.
    is_missed: bool,
}

impl GrowingFile {
    /// Opens the file of this name, or waits for one; `None` for what is not a file, such as a FIFO.
    ///
    /// # Errors
    /// One line for a folder, and for a file that cannot be opened.
    pub(super) fn open(path: &Path) -> Result<Option<GrowingFile>> {
        let kind = stat(path).map(|state| FileType::from_raw_mode(state.st_mode));
        let file = match kind {
            Ok(FileType::RegularFile) => Some(open(path).map_err(|error| Failure::Read {
                file: path.display().to_string(),
                error,
            })?),
            Ok(FileType::Directory) => bail!(
                "{}: a folder cannot be followed, name one of its files",
                path.display()
            ),
            Ok(_) => return Ok(None),
            Err(_) => None,
        };
        let mut growing = GrowingFile {
            path: path.to_owned(),
            file: None,
            returned: 0,
            block: vec![0; BLOCK],
            watch: Watch::new(path),
            takes_rest: false,
            is_missed: false,
        };
        if let Some(file) = file {
            growing.begin(file);
        }
        Ok(Some(growing))
    }

    /// Goes on with this file, from its beginning.
    fn begin(&mut self, file: File) {
        self.watch.follow(&file);
        self.file = Some(file);
        self.returned = 0;
        self.takes_rest = false;
        self.is_missed = false;
    }

    /// How many bytes at the front of the block can be returned now.
    fn read(&mut self) -> Result<usize> {
        let Some(file) = &self.file else { return Ok(0) };
        let count = loop {
            match file.read_at(&mut self.block, self.returned) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(Failure::Read {
                        file: self.path.display().to_string(),
                        error,
                    }
                    .into());
                }
                Ok(count) => break count,
            }
        };
        let feed = self.block[..count].iter().rposition(|byte| *byte == b'\n');
        Ok(match feed {
            Some(feed) => feed + 1,
            None if self.takes_rest || count == self.block.len() => count,
            None => 0,
        })
    }

    /// What has become of the file, of which all whole lines were returned.
    fn look(&mut self) -> Look {
        let name = self.path.display();
        let there = stat(&self.path).ok().filter(|state| is_file(*state));
        let held = self.file.as_ref().and_then(|file| fstat(file).ok());
        let length = held.map_or(0, |held| u64::try_from(held.st_size).unwrap_or(0));
        match (there, held) {
            (Some(there), Some(held)) if id(there) == id(held) => {
                self.is_missed = false;
                if length >= self.returned {
                    return Look::Same;
                }
                self.returned = 0;
                let text = format!("{name} was truncated, what follows is from its beginning");
                Look::Other(Some(Piece::Anew("file_truncated", text)))
            }
            // A last line that nobody will complete.
            (Some(_), Some(_)) if length > self.returned && !self.takes_rest => {
                self.takes_rest = true;
                Look::Other(None)
            }
            (Some(_), _) => {
                // A file that cannot be opened is as good as none.
                let Ok(file) = open(&self.path) else {
                    return self.miss("cannot be read");
                };
                let text = format!("{name} was replaced, what follows is the new file");
                self.begin(file);
                Look::Other(held.map(|_| Piece::Anew("file_replaced", text)))
            }
            (None, Some(_)) => self.miss("was removed"),
            (None, None) => self.miss("is not there yet"),
        }
    }

    /// Reports once that there is no file.
    fn miss(&mut self, how: &str) -> Look {
        if std::mem::replace(&mut self.is_missed, true) {
            return Look::Same;
        }
        let text = format!("{} {how}, waiting for it", self.path.display());
        Look::Other(Some(Piece::Waiting(text)))
    }
}

/// What has become of a file.
enum Look {
    /// Nothing: more lines are to be waited for.
    Same,
    /// Something that is to be reported, or that there is more to read now.
    Other(Option<Piece<'static>>),
}

impl Source for GrowingFile {
    fn next(&mut self) -> Result<Piece<'_>> {
        loop {
            let count = self.read()?;
            if count > 0 {
                self.returned += count as u64;
                return Ok(Piece::Lines(&self.block[..count]));
            }
            match self.look() {
                Look::Same => self.watch.wait()?,
                Look::Other(None) => {}
                Look::Other(Some(piece)) => return Ok(piece),
            }
        }
    }
}

/// Opens an ordinary file. One that has become a FIFO is not waited for.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    match fstat(&file) {
        Ok(state) if is_file(state) => Ok(file),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn is_file(state: Stat) -> bool {
    FileType::from_raw_mode(state.st_mode) == FileType::RegularFile
}

/// Device and inode: the same for a file under any name.
fn id(state: Stat) -> (u64, u64) {
    (state.st_dev, state.st_ino)
}

/// Waits until a file, or what its name leads to, may have changed.
#[derive(Debug)]
struct Watch {
    /// `None` where the system has no more of them.
    changes: Option<OwnedFd>,
    /// The watch of the file that is open.
    file: Option<i32>,
    /// Whether changes may go unseen, so that the file is looked at each second.
    is_blind: bool,
}

/// How often a file is looked at whose changes are not reported.
const LOOK: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

impl Watch {
    /// Watches the folder of `path` for another file of that name.
    fn new(path: &Path) -> Watch {
        let changes = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let flags = WatchFlags::CREATE
            | WatchFlags::MOVED_TO
            | WatchFlags::MOVED_FROM
            | WatchFlags::DELETE
            | WatchFlags::ATTRIB
            | WatchFlags::ONLYDIR;
        let watched = changes
            .as_ref()
            .and_then(|changes| inotify::add_watch(changes, folder, flags).ok());
        Watch {
            changes,
            file: None,
            // What a link leads to is in another folder.
            is_blind: watched.is_none() || path.is_symlink(),
        }
    }

    /// Watches this file in place of the one before.
    fn follow(&mut self, file: &File) {
        let Some(changes) = &self.changes else { return };
        if let Some(before) = self.file.take() {
            // Fails where the file is gone, and the watch with it.
            let _ = inotify::remove_watch(changes, before);
        }
        let flags = WatchFlags::MODIFY
            | WatchFlags::ATTRIB
            | WatchFlags::MOVE_SELF
            | WatchFlags::DELETE_SELF;
        // The file itself, and not what has its name by now.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        self.file = inotify::add_watch(changes, path, flags).ok();
        self.is_blind |= self.file.is_none() || is_remote(file);
    }

    /// Waits for a change. Changes since the last call count.
    ///
    /// # Errors
    /// When the system cannot wait.
    fn wait(&self) -> Result<()> {
        let Some(changes) = &self.changes else {
            poll(&mut [], Some(&LOOK))?;
            return Ok(());
        };
        let most = self.is_blind.then_some(&LOOK);
        match poll(&mut [PollFd::new(changes, PollFlags::IN)], most) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        // What the changes are shows the file itself.
        let mut block = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(changes, &mut block);
        while events.next().is_ok() {}
        Ok(())
    }
}

/// Whether other machines may write to the file, of which inotify does not report: the file systems
/// that tail(1) of coreutils calls remote
/// (<https://github.com/coreutils/coreutils/blob/master/src/stat.c>, `human_fstype`).
fn is_remote(file: &File) -> bool {
    const REMOTE: [i64; 10] = [
        0x0000_517b, // smb
        0x0000_6969, // nfs
        0x00c3_6400, // ceph
        0x0102_1997, // 9p
        0x0bd0_0bd0, // lustre
        0x5346_414f, // afs
        0x6573_5546, // fuse
        0x7375_7245, // coda
        0xfe53_4d42, // smb2
        0xff53_4d42, // cifs
    ];
    fstatfs(file).is_ok_and(|state| REMOTE.contains(&(state.f_type & 0xffff_ffff)))
}
