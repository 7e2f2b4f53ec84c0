//! Proposes labels for recordings, and asks a person to confirm them.

mod confirm;
mod index;
mod seen;

use crate::read::ReadSettings;
use crate::recordings::{RecordingFile, candidates};
use anyhow::{Context, Result, bail};
use index::LabelIndex;
use score::Label;
use score::forms::counted;
use seen::SeenCalls;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use stdio::Status;
use tag::lint::Lint;

/// The arguments of this subcommand.
///
/// The proposals come from a reading of the whole stream. They count only after a person has
/// confirmed them: until then `has_tool_call` is null, and an evaluation leaves the stream out.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tc-eval label recordings/ --output recordings/index.ndjson
  tc-eval label --confirm recordings/index.ndjson")]
pub(crate) struct Args {
    /// Bodies, tapes and logs, and folders of them
    #[arg(required = true, value_name = "RECORDING")]
    pub files: Vec<PathBuf>,
    /// The API of bodies; without it each body shows its API
    #[arg(short, long, value_name = "NAME", value_parser = crate::read::api)]
    pub api: Option<api::Api>,
    /// The dialect in which the models of the recordings write calls as text, or auto: any; without
    /// it calls are native
    #[arg(short, long, value_name = "NAME", value_parser = crate::read::dialect)]
    pub dialect: Option<String>,
    /// Add the proposals to this index; labels that it has stay as they are [default: standard
    /// output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Ask on the terminal about each label of the named indexes that is not confirmed
    #[arg(long, conflicts_with_all = ["output", "api", "dialect"])]
    pub confirm: bool,
}

/// Proposes labels for recordings, or asks about proposals.
///
/// # Errors
/// Fails if the arguments or a file are invalid.
pub(crate) fn label(args: &Args) -> Result<Status> {
    let lint = Lint::new(&tag::Look::new("auto")?);
    if args.confirm {
        for path in &args.files {
            let path = if path.is_dir() {
                path.join("index.ndjson")
            } else {
                path.clone()
            };
            if !path.is_file() {
                bail!(
                    "{}: no index; make one with tc-eval label RECORDING --output {0}",
                    path.display()
                );
            }
            confirm::confirm(&path, &lint)?;
        }
        return Ok(Status::Done);
    }
    let mut proposals = Proposals::new(args)?;
    let skipped = proposals.add_all(args, &lint)?;
    if skipped > 0 {
        let files = counted(skipped, "file");
        stdio::message(
            "tc-eval",
            &format!("{files} of the folders cannot be read as recordings, and got no label"),
        );
    }
    proposals.finish()
}

/// The labels that a run proposes.
struct Proposals {
    /// The index to write to; `None` for standard output.
    index: Option<LabelIndex>,
    /// The folder to which paths are relative.
    folder: PathBuf,
    /// The labels of the index with their line numbers, by file and stream.
    known: BTreeMap<(String, u64), (usize, Label)>,
    ids: BTreeSet<String>,
    made: Vec<Label>,
    /// The number of labels whose recording has changed.
    changed: u64,
}

impl Proposals {
    fn new(args: &Args) -> Result<Self> {
        let index = args.output.as_deref().map(LabelIndex::open).transpose()?;
        let parent = args
            .output
            .as_deref()
            .and_then(Path::parent)
            .unwrap_or(Path::new(""));
        let parent = if parent.as_os_str().is_empty() {
            Path::new(".")
        } else {
            parent
        };
        let folder = parent
            .canonicalize()
            .with_context(|| format!("{}: no such folder; make it", parent.display()))?;
        let mut known = BTreeMap::new();
        let mut ids = BTreeSet::new();
        for (line, label) in index
            .as_ref()
            .map(LabelIndex::labels)
            .transpose()?
            .unwrap_or_default()
        {
            ids.insert(label.id.clone());
            known.insert((label.file.clone(), label.part.unwrap_or(1)), (line, label));
        }
        Ok(Proposals {
            index,
            folder,
            known,
            ids,
            made: Vec::new(),
            changed: 0,
        })
    }

    /// Adds the streams of all recordings; returns the number of files in folders that are not
    /// recordings.
    fn add_all(&mut self, args: &Args, lint: &Lint) -> Result<u64> {
        let api = args.api;
        let tools_mode = args.dialect.as_ref().map(|_| "tag".to_owned());
        let settings = ReadSettings {
            api,
            tools_mode,
            dialect: args.dialect.clone(),
            ..ReadSettings::default()
        };
        let mut skipped = 0;
        for RecordingFile { path, is_named } in candidates(&args.files)? {
            match seen::read(&path, &settings, lint) {
                Err(_) if !is_named => skipped += 1,
                Err(e) => return Err(e),
                Ok(streams) => self.add(&path, &streams)?,
            }
        }
        Ok(skipped)
    }

    fn add(&mut self, path: &Path, streams: &[SeenCalls]) -> Result<()> {
        let file = relative(path, &self.folder)?;
        for seen in streams {
            if let Some((line, label)) = self.known.get(&(file.clone(), seen.part)) {
                let is_same = label.sha256.is_none() || label.sha256 == seen.label.sha256;
                if let (false, Some(index)) = (is_same, &mut self.index) {
                    self.changed += 1;
                    index.set(*line, again(seen)?);
                }
                continue;
            }
            let label = self.propose(&file, seen, streams.len() > 1);
            match &mut self.index {
                Some(index) => index.add(&label),
                None => self.made.push(label.clone()),
            }
            self.known
                .insert((file.clone(), seen.part), (usize::MAX, label));
        }
        Ok(())
    }

    fn propose(&mut self, file: &str, seen: &SeenCalls, has_parts: bool) -> Label {
        let stem = file
            .rsplit_once('.')
            .filter(|(stem, _)| !stem.is_empty() && !stem.ends_with('/'));
        let part = if has_parts {
            format!("/{}", seen.part)
        } else {
            String::new()
        };
        // Two recordings may differ only in their extension.
        let names = [
            format!("{}{part}", stem.map_or(file, |(stem, _)| stem)),
            format!("{file}{part}"),
        ];
        let free = names.iter().find(|id| !self.ids.contains(*id)).cloned();
        let hash = seen.label.sha256.as_deref().unwrap_or_default();
        let id = free.unwrap_or_else(|| format!("{file}{part} {hash}"));
        self.ids.insert(id.clone());
        Label {
            id,
            file: file.to_owned(),
            part: has_parts.then_some(seen.part),
            proposed: Some(seen.has_call()),
            calls: seen.calls(),
            tags: seen.tags(),
            ..seen.label.clone()
        }
    }

    fn finish(mut self) -> Result<Status> {
        if self.changed > 0 {
            let have = if self.changed == 1 { "has" } else { "have" };
            let labels = counted(self.changed, "label");
            stdio::message(
                "tc-eval",
                &format!("{labels} {have} another recording now and must be confirmed again"),
            );
        }
        if let Some(index) = &mut self.index {
            index.write()?;
            return Ok(Status::Done);
        }
        let lines = self.made.iter().map(|label| index::line(label) + "\n");
        crate::print(&lines.collect::<String>())?;
        Ok(Status::Done)
    }
}

/// Returns the members to reset in a label whose recording was replaced.
fn again(seen: &SeenCalls) -> Result<Vec<(&'static str, Value)>> {
    Ok(vec![
        ("has_tool_call", Value::Null),
        ("proposed", Value::Bool(seen.has_call())),
        ("calls", serde_json::to_value(seen.calls())?),
        ("sha256", seen.label.sha256.clone().into()),
    ])
}

/// Returns `path` relative to `folder`, with `/` between names.
fn relative(path: &Path, folder: &Path) -> Result<String> {
    let path = path
        .canonicalize()
        .with_context(|| format!("{}: check the path", path.display()))?;
    let shared = path
        .components()
        .zip(folder.components())
        .take_while(|(a, b)| a == b)
        .count();
    let up = folder
        .components()
        .skip(shared)
        .map(|_| Component::ParentDir);
    let down = path.components().skip(shared);
    let relative: PathBuf = up.chain(down).collect();
    let Some(text) = relative.to_str() else {
        bail!(
            "{}: the name is not UTF-8, and an index is; rename the file",
            path.display()
        );
    };
    Ok(text.to_owned())
}
