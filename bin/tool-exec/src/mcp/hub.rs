//! A hub: it starts the servers of a tools file once, and keeps them running for a command and all
//! that this starts.

mod client;
mod connection;
mod protocol;
mod socket;

pub use client::{HubCall, HubClient};

use super::pool::Pool;
use crate::command::program::HUB;
use crate::command::supervisor;
use anyhow::Context;
use rustix::process::{Pid, Signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use socket::Socket;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::rc::Rc;
use stdio::Status;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::process::Command;

/// Runs a command with the servers of `pool`, which run already, and returns its status. The
/// command finds the socket of the hub in its environment. Signals go on to it; the servers are
/// left running until it has ended.
///
/// # Errors
/// When the command cannot be started, or no folder for the socket can be made.
pub async fn run(pool: Rc<Pool>, command: &[std::path::PathBuf]) -> anyhow::Result<Status> {
    let (program, arguments) = command
        .split_first()
        .context("--hub needs a command: tool-exec --hub --tools FILE -- COMMAND")?;
    let socket = Socket::open()?;
    // Before the command runs: a signal that comes at once waits for it.
    let signals =
        [SIGTERM, SIGHUP, SIGINT, SIGQUIT].map(|signal| anyhow::Ok((signal, taken(signal)?)));
    let mut child = Command::new(program)
        .args(arguments)
        .env(HUB, socket.path())
        .spawn()
        .with_context(|| format!("{}: the command cannot be started", program.display()))?;
    let pid = child.id().unwrap_or_default();
    supervisor::spare(pid);
    for taken in signals {
        let (signal, stream): (i32, UnixStream) = taken?;
        forward(signal, stream, pid)?;
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

/// Takes a signal over: each one is a byte of the stream.
fn taken(signal: i32) -> anyhow::Result<UnixStream> {
    let (read, write) = std::os::unix::net::UnixStream::pair()?;
    read.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(signal, write)?;
    Ok(UnixStream::from_std(read)?)
}

/// Passes a signal, which comes as bytes of `read`, on to the process `to`, unless the terminal has
/// sent it to both.
fn forward(signal: i32, mut read: UnixStream, to: u32) -> anyhow::Result<()> {
    let to = i32::try_from(to)
        .ok()
        .and_then(Pid::from_raw)
        .context("the command has no number")?;
    let name = Signal::from_named_raw(signal).context("no such signal")?;
    tokio::task::spawn_local(async move {
        let mut one = [0];
        while matches!(read.read(&mut one).await, Ok(1)) {
            let is_typed = matches!(signal, SIGINT | SIGQUIT | SIGHUP) && is_in_foreground();
            if !is_typed {
                let _ = rustix::process::kill_process(to, name); // it has ended
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
    group == Some(rustix::process::getpgrp())
}
