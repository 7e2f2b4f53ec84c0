//! Standard output and the log, written by a thread while commands run.

use crate::store::CallLog;
use rustix::fs::FileType;
use std::io::IsTerminal;
use std::sync::mpsc::Sender;
use stdio::{Failure, Output};
use tokio::sync::mpsc::Receiver;

/// The output. While it is written the commands run on: a slow reader stops neither their timeouts
/// nor their pipes.
///
/// A thread of its own writes: tokio would panic where the system allows no more threads.
#[derive(Debug)]
pub(crate) struct OutputThread {
    /// What waits for [`OutputThread::flush`].
    pub output: Output,
    work: Sender<(Output, bool)>,
    done: Receiver<(Output, Result<(), Failure>)>,
    has_log: bool,
    /// Whether standard output is a pipe, a socket or a terminal.
    may_be_shown: bool,
    /// Why standard output ended, while the log goes on.
    failure: Option<Failure>,
}

impl OutputThread {
    /// Starts the thread. All that is flushed goes to `log` first.
    ///
    /// # Errors
    /// [`Failure::Limit`].
    pub(crate) fn new(log: Option<CallLog>) -> Result<Self, Failure> {
        let kind =
            rustix::fs::fstat(std::io::stdout()).map(|stat| FileType::from_raw_mode(stat.st_mode));
        let is_pipe = kind.is_ok_and(|kind| matches!(kind, FileType::Fifo | FileType::Socket));
        let may_be_shown = is_pipe || std::io::stdout().is_terminal();
        let (work, outputs) = std::sync::mpsc::channel::<(Output, bool)>();
        let (written, done) = tokio::sync::mpsc::channel(1);
        let has_log = log.is_some();
        let mut is_open = log.as_ref().is_none_or(|log| !log.is_stdout());
        stdio::thread(move || {
            for (mut output, sync) in outputs {
                if let Some(log) = &log {
                    log.append(output.unrecorded(), sync);
                }
                let result = if is_open { output.flush() } else { Ok(()) };
                output.clear();
                is_open &= result.is_ok();
                if written.blocking_send((output, result)).is_err() {
                    return;
                }
            }
        })?;
        Ok(OutputThread {
            output: Output::deferred(),
            work,
            done,
            has_log,
            may_be_shown,
            failure: None,
        })
    }

    /// Whether what is written may be shown on a terminal, by the reader of a pipe or directly.
    pub(crate) fn may_be_shown(&self) -> bool {
        self.may_be_shown
    }

    /// Writes out what waits, to the log and to standard output; with `sync` waits until the log is
    /// on disk. With a log, a failure of standard output is kept in [`OutputThread::failure`], and one of
    /// the log in [`CallLog::failure`].
    ///
    /// # Errors
    /// [`Failure::Gone`] and [`Failure::Write`].
    pub(crate) async fn flush(&mut self, sync: bool) -> Result<(), Failure> {
        if self.output.is_empty() && !sync {
            return Ok(());
        }
        let ended = || Failure::Write(std::io::Error::other("the thread that writes has ended"));
        self.work
            .send((std::mem::take(&mut self.output), sync))
            .map_err(|_| ended())?;
        let (output, result) = self.done.recv().await.ok_or_else(ended)?;
        self.output = output;
        if let Err(failure) = result {
            self.end(failure)?;
        }
        Ok(())
    }

    /// Standard output has failed, so the log alone goes on.
    ///
    /// # Errors
    /// The failure, where there is no log.
    pub(crate) fn end(&mut self, failure: Failure) -> Result<(), Failure> {
        if !self.has_log {
            return Err(failure);
        }
        self.failure.get_or_insert(failure);
        Ok(())
    }

    /// Why standard output was not written to its end although the log was.
    pub(crate) fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }
}
