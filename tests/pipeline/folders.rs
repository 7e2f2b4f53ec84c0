//! The folders of fixtures, each of which is a test.

use std::fs;
use std::path::{Path, PathBuf};

/// The folders of `root` with their names, sorted by these.
///
/// # Panics
/// When `root` cannot be read.
pub fn folders(root: &Path) -> Vec<(String, PathBuf)> {
    let mut folders: Vec<(String, PathBuf)> = fs::read_dir(root)
        .unwrap_or_else(|e| panic!("{}: {e}", root.display()))
        .map(|entry| entry.expect("a readable folder"))
        .filter(|entry| entry.path().is_dir())
        .map(|entry| {
            (
                entry.file_name().to_string_lossy().into_owned(),
                entry.path(),
            )
        })
        .collect();
    folders.sort();
    folders
}
