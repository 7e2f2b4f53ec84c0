//! Characters that are never sent to a terminal.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// Whether `c` must be escaped instead of sent to a terminal. This holds for control characters
/// that a terminal would act on (C0 except line feed and tab, DEL, C1), and for invisible
/// characters: those can reorder the surrounding text (bidirectional controls), break its line, or
/// carry words that only machines read (tag characters, the selectors of plane 14).
///
/// The invisible characters are Unicode's `Default_Ignorable_Code_Point` and the interlinear
/// annotation controls. Exempt are those that ordinary writing needs because they change how
/// adjacent characters look: U+200C and U+200D (joiners in Arabic, Indic scripts and emoji), the
/// variation selectors for letters, ideographs and emoji (U+FE00–FE02, U+FE0E, U+FE0F), those for
/// Mongolian, U+034F, and the two fillers of old Hangul syllables.
#[inline]
pub fn is_hidden(c: char) -> bool {
    match u32::from(c) {
        0x20..=0x7e | 0x09 | 0x0a => false,
        0..=0xad => c.is_control() || c == '\u{ad}',
        0xae..=0x61b => false,
        code => is_invisible(code),
    }
}

fn is_invisible(code: u32) -> bool {
    matches!(code,
        0x61c | 0x17b4..=0x17b5 | 0x180e | 0x200b | 0x200e..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0x3164
        | 0xfe03..=0xfe0d | 0xfeff | 0xffa0 | 0xfff0..=0xfffb
        | 0x1_bca0..=0x1_bca3 | 0x1_d173..=0x1_d17a | 0xe_0000..=0xe_0fff)
}

/// Returns `text` with each hidden character replaced by the output of `write`.
pub fn escaped(text: &str, write: impl Fn(char, &mut String) -> fmt::Result) -> Cow<'_, str> {
    let Some(first) = text.find(is_hidden) else {
        return Cow::Borrowed(text);
    };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..first]);
    for c in text[first..].chars() {
        if is_hidden(c) {
            // Writing to a string cannot fail.
            let _ = write(c, &mut out);
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Returns JSON with each hidden character replaced by a JSON escape. This does not change the
/// value, because only strings can contain such characters.
pub fn safe_json(json: &str) -> Cow<'_, str> {
    escaped(json, |c, out| {
        c.encode_utf16(&mut [0; 2])
            .iter()
            .try_for_each(|unit| write!(out, "\\u{unit:04x}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_become_escapes_of_the_same_value() {
        let hidden = "\u{7f}\u{9b}\u{ad}\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}\u{202e}\u{2066}\u{feff}\u{e0041}";
        let json = format!("{{\n  \"a{hidden}\": \"é 中 👨\u{200d}👩 ☀\u{fe0f}\"\n}}");
        let safe = safe_json(&json);
        assert!(
            !safe.contains(is_hidden)
                && safe.contains("\\u061c")
                && safe.contains("\\udb40\\udc41"),
            "{safe}"
        );
        let of = |json: &str| {
            crate::Raw::parse(json)
                .unwrap()
                .entries()
                .next()
                .unwrap()
                .0
                .into_owned()
        };
        assert_eq!(of(&safe), format!("a{hidden}"));
        assert!(matches!(
            safe_json("{\"é\":\"中\\n👨\u{200d}👩\"}"),
            Cow::Borrowed(_)
        ));
    }
}
