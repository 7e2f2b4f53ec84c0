//! Reports of a running call: output as it arrives, progress steps, and the answer.

use redact::Redactor;
use std::cell::RefCell;
use std::rc::Rc;
use tokio::sync::mpsc;
use tool::{CallStep, ToolAnswer};

/// How many bytes of one call's output may be queued for a reader. Further output is dropped while
/// the queue is full.
const MOST: usize = 1 << 20;

/// How many steps of one call may be queued for a reader.
const MOST_STEPS: usize = 64;

/// A report of a running call, with the key that the plan gave to the call.
#[derive(Debug)]
pub(crate) enum CallReport {
    /// Progress of the call.
    Progress(u64, CallProgress),
    /// The answer of the call, which has ended.
    Done(u64, ToolAnswer),
}

/// Progress of a running call.
#[derive(Debug)]
pub(crate) enum CallProgress {
    /// New output: all queued pieces, joined into one text.
    Output(Rc<RefCell<String>>),
    /// A progress step. The second value is never read: its reference count is the number of queued
    /// steps.
    Step(
        CallStep,
        #[allow(dead_code, reason = "counted by its references")] Rc<()>,
    ),
}

/// Reports the progress of a running call under `--progress`.
///
/// A report never blocks: a reader that does not read must not keep a call from being read or from
/// ending. Queued pieces of output are merged, so at most one output report of a call is queued.
#[derive(Clone, Debug)]
pub(crate) struct ProgressReporter {
    key: u64,
    reports: mpsc::UnboundedSender<CallReport>,
    waiting: Rc<RefCell<String>>,
    /// Its reference count is the number of queued steps.
    steps: Rc<()>,
}

impl ProgressReporter {
    /// Returns a reporter for the call with this key, which the plan assigned.
    pub(crate) fn new(key: u64, reports: mpsc::UnboundedSender<CallReport>) -> Self {
        ProgressReporter {
            key,
            reports,
            waiting: Rc::default(),
            steps: Rc::default(),
        }
    }

    /// Reports the next piece of output.
    pub(crate) fn text(&self, text: &str) {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.len() + text.len() > MOST {
            return;
        }
        if waiting.is_empty() {
            self.report(CallProgress::Output(Rc::clone(&self.waiting)));
        }
        waiting.push_str(text);
    }

    /// Reports a progress step. If too many steps are queued, this step is dropped, since the next
    /// one replaces it.
    pub(crate) fn step(&self, step: CallStep) {
        if Rc::strong_count(&self.steps) <= MOST_STEPS {
            self.report(CallProgress::Step(step, Rc::clone(&self.steps)));
        }
    }

    fn report(&self, progress: CallProgress) {
        // The receiver is gone if the run has failed.
        let _ = self.reports.send(CallReport::Progress(self.key, progress));
    }
}

/// How much of an output has been reported, in bytes.
#[derive(Debug, Default)]
pub(crate) struct ProgressMark(usize);

impl ProgressMark {
    /// Returns the complete characters added to `output` since the last call, with secrets
    /// redacted, or `None` if there are none. While more may follow (`is_open`), text that may be
    /// the start of a secret is held back.
    pub(crate) fn more(
        &mut self,
        output: &[u8],
        is_open: bool,
        redactor: &Redactor,
    ) -> Option<String> {
        let rest = output.get(self.0..)?;
        let whole = match std::str::from_utf8(rest) {
            // An incomplete character is held back.
            Err(e) if e.error_len().is_none() => e.valid_up_to(),
            _ => rest.len(),
        };
        let end = if is_open {
            redactor.settled(&rest[..whole])
        } else {
            whole
        };
        self.0 += end;
        (end > 0).then(|| redactor.text(&tool::text(&rest[..end]).0).into_owned())
    }
}

#[cfg(test)]
mod report_tests {
    use super::*;

    #[test]
    fn pieces_that_nobody_takes_become_one_and_are_bounded() {
        let (send, mut reports) = mpsc::unbounded_channel();
        let progress = ProgressReporter::new(7, send);
        let mut next = || match reports.try_recv() {
            Ok(CallReport::Progress(7, CallProgress::Output(waiting))) => waiting.take(),
            _ => "nothing".to_owned(),
        };
        progress.text("a");
        progress.text("b");
        assert_eq!((next(), next()), ("ab".to_owned(), "nothing".to_owned()));
        for _ in 0..3 {
            progress.text(&"x".repeat(MOST / 2));
        }
        assert_eq!((next().len(), next()), (MOST, "nothing".to_owned()));
        progress.text("c");
        assert_eq!(next(), "c");
    }
}
