//! Arguments and results as shown in a report: JSON is indented, long texts are truncated, and
//! hidden characters are made visible.

use crate::escape::safe;
use event::Raw;

/// Maximum depth of indentation; deeper values are indented like this.
const DEEPEST: usize = 16;

/// A text that is safe to show, truncated if it is long.
#[derive(Debug, PartialEq)]
pub(super) struct Excerpt {
    pub text: String,
    /// The number of bytes of the original that were cut.
    pub left_out: usize,
}

impl Excerpt {
    /// Returns an excerpt of at most the first `most` bytes of a text.
    pub(super) fn of(text: &str, most: usize) -> Self {
        let kept = event::cut(text, most);
        Excerpt {
            text: written_out(kept),
            left_out: text.len() - kept.len(),
        }
    }

    /// Like [`Excerpt::of`], but indents the text if it is a JSON object or array.
    pub(super) fn of_json(text: &str, most: usize) -> Self {
        match Raw::parse(text) {
            Ok(json) if json.is_object() || json.is_array() => {
                let (text, left_out) = indented(json.text(), most);
                Excerpt {
                    text: written_out(&text),
                    left_out,
                }
            }
            _ => Excerpt::of(text, most),
        }
    }
}

/// Returns `text` with hidden characters made visible as on a terminal, and also the characters
/// that documents must not contain, the
/// [noncharacters](https://infra.spec.whatwg.org/#noncharacter).
pub(super) fn written_out(text: &str) -> String {
    let is_noncharacter =
        |c: char| matches!(u32::from(c), 0xfdd0..=0xfdef) || u32::from(c) & 0xfffe == 0xfffe;
    let text = safe(text);
    if !text.contains(is_noncharacter) {
        return text.into_owned();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_noncharacter(c) {
            true => out.extend(c.escape_unicode()),
            false => out.push(c),
        }
    }
    out
}

/// Formats valid JSON with each member and item on its own line, up to `most` bytes of the input.
/// Returns the text and the number of bytes cut.
fn indented(json: &str, most: usize) -> (String, usize) {
    let mut out = String::with_capacity(json.len().min(most) + 64);
    let mut depth = 0_usize;
    let mut chars = json.char_indices().peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth.min(DEEPEST)));
    };
    while let Some((at, c)) = chars.next() {
        if out.len() >= most {
            return (out, json.len() - at);
        }
        match c {
            ' ' | '\t' | '\r' | '\n' => {}
            '"' => {
                out.push(c);
                let mut is_escaped = false;
                for (at, c) in chars.by_ref() {
                    if out.len() >= most {
                        return (out, json.len() - at);
                    }
                    out.push(c);
                    if c == '"' && !is_escaped {
                        break;
                    }
                    is_escaped = c == '\\' && !is_escaped;
                }
            }
            '{' | '[' => {
                out.push(c);
                while chars.next_if(|(_, c)| c.is_ascii_whitespace()).is_some() {}
                if let Some((_, end)) = chars.next_if(|(_, c)| matches!(c, '}' | ']')) {
                    out.push(end);
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => out.push(c),
        }
    }
    (out, 0)
}

/// Formats a number with thousands separators.
pub(super) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Returns the note about the number of bytes that were cut.
pub(super) fn left_out(bytes: usize) -> String {
    match bytes {
        1 => "1 more byte is left out".to_owned(),
        _ => format!("{} more bytes are left out", grouped(bytes as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_indented_and_nothing_of_it_changes() {
        let json = r#" { "a" : 1.50 , "b":[ ], "c":{"d":["{,\"}", null]}, "e": "\u202e\\"} "#;
        let expected = "{\n  \"a\": 1.50,\n  \"b\": [],\n  \"c\": {\n    \"d\": [\n      \"{,\\\"}\",\n      null\n    ]\n  },\n  \"e\": \"\\u202e\\\\\"\n}";
        assert_eq!(Excerpt::of_json(json, 1000).text, expected);
        assert_eq!(Excerpt::of_json("x\u{1b}", 1000).text, "x\\x1b");
        assert_eq!(Excerpt::of_json("\"x\"", 1000).text, "\"x\"");
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let cut = Excerpt::of("a天気", 5);
        assert_eq!((&*cut.text, cut.left_out), ("a天", 3));
        let cut = Excerpt::of_json(r#"{"a":"0123456789"}"#, 12);
        assert_eq!((&*cut.text, cut.left_out), ("{\n  \"a\": \"01", 10));
        assert_eq!(left_out(1234), "1,234 more bytes are left out");
        assert_eq!(
            [0, 12, 999, 1000, 1_234_567].map(grouped),
            ["0", "12", "999", "1,000", "1,234,567"]
        );
    }

    #[test]
    fn noncharacters_are_written_out() {
        assert_eq!(
            written_out("a\u{fdd0}\u{ffff}\u{1fffe}b"),
            "a\\u{fdd0}\\u{ffff}\\u{1fffe}b"
        );
    }
}
