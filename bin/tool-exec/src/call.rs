//! A call while it runs, however its tool is run: what ends it, what it reports, and who runs it.

use super::command::Commands;
use super::command::supervisor::Control;
use super::http::{self, Sender};
use super::mcp::{self, Backend};
use super::store::Outputs;
use redact::Redactor;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc};
use tool::{CallStep, ReadyCall, RequestedCall, RunnerKind, Status, ToolAnswer, Work};
use trace::TraceContext;

/// What runs the calls of one tools file.
#[derive(Debug)]
pub(crate) struct Runners {
    /// How long a call may take, unless its tool has a limit of its own.
    pub timeout: Duration,
    /// How much it may write to each of its outputs in bytes, likewise.
    pub max_output: usize,
    /// Makes outputs readable, and takes the secrets of this process out of every answer.
    pub outputs: Outputs,
    /// Runs commands.
    pub commands: Commands,
    /// Sends requests.
    pub sender: Sender,
    /// Where the servers are that have tools.
    pub backend: Backend,
}

/// What a call may use, and what makes its output readable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    /// How long it may take.
    pub timeout: Duration,
    /// How much it may write to each of its outputs, in bytes.
    pub max_output: usize,
    /// How much of an output the model reads, in bytes; `None`: the default of `outputs`.
    pub max_result: Option<usize>,
    /// Makes outputs readable.
    pub outputs: &'a Outputs,
}

impl Terms<'_> {
    /// See [`Outputs::readable`].
    pub(crate) fn readable(&self, bytes: &[u8]) -> ToolAnswer {
        self.outputs.readable(bytes, self.max_result)
    }
}

/// One call while it runs.
pub(crate) struct Task<'a> {
    /// The call.
    pub call: &'a RequestedCall,
    /// Its arguments, as JSON.
    pub arguments: &'a str,
    /// What it may use.
    pub terms: Terms<'a>,
    /// Ends it early.
    pub handle: &'a Handle,
    /// The span of the call, if it is traced.
    pub trace: Option<TraceContext>,
    /// Where its output is reported as it appears.
    pub progress: Option<ProgressReporter>,
}

impl Task<'_> {
    /// Reports what has come of an output; see [`ProgressMark::more`].
    pub(crate) fn show(&self, shown: &mut ProgressMark, output: &[u8], is_open: bool) {
        if let Some(progress) = &self.progress
            && let Some(text) = shown.more(output, is_open, self.terms.outputs.redactor())
        {
            progress.text(&text);
        }
    }
}

impl Runners {
    /// Runs a call to its end and returns its answer; `handle` ends it early. With `progress` its
    /// output is reported as it appears.
    pub(crate) async fn run(
        &self,
        call: &RequestedCall,
        ready: &ReadyCall,
        handle: &Handle,
        trace: Option<TraceContext>,
        progress: Option<ProgressReporter>,
    ) -> ToolAnswer {
        let (Some(exec), Ok(arguments)) = (&ready.tool.exec, &call.arguments) else {
            return ToolAnswer::new(Status::Error, "The call has nothing to run.");
        };
        let task = Task {
            call,
            arguments: arguments.text(),
            terms: Terms {
                timeout: exec.timeout.unwrap_or(self.timeout),
                max_output: exec.max_output.unwrap_or(self.max_output),
                max_result: exec.max_result,
                outputs: &self.outputs,
            },
            handle,
            trace,
            progress,
        };
        let start = Instant::now();
        let answer = match (&exec.run, &ready.work) {
            (RunnerKind::Command(command), Work::Command(argv)) => {
                self.commands.run(&task, command, argv).await
            }
            (RunnerKind::Http(http), Work::Http(request)) => {
                http::run(&task, &self.sender, http, request).await
            }
            (RunnerKind::Mcp(_), Work::Mcp(tool)) => mcp::run(&task, &self.backend, tool).await,
            _ => ToolAnswer::new(Status::Error, "The call is not of its tool."),
        };
        let output = self.outputs.redactor().text(&answer.output).into_owned();
        ToolAnswer {
            output,
            duration: Some(start.elapsed()),
            return_directly: exec.return_directly,
            ..answer
        }
    }
}

/// The means to end a running call.
#[derive(Debug, Default)]
pub(crate) struct Handle {
    /// Notified when the call is to end.
    pub stop: Notify,
    /// Whether it is to end without a grace.
    pub at_once: Cell<bool>,
    /// Ends its command, while that runs.
    pub control: RefCell<Option<Control>>,
}

impl Handle {
    /// Ends the call, at once or after a grace; [`CallReport::Done`] still comes. A second call
    /// may leave out the grace.
    pub(crate) fn stop(&self, at_once: bool) {
        self.at_once.set(at_once);
        self.stop.notify_one();
    }

    /// Asks the supervisor of the call to end it, at once or after a grace, and waits for nothing.
    pub(crate) fn abandon(&self, at_once: bool) {
        if let Some(control) = &*self.control.borrow() {
            control.end(at_once);
        }
    }
}

// What a running call reports.

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
