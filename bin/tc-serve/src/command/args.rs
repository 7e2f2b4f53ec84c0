//! The options of a command.

/// A command that answers requests.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Command")]
pub struct CommandArgs {
    /// A command that answers each request: one word is a shell's command line
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}
