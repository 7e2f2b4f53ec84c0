//! `cmd:COMMAND`: a command as a checker. A process reads many streams, and writes an answer line
//! for each.

use super::answer::{DecisionLine, GivenAnswer};
use super::lines::StreamLines;
use super::process::{CheckerProcess, WaitProgress};
use crate::corpus::CorpusEntry;
use crate::evaluate::judge::{CheckerJudge, Judges};
use anyhow::{Result, bail};
use event::{Event, Kind, Scanner};
use score::{Outcome, Place};
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Number of consecutive streams without an answer after which the command is not restarted.
const FAILURES_IN_A_ROW: u32 = 3;
/// Maximum number of restarts of a command.
const RESTARTS: u32 = 10;

/// `cmd:COMMAND`, with a process for each thread that judges streams.
pub(super) struct CheckerCommands(Arc<CommandSettings>);

impl CheckerCommands {
    /// Judges by the command line `command`, which may take `patience` to read or to answer.
    pub(super) fn new(command: &str, patience: Duration) -> Self {
        CheckerCommands(Arc::new(CommandSettings::new(command, patience)))
    }
}

impl Judges for CheckerCommands {
    fn judge(
        &mut self,
        entry: &CorpusEntry,
        _reading: usize,
    ) -> Result<Option<Box<dyn CheckerJudge>>> {
        Ok(Some(Box::new(CommandJudge {
            id: entry.label.id.clone(),
            settings: Arc::clone(&self.0),
            checker: None,
        })))
    }

    fn finish(&mut self) -> Result<()> {
        let idle = std::mem::take(&mut *self.0.idle());
        idle.into_iter().for_each(|mut checker| checker.close());
        let CommandSettings { command, .. } = &*self.0;
        let failures = self.0.failures.load(Ordering::Relaxed);
        if failures > 1 {
            let text = format!(
                "cmd:{command}: {failures} streams stay undecided since it failed, --list has the reasons"
            );
            stdio::message("tc-eval", &text);
        }
        if failures > 0 && self.0.answers.load(Ordering::Relaxed) == 0 {
            bail!("cmd:{command}: it answered no stream; correct the command");
        }
        Ok(())
    }
}

/// One stream before the command. It takes a process with its first event, so that streams that
/// wait for their turn need none.
struct CommandJudge {
    id: String,
    settings: Arc<CommandSettings>,
    checker: Option<CommandChecker>,
}

impl CommandJudge {
    fn checker(&mut self) -> &mut CommandChecker {
        let id = &self.id;
        let settings = &self.settings;
        self.checker.get_or_insert_with(|| {
            let idle = settings.idle().pop();
            let mut checker = idle.unwrap_or_else(|| CommandChecker::new(Arc::clone(settings)));
            checker.lines.begin(id);
            let name = checker.lines.name().to_owned();
            checker.begin(&name);
            checker
        })
    }
}

impl CheckerJudge for CommandJudge {
    fn push(&mut self, event: &Event<'_>, place: Place) {
        let checker = self.checker();
        let mut lines = std::mem::take(&mut checker.lines);
        if let Some(line) = lines.line(event, place) {
            checker.push(line);
        }
        checker.lines = lines;
    }

    fn outcome(mut self: Box<Self>, end: Place) -> Outcome {
        let checker = self.checker();
        let mut lines = std::mem::take(&mut checker.lines);
        if let Some(line) = lines.end(end) {
            checker.push(line);
        }
        let answer = checker.finish();
        let at = answer.event.and_then(|number| lines.place(number));
        checker.lines = lines;
        self.settings.idle().extend(self.checker.take());
        answer.outcome(at)
    }
}

/// The shared state of the processes of one command.
#[derive(Debug)]
struct CommandSettings {
    /// The command line, for `sh -c`.
    command: String,
    /// The timeout for reading or answering.
    patience: Duration,
    /// How many streams it left undecided because it failed. The first is reported at once, so that
    /// a long run can be stopped.
    failures: AtomicU64,
    /// The number of streams with an answer.
    answers: AtomicU64,
    /// The idle processes.
    idle: Mutex<Vec<CommandChecker>>,
}

impl CommandSettings {
    fn new(command: &str, patience: Duration) -> Self {
        CommandSettings {
            command: command.to_owned(),
            patience,
            failures: AtomicU64::default(),
            answers: AtomicU64::default(),
            idle: Mutex::default(),
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<CommandChecker>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A process of the command, which checks one stream after the other.
#[derive(Debug)]
struct CommandChecker {
    settings: Arc<CommandSettings>,
    lines: StreamLines,
    process: Option<CheckerProcess>,
    answers: CommandAnswers,
    /// The reason why this stream has no answer.
    failure: Option<String>,
    failures_in_a_row: u32,
    starts: u32,
}

impl CommandChecker {
    /// A checker that has not started its command yet.
    fn new(settings: Arc<CommandSettings>) -> Self {
        CommandChecker {
            settings,
            lines: StreamLines::default(),
            process: None,
            answers: CommandAnswers::default(),
            failure: None,
            failures_in_a_row: 0,
            starts: 0,
        }
    }

    /// Begins the stream of that name, which no earlier stream had. Starts the command where it
    /// does not run.
    fn begin(&mut self, name: &str) {
        self.answers.begin(name);
        self.failure = None;
        if let Some(process) = &self.process {
            if process.reads_no_more() {
                self.process = None;
                self.fail("it closed its input before this stream began".to_owned());
            }
            return;
        }
        if self.failures_in_a_row >= FAILURES_IN_A_ROW || self.starts > RESTARTS {
            self.settings.failures.fetch_add(1, Ordering::Relaxed);
            let streams = self.failures_in_a_row;
            self.failure = Some(match streams {
                FAILURES_IN_A_ROW.. => {
                    format!("not run: {streams} streams before this one got no answer")
                }
                _ => format!("not run: it ended {} times", self.starts),
            });
            return;
        }
        self.starts += 1;
        match CheckerProcess::start(&self.settings.command, self.settings.patience) {
            Ok(process) => self.process = Some(process),
            Err(error) => self.fail(format!("sh cannot be started: {error}")),
        }
    }

    /// Writes the next line of the stream to the command.
    fn push(&mut self, line: &[u8]) {
        let Some(process) = &mut self.process else {
            return;
        };
        let answers = &mut self.answers;
        let progress = process.push(line, &mut |line| answers.take(line));
        self.judge(progress);
    }

    /// Waits for the answer on the stream, whose lines were all given. A command that passes the
    /// events on may revise its answer until it has passed `stream_end` on.
    fn finish(&mut self) -> GivenAnswer {
        while let (false, Some(process)) = (self.answers.is_final(), &mut self.process) {
            let answers = &mut self.answers;
            let progress = process.answer(&mut |line| answers.take(line));
            if progress == WaitProgress::Late && self.answers.answer.is_some() {
                // It passes some events on, but not the end.
                self.answers.is_filter = Some(false);
            } else {
                self.judge(progress);
            }
        }
        match (self.answers.answer.take(), self.failure.take()) {
            (Some(answer), _) => {
                self.failures_in_a_row = 0;
                self.settings.answers.fetch_add(1, Ordering::Relaxed);
                answer
            }
            (None, failure) => GivenAnswer::undecided(failure.unwrap_or_default()),
        }
    }

    /// Closes the input of the command and lets it end.
    fn close(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.close();
            // However it ends: all streams have their answers.
            let _ = process.end();
        }
    }

    /// Ends the process that gives no more answers.
    fn judge(&mut self, progress: WaitProgress) {
        let (late, process) = match (progress, self.process.take()) {
            (WaitProgress::Done, process) => {
                self.process = process;
                return;
            }
            (_, None) => return,
            (progress, Some(process)) => (progress == WaitProgress::Late, process),
        };
        let (status, last_words) = process.end();
        let mut why = match status {
            _ if late => {
                let seconds = self.settings.patience.as_secs_f64();
                format!("no answer within {seconds} s; it must flush each line of decision")
            }
            Err(error) => format!("it cannot be waited for: {error}"),
            Ok(status) if status.signal() == Some(9) => {
                "it was killed, or closed its output, before it decided".to_owned()
            }
            Ok(status) if status.success() => {
                "it ended before it decided; it must read until its input ends".to_owned()
            }
            Ok(status) => format!("it ended before it decided ({status})"),
        };
        if let Some(stray) = self.answers.stray.take() {
            why = format!("{why}; {stray}");
        }
        if !last_words.is_empty() {
            why = format!("{why}: {last_words}");
        }
        self.fail(why);
    }

    /// Counts the stream as undecided if it has no answer.
    fn fail(&mut self, why: String) {
        if self.answers.answer.is_some() {
            return;
        }
        self.failures_in_a_row += 1;
        if self.settings.failures.fetch_add(1, Ordering::Relaxed) == 0 {
            let command = &self.settings.command;
            let stream = &self.answers.stream;
            let id = stream.split_once(':').map_or(stream.as_str(), |(_, id)| id);
            stdio::message(
                "tc-eval",
                &format!("cmd:{command}: stream {id} stays undecided: {why}"),
            );
        }
        self.failure = Some(why);
    }
}

/// What the command has answered.
#[derive(Debug, Default)]
struct CommandAnswers {
    scanner: Scanner,
    stream: String,
    answer: Option<GivenAnswer>,
    /// Whether the command passes events on and `stream_end` among them; `None` before it has
    /// passed on any.
    is_filter: Option<bool>,
    /// Whether it has passed on the end of this stream.
    has_passed_end: bool,
    /// What is wrong with a decision that is not about this stream.
    stray: Option<String>,
}

impl CommandAnswers {
    fn begin(&mut self, stream: &str) {
        stream.clone_into(&mut self.stream);
        (self.answer, self.has_passed_end, self.stray) = (None, false, None);
    }

    /// Whether the command has nothing more to write about this stream.
    fn is_final(&self) -> bool {
        self.answer.is_some() && (self.has_passed_end || self.is_filter != Some(true))
    }

    /// Takes a line that the command wrote; returns whether it brings the final answer nearer.
    fn take(&mut self, line: &str) -> bool {
        let Ok(event) = self.scanner.read(line) else {
            return false;
        };
        let is_ours = event
            .stream()
            .and_then(event::Raw::str)
            .is_some_and(|stream| stream == self.stream);
        let Some(decision) = DecisionLine::read(&event) else {
            if event.stream().is_some() && event.kind() == Kind::StreamStart {
                self.is_filter.get_or_insert(true);
            }
            self.has_passed_end |= is_ours && event.kind() == Kind::StreamEnd;
            return is_ours && event.kind() == Kind::StreamEnd;
        };
        match (&mut self.answer, decision.stream.as_deref()) {
            (None, _) if is_ours => {
                self.answer = Some(decision.answer);
                return true;
            }
            (Some(answer), _) if is_ours && decision.is_revised => {
                answer.last = decision.answer.last;
            }
            (_, None) => {
                self.stray = Some(
                    "its decision has no \"stream\"; it must copy that of the events".to_owned(),
                )
            }
            (_, Some(other)) if !is_ours => {
                let other = event::cut(other, 100);
                self.stray = Some(format!(
                    "it decided about stream {other}, which it was not given"
                ));
            }
            (_, Some(_)) => {}
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use score::Answer;

    /// Gives streams of three lines to a command; returns its answers.
    fn answers(command: &str, patience: Duration, streams: u32) -> Vec<GivenAnswer> {
        let mut checker = CommandChecker::new(Arc::new(CommandSettings::new(command, patience)));
        let answers = (0..streams).map(|n| {
            checker.begin(&format!("{n}:x"));
            for line in ["stream_start", "content_delta", "stream_end"] {
                checker.push(format!("{{\"type\":\"{line}\",\"stream\":\"{n}:x\"}}\n").as_bytes());
            }
            checker.finish()
        });
        let answers = answers.collect();
        checker.close();
        answers
    }

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(200);

    #[test]
    fn one_process_answers_many_streams() {
        let decide = r#"n=0; while read -r line; do case $line in *stream_end*) n=$((n+1));
            echo "{\"type\":\"decision\",\"tool_call\":true,\"event\":2,\"reason\":\"$n\",${line#*,}";; esac; done"#;
        let out = answers(decide, LONG, 3);
        let reasons: Vec<_> = out
            .iter()
            .map(|a| (a.first, a.event, a.reason.as_str()))
            .collect();
        assert_eq!(reasons, ["1", "2", "3"].map(|n| (Answer::Yes, Some(2), n)));
    }

    #[test]
    fn a_filter_may_revise_until_it_has_passed_the_end() {
        // The decision comes before the first event that is passed on, and the end long after it.
        let filter = r#"while read -r line; do rest=${line#*,}; case $line in
            *stream_start*) echo "{\"type\":\"decision\",\"tool_call\":true,$rest";;
            *stream_end*) echo "{\"type\":\"decision\",\"tool_call\":false,\"revised\":true,$rest";; esac; echo "$line"; done"#;
        for answer in &answers(filter, LONG, 3)[1..] {
            assert_eq!((answer.first, answer.last), (Answer::Yes, Answer::No));
        }
    }

    #[test]
    fn a_command_that_fails_again_and_again_is_given_up() {
        let out = answers("echo 'no model' >&2; exit 7", LONG, 5);
        let reasons: Vec<_> = out.iter().map(|a| a.reason.as_str()).collect();
        let ended = "it ended before it decided (exit status: 7): no model";
        let not_run = "not run: 3 streams before this one got no answer";
        assert_eq!(reasons, [ended, ended, ended, not_run, not_run]);
    }

    #[test]
    fn each_failure_has_its_reason() {
        for (command, patience, reason) in [
            ("exec sleep 1000", SHORT, "no answer within 0.2 s"),
            (
                "read -r line; exit 0",
                LONG,
                "it ended before it decided; it must read until its input ends",
            ),
            (
                "kill -9 $$",
                LONG,
                "it was killed, or closed its output, before it decided",
            ),
            (
                "exec sleep 1000 >&-",
                LONG,
                "it was killed, or closed its output, before it decided",
            ),
            ("exec no-such-command-here", LONG, "(exit status: 127): "),
            (
                r#"echo '{"type":"decision","tool_call":true}'"#,
                LONG,
                "its decision has no \"stream\"",
            ),
            (
                r#"echo '{"type":"decision","stream":"y"}'"#,
                LONG,
                "it decided about stream y",
            ),
            ("yes garbage", SHORT, "no answer within 0.2 s"),
            ("tr '\\n' ' ' </dev/zero", SHORT, "no answer within 0.2 s"),
        ] {
            let out = answers(command, patience, 1);
            assert_eq!(out[0].first, Answer::Undecided, "{command}");
            assert!(
                out[0].reason.contains(reason),
                "{command}: {}",
                out[0].reason
            );
        }
    }
}
