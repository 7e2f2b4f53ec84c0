//! JSON from objects and arrays in Python's notation, and from JSON with raw control characters in
//! its strings.

use crate::lex::{pieces, with_valid_strings};
use crate::{JsonError, Literal, Notation, Progress, check};
use event::Raw;

/// Appends the JSON of `text`, which is one value without white space round it. Returns `false`,
/// and appends nothing, if `text` is neither JSON nor a literal of Python. Numbers in JSON's
/// notation keep their digits.
pub(crate) fn value(text: &str, out: &mut String) -> bool {
    let json = with_valid_strings(&pieces(text));
    if Raw::parse(&json).is_ok() {
        out.push_str(&json);
        return true;
    }
    let start = out.len();
    let is_whole = Literal::value(Notation::Python).push(text, out) == Progress::End(text.len())
        && !matches!(check(&out[start..]), Err(JsonError::LoneSurrogate { .. }));
    if !is_whole {
        out.truncate(start);
    }
    is_whole
}

#[cfg(test)]
mod tests {
    fn json(text: &str) -> Option<String> {
        let mut out = String::from("x");
        let whole = super::value(text, &mut out);
        assert!(whole || out == "x", "{out}");
        whole.then(|| out[1..].to_owned())
    }

    #[test]
    fn literals() {
        for (text, expected) in [
            ("{'a': [1, 2.50,], 'b': {}}", r#"{"a":[1,2.50],"b":{}}"#),
            ("{'a': (0x10, 1_000, u'b' 'c')}", r#"{"a":[16,1000,"bc"]}"#),
            (
                "[\"two\nlines\", \"C:\\x\\/\"]",
                r#"["two\nlines", "C:\\x\/"]"#,
            ),
            (
                "['\\u00e9\\ud83d\\ude00\\x1b', '日本']",
                r#"["é\ud83d\ude00\u001b","日本"]"#,
            ),
            ("[\"a\u{7f}\"]", r#"["a\u007f"]"#),
            ("()", "[]"),
        ] {
            assert_eq!(json(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn everything_else() {
        let deep = "[".repeat(100_000);
        for text in [
            "{'a' 1}",
            "{a: 1}",
            "[1 2]",
            "[,]",
            "['a",
            "[0xg]",
            "[1]]",
            "['\\ud83d']",
            "{'a':1}}",
            "",
            &deep,
        ] {
            assert_eq!(json(text), None, "{text:.20}");
        }
    }
}
