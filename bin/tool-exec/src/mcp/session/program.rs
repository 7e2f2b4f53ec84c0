//! A server that runs as a program: its process, with all descendants, and the end of its standard
//! error.

use super::stdio::{ServerFaults, StdioTransport};
use crate::command::confine::Sandboxes;
use crate::command::confine::groups::GroupLimits;
use crate::command::supervisor::{Job, ProcessLimits, RunningCommand, StartError, Supervisor};
use crate::command::{program, supervisor};
use crate::mcp::Confines;
use rustix::pipe::{PipeFlags, pipe_with};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::{Receiver, Sender};
use tool::fill;
use tool::mcp::Program;

/// How much of a server's standard error is kept, in bytes.
const TAIL: usize = 4096;
/// The size limit of a server's home, in bytes. Programs that install themselves use it.
const HOME: u64 = 1 << 30;

/// The process of a server. On drop, the process and all its descendants are ended.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    supervisor: Supervisor,
    errors: Arc<Mutex<VecDeque<u8>>>,
}

impl ServerProcess {
    /// Returns the job that runs a program. `folder` is the folder of the tools file; `home` is an
    /// unused path for the home. The environment is `PATH`, `LANG`, `HOME` and `TMPDIR` (an empty
    /// folder), and the variables that the tools file declares.
    ///
    /// # Errors
    /// What is missing, for the user.
    fn job(of: &Program, folder: &Path, home: &Path, confines: &Confines) -> Result<Job, String> {
        let first = of.command.first().ok_or("its command is empty")?;
        let mut environment = program::environment(&[], home, "");
        environment.retain(|(name, _)| name != "TOOL_ARGUMENTS");
        for (name, value) in &of.env {
            let (value, _) = fill(value, |name| {
                crate::variable(name).filter(|_| name != program::HUB)
            })
            .map_err(|e| format!("env.{name}: {e}"))?;
            environment.retain(|(known, _)| known.to_str() != Some(name));
            environment.push((name.into(), value.into()));
        }
        environment.retain(|(name, _)| name != program::HUB);
        let cwd = match &of.cwd {
            Some(cwd) => folder.join(cwd),
            None => std::env::current_dir().unwrap_or_else(|_| "/".into()),
        };
        program::check(&cwd)?;
        let program = program::find(first, folder)?;
        let what = (first.as_str(), &*program, &*cwd);
        let confinement = Sandboxes::of_program(
            confines.least,
            of.sandbox.as_ref(),
            folder,
            &confines.protected,
            what,
        );
        let confinement = confinement.map_err(|e| e.to_string())?;
        Ok(Job {
            program,
            argv: of.command.iter().map(Into::into).collect(),
            environment,
            folder: cwd,
            home: home.to_owned(),
            home_size: HOME,
            limits: ProcessLimits::default(),
            together: GroupLimits::default(),
            deadline: None,
            grace: crate::command::GRACE,
            confinement,
        })
    }

    /// Starts the program; see [`ServerProcess::job`].
    ///
    /// # Errors
    /// Why the program cannot be started, for the user.
    pub(crate) async fn start(
        of: &Program,
        folder: &Path,
        home: &Path,
        confines: &Confines,
        faults: ServerFaults,
    ) -> Result<(ServerProcess, StdioTransport), String> {
        let job = Self::job(of, folder, home, confines)?;
        let (stdin, feed) = pipe_with(PipeFlags::CLOEXEC).map_err(|e| e.to_string())?;
        let feed = Sender::from_owned_fd(feed).map_err(|e| e.to_string())?;
        let running = supervisor::start(&job, stdin).await.map_err(|e| match e {
            StartError::NotStarted(why) => why,
            StartError::Unknown => "the process that starts it was ended from outside".to_owned(),
        })?;
        let RunningCommand {
            stdout,
            stderr,
            supervisor,
            ..
        } = running;
        let process = ServerProcess {
            supervisor,
            errors: Arc::default(),
        };
        tokio::spawn(keep_tail(stderr, Arc::clone(&process.errors)));
        Ok((process, StdioTransport::new(feed, stdout, faults)))
    }

    /// Returns the last lines of standard error, or `None` if it is empty.
    pub(crate) fn errors(&self) -> Option<String> {
        let bytes: Vec<u8> = self
            .errors
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .copied()
            .collect();
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Waits until the process has ended.
    pub(crate) async fn ended(&mut self) {
        self.supervisor.ended().await;
    }

    /// Ends the process and waits until it has ended.
    pub(crate) async fn end(&mut self) {
        self.supervisor.control().end(false);
        self.supervisor.ended().await;
    }
}

/// Reads standard error, so that the server never blocks on it, and keeps its end.
async fn keep_tail(mut errors: Receiver, tail: Arc<Mutex<VecDeque<u8>>>) {
    let mut piece = [0; 4096];
    while let Ok(n) = errors.read(&mut piece).await {
        if n == 0 {
            return;
        }
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend(&piece[..n]);
        let over = tail.len().saturating_sub(TAIL);
        tail.drain(..over);
    }
}
