//! Matches markers at the beginning of a text.

use quick_xml::events::attributes::Attributes;

/// Whether a text begins with a marker or another pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match<T = usize> {
    /// The text matches. For a marker, the value is the length of the match.
    Full(T),
    /// The text ends before the match is decided.
    Partial,
    No,
}

impl<T> Match<T> {
    /// Returns the match, or `None`. Sets `is_partial` if the text ends before the match is
    /// decided.
    pub(crate) fn full_or(self, is_partial: &mut bool) -> Option<T> {
        *is_partial |= matches!(self, Match::Partial);
        match self {
            Match::Full(found) => Some(found),
            Match::Partial | Match::No => None,
        }
    }
}

/// The maximum white space before the end of a closing tag, in bytes.
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

/// Finds the longest marker at the beginning of `text`; partial while a longer marker may still
/// follow.
pub(crate) fn find(marks: &[&str], text: &str) -> Match {
    find_in(marks, text, false)
}

/// Like `find`; `last` means that no text follows.
pub(crate) fn find_in(marks: &[&str], text: &str, last: bool) -> Match {
    let mut here = Match::No;
    for mark in marks {
        match (starts(mark, text), here) {
            (Match::Partial, _) if !last => return Match::Partial,
            (Match::Full(length), Match::Full(longest)) if length <= longest => {}
            (found @ Match::Full(_), _) => here = found,
            (Match::No | Match::Partial, _) => {}
        }
    }
    here
}

/// The words in the names of tags around calls, in any dialect. Words of the first half alone do
/// not make such a name.
const CALL_WORDS: [&str; 22] = [
    "antml",
    "atem",
    "dsml",
    "minimax",
    "seed",
    "use",
    "uses",
    "block",
    "blocks",
    "request",
    "requests",
    "tool",
    "tools",
    "function",
    "functions",
    "call",
    "calls",
    "invoke",
    "invocation",
    "invocations",
    "parameter",
    "parameters",
];

/// Matches the closing tag of calls in any dialect, or a similar tag of no dialect, such as
/// `</tool_calls>` or `</function_invocation>`. Directly after a call such a tag is not text.
pub(crate) fn call_closer(text: &str) -> Match {
    const OPEN: &str = "</";
    let Some(tag) = text.strip_prefix(OPEN) else {
        return if OPEN.starts_with(text) {
            Match::Partial
        } else {
            Match::No
        };
    };
    let is_joint = |c: char| matches!(c, '_' | '-' | ':' | '|' | '｜');
    let end = tag.find(|c: char| !(c.is_ascii_alphabetic() || is_joint(c)));
    let name = &tag[..end.unwrap_or(tag.len())];
    let mut words: Vec<&str> = name
        .split(is_joint)
        .filter(|word| !word.is_empty())
        .collect();
    let place = |word: &str| {
        CALL_WORDS
            .iter()
            .position(|known| known.eq_ignore_ascii_case(word))
    };
    let Some(end) = end else {
        let last = words.pop().unwrap_or_default();
        let begins = |known: &&str| {
            known
                .get(..last.len())
                .is_some_and(|k| k.eq_ignore_ascii_case(last))
        };
        let may_be =
            words.iter().all(|word| place(word).is_some()) && CALL_WORDS.iter().any(begins);
        return if may_be && words.len() < 8 {
            Match::Partial
        } else {
            Match::No
        };
    };
    let places: Option<Vec<usize>> = words.iter().map(|word| place(word)).collect();
    if !places.is_some_and(|places| places.iter().any(|place| *place >= CALL_WORDS.len() / 2)) {
        return Match::No;
    }
    match starts(&format!("{OPEN}{name}>"), text) {
        Match::Full(length) => Match::Full(length),
        _ if text.len() <= OPEN.len() + end => Match::Partial,
        found => found,
    }
}

/// Returns the length of the white space at the beginning of a text.
pub(crate) fn space(text: &str) -> usize {
    text.len() - text.trim_ascii_start().len()
}

/// Returns the length of the shortest prefix of `text` that has at least `least` bytes (or all of
/// them) and ends at a character boundary.
pub(crate) fn ceil(text: &str, least: usize) -> usize {
    (least..text.len())
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(text.len())
}

// The attributes of one complete start tag, as models write them: quotes may be `"`, `'` or
// missing.

/// Returns the index of the tag's end (such as `>`), outside quotation marks, in the text after the
/// opening marker; `None` if the end has not arrived.
pub(crate) fn tag_end(text: &str, end: &str) -> Option<usize> {
    let mut quote = None;
    let mut before = b'=';
    for (at, c) in text.bytes().enumerate() {
        match quote {
            Some(q) if c == q => quote = None,
            Some(_) => {}
            None if text.as_bytes()[at..].starts_with(end.as_bytes()) => return Some(at),
            // A quotation mark counts only at the beginning of a value; an apostrophe elsewhere is
            // text.
            None if matches!(c, b'"' | b'\'') && before == b'=' => quote = Some(c),
            None => {}
        }
        if !c.is_ascii_whitespace() {
            before = c;
        }
    }
    None
}

/// Whether the text after an opening marker may begin with attributes: white space, and names with
/// values. Any other text is not held back until the end of the tag.
pub(crate) fn may_be_attributes(text: &str, end: &str) -> bool {
    let mut rest = text;
    loop {
        let word = rest.trim_ascii_start();
        if word.is_empty()
            || end.starts_with(word)
            || word
                .strip_prefix('/')
                .is_some_and(|rest| end.starts_with(rest))
        {
            return true;
        }
        // Some models omit the white space between attributes.
        if word.len() == rest.len() && rest.len() == text.len() {
            return false;
        }
        let name =
            word.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':')));
        let Some(name) = name else { return true };
        let value = word[name..].trim_ascii_start();
        if name == 0 || !(value.is_empty() || value.starts_with('=')) {
            return false;
        }
        let Some(value) = value
            .get(1..)
            .map(str::trim_ascii_start)
            .filter(|value| !value.is_empty())
        else {
            return true;
        };
        let after = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => value[1..].find(quote).map(|at| at + 2),
            _ => value.find(|c: char| c.is_ascii_whitespace() || c == '<'),
        };
        let Some(after) = after else { return true };
        rest = &value[after..];
    }
}

/// Returns the value of an attribute with its entities decoded, or `None` if there is no such
/// attribute.
pub(crate) fn attribute(attributes: &str, name: &str) -> Option<String> {
    let found = Attributes::html(attributes, 0)
        .with_checks(false)
        .flatten()
        .find(|a| a.key.as_ref() == name)?;
    let value = found.value.as_ref();
    Some(quick_xml::escape::unescape(value).map_or_else(|_| value.to_owned(), |v| v.into_owned()))
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
        assert_eq!(find_in(&["<a", "<ab>"], "<a", true), Match::Full(2));
        assert_eq!(find(&["</a>", "</a >"], "</a  >"), Match::Full(6));
        assert_eq!(find(&[], "<a"), Match::No);
    }
}

#[cfg(test)]
mod start_tag_tests {
    use super::*;

    #[test]
    fn what_may_begin_attributes() {
        for text in [
            "",
            " ",
            " /",
            "/",
            "\n name",
            " name =",
            " a='x y",
            " a='x'b=\"y\" /",
            " a=x b=y",
            " k=v<|s",
        ] {
            assert!(
                may_be_attributes(text, "<|sep|>") || may_be_attributes(text, ">"),
                "{text:?}"
            );
        }
        for text in [
            "box",
            "box name=\"f\"",
            " is a word",
            " a='x' and so",
            " < b",
            " =x",
        ] {
            assert!(!may_be_attributes(text, ">"), "{text:?}");
        }
    }
}
