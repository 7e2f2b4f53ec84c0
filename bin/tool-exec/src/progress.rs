//! What a running call reports: its output as it appears, how far it has come, and its answer.

use redact::Redactor;
use std::cell::RefCell;
use std::rc::Rc;
use tokio::sync::mpsc;
use tool::{CallStep, ToolAnswer};

/// How much progress of one call waits for a reader, in bytes. What comes when so much waits is
/// left out.
const MOST: usize = 1 << 20;

/// How many steps of one call wait for a reader.
const MOST_STEPS: usize = 64;

/// What a running call reports, under the key that the plan gave it.
#[derive(Debug)]
pub(crate) enum CallReport {
    /// It goes on.
    Progress(u64, CallProgress),
    /// Its answer: the call has ended.
    Done(u64, ToolAnswer),
}

/// What a running call has to show.
#[derive(Debug)]
pub(crate) enum CallProgress {
    /// More output: all pieces that were not removed yet, as one text.
    Output(Rc<RefCell<String>>),
    /// How far the call has come. The references to the second value count the steps that wait.
    Step(
        CallStep,
        #[allow(dead_code, reason = "counted by its references")] Rc<()>,
    ),
}

/// Where a running call reports its progress to, under `--progress`.
///
/// A report never waits: a reader who takes nothing must not keep a call from being read, or from
/// ending. Pieces that nobody has taken become one piece, and at most one report of a call is under
/// way.
#[derive(Clone, Debug)]
pub(crate) struct ProgressReporter {
    key: u64,
    reports: mpsc::UnboundedSender<CallReport>,
    waiting: Rc<RefCell<String>>,
    /// Counts the steps that wait.
    steps: Rc<()>,
}

impl ProgressReporter {
    /// Reports the progress of the call that the plan gave `key`.
    pub(crate) fn new(key: u64, reports: mpsc::UnboundedSender<CallReport>) -> Self {
        ProgressReporter {
            key,
            reports,
            waiting: Rc::default(),
            steps: Rc::default(),
        }
    }

    /// Reports the next piece of its output.
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

    /// Reports how far it has come, and what it does now. Where many such reports wait to be
    /// written, this one is left out: the next replaces it.
    pub(crate) fn step(&self, step: CallStep) {
        if Rc::strong_count(&self.steps) <= MOST_STEPS {
            self.report(CallProgress::Step(step, Rc::clone(&self.steps)));
        }
    }

    fn report(&self, progress: CallProgress) {
        // Nobody listens when the run has failed.
        let _ = self.reports.send(CallReport::Progress(self.key, progress));
    }
}

/// How much of an output has been reported, in bytes.
#[derive(Debug, Default)]
pub(crate) struct ProgressMark(usize);

impl ProgressMark {
    /// The whole characters of `output` that have come since the last call, without secrets. While
    /// more may come (`is_open`), what may be the beginning of a secret waits for the rest of it.
    pub(crate) fn more(
        &mut self,
        output: &[u8],
        is_open: bool,
        redactor: &Redactor,
    ) -> Option<String> {
        let rest = output.get(self.0..)?;
        let whole = match std::str::from_utf8(rest) {
            // A character that is not yet whole waits for its end.
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
