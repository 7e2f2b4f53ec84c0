//! Evaluates checkers over corpora.

mod asked;
pub(crate) mod baseline;
mod calls;
mod feed;
pub(crate) mod judge;
mod list;
pub(crate) mod measure;
mod only;
pub(crate) mod output;
mod parallel;
mod progress;
mod resplit;

use crate::checkers::{find, named_by};
use crate::split::Split;
use anyhow::{Result, anyhow, bail};
use baseline::Baseline;
use detect::auto::AutoTable;
use feed::{Done, Feed, FeedJob};
use measure::{MeasurePlan, Meter};
use only::Only;
use progress::ProgressLine;
use score::forms::counted;
use score::{Partial, Report, Tally};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use stdio::{Output, Status};

/// The arguments of an evaluation.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    /// Files `index.ndjson`, or folders that hold one; `-` is an index on standard input
    #[arg(required = true)]
    pub corpora: Vec<PathBuf>,
    /// A checker of tc-detect, or cmd:COMMAND, or NAME=cmd:COMMAND with its name in reports; may be
    /// given several times [default: first-chunk, lookahead:200, full, auto]
    #[arg(short, long = "checker", value_name = "NAME")]
    pub checkers: Vec<String>,
    /// Where the recordings are, as one corpus of this name [default: the folder of each index]
    #[arg(long, value_name = "FOLDER")]
    pub root: Option<PathBuf>,
    /// Evaluate only streams whose id, api, provider, model, source or tag matches; of several all
    /// must match
    #[arg(long, value_name = "FIELD=GLOB")]
    pub only: Vec<Only>,
    /// Read each stream again with bytes and deltas in pieces of N, and mark answers that differ;
    /// may be given several times
    #[arg(long, value_name = "N|random:SEED")]
    pub resplit: Vec<Split>,
    /// Show the checkers each stream as tag-parse passes it
    #[arg(long)]
    pub tag_parse: bool,
    /// Write what each checker did on each stream, a line of JSON each, and no report
    #[arg(long)]
    pub list: bool,
    /// Write the counts as a line of JSON for tc-eval merge, and no report
    #[arg(long, conflicts_with_all = ["list", "baseline", "format", "output", "require", "by"])]
    pub partial: bool,
    /// The table of auto, as tc-eval fit writes it [default: the one that is compiled in]
    #[arg(long, value_name = "FILE")]
    pub table: Option<PathBuf>,
    /// How many threads read streams [default: the number of processors]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: Option<u16>,
    #[command(flatten)]
    pub outside: crate::checkers::Args,
    #[command(flatten)]
    pub baseline: baseline::Args,
    #[command(flatten)]
    pub output: output::Args,
}

/// The default checkers.
const DEFAULT: [&str; 4] = ["first-chunk", "lookahead:200", "full", "auto"];

/// Maximum default number of threads; more threads are not worth their memory.
const MOST_JOBS: usize = 16;

/// Runs the checkers and writes the report. Returns status 2 if a recording could not be read,
/// otherwise the status of the report's requirements. With `--partial`, writes the counts instead.
///
/// # Errors
/// Fails if the arguments, a corpus or a checker are invalid.
pub(crate) fn evaluate(args: &Args, common: &args::Common) -> Result<Status> {
    let found = find(&checkers(&args.checkers), &args.outside)?;
    let (names, checkers) = found.into_iter().unzip();
    let plan = MeasurePlan {
        checkers: names,
        splits: args.resplit.clone(),
        tag_parse: args.tag_parse,
        no_time: common.no_time,
        strict: common.strict,
        max_line: common.max_line,
        table: args.table.as_deref().map(table).transpose()?,
    };
    let mut run = Evaluation::new(args, &plan)?;
    let mut feed = Feed::new(
        &args.corpora,
        args.root.as_deref(),
        &args.only,
        checkers,
        1 + plan.splits.len(),
    )?;
    let work = |meter: &mut Result<Meter<'_>>, job| measure(meter, job);
    parallel::in_order(
        jobs(args.jobs),
        || feed.next(),
        || Meter::new(&plan),
        work,
        |done| run.take(done),
    )?;
    let ended = feed.finish();
    if args.partial {
        ended?;
        return run.finish();
    }
    // The other checkers keep their report, but no baseline is written, because it would accept the
    // results of the failed checker.
    if ended.is_err() {
        run.baseline.discard();
    }
    let status = run.finish()?;
    ended.map(|()| status)
}

/// Reads a table for `auto`.
///
/// # Errors
/// Fails if the file cannot be read or is not a table.
pub(crate) fn table(path: &Path) -> Result<AutoTable> {
    args::file(path, AutoTable::parse)
}

fn measure(meter: &mut Result<Meter<'_>>, job: FeedJob) -> Done {
    match (meter, job) {
        (_, FeedJob::Done(done)) => done,
        (Err(e), FeedJob::Stream(..)) => Done::Failed(anyhow!("{e:#}")),
        (Ok(meter), FeedJob::Stream(entry, judgings)) => match meter.measure(&entry, judgings) {
            Ok(measured) => Done::Measured(Box::new(measured)),
            Err(e) => Done::Unreadable(e.context(format!("{}, line {}", entry.corpus, entry.line))),
        },
    }
}

/// The accumulated results of a run.
struct Evaluation<'r> {
    args: &'r Args,
    plan: &'r MeasurePlan,
    counts: Partial,
    baseline: Baseline,
    progress: ProgressLine,
    report: output::ReportOutput,
    out: Output,
    unlabelled: u64,
    unreadable: u64,
}

impl<'r> Evaluation<'r> {
    fn new(args: &'r Args, plan: &'r MeasurePlan) -> Result<Self> {
        let corpora = match &args.root {
            Some(root) => vec![root.to_string_lossy().into_owned()],
            None => args
                .corpora
                .iter()
                .map(|path| path.to_string_lossy().into_owned())
                .collect(),
        };
        let has_report = !args.list && !args.partial;
        Ok(Evaluation {
            args,
            plan,
            counts: Partial::new(
                env!("CARGO_PKG_VERSION"),
                Tally::showing(&plan.checkers, args.baseline.show),
            ),
            baseline: Baseline::open(&args.baseline, &plan.checkers, &corpora)?,
            progress: ProgressLine::new(),
            report: output::ReportOutput::open(
                &args.output,
                &plan.checkers,
                args.baseline.baseline.is_some(),
                has_report,
            )?,
            out: Output::new(),
            unlabelled: 0,
            unreadable: 0,
        })
    }

    fn take(&mut self, done: Done) -> Result<()> {
        match done {
            Done::Failed(e) => return Err(e),
            Done::Unlabelled => {
                self.unlabelled += 1;
                self.counts.tally.add_unlabelled();
            }
            Done::Unreadable(e) if self.plan.strict => return Err(e),
            Done::Unreadable(e) => {
                self.unreadable += 1;
                self.counts.tally.add_unreadable();
                self.progress.message(&format!("{e:#}"));
            }
            Done::Measured(measured) => {
                self.progress.step();
                if self.args.list {
                    list::write(self.out.buffer(), &self.plan.checkers, &measured);
                    self.out.spill()?;
                }
                self.counts.tally.add(&measured);
                self.baseline.take(&measured)?;
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Status> {
        if self.unlabelled > 0 {
            let corpora: Vec<_> = self
                .args
                .corpora
                .iter()
                .map(|path| path.to_string_lossy())
                .collect();
            let text = format!(
                "{} left out, confirm the labels with: {}",
                counted(self.unlabelled, "stream"),
                score::command_line::confirm(corpora.iter().map(AsRef::as_ref))
            );
            self.progress.message(&text);
        }
        self.progress.end();
        let baseline = self.baseline.finish()?;
        if self.args.partial {
            // The part is complete, and counts the recordings that could not be read, for which
            // merge returns status 2. A part may be empty, because cluster engines start a process
            // even for an empty partition.
            self.out.put(self.counts.line()?.as_bytes())?;
            self.out.put(b"\n")?;
            self.out.flush()?;
            return Ok(Status::Done);
        }
        let tally = &self.counts.tally;
        if tally.streams() == 0 && self.unreadable == 0 {
            bail!("no stream was measured; name a corpus with labels, and see --only");
        }
        let report = Report {
            baseline,
            named_by: named_by(&self.args.checkers, &self.args.outside),
            ..Report::of(tally)
        };
        let status = self.report.write(report, &mut self.out)?;
        Ok(if self.unreadable > 0 {
            Status::Error
        } else {
            status
        })
    }
}

/// Returns the checkers to run: the named ones, or the defaults.
pub(crate) fn checkers(named: &[String]) -> Vec<String> {
    if !named.is_empty() {
        return named.to_vec();
    }
    let is_known = |name: &&str| detect::checkers(name, &detect::CallFilter::default()).is_some();
    DEFAULT
        .into_iter()
        .filter(is_known)
        .map(str::to_owned)
        .collect()
}

/// Returns the number of threads.
fn jobs(asked: Option<u16>) -> usize {
    let available = || {
        std::thread::available_parallelism()
            .map_or(1, NonZeroUsize::get)
            .min(MOST_JOBS)
    };
    asked.map_or_else(available, usize::from)
}
