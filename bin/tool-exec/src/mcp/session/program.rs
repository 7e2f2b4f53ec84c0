//! A server that is a program: its process, with everything that it starts, and the end of its
//! standard error.

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

/// How much of the standard error of a server is kept, in bytes.
const TAIL: usize = 4096;
/// How much the home of a server may hold, in bytes: programs that install themselves use it.
const HOME: u64 = 1 << 30;

/// A server's process. It ends with this value, and so does everything that it started.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    supervisor: Supervisor,
    errors: Arc<Mutex<VecDeque<u8>>>,
}

impl ServerProcess {
    /// What is started for a program. `folder` is that of the tools file, `home` an unused name for
    /// a folder. The environment is `PATH`, `LANG`, an empty `HOME` and `TMPDIR`, and what the
    /// tools file declares.
    ///
    /// # Errors
    /// What is missing, for people.
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

    /// Starts the program, see [`ServerProcess::job`].
    ///
    /// # Errors
    /// Why it cannot be started, for people.
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

    /// The last lines of its standard error, if it wrote any.
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

    /// Has the process ended, and waits for that.
    pub(crate) async fn end(&mut self) {
        self.supervisor.control().end(false);
        self.supervisor.ended().await;
    }
}

/// Reads standard error, so that the server never waits for that, and keeps the end of it.
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
