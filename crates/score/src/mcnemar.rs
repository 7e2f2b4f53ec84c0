//! McNemar's exact test for two checkers, or two runs of one checker, on the same streams.

use statrs::distribution::{Binomial, Discrete};

/// Returns the two-sided p-value of McNemar's exact test: the probability that `broken + fixed`
/// streams split at least this unevenly if each is equally likely to break or to be fixed. It
/// ranges from 0 to 1, and is 1 if nothing changed.
///
/// The test is exact (binomial), because the usual chi-squared approximation is wrong for the few
/// changes that a CI gate sees (<https://en.wikipedia.org/wiki/McNemar%27s_test#Variations>).
pub fn p_value(broken: u64, fixed: u64) -> f64 {
    let changed = broken.saturating_add(fixed);
    let fewer = broken.min(fixed);
    // `new` fails only for a probability outside 0 to 1.
    let Ok(fair) = Binomial::new(0.5, changed) else {
        return 1.0;
    };
    // The tail is summed from its largest term, because the library's cumulative function is off by
    // several percent from about 10^5 on. The terms fall faster than those of a normal
    // distribution, so only a few times the square root of `changed` terms are added.
    let mut tail = 1.0;
    let mut term = 1.0;
    for place in (1..=fewer).rev() {
        term *= ratio(place, changed - place + 1);
        tail += term;
        if term < tail * f64::EPSILON {
            break;
        }
    }
    (2.0 * fair.ln_pmf(fewer).exp() * tail).min(1.0)
}

/// Returns the quotient of two counts.
#[expect(
    clippy::cast_precision_loss,
    reason = "a corpus has fewer than 2^53 streams"
)]
fn ratio(above: u64, below: u64) -> f64 {
    above as f64 / below as f64
}

#[cfg(test)]
mod tests {
    use super::p_value;

    #[test]
    fn agrees_with_sums_of_binomial_coefficients() {
        for changed in 0..=60_u64 {
            // The row of Pascal's triangle, exact in 64 bits up to 60.
            let mut row = vec![1_u64];
            for place in 0..changed {
                let next = u128::from(row[row.len() - 1]) * u128::from(changed - place)
                    / u128::from(place + 1);
                row.push(u64::try_from(next).unwrap());
            }
            for broken in 0..=changed {
                let fewer = usize::try_from(broken.min(changed - broken)).unwrap();
                let tail: u128 = row[..=fewer].iter().map(|&ways| u128::from(ways)).sum();
                #[expect(clippy::cast_precision_loss, reason = "compared with a tolerance")]
                let exact =
                    (2.0 * tail as f64 / 2_f64.powi(i32::try_from(changed).unwrap())).min(1.0);
                let p = p_value(broken, changed - broken);
                assert!(
                    (p - exact).abs() <= 1e-9 * exact.max(1e-3),
                    "{broken} of {changed}: {p} and {exact}"
                );
            }
        }
    }

    #[test]
    fn large_counts_are_probabilities() {
        assert!(p_value(0, 10_000_000) < 1e-300);
        assert!((p_value(5_000_000, 5_000_000) - 1.0).abs() < 1e-9);
        // The normal approximation with continuity correction, which is this accurate for so many
        // streams.
        let p = p_value(4_995_000, 5_005_000);
        assert!((p - 0.001_567_103).abs() < 1e-8, "{p}");
    }
}
