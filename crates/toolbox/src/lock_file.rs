//! The lock file on disk: the tools of servers, programs and documents as a person has accepted
//! them.

use crate::{Place, Toolbox, folder_of, trust};
use anyhow::{Context, anyhow, bail};
use event::shell_word;
use rustix::fs::OFlags;
use serde_json::{Value, json};
use std::fs::{DirBuilder, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use tool::mcp::{Change, Definition, Lock, LockedServer, differences};

/// The longest lock file that is read, in bytes.
const LONGEST: u64 = 256 << 20;

/// The lock file of a tools file.
#[derive(Clone, Debug)]
pub struct LockFile {
    /// Where it is.
    pub path: PathBuf,
    /// The words that name the tools, and the file, in a command.
    words: Vec<String>,
}

impl LockFile {
    /// The file `path`; by default the name of the first tools file, else of the first source, with
    /// `.lock` at its end. That of an address is in the folder of the user's settings.
    pub fn new(path: Option<&Path>, tools: &Toolbox) -> Self {
        let option = |name: &str, path: &Path| {
            let path = path.to_string_lossy();
            [name.to_owned(), shell_word(&path).into_owned()]
        };
        let lock = path.map(|path| option("--lock", path));
        let sources = tools.sources.iter().map(|source| option("--tools", source));
        LockFile {
            path: path.map_or_else(|| beside(&tools.main), Path::to_owned),
            words: sources.chain(lock).flatten().collect(),
        }
    }

    /// The tools of a source as the file has them: with all that a person should see of how they
    /// run, but for the place of the program. A path begins in the folder of the file, if it can.
    ///
    /// # Errors
    /// A tool whose definition cannot be written down.
    pub(crate) fn described(
        &self,
        place: &Place,
        entries: Vec<Value>,
    ) -> anyhow::Result<LockedServer> {
        let name = match place {
            Place::Url(url, _) => url.clone(),
            Place::File(path, _) => {
                let whole = folder_of(path).join(path.file_name().unwrap_or_default());
                let short = whole.strip_prefix(folder_of(&self.path));
                short.unwrap_or(&whole).display().to_string()
            }
        };
        let definition = |entry: Value| {
            let part = |name: &str| {
                let inner = entry.get("function").and_then(|inner| inner.get(name));
                entry.get(name).or(inner).cloned()
            };
            let schema = ["parameters", "input_schema", "inputSchema"]
                .into_iter()
                .find_map(part);
            let mut exec = entry.get("exec").cloned().unwrap_or_default();
            if let Some(command) = exec.get_mut("command").and_then(Value::as_array_mut) {
                command.drain(..1.min(command.len()));
            }
            let tool = json!({
                "name": part("name"),
                "description": part("description"),
                "inputSchema": schema.unwrap_or_else(|| json!({})),
                "annotations": {"exec": exec},
            });
            Definition::read(&name, &tool).map_err(anyhow::Error::msg)
        };
        let tools = entries
            .into_iter()
            .map(definition)
            .collect::<anyhow::Result<_>>()?;
        Ok(LockedServer { name, tools })
    }

    /// Compares the tools of sources that describe themselves with the file. What comes from the
    /// network must be in it; what is on this machine is compared if it is there.
    ///
    /// # Errors
    /// Tools that are not as they were accepted, which are shown, and a lock file that cannot be
    /// read or that others could have written.
    pub(crate) fn check(&self, tools: &Toolbox, trusts: bool) -> anyhow::Result<()> {
        if tools.described.is_empty() {
            return Ok(());
        }
        if !trusts {
            trust::file(&self.path)?;
        }
        let lock = self.read()?.unwrap_or_default();
        let mut is_changed = false;
        for source in &tools.described {
            let Some(locked) = lock.server(&source.name) else {
                if source.name.contains("://") {
                    bail!(
                        "{}: nobody has accepted its tools; to look at them and lock them run {}",
                        source.name,
                        self.update()
                    );
                }
                continue;
            };
            let mut changes = differences(&locked.tools, &source.tools);
            // Fewer tools may be chosen than were accepted.
            changes.retain(|change| !matches!(change, Change::Removed(_)));
            is_changed |= !changes.is_empty();
            show(&changes);
        }
        if is_changed {
            bail!(
                "{}: its tools are not as they were locked; to accept what is shown above run {}",
                tools.name,
                self.update()
            );
        }
        Ok(())
    }

    /// Reads it; `None` if it is not there.
    ///
    /// # Errors
    /// When it cannot be read, is not an ordinary file, or is not a lock file.
    pub fn read(&self) -> anyhow::Result<Option<Lock>> {
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

    /// Whether it is the file of an address, whose folder may have to be made.
    fn is_of_address(&self) -> bool {
        self.path.parent() == settings().as_deref()
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
    pub fn write(&self, lock: &Lock) -> anyhow::Result<()> {
        let name = || format!("{}: the lock file cannot be written", self.path.display());
        if self.is_taken() {
            return Err(self.taken());
        }
        if let Some(folder) = self.path.parent().filter(|_| self.is_of_address()) {
            let mut make = DirBuilder::new();
            let made = make.recursive(true).mode(0o700).create(folder);
            made.with_context(|| folder.display().to_string())?;
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
    pub fn update(&self) -> String {
        format!("tool-exec {} --update-lock", self.words.join(" "))
    }
}

/// The folder of the lock files of addresses.
fn settings() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty());
    let config = named("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.or_else(|| Some(PathBuf::from(named("HOME")?).join(".config")));
    Some(config?.join("toolpipe/locks"))
}

/// The lock file of a source.
fn beside(main: &Path) -> PathBuf {
    let text = main.to_string_lossy();
    let (folder, name) = match (text.contains("://"), settings()) {
        (true, Some(folder)) => {
            let plain = |c: char| {
                if c.is_ascii_alphanumeric() || c == '.' {
                    c
                } else {
                    '_'
                }
            };
            (
                folder,
                text.chars().map(plain).take(200).collect::<String>().into(),
            )
        }
        _ => {
            // A folder may be written with a slash at its end.
            let main: PathBuf = main.components().collect();
            (PathBuf::new(), main.into_os_string())
        }
    };
    let mut name: std::ffi::OsString = name;
    name.push(".lock");
    folder.join(name)
}

/// Shows changes of tools to a person, on standard error.
pub fn show(changes: &[Change]) {
    for line in changes.iter().flat_map(Change::lines) {
        stdio::block(&line);
    }
}
