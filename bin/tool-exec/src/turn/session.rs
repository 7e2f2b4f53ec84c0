//! The main loop of a run: waits for input, calls and signals at the same time.

use super::calls::Calls;
use crate::approve::Answered;
use crate::progress::CallReport;
use crate::stream;
use crate::stream::{OutputThread, SignalsSeen};
use signal_hook::consts::SIGINT;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use stdio::{Failure, FilterEnd, InputPiece, LineReader, Status};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tool::PlanTally;

/// After the first signal: how long to wait for the last lines of the upstream, which is ending
/// too.
const REST: Duration = Duration::from_millis(500);

/// After the second signal: how long to wait for the calls that it ends, and for the output.
const LAST: Duration = Duration::from_secs(1);

/// What woke the main loop.
enum Wake {
    /// A signal.
    Signal(i32),
    /// A piece of the input.
    Input(InputPiece),
    /// A report of a running call.
    Report(CallReport),
    /// The user's answer to a question.
    Answered(Answered),
    /// Nothing else happened, and output is waiting to be written.
    Idle,
}

/// Everything that a run works with.
pub(crate) struct ToolSession<'o> {
    /// Reads lines.
    pub reader: LineReader<'o>,
    /// Writes lines.
    pub out: OutputThread,
    /// Processes the lines read.
    pub calls: Calls,
    /// The reports of running calls.
    pub reports: mpsc::UnboundedReceiver<CallReport>,
    /// Whether the whole input was searched for answers in advance.
    pub read_ahead: bool,
    /// The user's answers to questions.
    pub answers: mpsc::Receiver<Answered>,
    /// The signals that end the run.
    pub signals: SignalsSeen,
    /// Whether running calls are ended without a grace period; shared with `calls`.
    pub at_once: Rc<Cell<bool>>,
}

impl ToolSession<'_> {
    /// Runs until the input and all calls have ended, or until a signal or the reader of the output
    /// ends the run.
    ///
    /// # Errors
    /// If the input, the output, the log or the journal fails. Calls that are still running are
    /// ended.
    pub(crate) async fn run(self, input: mpsc::Receiver<InputPiece>) -> anyhow::Result<Status> {
        let mut signals = self.signals.clone();
        let at_once = Rc::clone(&self.at_once);
        let second = async {
            signals.next().await;
            let caught = signals.next().await;
            tokio::select! {
                _ = signals.next() => {}
                () = sleep(LAST) => {}
            }
            caught
        };
        tokio::select! {
            biased;
            // Results of calls ended by the second signal are still written, but the run ends even
            // if standard output is blocked.
            caught = second => {
                at_once.set(true);
                Ok(Status::Signal(caught))
            }
            status = self.drive(input) => status,
        }
    }

    async fn drive(mut self, mut input: mpsc::Receiver<InputPiece>) -> anyhow::Result<Status> {
        let mut signal = None;
        let rest = sleep(Duration::ZERO);
        tokio::pin!(rest);
        // `is_open`: the input may contain more calls. `is_listening`: the input thread may still
        // report a failure or deliver `retract` lines.
        let mut is_open = true;
        let mut is_listening = true;
        while is_open || !self.calls.plan.is_idle() {
            tokio::task::yield_now().await; // lets the calls run, however much input is waiting
            // Signals first, then input, then reports. The output is flushed when none of them is
            // ready.
            let wake = tokio::select! {
                biased;
                number = self.signals.next() => Wake::Signal(number),
                () = &mut rest, if is_open && signal.is_some() => Wake::Input(InputPiece::End),
                some = input.recv(), if is_listening => {
                    is_listening = some.is_some();
                    Wake::Input(some.unwrap_or(InputPiece::End))
                }
                Some(report) = self.reports.recv() => Wake::Report(report),
                Some(answered) = self.answers.recv() => Wake::Answered(answered),
                () = std::future::ready(()), if !self.out.output.is_empty() => Wake::Idle,
            };
            self.calls.plan.at(stream::now());
            match wake {
                Wake::Signal(caught) => {
                    let is_first = signal.replace(caught).is_none();
                    self.interrupt(caught, is_first).await?;
                    if is_first {
                        rest.as_mut().reset(Instant::now() + REST);
                    } else if std::mem::take(&mut is_open) {
                        self.piece(InputPiece::End).await?;
                    }
                }
                Wake::Input(piece) => {
                    let is_end = matches!(piece, InputPiece::End);
                    if is_open || !is_end {
                        self.piece(piece).await?;
                        is_open &= !self.calls.is_finished;
                    }
                    // Endless input must not delay results.
                    if let Ok(report) = self.reports.try_recv() {
                        self.report(report).await?;
                    }
                }
                Wake::Report(report) => self.report(report).await?,
                Wake::Answered(Answered { key, shown, answer }) => {
                    self.calls.plan.answered(key, shown, answer);
                    self.settle().await?;
                }
                Wake::Idle => {
                    self.flush(false).await?;
                    self.settle().await?;
                }
            }
        }
        self.close(signal).await
    }

    /// Handles a signal: no more calls start. After the first SIGINT, running calls may finish; any
    /// other signal ends them.
    async fn interrupt(&mut self, caught: i32, is_first: bool) -> anyhow::Result<()> {
        self.at_once.set(!is_first);
        if is_first && caught == SIGINT {
            self.calls.plan.stop();
            self.calls.report_waiting();
        } else {
            self.calls.plan.abort();
        }
        self.settle().await
    }

    async fn report(&mut self, report: CallReport) -> anyhow::Result<()> {
        self.calls.take(report);
        self.settle().await
    }

    /// Processes a piece of the input.
    async fn piece(&mut self, piece: InputPiece) -> anyhow::Result<()> {
        if let (InputPiece::Lines(bytes, _), false) = (&piece, self.read_ahead) {
            // An answer that arrives together with its call is counted before the call could start.
            let lines = bytes
                .split(|b| *b == b'\n')
                .filter_map(|line| std::str::from_utf8(line).ok());
            lines.for_each(|line| self.calls.plan.foresee(line));
        }
        match self
            .reader
            .piece(piece, &mut self.calls, &mut self.out.output)
        {
            Err(Failure::Gone) => self.out.end(Failure::Gone)?,
            Err(failure) => {
                self.flush(true).await?;
                return Err(failure.into());
            }
            Ok(()) => {}
        }
        self.launch().await
    }

    /// Executes the plan's steps between two lines.
    async fn settle(&mut self) -> anyhow::Result<()> {
        self.write_steps()?;
        self.launch().await
    }

    fn write_steps(&mut self) -> Result<(), Failure> {
        let calls = &mut self.calls;
        self.reader.between(&mut self.out.output, |out| {
            calls.write_held(out);
            calls.settle(out, None);
        })
    }

    /// Flushes the output if it is full or announces calls, then starts those calls.
    async fn launch(&mut self) -> anyhow::Result<()> {
        loop {
            let is_start = self.calls.has_announced();
            if is_start || self.out.output.is_full() {
                self.flush(is_start).await?;
            }
            let is_refused = self.calls.launch();
            self.write_steps()?;
            if !is_refused && !self.calls.has_announced() {
                return Ok(());
            }
        }
    }

    /// Writes the waiting output. Results of calls that end in the meantime are recorded at once,
    /// even if the reader of the output is slow.
    async fn flush(&mut self, sync: bool) -> anyhow::Result<()> {
        if !self.out.output.is_empty() && self.out.may_be_shown() {
            self.calls.disturb_question();
        }
        let calls = &mut self.calls;
        let reports = &mut self.reports;
        let is_recorded = calls.records.any();
        {
            let writing = self.out.flush(sync && is_recorded);
            tokio::pin!(writing);
            loop {
                tokio::select! {
                    biased;
                    result = &mut writing => break result?,
                    Some(report) = reports.recv(), if is_recorded => calls.take(report),
                }
            }
        }
        calls.check_records();
        if self
            .out
            .failure()
            .is_some_and(|failure| !matches!(failure, Failure::Gone))
        {
            calls.plan.stop_because("standard output cannot be written");
        }
        Ok(())
    }

    /// Writes the counters and returns the exit status.
    async fn close(mut self, signal: Option<i32>) -> anyhow::Result<Status> {
        let stats = &self.calls;
        self.reader
            .between(&mut self.out.output, |out| stats.write_stats(out))?;
        self.flush(true).await?;
        if let Some(failure) = self.calls.records.failure() {
            anyhow::bail!(failure);
        }
        if let Some(Failure::Write(e)) = self.out.failure() {
            return Err(Failure::Write(std::io::Error::from(e.kind())).into());
        }
        let tally = self.calls.plan.tally();
        let error = self.reader.has_failed() || self.calls.has_missed;
        // Reading stopped because the reader of the output is gone, so no one waits for the rest or
        // for another turn.
        let is_left =
            matches!(self.out.failure(), Some(Failure::Gone)) && tally.is_failure() && !error;
        if is_left && signal.is_none() {
            self.calls.runners.backend.close().await;
            return Ok(Status::No);
        }
        if let Some(why) = why(&tally, error || signal.is_some()) {
            crate::say(&why);
        }
        self.calls.report_unused();
        self.calls.report_pending();
        let answer = match tally {
            tool::PlanTally { pending: 1.., .. } => Status::Undecided,
            tool::PlanTally { is_final: true, .. } | tool::PlanTally { messages: 0, .. } => {
                Status::No
            }
            _ => Status::Done,
        };
        let servers = &self.calls.runners.backend;
        let is_blocked = servers.is_blocked();
        servers.close().await;
        Ok(FilterEnd {
            error: error || tally.is_failure() || is_blocked,
            signal,
        }
        .status(answer))
    }
}

// The message for a failed turn.

/// Returns why a turn failed, or `None` if it did not. With `is_known`, an `error` event or a
/// signal has already reported the reason.
pub(super) fn why(tally: &PlanTally, is_known: bool) -> Option<String> {
    let PlanTally {
        unconfirmed,
        unmerged,
        failed,
        started,
        ..
    } = *tally;
    if tally.lost && tally.is_failure() {
        return Some(
            "a line of the turn is not an event (see the warning) and may have held a call, so the turn failed; \
             raise --max-line in every stage if the line is too long, else run the turn again"
                .to_owned(),
        );
    }
    if unconfirmed > 0 {
        let early = if started > 0 {
            format!("; {started} calls that only read had started early")
        } else {
            String::new()
        };
        return Some(format!(
            "no assistant message confirmed {unconfirmed} calls, so they were not run{early}; \
             put tc-accumulate before tool-exec"
        ));
    }
    if unmerged > 0 {
        return Some(
            "the stream has deltas, but no tool_call and no assistant message; put tc-accumulate before tool-exec"
                .to_owned(),
        );
    }
    let ran = match started {
        0 => "none of its calls ran; run the turn again".to_owned(),
        1 => "after a call had started; see its result before you run the turn again".to_owned(),
        _ => format!(
            "after {started} calls had started; see their results before you run the turn again"
        ),
    };
    (failed > 0 && !is_known).then(|| format!("the stream was cut before its end, {ran}"))
}
