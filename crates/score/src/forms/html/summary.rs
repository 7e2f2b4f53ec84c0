//! The head of the page: what was evaluated, and one row for each checker.

use super::words::name;
use crate::forms::number::{coefficient, count, maybe_count, milliseconds, percent};
use crate::metrics::{Metrics, Value};
use crate::report::{CheckerReport, Report};
use crate::statistics::Interval;
use maud::{Markup, html};

/// The title, the streams, and the table of checkers.
pub fn summary(report: &Report) -> Markup {
    html! {
        h1 { "Checkers of tool calls" }
        p { (streams(report)) }
        @if let Some(calls) = calls(&report.streams) { p { (calls) } }
        @if let Some(saved) = saved(&report.streams) { p { (saved) } }
        @if report.unreadable > 0 || report.unlabelled > 0 {
            p.missed {
                "Left out: " (count(report.unreadable)) " recordings that could not be read, "
                (count(report.unlabelled)) " streams whose label has no answer."
            }
        }
        div.wide { (table(report)) }
    }
}

fn streams(report: &Report) -> String {
    let [all, calling] =
        ["streams", "calls"].map(|metric| whole(&report.streams, metric).unwrap_or(0));
    let checkers = match report.checkers.len() {
        1 => "One checker".to_owned(),
        many => format!("{many} checkers"),
    };
    format!(
        "{checkers} on {} streams, of which {} call a tool.",
        count(all),
        count(calling)
    )
}

/// How the calls were read, which does not depend on the checkers.
fn calls(metrics: &Metrics) -> Option<String> {
    let expected = whole(metrics, "calls.expected").filter(|expected| *expected > 0)?;
    let more = [
        ("calls.repaired", "repaired"),
        ("calls.incomplete", "incomplete"),
    ]
    .into_iter()
    .filter_map(|(metric, word)| Some((whole(metrics, metric).filter(|count| *count > 0)?, word)))
    .map(|(number, word)| format!(", {} {word}", count(number)));
    Some(format!(
        "Calls read with the names and arguments of their labels: {} of {}; in order in {} of the streams with calls{}.",
        percent(real(metrics, "calls.exact")),
        count(expected),
        percent(real(metrics, "calls.in_order")),
        more.collect::<String>(),
    ))
}

/// What a tool saves that starts as soon as its call is complete; `None` without recorded times.
fn saved(metrics: &Metrics) -> Option<String> {
    let max = real(metrics, "saved.ms.max")?;
    let [p50, p90] =
        ["saved.ms.p50", "saved.ms.p90"].map(|metric| milliseconds(real(metrics, metric)));
    Some(format!(
        "A tool that starts when its call is complete, and not when the stream ends, saves {p50} (p50), {p90} (p90), {} at most.",
        milliseconds(Some(max))
    ))
}

fn table(report: &Report) -> Markup {
    html! {
        table.all {
            caption { "All checkers. Below a share: its interval of 95 %." }
            thead {
                tr {
                    th scope="col" { "checker" }
                    @for column in ["recall", "missed", "precision", "false yes", "undecided", "MCC", "waited"] {
                        th.number scope="col" { (column) }
                    }
                    th.number scope="col" { "decided after, chars" span.range { "p50 / p90" } }
                }
            }
            tbody {
                @for checker in &report.checkers { (row(checker)) }
            }
        }
        @if report.checkers.is_empty() { p.faint { "No checkers." } }
    }
}

fn row(checker: &CheckerReport) -> Markup {
    let confusion = &checker.confusion;
    let missed = confusion
        .false_negatives
        .saturating_add(confusion.undecided_calls);
    let undecided = confusion
        .undecided_calls
        .saturating_add(confusion.undecided_others);
    let metrics = &checker.metrics;
    html! {
        tr {
            th.name scope="row" { (name(&checker.name)) }
            td.number { (percent(real(metrics, "recall"))) (interval(checker.intervals.get("recall"))) }
            (errors(missed))
            td.number { (percent(real(metrics, "precision"))) (interval(checker.intervals.get("precision"))) }
            (errors(confusion.false_positives))
            td.number { (count(undecided)) }
            td.number { (coefficient(real(metrics, "mcc"))) }
            td.number { (percent(real(metrics, "waited"))) }
            td.number {
                (maybe_count(whole(metrics, "decision.chars.p50"))) " / " (maybe_count(whole(metrics, "decision.chars.p90")))
            }
        }
    }
}

/// A number of errors, which is bold unless it is 0.
pub fn errors(number: u64) -> Markup {
    html! { td.number.wrong[number > 0] { (count(number)) } }
}

/// The interval of a share below it.
pub fn interval(interval: Option<&Interval>) -> Markup {
    let ends = interval.filter(|interval| interval.low.is_finite() && interval.high.is_finite());
    html! {
        @if let Some(Interval { low, high, .. }) = ends {
            span.range { (format!("{:.1}–{:.1}", low * 100.0, high * 100.0)) }
        }
    }
}

/// A metric that is a count.
pub fn whole(metrics: &Metrics, name: &str) -> Option<u64> {
    match metrics.get(name)? {
        Value::Count(count) => Some(count),
        Value::Real(_) | Value::Undefined => None,
    }
}

/// A metric that is a share or a time. JSON does not tell `1` from `1.0`, so a count is one, too.
pub fn real(metrics: &Metrics, name: &str) -> Option<f64> {
    metrics
        .get(name)?
        .number()
        .filter(|number| number.is_finite())
}
