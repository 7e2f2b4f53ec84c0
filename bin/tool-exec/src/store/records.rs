//! The log and the journal of a run, which prevent a call from running twice after a crash.

use crate::args::Keeping;
use ::store::{AppendedFile, FileId, Locks, lines};
use anyhow::{Context, bail};
use event::payload::{ToolResult, ToolUse};
use event::{Kind, Payload, Scanner, payload};
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use stdio::Filter;
use tool::{LogReader, RequestedCall};

/// The log and the journal of a run.
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// Receives everything that is written to standard output.
    pub log: Option<CallLog>,
    /// Receives only starts and results. Each is synced to disk before the run continues, so that
    /// no call runs twice after a crash.
    journal: Option<CallLog>,
    /// Held until the run ends.
    #[expect(dead_code, reason = "it is there to be dropped")]
    locks: Locks,
}

impl Records {
    /// Opens and locks the log, the journal, and the logs to resume from, and reads them into
    /// `history`.
    ///
    /// Files are identified by device and inode, not by the names used in the options and for
    /// standard output:
    /// - A file that any of the three options names is read once, before anything is written.
    /// - The file of `--log` receives all of standard output. So does the file that standard output
    ///   is redirected to, if any of the three options names it. That file is written here instead
    ///   of through standard output, so that it is synced and contains whole lines.
    /// - Any other file of `--journal` receives starts and results.
    ///
    /// # Errors
    /// If a file cannot be used, is in use by another run, or is both written and part of the
    /// input, whose lines would then repeat without end.
    pub(crate) fn open(
        keeping: &Keeping,
        options: &Filter,
        history: &mut tool::Log,
    ) -> anyhow::Result<Self> {
        let options = Filter {
            strict: false,
            ..options.clone()
        };
        let mut locks = Locks::default();
        let stdout = FileId::of(io::stdout());
        // The logs to resume from are locked first, so that none changes while they are read.
        let resumed = keeping.resume.iter().map(|path| {
            let file = File::open(path).with_context(|| unreadable(path))?;
            locks.take(&file, path).map(|()| (file, path.as_path()))
        });
        let resumed: Vec<_> = resumed.collect::<anyhow::Result<_>>()?;
        let is_stdout = |file: &File| stdout.is_some() && FileId::of(file) == stdout;
        let continued = resumed.iter().find(|(file, _)| is_stdout(file));
        let mut open = |path: &Option<PathBuf>, what| {
            path.as_ref()
                .map(|path| AppendedFile::open(path, what, false, &mut locks, &options))
                .transpose()
        };
        let mut logs: Vec<_> = open(&keeping.log, "log")?.into_iter().collect();
        let mut journal = open(&keeping.journal, "journal")?;
        let written = || logs.iter().chain(&journal);
        refuse_input(&options, written().map(|file| file.id).chain(stdout))?;
        let appended = written().map(|file| (&file.file, Path::new(&file.name)));
        read(
            appended.chain(resumed.iter().map(|(file, path)| (file, *path))),
            history,
        )?;
        if !logs.iter().any(|log| log.is_stdout) {
            if journal.as_ref().is_some_and(|journal| journal.is_stdout) {
                logs.extend(journal.take());
            } else if let Some((_, path)) = continued {
                // Opening standard output has already followed any link to this file, so a link is
                // allowed here.
                let log = AppendedFile::open(path, "log", true, &mut locks, &options)?;
                logs.push(log);
            }
        }
        journal = journal.filter(|journal| logs.iter().all(|log| log.id != journal.id));
        Ok(Records {
            log: CallLog::new("log", logs),
            journal: CallLog::new("journal", journal.into_iter().collect()),
            locks,
        })
    }

    /// Whether results are recorded as soon as their calls end.
    pub(crate) fn any(&self) -> bool {
        self.log.is_some() || self.journal.is_some()
    }

    /// Records the start of a call in the journal; the log gets the event through standard output.
    /// Returns whether the call may start.
    pub(crate) fn start(&self, intent: ToolUse<'_>, call: &RequestedCall) -> bool {
        let journal = self.journal.as_ref();
        self.log.as_ref().is_none_or(|log| log.has_start(call))
            && journal.is_none_or(|journal| {
                journal.failure().is_none() && journal.record(&intent.into(), call)
            })
    }

    /// Records the result of a call. Returns whether it was written to the log.
    pub(crate) fn result(&self, result: ToolResult<'_>, call: &RequestedCall) -> bool {
        let result = result.into();
        let record = |log: &CallLog| log.record(&result, call);
        if let Some(journal) = &self.journal {
            record(journal);
        }
        self.log.as_ref().is_some_and(record)
    }

    /// Returns a message if a file could not be written; then no more calls may start.
    pub(crate) fn failure(&self) -> Option<String> {
        self.log
            .iter()
            .chain(&self.journal)
            .find_map(CallLog::failure)
    }
}

/// Reads the same files as [`Records::open`] into `calls`, without locks, for a run that starts
/// nothing. A missing log or journal counts as empty.
///
/// # Errors
/// If a file cannot be read.
pub(crate) fn look(keeping: &Keeping, calls: &mut impl LogReader) -> anyhow::Result<()> {
    let written = keeping.log.iter().chain(&keeping.journal);
    let written = written.filter(|path| path.symlink_metadata().is_ok());
    let paths = written.chain(&keeping.resume);
    look_at(paths.map(PathBuf::as_path), calls)
}

/// Reads these logs into `calls`, without a lock.
///
/// # Errors
/// If a file cannot be read.
pub(crate) fn look_at<'p>(
    paths: impl Iterator<Item = &'p Path>,
    calls: &mut impl LogReader,
) -> anyhow::Result<()> {
    let files = paths.map(|path| {
        let file = File::open(path).with_context(|| unreadable(path))?;
        Ok((file, path))
    });
    let files: Vec<_> = files.collect::<anyhow::Result<_>>()?;
    read(files.iter().map(|(file, path)| (file, *path)), calls)
}

/// Reads files into `calls`. A file with several names is read once.
fn read<'f>(
    files: impl Iterator<Item = (&'f File, &'f Path)>,
    calls: &mut impl LogReader,
) -> anyhow::Result<()> {
    let mut known = Vec::new();
    for (file, path) in files {
        let id = FileId::of(file);
        if id.is_some() && known.contains(&id) {
            continue;
        }
        known.push(id);
        calls.next_file();
        let mut file = file;
        let _ = file.seek(SeekFrom::Start(0)); // fails for a pipe
        lines(file, |line| calls.line(line)).with_context(|| unreadable(path))?;
    }
    Ok(())
}

/// Fails if a file to be written is also part of the input.
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
            "{name}: it is both input and output, which would loop forever; to continue from a \
             log, type --log LOG </dev/null"
        );
    }
    Ok(())
}

fn unreadable(path: &Path) -> String {
    format!("{}: the log cannot be read, check the path", path.display())
}

// The log, which receives all of standard output, and the journal. The next run continues from
// them.

/// A log or a journal, shared with the thread that writes standard output.
#[derive(Clone, Debug)]
pub(crate) struct CallLog(Arc<Mutex<CallLogInner>>);

#[derive(Debug)]
struct CallLogInner {
    /// What messages call this file.
    what: &'static str,
    /// Almost always one file. Two if `--log` names one file and standard output goes to another
    /// file that an option names.
    files: Vec<AppendedFile>,
    /// The file that could not be written, and the error. After it no more forwarded lines are
    /// appended, so that the log ends with complete data and the next run can continue from there.
    failure: Option<(String, io::Error)>,
    /// The ids of the calls whose `tool_use` was kept in every file, out of the lines whose append
    /// failed.
    starts: HashSet<String>,
}

impl CallLogInner {
    /// Appends to every file, even if one fails. Returns whether all succeeded.
    fn append(&mut self, pieces: &[&[u8]], sync: bool) -> bool {
        let mut failed = None;
        let mut kept = u64::MAX;
        for file in &mut self.files {
            let mut written = file.append(pieces.iter().copied());
            if written.is_ok() && sync {
                written = file.sync().map_err(Into::into);
            }
            if let Err(failure) = written {
                kept = kept.min(failure.kept);
                failed = Some((file.name.clone(), failure.error));
            }
        }
        let is_written = failed.is_none();
        if self.failure.is_none() && !is_written {
            self.starts = starts(&pieces.concat(), kept);
        }
        self.failure = failed.or(self.failure.take());
        is_written
    }
}

/// Returns the ids of the calls announced in the first `kept` bytes of `lines`.
fn starts(lines: &[u8], kept: u64) -> HashSet<String> {
    let mut scanner = Scanner::default();
    let kept = usize::try_from(kept).map_or(lines, |kept| &lines[..kept.min(lines.len())]);
    let texts = kept
        .split(|byte| *byte == b'\n')
        .filter_map(|line| std::str::from_utf8(line).ok());
    let mut ids = HashSet::new();
    for text in texts {
        if let Ok(event) = scanner.read(text)
            && event.kind() == Kind::ToolUse
        {
            ids.insert(ToolUse::read(&event).tool_id.str().into_owned());
        }
    }
    ids
}

impl CallLog {
    /// Returns the log in these files, or `None` if there are none.
    fn new(what: &'static str, files: Vec<AppendedFile>) -> Option<Self> {
        let inner = CallLogInner {
            what,
            files,
            failure: None,
            starts: HashSet::new(),
        };
        (!inner.files.is_empty()).then(|| CallLog(Arc::new(Mutex::new(inner))))
    }

    /// Whether standard output is one of these files. If so, only the log writes to it.
    pub(crate) fn is_stdout(&self) -> bool {
        self.inner().files.iter().any(|file| file.is_stdout)
    }

    /// Appends lines as written to standard output. With `sync`, waits until they are on disk. Does
    /// nothing after an error.
    pub(crate) fn append<'p>(&self, pieces: impl Iterator<Item = &'p [u8]>, sync: bool) {
        let mut inner = self.inner();
        if inner.failure.is_none() {
            inner.append(&pieces.collect::<Vec<_>>(), sync);
        }
    }

    /// Appends an event of a call and waits until it is on disk. Also tried after an error, because
    /// the result of a call that is known to have started is useful in any log. Returns whether the
    /// event was written; if not, [`CallLog::failure`] has the reason.
    fn record(&self, payload: &Payload<'_>, call: &RequestedCall) -> bool {
        let mut line = Vec::new();
        payload::line(
            &mut line,
            payload,
            call.stream.as_deref(),
            call.choice,
            None,
        );
        line.push(b'\n');
        self.inner().append(&[&line], true)
    }

    /// Whether the log contains the start of a call whose `tool_use` was appended. After an error,
    /// each call can be asked about only once.
    fn has_start(&self, call: &RequestedCall) -> bool {
        let mut inner = self.inner();
        inner.failure.is_none() || inner.starts.remove(call.id.as_ref())
    }

    /// Returns the message about a file that could not be written, with the remedy.
    fn failure(&self) -> Option<String> {
        let inner = self.inner();
        let (name, e) = inner.failure.as_ref()?;
        let what = inner.what;
        Some(format!(
            "{name}: the {what} cannot be written ({e}), so no further call was started; free \
             some space and continue from it"
        ))
    }

    fn inner(&self) -> MutexGuard<'_, CallLogInner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
