//! Compares a run with an earlier one (`--baseline`), and writes what a later run is compared with
//! (`--save-baseline`).

mod file;
mod join;
mod names;
mod sort;

use anyhow::Result;
use file::{Reader, Writer};
use join::Join;
use names::CorpusNames;
use score::{BaselineReport, BaselineStream, Measured};
use std::path::PathBuf;

/// The options of baselines.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub struct Args {
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

/// The baselines of one run: the one that it is compared with, and the one that it writes.
#[derive(Debug, Default)]
pub struct Baseline {
    names: CorpusNames,
    join: Option<Join>,
    writer: Option<Writer>,
}

impl Baseline {
    /// Opens what the options name, before the first stream is read, so that a mistake shows at
    /// once. `checkers` are in the order of the outcomes; `corpora` are as the user typed them.
    ///
    /// # Errors
    /// When a file cannot be opened, is not a baseline, or shares no checker with this run.
    pub fn open(args: &Args, checkers: &[String], corpora: &[String]) -> Result<Self> {
        let mut names = CorpusNames::default();
        let join = match &args.baseline {
            Some(path) => {
                let reader = Reader::open(path)?;
                names = CorpusNames::of(&reader.header().corpora, corpora);
                Some(Join::new(reader, names.clone(), checkers, args.show)?)
            }
            None => None,
        };
        let writer = args
            .save_baseline
            .as_ref()
            .map(|path| Writer::create(path, checkers, corpora))
            .transpose()?;
        Ok(Baseline {
            names,
            join,
            writer,
        })
    }

    /// Takes one stream. The streams come in the order of the corpora.
    ///
    /// # Errors
    /// When a file cannot be read or written, or the baseline has a line that is not valid.
    pub fn take(&mut self, measured: &Measured) -> Result<()> {
        if self.join.is_none() && self.writer.is_none() {
            return Ok(());
        }
        let mut stream = BaselineStream::of(measured);
        if let Some(writer) = &mut self.writer {
            writer.write(&stream)?;
        }
        if let Some(join) = &mut self.join {
            self.names.unify(&mut stream.corpus);
            join.take(stream)?;
        }
        Ok(())
    }

    /// Leaves the file of `--save-baseline` as it was.
    pub fn discard(&mut self) {
        self.writer = None;
    }

    /// What changed, after the last stream. The file of `--save-baseline` gets its name here,
    /// unless a checker got worse: a gate that fails must fail again until somebody accepts the
    /// change, by running without `--baseline`.
    ///
    /// # Errors
    /// As [`Baseline::take`], and when the baseline is cut or has no stream of this run.
    pub fn finish(self) -> Result<Option<BaselineReport>> {
        let report = self.join.map(Join::finish).transpose()?;
        if let Some(writer) = self.writer
            && !report.as_ref().is_some_and(BaselineReport::has_regressions)
        {
            writer.finish()?;
        }
        Ok(report)
    }
}
