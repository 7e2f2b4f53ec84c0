//! Finds places for the names of points, so that none covers another or a point.

use super::canvas::{LETTERS, Side, Spot, width_of};

/// A rectangle of a plot, in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Area {
    pub left: i32,
    pub top: i32,
    pub right: i32,
    pub bottom: i32,
}

impl Area {
    /// What is at most `reach` away from `spot`.
    pub fn around(spot: Spot, reach: i32) -> Self {
        Self {
            left: spot.0 - reach,
            top: spot.1 - reach,
            right: spot.0 + reach,
            bottom: spot.1 + reach,
        }
    }

    /// What a straight line along an axis covers.
    pub fn of_line(from: Spot, to: Spot) -> Self {
        let (left, right) = (from.0.min(to.0), from.0.max(to.0));
        let (top, bottom) = (from.1.min(to.1), from.1.max(to.1));
        Self {
            left: left - 1,
            top: top - 1,
            right: right + 1,
            bottom: bottom + 1,
        }
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    fn holds(&self, other: &Self) -> bool {
        self.left <= other.left
            && self.top <= other.top
            && self.right >= other.right
            && self.bottom >= other.bottom
    }
}

/// Where a name was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    /// What its letters cover.
    pub area: Area,
    /// Whether it is so far from its point that a line must lead to it.
    pub is_far: bool,
    /// The side of the text that stays where it is however wide the reader's font is: the one next
    /// to the point.
    pub side: Side,
}

impl Placed {
    /// The place of the text by its side, at half the height of its letters.
    pub fn anchor(&self) -> Spot {
        let x = match self.side {
            Side::Before => self.area.right,
            Side::Over => i32::midpoint(self.area.left, self.area.right),
            Side::After => self.area.left,
        };
        (x, i32::midpoint(self.area.top, self.area.bottom))
    }

    /// The end of the line that leads here from `point`.
    pub fn edge(&self, point: Spot) -> Spot {
        let x = point.0.clamp(self.area.left, self.area.right);
        let y = i32::midpoint(self.area.top, self.area.bottom);
        if x == point.0 {
            (
                x,
                if point.1 < y {
                    self.area.top
                } else {
                    self.area.bottom
                },
            )
        } else {
            (
                if point.0 < self.area.left {
                    self.area.left - 2
                } else {
                    self.area.right + 2
                },
                y,
            )
        }
    }
}

/// The room between a point and its name.
const GAP: i32 = 9;

/// How many distances from a point are tried: so many names find room in a column beside one place
/// at the edge of a plot.
const RINGS: i32 = 26;

/// Directions from a point in the order in which a reader expects its name.
const DIRECTIONS: [(i32, i32); 8] = [
    (1, 0),
    (1, -1),
    (1, 1),
    (-1, 0),
    (-1, -1),
    (-1, 1),
    (0, -1),
    (0, 1),
];

/// A place within `bounds` for each of `names` near its point; `None` where all are taken. No name
/// covers a point or another name; lines (`thin`) are kept free where that is possible.
pub(super) fn place(names: &[(Spot, &str)], bounds: Area, thin: &[Area]) -> Vec<Option<Placed>> {
    let points: Vec<Area> = names
        .iter()
        .map(|&(spot, _)| Area::around(spot, GAP - 2))
        .collect();
    let mut placed: Vec<Option<Placed>> = vec![None; names.len()];
    // Points whose neighbours are close have the fewest free places, so they choose first.
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by_key(|&index| {
        let spot = names[index].0;
        let close = names
            .iter()
            .filter(|(other, _)| (other.0 - spot.0).abs() < 120 && (other.1 - spot.1).abs() < 30);
        (std::cmp::Reverse(close.count()), index)
    });
    for index in order {
        let (spot, name) = names[index];
        let taken: Vec<Area> = points
            .iter()
            .copied()
            .chain(placed.iter().flatten().map(|place| place.area))
            .collect();
        placed[index] = candidates(spot, name)
            .filter(|place| {
                bounds.holds(&place.area) && !taken.iter().any(|area| area.overlaps(&place.area))
            })
            .min_by_key(|place| cost(place, spot, thin));
    }
    placed
}

/// The places around a point, near ones first.
fn candidates(spot: Spot, name: &str) -> impl Iterator<Item = Placed> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the height of letters is a small number"
    )]
    let height = LETTERS as i32 + 3;
    let width = width_of(name);
    (0..RINGS).flat_map(move |ring| {
        DIRECTIONS.into_iter().map(move |(right, down)| {
            let reach = GAP + ring * 13;
            let (x, y) = (
                spot.0 + right * (reach * 2 / 3).clamp(GAP, 4 * GAP),
                spot.1
                    + down
                        * if right == 0 {
                            reach + height / 2
                        } else {
                            reach
                        },
            );
            let (left, side) = match right {
                1 => (x, Side::After),
                -1 => (x - width, Side::Before),
                _ => (x - width / 2, Side::Over),
            };
            let area = Area {
                left,
                top: y - height / 2,
                right: left + width,
                bottom: y + height / 2,
            };
            Placed {
                area,
                is_far: ring > 0,
                side,
            }
        })
    })
}

/// How bad a place is: far away, or over a line.
fn cost(place: &Placed, spot: Spot, thin: &[Area]) -> i32 {
    let x = spot.0.clamp(place.area.left, place.area.right);
    let y = spot.1.clamp(place.area.top, place.area.bottom);
    let distance = (x - spot.0).abs() + (y - spot.1).abs();
    let crossed = thin
        .iter()
        .filter(|line| line.overlaps(&place.area))
        .count();
    distance + 30 * i32::try_from(crossed).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Area = Area {
        left: 0,
        top: 0,
        right: 700,
        bottom: 400,
    };

    fn check(names: &[(Spot, &str)], placed: &[Option<Placed>]) {
        for (index, place) in placed.iter().enumerate() {
            let Some(place) = place else { continue };
            assert!(BOUNDS.holds(&place.area), "{place:?}");
            for (spot, _) in names {
                assert!(
                    !place.area.overlaps(&Area::around(*spot, 5)),
                    "{place:?} covers {spot:?}"
                );
            }
            for other in placed[index + 1..].iter().flatten() {
                assert!(
                    !place.area.overlaps(&other.area),
                    "{place:?} covers {other:?}"
                );
            }
        }
    }

    #[test]
    fn a_name_alone_is_right_of_its_point() {
        let placed = place(&[((100, 100), "full")], BOUNDS, &[])[0].unwrap();
        assert!(placed.area.left > 100 && !placed.is_far);
        assert_eq!(placed.anchor().1, 100);
    }

    #[test]
    fn names_in_a_corner_stay_inside() {
        let names = [
            ((0, 0), "left"),
            ((700, 0), "a-checker-with-a-name"),
            ((700, 400), "x"),
            ((0, 400), "lookahead:3000"),
        ];
        let placed = place(&names, BOUNDS, &[]);
        assert!(placed.iter().all(Option::is_some));
        check(&names, &placed);
    }

    #[test]
    fn twelve_points_close_together_get_names_that_do_not_touch() {
        let names: Vec<(Spot, String)> = (0..12)
            .map(|n| ((300 + 5 * n, 40 + 3 * n), format!("lookahead:{n}000")))
            .collect();
        let names: Vec<(Spot, &str)> = names
            .iter()
            .map(|(spot, name)| (*spot, name.as_str()))
            .collect();
        let placed = place(&names, BOUNDS, &[]);
        assert!(placed.iter().all(Option::is_some), "{placed:?}");
        check(&names, &placed);
    }

    #[test]
    fn twelve_points_at_one_place_get_names_that_do_not_touch() {
        for spot in [(350, 200), (699, 24), (0, 24), (0, 380)] {
            let names: Vec<String> = (0..12).map(|n| format!("…/checker_{n}.py")).collect();
            let names: Vec<(Spot, &str)> = names.iter().map(|name| (spot, name.as_str())).collect();
            let placed = place(&names, BOUNDS, &[]);
            let missing = placed.iter().filter(|place| place.is_none()).count();
            assert_eq!(missing, 0, "at {spot:?}");
            check(&names, &placed);
        }
    }

    #[test]
    fn a_name_that_fits_nowhere_is_left_out() {
        let placed = place(&[((100, 100), "x".repeat(200).as_str())], BOUNDS, &[]);
        assert_eq!(placed, [None]);
    }
}
