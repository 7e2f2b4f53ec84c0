//! Counts of whole numbers, from which quantiles are computed in constant memory.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Values below this have a bucket each, so small numbers are exact.
const EXACT: u64 = 128;
/// Above, each power of two is split into this many buckets of equal width, as in
/// [HdrHistogram](https://hdrhistogram.github.io/HdrHistogram/).
const SPLIT_BITS: u32 = 6;
/// The power of two at which split buckets begin.
const FIRST_POWER: u32 = EXACT.ilog2();

/// How many values fell into each bucket.
///
/// Values below 128 are exact. A larger value is reported as the middle of its bucket, which is at
/// most 1/128 (0.79 %) away from it. The smallest value and the largest are exact. At most 3,776
/// buckets exist, and only those that hold a value take memory. All fields are integers, so that
/// merging in any order gives the same bits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Histogram {
    /// Values in each bucket that has any.
    buckets: BTreeMap<u16, u64>,
    /// The smallest value.
    min: Option<u64>,
    /// The largest value.
    max: Option<u64>,
}

/// Neighbouring ranges of values, and how many values each holds: what a plot draws.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Ranges {
    /// Where the ranges begin, ascending, and where the last one ends: one more than there are
    /// ranges. A range holds its beginning and not its end.
    pub edges: Vec<u64>,
    /// How many values are in each range.
    pub counts: Vec<u64>,
}

impl Histogram {
    /// Counts one value.
    pub fn record(&mut self, value: u64) {
        let count = self.buckets.entry(bucket(value)).or_default();
        *count = count.saturating_add(1);
        self.min = Some(self.min.map_or(value, |min| min.min(value)));
        self.max = Some(self.max.map_or(value, |max| max.max(value)));
    }

    /// Adds the values of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, more) in &other.buckets {
            let count = self.buckets.entry(*bucket).or_default();
            *count = count.saturating_add(*more);
        }
        self.min = [self.min, other.min].into_iter().flatten().min();
        self.max = self.max.max(other.max);
    }

    /// How many values were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets
            .values()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The largest value; `None` without values.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        self.max
    }

    /// The smallest value that at least `percent` of 100 of all values do not exceed (the nearest
    /// rank; `inverted_cdf` in NumPy), within the error of a bucket; `None` without values.
    #[must_use]
    pub fn percentile(&self, percent: u64) -> Option<u64> {
        let rank = (u128::from(self.count()) * u128::from(percent))
            .div_ceil(100)
            .max(1);
        let mut seen = 0u128;
        for (bucket, count) in &self.buckets {
            seen += u128::from(*count);
            if seen >= rank {
                return Some(middle(*bucket).min(self.max?).max(self.min?));
            }
        }
        None
    }

    /// The values in ranges that grow with the values: one number each below 8, then four to a
    /// power of two. The ranges begin at 0 and end above the largest value; empty without values.
    #[must_use]
    pub fn ranges(&self) -> Ranges {
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
        ranges.counts = vec![0; ranges.edges.len() - 1];
        for (bucket, count) in &self.buckets {
            let above = ranges.edges.partition_point(|edge| *edge <= first(*bucket));
            let last = ranges.counts.len() - 1;
            let at = &mut ranges.counts[above.saturating_sub(1).min(last)];
            *at = at.saturating_add(*count);
        }
        ranges
    }
}

/// The bucket of a value.
fn bucket(value: u64) -> u16 {
    if value < EXACT {
        return u16::try_from(value).unwrap_or(u16::MAX);
    }
    let power = value.ilog2();
    let part = (value >> (power - SPLIT_BITS)) & ((1 << SPLIT_BITS) - 1);
    let index = EXACT + (u64::from(power - FIRST_POWER) << SPLIT_BITS) + part;
    u16::try_from(index).unwrap_or(u16::MAX)
}

/// The smallest value of a bucket. Counts are also read from files, so a bucket that no value has
/// gives the largest `u64`.
fn first(bucket: u16) -> u64 {
    let bucket = u64::from(bucket);
    if bucket < EXACT {
        return bucket;
    }
    let step = shift(bucket);
    let part = (bucket - EXACT) & ((1 << SPLIT_BITS) - 1);
    if step + SPLIT_BITS < u64::BITS {
        ((1 << SPLIT_BITS) + part) << step
    } else {
        u64::MAX
    }
}

/// The middle of a bucket.
fn middle(bucket: u16) -> u64 {
    if u64::from(bucket) < EXACT {
        return u64::from(bucket);
    }
    let half = shift(u64::from(bucket)) - 1;
    first(bucket).saturating_add(1u64.checked_shl(half).unwrap_or(0))
}

/// The power of two that is the width of a bucket of [`EXACT`] or above.
fn shift(bucket: u64) -> u32 {
    let power = u64::from(FIRST_POWER) + ((bucket - EXACT) >> SPLIT_BITS);
    u32::try_from(power)
        .unwrap_or(u32::MAX)
        .saturating_sub(SPLIT_BITS)
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
            let (exact, found) = (values[rank - 1], histogram.percentile(percent).unwrap());
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
            r#"{"buckets":{"65535":18446744073709551615,"4000":3},"min":1,"max":9}"#,
        )
        .unwrap();
        assert_eq!(histogram.percentile(99), Some(9));
        assert_eq!(
            histogram.ranges().counts.iter().copied().max(),
            Some(u64::MAX)
        );
    }
}
