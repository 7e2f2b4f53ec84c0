//! What a running call reports.

use std::cell::RefCell;
use std::rc::Rc;
use tokio::sync::mpsc;
use tool::Answer;

/// How much progress of one call waits for a reader, in bytes. What comes when so much waits is
/// left out.
const MOST: usize = 1 << 20;

/// How many steps of one call wait for a reader.
const MOST_STEPS: usize = 64;

/// What a running call reports, under the key that the plan gave it.
#[derive(Debug)]
pub enum Report {
    /// There is more of its output: [`Waiting::take`] has it.
    Progress(u64, Waiting),
    /// How far it has come.
    Step(u64, Step),
    /// Its answer: the call has ended.
    Done(u64, Answer),
}

/// The pieces of a call's output that nobody has taken yet, as one.
#[derive(Clone, Debug, Default)]
pub struct Waiting(Rc<RefCell<String>>);

impl Waiting {
    /// Takes what waits.
    pub fn take(&self) -> String {
        self.0.take()
    }
}

/// How far a call has come.
#[derive(Debug)]
pub struct Step {
    /// From 0 to 1, if it reports that.
    pub progress: Option<f64>,
    /// What it does now.
    pub message: String,
    /// Counts it while it waits.
    #[allow(dead_code, reason = "counted by its references")]
    counted: Rc<()>,
}

/// Where a running call reports its progress to, under `--progress`.
///
/// A report never waits: a reader who takes nothing must not keep a call from being read, or from
/// ending. Pieces that nobody has taken become one piece, and at most one report of a call is under
/// way.
#[derive(Clone, Debug)]
pub struct Progress {
    key: u64,
    reports: mpsc::UnboundedSender<Report>,
    waiting: Waiting,
    /// Counts the steps that wait.
    steps: Rc<()>,
}

impl Progress {
    /// The progress of the call that the plan gave `key`.
    pub fn new(key: u64, reports: mpsc::UnboundedSender<Report>) -> Self {
        Progress {
            key,
            reports,
            waiting: Waiting::default(),
            steps: Rc::default(),
        }
    }

    /// Reports the next piece of its output.
    pub fn text(&self, text: &str) {
        let mut waiting = self.waiting.0.borrow_mut();
        if waiting.len() + text.len() > MOST {
            return;
        }
        if waiting.is_empty() {
            // Nobody listens when the run has failed.
            let _ = self
                .reports
                .send(Report::Progress(self.key, self.waiting.clone()));
        }
        waiting.push_str(text);
    }

    /// Reports how far it has come, and what it does now. Where many such reports wait to be
    /// written, this one is left out: the next replaces it.
    pub fn step(&self, progress: Option<f64>, message: String) {
        if Rc::strong_count(&self.steps) <= MOST_STEPS {
            let step = Step {
                progress,
                message,
                counted: Rc::clone(&self.steps),
            };
            // Nobody listens when the run has failed.
            let _ = self.reports.send(Report::Step(self.key, step));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_that_nobody_takes_become_one_and_are_bounded() {
        let (send, mut reports) = mpsc::unbounded_channel();
        let progress = Progress::new(7, send);
        let mut next = || match reports.try_recv() {
            Ok(Report::Progress(7, waiting)) => waiting.take(),
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
