//! Pipelines of stages, which are commands joined by pipes.

use crate::signals::{Running, StageHandle};
use anyhow::{Context, bail};
use event::shell_word;
use std::ffi::OsString;
use std::fmt::{self, Display, Formatter};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus};
use stdio::Status;

/// A command with its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    /// The name of the command.
    pub command: &'static str,
    /// The arguments.
    pub arguments: Vec<OsString>,
    /// The function that a thread of this process runs instead of the command; `None` if the
    /// command runs as a process.
    main: Option<fn() -> ExitCode>,
}

impl Stage {
    /// Creates a stage from its command and arguments.
    pub(crate) fn new<W: Into<OsString>>(
        command: &'static str,
        arguments: impl IntoIterator<Item = W>,
    ) -> Stage {
        Stage {
            command,
            arguments: arguments.into_iter().map(Into::into).collect(),
            main: None,
        }
    }

    /// Makes the stage a thread of this process, if this program contains the command.
    pub(crate) fn in_thread(self) -> Stage {
        let main = ::args::program::main_of(self.command);
        Stage { main, ..self }
    }

    /// Adds arguments to the stage.
    pub(crate) fn and<W: Into<OsString>>(mut self, more: impl IntoIterator<Item = W>) -> Stage {
        self.arguments.extend(more.into_iter().map(Into::into));
        self
    }

    /// Returns the process, not started yet.
    ///
    /// # Errors
    /// Fails if the command is missing.
    pub(crate) fn process(&self) -> anyhow::Result<Command> {
        let words = find(self.command)?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(&self.arguments);
        Ok(command)
    }
}

/// Formats the stage as a shell command.
impl Display for Stage {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(self.command)?;
        self.arguments
            .iter()
            .try_for_each(|word| write!(out, " {}", shell_word(&word.to_string_lossy())))
    }
}

/// Returns the first words of the command line of a stage.
///
/// # Errors
/// Fails if the command is neither beside this program nor in PATH.
pub(crate) fn find(name: &str) -> anyhow::Result<Vec<OsString>> {
    let words = ::args::program::command(name);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_program = |file: PathBuf| {
        file.metadata()
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if words == [name] && !std::env::split_paths(&path).any(|folder| is_program(folder.join(name)))
    {
        bail!(
            "{name} is neither beside react nor in PATH, run 'cargo build --release' and add \
             target/release to PATH"
        );
    }
    Ok(words)
}

/// A list of stages joined by pipes.
#[derive(Clone, Debug)]
pub(crate) struct Pipeline(pub Vec<Stage>);

/// Formats the stages as a shell pipeline.
impl Display for Pipeline {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        for (at, stage) in self.0.iter().enumerate() {
            if at > 0 {
                out.write_str(" | ")?;
            }
            write!(out, "{stage}")?;
        }
        Ok(())
    }
}

/// The exit of a stage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StageEnd {
    command: &'static str,
    status: ExitStatus,
}

impl StageEnd {
    /// Creates the exit of a command.
    pub(crate) fn of(command: &'static str, status: ExitStatus) -> StageEnd {
        StageEnd { command, status }
    }

    /// Returns the exit status that counts for the run: that of the stage, 128 plus the signal
    /// number for SIGINT and SIGTERM, with which a user or the system stops a stage, and 2 for any
    /// other signal.
    pub(crate) fn code(self) -> i32 {
        match (self.status.code(), self.status.signal()) {
            (Some(code), _) => code,
            (None, Some(signal @ (2 | 15))) => 128 + signal,
            _ => i32::from(Status::Error.code()),
        }
    }

    /// Returns a description if a signal other than SIGINT and SIGTERM killed the stage; otherwise
    /// `None`.
    pub(crate) fn killed(self) -> Option<String> {
        let signal = self.status.signal().filter(|n| ![2, 15].contains(n))?;
        Some(format!("{} was killed by signal {signal}", self.command))
    }
}

impl Pipeline {
    /// Runs all stages concurrently, from `input` to `output`; returns their exits in order.
    ///
    /// # Errors
    /// Fails if a stage is missing or cannot be started. The stages that already run then reach the
    /// end of their input, and are waited for.
    pub(crate) fn run(
        &self,
        running: &Running,
        input: OwnedFd,
        output: OwnedFd,
    ) -> anyhow::Result<Vec<StageEnd>> {
        let mut children = Vec::new();
        let started = self.start(running, input, output, &mut children);
        let ended: io::Result<Vec<StageEnd>> = children
            .iter_mut()
            .map(|stage| stage.wait(running))
            .collect();
        started?;
        ended.context("a stage cannot be waited for")
    }

    /// Starts all stages, from `input` to `output`, and adds them to `children`.
    ///
    /// # Errors
    /// As [`Pipeline::run`]; `children` then has those that run.
    pub(crate) fn start(
        &self,
        running: &Running,
        input: OwnedFd,
        output: OwnedFd,
        children: &mut Vec<StartedStage>,
    ) -> anyhow::Result<()> {
        let mut input = input;
        if let Some((last, others)) = self.0.split_last() {
            for stage in others {
                let (read, write) = io::pipe().context("a pipe cannot be made")?;
                children.push(start(stage, running, input, Some(write.into()))?);
                input = read.into();
            }
            children.push(start(last, running, input, Some(output))?);
        }
        Ok(())
    }
}

/// Starts a stage without waiting for it. If `output` is `None`, the stage writes to the standard
/// output of react.
///
/// # Errors
/// Fails if the command is missing or cannot be started.
pub(crate) fn start(
    stage: &Stage,
    running: &Running,
    input: OwnedFd,
    output: Option<OwnedFd>,
) -> anyhow::Result<StartedStage> {
    let command = stage.command;
    let run = match stage.main {
        Some(main) => {
            let words = [command.into()].into_iter().chain(stage.arguments.clone());
            running.start_thread(words.collect(), input, output, main)?
        }
        None => {
            let mut process = stage.process()?;
            process.stdin(input);
            if let Some(output) = output {
                process.stdout(output);
            }
            let child = process
                .spawn()
                .with_context(|| format!("{command} cannot be started"))?;
            running.add(&child);
            StageHandle::Process(child)
        }
    };
    Ok(StartedStage { command, run })
}

/// A running stage.
#[derive(Debug)]
pub(crate) struct StartedStage {
    command: &'static str,
    run: StageHandle,
}

impl StartedStage {
    /// Whether the stage has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.run.has_ended()
    }

    /// Waits until the stage has ended.
    ///
    /// # Errors
    /// Returns the error of the system call.
    pub(crate) fn wait(&mut self, running: &Running) -> io::Result<StageEnd> {
        let status = running.wait(&mut self.run)?;
        Ok(StageEnd {
            command: self.command,
            status,
        })
    }
}
