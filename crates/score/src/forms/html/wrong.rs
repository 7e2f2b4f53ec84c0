//! The streams on which a checker was wrong, and the command that shows each.

use super::words::{command, name, reason, shown};
use crate::command_line::explain;
use crate::forms::number::count;
use crate::measured::Answer;
use crate::report::{CheckerReport, Report};
use crate::wrong::WrongStream;
use maud::{Markup, html};

/// One table for each checker that was wrong; open if it is the only one.
pub fn wrong(report: &Report) -> Markup {
    let checkers: Vec<&CheckerReport> = report
        .checkers
        .iter()
        .filter(|checker| !checker.missed.is_empty() || !checker.false_yes.is_empty())
        .collect();
    html! {
        section {
            h2 { "Wrong answers" }
            @if checkers.is_empty() { p { "None." } }
            @for checker in &checkers {
                details open[checkers.len() == 1] {
                    summary { (name(&checker.name)) ": " (counts(checker)) }
                    div.wide { (table(checker)) }
                }
            }
        }
    }
}

fn counts(checker: &CheckerReport) -> String {
    let confusion = &checker.confusion;
    let missed = confusion
        .false_negatives
        .saturating_add(confusion.undecided_calls);
    let more = shown(
        checker.missed.len() + checker.false_yes.len(),
        missed.saturating_add(confusion.false_positives),
    );
    format!(
        "{} missed, {} false yes{more}",
        count(missed),
        count(confusion.false_positives)
    )
}

fn table(checker: &CheckerReport) -> Markup {
    let rows = checker.false_yes.iter().map(|stream| (stream, "false yes"));
    let rows = rows.chain(checker.missed.iter().map(|stream| {
        (
            stream,
            if stream.answer == Answer::Undecided {
                "missed: no answer"
            } else {
                "missed: no"
            },
        )
    }));
    html! {
        table.all {
            thead {
                tr { @for column in ["stream", "answer", "reason, and the command that shows the stream"] { th scope="col" { (column) } } }
            }
            tbody {
                @for (stream, answer) in rows {
                    tr {
                        th.stream scope="row" { (name(&stream.id)) span.range { (name(&stream.corpus)) } }
                        td.name { (answer) @if let Some(place) = place(stream) { span.range { (place) } } }
                        td {
                            @if !stream.reason.is_empty() { (reason(&stream.reason)) br; }
                            (command(&explain(&stream.corpus, &stream.id, &checker.name)))
                        }
                    }
                }
            }
        }
    }
}

/// Where the answer was given.
fn place(stream: &WrongStream) -> Option<String> {
    Some(format!(
        "event {}, after {} characters",
        count(stream.events?),
        count(stream.chars?)
    ))
}
