//! What a run writes down of its calls, so that no call runs twice after a crash.

use super::files::{AppendedFile, FileId, Locks, lines};
use anyhow::{Context, bail};
use event::payload::{ToolResult, ToolUse};
use event::{Payload, payload};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use stdio::Filter;

/// The log and the journal of a run.
#[derive(Debug, Default)]
pub struct Records {
    /// Holds all that goes to standard output.
    pub log: Option<Log>,
    /// Holds starts and results alone: each is on disk before anything else happens, so that no call
    /// runs twice after a crash.
    journal: Option<AppendedFile>,
    journal_failure: Option<String>,
    /// Held until the run has ended.
    #[expect(dead_code, reason = "it is there to be dropped")]
    locks: Locks,
}

impl Records {
    /// Opens and locks the log, the journal, and the logs to resume from, and reads the log and the
    /// latter into `history`.
    ///
    /// A file is what it is, whatever the names by which options and standard output have it:
    /// - what `--log` or `--resume` names is read, once, before anything is written;
    /// - what `--log` names gets all that goes to standard output, and so does the file that
    ///   standard output goes to if any of the three options names it: it is written here and not
    ///   by way of standard output, so that it is synced and holds whole lines;
    /// - any other file of `--journal` gets the starts and results.
    ///
    /// # Errors
    /// When one of them cannot be used, another run uses it, or a file that is written is also the
    /// input, whose lines would come again without end.
    pub fn open(
        [log, journal]: [Option<&Path>; 2],
        resume: &[PathBuf],
        options: &Filter,
        history: &mut tool::Log,
    ) -> anyhow::Result<Self> {
        let options = Filter {
            strict: false,
            ..options.clone()
        };
        let (mut locks, stdout) = (Locks::default(), FileId::of(io::stdout()));
        // The logs to resume from are locked first, so that none of them changes while they are
        // read.
        let resumed = resume.iter().map(|path| {
            let file = File::open(path).with_context(|| unreadable(path))?;
            locks.take(&file, path).map(|()| file)
        });
        let resumed: Vec<File> = resumed.collect::<anyhow::Result<_>>()?;
        let is_stdout = |file: &&File| stdout.is_some() && FileId::of(file) == stdout;
        let continued = resumed
            .iter()
            .zip(resume)
            .find(|(file, _)| is_stdout(file))
            .map(|(_, path)| path);
        let mut open = |path: Option<&Path>, what| {
            path.map(|path| AppendedFile::open(path, what, &mut locks, &options))
                .transpose()
        };
        let mut logs: Vec<_> = open(log, "log")?.into_iter().collect();
        let mut journal = open(journal, "journal")?;
        refuse_input(
            &options,
            logs.iter()
                .chain(&journal)
                .map(|file| file.id)
                .chain(stdout),
        )?;
        if !logs.iter().any(|log| log.is_stdout) {
            if journal.as_ref().is_some_and(|journal| journal.is_stdout) {
                logs.extend(journal.take());
            } else if let Some(path) = continued {
                logs.push(AppendedFile::open_stdout(
                    path, "log", &mut locks, &options,
                )?);
            }
        }
        journal = journal.filter(|journal| logs.iter().all(|log| log.id != journal.id));
        let named = logs.first().filter(|_| log.is_some()).map(|log| &log.file);
        let paths = log.into_iter().chain(resume.iter().map(PathBuf::as_path));
        read(named.into_iter().chain(&resumed).zip(paths), history)?;
        Ok(Records {
            log: Log::new(logs),
            journal,
            journal_failure: None,
            locks,
        })
    }

    /// Reads logs into `history`, without a lock: for a run that starts nothing. A log that is
    /// missing is empty.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub fn look(
        log: Option<&Path>,
        resume: &[PathBuf],
        history: &mut tool::Log,
    ) -> anyhow::Result<()> {
        let log = log.filter(|path| path.symlink_metadata().is_ok());
        let paths: Vec<_> = log
            .into_iter()
            .chain(resume.iter().map(PathBuf::as_path))
            .collect();
        let files = paths
            .iter()
            .map(|path| File::open(path).with_context(|| unreadable(path)));
        let files: Vec<File> = files.collect::<anyhow::Result<_>>()?;
        read(files.iter().zip(paths), history)
    }

    /// Whether results are recorded when their calls end.
    pub fn any(&self) -> bool {
        self.log.is_some() || self.journal.is_some()
    }

    /// Records in the journal that a call starts; the log has the event by way of standard output.
    /// Returns whether the call may start.
    pub fn start(&mut self, intent: ToolUse<'_>, stream: Option<&str>, choice: u32) -> bool {
        self.failure().is_none() && self.journal(&intent.into(), stream, choice)
    }

    /// Records the result of a call. Returns whether it is in the log.
    pub fn result(&mut self, result: ToolResult<'_>, stream: Option<&str>, choice: u32) -> bool {
        let result = result.into();
        self.journal(&result, stream, choice);
        self.log
            .as_ref()
            .is_some_and(|log| log.record(&result, stream, choice).is_ok())
    }

    /// Why a file could not be written, as a message: then no call may start.
    pub fn failure(&self) -> Option<String> {
        self.log
            .as_ref()
            .and_then(Log::failure)
            .or_else(|| self.journal_failure.clone())
    }

    fn journal(&mut self, payload: &Payload<'_>, stream: Option<&str>, choice: u32) -> bool {
        let Some(journal) = &mut self.journal else {
            return true;
        };
        let line = line_of(payload, stream, choice);
        let written = journal.append([&line[..]].into_iter());
        let name = &journal.name;
        match written.and_then(|()| journal.sync()) {
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

/// Reads files into `history`, each once, however many names it has.
fn read<'f>(
    files: impl Iterator<Item = (&'f File, &'f Path)>,
    history: &mut tool::Log,
) -> anyhow::Result<()> {
    let mut known = Vec::new();
    for (file, path) in files {
        let id = FileId::of(file);
        if id.is_some() && known.contains(&id) {
            continue;
        }
        known.push(id);
        history.next_file();
        lines(file, |line| history.line(line)).with_context(|| unreadable(path))?;
    }
    Ok(())
}

/// Refuses to write to a file that is also the input.
fn refuse_input(options: &Filter, written: impl Iterator<Item = FileId>) -> anyhow::Result<()> {
    let stdin = [PathBuf::from("-")];
    let operands = if options.files.is_empty() {
        &stdin[..]
    } else {
        &options.files
    };
    let written: Vec<_> = written.collect();
    let is_written =
        |path: &&PathBuf| FileId::of_operand(path).is_some_and(|id| written.contains(&id));
    if let Some(path) = operands.iter().find(is_written) {
        let name = if path.as_path() == Path::new("-") {
            "standard input".into()
        } else {
            path.to_string_lossy()
        };
        bail!(
            "{name}: it is the input and is written to, so its lines would come again without end; to continue from a log, type --log LOG </dev/null"
        );
    }
    Ok(())
}

/// An event as a line.
fn line_of(payload: &Payload<'_>, stream: Option<&str>, choice: u32) -> Vec<u8> {
    let mut line = Vec::new();
    payload::line(&mut line, payload, stream, choice, None);
    line.push(b'\n');
    line
}

fn unreadable(path: &Path) -> String {
    format!("{}: the log cannot be read, check the path", path.display())
}

// The log: all that goes to standard output, in files that the next run continues from.

/// The log of a run, shared with the thread that writes standard output.
#[derive(Clone, Debug)]
pub struct Log(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    /// Almost always one. Two where `--log` names one and standard output goes to another one that
    /// an option names.
    files: Vec<AppendedFile>,
    /// Which file could not be written, and why. Then no further lines that passed follow: the log
    /// ends where it was whole, and the next run continues from there.
    failure: Option<(String, io::Error)>,
}

impl Inner {
    /// Appends to each file, also where another one fails.
    fn append(&mut self, pieces: &[&[u8]], sync: bool) -> Result<(), ()> {
        let mut is_written = Ok(());
        for file in &mut self.files {
            let written = file.append(pieces.iter().copied());
            if let Err(e) = written.and_then(|()| if sync { file.sync() } else { Ok(()) }) {
                self.failure = Some((file.name.clone(), e));
                is_written = Err(());
            }
        }
        is_written
    }
}

impl Log {
    /// The log in these files; `None` without any.
    pub fn new(files: Vec<AppendedFile>) -> Option<Self> {
        (!files.is_empty()).then(|| {
            Log(Arc::new(Mutex::new(Inner {
                files,
                failure: None,
            })))
        })
    }

    /// Whether standard output is one of these files: then the log alone writes to it.
    pub fn is_stdout(&self) -> bool {
        self.inner().files.iter().any(|file| file.is_stdout)
    }

    /// Appends lines as they go to standard output; with `sync` waits until they are on disk. After
    /// an error it does nothing.
    pub fn append<'p>(&self, pieces: impl Iterator<Item = &'p [u8]>, sync: bool) {
        let mut inner = self.inner();
        if inner.failure.is_none() {
            let _ = inner.append(&pieces.collect::<Vec<_>>(), sync); // the failure is kept
        }
    }

    /// Appends an event and waits until it is on disk. It is tried after an error too: the result
    /// of a call that is known to have started is of use in every log.
    ///
    /// # Errors
    /// As the disk gives them; [`Log::failure`] has them too.
    pub fn record(
        &self,
        payload: &Payload<'_>,
        stream: Option<&str>,
        choice: u32,
    ) -> Result<(), ()> {
        let line = line_of(payload, stream, choice);
        self.inner().append(&[&line], true)
    }

    /// The message for a log that could not be written, with what to do.
    pub fn failure(&self) -> Option<String> {
        self.inner().failure.as_ref().map(|(name, e)| {
            format!("{name}: the log cannot be written ({e}), so no further call was started; free some space and continue from it")
        })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
