//! The plots of a report.

use super::number::{count, percent};
use super::summary::real;
use super::words::{label, plain_name};
use crate::histogram::Ranges;
use crate::plot::{Bar, Curve, Description, Histogram, Point};
use crate::report::{CheckerReport, Report};
use maud::{Markup, html};

/// The curve of recall against earliness, and a part of it at full height if much lies close together at its top.
pub fn curves(report: &Report) -> Markup {
    let points: Vec<Point> = report.checkers.iter().filter_map(point).collect();
    let left_out = report.checkers.iter().filter(|checker| point(checker).is_none());
    let left_out: Vec<String> = left_out.map(|checker| plain_name(&checker.name)).collect();
    let high = points.iter().filter(|point| point.recall >= TOP).count();
    let is_crowded = high > 1 && points.iter().any(|point| point.recall < SPREAD);
    html! {
        section {
            h2 { "Recall against earliness" }
            @if points.is_empty() {
                p { "No checker has both a recall and a wait: that takes streams with calls and streams without." }
            } @else {
                figure.large {
                    (curve(&points, "curve", "Recall against earliness of all checkers", None))
                    figcaption {
                        "Further up: more calls are found. Further left: less text waits. "
                        strong { "Discs" } " with a line through them: no other checker finds as many calls with as short a wait. "
                        "Rings: another one does. Whiskers: intervals of 95 %."
                    }
                }
                @if is_crowded {
                    figure.large {
                        (curve(&points, "curve-top", "The checkers with the highest recall", Some(TOP)))
                        figcaption { "The same, from " (percent(Some(TOP))) " upwards." }
                    }
                }
                @if !left_out.is_empty() {
                    p.faint { "Not drawn, since their recall or wait is not defined: " bdi { (left_out.join(", ")) } "." }
                }
            }
        }
    }
}

/// Above this recall checkers are drawn a second time if others are far below.
const TOP: f64 = 0.95;
/// A recall so low that differences above [`TOP`] become small.
const SPREAD: f64 = 0.9;

fn curve(points: &[Point], id: &str, title: &str, lowest: Option<f64>) -> Markup {
    let text = "A plot with one point for each checker.".to_owned();
    let description = Description { id: id.to_owned(), title: title.to_owned(), text };
    Curve { description, points: points.to_vec(), lowest }.svg()
}

/// The point of a checker; `None` if a value is not defined.
fn point(checker: &CheckerReport) -> Option<Point> {
    Some(Point {
        name: label(&checker.name),
        waited: real(&checker.metrics, "waited")?,
        recall: real(&checker.metrics, "recall")?,
        interval: checker.intervals.get("recall").map(|interval| (interval.low, interval.high)),
    })
}

/// Where a checker decided: after how many characters, and after which part of the text.
pub fn decisions(checker: &CheckerReport, index: usize) -> Markup {
    let name = plain_name(&checker.name);
    let description = |id: &str, title: &str| Description {
        id: format!("{id}-{index}"),
        title: format!("{title} of {name}"),
        text: "Bars of counts of streams.".to_owned(),
    };
    let histogram = |description, axis: &str, bars| Histogram {
        description,
        axis: axis.to_owned(),
        above: "streams".to_owned(),
        below: String::new(),
        bars,
    };
    let chars = histogram(
        description("chars", "Decisions by characters"),
        "characters of text before the decision",
        by_doubling(&checker.decision_chars),
    );
    let parts = histogram(
        description("parts", "Decisions by part of the text"),
        "part of the text before the decision",
        by_part(&checker.decision_parts),
    );
    html! {
        figure { (chars.svg()) }
        figure { (parts.svg()) }
    }
}

/// The highest power of two at which a range begins; the last range holds all larger values.
const LAST: u32 = 19;

/// One bar for 0, and one for each power of two: 1, 2–3, 4–7, … The ranges of a report never span a power of two.
fn by_doubling(ranges: &Ranges) -> Vec<Bar> {
    let mut counts: Vec<u64> = Vec::new();
    for (&from, &streams) in ranges.edges.iter().zip(&ranges.counts) {
        let bar = from.checked_ilog2().map_or(0, |power| 1 + power.min(LAST) as usize);
        if counts.len() <= bar {
            counts.resize(bar + 1, 0);
        }
        counts[bar] = counts[bar].saturating_add(streams);
    }
    let bars = counts.into_iter().zip(0u32..).map(|(above, bar)| {
        let Some(power) = bar.checked_sub(1) else {
            return Bar { label: "0".to_owned(), is_single: true, range: "0".to_owned(), above, below: 0 };
        };
        let from = 1u64 << power;
        let range = if power == LAST {
            format!("{} and more", count(from))
        } else {
            format!("{} to {}", count(from), count(2 * from - 1))
        };
        // Every second one, so that large numbers have room.
        let label = if power % 2 == 0 { count(from) } else { String::new() };
        Bar { label, is_single: false, range, above, below: 0 }
    });
    bars.collect()
}

/// One bar for each of the equal parts of the text.
fn by_part(parts: &[u64]) -> Vec<Bar> {
    let whole = parts.len().max(1);
    let bars = parts.iter().enumerate().map(|(part, &above)| {
        let [from, to] = [part, part + 1].map(|part| part * 100 / whole);
        let label = if from % 20 == 0 { format!("{from}\u{a0}%") } else { String::new() };
        Bar { label, is_single: false, range: format!("{from} to {to} %"), above, below: 0 }
    });
    bars.collect()
}
