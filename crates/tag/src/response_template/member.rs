//! Reads the JSON of a description and keeps the positions of its values.

use crate::notation::Fault;
use crate::response_template::delimiter::{Delimiter, DelimiterToken, Spelling};
use crate::response_template::pattern::{self, Captures};
use event::Raw;

/// The maximum number of texts in a list, and the maximum length of each text, in bytes.
const MAX_TEXTS: usize = 16;
const MAX_TEXT: usize = 4096;

/// The remedy if the notation of dialects cannot express a part of a description.
const REMEDY: &str = "write the dialect as TOML, see docs/new-dialect.md";

/// A value and its path.
#[derive(Clone, Debug)]
pub(super) struct TemplateMember<'t> {
    /// The text of the whole file.
    pub file: &'t str,
    pub raw: Raw<'t>,
    /// The keys from the root to the value, separated by dots.
    path: String,
}

impl<'t> TemplateMember<'t> {
    /// Creates the member for the value of the whole file.
    pub(super) fn new(file: &'t str, raw: Raw<'t>) -> TemplateMember<'t> {
        TemplateMember {
            file,
            raw,
            path: String::new(),
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<TemplateMember<'t>> {
        let path = if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        };
        Some(TemplateMember {
            file: self.file,
            raw: self.raw.get(key)?,
            path,
        })
    }

    /// Returns the error for a mistake in this value.
    pub(super) fn fault(&self, message: impl std::fmt::Display) -> Fault {
        // The value is a slice of the file's text.
        let at = (self.raw.text().as_ptr() as usize).saturating_sub(self.file.as_ptr() as usize);
        Fault::new(at, format!("{}: {message}", self.path))
    }

    /// Returns the error for a valid value that the notation of dialects cannot express.
    pub(super) fn refuse(&self, what: impl std::fmt::Display) -> Fault {
        self.fault(format!("{what}; {REMEDY}"))
    }

    /// Checks that the value is an object with no other keys.
    pub(super) fn expect(&self, keys: &[&str]) -> Result<(), Fault> {
        if !self.raw.is_object() {
            return Err(self.fault("expected an object"));
        }
        match self.raw.entries().find(|(key, _)| !keys.contains(&&**key)) {
            None => Ok(()),
            Some((key, _)) => {
                let shown: String = key.chars().take(40).collect();
                Err(self.refuse(format!(
                    "unknown key '{shown}'; expected one of {}",
                    keys.join(", ")
                )))
            }
        }
    }

    /// Returns the value as a string.
    pub(super) fn text(&self) -> Result<String, Fault> {
        match self.raw.str() {
            Some(text) if text.len() <= MAX_TEXT => Ok(text.into_owned()),
            Some(_) => Err(self.fault(format!(
                "the string is too long; expected at most {MAX_TEXT} bytes"
            ))),
            None => Err(self.fault("expected a string")),
        }
    }

    /// Returns the string of a member, or `None` if the member is missing.
    pub(super) fn text_of(&self, key: &str) -> Result<Option<String>, Fault> {
        self.get(key).map(|member| member.text()).transpose()
    }

    /// Returns the boolean of a member, or false if the member is missing.
    pub(super) fn flag_of(&self, key: &str) -> Result<bool, Fault> {
        match self.get(key) {
            None => Ok(false),
            Some(member) => member
                .raw
                .bool()
                .ok_or_else(|| member.fault("expected true or false")),
        }
    }

    /// Returns a string, or the strings of a list.
    fn texts(&self) -> Result<Vec<String>, Fault> {
        if !self.raw.is_array() {
            return Ok(vec![self.text()?]);
        }
        let mut texts = Vec::new();
        for raw in self.raw.items() {
            texts.push(
                TemplateMember {
                    raw,
                    ..self.clone()
                }
                .text()?,
            );
            if texts.len() > MAX_TEXTS {
                return Err(self.fault(format!("too many strings; expected at most {MAX_TEXTS}")));
            }
        }
        Ok(texts)
    }

    /// Returns the spellings of a pattern, and whether an end of the text also matches.
    pub(super) fn pattern(&self, captures: Captures<'_>) -> Result<(Vec<Spelling>, bool), Fault> {
        pattern::read(&self.text()?, captures).map_err(|why| self.refuse(why))
    }

    /// Returns the delimiter in the member `open` or `open_pattern`, `close` or `close_pattern`.
    pub(super) fn delimiter(
        &self,
        word: &str,
        captures: Captures<'_>,
    ) -> Result<Option<Delimiter>, Fault> {
        let pattern = format!("{word}_pattern");
        match (self.get(word), self.get(&pattern)) {
            (None, None) => Ok(None),
            (Some(_), Some(both)) => {
                Err(both.fault(format!("'{word}' is given too; expected one of them")))
            }
            (Some(texts), None) => {
                let all = texts.texts()?;
                if all.is_empty() || all.iter().any(|text| text.trim().is_empty()) {
                    return Err(texts.fault("a marker is empty; expected its text"));
                }
                let spellings = all
                    .into_iter()
                    .map(|text| vec![DelimiterToken::Text(text)])
                    .collect();
                Ok(Some(Delimiter::new(spellings, false, true)))
            }
            (None, Some(member)) => {
                let (spellings, is_edge) = member.pattern(captures)?;
                if spellings
                    .iter()
                    .flatten()
                    .any(|token| *token == DelimiterToken::Same)
                {
                    return Err(member.refuse("it refers to what a group matched"));
                }
                let is_open = word == "open";
                Ok(Some(Delimiter {
                    is_edge,
                    ..Delimiter::new(spellings, is_open, !is_open)
                }))
            }
        }
    }
}
