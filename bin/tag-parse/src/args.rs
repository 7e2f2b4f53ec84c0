//! What was typed.

use anyhow::Context;
use clap::{Parser, ValueEnum};
use std::path::PathBuf;
use std::rc::Rc;
use tag::{Look, Options};

/// Take the tool calls that a model wrote as text out of a stream, as `tool_call_delta` events.
#[derive(Debug, Parser)]
#[command(name = "tag-parse", version, max_term_width = 100)]
pub struct Args {
    /// Files of events; standard input without any, or for `-`
    pub files: Vec<PathBuf>,
    /// The dialect, several with commas between, or auto: what `stream_start` says, else all
    #[arg(long, value_name = "NAME[,NAME…]", default_value = "auto")]
    pub dialect: String,
    /// Which streams are read
    #[arg(long, value_enum, value_name = "WHEN", default_value = "tag")]
    pub when: When,
    /// The tools that may be called; without it those that `stream_start` lists
    #[arg(long, value_name = "FILE")]
    pub tools: Option<PathBuf>,
    #[command(flatten)]
    pub common: args::Common,
}

/// `--when`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// Streams whose `stream_start` says `tag`, or says nothing
    Tag,
    /// All streams
    Always,
}

impl Args {
    /// How streams are read.
    ///
    /// # Errors
    /// A dialect that is not known, or a tools file that cannot be read.
    pub fn options(&self) -> anyhow::Result<Options> {
        let look = if self.dialect == "auto" { None } else { Some(Rc::new(Look::new(&self.dialect)?)) };
        let tools = self.tools.as_deref().map(|p| anyhow::Ok(Rc::new(json::Tools::parse(&std::fs::read_to_string(p)?)?))).transpose().context("--tools")?;
        Ok(Options { look, always: self.when == When::Always, tools, ..Options::default() })
    }

    /// How to drive the machines.
    pub fn filter(&self) -> stdio::Filter {
        self.common.filter("tag-parse", self.files.clone())
    }
}
