//! A hub: it starts the servers of a tools file once, and keeps them running for a command and all
//! that this starts.

mod client;
mod connection;
mod protocol;

pub(super) use client::{HubCall, HubClient};

use super::pool::Pool;
use crate::command::program::HUB;
use crate::stream::since_1970;
use anyhow::Context;
use rustix::process;
use rustix::process::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use stdio::Status;
use tokio::net::{UnixListener, UnixStream};
use tokio::process::Command;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Runs a command with the servers of `pool`, which run already, and returns its status. The
/// command finds the socket of the hub in its environment. Signals go on to it; the servers are
/// left running until it has ended.
///
/// # Errors
/// When the command cannot be started, or no folder for the socket can be made.
pub(super) async fn run(pool: Rc<Pool>, command: &[std::path::PathBuf]) -> anyhow::Result<Status> {
    let (program, arguments) = command
        .split_first()
        .context("--hub needs a command: tool-exec --hub --tools FILE -- COMMAND")?;
    let socket = Socket::open()?;
    // Before the command runs: a signal that comes at once waits for it. What is ignored here stays
    // ignored in the command, which a handler would undo.
    let signals: Vec<_> = stdio::heeded(&[SIGTERM, SIGHUP, SIGINT, SIGQUIT])
        .map(|number| (number, signal(SignalKind::from_raw(number))))
        .collect();
    let mut child = Command::new(program)
        .args(arguments)
        .env(HUB, socket.path())
        .spawn()
        .with_context(|| format!("{}: the command cannot be started", program.display()))?;
    let pid = child.id().unwrap_or_default();
    group::descent::spare(pid);
    for (number, taken) in signals {
        forward(number, taken?, pid)?;
    }
    let ended = loop {
        tokio::select! {
            ended = child.wait() => break ended,
            stream = socket.accept() => {
                if let Some(stream) = stream {
                    tokio::task::spawn_local(connection::serve(stream, Rc::clone(&pool)));
                }
            }
        }
    };
    drop(socket);
    pool.close().await;
    let ended = ended.context("the command cannot be waited for")?;
    let code = ended
        .code()
        .or(ended.signal().map(|signal| 128 + signal))
        .unwrap_or(255);
    Ok(Status::Command(u8::try_from(code).unwrap_or(255)))
}

/// Passes a signal on to the process `to` whenever it comes, unless the terminal has sent it to both.
fn forward(number: i32, mut taken: Signal, to: u32) -> anyhow::Result<()> {
    let to = i32::try_from(to)
        .ok()
        .and_then(Pid::from_raw)
        .context("the command has no number")?;
    let name = process::Signal::from_named_raw(number).context("no such signal")?;
    tokio::task::spawn_local(async move {
        while taken.recv().await.is_some() {
            let is_typed = matches!(number, SIGINT | SIGQUIT | SIGHUP) && is_in_foreground();
            if !is_typed {
                let _ = process::kill_process(to, name); // it has ended
            }
        }
    });
    Ok(())
}

/// Whether the terminal sends what is typed to this process, and so to its command, which is in the
/// same group.
fn is_in_foreground() -> bool {
    let terminal = std::fs::File::open(Path::new("/dev/tty")).ok();
    let group = terminal.and_then(|terminal| rustix::termios::tcgetpgrp(terminal).ok());
    group == Some(process::getpgrp())
}

// The socket of a hub, in a folder that this user alone can enter.

/// The longest path of a socket on Linux, in bytes (unix(7)).
const LONGEST: usize = 107;

/// The socket of a hub. Its folder is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Socket {
    folder: PathBuf,
    path: PathBuf,
    listener: UnixListener,
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// How many PID namespaces a process is in, counted from that of /proc. `None` if the process has
/// ended or /proc is not mounted.
fn namespaces(process: &str) -> Option<usize> {
    let status = std::fs::read_to_string(Path::new("/proc").join(process).join("status")).ok()?;
    Some(
        status
            .lines()
            .find_map(|line| line.strip_prefix("NSpid:"))?
            .split_whitespace()
            .count(),
    )
}

impl Socket {
    /// Opens it below `XDG_RUNTIME_DIR`, else below the folder for temporary files.
    ///
    /// # Errors
    /// When the socket can be created in neither folder.
    pub(super) fn open() -> anyhow::Result<Socket> {
        let now = since_1970();
        let name = format!("toolpipe-hub-{}-{:x}", std::process::id(), now.as_nanos());
        let places = std::env::var_os("XDG_RUNTIME_DIR")
            .map(PathBuf::from)
            .into_iter();
        let places = places
            .filter(|place| place.is_absolute() && place.is_dir())
            .chain([std::env::temp_dir(), "/tmp".into()]);
        let mut fits = places
            .map(|place| place.join(&name))
            .filter(|folder| folder.as_os_str().len() + 2 <= LONGEST);
        let folder = fits
            .next()
            .context("no folder for the socket of the hub has a short enough path, set TMPDIR")?;
        let failed =
            |path: &Path| format!("{}: the socket of the hub cannot be made", path.display());
        // Fails where something has that name already, even a link: another user may have put it
        // there.
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&folder)
            .with_context(|| failed(&folder))?;
        let path = folder.join(OsStr::from_bytes(b"s"));
        match UnixListener::bind(&path) {
            Ok(listener) => Ok(Socket {
                folder,
                path,
                listener,
            }),
            Err(e) => {
                let _ = std::fs::remove_dir(&folder);
                Err(e).with_context(|| failed(&path))
            }
        }
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The next client; `None` for one of another user, for a process in a PID namespace below this
    /// one, as the commands of tools are, and where none could be accepted.
    pub(super) async fn accept(&self) -> Option<UnixStream> {
        match self.listener.accept().await {
            Ok((stream, _)) => {
                let peer = stream.peer_cred().ok()?;
                let is_ours = peer.uid() == process::geteuid().as_raw();
                let is_beside = || {
                    peer.pid()
                        .is_some_and(|pid| namespaces(&pid.to_string()) == namespaces("self"))
                };
                (is_ours && is_beside()).then_some(stream)
            }
            Err(_) => {
                // Too many open files, say: the listener stays ready, so do not spin.
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                None
            }
        }
    }
}
