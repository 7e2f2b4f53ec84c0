//! A hub: starts the servers of a tools file once, and keeps them running for a command and all its
//! descendants.

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

/// Runs a command with the servers of `pool`, which are already running, and returns its status.
/// The command finds the hub's socket in its environment. Signals are forwarded to the command; the
/// servers keep running until the command has ended.
///
/// # Errors
/// If the command cannot be started, or if no folder for the socket can be created.
/// When the command cannot be started, or no folder for the socket can be made.
pub(super) async fn run(pool: Rc<Pool>, command: &[std::path::PathBuf]) -> anyhow::Result<Status> {
    let (program, arguments) = command
        .split_first()
        .context("--hub needs a command: tool-exec --hub --tools FILE -- COMMAND")?;
    let socket = Socket::open()?;
    // Handlers are installed before the command starts, so that an early signal is kept for it.
    // Ignored signals get no handler, so that they stay ignored in the command.
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

/// Forwards a signal to the process `to` whenever it arrives, unless the terminal has sent it to
/// both.
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
                let _ = process::kill_process(to, name); // fails if it has ended
            }
        }
    });
    Ok(())
}

/// Whether the terminal sends its signals to this process, and so to the command, which is in the
/// same process group.
fn is_in_foreground() -> bool {
    let terminal = std::fs::File::open(Path::new("/dev/tty")).ok();
    let group = terminal.and_then(|terminal| rustix::termios::tcgetpgrp(terminal).ok());
    group == Some(process::getpgrp())
}

// The socket of a hub, in a folder that only this user can enter.

/// The maximum length of a socket path on Linux, in bytes (unix(7)).
const LONGEST: usize = 107;

/// The socket of a hub. Its folder is removed on drop.
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

/// Returns how many PID namespaces a process is in, counted from the namespace of /proc. Returns
/// `None` if the process has ended or /proc is not mounted.
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
    /// Opens a socket in a new folder below `XDG_RUNTIME_DIR`, or else below the folder for
    /// temporary files.
    ///
    /// # Errors
    /// If no folder has a short enough path, or if the socket cannot be created.
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
        // Fails if the path exists, even as a link: another user may have put it there.
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

    /// Returns the path of the socket.
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
                // For example, too many files are open. The listener stays ready, so wait instead
                // of spinning.
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                None
            }
        }
    }
}
