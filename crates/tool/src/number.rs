//! Numbers of JSON by their value: `1000`, `1000.0` and `1e3` are one number.

use event::Raw;
use std::borrow::Cow;

/// Whether a value is a number.
pub fn is_number(value: Raw<'_>) -> bool {
    value
        .text()
        .starts_with(|c: char| c == '-' || c.is_ascii_digit())
}

/// The most digits of a whole number that is written out. No larger number is accepted as an
/// argument: it has no double.
const DIGITS: i64 = 400;

/// A number in the one spelling that all texts of its value share: a whole number, however large,
/// as its digits, any other one as the double that programs make of it. `-0` is `0`. `text` is a
/// number of JSON.
pub fn by_value(text: &str) -> Cow<'_, str> {
    let is_plain = |digits: &str| {
        digits == "0" || (!digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit()))
    };
    let digits = text.strip_prefix('-').unwrap_or(text);
    if text != "-0" && !digits.is_empty() && is_plain(digits) {
        return Cow::Borrowed(text);
    }
    whole(text)
        .or_else(|| as_double(text))
        .map_or(Cow::Borrowed(text), Cow::Owned)
}

/// A number as the double that many programs make of it, which has 53 bits, written out without an
/// exponent.
pub fn as_double(text: &str) -> Option<String> {
    let double: f64 = text.parse().ok()?;
    // The sum makes 0 of -0.
    double.is_finite().then(|| format!("{}", double + 0.0))
}

/// The digits of a whole number; `None` if it has a fraction, or is too long.
fn whole(text: &str) -> Option<String> {
    let (sign, rest) = text
        .strip_prefix('-')
        .map_or(("", text), |rest| ("-", rest));
    let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{before}{after}");
    let significant = digits.trim_start_matches('0').trim_end_matches('0');
    if significant.is_empty() {
        return Some("0".to_owned());
    }
    let leading = digits.len() - digits.trim_start_matches('0').len();
    // How many digits are before the point. An exponent of more digits than a number of this
    // machine is either too long or a fraction.
    let places = i64::try_from(before.len()).ok()? - i64::try_from(leading).ok()?;
    let places = places.checked_add(exponent.parse().ok()?)?;
    let zeros = places.checked_sub(i64::try_from(significant.len()).ok()?)?;
    if zeros < 0 || places > DIGITS {
        return None;
    }
    Some(format!(
        "{sign}{significant}{}",
        "0".repeat(usize::try_from(zeros).ok()?)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_value_has_one_text() {
        for (want, spellings) in [
            (
                "1000",
                &[
                    "1000",
                    "1000.0",
                    "1e3",
                    "1E+3",
                    "10.00e2",
                    "0.001e6",
                    "100000e-2",
                    "1000.0e0",
                ][..],
            ),
            (
                "0",
                &[
                    "0",
                    "-0",
                    "0.0",
                    "-0.0e5",
                    "0e99999999999999999999",
                    "1e-400",
                    "-1e-99999",
                ],
            ),
            ("-12", &["-12", "-1.2e1", "-12.000"]),
            (
                "0.5",
                &["0.5", "5e-1", "0.50", "0.5000000000000000000000001"],
            ),
            ("-0.1", &["-0.1", "-1e-1"]),
            (
                "23456789012345678901234",
                &[
                    "23456789012345678901234",
                    "23456789012345678901234.0",
                    "2.3456789012345678901234e22",
                ],
            ),
            (
                "10000000000000000000000",
                &["1e22", "10000000000000000000000"],
            ),
        ] {
            for text in spellings {
                assert_eq!(by_value(text), want, "{text}");
            }
        }
        assert_eq!(by_value("1e308").len(), 309);
        assert_ne!(by_value("9007199254740993"), by_value("9007199254740992"));
        assert_eq!(as_double("9007199254740993"), as_double("9007199254740992"));
        // A number that no program reads stays as it is.
        for odd in ["1e999", "1e99999999999999999999"] {
            assert_eq!(by_value(odd), odd);
        }
    }
}
