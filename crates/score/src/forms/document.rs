//! The content of a report, independent of its format: sections of sentences, tables, stream lists
//! and plots, in one order. A format draws these, and computes no numbers itself.

use super::words::{self, NamedStreams, count, metric, percent};
use crate::group::Dimension;
use crate::metrics::{MetricValue, Metrics};
use crate::report::{CheckerReport, Confusion, GroupChecker, GroupReport, Report};
use crate::statistics::Interval;
use crate::verdict::RequirementVerdict;
use std::cmp::Reverse;

/// A part of a report under one heading.
pub(super) struct Section<'r> {
    /// The heading, in which names are not escaped.
    pub title: String,
    /// Whether the section contains details: Markdown folds it, and a summary omits it.
    pub is_folded: bool,
    /// The content of the section.
    pub blocks: Vec<Block<'r>>,
}

/// An element of a section.
pub(super) enum Block<'r> {
    /// A sentence.
    Sentence(String),
    /// A heading within the section.
    Heading(String),
    /// A table.
    Sheet(Sheet),
    /// Claims, each with whether it is good, and a word for that.
    Claims(Vec<(bool, &'static str, String)>),
    /// Streams of one kind.
    Streams(NamedStreams<'r>),
    /// The confusion matrix of a checker.
    Confusion(&'r Confusion),
    /// The plots of recall against earliness.
    Curves,
    /// The plots of where a checker decided, with the index of the checker in the report.
    Decisions(&'r CheckerReport, usize),
}

/// A table. The first column contains names, which are not escaped, like those in the head; the
/// other columns contain numbers and are aligned right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sheet {
    /// The caption; may be empty.
    pub caption: &'static str,
    /// The column headings.
    pub head: Vec<String>,
    /// The number of columns after the first that are repeated if the table has to be split.
    pub fixed: usize,
    /// The rows, each as long as the head.
    pub rows: Vec<Vec<String>>,
}

impl Sheet {
    /// Creates a table without rows.
    pub(super) fn new(caption: &'static str, head: &[&str]) -> Self {
        Sheet {
            caption,
            head: head.iter().map(|&word| word.to_owned()).collect(),
            fixed: head.len() - 1,
            rows: Vec::new(),
        }
    }

    /// Adds a row with its name and the other cells.
    pub(super) fn add(&mut self, name: &str, cells: impl IntoIterator<Item = String>) {
        let row = [name.to_owned()].into_iter().chain(cells);
        self.rows.push(row.collect());
    }
}

/// Returns the sections of a report, with groups for the dimensions `by`, at most `rows` groups
/// each.
pub(super) fn sections<'r>(report: &'r Report, by: &[Dimension], rows: usize) -> Vec<Section<'r>> {
    let mut sections = vec![summary(report)];
    let mut add = |title: &str, is_folded, blocks: Vec<Block<'r>>| {
        if !blocks.is_empty() {
            let title = title.to_owned();
            sections.push(Section {
                title,
                is_folded,
                blocks,
            });
        }
    };
    add("Requirements", false, requirements(report));
    add("Recall against earliness", false, vec![Block::Curves]);
    add("Since the baseline", false, baseline(report));
    add("Wrong answers", true, wrong(report));
    add("Where checkers differ", true, groups(report, by, rows));
    for (index, one) in report.checkers.iter().enumerate() {
        add(&one.name, true, checker(one, index));
    }
    sections
}

fn summary(report: &Report) -> Section<'_> {
    let mut sheet = Sheet::new(
        "95 %: the interval of recall. waited: of the text without calls. p50, p90: characters of \
         text before the decision.",
        &[
            "checker",
            "recall",
            "95 %",
            "precision",
            "undecided",
            "waited",
            "p50",
            "p90",
        ],
    );
    for checker in &report.checkers {
        let cell = |name: &str| metric(&checker.metrics, name);
        let places = ["decision.chars.p50", "decision.chars.p90"];
        let [p50, p90] = places.map(|name| short(&checker.metrics, name));
        let interval = range(checker.intervals.get("recall"));
        let [recall, precision] = ["recall", "precision"].map(cell);
        let [undecided, waited] = ["undecided", "waited"].map(cell);
        let cells = [recall, interval, precision, undecided, waited, p50, p90];
        sheet.add(&checker.name, cells);
    }
    let mut blocks: Vec<Block<'_>> = streams(report).into_iter().map(Block::Sentence).collect();
    blocks.push(Block::Sheet(sheet));
    Section {
        title: "Checkers of tool calls".to_owned(),
        is_folded: false,
        blocks,
    }
}

/// Returns sentences about the streams, independent of the checkers.
fn streams(report: &Report) -> Vec<String> {
    let cell = |name: &str| metric(&report.streams, name);
    let number = |name: &str| report.streams.get(name).and_then(MetricValue::number);
    let is_one = |name: &str| number(name) == Some(1.0);
    let checkers = words::counted(report.checkers.len() as u64, "checker");
    let noun = if is_one("streams") {
        "stream"
    } else {
        "streams"
    };
    let verb = if is_one("calls") { "calls" } else { "call" };
    let all = cell("streams");
    let calling = cell("calls");
    let mut lines = vec![format!(
        "{checkers} on {all} {noun}, {calling} of them {verb} a tool."
    )];
    if number("calls.expected") != Some(0.0) {
        let [expected, read, exact] =
            ["expected", "read", "exact"].map(|c| cell(&["calls.", c].concat()));
        let [in_order, repaired, incomplete] =
            ["in_order", "repaired", "incomplete"].map(|c| cell(&["calls.", c].concat()));
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

/// Returns all requirements, missed ones first.
fn requirements(report: &Report) -> Vec<Block<'_>> {
    let all = report.verdicts.len();
    let claim = |verdict: &RequirementVerdict| {
        let word = if verdict.is_met { "met" } else { "missed" };
        (verdict.is_met, word, verdict.message())
    };
    let mut claims: Vec<_> = report.verdicts.iter().map(claim).collect();
    claims.sort_by_key(|(is_met, ..)| *is_met);
    let words = match claims.iter().filter(|(is_met, ..)| !is_met).count() {
        _ if all == 0 => return Vec::new(),
        0 => "All are met.".to_owned(),
        missed => format!("{missed} of {all} missed."),
    };
    vec![Block::Sentence(words), Block::Claims(claims)]
}

/// Returns the changes since a baseline.
fn baseline(report: &Report) -> Vec<Block<'_>> {
    let Some(baseline) = &report.baseline else {
        return Vec::new();
    };
    let is_good = !baseline.has_regressions();
    let word = if is_good { "good" } else { "worse" };
    let mut blocks = vec![Block::Claims(vec![(
        is_good,
        word,
        words::baseline(baseline),
    )])];
    if !baseline.unknown_checkers.is_empty() {
        let unknown = baseline.unknown_checkers.join(", ");
        blocks.push(Block::Sentence(format!(
            "The baseline does not have: {unknown}."
        )));
    }
    let mut sheet = Sheet::new(
        "Broken: right in the baseline and not right now. p: McNemar's exact test of broken against \
         fixed; below 0.05 the difference is hardly chance.",
        &[
            "checker", "broken", "fixed", "changed", "earlier", "later", "p",
        ],
    );
    for one in &baseline.checkers {
        let counts = [one.broken, one.fixed, one.changed, one.earlier, one.later];
        let p = match one.p {
            p if !p.is_finite() => "–".to_owned(),
            p if p < 0.001 => "< 0.001".to_owned(),
            p => format!("{p:.3}"),
        };
        sheet.add(&one.checker, counts.map(count).into_iter().chain([p]));
    }
    blocks.push(Block::Sheet(sheet));
    let checkers = baseline.checkers.iter();
    let changed = checkers.flat_map(|change| words::changed(report, change));
    blocks.extend(listed(changed.chain(words::unpaired(report, baseline))));
    blocks
}

/// Returns the streams on which checkers were wrong.
fn wrong(report: &Report) -> Vec<Block<'_>> {
    let checkers = report.checkers.iter();
    let wrong = checkers.flat_map(|checker| words::wrong(report, checker));
    let lists: Vec<_> = listed(wrong).collect();
    if lists.is_empty() {
        return vec![Block::Sentence("None.".to_owned())];
    }
    lists
}

/// Returns the kinds that have at least one stream.
fn listed<'r>(kinds: impl Iterator<Item = NamedStreams<'r>>) -> impl Iterator<Item = Block<'r>> {
    kinds.filter(|kind| kind.count > 0).map(Block::Streams)
}

/// Returns a table per dimension, with the streams, the calls, and the recall and false yes count
/// of each checker. It lists the groups in which checkers differ, or in which a single checker is
/// wrong; the largest differences come first.
fn groups<'r>(report: &'r Report, by: &[Dimension], rows: usize) -> Vec<Block<'r>> {
    let mut blocks = Vec::new();
    for by in by {
        let of = report.groups.iter().filter(|group| group.by == *by);
        let (mut groups, alike): (Vec<_>, Vec<_>) = of.partition(|group| is_shown(group));
        if groups.is_empty() {
            continue;
        }
        groups.sort_by_key(|group| Reverse(spread(group)));
        let mut sheet = Sheet::new("", &[by.name(), "streams", "calls"]);
        let checkers = report.checkers.iter().map(|checker| checker.name.clone());
        sheet.head.extend(checkers);
        for group in groups.iter().take(rows) {
            let counts = ["streams", "calls"].map(|name| metric(&group.streams, name));
            let recalls = group.checkers.iter().map(recall);
            sheet.add(&group.name, counts.into_iter().chain(recalls));
        }
        blocks.extend([Block::Heading(format!("By {by}")), Block::Sheet(sheet)]);
        for (groups, words) in [
            (alike.len(), "on which the checkers do not differ"),
            (groups.len().saturating_sub(rows), "in the report as JSON"),
        ] {
            if groups > 0 {
                blocks.push(Block::Sentence(format!("{groups} more by {by}, {words}.")));
            }
        }
    }
    if !blocks.is_empty() {
        let words = "Recall of each checker, and +N for N false yeses.".to_owned();
        blocks.insert(0, Block::Sentence(words));
    }
    blocks
}

fn recall(checker: &GroupChecker) -> String {
    let recall = metric(&checker.metrics, "recall");
    match checker.metrics.get("false_positives") {
        Some(MetricValue::Count(false_yes)) if false_yes > 0 => {
            format!("{recall} +{}", count(false_yes))
        }
        _ => recall,
    }
}

/// Whether checkers differ in a group, or a single checker is wrong.
fn is_shown(group: &GroupReport) -> bool {
    let cells =
        |checker: &GroupChecker, names: [&str; 3]| names.map(|metric| checker.metrics.get(metric));
    match &group.checkers[..] {
        [] => false,
        [single] => {
            let wrong = cells(single, ["false_negatives", "false_positives", "undecided"]);
            wrong
                .iter()
                .any(|count| *count != Some(MetricValue::Count(0)))
        }
        [first, rest @ ..] => {
            let answers = ["true_positives", "false_positives", "undecided"];
            rest.iter()
                .any(|checker| cells(checker, answers) != cells(first, answers))
        }
    }
}

/// Returns how far apart the checkers are in a group: the errors of the worst checker minus those
/// of the best, summed over both kinds of error.
fn spread(group: &GroupReport) -> u64 {
    let apart = |metric: &str| {
        let errors = group
            .checkers
            .iter()
            .map(|checker| match checker.metrics.get(metric) {
                Some(MetricValue::Count(count)) => count,
                _ => 0,
            });
        errors.clone().max().unwrap_or(0) - errors.min().unwrap_or(0)
    };
    // Every stream with a call and without a correct yes is a miss.
    apart("true_positives").saturating_add(apart("false_positives"))
}

/// Returns all results of one checker.
fn checker(checker: &CheckerReport, index: usize) -> Vec<Block<'_>> {
    let [f1, mcc, waited] = ["f1", "mcc", "waited"].map(|name| metric(&checker.metrics, name));
    let [stream, revised, split] =
        ["waited.stream", "revised", "split"].map(|name| metric(&checker.metrics, name));
    let scores = format!(
        "F1 {f1}, MCC {mcc}, waited {waited} ({stream} a stream), revised {revised}, split {split}"
    );
    let mut shares = Sheet::new("", &["", "share", "95 %"]);
    for share in ["recall", "precision", "accuracy"] {
        let interval = range(checker.intervals.get(share));
        shares.add(share, [metric(&checker.metrics, share), interval]);
    }
    vec![
        Block::Sentence(scores),
        Block::Confusion(&checker.confusion),
        Block::Sheet(shares),
        Block::Decisions(checker, index),
        Block::Sheet(places(checker)),
    ]
}

/// The quantiles that a report shows.
const QUANTILES: [&str; 4] = ["p50", "p90", "p99", "max"];

/// Returns the table of where a checker decided, and how late.
fn places(checker: &CheckerReport) -> Sheet {
    let mut sheet = Sheet::new(
        "Decided after: from the beginning of the stream. Late: correct yes answers, from the first event of a call.",
        &["", "p50", "p90", "p99", "max"],
    );
    for (kind, words) in [("decision", "decided after"), ("late", "late by")] {
        for (unit, name) in [
            ("events", "events"),
            ("chars", "characters"),
            ("bytes", "bytes"),
            ("ms", "time"),
        ] {
            let columns = QUANTILES.map(|quantile| format!("{kind}.{unit}.{quantile}"));
            // A yes at the first event of a call has zeros in every unit, so one row is enough.
            match checker.number(&columns[3]) {
                None => continue,
                Some(0.0) if kind == "late" && unit != "events" => continue,
                Some(_) => {}
            }
            let cells = columns.map(|column| metric(&checker.metrics, &column));
            sheet.add(&format!("{words}, {name}"), cells);
        }
    }
    sheet
}

/// Formats a count in at most six characters.
fn short(metrics: &Metrics, name: &str) -> String {
    match metrics.get(name) {
        Some(MetricValue::Count(number)) if number >= 10_000_000 => {
            format!("{}M", count(number / 1_000_000))
        }
        Some(MetricValue::Count(number)) if number >= 100_000 => {
            format!("{}k", count(number / 1_000))
        }
        _ => metric(metrics, name),
    }
}

/// Formats an interval of fractions: `85.2–90.1 %`.
fn range(interval: Option<&Interval>) -> String {
    let Some(interval) = interval else {
        return "–".to_owned();
    };
    let [low, high] = [interval.low, interval.high].map(|end| percent(Some(end)));
    let low = low.trim_end_matches(['%', '\u{a0}']);
    format!("{low}–{high}")
}

/// Returns the confusion matrix as a table.
pub(super) fn confusion(confusion: &Confusion) -> Sheet {
    let mut sheet = Sheet::new("", &["", "yes", "no", "undecided"]);
    for (name, counts) in confusion.rows() {
        sheet.add(name, counts.map(count));
    }
    sheet
}
