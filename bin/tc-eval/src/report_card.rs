//! Names the deviations of providers that recordings show.

mod frames;
mod saved;

use crate::read::{EventOrigin, ReadSettings, api};
use crate::reading::{StreamReader, streams};
use crate::recordings::{self, RecordingFile, candidates};
use crate::{corpus, draft};
use anyhow::Result;
use api::{Api, LOOKED_AT, RecordingForm, tape::Tape};
use event::payload::{ContentDelta, StreamStart};
use event::{Event, Kind, Text};
use score::Label;
use score::deviation::{
    Card, DeviationFinder, DeviationPlace, GroupKey, LEAKED_MARKUP, REASONING_IN_TEXT,
    card_changes, card_forms,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use stdio::Status;
use tag::lint::Lint;

/// The form of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum CardForm {
    /// For people
    #[default]
    Text,
    /// One line of JSON for each deviation of each group, as --save writes it
    Json,
    /// A table, for the summary of a CI job
    Markdown,
}

/// The arguments of this subcommand.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tc-eval report-card recordings/
  tc-eval report-card recordings/ --save card.ndjson
  tc-eval report-card recordings/ --expect card.ndjson --format markdown")]
pub(crate) struct Args {
    /// Recordings, folders of recordings, and files `index.ndjson` or folders that hold one
    #[arg(required = true, value_name = "RECORDING-OR-CORPUS")]
    pub files: Vec<PathBuf>,
    /// The API of bodies; without it each body shows its API
    #[arg(short, long, value_name = "NAME", value_parser = api)]
    pub api: Option<Api>,
    /// The form of the output
    #[arg(short, long, value_name = "FORM", value_enum, default_value_t)]
    pub format: CardForm,
    /// End with 1 when deviations differ from those of this saved card; counts may differ
    #[arg(long, value_name = "FILE")]
    pub expect: Option<PathBuf>,
    /// Write the card into this file, as lines of JSON that --expect reads and people can edit
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
}

/// Names the deviations of providers that recordings show.
///
/// # Errors
/// What is wrong with the arguments or a file.
pub(crate) fn report_card(args: &Args) -> Result<Status> {
    let expected = args.expect.as_deref().map(saved::read).transpose()?;
    let api = args.api;
    let mut maker = CardMaker {
        card: Card::default(),
        lint: Lint::new(&tag::Look::new("auto")?),
        skipped: 0,
    };
    for path in &args.files {
        if is_corpus(path) {
            maker.corpus(path, api)?;
        } else {
            maker.recordings(path, api)?;
        }
    }
    if maker.skipped > 0 {
        stdio::message("tc-eval", &skipped(maker.skipped));
    }
    if maker.card.streams == 0 {
        anyhow::bail!("no recorded stream; name bodies, tapes or logs, or folders that hold some");
    }
    let lines = maker.card.lines();
    if let Some(path) = &args.save {
        draft::write(path, &card_forms::json(&lines))?;
    }
    let mut out = match args.format {
        CardForm::Text => card_forms::text(&lines),
        CardForm::Json => card_forms::json(&lines),
        CardForm::Markdown => card_forms::markdown(&lines),
    };
    let differences = expected
        .map(|expected| card_changes(&expected, &lines))
        .unwrap_or_default();
    if args.expect.is_some() && args.format == CardForm::Text {
        // Of a card that is checked, what changed is all that matters.
        out = differences.iter().map(|line| format!("{line}\n")).collect();
    } else {
        differences
            .iter()
            .for_each(|line| stdio::message("tc-eval", line));
    }
    crate::print(&out)?;
    Ok(if differences.is_empty() {
        Status::Done
    } else {
        Status::No
    })
}

/// Whether `path` is an index, or a folder that holds one.
fn is_corpus(path: &Path) -> bool {
    path == Path::new("-")
        || path.file_name().is_some_and(|name| name == "index.ndjson")
        || path.join("index.ndjson").is_file()
}

fn skipped(count: u64) -> String {
    match count {
        1 => "1 file of the folders is not a recording and was skipped".to_owned(),
        _ => format!("{count} files of the folders are not recordings and were skipped"),
    }
}

/// Makes a card of recordings.
struct CardMaker {
    card: Card,
    lint: Lint,
    /// Files of folders that are not recordings.
    skipped: u64,
}

/// One stream while it is read.
#[derive(Default)]
struct CardStream {
    finder: DeviationFinder,
    key: GroupKey,
    /// The answer of choice 0 where calls are native, for markup that leaked into it.
    text: String,
    is_tag_mode: bool,
    place: DeviationPlace,
}

/// The most bytes of a text that are searched for markup.
const LINTED: usize = 16 << 20;

impl CardMaker {
    fn corpus(&mut self, path: &Path, api: Option<Api>) -> Result<()> {
        for entry in corpus::entries(path)? {
            let entry = entry?;
            let label = &entry.label;
            let mut settings = ReadSettings::of_label(label)?;
            settings.api = settings.api.or(api);
            self.recording(&entry.path, &settings, Some(label))?;
        }
        Ok(())
    }

    fn recordings(&mut self, path: &Path, api: Option<Api>) -> Result<()> {
        for RecordingFile { path, is_named } in candidates(&[path.to_owned()])? {
            let settings = ReadSettings {
                api,
                ..ReadSettings::default()
            };
            match self.recording(&path, &settings, None) {
                Err(_) if !is_named => self.skipped += 1,
                result => result?,
            }
        }
        Ok(())
    }

    fn recording(
        &mut self,
        path: &Path,
        settings: &ReadSettings,
        label: Option<&Label>,
    ) -> Result<()> {
        let bytes = recordings::bytes(path)?;
        let mut notes = notes(&bytes, settings);
        let streams = streams::<CardStream>(path, &bytes, settings)?;
        let is_alone = settings.part.is_none() && streams.len() == 1;
        for (part, stream) in streams {
            let notes = notes.remove(&part).unwrap_or_default();
            self.add(path, (!is_alone).then_some(part), stream, notes, label);
        }
        Ok(())
    }

    fn add(
        &mut self,
        path: &Path,
        part: Option<u64>,
        mut stream: CardStream,
        notes: DeviationFinder,
        label: Option<&Label>,
    ) {
        if !stream.is_tag_mode {
            for finding in self.lint.search(&stream.text) {
                let is_reasoning = ["think", "reason"]
                    .iter()
                    .any(|word| finding.marker.to_lowercase().contains(word));
                let deviation = if is_reasoning {
                    REASONING_IN_TEXT
                } else {
                    LEAKED_MARKUP
                };
                stream.finder.note(deviation, stream.place);
            }
        }
        let mut key = stream.key;
        if let Some(label) = label {
            key.provider = label.provider.clone().unwrap_or_default();
            if let Some(model) = &label.model {
                key.model.clone_from(model);
            }
            if let Some(api) = &label.api {
                key.api.clone_from(api);
            }
        }
        let mut found = stream.finder.finish();
        for (code, place) in notes.finish() {
            found.entry(code).or_insert(place);
        }
        self.card.add(key, &path.to_string_lossy(), part, &found);
    }
}

impl StreamReader for CardStream {
    fn push(&mut self, event: &Event<'_>, origin: EventOrigin) {
        self.place = DeviationPlace {
            event: self.place.event + 1,
            offset: origin.offset,
        };
        self.finder.push(event, origin.offset);
        match event.kind() {
            Kind::StreamStart => {
                let start = StreamStart::read(event);
                let text =
                    |text: Option<Text<'_>>| text.map(|t| t.str().into_owned()).unwrap_or_default();
                (self.key.api, self.key.model) = (text(start.api), text(start.model));
                self.is_tag_mode = text(start.tools_mode) == "tag";
            }
            Kind::ContentDelta if event.choice() == 0 && self.text.len() < LINTED => {
                self.text += &ContentDelta::read(event).text.str();
            }
            _ => {}
        }
    }

    fn read(&mut self, event: &Event<'_>) {
        self.finder.push_reading(event);
    }
}

/// What the bytes of each stream of a recording show, by its number. A log has no bytes of a
/// provider.
fn notes(bytes: &[u8], settings: &ReadSettings) -> BTreeMap<u64, DeviationFinder> {
    let mut out: BTreeMap<u64, DeviationFinder> = BTreeMap::new();
    match RecordingForm::of(bytes) {
        RecordingForm::Log => {}
        RecordingForm::Body => {
            let api = settings
                .api
                .or_else(|| api::recognise(&bytes[..bytes.len().min(LOOKED_AT)], true));
            if let Some(api) = api {
                let notes = out.entry(1).or_default();
                frames::search(bytes, api, &mut |deviation, at| {
                    notes.note(deviation, place(at));
                });
            }
        }
        RecordingForm::Tape => {
            // What is wrong with a tape is reported where its events are read.
            let tape = std::str::from_utf8(bytes)
                .ok()
                .and_then(|text| Tape::read(text).ok());
            for (part, exchange) in (1..).zip(tape.iter().flat_map(|tape| &tape.exchanges)) {
                let Some(api) = Api::from_name(&exchange.api) else {
                    continue;
                };
                let notes = out.entry(part).or_default();
                // The places of a tape are its lines, and not the bytes that were received.
                frames::search(&exchange.body(), api, &mut |deviation, _| {
                    notes.note(deviation, place(0));
                });
            }
        }
    }
    out
}

fn place(offset: usize) -> DeviationPlace {
    DeviationPlace {
        event: 0,
        offset: offset as u64,
    }
}
