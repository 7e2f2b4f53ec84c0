//! Parses the TOML of a file and keeps the positions of its values.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The maximum number of values in a list, and the maximum length of a string. They keep a dialect
/// within the limits of the table.
const MAX_LIST: usize = 64;
const MAX_TEXT: usize = 4096;

/// A mistake and its position.
#[derive(Debug)]
pub(crate) struct Fault {
    /// The byte offset in the file. The line is counted only for the message.
    at: usize,
    message: String,
}

impl Fault {
    pub(crate) fn new(at: usize, message: impl Into<String>) -> Fault {
        Fault {
            at,
            message: message.into(),
        }
    }

    /// Converts the mistake to the error of this file with this text.
    pub(crate) fn of(self, file: &str, text: &str) -> NotationError {
        let before = &text.as_bytes()[..self.at.min(text.len())];
        let line = 1 + before.iter().filter(|c| **c == b'\n').count();
        NotationError {
            file: file.to_owned(),
            line,
            message: without_middle(self.message),
        }
    }
}

/// Shortens a long message in the middle. The message quotes a text of the file, and names the
/// mistake before and after the text.
fn without_middle(message: String) -> String {
    const END: usize = 300;
    let tail = message
        .char_indices()
        .rev()
        .nth(END - 1)
        .map_or(0, |(at, _)| at);
    let head = message
        .char_indices()
        .nth(END)
        .map_or(message.len(), |(at, _)| at);
    if head < tail {
        format!("{}…{}", &message[..head], &message[tail..])
    } else {
        message
    }
}

/// A value and its position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<T> {
    pub at: usize,
    pub value: T,
}

impl<T> Entry<T> {
    pub(super) fn fault(&self, message: impl Into<String>) -> Fault {
        Fault::new(self.at, message)
    }
}

/// A table of the file.
#[derive(Debug)]
pub(super) struct NotationRow<'t> {
    pub text: &'t str,
    table: &'t DeTable<'t>,
    pub at: usize,
}

/// Parses a file of at most `most` bytes.
pub(super) fn parse(text: &str, most: usize) -> Result<Spanned<DeTable<'_>>, Fault> {
    if text.len() > most {
        return Err(Fault::new(
            0,
            format!("the file is too long; expected at most {most} bytes"),
        ));
    }
    DeTable::parse(text).map_err(|e| {
        let at = e.span().map_or(0, |span| span.start);
        Fault::new(at, e.message().replace('\n', ", "))
    })
}

/// Returns the tables of a document: those of the array `key`, at most `most`, or the document
/// itself.
pub(super) fn rows<'t>(
    text: &'t str,
    document: &'t Spanned<DeTable<'t>>,
    key: &str,
    most: usize,
) -> Result<Vec<NotationRow<'t>>, Fault> {
    let row = NotationRow {
        text,
        table: document.get_ref(),
        at: 0,
    };
    if !row.has(key) {
        return Ok(vec![row]);
    }
    row.expect(&[key])?;
    let rows = row.tables(key)?.unwrap_or_default();
    match rows.get(most) {
        Some(over) => Err(over.fault(format!(
            "the file has too many dialects; expected at most {most}"
        ))),
        None => Ok(rows),
    }
}

impl<'t> NotationRow<'t> {
    pub(super) fn fault(&self, message: impl Into<String>) -> Fault {
        Fault::new(self.at, message)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    fn value(&self, key: &str) -> Option<Entry<&'t DeValue<'t>>> {
        let (_, value) = self.table.iter().find(|(k, _)| k.get_ref() == key)?;
        Some(Entry {
            at: value.span().start,
            value: value.get_ref(),
        })
    }

    /// Checks that the row has no other keys.
    pub(super) fn expect(&self, keys: &[&str]) -> Result<(), Fault> {
        match self
            .table
            .iter()
            .find(|(key, _)| !keys.contains(&&**key.get_ref()))
        {
            None => Ok(()),
            Some((key, _)) => {
                let known = keys.join(", ");
                Err(Fault::new(
                    key.span().start,
                    format!("unknown key '{}'; expected one of {known}", key.get_ref()),
                ))
            }
        }
    }

    /// Returns a string, or `None` if the key is missing.
    pub(super) fn text(&self, key: &str) -> Result<Option<Entry<&'t str>>, Fault> {
        let Some(entry) = self.value(key) else {
            return Ok(None);
        };
        string(key, entry).map(Some)
    }

    /// Returns a string after conversion by `parse`.
    pub(super) fn read<T>(
        &self,
        key: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Fault> {
        let Some(text) = self.text(key)? else {
            return Ok(None);
        };
        parse(text.value)
            .map(Some)
            .map_err(|why| text.fault(format!("{key}: {why}")))
    }

    /// Returns the meaning of a string that must be one of these words.
    pub(super) fn word<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Result<Option<T>, Fault> {
        self.read(key, |text| {
            let known = || {
                words
                    .iter()
                    .map(|(word, _)| *word)
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            let found = words.iter().find(|(word, _)| *word == text);
            found
                .map(|(_, value)| *value)
                .ok_or_else(|| format!("'{text}' is unknown; expected one of {}", known()))
        })
    }

    /// Returns a boolean, or `None` if the key is missing.
    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, Fault> {
        let Some(entry) = self.value(key) else {
            return Ok(None);
        };
        match entry.value.as_bool() {
            Some(flag) => Ok(Some(flag)),
            None => Err(entry.fault(format!(
                "{key}: {}; expected true or false",
                entry.value.type_str()
            ))),
        }
    }

    /// Returns the strings of an array after conversion by `parse`.
    pub(super) fn list<T>(
        &self,
        key: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<&'static [T]>, Fault> {
        let Some(values) = self.array(key)? else {
            return Ok(None);
        };
        let mut list = Vec::new();
        for entry in values {
            let text = string(key, entry)?;
            list.push(parse(text.value).map_err(|why| text.fault(format!("{key}: {why}")))?);
        }
        Ok(Some(all(list)))
    }

    /// Like `list`, for an array of arrays.
    pub(super) fn lists<T>(
        &self,
        key: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Vec<Entry<Vec<T>>>, Fault> {
        let mut lists = Vec::new();
        for entry in self.array(key)?.unwrap_or_default() {
            let Some(values) = entry.value.as_array() else {
                return Err(entry.fault(format!(
                    "{key}: {}; expected an array of strings",
                    entry.value.type_str()
                )));
            };
            let mut list = Vec::new();
            for value in values.iter().take(MAX_LIST) {
                let entry = Entry {
                    at: value.span().start,
                    value: value.get_ref(),
                };
                let text = string(key, entry)?;
                list.push(parse(text.value).map_err(|why| text.fault(format!("{key}: {why}")))?);
            }
            lists.push(Entry {
                at: entry.at,
                value: list,
            });
        }
        Ok(lists)
    }

    /// Returns the tables of an array.
    pub(super) fn tables(&self, key: &str) -> Result<Option<Vec<NotationRow<'t>>>, Fault> {
        let Some(entry) = self.value(key) else {
            return Ok(None);
        };
        let wrong = || {
            entry.fault(format!(
                "{key}: {}; expected tables",
                entry.value.type_str()
            ))
        };
        let values = entry.value.as_array().ok_or_else(wrong)?;
        let row = |value: &'t Spanned<DeValue<'t>>| {
            let table = value.get_ref().as_table().ok_or_else(wrong)?;
            Ok(NotationRow {
                text: self.text,
                table,
                at: value.span().start,
            })
        };
        values.iter().map(row).collect::<Result<_, _>>().map(Some)
    }

    fn array(&self, key: &str) -> Result<Option<Vec<Entry<&'t DeValue<'t>>>>, Fault> {
        let Some(entry) = self.value(key) else {
            return Ok(None);
        };
        let Some(values) = entry.value.as_array() else {
            return Err(entry.fault(format!(
                "{key}: {}; expected an array",
                entry.value.type_str()
            )));
        };
        if values.len() > MAX_LIST {
            return Err(entry.fault(format!(
                "{key}: {} values; expected at most {MAX_LIST}",
                values.len()
            )));
        }
        let entries = values.iter().map(|v| Entry {
            at: v.span().start,
            value: v.get_ref(),
        });
        Ok(Some(entries.collect()))
    }
}

fn string<'t>(key: &str, entry: Entry<&'t DeValue<'t>>) -> Result<Entry<&'t str>, Fault> {
    match entry.value.as_str() {
        Some(text) if text.len() <= MAX_TEXT => Ok(Entry {
            at: entry.at,
            value: text,
        }),
        Some(_) => Err(entry.fault(format!(
            "{key}: the string is too long; expected at most {MAX_TEXT} bytes"
        ))),
        None => Err(entry.fault(format!(
            "{key}: {}; expected a string",
            entry.value.type_str()
        ))),
    }
}

// The error of a file of dialects.

/// What is wrong with a file of dialects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotationError {
    /// The name of the file as it was given.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The mistake, and what was expected instead.
    pub message: String,
}

impl std::fmt::Display for NotationError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} line {}: {}", self.file, self.line, self.message)
    }
}

impl std::error::Error for NotationError {}

// Values of a notation that live as long as the table.

/// Returns a marker, with ⏎ replaced by a newline.
pub(super) fn marker(text: &str) -> Result<&'static str, String> {
    let text = lines(text);
    match text.len() {
        0 => Err("a marker is empty; expected its text".to_owned()),
        1..=256 if !text.trim().is_empty() => Ok(keep(text)),
        1..=256 => Err("a marker is white space; expected its text".to_owned()),
        _ => Err("a marker has more than 256 bytes; expected a shorter one".to_owned()),
    }
}

/// Returns the text before, between and after two occurrences of `slot`.
pub(super) fn around(
    text: &str,
    slot: &str,
) -> Result<(&'static str, &'static str, &'static str), String> {
    match text.split(slot).collect::<Vec<_>>()[..] {
        [open, between, close] => Ok((keep(lines(open)), keep(lines(between)), keep(lines(close)))),
        _ => Err(format!(
            "'{text}' does not have {slot} twice; expected what is before, between and after two"
        )),
    }
}

/// Returns the text with each ⏎ replaced by a newline.
pub(super) fn lines(text: &str) -> String {
    text.replace('⏎', "\n")
}

/// Leaks a text, so that it lives as long as the table.
pub(super) fn keep(text: impl Into<String>) -> &'static str {
    Box::leak(text.into().into_boxed_str())
}

/// Leaks a list of values, so that they live as long as the table.
pub(super) fn all<T>(values: Vec<T>) -> &'static [T] {
    Box::leak(values.into_boxed_slice())
}

/// Leaks a value, so that it lives as long as the table.
pub(super) fn one<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}
