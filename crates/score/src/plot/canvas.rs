//! The plane of a plot: maps values to places, and draws lines, marks and texts there.

use maud::{Markup, PreEscaped, html};
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::{
    Cartesian2d, Circle, DrawingArea, IntoDrawingArea, PathElement, RGBColor, Ranged, Rectangle,
    SVGBackend, ShapeStyle, Text,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, IntoFont, TextStyle};
use std::ops::Range;

/// A colour by its purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// Texts and marks that are read.
    Text,
    /// Texts that explain: axes and units.
    Faint,
    /// Lines behind the values.
    Grid,
    /// The values.
    Value,
    /// A second kind of values.
    Other,
    /// What is under the plot.
    Paper,
}

/// Each colour, as it is written in a plot, and the name of the property of a page's style that may
/// replace it.
pub const INKS: [(Ink, &str, &str); 6] = [
    (Ink::Text, "#1F1F1F", "--ink"),
    (Ink::Faint, "#5C5C5C", "--faint"),
    (Ink::Grid, "#DADADA", "--grid"),
    (Ink::Value, "#1D5FA8", "--value"),
    (Ink::Other, "#A34A00", "--other"),
    (Ink::Paper, "#FEFEFE", "--paper"),
];

impl Ink {
    fn colour(self) -> RGBColor {
        match self {
            Self::Text => RGBColor(0x1f, 0x1f, 0x1f),
            Self::Faint => RGBColor(0x5c, 0x5c, 0x5c),
            Self::Grid => RGBColor(0xda, 0xda, 0xda),
            Self::Value => RGBColor(0x1d, 0x5f, 0xa8),
            Self::Other => RGBColor(0xa3, 0x4a, 0x00),
            Self::Paper => RGBColor(0xfe, 0xfe, 0xfe),
        }
    }
}

/// What a plot shows, in words: for those who do not see it.
#[derive(Clone, Debug)]
pub struct Description {
    /// Unique in the page, made of letters, digits and hyphens.
    pub id: String,
    /// What the plot is.
    pub title: String,
    /// What it shows.
    pub text: String,
}

/// The size of a plot and of its margins in units (one is a CSS pixel at full size), and the values
/// of its axes.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub width: i32,
    pub height: i32,
    pub left: i32,
    pub right: i32,
    pub top: i32,
    pub bottom: i32,
    pub x: Range<f64>,
    pub y: Range<f64>,
}

/// Where a text is in relation to its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// It ends there.
    Before,
    /// It has its middle there.
    Over,
    /// It begins there.
    After,
}

/// How a text looks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lettering {
    pub ink: Ink,
    pub bold: bool,
    pub side: Side,
}

/// The height of all letters in units.
pub(super) const LETTERS: f64 = 12.5;

/// A place in a plot, in units from its upper left corner.
pub(super) type Spot = (i32, i32);

/// A plot that is being drawn.
pub(super) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
    plane: Cartesian2d<RangedCoordf64, RangedCoordf64>,
    pub frame: &'a Frame,
}

/// The `<svg>` element that `draw` fills.
pub(super) fn svg(
    frame: &Frame,
    description: &Description,
    draw: impl FnOnce(&Canvas<'_>),
) -> Markup {
    let mut drawn = String::new();
    {
        let size = (frame.width.unsigned_abs(), frame.height.unsigned_abs());
        let area = SVGBackend::with_string(&mut drawn, size).into_drawing_area();
        let plane = Cartesian2d::<RangedCoordf64, RangedCoordf64>::new(
            frame.x.clone(),
            frame.y.clone(),
            (
                frame.left..frame.width - frame.right,
                frame.height - frame.bottom..frame.top,
            ),
        );
        draw(&Canvas { area, plane, frame });
    }
    // The element itself is written here, so that it has a description and takes its size from the
    // page.
    let inside = drawn
        .split_once('\n')
        .map_or("", |(_, rest)| rest)
        .trim_end()
        .trim_end_matches("</svg>");
    let (title, text) = (
        format!("{}-title", description.id),
        format!("{}-text", description.id),
    );
    html! {
        svg viewBox=(format!("0 0 {} {}", frame.width, frame.height)) width=(frame.width) height=(frame.height) role="img"
            aria-labelledby=(format!("{title} {text}")) {
            title id=(title) { (description.title) }
            desc id=(text) { (description.text) }
            (PreEscaped(inside))
        }
    }
}

impl Canvas<'_> {
    /// The place of a pair of values.
    pub fn spot(&self, x: f64, y: f64) -> Spot {
        use plotters::coord::CoordTranslate;
        self.plane.translate(&(x, y))
    }

    pub fn line(&self, spots: &[Spot], ink: Ink, width: u32) {
        self.draw(&PathElement::new(
            spots,
            ShapeStyle {
                color: ink.colour().into(),
                filled: false,
                stroke_width: width,
            },
        ));
    }

    /// A disc; a ring if it is not `filled`, so that both can be told apart without colours.
    pub fn disc(&self, centre: Spot, radius: i32, ink: Ink, filled: bool) {
        // What lies below a mark does not show through it.
        self.draw(&Circle::new(centre, radius + 2, fill(Ink::Paper)));
        let ring = ShapeStyle {
            color: ink.colour().into(),
            filled: false,
            stroke_width: 2,
        };
        self.draw(&Circle::new(
            centre,
            radius,
            if filled { fill(ink) } else { ring },
        ));
    }

    pub fn bar(&self, corners: [Spot; 2], ink: Ink) {
        self.draw(&Rectangle::new(corners, fill(ink)));
    }

    /// A text on one line, whose middle is at the height of `at`.
    pub fn text(&self, text: &str, at: Spot, lettering: Lettering) {
        let side = match lettering.side {
            Side::Before => HPos::Right,
            Side::Over => HPos::Center,
            Side::After => HPos::Left,
        };
        // The backend divides the size by this number.
        let mut font = ("sans-serif", LETTERS * 1.24).into_font();
        if lettering.bold {
            font = font.style(FontStyle::Bold);
        }
        let colour = lettering.ink.colour();
        let style = TextStyle::from(font)
            .color(&colour)
            .pos(Pos::new(side, VPos::Center));
        self.draw(&Text::new(text, at, style));
    }

    fn draw<'e, E>(&self, element: &'e E)
    where
        &'e E: plotters::element::PointCollection<'e, Spot>,
        E: for<'b> plotters::element::Drawable<SVGBackend<'b>>,
    {
        // Writing into a string cannot fail.
        let _ = self.area.draw(element);
    }
}

fn fill(ink: Ink) -> ShapeStyle {
    ShapeStyle {
        color: ink.colour().into(),
        filled: true,
        stroke_width: 0,
    }
}

/// At most `most` round values in `range`, in order.
pub(super) fn ticks(range: Range<f64>, most: usize) -> Vec<f64> {
    RangedCoordf64::from(range).key_points(most)
}

/// How wide a text is at most, in units: the reader's fonts are not known here, so the widths are
/// those of DejaVu Sans Bold, which is wider than most.
pub(super) fn width_of(text: &str) -> i32 {
    let ems: f64 =
        text.chars()
            .map(|c| match c {
                'i' | 'j' | 'l' | 't' | 'f' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!'
                | ' ' => 0.45,
                'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' => 1.1,
                'A'..='Z' => 0.84,
                '\0'..='\u{2fff}' => 0.72,
                _ => 1.1,
            })
            .sum();
    #[expect(
        clippy::cast_possible_truncation,
        reason = "texts in plots are short; a cast of a float saturates"
    )]
    let width = (ems * LETTERS).ceil() as i32;
    width
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ink_has_the_colour_that_is_published() {
        for (ink, written, _) in INKS {
            let RGBColor(r, g, b) = ink.colour();
            assert_eq!(written, format!("#{r:02X}{g:02X}{b:02X}"));
        }
    }

    #[test]
    fn wide_letters_take_more_room() {
        assert!(width_of("mmmm") > width_of("iiii") && width_of("中中") > width_of("aa"));
    }
}
