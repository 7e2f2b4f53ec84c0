//! The sentences of a report that the forms share.

use super::number::{characters, count};
use crate::baseline::{AnswerChange, BaselineReport, CheckerChange};
use crate::report::CheckerReport;
use crate::visible;
use crate::wrong::WrongStream;

/// Characters of a name in a sentence.
const NAME: usize = 100;
/// Characters of a reason.
const REASON: usize = 200;

/// A stream that was named, and what the checker answered.
pub struct Named<'r> {
    /// The index that names it, and its id.
    pub corpus: &'r str,
    /// See `corpus`.
    pub id: &'r str,
    /// The answer and where it was given.
    pub answer: String,
    /// Why, in the checker's words.
    pub reason: String,
}

/// The wrong streams of a checker by kind: the name of the kind, how many there are, and the first
/// of them.
pub fn wrong(checker: &CheckerReport) -> [(&'static str, u64, Vec<Named<'_>>); 2] {
    let counts = checker.confusion;
    let missed = counts
        .false_negatives
        .saturating_add(counts.undecided_calls);
    [
        (
            "missed",
            missed,
            checker.missed.iter().map(of_wrong).collect(),
        ),
        (
            "false yes",
            counts.false_positives,
            checker.false_yes.iter().map(of_wrong).collect(),
        ),
    ]
}

fn of_wrong(stream: &WrongStream) -> Named<'_> {
    let at = match (stream.events, stream.chars) {
        (Some(events), Some(chars)) => format!(", event {}, {}", count(events), characters(chars)),
        _ => String::new(),
    };
    let (corpus, id, reason) = (
        &*stream.corpus,
        &*stream.id,
        visible(&stream.reason, REASON),
    );
    Named {
        corpus,
        id,
        answer: format!("{}{at}", stream.answer.name()),
        reason,
    }
}

/// What changed for a checker since the baseline: `2 broken, 1 fixed, 3 changed (p = 1.000)`.
pub fn change(change: &CheckerChange) -> String {
    let CheckerChange {
        broken,
        fixed,
        changed,
        earlier,
        later,
        p,
        ..
    } = change;
    format!(
        "{broken} broken, {fixed} fixed, {changed} with another answer (McNemar p = {p:.4}); of the same answers \
         {earlier} earlier, {later} later"
    )
}

/// The streams whose answer changed.
pub fn changed(change: &CheckerChange) -> [(&'static str, u64, Vec<Named<'_>>); 2] {
    [
        (
            "broken",
            change.broken,
            change.broken_streams.iter().map(of_change).collect(),
        ),
        (
            "fixed",
            change.fixed,
            change.fixed_streams.iter().map(of_change).collect(),
        ),
    ]
}

fn of_change(change: &AnswerChange) -> Named<'_> {
    let answer = format!("was {}, is {}", change.was.name(), change.is.name());
    Named {
        corpus: &change.corpus,
        id: &change.id,
        answer,
        reason: visible(&change.reason, REASON),
    }
}

/// What a baseline and a run have in common.
pub fn baseline(baseline: &BaselineReport) -> String {
    let BaselineReport {
        compared,
        new,
        vanished,
        relabelled,
        ..
    } = baseline;
    format!(
        "{compared} streams compared, {new} new, {vanished} vanished, {relabelled} with another label."
    )
}

/// A line for each checker that got worse, and one for each of the streams that are named: what a
/// gate reports.
#[must_use]
pub fn regressions(baseline: &BaselineReport) -> Vec<String> {
    let mut lines = Vec::new();
    for worse in baseline.checkers.iter().filter(|change| change.broken > 0) {
        let checker = visible(&worse.checker, NAME);
        lines.push(format!(
            "{checker}: compared with the baseline {}",
            change(worse)
        ));
        lines.extend(worse.broken_streams.iter().map(|stream| {
            let [corpus, id] = [&stream.corpus, &stream.id].map(|name| visible(name, NAME));
            let reason = visible(&stream.reason, REASON);
            format!(
                "{checker}: {corpus} {id} was {}, is {}: {reason}",
                stream.was.name(),
                stream.is.name()
            )
        }));
    }
    lines
}
