//! What was typed, and what it means where it was typed.

use clap::{Parser, ValueEnum};
use std::path::PathBuf;
use view::Terminal;

/// Events for people: text as it streams, a card for each call, or the final answer as JSON.
///
/// Control characters in the words of a model or a tool are shown (\x1b, \u202e), never sent. The exit status is 2 if an `error`
/// event was seen.
#[derive(Debug, Parser)]
#[command(name = "tc-view", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Args {
    /// Files of events; standard input without any, or for `-`
    pub files: Vec<PathBuf>,
    /// The form; `term` on a terminal, else `text`
    #[arg(short, long, value_enum, value_name = "FORM")]
    format: Option<Format>,
    #[command(flatten)]
    pub common: args::Common,
}

const EXAMPLES: &str = "\
Examples:
  llm-stream --tools tools.json 'Is it raining?' | tc-accumulate | tool-exec --tools tools.json | tc-view
  tc-view chat.ndjson
  tc-view --format json chat.ndjson | jq -r .text

Colours are left out when NO_COLOR is set.";

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// Text as it streams and cards that change in place; the same as text where there is no terminal
    Term,
    /// Plain text, with a line where a call starts and a line where it ends
    Text,
    /// The final answer as one JSON object on a line: text, calls with their results, finish reason, tokens
    Json,
}

/// What is made of the events.
pub enum Form {
    /// Text and cards on this terminal.
    Terminal(Terminal),
    /// Plain text.
    Text,
    /// The final answer.
    Json,
}

impl Args {
    /// The form that was asked for, or that fits where standard output goes.
    pub fn form(&self) -> Form {
        let terminal = match self.format {
            Some(Format::Json) => return Form::Json,
            Some(Format::Text) => None,
            Some(Format::Term) | None => stdio::terminal(),
        };
        let colour = std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        terminal.map_or(Form::Text, |(columns, rows)| Form::Terminal(Terminal { columns, rows, colour }))
    }
}
