//! One call as a process: fed, read, limited, ended.

use crate::scratch::Names;
use crate::{program, supervise};
use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::{Notify, mpsc};
use tool::{Answer, Call, Exec, Limits, Ready, Status};

/// How much of the standard error of a command that failed is shown to the model, in bytes.
const TAIL: usize = 8 * 1024;
/// How long a supervisor may take to end its command before it is given up.
const BACKSTOP: Duration = Duration::from_secs(5);
/// What a process may hold of private memory, unless its tool says otherwise.
const MEMORY: u64 = 4 << 30;
/// How many files a process may have open, likewise.
const FILES: u64 = 1024;
/// How many processes and threads may come to those that the machine has already, likewise.
const PROCESSES: u64 = 1024;

/// What all calls of a run share.
#[derive(Debug)]
pub struct Runner {
    /// The folder of the tools file.
    pub folder: PathBuf,
    /// Where commands have their homes.
    pub homes: RefCell<Names>,
    /// How long a call may take.
    pub timeout: Duration,
    /// How much it may write to each of its outputs, in bytes.
    pub max_output: usize,
}

/// What is told of a call that runs.
#[derive(Debug)]
pub enum Report {
    /// It has put out this text.
    Progress(u64, String),
    /// It has ended.
    Done(u64, Answer),
}

/// What the one who started a call holds of it.
#[derive(Debug, Default)]
pub struct Handle {
    stop: Notify,
    at_once: Cell<bool>,
    supervisor: Cell<Option<u32>>,
}

impl Handle {
    /// Ends the call, at once or with a grace; [`Report::Done`] still comes. A second time it may leave out the grace.
    pub fn stop(&self, at_once: bool) {
        self.at_once.set(at_once);
        self.stop.notify_one();
    }

    /// Has the call ended by its supervisor, without waiting for it; at once, or with a grace.
    pub fn abandon(&self, at_once: bool) {
        if let Some(supervisor) = self.supervisor.get() {
            supervise::end(supervisor, at_once);
        }
    }
}

/// Why a command is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Timeout,
    Output,
    Stopped,
}

impl Runner {
    /// The folder that a tool's commands run in.
    pub fn cwd(&self, exec: &Exec) -> PathBuf {
        match &exec.cwd {
            Some(cwd) => self.folder.join(cwd),
            None => std::env::current_dir().unwrap_or_else(|_| "/".into()),
        }
    }

    /// Runs a call to its end, and gives what came of it; `handle` ends it early. Output is reported while it appears if `progress` is
    /// there.
    pub async fn run(
        &self,
        call: &Call,
        ready: &Ready,
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
        Answer { duration: Some(start.elapsed()), return_directly: exec.return_directly, ..answer }
    }

    fn spawn(&self, exec: &Exec, argv: &[String], arguments: &str) -> Result<Child, String> {
        let program = argv.first().ok_or("it is empty")?;
        let program = program::find(program, &self.folder)?;
        let cwd = self.cwd(exec);
        if !cwd.is_dir() {
            return Err(format!("there is no folder {}", cwd.display()));
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
            // All cores at once for as long as the clock allows; what escaped the clock ends by this.
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
        let most = exec.max_output.unwrap_or(self.max_output);
        let (mut out, mut err) = (Capture::new(child.stdout.take(), most), Capture::new(child.stderr.take(), most));
        let mut shown = Shown::default();
        // A command that does not read must not stop what reads from it.
        let feed = child.stdin.take().map(|mut stdin| {
            let text = format!("{arguments}\n");
            tokio::task::spawn_local(async move {
                let _ = stdin.write_all(text.as_bytes()).await; // it may close its input, or end
            })
        });
        let deadline = tokio::time::sleep(timeout);
        tokio::pin!(deadline);
        let (mut why, mut status) = (None::<Why>, None);
        while status.is_none() || out.is_open() || err.is_open() {
            let end = tokio::select! {
                read = out.read(), if out.is_open() => {
                    if let Some((key, reports)) = &progress && let Some(text) = shown.more(&out.bytes) {
                        let _ = reports.send(Report::Progress(*key, text)).await;
                    }
                    read.then_some(Why::Output)
                }
                read = err.read(), if err.is_open() => read.then_some(Why::Output),
                ended = child.wait(), if status.is_none() => {
                    status = Some(ended.ok());
                    handle.supervisor.set(None); // its number may soon be another's
                    // All its descendants have ended with it; this is for those that cannot.
                    deadline.as_mut().reset(tokio::time::Instant::now() + BACKSTOP);
                    None
                }
                () = handle.stop.notified(), if status.is_none() => {
                    if let Some(pid) = child.id().filter(|_| handle.at_once.get()) {
                        supervise::end(pid, true);
                    }
                    Some(Why::Stopped)
                }
                () = &mut deadline => {
                    if why.is_some() || status.is_some() {
                        let _ = child.start_kill();
                        break;
                    }
                    Some(Why::Timeout)
                }
            };
            if let (Some(reason), None, None) = (end, why, &status) {
                why = Some(reason);
                if let Some(pid) = child.id() {
                    supervise::end(pid, false);
                }
                deadline.as_mut().reset(tokio::time::Instant::now() + BACKSTOP);
            } else if end == Some(Why::Output) {
                why = why.or(end);
            }
        }
        if let Some(feed) = feed {
            feed.abort();
        }
        let code = status.flatten().and_then(|status| status.code());
        describe(code, why, timeout, most, &out, &err)
    }
}

/// This program, also when its file was replaced while it runs.
fn own_program() -> OsString {
    if cfg!(target_os = "linux") {
        return "/proc/self/exe".into();
    }
    std::env::current_exe().map_or_else(|_| "tool-exec".into(), Into::into)
}

/// How many threads the machine runs, whoever they belong to. The limit counts those of the user, which are no more.
fn threads() -> Option<u64> {
    let load = std::fs::read_to_string("/proc/loadavg").ok()?;
    load.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

/// One output of a command.
struct Capture<R> {
    pipe: Option<R>,
    bytes: Vec<u8>,
    seen: u64,
    most: usize,
}

impl<R: AsyncRead + Unpin> Capture<R> {
    fn new(pipe: Option<R>, most: usize) -> Self {
        Capture { pipe, bytes: Vec::new(), seen: 0, most }
    }

    fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Reads once. `true`: it has written more than it may, and is not read any more.
    async fn read(&mut self) -> bool {
        let Some(pipe) = &mut self.pipe else { return false };
        match pipe.read_buf(&mut self.bytes).await {
            Ok(n) if n > 0 => self.seen += n as u64,
            _ => self.pipe = None,
        }
        let over = self.bytes.len() > self.most;
        if over {
            self.bytes.truncate(self.most);
            self.pipe = None;
        }
        over
    }

    fn was_cut(&self) -> bool {
        self.seen > self.bytes.len() as u64
    }
}

/// How much of the output was reported: whole characters only.
#[derive(Default)]
struct Shown(usize);

impl Shown {
    fn more(&mut self, bytes: &[u8]) -> Option<String> {
        let rest = bytes.get(self.0..)?;
        let end = match std::str::from_utf8(rest) {
            // A character that is not yet whole waits for its end.
            Err(e) if e.error_len().is_none() => e.valid_up_to(),
            _ => rest.len(),
        };
        self.0 += end;
        (end > 0).then(|| tool::text(&rest[..end]).0)
    }
}

/// What a command that has ended is reported as.
fn describe<A, B>(
    code: Option<i32>,
    why: Option<Why>,
    timeout: Duration,
    most: usize,
    out: &Capture<A>,
    err: &Capture<B>,
) -> Answer
where
    A: AsyncRead + Unpin,
    B: AsyncRead + Unpin,
{
    let (mut output, mut replaced) = tool::text(&out.bytes);
    if out.was_cut() {
        output.push_str(&format!("\n[the output was cut after {most} bytes]"));
    }
    let (status, head) = match (why, code) {
        (Some(Why::Timeout), _) => {
            (Status::Timeout, format!("The command did not end within {timeout:?} and was ended."))
        }
        (Some(Why::Stopped), _) => (Status::Cancelled, "The command was stopped before it was done.".to_owned()),
        (Some(Why::Output), _) => (Status::Error, format!("The command wrote more than {most} bytes and was ended.")),
        (None, Some(0)) => (Status::Success, String::new()),
        (None, Some(code)) => (Status::Error, format!("The command failed with exit status {code}{}.", signal(code))),
        (None, None) => (Status::Error, "The command was ended from outside.".to_owned()),
    };
    if status != Status::Success {
        let (tail, bad) = tool::text(tail(&err.bytes));
        replaced |= bad;
        let part = |name: &str, text: &str| {
            if text.trim().is_empty() { String::new() } else { format!("\n{name}:\n{}", text.trim_end()) }
        };
        output = head + &part("stderr", &tail) + &part("stdout", &output);
    }
    Answer {
        output_bytes: out.seen,
        truncated: out.was_cut() || err.was_cut(),
        replaced,
        exit_code: code.filter(|_| why.is_none()),
        ..Answer::new(status, output)
    }
}

/// The last lines of what was written.
fn tail(bytes: &[u8]) -> &[u8] {
    let Some(from) = bytes.len().checked_sub(TAIL) else { return bytes };
    let end = &bytes[from..];
    let line = end.iter().position(|b| *b == b'\n').map_or(0, |n| n + 1);
    if line < end.len() { &end[line..] } else { end }
}

/// The name of the signal that a status above 128 stands for, in brackets.
fn signal(code: i32) -> String {
    match signal_hook::low_level::signal_name(code - 128) {
        Some(name) if code > 128 => format!(" ({name})"),
        _ => String::new(),
    }
}

/// Lets this process open as many files as the system allows it: each call needs a few.
pub fn raise_limits() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let now = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: now.maximum, maximum: now.maximum });
}

/// The runner of a run, where its tools file is `path`.
pub fn runner(path: &Path, timeout: Duration, max_output: usize) -> Rc<Runner> {
    let folder = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    Rc::new(Runner { folder, homes: RefCell::new(Names::new()), timeout, max_output })
}
