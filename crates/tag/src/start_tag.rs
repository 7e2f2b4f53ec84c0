//! The attributes of one complete start tag, as models write them: quotes may be `"`, `'` or
//! missing.

use quick_xml::events::attributes::Attributes;

/// The index of the tag's end (such as `>`), outside quotation marks, in the text after its opening
/// marker; `None`: it has not come.
pub(crate) fn end(text: &str, end: &str) -> Option<usize> {
    let mut quote = None;
    let mut before = b'=';
    for (at, c) in text.bytes().enumerate() {
        match quote {
            Some(q) if c == q => quote = None,
            Some(_) => {}
            None if text.as_bytes()[at..].starts_with(end.as_bytes()) => return Some(at),
            // A quotation mark begins a value only: an apostrophe elsewhere is text.
            None if matches!(c, b'"' | b'\'') && before == b'=' => quote = Some(c),
            None => {}
        }
        if !c.is_ascii_whitespace() {
            before = c;
        }
    }
    None
}

/// Whether the text after an opening marker may be the beginning of attributes: white space, and
/// names with values. Other text is not held back until the tag's end.
pub(crate) fn may_begin(text: &str, end: &str) -> bool {
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
        // Some models leave out the white space between attributes.
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

/// The value of an attribute, its entities replaced.
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
                may_begin(text, "<|sep|>") || may_begin(text, ">"),
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
            assert!(!may_begin(text, ">"), "{text:?}");
        }
    }
}
