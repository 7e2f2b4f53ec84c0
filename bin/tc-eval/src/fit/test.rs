//! Cross-validates tables: each part of the corpora is evaluated with the table that was learned
//! from the other parts.

use super::folds::Folds;
use super::streams;
use crate::evaluate::measure::{MeasurePlan, Meter};
use anyhow::{Context, Result};
use detect::auto::AutoTable;
use detect::{CallFilter, checkers};
use score::{Report, Tally};
use std::fmt::Write;
use std::path::PathBuf;
use stdio::Status;

/// A test of tables on streams that they were not learned from.
pub(super) struct FoldedTest {
    /// The names of the checkers.
    pub checkers: Vec<String>,
    /// The split of the sources.
    pub folds: Folds,
    /// Whether the tools of the requests are hidden from the checkers.
    pub hide_tools: bool,
}

impl FoldedTest {
    /// Prints the results of the checkers for each part and for all parts together.
    ///
    /// # Errors
    /// Fails if a checker, a corpus or a recording is invalid.
    pub(super) fn run(&self, corpora: &[PathBuf], common: &args::Common) -> Result<Status> {
        for name in &self.checkers {
            checkers(name, &CallFilter::default()).with_context(|| {
                format!("unknown checker '{name}', use one of those of tc-detect but for cmd:")
            })?;
        }
        let count = usize::try_from(self.folds.count)?;
        // `None` for a part without streams; there may be many such parts.
        let mut learned: Vec<Option<AutoTable>> = vec![None; count];
        streams::each(corpora, |entry| {
            let table = learned[self.folds.part(&entry.label)].get_or_insert_default();
            table.add(&streams::observe(&entry)?);
            Ok(())
        })?;
        let plans: Vec<Option<MeasurePlan>> = (0..count)
            .map(|part| {
                learned[part]
                    .is_some()
                    .then(|| self.plan(others(&learned, part), common))
            })
            .collect();
        let mut meters = plans
            .iter()
            .map(|plan| plan.as_ref().map(Meter::new).transpose())
            .collect::<Result<Vec<_>>>()?;
        let mut tallies: Vec<Tally> = (0..count).map(|_| Tally::new(&self.checkers)).collect();
        streams::each(corpora, |mut entry| {
            let part = self.folds.part(&entry.label);
            if self.hide_tools {
                entry.label.tools = None;
            }
            let meter = meters[part]
                .as_mut()
                .context("the corpus changed while it was read")?;
            tallies[part].add(&meter.measure(&entry, Vec::new())?);
            Ok(())
        })?;
        let mut text = String::new();
        writeln!(
            text,
            "{:10} {:16} {:>7} {:>6} {:>6} {:>9} {:>18} {:>7} {:>9}",
            "part",
            "checker",
            "streams",
            "calls",
            "missed",
            "recall",
            "95 %",
            "waited",
            "false yes"
        )?;
        let mut all = Tally::new(&self.checkers);
        for (part, tally) in tallies.into_iter().enumerate() {
            if count <= 10 {
                rows(&mut text, &format!("{} of {count}", part + 1), &tally)?;
            }
            all.merge(tally)?;
        }
        rows(&mut text, "all", &all)?;
        crate::print(&text)?;
        Ok(Status::Done)
    }

    fn plan(&self, table: AutoTable, common: &args::Common) -> MeasurePlan {
        MeasurePlan {
            checkers: self.checkers.clone(),
            no_time: true,
            strict: common.strict,
            max_line: common.max_line,
            table: Some(table),
            ..MeasurePlan::default()
        }
    }
}

/// Returns the table learned from all parts except one.
fn others(learned: &[Option<AutoTable>], part: usize) -> AutoTable {
    let mut table = AutoTable::default();
    for (_, other) in learned.iter().enumerate().filter(|(at, _)| *at != part) {
        other.iter().for_each(|other| table.merge(other));
    }
    table
}

fn rows(out: &mut impl Write, part: &str, tally: &Tally) -> Result<()> {
    for checker in Report::of(tally).checkers {
        let confusion = checker.confusion;
        let percent = |metric: &str| {
            checker
                .number(metric)
                .map_or("-".to_owned(), |share| format!("{:.2} %", share * 100.0))
        };
        let interval = checker.intervals.get("recall");
        let interval = interval.map_or("-".to_owned(), |i| {
            format!("{:.2} - {:.2} %", i.low * 100.0, i.high * 100.0)
        });
        let missed = confusion.false_negatives + confusion.undecided_calls;
        let calls = confusion.true_positives + missed;
        let name = &checker.name;
        let recall = percent("recall");
        let waited = percent("waited");
        let wrong = confusion.false_positives;
        let streams = tally.streams();
        writeln!(
            out,
            "{part:10} {name:16} {streams:>7} {calls:>6} {missed:>6} {recall:>9} {interval:>18} {waited:>7} {wrong:>9}"
        )?;
    }
    Ok(())
}
