//! The launch stage: the process that starts the command. As the init of a PID namespace it remains
//! the command's parent; otherwise it becomes the command.

use super::messages::{Containment, EndOrder, InForce, Job, Notice, ProcessLimits};
use super::wire::{ChildSignals, Frames};
use super::{isolation, wire};
use crate::command::confine::{Confined, enter, explain};
use nix::sys::signal::{Signal as NixSignal, kill};
use nix::unistd::Pid as NixPid;
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions, getrlimit, setrlimit, wait};
use std::io::{Error, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Starts the command of `job` with its standard files `files`, once `supervisor` has sent a frame.
/// `is_init` means that this process is the init of a PID namespace.
pub(super) fn launch(supervisor: &UnixStream, is_init: bool, job: &Job, files: Vec<OwnedFd>) {
    // This process ends with its supervisor, and the whole namespace with this process.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    let _ = rustix::process::setpgid(None, None); // never fails: not a session leader
    if let Err(e) = begin(supervisor, is_init, job, files) {
        let _ = wire::report(supervisor, &Notice::NotStarted(reason(&e)));
    }
}

fn begin(
    supervisor: &UnixStream,
    is_init: bool,
    job: &Job,
    files: Vec<OwnedFd>,
) -> std::io::Result<()> {
    let signals = ChildSignals::new()?;
    let mut in_force = InForce::default();
    let mut has_mounts = false;
    if is_init {
        in_force.containment = Containment::Namespace;
        has_mounts = isolation::enter_mounts().is_ok();
        in_force.own_proc = has_mounts && isolation::own_proc(&job.home).is_ok();
        in_force.own_terminals = has_mounts && isolation::own_terminals().is_ok();
    }
    isolation::keep_private();
    // The command runs only once its supervisor can end it.
    wire::receive(supervisor)?;
    if let (true, Some(most)) = (in_force.own_proc, job.limits.processes) {
        isolation::limit_processes(most);
    }
    in_force.home_limit = has_mounts && isolation::own_home(&job.home, job.home_size).is_ok();
    isolation::keep_to_itself();
    // A program with another user's rights could not be ended from here.
    rustix::thread::set_no_new_privs(true)?;
    if !is_init && isolation::enter_signal_scope() {
        in_force.containment = Containment::SignalScope;
    }
    lower_limits(&job.limits);
    let mut command = command(job, files)?;
    if is_init {
        let child = command.spawn().map_err(|e| explain(&job.confinement, e))?;
        drop(command); // closes the last copies of the command's files outside the command
        if wire::report(supervisor, &Notice::Started(in_force)).is_err() {
            return Ok(()); // the supervisor is gone; the command ends with this process
        }
        attend(supervisor, child.id(), signals);
        return Ok(());
    }
    wire::report(supervisor, &Notice::Started(in_force))?;
    Err(explain(&job.confinement, command.exec()))
}

fn command(job: &Job, files: Vec<OwnedFd>) -> std::io::Result<Command> {
    let [stdin, stdout, stderr]: [OwnedFd; 3] = files
        .try_into()
        .map_err(|_| Error::from(ErrorKind::InvalidData))?;
    let confined = Confined {
        program: &job.program,
        argv: &job.argv,
        home: &job.home,
        room: job.home_size,
        cwd: &job.folder,
    };
    let mut command = enter(&job.confinement, &confined).map_err(Error::other)?;
    command
        .env_clear()
        .current_dir(&job.folder)
        .process_group(0);
    command.envs(job.environment.iter().map(|(name, value)| (name, value)));
    command
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::from(stdout))
        .stderr(Stdio::from(stderr));
    Ok(command)
}

/// Returns why a command could not be started, for its answer.
fn reason(e: &Error) -> String {
    match e.kind() {
        ErrorKind::ArgumentListTooLong => {
            "its arguments are longer than the system takes".to_owned()
        }
        _ => e.to_string(),
    }
}

/// Runs as the init of a PID namespace until all other processes in it have ended, or the
/// supervisor is gone. When this process ends, the kernel kills the rest.
fn attend(supervisor: &UnixStream, command: u32, mut signals: ChildSignals) {
    let command = i32::try_from(command).ok().and_then(Pid::from_raw);
    let mut orders = Frames::default();
    let _ = supervisor.set_nonblocking(true);
    loop {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, how))) if Some(pid) == command => {
                    let status = how
                        .exit_status()
                        .or(how.terminating_signal().map(|n| 128 + n))
                        .unwrap_or(255);
                    let _ = wire::report(supervisor, &Notice::Exited(status));
                    terminate_all();
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => break,
                Err(_) => return, // no children are left
            }
        }
        signals.wait(&[supervisor], None);
        if !orders.read(supervisor) {
            return;
        }
        for order in orders.messages() {
            match order {
                EndOrder::End => terminate_all(),
                EndOrder::Kill => return,
            }
        }
    }
}

/// Sends SIGTERM to every other process of this PID namespace. A single call, so that a process
/// cannot escape by forking.
fn terminate_all() {
    let _ = kill(NixPid::from_raw(-1), NixSignal::SIGTERM); // fails if no process is left
}

fn lower_limits(limits: &ProcessLimits) {
    lower(Resource::Cpu, limits.cpu);
    lower(Resource::Data, limits.memory);
    lower(Resource::Nofile, limits.files);
    lower(Resource::Nproc, limits.processes);
    lower(Resource::Fsize, limits.file_size);
    lower(Resource::Core, Some(0));
}

/// Lowers a limit of this process and its children. Never raises a limit.
fn lower(resource: Resource, limit: Option<u64>) {
    let Some(limit) = limit else { return };
    let now = getrlimit(resource);
    let limit = now.maximum.map_or(limit, |most| most.min(limit));
    let _ = setrlimit(
        resource,
        Rlimit {
            current: Some(limit),
            maximum: Some(limit),
        },
    ); // lowering is never refused
}
