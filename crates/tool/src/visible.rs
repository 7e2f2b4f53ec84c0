//! JSON as a person must see it before answering for it: every character shows.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a person could overlook `c` or take it for another character: what [`event::is_hidden`] lists, and beyond that the joiners and
/// selectors that ordinary writing needs, and every white space but the plain space.
pub fn is_unclear(c: char) -> bool {
    let joins = |c: u32| matches!(c, 0x34f | 0x115f..=0x1160 | 0x180b..=0x180f | 0x200c..=0x200d | 0xfe00..=0xfe0f);
    event::is_hidden(c) || (c != ' ' && c.is_whitespace()) || joins(u32::from(c))
}

/// JSON with each unclear character as a JSON escape (`\u202e`), which leaves its value as it is. Line feeds between values stay; inside of
/// strings JSON has none.
pub fn visible_json(json: &str) -> Cow<'_, str> {
    let is_odd = |c: char| c != '\n' && is_unclear(c);
    if !json.contains(is_odd) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_odd(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_shows_and_the_value_stays() {
        let odd =
            "\u{7f}\u{9b}\u{ad}\u{202e}\u{2066}\u{feff}\u{200d}\u{fe0f}\u{a0}\u{3000}\u{2028}\u{34f}\u{e0041}\u{3164}";
        let json = format!("{{\n  \"a{odd}\": \"é 中\"\n}}");
        let seen = visible_json(&json);
        assert!(
            !seen.contains(|c| c != '\n' && is_unclear(c))
                && seen.contains("\\u202e")
                && seen.contains("\\udb40\\udc41")
        );
        let key = event::Raw::parse(&seen).unwrap().entries().next().unwrap().0.into_owned();
        assert_eq!(key, format!("a{odd}"));
        assert!(matches!(visible_json("{\n\"é 中\": 1}"), Cow::Borrowed(_)));
    }
}
