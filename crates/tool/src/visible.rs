//! Texts for people: JSON in which every character is visible, and one-line summaries.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a person could overlook `c` or mistake it for another character: the characters of
/// [`event::is_hidden`] and [`is_blank`], the joiners and selectors of ordinary writing, and all
/// white space except the plain space.
pub fn is_unclear(c: char) -> bool {
    let joins = |c: u32| matches!(c, 0x34f | 0x180b..=0x180f | 0x200c..=0x200d | 0xfe00..=0xfe0f);
    event::is_hidden(c) || (c != ' ' && c.is_whitespace()) || joins(u32::from(c)) || is_blank(c)
}

/// Whether `c` is drawn as a blank, or omitted on many screens, without being white space: the
/// fillers of Hangul (U+115F, U+1160) and Khitan (U+16FE4), the Braille pattern without dots
/// (U+2800), U+FFFC, the layout controls and blanks of hieroglyphs (U+13430–U+13442), the null
/// notehead (U+1D159), the joiner of Brahmi numbers (U+1107F), and Unicode's noncharacters.
pub(crate) fn is_blank(c: char) -> bool {
    let code = u32::from(c);
    let is_noncharacter = (code & 0xfffe) == 0xfffe || matches!(code, 0xfdd0..=0xfdef);
    is_noncharacter
        || matches!(code, 0x115f..=0x1160 | 0x2800 | 0xfffc | 0x1_107f | 0x1_3430..=0x1_3442 | 0x1_6fe4 | 0x1_d159)
}

/// Returns a text for a screen, with each unclear character except the tab as `\\u{…}`.
pub(crate) fn visible_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '\t' && is_unclear(c) {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// Returns JSON with each unclear character as a JSON escape (`\u202e`), so that its value stays
/// the same. Line feeds between values are kept; JSON strings cannot contain any.
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

/// Maximum length of a summary, in characters.
pub(crate) const SUMMARY: usize = 120;

/// Returns the first line of `text` that is not blank, with the number of lines after it, for
/// people. The result has at most [`SUMMARY`] characters, and spaces replace control characters.
pub fn one_line(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let more = lines.count();
    let more = if more > 0 {
        format!(" (+{more} lines)")
    } else {
        String::new()
    };
    let room = SUMMARY - more.len();
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    if first.chars().nth(room).is_none() {
        return first.chars().map(plain).collect::<String>() + &more;
    }
    first
        .chars()
        .take(room - 1)
        .map(plain)
        .chain(['…'])
        .collect::<String>()
        + &more
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every character that Unicode 16 draws as nothing (`Default_Ignorable_Code_Point`) or as
    /// white space, and those that are drawn as a blank.
    #[test]
    fn summaries_are_one_short_line() {
        assert_eq!(
            one_line("\n  a\tb\u{1b}[2J\nc\n\nd\n"),
            "a b [2J (+2 lines)"
        );
        assert_eq!(one_line(""), "");
        let long = one_line(&format!("{}\nx", "é".repeat(500)));
        assert_eq!(long.chars().count(), SUMMARY);
        assert!(long.ends_with("é… (+1 lines)"));
        assert_eq!(one_line(&"x".repeat(SUMMARY)), "x".repeat(SUMMARY));
    }

    #[test]
    fn no_character_without_a_picture_is_shown_as_it_is() {
        let ranges: [(u32, u32); 34] = [
            (0x00, 0x1f),
            (0x7f, 0xa0),
            (0xad, 0xad),
            (0x34f, 0x34f),
            (0x61c, 0x61c),
            (0x115f, 0x1160),
            (0x1680, 0x1680),
            (0x17b4, 0x17b5),
            (0x180b, 0x180f),
            (0x2000, 0x200f),
            (0x2028, 0x202f),
            (0x205f, 0x206f),
            (0x2800, 0x2800),
            (0x3000, 0x3000),
            (0x3164, 0x3164),
            (0xfdd0, 0xfdef),
            (0xfe00, 0xfe0f),
            (0xfeff, 0xfeff),
            (0xffa0, 0xffa0),
            (0xfff0, 0xfffc),
            (0xfffe, 0xffff),
            (0x1_107f, 0x1_107f),
            (0x1_3430, 0x1_3442),
            (0x1_6fe4, 0x1_6fe4),
            (0x1_bca0, 0x1_bca3),
            (0x1_d159, 0x1_d159),
            (0x1_d173, 0x1_d17a),
            (0x1_fffe, 0x1_ffff),
            (0x2_fffe, 0x2_ffff),
            (0xd_fffe, 0xd_ffff),
            (0xe_0000, 0xe_0fff),
            (0xe_fffe, 0xe_ffff),
            (0xf_fffe, 0xf_ffff),
            (0x10_fffe, 0x10_ffff),
        ];
        for c in ranges
            .into_iter()
            .flat_map(|(from, to)| from..=to)
            .filter_map(char::from_u32)
        {
            let json = event::quoted(&format!("a{c}b"));
            let seen = visible_json(&json);
            assert!(
                is_unclear(c) && !seen.contains(c),
                "U+{:04X}: {seen}",
                u32::from(c)
            );
            assert_eq!(
                serde_json::from_str::<String>(&seen).unwrap(),
                format!("a{c}b")
            );
        }
        for c in "aé中\u{2801}\u{28ff}\u{1100}\u{1161}ا🙂\u{301}".chars() {
            assert!(!is_unclear(c), "{c:?}");
        }
    }

    #[test]
    fn every_character_shows_and_the_value_stays() {
        let odd = "\u{7f}\u{9b}\u{ad}\u{202e}\u{2066}\u{feff}\u{200d}\u{fe0f}\u{a0}\u{3000}\u{2028}\u{34f}\u{e0041}\u{3164}";
        let json = format!("{{\n  \"a{odd}\": \"é 中\"\n}}");
        let seen = visible_json(&json);
        assert!(
            !seen.contains(|c| c != '\n' && is_unclear(c))
                && seen.contains("\\u202e")
                && seen.contains("\\udb40\\udc41")
        );
        let key = event::Raw::parse(&seen)
            .unwrap()
            .entries()
            .next()
            .unwrap()
            .0
            .into_owned();
        assert_eq!(key, format!("a{odd}"));
        assert!(matches!(visible_json("{\n\"é 中\": 1}"), Cow::Borrowed(_)));
    }
}
