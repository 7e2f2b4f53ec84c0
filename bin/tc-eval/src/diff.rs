//! Compares two recordings by their meaning.

pub(crate) mod lines;
mod mask;
pub(crate) mod recording;

use crate::read::{AnswerKind, RecordingArgs};
use crate::recordings::unreadable;
use anyhow::{Context, Result, bail};
use mask::Mask;
use score::difference::{DiffSettings, Difference, differences};
use serde_json::{Value, json};
use std::io::Read;
use std::path::{Path, PathBuf};
use stdio::Status;

/// The arguments of this subcommand.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A body, a tape or a log of events; - is standard input
    pub a: PathBuf,
    /// Another, of any of these kinds
    pub b: PathBuf,
    /// Write all differences, not only the first one
    #[arg(long)]
    pub all: bool,
    /// Compare the reasoning, too
    #[arg(long)]
    pub reasoning: bool,
    /// Compare the messages of the system and of the user, too
    #[arg(long)]
    pub prompts: bool,
    /// Compare the counts of tokens, too
    #[arg(long)]
    pub usage: bool,
    /// Count any white space as one space, and none at the ends of a text
    #[arg(long)]
    pub ignore_space: bool,
    /// Ignore ids inside texts and arguments, such as UUIDs and call_…
    #[arg(long)]
    pub ignore_ids: bool,
    /// Ignore dates and times inside texts and arguments
    #[arg(long)]
    pub ignore_dates: bool,
    /// Ignore what matches inside texts and arguments; may be given several times
    #[arg(long = "mask", value_name = "REGEX")]
    pub masks: Vec<String>,
    /// How to write the differences
    #[arg(short, long, value_name = "FORM", value_enum, default_value_t = AnswerKind::Text)]
    pub format: AnswerKind,
    #[command(flatten)]
    pub recording: RecordingArgs,
}

const EXAMPLES: &str = "\
Examples:
  tc-eval diff trip.tape chat.ndjson
  tc-eval diff --all --ignore-dates old.sse new.sse
  llm-stream --replay new.sse | tc-eval diff old.sse -

The exit status is 0 if the recordings mean the same, and 1 if they differ.";

/// Compares two recordings by their meaning, and writes the first difference or all of them.
/// Returns [`Status::No`] if they differ.
///
/// # Errors
/// Fails if the arguments or a file are invalid.
pub(crate) fn diff(args: &Args) -> Result<Status> {
    let dash = Path::new("-");
    if args.a == dash && args.b == dash {
        bail!("both recordings are standard input (-); name a file for one of them");
    }
    let mask = Mask::new(&args.masks, args.ignore_ids, args.ignore_dates)?;
    let ignored = |text: &str| mask.ranges(text);
    let settings = DiffSettings {
        reasoning: args.reasoning,
        prompts: args.prompts,
        usage: args.usage,
        ignore_space: args.ignore_space,
        ignored: (!mask.is_empty()).then_some(&ignored),
    };
    let read = args.recording.settings();
    let recording = |path: &Path| recording::recording(path, &bytes(path)?, &read, args.prompts);
    let a = recording(&args.a)?;
    let b = recording(&args.b)?;
    let found = differences(&a, &b, &settings, if args.all { usize::MAX } else { 1 });
    write(args, &found)?;
    Ok(if found.is_empty() {
        Status::Done
    } else {
        Status::No
    })
}

/// Returns all bytes of the file at `path`, or of standard input.
fn bytes(path: &Path) -> Result<Vec<u8>> {
    if path != Path::new("-") {
        return std::fs::read(path).map_err(unreadable(path));
    }
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .read_to_end(&mut bytes)
        .context("standard input")?;
    Ok(bytes)
}

fn write(args: &Args, found: &[Difference]) -> Result<()> {
    let names = [&args.a, &args.b].map(|path| path.to_string_lossy());
    let names = [&*names[0], &*names[1]];
    let text = match args.format {
        AnswerKind::Text => {
            let lines = found.iter().map(|one| one.words(names) + "\n");
            lines.collect()
        }
        AnswerKind::Json => {
            let entries = found.iter().map(|difference| entry(difference, names));
            let entries = entries.collect::<Result<Vec<Value>, _>>()?;
            let report = json!({"a": names[0], "b": names[1], "equal": found.is_empty(), "differences": entries});
            format!("{}\n", event::safe_json(&report.to_string()))
        }
    };
    crate::print(&text)
}

/// Returns a difference as JSON, including its description.
fn entry(difference: &Difference, names: [&str; 2]) -> Result<Value, serde_json::Error> {
    let mut entry = serde_json::to_value(difference)?;
    entry["words"] = difference.words(names).into();
    Ok(entry)
}
