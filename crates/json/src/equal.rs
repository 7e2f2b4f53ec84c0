//! Whether two JSON values are equal, whatever they are written like.

use event::Raw;
use std::collections::HashMap;

/// Whether `a` and `b` are the same value. The order of members does not count, and of a repeated
/// key the last member does. Numbers are equal by their value: `1`, `1.0` and `10e-1` are one
/// number, with every digit, and numbers with a fraction or an exponent also if they are the same
/// 64-bit floating point number. `true` is not 1.
pub fn equal(a: Raw<'_>, b: Raw<'_>) -> bool {
    if a.text() == b.text() {
        return true;
    }
    if a.is_str() && b.is_str() {
        a.str() == b.str()
    } else if a.is_object() && b.is_object() {
        objects_equal(a, b)
    } else if a.is_array() && b.is_array() {
        let (mut a, mut b) = (a.items(), b.items());
        loop {
            match (a.next(), b.next()) {
                (Some(a), Some(b)) if equal(a, b) => {}
                (None, None) => return true,
                _ => return false,
            }
        }
    } else {
        is_number(a) && is_number(b) && numbers_equal(a.text(), b.text())
    }
}

fn objects_equal(a: Raw<'_>, b: Raw<'_>) -> bool {
    let [members, others] = [a, b].map(|object| object.entries().collect::<HashMap<_, _>>());
    members.len() == others.len()
        && members
            .iter()
            .all(|(key, value)| others.get(key).is_some_and(|other| equal(*value, *other)))
}

fn is_number(value: Raw<'_>) -> bool {
    value
        .text()
        .starts_with(|c: char| c == '-' || c.is_ascii_digit())
}

fn numbers_equal(a: &str, b: &str) -> bool {
    let is_integer = |text: &str| !text.contains(['.', 'e', 'E']);
    match (decimal(a), decimal(b)) {
        (Some(a), Some(b)) if a == b => true,
        _ if is_integer(a) && is_integer(b) => false,
        _ => {
            matches!((a.parse::<f64>(), b.parse::<f64>()), (Ok(a), Ok(b)) if a == b && a.is_finite())
        }
    }
}

/// Sign, digits without zeros at either end, and the exponent of the last digit. `None` if the
/// exponent has no place in an `i64`.
fn decimal(text: &str) -> Option<(bool, String, i64)> {
    let (is_negative, text) = text
        .strip_prefix('-')
        .map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let exponent = exponent
        .parse::<i64>()
        .ok()?
        .checked_sub(fraction.len() as i64)?;
    let significant = digits.trim_end_matches('0');
    let exponent = exponent.checked_add((digits.len() - significant.len()) as i64)?;
    match significant.trim_start_matches('0') {
        // Zero has neither a sign nor an exponent.
        "" => Some((false, String::new(), 0)),
        significant => Some((is_negative, significant.to_owned(), exponent)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_equal_whatever_they_are_written_like() {
        let same = |a: &str, b: &str| equal(Raw::parse(a).unwrap(), Raw::parse(b).unwrap());
        for (a, b) in [
            ("1", "1.0"),
            ("1", "10e-1"),
            ("100", "1e2"),
            ("-0", "0.00"),
            ("0.1", "0.10000000000000000001"),
            ("12345678901234567890123", "12345678901234567890123.0"),
            (
                r#"{"a":1,"b":[{"c":null}]}"#,
                r#"{ "b" : [ { "c" : null } ], "a" : 1.0 }"#,
            ),
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
            (r#""A\n""#, r#""\u0041\u000a""#),
            (r#"{"\u0061":1}"#, r#"{"a":1}"#),
        ] {
            assert!(same(a, b) && same(b, a), "{a} {b}");
        }
        for (a, b) in [
            ("1", "true"),
            ("1", "\"1\""),
            ("1", "-1"),
            ("12345678901234567890123", "12345678901234567890124"),
            ("1e999", "2e999"),
            ("1e99999999999999999999", "2e99999999999999999999"),
            ("[1,2]", "[2,1]"),
            ("[1]", "[1,1]"),
            (r#"{"a":1}"#, r#"{"a":1,"b":2}"#),
            (r#"{"a":null}"#, "{}"),
            ("[]", "{}"),
            ("null", "false"),
        ] {
            assert!(!same(a, b) && !same(b, a), "{a} {b}");
        }
    }
}
