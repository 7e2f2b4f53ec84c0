//! Series of times in microseconds: all times for exact quantiles, or a histogram.

use event::Raw;
use std::collections::BTreeMap;

/// The longest time counted, in microseconds: a thousand days. A longer one comes from a wrong
/// clock or number, and would make every sum worthless.
pub(super) const LONGEST: u64 = 1000 * 86_400 * 1_000_000;

/// The upper bounds of the buckets in microseconds, from one millisecond to five minutes. They
/// include one and three seconds, the thresholds of the alerts in `docs/metrics/alerts.yml`.
pub(super) const BOUNDS: [u64; 17] = [
    1_000,
    3_000,
    10_000,
    30_000,
    100_000,
    200_000,
    300_000,
    500_000,
    1_000_000,
    2_000_000,
    3_000_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    120_000_000,
    300_000_000,
];

/// Maximum number of distinct times that all series keep for exact quantiles: some 30 MB. A log of
/// a million turns has fewer. Beyond it, times are rounded to two significant digits, which leaves
/// at most 1,300 distinct times per series.
const MOST: usize = 1 << 20;

/// Parses the time of an event, a JSON number of milliseconds, into microseconds. Returns `None` if
/// it is negative, too long or not a number.
pub(super) fn micros_of_json(value: Raw<'_>) -> Option<u64> {
    let micros = (value.f64()? * 1000.0).round();
    (0.0..=LONGEST as f64)
        .contains(&micros)
        .then_some(micros as u64)
}

/// How all series keep their times.
#[derive(Debug)]
pub(super) enum TimeForm {
    /// Keeps every time, so that quantiles are exact.
    Exact {
        /// The number of distinct times in all series.
        different: usize,
        /// Whether there were too many, so that times are rounded to two significant digits.
        is_rounded: bool,
        most: usize,
    },
    /// Keeps histograms.
    Buckets,
}

impl TimeForm {
    pub(super) fn exact() -> TimeForm {
        TimeForm::Exact {
            different: 0,
            is_rounded: false,
            most: MOST,
        }
    }

    /// Whether there are too many distinct times to keep all of them.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        matches!(self, TimeForm::Exact { different, is_rounded: false, most } if different > most)
    }

    /// Whether times were rounded; `None` for histograms.
    pub(super) fn is_rounded(&self) -> Option<bool> {
        match self {
            TimeForm::Exact { is_rounded, .. } => Some(*is_rounded),
            TimeForm::Buckets => None,
        }
    }

    /// Rounds all times, now and from now on.
    pub(super) fn coarsen<'t>(&mut self, all: impl Iterator<Item = &'t mut Times>) {
        if let TimeForm::Exact {
            different,
            is_rounded,
            ..
        } = self
        {
            *is_rounded = true;
            *different = all.map(Times::coarsen).sum();
        }
    }
}

/// The times of one series.
#[derive(Debug)]
pub(super) struct Times {
    pub count: u64,
    /// The sum of the times, unrounded.
    pub sum: u128,
    values: TimeValues,
}

#[derive(Debug)]
enum TimeValues {
    /// The number of occurrences of each time.
    Exact(BTreeMap<u64, u64>),
    /// The number of times in each bucket. Times above the last bound are only in `count`.
    Buckets([u64; BOUNDS.len()]),
}

impl Times {
    pub(super) fn new(form: &TimeForm) -> Times {
        let values = match form {
            TimeForm::Exact { .. } => TimeValues::Exact(BTreeMap::new()),
            TimeForm::Buckets => TimeValues::Buckets([0; BOUNDS.len()]),
        };
        Times {
            count: 0,
            sum: 0,
            values,
        }
    }

    #[inline]
    pub(super) fn add(&mut self, micros: u64, form: &mut TimeForm) {
        self.count += 1;
        self.sum += u128::from(micros);
        match (&mut self.values, form) {
            (TimeValues::Buckets(buckets), _) => {
                let place = BOUNDS.partition_point(|bound| *bound < micros);
                if let Some(count) = buckets.get_mut(place) {
                    *count += 1;
                }
            }
            (
                TimeValues::Exact(values),
                TimeForm::Exact {
                    different,
                    is_rounded,
                    ..
                },
            ) => {
                let micros = if *is_rounded { rounded(micros) } else { micros };
                let count = values.entry(micros).or_default();
                *different += usize::from(*count == 0);
                *count += 1;
            }
            (TimeValues::Exact(_), TimeForm::Buckets) => {}
        }
    }

    /// Rounds all times, and returns the number of distinct times left.
    fn coarsen(&mut self) -> usize {
        let TimeValues::Exact(values) = &mut self.values else {
            return 0;
        };
        for (micros, count) in std::mem::take(values) {
            *values.entry(rounded(micros)).or_default() += count;
        }
        values.len()
    }

    /// Returns a quantile, given in thousandths, by nearest rank: the smallest time that is not
    /// exceeded by at least this share of all times. Returns `None` without times, and for a
    /// histogram.
    pub(super) fn quantile(&self, thousandths: u64) -> Option<u64> {
        let TimeValues::Exact(values) = &self.values else {
            return None;
        };
        let rank = (u128::from(self.count) * u128::from(thousandths)).div_ceil(1000);
        let mut below = 0;
        values.iter().find_map(|(micros, count)| {
            below += u128::from(*count);
            (below >= rank).then_some(*micros)
        })
    }

    /// Returns each of [`BOUNDS`] with the number of times that do not exceed it; empty for exact
    /// times.
    pub(super) fn cumulative(&self) -> impl Iterator<Item = (u64, u64)> {
        let buckets = match &self.values {
            TimeValues::Buckets(buckets) => &buckets[..],
            TimeValues::Exact(_) => &[],
        };
        let mut below = 0;
        BOUNDS.into_iter().zip(buckets).map(move |(bound, count)| {
            below += count;
            (bound, below)
        })
    }
}

/// Rounds to two significant digits.
fn rounded(micros: u64) -> u64 {
    let mut unit = 1;
    while micros / unit >= 100 {
        unit *= 10;
    }
    (micros + unit / 2) / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_nearest_rank() {
        let mut form = TimeForm::exact();
        let mut times = Times::new(&form);
        assert_eq!(times.quantile(500), None);
        for micros in [40, 10, 30, 20] {
            times.add(micros, &mut form);
        }
        let quantiles = [1, 250, 251, 500, 501, 950, 1000].map(|q| times.quantile(q));
        assert_eq!(quantiles, [10, 10, 20, 20, 30, 40, 40].map(Some));
    }

    #[test]
    fn too_many_different_times_are_rounded_and_memory_stays_bounded() {
        let mut form = TimeForm::Exact {
            different: 0,
            is_rounded: false,
            most: 1000,
        };
        let mut times = Times::new(&form);
        for micros in 0..100_000 {
            times.add(micros, &mut form);
            if form.is_full() {
                form.coarsen([&mut times].into_iter());
            }
        }
        assert_eq!(form.is_rounded(), Some(true));
        let TimeForm::Exact { different, .. } = form else {
            panic!("exact times")
        };
        assert!(different < 400, "{different}");
        assert_eq!((times.count, times.sum), (100_000, 4_999_950_000));
        assert_eq!(times.quantile(500), Some(50_000));
        assert_eq!(times.quantile(950), Some(95_000));
    }

    #[test]
    fn rounding_keeps_two_digits() {
        for (micros, want) in [
            (0, 0),
            (99, 99),
            (100, 100),
            (104, 100),
            (105, 110),
            (996, 1000),
            (123_456, 120_000),
            (LONGEST, 86_000_000_000_000),
        ] {
            assert_eq!(rounded(micros), want);
        }
    }

    #[test]
    fn a_time_on_a_bound_is_below_it() {
        let mut form = TimeForm::Buckets;
        let mut times = Times::new(&form);
        for micros in [1_000, 1_001, 400_000_000] {
            times.add(micros, &mut form);
        }
        let counts: Vec<_> = times.cumulative().collect();
        assert_eq!(counts[..2], [(1_000, 1), (3_000, 2)]);
        assert_eq!(counts.last(), Some(&(300_000_000, 2)));
        assert_eq!(times.count, 3);
    }

    #[test]
    fn only_times_that_can_be_true_count() {
        for (json, want) in [
            ("0", Some(0)),
            ("1.2345", Some(1_235)),
            ("1e3", Some(1_000_000)),
            ("-0", Some(0)),
            ("-1", None),
            ("1e300", None),
            ("1e999", None),
            ("null", None),
            ("\"12\"", None),
            ("86400000000.001", None),
            ("[1]", None),
        ] {
            assert_eq!(micros_of_json(Raw::parse(json).unwrap()), want, "{json}");
        }
    }
}
