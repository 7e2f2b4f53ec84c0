//! What a run writes down of its calls, so that no call runs twice after a crash.

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
    /// Holds all that goes to standard output.
    pub log: Option<CallLog>,
    /// Holds starts and results alone: each is on disk before anything else happens, so that no call
    /// runs twice after a crash.
    journal: Option<CallLog>,
    /// Held until the run has ended.
    #[expect(dead_code, reason = "it is there to be dropped")]
    locks: Locks,
}

impl Records {
    /// Opens and locks the log, the journal, and the logs to resume from, and reads them into
    /// `history`.
    ///
    /// A file is what it is, whatever the names by which options and standard output have it:
    /// - what any of the three options names is read, once, before anything is written;
    /// - what `--log` names gets all that goes to standard output, and so does the file that
    ///   standard output goes to if any of the three options names it: it is written here and not
    ///   by way of standard output, so that it is synced and holds whole lines;
    /// - any other file of `--journal` gets the starts and results.
    ///
    /// # Errors
    /// When one of them cannot be used, another run uses it, or a file that is written is also the
    /// input, whose lines would come again without end.
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
        // The logs to resume from are locked first, so that none of them changes while they are
        // read.
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
                // Whoever opened standard output has followed a link already.
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

    /// Whether results are recorded when their calls end.
    pub(crate) fn any(&self) -> bool {
        self.log.is_some() || self.journal.is_some()
    }

    /// Records in the journal that a call starts; the log has the event by way of standard output.
    /// Returns whether the call may start.
    pub(crate) fn start(&self, intent: ToolUse<'_>, call: &RequestedCall) -> bool {
        let journal = self.journal.as_ref();
        self.log.as_ref().is_none_or(|log| log.has_start(call))
            && journal.is_none_or(|journal| {
                journal.failure().is_none() && journal.record(&intent.into(), call)
            })
    }

    /// Records the result of a call. Returns whether it is in the log.
    pub(crate) fn result(&self, result: ToolResult<'_>, call: &RequestedCall) -> bool {
        let result = result.into();
        let record = |log: &CallLog| log.record(&result, call);
        if let Some(journal) = &self.journal {
            record(journal);
        }
        self.log.as_ref().is_some_and(record)
    }

    /// Why a file could not be written, as a message: then no call may start.
    pub(crate) fn failure(&self) -> Option<String> {
        self.log
            .iter()
            .chain(&self.journal)
            .find_map(CallLog::failure)
    }
}

/// Reads what [`Records::open`] reads into `calls`, without a lock: for a run that starts nothing. A
/// log or a journal that is missing is empty.
///
/// # Errors
/// When one of them cannot be read.
pub(crate) fn look(keeping: &Keeping, calls: &mut impl LogReader) -> anyhow::Result<()> {
    let written = keeping.log.iter().chain(&keeping.journal);
    let written = written.filter(|path| path.symlink_metadata().is_ok());
    let paths = written.chain(&keeping.resume);
    look_at(paths.map(PathBuf::as_path), calls)
}

/// Reads these logs into `calls`, without a lock.
///
/// # Errors
/// When one of them cannot be read.
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

/// Reads files into `calls`, each once, however many names it has.
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
            "{name}: it is both input and output, which would loop forever; to continue from a \
             log, type --log LOG </dev/null"
        );
    }
    Ok(())
}

fn unreadable(path: &Path) -> String {
    format!("{}: the log cannot be read, check the path", path.display())
}

// The log, all that goes to standard output, and the journal, in files that the next run continues
// from.

/// A log or a journal, shared with the thread that writes standard output.
#[derive(Clone, Debug)]
pub(crate) struct CallLog(Arc<Mutex<CallLogInner>>);

#[derive(Debug)]
struct CallLogInner {
    /// The word for it in messages.
    what: &'static str,
    /// Almost always one. Two where `--log` names one and standard output goes to another one that
    /// an option names.
    files: Vec<AppendedFile>,
    /// Which file could not be written, and why. Then no further lines that passed follow: the log
    /// ends where it was whole, and the next run continues from there.
    failure: Option<(String, io::Error)>,
    /// The ids of the calls whose `tool_use` stays in each file, of the lines that did not fit
    /// together.
    starts: HashSet<String>,
}

impl CallLogInner {
    /// Appends to each file, also where another one fails. Returns whether none has failed.
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

/// The ids of the calls that the first `kept` bytes of `lines` announce.
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
    /// The log in these files; `None` without any.
    fn new(what: &'static str, files: Vec<AppendedFile>) -> Option<Self> {
        let inner = CallLogInner {
            what,
            files,
            failure: None,
            starts: HashSet::new(),
        };
        (!inner.files.is_empty()).then(|| CallLog(Arc::new(Mutex::new(inner))))
    }

    /// Whether standard output is one of these files: then the log alone writes to it.
    pub(crate) fn is_stdout(&self) -> bool {
        self.inner().files.iter().any(|file| file.is_stdout)
    }

    /// Appends lines as they go to standard output; with `sync` waits until they are on disk. After
    /// an error it does nothing.
    pub(crate) fn append<'p>(&self, pieces: impl Iterator<Item = &'p [u8]>, sync: bool) {
        let mut inner = self.inner();
        if inner.failure.is_none() {
            inner.append(&pieces.collect::<Vec<_>>(), sync);
        }
    }

    /// Appends an event of a call and waits until it is on disk. It is tried after an error too:
    /// the result of a call that is known to have started is of use in every log. Returns whether
    /// it is written; [`CallLog::failure`] has why not.
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

    /// Whether the start of a call whose `tool_use` was appended is in the log. Behind an error that
    /// is asked once.
    fn has_start(&self, call: &RequestedCall) -> bool {
        let mut inner = self.inner();
        inner.failure.is_none() || inner.starts.remove(call.id.as_ref())
    }

    /// The message for a file that could not be written, with what to do.
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
