//! Markers at the beginning of a text.

/// Whether a text begins with something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match<T = usize> {
    /// It does. For a marker, this is its length there.
    Full(T),
    /// The text ends before that is clear.
    Partial,
    No,
}

/// The most white space before the end of a closing tag, in bytes.
const SPACES: usize = 16;

/// Whether `text` begins with `mark`. A closing tag may have white space before its last character,
/// as in `</tool >`: XML allows it (<https://www.w3.org/TR/xml/#NT-ETag>), and models write it.
pub(crate) fn starts(mark: &str, text: &str) -> Match {
    let same = mark
        .bytes()
        .zip(text.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    if same == mark.len() {
        return Match::Full(same);
    }
    if same == text.len() {
        return Match::Partial;
    }
    if same + 1 < mark.len() || !mark.ends_with('>') || !mark.contains("</") {
        return Match::No;
    }
    let rest = &text[same..];
    let spaces = space(rest);
    match rest.as_bytes().get(spaces) {
        _ if spaces > SPACES => Match::No,
        Some(b'>') => Match::Full(mark.len() + spaces),
        Some(_) => Match::No,
        None => Match::Partial,
    }
}

/// The longest of the markers that `text` begins with; partial while a longer one may still come.
pub(crate) fn find(marks: &[&str], text: &str) -> Match {
    let mut here = Match::No;
    for mark in marks {
        match (starts(mark, text), here) {
            (Match::Partial, _) => return Match::Partial,
            (Match::Full(length), Match::Full(longest)) if length <= longest => {}
            (found @ Match::Full(_), _) => here = found,
            (Match::No, _) => {}
        }
    }
    here
}

/// The same where no text follows.
pub(crate) fn find_last(marks: &[&str], text: &str) -> Match {
    let here = marks.iter().filter_map(|mark| match starts(mark, text) {
        Match::Full(length) => Some(length),
        _ => None,
    });
    here.max().map_or(Match::No, Match::Full)
}

/// How much white space a text begins with.
pub(crate) fn space(text: &str) -> usize {
    text.len() - text.trim_ascii_start().len()
}

/// The length of the shortest beginning of `text` that has at least `least` bytes, or all, and ends
/// between two characters.
pub(crate) fn ceil(text: &str, least: usize) -> usize {
    (least..text.len())
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_tags_hold_white_space() {
        for (mark, text, found) in [
            ("</tool>", "</tool>x", Match::Full(7)),
            ("</tool>", "</tool >x", Match::Full(8)),
            ("</tool>", "</tool\n\t>", Match::Full(9)),
            ("]<]m[>[</a>", "]<]m[>[</a >", Match::Full(12)),
            ("</tool>", "</tool ", Match::Partial),
            ("</tool>", "</too", Match::Partial),
            ("</tool>", "</tool s>", Match::No),
            ("</tool>", "</toolbox>", Match::No),
            ("<tool>", "<tool >", Match::No),
            ("<|end|>", "<|end| >", Match::No),
        ] {
            assert_eq!(starts(mark, text), found, "{mark} {text:?}");
        }
        let long = format!("</tool{}>", " ".repeat(SPACES + 1));
        assert_eq!(starts("</tool>", &long), Match::No);
        assert_eq!(starts("</tool>", &long[..long.len() - 1]), Match::No);
    }

    #[test]
    fn the_longest_marker_counts() {
        assert_eq!(find(&["<a", "<ab>"], "<ab>"), Match::Full(4));
        assert_eq!(find(&["<ab>", "<a"], "<ac"), Match::Full(2));
        assert_eq!(find(&["<a", "<ab>"], "<a"), Match::Partial);
        assert_eq!(find_last(&["<a", "<ab>"], "<a"), Match::Full(2));
        assert_eq!(find(&["</a>", "</a >"], "</a  >"), Match::Full(6));
        assert_eq!(find(&[], "<a"), Match::No);
    }
}
