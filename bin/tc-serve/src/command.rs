//! A command as the source of events: it is started for each request.

mod args;

pub use args::CommandArgs;

use crate::asked::Asked;
use crate::pipe::Pipe;
use std::time::Duration;

/// How a command answers requests.
#[derive(Debug)]
pub struct Command {}

impl Command {
    /// Prepares the command; `None` without one. `queue` requests at most wait for a process, and `grace` is the time between SIGTERM
    /// and SIGKILL.
    ///
    /// # Errors
    /// One line for a mistake in the arguments.
    pub fn new(args: &CommandArgs, queue: usize, grace: Duration) -> anyhow::Result<Option<Command>> {
        let _ = (queue, grace);
        Ok((!args.command.is_empty()).then_some(Command {}))
    }

    /// See [`crate::source::Source::run`].
    pub async fn run(&self, asked: &Asked, pipe: &Pipe) {
        let _ = asked;
        pipe.fail("not_implemented", "a COMMAND is not started yet", 501, None);
        pipe.room().await;
    }
}
