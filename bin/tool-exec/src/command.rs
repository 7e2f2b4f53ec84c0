//! A call as a command: one process for each call, under a supervisor of its own.

mod answer;
pub mod confine;
mod processes;
pub mod program;
pub mod scratch;
pub mod supervisor;

pub use program::folder_of;

use super::call::{Handle, Progress, ProgressMark};
use super::store::Outputs;
use answer::{Capture, EndCause, answer};
use confine::Sandboxes;
use confine::groups::GroupLimits;
use program::identity;
use scratch::HomeNames;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use supervisor::{Job, ProcessLimits, Running, StartError};
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;
use tool::{Answer, Arguments, CallFailure, CommandRun, Exec, RequestedCall, Status};

// One call as a process: started, fed, read, and ended when its time or its room is used up.

/// How long a command may take to end by itself after SIGTERM, before it is killed. With the
/// killing that is less than a second.
pub const GRACE: Duration = Duration::from_millis(500);
/// How long a supervisor may take to end its command before it is given up: the grace, the time in
/// which the supervisor itself gives up, and a part of a second.
const BACKSTOP: Duration = Duration::from_secs(3);
/// How long the outputs of a command that has ended may stay open.
const REST: Duration = Duration::from_secs(1);
/// How much private memory a process may have, in bytes, unless its tool has a limit of its own.
const MEMORY: u64 = 4 << 30;
/// How many files a process may have open, likewise.
const FILES: u64 = 1024;
/// How large a file may grow that it writes, in bytes, likewise.
const FILE_SIZE: u64 = 1 << 30;
/// How much its home may hold, in bytes, likewise.
const HOME: u64 = 1 << 30;
/// How many processes and threads may be added to those that the machine has already, likewise.
const PROCESSES: u64 = 1024;
/// Runs the commands of one tools file.
#[derive(Debug)]
pub struct CommandRunner {
    /// The folder of the tools file.
    folder: PathBuf,
    /// Names for the homes of commands.
    homes: RefCell<HomeNames>,
    /// How long a call may take, unless its tool has a limit of its own.
    timeout: Duration,
    /// How much it may write to each of its outputs in bytes, likewise.
    max_output: usize,
    /// Makes what a command writes readable.
    outputs: Rc<Outputs>,
    /// What confines them.
    sandboxes: Sandboxes,
}

impl CommandRunner {
    /// A runner of the commands of the tools file `tools`; see [`super::call::Runners::new`].
    pub fn new(
        tools: &Path,
        timeout: Duration,
        max_output: usize,
        outputs: Rc<Outputs>,
        sandboxes: Sandboxes,
    ) -> Self {
        let (folder, homes) = (folder_of(tools), RefCell::new(HomeNames::new()));
        CommandRunner {
            folder,
            homes,
            timeout,
            max_output,
            outputs,
            sandboxes,
        }
    }

    /// The folder that a tool's commands run in.
    pub fn cwd(&self, command: &CommandRun) -> PathBuf {
        match &command.cwd {
            Some(cwd) => self.folder.join(cwd),
            None => std::env::current_dir().unwrap_or_else(|_| "/".into()),
        }
    }

    /// What the command line `argv` of a tool runs, and all around it that could change its result,
    /// for the cache; `None`: nothing can run.
    pub fn identity(&self, command: &CommandRun, argv: &[String]) -> Option<Vec<Vec<u8>>> {
        let name = argv.first()?;
        let (program, folder) = (program::find(name, &self.folder).ok()?, self.cwd(command));
        let mut all = identity(&program, argv, &folder, &command.env);
        all.push(format!("{:?}", self.sandboxes.of(command, name, &program, &folder)).into_bytes());
        Some(all)
    }

    /// Runs the command line `argv` of a tool to its end and returns its answer; `handle` ends it
    /// early.
    pub async fn run(
        &self,
        exec: &Exec,
        command: &CommandRun,
        argv: &[String],
        call: &RequestedCall,
        handle: &Handle,
        progress: Option<Progress>,
    ) -> Answer {
        let arguments = call
            .arguments
            .as_ref()
            .map(Arguments::text)
            .unwrap_or_default();
        let not_started = |why: &str| {
            CallFailure::NotRun(format!("The command could not be started: {why}."))
                .answer(Status::Error)
        };
        let job = match self.job(exec, command, argv, call) {
            Ok(job) => job,
            Err(why) => return not_started(&why),
        };
        let start = supervisor::start(&job);
        tokio::pin!(start);
        let mut is_stopped = false;
        // A start that is under way is waited for: nothing else shows that its command is ended.
        let started = loop {
            tokio::select! {
                started = &mut start => break started,
                () = handle.stop.notified(), if !is_stopped => is_stopped = true,
            }
        };
        match started {
            Ok(running) => {
                let control = running.supervisor.control();
                if is_stopped {
                    handle.stop.notify_one();
                }
                handle.control.replace(Some(control));
                self.attend(running, exec, arguments, handle, progress)
                    .await
            }
            Err(StartError::NotStarted(why)) => not_started(&why),
            Err(StartError::Unknown) => {
                let text = "The process that starts the command was ended from outside.";
                CallFailure::MayHaveRun(text.to_owned()).answer(Status::Error)
            }
        }
    }

    fn job(
        &self,
        exec: &Exec,
        command: &CommandRun,
        argv: &[String],
        call: &RequestedCall,
    ) -> Result<Job, String> {
        let name = argv.first().ok_or("it is empty")?;
        let program = program::find(name, &self.folder)?;
        let folder = self.cwd(command);
        program::check(&folder)?;
        let home = self.homes.borrow_mut().next().ok_or("it has no home")?;
        let confinement = self.sandboxes.of(command, name, &program, &folder);
        let arguments = call
            .arguments
            .as_ref()
            .map(Arguments::text)
            .unwrap_or_default();
        let mut environment = program::environment(&command.env, &home, arguments);
        environment.push(("TOOL_CALL_ID".into(), call.idempotency_key().into()));
        Ok(Job {
            program,
            argv: argv.iter().map(Into::into).collect(),
            environment,
            folder,
            home,
            home_size: command.limits.home.unwrap_or(HOME),
            limits: self.limits(exec, command),
            together: GroupLimits {
                memory: command.limits.memory,
                processes: command
                    .limits
                    .processes
                    .map(|n| n.saturating_add(confinement.own_processes())),
            },
            deadline: Some(self.timeout(exec)),
            grace: GRACE,
            confinement: confinement.to_json(),
        })
    }

    fn timeout(&self, exec: &Exec) -> Duration {
        exec.timeout.unwrap_or(self.timeout)
    }

    fn limits(&self, exec: &Exec, command: &CommandRun) -> ProcessLimits {
        let given = command.limits;
        let cores =
            std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1));
        // All cores at once for as long as the call may take: a process that outlives the timeout
        // ends by this limit.
        let cpu = given.cpu.or_else(|| self.timeout(exec).checked_mul(cores));
        ProcessLimits {
            // A limit of seconds: what is less than one counts as one.
            cpu: cpu.map(|time| time.as_secs() + u64::from(time.subsec_nanos() > 0)),
            memory: given.memory.or(Some(MEMORY)),
            files: given.files.or(Some(FILES)),
            processes: given.processes.or_else(|| Some(threads()? + PROCESSES)),
            file_size: given.file_size.or(Some(FILE_SIZE)),
        }
    }

    /// Feeds and reads a command until it has ended.
    async fn attend(
        &self,
        running: Running,
        exec: &Exec,
        arguments: &str,
        handle: &Handle,
        progress: Option<Progress>,
    ) -> Answer {
        let timeout = self.timeout(exec);
        let max = exec.max_output.unwrap_or(self.max_output);
        let Running {
            mut stdin,
            stdout,
            stderr,
            mut supervisor,
            ..
        } = running;
        let (mut out, mut err) = (
            Capture::new(stdout, max),
            Capture::with_reports(stderr, max),
        );
        let mut shown = ProgressMark::default();
        // In a task of its own: a command that does not read its input must not keep this one from
        // reading its output.
        let text = format!("{arguments}\n");
        let feed = tokio::task::spawn_local(async move {
            // Fails where the command closes its input, or ends.
            let _ = stdin.write_all(text.as_bytes()).await;
        });
        let control = supervisor.control();
        // The supervisor keeps the deadline. This one is for a supervisor that a command has
        // stopped, which only some systems allow.
        let backstop = tokio::time::sleep(timeout.saturating_add(BACKSTOP));
        tokio::pin!(backstop);
        let (mut cause, mut ended) = (None::<EndCause>, None);
        while ended.is_none() || out.is_open() || err.is_open() {
            let end = tokio::select! {
                read = out.read(), if out.is_open() => {
                    if let Some(progress) = &progress && let Some(text) = shown.more(&out.bytes, true, self.outputs.redactor()) {
                        progress.text(&text);
                    }
                    read.then_some(EndCause::Output)
                }
                read = err.read(), if err.is_open() => {
                    if let (Some(report), Some(progress)) = (err.report.take(), &progress) {
                        progress.step(Some(report.progress), report.message);
                    }
                    read.then_some(EndCause::Output)
                }
                how = supervisor.ended(), if ended.is_none() => {
                    ended = Some(how);
                    // What it wrote is read to its end. This is for processes that could not be
                    // ended, and hold its outputs.
                    backstop.as_mut().reset(Instant::now() + REST);
                    None
                }
                () = handle.stop.notified(), if ended.is_none() => {
                    control.end(handle.at_once.get());
                    Some(EndCause::Stopped)
                }
                () = &mut backstop => {
                    if ended.is_none() {
                        ended = Some(supervisor.give_up().await);
                    }
                    break;
                }
            };
            if let (Some(_), None, None) = (end, cause, &ended) {
                cause = end;
                control.end(handle.at_once.get());
                backstop.as_mut().reset(Instant::now() + BACKSTOP);
            } else if end == Some(EndCause::Output) {
                cause = cause.or(end);
            }
        }
        feed.abort();
        let ended = ended.unwrap_or_default();
        // A command that was ended may have been in the middle of a secret.
        let is_whole = cause.is_none() && !ended.is_timeout && !out.was_cut();
        if let Some(progress) = &progress
            && let Some(text) = shown.more(&out.bytes, !is_whole, self.outputs.redactor())
        {
            progress.text(&text);
        }
        answer(
            &ended,
            cause,
            (timeout, max, exec.max_result),
            &out,
            &err,
            &self.outputs,
        )
    }
}

/// How many threads the machine runs for all its users; the limit counts those of this user, which
/// are at most as many.
fn threads() -> Option<u64> {
    let load = std::fs::read_to_string("/proc/loadavg").ok()?;
    load.split_whitespace()
        .nth(3)?
        .split_once('/')?
        .1
        .parse()
        .ok()
}

/// Lets this process open as many files as the system allows it: each call needs a few.
pub fn raise_limits() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let now = getrlimit(Resource::Nofile);
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: now.maximum,
            maximum: now.maximum,
        },
    );
}
