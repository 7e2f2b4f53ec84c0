//! The plots of a page, as SVG.
//!
//! The style of the page colours them by their classes. Nothing is shown by colour alone, and each
//! plot has a description with its numbers.

use super::words::{count, percent, plain_name};
use crate::histogram::Ranges;
use crate::report::{CheckerReport, Report};
use maud::{Markup, html};
use std::fmt::Write;

/// A place in a plot, in units from its upper left corner; a unit is a CSS pixel at full size.
type Spot = (f64, f64);

/// The `<svg>` element of a plot, with its title and description in words.
fn svg(
    id: &str,
    class: &str,
    [title, text]: [&str; 2],
    [width, height]: [f64; 2],
    inside: &Markup,
) -> Markup {
    html! {
        svg.(class) viewBox=(format!("0 0 {width} {height}")) width=(width) height=(height) role="img"
            aria-labelledby=(format!("{id}-title {id}-text")) {
            title id=(format!("{id}-title")) { (title) }
            desc id=(format!("{id}-text")) { (text) }
            (inside)
        }
    }
}

/// A text on one line; `anchor` is the part of it at the place: `start`, `middle` or `end`.
fn text((x, y): Spot, class: &str, anchor: &str, text: &str) -> Markup {
    html! { text.(class) x=(round(x)) y=(round(y + 4.0)) text-anchor=(anchor) { (text) } }
}

fn line(from: Spot, to: Spot, class: &str) -> Markup {
    html! { line.(class) x1=(round(from.0)) y1=(round(from.1)) x2=(round(to.0)) y2=(round(to.1)) {} }
}

/// Tenths of a unit: more digits show nothing.
fn round(units: f64) -> f64 {
    (units * 10.0).round() / 10.0
}

/// One checker in the plot of recall against earliness. All values are shares.
#[derive(Clone, Debug)]
pub(super) struct Point {
    name: String,
    /// Its number in the legend.
    number: usize,
    waited: f64,
    recall: f64,
    interval: Option<(f64, f64)>,
}

/// The points of all checkers whose recall and wait are defined; their numbers are those of the
/// checkers in the report, from 1 on.
pub(super) fn points(report: &Report) -> Vec<Point> {
    let point = |(number, checker): (usize, &CheckerReport)| {
        let share = |metric| {
            let share = checker.number(metric)?;
            (0.0..=1.0).contains(&share).then_some(share)
        };
        let interval = checker.intervals.get("recall");
        Some(Point {
            name: plain_name(&checker.name),
            number,
            waited: share("waited")?,
            recall: share("recall")?,
            interval: interval
                .map(|interval| (interval.low, interval.high))
                .filter(|(low, high)| low.is_finite() && high.is_finite()),
        })
    };
    (1..).zip(&report.checkers).filter_map(point).collect()
}

/// Where a second plot begins, from the narrowest to the widest.
const TOPS: [f64; 5] = [0.99, 0.98, 0.97, 0.96, 0.95];
/// A recall so low that differences above all of [`TOPS`] become small.
const SPREAD: f64 = 0.9;

/// The lowest recall of a second plot: of those checkers that lie close together at the top, with
/// their intervals if possible. `None` if fewer than two do, or no other checker makes the first
/// plot coarse.
pub(super) fn top(points: &[Point]) -> Option<f64> {
    let [narrowest, .., widest] = TOPS;
    let high = || points.iter().filter(|point| point.recall >= widest);
    if high().count() < 2 || points.iter().all(|point| point.recall >= SPREAD) {
        return None;
    }
    let lows = high().map(|point| point.interval.map_or(point.recall, |(low, _)| low));
    let lowest = lows.fold(narrowest, f64::min);
    let top = TOPS.into_iter().find(|top| *top <= lowest);
    Some(top.unwrap_or(widest))
}

/// A drawing of a curve.
struct Canvas {
    /// Its class, by which the style of the page shows one of the drawings.
    class: &'static str,
    /// Its width and its height.
    size: [f64; 2],
    /// The edges of its plane: left, right, top and bottom.
    plane: [f64; 4],
    /// What its horizontal axis shows.
    axis: &'static str,
}

/// The drawing for a window that is wide, and the one for a telephone, on which the wide one would
/// be either too small to read or cut off: most points lie at its right.
const CANVASES: [Canvas; 2] = [
    Canvas {
        class: "broad",
        size: [960.0, 440.0],
        plane: [66.0, 938.0, 34.0, 390.0],
        axis: "waited: share of the text without calls that was read",
    },
    Canvas {
        class: "narrow",
        size: [360.0, 400.0],
        plane: [58.0, 340.0, 34.0, 350.0],
        axis: "waited: share of the text without calls",
    },
];

/// The curve of recall against earliness, once for each width of a window.
pub(super) fn curves(points: &[Point], id: &str, title: &str, lowest: Option<f64>) -> Markup {
    html! { @for canvas in &CANVASES { (curve(points, id, title, lowest, canvas)) } }
}

/// The curve of recall against earliness, from the recall `lowest` on, or from what the points need.
/// Points that no other beats (none has a recall as high and a wait as short) are discs with a line
/// through them, the others are rings. The numbers are those of the legend.
fn curve(points: &[Point], id: &str, title: &str, lowest: Option<f64>, canvas: &Canvas) -> Markup {
    let is_drawn = |point: &&Point| lowest.is_none_or(|lowest| point.recall >= lowest);
    let points: Vec<&Point> = points.iter().filter(is_drawn).collect();
    // A little less than the lowest value, so that no point lies on the axis; never so close to 1
    // that differences which mean nothing look large.
    let lowest = lowest.unwrap_or_else(|| {
        let lows = points
            .iter()
            .map(|point| point.interval.map_or(point.recall, |(low, _)| low));
        (1.0 - (1.0 - lows.fold(0.98, f64::min)) * 1.06).max(0.0)
    });
    let [left, right, top, bottom] = canvas.plane;
    let x = |waited: f64| left + waited * (right - left);
    let y = |recall: f64| bottom - (recall.max(lowest) - lowest) / (1.0 - lowest) * (bottom - top);
    let mut description = "A plot with one point for each checker.".to_owned();
    for point in &points {
        let [recall, waited] = [point.recall, point.waited].map(|share| percent(Some(share)));
        // Writing to a string cannot fail.
        let _ = write!(
            description,
            " {}: recall {recall}, waited {waited}.",
            point.name
        );
    }
    let front = front(&points);
    let spots: Vec<Spot> = points
        .iter()
        .map(|point| (x(point.waited), y(point.recall)))
        .collect();
    // A step, and not a slope: no checker has the values between two points.
    let mut step: Vec<String> = Vec::new();
    let mut last = None;
    for (x, y) in front.iter().map(|index| spots[*index]) {
        step.extend(last.map(|last| format!("{},{}", round(x), round(last))));
        step.push(format!("{},{}", round(x), round(y)));
        last = Some(y);
    }
    let inside = html! {
        (axes(canvas, lowest, x, y))
        @if front.len() > 1 { polyline.front points=(step.join(" ")) {} }
        @for (point, (x, _)) in points.iter().zip(&spots) {
            @if let Some((low, high)) = point.interval {
                (line((*x, y(low)), (*x, y(high)), "axis"))
                // An end below the plot has no cross line: the interval goes on there.
                @for end in [low, high].into_iter().filter(|end| *end >= lowest) {
                    (line((x - 3.0, y(end)), (x + 3.0, y(end)), "axis"))
                }
            }
        }
        @for (index, (x, y)) in spots.iter().enumerate() {
            @let class = if front.contains(&index) { "disc" } else { "ring" };
            circle.(class) cx=(round(*x)) cy=(round(*y)) r="5" {}
        }
        @for (spot, numbers) in labels(&points, &spots) {
            (text((spot.0 + 9.0, spot.1 - 10.0), "label", "start", &numbers))
        }
    };
    let id = format!("{id}-{}", canvas.class);
    svg(
        &id,
        canvas.class,
        [title, &description],
        canvas.size,
        &inside,
    )
}

/// Where the numbers of points are written: points so close that their numbers would cover each
/// other share one text.
fn labels(points: &[&Point], spots: &[Spot]) -> Vec<(Spot, String)> {
    let mut labels: Vec<(Spot, String)> = Vec::new();
    for (point, spot) in points.iter().zip(spots) {
        let is_near = |at: &Spot| (at.0 - spot.0).abs() < 24.0 && (at.1 - spot.1).abs() < 14.0;
        match labels.iter_mut().find(|(at, _)| is_near(at)) {
            Some((_, numbers)) => {
                let _ = write!(numbers, ", {}", point.number);
            }
            None => labels.push((*spot, point.number.to_string())),
        }
    }
    labels
}

/// The indexes of the points that no other beats, by their wait. Points at the same place beat each
/// other as little as a point beats itself.
fn front(points: &[&Point]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by(|&a, &b| {
        let a = points[a];
        let b = points[b];
        a.waited
            .total_cmp(&b.waited)
            .then(b.recall.total_cmp(&a.recall))
    });
    let mut best: Option<&Point> = None;
    order.retain(|&index| {
        let point = points[index];
        let is_same =
            best.is_some_and(|best| best.recall == point.recall && best.waited == point.waited);
        let is_better = best.is_none_or(|best| point.recall > best.recall);
        if is_better {
            best = Some(point);
        }
        is_better || is_same
    });
    order
}

/// The distances between two lines of the grid, from which the first that makes few lines is taken.
const STEPS: [f64; 8] = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2];

fn axes(canvas: &Canvas, lowest: f64, x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) -> Markup {
    let [left, right, top, bottom] = canvas.plane;
    let step = STEPS.into_iter().find(|step| (1.0 - lowest) / step <= 8.0);
    let step = step.unwrap_or(0.2);
    let digits = usize::from(step < 0.01);
    let rows = (0..=8).map(|row| 1.0 - f64::from(row) * step);
    html! {
        @for row in rows.filter(|row| *row >= lowest - 1e-9) {
            (line((left, y(row)), (right, y(row)), "grid"))
            (text((left - 8.0, y(row)), "faint", "end", &format!("{:.digits$}\u{a0}%", row * 100.0)))
        }
        @for column in 0..=5 {
            @let (x, percent) = (x(f64::from(column) * 0.2), column * 20);
            (line((x, bottom), (x, bottom + 5.0), "axis"))
            (text((x, bottom + 15.0), "faint", "middle", &format!("{percent}\u{a0}%")))
        }
        (line((left, bottom), (right, bottom), "axis"))
        (text((x(0.5), canvas.size[1] - 14.0), "faint", "middle", canvas.axis))
        (text((left - 8.0, top - 24.0), "faint", "end", "recall"))
    }
}

/// One range of values in a histogram.
#[derive(Debug, Default)]
struct Bar {
    /// What is under the lower end of the bar. May be empty.
    label: String,
    /// The whole range in words.
    range: String,
    /// How many streams with the answer yes lie in it, drawn upwards.
    yes: u64,
    /// How many with the answer no, drawn downwards.
    no: u64,
}

/// Where a checker decided: after how many characters, and after which part of the text. All
/// checkers have as many bars of characters (`doublings`).
pub(super) fn decisions(checker: &CheckerReport, index: usize, doublings: usize) -> [Markup; 2] {
    let name = plain_name(&checker.name);
    [
        histogram(
            &format!("chars-{index}"),
            &format!("Decisions by characters of {name}"),
            "characters of text before the decision",
            &by_doubling(&checker.decision_chars, &checker.yes_chars, doublings),
        ),
        histogram(
            &format!("parts-{index}"),
            &format!("Decisions by part of the text of {name}"),
            "part of the text before the decision",
            &by_part(&checker.decision_parts, &checker.yes_parts),
        ),
    ]
}

/// The size of a histogram, the left and the right end of its bars, the line between yes and no,
/// and how far bars go up and down.
const HISTOGRAM: [f64; 2] = [480.0, 232.0];
const ENDS: [f64; 2] = [44.0, 456.0];
const ZERO: f64 = 92.0;
const HALF: f64 = 70.0;

/// Bars go up for streams with the answer yes and down for those with no, so that no colour tells
/// them apart. Both directions have one scale; a bar of one stream can be seen however long the
/// longest is.
fn histogram(id: &str, title: &str, axis: &str, bars: &[Bar]) -> Markup {
    let mut description =
        "Bars of counts of streams, upwards those with the answer yes, downwards those with no."
            .to_owned();
    for Bar { range, yes, no, .. } in bars.iter().filter(|bar| bar.yes + bar.no > 0) {
        let _ = write!(description, " {range}: {yes} yes, {no} no.");
    }
    let [left, right] = ENDS;
    let width = (right - left) / bars.len().max(1) as f64;
    let most = bars.iter().map(|bar| bar.yes.max(bar.no)).max();
    let most = most.unwrap_or(0).max(1) as f64;
    let floor = ZERO + HALF + 18.0;
    let inside = html! {
        @for (bar, at) in bars.iter().zip(0_u32..) {
            @let x = left + f64::from(at) * width;
            @for (streams, class, sign) in [(bar.yes, "yes", -1.0), (bar.no, "no", 1.0)] {
                @if streams > 0 {
                    @let height = (streams as f64 / most * HALF).max(1.0);
                    rect.(class) x=(round(x + 1.0)) y=(round(ZERO - if sign < 0.0 { height } else { 0.0 }))
                        width=(round((width - 2.0).max(0.1))) height=(round(height)) {}
                    @let label = short(streams);
                    @if label.len() as f64 * 8.0 <= width + 4.0 {
                        (text((x + width / 2.0, ZERO + sign * (height + 10.0)), "ink", "middle", &label))
                    }
                }
            }
            @if !bar.label.is_empty() {
                (line((x, floor), (x, floor + 4.0), "axis"))
                (text((x, floor + 14.0), "faint", "middle", &bar.label))
            }
        }
        (line((left, ZERO), (right, ZERO), "ink"))
        (line((left, floor), (right, floor), "grid"))
        (text((left - 6.0, ZERO - 12.0), "faint", "end", "yes"))
        (text((left - 6.0, ZERO + 12.0), "faint", "end", "no"))
        (text((f64::midpoint(left, right), HISTOGRAM[1] - 12.0), "faint", "middle", axis))
    };
    svg(id, "histogram", [title, &description], HISTOGRAM, &inside)
}

/// A count in at most five characters: `999`, `1.2k`, `35k`, `1.2M`.
fn short(count: u64) -> String {
    let (unit, suffix) = match count {
        0..=999 => return count.to_string(),
        1_000..=999_999 => (1_000, "k"),
        1_000_000..=999_999_999 => (1_000_000, "M"),
        _ => (1_000_000_000, "G"),
    };
    let whole = count / unit;
    let tenth = count % unit * 10 / unit;
    if whole < 10 && tenth > 0 {
        format!("{whole}.{tenth}{suffix}")
    } else {
        format!("{whole}{suffix}")
    }
}

/// The highest power of two at which a range begins; the last range holds all larger values.
const LAST: u32 = 19;
/// The fewest bars of characters, so that a checker that decides at once does not get one broad
/// bar.
const FEWEST: usize = 8;

/// How many bars the characters of all checkers need.
pub(super) fn doublings(report: &Report) -> usize {
    let needed = |checker: &CheckerReport| doubled(&checker.decision_chars).len();
    let needed = report.checkers.iter().map(needed).max();
    needed.unwrap_or(0).max(FEWEST)
}

/// Streams with 0 characters, and with each power of two of them: 1, 2–3, 4–7, … The ranges of a
/// report never span a power of two.
fn doubled(ranges: &Ranges) -> Vec<u64> {
    let mut counts: Vec<u64> = Vec::new();
    let filled = ranges.edges.iter().zip(&ranges.counts);
    for (from, streams) in filled.filter(|(_, streams)| **streams > 0) {
        let power = from.checked_ilog2();
        let bar = power.map_or(0, |power| 1 + power.min(LAST) as usize);
        if counts.len() <= bar {
            counts.resize(bar + 1, 0);
        }
        counts[bar] = counts[bar].saturating_add(*streams);
    }
    counts
}

fn by_doubling(all: &Ranges, yes: &Ranges, doublings: usize) -> Vec<Bar> {
    let all = doubled(all);
    let yes = doubled(yes);
    let of = |counts: &[u64], bar: usize| counts.get(bar).copied().unwrap_or(0);
    let bar = |(bar, power): (usize, u32)| {
        let (from, to) = match power {
            0 => (0, 0),
            power => (
                1_u64 << (power - 1).min(LAST),
                (1 << power.min(LAST + 1)) - 1,
            ),
        };
        let range = match power {
            0 | 1 => from.to_string(),
            power if power > LAST => format!("{} and more", count(from)),
            _ => format!("{} to {}", count(from), count(to)),
        };
        // Every second one, so that large numbers have room.
        let has_label = power == 0 || power % 2 == 1;
        Bar {
            label: if has_label {
                count(from)
            } else {
                String::new()
            },
            range,
            yes: of(&yes, bar),
            no: of(&all, bar).saturating_sub(of(&yes, bar)),
        }
    };
    (0..doublings).zip(0..).map(bar).collect()
}

/// Equal parts of the text that share a bar, so that bars have room for their counts.
const PARTS: usize = 2;

fn by_part(all: &[u64], yes: &[u64]) -> Vec<Bar> {
    let whole = all.len().div_ceil(PARTS).max(1);
    let sum = |parts: &[u64]| {
        parts
            .iter()
            .fold(0, |sum: u64, part| sum.saturating_add(*part))
    };
    let bar = |(bar, streams): (usize, &[u64])| {
        let above = yes.chunks(PARTS).nth(bar).map_or(0, sum);
        let [from, to] = [bar, bar + 1].map(|bar| bar * 100 / whole);
        let has_label = from % 20 == 0;
        Bar {
            label: if has_label {
                format!("{from}\u{a0}%")
            } else {
                String::new()
            },
            range: format!("{from} to {to} %"),
            yes: above,
            no: sum(streams).saturating_sub(above),
        }
    };
    all.chunks(PARTS).enumerate().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(waited: f64, recall: f64, low: f64) -> Point {
        Point {
            name: String::new(),
            number: 1,
            waited,
            recall,
            interval: Some((low, 1.0)),
        }
    }

    #[test]
    fn a_second_plot_begins_below_the_checkers_that_lie_close_together() {
        let point = |recall, low| point(0.5, recall, low);
        let far = point(0.5, 0.4);
        let full = point(1.0, 0.99);
        let close = point(0.91, 0.9);
        for (points, lowest) in [
            (
                vec![far.clone(), point(0.999, 0.993), full.clone()],
                Some(0.99),
            ),
            (
                vec![far.clone(), point(0.996, 0.985), full.clone()],
                Some(0.98),
            ),
            (
                vec![far.clone(), point(0.96, 0.7), full.clone()],
                Some(0.95),
            ),
            (vec![far, full.clone()], None),
            (vec![close, full.clone(), full], None),
            (vec![], None),
        ] {
            assert_eq!(top(&points), lowest, "{points:?}");
        }
    }

    #[test]
    fn the_front_is_what_no_other_point_beats() {
        let front_of = |points: &[(f64, f64)]| {
            let points: Vec<Point> = points.iter().map(|p| point(p.0, p.1, 0.5)).collect();
            front(&points.iter().collect::<Vec<_>>())
        };
        let points = [(0.5, 0.9), (0.0, 0.9), (0.3, 0.99), (0.3, 0.95), (1.0, 1.0)];
        assert_eq!(front_of(&points), [1, 2, 4]);
        // Points at the same place do not beat each other.
        assert_eq!(front_of(&[(0.5, 0.9), (0.5, 0.9), (0.6, 0.9)]), [0, 1]);
    }

    #[test]
    fn points_that_would_cover_each_other_share_a_label() {
        let points = [
            point(0.5, 0.9, 0.5),
            point(0.5, 0.9, 0.5),
            point(0.7, 0.9, 0.5),
        ];
        let points: Vec<&Point> = points.iter().collect();
        let labels = labels(&points, &[(10.0, 10.0), (20.0, 12.0), (40.0, 10.0)]);
        assert_eq!(
            labels,
            [((10.0, 10.0), "1, 1".into()), ((40.0, 10.0), "1".into())]
        );
    }

    #[test]
    fn points_below_the_lowest_recall_are_left_out_and_nothing_is_a_plot() {
        let named = |name: &str, recall| Point {
            name: name.to_owned(),
            ..point(0.1, recall, 0.4)
        };
        let points = [named("<low>", 0.5), named("<high>", 0.99)];
        let svg = curves(&points, "id", "title", Some(0.95)).into_string();
        assert!(
            !svg.contains("low") && svg.contains("&lt;high&gt;"),
            "{svg}"
        );
        assert!(
            curves(&[], "id", "title", None)
                .into_string()
                .contains("</svg>")
        );
    }

    #[test]
    fn counts_are_short() {
        for (count, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1k"),
            (1_290, "1.2k"),
            (35_999, "35k"),
            (1_200_000, "1.2M"),
            (5_000_000_000, "5G"),
        ] {
            assert_eq!(short(count), text);
        }
    }

    fn bar(range: &str, yes: u64, no: u64) -> Bar {
        Bar {
            label: range.to_owned(),
            range: range.to_owned(),
            yes,
            no,
        }
    }

    #[test]
    fn both_kinds_are_drawn_and_described_and_never_invisible() {
        let bars = [bar("0", u64::MAX / 2, 0), bar("1", 0, 1), bar("10", 0, 0)];
        let svg = histogram("id", "title", "axis", &bars).into_string();
        assert_eq!(svg.matches("<rect").count(), 2, "{svg}");
        assert!(
            svg.contains(r#"height="70""#) && svg.contains(r#"height="1""#),
            "{svg}"
        );
        assert!(
            svg.contains(" 1: 0 yes, 1 no.") && !svg.contains(" 10:"),
            "{svg}"
        );
        assert!(
            histogram("id", "title", "axis", &[])
                .into_string()
                .contains("</svg>")
        );
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
            .map(|bar| (bar.range, bar.yes, bar.no))
            .collect();
        let wanted = [
            ("0", 4, 5),
            ("1", 0, 1),
            ("2 to 3", 0, 5),
            ("4 to 7", 0, 0),
            ("8 to 15", 0, 12),
            ("16 to 31", 0, 0),
        ];
        let wanted = wanted.map(|(range, yes, no)| (range.to_owned(), yes, no));
        assert_eq!(bars, wanted);
        let huge = Ranges {
            edges: vec![u64::MAX - 1, u64::MAX],
            counts: vec![3],
        };
        assert_eq!(doubled(&huge).len(), LAST as usize + 2);
        let last = by_doubling(&huge, &Ranges::default(), 21).pop().unwrap();
        assert_eq!((last.range.as_str(), last.no), ("524,288 and more", 3));
    }

    #[test]
    fn parts_of_the_text_are_added_up_to_tenths() {
        let bars = by_part(&[5, 1, 0, 0, 2, 0], &[3, 1]);
        let bars: Vec<(&str, u64, u64)> = bars
            .iter()
            .map(|bar| (bar.range.as_str(), bar.yes, bar.no))
            .collect();
        let wanted = [
            ("0 to 33 %", 4, 2),
            ("33 to 66 %", 0, 0),
            ("66 to 100 %", 0, 2),
        ];
        assert_eq!(bars, wanted);
        assert!(by_part(&[], &[1]).is_empty());
    }
}
