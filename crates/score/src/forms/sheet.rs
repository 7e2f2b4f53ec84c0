//! The tables of a report, whatever draws them.

use super::number::{coefficient, count, maybe_count, milliseconds, percent};
use crate::group::Dimension;
use crate::metrics::{Metrics, Value};
use crate::report::{CheckerReport, GroupChecker, GroupReport, Report};
use crate::statistics::Interval;
use crate::visible_ends;

/// Rows of a table. The first column has names; the others have numbers and are drawn flush right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sheet {
    /// The heads of the columns.
    pub head: Vec<String>,
    /// The rows, each as long as the head.
    pub rows: Vec<Vec<String>>,
}

impl Sheet {
    fn new(head: &[&str]) -> Self {
        Self {
            head: head.iter().map(|&word| word.to_owned()).collect(),
            rows: Vec::new(),
        }
    }
}

/// A name for a cell, of at most `limit` characters.
pub fn name(name: &str, limit: usize) -> String {
    if name.is_empty() {
        "(empty)".to_owned()
    } else {
        visible_ends(name, limit)
    }
}

/// One row for each checker. `limit` is the most characters of a name.
pub fn summary(report: &Report, limit: usize) -> Sheet {
    let mut sheet = Sheet::new(&[
        "checker",
        "recall",
        "95 %",
        "precision",
        "undecided",
        "waited",
        "p50",
        "p90",
    ]);
    for checker in &report.checkers {
        let number = |metric: &str| checker.number(metric);
        sheet.rows.push(vec![
            name(&checker.name, limit),
            percent(number("recall")),
            range(checker.intervals.get("recall")),
            percent(number("precision")),
            cell(&checker.metrics, "undecided"),
            percent(number("waited")),
            short(&checker.metrics, "decision.chars.p50"),
            short(&checker.metrics, "decision.chars.p90"),
        ]);
    }
    sheet
}

/// The confusion matrix of a checker.
pub fn confusion(checker: &CheckerReport) -> Sheet {
    let counts = checker.confusion;
    let mut sheet = Sheet::new(&["", "yes", "no", "undecided"]);
    let rows = [
        (
            "calls a tool",
            counts.true_positives,
            counts.false_negatives,
            counts.undecided_calls,
        ),
        (
            "calls no tool",
            counts.false_positives,
            counts.true_negatives,
            counts.undecided_others,
        ),
    ];
    sheet.rows = rows
        .into_iter()
        .map(|(name, yes, no, undecided)| {
            vec![name.to_owned(), count(yes), count(no), count(undecided)]
        })
        .collect();
    sheet
}

/// Where a checker decided, and how late it was.
pub fn places(checker: &CheckerReport) -> Sheet {
    let mut sheet = Sheet::new(&["", "p50", "p90", "p99", "max"]);
    for (kind, words) in [("decision", "decided after"), ("late", "late by")] {
        for (unit, name) in [
            ("events", "events"),
            ("chars", "characters"),
            ("bytes", "bytes"),
            ("ms", "time"),
        ] {
            let metric = |quantile: &str| format!("{kind}.{unit}.{quantile}");
            // A yes at the first event of a call has a row of zeros for each unit; one says it.
            let is_at_call =
                kind == "late" && unit != "events" && checker.number(&metric("max")) == Some(0.0);
            if is_at_call || checker.number(&metric("max")).is_none() {
                continue;
            }
            let mut row = vec![format!("{words}, {name}")];
            row.extend(
                ["p50", "p90", "p99", "max"]
                    .map(|quantile| cell(&checker.metrics, &metric(quantile))),
            );
            sheet.rows.push(row);
        }
    }
    sheet
}

/// The shares of a checker with their intervals.
pub fn shares(checker: &CheckerReport) -> Sheet {
    let mut sheet = Sheet::new(&["", "share", "95 %"]);
    let row = |metric: &str| {
        let share = percent(checker.number(metric));
        vec![
            metric.to_owned(),
            share,
            range(checker.intervals.get(metric)),
        ]
    };
    sheet.rows = ["recall", "precision", "accuracy"].map(row).to_vec();
    sheet
}

/// Metrics that are one number each, as a sentence.
pub fn scores(checker: &CheckerReport) -> String {
    let number = |metric: &str| checker.number(metric);
    format!(
        "F1 {}, MCC {}, waited {} ({} a stream), revised {}, split {}",
        percent(number("f1")),
        coefficient(number("mcc")),
        percent(number("waited")),
        percent(number("waited.stream")),
        cell(&checker.metrics, "revised"),
        cell(&checker.metrics, "split"),
    )
}

/// What is known of the streams, whatever the checkers answered, as sentences.
pub fn streams(report: &Report) -> Vec<String> {
    let cell = |metric: &str| cell(&report.streams, metric);
    let number = |metric: &str| report.streams.get(metric).and_then(Value::number);
    let is_one = |metric: &str| number(metric) == Some(1.0);
    let (noun, verb) = (
        if is_one("streams") {
            "stream"
        } else {
            "streams"
        },
        if is_one("calls") { "calls" } else { "call" },
    );
    let mut lines = vec![format!(
        "{} {}, {} of them {} a tool.",
        cell("streams"),
        noun,
        cell("calls"),
        verb
    )];
    if number("calls.expected") != Some(0.0) {
        lines.push(format!(
            "Calls: {} expected, {} read, {} exact; lists in order {}; {} repaired, {} incomplete.",
            cell("calls.expected"),
            cell("calls.read"),
            percent(number("calls.exact")),
            percent(number("calls.in_order")),
            cell("calls.repaired"),
            cell("calls.incomplete"),
        ));
    }
    if number("saved.ms.max").is_some() {
        let [p50, p90, p99] =
            ["p50", "p90", "p99"].map(|quantile| cell(&format!("saved.ms.{quantile}")));
        lines.push(format!(
            "Tools that start at their call save {p50} (p50), {p90} (p90), {p99} (p99)."
        ));
    }
    for (number, words) in [
        (report.unreadable, "recordings cannot be read"),
        (report.unlabelled, "streams have no label yet"),
    ] {
        if number > 0 {
            lines.push(format!("{} {words}; no number counts them.", count(number)));
        }
    }
    lines
}

/// The groups of a dimension in which checkers differ, or a single checker is wrong: for each its
/// streams, its calls, and the recall of each checker of `range` with the number of its false
/// yeses. Also how many groups are left out. `limit` and `checker_limit` are the most characters of
/// the names of groups and of checkers.
pub fn groups(
    report: &Report,
    by: Dimension,
    range: std::ops::Range<usize>,
    limit: usize,
    checker_limit: usize,
) -> (Sheet, usize) {
    let mut sheet = Sheet::new(&[by.name(), "streams", "calls"]);
    sheet.head.extend(
        report.checkers[range.clone()]
            .iter()
            .map(|checker| name(&checker.name, checker_limit)),
    );
    let mut left_out = 0;
    for group in report.groups_by(by) {
        if !is_shown(group) {
            left_out += 1;
            continue;
        }
        let mut row = vec![
            name(&group.name, limit),
            cell(&group.streams, "streams"),
            cell(&group.streams, "calls"),
        ];
        row.extend(group.checkers[range.clone()].iter().map(recall));
        sheet.rows.push(row);
    }
    (sheet, left_out)
}

fn recall(checker: &GroupChecker) -> String {
    let recall = percent(checker.metrics.get("recall").and_then(Value::number));
    match checker.metrics.get("false_positives") {
        Some(Value::Count(false_yes)) if false_yes > 0 => format!("{recall} +{}", count(false_yes)),
        _ => recall,
    }
}

fn is_shown(group: &GroupReport) -> bool {
    let cells = |checker: &GroupChecker| {
        ["true_positives", "false_positives", "undecided"].map(|metric| checker.metrics.get(metric))
    };
    match &group.checkers[..] {
        [] => false,
        [single] => {
            let wrong = ["false_negatives", "false_positives", "undecided"]
                .map(|metric| single.metrics.get(metric));
            wrong.iter().any(|count| *count != Some(Value::Count(0)))
        }
        [first, rest @ ..] => rest.iter().any(|checker| cells(checker) != cells(first)),
    }
}

/// A metric for people: a count, or a time.
fn cell(metrics: &Metrics, metric: &str) -> String {
    match metrics.get(metric) {
        Some(Value::Real(real)) => milliseconds(Some(real)),
        Some(Value::Count(number)) => count(number),
        _ => maybe_count(None),
    }
}

/// A count in at most six characters.
fn short(metrics: &Metrics, metric: &str) -> String {
    match metrics.get(metric) {
        Some(Value::Count(number)) if number >= 10_000_000 => {
            format!("{}M", count(number / 1_000_000))
        }
        Some(Value::Count(number)) if number >= 100_000 => format!("{}k", count(number / 1_000)),
        _ => cell(metrics, metric),
    }
}

/// An interval of shares: `85.2–90.1 %`.
fn range(interval: Option<&Interval>) -> String {
    let Some(interval) = interval else {
        return "–".to_owned();
    };
    let [low, high] = [interval.low, interval.high].map(|end| percent(Some(end)));
    let low = low.trim_end_matches(['%', '\u{a0}']);
    format!("{low}–{high}")
}
