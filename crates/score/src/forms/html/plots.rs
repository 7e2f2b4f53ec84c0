//! The plots of a report.

use super::summary::real;
use super::words::{label, plain_name};
use crate::forms::number::count;
use crate::histogram::Ranges;
use crate::plot::{Bar, Curve, Description, Histogram, Point};
use crate::report::{CheckerReport, Report};
use maud::{Markup, html};

/// The curve of recall against earliness, and a part of it at full height if much lies close
/// together at its top.
pub fn curves(report: &Report) -> Markup {
    let points: Vec<Point> = report.checkers.iter().filter_map(point).collect();
    let left_out = report
        .checkers
        .iter()
        .filter(|checker| point(checker).is_none());
    let left_out: Vec<String> = left_out.map(|checker| plain_name(&checker.name)).collect();
    let top = top(&points);
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
                @if let Some(top) = top {
                    figure.large {
                        (curve(&points, "curve-top", "The checkers with the highest recall", Some(top)))
                        figcaption { (format!("The same, from a recall of {:.0}\u{a0}% upwards.", top * 100.0)) }
                    }
                }
                @if !left_out.is_empty() {
                    p.faint { "Not drawn, since their recall or wait is not defined: " bdi { (left_out.join(", ")) } "." }
                }
            }
        }
    }
}

/// Where a second plot begins, from the narrowest to the widest.
const TOPS: [f64; 5] = [0.99, 0.98, 0.97, 0.96, 0.95];
/// A recall so low that differences above all of [`TOPS`] become small.
const SPREAD: f64 = 0.9;

/// The lowest recall of a second plot: of those checkers that lie close together at the top, with
/// their intervals if possible. `None` if fewer than two do, or no other checker makes the first
/// plot coarse.
fn top(points: &[Point]) -> Option<f64> {
    let [narrowest, .., widest] = TOPS;
    let high: Vec<&Point> = points
        .iter()
        .filter(|point| point.recall >= widest)
        .collect();
    if high.len() < 2 || !points.iter().any(|point| point.recall < SPREAD) {
        return None;
    }
    let lows = high
        .iter()
        .map(|point| point.interval.map_or(point.recall, |(low, _)| low));
    let lowest = lows.fold(narrowest, f64::min);
    Some(
        TOPS.into_iter()
            .find(|top| *top <= lowest)
            .unwrap_or(widest),
    )
}

fn curve(points: &[Point], id: &str, title: &str, lowest: Option<f64>) -> Markup {
    let text = "A plot with one point for each checker.".to_owned();
    let description = Description {
        id: id.to_owned(),
        title: title.to_owned(),
        text,
    };
    Curve {
        description,
        points: points.to_vec(),
        lowest,
    }
    .svg()
}

/// The point of a checker; `None` if a value is not defined.
fn point(checker: &CheckerReport) -> Option<Point> {
    let share = |metric| real(&checker.metrics, metric).filter(|share| (0.0..=1.0).contains(share));
    Some(Point {
        name: label(&checker.name),
        waited: share("waited")?,
        recall: share("recall")?,
        interval: checker
            .intervals
            .get("recall")
            .map(|interval| (interval.low, interval.high)),
    })
}

/// Where a checker decided: after how many characters, and after which part of the text. All
/// checkers have as many bars (`doublings`).
pub fn decisions(checker: &CheckerReport, index: usize, doublings: usize) -> Markup {
    let name = plain_name(&checker.name);
    let description = |id: &str, title: &str| Description {
        id: format!("{id}-{index}"),
        title: format!("{title} of {name}"),
        text:
            "Bars of counts of streams, upwards those with the answer yes, downwards those with no."
                .to_owned(),
    };
    let histogram = |description, axis: &str, bars, end: &str| Histogram {
        description,
        axis: axis.to_owned(),
        above: "yes".to_owned(),
        below: "no".to_owned(),
        bars,
        end: end.to_owned(),
    };
    let chars = histogram(
        description("chars", "Decisions by characters"),
        "characters of text before the decision",
        by_doubling(&checker.decision_chars, &checker.yes_chars, doublings),
        "",
    );
    let parts = histogram(
        description("parts", "Decisions by part of the text"),
        "part of the text before the decision",
        by_part(&checker.decision_parts, &checker.yes_parts),
        "100\u{a0}%",
    );
    html! {
        figure { (chars.svg()) }
        figure { (parts.svg()) }
    }
}

/// The highest power of two at which a range begins; the last range holds all larger values.
const LAST: u32 = 19;
/// The fewest bars of characters, so that a checker that decides at once does not get one broad
/// bar.
const FEWEST: usize = 8;

/// How many bars the characters of all checkers need.
pub fn doublings(report: &Report) -> usize {
    let needed = report
        .checkers
        .iter()
        .map(|checker| doubled(&checker.decision_chars).len());
    needed.max().unwrap_or(0).max(FEWEST)
}

/// Streams with 0 characters, and with each power of two of them: 1, 2–3, 4–7, … The ranges of a
/// report never span a power of two.
fn doubled(ranges: &Ranges) -> Vec<u64> {
    let mut counts: Vec<u64> = Vec::new();
    for (&from, &streams) in ranges
        .edges
        .iter()
        .zip(&ranges.counts)
        .filter(|(_, streams)| **streams > 0)
    {
        let bar = from
            .checked_ilog2()
            .map_or(0, |power| 1 + power.min(LAST) as usize);
        if counts.len() <= bar {
            counts.resize(bar + 1, 0);
        }
        counts[bar] = counts[bar].saturating_add(streams);
    }
    counts
}

fn by_doubling(all: &Ranges, yes: &Ranges, doublings: usize) -> Vec<Bar> {
    let (all, yes) = (doubled(all), doubled(yes));
    let of = |counts: &[u64], bar: usize| counts.get(bar).copied().unwrap_or(0);
    let bars = (0..doublings).zip(0u32..).map(|(bar, number)| {
        let (above, below) = (of(&yes, bar), of(&all, bar).saturating_sub(of(&yes, bar)));
        let Some(power) = number.checked_sub(1) else {
            return Bar {
                label: "0".to_owned(),
                is_single: true,
                range: "0".to_owned(),
                above,
                below,
            };
        };
        let from = 1u64 << power.min(LAST);
        let range = match power {
            0 => "1".to_owned(),
            LAST => format!("{} and more", count(from)),
            _ => format!("{} to {}", count(from), count(2 * from - 1)),
        };
        // Every second one, so that large numbers have room.
        let label = if power % 2 == 0 {
            count(from)
        } else {
            String::new()
        };
        Bar {
            label,
            is_single: false,
            range,
            above,
            below,
        }
    });
    bars.collect()
}

/// Equal parts of the text that share a bar, so that bars have room for their counts.
const PARTS: usize = 2;

fn by_part(all: &[u64], yes: &[u64]) -> Vec<Bar> {
    let whole = all.len().div_ceil(PARTS).max(1);
    let sum = |parts: &[u64]| {
        parts
            .iter()
            .fold(0u64, |sum, part| sum.saturating_add(*part))
    };
    let bars = all.chunks(PARTS).enumerate().map(|(bar, streams)| {
        let above = sum(yes.chunks(PARTS).nth(bar).unwrap_or(&[]));
        let [from, to] = [bar, bar + 1].map(|bar| bar * 100 / whole);
        let label = if from % 20 == 0 {
            format!("{from}\u{a0}%")
        } else {
            String::new()
        };
        Bar {
            label,
            is_single: false,
            range: format!("{from} to {to} %"),
            above,
            below: sum(streams).saturating_sub(above),
        }
    });
    bars.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_plot_begins_below_the_checkers_that_lie_close_together() {
        let point = |recall: f64, low: f64| Point {
            name: String::new(),
            waited: 0.5,
            recall,
            interval: Some((low, 1.0)),
        };
        let far = point(0.5, 0.4);
        assert_eq!(
            top(&[far.clone(), point(0.999, 0.993), point(1.0, 0.99)]),
            Some(0.99)
        );
        assert_eq!(
            top(&[far.clone(), point(0.996, 0.985), point(1.0, 0.99)]),
            Some(0.98)
        );
        assert_eq!(
            top(&[far.clone(), point(0.96, 0.7), point(1.0, 0.99)]),
            Some(0.95)
        );
        assert_eq!(top(&[far, point(1.0, 0.99)]), None, "one checker");
        assert_eq!(
            top(&[point(0.91, 0.9), point(1.0, 0.99), point(1.0, 0.99)]),
            None,
            "one plot shows all"
        );
        assert_eq!(top(&[]), None);
    }

    #[test]
    fn ranges_of_characters_are_added_up_to_powers_of_two() {
        let all = Ranges {
            edges: vec![0, 1, 2, 3, 4, 10, 12, 1 << 30],
            counts: vec![9, 1, 2, 3, 0, 5, 7],
        };
        let yes = Ranges {
            edges: vec![0, 1],
            counts: vec![4],
        };
        let bars: Vec<(String, u64, u64)> = by_doubling(&all, &yes, 6)
            .into_iter()
            .map(|bar| (bar.range, bar.above, bar.below))
            .collect();
        let wanted = [
            ("0", 4, 5),
            ("1", 0, 1),
            ("2 to 3", 0, 5),
            ("4 to 7", 0, 0),
            ("8 to 15", 0, 12),
            ("16 to 31", 0, 0),
        ];
        assert_eq!(
            bars,
            wanted.map(|(range, above, below)| (range.to_owned(), above, below))
        );
    }

    #[test]
    fn parts_of_the_text_are_added_up_to_tenths() {
        let bars = by_part(&[5, 1, 0, 0, 2, 0], &[3, 1]);
        let bars: Vec<(&str, u64, u64)> = bars
            .iter()
            .map(|bar| (bar.range.as_str(), bar.above, bar.below))
            .collect();
        assert_eq!(
            bars,
            [
                ("0 to 33 %", 4, 2),
                ("33 to 66 %", 0, 0),
                ("66 to 100 %", 0, 2)
            ]
        );
        assert!(by_part(&[], &[1]).is_empty());
    }

    #[test]
    fn numbers_of_any_size_are_in_the_last_bar() {
        let ranges = Ranges {
            edges: vec![u64::MAX - 1, u64::MAX],
            counts: vec![3],
        };
        assert_eq!(doubled(&ranges).len(), LAST as usize + 2);
        assert_eq!(by_doubling(&ranges, &Ranges::default(), 30).len(), 30);
    }
}
