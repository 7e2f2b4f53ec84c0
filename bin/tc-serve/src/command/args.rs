//! The options of a command.

/// A command that answers requests.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Command")]
pub struct CommandArgs {
    /// How many commands may run at once; further requests wait, as many of each key as --queue
    /// says, and the keys take turns
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub processes: u32,
    /// How much a command may write for one answer (K, M and G are understood)
    #[arg(long, value_name = "BYTES", value_parser = ::args::bytes, default_value = "64M")]
    pub max_output: usize,
    /// A command that answers each request: one word is a command line for sh, several are a
    /// program and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}
