//! The groups of streams in which checkers differ.

use super::summary::{real, whole};
use super::words::{column, name};
use crate::forms::number::{count, percent};
use crate::group::Dimension;
use crate::metrics::Metrics;
use crate::report::{GroupReport, Report};
use maud::{Markup, html};
use std::cmp::Reverse;

/// Rows of one dimension.
const ROWS: usize = 25;

/// One table for each dimension that has more than one group.
pub fn groups(report: &Report) -> Markup {
    let tables: Vec<Markup> = Dimension::ALL
        .into_iter()
        .filter_map(|by| table(report, by))
        .collect();
    html! {
        @if !tables.is_empty() {
            section {
                h2 { "Where checkers differ" }
                p.faint { "Recall of each checker, with the streams that it missed and its false yes answers. Groups in which checkers differ most come first." }
                @for table in &tables { (table) }
            }
        }
    }
}

fn table(report: &Report, by: Dimension) -> Option<Markup> {
    let mut groups: Vec<&GroupReport> = report.groups_by(by).collect();
    if groups.len() < 2 || report.checkers.is_empty() {
        return None;
    }
    let all = groups.len();
    groups.retain(|group| spread(group) > 0);
    groups.sort_by_key(|group| (Reverse(spread(group)), group.name.clone()));
    let alike = all - groups.len();
    let left_out = groups.len().saturating_sub(ROWS);
    groups.truncate(ROWS);
    let more = html! {
        @if alike > 0 { p.faint { "In " (count(alike as u64)) @if alike == 1 { " group" } @else { " groups" } " by " (by.name()) " all checkers make equally many errors." } }
        @if left_out > 0 { p.faint { (count(left_out as u64)) " more groups by " (by.name()) " are in the report as JSON." } }
    };
    Some(html! {
        h3 { "By " (by.name()) }
        @if !groups.is_empty() {
            div.wide {
                table.all {
                    thead {
                        tr {
                            th scope="col" { (by.name()) }
                            th.number scope="col" { "streams" }
                            th.number scope="col" { "with calls" }
                            @for checker in &report.checkers { th.number.checker-name scope="col" { (column(&checker.name)) } }
                        }
                    }
                    tbody { @for group in groups { (row(group)) } }
                }
            }
        }
        (more)
    })
}

fn row(group: &GroupReport) -> Markup {
    let number = |metric| whole(&group.streams, metric).unwrap_or(0);
    html! {
        tr {
            th.name scope="row" { (name(&group.name)) }
            td.number { (count(number("streams"))) }
            td.number { (count(number("calls"))) }
            @for checker in &group.checkers {
                td.number {
                    (percent(real(&checker.metrics, "recall")))
                    @let (missed, false_yes) = errors(&checker.metrics);
                    @if missed > 0 { span.range.wrong { (count(missed)) " missed" } }
                    @if false_yes > 0 { span.range.wrong { (count(false_yes)) " false yes" } }
                }
            }
        }
    }
}

/// The streams with a call that were missed, and those without one to which the answer was yes.
fn errors(metrics: &Metrics) -> (u64, u64) {
    let number = |metric| whole(metrics, metric).unwrap_or(0);
    (
        number("false_negatives").saturating_add(number("undecided.calls")),
        number("false_positives"),
    )
}

/// How far the checkers are apart in a group: the errors of the worst beyond those of the best, of
/// each kind.
fn spread(group: &GroupReport) -> u64 {
    let errors: Vec<(u64, u64)> = group
        .checkers
        .iter()
        .map(|checker| errors(&checker.metrics))
        .collect();
    let apart = |of: fn(&(u64, u64)) -> u64| {
        errors.iter().map(of).max().unwrap_or(0) - errors.iter().map(of).min().unwrap_or(0)
    };
    apart(|errors| errors.0).saturating_add(apart(|errors| errors.1))
}
