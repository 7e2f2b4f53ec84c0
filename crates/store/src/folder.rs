//! A folder that this user alone can read and write: each file in it is complete, or not there.

use crate::since_1970;
use anyhow::{Context, bail};
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, fstat, mkdirat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;
use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File};
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// How often a name for a draft is tried again, where another process has the same one.
const TRIES: u32 = 100;

/// A private folder, open. Its files are found from the open folder, so that what is put in its
/// place later has no effect.
#[derive(Debug)]
pub struct PrivateFolder {
    path: PathBuf,
    dir: OwnedFd,
    drafts: Cell<u64>,
}

/// A file of a private folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoreEntry {
    /// When it was written last, in nanoseconds since 1970.
    pub modified: i128,
    /// Its name.
    pub name: OsString,
    /// Its length in bytes.
    pub bytes: u64,
}

impl PrivateFolder {
    /// Where the folder `name` is unless the user names another: `$XDG_CACHE_HOME/toolpipe/NAME`,
    /// else `~/.cache/toolpipe/NAME`. `None` where neither variable holds an absolute path; the XDG
    /// specification has relative ones ignored.
    pub fn default_path(name: &str) -> Option<PathBuf> {
        Some(
            base("XDG_CACHE_HOME", ".cache")?
                .join("toolpipe")
                .join(name),
        )
    }

    /// Where the folder `name` of what commands keep for the user is:
    /// `$XDG_STATE_HOME/toolpipe/NAME`, else `~/.local/state/toolpipe/NAME`. `None` as for
    /// [`PrivateFolder::default_path`].
    pub fn state_path(name: &str) -> Option<PathBuf> {
        let states = base("XDG_STATE_HOME", ".local/state")?;
        Some(states.join("toolpipe").join(name))
    }

    /// Opens the folder, and makes it if it is missing; with `parents` also those above it. All
    /// that it makes has mode 0700.
    ///
    /// # Errors
    /// When it is a link (also where the path ends in a slash), belongs to another user, others may
    /// write into it, or it cannot be made.
    pub fn open(path: &Path, parents: bool) -> anyhow::Result<Self> {
        // The components leave out slashes at the end: with one the system would follow a link.
        let path: PathBuf = path.components().collect();
        let name = path.display();
        match DirBuilder::new()
            .recursive(parents)
            .mode(0o700)
            .create(&path)
        {
            Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(e).with_context(|| {
                    format!(
                        "{name}: the folder cannot be made, make the one above it or name another"
                    )
                });
            }
            _ => {}
        }
        if path.symlink_metadata().is_ok_and(|meta| !meta.is_dir()) {
            bail!("{name}: it is not a folder (links are not followed), name another");
        }
        PrivateFolder::opened(rustix::fs::CWD, path.clone(), path.as_os_str())
    }

    /// Opens a folder in this one, and makes it with mode 0700 if `makes`.
    ///
    /// # Errors
    /// As for [`PrivateFolder::open`]; and where the folder is missing, unless it is made.
    pub fn inside(&self, name: &OsStr, makes: bool) -> anyhow::Result<Self> {
        match mkdirat_if(&self.dir, name, makes) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(e) => {
                let path = self.path.join(name);
                return Err(e)
                    .with_context(|| format!("{}: the folder cannot be made", path.display()));
            }
        }
        PrivateFolder::opened(&self.dir, self.path.join(name), name)
    }

    fn opened(at: impl AsFd, path: PathBuf, name: &OsStr) -> anyhow::Result<Self> {
        let shown = path.display();
        let cannot = || format!("{shown}: the folder cannot be used, name another");
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = openat(at, name, flags, Mode::empty()).with_context(cannot)?;
        let meta = fstat(&dir).with_context(cannot)?;
        if meta.st_uid != rustix::process::geteuid().as_raw() {
            bail!("{shown}: the folder belongs to another user, name another");
        }
        if meta.st_mode & 0o022 != 0 {
            bail!("{shown}: writable by other users; run chmod 700 {shown}");
        }
        Ok(PrivateFolder {
            path,
            dir,
            drafts: Cell::new(0),
        })
    }

    /// Opens the file of that name, which only this user can write, with these flags beside those
    /// that follow no link and wait for nobody. A file that is made gets mode 0600.
    ///
    /// # Errors
    /// When it cannot be opened, or could be from another user: [`std::io::ErrorKind::NotFound`]
    /// for a link, a pipe, and a file of another owner, as for one that is missing.
    pub fn open_file(&self, name: &OsStr, flags: OFlags) -> std::io::Result<File> {
        let safe = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = openat(&self.dir, name, flags | safe, Mode::RUSR | Mode::WUSR);
        let file = match opened {
            // A link, and a pipe that nobody reads.
            Err(Errno::LOOP | Errno::NXIO) => return Err(std::io::ErrorKind::NotFound.into()),
            opened => File::from(opened?),
        };
        if is_own_file(&fstat(&file)?) {
            Ok(file)
        } else {
            Err(std::io::ErrorKind::NotFound.into())
        }
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file of that name. `None`: it is missing, or may be from another user (a link, another
    /// owner, writable by others).
    pub fn read(&self, name: &OsStr) -> Option<Vec<u8>> {
        let mut file = self.open_file(name, OFlags::RDONLY).ok()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// The length in bytes of the file of that name; `None` as for [`PrivateFolder::read`].
    pub fn size(&self, name: &OsStr) -> Option<u64> {
        let meta = statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW)
            .ok()
            .filter(is_own_file)?;
        u64::try_from(meta.st_size).ok()
    }

    /// Writes a file with mode 0600, in the place of one that has its name. The file gets its name
    /// when all of it is on disk, so a reader finds the old one or the new one, however many
    /// processes write it at once.
    ///
    /// # Errors
    /// When the disk is full or broken; then nothing of the file is left.
    pub fn write(&self, name: &OsStr, bytes: &[u8]) -> std::io::Result<PathBuf> {
        let (draft, mut file) = self.draft()?;
        let mut write = || -> std::io::Result<()> {
            file.write_all(bytes)?;
            file.sync_data()?;
            Ok(renameat(&self.dir, &draft, &self.dir, name)?)
        };
        write().inspect_err(|_| {
            let _ = unlinkat(&self.dir, &draft, AtFlags::empty());
        })?;
        Ok(self.path.join(name))
    }

    /// A new file under a name that nobody else uses, not even a process of another container with
    /// the same number.
    fn draft(&self) -> std::io::Result<(OsString, File)> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut tries = 0;
        loop {
            self.drafts.set(self.drafts.get() + 1);
            let now = since_1970().as_nanos();
            let name = OsString::from(format!(
                ".{}-{now:x}-{}",
                std::process::id(),
                self.drafts.get()
            ));
            match openat(&self.dir, &name, flags, Mode::RUSR | Mode::WUSR) {
                Err(Errno::EXIST) if tries < TRIES => tries += 1,
                opened => return Ok((name, opened?.into())),
            }
        }
    }

    /// Removes the file of that name; another process may have done it already.
    pub fn remove(&self, name: &OsStr) {
        let _ = unlinkat(&self.dir, name, AtFlags::empty());
    }

    /// The names of all that is in the folder, in no order.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn names(&self) -> std::io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for found in Dir::read_from(&self.dir)? {
            let name = OsStr::from_bytes(found?.file_name().to_bytes()).to_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// The files of the folder, drafts too, in no order.
    pub fn entries(&self) -> Vec<StoreEntry> {
        let mut all = Vec::new();
        for found in Dir::read_from(&self.dir).into_iter().flatten().flatten() {
            let name = OsStr::from_bytes(found.file_name().to_bytes());
            let Ok(meta) = statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            if is_own_file(&meta) {
                let modified =
                    i128::from(meta.st_mtime) * 1_000_000_000 + i128::from(meta.st_mtime_nsec);
                all.push(StoreEntry {
                    modified,
                    name: name.to_owned(),
                    bytes: u64::try_from(meta.st_size).unwrap_or(0),
                });
            }
        }
        all
    }
}

/// The folder that an XDG variable names, else the one at `below` in the user's home.
fn base(variable: &str, below: &str) -> Option<PathBuf> {
    let absolute = |variable: &str| {
        std::env::var_os(variable)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute(variable).or_else(|| Some(absolute("HOME")?.join(below)))
}

fn mkdirat_if(at: &OwnedFd, name: &OsStr, makes: bool) -> Result<(), Errno> {
    if makes {
        mkdirat(at, name, Mode::RWXU)
    } else {
        Ok(())
    }
}

/// Whether this user owns a plain file that others cannot write.
fn is_own_file(meta: &rustix::fs::Stat) -> bool {
    FileType::from_raw_mode(meta.st_mode) == FileType::RegularFile
        && meta.st_uid == rustix::process::geteuid().as_raw()
        && meta.st_mode & 0o022 == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use testkit::Scratch;

    #[test]
    fn what_others_could_have_planted_is_refused() {
        let scratch = Scratch::new();
        let path = scratch.path("f");
        std::fs::create_dir(&path).unwrap();
        let real = path.join("c");
        let folder = PrivateFolder::open(&real, false).unwrap();
        let kept = folder.write("a".as_ref(), b"x").unwrap();
        assert_eq!(kept.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(
            (
                folder.read("a".as_ref()).unwrap(),
                folder.size("a".as_ref()),
                folder.entries().len()
            ),
            (b"x".to_vec(), Some(1), 1)
        );
        symlink(&kept, real.join("l")).unwrap();
        assert!(
            folder.read("l".as_ref()).is_none() && folder.size("l".as_ref()).is_none(),
            "a link"
        );
        std::fs::set_permissions(&kept, PermissionsExt::from_mode(0o666)).unwrap();
        assert!(folder.read("a".as_ref()).is_none(), "writable by others");
        assert!(folder.entries().is_empty());
        // A path that ends in a slash names what the link leads to.
        symlink(&real, path.join("l")).unwrap();
        for link in ["l", "l/", "l//", "l/."] {
            let said = PrivateFolder::open(&path.join(link), false)
                .unwrap_err()
                .to_string();
            assert!(said.contains("links are not followed"), "{link}: {said}");
        }
        std::fs::set_permissions(&real, PermissionsExt::from_mode(0o777)).unwrap();
        assert!(
            PrivateFolder::open(&real, false)
                .unwrap_err()
                .to_string()
                .contains("chmod 700")
        );
        assert!(PrivateFolder::open(&path.join("n/m"), false).is_err());
        assert!(PrivateFolder::open(&path.join("n/m"), true).is_ok());
    }

    #[test]
    fn a_write_that_fails_leaves_nothing() {
        let scratch = Scratch::new();
        let path = scratch.path("f");
        std::fs::create_dir(&path).unwrap();
        let folder = PrivateFolder::open(&path, false).unwrap();
        std::fs::create_dir(path.join("taken")).unwrap();
        assert!(folder.write("taken".as_ref(), b"x").is_err());
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 1);
    }
}
