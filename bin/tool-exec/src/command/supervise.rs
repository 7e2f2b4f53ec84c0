//! The supervisor: the process above one command. It starts the command in a session of its own and under its limits. When the command
//! ends, when it must end, or when `tool-exec` itself is gone, the supervisor removes all that is left of it: processes and home.
//!
//! Each call runs as `tool-exec --supervise …`, which starts the command as its child: what a library would do between fork and exec,
//! with `unsafe`, is done in a whole process here. It is a child subreaper (prctl(2)), so it inherits what the command leaves behind,
//! even from another session (`setsid … &`), and ends it.

use super::scratch::Scratch;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1};
use std::ffi::OsString;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tool::Limits;

/// How long a command may take to end by itself after SIGTERM, before it is killed. With the killing that is less than a second.
pub const GRACE: Duration = Duration::from_millis(500);
/// How long killing may take before the supervisor gives up: a process in the middle of a device's work cannot be killed.
const GIVE_UP: Duration = Duration::from_secs(2);
/// The first argument of a supervisor.
const FLAG: &str = "--supervise";
/// The signal that ends the command without a grace.
const NOW: i32 = SIGUSR1;

/// The arguments of the supervisor that runs `program` under `limits`. It makes the folder `home` for the command and removes it. The
/// command's own arguments are `argv`.
pub fn arguments(limits: &Limits, home: &Path, program: &Path, argv: &[String]) -> Vec<OsString> {
    let number = |n: Option<u64>| n.map_or_else(|| "-".into(), |n| n.to_string().into());
    let mut all: Vec<OsString> = vec![FLAG.into(), rustix::process::getpid().as_raw_nonzero().to_string().into()];
    // A limit of seconds: what is less than one counts as one.
    all.push(number(limits.cpu.map(|time| time.as_secs() + u64::from(time.subsec_nanos() > 0))));
    all.extend([limits.memory, limits.files, limits.processes].map(number));
    all.extend([home.into(), program.into()]);
    all.extend(argv.iter().map(OsString::from));
    all
}

/// Asks a supervisor to end its command: after [`GRACE`], or at once.
pub fn end(supervisor: u32, at_once: bool) {
    if let Some(pid) = i32::try_from(supervisor).ok().and_then(Pid::from_raw) {
        let signal = if at_once { Signal::USR1 } else { Signal::TERM };
        let _ = rustix::process::kill_process(pid, signal); // fails where it has ended already
    }
}

/// Supervises a command if this process was started for that, and returns the status to end with; else `None`.
pub fn run_if_asked() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != FLAG {
        return None;
    }
    let args: Vec<OsString> = args.collect();
    let [parent, cpu, memory, files, processes, home, program, name, rest @ ..] = &args[..] else {
        return Some(ExitCode::from(2));
    };
    let mut signals = match SupervisorSignals::new() {
        Ok(signals) => signals,
        Err(e) => return Some(cannot_start(&e)),
    };
    if !leave(parent) {
        return Some(ExitCode::from(2));
    }
    let _home = match Scratch::make(Path::new(home)) {
        Ok(home) => home, // removed at the end, when no process is left that could use it
        Err(e) => return Some(cannot_start(&e)),
    };
    for (resource, limit) in
        [(Resource::Cpu, cpu), (Resource::Data, memory), (Resource::Nofile, files), (Resource::Nproc, processes)]
    {
        lower(resource, limit.to_str().and_then(|n| n.parse().ok()));
    }
    lower(Resource::Core, Some(0));
    // The command gets the three pipes and no other file that this process was handed.
    close_fds::set_fds_cloexec(3, &[]);
    match Command::new(program).arg0(name).args(rest).process_group(0).spawn() {
        Ok(child) => Some(ExitCode::from(watch(child.id(), &mut signals))),
        Err(e) => Some(cannot_start(&e)),
    }
}

fn cannot_start(e: &std::io::Error) -> ExitCode {
    stdio::message("tool-exec", &format!("the command cannot be started: {e}"));
    ExitCode::from(if e.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 })
}

/// Leaves the terminal, and asks to be ended with the process that started this one. `false`: that process has ended already.
fn leave(parent: &OsString) -> bool {
    let _ = rustix::process::setsid(); // fails only for the leader of a group, which a fresh child is not
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::process::set_parent_process_death_signal(Some(Signal::TERM));
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    }
    let now = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().to_string());
    now.as_deref() == parent.to_str()
}

/// Lowers a limit for this process and what it starts; never raises one.
fn lower(resource: Resource, limit: Option<u64>) {
    let Some(limit) = limit else { return };
    let now = rustix::process::getrlimit(resource);
    let limit = now.maximum.map_or(limit, |most| most.min(limit));
    let _ = rustix::process::setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) });
}

/// Waits for the command and ends whatever it left behind; returns the status to end with, like a shell's.
fn watch(leader: u32, signals: &mut SupervisorSignals) -> u8 {
    let leader = i32::try_from(leader).ok().and_then(Pid::from_raw);
    let (mut status, mut ending, mut is_warned) = (None, None::<Instant>, false);
    loop {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, how))) if Some(pid) == leader => {
                    status = how.exit_status().or(how.terminating_signal().map(|n| 128 + n));
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => break,
                // No child is left: neither the command nor anything that it left behind.
                Err(_) => return u8::try_from(status.unwrap_or(255)).unwrap_or(255),
            }
        }
        let now = Instant::now();
        if signals.now.load(Ordering::Relaxed) {
            ending = Some(now);
        } else if ending.is_none() && (status.is_some() || signals.end.load(Ordering::Relaxed)) {
            ending = Some(now + GRACE);
        }
        let wait = match ending {
            None => None,
            Some(at) if at > now => {
                if !std::mem::replace(&mut is_warned, true) {
                    kill_tree(leader.filter(|_| status.is_none()), Signal::TERM);
                }
                Some(at - now)
            }
            Some(at) if now < at + GIVE_UP => {
                kill_tree(leader.filter(|_| status.is_none()), Signal::KILL);
                // The next round finds what was forked in the meantime.
                Some(Duration::from_millis(10))
            }
            Some(_) => return 137,
        };
        signals.wait(wait);
    }
}

/// Sends `signal` to the process group of the command, and to every process that descends from this one. `leader` is the command
/// until it is waited for: after that the system may give its number to another process.
fn kill_tree(leader: Option<Pid>, signal: Signal) {
    if let Some(leader) = leader {
        // One call for the whole group: a process that forks cannot outrun it.
        let _ = rustix::process::kill_process_group(leader, signal);
    }
    for pid in descendants() {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// The processes below this one; none without /proc.
fn descendants() -> Vec<Pid> {
    let mut all: Vec<(i32, i32)> = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // "pid (name) state parent …" (proc_pid_stat(5)); the name may hold anything, even brackets.
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        all.extend(parent.map(|parent| (pid, parent)));
    }
    let mut found = vec![rustix::process::getpid().as_raw_nonzero().get()];
    let mut next = 0;
    while next < found.len() {
        let parent = found[next];
        found.extend(all.iter().filter(|(_, p)| *p == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found.into_iter().skip(1).filter_map(Pid::from_raw).collect()
}

/// The signals of a supervisor, as flags and as a socket that a wait sees.
struct SupervisorSignals {
    end: Arc<AtomicBool>,
    now: Arc<AtomicBool>,
    wake: UnixStream,
}

impl SupervisorSignals {
    fn new() -> std::io::Result<Self> {
        let (wake, write) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        write.set_nonblocking(true)?;
        let (end, now, ignored) = (Arc::default(), Arc::default(), Arc::default());
        for (signal, flag) in [
            (SIGTERM, &end),
            (NOW, &now),
            (SIGCHLD, &ignored),
            (SIGINT, &ignored),
            (SIGHUP, &ignored),
            (SIGQUIT, &ignored),
        ] {
            signal_hook::flag::register(signal, Arc::clone(flag))?;
            signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
        }
        Ok(SupervisorSignals { end, now, wake })
    }

    /// Waits for a signal, for `most` at the most.
    fn wait(&mut self, most: Option<Duration>) {
        let most = most.and_then(|time| Timespec::try_from(time).ok());
        let _ = poll(&mut [PollFd::new(&self.wake, PollFlags::IN)], most.as_ref());
        let mut drop = [0; 64];
        while matches!(std::io::Read::read(&mut self.wake, &mut drop), Ok(n) if n > 0) {}
    }
}
