//! The files that a user names, and the files in named folders.

use anyhow::{Result, anyhow, bail};
use std::path::{Path, PathBuf};

/// A file that may be a recording.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RecordingFile {
    /// The path of the file.
    pub path: PathBuf,
    /// Whether the user named the file itself rather than its folder. Files of other kinds in a
    /// folder are skipped.
    pub is_named: bool,
}

/// Returns the files of `paths`, with folders walked in the order of names. Hidden files, indexes,
/// links to folders and special files in a folder (a pipe would never end) are left out. So is a
/// log `NAME.events.ndjson` beside `NAME.sse`, `.ndjson` or `.json`, because it was made from that
/// body.
///
/// # Errors
/// Fails if a folder cannot be read.
pub(crate) fn candidates(paths: &[PathBuf]) -> Result<Vec<RecordingFile>> {
    let mut out = Vec::new();
    for path in paths {
        if path.is_dir() {
            walk(path, &mut out)?;
        } else {
            out.push(RecordingFile {
                path: path.clone(),
                is_named: true,
            });
        }
    }
    Ok(out)
}

/// Returns all bytes of a recording.
///
/// # Errors
/// Fails if the file cannot be read, or is not a regular file: a device or a pipe may never end.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>> {
    let unreadable = unreadable(path);
    if !path.metadata().map_err(&unreadable)?.is_file() {
        bail!(
            "{}: not an ordinary file; save the recording into one",
            path.display()
        );
    }
    std::fs::read(path).map_err(unreadable)
}

/// Converts a system error for the file at `path` into a message.
pub(crate) fn unreadable(path: &Path) -> impl Fn(std::io::Error) -> anyhow::Error {
    move |e| {
        anyhow!(
            "{}: {e}; check the path and its permissions",
            path.display()
        )
    }
}

fn walk(folder: &Path, out: &mut Vec<RecordingFile>) -> Result<()> {
    let unreadable = unreadable(folder);
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(&unreadable)? {
        entries.push(entry.map_err(&unreadable)?);
    }
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let kind = entry.file_type().map_err(&unreadable)?;
        if name.starts_with('.')
            || name == "index.ndjson"
            || name.ends_with(".draft")
            || is_made(&path, &name)
        {
            continue;
        }
        if kind.is_dir() {
            walk(&path, out)?;
        } else if path.is_file() {
            out.push(RecordingFile {
                path,
                is_named: false,
            });
        }
    }
    Ok(())
}

fn is_made(path: &Path, name: &str) -> bool {
    let Some(stem) = name.strip_suffix(".events.ndjson") else {
        return false;
    };
    ["sse", "ndjson", "json"]
        .iter()
        .any(|end| path.with_file_name(format!("{stem}.{end}")).is_file())
}
