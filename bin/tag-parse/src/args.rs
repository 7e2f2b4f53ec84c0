//! What was typed.

use anyhow::Context;
use clap::{Parser, ValueEnum};
use json::ToolList;
use std::path::PathBuf;
use std::rc::Rc;
use tag::{Dialect, Dialects, Look, TagOptions};
use toolbox::{Access, Toolbox};

/// Read the tool calls that a model wrote as text in a stream, and emit them as `tool_call_delta`
/// events.
///
/// Every event passes, but the text of the answer is parsed: calls become `tool_call_delta` events
/// while the model is still writing them, reasoning becomes `thinking`, and other text is
/// unchanged. An invalid call stays text, with a `warning`.
#[derive(Debug, Parser)]
#[command(name = "tag-parse", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Files of events; standard input without any, or for `-`
    pub files: Vec<PathBuf>,
    /// The dialect of calls, or several with commas between, or auto: the dialect that
    /// `stream_start` names, else that of the model's family, else all [default: the dialect of
    /// --dialect-file where it has one, else auto]
    #[arg(short, long, value_name = "NAME[,NAME…]")]
    dialect: Option<String>,
    /// A file of dialects of your own, or the tokenizer_config.json of a checkpoint that describes
    /// what it writes (see docs/new-dialect.md). --dialect and `stream_start` can name its
    /// dialects, and auto tries them too
    #[arg(long, value_name = "FILE")]
    dialect_file: Option<PathBuf>,
    /// Which streams are parsed; text of the others passes unread
    #[arg(long, value_enum, value_name = "WHEN", default_value = "offered")]
    pub when: When,
    /// The tools that may be called, as for llm-stream [default: those that `stream_start` lists]
    #[arg(short, long, value_name = "FILE")]
    pub tools: Vec<PathBuf>,
    /// The end of the prompt that the text continues, such as '<think>', or '' when the prompt
    /// opened nothing [default: that of `stream_start`]. If it is unknown, the text may begin
    /// inside reasoning in many dialects: up to 256 bytes are held back until that is clear, and a
    /// call is complete only at the end of the stream
    #[arg(long, value_name = "TEXT")]
    pub prefill: Option<String>,
    /// List the dialects, one a line between tabs: name, other names, models, a call with \n for
    /// its line ends, and where it is defined
    #[arg(long, conflicts_with_all = ["files", "when", "tools", "prefill"])]
    pub list_dialects: bool,
    /// Show one dialect as Markdown: calls, the prompt that asks for them, results, and what to
    /// know
    #[arg(long, value_name = "NAME", conflicts_with_all = ["files", "dialect", "when", "tools", "prefill", "list_dialects"])]
    pub show_dialect: Option<String>,
    #[command(flatten)]
    pub common: args::Common,
}

const EXAMPLES: &str = "\
Examples:
  tag-parse <stream.ndjson
  tag-parse --dialect hermes --tools tools.json stream.ndjson
  tag-parse -d deepseek-r1 --when always --prefill '<think>' stream.ndjson
  tag-parse --list-dialects | cut -f 1,3
  tag-parse --show-dialect hermes
  tag-parse --dialect-file own.toml stream.ndjson
  tag-parse --dialect-file checkpoint/tokenizer_config.json stream.ndjson";

/// `--when`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// Streams of the mode `tag`, or without a mode, and native ones whose request had tools
    Offered,
    /// Streams of the mode `tag`, or without a mode
    Tag,
    /// All streams
    Always,
}

impl Args {
    /// How streams are read.
    ///
    /// # Errors
    /// A dialect that is not known, or a file of tools or dialects that cannot be read.
    pub(crate) fn options(&self) -> anyhow::Result<TagOptions> {
        let dialects = self.dialects()?;
        let chosen = self.chosen(&dialects)?;
        Ok(TagOptions {
            look: (!chosen.is_empty()).then(|| Rc::new(Look::of(chosen))),
            dialects,
            always: self.when == When::Always,
            by_model: self.when == When::Offered,
            tools: Toolbox::read_if_any(&self.tools, &Access::default())?
                .map(|tools| tools.parse(ToolList::read_and_compile))
                .transpose()?
                .map(Rc::new),
            prefill: self.prefill.clone(),
            ..TagOptions::default()
        })
    }

    /// The dialects of the table and of `--dialect-file`.
    ///
    /// # Errors
    /// The file cannot be read, or has a mistake.
    pub(crate) fn dialects(&self) -> anyhow::Result<Dialects> {
        let mut dialects = Dialects::default();
        if let Some(path) = &self.dialect_file {
            let text = ::args::file(path, |text| anyhow::Ok(text.to_owned()))?;
            dialects.add(&path.display().to_string(), &text)?;
        }
        Ok(dialects)
    }

    fn chosen(&self, dialects: &Dialects) -> anyhow::Result<Vec<&'static Dialect>> {
        dialects
            .chosen(self.dialect.as_deref())
            .context("--dialect")
    }

    /// How to drive the machines.
    pub(crate) fn filter(&self) -> stdio::Filter {
        self.common.filter("tag-parse", self.files.clone())
    }
}
