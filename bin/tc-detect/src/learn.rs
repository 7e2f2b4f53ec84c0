//! `--learn FILE`: the table of `auto` with the user's own streams, and the file that keeps them.

use anyhow::{Context, Result};
use detect::auto::{Observer, Table};
use detect::{Checker, Checkers, Factory, StreamEnding, Verdict};
use event::Event;
use rustix::fs::{FlockOperation, flock};
use std::cell::RefCell;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// A file of counts, and what this run adds to it.
#[derive(Clone, Debug)]
pub struct Learning {
    path: PathBuf,
    /// Whether the input can hold live streams.
    is_live: bool,
    added: Rc<RefCell<Table>>,
}

impl Learning {
    /// Of the file at `path`, which need not exist yet. Without live streams it is neither read nor written.
    pub fn new(path: &Path, is_live: bool) -> Self {
        Learning { path: path.to_owned(), is_live, added: Rc::default() }
    }

    /// The table that is compiled in, together with the counts of the file.
    ///
    /// # Errors
    /// When the file cannot be read, or is not a table.
    pub fn table(&self) -> Result<Table> {
        let mut table = Table::built_in();
        if self.is_live {
            table.merge(&read(&self.path)?);
        }
        Ok(table)
    }

    /// Lets live streams use `learned` and count; replayed ones get `usual`, so that they stay reproducible. A replayed stream has the
    /// name of its file.
    pub fn checkers(&self, usual: Checkers, learned: Checkers) -> Checkers {
        let (added, is_live) = (Rc::clone(&self.added), self.is_live);
        Rc::new(move |first| -> Factory {
            if !is_live || first.stream().is_some() {
                return usual(first);
            }
            let (factory, first, added) = (learned(first), first.raw().into_owned(), Rc::clone(&added));
            Rc::new(move || {
                let observer = event::Scanner::default().read(&first).map(|first| Observer::new(&first)).ok();
                Box::new(Counted { checker: factory(), observer, added: Rc::clone(&added) })
            })
        })
    }

    /// Adds the streams of this run to the file. Other processes wait meanwhile, so that no count is lost; the file is replaced as a
    /// whole, so that a full disk leaves the old one.
    ///
    /// # Errors
    /// When the file cannot be read or written; then it is as it was.
    pub fn save(&self) -> Result<()> {
        let added = self.added.borrow();
        if *added == Table::default() {
            return Ok(());
        }
        let beside = |ending: &str| {
            let mut name = self.path.file_name().unwrap_or_default().to_owned();
            name.push(ending);
            self.path.with_file_name(name)
        };
        let lock = File::options().create(true).append(true).open(beside(".lock")).and_then(|lock| {
            flock(&lock, FlockOperation::LockExclusive)?;
            Ok(lock)
        });
        let lock = lock.with_context(|| format!("{}: cannot be locked", beside(".lock").display()))?;
        let mut table = read(&self.path)?;
        table.merge(&added);
        let temporary = beside(".tmp"); // the lock lets one process at a time write it
        let written = File::create(&temporary).and_then(|mut file| {
            file.write_all(table.to_string().as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&temporary, &self.path)
        });
        drop(lock);
        written.map_err(|e| {
            drop(std::fs::remove_file(&temporary));
            anyhow::anyhow!("{}: {e}; what was learned in this run is lost", self.path.display())
        })
    }
}

/// Reads the counts of a file; one that does not exist has none.
fn read(path: &Path) -> Result<Table> {
    match std::fs::read_to_string(path) {
        Ok(text) => Table::parse(&text).with_context(|| format!("{}: not a table of auto", path.display())),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(Table::default()),
        Err(e) => Err(e).with_context(|| format!("{}: cannot be read", path.display())),
    }
}

/// A checker whose stream is counted.
struct Counted {
    checker: Box<dyn Checker>,
    /// `None` once the stream is counted.
    observer: Option<Observer>,
    added: Rc<RefCell<Table>>,
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

    fn revises_no(&self) -> bool {
        self.checker.revises_no()
    }
}
