//! A run: the turns of the loop until the model answers without a call.

use crate::args::Args;
use crate::chat::{Prompt, Typed};
use crate::conversations::{self, Conversations};
use crate::folder::TemporaryFolder;
use crate::input;
use crate::log::Log;
use crate::options::{ASK, EXEC, MERGE, PARSE, VIEW};
use crate::pipeline::{Pipeline, Stage, StageEnd, StartedStage, find, start};
use crate::signals::Running;
use crate::structured::{self, AnswerCheck, AnswerForm};
use anyhow::{Context, bail};
use event::shell_word;
use rustix::process::Signal;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IsTerminal, PipeWriter};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use stdio::Status;
use store::FileId;

/// The command that compares two logs.
const EVAL: &str = "tc-eval";

/// The variable in which a hub of servers of tools names its socket.
const HUB: &str = "TOOLPIPE_HUB";

/// The variable that `tc-serve` sets for the command that answers a request.
const REQUEST: &str = "TOOLPIPE_REQUEST_ID";

const NO_QUESTION: &str =
    "there is no question, give one, or a --log that holds one (a chat needs a terminal)";

/// A stage has failed, and has written the reason on standard error.
#[derive(Debug)]
pub(crate) struct Reported;

impl std::fmt::Display for Reported {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("a stage has failed")
    }
}

impl std::error::Error for Reported {}

/// Runs the loop, or prints its pipeline.
pub(crate) fn run(mut args: Args) -> anyhow::Result<Status> {
    if args.own.list {
        return Conversations::open()?.list();
    }
    let mut kept = None;
    if let Some(name) = &args.own.continued {
        let found = Conversations::open()?.find(name.as_deref())?;
        args = args.after(&found.options())?;
        args.own.log = Some(found.log());
        kept = Some(found);
    }
    let args = &args;
    refuse_pipes(args)?;
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_served = is_set(REQUEST) && args.question().is_none();
    if is_served && args.own.log.is_some() {
        bail!("tc-serve has the whole conversation in each request, so leave --log out");
    }
    let has_log = |log: &PathBuf| log.metadata().is_ok_and(|meta| meta.len() > 0);
    let replays = args.own.replay.is_some();
    let holds_log = args.own.log.as_ref().is_some_and(has_log);
    let is_chat = is_chat(args, holds_log) && !is_served && !replays;
    let is_asked = args.question().is_some()
        || !args.own.attach.is_empty()
        || is_served
        || holds_log
        || is_chat
        || replays;
    let may_have_text = !is_served && !replays && input::may_hold_text();
    if !is_asked && !may_have_text {
        bail!(NO_QUESTION);
    }
    if let Some(expected) = &args.own.expect {
        find(EVAL)?;
        let name = || format!("{}: check the path and its permissions", expected.display());
        File::open(expected).with_context(name)?;
    }
    let has_servers = args
        .own
        .tools
        .iter()
        .any(|source| toolbox::names_servers(source));
    // The recording has the tools of servers, which need not be there.
    let has_servers = has_servers && !replays;
    if args.own.print_pipeline {
        return print(args, has_servers, may_have_text);
    }
    for stage in crate::options::STAGES {
        find(stage)?;
    }
    if has_servers && !is_set(HUB) {
        return under_hub(args);
    }
    ::args::warn_of_old_name("react", "--approve", "--ask");
    let text = may_have_text.then(|| input::text(args)).transpose()?;
    let text = text.flatten();
    if !is_asked && text.is_none() {
        bail!(NO_QUESTION);
    }
    let folder = TemporaryFolder::new()?;
    let tools = Tools::new(args, has_servers, &folder)?;
    let log = match &args.own.log {
        // Not an option of the stages that it is an operand of.
        Some(log) if log.as_os_str().as_encoded_bytes().starts_with(b"-") => {
            Path::new(".").join(log)
        }
        Some(log) => log.clone(),
        None if is_kept(args) && !is_served => {
            let begun = Conversations::open().and_then(|all| all.begin(&args.kept()));
            match begun {
                Ok(begun) => {
                    let log = begun.log();
                    kept = Some(begun);
                    log
                }
                Err(e) => {
                    let text = format!("this conversation is not kept for --continue: {e:#}");
                    stdio::message("react", &text);
                    folder.path().join("log.ndjson")
                }
            }
        }
        None => folder.path().join("log.ndjson"),
    };
    let is_log = |recording: &PathBuf| FileId::at(recording) == FileId::at(&log) && log.exists();
    if args.own.replay.as_ref().is_some_and(is_log) {
        bail!(
            "--log and --replay name the same file, so the recording would grow: name another --log, or none"
        );
    }
    let log = Log::open(&log)?;
    if let Some(kept) = kept.as_ref().filter(|_| args.own.continued.is_some())
        && let Err(e) = kept.keep_options(&args.kept())
    {
        let text = format!("the options are not kept for --continue: {e:#}");
        stdio::message("react", &text);
    }
    let mut run = Run {
        args,
        tools,
        log,
        running: Running::take_signals()?,
        question: Question::new(args, text.as_deref(), folder.path())?,
        is_chat,
        answer_form: args.schema().map(AnswerForm::new).transpose()?,
        killed: None,
    };
    let status = if is_served {
        run.served()?
    } else if is_chat {
        run.chat()?
    } else {
        run.shown()?
    };
    // A log that goes on is kept.
    if status != 0 && !is_served && kept.is_none() && args.own.log.is_none() && !run.log.is_empty()
    {
        std::mem::forget(folder);
    }
    Ok(match status {
        0 => Status::Done,
        1 => Status::No,
        3 => Status::Undecided,
        130 | 143 => Status::Signal(status - 128),
        _ => Status::Error,
    })
}

/// Checks the files that more than one process reads.
///
/// # Errors
/// When one of the files is a pipe: the first process would leave nothing to the others.
fn refuse_pipes(args: &Args) -> anyhow::Result<()> {
    let is_pipe = |path: &Path| path.metadata().is_ok_and(|meta| meta.file_type().is_fifo());
    match args.shared_files().find(|(_, path)| is_pipe(path)) {
        Some((option, path)) => bail!(
            "--{option} {}: write it to a file, since a pipe can be read only once, and several stages read it",
            path.display()
        ),
        None => Ok(()),
    }
}

/// The question of a run.
struct Question {
    /// Its words for `llm-stream`: none if there is none.
    words: Vec<OsString>,
    /// Whether text on standard input belongs to it.
    has_text: bool,
}

impl Question {
    /// What was typed and what standard input held, which goes into a file of the folder: it may be
    /// longer than an argument.
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

/// Whether there is a chat: nothing is asked, and a person sits at a terminal. A log that holds
/// something is finished and left, as is a call that a person decided about.
fn is_chat(args: &Args, holds_log: bool) -> bool {
    args.question().is_none()
        && args.decisions().is_empty()
        && !args.own.print_pipeline
        && (!holds_log || args.own.continued.is_some())
        && io::stdin().is_terminal()
        && io::stdout().is_terminal()
}

/// Whether conversations are kept for `--continue`.
fn is_kept(args: &Args) -> bool {
    let is_off = args.own.no_keep || args.own.replay.is_some();
    !is_off && std::env::var_os("TOOLPIPE_KEEP").is_none_or(|value| value != "0")
}

/// Servers of tools are started once for all turns: a hub starts them, and runs this command again,
/// which finds the hub in its environment.
fn under_hub(args: &Args) -> anyhow::Result<Status> {
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

/// The options that name these sources of tools.
fn tools_options(sources: &[PathBuf]) -> impl Iterator<Item = &OsStr> {
    sources
        .iter()
        .flat_map(|source| ["--tools".as_ref(), source.as_os_str()])
}

/// The command that lists the tools, with those of servers.
fn list(args: &Args) -> Stage {
    let mut list = hub(args);
    list.arguments[0] = "--list".into();
    list
}

/// This command as a person types it: by its name, if the PATH leads to this program.
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
struct Tools {
    /// What the tools are read from; nothing where a recording has the tools.
    sources: Vec<PathBuf>,
    /// What the model is offered, if anything.
    offered: Vec<PathBuf>,
}

impl Tools {
    fn new(args: &Args, has_servers: bool, folder: &TemporaryFolder) -> anyhow::Result<Tools> {
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
        if !has_servers {
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

/// The stages of a run.
struct Stages<'a> {
    args: &'a Args,
    tools: &'a Tools,
    log: &'a Path,
    continued: &'a str,
    is_chat: bool,
}

impl Stages<'_> {
    /// Gets one answer of the model and runs its calls. `llm-stream` reads the log to its end before
    /// anything is appended to it; `tag-parse` parses calls in the text and passes a stream with
    /// native calls; `--keep-deltas` lets people see arguments while the model writes them;
    /// `tool-exec` appends every event to the log, also when the view has ended, and runs no call
    /// whose start is not in it.
    fn turn(&self, question: &[OsString]) -> Pipeline {
        let steps = [
            "--max-steps".to_owned(),
            self.args.own.max_steps.to_string(),
        ];
        let ask = Stage::new(ASK, tools_options(&self.tools.offered))
            .and(steps)
            .and(self.args.recording("--tape"))
            .and(self.args.of_stage(ASK))
            .and(question.iter().cloned());
        let parse = Stage::new(PARSE, self.args.of_stage(PARSE));
        let merge = Stage::new(MERGE, self.args.of_stage(MERGE)).and(["--keep-deltas"]);
        // A recording has what tag-parse wrote, and text that is no call must not be read again.
        let parse = Some(parse).filter(|_| self.args.own.replay.is_none());
        let stages = [Some(ask), parse, Some(merge), Some(self.calls())];
        Pipeline(stages.into_iter().flatten().collect())
    }

    fn calls(&self) -> Stage {
        let stage = Stage::new(EXEC, tools_options(&self.tools.sources))
            .and(["--log".as_ref(), self.log.as_os_str()])
            .and(self.args.recording("--replay"))
            .and(self.args.of_stage(EXEC));
        if self.continued.is_empty() {
            return stage;
        }
        stage.and(["--continue-with", self.continued])
    }

    /// Runs the calls that have no result in the log, since a stage was stopped or a person had to
    /// decide. No call runs twice.
    fn resume(&self) -> Stage {
        self.calls().and(self.args.decisions())
    }

    fn view(&self) -> Stage {
        let stage = Stage::new(VIEW, self.args.of_stage(VIEW)).and(["--ignore-interrupts"]);
        // The questions of a chat are on the terminal already.
        let typed = self.is_chat.then_some("--no-questions");
        stage.and(typed)
    }
}

/// A run that has its log.
struct Run<'a> {
    args: &'a Args,
    tools: Tools,
    log: Log,
    running: Running,
    question: Question,
    /// Whether questions are typed at a prompt.
    is_chat: bool,
    /// What the answer has to fit.
    answer_form: Option<AnswerForm>,
    /// What a signal has killed that no stage takes.
    killed: Option<String>,
}

impl Run<'_> {
    /// Answers the request on standard input, of which the last message is the question, with
    /// events.
    fn served(&mut self) -> anyhow::Result<i32> {
        let name = || format!("{}: the request cannot be kept", self.log.file.display());
        let mut file = File::options()
            .append(true)
            .open(&self.log.file)
            .with_context(name)?;
        io::copy(&mut io::stdin().lock(), &mut file).with_context(name)?;
        let status = self.turns("", &mut || Ok(Stdio::inherit()), &mut || false)?;
        Ok(if status == 1 { 0 } else { status })
    }

    /// Runs the loop, shows it, and reports how to go on if it stopped.
    fn shown(&mut self) -> anyhow::Result<i32> {
        self.check_view()?;
        let name = own_name();
        let continued = self.command(&name, &[], false);
        let is_alone = self.answer_form.is_some()
            && !io::stdout().is_terminal()
            && self.args.of_name(&["view", "plain"]).is_empty();
        let (status, view) = if is_alone {
            self.show_answer(&continued)?
        } else {
            let (input, view) = self.start_view()?;
            self.show(&continued, input, view)?
        };
        // The loop has ended as it should; the view may have failed.
        let status = if status > 1 { status } else { view };
        let compared = self.compare()?;
        if status == 0 {
            return Ok(compared);
        }
        if status == 0 || self.log.is_empty() {
            return Ok(status);
        }
        let is_unasked = !self.log.has_question();
        if status == i32::from(Status::Undecided.code()) {
            let waiting = self.waiting()?;
            let with = |option: &str| {
                let words = waiting
                    .iter()
                    .flat_map(|id| [option.to_owned(), id.clone()]);
                self.command(&name, &words.collect::<Vec<_>>(), is_unasked)
            };
            stdio::message(
                "react",
                &format!(
                    "a call waits for approval; refuse it with: {}",
                    with("--deny-call")
                ),
            );
            stdio::message(
                "react",
                &format!("or run it with: {}", with("--approve-call")),
            );
        } else {
            let what = match &self.killed {
                Some(killed) => killed.clone(),
                None => format!("stopped with status {status}"),
            };
            stdio::message(
                "react",
                &format!(
                    "{what}, go on with: {}",
                    self.command(&name, &[], is_unasked)
                ),
            );
        }
        Ok(status)
    }

    /// Answers one question after the other until the person at the terminal ends it.
    fn chat(&mut self) -> anyhow::Result<i32> {
        self.check_view()?;
        let log = self.log.read();
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
                    // The files of the command line belong to the first question.
                    let words = ends_options.into_iter().chain([text.into()]);
                    self.question.words.extend(words);
                    self.answer()?;
                }
                Typed::End => return Ok(0),
                Typed::Ended => return Ok(128 + Signal::TERM.as_raw()),
            }
        }
    }

    /// Answers one question of a chat. The view reports failures; Ctrl-C ends the answer.
    fn answer(&mut self) -> anyhow::Result<()> {
        let (input, view) = self.start_view()?;
        self.show(&self.command(&own_name(), &[], false), input, view)?;
        self.running.forget_interrupt();
        Ok(())
    }

    /// Compares the log with the expected one, and writes the differences on standard error; 1: they
    /// differ.
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

    /// An unknown form is an error before anything runs.
    fn check_view(&self) -> anyhow::Result<()> {
        let typed = self.args.of_stage(VIEW);
        if typed.is_empty() {
            return Ok(());
        }
        let mut check = Stage::new(VIEW, typed).process()?;
        let checked = check.stdin(Stdio::null()).stdout(Stdio::null()).status()?;
        if checked.success() {
            Ok(())
        } else {
            Err(Reported.into())
        }
    }

    fn start_view(&self) -> anyhow::Result<(PipeWriter, StartedStage)> {
        let (read, write) = io::pipe().context("a pipe cannot be made")?;
        let view = self.stages("").view();
        Ok((write, start(&view, &self.running, read.into())?))
    }

    /// The statuses of the loop and of the view.
    fn show(
        &mut self,
        continued: &str,
        input: PipeWriter,
        mut view: StartedStage,
    ) -> anyhow::Result<(i32, i32)> {
        let status = {
            let mut output = || {
                let output = input.try_clone().context("a pipe cannot be used twice")?;
                Ok(Stdio::from(output))
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
            is_chat: self.is_chat,
        }
    }

    /// The loop. 0: the view has ended; 1: there is an answer; else the status that stopped it.
    fn turns(
        &mut self,
        continued: &str,
        output: &mut dyn FnMut() -> anyhow::Result<Stdio>,
        has_no_reader: &mut dyn FnMut() -> bool,
    ) -> anyhow::Result<i32> {
        let mut status = self.resume(continued, output)?;
        // After the results of waiting calls the model is asked, and for a question of its own.
        // In a chat the next question may not be typed yet.
        let has_question = !self.is_chat || !self.question.words.is_empty();
        let mut goes_on = status == 0 || (status == 1 && has_question);
        while goes_on && !has_no_reader() {
            let question = std::mem::take(&mut self.question.words);
            let turn = self.stages(continued).turn(&question);
            let input = self.log.input()?.into();
            let ended = turn.run(&self.running, input, output()?)?;
            self.note(&ended);
            let replays = self.args.replays_all();
            if replays && ended.first().is_some_and(|ask| ask.code() == 1) {
                break; // the recording has ended
            }
            status = self.status(&ended);
            if replays && status == 3 {
                // What a person answered later is in the recording, too.
                status = self.resume(continued, output)?;
            }
            goes_on = status == 0 || (replays && status == 1);
            if status == 1
                && !replays
                && let Some(answer) = &mut self.answer_form
            {
                let text = conversations::last_answer(&self.log.read());
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

    /// Runs the calls that have no result in the log; returns the status.
    fn resume(
        &mut self,
        continued: &str,
        output: &mut dyn FnMut() -> anyhow::Result<Stdio>,
    ) -> anyhow::Result<i32> {
        let resume = Pipeline(vec![self.stages(continued).resume()]);
        let ended = resume.run(&self.running, Stdio::null(), output()?)?;
        self.note(&ended);
        Ok(self.status(&ended))
    }

    /// The loop without a view, and then the answer alone, for a program that reads it.
    fn show_answer(&mut self, continued: &str) -> anyhow::Result<(i32, i32)> {
        // Each stage reports its errors, since nobody else reads them.
        let status = self.turns(continued, &mut || Ok(Stdio::null()), &mut || false)?;
        if status == 1 {
            let text = conversations::last_answer(&self.log.read());
            let mut out = stdio::Output::new();
            out.put(structured::bare(&text).as_bytes())?;
            out.put(b"\n")?;
            out.flush()?;
        }
        Ok((status, 0))
    }

    /// The status of `tool-exec`, the last stage, counts, unless another stage was stopped or failed,
    /// or a signal came that reached react alone.
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

    /// The calls that wait for a person, as the options name them.
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

    /// The command that goes on from the log: with these options, with the question if it is unasked,
    /// and with the options of this run.
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

/// Prints the loop as a line for bash.
fn print(args: &Args, has_servers: bool, has_text: bool) -> anyhow::Result<Status> {
    let mut before = String::from("set -o pipefail; ");
    // Words that a shell leaves as they are, and that stand for files which do not exist yet.
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
    } else if has_servers {
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
        is_chat: false,
    };
    let text = has_text.then(|| temporary("text", " && cat >\"$text\""));
    let question: String = Question::words(args, text.as_deref())
        .iter()
        .map(|word| format!(" {}", shell_word(&word.to_string_lossy())))
        .collect();
    let log = shell_word(&log.to_string_lossy()).into_owned();
    let [ask, others @ ..] = &*stages.turn(&[]).0 else {
        bail!("the pipeline has no stage");
    };
    let mut line = format!(
        "{before}: >>{log}; set --{question}; {{ {} </dev/null; [ $? -le 1 ] && while {ask} \"$@\" <{log} | {}; do set --; done; }} | {}",
        stages.resume(),
        Pipeline(others.to_vec()),
        stages.view()
    );
    for name in files {
        line = line.replace(&format!("/dev/null/{name}"), &format!("\"${name}\""));
    }
    if has_servers {
        line = format!("{} -- bash -c {}", hub(args), shell_word(&line));
    }
    let mut out = stdio::Output::new();
    out.put(line.as_bytes())?;
    out.put(b"\n")?;
    out.flush()?;
    Ok(Status::Done)
}
