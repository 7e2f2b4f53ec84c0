//! The supervisor: the process that enforces the deadline of one command, and ends the command with
//! all its descendants.

use super::LISTED;
use super::isolation::Namespaces;
use super::launch::launch;
use super::messages::{EndOrder, Ended, InForce, Job, Notice, read, to_bytes};
use super::wire::{ChildSignals, Frames};
use super::{isolation, wire};
use crate::command::confine::groups::{CallGroup, Controller};
use crate::command::scratch::ScratchFolder;
use fork::{Fork, fork};
use group::descent::{self, GIVE_UP, ROUND, adopt_orphans};
use nix::sys::signal::{Signal as NixSignal, kill};
use nix::unistd::Pid as NixPid;
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, kill_process, kill_process_group, pidfd_open,
    set_parent_process_death_signal, wait,
};
use serde::de::DeserializeOwned;
// Without the cleanup of a process that has started a program: nothing here needs it, and it reads
// much that a forked process has not in its memory yet.
use signal_hook::low_level::exit;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Forks a supervisor for each socket received on standard input, until standard input closes. This
/// process has a single thread, so that a fork copies all of it.
pub(super) fn serve() -> ExitCode {
    // A stopped process would not notice that its socket has closed.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let _ = rustix::process::setsid(); // leaves the terminal, see `supervise`
    isolation::keep_private();
    // Commands inherit only the standard files, but supervisors and launch stages start no program:
    // they would keep open what `tool-exec` has inherited. This process has opened nothing yet.
    let inherited: Vec<_> = close_fds::iter_open_fds(3).collect();
    for file in inherited {
        let _ = nix::unistd::close(file); // never fails: it is open
    }
    let Ok(requests) = wire::upstream() else {
        return ExitCode::FAILURE;
    };
    while let Ok((request, sockets)) = wire::receive(&requests) {
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {} // reaps supervisors that have ended
        let (Some(is_plain), Some(socket)) = (read(&request), sockets.into_iter().next()) else {
            continue;
        };
        let socket = UnixStream::from(socket);
        match fork() {
            Ok(Fork::Child) if wire::take_over(&socket).is_ok() => {
                drop((requests, socket));
                supervise(is_plain);
                exit(0)
            }
            Ok(Fork::Child) => exit(1),
            Ok(Fork::Parent(_)) => {}
            Err(e) => {
                let _ = wire::report(&socket, &Notice::NotStarted(e.to_string()));
            }
        }
    }
    ExitCode::SUCCESS
}

/// Runs the job received on standard input, and returns once no process of it is left. With
/// `is_plain`, uses no namespaces.
fn supervise(is_plain: bool) {
    // Leaves the session of the zygote. Fails only for the leader of a process group, and a new
    // child is not one.
    let _ = rustix::process::setsid();
    adopt_orphans(true);
    if let Err(e) = present() {
        let _ = report(&Notice::NotStarted(e.to_string()));
        return;
    }
    let Ok(namespaces) = (if is_plain {
        Ok(Namespaces::None)
    } else {
        isolation::enter_namespaces()
    }) else {
        let _ = report(&Notice::Unusable);
        return;
    };
    isolation::keep_private();
    let mut home = None;
    let notice = match begin(namespaces, &mut home) {
        Ok(mut watch) => watch.until_ended(),
        // `tool-exec` has ended, or did not start this process.
        Err(e) if e.kind() == ErrorKind::UnexpectedEof => return,
        Err(e) => Notice::NotStarted(e.to_string()),
    };
    let _ = report(&notice);
    drop(home); // no process that could use the home is left
}

/// Sends a descriptor of this process to `tool-exec`, which kills a supervisor that a command has
/// stopped.
fn present() -> std::io::Result<()> {
    let own = pidfd_open(getpid(), PidfdFlags::empty())?;
    let notice = to_bytes(&Notice::Forked(std::process::id()));
    wire::send(&wire::upstream()?, &notice, &[own.as_fd()])
}

/// Sends a notice to `tool-exec`.
fn report(notice: &Notice) -> std::io::Result<()> {
    wire::report(&wire::upstream()?, notice)
}

/// Receives a job and forks the launch stage that starts its command.
fn begin(
    namespaces: Namespaces,
    home: &mut Option<ScratchFolder>,
) -> std::io::Result<CommandWatch> {
    let is_scoped = namespaces == Namespaces::None && isolation::enter_signal_scope();
    let upstream = wire::upstream()?;
    let (body, files) = wire::receive(&upstream)?;
    let job = Job::read(&body)?;
    let start = Instant::now();
    *home = Some(ScratchFolder::make(&job.home).map_err(|e| {
        let what = format!(
            "{}: its home cannot be made, check TMPDIR: {e}",
            job.home.display()
        );
        std::io::Error::new(e.kind(), what)
    })?);
    let (socket, theirs) = UnixStream::pair()?;
    let child = match fork()? {
        Fork::Parent(child) => child.unsigned_abs(),
        Fork::Child => {
            // Closes the copies of the supervisor's sockets; otherwise `tool-exec` would not notice
            // when the supervisor ends.
            drop((socket, upstream));
            if wire::take_over(&theirs).is_ok() {
                launch(&theirs, namespaces != Namespaces::None, &job, files);
            }
            exit(0)
        }
    };
    drop((theirs, files));
    let signals = ChildSignals::new()?;
    // Added before the launch stage goes on, so that the whole command is in the group.
    let group = CallGroup::make(&job.together).filter(|group| group.add(child));
    wire::send(&socket, &[], &[])?;
    // From here on the command may run. An error that is reported would claim that it does not.
    // This error ends the supervisor silently, so `tool-exec` reports that the outcome is unknown.
    let unknown = |_| std::io::Error::from(ErrorKind::UnexpectedEof);
    socket.set_nonblocking(true).map_err(unknown)?;
    upstream.set_nonblocking(true).map_err(unknown)?;
    Ok(CommandWatch {
        upstream: Some((upstream, Frames::default())),
        launch: Some((socket, Frames::default())),
        signals,
        namespaces,
        is_scoped,
        group,
        leader: i32::try_from(child).ok().and_then(Pid::from_raw),
        grace: job.grace,
        deadline: job.deadline.and_then(|time| start.checked_add(time)),
        started: None,
        is_reported: false,
        refusal: None,
        status: None,
        kill_at: None,
        give_up_at: None,
        is_warned: false,
        is_timeout: false,
    })
}

/// A running command.
struct CommandWatch {
    /// The socket to `tool-exec`, or `None` once that has closed it.
    upstream: Option<(UnixStream, Frames)>,
    /// The socket to the launch stage, or `None` once that has ended or become the command.
    launch: Option<(UnixStream, Frames)>,
    signals: ChildSignals,
    namespaces: Namespaces,
    /// Whether this process and its descendants can signal only each other.
    is_scoped: bool,
    /// The control group of the launch stage and its descendants, or `None` without one.
    group: Option<CallGroup>,
    /// The launch stage, which may have become the command. `None` once reaped, since the system
    /// may then reuse its process id.
    leader: Option<Pid>,
    grace: Duration,
    deadline: Option<Instant>,
    started: Option<InForce>,
    /// Whether the start of the command has been reported to `tool-exec`.
    is_reported: bool,
    /// Why the command did not run, or `None`.
    refusal: Option<String>,
    /// The exit status of the command, once known.
    status: Option<i32>,
    /// When all remaining processes are killed. `None` while the command may continue.
    kill_at: Option<Instant>,
    /// When to give up killing. `None` before the first kill.
    give_up_at: Option<Instant>,
    /// Whether SIGTERM has been sent.
    is_warned: bool,
    is_timeout: bool,
}

/// Returns the messages received over a socket, and drops the socket if its other end has closed.
fn hear<M: DeserializeOwned>(from: &mut Option<(UnixStream, Frames)>) -> Vec<M> {
    let Some((socket, frames)) = from else {
        return Vec::new();
    };
    let is_open = frames.read(socket);
    let messages = frames.messages();
    if !is_open {
        *from = None;
    }
    messages
}

impl CommandWatch {
    /// Waits until no process is left or killing is given up, and returns how the command ended.
    fn until_ended(&mut self) -> Notice {
        loop {
            self.hear_launch();
            self.hear_upstream();
            let is_gone = self.reap();
            if is_gone {
                self.hear_launch(); // reads the last reports
                return self.ended(vec![]);
            }
            let ControlFlow::Continue(wait) = self.do_what_is_due(Instant::now()) else {
                let left = descent::below()
                    .into_iter()
                    .filter(|p| !p.is_zombie)
                    .map(|p| p.pid);
                return self.ended(left.take(LISTED).collect());
            };
            let sockets: Vec<&UnixStream> = [&self.upstream, &self.launch]
                .into_iter()
                .flatten()
                .map(|(socket, _)| socket)
                .collect();
            self.signals.wait(&sockets, wait);
        }
    }

    /// Ends or kills the command if the time for it has come. Returns how long nothing is due, or
    /// breaks if killing is given up.
    fn do_what_is_due(&mut self, now: Instant) -> ControlFlow<(), Option<Duration>> {
        if self.status.is_some() {
            self.end_at(now + self.grace);
        }
        if self.deadline.is_some_and(|deadline| deadline <= now) && self.kill_at.is_none() {
            self.is_timeout = true;
            self.end_at(now + self.grace);
        }
        ControlFlow::Continue(match self.kill_at {
            None => self.deadline.map(|deadline| deadline - now),
            Some(at) if at > now => {
                if !std::mem::replace(&mut self.is_warned, true) {
                    self.terminate();
                }
                Some(at - now)
            }
            // Counted from the first kill, however late that is, because this process may have
            // been stopped.
            Some(_) if now < *self.give_up_at.get_or_insert(now + GIVE_UP) => {
                self.kill();
                Some(ROUND)
            }
            Some(_) => return ControlFlow::Break(()),
        })
    }

    fn ended(&mut self, left: Vec<i32>) -> Notice {
        if let (Some(in_force), None, false) = (self.started, &self.refusal, self.is_reported) {
            self.report(&Notice::Started(in_force)); // it ended before its start was noticed
        }
        match self.refusal.take() {
            Some(why) if left.is_empty() => Notice::NotStarted(why),
            _ => {
                let is_out_of_memory = self
                    .group
                    .as_ref()
                    .is_some_and(CallGroup::ran_out_of_memory);
                Notice::Ended(Ended {
                    status: self.status,
                    is_timeout: self.is_timeout,
                    is_out_of_memory,
                    left,
                })
            }
        }
    }

    /// Schedules the killing of all processes, unless an earlier time is already set.
    fn end_at(&mut self, time: Instant) {
        self.kill_at = Some(self.kill_at.map_or(time, |at| at.min(time)));
    }

    /// Carries out the orders of `tool-exec`.
    fn hear_upstream(&mut self) {
        let now = Instant::now();
        for order in hear(&mut self.upstream) {
            self.end_at(match order {
                EndOrder::Kill => now,
                EndOrder::End => now + self.grace,
            });
        }
        if self.upstream.is_none() {
            self.end_at(now + self.grace);
        }
    }

    /// Reads the notices of the launch stage.
    fn hear_launch(&mut self) {
        for notice in hear(&mut self.launch) {
            match notice {
                Notice::Started(in_force) => {
                    let user_namespace = self.namespaces == Namespaces::UserAndPid;
                    let limits = |controller| {
                        self.group
                            .as_ref()
                            .is_some_and(|group| group.limits(controller))
                    };
                    let memory_limit = limits(Controller::Memory);
                    let process_limit = limits(Controller::Processes);
                    self.started = Some(InForce {
                        user_namespace,
                        memory_limit,
                        process_limit,
                        ..in_force
                    });
                }
                Notice::NotStarted(why) => self.refusal = Some(why),
                Notice::Exited(status) => self.status = Some(status),
                Notice::Forked(_) | Notice::Unusable | Notice::Ended(_) => {}
            }
        }
        // A launch stage that becomes the command sends its notice before execve(2). Its socket
        // closes once that has succeeded.
        let runs = self.namespaces != Namespaces::None || self.launch.is_none();
        if let (Some(in_force), true, None, false) =
            (self.started, runs, &self.refusal, self.is_reported)
        {
            self.is_reported = true;
            self.report(&Notice::Started(in_force));
        }
    }

    fn report(&self, notice: &Notice) {
        if let Some((socket, _)) = &self.upstream {
            // Fails if `tool-exec` has ended.
            let _ = wire::report(socket, notice);
        }
    }

    /// Reaps the processes that have ended. Returns true if no descendants are left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, how))) if Some(pid) == self.leader => {
                    self.leader = None;
                    if self.namespaces == Namespaces::None {
                        self.status = how
                            .exit_status()
                            .or(how.terminating_signal().map(|n| 128 + n));
                    }
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
    }

    /// Sends SIGTERM to the command and all its descendants.
    fn terminate(&mut self) {
        if self.namespaces != Namespaces::None {
            if let Some((socket, _)) = &self.launch {
                // Fails if the launch stage is already ending.
                let _ = wire::report(socket, &EndOrder::End);
            }
            return;
        }
        if let Some(leader) = self.leader {
            // A single call for the whole group, so that a process cannot escape by forking.
            let _ = kill_process_group(leader, Signal::TERM);
        }
        descent::signal_all(&descent::below(), Signal::TERM);
    }

    /// Kills the command and all its descendants.
    fn kill(&self) {
        if let Some(group) = &self.group {
            group.kill();
        }
        if self.namespaces != Namespaces::None {
            if let Some(init) = self.leader {
                // The kernel kills all other processes of the namespace with its init.
                let _ = kill_process(init, Signal::KILL);
            }
        } else if self.is_scoped {
            // Kills every process that this one may signal, which are its descendants. A single
            // call, so that a process cannot escape by forking.
            let _ = kill(NixPid::from_raw(-1), NixSignal::SIGKILL);
        } else {
            if let Some(leader) = self.leader {
                let _ = kill_process_group(leader, Signal::KILL);
            }
            descent::signal_all(&descent::below(), Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    /// A supervisor that was stopped for long has not tried to kill before.
    #[test]
    fn killing_is_given_up_only_after_a_first_kill() {
        // It also ends if this test fails, with its input.
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let late = Instant::now() + 2 * GIVE_UP;
        let mut watch = CommandWatch {
            upstream: None,
            launch: None,
            signals: ChildSignals::new().unwrap(),
            namespaces: Namespaces::Pid,
            is_scoped: false,
            group: None,
            leader: Some(Pid::from_child(&child)),
            grace: Duration::ZERO,
            deadline: None,
            started: None,
            is_reported: false,
            refusal: None,
            status: None,
            kill_at: Some(Instant::now()),
            give_up_at: None,
            is_warned: true,
            is_timeout: true,
        };
        let next = watch.do_what_is_due(late);
        assert_eq!(next, ControlFlow::Continue(Some(ROUND)));
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        watch.leader = None; // reaped
        let next = watch.do_what_is_due(late + GIVE_UP);
        assert_eq!(next, ControlFlow::Break(()));
    }
}
