//! A folder that only this user can read and write. Each file in it is either complete or absent.

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

/// How often to try another random draft name when another process already uses the first.
const TRIES: u32 = 100;

/// A private folder, held open. Its files are opened relative to the open descriptor, so replacing
/// the folder at its path later has no effect.
#[derive(Debug)]
pub struct PrivateFolder {
    path: PathBuf,
    dir: OwnedFd,
    drafts: Cell<u64>,
}

/// The metadata of a file in a private folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoreEntry {
    /// The time of the last write, in nanoseconds since 1970.
    pub modified: i128,
    /// The file name.
    pub name: OsString,
    /// The length in bytes.
    pub bytes: u64,
}

impl PrivateFolder {
    /// Returns the default path of the cache folder `name`: `$XDG_CACHE_HOME/toolpipe/NAME`, else
    /// `~/.cache/toolpipe/NAME`. Returns `None` if neither variable holds an absolute path; the XDG
    /// specification says that relative paths are ignored.
    pub fn default_path(name: &str) -> Option<PathBuf> {
        Some(
            base("XDG_CACHE_HOME", ".cache")?
                .join("toolpipe")
                .join(name),
        )
    }

    /// Returns the default path of the folder `name` for persistent state:
    /// `$XDG_STATE_HOME/toolpipe/NAME`, else `~/.local/state/toolpipe/NAME`. Returns `None` in the
    /// same cases as [`PrivateFolder::default_path`].
    pub fn state_path(name: &str) -> Option<PathBuf> {
        let states = base("XDG_STATE_HOME", ".local/state")?;
        Some(states.join("toolpipe").join(name))
    }

    /// Opens the folder, and creates it with mode 0700 if it is missing. With `parents`, missing
    /// parent folders are created too, also with mode 0700.
    ///
    /// # Errors
    /// If the folder is a link (even if `path` ends in a slash), belongs to another user, is
    /// writable by other users, or cannot be created.
    pub fn open(path: &Path, parents: bool) -> anyhow::Result<Self> {
        // Rebuilding the path from its components drops trailing slashes, which would make the
        // system follow a link.
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

    /// Opens the folder `name` inside this one. If `makes` is set, creates a missing folder with
    /// mode 0700.
    ///
    /// # Errors
    /// As for [`PrivateFolder::open`], and if the folder is missing and `makes` is not set.
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

    /// Opens the file `name`, which only this user may be able to write. `flags` are added to flags
    /// that reject links and never block. A new file gets mode 0600.
    ///
    /// # Errors
    /// If the file cannot be opened, or may come from another user. A link, a pipe or a file of
    /// another owner returns [`std::io::ErrorKind::NotFound`], like a missing file.
    pub fn open_file(&self, name: &OsStr, flags: OFlags) -> std::io::Result<File> {
        let safe = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = openat(&self.dir, name, flags | safe, Mode::RUSR | Mode::WUSR);
        let file = match opened {
            // LOOP: a link. NXIO: a pipe without a reader.
            Err(Errno::LOOP | Errno::NXIO) => return Err(std::io::ErrorKind::NotFound.into()),
            opened => File::from(opened?),
        };
        if is_own_file(&fstat(&file)?) {
            Ok(file)
        } else {
            Err(std::io::ErrorKind::NotFound.into())
        }
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the content of the file `name`, or `None` if the file is missing or may come from
    /// another user (it is a link, has another owner, or is writable by others).
    pub fn read(&self, name: &OsStr) -> Option<Vec<u8>> {
        let mut file = self.open_file(name, OFlags::RDONLY).ok()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Returns the length of the file `name` in bytes, or `None` as for [`PrivateFolder::read`].
    pub fn size(&self, name: &OsStr) -> Option<u64> {
        let meta = statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW)
            .ok()
            .filter(is_own_file)?;
        u64::try_from(meta.st_size).ok()
    }

    /// Writes the file `name` with mode 0600, replacing any existing file. The new file is renamed
    /// into place only once all of it is on disk, so a reader sees either the old or the new file,
    /// even if several processes write it at once.
    ///
    /// # Errors
    /// If the disk is full or broken. The partial file is then removed.
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

    /// Creates a draft file with a unique name, even among processes in other containers that have
    /// the same process id.
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

    /// Removes the file `name`. Does nothing if another process has already removed it.
    pub fn remove(&self, name: &OsStr) {
        let _ = unlinkat(&self.dir, name, AtFlags::empty());
    }

    /// Returns the names of all entries of the folder, unordered.
    ///
    /// # Errors
    /// If the folder cannot be read.
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

    /// Returns the files of the folder, including drafts, unordered.
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

/// Returns the folder that the XDG variable names, else the folder `below` in the user's home.
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

/// Whether the metadata describes a regular file that this user owns and others cannot write.
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
        // A path that ends in a slash refers to the link's target.
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
