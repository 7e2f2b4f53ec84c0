//! What was typed.

use clap::{Parser, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Run the tool calls of a stream, and answer them.
///
/// Passes every event through, runs the calls as commands of the tools file (no shell), and adds `tool_use`, `tool_result` and,
/// after the turn's own events, the tool messages in call order. Every failure of a call is a result that the model can act on. The
/// exit status is the next step: 0 results are ready, prompt again; 1 the turn is over; 2 the turn failed; 3 calls wait for a person.
#[derive(Clone, Debug, Parser)]
#[command(name = "tool-exec", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Args {
    /// Files of events; standard input without any, or for `-`
    pub files: Vec<PathBuf>,
    /// The tools file: the tools and the command of each
    #[arg(short, long, value_name = "FILE")]
    pub tools: PathBuf,
    /// How many calls run at once
    #[arg(short, long, value_name = "N", default_value_t = 8, value_parser = at_least_one)]
    pub jobs: usize,
    /// How long a call may take, unless its tool has its own `timeout`
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = above_zero)]
    pub timeout: Duration,
    /// How much a call may write, unless its tool has its own `max_output` (K, M and G are understood)
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

    /// Run only tools whose name matches (may be given many times; * matches any characters, ? matches one)
    #[arg(long, value_name = "GLOB", help_heading = "What may run")]
    pub allow: Vec<String>,
    /// Never run tools whose name matches, not even with --allow
    #[arg(long, value_name = "GLOB", help_heading = "What may run")]
    pub deny: Vec<String>,
    /// The calls that need a person's approval: danger (they are `pending`, status 3, until --approve-call), or none
    #[arg(long, value_name = "CLASS", default_value = "danger", value_parser = approve, help_heading = "What may run")]
    pub approve: Approve,
    /// Run the call with this id although it needs approval, or was started before and its result is unknown
    #[arg(long, value_name = "ID", help_heading = "What may run")]
    pub approve_call: Vec<String>,
    /// Refuse the call with this id: it gets a `denied` result, even with --approve-call
    #[arg(long, value_name = "ID", help_heading = "What may run")]
    pub deny_call: Vec<String>,
    /// How calls are confined: none
    #[arg(long, value_name = "HOW", default_value = "none", value_parser = sandbox, help_heading = "What may run")]
    pub sandbox: String,

    /// Keep results of tools that have a `cache` time in this folder, and take them from there
    #[arg(long, value_name = "DIR", help_heading = "What is kept")]
    pub cache: Option<PathBuf>,
    /// Sync a line to this file before each call starts, and its result after it has ended
    #[arg(long, value_name = "LOG", help_heading = "What is kept")]
    pub journal: Option<PathBuf>,
    /// A log or journal of an earlier run: a call that it answers does not run again, and its last turn is finished
    #[arg(long, value_name = "LOG", help_heading = "What is kept")]
    pub resume: Vec<PathBuf>,

    /// Print the tools for a request (a JSON array in OpenAI's shape), and stop
    #[arg(long, conflicts_with = "dry_run", help_heading = "Looking only")]
    pub list: bool,
    /// Print what would run, one JSON line a call, and run nothing
    #[arg(long, help_heading = "Looking only")]
    pub dry_run: bool,
    /// Print the ids of the calls that wait for a person, one a line, and run nothing; status 1 without any
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

/// Which calls need a person's approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approve {
    /// None.
    None,
    /// Those of class danger.
    Danger,
}

fn approve(text: &str) -> Result<Approve, String> {
    match text {
        "none" => Ok(Approve::None),
        "danger" => Ok(Approve::Danger),
        "write" | "all" => Err("this version cannot ask a person, use danger or none".to_owned()),
        _ => Err("not one of danger, none".to_owned()),
    }
}

/// A sandbox that this version does not have is refused: running without one would not be what was asked for.
fn sandbox(text: &str) -> Result<String, String> {
    match text {
        "none" => Ok(text.to_owned()),
        "landlock" | "bwrap" => {
            Err("this version has no such sandbox, run the whole pipeline inside one and use none".to_owned())
        }
        _ => Err("this version has only none".to_owned()),
    }
}

fn above_zero(text: &str) -> Result<Duration, String> {
    let time = event::unit::time(text).map_err(|e| e.to_string())?;
    if time.is_zero() { Err("must be above 0".to_owned()) } else { Ok(time) }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| "not a number above 0".to_owned())
}
