//! A call while it runs, however its tool is run: what ends it, what it reports, and who runs it.

use super::command::CommandRunner;
use super::command::confine::Sandboxes;
use super::command::supervisor::Control;
use super::http::HttpRunner;
use super::mcp::{Backend, McpRunner};
use super::store::Outputs;
use redact::Redactor;
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc};
use tool::{Answer, ReadyCall, RequestedCall, Run, Status, Work};

// Who runs a call: one runner for each way to run a tool.

/// The runners of one tools file.
#[derive(Debug)]
pub struct Runners {
    /// Runs commands.
    pub commands: CommandRunner,
    /// Sends requests.
    requests: HttpRunner,
    /// Makes outputs readable, and takes the secrets of this process out of every answer.
    pub outputs: Rc<Outputs>,
    /// Runs tools of servers.
    pub servers: McpRunner,
}

impl Runners {
    /// The runners of the tools file `tools`, whose servers are in `backend`. `timeout` is how long
    /// a call may take, and `max_output` how much it may write to each of its outputs in bytes,
    /// unless its tool has limits of its own; `outputs` makes them readable. `sandboxes` confine
    /// its commands.
    pub fn new(
        tools: &Path,
        backend: Backend,
        timeout: Duration,
        max_output: usize,
        outputs: Outputs,
        sandboxes: Sandboxes,
    ) -> Rc<Self> {
        let outputs = Rc::new(outputs);
        let commands =
            CommandRunner::new(tools, timeout, max_output, Rc::clone(&outputs), sandboxes);
        let requests = HttpRunner::new(timeout, max_output, Rc::clone(&outputs));
        let servers = McpRunner::new(backend, timeout, Rc::clone(&outputs));
        Rc::new(Runners {
            commands,
            requests,
            outputs,
            servers,
        })
    }

    /// Runs a call to its end and returns its answer; `handle` ends it early. With `progress` its
    /// output is reported as it appears.
    pub async fn run(
        &self,
        call: &RequestedCall,
        ready: &ReadyCall,
        handle: &Handle,
        progress: Option<Progress>,
    ) -> Answer {
        let (Some(exec), Ok(arguments)) = (&ready.tool.exec, &call.arguments) else {
            return Answer::new(Status::Error, "The call has nothing to run.");
        };
        let start = Instant::now();
        let answer = match (&exec.run, &ready.work) {
            (Run::Command(command), Work::Command(argv)) => {
                self.commands
                    .run(exec, command, argv, call, handle, progress)
                    .await
            }
            (Run::Http(http), Work::Http(request)) => {
                self.requests
                    .run(exec, http, request, call, handle, progress)
                    .await
            }
            (Run::Mcp(_), Work::Mcp(tool)) => {
                self.servers
                    .run(exec, tool, arguments.text(), handle, progress)
                    .await
            }
            _ => Answer::new(Status::Error, "The call is not of its tool."),
        };
        let output = self.outputs.redactor().text(&answer.output).into_owned();
        Answer {
            output,
            duration: Some(start.elapsed()),
            return_directly: exec.return_directly,
            ..answer
        }
    }
}

// The means to end a running call.

/// The means to end a running call.
#[derive(Debug, Default)]
pub struct Handle {
    /// Notified when the call is to end.
    pub stop: Notify,
    /// Whether it is to end without a grace.
    pub at_once: Cell<bool>,
    /// Ends its command, while that runs.
    pub control: RefCell<Option<Control>>,
}

impl Handle {
    /// Ends the call, at once or after a grace; [`Report::Done`] still comes. A second call
    /// may leave out the grace.
    pub fn stop(&self, at_once: bool) {
        self.at_once.set(at_once);
        self.stop.notify_one();
    }

    /// Asks the supervisor of the call to end it, at once or after a grace, and waits for nothing.
    pub fn abandon(&self, at_once: bool) {
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

// How much of an output has been reported while it grows.

/// How much of an output has been reported, in bytes.
#[derive(Debug, Default)]
pub struct ProgressMark(usize);

impl ProgressMark {
    /// The whole characters of `output` that have come since the last call, without secrets. While
    /// more may come (`is_open`), what may be the beginning of a secret waits for the rest of it.
    pub fn more(&mut self, output: &[u8], is_open: bool, redactor: &Redactor) -> Option<String> {
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
