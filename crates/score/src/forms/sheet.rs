//! The tables of a report, whatever draws them.

use super::words::{count, metric, percent};
use crate::group::Dimension;
use crate::metrics::{Metrics, Value};
use crate::report::{CheckerReport, GroupChecker, GroupReport, Report};
use crate::statistics::Interval;
use crate::visible_ends;
use std::ops::Range;

/// Rows of a table. The first column has names; the others have numbers and are drawn flush right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sheet {
    /// The heads of the columns.
    pub head: Vec<String>,
    /// The rows, each as long as the head.
    pub rows: Vec<Vec<String>>,
}

impl Sheet {
    /// A table without rows.
    pub fn new(head: &[&str]) -> Self {
        Self {
            head: head.iter().map(|&word| word.to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row: its name, and the values of metrics.
    fn add(&mut self, name: String, metrics: &Metrics, columns: &[&str]) {
        let cells = columns.iter().map(|name| metric(metrics, name));
        self.rows.push([name].into_iter().chain(cells).collect());
    }
}

/// A name for a cell, of at most `limit` characters.
pub fn name(name: &str, limit: usize) -> String {
    match name {
        "" => "(empty)".to_owned(),
        _ => visible_ends(name, limit),
    }
}

/// One row for each checker. `limit` is the most characters of a name.
pub fn summary(report: &Report, limit: usize) -> Sheet {
    let columns = ["recall", "precision", "undecided", "waited"];
    let mut sheet = Sheet::new(&["checker", "recall", "precision", "undecided", "waited"]);
    for checker in &report.checkers {
        sheet.add(name(&checker.name, limit), &checker.metrics, &columns);
    }
    sheet.head.insert(2, "95 %".to_owned());
    sheet.head.extend(["p50", "p90"].map(str::to_owned));
    for (row, checker) in sheet.rows.iter_mut().zip(&report.checkers) {
        row.insert(2, range(checker.intervals.get("recall")));
        let places = ["decision.chars.p50", "decision.chars.p90"];
        row.extend(places.map(|metric| short(&checker.metrics, metric)));
    }
    sheet
}

/// The confusion matrix of a checker.
pub fn confusion(checker: &CheckerReport) -> Sheet {
    let mut sheet = Sheet::new(&["", "yes", "no", "undecided"]);
    for (name, counts) in checker.confusion.rows() {
        let cells = counts.map(count).into_iter();
        sheet
            .rows
            .push([name.to_owned()].into_iter().chain(cells).collect());
    }
    sheet
}

/// The quantiles that a report shows.
const QUANTILES: [&str; 4] = ["p50", "p90", "p99", "max"];

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
            let columns = QUANTILES.map(|quantile| format!("{kind}.{unit}.{quantile}"));
            // A yes at the first event of a call has a row of zeros for each unit; one says it.
            match checker.number(&columns[3]) {
                None => continue,
                Some(0.0) if kind == "late" && unit != "events" => continue,
                Some(_) => {}
            }
            let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
            sheet.add(format!("{words}, {name}"), &checker.metrics, &columns);
        }
    }
    sheet
}

/// The shares of a checker with their intervals.
pub fn shares(checker: &CheckerReport) -> Sheet {
    let mut sheet = Sheet::new(&["", "share", "95 %"]);
    for share in ["recall", "precision", "accuracy"] {
        let value = metric(&checker.metrics, share);
        let interval = range(checker.intervals.get(share));
        sheet.rows.push(vec![share.to_owned(), value, interval]);
    }
    sheet
}

/// Metrics that are one number each, as a sentence.
pub fn scores(checker: &CheckerReport) -> String {
    let [f1, mcc, waited, stream, revised, split] =
        ["f1", "mcc", "waited", "waited.stream", "revised", "split"]
            .map(|name| metric(&checker.metrics, name));
    format!(
        "F1 {f1}, MCC {mcc}, waited {waited} ({stream} a stream), revised {revised}, split {split}"
    )
}

/// What is known of the streams, whatever the checkers answered, as sentences.
pub fn streams(report: &Report) -> Vec<String> {
    let cell = |name: &str| metric(&report.streams, name);
    let number = |name: &str| report.streams.get(name).and_then(Value::number);
    let noun = if number("streams") == Some(1.0) {
        "stream"
    } else {
        "streams"
    };
    let verb = if number("calls") == Some(1.0) {
        "calls"
    } else {
        "call"
    };
    let (all, calling) = (cell("streams"), cell("calls"));
    let mut lines = vec![format!("{all} {noun}, {calling} of them {verb} a tool.")];
    if number("calls.expected") != Some(0.0) {
        let [expected, read, exact, in_order, repaired, incomplete] = [
            "expected",
            "read",
            "exact",
            "in_order",
            "repaired",
            "incomplete",
        ]
        .map(|name| cell(&format!("calls.{name}")));
        lines.push(format!(
            "Calls: {expected} expected, {read} read, {exact} exact; lists in order {in_order}; {repaired} repaired, \
             {incomplete} incomplete."
        ));
    }
    if number("saved.ms.max").is_some() {
        let [p50, p90, p99, _] = QUANTILES.map(|quantile| cell(&format!("saved.ms.{quantile}")));
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

/// The groups of a dimension in which checkers differ, or a single checker is wrong, and how many
/// others there are.
pub fn differing(report: &Report, by: Dimension) -> (Vec<&GroupReport>, usize) {
    let (shown, others): (Vec<_>, Vec<_>) = report.groups_by(by).partition(|group| is_shown(group));
    (shown, others.len())
}

/// A row for each group: its streams, its calls, and the recall of each checker of `range` with the
/// number of its false yeses. `limits` are the most characters of the names of groups and of
/// checkers.
pub fn groups(
    report: &Report,
    by: Dimension,
    groups: &[&GroupReport],
    range: Range<usize>,
    limits: [usize; 2],
) -> Sheet {
    let mut sheet = Sheet::new(&[by.name(), "streams", "calls"]);
    let checkers = &report.checkers[range.clone()];
    sheet.head.extend(
        checkers
            .iter()
            .map(|checker| name(&checker.name, limits[1])),
    );
    for group in groups {
        sheet.add(
            name(&group.name, limits[0]),
            &group.streams,
            &["streams", "calls"],
        );
        if let Some(row) = sheet.rows.last_mut() {
            row.extend(group.checkers[range.clone()].iter().map(recall));
        }
    }
    sheet
}

fn recall(checker: &GroupChecker) -> String {
    let recall = metric(&checker.metrics, "recall");
    match checker.metrics.get("false_positives") {
        Some(Value::Count(false_yes)) if false_yes > 0 => format!("{recall} +{}", count(false_yes)),
        _ => recall,
    }
}

fn is_shown(group: &GroupReport) -> bool {
    let cells =
        |checker: &GroupChecker, names: [&str; 3]| names.map(|metric| checker.metrics.get(metric));
    match &group.checkers[..] {
        [] => false,
        [single] => {
            let wrong = cells(single, ["false_negatives", "false_positives", "undecided"]);
            wrong.iter().any(|count| *count != Some(Value::Count(0)))
        }
        [first, rest @ ..] => {
            let answers = ["true_positives", "false_positives", "undecided"];
            rest.iter()
                .any(|checker| cells(checker, answers) != cells(first, answers))
        }
    }
}

/// A count in at most six characters.
fn short(metrics: &Metrics, name: &str) -> String {
    match metrics.get(name) {
        Some(Value::Count(number)) if number >= 10_000_000 => {
            format!("{}M", count(number / 1_000_000))
        }
        Some(Value::Count(number)) if number >= 100_000 => format!("{}k", count(number / 1_000)),
        _ => metric(metrics, name),
    }
}

/// An interval of shares: `85.2–90.1 %`.
pub fn range(interval: Option<&Interval>) -> String {
    let Some(interval) = interval else {
        return "–".to_owned();
    };
    let [low, high] = [interval.low, interval.high].map(|end| percent(Some(end)));
    let low = low.trim_end_matches(['%', '\u{a0}']);
    format!("{low}–{high}")
}
