//! The lock file on disk.

use anyhow::{Context, anyhow};
use rustix::fs::OFlags;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use tool::mcp::Lock;
use tool::shell_word;
use toolbox::Toolbox;

/// The longest lock file that is read, in bytes.
const LONGEST: u64 = 256 << 20;

/// The lock file of a tools file.
#[derive(Clone, Debug)]
pub(crate) struct LockFile {
    /// Where it is.
    pub path: PathBuf,
    /// The words that name the tools, and the file, in a command.
    words: Vec<String>,
}

impl LockFile {
    /// The file `path`; by default the tools file's name with `.lock` at its end.
    pub(crate) fn new(path: Option<&Path>, tools: &Toolbox) -> Self {
        let beside = || {
            let mut name = tools.main.as_os_str().to_owned();
            name.push(".lock");
            name.into()
        };
        let option = |name: &str, path: &Path| {
            let path = path.to_string_lossy();
            [name.to_owned(), shell_word(&path).into_owned()]
        };
        let lock = path.map(|path| option("--lock", path));
        let places = tools.places.iter().map(|place| option("--tools", place));
        LockFile {
            path: path.map_or_else(beside, Path::to_owned),
            words: places.chain(lock).flatten().collect(),
        }
    }

    /// Reads it; `None` if it is not there.
    ///
    /// # Errors
    /// When it cannot be read, is not an ordinary file, or is not a lock file.
    pub(crate) fn read(&self) -> anyhow::Result<Option<Lock>> {
        let name = || self.path.display().to_string();
        let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits())?;
        let file = match OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(&self.path)
        {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(_) if self.is_taken() => return Err(self.taken()),
            Err(e) => return Err(e).with_context(name),
        };
        if self.is_taken() {
            return Err(self.taken());
        }
        let mut text = String::new();
        file.take(LONGEST)
            .read_to_string(&mut text)
            .with_context(name)?;
        Ok(Some(Lock::read(&text).with_context(name)?))
    }

    /// Whether something else than a file has its name.
    fn is_taken(&self) -> bool {
        self.path
            .symlink_metadata()
            .is_ok_and(|meta| !meta.is_file())
    }

    fn taken(&self) -> anyhow::Error {
        anyhow!(
            "{}: not an ordinary file (links are not followed), give another --lock",
            self.path.display()
        )
    }

    /// Writes it; the file gets its name when it is complete, and this user alone may read it.
    ///
    /// # Errors
    /// When the disk is full or broken, or the file's name is taken by something else than a file;
    /// nothing is changed then.
    pub(crate) fn write(&self, lock: &Lock) -> anyhow::Result<()> {
        let name = || format!("{}: the lock file cannot be written", self.path.display());
        if self.is_taken() {
            return Err(self.taken());
        }
        let mut draft = self.path.as_os_str().to_owned();
        draft.push(format!(".{}", std::process::id()));
        let flags = i32::try_from(OFlags::NOFOLLOW.bits())?;
        let write = || -> std::io::Result<()> {
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .custom_flags(flags)
                .open(&draft)?;
            file.write_all(lock.text().as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&draft, &self.path)
        };
        let written = write();
        if written.is_err() {
            let _ = std::fs::remove_file(&draft);
        }
        written.with_context(name)
    }

    /// The command that writes it.
    pub(crate) fn update(&self) -> String {
        format!("tool-exec {} --update-lock", self.words.join(" "))
    }
}
