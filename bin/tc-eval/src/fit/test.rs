//! Tests tables: each part of the corpora is judged with the table that was learned from the other parts.

use super::folds::Folds;
use super::{Args, each_event, each_stream, observe};
use crate::corpus::Entry;
use anyhow::{Context, Result};
use detect::auto::Table;
use detect::{CallFilter, Checker, Checkers, Settings, StreamEnding, Verdict};
use event::Kind;
use event::payload::{ContentDelta, RefusalDelta, StreamEnd};
use score::{Answer, CallCounts, Measured, Outcome, Place, Report, Tally};
use std::io::Write;
use std::rc::Rc;
use stdio::Status;

/// Prints, for each part and for all together, what the checkers reach.
///
/// # Errors
/// What is wrong with a checker, a corpus or a recording.
pub fn test(args: &Args, folds: &Folds) -> Result<Status> {
    let names = if args.checkers.is_empty() { vec!["auto".to_owned()] } else { args.checkers.clone() };
    let count = usize::try_from(folds.count)?;
    let mut learned = vec![Table::default(); count];
    each_stream(&args.corpora, |entry, buffer| {
        learned[folds.part(&entry.label)].add(&observe(entry, buffer, false)?.end());
        Ok(())
    })?;
    let checkers = (0..count).map(|part| checkers(&names, &others(&learned, part))).collect::<Result<Vec<_>>>()?;
    let mut tallies: Vec<Tally> = (0..count).map(|_| Tally::new(&names)).collect();
    each_stream(&args.corpora, |entry, buffer| {
        let part = folds.part(&entry.label);
        tallies[part].add(&measure(entry, buffer, args.hide_tools, &checkers[part])?);
        Ok(())
    })?;
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{:10} {:16} {:>7} {:>6} {:>6} {:>9} {:>18} {:>7} {:>9}",
        "part", "checker", "streams", "calls", "missed", "recall", "95 %", "waited", "false yes"
    )?;
    let mut all = Tally::new(&names);
    for (part, tally) in tallies.into_iter().enumerate() {
        if count <= 10 {
            rows(&mut out, &format!("{} of {count}", part + 1), &tally)?;
        }
        all.merge(tally)?;
    }
    rows(&mut out, "all", &all)?;
    Ok(Status::Done)
}

/// The table of all parts but one.
fn others(learned: &[Table], part: usize) -> Table {
    let mut table = Table::default();
    learned.iter().enumerate().filter(|(at, _)| *at != part).for_each(|(_, other)| table.merge(other));
    table
}

fn checkers(names: &[String], table: &Table) -> Result<Vec<Checkers>> {
    let settings = Settings { table: Some(Rc::new(table.clone())), ..Settings::default() };
    let checker = |name: &String| {
        detect::checkers_with(name, &CallFilter::default(), &settings)
            .with_context(|| format!("unknown checker '{name}', use one of those of tc-detect but for cmd:"))
    };
    names.iter().map(checker).collect()
}

/// What the checkers answer for one stream, and after how much text.
fn measure(entry: &Entry, buffer: &mut Vec<u8>, hide_tools: bool, checkers: &[Checkers]) -> Result<Measured> {
    let mut running: Vec<Box<dyn Checker>> = Vec::new();
    let mut outcomes: Vec<Option<Outcome>> = vec![None; checkers.len()];
    let mut place = Place::default();
    let mut ending = StreamEnding::Cut;
    each_event(entry, buffer, hide_tools, &mut |event| {
        if running.is_empty() {
            running = checkers.iter().map(|checker| checker(event)()).collect();
        }
        if event.choice() != 0 {
            return;
        }
        place.events += 1;
        let text = match event.kind() {
            Kind::ContentDelta => ContentDelta::read(event).text,
            Kind::RefusalDelta => RefusalDelta::read(event).text,
            Kind::StreamEnd => {
                ending = StreamEnding::Stream(StreamEnd::read(event).finish_reason);
                return;
            }
            _ => Default::default(),
        };
        place.chars += text.str().chars().count() as u64;
        place.bytes += text.len() as u64;
        for (checker, answer) in running.iter_mut().zip(&mut outcomes) {
            if answer.is_none() {
                *answer = checker.push(event).map(|verdict| outcome(Some(verdict), place));
            }
        }
    })?;
    for (checker, answer) in running.iter_mut().zip(&mut outcomes) {
        if answer.is_none() {
            *answer = Some(outcome(checker.end(ending), place));
        }
    }
    Ok(measured(entry, place, outcomes.into_iter().flatten().collect()))
}

fn outcome(verdict: Option<Verdict>, at: Place) -> Outcome {
    let answer = match &verdict {
        None => Answer::Undecided,
        Some(verdict) if verdict.tool_call => Answer::Yes,
        Some(_) => Answer::No,
    };
    let reason = verdict.map(|verdict| verdict.reason).unwrap_or_default();
    Outcome { answer, last: answer, at: Some(at), reason, depends_on_split: false }
}

/// The parts of a measurement that the metrics printed here need.
fn measured(entry: &Entry, end: Place, outcomes: Vec<Outcome>) -> Measured {
    let label = &entry.label;
    let name = |name: &Option<String>| name.as_deref().unwrap_or_default().into();
    Measured {
        id: label.id.as_str().into(),
        corpus: entry.corpus.clone(),
        source: label.source.as_deref().unwrap_or(&label.id).into(),
        api: name(&label.api),
        provider: name(&label.provider),
        model: name(&label.model),
        tags: label.tags.iter().map(|tag| tag.as_str().into()).collect(),
        has_tool_call: label.has_tool_call == Some(true),
        end,
        first_call: None,
        calls: CallCounts::default(),
        saved_ms: None,
        outcomes,
    }
}

fn rows(out: &mut impl Write, part: &str, tally: &Tally) -> Result<()> {
    for checker in Report::of(tally).checkers {
        let confusion = checker.confusion;
        let percent =
            |metric: &str| checker.number(metric).map_or("-".to_owned(), |share| format!("{:.2} %", share * 100.0));
        let interval = checker.intervals.get("recall");
        let interval = interval.map_or("-".to_owned(), |i| format!("{:.2} - {:.2} %", i.low * 100.0, i.high * 100.0));
        let missed = confusion.false_negatives + confusion.undecided_calls;
        let (calls, name) = (confusion.true_positives + missed, &checker.name);
        let (recall, waited, wrong) = (percent("recall"), percent("waited"), confusion.false_positives);
        let streams = tally.streams();
        writeln!(
            out,
            "{part:10} {name:16} {streams:>7} {calls:>6} {missed:>6} {recall:>9} {interval:>18} {waited:>7} {wrong:>9}"
        )?;
    }
    Ok(())
}
