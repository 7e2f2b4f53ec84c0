//! A folder for one command, empty when the command starts and removed when it ends: its home and
//! its folder for temporary files.

use crate::stream::since_1970;
use rustix::fs::{
    AtFlags, CWD, Dir, Mode, OFlags, RenameFlags, chmod, openat, renameat_with, unlinkat,
};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A folder that is removed with all its content on drop.
#[derive(Debug)]
pub(crate) struct ScratchFolder(PathBuf);

impl ScratchFolder {
    /// Creates the folder, accessible only to this user.
    ///
    /// # Errors
    /// If the folder cannot be created, or if the path exists, even as a link: another user may
    /// have put it there.
    pub(crate) fn make(path: &Path) -> std::io::Result<Self> {
        std::fs::DirBuilder::new().mode(0o700).create(path)?;
        Ok(ScratchFolder(path.to_owned()))
    }

    /// Takes over a folder that [`ScratchFolder::make`] created in a process that has ended.
    pub(crate) fn adopt(path: PathBuf) -> Self {
        ScratchFolder(path)
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = remove(&self.0); // fails if the command left something that cannot be removed
    }
}

/// Returns an unused path for a folder in the system's folder for temporary files.
pub(crate) fn unused_name() -> PathBuf {
    static NAMES: AtomicU64 = AtomicU64::new(1);
    let process = std::process::id();
    let now = since_1970().as_nanos();
    let number = NAMES.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("tool-exec-{process}-{now:x}-{number}"))
}

// Removes a folder that a command has written to.
//
// `std::fs::remove_dir_all` keeps a descriptor open for each level, and stops at a folder that it
// may not read. A command may leave more levels than a process may open files, and folders without
// any permissions. So the tree is flattened: the subfolders of each folder in the root are moved
// into the root, until no folder in the root has subfolders. At most three files are open at a
// time.

/// Removes the folder `path` and everything in it, without following links. No process may still be
/// writing to the folder.
///
/// # Errors
/// The reason why a file is left: a mount point, or a file that the system protects.
pub(crate) fn remove(path: &Path) -> std::io::Result<()> {
    if unlinkat(CWD, path, AtFlags::REMOVEDIR).is_ok() {
        return Ok(()); // it was empty, as most are
    }
    let root = open(CWD, path)?;
    let mut names = 0_u64;
    let mut failure = None;
    loop {
        let mut has_changed = false;
        for name in names_in(&root)? {
            match remove_entry(&root, &name, &root, &mut names) {
                Ok(changed) => has_changed |= changed,
                Err(e) => failure = Some(e),
            }
        }
        if !has_changed {
            break;
        }
        // A file that could not be removed is tried again, since the obstacle may be gone.
        failure = None;
    }
    match unlinkat(CWD, path, AtFlags::REMOVEDIR) {
        Ok(()) => Ok(()),
        Err(e) => Err(failure.unwrap_or(e).into()),
    }
}

/// Removes the entry `name` of `folder`. If the entry is a folder with content, its files and empty
/// folders are removed, and its other folders are moved into `root` under new names. Returns
/// whether anything changed.
fn remove_entry(
    folder: &OwnedFd,
    name: &CStr,
    root: &OwnedFd,
    names: &mut u64,
) -> Result<bool, Errno> {
    if unlink(folder, name)? {
        return Ok(true);
    }
    let inner = open(folder, name)?;
    let mut has_changed = false;
    for name in names_in(&inner)? {
        if unlink(&inner, &name)? {
            has_changed = true;
            continue;
        }
        drop(open(&inner, &name)?); // a folder without write permission cannot be moved
        // No other process creates names here, but the command may have used any of them.
        loop {
            *names += 1;
            match renameat_with(
                &inner,
                &*name,
                root,
                names.to_string(),
                RenameFlags::NOREPLACE,
            ) {
                Err(Errno::EXIST) => {}
                moved => break moved?,
            }
        }
        has_changed = true;
    }
    unlinkat(folder, name, AtFlags::REMOVEDIR)?;
    Ok(has_changed)
}

/// Removes a file, a link or an empty folder. Returns false for a folder that is not empty.
fn unlink(folder: &OwnedFd, name: &CStr) -> Result<bool, Errno> {
    // unlink(2) of a folder fails with EISDIR on Linux and with EPERM on other systems.
    match unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) => return Ok(true),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(e) => return Err(e),
    }
    match unlinkat(folder, name, AtFlags::REMOVEDIR) {
        Ok(()) => Ok(true),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Opens a folder and gives this user all permissions on it.
fn open(at: impl AsFd, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let place = openat(at, name, flags | OFlags::PATH, Mode::empty())?;
    // Fails for another user's folder; then the next line fails too.
    let _ = chmod(format!("/proc/self/fd/{}", place.as_raw_fd()), Mode::RWXU);
    openat(&place, ".", flags | OFlags::RDONLY, Mode::empty())
}

/// Returns the names currently in a folder.
fn names_in(folder: &OwnedFd) -> Result<Vec<CString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        if ![c".", c".."].contains(&entry.file_name()) {
            names.push(entry.file_name().to_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod removal_tests {
    use super::*;
    use rustix::fs::mkdirat;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn what_a_command_leaves_is_removed_and_nothing_else() {
        let root = std::env::temp_dir().join(format!("tool-exec-removal-{}", std::process::id()));
        let outside = root.with_extension("outside");
        std::fs::create_dir_all(&outside).unwrap();
        std::fs::write(outside.join("kept"), "").unwrap();
        let closed = root.join("closed/inner/empty");
        std::fs::create_dir_all(&closed).unwrap();
        std::fs::write(root.join("closed/inner/file"), "").unwrap();
        for name in ["1", "2", "3"] {
            std::fs::create_dir_all(root.join(name).join("4/1")).unwrap();
        }
        symlink(&outside, root.join("link")).unwrap();
        symlink(&outside, root.join("closed/link")).unwrap();
        // Longer than a path may be, and deeper than a command may open files (1,024).
        let mut level = open(CWD, &root).unwrap();
        for _ in 0..1_500 {
            mkdirat(&level, "d", Mode::RWXU).unwrap();
            level = open(&level, "d").unwrap();
        }
        for path in ["closed/inner/empty", "closed/inner", "closed"] {
            std::fs::set_permissions(root.join(path), std::fs::Permissions::from_mode(0o000))
                .unwrap();
        }
        remove(&root).unwrap();
        assert!(!root.exists() && outside.join("kept").exists());
        assert!(remove(&outside.join("kept")).is_err() && outside.join("kept").exists());
        remove(&outside).unwrap();
    }
}
