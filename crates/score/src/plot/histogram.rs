//! How many streams lie in each of a row of ranges.

use super::canvas::{Canvas, Description, Frame, Ink, Lettering, Side, Spot, svg, width_of};
use maud::Markup;
use std::fmt::Write;

/// One range of values.
#[derive(Clone, Debug)]
pub struct Bar {
    /// What is under the bar: in its middle for a single value, at its lower end for a range. May
    /// be empty.
    pub label: String,
    /// Whether it holds a single value, apart from the ranges beside it.
    pub is_single: bool,
    /// The whole range in words.
    pub range: String,
    /// How many streams lie in it, drawn upwards.
    pub above: u64,
    /// How many streams of the other kind lie in it, drawn downwards.
    pub below: u64,
}

/// A histogram whose bars go up for one kind of streams and down for another, so that no colour
/// tells them apart.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// What the plot is; its counts are added to its text.
    pub description: Description,
    /// What the ranges are of, with its unit.
    pub axis: String,
    /// The name of the streams that are drawn upwards.
    pub above: String,
    /// The name of the streams that are drawn downwards.
    pub below: String,
    /// The ranges, in order.
    pub bars: Vec<Bar>,
    /// What is under the end of the last range. May be empty.
    pub end: String,
}

const HALF: i32 = 70;
const LETTERING: Lettering = Lettering {
    ink: Ink::Faint,
    bold: false,
    side: Side::Over,
};

impl Histogram {
    /// The plot. Both directions have one scale; a bar of one stream can be seen however long the
    /// longest is.
    pub fn svg(&self) -> Markup {
        let frame = Frame {
            width: 480,
            height: 2 * HALF + 92,
            left: 44,
            right: 24,
            top: 22,
            bottom: 70,
            x: 0.0..1.0,
            y: -1.0..1.0,
        };
        let mut description = self.description.clone();
        for bar in self.bars.iter().filter(|bar| bar.above + bar.below > 0) {
            let _ = write!(
                description.text,
                " {}: {} {}, {} {}.",
                bar.range, bar.above, self.above, bar.below, self.below
            );
        }
        svg(&frame, &description, |canvas| self.draw(canvas))
    }

    fn draw(&self, canvas: &Canvas<'_>) {
        let frame = canvas.frame;
        let zero = canvas.spot(0.0, 0.0).1;
        let floor = frame.height - frame.bottom + 18;
        let count = i32::try_from(self.bars.len()).unwrap_or(i32::MAX).max(1);
        let width = (frame.width - frame.left - frame.right) / count;
        let most = self
            .bars
            .iter()
            .map(|bar| bar.above.max(bar.below))
            .max()
            .unwrap_or(0)
            .max(1);
        for (bar, at) in self.bars.iter().zip(0..) {
            let left = frame.left + at * width;
            // Bars of single values keep a distance, since they are not next to the ranges on the
            // axis.
            let inset = if bar.is_single { width / 6 } else { 1 };
            for (streams, sign) in [(bar.above, -1), (bar.below, 1)] {
                if streams > 0 {
                    let end = zero + sign * height(streams, most);
                    let ink = if sign < 0 { Ink::Value } else { Ink::Other };
                    canvas.bar(
                        [
                            (left + inset, end.min(zero)),
                            (left + width - inset, end.max(zero)),
                        ],
                        ink,
                    );
                    let label = short(streams);
                    if width_of(&label) <= width + 4 {
                        canvas.text(
                            &label,
                            (left + width / 2, end + sign * 10),
                            Lettering {
                                ink: Ink::Text,
                                ..LETTERING
                            },
                        );
                    }
                }
            }
            let x = if bar.is_single {
                left + width / 2
            } else {
                left
            };
            if !bar.label.is_empty() {
                if !bar.is_single {
                    canvas.line(&[(x, floor), (x, floor + 4)], Ink::Faint, 1);
                }
                canvas.text(&bar.label, (x, floor + 14), LETTERING);
            }
        }
        let right = frame.left + count * width;
        if !self.end.is_empty() {
            canvas.line(&[(right, floor), (right, floor + 4)], Ink::Faint, 1);
            canvas.text(&self.end, (right, floor + 14), LETTERING);
        }
        canvas.line(&[(frame.left, zero), (right, zero)], Ink::Text, 1);
        canvas.line(&[(frame.left, floor), (right, floor)], Ink::Grid, 1);
        let side = |name: &str, at: Spot| {
            canvas.text(
                name,
                at,
                Lettering {
                    side: Side::Before,
                    ..LETTERING
                },
            )
        };
        side(&self.above, (frame.left - 6, zero - 12));
        side(&self.below, (frame.left - 6, zero + 12));
        canvas.text(
            &self.axis,
            (i32::midpoint(frame.left, right), frame.height - 12),
            LETTERING,
        );
    }
}

/// The height of a bar in units: in proportion to `most`, and at least one that can be seen.
fn height(streams: u64, most: u64) -> i32 {
    let share = u128::from(streams) * u128::from(HALF.unsigned_abs()) / u128::from(most);
    i32::try_from(share).unwrap_or(HALF).clamp(1, HALF)
}

/// A count in at most five characters: `999`, `1.2k`, `35k`, `1.2M`.
fn short(count: u64) -> String {
    let (unit, suffix) = match count {
        0..=999 => return count.to_string(),
        1_000..=999_999 => (1_000, "k"),
        1_000_000..=999_999_999 => (1_000_000, "M"),
        _ => (1_000_000_000, "G"),
    };
    let (whole, tenth) = (count / unit, count % unit * 10 / unit);
    if whole < 10 && tenth > 0 {
        format!("{whole}.{tenth}{suffix}")
    } else {
        format!("{whole}{suffix}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(label: &str, above: u64, below: u64) -> Bar {
        Bar {
            label: label.to_owned(),
            is_single: label == "0",
            range: format!("from {label}"),
            above,
            below,
        }
    }

    fn histogram(bars: Vec<Bar>) -> String {
        let description = Description {
            id: "bars".to_owned(),
            title: "Decisions".to_owned(),
            text: "All.".to_owned(),
        };
        let (axis, above, below) = ("characters".to_owned(), "yes".to_owned(), "no".to_owned());
        Histogram {
            description,
            axis,
            above,
            below,
            bars,
            end: "end".to_owned(),
        }
        .svg()
        .into_string()
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

    #[test]
    fn a_bar_is_as_long_as_its_count_and_never_invisible() {
        assert_eq!(height(50, 100), HALF / 2);
        assert_eq!(height(1, u64::MAX), 1);
        assert_eq!(height(u64::MAX, u64::MAX), HALF);
    }

    #[test]
    fn both_kinds_are_drawn_and_described() {
        let svg = histogram(vec![bar("0", 5, 0), bar("1", 0, 7), bar("10", 0, 0)]);
        assert_eq!(svg.matches("<rect").count(), 2, "{svg}");
        assert!(
            svg.contains("from 0: 5 yes, 0 no.")
                && svg.contains("from 1: 0 yes, 7 no.")
                && !svg.contains("from 10:"),
            "{svg}"
        );
    }

    #[test]
    fn no_bars_and_many_bars_are_plots() {
        assert!(histogram(vec![]).contains("</svg>"));
        assert!(histogram(vec![bar("1", u64::MAX / 2, 1); 2_000]).contains("</svg>"));
    }
}
