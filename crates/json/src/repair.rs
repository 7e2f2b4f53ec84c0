//! The repair gate: turns a text that is nearly JSON into an object, and lists every edit.
//!
//! A truncated text is never repaired, because a path without its end is a different path. The
//! caller must not pass a truncated text, and this module also checks that brackets and quotes are
//! closed. A repair never invents a value or an ending, and never chooses between two values.

use crate::lex::{self, PieceKind};
use crate::{JsonError, Shape, check};
use event::Raw;
use event::payload::RepairKind;
use std::ops::Range;

/// The maximum length, in bytes, of a text that is repaired.
const MAX_TEXT: usize = 1 << 20;

/// End tags that some servers' tool-call parsers leave after the arguments.
const END_TAGS: [&str; 24] = [
    "</tool_call>",
    "</tool_calls>",
    "</tool>",
    "</function>",
    "</function_call>",
    "</function_calls>",
    "</arguments>",
    "</parameter>",
    "</invoke>",
    "</s>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|call|>",
    "<|endoftext|>",
    "<|python_end|>",
    "<|tool_call_end|>",
    "<|tool_calls_section_end|>",
    "<end_of_turn>",
    "<\u{ff5c}tool\u{2581}call\u{2581}end\u{ff5c}>",
    "<\u{ff5c}tool\u{2581}calls\u{2581}end\u{ff5c}>",
    "[/TOOL_CALLS]",
    "[END_TOOL_REQUEST]",
];

/// The result of a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// A JSON object that passes [`check`].
    pub text: String,
    /// The edits from the original to the new text, in order of their offsets; see
    /// [`crate::apply`].
    pub repairs: Vec<Repair>,
}

/// Repairs `text`, which must not be truncated. `unwrap` allows an object inside one JSON string to
/// be decoded (`double_encoded`). Returns `None` if the text is already an object, or cannot become
/// an object without guessing.
pub fn repair(text: &str, unwrap: bool) -> Option<Repaired> {
    if text.len() > MAX_TEXT {
        return None;
    }
    match check(text) {
        Ok(checked) if checked.shape == Shape::String && unwrap => {
            return unwrapped(text, checked.value);
        }
        Ok(_)
        | Err(
            JsonError::DuplicateKey { .. }
            | JsonError::LoneSurrogate { .. }
            | JsonError::NumberRange { .. },
        ) => {
            return None;
        }
        Err(JsonError::Syntax(_)) => {}
    }
    if unwrap && let Some(repaired) = unwrapped_loosely(text) {
        return Some(repaired);
    }
    let mut repairs = Vec::new();
    let start = front(text, &mut repairs);
    let mut back_edits = Vec::new();
    let end = back(text, start, &mut back_edits);
    let body = &text[start..end];
    let mended = if is_object(body) {
        body.to_owned()
    } else {
        mend(body)?
    };
    repairs.extend(between(body, &mended, start));
    repairs.extend(back_edits.into_iter().rev());
    Some(Repaired {
        text: mended,
        repairs,
    })
}

fn is_object(text: &str) -> bool {
    check(text).is_ok_and(|c| c.shape == Shape::Object)
}

/// Returns the object inside a string that contains raw control characters, which JSON does not
/// allow.
fn unwrapped_loosely(text: &str) -> Option<Repaired> {
    let bare = text.trim_ascii();
    let string = match lex::pieces(bare)[..] {
        [(PieceKind::Quoted, quoted)] if quoted.starts_with('"') => {
            lex::with_valid_strings(&[(PieceKind::Quoted, quoted)])
        }
        _ => return None,
    };
    unwrapped(text, Raw::parse(&string).ok()?)
}

/// Returns the object inside a JSON string. A model that encodes its arguments twice may forget the
/// second encoding of a line feed inside a string.
fn unwrapped(text: &str, value: Raw<'_>) -> Option<Repaired> {
    let mut inner = value.str()?.into_owned();
    if !is_object(&inner) {
        inner = mend(inner.trim_ascii())?;
    }
    is_object(&inner).then(|| Repaired {
        repairs: vec![Repair {
            offset: 0,
            kind: RepairKind::DoubleEncoded,
            before: text.to_owned(),
            after: inner.clone(),
        }],
        text: inner,
    })
}

/// Skips white space and an opening code fence, and returns the offset of the rest.
fn front(text: &str, repairs: &mut Vec<Repair>) -> usize {
    let space = text.len() - text.trim_ascii_start().len();
    let mut start = space;
    if let Some(rest) = text[space..].strip_prefix("```") {
        let word = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        start = text.len() - word.trim_ascii_start().len();
    }
    if start > 0 {
        let kind = if start > space {
            RepairKind::Fence
        } else {
            RepairKind::WhiteSpace
        };
        repairs.push(Repair {
            offset: 0,
            kind,
            before: text[..start].to_owned(),
            after: String::new(),
        });
    }
    start
}

/// Removes white space, closing fences and known end tags from the end, starting with the last one,
/// and returns the offset where they begin.
fn back(text: &str, start: usize, repairs: &mut Vec<Repair>) -> usize {
    let mut end = text.len();
    loop {
        let rest = text[start..end].trim_ascii_end();
        let (kind, kept) = match rest.strip_suffix("```") {
            Some(kept) => (RepairKind::Fence, kept),
            None => match END_TAGS.iter().find_map(|tag| rest.strip_suffix(tag)) {
                Some(kept) => (RepairKind::EndTag, kept),
                None => (RepairKind::WhiteSpace, rest),
            },
        };
        let at = start + kept.trim_ascii_end().len();
        if at < end {
            repairs.push(Repair {
                offset: at,
                kind,
                before: text[at..end].to_owned(),
                after: String::new(),
            });
        }
        end = at;
        if kind == RepairKind::WhiteSpace {
            return end;
        }
    }
}

/// Repairs a text that begins with `{` and ends with the matching `}`.
fn mend(body: &str) -> Option<String> {
    // The text is a valid value with text after it: the model may have meant either.
    if Raw::parse_prefix(body).is_ok() {
        return None;
    }
    let pieces = lex::pieces(body);
    let spaced = lex::without_bare_escapes(&pieces);
    if !body.starts_with('{')
        || !lex::is_closed(&pieces)
        || spaced.iter().any(|(piece, text)| is_guess(*piece, text))
    {
        return None;
    }
    let strings = lex::with_valid_strings(&spaced);
    if is_object(&strings) {
        return Some(strings);
    }
    let options = jsonrepair_rs::RepairOptions::new().with_max_input_bytes(2 * MAX_TEXT);
    let mended = jsonrepair_rs::jsonrepair_with_options(&strings, options).ok()?;
    let nulls =
        |pieces: &[(PieceKind, &str)]| pieces.iter().filter(|(_, text)| is_null(text)).count();
    (is_object(&mended) && nulls(&lex::pieces(&mended)) <= nulls(&pieces)).then_some(mended)
}

/// Whether a piece can only become a value by guessing: `NaN`, an infinity, an ellipsis where the
/// model omitted something, or an escape before a word, which may be part of the word (`\null`).
fn is_guess(piece: PieceKind, text: &str) -> bool {
    let word = text.trim_start_matches(['-', '+']);
    piece == PieceKind::Word
        && (word.eq_ignore_ascii_case("nan")
            || word.eq_ignore_ascii_case("infinity")
            || lex::bare_escapes(word) > 0
            || text.contains("...")
            || text.contains('…'))
}

fn is_null(text: &str) -> bool {
    ["null", "none", "undefined"]
        .iter()
        .any(|w| text.eq_ignore_ascii_case(w))
}

/// One edit of a repair: `after` replaces `before`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The byte offset of `before` in the original text.
    pub offset: usize,
    /// The kind of edit.
    pub kind: RepairKind,
    /// The text that was removed; may be empty.
    pub before: String,
    /// The text that was inserted; may be empty.
    pub after: String,
}

/// Applies `repairs`, in order of their offsets, to the text they were made for. Returns `None` if
/// they do not match that text.
pub fn apply(original: &str, repairs: &[Repair]) -> Option<String> {
    let mut out = String::with_capacity(original.len());
    let mut at = 0;
    for r in repairs {
        out.push_str(original.get(at..r.offset)?);
        at = r.offset + r.before.len();
        if original.get(r.offset..at)? != r.before {
            return None;
        }
        out.push_str(&r.after);
    }
    out.push_str(original.get(at..)?);
    Some(out)
}

/// How many items ahead two sequences are searched for the place where they match again.
const WINDOW: usize = 24;
/// The maximum number of comparisons per item of both sequences; after that the rest becomes one
/// edit. This keeps the time linear for hostile texts.
const EFFORT: usize = 64;

/// Returns the edits from `old` to `new`, with offsets relative to `base`. Takes linear time: texts
/// that differ too much result in one large edit.
fn between(old: &str, new: &str, base: usize) -> Vec<Repair> {
    let a = lex::pieces(old);
    let b = lex::pieces(new);
    let at = starts(a.iter().map(|p| p.1.len()));
    let bt = starts(b.iter().map(|p| p.1.len()));
    let anchor = |i: usize, j: usize| a[i] == b[j] && a[i].0 != PieceKind::Space;
    let mut out = Vec::new();
    for (x, y) in align(a.len(), b.len(), |i, j| a[i] == b[j], anchor) {
        let next = a[x.end..]
            .iter()
            .find(|p| p.0 != PieceKind::Space)
            .map_or("", |p| p.1);
        let before = &old[at[x.start]..at[x.end]];
        let after = &new[bt[y.start]..bt[y.end]];
        let offset = base + at[x.start];
        let pair = x.len() == 1 && y.len() == 1;
        if pair
            && a[x.start].0 == PieceKind::Quoted
            && before.starts_with('"')
            && after.starts_with('"')
        {
            inside(before, after, offset, &mut out);
        } else {
            out.push(Repair {
                offset,
                kind: kind(before, after, next),
                before: before.to_owned(),
                after: after.to_owned(),
            });
        }
    }
    out
}

/// Appends the edits inside one string, character by character.
fn inside(old: &str, new: &str, base: usize, out: &mut Vec<Repair>) {
    let (a, b): (Vec<char>, Vec<char>) = (old.chars().collect(), new.chars().collect());
    let at = starts(a.iter().map(|c| c.len_utf8()));
    let bt = starts(b.iter().map(|c| c.len_utf8()));
    let anchor = |i: usize, j: usize| {
        let x = &a[i..];
        let y = &b[j..];
        let n = 3.min(x.len()).min(y.len());
        x[..n] == y[..n]
    };
    for (x, y) in align(a.len(), b.len(), |i, j| a[i] == b[j], anchor) {
        let before = &old[at[x.start]..at[x.end]];
        let after = &new[bt[y.start]..bt[y.end]];
        out.push(Repair {
            offset: base + at[x.start],
            kind: RepairKind::Escape,
            before: before.to_owned(),
            after: after.to_owned(),
        });
    }
}

/// Returns the offset of each item, and the end of the last one.
fn starts(lengths: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut at = vec![0];
    let mut sum = 0;
    for n in lengths {
        sum += n;
        at.push(sum);
    }
    at
}

/// Returns the pairs of ranges in which two sequences differ. `same` compares two items; `anchor`
/// returns whether two equal items are enough to end a difference (white space is not).
fn align(
    n: usize,
    m: usize,
    same: impl Fn(usize, usize) -> bool,
    anchor: impl Fn(usize, usize) -> bool,
) -> Vec<(Range<usize>, Range<usize>)> {
    let mut tail = 0;
    while tail < n.min(m) && same(n - 1 - tail, m - 1 - tail) {
        tail += 1;
    }
    let (mut i, mut j) = (0, 0);
    let mut left = EFFORT * (n + m) + 4096;
    let mut out = Vec::new();
    loop {
        while i < n && j < m && same(i, j) {
            (i, j) = (i + 1, j + 1);
        }
        // In a repetitive text the common end may overlap the common start; the common start then
        // takes precedence.
        let (n, m) = (
            n - tail.min(n - i).min(m - j),
            m - tail.min(n - i).min(m - j),
        );
        if i == n && j == m {
            return out;
        }
        let meets = |x: usize, y: usize| {
            if x < n && y < m {
                anchor(x, y)
            } else {
                x == n && y == m
            }
        };
        let mut found = None;
        'search: for d in 1..=2 * WINDOW {
            for (di, dj) in splits(d) {
                if i + di > n || j + dj > m {
                    continue;
                }
                if left == 0 {
                    break 'search;
                }
                left -= 1;
                if meets(i + di, j + dj) {
                    found = Some((di, dj));
                    break 'search;
                }
            }
        }
        let (x, y) = found.map_or((n, m), |(di, dj)| (i + di, j + dj));
        out.push((i..x, j..y));
        (i, j) = (x, y);
    }
}

/// Returns the ways to split `d` items between two sequences, the most even split first.
fn splits(d: usize) -> impl Iterator<Item = (usize, usize)> {
    let half = d / 2;
    (0..=half).flat_map(move |off| {
        let di = d - half + off;
        let dj = half - off;
        let both = [Some((di, dj)), (di != dj).then_some((dj, di))];
        both.into_iter()
            .flatten()
            .filter(|(di, dj)| *di <= WINDOW && *dj <= WINDOW)
    })
}

/// Returns the kind of an edit, judged by the texts before and after it and the piece that follows.
fn kind(before: &str, after: &str, next: &str) -> RepairKind {
    let old = before.trim();
    let new = after.trim();
    match (old, new) {
        (",", "") => RepairKind::TrailingComma,
        ("", ",") => RepairKind::MissingComma,
        ("", ":") => RepairKind::MissingColon,
        ("", "]" | "}") => RepairKind::MissingBracket,
        ("]" | "}", "") => RepairKind::ExtraBracket,
        ("=" | "=>", ":") => RepairKind::MissingColon,
        ("", "") => RepairKind::WhiteSpace,
        _ if new.is_empty() && lex::bare_escapes(old) == old.len() => RepairKind::Escape,
        _ if new.is_empty()
            && (old.starts_with("//") || old.starts_with("/*") || old.starts_with('#')) =>
        {
            RepairKind::Comment
        }
        (_, "") => RepairKind::TextRemoved,
        ("", _) => RepairKind::TextAdded,
        (_, "true" | "false" | "null") => RepairKind::Literal,
        _ if old.starts_with('\'') && new.starts_with('"') => RepairKind::SingleQuotes,
        _ if old.starts_with('"') => RepairKind::Quotes,
        _ if new.starts_with('"')
            && old.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$') =>
        {
            if next == ":" {
                RepairKind::UnquotedKey
            } else {
                RepairKind::UnquotedString
            }
        }
        _ if new.starts_with('"') => RepairKind::Quotes,
        _ if new.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => RepairKind::Number,
        _ => RepairKind::TextReplaced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apply;
    use proptest::prelude::*;

    fn repaired(text: &str) -> Option<(String, Vec<&'static str>)> {
        let r = repair(text, true)?;
        assert_eq!(
            apply(text, &r.repairs).as_deref(),
            Some(r.text.as_str()),
            "{text}"
        );
        Some((r.text, r.repairs.iter().map(|r| r.kind.name()).collect()))
    }

    #[test]
    fn what_can_be_repaired() {
        for (text, want, kinds) in [
            ("{\"a\":1,}", "{\"a\":1}", vec!["trailing_comma"]),
            (
                "{'a': 'b'}",
                "{\"a\": \"b\"}",
                vec!["single_quotes", "single_quotes"],
            ),
            (
                "{a: True, b: None}",
                "{\"a\": true, \"b\": null}",
                vec!["unquoted_key", "literal", "unquoted_key", "literal"],
            ),
            ("{\"a\":[1,2}", "{\"a\":[1,2]}", vec!["missing_bracket"]),
            (
                "```json\n{\"a\":1}\n```",
                "{\"a\":1}",
                vec!["fence", "fence"],
            ),
            (
                "{\"a\":1}</tool_call>\n<|im_end|>",
                "{\"a\":1}",
                vec!["end_tag", "end_tag"],
            ),
            (
                " {\"a\":1,} ",
                "{\"a\":1}",
                vec!["white_space", "trailing_comma", "white_space"],
            ),
            (
                r#"{"path":"C:\Users\x"}"#,
                r#"{"path":"C:\\Users\\x"}"#,
                vec!["escape", "escape"],
            ),
            (
                r#"{"re":"\d+\.\u12"}"#,
                r#"{"re":"\\d+\\.\\u12"}"#,
                vec!["escape", "escape"],
            ),
            (
                "{\"code\":\"a\n\tb\"}",
                "{\"code\":\"a\\n\\tb\"}",
                vec!["escape"],
            ),
            ("{\"a\":1 /* one */}", "{\"a\":1 }", vec!["comment"]),
            ("\"{\\\"a\\\":1}\"", "{\"a\":1}", vec!["double_encoded"]),
            // An escape's two characters between values.
            (
                r#"{"a": \n["b"\t, "c"]\n\n}"#,
                r#"{"a": ["b", "c"]}"#,
                vec!["escape", "escape", "escape"],
            ),
            (
                r#"{\n"a":\r\ntrue,\n"b": 1\n}"#,
                r#"{"a":true,"b": 1}"#,
                vec!["escape", "literal", "escape", "number"],
            ),
            (r#"{"a":"b\nc" \n}"#, r#"{"a":"b\nc" }"#, vec!["escape"]),
            // Encoded twice, with a raw line feed inside the inner string or between values.
            (
                r#""{\"a\":\"b\nc\"}""#,
                r#"{"a":"b\nc"}"#,
                vec!["double_encoded"],
            ),
            (
                "\"{\\\"a\\\":\n\\\"b\nc\\\"}\"",
                "{\"a\":\n\"b\\nc\"}",
                vec!["double_encoded"],
            ),
            (
                "{\"a\":12345678901234567890123,}",
                "{\"a\":12345678901234567890123}",
                vec!["trailing_comma"],
            ),
        ] {
            assert_eq!(repaired(text), Some((want.to_owned(), kinds)), "{text}");
        }
    }

    #[test]
    fn what_is_refused() {
        for text in [
            "",
            "null",
            "[]",
            "[1,]",
            "7",
            "\"{}",
            "\"[1]\"",
            "\"x\"",
            "{\"a\":1}",
            "{}{}",
            "{\"a\":1}{\"a\":2}",
            "{\"a\":1}\n{\"a\":2}",
            "{'a':1}\n{'a':2}",
            "{\"a\":1} and so on",
            "{\"a\":1}}",
            "Sure: {\"a\":1}",
            "{\"a\":NaN,}",
            "{\"a\":-Infinity}",
            "{\"a\":1e400,}",
            "{\"a\":1e400}",
            "{\"a\":1,\"a\":2}",
            "{'a':1,'a':2}",
            "{\"a\":\"\\ud83d\",}",
            "{\"a\":}",
            "{\"a\":1, ...}",
            // Escapes that may be part of a word.
            r#"{"a":\null}"#,
            "\"{\\\"a\\\":\n}\"",
            // Truncated texts.
            "{\"path\":\"/",
            "{\"path\":\"/tmp/x}",
            "{\"a\":{\"b\":1}",
            "{\"a\":[{\"b\":1}",
            "{'path':'/tmp/}",
            "{",
        ] {
            assert_eq!(repaired(text), None, "{text}");
        }
        assert_eq!(repair("\"{\\\"a\\\":1}\"", false), None);
    }

    #[test]
    fn a_text_that_is_too_long_is_refused_at_once() {
        assert_eq!(
            repair(&format!("{{\"a\":\"{}\",}}", "x".repeat(MAX_TEXT)), true),
            None
        );
    }

    proptest! {
        #[test]
        fn any_text_is_safe(text in "[{}\\[\\],:\"'\\\\a1tN/*#`<>.+ \\n\\x01é()-]{0,60}") {
            if let Some((fixed, _)) = repaired(&text) {
                prop_assert!(is_object(&fixed));
            }
        }

        #[test]
        fn slips_in_an_object_are_mended(key in "[a-m]{1,8}", value in "[a-zA-Z0-9 ,:/\\\\é]{0,20}", n in -1000i64..1000) {
            let good = format!("{{{}:{},\"n\":{n}}}", event::quoted(&key), event::quoted(&value));
            let slip = format!("```\n{},}}\n```", &good[..good.len() - 1]);
            prop_assert_eq!(repair(&slip, false).map(|r| r.text), Some(good));
        }
    }

    fn kinds(old: &str, new: &str) -> Vec<(&'static str, String, String)> {
        let edits = between(old, new, 0);
        assert_eq!(apply(old, &edits).unwrap(), new);
        edits
            .into_iter()
            .map(|r| (r.kind.name(), r.before, r.after))
            .collect()
    }

    #[test]
    fn edits_are_small_and_named() {
        let e = |k, a: &str, b: &str| (k, a.to_owned(), b.to_owned());
        assert_eq!(
            kinds("{\"a\":1,}", "{\"a\":1}"),
            [e("trailing_comma", ",", "")]
        );
        assert_eq!(
            kinds("{'a':'b', c: None}", "{\"a\":\"b\", \"c\": null}"),
            [
                e("single_quotes", "'a'", "\"a\""),
                e("single_quotes", "'b'", "\"b\""),
                e("unquoted_key", "c", "\"c\""),
                e("literal", "None", "null"),
            ]
        );
        assert_eq!(
            kinds("{\"a\":[1,2}", "{\"a\":[1,2]}"),
            [e("missing_bracket", "", "]")]
        );
        assert_eq!(
            kinds("{\"a\":1 \"b\":2}", "{\"a\":1, \"b\":2}"),
            [e("missing_comma", "", ",")]
        );
        assert_eq!(
            kinds("{\"p\":\"C:\\Users\\x\"}", "{\"p\":\"C:\\\\Users\\\\x\"}"),
            [e("escape", "", "\\"), e("escape", "", "\\")]
        );
        assert_eq!(kinds("aaaa", "aa"), [e("text_replaced", "aaaa", "aa")]);
        assert_eq!(kinds("same", "same"), []);
    }

    proptest! {
        #[test]
        fn edits_always_lead_to_the_new_text(old in "[{}\\[\\],:\"'a1 \\\\é]{0,40}", new in "[{}\\[\\],:\"'a1 \\\\é]{0,40}") {
            prop_assert_eq!(apply(&old, &between(&old, &new, 0)), Some(new));
        }
    }
}
