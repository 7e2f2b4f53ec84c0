//! Entities and CDATA sections in values.

use crate::dialect::params::ParamForm;
use crate::mark::Match;
use std::borrow::Cow;

/// The markers of text in which closers do not count.
pub(super) const DATA: (&str, &str) = ("<![CDATA[", "]]>");

/// The longest entity, in bytes, as in `&#x10ffff;`.
const LONGEST: usize = 10;

/// The entity that `text` begins with: its length, and the text that it means.
pub(super) fn entity(text: &str) -> Match<(usize, String)> {
    let Some(rest) = text.strip_prefix('&') else {
        return Match::No;
    };
    let end = rest
        .bytes()
        .take(LONGEST - 1)
        .position(|c| !c.is_ascii_alphanumeric() && c != b'#');
    match end {
        Some(end) if rest.as_bytes()[end] == b';' => {
            let length = end + 2;
            match quick_xml::escape::unescape(&text[..length]) {
                Ok(meant) => Match::Full((length, meant.into_owned())),
                Err(_) => Match::No,
            }
        }
        None if rest.len() < LONGEST - 1 => Match::Partial,
        _ => Match::No,
    }
}

impl ParamForm {
    /// The text of a whole value, its entities and CDATA sections replaced.
    pub(crate) fn plain<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if !(self.cdata && text.contains(DATA.0) || self.entities && text.contains('&')) {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(['<', '&']) {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            if self.cdata
                && let Some((data, after)) = rest
                    .strip_prefix(DATA.0)
                    .and_then(|data| data.split_once(DATA.1))
            {
                out.push_str(data);
                rest = after;
                continue;
            }
            match entity(rest) {
                Match::Full((length, meant)) if self.entities => {
                    out.push_str(&meant);
                    rest = &rest[length..];
                }
                _ => {
                    out.push_str(&rest[..1]);
                    rest = &rest[1..];
                }
            }
        }
        out.push_str(rest);
        Cow::Owned(out)
    }
}
