//! Canonical JSON: a single text for all spellings of a value, so that values can be compared and
//! hashed.

use event::{Raw, push_string};
use sha2::{Digest, Sha256};
use std::borrow::Cow;

/// A SHA-256 digest.
pub type Hash = [u8; 32];

/// Returns the canonical text of a validated value: no white space, object members sorted by key,
/// and one way to escape strings. Numbers keep their digits, so `1` and `1.0` differ. Keys must not
/// repeat (see [`json::check`]).
pub(crate) fn canonical(value: Raw<'_>) -> String {
    text(value, Numbers::Digits, None)
}

/// Like [`canonical`], but formatted for people: on several lines, indented by two spaces per
/// level.
pub fn pretty(value: Raw<'_>) -> String {
    text(value, Numbers::Digits, Some(0))
}

/// Like [`canonical`], but compares what a tool is asked to do: equal numbers have the same text
/// (see [`number_text`]), and `null` members are omitted.
pub(crate) fn by_value(value: Raw<'_>) -> String {
    text(value, Numbers::Value, None)
}

/// How numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Numbers {
    /// By their digits; `null` members are kept.
    Digits,
    /// By their value; `null` members are omitted.
    Value,
}

/// Returns the text of `value`. `depth` is the indentation level, or `None` to write everything on
/// one line.
fn text(value: Raw<'_>, numbers: Numbers, depth: Option<usize>) -> String {
    let mut out = Vec::with_capacity(value.text().len());
    push(&mut out, value, numbers, depth);
    String::from_utf8(out).unwrap_or_default()
}

/// Appends `value`. Values nest at most 128 deep ([`event::MAX_DEPTH`]), so the recursion is
/// bounded.
fn push(out: &mut Vec<u8>, value: Raw<'_>, numbers: Numbers, depth: Option<usize>) {
    if value.is_object() {
        let is_left_out = |member: Raw<'_>| numbers == Numbers::Value && member.is_null();
        let mut members: Vec<_> = value
            .entries()
            .filter(|(_, member)| !is_left_out(*member))
            .collect();
        members.sort_by(|a, b| a.0.cmp(&b.0));
        block(out, b"{}", depth, members, |out, (key, member), depth| {
            push_string(out, &key);
            out.extend_from_slice(if depth.is_some() { b": " } else { b":" });
            push(out, member, numbers, depth);
        });
    } else if value.is_array() {
        let items = value.items().collect();
        block(out, b"[]", depth, items, |out, item, depth| {
            push(out, item, numbers, depth);
        });
    } else if let Some(text) = value.str() {
        push_string(out, &text);
    } else if numbers == Numbers::Value && is_number(value) {
        out.extend_from_slice(number_text(value.text()).as_bytes());
    } else {
        out.extend_from_slice(value.text().as_bytes());
    }
}

/// Writes the items between the opening and the closing character in `marks`.
fn block<T>(
    out: &mut Vec<u8>,
    marks: &[u8; 2],
    depth: Option<usize>,
    items: Vec<T>,
    mut write: impl FnMut(&mut Vec<u8>, T, Option<usize>),
) {
    let begin_line = |out: &mut Vec<u8>, depth: Option<usize>| {
        if let Some(depth) = depth {
            out.push(b'\n');
            out.extend(b"  ".repeat(depth));
        }
    };
    let inner = depth.map(|depth| depth + 1);
    let outer = depth.filter(|_| !items.is_empty());
    out.push(marks[0]);
    for (n, item) in items.into_iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        begin_line(out, inner);
        write(out, item, inner);
    }
    begin_line(out, outer);
    out.push(marks[1]);
}

/// Returns the digest of several texts. The length of each text is hashed before the text, so that
/// two different lists never hash the same bytes.
pub(crate) fn digest<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> Hash {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    hash.finalize().into()
}

/// Returns the plain SHA-256 digest of `bytes`, the same as `sha256sum` prints.
pub fn sha256(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

/// Returns a digest as 64 hexadecimal digits.
pub fn hex(hash: &Hash) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

// JSON numbers compared by value: `1000`, `1000.0` and `1e3` are the same number.

/// Whether a value is a number.
pub(crate) fn is_number(value: Raw<'_>) -> bool {
    value
        .text()
        .starts_with(|c: char| c == '-' || c.is_ascii_digit())
}

/// Maximum number of digits for which a whole number is written out. A larger number overflows a
/// double, so it is never accepted as an argument.
const DIGITS: i64 = 400;

/// Returns the same spelling for every text of a number's value. A whole number is written with all
/// of its digits, any other number as the nearest double, and `-0` as `0`. `text` must be a valid
/// JSON number.
pub(crate) fn number_text(text: &str) -> Cow<'_, str> {
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

/// Returns a number as the nearest double (53 bits of precision, as many programs parse it),
/// written without an exponent. Returns `None` if the number overflows a double.
pub(crate) fn as_double(text: &str) -> Option<String> {
    let double: f64 = text.parse().ok()?;
    // Adding 0.0 turns -0 into 0.
    double.is_finite().then(|| format!("{}", double + 0.0))
}

/// Returns the digits of a whole number, or `None` if the number has a fraction or too many digits.
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
    // The number of digits before the decimal point. An exponent that overflows `i64` means that
    // the number is either too long or a fraction.
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
    fn the_same_value_has_one_text() {
        let a = Raw::parse(
            r#"{ "b" : [1.0, "\u00e9\/"], "a": {"y":null,"x":23456789012345678901234} }"#,
        )
        .unwrap();
        assert_eq!(
            canonical(a),
            r#"{"a":{"x":23456789012345678901234,"y":null},"b":[1.0,"é/"]}"#
        );
    }

    #[test]
    fn by_value_a_number_is_its_value_and_null_is_missing() {
        let text = |text: &str| by_value(Raw::parse(text).unwrap());
        let want = r#"{"a":[1,null,true],"b":{"c":1000}}"#;
        for same in [
            r#"{"a":[1.0,null,true],"b":{"c":1e3,"d":null}}"#,
            r#"{"x":null,"b":{"c":1000.00},"a":[1e0,null,true],"y":null}"#,
        ] {
            assert_eq!(text(same), want);
        }
        assert_ne!(text(r#"{"a":"1"}"#), text(r#"{"a":1}"#));
        assert_ne!(text(r#"{"a":"1.0"}"#), text(r#"{"a":"1"}"#));
    }

    #[test]
    fn lists_do_not_run_together() {
        assert_ne!(
            digest([b"ab".as_slice(), b"c"]),
            digest([b"a".as_slice(), b"bc"])
        );
        assert_eq!(hex(&digest([b"".as_slice()])).len(), 64);
    }
}

#[cfg(test)]
mod number_tests {
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
                assert_eq!(number_text(text), want, "{text}");
            }
        }
        assert_eq!(number_text("1e308").len(), 309);
        assert_ne!(
            number_text("9007199254740993"),
            number_text("9007199254740992")
        );
        assert_eq!(as_double("9007199254740993"), as_double("9007199254740992"));
        // A number that overflows a double stays unchanged.
        for odd in ["1e999", "1e99999999999999999999"] {
            assert_eq!(number_text(odd), odd);
        }
    }
}

#[cfg(test)]
mod pretty_tests {
    use super::*;

    #[test]
    fn every_member_has_a_line() {
        let text = r#"{"a":[1.50,{}],"b":{"c":"x\ny","d":[]},"e":null}"#;
        let want = "{\n  \"a\": [\n    1.50,\n    {}\n  ],\n  \"b\": {\n    \"c\": \"x\\ny\",\n    \"d\": []\n  },\n  \"e\": null\n}";
        assert_eq!(pretty(Raw::parse(text).unwrap()), want);
    }
}
