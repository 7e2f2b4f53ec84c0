//! Formats a report as one HTML page with plots.
//!
//! The page has no scripts and loads no resources, and a policy at its start makes the browser
//! enforce both. Names and reasons come from files, so they are always escaped by maud, with hidden
//! characters written out, and the number of rows is bounded.

use super::document::{Block, Sheet, sections};
use super::plot;
use super::words::{self, NAME, NamedStreams, count, name, percent, plain_name};
use crate::group::Dimension;
use crate::report::{Confusion, Report};
use crate::visible;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The page's content security policy allows only its own style, so that even a name that escaped
/// the escaping could load nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// The stylesheet: readable on paper without colours, in dark mode, and on a narrow screen.
const STYLE: &str = include_str!("page.css");

/// Maximum number of groups per dimension.
const GROUPS: usize = 25;

/// Returns the page for a report.
#[must_use]
pub fn html(report: &Report) -> String {
    let doublings = plot::doublings(report);
    let mut sections = sections(report, &Dimension::ALL, GROUPS);
    let summary = sections.remove(0);
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
                    h1 { (summary.title) }
                    @for one in &summary.blocks { (block(report, one, doublings)) }
                    @for section in &sections {
                        @let is_checker = section.blocks.iter().any(|block| matches!(block, Block::Confusion(_)));
                        section.checker[is_checker] {
                            h2 { bdi { (plain_name(&section.title)) } }
                            @for one in &section.blocks { (block(report, one, doublings)) }
                        }
                    }
                    (glossary())
                }
            }
        }
    };
    page.into_string()
}

/// Draws an element of a section; `doublings` is the number of bars in the histograms of
/// characters.
fn block(report: &Report, block: &Block<'_>, doublings: usize) -> Markup {
    html! {
        @match block {
            Block::Sentence(text) => p { bdi { (visible(text, 1_000)) } }
            Block::Heading(text) => h3 { (text) }
            Block::Sheet(sheet) => (table(sheet, "numbers"))
            Block::Claims(claims) => ul.claims {
                @for (is_good, _, claim) in claims {
                    li.missed[!is_good] { (if *is_good { "✓ " } else { "✗ " }) bdi { (visible(claim, 400)) } }
                }
            }
            Block::Streams(streams) => (named(streams, report.checkers.len() == 1))
            Block::Confusion(counts) => (matrix(counts))
            Block::Curves => (curves(report))
            Block::Decisions(checker, index) => {
                @for plot in plot::decisions(checker, *index, doublings) { figure { (plot) } }
            }
        }
    }
}

/// Draws a table. `class` styles the columns after the first.
fn table(sheet: &Sheet, class: &str) -> Markup {
    html! {
        div.wide {
            table.(class) {
                @if !sheet.caption.is_empty() { caption { (sheet.caption) } }
                thead { tr { @for head in &sheet.head { th scope="col" { (broken(&visible(head, 26))) } } } }
                tbody {
                    @for row in &sheet.rows {
                        tr {
                            th scope="row" { bdi { (name(&row[0], NAME)) } }
                            @for cell in &row[1..] { td { bdi { (cell) } } }
                        }
                    }
                }
            }
        }
    }
}

/// Draws a name that may wrap after punctuation, for the head of a narrow column.
fn broken(name: &str) -> Markup {
    html! { bdi { @for part in name.split_inclusive([':', '/', '_', '.']) { (part) wbr; } } }
}

/// The curve of recall against earliness, and a part of it at full height if much lies close
/// together at its top.
fn curves(report: &Report) -> Markup {
    let points = plot::points(report);
    html! {
            @if points.is_empty() {
                p { "No plot: recall and wait need streams with calls and streams without." }
            } @else {
                figure.large {
                    (plot::curves(&points, "curve", "Recall against earliness of all checkers", None))
                    figcaption {
                        "Further up: more calls are found. Further left: less text waits. "
                        strong { "Discs" } " with a line through them: no other checker finds \
                            as many calls with as short a wait. "
                        "Rings: another one does. Whiskers: intervals of 95 %."
                    }
                }
                @if let Some(top) = plot::top(&points) {
                    figure.large {
                        (plot::curves(&points, "curve-top", "The checkers with the highest recall", Some(top)))
                        figcaption { (format!("The same, from a recall of {:.0}\u{a0}% upwards.", top * 100.0)) }
                    }
                }
                (legend(report))
            }
    }
}

/// Draws the legend with the number of each checker in the plots.
fn legend(report: &Report) -> Markup {
    let mut sheet = Sheet::new("", &["", "checker", "recall", "waited"]);
    for (number, checker) in (1..).zip(&report.checkers) {
        let metric = |name: &str| words::metric(&checker.metrics, name);
        let cells = [
            plain_name(&checker.name),
            metric("recall"),
            metric("waited"),
        ];
        sheet.add(&format!("{number}"), cells);
    }
    table(&sheet, "legend")
}

/// Streams of one kind, each with what the checker answered and the command that shows more; open
/// in the report of a single checker.
fn named(streams: &NamedStreams<'_>, is_open: bool) -> Markup {
    html! {
        details open[is_open] {
            summary { bdi { (streams.title(NAME)) } }
            div.wide {
                table.texts {
                    thead { tr { @for head in ["stream", "answer", "reason, and the command that shows the stream"] { th scope="col" { (head) } } } }
                    tbody {
                        @for stream in &streams.streams {
                            tr {
                                th scope="row" { bdi { (plain_name(stream.id)) } span.range { bdi { (plain_name(stream.corpus)) } } }
                                td { (streams.kind) span.range { (stream.answer) } }
                                // A command is shown whole, because a part of it could run as
                                // another command.
                                td { bdi { (stream.reason) } @if let Some(command) = streams.command(stream) { br; code { (command) } } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The answers against the labels. The share of a row is also its shade, so that a matrix is seen
/// at a glance.
fn matrix(confusion: &Confusion) -> Markup {
    html! {
        div.wide { table.matrix {
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
        } }
    }
}

/// Explanations of the terms on the page.
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
        "With 95 % confidence the true share lies in this interval. Streams of one source \
         resemble each other, so sources are counted and not streams (Wilson 1927, with an \
         effective number of streams).",
    ),
    (
        "waited",
        "The share of the text of streams without calls that was read before the checker \
         answered no. A checker that waits less lets the text through earlier.",
    ),
    (
        "decided after",
        "The characters of text before the first answer: half of the decisions (p50), or nine \
         of ten (p90), needed at most as many.",
    ),
    (
        "late",
        "Of correct yes answers: the distance from the first event of a call to the decision. 0 \
         is the earliest that is possible.",
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
