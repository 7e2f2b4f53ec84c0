//! What was typed, with what the environment adds, as the values of a task.

use crate::args::Args;
use crate::ask::AskSettings;
use crate::replay::ReplaySettings;
use anyhow::{Result, bail};

/// What the command is to do.
#[derive(Debug)]
pub enum Task {
    /// Print how a model learns of its tools.
    Probe(Box<AskSettings>),
    /// Print the request.
    DryRun(Box<AskSettings>),
    /// Ask for the next turn.
    Turn(Box<AskSettings>),
    /// Play what was recorded.
    Replay(Box<ReplaySettings>),
}

impl Args {
    /// The task, with its settings.
    ///
    /// # Errors
    /// One line for options that contradict each other, and for an invalid variable of the
    /// environment.
    pub fn task(self) -> Result<Task> {
        if !self.replay.files.is_empty() {
            return Ok(Task::Replay(Box::new(self.replay_settings())));
        }
        if self.replay.faults().any() {
            bail!("faults are put into recorded bodies only, name one with --replay");
        }
        let (is_probe, is_dry) = (self.auto.probe, self.request.dry_run);
        let settings = Box::new(self.ask_settings()?);
        Ok(match (is_probe, is_dry) {
            (true, _) => Task::Probe(settings),
            (_, true) => Task::DryRun(settings),
            _ => Task::Turn(settings),
        })
    }

    fn replay_settings(self) -> ReplaySettings {
        let tools = self.request.tools_mode;
        ReplaySettings {
            faults: self.replay.faults(),
            files: self.replay.files,
            api: self.request.provider.api,
            speed: self.replay.speed,
            tools_mode: tools.tools_mode,
            dialect: tools.dialect,
            dialect_file: tools.dialect_file,
            tools: self.request.tools,
            prefill: tools.prefill,
            max_frame: self.common.max_line,
            no_time: self.common.no_time,
            is_verbose: self.verbose,
        }
    }

    fn ask_settings(self) -> Result<AskSettings> {
        let tape = self.replay.tape()?;
        let filter = self.common.filter("llm-stream", vec![]);
        let (request, connection) = (self.request, self.connection);
        Ok(AskSettings {
            auto: self
                .auto
                .settings
                .settings(&request.tools_mode, &connection),
            provider: request.provider.settings(
                &request.tools_mode,
                &connection,
                filter.max_line,
            )?,
            connection: connection.settings(),
            prompt: self.prompt,
            system: request.system,
            tools: request.tools,
            tool_choice: request.tool_choice,
            streams: !request.no_stream,
            tape,
            speed: self.replay.speed,
            max_steps: request.max_steps,
            filter,
            is_verbose: self.verbose,
        })
    }
}
