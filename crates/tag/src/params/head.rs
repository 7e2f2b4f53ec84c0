//! Parses the text before a value: a start tag, or elements with the name and the type.

use crate::dialect::{ParamForm, TagStyle, Typing};
use crate::mark::{Match, attribute, may_be_attributes, starts, tag_end};
use event::cut;
use std::borrow::Cow;

/// The maximum length of a head, in bytes.
const LONGEST: usize = 4096;

/// The head of one parameter.
#[derive(Debug)]
pub(super) struct ParamHead {
    /// The length of the head in bytes.
    pub length: usize,
    pub name: String,
    pub hint: TypeHint,
    /// The marker that ends the value.
    pub closer: Cow<'static, str>,
    /// Whether the parameter has no text: `<a/>`.
    pub is_empty: bool,
    /// Whether the name contains punctuation of its tag, which is damaged.
    pub has_signs: bool,
    /// Whether a marker between the name and the value is missing.
    pub lacks_marker: bool,
}

/// The type of a value according to its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TypeHint {
    Unknown,
    String,
    Json,
}

impl ParamForm {
    /// Parses the head at the beginning of `text`.
    pub(super) fn head(&self, text: &str) -> Match<ParamHead> {
        let mut best: HeadRead<ParamHead> = Err(Match::No);
        for (n, open) in self.open.iter().enumerate() {
            let mut from = HeadReader {
                text: cut(text, LONGEST),
                at: 0,
            };
            let close = self.close.get(n).copied().unwrap_or_default();
            let head = match self.style {
                TagStyle::Plain { end, kind, value } => {
                    from.plain((open, end), kind, (value, close), self.call_closers)
                }
                TagStyle::Attribute { end, name } => {
                    from.attribute(open, end, close, name, self.typing)
                }
                TagStyle::Element { prefix } => from.element(open, prefix),
                TagStyle::Repeated { end, close } => from.repeated(open, end, close),
            };
            match (head, &best) {
                (Ok(head), Err(_)) => best = Ok(head),
                (Err(Match::Partial), Err(_)) => best = Err(Match::Partial),
                _ => {}
            }
        }
        match best {
            Ok(head) if !head.name.is_empty() => Match::Full(head),
            Err(Match::Partial) if text.len() <= LONGEST => Match::Partial,
            _ => Match::No,
        }
    }
}

/// A parsed part; or, as the error, the result for the whole head: [`Match::Partial`] or
/// [`Match::No`].
type HeadRead<T> = Result<T, Match<ParamHead>>;

/// A position in a text.
struct HeadReader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> HeadReader<'t> {
    /// Returns the head of a parameter with text, ending at this position.
    fn head(&self, name: &str, hint: TypeHint, closer: impl Into<Cow<'static, str>>) -> ParamHead {
        ParamHead {
            length: self.at,
            name: name.to_owned(),
            hint,
            closer: closer.into(),
            is_empty: false,
            has_signs: false,
            lacks_marker: false,
        }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn take(&mut self, what: &str) -> HeadRead<()> {
        match starts(what, self.rest()) {
            Match::Full(length) => self.at += length,
            Match::Partial => return Err(Match::Partial),
            Match::No => return Err(Match::No),
        }
        Ok(())
    }

    fn space(&mut self) -> HeadRead<()> {
        self.at = self.text.len() - self.rest().trim_ascii_start().len();
        if self.rest().is_empty() {
            Err(Match::Partial)
        } else {
            Ok(())
        }
    }

    /// Reads the text before a marker. The text must not contain the beginning of another marker or
    /// one of `stops`.
    fn word(&mut self, close: &str, stops: &[char]) -> HeadRead<&'t str> {
        let first = close.chars().next().unwrap_or('<');
        let ends = |c| c == first || stops.contains(&c);
        let text = &self.rest()[..self.rest().find(ends).ok_or(Match::Partial)?];
        self.at += text.len();
        self.take(close)?;
        Ok(text)
    }

    /// Reads the name after `key`, an optional type, and the marker before the value.
    fn plain(
        &mut self,
        key: (&str, &str),
        kind: Option<(&str, &str)>,
        value: (&str, &'static str),
        call_closers: &[&str],
    ) -> HeadRead<ParamHead> {
        let stem = key.0.strip_suffix('=').unwrap_or(key.0);
        self.take(stem)?;
        self.space()?;
        self.take(&key.0[stem.len()..])?;
        if value.0.is_empty() {
            let name = self.word(key.1, &['\n', '<'])?.trim();
            let quoted = ['"', '\'']
                .iter()
                .find_map(|q| name.strip_prefix(*q)?.strip_suffix(*q));
            return Ok(self.head(quoted.unwrap_or(name), TypeHint::Unknown, value.1));
        }
        let begun = self.at;
        let name = match self.word(key.1, &[]) {
            Ok(name) => name.trim(),
            Err(Match::No) => {
                self.at = begun;
                return self.unclosed_name(value);
            }
            Err(found) => return Err(found),
        };
        self.space()?;
        let mut hint = TypeHint::Unknown;
        if let Some((open, close)) = kind {
            match starts(open, self.rest()) {
                Match::Full(length) => {
                    self.at += length;
                    hint = kind_hint(self.word(close, &[])?);
                    self.space()?;
                }
                // The type and the value may begin with the same text.
                Match::Partial => return Err(Match::Partial),
                Match::No => {}
            }
        }
        // Busy servers sometimes lose the marker before the value
        // (<https://github.com/vllm-project/vllm/issues/49249>).
        let lacks_marker = match starts(value.0, self.rest()) {
            Match::Full(length) => {
                self.at += length;
                false
            }
            Match::Partial => return Err(Match::Partial),
            Match::No => true,
        };
        if lacks_marker {
            let others = call_closers.iter().copied().chain([key.0]);
            let mut perhaps = false;
            for other in others {
                if starts(other, self.rest()).full_or(&mut perhaps).is_some() {
                    return Err(Match::No);
                }
            }
            if perhaps {
                return Err(Match::Partial);
            }
        }
        Ok(ParamHead {
            lacks_marker,
            ..self.head(name, hint, value.1)
        })
    }

    /// Reads a name without the marker after it, directly before the marker of the value.
    fn unclosed_name(&mut self, value: (&str, &'static str)) -> HeadRead<ParamHead> {
        let name = self.word(value.0, &['\n'])?.trim();
        Ok(ParamHead {
            lacks_marker: true,
            ..self.head(name, TypeHint::Unknown, value.1)
        })
    }

    fn attribute(
        &mut self,
        open: &str,
        end: &str,
        close: &'static str,
        name: &str,
        typing: Typing,
    ) -> HeadRead<ParamHead> {
        self.take(open)?;
        let first = self.rest().chars().next().ok_or(Match::Partial)?;
        if !first.is_whitespace() {
            return Err(Match::No);
        }
        let length = tag_end(self.rest(), end);
        let attributes = &self.rest()[..length.unwrap_or(self.rest().len())];
        // Another tag opens before the end of this one: the text is not a tag, and waiting for its
        // end would hold back the call.
        if attributes.contains(open) {
            return Err(Match::No);
        }
        // Text that is not attributes may contain the value and the next tag.
        if !may_be_attributes(attributes, end) {
            return Err(Match::No);
        }
        let length = length.ok_or(Match::Partial)?;
        let is_tag = |(more, _)| may_be_attributes(&self.rest()[..length + more], end);
        if !end.char_indices().all(is_tag) {
            return Err(Match::No);
        }
        let short = attributes.strip_suffix('/');
        let attributes = short.unwrap_or(attributes);
        let name = attribute(attributes, name).ok_or(Match::No)?;
        let hint = match typing {
            // DeepSeek keeps its flag even if it omits the prefix of its tags
            // (<https://github.com/anomalyco/opencode/issues/34676>).
            Typing::Schema => flag_hint(attributes, "string"),
            Typing::Flag(flag) => flag_hint(attributes, flag),
            Typing::Named(kind) => kind_hint(&attribute(attributes, kind).unwrap_or_default()),
        };
        self.at += length + end.len();
        Ok(ParamHead {
            is_empty: short.is_some(),
            has_signs: name.contains(['"', '=']) && !attributes.contains("&quot;"),
            ..self.head(name.trim(), hint, close)
        })
    }

    /// Reads the name between two markers. The closing marker repeats the name.
    fn repeated(&mut self, open: &str, end: &str, close: (&str, &str)) -> HeadRead<ParamHead> {
        // A closing marker may begin with the same text as an opening marker.
        if let Match::Full(_) = starts(close.0, self.rest()) {
            return Err(Match::No);
        }
        self.take(open)?;
        let begun = open.chars().next().unwrap_or('\n');
        let name = self.word(end, &['\n', begun])?.trim();
        let closer = format!("{}{name}{}", close.0, close.1);
        Ok(self.head(name, TypeHint::Unknown, closer))
    }

    fn element(&mut self, open: &str, prefix: &str) -> HeadRead<ParamHead> {
        self.take(open)?;
        let name = element_name(self.rest());
        self.at += name.len();
        if self.rest().is_empty() || name.is_empty() && self.rest() == "-" {
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

/// Returns the element name at the beginning of a text, or an empty text. A name may begin with a
/// hyphen, like command-line options (<https://github.com/vllm-project/vllm-ascend/issues/12815>).
pub(crate) fn element_name(text: &str) -> &str {
    let word = text.strip_prefix('-').unwrap_or(text);
    if !word.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        return "";
    }
    let end = text
        .find(|c: char| !c.is_alphanumeric() && !"_-.:$@".contains(c))
        .unwrap_or(text.len());
    &text[..end]
}

/// Returns the type of a value by the attribute that says whether it is a string.
fn flag_hint(attributes: &str, flag: &str) -> TypeHint {
    match attribute(attributes, flag).as_deref().map(str::trim) {
        Some("true" | "True" | "1") => TypeHint::String,
        Some("false" | "False" | "0") => TypeHint::Json,
        _ => TypeHint::Unknown,
    }
}

/// Returns the type of a value by the name of a JSON type.
fn kind_hint(kind: &str) -> TypeHint {
    match kind.trim() {
        "string" | "str" => TypeHint::String,
        "number" | "integer" | "int" | "float" | "boolean" | "bool" | "object" | "array"
        | "null" | "json" => TypeHint::Json,
        _ => TypeHint::Unknown,
    }
}
