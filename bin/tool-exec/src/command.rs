//! A call as a command: one process for each call, under a supervisor of its own.

mod answer;
pub(crate) mod confine;
mod input;
pub(crate) mod program;
pub(crate) mod scratch;
pub(crate) mod supervisor;

use super::progress::ProgressMark;
use super::task::Task;
use answer::{Capture, EndCause, answer};
use confine::Sandboxes;
use confine::groups::GroupLimits;
use input::whole_input;
use program::identity;
use scratch::unused_name;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;
use supervisor::{Job, ProcessLimits, RunningCommand, StartError};
use tokio::time::Instant;
use tool::{CallFailure, CommandLimits, CommandRun, Status, ToolAnswer};

/// How long a command may take to end by itself after SIGTERM, before it is killed. With the
/// killing that is less than a second.
pub(crate) const GRACE: Duration = Duration::from_millis(500);
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
/// How many processors this process may use, once it was asked for: that reads many files.
static CORES: OnceLock<u32> = OnceLock::new();

/// Runs the commands of one tools file.
#[derive(Debug)]
pub(crate) struct Commands {
    /// The folder of the tools file.
    folder: PathBuf,
    /// What confines them.
    sandboxes: Sandboxes,
}

impl Commands {
    /// The commands of a tools file in `folder`, which `sandboxes` confine.
    pub(crate) fn new(folder: PathBuf, sandboxes: Sandboxes) -> Self {
        Commands { folder, sandboxes }
    }

    /// The folder that a tool's commands run in.
    fn cwd(&self, command: &CommandRun) -> PathBuf {
        match &command.cwd {
            Some(cwd) => self.folder.join(cwd),
            None => std::env::current_dir().unwrap_or_else(|_| "/".into()),
        }
    }

    /// What the command line `argv` of a tool runs, and all around it that could change its result,
    /// for the cache; `None`: nothing can run.
    pub(crate) fn identity(&self, command: &CommandRun, argv: &[String]) -> Option<Vec<Vec<u8>>> {
        let name = argv.first()?;
        let program = program::find(name, &self.folder).ok()?;
        let folder = self.cwd(command);
        let mut all = identity(&program, argv, &folder, &command.env);
        all.push(format!("{:?}", self.sandboxes.of(command, name, &program, &folder)).into_bytes());
        Some(all)
    }

    /// Runs the command line `argv` of a tool to its end and returns its answer.
    pub(crate) async fn run(
        &self,
        task: &Task<'_>,
        command: &CommandRun,
        argv: &[String],
    ) -> ToolAnswer {
        let not_started = |why: &str| {
            CallFailure::not_run(format!("The command could not be started: {why}."))
                .answer(Status::Error)
        };
        let job = match self.job(task, command, argv) {
            Ok(job) => job,
            Err(why) => return not_started(&why),
        };
        // Complete before the command runs, whatever becomes of this process meanwhile.
        let input = match whole_input(&format!("{}\n", task.arguments)) {
            Ok(input) => input,
            Err(e) => return not_started(&format!("its input cannot be kept: {e}")),
        };
        let start = supervisor::start(&job, input);
        tokio::pin!(start);
        let mut is_stopped = false;
        // A start that is under way is waited for: nothing else shows that its command is ended.
        let started = loop {
            tokio::select! {
                started = &mut start => break started,
                () = task.handle.stop.notified(), if !is_stopped => is_stopped = true,
            }
        };
        match started {
            Ok(running) => {
                let control = running.supervisor.control();
                if is_stopped {
                    task.handle.stop.notify_one();
                }
                task.handle.control.replace(Some(control));
                attend(task, running).await
            }
            Err(StartError::NotStarted(why)) => not_started(&why),
            Err(StartError::Unknown) => {
                let text = "The process that starts the command was ended from outside.";
                CallFailure::may_have_run(text).answer(Status::Error)
            }
        }
    }

    fn job(&self, task: &Task<'_>, command: &CommandRun, argv: &[String]) -> Result<Job, String> {
        let name = argv.first().ok_or("it is empty")?;
        let program = program::find(name, &self.folder)?;
        let folder = self.cwd(command);
        program::check(&folder)?;
        let home = unused_name();
        let confinement = self.sandboxes.of(command, name, &program, &folder);
        let mut environment = program::environment(&command.env, &home, task.arguments);
        environment.push(("TOOL_CALL_ID".into(), task.call.idempotency_key().into()));
        if let Some(trace) = &task.trace {
            // A tool that names these variables gets those of its own span.
            environment.retain(|(name, _)| !trace::VARIABLES.iter().any(|own| *name == **own));
            let variables = trace.variables();
            environment.extend(variables.map(|(name, value)| (name.into(), value.into())));
        }
        let limits = command.limits;
        let own = confinement.own_processes();
        Ok(Job {
            program,
            argv: argv.iter().map(Into::into).collect(),
            environment,
            folder,
            home,
            home_size: limits.home.unwrap_or(HOME),
            limits: process_limits(task.terms.timeout, limits),
            together: GroupLimits {
                memory: limits.memory,
                processes: limits.processes.map(|n| n.saturating_add(own)),
            },
            deadline: Some(task.terms.timeout),
            grace: GRACE,
            confinement,
        })
    }
}

/// The limits of each process of a command that may take `timeout`, and whose tool has `given`.
fn process_limits(timeout: Duration, given: CommandLimits) -> ProcessLimits {
    let cores = *CORES.get_or_init(|| {
        std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1))
    });
    // All cores at once for as long as the call may take: a process that outlives the timeout
    // ends by this limit.
    let cpu = given.cpu.or_else(|| timeout.checked_mul(cores));
    ProcessLimits {
        // A limit of seconds: what is less than one counts as one.
        cpu: cpu.map(|time| time.as_secs() + u64::from(time.subsec_nanos() > 0)),
        memory: given.memory.or(Some(MEMORY)),
        files: given.files.or(Some(FILES)),
        processes: given.processes.or_else(|| Some(threads()? + PROCESSES)),
        file_size: given.file_size.or(Some(FILE_SIZE)),
    }
}

/// Reads a command until it has ended.
async fn attend(task: &Task<'_>, running: RunningCommand) -> ToolAnswer {
    let RunningCommand {
        stdout,
        stderr,
        mut supervisor,
        ..
    } = running;
    let mut out = Capture::new(stdout, task.terms.max_output);
    let mut err = Capture::with_reports(stderr, task.terms.max_output);
    let mut shown = ProgressMark::default();
    let control = supervisor.control();
    // The supervisor keeps the deadline. This one is for a supervisor that a command has
    // stopped, which only some systems allow.
    let backstop = tokio::time::sleep(task.terms.timeout.saturating_add(BACKSTOP));
    tokio::pin!(backstop);
    let mut cause = None::<EndCause>;
    let mut ended = None;
    while ended.is_none() || out.is_open() || err.is_open() {
        let end = tokio::select! {
            read = out.read(), if out.is_open() => {
                task.show(&mut shown, &out.bytes, true);
                read.then_some(EndCause::Output)
            }
            read = err.read(), if err.is_open() => {
                if let (Some(report), Some(progress)) = (err.report.take(), &task.progress) {
                    progress.step(report);
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
            () = task.handle.stop.notified(), if ended.is_none() => {
                control.end(task.handle.at_once.get());
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
            control.end(task.handle.at_once.get());
            backstop.as_mut().reset(Instant::now() + BACKSTOP);
        } else if end == Some(EndCause::Output) {
            cause = cause.or(end);
        }
    }
    let ended = ended.unwrap_or_default();
    // A command that was ended may have been in the middle of a secret.
    let is_whole = cause.is_none() && !ended.is_timeout && !out.was_cut();
    task.show(&mut shown, &out.bytes, !is_whole);
    answer(&task.terms, &ended, cause, &out, &err)
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
pub(crate) fn raise_limits() {
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
