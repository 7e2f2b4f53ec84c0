//! What was typed.

mod keeping;
mod permissions;
mod sandbox;
mod servers;

pub use keeping::Keeping;
pub use permissions::Permissions;
pub use sandbox::Confining;
pub use servers::ServerArgs;

use clap::{Parser, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Run the tool calls of a stream, and answer them.
///
/// Passes every event through, runs the calls as the tools file describes (commands without a
/// shell, requests, tools of MCP servers), and adds `tool_use`, `tool_result` and, after the turn's
/// own events, the tool messages in call order. Every failure of a call is a result that the model
/// can act on. The exit status is the next step: 0 results are ready, prompt again; 1 the turn is
/// over; 2 the turn failed; 3 calls wait for a person.
#[derive(Clone, Debug, Parser)]
#[command(name = "tool-exec", version, max_term_width = 100, override_usage = "tool-exec [OPTIONS] --tools <FILE> [FILES]...", after_help = EXAMPLES)]
pub struct Args {
    /// Files of events; standard input without any, or for `-`
    pub files: Vec<PathBuf>,
    /// The tools file: the tools, and how each is run
    #[arg(
        short,
        long,
        value_name = "FILE",
        required = false,
        required_unless_present = "doctor",
        default_value_if("doctor", "true", "/dev/null")
    )]
    pub tools: PathBuf,
    /// How many calls run at once
    #[arg(short, long, value_name = "N", default_value_t = 8, value_parser = at_least_one)]
    pub jobs: usize,
    /// How long a call may take, unless its tool has its own `timeout`
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = above_zero)]
    pub timeout: Duration,
    /// How much a call may write, unless its tool has its own `max_output` (K, M and G are
    /// understood)
    #[arg(long, value_name = "BYTES", default_value = "1M", value_parser = args::bytes)]
    pub max_output: usize,
    /// How many calls of one turn run; further ones are denied
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = at_least_one)]
    pub max_calls: usize,
    /// The order of results; tool messages are always in call order
    #[arg(long, value_name = "ORDER", value_enum, default_value_t)]
    pub order: Order,
    /// The choice whose calls run, when the request asked for several
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub choice: u32,
    /// Write the output of a call as it appears, as `tool_progress` events
    #[arg(long)]
    pub progress: bool,

    /// Cancel the calls whose ids are written to this file or named pipe, one a line (or a
    /// `retract` event), now or later
    #[arg(long, value_name = "FILE")]
    pub cancel_on: Option<PathBuf>,

    #[command(flatten)]
    pub permissions: Permissions,
    #[command(flatten)]
    pub confining: Confining,
    #[command(flatten)]
    pub keeping: Keeping,
    #[command(flatten)]
    pub servers: ServerArgs,

    /// Print the tools for a request (a JSON array in OpenAI's shape), and stop
    #[arg(long, conflicts_with = "dry_run", help_heading = "Looking only")]
    pub list: bool,
    /// Print what would run, one JSON line a call, and run nothing
    #[arg(long, help_heading = "Looking only")]
    pub dry_run: bool,
    /// Print the calls that wait for a person as ID:HASH, one a line, and run nothing; status 1
    /// without any
    #[arg(long, conflicts_with_all = ["list", "dry_run"], help_heading = "Looking only")]
    pub list_pending: bool,
    #[command(flatten)]
    pub common: args::Common,
}

const EXAMPLES: &str = "\
Examples:
  llm-stream -t tools.json <chat.ndjson | tc-accumulate |
    tool-exec -t tools.json >>chat.ndjson
  tool-exec -t tools.json --dry-run turn.ndjson | jq -r '.argv | @sh'
  tool-exec -t tools.json --resume chat.ndjson </dev/null >>chat.ndjson
  tool-exec -t tools.json --deny 'rm_*' --timeout 5s --jobs 2 turn.ndjson

A tools file:
  [{\"name\": \"weather\",
    \"parameters\": {\"type\": \"object\",
      \"properties\": {\"city\": {\"type\": \"string\"}}},
    \"exec\": {\"command\": [\"./weather.sh\", \"--city={city}\"], \"class\": \"read\"}}]";

/// The order in which results are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// As the message lists the calls
    #[default]
    Call,
    /// As the calls end
    Completion,
}

fn above_zero(text: &str) -> Result<Duration, String> {
    let time = event::unit::time(text).map_err(|e| e.to_string())?;
    if time.is_zero() {
        Err("must be above 0".to_owned())
    } else {
        Ok(time)
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|n| *n > 0)
        .ok_or_else(|| "not a number above 0".to_owned())
}
