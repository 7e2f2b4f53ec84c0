//! `--learn FILE`: the table of `auto` with the user's own streams, and the file that keeps them.

use anyhow::{Context, Result, anyhow, bail};
use detect::auto::{AutoTable, Observer};
use detect::{Checker, Checkers, Factory, StreamEnding, Verdict};
use event::Event;
use rustix::fs::{FlockOperation, flock};
use std::cell::RefCell;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The most bytes of a file that are read; the largest table that is written has a quarter of it.
const MAX_BYTES: u64 = 1 << 20;

/// The most symbolic links that are followed, as many as Linux follows.
const MAX_LINKS: usize = 40;

/// A file of counts, and what this run adds to it.
#[derive(Clone, Debug)]
pub(crate) struct Learning {
    path: PathBuf,
    /// Whether the input can hold live streams.
    is_live: bool,
    added: Rc<RefCell<AutoTable>>,
}

impl Learning {
    /// Of the file at `path`, which need not exist yet. Without live streams it is checked, but
    /// neither used nor written.
    pub(crate) fn new(path: &Path, is_live: bool) -> Self {
        Learning {
            path: path.to_owned(),
            is_live,
            added: Rc::default(),
        }
    }

    /// The table that is compiled in, together with the counts of the file if there can be live
    /// streams.
    ///
    /// # Errors
    /// When the file is not a regular one, cannot be read, is too long, or is not a table.
    pub(crate) fn table(&self) -> Result<AutoTable> {
        let mut table = AutoTable::built_in();
        let counts = read(&self.path).map_err(|e| anyhow!("--learn {e:#}"))?;
        if self.is_live {
            table.merge(&counts);
        }
        Ok(table)
    }

    /// Whether this run can count streams.
    pub(crate) fn is_live(&self) -> bool {
        self.is_live
    }

    /// Lets live streams use `learned` and count; replayed ones get `usual`, so that they stay
    /// reproducible. A replayed stream has the name of its file.
    pub(crate) fn checkers(&self, usual: Checkers, learned: Checkers) -> Checkers {
        let added = Rc::clone(&self.added);
        let is_live = self.is_live;
        Rc::new(move |first| -> Factory {
            if !is_live || first.stream().is_some() {
                return usual(first);
            }
            let (factory, first, added) =
                (learned(first), first.raw().into_owned(), Rc::clone(&added));
            Rc::new(move || {
                let observer = event::Scanner::default()
                    .read(&first)
                    .map(|first| Observer::new(&first))
                    .ok();
                Box::new(Counted {
                    checker: factory(),
                    observer,
                    added: Rc::clone(&added),
                })
            })
        })
    }

    /// Adds the streams of this run to the file. Other processes wait meanwhile, so that no count
    /// is lost; the file is replaced as a whole, so that a full disk leaves the old one.
    ///
    /// # Errors
    /// When the file cannot be read or written; then it is as it was.
    pub(crate) fn save(&self) -> Result<()> {
        let added = self.added.borrow();
        if *added == AutoTable::default() {
            return Ok(());
        }
        let path = followed(&self.path);
        let beside = |ending: &str| {
            let mut name = path.file_name().unwrap_or_default().to_owned();
            name.push(ending);
            path.with_file_name(name)
        };
        regular(&path)?;
        regular(&beside(".lock"))?;
        let lock = File::options()
            .create(true)
            .append(true)
            .open(beside(".lock"))
            .and_then(|lock| {
                flock(&lock, FlockOperation::LockExclusive)?;
                Ok(lock)
            });
        let lock =
            lock.with_context(|| format!("{}: cannot be locked", beside(".lock").display()))?;
        let mut table = read(&path)?;
        table.merge(&added);
        let temporary = beside(".tmp"); // the lock lets one process at a time write it
        let written = replace(&path, &temporary, &table.to_string());
        drop(lock);
        written.map_err(|e| {
            drop(std::fs::remove_file(&temporary));
            anyhow!(
                "{}: {e}; what was learned in this run is lost",
                path.display()
            )
        })
    }
}

/// Puts a new file in the place of another, with the permissions of the old one.
fn replace(path: &Path, temporary: &Path, text: &str) -> io::Result<()> {
    // A process that was killed may have left it. A link or a pipe in its place is removed, too.
    match std::fs::remove_file(temporary) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let mut file = File::create_new(temporary)?;
    if let Ok(old) = path.metadata() {
        // Only root may give a file away; other users own what they replace, or become its owner.
        let _ = fchown(&file, Some(old.uid()), Some(old.gid()));
        file.set_permissions(old.permissions())?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(temporary, path)
}

/// The file that a symbolic link leads to, which need not exist; other paths as they are. The lock
/// and the new file belong beside it.
fn followed(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(target) = path.read_link() else { break };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    path
}

/// Refuses what is not a regular file before it is opened: a pipe would wait for a writer, and a
/// device would be replaced by a file. `None`: nothing has this name yet.
fn regular(path: &Path) -> Result<Option<Metadata>> {
    match path.metadata() {
        Ok(metadata) if metadata.is_file() => Ok(Some(metadata)),
        Err(e) if e.kind() == ErrorKind::NotFound && path.file_name().is_some() => Ok(None),
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e).with_context(|| cannot_be_read(path)),
        _ => bail!("{}: not a regular file; name a file", path.display()),
    }
}

/// Reads the counts of a file; one that does not exist has none.
fn read(path: &Path) -> Result<AutoTable> {
    if regular(path)?.is_none() {
        return Ok(AutoTable::default());
    }
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text));
    match read {
        // It was removed meanwhile.
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(AutoTable::default()),
        // A part may end inside a character, so that its length is not known.
        Err(e)
            if e.kind() != ErrorKind::InvalidData
                || path.metadata().is_ok_and(|file| file.len() <= MAX_BYTES) =>
        {
            return Err(e).with_context(|| cannot_be_read(path));
        }
        Ok(bytes) if bytes as u64 <= MAX_BYTES => {}
        _ => bail!(
            "{}: longer than 1 MiB, so it is not a table of auto; name another file",
            path.display()
        ),
    }
    AutoTable::parse(&text).with_context(|| format!("{}: not a table of auto", path.display()))
}

fn cannot_be_read(path: &Path) -> String {
    format!("{}: cannot be read", path.display())
}

/// A checker whose stream is counted.
struct Counted {
    checker: Box<dyn Checker>,
    /// `None` once the stream is counted.
    observer: Option<Observer>,
    added: Rc<RefCell<AutoTable>>,
}

impl Counted {
    fn count(&mut self) {
        if let Some(observer) = self.observer.take() {
            self.added.borrow_mut().add(&observer.end());
        }
    }
}

impl Checker for Counted {
    fn push(&mut self, event: &Event<'_>) -> Option<Verdict> {
        if let Some(observer) = &mut self.observer {
            observer.push(event);
        }
        let verdict = self.checker.push(event);
        if verdict.as_ref().is_some_and(|verdict| verdict.tool_call) {
            self.count();
        }
        verdict
    }

    fn end(&mut self, ending: StreamEnding) -> Option<Verdict> {
        // What a stream that failed would have become is unknown.
        if !ending.is_failure() {
            self.count();
        }
        self.checker.end(ending)
    }

    fn reads_past_verdict(&self) -> bool {
        self.checker.reads_past_verdict()
    }

    fn revises_no(&self) -> bool {
        self.checker.revises_no()
    }

    fn overturned(&self) -> Option<bool> {
        self.checker.overturned()
    }
}
