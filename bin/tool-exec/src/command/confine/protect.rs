//! The files of `tool-exec` itself, which no command may write: a command that could change its
//! log, its tools or what is approved could choose what runs next.

use super::place::Place;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file or folder of `tool-exec`, with the words for it in a message. It need not exist yet.
#[derive(Clone, Debug)]
pub struct ProtectedFile {
    /// What it is: "the log".
    pub what: &'static str,
    /// Where it is.
    pub path: PathBuf,
}

/// The first of `files` that a command which may write `place` could change, remove or replace.
pub fn covered<'a>(place: &Place, files: &'a [ProtectedFile]) -> Option<&'a ProtectedFile> {
    let written = identity(&place.real)?;
    files.iter().find(|file| {
        let path = std::path::absolute(&file.path).unwrap_or_else(|_| file.path.clone());
        // Where a part of the path is a link, both the folder of the link and what it leads to must
        // stay as they are.
        let real = path.canonicalize().ok();
        let above = |path: &Path| {
            path.ancestors()
                .any(|folder| identity(folder) == Some(written))
        };
        above(&path) || real.is_some_and(|real| above(&real))
    })
}

/// What tells a file from all others, whatever the path by which it is reached; `None` where there
/// is nothing.
fn identity(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|data| (data.dev(), data.ino()))
}

/// The regular files that this process reads from or writes to as its standard files: a log is
/// often one of them.
pub fn standard_files() -> impl Iterator<Item = ProtectedFile> {
    let names = [
        (0, "standard input"),
        (1, "standard output"),
        (2, "standard error"),
    ];
    names.into_iter().filter_map(|(number, what)| {
        let path = PathBuf::from(format!("/proc/self/fd/{number}"));
        let file = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let path = std::fs::read_link(path).ok()?;
        // The path of a file that was removed ends in " (deleted)".
        (identity(&path) == Some((file.dev(), file.ino()))).then_some(ProtectedFile { what, path })
    })
}
