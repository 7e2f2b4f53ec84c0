//! Which file a name or a descriptor leads to.

use rustix::fs::{FileType, Stat, fstat, stat};
use std::os::fd::AsFd;
use std::path::Path;

/// An ordinary file by its device and inode: the same by whatever name, link or descriptor it is
/// reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId(u64, u64);

impl FileId {
    /// The file that is open; `None` if it is not an ordinary one.
    pub fn of(file: impl AsFd) -> Option<FileId> {
        FileId::of_state(fstat(file).ok()?)
    }

    /// The file that a path leads to, likewise.
    pub fn at(path: &Path) -> Option<FileId> {
        FileId::of_state(stat(path).ok()?)
    }

    /// The file that an operand names: standard input for `-`.
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
