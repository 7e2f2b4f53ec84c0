//! What was typed.

use ask::{ConnectionArgs, FaultArgs, ProviderArgs, ReplayArgs, ToolsModeArgs};
use clap::Parser;
use std::num::NonZeroUsize;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Standard input is read to its end, unless it is a terminal. The `message` events of a log are the \
conversation so far. Input without a JSON object on any line is text, and follows PROMPT in the \
question. The output can be appended to the log: together they are the input of the next turn.

Examples:
  A question, with the key in OPENAI_API_KEY:
    llm-stream -m gpt-5-mini 'Why is the sky blue?'
  About a text:
    cat notes.txt | llm-stream -m gpt-5-mini 'Summarise this.' | tc-view
  A local server that speaks OpenAI's API:
    llm-stream --base-url http://localhost:8080 -m any 'Hello' | tc-view
  Each line of a file, eight at once:
    llm-stream -m gpt-5-mini --each -j 8 'Translate into French:' <words.txt
  The request and its address, without sending it:
    llm-stream --dry-run -a anthropic -m claude-sonnet-4-5 'Hello'
  A parameter of the API:
    llm-stream -m gpt-5-mini --param reasoning_effort='\"low\"' 'Hello'
  A model of ~/.config/toolpipe/config.toml, and what counts for it:
    llm-stream -m fast 'Hello'
    llm-stream -m fast --show-config
  A model that writes tool calls as text:
    llm-stream -a ollama -m phi4 -t tools.json --tools-mode tag 'Hi' | tag-parse
  How this model takes tools:
    llm-stream -a ollama -m phi4 --probe
  A recorded body, and the same broken in the middle:
    llm-stream -r answer.sse | tc-accumulate
    llm-stream -r answer.sse --error-at 500
  A turn, recorded and then played offline:
    llm-stream --tape turn.tape --tape-mode record -m gpt-5-mini 'Hello'
    llm-stream --tape turn.tape -m gpt-5-mini 'Hello'

Exit status: 0 done; 2 an error (an `error` event was written, or one line on standard error); \
130 and 143 after SIGINT and SIGTERM.";

/// Streams a model's answer as events, one JSON object a line
#[derive(Debug, Parser)]
#[command(name = "llm-stream", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The question: a user's message after the log, or before the text on standard input
    #[arg(conflicts_with = "files")]
    pub prompt: Option<String>,
    /// A file whose text follows PROMPT in the question, as text on standard input does
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "files",
        hide_short_help = true
    )]
    pub text: Option<PathBuf>,
    /// A file that belongs to the question: an image, a PDF or text, whatever its name is; may be
    /// given many times
    #[arg(long, value_name = "FILE", conflicts_with = "files")]
    pub attach: Vec<PathBuf>,
    /// Ask about each line of standard input, which is a question of its own; in PROMPT, {{.field}}
    /// is a member of a line that is a JSON object, and {{.}} the line
    #[arg(long, conflicts_with_all = ["files", "text", "dry_run", "probe"])]
    pub each: bool,
    /// List the names for --model, and stop: those of the configuration file, and those that the
    /// server lists
    #[arg(long, conflicts_with_all = ["files", "each", "dry_run", "probe"])]
    pub models: bool,
    /// With --each, how many lines are asked about at once
    #[arg(short, long, value_name = "N", default_value_t = NonZeroUsize::new(4).expect("not 0"))]
    pub jobs: NonZeroUsize,

    /// Report each request's address, its status, retries and waits, and the time to the first
    /// event on standard error
    #[arg(short, long)]
    pub verbose: bool,
    #[command(flatten)]
    pub request: RequestArgs,
    #[command(flatten)]
    pub auto: ProbeArgs,
    #[command(flatten)]
    pub connection: ConnectionArgs,
    #[command(flatten)]
    pub replay: ReplayArgs,
    #[command(flatten)]
    pub faults: FaultArgs,
    #[command(flatten)]
    show: config::ShowArgs,
    #[command(flatten)]
    pub common: ::args::Common,
}

/// What to ask.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Request")]
pub(crate) struct RequestArgs {
    #[command(flatten)]
    pub provider: ProviderArgs,
    /// The system prompt
    #[arg(short, long, value_name = "TEXT")]
    pub system: Option<String>,
    /// The tools the model may call: a list in the shape of OpenAI, Anthropic, MCP or Gemini, a
    /// program, a folder of programs or an OpenAPI document (may be given many times)
    #[arg(short, long, value_name = "FILE")]
    pub tools: Vec<PathBuf>,
    /// auto, none, required, or the name of the tool to call
    #[arg(long, value_name = "CHOICE", requires = "tools")]
    pub tool_choice: Option<String>,
    #[command(flatten)]
    pub tools_mode: ToolsModeArgs,
    /// The JSON Schema that the answer must fit, if the API and the model support it
    #[arg(long, value_name = "FILE")]
    pub schema: Option<PathBuf>,
    /// Request the whole answer at once; the events are the same
    #[arg(long)]
    pub no_stream: bool,
    /// Stop with an `error` event `max_steps` when the model has answered N times since the last
    /// user's message
    #[arg(long, value_name = "N")]
    pub max_steps: Option<usize>,
    /// Print the request's body, and its address on standard error; send nothing, and need no key
    #[arg(long, conflicts_with = "files")]
    pub dry_run: bool,
}

/// How `--tools-mode auto` decides.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Tools mode auto")]
pub(crate) struct ProbeArgs {
    /// Print as JSON how auto decides for this model; the model gets no request
    #[arg(long, conflicts_with = "files")]
    pub probe: bool,
    #[command(flatten)]
    pub settings: ::ask::AutoArgs,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }
}
