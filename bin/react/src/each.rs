//! `--each`: a conversation of its own for each line of standard input, and a row for each answer.
//!
//! One pipeline serves all lines: react gives `llm-stream --each` a conversation per turn, in a
//! stream with the number of its line, and reads the merged events. A turn with calls goes through
//! a `tool-exec` of its own, and comes back as the next turn.

use crate::args::Args;
use crate::conversations;
use crate::folder::TemporaryFolder;
use crate::options::{EXEC, STAGES};
use crate::pipeline::{StageEnd, StartedStage, find};
use crate::progress::Progress;
use crate::rows::{Row, Rows};
use crate::run::{self, Reported, Stages, Tools};
use crate::signals::Running;
use crate::structured::{self, AnswerCheck, AnswerForm};
use anyhow::{Context, bail};
use api::{Conversation, InputLine, QuestionTemplate};
use event::payload::{self, Error, Message};
use event::{Event, Json, Kind, Raw, Scanner};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, Sender, channel};
use stdio::Status;

/// How many lines are open at once without `--jobs`.
const JOBS: usize = 4;

/// How many rows may wait for an earlier one, for each open line.
const AHEAD: u64 = 64;

/// How often a line is asked about again whose answer broke off.
const AGAIN: u32 = 2;

/// The errors that every line would get: the key is refused, or its account has no money. The run
/// ends, since a row would keep its line from being asked about again.
const KEY_IS_REFUSED: [&str; 2] = ["http_401", "http_402"];

/// Asks about each line of standard input, and writes the rows. Returns status 2 if a row is an
/// error, otherwise 3 if one waits for an approval.
///
/// # Errors
/// Fails with one line for options that do not fit, if standard input cannot be read, and if the
/// rows cannot be written.
pub(crate) fn run(mut args: Args) -> anyhow::Result<Status> {
    let jobs = jobs(&mut args)?;
    run::refuse_pipes(&args)?;
    for stage in STAGES {
        find(stage)?;
    }
    if run::needs_servers(&args) && !run::is_set(run::HUB) {
        return run::under_hub(&args);
    }
    let args = &args;
    let folder = TemporaryFolder::new()?;
    let tools = Tools::new(args, &folder)?;
    let form = args.schema().map(AnswerForm::new).transpose()?;
    if let Some(form) = &form {
        Row::check_names(form.member_names())?;
    }
    let running = Running::take_signals()?;
    let rows = Rows::open(args.own.rows.as_deref(), args.own.unordered)?;
    let (news, told) = channel();
    let stages = Stages::new(args, &tools, Path::new("/dev/null"), "");
    let (asked, feed) = io::pipe().context("a pipe cannot be made")?;
    let (merged, output) = io::pipe().context("a pipe cannot be made")?;
    let mut started = Vec::new();
    stages
        .each(jobs)
        .start(&running, asked.into(), output.into(), &mut started)?;
    let reader = news.clone();
    stdio::thread(move || read_turns(merged, &reader))?;
    let mut each = Each {
        args,
        tools: &tools,
        folder: folder.path(),
        running: &running,
        form,
        question: QuestionTemplate::read(args.question().unwrap_or_default()),
        lines: Lines::start(news.clone(), args.max_line()?)?,
        feed: Some(feed),
        news,
        open: HashMap::new(),
        progress: Progress::new(args.own.rows.is_some()),
        rows,
        jobs,
    };
    let ended = each.all(&told);
    each.feed = None;
    each.progress.end();
    if ended.is_err() || running.signal().is_some() {
        running.pass_on();
    }
    let codes = wait(&mut started, &running);
    each.wait_for_tools(&told);
    let is_whole = ended?;
    if let Some(signal) = running.signal() {
        return Ok(Status::Signal(signal));
    }
    if !is_whole || codes?.iter().any(|end| ![0, 2].contains(&end.code())) {
        return Err(Reported.into());
    }
    let (errors, pending) = (each.rows.errors, each.rows.pending);
    Ok(match (errors, pending) {
        (0, 0) => Status::Done,
        (0, _) => Status::Undecided,
        _ => Status::Error,
    })
}

/// Takes `--jobs` out of the options of the stages.
fn jobs(args: &mut Args) -> anyhow::Result<usize> {
    let Some(typed) = args.take("jobs") else {
        return Ok(JOBS);
    };
    let jobs = typed.to_str().and_then(|jobs| jobs.parse().ok());
    match jobs.filter(|jobs| *jobs > 0) {
        Some(jobs) => Ok(jobs),
        None => bail!("--jobs {}: not a number above 0", typed.display()),
    }
}

fn wait(started: &mut [StartedStage], running: &Running) -> io::Result<Vec<StageEnd>> {
    started
        .iter_mut()
        .map(|stage| stage.wait(running))
        .collect()
}

/// What the threads of a run report.
enum News {
    /// The next line of standard input; `None` at its end.
    Line(Option<Vec<u8>>),
    /// Why standard input cannot be read.
    Unreadable(io::Error),
    /// A turn of the line with this number has ended.
    Turn(u64, Turn),
    /// The calls of the line with this number have ended, with the exit status of `tool-exec`.
    Calls(u64, anyhow::Result<i32>),
    /// The pipeline has ended.
    Ended,
}

/// A turn, as the pipeline merges it.
#[derive(Default)]
struct Turn {
    /// The lines that `tool-exec` needs.
    lines: String,
    /// The assistant's message, if the turn has one.
    message: Option<String>,
    /// The last `error` event of the turn: its code and its message.
    error: Option<(String, String)>,
    is_retryable: bool,
    /// Why the turn has ended.
    reason: String,
}

/// A line whose row is not there yet.
struct OpenLine {
    input: String,
    /// The messages so far, as JSON.
    messages: Vec<String>,
    form: Option<AnswerForm>,
    /// How often the answer broke off.
    cut: u32,
    /// The log of the conversation, once it has calls.
    log: Option<PathBuf>,
    /// Whether `tool-exec` runs calls of the line.
    has_calls: bool,
}

struct Each<'a> {
    args: &'a Args,
    tools: &'a Tools,
    folder: &'a Path,
    running: &'a Running,
    form: Option<AnswerForm>,
    question: QuestionTemplate,
    lines: Lines,
    feed: Option<PipeWriter>,
    news: Sender<News>,
    open: HashMap<u64, OpenLine>,
    rows: Rows,
    progress: Progress,
    jobs: usize,
}

impl Each<'_> {
    /// Works until each line has its row. Returns false if the pipeline ended before.
    fn all(&mut self, told: &Receiver<News>) -> anyhow::Result<bool> {
        loop {
            let has_room = self.rows.ahead() < AHEAD * self.jobs as u64;
            if self.open.len() < self.jobs && has_room {
                self.lines.want();
            }
            if self.open.is_empty() && self.lines.have_ended {
                return Ok(true);
            }
            match told.recv().context("no thread is left")? {
                News::Line(line) => self.line(line)?,
                News::Unreadable(error) => {
                    return Err(error).context("standard input cannot be read");
                }
                News::Turn(number, turn) => self.turn(number, turn)?,
                News::Calls(number, status) => self.called(number, status?)?,
                News::Ended => return Ok(false),
            }
            self.progress.show(&self.rows, self.open.len());
        }
    }

    /// Waits until no `tool-exec` of this run is left.
    fn wait_for_tools(&mut self, told: &Receiver<News>) {
        while self.open.values().any(|line| line.has_calls) {
            match told.recv() {
                Ok(News::Calls(number, _)) => drop(self.open.remove(&number)),
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }

    fn line(&mut self, line: Option<Vec<u8>>) -> anyhow::Result<()> {
        self.lines.came(line.is_none());
        let Some(bytes) = line else { return Ok(()) };
        let text = String::from_utf8_lossy(&bytes);
        let Some(line) = InputLine::read(&text) else {
            return Ok(());
        };
        let input = line.json();
        let Some(number) = self.rows.begin(&input)? else {
            return Ok(());
        };
        let most = self.lines.max_line;
        let question = match &text {
            std::borrow::Cow::Owned(_) => Err("the line is not UTF-8".to_owned()),
            _ if bytes.len() > most => {
                let length = bytes.len();
                Err(format!(
                    "the line has more than {most} bytes (--max-line), at least {length}"
                ))
            }
            _ => self.question.fill(&line),
        };
        match question {
            Ok(question) => {
                let content = event::quoted(&question);
                let open = OpenLine {
                    input,
                    messages: vec![format!("{{\"role\":\"user\",\"content\":{content}}}")],
                    form: self.form.clone(),
                    cut: 0,
                    log: None,
                    has_calls: false,
                };
                self.ask(number, open);
                Ok(())
            }
            Err(why) => self
                .rows
                .put(number, Row::error(input, "invalid_input", &why)),
        }
    }

    /// Asks the model for the next turn of a line.
    fn ask(&mut self, number: u64, line: OpenLine) {
        let turn = format!(
            "{{\"stream\":\"{number}\",\"messages\":[{}]}}\n",
            line.messages.join(",")
        );
        self.open.insert(number, line);
        if let Some(feed) = &mut self.feed {
            // Fails if llm-stream has ended; `News::Ended` follows then.
            let _ = feed.write_all(turn.as_bytes());
        }
    }

    fn turn(&mut self, number: u64, turn: Turn) -> anyhow::Result<()> {
        let Some(mut line) = self.open.remove(&number) else {
            return Ok(());
        };
        if turn.reason == "cancelled" {
            return Ok(()); // a signal has ended the turn, and the run ends
        }
        if let Some((code, message)) = &turn.error {
            if KEY_IS_REFUSED.contains(&code.as_str()) {
                bail!("{message}; no line is answered with this key, so the run ends");
            }
            let is_cut = turn.reason == "cut" && turn.is_retryable;
            if is_cut && line.cut < AGAIN {
                line.cut += 1;
                self.ask(number, line);
                return Ok(());
            }
            return self.rows.put(number, Row::error(line.input, code, message));
        }
        let Some(message) = turn.message else {
            let what = format!("the answer ended without a message ({})", turn.reason);
            return self
                .rows
                .put(number, Row::error(line.input, "no_answer", &what));
        };
        let has_calls = Raw::parse(&message)
            .ok()
            .and_then(|message| message.get("tool_calls"))
            .is_some_and(|calls| calls.items().next().is_some());
        if has_calls {
            return self.call(number, line, &turn.lines);
        }
        line.messages.push(message);
        self.answered(number, line)
    }

    /// Writes the row of a line that is answered, unless the answer has to fit a schema and does
    /// not.
    fn answered(&mut self, number: u64, mut line: OpenLine) -> anyhow::Result<()> {
        let last = line.messages.last().map(String::as_str).unwrap_or_default();
        let (talk, _) = Conversation::read(last);
        let answer = talk.messages.last();
        let text = answer.map(|message| message.text()).unwrap_or_default();
        let refusal = answer.map(|message| message.refusal()).unwrap_or_default();
        if text.is_empty() && !refusal.is_empty() {
            return self
                .rows
                .put(number, Row::error(line.input, "refusal", &refusal));
        }
        let Some(form) = &mut line.form else {
            return self.rows.put(number, Row::answer(line.input, &text));
        };
        match form.check(&text) {
            AnswerCheck::Fits => {
                let row = Row::fields(line.input, structured::bare(&text));
                self.rows.put(number, row)
            }
            AnswerCheck::Again(question) => {
                let content = event::quoted(&question);
                line.messages
                    .push(format!("{{\"role\":\"user\",\"content\":{content}}}"));
                self.ask(number, line);
                Ok(())
            }
            AnswerCheck::Never(why) => self
                .rows
                .put(number, Row::error(line.input, "schema", &why)),
        }
    }

    /// Runs the calls of a turn in a thread that waits for `tool-exec`. That is in a process group
    /// of its own, so that it never asks on the terminal.
    fn call(&mut self, number: u64, mut line: OpenLine, turn: &str) -> anyhow::Result<()> {
        let log = self.folder.join(format!("{number}.ndjson"));
        let name = || log.display().to_string();
        if line.log.is_none() {
            let mut begun = Vec::new();
            for message in &line.messages {
                let message = Message {
                    message: Json::of(message),
                    ..Message::default()
                };
                payload::line(&mut begun, &message.into(), None, 0, None);
                begun.push(b'\n');
            }
            fs::write(&log, begun).with_context(name)?;
            line.log = Some(log.clone());
        }
        let turn_file = self.folder.join(format!("{number}.turn"));
        fs::write(&turn_file, turn).with_context(name)?;
        let stage = Stages::new(self.args, self.tools, &log, "react --each").calls();
        let mut process = stage.process()?;
        process
            .stdin(File::open(&turn_file).with_context(name)?)
            .stdout(Stdio::null())
            .process_group(0);
        let mut child = process
            .spawn()
            .with_context(|| format!("{EXEC} cannot be started"))?;
        self.running.add(&child);
        line.has_calls = true;
        self.open.insert(number, line);
        let (running, news) = (self.running.clone(), self.news.clone());
        stdio::thread(move || {
            let ended = running.wait_for(&mut child);
            let code = ended.map(|status| StageEnd::of(EXEC, status).code());
            let _ = fs::remove_file(&turn_file);
            let code = code.context("tool-exec cannot be waited for");
            let _ = news.send(News::Calls(number, code)); // fails if the run has ended
        })?;
        Ok(())
    }

    /// Goes on with a line whose calls have ended.
    fn called(&mut self, number: u64, status: i32) -> anyhow::Result<()> {
        let Some(mut line) = self.open.remove(&number) else {
            return Ok(());
        };
        line.has_calls = false;
        if self.running.signal().is_some() {
            return Ok(());
        }
        let log = line.log.clone().unwrap_or_default();
        let text = fs::read_to_string(&log).with_context(|| log.display().to_string())?;
        match status {
            0 => {
                line.messages = messages(&text);
                self.ask(number, line);
                return Ok(());
            }
            1 => {
                let answer = conversations::last_answer(&text);
                self.rows.put(number, Row::answer(line.input, &answer))?;
            }
            3 => {
                let calls = conversations::waiting_calls(&text);
                self.rows.put(number, Row::pending(line.input, &calls))?;
            }
            _ => {
                let what = format!("tool-exec ended with status {status}");
                self.rows
                    .put(number, Row::error(line.input, "calls_failed", &what))?;
            }
        }
        let _ = fs::remove_file(&log); // else with its folder
        Ok(())
    }
}

/// Returns the messages of a log, as JSON.
fn messages(log: &str) -> Vec<String> {
    let mut scanner = Scanner::default();
    let mut messages = Vec::new();
    for line in log.lines() {
        if let Ok(event) = scanner.read(line)
            && event.kind() == Kind::Message
            && let Some(message) = event.get("message")
        {
            messages.push(message.text().to_owned());
        }
    }
    messages
}

/// Reads the merged events of all lines, and reports each turn that has ended.
fn read_turns(merged: PipeReader, news: &Sender<News>) {
    let mut turns: HashMap<u64, Turn> = HashMap::new();
    let mut scanner = Scanner::default();
    let mut reader = BufReader::with_capacity(64 << 10, merged);
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|count| count > 0) {
        let text = line.trim_end_matches('\n');
        if let Ok(event) = scanner.read(text)
            && let Some(number) = number(&event)
        {
            let turn = turns.entry(number).or_default();
            if turn.take(&event, text)
                && let Some(turn) = turns.remove(&number)
                && news.send(News::Turn(number, turn)).is_err()
            {
                return;
            }
        }
        line.clear();
    }
    let _ = news.send(News::Ended); // fails if the run has ended
}

/// Returns the number of the line whose stream the event belongs to.
fn number(event: &Event<'_>) -> Option<u64> {
    event.stream()?.str()?.parse().ok()
}

impl Turn {
    /// Takes in an event. Returns whether it is the last one of the turn.
    fn take(&mut self, event: &Event<'_>, line: &str) -> bool {
        match event.kind() {
            Kind::ContentDelta | Kind::Thinking | Kind::RefusalDelta => return false,
            Kind::Error => {
                let error = Error::read(event);
                let [code, message] =
                    [error.code, error.message].map(|text| text.str().into_owned());
                self.error = Some((code, message));
                self.is_retryable = error.retryable;
            }
            Kind::Message if event.choice() == 0 => {
                self.message = event
                    .get("message")
                    .map(|message| message.text().to_owned());
            }
            Kind::StreamEnd => {
                self.reason = event
                    .get_str("finish_reason")
                    .unwrap_or_default()
                    .into_owned();
            }
            _ => {}
        }
        self.lines.push_str(line);
        self.lines.push('\n');
        event.kind() == Kind::StreamEnd
    }
}

/// Standard input, of which a thread reads one line whenever the run wants one.
struct Lines {
    want: Sender<()>,
    is_wanted: bool,
    have_ended: bool,
    max_line: usize,
}

impl Lines {
    fn start(news: Sender<News>, max_line: usize) -> anyhow::Result<Lines> {
        let (want, wanted) = channel::<()>();
        stdio::thread(move || {
            let mut input = BufReader::with_capacity(64 << 10, stdio::stdin());
            for () in wanted {
                let line = next_line(&mut input, max_line);
                let told = match line {
                    Ok(line) => news.send(News::Line(line)),
                    Err(error) => news.send(News::Unreadable(error)),
                };
                if told.is_err() {
                    return;
                }
            }
        })?;
        Ok(Lines {
            want,
            is_wanted: false,
            have_ended: false,
            max_line,
        })
    }

    /// Asks for the next line, unless it is asked for already.
    fn want(&mut self) {
        if !self.is_wanted && !self.have_ended {
            self.is_wanted = self.want.send(()).is_ok();
        }
    }

    /// Records that a line, or the end, has come.
    fn came(&mut self, is_end: bool) {
        self.is_wanted = false;
        self.have_ended |= is_end;
    }
}

/// Reads the next line; `None` at the end. Of a line longer than `most`, all but the first bytes
/// are dropped.
fn next_line(input: &mut impl BufRead, most: usize) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(2);
    let count = (&mut *input).take(limit).read_until(b'\n', &mut line)?;
    if count as u64 == limit && !line.ends_with(b"\n") {
        input.skip_until(b'\n')?;
    }
    if line.ends_with(b"\n") {
        line.pop();
    }
    Ok((count > 0).then_some(line))
}
