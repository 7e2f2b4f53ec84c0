//! A report as one page of HTML, with its plots.
//!
//! The page has no scripts and loads nothing, and its first line forbids both to the browser. Names
//! and reasons come from files, so all of them are text (maud escapes them) whose hidden characters
//! are written out, and the number of rows is bounded.

use super::plot;
use super::sheet::{self, Sheet};
use super::words::{self, NamedStreams, REASON, count, percent, plain_name};
use crate::baseline::{BaselineReport, CheckerChange, StreamName};
use crate::command_line::explain;
use crate::group::Dimension;
use crate::metrics::Value;
use crate::report::{CheckerReport, Confusion, GroupReport, Report};
use crate::verdict::Verdict;
use crate::visible;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use std::cmp::Reverse;

/// What the page may do: apply its own style, and nothing else, so that even a name that escaped
/// the escaping could load nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// How the page looks: readable on paper without colours, in the dark, and on a narrow screen.
const STYLE: &str = include_str!("page.css");

/// The page of a report.
#[must_use]
pub fn html(report: &Report) -> String {
    let doublings = plot::doublings(report);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width,initial-scale=1";
                meta name="referrer" content="no-referrer";
                title { "tc-eval: checkers of tool calls" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    (summary(report))
                    (requirements(&report.verdicts))
                    (curves(report))
                    @if let Some(baseline) = &report.baseline { (since(baseline)) }
                    (wrong(report))
                    (groups(report))
                    @for (index, one) in report.checkers.iter().enumerate() {
                        (checker(one, index, doublings))
                    }
                    (glossary())
                }
            }
        }
    };
    page.into_string()
}

/// A table whose first column is a name. `class` says how the other columns look.
fn table(sheet: &Sheet, class: &str, caption: &str) -> Markup {
    html! {
        div.wide {
            table.(class) {
                @if !caption.is_empty() { caption { (caption) } }
                thead { tr { @for head in &sheet.head { th scope="col" { (broken(head)) } } } }
                tbody {
                    @for row in &sheet.rows {
                        tr {
                            @for (column, cell) in row.iter().enumerate() {
                                @if column == 0 { th scope="row" { bdi { (cell) } } } @else { td { bdi { (cell) } } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A name that may be broken after punctuation, for the head of a narrow column.
fn broken(name: &str) -> Markup {
    html! { bdi { @for part in name.split_inclusive([':', '/', '_', '.']) { (part) wbr; } } }
}

fn summary(report: &Report) -> Markup {
    let [all, calling] = ["streams", "calls"].map(|metric| words::metric(&report.streams, metric));
    let checkers = match report.checkers.len() {
        1 => "One checker".to_owned(),
        many => format!("{many} checkers"),
    };
    let caption = "95 %: the interval of recall. waited: of the text without calls. \
        p50, p90: characters of text before the decision.";
    html! {
        h1 { "Checkers of tool calls" }
        p { (checkers) " on " (all) " streams, of which " (calling) " call a tool." }
        @for line in sheet::streams(report).iter().skip(1) { p { (line) } }
        (table(&sheet::summary(report, 80), "numbers", caption))
        @if report.checkers.is_empty() { p.faint { "No checkers." } }
    }
}

/// A table of all requirements, missed ones first; empty without requirements.
fn requirements(verdicts: &[Verdict]) -> Markup {
    let mut verdicts: Vec<&Verdict> = verdicts.iter().collect();
    verdicts.sort_by_key(|verdict| verdict.is_met);
    let missed = verdicts.iter().filter(|verdict| !verdict.is_met).count();
    let mut sheet = Sheet::new(&["result", "checker", "metric", "found", "required"]);
    for verdict in &verdicts {
        let result = if verdict.is_met {
            "✓ met"
        } else {
            "✗ missed"
        };
        let checker = verdict
            .checker
            .as_deref()
            .map_or("any".to_owned(), plain_name);
        let reason = verdict.reason.iter().map(|reason| format!(" ({reason})"));
        let found = verdict.shown() + &reason.collect::<String>();
        let [metric, found, required] =
            [&verdict.metric, &found, &verdict.required].map(|text| visible(text, REASON));
        sheet
            .rows
            .push(vec![result.to_owned(), checker, metric, found, required]);
    }
    html! {
        @if !verdicts.is_empty() {
            section {
                h2 { "Requirements" }
                @if missed == 0 { p { "✓ All are met." } } @else { p.missed { "✗ " (missed) " of " (verdicts.len()) " missed." } }
                (table(&sheet, "texts", ""))
            }
        }
    }
}

/// The curve of recall against earliness, and a part of it at full height if much lies close
/// together at its top.
fn curves(report: &Report) -> Markup {
    let points = plot::points(report);
    html! {
        section {
            h2 { "Recall against earliness" }
            @if points.is_empty() {
                p { "No checker has both a recall and a wait: that takes streams with calls and streams without." }
            } @else {
                figure.large {
                    (plot::curve(&points, "curve", "Recall against earliness of all checkers", None))
                    figcaption {
                        "Further up: more calls are found. Further left: less text waits. "
                        strong { "Discs" } " with a line through them: no other checker finds as many calls with as short a wait. "
                        "Rings: another one does. Whiskers: intervals of 95 %."
                    }
                }
                @if let Some(top) = plot::top(&points) {
                    figure.large {
                        (plot::curve(&points, "curve-top", "The checkers with the highest recall", Some(top)))
                        figcaption { (format!("The same, from a recall of {:.0}\u{a0}% upwards.", top * 100.0)) }
                    }
                }
                (legend(report))
            }
        }
    }
}

/// The number of each checker in the plots.
fn legend(report: &Report) -> Markup {
    let mut sheet = Sheet::new(&["", "checker", "recall", "waited"]);
    for (number, checker) in (1..).zip(&report.checkers) {
        let [recall, waited] =
            ["recall", "waited"].map(|metric| words::metric(&checker.metrics, metric));
        sheet.rows.push(vec![
            format!("{number}"),
            plain_name(&checker.name),
            recall,
            waited,
        ]);
    }
    table(&sheet, "legend", "")
}

/// What changed since a baseline.
fn since(baseline: &BaselineReport) -> Markup {
    let unknown: Vec<String> = baseline
        .unknown_checkers
        .iter()
        .map(|name| plain_name(name))
        .collect();
    let mut sheet = Sheet::new(&[
        "checker", "broken", "fixed", "changed", "earlier", "later", "p",
    ]);
    for change in &baseline.checkers {
        let CheckerChange {
            broken,
            fixed,
            changed,
            earlier,
            later,
            ..
        } = change;
        let mut row = vec![plain_name(&change.checker)];
        row.extend([broken, fixed, changed, earlier, later].map(|number| count(*number)));
        row.push(match change.p {
            p if !p.is_finite() => "–".to_owned(),
            p if p < 0.001 => "< 0.001".to_owned(),
            p => format!("{p:.3}"),
        });
        sheet.rows.push(row);
    }
    let caption = "Broken: right in the baseline and not right now. p: McNemar's exact test of broken against \
        fixed; below 0.05 the difference is hardly chance.";
    html! {
        section {
            h2 { "Since the baseline" }
            p { (words::baseline(baseline)) }
            @if !unknown.is_empty() { p.faint { "The baseline does not have: " bdi { (unknown.join(", ")) } "." } }
            @if !sheet.rows.is_empty() { (table(&sheet, "numbers", caption)) }
            @for change in &baseline.checkers {
                @for streams in words::changed(change) { (named(&change.checker, &[streams], false)) }
            }
            (names(&baseline.new_streams, baseline.new, "new"))
            (names(&baseline.vanished_streams, baseline.vanished, "vanished"))
        }
    }
}

/// The first streams that only one of a baseline and a run has.
fn names(streams: &[StreamName], all: u64, word: &str) -> Markup {
    html! {
        @if !streams.is_empty() {
            details {
                summary { (count(all)) " " (word) (listed(streams.len(), all)) }
                ul { @for stream in streams { li { bdi { (plain_name(&stream.id)) } " " bdi.faint { (plain_name(&stream.corpus)) } } } }
            }
        }
    }
}

/// How many of a list are shown, if not all.
fn listed(listed: usize, all: u64) -> String {
    match listed as u64 {
        listed if all > listed => format!(" ({} of them are listed)", count(listed)),
        _ => String::new(),
    }
}

/// Streams of several kinds, each with what the checker answered and the command that shows more.
fn named(checker: &str, kinds: &[NamedStreams<'_>], open: bool) -> Markup {
    let counts: Vec<String> = kinds
        .iter()
        .map(|(kind, all, _)| format!("{} {kind}", count(*all)))
        .collect();
    let all = kinds
        .iter()
        .fold(0, |sum: u64, (_, all, _)| sum.saturating_add(*all));
    let shown = kinds.iter().map(|(_, _, streams)| streams.len()).sum();
    html! {
        @if shown > 0 {
            details open[open] {
                summary { bdi { (plain_name(checker)) } ": " (counts.join(", ")) (listed(shown, all)) }
                div.wide {
                    table.texts {
                        thead { tr { @for head in ["stream", "answer", "reason, and the command that shows the stream"] { th scope="col" { (head) } } } }
                        tbody {
                            @for (kind, stream) in kinds.iter().flat_map(|(kind, _, streams)| streams.iter().map(move |stream| (kind, stream))) {
                                tr {
                                    th scope="row" { bdi { (plain_name(stream.id)) } span.range { bdi { (plain_name(stream.corpus)) } } }
                                    td { (kind) span.range { (stream.answer) } }
                                    // A command is shown whole: a part of it would run as another one.
                                    td { bdi { (stream.reason) } br; code { (explain(stream.corpus, stream.id, checker)) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The streams on which checkers were wrong; open if a single checker was.
fn wrong(report: &Report) -> Markup {
    let is_wrong =
        |checker: &&CheckerReport| !checker.missed.is_empty() || !checker.false_yes.is_empty();
    let checkers: Vec<&CheckerReport> = report.checkers.iter().filter(is_wrong).collect();
    html! {
        section {
            h2 { "Wrong answers" }
            @if checkers.is_empty() { p { "None." } }
            @for checker in &checkers { (named(&checker.name, &words::wrong(checker), checkers.len() == 1)) }
        }
    }
}

/// Rows of one dimension of groups.
const ROWS: usize = 25;

/// One table for each dimension that has more than one group.
fn groups(report: &Report) -> Markup {
    let tables = Dimension::ALL.map(|by| {
        let (mut groups, alike) = sheet::differing(report, by);
        if groups.is_empty() || groups.len() + alike < 2 {
            return None;
        }
        groups.sort_by_key(|group| Reverse(spread(group)));
        let more = groups.len().saturating_sub(ROWS);
        groups.truncate(ROWS);
        let sheet = sheet::groups(report, by, &groups, 0..report.checkers.len(), [80, 26]);
        Some(html! {
            h3 { "By " (by.name()) }
            (table(&sheet, "numbers", ""))
            @if alike > 0 { p.faint { "Others by " (by.name()) ", in which the checkers do not differ: " (alike) "." } }
            @if more > 0 { p.faint { (more) " more groups by " (by.name()) " are in the report as JSON." } }
        })
    });
    html! {
        @if tables.iter().any(Option::is_some) {
            section {
                h2 { "Where checkers differ" }
                p.faint { "Recall of each checker, and +N for N false yeses. Groups in which checkers differ most come first." }
                @for table in tables.iter().flatten() { (table) }
            }
        }
    }
}

/// How far the checkers are apart in a group: the errors of the worst beyond those of the best, of
/// each kind.
fn spread(group: &GroupReport) -> u64 {
    let apart = |metric: &str| {
        let errors = group
            .checkers
            .iter()
            .map(|checker| match checker.metrics.get(metric) {
                Some(Value::Count(count)) => count,
                _ => 0,
            });
        errors.clone().max().unwrap_or(0) - errors.min().unwrap_or(0)
    };
    // Of the streams with calls, those without a right yes are missed.
    apart("true_positives").saturating_add(apart("false_positives"))
}

/// All that is known of one checker; `doublings` is the number of bars of its histogram of
/// characters.
fn checker(checker: &CheckerReport, index: usize, doublings: usize) -> Markup {
    html! {
        section {
            h2 { bdi { (plain_name(&checker.name)) } }
            div.checker {
                div { (matrix(&checker.confusion)) }
                div { (table(&sheet::shares(checker), "numbers", "Shares, with intervals of 95 %")) p { (sheet::scores(checker)) } }
                @for plot in plot::decisions(checker, index, doublings) { figure { (plot) } }
            }
            (table(&sheet::places(checker), "numbers", "Where it decided, from the beginning of the stream, and how late its right yes answers were, from the first event of a call"))
        }
    }
}

/// The answers against the labels. The share of a row is also its shade, so that a matrix is seen
/// at a glance.
fn matrix(confusion: &Confusion) -> Markup {
    html! {
        table.matrix {
            caption { "Answers (columns) to streams (rows), with the share of the row" }
            thead { tr { td {} @for answer in ["yes", "no", "undecided"] { th scope="col" { (answer) } } } }
            tbody {
                @for (right, (label, cells)) in confusion.rows().into_iter().enumerate() {
                    @let row = cells.iter().fold(0, |sum: u64, cell| sum.saturating_add(*cell));
                    tr {
                        th scope="row" { (label) }
                        @for (column, number) in cells.into_iter().enumerate() {
                            @let share = (row > 0).then(|| number as f64 / row as f64);
                            @let shade = share.filter(|_| column == right).map(|share| format!("--share:{:.0}", share * 30.0));
                            td.right[shade.is_some()] style=[shade] { (count(number)) span.range { (percent(share)) } }
                        }
                    }
                }
            }
        }
    }
}

/// What the words of the page mean.
const GLOSSARY: [(&str, &str); 8] = [
    (
        "recall",
        "Of the streams that call a tool, the share to which the checker answered yes. No answer counts as missed.",
    ),
    (
        "precision",
        "Of the streams to which it answered yes, the share that call a tool.",
    ),
    (
        "95 %",
        "With 95 % confidence the true share lies in this interval. Streams of one source resemble each other, so sources are counted and not streams (Wilson 1927, with an effective number of streams).",
    ),
    (
        "waited",
        "Of all the text of streams without calls, the share that had gone by when the checker answered no. A checker that waits less lets the text through earlier.",
    ),
    (
        "decided after",
        "The characters of text before the first answer: half of the decisions (p50), or nine of ten (p90), needed at most as many.",
    ),
    (
        "late",
        "Of right yes answers: the distance from the first event of a call to the decision. 0 is the earliest that is possible.",
    ),
    (
        "undecided",
        "Streams without an answer: the stream failed first, or the checker did.",
    ),
    (
        "MCC",
        "Matthews correlation coefficient of answers and labels: 1 is always right, 0 is no better than guessing.",
    ),
];

fn glossary() -> Markup {
    html! {
        section {
            h2 { "How to read this page" }
            dl { @for (word, meaning) in GLOSSARY { dt { (word) } dd { (meaning) } } }
        }
    }
}
