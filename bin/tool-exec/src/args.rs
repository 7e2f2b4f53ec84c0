//! The command-line arguments.

use clap::Parser;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::path::PathBuf;
use std::time::Duration;
use tool::{ApprovalLevel, CallAnswer, CallReference, Order, SandboxKind};
use toolbox::Toolbox;

/// Run the tool calls of a stream, and answer them.
///
/// Passes every event through, runs the calls as the tools file describes (commands without a
/// shell, requests, tools of MCP servers), and adds `tool_use`, `tool_result` and, after the turn's
/// own events, the tool messages in call order. Every failure of a call is a result that the model
/// can act on. The exit status is the next step: 0 results are ready, prompt again; 1 the turn is
/// over; 2 the turn failed; 3 calls need approval.
#[derive(Clone, Debug, Parser)]
#[command(name = "tool-exec", version, max_term_width = 100, override_usage = "tool-exec \
    [OPTIONS] --tools <FILE> [FILES]...", after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Files of events; standard input without any, or for `-`
    pub files: Vec<PathBuf>,
    /// The tools, and how each runs: a tools file, a program, a folder of programs or an OpenAPI
    /// document (may be given many times)
    #[arg(
        short,
        long,
        value_name = "FILE",
        required = false,
        required_unless_present_any = ["doctor", "describe", "replay"]
    )]
    pub tools: Vec<PathBuf>,
    /// The merged tools sources, once they have been read.
    #[arg(skip)]
    pub toolbox: Toolbox,
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
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = at_least_one, hide_short_help = true)]
    pub max_calls: usize,
    /// The order of results; tool messages are always in call order
    #[arg(long, value_name = "ORDER", default_value = "call", value_parser = order(), hide_short_help = true)]
    pub order: Order,
    /// The choice whose calls run, when the request asked for several
    #[arg(long, value_name = "N", default_value_t = 0, hide_short_help = true)]
    pub choice: u32,
    /// Write the output of a call as it appears, as `tool_progress` events
    #[arg(long, hide_short_help = true)]
    pub progress: bool,

    #[command(flatten)]
    pub permissions: Permissions,
    #[command(flatten)]
    pub confining: Confining,
    #[command(flatten)]
    pub keeping: Keeping,
    #[command(flatten)]
    pub servers: ServerArgs,

    /// Print the tools file of this program (or of any other --tools), and stop; may be given many
    /// times
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["tools", "files"], help_heading = "Looking only")]
    pub describe: Vec<PathBuf>,
    /// Run no tool and ask for no approval: each call gets the result and the decision that this
    /// log has for the same tool and arguments; without --tools the tools are those of the log
    #[arg(long, value_name = "LOG", help_heading = "Looking only", conflicts_with_all = ["cache", "hub"])]
    pub replay: Option<PathBuf>,
    /// Print the tools for a request (a JSON array in OpenAI's shape), and stop
    #[arg(long, conflicts_with = "dry_run", help_heading = "Looking only")]
    pub list: bool,
    /// Print what would run, one JSON line a call, and run nothing
    #[arg(long, help_heading = "Looking only")]
    pub dry_run: bool,
    /// Print the pending calls as ID:HASH, one a line, and run nothing; status 1 if there are none
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
  tool-exec -t tools.json --replay chat.ndjson turn.ndjson
  tool-exec -t tools.json --deny 'rm_*' --timeout 5s --jobs 2 turn.ndjson

A tools file:
  [{\"name\": \"weather\",
    \"parameters\": {\"type\": \"object\",
      \"properties\": {\"city\": {\"type\": \"string\"}}},
    \"exec\": {\"command\": [\"./weather.sh\", \"--city={city}\"], \"class\": \"read\"}}]";

/// Returns the parser of the order names, with their `--help` texts.
fn order() -> impl TypedValueParser<Value = Order> {
    let word = |name: &'static str, help: &'static str| PossibleValue::new(name).help(help);
    PossibleValuesParser::new([
        word("call", "As the message lists the calls"),
        word("completion", "As the calls end"),
    ])
    .map(|word| match &*word {
        "call" => Order::Call,
        _ => Order::Completion,
    })
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

// Which calls may run, from the command line.

/// What may run.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "What may run")]
pub(crate) struct Permissions {
    /// Run only tools whose name matches (may be given many times; * matches any characters, ?
    /// matches one)
    #[arg(long, value_name = "GLOB")]
    pub allow: Vec<String>,
    /// Never run tools whose name matches, not even with --allow
    #[arg(long, value_name = "GLOB")]
    pub deny: Vec<String>,
    /// Do not handle calls to tools whose name matches; another process answers them
    #[arg(long, value_name = "GLOB", hide_short_help = true)]
    pub leave: Vec<String>,
    /// Use the tools file, its programs, its lock file and the policy even if other users can write
    /// to them
    #[arg(long)]
    pub trust: bool,
    /// Ask for approval before calls of this class and above: danger, write, all, or none [default:
    /// danger]
    #[arg(long, value_name = "CLASS", value_parser = approve, alias = "approve")]
    pub ask: Option<ApprovalLevel>,
    /// Run this call although it needs approval, or was started before and its result is unknown
    /// (as --list-pending prints it)
    #[arg(long, value_name = "ID:HASH", value_parser = CallReference::read, allow_hyphen_values = true, hide_short_help = true)]
    pub approve_call: Vec<CallReference>,
    /// Refuse this call: it gets a `denied` result, even with --approve-call
    #[arg(long, value_name = "ID:HASH", value_parser = CallReference::read, allow_hyphen_values = true, hide_short_help = true)]
    pub deny_call: Vec<CallReference>,
    /// Give the result of this call, which was started before and whose result is unknown; it does
    /// not run again
    #[arg(long, value_name = "ID:HASH=RESULT", value_parser = CallAnswer::read, allow_hyphen_values = true, hide_short_help = true)]
    pub answer_call: Vec<CallAnswer>,
    /// Why this call is approved or refused: for its `approval` event, and for the model if the call
    /// is refused
    #[arg(skip)]
    pub answer_reason: Vec<CallAnswer>,
    /// Who gave the answers over HTTP, for the `approval` events; `None`: the user who runs this.
    #[arg(skip)]
    pub answered_by: Option<String>,
    /// How many calls of a turn may wait for approval; further ones are denied
    #[arg(long, value_name = "N", default_value_t = 20, hide_short_help = true)]
    pub max_questions: usize,
    /// After how many turns in a row with the same result the same call is denied; 0: never
    #[arg(long, value_name = "N", default_value_t = 3, hide_short_help = true)]
    pub max_repeats: u32,
    /// A policy: rules by tool and by argument, and limits of the conversation (docs/policy.md)
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// The command that the results of waiting calls name, without a line on standard error
    /// [default: this one, with --resume]
    #[arg(long, value_name = "COMMAND", hide_short_help = true)]
    pub continue_with: Option<String>,
}

/// The variable in which `tc-serve` passes a user's answers. Other users can read a command line,
/// but a reason or a result belongs to the conversation only.
const ANSWERS: &str = "TOOLPIPE_ANSWERS";

impl Permissions {
    /// Adds the answers in [`ANSWERS`]: a JSON array that alternates options and their values.
    ///
    /// # Errors
    /// If the variable has any other content.
    pub(crate) fn add_answers(&mut self) -> anyhow::Result<()> {
        let Some(text) = std::env::var_os(ANSWERS) else {
            return Ok(());
        };
        let bad = || anyhow::anyhow!("{ANSWERS} is for tc-serve, run: unset {ANSWERS}");
        let words: Vec<String> =
            serde_json::from_str(&text.to_string_lossy()).map_err(|_| bad())?;
        for pair in words.chunks(2) {
            let [option, value] = pair else {
                return Err(bad());
            };
            match option.as_str() {
                "--approve-call" => self.approve_call.push(CallReference::read(value)?),
                "--deny-call" => self.deny_call.push(CallReference::read(value)?),
                "--answer-call" => self.answer_call.push(CallAnswer::read(value)?),
                "--answer-reason" => self.answer_reason.push(CallAnswer::read(value)?),
                "--answered-by" => self.answered_by = Some(value.clone()),
                _ => return Err(bad()),
            }
        }
        Ok(())
    }
}

fn approve(text: &str) -> Result<ApprovalLevel, String> {
    ApprovalLevel::of(text).ok_or_else(|| "not one of danger, write, all, none".to_owned())
}

// The confinement of commands, from the command line.

/// What confines commands.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "What commands may reach")]
pub(crate) struct Confining {
    /// Sandbox for each command: none, landlock or bwrap; a tool may ask for more with
    /// `exec.sandbox`
    #[arg(long, value_name = "HOW", default_value = "none", value_parser = kind)]
    pub sandbox: SandboxKind,
    /// Print what is in force here for commands of this user, one line each; with --sandbox, status
    /// 2 if that is unavailable
    #[arg(long, conflicts_with_all = ["tools", "files"], help_heading = "Looking only")]
    pub doctor: bool,
}

fn kind(text: &str) -> Result<SandboxKind, String> {
    SandboxKind::of(text).ok_or_else(|| "not one of none, landlock, bwrap".to_owned())
}

/// What is stored on disk.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "What is kept")]
pub(crate) struct Keeping {
    /// Keep results of tools that have a `cache` time in this folder, in place of
    /// ~/.cache/toolpipe/results
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// Neither read results from the cache nor store any
    #[arg(long, conflicts_with = "cache")]
    pub no_cache: bool,
    /// Print what the cache holds as JSON (entries, bytes, how many are expired, and the same for
    /// each tool), and stop
    #[arg(long)]
    pub cache_stats: bool,
    /// How much of an output the model reads, unless its tool has its own `max_result`: head and
    /// tail, the whole goes into a file
    #[arg(long, value_name = "BYTES", default_value = "128K", value_parser = args::bytes)]
    pub max_result: usize,
    /// How much the files of whole outputs may take up, under ~/.cache/toolpipe/outputs; the oldest
    /// make room; 0 keeps none
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = event::unit::size)]
    pub keep_outputs: u64,
    /// Append all that goes to standard output to this file too, synced before each call starts and
    /// after it ends; read it first as --resume does
    #[arg(short, long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Sync a line to this file before each call starts, and its result after it has ended; read it
    /// first as --resume does
    #[arg(long, value_name = "LOG")]
    pub journal: Option<PathBuf>,
    /// A log or journal of an earlier run: a call that it answers does not run again, and its last
    /// turn is finished
    #[arg(long, value_name = "LOG")]
    pub resume: Vec<PathBuf>,
}

// The options about MCP servers.

/// Servers of tools.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Servers of tools (mcpServers)")]
pub(crate) struct ServerArgs {
    /// The lock file: the tools of servers, programs and documents as you have accepted them
    /// (default: the first tools file, else the first of --tools, with .lock at its end)
    #[arg(long, value_name = "FILE")]
    pub lock: Option<PathBuf>,
    /// Start the servers, print what has changed in their tools and in programs and documents that
    /// describe tools, accept it into the lock file, and stop
    #[arg(long, conflicts_with_all = ["list", "dry_run", "list_pending"])]
    pub update_lock: bool,
    /// Start the servers, run COMMAND (tool-exec --hub -t FILE -- COMMAND…), and end them with it:
    /// each tool-exec that COMMAND starts uses them
    #[arg(long, conflicts_with_all = ["list", "dry_run", "list_pending", "update_lock"])]
    pub hub: bool,
}
