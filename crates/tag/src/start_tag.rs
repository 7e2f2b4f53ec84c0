//! The attributes of one complete start tag, as models write them: quotes may be `"`, `'` or missing.

use quick_xml::events::attributes::Attributes;

/// Where the tag's end (such as `>`) stands in what follows its opening marker; not inside quotes. `None`: it has not come.
pub(crate) fn end(text: &str, end: &str) -> Option<usize> {
    let mut quote = None;
    let mut before = b'=';
    for (at, c) in text.bytes().enumerate() {
        match quote {
            Some(q) if c == q => quote = None,
            Some(_) => {}
            None if text.as_bytes()[at..].starts_with(end.as_bytes()) => return Some(at),
            // A quote only begins a value: an apostrophe elsewhere is text.
            None if matches!(c, b'"' | b'\'') && before == b'=' => quote = Some(c),
            None => {}
        }
        if !c.is_ascii_whitespace() {
            before = c;
        }
    }
    None
}

/// The value of an attribute, unescaped.
pub(crate) fn attribute(attributes: &str, name: &str) -> Option<String> {
    let found = Attributes::html(attributes, 0).with_checks(false).flatten().find(|a| a.key.as_ref() == name)?;
    let value = found.value.as_ref();
    Some(quick_xml::escape::unescape(value).map_or_else(|_| value.to_owned(), |v| v.into_owned()))
}
