//! The arguments of the command.

use accumulate::{AccumulateOptions, EmitOn};
use api::Api;
use clap::{Parser, ValueEnum};
use json::ToolList;
use std::path::PathBuf;
use std::rc::Rc;
use stdio::Emit;
use toolbox::{Access, Toolbox};

/// Merge the deltas of a stream into whole tool calls and the assistant's message.
///
/// Every event passes, but the `tool_call_delta` events are merged into one `tool_call` event a
/// call, written as soon as the call is complete, and the assistant's `message` is written just
/// before `stream_end`.
#[derive(Debug, Parser)]
#[command(name = "tc-accumulate", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Files of events; standard input without any, or for `-`
    pub files: Vec<PathBuf>,
    /// Validate arguments against the JSON Schemas of these tools, as for llm-stream; without it
    /// the tools that `stream_start` lists
    #[arg(short, long, value_name = "FILE")]
    pub tools: Vec<PathBuf>,
    /// When a call is written: once its arguments have closed, once the provider closed its block
    /// or a later call began, or once the stream has ended without an error
    #[arg(long, value_enum, value_name = "LEVEL", default_value = "balanced")]
    pub emit_on: Level,
    /// What is repaired in arguments that are not valid JSON: nothing, or their syntax (every edit
    /// is listed; truncated text is never repaired)
    #[arg(long, value_enum, value_name = "WHAT", default_value = "syntax")]
    pub repair: RepairLevel,
    /// Pass the deltas, too
    #[arg(long)]
    pub keep_deltas: bool,
    /// Write `tool_call_partial` events: the best reading of the arguments so far, for user
    /// interfaces
    #[arg(long)]
    pub partial: bool,
    /// Write events, or one whole response for each stream, in a provider's shape
    #[arg(
        long = "as",
        value_enum,
        value_name = "SHAPE",
        default_value = "events"
    )]
    pub shape: As,
    #[command(flatten)]
    pub common: args::Common,
}

/// How many bytes may be kept beside the text of a message of `--max-line`: places of calls and of
/// choices.
const BESIDE_TEXT: usize = 1 << 20;

const EXAMPLES: &str = "\
Examples:
  llm-stream -t tools.json 'Is it raining?' | tc-accumulate
  tc-accumulate --emit-on final turn.ndjson | jq 'select(.type == \"tool_call\")'
  llm-stream --replay recorded.sse | tc-accumulate --as openai";

/// `--emit-on`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Level {
    Balanced,
    Sealed,
    Final,
}

/// `--repair`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RepairLevel {
    None,
    Syntax,
}

/// `--as`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum As {
    Events,
    Openai,
    Anthropic,
    Gemini,
}

impl Args {
    /// The options of the machines.
    ///
    /// # Errors
    /// When the tools file cannot be read.
    pub(crate) fn options(&self) -> anyhow::Result<AccumulateOptions> {
        Ok(AccumulateOptions {
            tools: Toolbox::read_if_any(&self.tools, &Access::default())?
                .map(|tools| tools.parse(ToolList::read_and_compile))
                .transpose()?
                .map(Rc::new),
            emit_on: match self.emit_on {
                Level::Balanced => EmitOn::Balanced,
                Level::Sealed => EmitOn::Sealed,
                Level::Final => EmitOn::Final,
            },
            no_repair: self.repair == RepairLevel::None,
            keep_deltas: self.keep_deltas,
            max_kept: Some(self.max_kept()),
            no_message: self.api().is_some(),
            partial: self.partial,
            ..AccumulateOptions::default()
        })
    }

    /// The API whose whole responses are written in place of events.
    pub(crate) fn api(&self) -> Option<Api> {
        match self.shape {
            As::Events => None,
            As::Openai => Some(Api::OpenaiChat),
            As::Anthropic => Some(Api::Anthropic),
            As::Gemini => Some(Api::Gemini),
        }
    }

    /// The most bytes that are kept of one stream.
    pub(crate) fn max_kept(&self) -> usize {
        self.common.max_line.saturating_add(BESIDE_TEXT)
    }

    /// The options of reading and writing.
    pub(crate) fn filter(&self) -> stdio::Filter {
        let mut filter = self.common.filter("tc-accumulate", self.files.clone());
        if self.api().is_some() {
            filter.emit = Emit::Lines;
        }
        filter
    }
}
