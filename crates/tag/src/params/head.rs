//! The text before a value: a start tag, or elements with the name and the type.

use crate::dialect::{ParamForm, Style, Typing};
use crate::mark::{Match, attribute, starts, tag_end};
use event::cut;
use std::borrow::Cow;

/// The longest head, in bytes.
const LONGEST: usize = 4096;

/// The head of one parameter.
#[derive(Debug)]
pub(super) struct ParamHead {
    /// Its length in bytes.
    pub length: usize,
    pub name: String,
    pub hint: TypeHint,
    /// The marker that ends its value.
    pub closer: Cow<'static, str>,
    /// The parameter has no text: `<a/>`.
    pub is_empty: bool,
}

/// The type of a value by its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TypeHint {
    Unknown,
    String,
    Json,
}

impl ParamForm {
    /// The head that `text` begins with.
    pub(super) fn head(&self, text: &str) -> Match<ParamHead> {
        let mut from = HeadReader {
            text: cut(text, LONGEST),
            at: 0,
        };
        let head = match self.style {
            Style::Equals { open, end, close } => from.equals(open, end, close),
            Style::Attribute {
                open,
                end,
                close,
                name,
            } => {
                let mut best = Err(Match::No);
                for (open, close) in open.iter().zip(close) {
                    let mut from = HeadReader {
                        text: from.text,
                        at: 0,
                    };
                    match (from.attribute(open, end, close, name, self.typing), &best) {
                        (Ok(head), Err(_)) => best = Ok(head),
                        (Err(Match::Partial), Err(_)) => best = Err(Match::Partial),
                        _ => {}
                    }
                }
                best
            }
            Style::Pair {
                key, kind, value, ..
            } => from.pair(key, kind, value),
            Style::Element { prefix } => from.element(prefix),
        };
        match head {
            Ok(head) if !head.name.is_empty() => Match::Full(head),
            Err(Match::Partial) if text.len() <= LONGEST => Match::Partial,
            _ => Match::No,
        }
    }
}

/// What was read; or, as the error, the result for the head as a whole: [`Match::Partial`] or
/// [`Match::No`].
type Read<T> = Result<T, Match<ParamHead>>;

/// A place in a text.
struct HeadReader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> HeadReader<'t> {
    /// The head that ends here, of a parameter with text.
    fn head(&self, name: &str, hint: TypeHint, closer: impl Into<Cow<'static, str>>) -> ParamHead {
        ParamHead {
            length: self.at,
            name: name.to_owned(),
            hint,
            closer: closer.into(),
            is_empty: false,
        }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn take(&mut self, what: &str) -> Read<()> {
        match starts(what, self.rest()) {
            Match::Full(length) => self.at += length,
            Match::Partial => return Err(Match::Partial),
            Match::No => return Err(Match::No),
        }
        Ok(())
    }

    fn space(&mut self) -> Read<()> {
        self.at = self.text.len() - self.rest().trim_ascii_start().len();
        if self.rest().is_empty() {
            Err(Match::Partial)
        } else {
            Ok(())
        }
    }

    fn until(&mut self, end: &str) -> Read<&'t str> {
        let length = self.rest().find(end).ok_or(Match::Partial)?;
        let text = &self.rest()[..length];
        self.at += length + end.len();
        Ok(text)
    }

    /// The text before a closing tag, without another tag in it.
    fn word(&mut self, close: &str) -> Read<&'t str> {
        let first = close.chars().next().unwrap_or('<');
        let text = &self.rest()[..self.rest().find(first).ok_or(Match::Partial)?];
        self.at += text.len();
        self.take(close)?;
        Ok(text)
    }

    fn equals(&mut self, open: &str, end: &str, close: &'static str) -> Read<ParamHead> {
        let stem = open.strip_suffix('=').unwrap_or(open);
        self.take(stem)?;
        self.space()?;
        self.take(&open[stem.len()..])?;
        let line = self.rest().find(['\n', '<']).unwrap_or(self.rest().len());
        let name = match self.until(end) {
            Ok(name) if name.len() <= line => name.trim(),
            Err(Match::Partial) if line == self.rest().len() => return Err(Match::Partial),
            _ => return Err(Match::No),
        };
        let quoted = ['"', '\'']
            .iter()
            .find_map(|q| name.strip_prefix(*q)?.strip_suffix(*q));
        Ok(self.head(quoted.unwrap_or(name), TypeHint::Unknown, close))
    }

    fn attribute(
        &mut self,
        open: &str,
        end: &str,
        close: &'static str,
        name: &str,
        typing: Typing,
    ) -> Read<ParamHead> {
        self.take(open)?;
        let first = self.rest().chars().next().ok_or(Match::Partial)?;
        if !first.is_whitespace() {
            return Err(Match::No);
        }
        let length = tag_end(self.rest(), end);
        let attributes = &self.rest()[..length.unwrap_or(self.rest().len())];
        // A second tag before the end of this one: the text is not a tag, and waiting for its end
        // would hold back the call.
        if attributes.contains(open) {
            return Err(Match::No);
        }
        let length = length.ok_or(Match::Partial)?;
        let short = attributes.strip_suffix('/');
        let attributes = short.unwrap_or(attributes);
        let name = attribute(attributes, name).ok_or(Match::No)?;
        let hint = match typing {
            Typing::Schema => TypeHint::Unknown,
            Typing::Flag(flag) => match attribute(attributes, flag).as_deref().map(str::trim) {
                Some("true" | "True" | "1") => TypeHint::String,
                Some("false" | "False" | "0") => TypeHint::Json,
                _ => TypeHint::Unknown,
            },
            Typing::Named(kind) => kind_hint(&attribute(attributes, kind).unwrap_or_default()),
        };
        self.at += length + end.len();
        Ok(ParamHead {
            is_empty: short.is_some(),
            ..self.head(name.trim(), hint, close)
        })
    }

    fn pair(
        &mut self,
        key: (&str, &str),
        kind: Option<(&str, &str)>,
        value: (&str, &'static str),
    ) -> Read<ParamHead> {
        self.take(key.0)?;
        let name = self.word(key.1)?.trim();
        self.space()?;
        let mut hint = TypeHint::Unknown;
        if let Some((open, close)) = kind {
            match starts(open, self.rest()) {
                Match::Full(length) => {
                    self.at += length;
                    hint = kind_hint(self.word(close)?);
                    self.space()?;
                }
                // The type and the value may begin alike.
                Match::Partial => return Err(Match::Partial),
                Match::No => {}
            }
        }
        self.take(value.0)?;
        Ok(self.head(name, hint, value.1))
    }

    fn element(&mut self, prefix: &str) -> Read<ParamHead> {
        self.take(prefix)?;
        self.take("<")?;
        let name = element_name(self.rest());
        self.at += name.len();
        if self.rest().is_empty() {
            return Err(Match::Partial);
        }
        self.space()?;
        let is_empty = self.rest().starts_with('/');
        self.at += usize::from(is_empty);
        self.take(">")?;
        let closer = format!("{prefix}</{name}>");
        Ok(ParamHead {
            is_empty,
            ..self.head(name, TypeHint::Unknown, closer)
        })
    }
}

/// The name of an element that a text begins with, or nothing.
pub(crate) fn element_name(text: &str) -> &str {
    if !text.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        return "";
    }
    let end = text
        .find(|c: char| !c.is_alphanumeric() && !"_-.:$@".contains(c))
        .unwrap_or(text.len());
    &text[..end]
}

/// The type of a value by the name of a JSON type.
fn kind_hint(kind: &str) -> TypeHint {
    match kind.trim() {
        "string" | "str" => TypeHint::String,
        "number" | "integer" | "int" | "float" | "boolean" | "bool" | "object" | "array"
        | "null" | "json" => TypeHint::Json,
        _ => TypeHint::Unknown,
    }
}
