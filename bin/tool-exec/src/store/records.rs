//! What a run writes down of its calls, so that no call runs twice after a crash.

use super::appended::AppendedFile;
use super::journal::Journal;
use super::lines::lines;
use super::lock::Locks;
use super::log::Log;
use anyhow::Context;
use event::Payload;
use event::payload::{ToolResult, ToolUse};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use stdio::Filter;

/// The log and the journal of a run.
#[derive(Debug, Default)]
pub struct Records {
    /// Holds all that goes to standard output.
    pub log: Option<Log>,
    journal: Option<Journal>,
    journal_failure: Option<String>,
    /// Held until the run has ended.
    #[expect(dead_code, reason = "it is there to be dropped")]
    locks: Locks,
}

impl Records {
    /// Opens and locks the log, the journal, and the logs to resume from, and reads the log and the latter into `history`.
    /// A journal that standard output goes to is a log that is not read. A file under two names is written once.
    ///
    /// # Errors
    /// When one of them cannot be used, or another run uses it.
    pub fn open(
        [log, journal]: [Option<&Path>; 2],
        resume: &[PathBuf],
        options: &Filter,
        history: &mut tool::Log,
    ) -> anyhow::Result<Self> {
        let options = Filter { strict: false, ..options.clone() };
        let mut locks = Locks::default();
        // The logs to resume from are locked first, so that none of them changes while they are read.
        let resumed = resume.iter().map(|path| {
            let file = File::open(path).with_context(|| unreadable(path))?;
            locks.take(&file, path).map(|()| file)
        });
        let resumed: Vec<File> = resumed.collect::<anyhow::Result<_>>()?;
        let mut open = |path: Option<&Path>, what| {
            path.map(|path| AppendedFile::open(path, what, &mut locks, &options)).transpose()
        };
        let mut log = open(log, "log")?;
        let mut journal = open(journal, "journal")?;
        if let Some(log) = &log {
            log.read(|line| history.line(line)).with_context(|| unreadable(Path::new(&log.name)))?;
            journal = journal.filter(|journal| journal.identity != log.identity && !journal.is_stdout);
        } else if journal.as_ref().is_some_and(|journal| journal.is_stdout) {
            log = journal.take();
        }
        let mut read: Vec<_> = log.iter().map(|log| log.identity).collect();
        for (file, path) in resumed.iter().zip(resume) {
            let meta = file.metadata().with_context(|| unreadable(path))?;
            if !read.contains(&(meta.dev(), meta.ino())) {
                read.push((meta.dev(), meta.ino()));
                history.next_file();
                lines(file, |line| history.line(line)).with_context(|| unreadable(path))?;
            }
        }
        Ok(Records { log: log.map(Log::new), journal: journal.map(Journal), journal_failure: None, locks })
    }

    /// Reads logs into `history`, without a lock: for a run that starts nothing. A log that is missing is empty.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub fn look(log: Option<&Path>, resume: &[PathBuf], history: &mut tool::Log) -> anyhow::Result<()> {
        let log = log.filter(|path| path.symlink_metadata().is_ok());
        for path in log.into_iter().chain(resume.iter().map(PathBuf::as_path)) {
            let file = File::open(path);
            history.next_file();
            file.and_then(|file| lines(&file, |line| history.line(line))).with_context(|| unreadable(path))?;
        }
        Ok(())
    }

    /// Whether results are recorded when their calls end.
    pub fn any(&self) -> bool {
        self.log.is_some() || self.journal.is_some()
    }

    /// Records in the journal that a call starts; the log has the event by way of standard output. Returns whether the call may start.
    pub fn start(&mut self, intent: ToolUse<'_>, stream: Option<&str>, choice: u32) -> bool {
        self.failure().is_none() && self.journal(&intent.into(), stream, choice)
    }

    /// Records the result of a call. Returns whether it is in the log.
    pub fn result(&mut self, result: ToolResult<'_>, stream: Option<&str>, choice: u32) -> bool {
        let result = result.into();
        self.journal(&result, stream, choice);
        self.log.as_ref().is_some_and(|log| log.record(&result, stream, choice).is_ok())
    }

    /// Why a file could not be written, as a message: then no call may start.
    pub fn failure(&self) -> Option<String> {
        self.log.as_ref().and_then(Log::failure).or_else(|| self.journal_failure.clone())
    }

    fn journal(&mut self, payload: &Payload<'_>, stream: Option<&str>, choice: u32) -> bool {
        let Some(journal) = &mut self.journal else { return true };
        let result = journal.record(payload, stream, choice);
        let name = &journal.0.name;
        match result {
            Ok(()) => true,
            Err(e) => {
                self.journal_failure = Some(format!(
                    "{name}: the journal cannot be written ({e}), so no further call was started; free some space and continue from it"
                ));
                false
            }
        }
    }
}

fn unreadable(path: &Path) -> String {
    format!("{}: the log cannot be read, check the path", path.display())
}
