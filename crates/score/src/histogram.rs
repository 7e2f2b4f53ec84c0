//! Histograms of integers, from which quantiles are computed in bounded memory.

use crate::add_up::AddUp;
use hdrhistogram::Histogram as Buckets;
use serde::{Deserialize, Serialize};

/// The number of significant digits. Values below 256 are exact; a larger value is reported as the
/// middle of its bucket, which is off by at most 1/256 (0.4 %).
const DIGITS: u8 = 2;

/// The number of values in each bucket. The maximum is exact.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(from = "Saved", into = "Saved")]
pub(crate) struct Histogram {
    buckets: Option<Buckets<u64>>,
    max: Option<u64>,
}

/// A histogram as JSON: the first value of each bucket that is not empty, and the number of its
/// values.
#[derive(Deserialize, Serialize)]
struct Saved {
    buckets: Vec<(u64, u64)>,
    max: Option<u64>,
}

/// Adjacent ranges of values with the number of values in each, for plots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Ranges {
    /// The ascending boundaries of the ranges, one more than there are ranges. A range includes its
    /// start but not its end.
    pub edges: Vec<u64>,
    /// The number of values in each range.
    pub counts: Vec<u64>,
}

impl From<Saved> for Histogram {
    fn from(saved: Saved) -> Self {
        let mut histogram = Histogram::default();
        for (value, count) in saved.buckets {
            histogram.add(value, count);
        }
        Histogram {
            max: saved.max,
            ..histogram
        }
    }
}

impl From<Histogram> for Saved {
    fn from(histogram: Histogram) -> Self {
        Saved {
            buckets: histogram.buckets().collect(),
            max: histogram.max,
        }
    }
}

impl Histogram {
    /// Counts one value.
    pub(crate) fn record(&mut self, value: u64) {
        self.add(value, 1);
        self.max = self.max.max(Some(value));
    }

    fn add(&mut self, value: u64, count: u64) {
        if self.buckets.is_none() {
            // `Buckets::new` fails only for more than 5 digits.
            self.buckets = Buckets::new(DIGITS).ok();
        }
        if let Some(buckets) = &mut self.buckets {
            // `record_n` fails only for a histogram of fixed size.
            let _ = buckets.record_n(value, count);
        }
    }

    /// Iterates over the buckets that are not empty: the first value and the number of values of
    /// each.
    fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        self.buckets.iter().flat_map(|buckets| {
            buckets.iter_recorded().map(|bucket| {
                let first = buckets.lowest_equivalent(bucket.value_iterated_to());
                (first, bucket.count_at_value())
            })
        })
    }

    /// Returns the largest value; `None` if there are no values.
    #[must_use]
    pub(crate) fn max(&self) -> Option<u64> {
        self.max
    }

    /// Returns the smallest value that is not exceeded by at least `percent` percent of all values
    /// (nearest rank; `inverted_cdf` in NumPy), within the error of a bucket; `None` if there are
    /// no values.
    #[must_use]
    pub(crate) fn percentile(&self, percent: u64) -> Option<u64> {
        let all = self.buckets().map(|(_, count)| u128::from(count));
        let rank = (all.sum::<u128>() * u128::from(percent))
            .div_ceil(100)
            .max(1);
        let mut seen = 0;
        let (first, _) = self.buckets().find(|(_, count)| {
            seen += u128::from(*count);
            seen >= rank
        })?;
        let middle = self.buckets.as_ref()?.median_equivalent(first);
        Some(middle.min(self.max?))
    }

    /// Returns the values in ranges whose width grows with the values: single numbers below 8, then
    /// four ranges per power of two. The ranges start at 0 and end above the largest value; there
    /// are none without values.
    #[must_use]
    pub(crate) fn ranges(&self) -> Ranges {
        let mut ranges = Ranges::default();
        let Some(max) = self.max else { return ranges };
        let mut edge = 0u64;
        while edge <= max && edge < u64::MAX {
            ranges.edges.push(edge);
            edge = edge.saturating_add(match edge.checked_ilog2() {
                Some(power) if power >= 3 => 1 << (power - 2),
                _ => 1,
            });
        }
        ranges.edges.push(edge);
        let last = ranges.edges.len() - 2;
        ranges.counts = vec![0; last + 1];
        for (first, count) in self.buckets() {
            let above = ranges.edges.partition_point(|edge| *edge <= first);
            let at = &mut ranges.counts[above.saturating_sub(1).min(last)];
            *at = at.saturating_add(count);
        }
        ranges
    }
}

impl AddUp for Histogram {
    fn add_up(&mut self, other: &Self) {
        for (value, count) in other.buckets() {
            self.add(value, count);
        }
        self.max = self.max.max(other.max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_percentile_is_within_one_percent_of_the_value_of_its_rank(
            mut values in prop::collection::vec(prop_oneof![0u64..300, any::<u64>().prop_map(|value| value >> (value % 64))], 1..200),
            percent in 1u64..=100,
        ) {
            let mut histogram = Histogram::default();
            for value in &values {
                histogram.record(*value);
            }
            values.sort_unstable();
            let rank = (values.len() as u64 * percent).div_ceil(100) as usize;
            let exact = values[rank - 1];
            let found = histogram.percentile(percent).unwrap();
            let error = exact.abs_diff(found);
            prop_assert!(if exact < 128 { error == 0 } else { u128::from(error) * 128 <= u128::from(exact) }, "{found} for {exact}");
        }

        #[test]
        fn ranges_hold_each_value(values in prop::collection::vec(any::<u64>().prop_map(|value| value >> (value % 64)), 1..50)) {
            let mut histogram = Histogram::default();
            for value in &values {
                histogram.record(*value);
            }
            let ranges = histogram.ranges();
            prop_assert!(ranges.edges.is_sorted_by(|a, b| a < b));
            prop_assert_eq!(ranges.counts.iter().sum::<u64>(), values.len() as u64);
            for (range, count) in ranges.edges.windows(2).zip(&ranges.counts) {
                if range[1] < u64::MAX {
                    let exact = values.iter().filter(|value| (range[0]..range[1]).contains(*value)).count();
                    prop_assert_eq!(exact as u64, *count);
                }
            }
        }
    }

    #[test]
    fn a_bucket_of_a_damaged_file_is_not_a_panic() {
        let histogram: Histogram = serde_json::from_str(
            r#"{"buckets":[[18446744073709551615,18446744073709551615],[7,3]],"max":9}"#,
        )
        .unwrap();
        assert_eq!(histogram.percentile(99), Some(9));
        let counts = histogram.ranges().counts;
        assert_eq!(counts.iter().copied().max(), Some(u64::MAX));
    }
}
