//! The requirements, and which of them are missed.

use super::words::{name, plain_text};
use crate::report::Report;
use crate::verdict::Verdict;
use maud::{Markup, html};

/// A table of all requirements, missed ones first; empty without requirements.
pub fn requirements(report: &Report) -> Markup {
    let mut verdicts: Vec<&Verdict> = report.verdicts.iter().collect();
    verdicts.sort_by_key(|verdict| verdict.is_met);
    let missed = verdicts.iter().filter(|verdict| !verdict.is_met).count();
    html! {
        @if !verdicts.is_empty() {
            section {
                h2 { "Requirements" }
                p.missed[missed > 0].met[missed == 0] {
                    @if missed == 0 { "All are met." } @else { (missed) " of " (verdicts.len()) " missed." }
                }
                div.wide {
                    table.all {
                        thead {
                            tr { @for column in ["result", "checker", "metric", "found", "required"] { th scope="col" { (column) } } }
                        }
                        tbody { @for verdict in verdicts { (row(verdict)) } }
                    }
                }
            }
        }
    }
}

fn row(verdict: &Verdict) -> Markup {
    html! {
        tr {
            td.met[verdict.is_met].missed[!verdict.is_met] { @if verdict.is_met { "met" } @else { "missed" } }
            td.name { @match &verdict.checker { Some(checker) => { (name(checker)) } None => { span.faint { "any" } } } }
            td.name { bdi { (plain_text(&verdict.metric)) } }
            td.name {
                (plain_text(&verdict.shown()))
                @if let Some(reason) = &verdict.reason { span.range { (plain_text(reason)) } }
            }
            td.name { (plain_text(&verdict.required)) }
        }
    }
}
