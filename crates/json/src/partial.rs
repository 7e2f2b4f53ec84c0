//! The arguments so far, as JSON that user interfaces can show.

use event::{MAX_DEPTH, space};

/// The best reading of the arguments so far: `text` up to the last byte that is certain, with its
/// open brackets and quotes closed.
///
/// A string value is shown up to its last whole character. A number, a word or a key that may still
/// grow is left out, and so is a key without a value. The reading ends where `text` stops being
/// JSON. For a text that does not begin with a bracket it is `{}`. Takes one pass over the text.
pub fn best_reading(text: &str) -> String {
    let b = text.as_bytes();
    let mut i = space(b, 0);
    let start = i;
    // The closing brackets that are due, innermost last; then the last certain place: its offset,
    // depth and closing quote.
    let mut due: Vec<u8> = Vec::new();
    let mut sure = 0;
    let mut sure_depth = 0;
    let mut tail = "";
    if !matches!(b.get(i), Some(b'{' | b'[')) {
        return "{}".to_owned();
    }
    loop {
        // A value begins at `i`.
        match b.get(i) {
            Some(&open @ (b'{' | b'[')) if due.len() < MAX_DEPTH as usize => {
                due.push(if open == b'{' { b'}' } else { b']' });
                i += 1;
                (sure, sure_depth) = (i, due.len());
                i = space(b, i);
                if b.get(i) != due.last() {
                    if open == b'{' {
                        let Some(value) = key(b, i) else { break };
                        i = value;
                    }
                    continue;
                }
            }
            Some(b'"') => match string(b, i) {
                StringEnd::Closed(end) => {
                    i = end;
                    (sure, sure_depth) = (i, due.len());
                }
                StringEnd::Open(end) => {
                    (sure, sure_depth, tail) = (end, due.len(), "\"");
                    break;
                }
            },
            Some(_) => match scalar(b, i) {
                Some(end) => {
                    i = end;
                    (sure, sure_depth) = (i, due.len());
                }
                None => break,
            },
            None => break,
        }
        // A value ended before `i`, or a bracket without content is open.
        let next = loop {
            i = space(b, i);
            match (b.get(i), due.last()) {
                (Some(b','), Some(b'}')) => break key(b, space(b, i + 1)),
                (Some(b','), Some(_)) => break Some(space(b, i + 1)),
                (Some(c), Some(close)) if c == close => {
                    due.pop();
                    i += 1;
                    (sure, sure_depth) = (i, due.len());
                }
                _ => break None,
            }
        };
        match next {
            Some(value) => i = value,
            None => break,
        }
    }
    let mut out = String::with_capacity(sure - start + tail.len() + sure_depth);
    out.push_str(&text[start..sure]);
    out.push_str(tail);
    out.extend(due[..sure_depth].iter().rev().map(|c| char::from(*c)));
    out
}

/// Reads a key and its colon; returns where the value begins.
fn key(b: &[u8], at: usize) -> Option<usize> {
    if b.get(at) != Some(&b'"') {
        return None;
    }
    let StringEnd::Closed(end) = string(b, at) else {
        return None;
    };
    let colon = space(b, end);
    (b.get(colon) == Some(&b':')).then(|| space(b, colon + 1))
}

/// Reads a word, or a number that another byte follows, so that it cannot grow; returns its end.
fn scalar(b: &[u8], at: usize) -> Option<usize> {
    let end = b[at..]
        .iter()
        .position(|c| b" \t\r\n,]}".contains(c))
        .map_or(b.len(), |n| at + n);
    let word = &b[at..end];
    let whole = [&b"true"[..], b"false", b"null"].contains(&word)
        || (end < b.len()
            && std::str::from_utf8(word)
                .is_ok_and(|w| event::Raw::parse(w).is_ok_and(|v| v.f64().is_some())));
    whole.then_some(end)
}

enum StringEnd {
    /// The string is closed; the index after the quote.
    Closed(usize),
    /// The string is open; the end of what can be shown.
    Open(usize),
}

fn string(b: &[u8], at: usize) -> StringEnd {
    let mut i = at + 1;
    // The offset of a high surrogate whose other half has not come.
    let mut half = None;
    loop {
        match b.get(i) {
            Some(b'"') => return StringEnd::Closed(i + 1),
            Some(b'\\') => {
                let length = match b.get(i + 1) {
                    Some(b'u') => 6,
                    Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
                    _ => return StringEnd::Open(half.unwrap_or(i)),
                };
                let unit = match b.get(i + 2..i + 6) {
                    _ if length == 2 => 0,
                    Some(hex) if hex.iter().all(u8::is_ascii_hexdigit) => hex
                        .iter()
                        .fold(0, |n, c| n * 16 + char::from(*c).to_digit(16).unwrap_or(0)),
                    _ => return StringEnd::Open(half.unwrap_or(i)),
                };
                half = (0xd800..0xdc00).contains(&unit).then_some(i);
                i += length;
            }
            Some(0..0x20) | None => return StringEnd::Open(half.unwrap_or(i)),
            Some(_) => {
                half = None;
                i += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    #[test]
    fn readings() {
        for (text, want) in [
            ("", "{}"),
            (" ", "{}"),
            ("\"x", "{}"),
            ("nul", "{}"),
            ("{", "{}"),
            ("{\"ci", "{}"),
            ("{\"city\"", "{}"),
            ("{\"city\":", "{}"),
            ("{\"city\":\"Par", "{\"city\":\"Par\"}"),
            ("{\"city\":\"Par\\", "{\"city\":\"Par\"}"),
            ("{\"city\":\"Par\\u00e", "{\"city\":\"Par\"}"),
            ("{\"city\":\"P\\ud83d\\ude0", "{\"city\":\"P\"}"),
            (
                "{\"city\":\"P\\ud83d\\ude00",
                "{\"city\":\"P\\ud83d\\ude00\"}",
            ),
            ("{\"city\":\"Paris\",\"n\":12", "{\"city\":\"Paris\"}"),
            ("{\"n\":12 ", "{\"n\":12}"),
            ("{\"n\":[1,2,", "{\"n\":[1,2]}"),
            ("{\"n\":[1,2", "{\"n\":[1]}"),
            ("{\"n\":[{\"a\":tru", "{\"n\":[{}]}"),
            ("{\"n\":[{\"a\":true", "{\"n\":[{\"a\":true}]}"),
            ("{\"n\":{}} junk", "{\"n\":{}}"),
            ("{\"n\":NaN, \"a\":1}", "{}"),
            ("{\"a\":1,}", "{\"a\":1}"),
            ("[1, \"x", "[1, \"x\"]"),
        ] {
            assert_eq!(best_reading(text), want, "{text}");
        }
        assert!(event::Raw::parse(&best_reading(&"[".repeat(100_000))).is_ok());
    }

    /// Whether `part` can be a reading of a beginning of `whole`.
    fn begins(part: &Value, whole: &Value) -> bool {
        match (part, whole) {
            (Value::String(p), Value::String(w)) => w.starts_with(p.as_str()),
            (Value::Array(p), Value::Array(w)) => {
                p.len() <= w.len() && p.iter().zip(w).all(|(p, w)| begins(p, w))
            }
            (Value::Object(p), Value::Object(w)) => {
                p.len() <= w.len()
                    && p.iter()
                        .zip(w)
                        .all(|((pk, p), (wk, w))| pk == wk && begins(p, w))
            }
            _ => part == whole,
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-1e9..1e9).prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-z\\\\\"\n\u{1f600}é]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map("[a-z\\\\\"é]{0,4}", inner, 0..4)
                    .prop_map(|m| Value::Object(m.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_reading_of_a_prefix_is_a_prefix(inner in value(), pretty in any::<bool>()) {
            let whole = serde_json::json!({ "v": inner });
            let text = if pretty { serde_json::to_string_pretty(&whole) } else { serde_json::to_string(&whole) }.unwrap();
            for (at, _) in text.char_indices() {
                let part: Value = serde_json::from_str(&best_reading(&text[..at])).unwrap();
                prop_assert!(begins(&part, &whole), "{} of {}", part, &text[..at]);
            }
            prop_assert_eq!(best_reading(&text), text);
        }

        #[test]
        fn any_text_has_a_reading(text in "[{}\\[\\],:\"\\\\u1d8tre. \\né-]{0,40}") {
            prop_assert!(event::Raw::parse(&best_reading(&text)).is_ok(), "{}", best_reading(&text));
        }
    }
}
