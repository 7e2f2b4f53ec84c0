//! One call as a process: started, fed, read, and ended when its time or its room is used up.

use super::answer::{EndCause, answer};
use super::capture::{Capture, ProgressMark};
use super::scratch::HomeNames;
use super::{program, supervise};
use redact::Redactor;
use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::sync::{Notify, mpsc};
use tool::{Answer, Exec, Limits, ReadyCall, RequestedCall, Status};

/// How long a supervisor may take to end its command before it is given up.
const BACKSTOP: Duration = Duration::from_secs(5);
/// How much private memory a process may have, in bytes, unless its tool has a limit of its own.
const MEMORY: u64 = 4 << 30;
/// How many files a process may have open, likewise.
const FILES: u64 = 1024;
/// How many processes and threads may be added to those that the machine has already, likewise.
const PROCESSES: u64 = 1024;

/// Runs the calls of one tools file as commands.
#[derive(Debug)]
pub struct Runner {
    /// The folder of the tools file.
    folder: PathBuf,
    /// Names for the homes of commands.
    homes: RefCell<HomeNames>,
    /// How long a call may take, unless its tool has a limit of its own.
    timeout: Duration,
    /// How much it may write to each of its outputs in bytes, likewise.
    max_output: usize,
    /// Takes the secrets of this process out of all that a command writes.
    redactor: Redactor,
}

/// What a running call reports, under the key that the plan gave it.
#[derive(Debug)]
pub enum Report {
    /// The next piece of its output.
    Progress(u64, String),
    /// Its answer: the call has ended.
    Done(u64, Answer),
}

/// The means to end a running call.
#[derive(Debug, Default)]
pub struct Handle {
    stop: Notify,
    at_once: Cell<bool>,
    supervisor: Cell<Option<u32>>,
}

impl Handle {
    /// Ends the call, at once or after a grace; [`Report::Done`] still comes. A second call may leave out the grace.
    pub fn stop(&self, at_once: bool) {
        self.at_once.set(at_once);
        self.stop.notify_one();
    }

    /// Asks the supervisor of the call to end it, at once or after a grace, and waits for nothing.
    pub fn abandon(&self, at_once: bool) {
        if let Some(supervisor) = self.supervisor.get() {
            supervise::end(supervisor, at_once);
        }
    }
}

impl Runner {
    /// A runner of the commands of the tools file `tools`.
    pub fn new(tools: &Path, timeout: Duration, max_output: usize) -> Rc<Self> {
        let folder = tools.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let variables =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let redactor = Redactor::of_environment(variables);
        Rc::new(Runner { folder, homes: RefCell::new(HomeNames::new()), timeout, max_output, redactor })
    }

    /// The folder that a tool's commands run in.
    pub fn cwd(&self, exec: &Exec) -> PathBuf {
        match &exec.cwd {
            Some(cwd) => self.folder.join(cwd),
            None => std::env::current_dir().unwrap_or_else(|_| "/".into()),
        }
    }

    /// Runs a call to its end and returns its answer; `handle` ends it early. With `progress` its output is reported as it appears.
    pub async fn run(
        &self,
        call: &RequestedCall,
        ready: &ReadyCall,
        handle: &Handle,
        progress: Option<(u64, mpsc::Sender<Report>)>,
    ) -> Answer {
        let (Some(exec), Ok(arguments)) = (&ready.tool.exec, &call.arguments) else {
            return Answer::new(Status::Error, "The call has no command.");
        };
        let start = Instant::now();
        let answer = match self.spawn(exec, &ready.argv, arguments.text()) {
            Ok(child) => self.attend(child, exec, arguments.text(), handle, progress).await,
            Err(why) => Answer::new(Status::Error, format!("The command could not be started: {why}.")),
        };
        let output = self.redactor.text(&answer.output).into_owned();
        Answer { output, duration: Some(start.elapsed()), return_directly: exec.return_directly, ..answer }
    }

    fn spawn(&self, exec: &Exec, argv: &[String], arguments: &str) -> Result<Child, String> {
        let program = argv.first().ok_or("it is empty")?;
        let program = program::find(program, &self.folder)?;
        let cwd = self.cwd(exec);
        if !cwd.is_dir() {
            return Err(format!("the folder {} does not exist", cwd.display()));
        }
        let home = self.homes.borrow_mut().next().ok_or("it has no home")?;
        Command::new(own_program())
            .args(supervise::arguments(&self.limits(exec), &home, &program, argv))
            .env_clear()
            .envs(program::environment(&exec.env, &home, arguments))
            .current_dir(cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| match e.kind() {
                std::io::ErrorKind::ArgumentListTooLong => "its arguments are longer than the system takes".to_owned(),
                _ => e.to_string(),
            })
    }

    fn limits(&self, exec: &Exec) -> Limits {
        let given = exec.limits;
        let cores = std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1));
        Limits {
            // All cores at once for as long as the call may take: a process that outlives the timeout ends by this limit.
            cpu: given.cpu.or_else(|| exec.timeout.unwrap_or(self.timeout).checked_mul(cores)),
            memory: given.memory.or(Some(MEMORY)),
            files: given.files.or(Some(FILES)),
            processes: given.processes.or_else(|| Some(threads()? + PROCESSES)),
        }
    }

    /// Feeds and reads a command until it has ended.
    async fn attend(
        &self,
        mut child: Child,
        exec: &Exec,
        arguments: &str,
        handle: &Handle,
        progress: Option<(u64, mpsc::Sender<Report>)>,
    ) -> Answer {
        handle.supervisor.set(child.id());
        let timeout = exec.timeout.unwrap_or(self.timeout);
        let max = exec.max_output.unwrap_or(self.max_output);
        let (mut out, mut err) = (Capture::new(child.stdout.take(), max), Capture::new(child.stderr.take(), max));
        let mut shown = ProgressMark::default();
        // In a task of its own: a command that does not read its input must not keep this one from reading its output.
        let feed = child.stdin.take().map(|mut stdin| {
            let text = format!("{arguments}\n");
            tokio::task::spawn_local(async move {
                let _ = stdin.write_all(text.as_bytes()).await; // fails where the command closes its input, or ends
            })
        });
        let deadline = tokio::time::sleep(timeout);
        tokio::pin!(deadline);
        let (mut cause, mut status) = (None::<EndCause>, None);
        while status.is_none() || out.is_open() || err.is_open() {
            let end = tokio::select! {
                read = out.read(), if out.is_open() => {
                    if let Some((key, reports)) = &progress && let Some(text) = shown.more(&out, &self.redactor) {
                        let _ = reports.send(Report::Progress(*key, text)).await;
                    }
                    read.then_some(EndCause::Output)
                }
                read = err.read(), if err.is_open() => read.then_some(EndCause::Output),
                ended = child.wait(), if status.is_none() => {
                    status = Some(ended.ok());
                    handle.supervisor.set(None); // the system may give its number to another process
                    // Its descendants have ended with it. This is for those that cannot end: they are in the middle of a device's work.
                    deadline.as_mut().reset(tokio::time::Instant::now() + BACKSTOP);
                    None
                }
                () = handle.stop.notified(), if status.is_none() => {
                    if let Some(pid) = child.id().filter(|_| handle.at_once.get()) {
                        supervise::end(pid, true);
                    }
                    Some(EndCause::Stopped)
                }
                () = &mut deadline => {
                    if cause.is_some() || status.is_some() {
                        let _ = child.start_kill();
                        break;
                    }
                    Some(EndCause::Timeout)
                }
            };
            if let (Some(_), None, None) = (end, cause, &status) {
                cause = end;
                if let Some(pid) = child.id() {
                    supervise::end(pid, false);
                }
                deadline.as_mut().reset(tokio::time::Instant::now() + BACKSTOP);
            } else if end == Some(EndCause::Output) {
                cause = cause.or(end);
            }
        }
        if let Some(feed) = feed {
            feed.abort();
        }
        let code = status.flatten().and_then(|status| status.code());
        answer(code, cause, (timeout, max), &out, &err)
    }
}

/// This program, even when its file was replaced while it runs.
fn own_program() -> OsString {
    if cfg!(target_os = "linux") {
        return "/proc/self/exe".into();
    }
    std::env::current_exe().map_or_else(|_| "tool-exec".into(), Into::into)
}

/// How many threads the machine runs for all its users; the limit counts those of this user, which are at most as many.
fn threads() -> Option<u64> {
    let load = std::fs::read_to_string("/proc/loadavg").ok()?;
    load.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

/// Lets this process open as many files as the system allows it: each call needs a few.
pub fn raise_limits() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let now = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: now.maximum, maximum: now.maximum });
}
