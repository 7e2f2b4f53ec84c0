//! Learns the table of the checker `auto` from corpora, and tests such tables on streams that they were not learned from.

mod folds;
mod test;

use crate::corpus::{self, Entry};
use crate::read::{self, ReadSettings};
use anyhow::{Context, Result, bail};
use detect::auto::{Observer, Table};
use event::Event;
use folds::Folds;
use std::io::Write;
use std::path::{Path, PathBuf};
use stdio::Status;

/// The arguments of this subcommand.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Files `index.ndjson`, or folders that hold one
    #[arg(required = true)]
    pub corpora: Vec<PathBuf>,
    /// Write the table to this file instead of to standard output
    #[arg(short, long, value_name = "FILE", conflicts_with = "folds")]
    pub output: Option<PathBuf>,
    /// Test tables instead: split the sources into N parts, and learn the table for each from the others
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=1000))]
    pub folds: Option<u64>,
    /// A checker to test [default: auto]
    #[arg(short, long = "checker", value_name = "NAME", requires = "folds")]
    pub checkers: Vec<String>,
    /// Test as if the tools of the requests were unknown
    #[arg(long, requires = "folds")]
    pub hide_tools: bool,
    /// Which of the ways to split the sources, for further tests
    #[arg(long, value_name = "N", default_value_t = 0, requires = "folds")]
    pub seed: u64,
}

/// Writes the table of corpora, or with `--folds` how good tables are on other sources.
///
/// # Errors
/// What is wrong with the arguments, a corpus, a recording or the output.
pub fn fit(args: &Args) -> Result<Status> {
    if let Some(count) = args.folds {
        return test::test(args, &Folds { count, seed: args.seed });
    }
    let mut table = Table::default();
    each_stream(&args.corpora, |entry, buffer| {
        table.add(&observe(entry, buffer, false)?.end());
        Ok(())
    })?;
    let text = table.to_string();
    match &args.output {
        Some(path) => replace(path, &text).with_context(|| path.display().to_string())?,
        None => std::io::stdout().write_all(text.as_bytes())?,
    }
    Ok(Status::Done)
}

/// Calls `take` for each stream whose label has an answer.
fn each_stream(corpora: &[PathBuf], mut take: impl FnMut(&Entry, &mut Vec<u8>) -> Result<()>) -> Result<()> {
    let mut buffer = Vec::new();
    let mut any = false;
    for corpus in corpora {
        for entry in corpus::entries(corpus)? {
            let entry = entry?;
            if entry.label.has_tool_call.is_some() {
                take(&entry, &mut buffer).with_context(|| format!("stream {}", entry.label.id))?;
                any = true;
            }
        }
    }
    if !any {
        bail!("no stream has an answer in its label; confirm the labels that tc-eval label proposes");
    }
    Ok(())
}

/// Observes the text of one stream up to its first call.
fn observe(entry: &Entry, buffer: &mut Vec<u8>, hide_tools: bool) -> Result<Observer> {
    let mut observer = None;
    each_event(entry, buffer, hide_tools, &mut |event| {
        observer.get_or_insert_with(|| Observer::new(event)).push(event);
    })?;
    observer.context("the recording has no events")
}

/// Gives the events of the stream to `take`.
fn each_event(entry: &Entry, buffer: &mut Vec<u8>, hide_tools: bool, take: &mut dyn FnMut(&Event<'_>)) -> Result<()> {
    let label = &entry.label;
    let settings = ReadSettings {
        api: label.api.as_deref().and_then(upstream::Api::from_name),
        part: label.part,
        model: label.model.clone(),
        tools: label.tools.as_ref().filter(|_| !hide_tools).map(|tools| tools.get().to_owned()),
        tools_mode: label.tools_mode.clone(),
        dialect: label.dialect.clone(),
        ..ReadSettings::default()
    };
    read::each_event_of_file(&entry.path, buffer, &settings, &mut |event, _| take(event))
}

/// Replaces a file as a whole: a full disk leaves the old one.
fn replace(path: &Path, text: &str) -> Result<()> {
    if std::fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
        return Ok(std::fs::write(path, text)?); // a device or a pipe, which cannot be replaced
    }
    let mut name = path.file_name().context("not the name of a file; name one")?.to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let written = std::fs::write(&temporary, text).and_then(|()| std::fs::rename(&temporary, path));
    if let Err(e) = written {
        drop(std::fs::remove_file(&temporary));
        bail!("{e}; check the space and the permissions there");
    }
    Ok(())
}
