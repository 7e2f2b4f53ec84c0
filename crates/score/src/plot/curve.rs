//! The curve of recall against earliness: one point for each checker.

use super::canvas::{Canvas, Description, Frame, Ink, Lettering, Side, Spot, svg, ticks};
use super::placing::{Area, place};
use maud::Markup;

/// One checker. All values are shares, from 0 to 1.
#[derive(Clone, Debug)]
pub struct Point {
    /// Its name, as it is to be shown.
    pub name: String,
    /// Of the text of streams without calls, the share that had gone by when it decided.
    pub waited: f64,
    /// Of the streams with calls, the share that it found.
    pub recall: f64,
    /// The interval of `recall`.
    pub interval: Option<(f64, f64)>,
}

/// All checkers.
#[derive(Clone, Debug)]
pub struct Curve {
    /// What the plot is; the values are added to its text.
    pub description: Description,
    /// The checkers. One whose values are not finite is left out.
    pub points: Vec<Point>,
    /// The lowest recall that is drawn; `None`: what the points and intervals need.
    pub lowest: Option<f64>,
}

impl Curve {
    /// The plot. Points that no other beats (none has both a recall as high and a wait as short)
    /// are discs with a line through them, the others are rings.
    pub fn svg(&self) -> Markup {
        let points = self.drawn();
        let lowest = self
            .lowest
            .map_or_else(|| lowest(&points), |lowest| lowest.clamp(0.0, 0.999));
        let frame = Frame {
            width: 960,
            height: 440,
            left: 66,
            right: 22,
            top: 34,
            bottom: 50,
            x: 0.0..1.0,
            y: lowest..1.0,
        };
        let mut description = self.description.clone();
        for point in &points {
            description.text += &format!(
                " {}: recall {}, waited {}.",
                point.name,
                percent(point.recall, 1),
                percent(point.waited, 1)
            );
        }
        svg(&frame, &description, |canvas| {
            axes(canvas);
            marks(canvas, &points, lowest);
        })
    }

    fn drawn(&self) -> Vec<&Point> {
        let is_drawn = |point: &&Point| {
            point.waited.is_finite()
                && point.recall.is_finite()
                && self.lowest.is_none_or(|lowest| point.recall >= lowest)
        };
        self.points.iter().filter(is_drawn).collect()
    }
}

/// A little less than the lowest value of `points`, so that none lies on the axis; never so close
/// to 1 that differences which mean nothing look large.
fn lowest(points: &[&Point]) -> f64 {
    let lowest = points
        .iter()
        .map(|point| point.interval.map_or(point.recall, |(low, _)| low))
        .fold(0.98, f64::min);
    (1.0 - (1.0 - lowest) * 1.06).max(0.0)
}

/// The indexes of the points that no other beats, by their wait. Points at the same place beat each
/// other as little as a point beats itself.
fn front(points: &[&Point]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by(|&a, &b| {
        let (a_point, b_point) = (points[a], points[b]);
        let by_recall = b_point.recall.total_cmp(&a_point.recall);
        a_point
            .waited
            .total_cmp(&b_point.waited)
            .then(by_recall)
            .then(a.cmp(&b))
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

fn axes(canvas: &Canvas<'_>) {
    let frame = canvas.frame;
    let faint = Lettering {
        ink: Ink::Faint,
        bold: false,
        side: Side::Over,
    };
    let rows = ticks(frame.y.clone(), 8);
    let digits = if rows.windows(2).any(|pair| pair[1] - pair[0] < 0.0099) {
        1
    } else {
        0
    };
    for row in rows {
        let (left, right) = (canvas.spot(0.0, row), canvas.spot(1.0, row));
        canvas.line(&[left, right], Ink::Grid, 1);
        canvas.text(
            &percent(row, digits),
            (left.0 - 8, left.1),
            Lettering {
                side: Side::Before,
                ..faint
            },
        );
    }
    let floor = canvas.spot(0.0, frame.y.start);
    for column in [0.0, 0.2, 0.4, 0.6, 0.8, 1.0] {
        let (x, _) = canvas.spot(column, frame.y.start);
        canvas.line(&[(x, floor.1), (x, floor.1 + 5)], Ink::Faint, 1);
        canvas.text(&percent(column, 0), (x, floor.1 + 15), faint);
    }
    canvas.line(&[floor, canvas.spot(1.0, frame.y.start)], Ink::Faint, 1);
    let middle = canvas.spot(0.5, 0.0).0;
    canvas.text(
        "waited: share of the text without calls that had gone by",
        (middle, frame.height - 14),
        faint,
    );
    // Above the numbers, and not turned beside them: the width of the reader's font is not known.
    canvas.text(
        "recall",
        (frame.left - 8, 10),
        Lettering {
            side: Side::Before,
            ..faint
        },
    );
}

fn marks(canvas: &Canvas<'_>, points: &[&Point], lowest: f64) {
    let spot = |point: &Point| {
        canvas.spot(
            point.waited.clamp(0.0, 1.0),
            point.recall.clamp(lowest, 1.0),
        )
    };
    let front = front(points);
    // A step, and not a slope: no checker has the values between two points.
    let mut step: Vec<Spot> = Vec::new();
    for point in front.iter().map(|&index| spot(points[index])) {
        if let Some(&(_, y)) = step.last() {
            step.push((point.0, y));
        }
        step.push(point);
    }
    if step.len() > 1 {
        canvas.line(&step, Ink::Value, 2);
    }
    let mut thin: Vec<Area> = step
        .windows(2)
        .map(|pair| Area::of_line(pair[0], pair[1]))
        .collect();
    for point in points {
        let Some((low, high)) = point
            .interval
            .filter(|(low, high)| low.is_finite() && high.is_finite())
        else {
            continue;
        };
        let x = spot(point).0;
        let [bottom, top] = [low, high].map(|end| canvas.spot(0.0, end.clamp(lowest, 1.0)).1);
        canvas.line(&[(x, bottom), (x, top)], Ink::Faint, 1);
        // An end below the plot has no cross line: the interval goes on there.
        for (y, end) in [(bottom, low), (top, high)] {
            if end >= lowest {
                canvas.line(&[(x - 3, y), (x + 3, y)], Ink::Faint, 1);
            }
        }
        thin.push(Area::of_line((x - 2, bottom), (x + 2, top)));
    }
    let names: Vec<(Spot, &str)> = points
        .iter()
        .map(|point| (spot(point), point.name.as_str()))
        .collect();
    let frame = canvas.frame;
    let bounds = Area {
        left: frame.left + 2,
        top: 2,
        right: frame.width - 2,
        bottom: frame.height - frame.bottom - 2,
    };
    let placed = place(&names, bounds, &thin);
    for (&(point, _), place) in names.iter().zip(&placed) {
        if let Some(place) = place.filter(|place| place.is_far) {
            canvas.line(&[point, place.edge(point)], Ink::Faint, 1);
        }
    }
    // The best ones at last, so that no mark covers them.
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by_key(|index| front.contains(index));
    for index in order {
        let (point, name) = names[index];
        let is_best = front.contains(&index);
        canvas.disc(point, 5, Ink::Value, is_best);
        if let Some(place) = placed[index] {
            let lettering = Lettering {
                ink: Ink::Text,
                bold: is_best,
                side: place.side,
            };
            canvas.text(name, place.anchor(), lettering);
        }
    }
}

/// `0.9312` as `93.1 %`.
fn percent(share: f64, digits: usize) -> String {
    format!("{:.digits$}\u{a0}%", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(name: &str, waited: f64, recall: f64) -> Point {
        Point {
            name: name.to_owned(),
            waited,
            recall,
            interval: Some((recall - 0.02, recall + 0.01)),
        }
    }

    fn curve(points: Vec<Point>, lowest: Option<f64>) -> String {
        let description = Description {
            id: "curve".to_owned(),
            title: "Recall".to_owned(),
            text: "All.".to_owned(),
        };
        Curve {
            description,
            points,
            lowest,
        }
        .svg()
        .into_string()
    }

    #[test]
    fn the_front_is_what_no_other_point_beats() {
        let points = [
            point("a", 0.5, 0.9),
            point("b", 0.0, 0.9),
            point("c", 0.3, 0.99),
            point("d", 0.3, 0.95),
            point("e", 1.0, 1.0),
        ];
        let points: Vec<&Point> = points.iter().collect();
        assert_eq!(front(&points), [1, 2, 4]);
    }

    #[test]
    fn points_at_the_same_place_do_not_beat_each_other() {
        let points = [
            point("a", 0.5, 0.9),
            point("b", 0.5, 0.9),
            point("c", 0.6, 0.9),
        ];
        assert_eq!(front(&points.iter().collect::<Vec<_>>()), [0, 1]);
    }

    #[test]
    fn numbers_that_are_undefined_are_not_drawn() {
        let mut broken = point("broken", f64::NAN, 0.5);
        broken.interval = Some((f64::NAN, f64::INFINITY));
        let svg = curve(
            vec![
                broken.clone(),
                point("whole", 0.2, 0.9),
                Point {
                    waited: 0.3,
                    ..broken
                },
            ],
            None,
        );
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert!(svg.contains("whole: recall 90.0"), "{svg}");
        for empty in [
            curve(vec![], None),
            curve(vec![point("a", 0.1, 0.5)], Some(0.95)),
            curve(vec![], Some(f64::NAN)),
        ] {
            assert!(
                !empty.contains("NaN") && empty.contains("</svg>"),
                "{empty}"
            );
        }
    }

    #[test]
    fn points_below_the_lowest_recall_are_left_out() {
        let svg = curve(
            vec![point("low", 0.1, 0.5), point("high", 0.4, 0.99)],
            Some(0.95),
        );
        assert!(!svg.contains("low:") && svg.contains("high:"));
    }

    #[test]
    fn names_are_escaped() {
        let svg = curve(vec![point("<script>alert('\"&')</script>", 0.1, 0.5)], None);
        assert!(
            !svg.contains("<script") && svg.contains("&lt;script&gt;"),
            "{svg}"
        );
    }
}
