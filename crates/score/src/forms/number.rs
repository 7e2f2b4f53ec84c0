//! Numbers as people read them.

/// What is written for a value that is not defined, such as the precision of a checker that never
/// answers yes.
const UNDEFINED: &str = "–";

/// `1234567` as `1,234,567`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A share as percent with one digit: `93.1 %`. A share that is close to a whole, or to nothing,
/// but is not, gets as many digits as show that.
pub fn percent(share: Option<f64>) -> String {
    let Some(share) = share.filter(|share| share.is_finite()) else {
        return UNDEFINED.to_owned();
    };
    let percent = share * 100.0;
    for digits in 1..5 {
        let text = format!("{percent:.digits$}");
        let is_false = (share < 1.0 && text.starts_with("100."))
            || (share > 0.0 && text.trim_start_matches(['0', '.']).is_empty());
        if !is_false {
            return format!("{text}\u{a0}%");
        }
    }
    // Closer than any digit that people read.
    if share < 0.5 {
        "< 0.0001\u{a0}%".to_owned()
    } else {
        "> 99.9999\u{a0}%".to_owned()
    }
}

/// Characters of text: `1 character`, `1,234 characters`.
pub fn characters(number: u64) -> String {
    format!(
        "{} character{}",
        count(number),
        if number == 1 { "" } else { "s" }
    )
}

/// A number from -1 to 1 with three digits.
pub fn coefficient(value: Option<f64>) -> String {
    match value.filter(|value| value.is_finite()) {
        Some(value) => format!("{value:.3}").replace('-', "\u{2212}"),
        None => UNDEFINED.to_owned(),
    }
}

/// A count that may be undefined.
pub fn maybe_count(value: Option<u64>) -> String {
    value.map_or_else(|| UNDEFINED.to_owned(), count)
}

/// Milliseconds: `0.4 ms`, `12 ms`, `1.5 s`.
pub fn milliseconds(ms: Option<f64>) -> String {
    match ms.filter(|ms| ms.is_finite()) {
        Some(ms) if ms >= 1_000.0 => format!("{:.1}\u{a0}s", ms / 1_000.0),
        Some(ms) if ms >= 10.0 || ms == 0.0 => format!("{ms:.0}\u{a0}ms"),
        Some(ms) => format!("{ms:.1}\u{a0}ms"),
        None => UNDEFINED.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_groups_of_three() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(count(number), text);
        }
    }

    #[test]
    fn a_share_that_is_not_whole_never_reads_as_whole() {
        for (share, text) in [
            (Some(1.0), "100.0\u{a0}%"),
            (Some(0.9996), "99.96\u{a0}%"),
            (Some(0.99999), "99.999\u{a0}%"),
            (Some(1.0 - 1e-9), "> 99.9999\u{a0}%"),
            (Some(0.0), "0.0\u{a0}%"),
            (Some(0.0001), "0.01\u{a0}%"),
            (Some(1e-9), "< 0.0001\u{a0}%"),
            (Some(0.871), "87.1\u{a0}%"),
            (None, "–"),
            (Some(f64::NAN), "–"),
        ] {
            assert_eq!(percent(share), text, "{share:?}");
        }
    }

    #[test]
    fn what_is_undefined_is_a_dash() {
        assert_eq!(
            [
                coefficient(None),
                maybe_count(None),
                milliseconds(Some(f64::INFINITY))
            ],
            ["–", "–", "–"]
        );
        assert_eq!(
            [
                coefficient(Some(-0.25)),
                milliseconds(Some(0.42)),
                milliseconds(Some(1_540.0))
            ],
            ["−0.250", "0.4\u{a0}ms", "1.5\u{a0}s"]
        );
    }
}
