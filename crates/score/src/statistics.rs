//! Statistics of counts. Each is `None` where it is not defined, as the share of nothing.

use crate::clusters::ClusteredShare;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// An interval of 95 % for a share.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub struct Interval {
    /// Its lower end, from 0 to 1.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// The number of independent streams that tell as much as those that were counted.
    pub effective: f64,
}

/// Both tails together are outside of an interval.
const UPPER_TAIL: f64 = 0.975;

/// `part` of `whole`.
#[must_use]
pub(crate) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The harmonic mean of precision and recall; 0 where no yes is right and one was due.
#[must_use]
pub(crate) fn f1(true_positives: u64, false_positives: u64, missed: u64) -> Option<f64> {
    let twice = 2.0 * true_positives as f64;
    let all = twice + false_positives as f64 + missed as f64;
    (all > 0.0).then(|| twice / all)
}

/// The correlation of answers and labels (Matthews 1975), from -1 to 1. It is not defined where all
/// answers, or all labels, are equal.
#[must_use]
pub(crate) fn mcc(
    true_positives: u64,
    false_positives: u64,
    true_negatives: u64,
    false_negatives: u64,
) -> Option<f64> {
    let [tp, fp, tn, fn_] = [
        true_positives,
        false_positives,
        true_negatives,
        false_negatives,
    ]
    .map(|count| count as f64);
    // Roots first: the product of four sums may exceed what an f64 holds exactly.
    let scale = (tp + fp).sqrt() * (tp + fn_).sqrt() * (tn + fp).sqrt() * (tn + fn_).sqrt();
    (scale > 0.0).then(|| ((tp * tn - fp * fn_) / scale).clamp(-1.0, 1.0))
}

/// The interval of Wilson (1927) for a share, with the effective number of streams in place of
/// their number: of seven intervals with an effective number [Franco et al.
/// (2019)](https://pmc.ncbi.nlm.nih.gov/articles/PMC6690503) recommend this one by simulations.
#[must_use]
pub(crate) fn wilson(share: &ClusteredShare) -> Option<Interval> {
    let n = effective(share)?;
    let p = share.hits / share.total;
    let z = Normal::standard().inverse_cdf(UPPER_TAIL);
    let middle = (p + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let half = z / (1.0 + z * z / n) * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    // A share of 0 or 1 is an end of its interval; rounding would miss it by a bit.
    let low = if p == 0.0 {
        0.0
    } else {
        (middle - half).max(0.0)
    };
    let high = if p == 1.0 {
        1.0
    } else {
        (middle + half).min(1.0)
    };
    Some(Interval {
        low,
        high,
        effective: n,
    })
}

/// How many independent streams tell as much as these, at most their number.
///
/// The number of streams, divided by the design effect: the variance of the share as a ratio of
/// sums over sources, over the variance that as many independent streams would have (Kish 1965),
/// and corrected for few sources by quantiles of Student's t (Korn and Graubard 1998, *Survey
/// Methodology* 24, 193–201). A share of 0 or 1 shows no variance; then each source counts as one
/// stream would whose answers are all alike (a correlation of 1 within a source), which errs on the
/// side of a wide interval.
fn effective(share: &ClusteredShare) -> Option<f64> {
    let ClusteredShare {
        groups,
        used,
        total,
        hits,
        total_squared,
        total_hits,
        hits_squared,
    } = *share;
    if total <= 0.0 {
        return None;
    }
    let p = hits / total;
    if p <= 0.0 || p >= 1.0 || used < 2 {
        // Sources that share a random group by chance make the sum of squares larger than that of
        // the sources alone, by the sum of the products of all pairs over the number of groups.
        let groups = groups as f64;
        let squares = if groups > 1.0 {
            (groups * total_squared - total * total) / (groups - 1.0)
        } else {
            total_squared
        };
        return Some(total * total / squares.clamp(total, total_squared.max(total)));
    }
    let used = used as f64;
    let residuals = hits_squared - 2.0 * p * total_hits + p * p * total_squared;
    let variance = used / (used - 1.0) * residuals / (total * total);
    if variance <= 0.0 {
        return Some(total);
    }
    let independent = p * (1.0 - p) / (total - 1.0);
    let few = student(total - 1.0)? / student(used - 1.0)?;
    Some((total * independent / variance * few * few).clamp(1.0, total))
}

/// The quantile of Student's t.
fn student(freedom: f64) -> Option<f64> {
    Some(
        StudentsT::new(0.0, 1.0, freedom)
            .ok()?
            .inverse_cdf(UPPER_TAIL),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clusters::{Cell, Clusters, hash};

    fn share(hits: u32, misses: u32, per_source: u32) -> ClusteredShare {
        let mut clusters = Clusters::new(4096);
        for stream in 0..hits + misses {
            let cell = if stream < hits {
                Cell::TruePositive
            } else {
                Cell::FalseNegative
            };
            clusters.add(hash(&format!("source {}", stream / per_source)), cell);
        }
        clusters.share(
            &[Cell::TruePositive],
            &[Cell::TruePositive, Cell::FalseNegative],
        )
    }

    #[test]
    fn one_source_a_stream_gives_the_plain_interval_of_wilson() {
        // statsmodels.stats.proportion.proportion_confint(310, 356, method="wilson")
        let interval = wilson(&share(310, 46, 1)).unwrap();
        assert!((interval.effective - 356.0).abs() < 20.0, "{interval:?}");
        assert!(
            (interval.low - 0.831_985).abs() < 2e-3 && (interval.high - 0.901_831).abs() < 2e-3,
            "{interval:?}"
        );
    }

    #[test]
    fn streams_of_one_source_count_as_one_where_they_are_alike() {
        let interval = wilson(&share(320, 80, 40)).unwrap();
        assert!(interval.effective < 15.0, "{interval:?}");
        let all = wilson(&share(400, 0, 40)).unwrap();
        assert!((all.effective - 10.0).abs() < 0.5, "{all:?}");
        assert_eq!(all.high, 1.0);
    }

    #[test]
    fn nothing_has_no_share() {
        assert_eq!(wilson(&ClusteredShare::default()), None);
        assert_eq!(mcc(3, 0, 0, 0), None);
        assert_eq!(f1(0, 0, 0), None);
        assert_eq!(f1(0, 0, 3), Some(0.0));
        assert_eq!(ratio(0, 0), None);
    }

    #[test]
    fn numbers_of_any_size_give_a_correlation() {
        let huge = mcc(u64::MAX, 1, u64::MAX, 1).unwrap();
        assert!((0.99..=1.0).contains(&huge));
    }
}
