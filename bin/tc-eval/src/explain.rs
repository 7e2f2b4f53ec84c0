//! Shows where a checker decided about a stream: the event, the bytes of the recording that caused
//! it, and the text that followed.

mod found;
mod json;
mod places;
mod words;

use crate::checkers::{self, NamedChecker};
use crate::corpus::{CorpusEntry, entries};
use crate::evaluate;
use crate::evaluate::measure::{Judgings, MeasurePlan, Meter};
use crate::read::{AnswerKind, RecordingArgs, each_event_of_file};
use crate::recordings::unreadable;
use anyhow::{Result, bail};
use found::Explanation;
use score::Label;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stdio::Status;

/// The arguments of this subcommand.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A corpus, with --stream; or a recording: a body, a tape or a log of events
    pub path: PathBuf,
    /// The id of the stream in its corpus
    #[arg(long, value_name = "ID", conflicts_with_all = ["part", "api", "tools_mode", "dialect"])]
    pub stream: Option<String>,
    /// Which stream of a recording, from 1 on
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub part: Option<u64>,
    /// A checker, as for an evaluation; may be given several times [default: those of an evaluation]
    #[arg(short, long = "checker", value_name = "NAME")]
    pub checkers: Vec<String>,
    /// Show the checkers the stream as tag-parse passes it
    #[arg(long)]
    pub tag_parse: bool,
    /// The table of auto, as tc-eval fit writes it [default: the one that is compiled in]
    #[arg(long, value_name = "FILE")]
    pub table: Option<PathBuf>,
    /// How to write it
    #[arg(short, long, value_name = "FORM", value_enum, default_value_t = AnswerKind::Text)]
    pub format: AnswerKind,
    #[command(flatten)]
    pub recording: RecordingArgs,
    /// The checkers outside of this process.
    #[command(flatten)]
    pub outside: checkers::Args,
}

const EXAMPLES: &str = "\
Examples:
  tc-eval explain fixtures --stream openai-chat/refusal --checker full
  tc-eval explain trip.tape --part 2 --checker lookahead:200 --checker full";

/// Writes where each checker decided about a stream, and why.
///
/// # Errors
/// Fails if the arguments or a file are invalid.
pub(crate) fn explain(args: &Args, common: &args::Common) -> Result<Status> {
    let entry = match &args.stream {
        Some(id) => find(&args.path, id)?,
        None => recording(args)?,
    };
    let named = evaluate::checkers(&args.checkers);
    let (names, judgings) = judgings(&named, &args.outside, &entry)?;
    let plan = MeasurePlan {
        checkers: names,
        splits: Vec::new(),
        tag_parse: args.tag_parse,
        no_time: common.no_time,
        strict: common.strict,
        max_line: common.max_line,
        table: args.table.as_deref().map(evaluate::table).transpose()?,
    };
    let measured = Meter::new(&plan)?.measure(&entry, judgings)?;
    let explanation = Explanation::new(&entry, &plan, &measured)?;
    let text = match args.format {
        AnswerKind::Text => words::lines(&explanation),
        AnswerKind::Json => format!(
            "{}\n",
            event::safe_json(&json::object(&explanation).to_string())
        ),
    };
    crate::print(&text)?;
    Ok(Status::Done)
}

/// Returns the stream with this id in a corpus.
fn find(corpus: &Path, id: &str) -> Result<CorpusEntry> {
    let mut similar = Vec::new();
    // An invalid line may be the one with the wanted stream.
    let mut unusable = None;
    for entry in entries(corpus)? {
        match entry {
            Ok(entry) if entry.label.id == id => return Ok(entry),
            Ok(entry) => {
                if similar.len() < 3
                    && (entry.label.id.contains(id) || id.contains(&entry.label.id))
                {
                    similar.push(entry.label.id);
                }
            }
            Err(e) => drop(unusable.get_or_insert(e)),
        }
    }
    if let Some(e) = unusable {
        return Err(e.context(format!(
            "no stream has the id '{id}', but a line cannot be read"
        )));
    }
    let corpus = corpus.display();
    if similar.is_empty() {
        bail!("{corpus}: no stream has the id '{id}'; tc-eval --list shows all ids");
    }
    bail!(
        "{corpus}: no stream has the id '{id}', did you mean '{}'?",
        similar.join("', '")
    )
}

/// Returns a recording as an entry without a label.
fn recording(args: &Args) -> Result<CorpusEntry> {
    let path = &args.path;
    if path.is_dir() || is_index(path)? {
        bail!(
            "{}: this is a corpus; name one of its streams with --stream ID",
            path.display()
        );
    }
    let name = path.to_string_lossy().into_owned();
    if args.part.is_none() {
        let streams = streams(args)?;
        if streams > 1 {
            bail!("{name}: the file holds {streams} streams; choose one, such as --part 1");
        }
    }
    let label = Label {
        id: name.clone(),
        file: name,
        part: args.part,
        api: args.recording.api.map(|api| api.name().to_owned()),
        tools_mode: args.recording.tools_mode.clone(),
        dialect: args.recording.dialect.clone(),
        ..Label::default()
    };
    Ok(CorpusEntry {
        corpus: Arc::from(""),
        line: 0,
        label,
        path: path.clone(),
    })
}

/// Returns the number of streams in the recording.
fn streams(args: &Args) -> Result<u64> {
    let settings = args.recording.settings();
    let mut streams = 0;
    each_event_of_file(&args.path, &settings, &mut |_, origin| {
        streams = streams.max(origin.part)
    })?;
    Ok(streams)
}

/// Whether the first line of a file is a label.
fn is_index(path: &Path) -> Result<bool> {
    std::fs::metadata(path).map_err(unreadable(path))?;
    let first = entries(path)?.next();
    Ok(matches!(first, Some(Ok(_))))
}

/// Returns the names of the checkers, and the judges of those outside this process.
fn judgings(
    named: &[String],
    outside: &checkers::Args,
    entry: &CorpusEntry,
) -> Result<(Vec<String>, Judgings)> {
    let mut names = Vec::new();
    let mut judges = Vec::new();
    for (name, checker) in checkers::find(named, outside)? {
        names.push(name);
        judges.push(match checker {
            NamedChecker::BuiltIn => None,
            NamedChecker::Outside(mut all) => all.judge(entry, 0)?,
        });
    }
    Ok((names, vec![judges]))
}
