//! A run: the turns of the loop until the model answers without a call.

use crate::args::{ANSWER, Args, JSON, StageKind};
use crate::chat::{Prompt, Typed};
use crate::conversations::{self, Conversations, KeptConversation};
use crate::folder::TemporaryFolder;
use crate::input::{self, Given};
use crate::log::Log;
use crate::options::{self, ASK, EXEC, MERGE, PARSE, VIEW};
use crate::pipeline::{Pipeline, Stage, StageEnd, StartedStage, find, start};
use crate::signals::Running;
use crate::structured::{self, AnswerCheck, AnswerForm};
use anyhow::{Context, bail};
use event::shell_word;
use rustix::process::Signal;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IsTerminal, PipeWriter, Read, Seek};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use stdio::Status;
use store::FileId;

/// The command that compares two logs.
const EVAL: &str = "tc-eval";

/// The environment variable with the socket of a tool server hub.
pub(crate) const HUB: &str = "TOOLPIPE_HUB";

/// The environment variable that `tc-serve` sets for the command that answers a request.
const REQUEST: &str = "TOOLPIPE_REQUEST_ID";

/// The error of a stage that failed and already wrote the reason to standard error.
#[derive(Debug)]
pub(crate) struct Reported;

impl std::fmt::Display for Reported {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("a stage has failed")
    }
}

impl std::error::Error for Reported {}

/// Runs the loop, or prints its pipeline.
pub(crate) fn run(args: Args) -> anyhow::Result<Status> {
    if args.own.list {
        return Conversations::open()?.list();
    }
    if args.own.models {
        return list_models(&args);
    }
    let (args, continued) = &mut with_continued(args)?;
    refuse_pipes(args)?;
    let mode = Mode::of(args)?;
    let may_be_given = mode == Mode::Once && input::may_have_content();
    refuse_no_question(args, mode, may_be_given)?;
    check_expected(args)?;
    if args.own.print_pipeline {
        return print(args, may_be_given);
    }
    for stage in crate::options::STAGES {
        find(stage)?;
    }
    if needs_servers(args) && !is_set(HUB) {
        return under_hub(args);
    }
    ::args::warn_of_old_name("react", "--approve", "--ask");
    ::args::warn_of_old_name("react", "--view", "--format");
    let folder = TemporaryFolder::new()?;
    let given = match may_be_given {
        true => input::read(args, folder.path())?,
        false => Given::Nothing,
    };
    refuse_no_question(args, mode, !matches!(given, Given::Nothing))?;
    let tools = Tools::new(args, &folder)?;
    let place = LogPlace::new(args, mode, continued.take(), &folder);
    let mut log = place.open(args)?;
    let text = match &given {
        Given::Nothing => None,
        Given::Text(text) => Some(&**text),
        Given::Log(lines) => {
            log.begin_with(lines)?;
            None
        }
    };
    let mut run = Run {
        args,
        tools,
        log,
        conversation: place.conversation(),
        running: Running::take_signals()?,
        question: Question::new(args, text, folder.path())?,
        mode,
        answer_form: args.schema().map(AnswerForm::new).transpose()?,
        killed: None,
    };
    let status = match mode {
        Mode::Served => run.served()?,
        Mode::Chat => run.chat()?,
        Mode::Replay | Mode::Once => run.shown()?,
    };
    let is_continued_later = status != 0 && mode != Mode::Served && !run.log.is_empty();
    if is_continued_later && matches!(place, LogPlace::Temporary(_)) {
        std::mem::forget(folder); // the command that goes on names its log
    }
    Ok(exit_status(status))
}

/// Prints the names of models, as `llm-stream` lists them for the server of this run.
fn list_models(args: &Args) -> anyhow::Result<Status> {
    let list = Stage::new(ASK, ["--models"]).and(args.of_name(&options::OF_SERVER));
    let mut list = list.and(args.own.rest.clone()).process()?;
    let listed = list.stdin(Stdio::null()).status();
    let code = listed.context("llm-stream cannot be started")?.code();
    match code {
        Some(0) => Ok(Status::Done),
        _ => Err(Reported.into()),
    }
}

/// Returns the options of this run, preceded by those of the conversation that `--continue` names,
/// and that conversation; `None` without `--continue`.
fn with_continued(args: Args) -> anyhow::Result<(Args, Option<KeptConversation>)> {
    let Some(name) = &args.own.continued else {
        return Ok((args, None));
    };
    let found = Conversations::open()?.find(name.as_deref())?;
    let mut args = args.after(&found.options()?)?;
    args.own.log = Some(found.log());
    Ok((args, Some(found)))
}

/// The source of a run's questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// A request from `tc-serve` on standard input, which contains the whole conversation.
    Served,
    /// The recording of `--replay`, from which all questions come.
    Replay,
    /// A user at a terminal, who asks one question after another.
    Chat,
    /// A single question from the command line, the log, or text on standard input. With `--replay`
    /// the recording only answers it.
    Once,
}

impl Mode {
    fn of(args: &Args) -> anyhow::Result<Mode> {
        if is_set(REQUEST) && args.question().is_none() {
            if args.own.log.is_some() {
                bail!("tc-serve has the whole conversation in each request, so leave --log out");
            }
            return Ok(Mode::Served);
        }
        Ok(match args.own.replay {
            Some(_) if args.question().is_none() => Mode::Replay,
            None if is_chat(args) => Mode::Chat,
            _ => Mode::Once,
        })
    }
}

/// Whether an environment variable has a value.
pub(crate) fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

/// Whether the log of `--log` or `--continue` has events.
fn has_log(args: &Args) -> bool {
    let log = args.own.log.as_ref();
    log.is_some_and(|log| log.metadata().is_ok_and(|meta| meta.len() > 0))
}

fn refuse_no_question(args: &Args, mode: Mode, has_text: bool) -> anyhow::Result<()> {
    let is_asked = has_text
        || mode != Mode::Once
        || args.question().is_some()
        || !args.own.attach.is_empty()
        || has_log(args);
    if !is_asked {
        bail!(
            "there is no question, give one, or a --log that holds one (a chat needs a terminal)"
        );
    }
    Ok(())
}

/// Fails before anything runs if `--expect` cannot be used to compare the logs.
fn check_expected(args: &Args) -> anyhow::Result<()> {
    if let Some(expected) = &args.own.expect {
        find(EVAL)?;
        File::open(expected).map_err(|e| stdio::unreadable(expected, &e))?;
    }
    Ok(())
}

/// Whether tool servers must run. A replay takes their tools from its recording.
pub(crate) fn needs_servers(args: &Args) -> bool {
    let mut sources = args.own.tools.iter();
    args.own.replay.is_none() && sources.any(|source| toolbox::names_servers(source))
}

/// The location of a run's log.
enum LogPlace {
    /// The path given with `--log`.
    Named(PathBuf),
    /// A conversation stored for `--continue`.
    Kept(KeptConversation),
    /// A file in the temporary folder.
    Temporary(PathBuf),
}

impl LogPlace {
    fn new(
        args: &Args,
        mode: Mode,
        continued: Option<KeptConversation>,
        folder: &TemporaryFolder,
    ) -> LogPlace {
        if let Some(continued) = continued {
            return LogPlace::Kept(continued);
        }
        if let Some(log) = &args.own.log {
            let looks_like_option = log.as_os_str().as_encoded_bytes().starts_with(b"-");
            return LogPlace::Named(match looks_like_option {
                true => Path::new(".").join(log),
                false => log.clone(),
            });
        }
        if is_kept(args) && mode != Mode::Served {
            match Conversations::open().and_then(|all| all.begin(&args.kept())) {
                Ok(begun) => return LogPlace::Kept(begun),
                Err(e) => {
                    let text = format!("this conversation is not kept for --continue: {e:#}");
                    stdio::message("react", &text);
                }
            }
        }
        LogPlace::Temporary(folder.path().join("log.ndjson"))
    }

    /// Returns the name for `--continue`; `None` for a log that is not stored for it.
    fn conversation(&self) -> Option<&str> {
        match self {
            LogPlace::Kept(kept) => Some(kept.name()),
            LogPlace::Named(_) | LogPlace::Temporary(_) => None,
        }
    }

    /// Opens the log. A continued conversation gets the options of this run.
    ///
    /// # Errors
    /// Fails if [`Log::open`] fails, or if the log is the recording that is being replayed.
    fn open(&self, args: &Args) -> anyhow::Result<Log> {
        let path = match self {
            LogPlace::Named(path) | LogPlace::Temporary(path) => path.clone(),
            LogPlace::Kept(kept) => kept.log(),
        };
        let is_log = |file: &PathBuf| FileId::at(file) == FileId::at(&path) && path.exists();
        if args.own.replay.as_ref().is_some_and(is_log) {
            bail!(
                "--log and --replay name the same file, so the recording would grow: \
                 name another --log, or none"
            );
        }
        let log = Log::open(&path)?;
        if let LogPlace::Kept(kept) = self
            && args.own.continued.is_some()
            && let Err(e) = kept.keep_options(&args.kept())
        {
            let text = format!("the options are not kept for --continue: {e:#}");
            stdio::message("react", &text);
        }
        Ok(log)
    }
}

fn exit_status(status: i32) -> Status {
    match status {
        0 => Status::Done,
        1 => Status::No,
        3 => Status::Undecided,
        130 | 143 => Status::Signal(status - 128),
        _ => Status::Error,
    }
}

/// Rejects a pipe for an option whose file several processes read: the first process would leave
/// nothing for the others.
pub(crate) fn refuse_pipes(args: &Args) -> anyhow::Result<()> {
    let is_pipe = |path: &Path| path.metadata().is_ok_and(|meta| meta.file_type().is_fifo());
    match args.shared_files().find(|(_, path)| is_pipe(path)) {
        Some((option, path)) => bail!(
            "--{option} {}: write it to a file, since a pipe can be read only once, \
             and several stages read it",
            path.display()
        ),
        None => Ok(()),
    }
}

/// The question of a run.
struct Question {
    /// The arguments for `llm-stream`; empty without a question.
    words: Vec<OsString>,
    /// Whether text from standard input belongs to the question.
    has_text: bool,
}

impl Question {
    /// Combines the typed question with the text from standard input. The text is stored in a file
    /// in `folder`, because it may be longer than an argument can be.
    fn new(args: &Args, text: Option<&str>, folder: &Path) -> anyhow::Result<Question> {
        let file = text.map(|text| {
            let file = folder.join("standard-input");
            std::fs::write(&file, text).with_context(|| file.display().to_string())?;
            anyhow::Ok(file)
        });
        let file = file.transpose()?;
        Ok(Question {
            words: Question::words(args, file.as_deref()),
            has_text: file.is_some(),
        })
    }

    fn words(args: &Args, text: Option<&Path>) -> Vec<OsString> {
        let text = text.map(|file| ["--text".as_ref(), file.as_os_str()]);
        let question = args.question().into_iter().map(OsStr::new);
        let ends_options = args.question().filter(|text| text.starts_with('-'));
        let text = text.into_iter().flatten();
        let files = args.own.attach.iter();
        let files = files.flat_map(|file| ["--attach".as_ref(), file.as_os_str()]);
        text.chain(files)
            .chain(ends_options.map(|_| "--".as_ref()))
            .chain(question)
            .map(OsStr::to_owned)
            .collect()
    }
}

/// Whether this run is a chat: there is no question, and a user is at a terminal. If a `--log` has
/// events, or a call is approved or denied, the run finishes that work and ends.
fn is_chat(args: &Args) -> bool {
    args.question().is_none()
        && args.decisions().is_empty()
        && !args.own.print_pipeline
        && (!has_log(args) || args.own.continued.is_some())
        && io::stdin().is_terminal()
        && io::stdout().is_terminal()
}

/// Whether conversations are stored for `--continue`.
fn is_kept(args: &Args) -> bool {
    let is_off = args.own.no_keep || args.own.replay.is_some();
    !is_off && std::env::var_os("TOOLPIPE_KEEP").is_none_or(|value| value != "0")
}

/// Starts the tool servers once for all turns: a hub starts them and runs this command again, which
/// then finds the hub in its environment.
pub(crate) fn under_hub(args: &Args) -> anyhow::Result<Status> {
    let mut command = hub(args).process()?;
    command
        .arg("--")
        .args(::args::program::again("react"))
        .args(std::env::args_os().skip(1));
    Err(command.exec()).with_context(|| format!("{EXEC} cannot be started"))
}

fn hub(args: &Args) -> Stage {
    Stage::new(EXEC, ["--hub"])
        .and(args.of_name(&["trust", "sandbox"]))
        .and(tools_options(&args.own.tools))
}

/// Returns the options that name these tool sources.
fn tools_options(sources: &[PathBuf]) -> impl Iterator<Item = &OsStr> {
    sources
        .iter()
        .flat_map(|source| ["--tools".as_ref(), source.as_os_str()])
}

/// Returns the command that lists the tools, including those of servers.
fn list(args: &Args) -> Stage {
    let mut list = hub(args);
    list.arguments[0] = "--list".into();
    list
}

/// Returns this command as a user types it: its name, if PATH leads to this program.
fn own_name() -> String {
    let program = std::env::current_exe()
        .ok()
        .and_then(|file| FileId::at(&file));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let first = std::env::split_paths(&path)
        .map(|folder| folder.join("react"))
        .find(|file| file.is_file());
    if program.is_some() && first.and_then(|file| FileId::at(&file)) == program {
        return "react".to_owned();
    }
    let words = ::args::program::again("react");
    let words: Vec<_> = words
        .iter()
        .map(|word| shell_word(&word.to_string_lossy()).into_owned())
        .collect();
    words.join(" ")
}

/// The tools of a run.
#[derive(Default)]
pub(crate) struct Tools {
    /// The sources of the tools; empty if a recording has the tools.
    sources: Vec<PathBuf>,
    /// The sources offered to the model; empty if it gets no tools.
    offered: Vec<PathBuf>,
}

impl Tools {
    /// Finds the tools, and asks servers for theirs.
    pub(crate) fn new(args: &Args, folder: &TemporaryFolder) -> anyhow::Result<Tools> {
        let sources = args.own.tools.clone();
        let is_recorded = args.own.replay.is_some();
        if is_recorded && sources.iter().all(|source| toolbox::names_servers(source)) {
            return Ok(Tools::default());
        }
        if sources.is_empty() {
            let none = folder.path().join("none.json");
            std::fs::write(&none, "[]\n").with_context(|| none.display().to_string())?;
            return Ok(Tools {
                sources: vec![none],
                offered: Vec::new(),
            });
        }
        if !needs_servers(args) {
            return Ok(Tools {
                offered: sources.clone(),
                sources,
            });
        }
        let listed = folder.path().join("tools.json");
        let out = File::create(&listed).with_context(|| listed.display().to_string())?;
        if !list(args).process()?.stdout(out).status()?.success() {
            return Err(Reported.into());
        }
        Ok(Tools {
            sources,
            offered: vec![listed],
        })
    }
}

/// Opens /dev/null for reading and writing.
fn null() -> anyhow::Result<OwnedFd> {
    let opened = File::options().read(true).write(true).open("/dev/null");
    Ok(opened.context("/dev/null")?.into())
}

/// Returns a copy of this process's standard output.
fn inherited() -> anyhow::Result<OwnedFd> {
    let cloned = io::stdout().as_fd().try_clone_to_owned();
    cloned.context("standard output cannot be used twice")
}

/// Builds the stages of a run.
pub(crate) struct Stages<'a> {
    args: &'a Args,
    tools: &'a Tools,
    log: &'a Path,
    continued: &'a str,
    /// The name for `--continue`; `None` if the log is not stored for it.
    conversation: Option<&'a str>,
    mode: Mode,
}

impl<'a> Stages<'a> {
    /// Creates the stages of a run with one question.
    pub(crate) fn new(
        args: &'a Args,
        tools: &'a Tools,
        log: &'a Path,
        continued: &'a str,
    ) -> Stages<'a> {
        Stages {
            args,
            tools,
            log,
            continued,
            conversation: None,
            mode: Mode::Once,
        }
    }

    /// Returns the pipeline that gets the answers to all lines of `--each`, `jobs` at once.
    pub(crate) fn each(&self, jobs: usize) -> Pipeline {
        let ask = self.ask(["--each".to_owned(), "--jobs".to_owned(), jobs.to_string()]);
        let parse = self.part(PARSE, self.args.of_stage(PARSE));
        let merge = self.part(MERGE, self.args.of_stage(MERGE));
        Pipeline(vec![ask, parse, merge])
    }

    /// Returns the pipeline that gets one answer from the model and runs its calls. `llm-stream`
    /// reads the log to its end before anything is appended. `tag-parse` parses calls in the text,
    /// and forwards streams with native calls. `--keep-deltas` lets the view show arguments while
    /// the model writes them. `tool-exec` appends every event to the log, even if the view has
    /// ended, and runs a call only if the log contains its start.
    fn turn(&self, question: &[OsString]) -> Pipeline {
        let ask = self
            .ask(self.args.recording("--tape"))
            .and(question.iter().cloned());
        let parse = self.part(PARSE, self.args.of_stage(PARSE));
        let merge = self
            .part(MERGE, self.args.of_stage(MERGE))
            .and(["--keep-deltas"]);
        // A recording already contains the output of tag-parse; parsing its text again could find
        // calls in it.
        let parse = Some(parse).filter(|_| self.args.own.replay.is_none());
        let stages = [Some(ask), parse, Some(merge), Some(self.calls())];
        Pipeline(stages.into_iter().flatten().collect())
    }

    /// Returns the stage that asks the model, with `more` options.
    fn ask<W: Into<OsString>>(&self, more: impl IntoIterator<Item = W>) -> Stage {
        let steps = [
            "--max-steps".to_owned(),
            self.args.own.max_steps.to_string(),
        ];
        self.part(ASK, tools_options(&self.tools.offered))
            .and(steps)
            .and(more)
            .and(self.args.of_stage(ASK))
    }

    /// Returns a stage that may run as a thread of this process. Stages of `tool-exec` may not,
    /// because it starts processes, and has threads that end with its process.
    fn part<W: Into<OsString>>(
        &self,
        command: &'static str,
        arguments: impl IntoIterator<Item = W>,
    ) -> Stage {
        let stage = Stage::new(command, arguments);
        match self.args.own.stages {
            StageKind::Threads => stage.in_thread(),
            StageKind::Processes => stage,
        }
    }

    /// Returns the stage that runs the calls of a turn.
    pub(crate) fn calls(&self) -> Stage {
        let stage = Stage::new(EXEC, tools_options(&self.tools.sources))
            .and(["--log".as_ref(), self.log.as_os_str()])
            .and(self.args.recording("--replay"))
            .and(self.args.of_stage(EXEC));
        if self.continued.is_empty() {
            return stage;
        }
        stage.and(["--continue-with", self.continued])
    }

    /// Returns the stage that runs the calls without a result in the log, because a stage was
    /// stopped or they needed approval. No call runs twice.
    fn resume(&self) -> Stage {
        self.calls().and(self.args.decisions())
    }

    fn view(&self) -> Stage {
        let stage = self
            .part(VIEW, self.args.of_stage(VIEW))
            .and(["--ignore-interrupts"]);
        let form = form(self.args);
        let default = form.filter(|_| self.args.form().is_none());
        // The questions of a chat are already on the terminal.
        let typed = (self.mode == Mode::Chat).then_some("--no-questions");
        let name = self.conversation.filter(|_| form == Some(JSON));
        let name = name.into_iter().flat_map(|name| ["--conversation", name]);
        stage
            .and(default.into_iter().flat_map(|form| ["--format", form]))
            .and(name)
            .and(typed)
    }
}

/// Returns the form of the output; `None` for the conversation on a terminal. A program gets the
/// answer alone.
fn form(args: &Args) -> Option<&str> {
    let is_read_by_program = !io::stdout().is_terminal();
    args.form().or(is_read_by_program.then_some(ANSWER))
}

/// A run with its open log.
struct Run<'a> {
    args: &'a Args,
    tools: Tools,
    log: Log,
    /// The name for `--continue`; `None` if the log is not stored for it.
    conversation: Option<&'a str>,
    running: Running,
    question: Question,
    mode: Mode,
    /// The schema that the answer must match; `None` without `--schema`.
    answer_form: Option<AnswerForm>,
    /// A description of the stage that a signal killed; `None` if none was killed.
    killed: Option<String>,
}

impl Run<'_> {
    /// Answers, with events, the request on standard input, whose last message is the question.
    fn served(&mut self) -> anyhow::Result<i32> {
        let name = || format!("{}: the request cannot be kept", self.log.file.display());
        let mut file = File::options()
            .append(true)
            .open(&self.log.file)
            .with_context(name)?;
        io::copy(&mut io::stdin().lock(), &mut file).with_context(name)?;
        let status = self.turns("", &mut inherited, &mut || false)?;
        Ok(if status == 1 { 0 } else { status })
    }

    /// Runs the loop, shows it, and reports how to continue if it stopped.
    fn shown(&mut self) -> anyhow::Result<i32> {
        self.check_view()?;
        let name = own_name();
        let continued = self.command(&name, &[], false);
        let (status, view) = if self.answer_form.is_some() && form(self.args) == Some(ANSWER) {
            self.show_fitting(&continued)?
        } else {
            let (input, view) = self.start_view(None)?;
            self.show(&continued, input, view)?
        };
        // If the loop ended normally, the status of the view counts, because the view may have
        // failed.
        let status = if status > 1 { status } else { view };
        let compared = self.compare()?;
        if status == 0 {
            return Ok(compared);
        }
        if !self.log.is_empty() {
            self.suggest_next(&name, status)?;
        }
        Ok(status)
    }

    /// Reports the commands that continue a run stopped with this status.
    fn suggest_next(&self, name: &str, status: i32) -> anyhow::Result<()> {
        let is_unasked = !self.log.has_question();
        if status != i32::from(Status::Undecided.code()) {
            let stopped = format!("stopped with status {status}");
            let what = self.killed.as_ref().unwrap_or(&stopped);
            let next = self.command(name, &[], is_unasked);
            stdio::message("react", &format!("{what}, go on with: {next}"));
            return Ok(());
        }
        let waiting = self.waiting()?;
        let with = |option: &str| {
            let words = waiting
                .iter()
                .flat_map(|id| [option.to_owned(), id.clone()]);
            self.command(name, &words.collect::<Vec<_>>(), is_unasked)
        };
        let (deny, approve) = (with("--deny-call"), with("--approve-call"));
        let refuse = format!("a call needs approval; refuse it with: {deny}");
        stdio::message("react", &refuse);
        stdio::message("react", &format!("or run it with: {approve}"));
        Ok(())
    }

    /// Answers one question after another until the user ends the chat.
    fn chat(&mut self) -> anyhow::Result<i32> {
        self.check_view()?;
        let log = self.log.read()?;
        let files = std::mem::take(&mut self.question.words);
        if !log.is_empty() {
            self.answer()?;
        }
        self.question.words = files;
        let history = conversations::questions(&log);
        let prompt = Prompt::new(&self.running, history)?;
        stdio::message("react", "Ctrl-C ends an answer, Ctrl-D the chat");
        loop {
            match prompt.line() {
                Typed::Question(text) => {
                    let ends_options = text.starts_with('-').then(|| "--".into());
                    // The attached files from the command line belong to the first question.
                    let words = ends_options.into_iter().chain([text.into()]);
                    self.question.words.extend(words);
                    self.answer()?;
                }
                Typed::End => return Ok(0),
                Typed::Ended => return Ok(128 + Signal::TERM.as_raw()),
            }
        }
    }

    /// Answers a question in a chat. The view reports failures; Ctrl-C ends the answer.
    fn answer(&mut self) -> anyhow::Result<()> {
        let (input, view) = self.start_view(None)?;
        self.show(&self.command(&own_name(), &[], false), input, view)?;
        self.running.forget_interrupt();
        Ok(())
    }

    /// Compares the log with the expected log, and writes the differences to standard error.
    /// Returns 1 if they differ.
    fn compare(&self) -> anyhow::Result<i32> {
        let Some(expected) = &self.args.own.expect else {
            return Ok(0);
        };
        let compare = Stage::new(EVAL, ["diff", "--all", "--"]).and([expected, &self.log.file]);
        let compared = compare
            .process()?
            .stdin(Stdio::null())
            .stdout(io::stderr())
            .status()
            .context("tc-eval cannot be started")?;
        Ok(compared.code().unwrap_or(2))
    }

    /// Fails before anything runs if the view does not accept its options.
    fn check_view(&self) -> anyhow::Result<()> {
        let typed = self.args.of_stage(VIEW);
        if typed.is_empty() {
            return Ok(());
        }
        let check = self.stages("").part(VIEW, typed);
        let mut check = start(&check, &self.running, null()?, Some(null()?))?;
        match check.wait(&self.running)?.code() {
            0 => Ok(()),
            _ => Err(Reported.into()),
        }
    }

    /// Starts the view. If `output` is `None`, it writes to the standard output of react.
    fn start_view(&self, output: Option<OwnedFd>) -> anyhow::Result<(PipeWriter, StartedStage)> {
        let (read, write) = io::pipe().context("a pipe cannot be made")?;
        let view = self.stages("").view();
        Ok((write, start(&view, &self.running, read.into(), output)?))
    }

    /// Runs the loop with a view. Returns the exit statuses of the loop and of the view.
    fn show(
        &mut self,
        continued: &str,
        input: PipeWriter,
        mut view: StartedStage,
    ) -> anyhow::Result<(i32, i32)> {
        let status = {
            let mut output = || {
                let output = input.try_clone().context("a pipe cannot be used twice")?;
                Ok(OwnedFd::from(output))
            };
            self.turns(continued, &mut output, &mut || view.has_ended())
        };
        drop(input);
        let view = view
            .wait(&self.running)
            .context("tc-view cannot be waited for")?;
        self.note(&[view]);
        Ok((status?, view.code()))
    }

    fn stages<'s>(&'s self, continued: &'s str) -> Stages<'s> {
        Stages {
            args: self.args,
            tools: &self.tools,
            log: &self.log.file,
            continued,
            conversation: self.conversation,
            mode: self.mode,
        }
    }

    /// Runs the loop. Returns 0 if the view has ended, 1 if there is an answer, otherwise the
    /// status that stopped it.
    fn turns(
        &mut self,
        continued: &str,
        output: &mut dyn FnMut() -> anyhow::Result<OwnedFd>,
        has_no_reader: &mut dyn FnMut() -> bool,
    ) -> anyhow::Result<i32> {
        let mut status = self.resume(continued, output)?;
        // The model is asked if calls got results or if there is a new question. In a chat the next
        // question may not be typed yet.
        let has_question = self.mode != Mode::Chat || !self.question.words.is_empty();
        let mut goes_on = status == 0 || (status == 1 && has_question);
        while goes_on && !has_no_reader() {
            let question = std::mem::take(&mut self.question.words);
            let turn = self.stages(continued).turn(&question);
            let input = self.log.input()?.into();
            let ended = turn.run(&self.running, input, output()?)?;
            self.note(&ended);
            let replays = self.mode == Mode::Replay;
            if replays && ended.first().is_some_and(|ask| ask.code() == 1) {
                break; // the recording has ended
            }
            status = self.status(&ended);
            if status == 3 && self.args.own.replay.is_some() {
                // The recording may also contain later decisions about these calls.
                status = self.resume(continued, output)?;
            }
            goes_on = status == 0 || (replays && status == 1);
            if status == 1
                && !replays
                && let Some(answer) = &mut self.answer_form
            {
                let text = conversations::last_answer(&self.log.read()?);
                match answer.check(&text) {
                    AnswerCheck::Fits => {}
                    AnswerCheck::Again(question) => {
                        self.question.words = vec![question.into()];
                        goes_on = true;
                    }
                    AnswerCheck::Never(why) => {
                        stdio::message("react", &why);
                        status = 2;
                    }
                }
            }
        }
        Ok(status)
    }

    /// Runs the calls that have no result in the log; returns the exit status.
    fn resume(
        &mut self,
        continued: &str,
        output: &mut dyn FnMut() -> anyhow::Result<OwnedFd>,
    ) -> anyhow::Result<i32> {
        let resume = Pipeline(vec![self.stages(continued).resume()]);
        let ended = resume.run(&self.running, null()?, output()?)?;
        self.note(&ended);
        Ok(self.status(&ended))
    }

    /// Runs the loop, then prints the answer if it fits the schema, without a Markdown fence.
    fn show_fitting(&mut self, continued: &str) -> anyhow::Result<(i32, i32)> {
        let cannot = "the answer cannot be kept in memory";
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let mut kept = File::from(rustix::fs::memfd_create("answer", flags).context(cannot)?);
        let output = kept.try_clone().context(cannot)?;
        let (input, view) = self.start_view(Some(output.into()))?;
        let (status, view) = self.show(continued, input, view)?;
        if status == 1 {
            let mut text = String::new();
            kept.rewind().context(cannot)?;
            kept.read_to_string(&mut text).context(cannot)?;
            let mut out = stdio::Output::new();
            out.put(structured::bare(&text).as_bytes())?;
            out.put(b"\n")?;
            out.flush()?;
        }
        Ok((status, view))
    }

    /// Returns the exit status of the run. It is that of `tool-exec`, the last stage, unless
    /// another stage failed or was stopped, or a signal reached only react.
    fn status(&self, ended: &[StageEnd]) -> i32 {
        let codes: Vec<i32> = ended.iter().map(|end| end.code()).collect();
        let (last, others) = codes.split_last().unwrap_or((&2, &[]));
        let failed = others.iter().find(|code| **code != 0);
        match (failed, self.running.signal()) {
            (Some(code @ (130 | 143)), _) => *code,
            (_, Some(signal)) => 128 + signal,
            (Some(_), None) => 2,
            (None, None) => *last,
        }
    }

    fn note(&mut self, ended: &[StageEnd]) {
        let killed = ended.iter().find_map(|end| end.killed());
        self.killed = self.killed.take().or(killed);
    }

    /// Returns the ids of the calls that need approval, for `--approve-call` and `--deny-call`.
    fn waiting(&self) -> anyhow::Result<Vec<String>> {
        let resume: [&OsStr; 3] = [
            "--resume".as_ref(),
            self.log.file.as_os_str(),
            "--list-pending".as_ref(),
        ];
        let mut list = Stage::new(EXEC, tools_options(&self.tools.sources))
            .and(self.args.recording("--replay"))
            .and(resume)
            .and(self.args.of_stage(EXEC))
            .process()?;
        let listed = list
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()?;
        let text = String::from_utf8_lossy(&listed.stdout);
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Returns the command that continues from the log with `options` and those of this run, and
    /// with the question if it was not asked yet.
    fn command(&self, name: &str, options: &[String], is_unasked: bool) -> String {
        let log: [OsString; 2] = ["--log".into(), self.log.name.clone().into()];
        let question = self.args.question().filter(|_| is_unasked);
        let question = question.into_iter().flat_map(|text| ["--question", text]);
        let files = self.args.own.attach.iter().filter(|_| is_unasked);
        let files = files.flat_map(|file| ["--attach".as_ref(), file.as_os_str()]);
        let words = log
            .into_iter()
            .chain(options.iter().map(Into::into))
            .chain(question.map(Into::into))
            .chain(files.map(Into::into))
            .chain(self.args.again().cloned());
        let words: Vec<String> = words
            .map(|word| shell_word(&word.to_string_lossy()).into_owned())
            .collect();
        let input = if is_unasked && self.question.has_text {
            " # with the same standard input"
        } else {
            ""
        };
        format!("{name} {}{input}", words.join(" "))
    }
}

/// Prints the loop as a bash command line.
fn print(args: &Args, is_given: bool) -> anyhow::Result<Status> {
    let mut before = String::from("set -o pipefail; ");
    // These placeholders stand for files that do not exist yet, and need no quotes in a shell.
    let mut files = Vec::new();
    let mut temporary = |name: &'static str, make: &str| {
        before.push_str(&format!("{name}=$(mktemp){make}; "));
        files.push(name);
        PathBuf::from(format!("/dev/null/{name}"))
    };
    let log = match &args.own.log {
        Some(log) => log.clone(),
        None => temporary("log", ""),
    };
    let sources = &args.own.tools;
    let tools = if sources.is_empty() && args.own.replay.is_some() {
        Tools::default()
    } else if sources.is_empty() {
        Tools {
            sources: vec![temporary("tools", " && echo '[]' >\"$tools\"")],
            offered: Vec::new(),
        }
    } else if needs_servers(args) {
        let make = format!(" && {} >\"$tools\"", list(args));
        Tools {
            sources: sources.clone(),
            offered: vec![temporary("tools", &make)],
        }
    } else {
        Tools {
            sources: sources.clone(),
            offered: sources.clone(),
        }
    };
    let stages = Stages {
        args,
        tools: &tools,
        log: &log,
        continued: "",
        conversation: None,
        mode: Mode::Once,
    };
    let takes_log = is_given && args.takes_log();
    let text = (is_given && !takes_log).then(|| temporary("text", " && cat >\"$text\""));
    let question: String = Question::words(args, text.as_deref())
        .iter()
        .map(|word| format!(" {}", shell_word(&word.to_string_lossy())))
        .collect();
    let log = shell_word(&log.to_string_lossy()).into_owned();
    let begin = if takes_log { "cat" } else { ":" };
    let [ask, others @ ..] = &*stages.turn(&[]).0 else {
        bail!("the pipeline has no stage");
    };
    let mut line = format!(
        "{before}{begin} >>{log}; set --{question}; {{ {} </dev/null; [ $? -le 1 ] && while {ask} \"$@\" \
         <{log} | {}; do set --; done; }} | {}",
        stages.resume(),
        Pipeline(others.to_vec()),
        stages.view()
    );
    for name in files {
        line = line.replace(&format!("/dev/null/{name}"), &format!("\"${name}\""));
    }
    if needs_servers(args) {
        line = format!("{} -- bash -c {}", hub(args), shell_word(&line));
    }
    let mut out = stdio::Output::new();
    out.put(line.as_bytes())?;
    out.put(b"\n")?;
    out.flush()?;
    Ok(Status::Done)
}
