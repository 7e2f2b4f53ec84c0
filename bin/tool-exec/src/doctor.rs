//! `--doctor`: finds out by trial which limits and sandboxes work on this machine for this user's
//! commands.

use super::approve::QuestionTerminal;
use super::command::confine::groups::GroupLimits;
use super::command::confine::{Confinement, Sandboxes, landlock_version};
use super::command::scratch::unused_name;
use super::command::supervisor::{Containment, InForce, Job, ProcessLimits, StartError};
use super::command::{program, supervisor};
use super::stream;
use anyhow::{Context, anyhow, bail};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use stdio::Status;
use tool::SandboxKind;

/// The time limit of each trial.
const PATIENCE: Duration = Duration::from_secs(10);

/// Prints the limits and sandboxes that are in force, one per line.
///
/// # Errors
/// If no command can be started; or, after the findings are printed, if the sandbox `wanted` is
/// unavailable.
pub(crate) fn report(wanted: SandboxKind) -> anyhow::Result<Status> {
    let in_force = stream::block_on(try_command())?;
    let landlock = Sandboxes::lacks(SandboxKind::Landlock);
    let bwrap = Sandboxes::lacks(SandboxKind::Bwrap);
    let mut out = stdio::Output::new();
    for (what, found) in lines(in_force, landlock.as_deref(), bwrap.as_deref()) {
        out.put(format!("{what:<16} {found}\n").as_bytes())?;
    }
    out.flush()?;
    let lacks = match wanted {
        SandboxKind::None => None,
        SandboxKind::Landlock => landlock,
        SandboxKind::Bwrap => bwrap,
    };
    match lacks {
        Some(why) => bail!("--sandbox {} is unavailable: {why}", wanted.name()),
        None => Ok(Status::Done),
    }
}

/// Runs this program as a command, with all limits, and returns which limits were in force.
async fn try_command() -> anyhow::Result<InForce> {
    let program = std::env::current_exe().context("the file of this program is not known")?;
    let job = Job {
        argv: vec!["tool-exec".into(), "--version".into()],
        program,
        environment: vec![],
        folder: "/".into(),
        home: unused_name(),
        home_size: 1 << 20,
        limits: ProcessLimits::default(),
        together: GroupLimits {
            memory: Some(1 << 30),
            processes: Some(64),
        },
        deadline: Some(PATIENCE),
        grace: Duration::ZERO,
        confinement: Confinement::default(),
    };
    let nothing = std::fs::File::open("/dev/null").context("/dev/null cannot be opened")?;
    let started = supervisor::start(&job, nothing.into()).await;
    let mut running = started.map_err(|e| match e {
        StartError::NotStarted(why) => anyhow!("a command cannot be started here: {why}"),
        StartError::Unknown => {
            anyhow!("a command cannot be started here: its supervisor ended, see ulimit -a")
        }
    })?;
    running.supervisor.ended().await;
    Ok(running.in_force)
}

/// Returns a line for each part: its name and its state.
fn lines(
    in_force: InForce,
    landlock: Option<&str>,
    bwrap: Option<&str>,
) -> Vec<(&'static str, String)> {
    let yes = |is: bool, there: &'static str, not: &'static str| {
        (if is { there } else { not }).to_owned()
    };
    let is_root = rustix::process::geteuid().is_root();
    vec![
        (
            "processes",
            match in_force.containment {
                Containment::Namespace => "a PID namespace: a command sees and signals its own \
                    processes alone, and all end with it",
                Containment::SignalScope => {
                    "no PID namespace; Landlock keeps a command from signalling other processes, and all end with it"
                }
                Containment::Subreaper => {
                    "no PID namespace, no signal scope of Landlock: a command can signal or \
                     stop its supervisor; tool-exec ends what is left"
                }
            }
            .to_owned(),
        ),
        ("/proc", yes(in_force.own_proc, "of its own", "shared: a command sees the processes of others")),
        ("/dev/pts", yes(in_force.own_terminals, "of its own", "shared: a command may write to \
            the terminals of this user")),
        ("user", yes(in_force.user_namespace, "in a user namespace: no program gives it other rights", "this user")),
        ("deadline", "kept by a process of its own for each command".to_owned()),
        (
            "home",
            yes(
                in_force.home_limit,
                "a file system of limited size (exec.limits.home)",
                "a folder; only the size of each file is limited (exec.limits.file_size)",
            ),
        ),
        (
            "memory",
            yes(
                in_force.memory_limit,
                "of each process; with exec.limits.memory a control group counts all of a call, shared memory too",
                "of each process, private memory alone: no control group can be made, shared memory is not limited",
            ),
        ),
        (
            "process count",
            yes(
                in_force.process_limit,
                "of this user; with exec.limits.processes a control group counts those of a call",
                "of this user: no control group can be made",
            ),
        ),
        (
            "tool-exec",
            yes(
                is_root,
                "its memory, environment and files are open to root; a command with a /proc of \
                 its own does not find it there",
                "its memory, environment and files are closed to other processes of this user",
            ),
        ),
        (
            "network off",
            yes(
                landlock.is_none() || bwrap.is_none(),
                "by a network namespace, for every protocol",
                "no network namespace is available",
            ),
        ),
        ("privileges", "no program gives a command other rights (no_new_privs): sudo and its like do not work".to_owned()),
        (
            "system calls",
            yes(
                landlock.is_none() || bwrap.is_none(),
                "in a sandbox filtered: no sockets but those of UNIX and of IP (with a network \
                 also of routes), no keyrings, io_uring, bpf, user namespaces and mounts, no \
                 other process's memory and limits; without a sandbox not filtered",
                "not filtered: no sandbox is available",
            ),
        ),
        ("landlock", landlock_line(landlock)),
        ("bwrap", bwrap_line(bwrap)),
        (
            "terminal",
            yes(QuestionTerminal::is_there(), "there: approvals are asked on it", "none: calls \
                that need approval are pending"),
        ),
        (
            "MCP hub",
            std::env::var(program::HUB).map_or_else(|_| "none: each run starts its servers".to_owned(), |path| format!("at {path}")),
        ),
    ]
}

/// Returns the line about Landlock: what it covers here. `lacks` is why it is unavailable, or
/// `None`.
fn landlock_line(lacks: Option<&str>) -> String {
    let version = landlock_version();
    let parts = [
        (3, "files"),
        (4, "TCP"),
        (5, "ioctl of devices"),
        (6, "signals"),
        (6, "abstract UNIX sockets"),
        (9, "UNIX sockets with a path"),
    ];
    let list = |covered: bool| {
        let names = parts
            .iter()
            .filter(|(since, _)| (version >= *since) == covered)
            .map(|(_, name)| *name);
        names.collect::<Vec<_>>().join(", ")
    };
    match (version, lacks) {
        (0, _) => "none in this kernel, or not enabled".to_owned(),
        (_, None) => {
            let open = list(false);
            let open = if open.is_empty() {
                String::new()
            } else {
                format!("; not covered: {open}")
            };
            format!("version {version}: {}{open}", list(true))
        }
        (_, Some(why)) => format!(
            "version {version}: {}; cannot be used with the network off: {why}",
            list(true)
        ),
    }
}

fn bwrap_line(lacks: Option<&str>) -> String {
    let program = program::find("bwrap", Path::new("/"));
    let version = program
        .ok()
        .and_then(|program| Command::new(program).arg("--version").output().ok());
    let version = version
        .map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned())
        .unwrap_or_default();
    match lacks {
        None => format!("{version}: works"),
        Some(why) if version.is_empty() => why.to_owned(),
        Some(why) => format!("{version}: does not work: {why}"),
    }
}
