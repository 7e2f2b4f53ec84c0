//! Standard output and the log, written by a thread while calls run.

use crate::store::CallLog;
use rustix::fs::FileType;
use std::io::IsTerminal;
use std::sync::mpsc::Sender;
use stdio::{Failure, Output};
use tokio::sync::mpsc::Receiver;

/// The output. Calls keep running while it is written: a slow reader delays neither their timeouts
/// nor their pipes.
///
/// A dedicated thread does the writing, because tokio panics if the system allows no more threads.
#[derive(Debug)]
pub(crate) struct OutputThread {
    /// The output to be written by the next [`OutputThread::flush`].
    pub output: Output,
    work: Sender<(Output, bool)>,
    done: Receiver<(Output, Result<(), Failure>)>,
    has_log: bool,
    /// Whether standard output is a pipe, a socket or a terminal.
    may_be_shown: bool,
    /// Why writing to standard output ended, while the log continues.
    failure: Option<Failure>,
}

impl OutputThread {
    /// Starts the thread. All flushed output is written to `log` first.
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

    /// Whether the output may be shown on a terminal, directly or by the reader of a pipe.
    pub(crate) fn may_be_shown(&self) -> bool {
        self.may_be_shown
    }

    /// Writes the waiting output to the log and to standard output. With `sync`, waits until the
    /// log is on disk. If there is a log, a failure of standard output is kept in
    /// [`OutputThread::failure`] and a failure of the log in [`CallLog::failure`].
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

    /// Records that standard output failed, so that only the log continues.
    ///
    /// # Errors
    /// The failure, if there is no log.
    pub(crate) fn end(&mut self, failure: Failure) -> Result<(), Failure> {
        if !self.has_log {
            return Err(failure);
        }
        self.failure.get_or_insert(failure);
        Ok(())
    }

    /// Returns why standard output could not be written completely while the log continued.
    pub(crate) fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }
}
