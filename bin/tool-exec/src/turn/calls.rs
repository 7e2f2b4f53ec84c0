//! The calls of the input: each line is given to the plan, and the plan's steps become events and
//! running calls.
//!
//! The stages of a call: [`Plan::event`] reads its line and queues the call once it may run.
//! `Schedule::settle` (in `tool`) starts queued calls while job slots are free. [`Calls::settle`]
//! writes the `tool_use`, `Session::launch` flushes the output, and [`Calls::launch`] records the
//! start and passes the call to [`Runners`]. The answer returns as a [`CallReport`]
//! ([`Calls::take`]), is given to [`Plan::done`], and is written by [`Calls::settle`] as a
//! `tool_result`.

use crate::approve::Asker;
use crate::call::Runners;
use crate::command::program;
use crate::progress::{CallProgress, CallReport, ProgressReporter};
use crate::store::{Cache, Records};
use crate::task::Handle;
use crate::{approve, stream};
use event::payload::{
    Approval, Error, Message, Millis, SessionStats, ToolProgress, ToolUse, Verdict, Warning,
};
use event::{Event, Json, Kind, Payload, Raw, Text};
use std::cell::Cell;
use std::collections::HashMap;
use std::os::unix::ffi::OsStringExt;
use std::rc::Rc;
use std::time::Instant;
use stdio::{LineHandler, LineWriter};
use tokio::sync::mpsc;
use tool::{
    AnswerSource, CallReference, CallReplay, Continuation, Hash, PersonAnswer, Plan, PlanStep,
    ReadyCall, RequestedCall, RunnerKind, Status, ToolAnswer, Work, one_line,
};
use trace::{IdSeed, TraceContext};

/// Why no call starts after the log or the journal has failed.
const NO_RECORD: &str = "its start could not be recorded in the log";

/// Why no call starts after a call that is missing from the recording.
const NOT_RECORDED: &str =
    "the recording that is replayed has no result of it, or of a call before it";

/// The type of the line that announces the end of the calls. The input stays open for `retract`
/// lines.
const INPUT_END: &str = "input_end";

/// The options of a run.
pub(crate) struct CallOptions {
    /// `--no-time`.
    pub no_time: bool,
    /// `--progress`.
    pub progress: bool,
    /// The command that continues the run, printed if calls need approval. `None` if the caller
    /// prints its own.
    pub continuation: Option<Continuation>,
    /// `--answered-by`.
    pub answered_by: Option<String>,
    /// The span of this run, or `None` if it is not traced.
    pub trace: Option<TraceContext>,
    /// Whether running calls are ended without a grace period. Set by the session.
    pub at_once: Rc<Cell<bool>>,
    /// The source of results and approvals under `--replay`.
    pub replay: Option<CallReplay>,
}

/// The calls of a run.
pub(crate) struct Calls {
    /// Decides which call runs when.
    pub plan: Plan,
    /// Runs the calls.
    pub runners: Rc<Runners>,
    /// Stores results, unless caching is off.
    cache: Option<Cache>,
    /// Records starts and results, under `--log` and `--journal`.
    pub records: Records,
    options: CallOptions,
    asker: Asker,
    /// The calls that need approval.
    waiting: Vec<CallReference>,
    /// The calls that were announced but have no result yet, by their keys.
    active: HashMap<u64, ActiveCall>,
    /// The keys of the active calls whose `tool_use` is not flushed yet; see [`Calls::launch`].
    announced: Vec<u64>,
    /// The results that are recorded but not yet written, by the keys of their calls.
    recorded: HashMap<u64, RecordedResult>,
    /// Progress reported but not yet written to the output.
    held: Vec<(Rc<RequestedCall>, CallProgress)>,
    reports: mpsc::UnboundedSender<CallReport>,
    counts: RunCounts,
    /// Whether a call was missing from the recording of `--replay`.
    pub has_missed: bool,
    /// The keys of the calls that were stopped.
    stopped: Vec<u64>,
    /// Whether the input has ended, or a line announced that no more calls come.
    pub is_finished: bool,
}

/// The counters for the run's `session_stats`.
struct RunCounts {
    answered: u64,
    cache_hits: u64,
    start: Instant,
}

/// A result that is recorded but not yet written.
struct RecordedResult {
    answer: Rc<ToolAnswer>,
    /// The time in the record, which the event repeats.
    timestamp: Option<u64>,
}

/// Ends the running calls, however the run ends.
impl Drop for Calls {
    fn drop(&mut self) {
        self.active
            .values()
            .for_each(|active| active.handle.abandon(self.options.at_once.get()));
    }
}

impl Calls {
    /// Returns the calls of `plan`, run by `runners` and approved through `asker`, and the receiver
    /// of their reports.
    pub(crate) fn new(
        plan: Plan,
        runners: Runners,
        (cache, records): (Option<Cache>, Records),
        asker: Asker,
        options: CallOptions,
    ) -> (Self, mpsc::UnboundedReceiver<CallReport>) {
        let (reports, received) = mpsc::unbounded_channel();
        let calls = Calls {
            plan,
            runners: Rc::new(runners),
            cache,
            records,
            options,
            asker,
            waiting: Vec::new(),
            active: HashMap::new(),
            announced: Vec::new(),
            recorded: HashMap::new(),
            held: Vec::new(),
            reports,
            counts: RunCounts {
                answered: 0,
                cache_hits: 0,
                start: Instant::now(),
            },
            has_missed: false,
            stopped: Vec::new(),
            is_finished: false,
        };
        (calls, received)
    }

    /// Executes the plan's steps: announces and stops calls, and writes results and messages. `t`
    /// is the `t` of the current line, if any.
    pub(crate) fn settle(&mut self, out: &mut LineWriter<'_>, t: Option<&str>) {
        loop {
            let steps = self.plan.steps();
            if steps.is_empty() {
                if self.deliver() {
                    continue;
                }
                return;
            }
            for step in steps {
                match step {
                    PlanStep::Start { key, call, ready } => self.begin(key, call, ready, out, t),
                    PlanStep::Ask(question) => match &self.options.replay {
                        Some(replay) => {
                            let answer = match replay.verdict(&question.call) {
                                Some(Verdict::Denied) => PersonAnswer::No,
                                Some(_) => PersonAnswer::Yes,
                                None => PersonAnswer::Nothing,
                            };
                            self.plan
                                .answered(question.key, question.ready.hash, answer);
                        }
                        None => self.asker.ask(question),
                    },
                    PlanStep::Withdraw { key } => self.asker.withdraw(key),
                    PlanStep::Approval {
                        call,
                        ready,
                        verdict,
                        source,
                        reason,
                    } => {
                        self.write_approval(&call, &ready, verdict, source, reason, out);
                        self.wrote();
                    }
                    PlanStep::Stop { key } => {
                        self.stopped.push(key);
                        if let Some(active) = self.active.get(&key) {
                            active.handle.stop(self.options.at_once.get());
                        }
                    }
                    PlanStep::Result { key, call, answer } => {
                        let answer = self.recorded_words(&call, answer);
                        self.waiting.extend(answer.hash.map(|hash| CallReference {
                            id: call.id.clone(),
                            hash,
                        }));
                        let answer = self.shown(answer);
                        self.counts.answered += u64::from(!answer.resumed);
                        self.counts.cache_hits += u64::from(answer.cached);
                        self.write_result(key, &call, &answer, out);
                        self.wrote();
                    }
                    PlanStep::Message { call, answer } => {
                        let answer = self.recorded_words(&call, answer);
                        let answer = self.shown(answer);
                        self.wrote();
                        let message = tool::message(&call.id, &call.name, &answer);
                        let message = Message {
                            message: Json::of(&message),
                            ..Message::default()
                        };
                        write(out, message, &call);
                    }
                }
            }
        }
    }

    /// Announces a call, or takes its result from the cache or the recording.
    fn begin(
        &mut self,
        key: u64,
        call: Rc<RequestedCall>,
        ready: Rc<ReadyCall>,
        out: &mut LineWriter<'_>,
        t: Option<&str>,
    ) {
        let replay = self.options.replay.as_ref();
        let replayed = match replay.map(|replay| replay.result(&call)).transpose() {
            Ok(replayed) => replayed,
            Err(why) => return self.miss(key, &call, &why, out),
        };
        if let Some((answer, _)) = replayed.as_ref().filter(|(answer, _)| answer.cached) {
            self.plan.done(key, answer.clone());
            return;
        }
        let cache = self.cache_key(&call, &ready);
        if let (Some(name), Some(cache)) = (&cache, &self.cache)
            && let Some(exec) = &ready.tool.exec
            && let Some(answer) = exec.cache.and_then(|life| cache.get(name, life))
        {
            let answer = self.without_secrets(answer);
            self.plan.done(
                key,
                ToolAnswer {
                    return_directly: exec.return_directly,
                    ..answer
                },
            );
            return;
        }
        let summary = self.clean(&call.summary());
        let timestamp = self.now();
        let seed = IdSeed::of([ready.hash.as_str(), &format!("{timestamp:?}")]);
        let trace = self.options.trace.as_ref();
        let trace = trace.map(|trace| trace.child(&seed));
        let active = ActiveCall {
            traceparent: trace.as_ref().map(|trace| trace.span.to_string()),
            trace,
            call,
            ready,
            handle: Rc::default(),
            cache,
            summary,
            timestamp,
            replayed,
        };
        let call = &active.call;
        out.write(active.intent(), call.stream.as_deref(), call.choice, t);
        let is_started = active.replayed.is_none();
        self.active.insert(key, active);
        if is_started {
            self.announced.push(key);
        }
        self.wrote();
    }

    /// Delivers one due result of `--replay`; returns whether there was one. A result is due after
    /// as many events of its response as in the recording, regardless of elapsed time. It is due at
    /// once when the input has ended or the call is stopped.
    fn deliver(&mut self) -> bool {
        let Some(replay) = &self.options.replay else {
            return false;
        };
        let written = replay.run.events();
        let late = self.active.iter().filter_map(|(key, active)| {
            let (_, events_before) = active.replayed.as_ref()?;
            Some((!self.stopped.contains(key), *events_before, *key))
        });
        let Some((is_wanted, events_before, key)) = late.min() else {
            return false;
        };
        if is_wanted && !self.is_finished && events_before > written {
            return false;
        }
        let active = self.active.get_mut(&key);
        if let Some((answer, _)) = active.and_then(|active| active.replayed.take()) {
            self.ended(key, answer);
        }
        true
    }

    /// Counts an event that was written, for `--replay`.
    fn wrote(&mut self) {
        if let Some(replay) = &mut self.options.replay {
            replay.run.wrote();
        }
    }

    /// Fails a call that is missing from the recording, and starts no more calls.
    fn miss(&mut self, key: u64, call: &RequestedCall, why: &str, out: &mut LineWriter<'_>) {
        let message = self.clean(&format!("no result of this call is recorded: {why}"));
        write(out, Error::new("tool-exec", "tape_miss", &message), call);
        self.has_missed = true;
        self.plan.stop_because(NOT_RECORDED);
        let output = format!("The call was not run: {NOT_RECORDED}.");
        self.plan.done(key, ToolAnswer::new(Status::Error, output));
    }

    /// Returns the recorded answer in place of a pending or denied answer, whose text names the
    /// command and the log of this run.
    fn recorded_words(&self, call: &RequestedCall, answer: Rc<ToolAnswer>) -> Rc<ToolAnswer> {
        let has_words = matches!(answer.status, Status::Pending | Status::Denied);
        let replay = self.options.replay.as_ref().filter(|_| has_words);
        let recorded = replay.and_then(|replay| replay.answer(call, answer.status));
        recorded.map_or(answer, |recorded| Rc::new(recorded.clone()))
    }

    /// Whether announced calls, or a question, wait for [`Calls::launch`].
    pub(crate) fn has_announced(&self) -> bool {
        !self.announced.is_empty() || self.asker.has_next()
    }

    /// Starts the announced calls and shows the waiting question. The caller must have flushed the
    /// output, so that a reader gets a `tool_use` before the call runs and the log has it on disk.
    /// A call whose start cannot be recorded is not started but answered with an error; returns
    /// whether there was one.
    pub(crate) fn launch(&mut self) -> bool {
        self.asker.open();
        let mut is_refused = false;
        for key in std::mem::take(&mut self.announced) {
            let Some(active) = self.active.get(&key) else {
                continue;
            };
            if !self.records.start(active.intent(), &active.call) {
                is_refused = true;
                self.plan.stop_because(NO_RECORD);
                self.active.remove(&key);
                self.plan.done(
                    key,
                    ToolAnswer::new(Status::Error, format!("The call was not run: {NO_RECORD}.")),
                );
                continue;
            }
            let call = Rc::clone(&active.call);
            let ready = Rc::clone(&active.ready);
            let handle = Rc::clone(&active.handle);
            let trace = active.trace.clone();
            let runners = Rc::clone(&self.runners);
            let reports = self.reports.clone();
            let progress = self
                .options
                .progress
                .then(|| ProgressReporter::new(key, reports.clone()));
            tokio::task::spawn_local(async move {
                let answer = runners.run(&call, &ready, &handle, trace, progress).await;
                // The receiver is gone if the run has failed.
                let _ = reports.send(CallReport::Done(key, answer));
            });
        }
        is_refused
    }

    /// Handles a report. A result is recorded at once and written by a later step of the plan.
    /// Progress is held for [`Calls::write_held`].
    pub(crate) fn take(&mut self, report: CallReport) {
        match report {
            CallReport::Progress(key, progress) => {
                let call = self.active.get(&key).map(|active| Rc::clone(&active.call));
                self.held.extend(call.map(|call| (call, progress)));
            }
            CallReport::Done(key, answer) => self.ended(key, answer),
        }
    }

    fn ended(&mut self, key: u64, answer: ToolAnswer) {
        let Some(active) = self.active.remove(&key) else {
            return;
        };
        if let (Some(name), Some(cache)) = (&active.cache, &self.cache)
            && let Some(life) = active.ready.tool.exec.as_ref().and_then(|exec| exec.cache)
            && let Err(e) = cache.put(name, &active.call.name, life, &answer)
        {
            crate::say(&format!(
                "the cache cannot be written: {e}, going on without"
            ));
            self.cache = None;
        }
        let answer = self.plan.done(key, answer);
        // A replayed result is written at its place among the events. It is not recorded early,
        // since a replay can be repeated.
        if self.records.any() && self.options.replay.is_none() {
            let call = &active.call;
            let timestamp = self.now();
            let summary = one_line(&answer.output);
            let result = answer.event(&call.id, &call.name, &summary, timestamp);
            if self.records.result(result, call) {
                self.recorded
                    .insert(key, RecordedResult { answer, timestamp });
            }
            self.check_records();
        }
    }

    /// Stops starting calls if the log or the journal has failed.
    pub(crate) fn check_records(&mut self) {
        if self.records.failure().is_some() {
            self.plan.stop_because(NO_RECORD);
        }
    }

    /// Writes the progress held by [`Calls::take`].
    pub(crate) fn write_held(&mut self, out: &mut LineWriter<'_>) {
        for (call, held) in self.held.drain(..) {
            let (progress, text) = match held {
                CallProgress::Output(waiting) => (None, waiting.take()),
                CallProgress::Step(step, _) => {
                    let redactor = self.runners.outputs.redactor();
                    (step.progress, redactor.text(&step.message).into_owned())
                }
            };
            let tool_id = (&*call.id).into();
            let tool_name = (&*call.name).into();
            let piece = ToolProgress {
                tool_id,
                tool_name,
                progress,
                text: (&text).into(),
            };
            write(out, piece, &call);
        }
    }

    /// Writes the counters of the run, if any call was answered.
    pub(crate) fn write_stats(&self, out: &mut LineWriter<'_>) {
        if self.counts.answered > 0 {
            let time = || Millis {
                micros: u64::try_from(self.counts.start.elapsed().as_micros()).unwrap_or(u64::MAX),
            };
            let stats = SessionStats {
                calls: Some(self.counts.answered),
                cache_hits: Some(self.counts.cache_hits),
                duration_ms: (!self.options.no_time).then(time),
                ..SessionStats::default()
            };
            out.write(stats, None, 0, None);
        }
    }

    /// Notes that output is being written which may overwrite an open question on the terminal.
    pub(crate) fn disturb_question(&self) {
        self.asker.disturb();
    }

    /// Reports the calls that need approval, with the commands that approve and refuse them.
    pub(crate) fn report_pending(&self) {
        let Some(continuation) = self
            .options
            .continuation
            .as_ref()
            .filter(|_| !self.waiting.is_empty())
        else {
            return;
        };
        let [yes, no] = ["--approve-call", "--deny-call"]
            .map(|option| continuation.with(option, &self.waiting));
        let what = if self.waiting.len() == 1 {
            "a call waits"
        } else {
            "calls wait"
        };
        crate::say(&format!(
            "{what} for a person; run with: {yes} ; or refuse with: {no}"
        ));
    }

    /// Reports the user's answers that match no call of the run.
    pub(crate) fn report_unused(&self) {
        for answer in self.plan.unused_answers() {
            crate::say(&answer.to_string());
        }
    }

    /// Reports which calls the run waits for after a first interrupt, and how to stop them now.
    pub(crate) fn report_waiting(&self) {
        let mut names: Vec<&str> = self
            .active
            .values()
            .map(|active| active.call.name.as_ref())
            .collect();
        if names.is_empty() {
            return;
        }
        names.sort_unstable();
        let names = names.join(", ");
        let text = format!(
            "waiting for running calls to end ({names}), press Ctrl-C again to stop them now"
        );
        crate::say(&text);
    }

    /// Returns the text with secrets redacted.
    fn clean(&self, text: &str) -> String {
        self.runners.outputs.redactor().text(text).into_owned()
    }

    /// Redacts an answer of an earlier run, which may not have known this run's secrets.
    fn without_secrets(&self, answer: ToolAnswer) -> ToolAnswer {
        ToolAnswer {
            output: self.clean(&answer.output),
            ..answer
        }
    }

    /// Returns an answer as it is written. An answer of an earlier run is redacted again.
    fn shown(&self, answer: Rc<ToolAnswer>) -> Rc<ToolAnswer> {
        if answer.resumed {
            Rc::new(self.without_secrets((*answer).clone()))
        } else {
            answer
        }
    }

    fn write_approval(
        &self,
        call: &RequestedCall,
        ready: &ReadyCall,
        verdict: Verdict,
        source: AnswerSource,
        reason: Option<String>,
        out: &mut LineWriter<'_>,
    ) {
        let user;
        let (hash, decision, by, source, reason) = match &self.options.replay {
            Some(replay) => match replay.approval(call) {
                Some(it) => (
                    &*it.hash,
                    &*it.decision,
                    &*it.by,
                    &*it.source,
                    it.reason.clone(),
                ),
                None => return,
            },
            None => {
                let (by, source) = match (&self.options.answered_by, source) {
                    (Some(name), AnswerSource::Option) => (&**name, AnswerSource::Http),
                    _ => {
                        user = approve::user_name();
                        (&*user, source)
                    }
                };
                let reason = reason.map(|reason| self.clean(&reason));
                (
                    ready.hash.as_str(),
                    verdict.name(),
                    by,
                    source.name(),
                    reason,
                )
            }
        };
        let approval = Approval {
            tool_id: (&*call.id).into(),
            tool_name: (&*call.name).into(),
            hash: hash.into(),
            decision: decision.into(),
            by: by.into(),
            source: source.into(),
            reason: reason.as_ref().map(Text::from),
            timestamp: self.now(),
        };
        write(out, approval, call);
    }

    fn write_result(
        &mut self,
        key: u64,
        call: &RequestedCall,
        answer: &Rc<ToolAnswer>,
        out: &mut LineWriter<'_>,
    ) {
        let summary = one_line(&answer.output);
        match self.recorded.remove(&key) {
            Some(RecordedResult {
                answer: recorded,
                timestamp,
            }) if recorded == *answer => {
                let result = answer.event(&call.id, &call.name, &summary, timestamp);
                out.write_recorded(result, call.stream.as_deref(), call.choice);
            }
            _ => {
                let result = answer.event(&call.id, &call.name, &summary, self.now());
                write(out, result, call);
            }
        }
    }

    /// Returns the time for an event, or `None` with `--no-time`.
    fn now(&self) -> Option<u64> {
        (!self.options.no_time).then(stream::now)
    }

    /// Returns the cache key of a call's result, or `None` if the result is not cached.
    fn cache_key(&self, call: &RequestedCall, ready: &ReadyCall) -> Option<Hash> {
        self.cache.as_ref()?;
        let exec = ready.tool.exec.as_ref()?;
        let arguments = call.arguments.as_ref().ok()?;
        exec.cache?;
        let mut around = match (&exec.run, &ready.work) {
            (RunnerKind::Command(command), Work::Command(argv)) => {
                self.runners.commands.identity(command, argv)?
            }
            (RunnerKind::Http(http), _) => {
                let names: Vec<_> = http.variables().map(str::to_owned).collect();
                program::named(&names)
                    .flat_map(|(name, value)| [name.as_bytes().to_vec(), value.into_vec()])
                    .collect()
            }
            _ => return None,
        };
        let max = exec.max_result.unwrap_or(self.runners.outputs.max());
        around.push(max.to_string().into_bytes());
        Some(tool::cache_key(&ready.tool.hash, arguments, &around))
    }
}

impl LineHandler for Calls {
    fn event(&mut self, event: &Event<'_>, at: (usize, usize), out: &mut LineWriter<'_>) -> bool {
        if self.is_finished {
            // The calls have ended here, but a later line may still retract some.
            if event.kind() == Kind::Retract {
                self.plan.event(event);
                self.settle(out, None);
            }
            return false;
        }
        if is_input_end(event) {
            self.finish(out);
            return false;
        }
        out.pass(at.0, at.1);
        if let Some(replay) = &mut self.options.replay {
            replay.run.event(event);
        }
        self.plan.event(event);
        self.settle(out, event.t().map(|t| t.text()));
        false
    }

    fn blank(&mut self, at: (usize, usize), out: &mut LineWriter<'_>) {
        if !self.is_finished {
            out.pass(at.0, at.1);
        }
    }

    fn bad_line(&mut self, warning: &Warning<'_>, out: &mut LineWriter<'_>) {
        out.write(*warning, None, 0, None);
        self.plan
            .event(&Event::of(&(*warning).into(), None, 0, None));
        self.settle(out, None);
    }

    fn finish(&mut self, out: &mut LineWriter<'_>) {
        self.plan.finish();
        self.is_finished = true;
        self.settle(out, None);
    }
}

// A call that was announced, until its result is known.

/// An announced call without a result.
pub(super) struct ActiveCall {
    /// The call.
    pub call: Rc<RequestedCall>,
    /// The work that the call starts.
    pub ready: Rc<ReadyCall>,
    /// Ends the call.
    pub handle: Rc<Handle>,
    /// The cache key of the result, or `None` if the result is not cached.
    pub cache: Option<Hash>,
    /// A readable summary of the arguments, with secrets redacted.
    pub summary: String,
    /// When the call was announced, or `None` with `--no-time`.
    pub timestamp: Option<u64>,
    /// The span of the call, or `None` if the call is not traced.
    pub trace: Option<TraceContext>,
    /// The `traceparent` header of that span.
    traceparent: Option<String>,
    /// The recorded result, and how many events of its response precede it. Taken when delivered;
    /// `None` outside `--replay`.
    replayed: Option<(ToolAnswer, usize)>,
}

impl ActiveCall {
    /// The event that announces the call.
    fn intent(&self) -> ToolUse<'_> {
        ToolUse {
            tool_name: (&*self.call.name).into(),
            tool_id: (&*self.call.id).into(),
            input_summary: (&self.summary).into(),
            timestamp: self.timestamp,
            traceparent: self.traceparent.as_ref().map(Into::into),
            ..ToolUse::default()
        }
    }
}

/// Whether an event announces the end of the calls.
fn is_input_end(event: &Event<'_>) -> bool {
    event.kind() == Kind::Other
        && Raw::parse(&event.raw())
            .is_ok_and(|line| line.get_str("type").as_deref() == Some(INPUT_END))
}

/// Writes an event about a call.
fn write<'p>(out: &mut LineWriter<'_>, payload: impl Into<Payload<'p>>, call: &RequestedCall) {
    out.write(payload, call.stream.as_deref(), call.choice, None);
}
