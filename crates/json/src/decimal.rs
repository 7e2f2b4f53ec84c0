//! The exact decimal value of a number; an `f64` holds only 17 digits.

use std::cmp::Ordering;

/// The largest exponent of ten.
const FARTHEST: i64 = 100_000_000_000_000_000;

/// A normalized decimal number: `1`, `1.0` and `10e-1` have the same representation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    is_negative: bool,
    /// The digits without leading and trailing zeros; empty for zero.
    digits: String,
    /// The exponent of ten of the last digit; 0 for zero.
    exponent: i64,
}

impl Decimal {
    /// Parses a JSON number. An exponent beyond ±10^17 is clamped to ±10^17, see
    /// [`Decimal::is_exact`].
    pub(crate) fn new(text: &str) -> Decimal {
        let (is_negative, text) = text
            .strip_prefix('-')
            .map_or((false, text), |rest| (true, rest));
        let (mantissa, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        let significant = digits.trim_end_matches('0');
        let end = (digits.len() - significant.len()) as i64 - fraction.len() as i64;
        let power = power.parse().unwrap_or(if power.starts_with('-') {
            -FARTHEST
        } else {
            FARTHEST
        });
        let significant = significant.trim_start_matches('0');
        // Zero has neither a sign nor an exponent.
        let is_zero = significant.is_empty();
        Decimal {
            is_negative: is_negative && !is_zero,
            digits: significant.to_owned(),
            exponent: if is_zero {
                0
            } else {
                power.clamp(-FARTHEST, FARTHEST) + end
            },
        }
    }

    /// Whether the value is exact: its exponent is not close to ±10^17, where exponents are
    /// clamped.
    pub(crate) fn is_exact(&self) -> bool {
        self.exponent.abs() < FARTHEST / 10
    }

    /// Whether the number is an integer.
    pub(crate) fn is_whole(&self) -> bool {
        self.exponent >= 0
    }

    /// Whether the number is an integer multiple of `divisor`. Returns `None` if the divisor is not
    /// positive, has more than 18 digits or an exponent beyond ±400, or if the number is beyond the
    /// range of an `f64`.
    pub(crate) fn is_multiple_of(&self, divisor: &Decimal) -> Option<bool> {
        let is_small = !divisor.is_negative
            && (1..=18).contains(&divisor.digits.len())
            && divisor.exponent.abs() <= 400;
        if !is_small {
            return None;
        }
        let by: u128 = divisor.digits.parse().ok()?;
        let zeros = self.exponent - divisor.exponent;
        if self.digits.is_empty() {
            return Some(true);
        }
        // The last digit is not 0, so the digits cannot be divided by a power of ten.
        if zeros < 0 {
            return Some(false);
        }
        // A number within the range of an f64 has fewer zeros.
        let zeros = usize::try_from(zeros).ok().filter(|n| *n <= 1_000)?;
        let digits = self.digits.bytes().map(|digit| u128::from(digit - b'0'));
        let rest = digits
            .chain(std::iter::repeat_n(0, zeros))
            .fold(0, |rest: u128, digit| (rest * 10 + digit) % by);
        Some(rest == 0)
    }

    /// Compares the absolute values.
    fn magnitude(&self, other: &Decimal) -> Ordering {
        let first = |n: &Decimal| (!n.digits.is_empty(), n.exponent + n.digits.len() as i64);
        first(self)
            .cmp(&first(other))
            .then_with(|| self.digits.cmp(&other.digits))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        match (self.is_negative, other.is_negative) {
            (false, false) => self.magnitude(other),
            (true, true) => other.magnitude(self),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Decimal {
        Decimal::new(text)
    }

    #[test]
    fn numbers_are_ordered_by_every_digit() {
        let rising = [
            "-1e300",
            "-12345678901234567890123",
            "-12345678901234567890122.9",
            "-10",
            "-9.5",
            "-0.001",
            "0",
            "1e-400",
            "0.1",
            "0.10000000000000000001",
            "9",
            "9.5",
            "10",
            "9007199254740992",
            "9007199254740993",
            "1e300",
        ];
        for (i, a) in rising.iter().enumerate() {
            for (j, b) in rising.iter().enumerate() {
                assert_eq!(of(a).cmp(&of(b)), i.cmp(&j), "{a} {b}");
            }
        }
        for (a, b) in [
            ("1", "1.0"),
            ("1", "10e-1"),
            ("-0.0", "0e5"),
            ("12e3", "1.2E+4"),
        ] {
            assert_eq!(of(a), of(b));
        }
        let tiny = of("1e-99999999999999999999");
        assert!(tiny < of("1e-400") && tiny > of("0") && !tiny.is_exact());
        assert_eq!(of("0e99999999999999999999"), of("0"));
    }

    #[test]
    fn whole_numbers_and_multiples() {
        for (text, is_whole) in [
            ("0.0", true),
            ("1.50", false),
            ("100e-2", true),
            ("1e-1", false),
        ] {
            assert_eq!(of(text).is_whole(), is_whole, "{text}");
        }
        for (a, b, is_multiple) in [
            ("0", "7", Some(true)),
            ("0.0075", "0.0001", Some(true)),
            ("0.00751", "0.0001", Some(false)),
            ("4.35", "0.01", Some(true)),
            ("-21", "7", Some(true)),
            ("12345678901234567890123", "3", Some(true)),
            ("12345678901234567890124", "3", Some(false)),
            ("1e308", "7", Some(false)),
            ("7e308", "7", Some(true)),
            ("1e308", "123456789", Some(false)),
            ("1", "0", None),
            ("1", "-1", None),
            ("1", "1234567890123456789", None),
            ("1", "1e500", None),
        ] {
            assert_eq!(of(a).is_multiple_of(&of(b)), is_multiple, "{a} {b}");
        }
    }
}
