//! Counts the JSON values in a body. Each value takes roughly a hundred bytes of memory once
//! parsed, so a body with many small values takes up to 70 times its length.

/// The maximum number of JSON values in a request. A long agent conversation has about ten
/// thousand.
pub(crate) const MOST_VALUES: usize = 250_000;

/// Whether `json` has more values than [`MOST_VALUES`]. Counts commas and opening brackets outside
/// strings, so `json` may be invalid.
pub(crate) fn has_too_many(json: &[u8]) -> bool {
    // Each value takes at least one byte after a comma, bracket or colon.
    if json.len() < MOST_VALUES {
        return false;
    }
    values(json) > MOST_VALUES
}

/// Counts commas and opening brackets outside strings.
fn values(json: &[u8]) -> usize {
    let (mut values, mut in_string, mut at) = (0, false, 0);
    while at < json.len() {
        match json[at] {
            b'"' => in_string = !in_string,
            b'\\' if in_string => at += 1,
            b',' | b'[' | b'{' if !in_string => values += 1,
            _ => {}
        }
        at += 1;
    }
    values
}

/// Estimates the memory in bytes that a parsed request body takes: its text plus an overhead for
/// each value.
pub fn inbound_size(json: &[u8]) -> usize {
    json.len() + values(json) * VALUE
}

/// The memory overhead of one value and its slot in a list or object, in bytes.
const VALUE: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_strings() {
        let list = |value: &str, count: usize| format!("[{}]", vec![value; count].join(","));
        assert!(has_too_many(list("1", MOST_VALUES + 1).as_bytes()));
        assert!(has_too_many(list("[]", MOST_VALUES / 2 + 1).as_bytes()));
        assert!(!has_too_many(list("1", MOST_VALUES).as_bytes()));
        assert!(!has_too_many(
            list(r#"",,[{\",,""#, MOST_VALUES / 2).as_bytes()
        ));
        assert!(!has_too_many(
            format!("\"{}\"", "{".repeat(2 * MOST_VALUES)).as_bytes()
        ));
    }
}

/// Replaces each unpaired surrogate escape with U+FFFD. Returns `None` if all escapes are paired.
/// `JSON.stringify` and Python's `json.dumps` write such escapes for text that was cut in the
/// middle of an emoji, and serde_json rejects them.
pub(crate) fn without_halves(json: &[u8]) -> Option<Vec<u8>> {
    const REPLACEMENT: &[u8] = b"\\ufffd";
    let mut out: Option<Vec<u8>> = None;
    let (mut kept, mut at) = (0, 0);
    while let Some(next) = json[at..].iter().position(|byte| *byte == b'\\') {
        at += next;
        at += match (unit(&json[at..]), json.get(at + 6..).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                let out = out.get_or_insert_with(|| Vec::with_capacity(json.len()));
                out.extend_from_slice(&json[kept..at]);
                out.extend_from_slice(REPLACEMENT);
                kept = at + 6;
                6
            }
            (Some(_), _) => 6,
            (None, _) => 2,
        };
        at = at.min(json.len());
    }
    let mut out = out?;
    out.extend_from_slice(&json[kept..]);
    Some(out)
}

/// Parses a `\uXXXX` escape at the start of `json` and returns its code unit.
fn unit(json: &[u8]) -> Option<u16> {
    let digits = json.strip_prefix(b"\\u")?.get(..4)?;
    let digits = std::str::from_utf8(digits)
        .ok()
        .filter(|digits| !digits.starts_with('+'))?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod surrogates_tests {
    use super::*;

    #[test]
    fn halves_alone_are_replaced_and_pairs_stay() {
        for (json, want) in [
            (r#""x \ud83d y""#, Some(r#""x \ufffd y""#)),
            (r#""\uD83D\ude00 \uDE00""#, Some(r#""\uD83D\ude00 \ufffd""#)),
            (r#""\ud83d\ud83d\ude00""#, Some(r#""\ufffd\ud83d\ude00""#)),
            (r#""\ud83d\n\ude00""#, Some(r#""\ufffd\n\ufffd""#)),
            (r#""\ude00\ud83d""#, Some(r#""\ufffd\ufffd""#)),
            (r#"{"\ud83d":"\\\ud83d"}"#, Some(r#"{"\ufffd":"\\\ufffd"}"#)),
            (r#""\\ud83d \u00e9 \ud83d\ude00""#, None),
            (r#""\ud83"#, None),
            (r#""\u+d83d""#, None),
            (r#""\ud83"", "\"#, None),
            ("\\", None),
            ("", None),
        ] {
            let got = without_halves(json.as_bytes()).map(|json| String::from_utf8(json).unwrap());
            assert_eq!(got.as_deref(), want, "{json}");
        }
    }
}
