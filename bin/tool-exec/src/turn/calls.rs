//! The calls of the input: each line goes into the plan, and the plan's steps become events and running commands.

use crate::command::{Handle, Report, Runner, program};
use crate::store::{Cache, Journal};
use event::payload::{Message, Millis, SessionStats, ToolProgress, ToolUse, Warning};
use event::{Event, Json};
use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use stdio::{LineHandler, LineWriter};
use tokio::sync::mpsc;
use tool::{Answer, Hash, Plan, PlanStep, ReadyCall, RequestedCall, one_line};

/// The calls of a run.
pub struct Calls {
    /// Which call runs when.
    pub plan: Plan,
    /// Runs the calls.
    pub runner: Rc<Runner>,
    /// Keeps results, under `--cache`.
    pub cache: Option<Cache>,
    /// Records starts and results, under `--journal`.
    pub journal: Option<Journal>,
    /// `--no-time`.
    pub no_time: bool,
    /// `--progress`.
    pub progress: bool,
    active: HashMap<u64, ActiveCall>,
    /// The calls whose `tool_use` waits to be written; see [`Calls::launch`].
    announced: Vec<u64>,
    reports: mpsc::Sender<Report>,
    answered: u64,
    cache_hits: u64,
    start: Instant,
    /// Whether running calls are ended without a grace; the session sets it.
    at_once: Rc<Cell<bool>>,
}

/// A call that runs.
struct ActiveCall {
    call: Rc<RequestedCall>,
    ready: Rc<ReadyCall>,
    handle: Rc<Handle>,
    /// The key under which its result is kept, if it is.
    cache: Option<Hash>,
    /// When it was announced.
    timestamp: Option<u64>,
}

impl ActiveCall {
    /// Has `write` write the event that announces the call.
    fn announce<T>(&self, write: impl FnOnce(ToolUse<'_>, Option<&str>, u32) -> T) -> T {
        let RequestedCall { id, name, stream, choice, .. } = &*self.call;
        let summary = self.call.summary();
        let intent = ToolUse {
            tool_name: (&**name).into(),
            tool_id: (&**id).into(),
            input_summary: (&summary).into(),
            timestamp: self.timestamp,
            ..ToolUse::default()
        };
        write(intent, stream.as_deref(), *choice)
    }
}

/// A run that ends in any way ends the calls that still run.
impl Drop for Calls {
    fn drop(&mut self) {
        self.active.values().for_each(|active| active.handle.abandon(self.at_once.get()));
    }
}

impl Calls {
    /// The calls of `plan`, each run by `runner`. Running calls send their reports to the receiver.
    pub fn new(plan: Plan, runner: Rc<Runner>, at_once: Rc<Cell<bool>>) -> (Self, mpsc::Receiver<Report>) {
        let (reports, received) = mpsc::channel(64);
        let calls = Calls {
            plan,
            runner,
            cache: None,
            journal: None,
            no_time: false,
            progress: false,
            active: HashMap::new(),
            announced: Vec::new(),
            reports,
            answered: 0,
            cache_hits: 0,
            start: Instant::now(),
            at_once,
        };
        (calls, received)
    }

    /// Takes the plan's steps: announces calls, stops them, and writes results and messages. `t` is the time of the current line, if there
    /// is one.
    pub fn settle(&mut self, out: &mut LineWriter<'_>, t: Option<&str>) {
        loop {
            let steps = self.plan.steps();
            if steps.is_empty() {
                return;
            }
            for step in steps {
                match step {
                    PlanStep::Start { key, call, ready } => self.begin(key, call, ready, out, t),
                    PlanStep::Stop { key } => {
                        if let Some(active) = self.active.get(&key) {
                            active.handle.stop(self.at_once.get());
                        }
                    }
                    PlanStep::Result { call, answer } => {
                        self.answered += u64::from(!answer.resumed);
                        self.cache_hits += u64::from(answer.cached);
                        let is_written = answer.duration.is_some() && self.journals_to_stdout();
                        if !is_written {
                            self.write_result(&call, &answer, out);
                        }
                    }
                    PlanStep::Message { call, answer } => {
                        let message = tool::message(&call.id, &call.name, &answer);
                        out.write(Message { message: Json::of(&message) }, call.stream.as_deref(), call.choice, None);
                    }
                }
            }
        }
    }

    /// Announces a call, or takes its result from the cache.
    fn begin(
        &mut self,
        key: u64,
        call: Rc<RequestedCall>,
        ready: Rc<ReadyCall>,
        out: &mut LineWriter<'_>,
        t: Option<&str>,
    ) {
        let cache = self.cache_key(&call, &ready);
        if let (Some(name), Some(cache)) = (&cache, &self.cache)
            && let Some(exec) = &ready.tool.exec
            && let Some(answer) = exec.cache.and_then(|life| cache.get(name, life))
        {
            self.plan.done(key, Answer { return_directly: exec.return_directly, ..answer });
            return;
        }
        let active = ActiveCall { call, ready, handle: Rc::default(), cache, timestamp: self.now() };
        active.announce(|intent, stream, choice| out.write(intent, stream, choice, t));
        self.active.insert(key, active);
        self.announced.push(key);
    }

    /// Whether calls wait for [`Calls::launch`].
    pub fn has_announced(&self) -> bool {
        !self.announced.is_empty()
    }

    /// Starts the calls that were announced. The caller has flushed the output: its reader gets a `tool_use` before the call runs.
    ///
    /// # Errors
    /// When the journal fails.
    pub fn launch(&mut self) -> anyhow::Result<()> {
        for key in std::mem::take(&mut self.announced) {
            let Some(active) = self.active.get(&key) else { continue };
            if let Some(journal) = &mut self.journal {
                active.announce(|intent, stream, choice| journal.record(intent, stream, choice))?;
            }
            let (call, ready, handle) = (Rc::clone(&active.call), Rc::clone(&active.ready), Rc::clone(&active.handle));
            let (runner, reports) = (Rc::clone(&self.runner), self.reports.clone());
            let progress = self.progress.then(|| (key, reports.clone()));
            tokio::task::spawn_local(async move {
                let answer = runner.run(&call, &ready, &handle, progress).await;
                let _ = reports.send(Report::Done(key, answer)).await; // the receiver is gone when the command has failed
            });
        }
        Ok(())
    }

    /// Whether the journal is the file that standard output goes to. Then a result is written when its call ends, and not in call order.
    pub fn journals_to_stdout(&self) -> bool {
        self.journal.as_ref().is_some_and(Journal::is_stdout)
    }

    /// Writes the `tool_result` of the call that runs under `key`.
    pub fn write_ended(&self, key: u64, answer: &Answer, out: &mut LineWriter<'_>) {
        if let Some(active) = self.active.get(&key) {
            self.write_result(&active.call, answer, out);
        }
    }

    /// The call that runs under `key` has ended.
    ///
    /// # Errors
    /// When the journal fails.
    pub fn ended(&mut self, key: u64, answer: Answer) -> anyhow::Result<()> {
        let Some(active) = self.active.remove(&key) else { return Ok(()) };
        let (call, timestamp) = (&active.call, self.now());
        if let Some(journal) = &mut self.journal {
            let summary = one_line(&answer.output);
            let result = answer.event(&call.id, &call.name, &summary, timestamp);
            journal.record(result, call.stream.as_deref(), call.choice)?;
        }
        if let (Some(name), Some(cache)) = (&active.cache, &mut self.cache)
            && let Err(e) = cache.put(name, &call.name, &answer)
        {
            stdio::message("tool-exec", &format!("the cache cannot be written: {e}, going on without"));
            self.cache = None;
        }
        self.plan.done(key, answer);
        Ok(())
    }

    /// Writes a piece of the output of the call that runs under `key`.
    pub fn write_progress(&self, key: u64, text: &str, out: &mut LineWriter<'_>) {
        let Some(ActiveCall { call, .. }) = self.active.get(&key) else { return };
        let (tool_id, tool_name) = ((&*call.id).into(), (&*call.name).into());
        let piece = ToolProgress { tool_id, tool_name, text: text.into(), ..ToolProgress::default() };
        out.write(piece, call.stream.as_deref(), call.choice, None);
    }

    /// Writes the counts of the run, if any call was answered.
    pub fn write_stats(&self, out: &mut LineWriter<'_>) {
        if self.answered > 0 {
            let time = || Millis { micros: u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX) };
            let stats = SessionStats {
                calls: Some(self.answered),
                cache_hits: Some(self.cache_hits),
                duration_ms: (!self.no_time).then(time),
                ..SessionStats::default()
            };
            out.write(stats, None, 0, None);
        }
    }

    /// Reports which calls a first interrupt waits for, and how to stop them now.
    pub fn report_waiting(&self) {
        let mut names: Vec<&str> = self.active.values().map(|active| active.call.name.as_ref()).collect();
        if names.is_empty() {
            return;
        }
        names.sort_unstable();
        let names = names.join(", ");
        let text = format!("waiting for running calls to end ({names}), press Ctrl-C again to stop them now");
        stdio::message("tool-exec", &text);
    }

    fn write_result(&self, call: &RequestedCall, answer: &Answer, out: &mut LineWriter<'_>) {
        let summary = one_line(&answer.output);
        let result = answer.event(&call.id, &call.name, &summary, self.now());
        out.write(result, call.stream.as_deref(), call.choice, None);
    }

    /// Milliseconds since 1970.
    fn now(&self) -> Option<u64> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        u64::try_from(now.as_millis()).ok().filter(|_| !self.no_time)
    }

    /// The key under which the result of a call is kept, if it is kept.
    fn cache_key(&self, call: &RequestedCall, ready: &ReadyCall) -> Option<Hash> {
        self.cache.as_ref()?;
        let (exec, arguments) = (ready.tool.exec.as_ref()?, call.arguments.as_ref().ok()?);
        exec.cache?;
        let env: Vec<_> = program::named(&exec.env)
            .map(|(name, value)| (name.to_owned(), value.to_string_lossy().into_owned()))
            .collect();
        Some(tool::cache_key(&ready.tool.hash, arguments, &env, &self.runner.cwd(exec).to_string_lossy()))
    }
}

impl LineHandler for Calls {
    fn event(&mut self, event: &Event<'_>, at: (usize, usize), out: &mut LineWriter<'_>) -> bool {
        out.pass(at.0, at.1);
        self.plan.event(event);
        self.settle(out, event.t().map(|t| t.text()));
        false
    }

    fn blank(&mut self, at: (usize, usize), out: &mut LineWriter<'_>) {
        out.pass(at.0, at.1);
    }

    fn bad_line(&mut self, warning: &Warning<'_>, out: &mut LineWriter<'_>) {
        out.write(*warning, None, 0, None);
        self.plan.event(&Event::of(&(*warning).into(), None, 0, None));
        self.settle(out, None);
    }

    fn finish(&mut self, out: &mut LineWriter<'_>) {
        self.plan.finish();
        self.settle(out, None);
    }
}
