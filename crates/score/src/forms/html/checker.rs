//! All that is known of one checker.

use super::plots::decisions;
use super::summary::{interval, real, whole};
use super::words::name;
use crate::forms::number::{count, maybe_count, milliseconds, percent};
use crate::metrics::Metrics;
use crate::report::{CheckerReport, Confusion};
use maud::{Markup, html};

/// The section of a checker; `doublings` is the number of bars of its histogram of characters.
pub fn checker(checker: &CheckerReport, index: usize, doublings: usize) -> Markup {
    html! {
        section {
            h2 { (name(&checker.name)) }
            div.checker {
                div { (matrix(&checker.confusion)) }
                div { (facts(checker)) }
                (decisions(checker, index, doublings))
            }
            div.wide { (places(&checker.metrics)) }
        }
    }
}

/// The answers against the labels. The share of a row is also its shade, so that a matrix is seen
/// at a glance.
fn matrix(confusion: &Confusion) -> Markup {
    let rows = [
        (
            "calls a tool",
            [
                confusion.true_positives,
                confusion.false_negatives,
                confusion.undecided_calls,
            ],
            0,
        ),
        (
            "calls none",
            [
                confusion.false_positives,
                confusion.true_negatives,
                confusion.undecided_others,
            ],
            1,
        ),
    ];
    html! {
        table.matrix {
            caption { "Answers (columns) to streams (rows), with the share of the row" }
            thead {
                tr {
                    td {}
                    @for answer in ["yes", "no", "no answer"] { th.number scope="col" { (answer) } }
                }
            }
            tbody {
                @for (label, cells, right) in rows {
                    tr {
                        th scope="row" { (label) }
                        @for (column, number) in cells.into_iter().enumerate() { (cell(number, cells.iter().fold(0, |sum, cell| cell.saturating_add(sum)), column == right)) }
                    }
                }
            }
        }
    }
}

fn cell(number: u64, row: u64, is_right: bool) -> Markup {
    let share = (row > 0).then(|| number as f64 / row as f64);
    let shade = share
        .map(|share| format!("--share:{:.0}", share * 30.0))
        .filter(|_| is_right);
    html! {
        td.right[is_right].wrong[!is_right && number > 0] style=[shade] {
            (count(number)) span.range { (percent(share)) }
        }
    }
}

fn facts(checker: &CheckerReport) -> Markup {
    let metrics = &checker.metrics;
    let shares = [
        ("accuracy", "accuracy"),
        ("F1", "f1"),
        ("waited, mean of each stream", "waited.stream"),
    ];
    html! {
        table {
            caption { "More numbers" }
            tbody {
                @for (label, metric) in shares {
                    tr { th scope="row" { (label) } td.number { (percent(real(metrics, metric))) (interval(checker.intervals.get(metric))) } }
                }
                @for (label, metric) in [("revised a decision", "revised"), ("depended on the split", "split")] {
                    tr { th scope="row" { (label) } td.number { (maybe_count(whole(metrics, metric))) } }
                }
            }
        }
    }
}

const QUANTILES: [&str; 4] = ["p50", "p90", "p99", "max"];

/// Where it decided, and how late.
fn places(metrics: &Metrics) -> Markup {
    html! {
        table.all.places {
            caption { "Where it decided, from the beginning of the stream, and how late its right yes answers were, from the first event of a call" }
            thead {
                tr {
                    td {}
                    th scope="colgroup" colspan="4" { "decided after" }
                    th scope="colgroup" colspan="4" { "late by" }
                }
                tr {
                    td {}
                    @for quantile in QUANTILES.iter().chain(&QUANTILES) { th.number scope="col" { (quantile) } }
                }
            }
            tbody {
                @for (unit, label) in [("events", "events"), ("chars", "characters"), ("bytes", "bytes"), ("ms", "recorded time")] {
                    tr {
                        th scope="row" { (label) }
                        @for distance in ["decision", "late"] {
                            @for quantile in QUANTILES { td.number { (distance_text(metrics, &format!("{distance}.{unit}.{quantile}"), unit)) } }
                        }
                    }
                }
            }
        }
    }
}

fn distance_text(metrics: &Metrics, metric: &str, unit: &str) -> String {
    if unit == "ms" {
        milliseconds(real(metrics, metric))
    } else {
        maybe_count(whole(metrics, metric))
    }
}
