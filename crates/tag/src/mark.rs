//! Whether a marker stands at the beginning of a text.

/// Whether something is at the beginning of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found<T = usize> {
    /// It does. Of a marker this is the length.
    Here(T),
    /// The text is the beginning of it.
    Perhaps,
    No,
}

/// The most white space that is read before the end of a closing tag.
const SPACES: usize = 16;

/// Whether `mark` stands at the beginning of `text`. In a closing tag white space may stand before the last character, as XML
/// allows it and models write it: `</tool >`.
pub(crate) fn starts(mark: &str, text: &str) -> Found {
    let same = mark.bytes().zip(text.bytes()).take_while(|(a, b)| a == b).count();
    if same == mark.len() {
        return Found::Here(same);
    }
    if same == text.len() {
        return Found::Perhaps;
    }
    if same + 1 < mark.len() || !mark.ends_with('>') || !mark.contains("</") {
        return Found::No;
    }
    let rest = &text[same..];
    let spaces = space(rest);
    match rest.as_bytes().get(spaces) {
        _ if spaces > SPACES => Found::No,
        Some(b'>') => Found::Here(mark.len() + spaces),
        Some(_) => Found::No,
        None => Found::Perhaps,
    }
}

/// Looks for the longest of the markers at the beginning of `text`. While a longer one may still come, it is waited for.
pub(crate) fn find(marks: &[&str], text: &str) -> Found {
    let mut here = Found::No;
    for mark in marks {
        match (starts(mark, text), here) {
            (Found::Perhaps, _) => return Found::Perhaps,
            (Found::Here(length), Found::Here(longest)) if length <= longest => {}
            (found @ Found::Here(_), _) => here = found,
            (Found::No, _) => {}
        }
    }
    here
}

/// The longest of the markers at the beginning of `text`, which is all that comes.
pub(crate) fn find_last(marks: &[&str], text: &str) -> Found {
    let here = marks.iter().filter_map(|mark| match starts(mark, text) {
        Found::Here(length) => Some(length),
        _ => None,
    });
    here.max().map_or(Found::No, Found::Here)
}

/// How much white space a text begins with.
pub(crate) fn space(text: &str) -> usize {
    text.bytes().position(|c| !matches!(c, b' ' | b'\t' | b'\r' | b'\n')).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_tags_hold_white_space() {
        for (mark, text, found) in [
            ("</tool>", "</tool>x", Found::Here(7)),
            ("</tool>", "</tool >x", Found::Here(8)),
            ("</tool>", "</tool\n\t>", Found::Here(9)),
            ("]<]m[>[</a>", "]<]m[>[</a >", Found::Here(12)),
            ("</tool>", "</tool ", Found::Perhaps),
            ("</tool>", "</too", Found::Perhaps),
            ("</tool>", "</tool s>", Found::No),
            ("</tool>", "</toolbox>", Found::No),
            ("<tool>", "<tool >", Found::No),
            ("<|end|>", "<|end| >", Found::No),
        ] {
            assert_eq!(starts(mark, text), found, "{mark} {text:?}");
        }
        let long = format!("</tool{}>", " ".repeat(SPACES + 1));
        assert_eq!(starts("</tool>", &long), Found::No);
        assert_eq!(starts("</tool>", &long[..long.len() - 1]), Found::No);
    }

    #[test]
    fn the_longest_marker_counts() {
        assert_eq!(find(&["<a", "<ab>"], "<ab>"), Found::Here(4));
        assert_eq!(find(&["<ab>", "<a"], "<ac"), Found::Here(2));
        assert_eq!(find(&["<a", "<ab>"], "<a"), Found::Perhaps);
        assert_eq!(find_last(&["<a", "<ab>"], "<a"), Found::Here(2));
        assert_eq!(find(&["</a>", "</a >"], "</a  >"), Found::Here(6));
        assert_eq!(find(&[], "<a"), Found::No);
    }
}
