//! What changed since a baseline.

use super::summary::errors;
use super::words::{command, name, plain_name, reason, shown};
use crate::baseline::{AnswerChange, BaselineReport, CheckerChange, StreamName};
use crate::command_line::explain;
use crate::forms::number::count;
use crate::measured::Answer;
use crate::report::Report;
use maud::{Markup, html};

/// The streams that broke and that were fixed, by checker; empty without a baseline.
pub fn baseline(report: &Report) -> Markup {
    let Some(baseline) = &report.baseline else {
        return html! {};
    };
    html! {
        section {
            h2 { "Since the baseline" }
            p { (compared(baseline)) }
            @if !baseline.unknown_checkers.is_empty() {
                p.faint { "The baseline does not have: " bdi { (names(&baseline.unknown_checkers)) } "." }
            }
            @if !baseline.checkers.is_empty() { div.wide { (table(&baseline.checkers)) } }
            @for change in &baseline.checkers {
                (changes(change, &change.broken_streams, change.broken, "broken"))
                (changes(change, &change.fixed_streams, change.fixed, "fixed"))
            }
            (streams(&baseline.new_streams, baseline.new, "new"))
            (streams(&baseline.vanished_streams, baseline.vanished, "vanished"))
        }
    }
}

fn compared(baseline: &BaselineReport) -> String {
    let relabelled = match baseline.relabelled {
        0 => String::new(),
        number => {
            format!(
                " Of those in both, {} have another label now, by which both answers are judged.",
                count(number)
            )
        }
    };
    format!(
        "Streams in both: {}; new: {}; vanished: {}.{relabelled}",
        count(baseline.compared),
        count(baseline.new),
        count(baseline.vanished)
    )
}

fn names(names: &[String]) -> String {
    names
        .iter()
        .map(|name| plain_name(name))
        .collect::<Vec<_>>()
        .join(", ")
}

fn table(changes: &[CheckerChange]) -> Markup {
    html! {
        table.all {
            caption { "Broken: right in the baseline and not right now. p: McNemar's exact test of broken against fixed; below 0.05 the difference is hardly chance." }
            thead {
                tr {
                    th scope="col" { "checker" }
                    @for column in ["broken", "fixed", "changed", "earlier", "later", "p"] { th.number scope="col" { (column) } }
                }
            }
            tbody {
                @for change in changes {
                    tr {
                        th.name scope="row" { (name(&change.checker)) }
                        (errors(change.broken))
                        @for number in [change.fixed, change.changed, change.earlier, change.later] { td.number { (count(number)) } }
                        td.number { (probability(change.p)) }
                    }
                }
            }
        }
    }
}

fn probability(p: f64) -> String {
    match p {
        p if !p.is_finite() => "–".to_owned(),
        p if p < 0.001 => "< 0.001".to_owned(),
        p => format!("{p:.3}"),
    }
}

/// The first streams on which a checker changed.
fn changes(change: &CheckerChange, streams: &[AnswerChange], all: u64, word: &str) -> Markup {
    html! {
        @if !streams.is_empty() {
            details {
                summary { (name(&change.checker)) ": " (count(all)) " " (word) (shown(streams.len(), all)) }
                div.wide {
                    table.all {
                        thead {
                            tr { @for column in ["stream", "answer", "reason, and the command that shows the stream"] { th scope="col" { (column) } } }
                        }
                        tbody {
                            @for stream in streams {
                                tr {
                                    th.stream scope="row" { (name(&stream.id)) span.range { (name(&stream.corpus)) } }
                                    td.name {
                                        "was " (answer(stream.was)) ", is " (answer(stream.is))
                                        span.range { @if stream.has_tool_call { "calls a tool" } @else { "calls none" } }
                                    }
                                    td {
                                        @if !stream.reason.is_empty() { (reason(&stream.reason)) br; }
                                        (command(&explain(&stream.corpus, &stream.id, &change.checker)))
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The first streams that only one of both has.
fn streams(streams: &[StreamName], all: u64, word: &str) -> Markup {
    html! {
        @if !streams.is_empty() {
            details {
                summary { (count(all)) " " (word) (shown(streams.len(), all)) }
                ul { @for stream in streams { li { (name(&stream.id)) " " span.faint { (name(&stream.corpus)) } } } }
            }
        }
    }
}

fn answer(answer: Answer) -> &'static str {
    match answer {
        Answer::Yes => "yes",
        Answer::No => "no",
        Answer::Undecided => "no answer",
    }
}
