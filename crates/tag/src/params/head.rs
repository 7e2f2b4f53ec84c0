//! What opens a parameter: a start tag, or the elements before a value.

use super::{ParamForm, Style, Typing};
use crate::mark::{Match, starts};
use crate::start_tag;
use std::borrow::Cow;

/// The longest head that is waited for, in bytes.
const LONGEST: usize = 4096;

/// The head of one parameter.
#[derive(Debug)]
pub(super) struct Head {
    /// Its length in bytes.
    pub length: usize,
    pub name: String,
    pub says: Says,
    /// What ends its value.
    pub closer: Cow<'static, str>,
    /// It is closed already: `<a/>`.
    pub empty: bool,
}

/// What a head says of the type of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Says {
    Nothing,
    String,
    Json,
}

impl ParamForm {
    /// The head that `text` begins with.
    pub(super) fn head(&self, text: &str) -> Match<Head> {
        let end = (0..=LONGEST.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        let mut from = From { text: &text[..end], at: 0 };
        let head = match self.style {
            Style::Equals { open, end, close } => from.equals(open, end, close),
            Style::Attribute { open, end, close, name } => {
                let mut perhaps = false;
                let mut found = None;
                for (open, close) in open.iter().zip(close) {
                    let mut from = From { text: from.text, at: 0 };
                    match from.attribute(open, end, close, name, self.typing) {
                        Err(Miss::Short) => perhaps = true,
                        Err(Miss::Other) => {}
                        Ok(head) => found = found.or(Some(head)),
                    }
                }
                found.ok_or(if perhaps { Miss::Short } else { Miss::Other })
            }
            Style::Pair { key, kind, value, .. } => from.pair(key, kind, value),
            Style::Element { prefix } => from.element(prefix),
        };
        match head {
            Ok(head) if !head.name.is_empty() => Match::Full(head),
            Err(Miss::Short) if text.len() <= LONGEST => Match::Partial,
            _ => Match::No,
        }
    }
}

/// Why no head was read: the text ends too early, or it is none.
enum Miss {
    Short,
    Other,
}

/// A place in a text.
struct From<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> From<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn take(&mut self, what: &str) -> Result<(), Miss> {
        match starts(what, self.rest()) {
            Match::Full(length) => self.at += length,
            Match::Partial => return Err(Miss::Short),
            Match::No => return Err(Miss::Other),
        }
        Ok(())
    }

    fn space(&mut self) -> Result<(), Miss> {
        self.at = self.text.len() - self.rest().trim_ascii_start().len();
        if self.rest().is_empty() { Err(Miss::Short) } else { Ok(()) }
    }

    fn until(&mut self, end: &str) -> Result<&'t str, Miss> {
        let length = self.rest().find(end).ok_or(Miss::Short)?;
        let text = &self.rest()[..length];
        self.at += length + end.len();
        Ok(text)
    }

    /// The text before a closing tag, in which no other tag stands.
    fn word(&mut self, close: &str) -> Result<&'t str, Miss> {
        let first = close.chars().next().unwrap_or('<');
        let text = &self.rest()[..self.rest().find(first).ok_or(Miss::Short)?];
        self.at += text.len();
        self.take(close)?;
        Ok(text)
    }

    fn equals(&mut self, open: &str, end: &str, close: &'static str) -> Result<Head, Miss> {
        let stem = open.strip_suffix('=').unwrap_or(open);
        self.take(stem)?;
        self.space()?;
        self.take(&open[stem.len()..])?;
        let line = self.rest().find(['\n', '<']).unwrap_or(self.rest().len());
        let name = match self.until(end) {
            Ok(name) if name.len() <= line => name.trim(),
            Err(Miss::Short) if line == self.rest().len() => return Err(Miss::Short),
            _ => return Err(Miss::Other),
        };
        let quoted = ['"', '\''].iter().find_map(|q| name.strip_prefix(*q)?.strip_suffix(*q));
        let name = quoted.unwrap_or(name).to_owned();
        Ok(Head { length: self.at, name, says: Says::Nothing, closer: close.into(), empty: false })
    }

    fn attribute(
        &mut self,
        open: &str,
        end: &str,
        close: &'static str,
        name: &str,
        typing: Typing,
    ) -> Result<Head, Miss> {
        self.take(open)?;
        let first = self.rest().chars().next().ok_or(Miss::Short)?;
        if !first.is_whitespace() {
            return Err(Miss::Other);
        }
        let length = start_tag::end(self.rest(), end);
        let attributes = &self.rest()[..length.unwrap_or(self.rest().len())];
        // A tag that begins before this one has ended shows that this is none, and ends the wait for its end.
        if attributes.contains(open) {
            return Err(Miss::Other);
        }
        let length = length.ok_or(Miss::Short)?;
        let short = attributes.strip_suffix('/');
        let attributes = short.unwrap_or(attributes);
        let name = start_tag::attribute(attributes, name).ok_or(Miss::Other)?.trim().to_owned();
        let says = match typing {
            Typing::Schema => Says::Nothing,
            Typing::Flag(flag) => match start_tag::attribute(attributes, flag).as_deref().map(str::trim) {
                Some("true" | "True" | "1") => Says::String,
                Some("false" | "False" | "0") => Says::Json,
                _ => Says::Nothing,
            },
            Typing::Named(kind) => kind_says(&start_tag::attribute(attributes, kind).unwrap_or_default()),
        };
        self.at += length + end.len();
        Ok(Head { length: self.at, name, says, closer: close.into(), empty: short.is_some() })
    }

    fn pair(
        &mut self,
        key: (&str, &str),
        kind: Option<(&str, &str)>,
        value: (&str, &'static str),
    ) -> Result<Head, Miss> {
        self.take(key.0)?;
        let name = self.word(key.1)?.trim().to_owned();
        self.space()?;
        let mut says = Says::Nothing;
        if let Some((open, close)) = kind {
            match starts(open, self.rest()) {
                Match::Full(length) => {
                    self.at += length;
                    says = kind_says(self.word(close)?);
                    self.space()?;
                }
                // Both may begin alike.
                Match::Partial => return Err(Miss::Short),
                Match::No => {}
            }
        }
        self.take(value.0)?;
        Ok(Head { length: self.at, name, says, closer: value.1.into(), empty: false })
    }

    fn element(&mut self, prefix: &str) -> Result<Head, Miss> {
        self.take(prefix)?;
        self.take("<")?;
        let name = element_name(self.rest());
        self.at += name.len();
        if self.rest().is_empty() {
            return Err(Miss::Short);
        }
        self.space()?;
        let empty = self.rest().starts_with('/');
        self.at += usize::from(empty);
        self.take(">")?;
        let closer = format!("{prefix}</{name}>").into();
        Ok(Head { length: self.at, name: name.to_owned(), says: Says::Nothing, closer, empty })
    }
}

/// The name of an element that a text begins with, or nothing.
pub(crate) fn element_name(text: &str) -> &str {
    if !text.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        return "";
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && !"_-.:$@".contains(c)).unwrap_or(text.len());
    &text[..end]
}

/// What the name of a JSON type says.
fn kind_says(kind: &str) -> Says {
    match kind.trim() {
        "string" | "str" => Says::String,
        "number" | "integer" | "int" | "float" | "boolean" | "bool" | "object" | "array" | "null" | "json" => {
            Says::Json
        }
        _ => Says::Nothing,
    }
}
