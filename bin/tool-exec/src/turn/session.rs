//! The run of the command: it waits for the input, the calls and the signals together.

use super::calls::Calls;
use super::failure;
use crate::command::Report;
use crate::stream::{Signals, Writer};
use signal_hook::consts::SIGINT;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use stdio::{LineReader, Outcome, Piece, Status};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

/// After a first signal: how long to wait for the lines that the upstream writes while it ends too.
const REST: Duration = Duration::from_millis(500);

/// After a second signal: how long to wait for the calls that it ends, and for the output.
const LAST: Duration = Duration::from_secs(1);

/// Everything that a run works with.
pub struct Session<'o> {
    /// Reads lines.
    pub reader: LineReader<'o>,
    /// Writes lines.
    pub out: Writer,
    /// Takes the lines that are read.
    pub calls: Calls,
    /// The reports of the calls that run.
    pub reports: mpsc::Receiver<Report>,
    /// Whether all of the input was searched for answers before.
    pub read_ahead: bool,
    /// The signals that end it.
    pub signals: Signals,
    /// Whether running calls are ended without a grace; shared with `calls`.
    pub at_once: Rc<Cell<bool>>,
}

impl Session<'_> {
    /// Runs until the input has ended and every call with it, or until a signal or the reader of the output ends it.
    ///
    /// # Errors
    /// When the input, the output or the journal fails. Whatever still runs is ended.
    pub async fn run(self, input: mpsc::Receiver<Piece>) -> anyhow::Result<Status> {
        let (mut signals, at_once) = (self.signals.clone(), Rc::clone(&self.at_once));
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
            // The results of calls that the second signal ends are still written, but a reader that takes nothing holds up no exit.
            caught = second => {
                at_once.set(true);
                Ok(Status::Signal(caught))
            }
            status = self.drive(input) => status,
        }
    }

    async fn drive(mut self, mut input: mpsc::Receiver<Piece>) -> anyhow::Result<Status> {
        let mut signal = None;
        let rest = sleep(Duration::ZERO);
        tokio::pin!(rest);
        // `is_open`: more may come from the input. `is_listening`: the thread that reads it may still report a failure.
        let (mut is_open, mut is_listening) = (true, true);
        while is_open || !self.calls.plan.is_idle() {
            tokio::task::yield_now().await; // lets the calls run, however much input waits
            let (mut caught, mut piece, mut report) = (None, None, None);
            // Signals first, then input, then reports; output is flushed when none of them waits.
            tokio::select! {
                biased;
                number = self.signals.next() => caught = Some(number),
                () = &mut rest, if is_open && signal.is_some() => piece = Some(Piece::End),
                some = input.recv(), if is_listening => {
                    is_listening = some.is_some();
                    piece = Some(some.unwrap_or(Piece::End));
                    report = self.reports.try_recv().ok(); // so that endless input does not hold up results
                }
                some = self.reports.recv() => report = some,
                () = std::future::ready(()), if !self.out.output.is_empty() => self.out.flush().await?,
            }
            if let Some(caught) = caught {
                let is_first = signal.replace(caught).is_none();
                self.at_once.set(!is_first);
                if is_first {
                    rest.as_mut().reset(Instant::now() + REST);
                } else {
                    piece = Some(Piece::End);
                }
                if is_first && caught == SIGINT {
                    self.calls.plan.stop();
                    self.calls.report_waiting();
                } else {
                    self.calls.plan.abort();
                }
                self.settle().await?;
            }
            if let Some(piece) = piece.filter(|piece| is_open || matches!(piece, Piece::Failed(_))) {
                is_open &= !matches!(piece, Piece::End);
                self.piece(piece).await?;
            }
            match report {
                Some(Report::Progress(key, text)) => {
                    let calls = &self.calls;
                    self.reader.between(&mut self.out.output, |out| calls.write_progress(key, &text, out))?;
                }
                Some(Report::Done(key, answer)) => {
                    if self.calls.journals_to_stdout() {
                        let calls = &self.calls;
                        self.reader.between(&mut self.out.output, |out| calls.write_ended(key, &answer, out))?;
                        self.out.flush().await?;
                    }
                    self.calls.ended(key, answer)?;
                    self.settle().await?;
                }
                None => {}
            }
        }
        self.close(signal).await
    }

    /// Takes a piece of the input.
    async fn piece(&mut self, piece: Piece) -> anyhow::Result<()> {
        if let (Piece::Lines(bytes, _), false) = (&piece, self.read_ahead) {
            // An answer that has arrived with its call counts before the call could start.
            let lines = bytes.split(|b| *b == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
            lines.for_each(|line| self.calls.plan.foresee_line(line));
        }
        if let Err(failure) = self.reader.piece(piece, &mut self.calls, &mut self.out.output) {
            self.out.flush().await?;
            return Err(failure.into());
        }
        self.launch().await
    }

    /// Takes the plan's steps between lines.
    async fn settle(&mut self) -> anyhow::Result<()> {
        let calls = &mut self.calls;
        self.reader.between(&mut self.out.output, |out| calls.settle(out, None))?;
        self.launch().await
    }

    /// Flushes the output if it is full or announces calls, and starts those.
    async fn launch(&mut self) -> anyhow::Result<()> {
        if self.calls.has_announced() || self.out.output.is_full() {
            self.out.flush().await?;
        }
        self.calls.launch()
    }

    /// Writes the counts, and returns the status.
    async fn close(mut self, signal: Option<i32>) -> anyhow::Result<Status> {
        let calls = &self.calls;
        self.reader.between(&mut self.out.output, |out| calls.write_stats(out))?;
        self.out.flush().await?;
        let (tally, error) = (calls.plan.tally(), self.reader.has_failed());
        if let Some(why) = failure::why(&tally, error || signal.is_some()) {
            stdio::message("tool-exec", &why);
        }
        let answer = match tally {
            tool::Tally { pending: 1.., .. } => Status::Undecided,
            tool::Tally { is_final: true, .. } | tool::Tally { messages: 0, .. } => Status::No,
            _ => Status::Done,
        };
        Ok(Outcome { error: error || tally.is_failure(), signal }.status(answer))
    }
}
