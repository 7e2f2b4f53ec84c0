//! The run of the command: lines in, calls as the plan says, lines out, all at once and all by one hand.

use crate::cache::Cache;
use crate::failure;
use crate::input::Piece;
use crate::journal::Journal;
use crate::lines::{Line, Lines};
use crate::output::Writer;
use crate::run::{Handle, Report, Runner};
use crate::signals::Signals;
use event::Kind;
use event::payload::{Message, SessionStats};
use signal_hook::consts::SIGINT;
use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use stdio::{Errors, Outcome, Status};
use tokio::sync::mpsc;
use tool::{Answer, Call, Hash, Plan, Ready, Step, ToolProgress, ToolResult, ToolUse};

/// How long a signalled command waits for the rest that its upstream still writes while it ends too.
const REST: Duration = Duration::from_millis(500);

/// How long a command that was signalled twice still waits for what it ends, and for its output.
const LAST: Duration = Duration::from_secs(1);

/// Everything that a run works with.
pub struct Session {
    /// What to run when.
    pub plan: Plan,
    /// How to run it.
    pub runner: Rc<Runner>,
    /// Where results are kept.
    pub cache: Option<Cache>,
    /// Where intents and results are synced to.
    pub journal: Option<Journal>,
    /// Where lines go.
    pub out: Writer,
    /// How lines are read.
    pub lines: Lines,
    /// Whether the input itself was searched for answers already.
    pub read_ahead: bool,
    /// `--no-time`.
    pub no_time: bool,
    /// `--progress`.
    pub progress: bool,
    /// What people hear of `error` events.
    pub errors: Errors,
}

/// A call that runs.
struct Active {
    call: Rc<Call>,
    handle: Rc<Handle>,
    /// Under which its result is kept.
    cache: Option<Hash>,
}

/// What changes while a run goes on.
struct State {
    active: HashMap<u64, Active>,
    reports: mpsc::Sender<Report>,
    error: bool,
    signal: Option<i32>,
    answered: u64,
    cache_hits: u64,
    start: Instant,
    /// What runs is ended without a grace.
    at_once: Rc<Cell<bool>>,
}

/// However a run ends, nothing that it started goes on.
impl Drop for State {
    fn drop(&mut self) {
        self.active.values().for_each(|active| active.handle.abandon(self.at_once.get()));
    }
}

impl State {
    /// After a first interrupt the calls that run may finish. A person must know what the wait is for, and how to end it.
    fn tell_waiting(&self) {
        let mut names: Vec<&str> = self.active.values().map(|active| active.call.name.as_ref()).collect();
        if names.is_empty() {
            return;
        }
        names.sort_unstable();
        let names = names.join(", ");
        let text = format!("waiting for running calls to end ({names}), press Ctrl-C again to stop them now");
        stdio::message("tool-exec", &text);
    }
}

impl Session {
    /// Runs until the input has ended and every call with it, or until a signal or the reader of the output ends it.
    ///
    /// # Errors
    /// When the input, the output or the journal fails. Whatever still runs is ended.
    pub async fn run(self, input: mpsc::Receiver<Piece>) -> anyhow::Result<Status> {
        let at_once = Rc::new(Cell::new(false));
        let mut signals = Signals::new()?;
        let second = async {
            signals.next().await;
            let caught = signals.next().await;
            tokio::select! {
                _ = signals.next() => {}
                () = tokio::time::sleep(LAST) => {}
            }
            caught
        };
        tokio::select! {
            biased;
            // The results of what the second signal ends are still written, but not while the output takes nothing.
            caught = second => {
                at_once.set(true);
                Ok(Status::Signal(caught))
            }
            status = self.drive(input, Rc::clone(&at_once)) => status,
        }
    }

    async fn drive(mut self, mut input: mpsc::Receiver<Piece>, at_once: Rc<Cell<bool>>) -> anyhow::Result<Status> {
        let (reports, mut done) = mpsc::channel(64);
        let (active, start) = (HashMap::new(), Instant::now());
        let mut state =
            State { active, reports, error: false, signal: None, answered: 0, cache_hits: 0, start, at_once };
        let mut signals = Signals::new()?;
        let rest = tokio::time::sleep(Duration::ZERO);
        tokio::pin!(rest);
        // `open`: more may come from the input. `listening`: the thread that reads it still has something to say.
        let (mut open, mut listening) = (true, true);
        while open || !self.plan.is_idle() {
            tokio::task::yield_now().await; // the calls go on, however much is at hand here
            let (mut caught, mut piece, mut report) = (None, None, None);
            // Signals first; then what is at hand, the input before the results; only when nothing is, what waits goes out.
            tokio::select! {
                biased;
                signal = signals.next() => caught = Some(signal),
                () = &mut rest, if open && state.signal.is_some() => piece = Some(Piece::End),
                some = input.recv(), if listening => {
                    listening = some.is_some();
                    piece = Some(some.unwrap_or(Piece::End));
                    report = done.try_recv().ok(); // an input without end holds up no result
                }
                some = done.recv() => report = some,
                () = std::future::ready(()), if self.out.waits() => self.out.flush().await?,
            }
            if let Some(caught) = caught {
                let is_first = state.signal.replace(caught).is_none();
                state.at_once.set(!is_first);
                if is_first {
                    rest.as_mut().reset(tokio::time::Instant::now() + REST);
                } else {
                    piece = Some(Piece::End);
                }
                if is_first && caught == SIGINT {
                    self.plan.stop();
                    state.tell_waiting();
                } else {
                    self.plan.abort();
                }
                self.steps(&mut state, None).await?;
            }
            match piece {
                Some(Piece::Failed(failure)) => {
                    self.out.flush().await?;
                    return Err(failure.into());
                }
                Some(Piece::End) if open => {
                    open = false;
                    self.plan.finish();
                    self.steps(&mut state, None).await?;
                }
                Some(piece) if open => self.piece(&piece, &mut state).await?,
                _ => {}
            }
            match report {
                Some(Report::Progress(key, text)) => self.progress(key, &text, &state),
                Some(Report::Done(key, answer)) => self.done(key, answer, &mut state).await?,
                None => {}
            }
        }
        self.close(&state).await
    }

    /// Takes a block of lines.
    async fn piece(&mut self, piece: &Piece, state: &mut State) -> anyhow::Result<()> {
        if !self.read_ahead
            && let Piece::Lines(bytes, _) = piece
        {
            // An answer that is at hand already counts before its call is looked at.
            let mut scanner = event::Scanner::default();
            for line in bytes.split(|b| *b == b'\n') {
                if let Ok(event) = std::str::from_utf8(line).map_or(Err(()), |line| scanner.read(line).map_err(|_| ()))
                {
                    self.plan.foresee(&event);
                }
            }
        }
        let mut at = 0;
        loop {
            let line = match self.lines.next(piece, &mut at) {
                Ok(line) => line,
                Err(strict) => {
                    self.out.flush().await?;
                    return Err(strict.into());
                }
            };
            match line {
                None => return Ok(()),
                Some(Line::Blank(bytes)) => self.out.pass(bytes),
                Some(Line::Event(event, bytes)) => {
                    self.out.pass(bytes);
                    if event.kind() == Kind::Error {
                        state.error = true;
                        self.errors.report(&event);
                    }
                    self.plan.event(&event);
                    let t = event.t().map(|t| t.text().to_owned());
                    self.steps(state, t.as_deref()).await?;
                }
            }
            if self.out.is_full() {
                self.out.flush().await?;
            }
        }
    }

    /// Does what the plan says now. `t` is the time of the line at hand, if one is.
    async fn steps(&mut self, state: &mut State, t: Option<&str>) -> anyhow::Result<()> {
        loop {
            let steps = self.plan.steps();
            if steps.is_empty() {
                return Ok(());
            }
            for step in steps {
                match step {
                    Step::Start { key, call, ready } => self.start(key, call, &ready, state, t).await?,
                    Step::Stop { key } => {
                        if let Some(active) = state.active.get(&key) {
                            active.handle.stop(state.at_once.get());
                        }
                    }
                    Step::Result { call, answer } => {
                        state.answered += u64::from(!answer.resumed);
                        state.cache_hits += u64::from(answer.cached);
                        let journaled =
                            self.journal.as_ref().is_some_and(Journal::is_stdout) && answer.duration.is_some();
                        if !journaled {
                            let result = self.result(&call, &answer);
                            self.out.event(&result, call.stream.as_deref(), call.choice, None);
                        }
                    }
                    Step::Message { call, answer } => {
                        let message = tool::message(&call.id, &call.name, &answer);
                        self.out.event(&Message { message: &message }, call.stream.as_deref(), call.choice, None);
                    }
                }
                if self.out.is_full() {
                    self.out.flush().await?;
                }
            }
        }
    }

    /// Starts a call, or takes its result from the cache. Whoever reads the output knows of it before it runs.
    async fn start(
        &mut self,
        key: u64,
        call: Rc<Call>,
        ready: &Rc<Ready>,
        state: &mut State,
        t: Option<&str>,
    ) -> anyhow::Result<()> {
        let cache = self.cache_key(&call, ready);
        if let (Some(name), Some(cache)) = (&cache, &self.cache)
            && let Some(exec) = &ready.tool.exec
            && let Some(answer) = exec.cache.and_then(|life| cache.get(name, life))
        {
            self.plan.done(key, Answer { return_directly: exec.return_directly, ..answer });
            return Ok(());
        }
        let summary = call.summary();
        let intent =
            ToolUse { tool_name: &call.name, tool_id: &call.id, input_summary: &summary, timestamp: self.now() };
        self.out.event(&intent, call.stream.as_deref(), call.choice, t);
        self.out.flush().await?;
        if let Some(journal) = &mut self.journal {
            if journal.is_stdout() {
                journal.sync()?
            } else {
                journal.write(&intent, call.stream.as_deref(), call.choice)?
            }
        }
        let handle = Rc::new(Handle::default());
        state.active.insert(key, Active { call: Rc::clone(&call), handle: Rc::clone(&handle), cache });
        let (runner, ready, reports) = (Rc::clone(&self.runner), Rc::clone(ready), state.reports.clone());
        let progress = self.progress.then(|| (key, reports.clone()));
        tokio::task::spawn_local(async move {
            let answer = runner.run(&call, &ready, &handle, progress).await;
            let _ = reports.send(Report::Done(key, answer)).await; // nobody listens when the command has failed
        });
        Ok(())
    }

    /// A call has ended.
    async fn done(&mut self, key: u64, answer: Answer, state: &mut State) -> anyhow::Result<()> {
        let Some(active) = state.active.remove(&key) else { return Ok(()) };
        if self.journal.is_some() {
            let call = &active.call;
            let result = self.result(call, &answer);
            if self.journal.as_ref().is_some_and(Journal::is_stdout) {
                self.out.event(&result, call.stream.as_deref(), call.choice, None);
                self.out.flush().await?;
            }
            if let Some(journal) = &mut self.journal {
                if journal.is_stdout() {
                    journal.sync()?
                } else {
                    journal.write(&result, call.stream.as_deref(), call.choice)?
                }
            }
        }
        if let (Some(name), Some(cache)) = (&active.cache, &mut self.cache)
            && let Err(e) = cache.put(name, &active.call.name, &answer)
        {
            stdio::message("tool-exec", &format!("the cache cannot be written: {e}, going on without"));
            self.cache = None;
        }
        self.plan.done(key, answer);
        self.steps(state, None).await
    }

    fn progress(&mut self, key: u64, text: &str, state: &State) {
        let Some(Active { call, .. }) = state.active.get(&key) else { return };
        let piece = ToolProgress { tool_id: &call.id, tool_name: &call.name, text };
        self.out.event(&piece, call.stream.as_deref(), call.choice, None);
    }

    /// Everything has ended: the counts, and the status.
    async fn close(mut self, state: &State) -> anyhow::Result<Status> {
        let tally = self.plan.tally();
        if state.answered > 0 {
            let duration =
                (!self.no_time).then(|| u64::try_from(state.start.elapsed().as_micros()).unwrap_or(u64::MAX));
            let stats = SessionStats {
                calls: Some(state.answered),
                cache_hits: Some(state.cache_hits),
                duration,
                ..SessionStats::default()
            };
            self.out.event(&stats, None, 0, None);
        }
        self.out.flush().await?;
        if let Some(why) = failure::why(&tally, state.error || state.signal.is_some()) {
            stdio::message("tool-exec", &why);
        }
        let answer = match tally {
            tool::Tally { pending: 1.., .. } => Status::Undecided,
            tool::Tally { is_final: true, .. } | tool::Tally { messages: 0, .. } => Status::No,
            _ => Status::Done,
        };
        let error = state.error || tally.is_failure();
        Ok(Outcome { error, signal: state.signal }.status(answer))
    }

    fn result<'a>(&self, call: &'a Call, answer: &'a Answer) -> ToolResult<'a> {
        ToolResult { tool_id: &call.id, tool_name: &call.name, answer, timestamp: self.now() }
    }

    /// Milliseconds since 1970.
    fn now(&self) -> Option<u64> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        u64::try_from(now.as_millis()).ok().filter(|_| !self.no_time)
    }

    /// Under which the result of a call is kept, if it is.
    fn cache_key(&self, call: &Call, ready: &Ready) -> Option<Hash> {
        self.cache.as_ref()?;
        let (exec, arguments) = (ready.tool.exec.as_ref()?, call.arguments.as_ref().ok()?);
        exec.cache?;
        let env: Vec<_> = crate::program::named(&exec.env)
            .map(|(name, value)| (name.to_owned(), value.to_string_lossy().into_owned()))
            .collect();
        Some(tool::cache_key(&ready.tool.hash, arguments, &env, &self.runner.cwd(exec).to_string_lossy()))
    }
}
