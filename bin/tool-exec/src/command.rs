//! Calls that run a command: one process per call, each under its own supervisor.

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

/// How long a command may take to exit after SIGTERM before it is killed. Together with the kill
/// this stays below a second.
pub(crate) const GRACE: Duration = Duration::from_millis(500);
/// How long a supervisor may take to end its command before this process gives up on it: the grace
/// period, the supervisor's own time for giving up, and a fraction of a second.
const BACKSTOP: Duration = Duration::from_secs(3);
/// How long the outputs of a command may stay open after it has exited.
const REST: Duration = Duration::from_secs(1);
/// Default limit of a process's private memory, in bytes.
const MEMORY: u64 = 4 << 30;
/// Default limit of the number of files that a process may have open.
const FILES: u64 = 1024;
/// Default limit of the size of a file that a process writes, in bytes.
const FILE_SIZE: u64 = 1 << 30;
/// Default size of a command's home folder, in bytes.
const HOME: u64 = 1 << 30;
/// Default number of processes and threads allowed beyond those already running on the machine.
const PROCESSES: u64 = 1024;
/// How many processors this process may use. Cached because finding out reads many files.
static CORES: OnceLock<u32> = OnceLock::new();

/// Runs the commands of one tools file.
#[derive(Debug)]
pub(crate) struct Commands {
    /// The folder of the tools file.
    folder: PathBuf,
    /// The sandboxes of the commands.
    sandboxes: Sandboxes,
}

impl Commands {
    /// Returns a runner for the commands of a tools file in `folder`, confined by `sandboxes`.
    pub(crate) fn new(folder: PathBuf, sandboxes: Sandboxes) -> Self {
        Commands { folder, sandboxes }
    }

    /// Returns the folder that a tool's commands run in.
    fn cwd(&self, command: &CommandRun) -> PathBuf {
        match &command.cwd {
            Some(cwd) => self.folder.join(cwd),
            None => std::env::current_dir().unwrap_or_else(|_| "/".into()),
        }
    }

    /// Returns the cache identity of the command line `argv`: the program and everything around it
    /// that could change its result. Returns `None` if the program cannot be run.
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
        // Written completely before the command starts, so it is whole even if this process dies.
        let input = match whole_input(&format!("{}\n", task.arguments)) {
            Ok(input) => input,
            Err(e) => return not_started(&format!("its input cannot be kept: {e}")),
        };
        let start = supervisor::start(&job, input);
        tokio::pin!(start);
        let mut is_stopped = false;
        // A start in progress is not cancelled: only its result gives control of the command.
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
            // A tool that passes these variables on gets the values of its own span.
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

/// Returns the limits of each process of a command with this `timeout`; `given` are the tool's own.
fn process_limits(timeout: Duration, given: CommandLimits) -> ProcessLimits {
    let cores = *CORES.get_or_init(|| {
        std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1))
    });
    // All cores, busy for the whole timeout. The limit ends a process that outlives the timeout.
    let cpu = given.cpu.or_else(|| timeout.checked_mul(cores));
    ProcessLimits {
        // The limit is in whole seconds; a fraction is rounded up.
        cpu: cpu.map(|time| time.as_secs() + u64::from(time.subsec_nanos() > 0)),
        memory: given.memory.or(Some(MEMORY)),
        files: given.files.or(Some(FILES)),
        processes: given.processes.or_else(|| Some(threads()? + PROCESSES)),
        file_size: given.file_size.or(Some(FILE_SIZE)),
    }
}

/// Reads the outputs of a command until it has ended, and returns its answer.
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
    // The supervisor enforces the deadline. The backstop is for a supervisor that the command has
    // stopped with a signal, which only some systems allow.
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
                // The remaining output is read to its end. The time limit is for processes that
                // could not be killed and hold the outputs open.
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
    // The output of a command that was ended may stop in the middle of a secret.
    let is_whole = cause.is_none() && !ended.is_timeout && !out.was_cut();
    task.show(&mut shown, &out.bytes, !is_whole);
    answer(&task.terms, &ended, cause, &out, &err)
}

/// Returns the number of threads on the machine, of all users. The limit counts only this user's
/// threads, which are at most as many.
fn threads() -> Option<u64> {
    let load = std::fs::read_to_string("/proc/loadavg").ok()?;
    load.split_whitespace()
        .nth(3)?
        .split_once('/')?
        .1
        .parse()
        .ok()
}

/// Raises the limit of open files to the maximum: each call needs several.
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
