//! The repair gate: makes an object of a text that is nearly JSON, and lists every edit.
//!
//! A text that was cut is never repaired: a path that lost its end is another path. The caller must
//! not pass one, and brackets and quotes must be closed here too. A repair never invents a value or
//! an end, and never chooses between two values.

use crate::edits::{self, Repair};
use crate::lex::{self, Piece};
use crate::{JsonError, Shape, check};
use event::Raw;

/// The longest text that is repaired, in bytes.
const MAX_TEXT: usize = 1 << 20;

/// The end tags that stay behind the arguments when a server's parser for tool calls leaves them
/// there.
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

/// A text after repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// A JSON object that passes [`check`].
    pub text: String,
    /// The edits from the original to this text, in order of their offsets; see [`crate::apply`].
    pub repairs: Vec<Repair>,
}

/// Repairs `text`, which must have been written to its end. `unwrap`: an object inside one JSON
/// string is taken out of the string (`double_encoded`). `None` if the text is an object already,
/// or cannot become one without a guess.
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
    repairs.extend(edits::between(body, &mended, start));
    repairs.extend(back_edits.into_iter().rev());
    Some(Repaired {
        text: mended,
        repairs,
    })
}

fn is_object(text: &str) -> bool {
    check(text).is_ok_and(|c| c.shape == Shape::Object)
}

/// The object inside a JSON string.
fn unwrapped(text: &str, value: Raw<'_>) -> Option<Repaired> {
    let inner = value.str()?.into_owned();
    is_object(&inner).then(|| Repaired {
        repairs: vec![Repair {
            offset: 0,
            kind: "double_encoded",
            before: text.to_owned(),
            after: inner.clone(),
        }],
        text: inner,
    })
}

/// Skips white space and an opening code fence; returns where the rest begins.
fn front(text: &str, repairs: &mut Vec<Repair>) -> usize {
    let space = text.len() - text.trim_ascii_start().len();
    let mut start = space;
    if let Some(rest) = text[space..].strip_prefix("```") {
        let word = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        start = text.len() - word.trim_ascii_start().len();
    }
    if start > 0 {
        let kind = if start > space {
            "fence"
        } else {
            "white_space"
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

/// Takes white space, closing fences and known end tags off the end, the last first; returns where
/// they begin.
fn back(text: &str, start: usize, repairs: &mut Vec<Repair>) -> usize {
    let mut end = text.len();
    loop {
        let rest = text[start..end].trim_ascii_end();
        let (kind, kept) = match rest.strip_suffix("```") {
            Some(kept) => ("fence", kept),
            None => match END_TAGS.iter().find_map(|tag| rest.strip_suffix(tag)) {
                Some(kept) => ("end_tag", kept),
                None => ("white_space", rest),
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
        if kind == "white_space" {
            return end;
        }
    }
}

/// Repairs a text that begins with `{` and ends with its `}`.
fn mend(body: &str) -> Option<String> {
    // A valid value with text behind it: either may be what the model meant.
    if Raw::parse_prefix(body).is_ok() {
        return None;
    }
    let pieces = lex::pieces(body);
    if !body.starts_with('{')
        || !lex::is_closed(&pieces)
        || pieces.iter().any(|(piece, text)| is_guess(*piece, text))
    {
        return None;
    }
    let strings = lex::with_valid_strings(&pieces);
    if is_object(&strings) {
        return Some(strings);
    }
    let options = jsonrepair_rs::RepairOptions::new().with_max_input_bytes(2 * MAX_TEXT);
    let mended = jsonrepair_rs::jsonrepair_with_options(&strings, options).ok()?;
    let nulls = |pieces: &[(Piece, &str)]| pieces.iter().filter(|(_, text)| is_null(text)).count();
    (is_object(&mended) && nulls(&lex::pieces(&mended)) <= nulls(&pieces)).then_some(mended)
}

/// Whether a piece cannot become a value without a guess: `NaN`, an infinity, or an ellipsis where
/// the model left something out.
fn is_guess(piece: Piece, text: &str) -> bool {
    let word = text.trim_start_matches(['-', '+']);
    piece == Piece::Word
        && (word.eq_ignore_ascii_case("nan")
            || word.eq_ignore_ascii_case("infinity")
            || text.contains("...")
            || text.contains('…'))
}

fn is_null(text: &str) -> bool {
    ["null", "none", "undefined"]
        .iter()
        .any(|w| text.eq_ignore_ascii_case(w))
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
        Some((r.text, r.repairs.iter().map(|r| r.kind).collect()))
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
            // Cut texts.
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
}
