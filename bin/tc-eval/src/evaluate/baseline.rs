//! Compares a run with an earlier one (`--baseline`), and writes the file for later comparisons
//! (`--save-baseline`).

use crate::draft::LabelDraft;
use anyhow::{Context as _, Result, anyhow, bail};
use score::{
    BASELINE_FORMAT, BaselineEnd, BaselineHeader, BaselineReport, BaselineStream, Comparison,
    Measured,
};
use std::collections::{HashMap, VecDeque};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The options of baselines.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    /// Compare with this earlier run, stream by stream; end with 1 if a checker was right on a
    /// stream and is not right now
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Write what each checker answers on each stream, for --baseline; with --baseline too, only if
    /// nothing got worse
    #[arg(long, value_name = "FILE")]
    pub save_baseline: Option<PathBuf>,
    /// How many streams of each kind (missed, false yes, changed) are named; all are counted
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub show: usize,
}

/// Maximum length of a line of a baseline in bytes. A line contains the names of a stream and an
/// answer for each checker.
const LONGEST: usize = 1 << 20;

/// The baseline with which a run is compared, and the one that the run writes.
#[derive(Default)]
pub(crate) struct Baseline {
    earlier: Option<Earlier>,
    writer: Option<BaselineWriter>,
}

/// An earlier run that is being compared with this one.
struct Earlier {
    path: PathBuf,
    header: BaselineHeader,
    streams: Vec<Option<BaselineStream>>,
    /// The positions of the streams that are not matched yet, by corpus and id.
    waiting: HashMap<(String, String), VecDeque<usize>>,
    /// The shared name of the corpora if each run has a single corpus.
    single: Option<String>,
    comparison: Comparison,
}

impl Baseline {
    /// Opens what the options name, before the first stream is read, so that a mistake shows at
    /// once. `checkers` are in the order of the outcomes; `corpora` are as the user typed them.
    ///
    /// # Errors
    /// Fails if a file cannot be opened, is not a complete baseline, or has no checker of this run.
    pub(crate) fn open(args: &Args, checkers: &[String], corpora: &[String]) -> Result<Self> {
        let earlier = args.baseline.as_deref();
        let earlier = earlier.map(|path| Earlier::open(path, checkers, corpora, args.show));
        let writer = args.save_baseline.as_deref();
        let writer = writer.map(|path| BaselineWriter::create(path, checkers, corpora));
        Ok(Baseline {
            earlier: earlier.transpose()?,
            writer: writer.transpose()?,
        })
    }

    /// Takes one stream. The streams come in the order of the corpora.
    ///
    /// # Errors
    /// Fails if a file cannot be written.
    pub(crate) fn take(&mut self, measured: &Measured) -> Result<()> {
        if self.earlier.is_none() && self.writer.is_none() {
            return Ok(());
        }
        let stream = BaselineStream::of(measured);
        if let Some(earlier) = &mut self.earlier {
            earlier.take(&stream);
        }
        match &mut self.writer {
            Some(writer) => writer.write(stream),
            None => Ok(()),
        }
    }

    /// Discards the new baseline, so the file of `--save-baseline` stays unchanged.
    pub(crate) fn discard(&mut self) {
        self.writer = None;
    }

    /// What changed, after the last stream. The file of `--save-baseline` gets its name here,
    /// unless a checker got worse: a gate that fails must fail again until somebody accepts the
    /// change, by running without `--baseline`.
    ///
    /// # Errors
    /// Fails if the baseline has no stream of this run, or if a file cannot be written.
    pub(crate) fn finish(self) -> Result<Option<BaselineReport>> {
        let report = self.earlier.map(Earlier::finish).transpose()?;
        let is_worse = report.as_ref().is_some_and(BaselineReport::has_regressions);
        if let Some(writer) = self.writer.filter(|_| !is_worse) {
            writer.finish()?;
        }
        Ok(report)
    }
}

impl Earlier {
    /// Reads the baseline at `path`.
    fn open(path: &Path, checkers: &[String], corpora: &[String], shown: usize) -> Result<Self> {
        let name = path.display();
        let bytes = std::fs::read(path).map_err(|e| {
            anyhow!("{name}: {e}, write it with --save-baseline or correct the path")
        })?;
        let mut lines = (1..).zip(bytes.split_inclusive(|byte| *byte == b'\n'));
        let invalid = |line: u64, what: &str| {
            anyhow!(
                "{name}, line {line}: the line {what}; write the file again with --save-baseline"
            )
        };
        let not_valid = |line, e: serde_json::Error| invalid(line, &format!("is not valid ({e})"));
        let (_, first) = lines.next().unwrap_or((1, b""));
        let header = header(path, first, &|e| not_valid(1, e))?;
        if !checkers
            .iter()
            .any(|checker| header.checkers.contains(checker))
        {
            let theirs = header.checkers.join(", ");
            let ours = checkers.join(", ");
            bail!(
                "{name}: a baseline of {theirs}, and this run has {ours}; name one of those with --checker"
            );
        }
        let mut earlier = Earlier {
            path: path.to_owned(),
            comparison: Comparison::new(&header, checkers, shown),
            single: match (&header.corpora[..], corpora) {
                ([_], [now]) => Some(plain(now).to_owned()),
                _ => None,
            },
            header,
            streams: Vec::new(),
            waiting: HashMap::new(),
        };
        let mut last = 1;
        for (number, line) in &mut lines {
            if line.len() > LONGEST {
                return Err(invalid(number, "is longer than a line of a baseline"));
            }
            if line.starts_with(b"{\"end\":") {
                let end: BaselineEnd =
                    serde_json::from_slice(line).map_err(|e| not_valid(number, e))?;
                let missing = end.end.abs_diff(earlier.streams.len() as u64);
                if missing > 0 {
                    bail!(
                        "{name}: {missing} streams are missing of {}; write it again with --save-baseline",
                        end.end
                    );
                }
                return match lines.next() {
                    Some((number, _)) => {
                        Err(invalid(number, "follows the last line of a baseline"))
                    }
                    None => Ok(earlier),
                };
            }
            let stream: BaselineStream =
                serde_json::from_slice(line).map_err(|e| not_valid(number, e))?;
            if stream.outcomes.len() != earlier.header.checkers.len() {
                let what = "has another number of answers than the header has checkers";
                return Err(invalid(number, what));
            }
            let key = earlier.key(&stream);
            let places = earlier.waiting.entry(key).or_default();
            places.push_back(earlier.streams.len());
            earlier.streams.push(Some(stream));
            last = number;
        }
        bail!(
            "{name}: cut after line {last}, its last line is missing; write it again with --save-baseline"
        )
    }

    /// Returns the key by which streams of both runs are matched.
    fn key(&self, stream: &BaselineStream) -> (String, String) {
        let corpus = self.single.as_deref().unwrap_or(plain(&stream.corpus));
        (corpus.to_owned(), stream.id.clone())
    }

    /// Takes a stream of the run. Of a name that comes twice the first is the first to find a
    /// partner.
    fn take(&mut self, stream: &BaselineStream) {
        let places = self.waiting.get_mut(&self.key(stream));
        let place = places.and_then(VecDeque::pop_front);
        match place.and_then(|place| self.streams[place].take()) {
            Some(earlier) => self.comparison.pair(&earlier, stream),
            None => self.comparison.new_stream(stream),
        }
    }

    fn finish(mut self) -> Result<BaselineReport> {
        for stream in self.streams.iter().flatten() {
            self.comparison.vanished_stream(stream);
        }
        let report = self.comparison.finish();
        if report.compared == 0 && report.vanished > 0 {
            bail!(
                "{}: a baseline of other streams, this run has none of them; give the corpus that it was made of ({})",
                self.path.display(),
                self.header.corpora.join(", ")
            );
        }
        Ok(report)
    }
}

/// Reads the first line. Its version alone comes first, since a later format may have another
/// header.
fn header(
    path: &Path,
    line: &[u8],
    not_valid: &dyn Fn(serde_json::Error) -> anyhow::Error,
) -> Result<BaselineHeader> {
    let name = path.display();
    if line.len() > LONGEST {
        bail!("{name}: not a baseline, its first line is longer than a line of one");
    }
    let header = serde_json::from_slice::<serde_json::Value>(line).ok();
    let version = header.and_then(|header| header.get("tc_eval_baseline")?.as_u64());
    match version {
        None => bail!("{name}: not a baseline, write one with --save-baseline"),
        Some(version) if version != u64::from(BASELINE_FORMAT) => bail!(
            "{name}: a baseline of format {version}, and this version reads format {BASELINE_FORMAT}; write it again \
             with --save-baseline"
        ),
        Some(_) => serde_json::from_slice(line).map_err(not_valid),
    }
}

/// The folder that a corpus is: `./fixtures/index.ndjson` is `fixtures`. By this corpora of two runs
/// are the same; where both have a single one these are the same whatever their names.
fn plain(name: &str) -> &str {
    let folder = name.strip_suffix("/index.ndjson").unwrap_or(name);
    let folder = folder.strip_prefix("./").unwrap_or(folder);
    match folder.trim_end_matches('/') {
        "" => folder,
        trimmed => trimmed,
    }
}

/// A writer of a baseline.
struct BaselineWriter {
    path: PathBuf,
    draft: LabelDraft,
    streams: u64,
}

impl BaselineWriter {
    /// Creates the baseline `path` and writes its header.
    fn create(path: &Path, checkers: &[String], corpora: &[String]) -> Result<Self> {
        let mut writer = BaselineWriter {
            path: path.to_owned(),
            draft: LabelDraft::create(path).with_context(|| unwritable(path))?,
            streams: 0,
        };
        writer.put(serde_json::to_vec(&BaselineHeader {
            tc_eval_baseline: BASELINE_FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            checkers: checkers.to_vec(),
            corpora: corpora.to_vec(),
        })?)?;
        Ok(writer)
    }

    /// Writes one stream, without the reasons: these change with every wording, and the file is
    /// meant to be kept under version control.
    fn write(&mut self, mut stream: BaselineStream) -> Result<()> {
        let outcomes = stream.outcomes.iter_mut();
        outcomes.for_each(|outcome| outcome.reason.clear());
        self.streams += 1;
        self.put(serde_json::to_vec(&stream)?)
    }

    /// Writes the last line and gives the file its name.
    fn finish(mut self) -> Result<()> {
        self.put(serde_json::to_vec(&BaselineEnd { end: self.streams })?)?;
        self.draft.finish().with_context(|| unwritable(&self.path))
    }

    fn put(&mut self, mut line: Vec<u8>) -> Result<()> {
        line.push(b'\n');
        if line.len() > LONGEST {
            bail!(
                "{}: stream {} makes a line of more than {LONGEST} bytes; shorten its id",
                self.path.display(),
                self.streams
            );
        }
        let written = self.draft.write_all(&line);
        written.with_context(|| unwritable(&self.path))
    }
}

fn unwritable(path: &Path) -> String {
    let path = path.display();
    format!("{path}: the baseline cannot be written, free some space or write elsewhere")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_corpus_is_the_same_however_its_path_is_written() {
        for name in [
            "fixtures",
            "fixtures/",
            "./fixtures",
            "./fixtures/index.ndjson",
        ] {
            assert_eq!(plain(name), "fixtures", "{name}");
        }
        for (name, folder) in [("-", "-"), ("/", "/"), ("a/b.ndjson", "a/b.ndjson")] {
            assert_eq!(plain(name), folder);
        }
    }
}
