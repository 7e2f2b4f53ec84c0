//! Statistics of counts. Each is `None` if it is undefined, such as a fraction of 0 streams.

use crate::clusters::ClusteredShare;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// A 95 % confidence interval for a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub struct Interval {
    /// The lower end, from 0 to 1.
    pub low: f64,
    /// The upper end, from 0 to 1.
    pub high: f64,
    /// The effective sample size: the number of independent streams that carry as much information
    /// as the counted ones.
    pub effective: f64,
}

/// The quantile of the upper end: the interval leaves out 2.5 % at each end.
const UPPER_TAIL: f64 = 0.975;

/// Returns `part / whole`; `None` if `whole` is 0.
#[must_use]
pub(crate) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Returns the harmonic mean of precision and recall; 0 if no yes is correct; `None` if there was
/// neither a yes nor a stream with a call.
#[must_use]
pub(crate) fn f1(true_positives: u64, false_positives: u64, missed: u64) -> Option<f64> {
    let twice = 2.0 * true_positives as f64;
    let all = twice + false_positives as f64 + missed as f64;
    (all > 0.0).then(|| twice / all)
}

/// Returns the correlation of answers and labels (Matthews 1975), from -1 to 1. Returns `None` if
/// all answers, or all labels, are equal.
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
    // The roots are taken first, because the product of four sums may exceed the exact range of an
    // f64.
    let scale = (tp + fp).sqrt() * (tp + fn_).sqrt() * (tn + fp).sqrt() * (tn + fn_).sqrt();
    (scale > 0.0).then(|| ((tp * tn - fp * fn_) / scale).clamp(-1.0, 1.0))
}

/// Returns the interval of Wilson (1927) for a fraction, with the effective sample size instead of
/// the number of streams. [Franco et al. (2019)](https://pmc.ncbi.nlm.nih.gov/articles/PMC6690503)
/// compared seven intervals that use an effective size by simulation, and recommend this one.
#[must_use]
pub(crate) fn wilson(share: &ClusteredShare) -> Option<Interval> {
    let n = effective(share)?;
    let p = share.hits / share.total;
    let z = Normal::standard().inverse_cdf(UPPER_TAIL);
    let middle = (p + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let half = z / (1.0 + z * z / n) * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    // A fraction of 0 or 1 is an end of its interval; rounding would miss it slightly.
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

/// Returns the effective sample size, at most the number of streams.
///
/// It is the number of streams divided by the design effect: the variance of the fraction as a
/// ratio of sums over sources, divided by the variance of as many independent streams (Kish 1965).
/// Quantiles of Student's t correct it for few sources (Korn and Graubard 1998, *Survey
/// Methodology* 24, 193–201). A fraction of 0 or 1 shows no variance; each source then counts as a
/// single stream, as if all its answers were alike (a correlation of 1 within a source), which errs
/// towards a wide interval.
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
        // Some sources land in the same random group by chance. On average this raises the sum of
        // squares over that of the sources alone by `sum(x_i * x_j for i != j) / groups`, where x
        // is the number of streams of a source; the formula below subtracts that.
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

/// Returns the upper quantile of Student's t with `freedom` degrees of freedom.
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
