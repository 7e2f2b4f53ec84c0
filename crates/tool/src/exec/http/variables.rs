//! A text of the tools file in which `$NAME` is replaced by a variable of the environment: the
//! value of a header, or of a query's parameter.
//!
//! `$NAME` and `${NAME}` are the variable of that name, `$$` is the text `$`, and a `$` before
//! anything else is text. No argument of a model is ever put in such a text. `$TOOL_CALL_ID` is the
//! key of the call, as commands get it in their environment.

/// The name that is replaced by the key of the call, which is the same when the call runs again.
pub const CALL_ID: &str = "TOOL_CALL_ID";

/// A text with variables of the environment in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableText {
    parts: Vec<TextPart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TextPart {
    Text(String),
    Variable(String),
}

impl VariableText {
    /// Reads a text. `None` if it holds anything but printable ASCII characters: a line break would
    /// end a header.
    pub(crate) fn read(text: &str) -> Option<VariableText> {
        if !is_printable(text) {
            return None;
        }
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            plain.push_str(before);
            if let Some(after) = after.strip_prefix('$') {
                plain.push('$');
                rest = after;
                continue;
            }
            let name = match after
                .strip_prefix('{')
                .and_then(|inner| inner.split_once('}'))
            {
                Some((name, after)) if is_name(name) => Some((name, after)),
                _ => {
                    let end = after
                        .bytes()
                        .position(|b| !is_name_byte(b))
                        .unwrap_or(after.len());
                    Some(after.split_at(end)).filter(|(name, _)| is_name(name))
                }
            };
            match name {
                Some((name, after)) => {
                    if !plain.is_empty() {
                        parts.push(TextPart::Text(std::mem::take(&mut plain)));
                    }
                    parts.push(TextPart::Variable(name.to_owned()));
                    rest = after;
                }
                None => {
                    plain.push('$');
                    rest = after;
                }
            }
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(TextPart::Text(plain));
        }
        Some(VariableText { parts })
    }

    /// Whether it holds anything but text.
    pub(crate) fn is_filled(&self) -> bool {
        self.parts
            .iter()
            .any(|part| matches!(part, TextPart::Variable(_)))
    }

    /// The names of its variables of the environment.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            TextPart::Variable(name) => Some(name.as_str()).filter(|name| *name != CALL_ID),
            TextPart::Text(_) => None,
        })
    }

    /// The text with the values of its variables, without white space around each. `value` looks a
    /// variable up, or [`CALL_ID`].
    ///
    /// # Errors
    /// The name of a variable that is not set, is empty, or holds anything but printable ASCII
    /// characters.
    pub fn fill(&self, value: impl Fn(&str) -> Option<String>) -> Result<String, VariableError> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                TextPart::Text(plain) => text.push_str(plain),
                TextPart::Variable(name) => match value(name).as_deref().map(str::trim) {
                    None | Some("") => return Err(VariableError::Missing(name.clone())),
                    Some(held) if !is_printable(held) => {
                        return Err(VariableError::Control(name.clone()));
                    }
                    Some(held) => text.push_str(held),
                },
            }
        }
        Ok(text)
    }
}

/// Why a variable cannot be used. No message holds its value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VariableError {
    /// It is not set, or empty.
    #[error("the environment has no {0}")]
    Missing(String),
    /// It holds a line break or another character that a header cannot hold.
    #[error("the variable {0} holds a line break or another character that cannot be sent")]
    Control(String),
}

fn is_printable(text: &str) -> bool {
    text.bytes().all(|b| (b' '..=b'~').contains(&b))
}

fn is_name(text: &str) -> bool {
    text.bytes().all(is_name_byte)
        && !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(text: &str) -> Result<String, VariableError> {
        let value = |name: &str| match name {
            "KEY" => Some(" k-1\n".to_owned()),
            "BAD" => Some("a\r\nX-Evil: 1".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        VariableText::read(text).unwrap().fill(value)
    }

    #[test]
    fn variables_are_replaced_and_dollars_are_text_elsewhere() {
        for (text, filled) in [
            ("Bearer $KEY", "Bearer k-1"),
            ("$KEY", "k-1"),
            ("${KEY}x$KEY", "k-1xk-1"),
            ("$KEY.v2", "k-1.v2"),
            ("5$ and $", "5$ and $"),
            ("$$KEY", "$KEY"),
            ("$1 ${}", "$1 ${}"),
            ("", ""),
        ] {
            assert_eq!(fill(text).as_deref(), Ok(filled), "{text}");
        }
        assert_eq!(
            VariableText::read("a $B ${C}")
                .unwrap()
                .variables()
                .collect::<Vec<_>>(),
            ["B", "C"]
        );
    }

    #[test]
    fn a_variable_that_cannot_be_sent_is_named_without_its_value() {
        for (text, says) in [
            ("$OTHER", "the environment has no OTHER"),
            ("$EMPTY", "the environment has no EMPTY"),
            (
                "$BAD",
                "the variable BAD holds a line break or another character that cannot be sent",
            ),
        ] {
            assert_eq!(fill(text).unwrap_err().to_string(), says);
        }
        assert!(VariableText::read("a\r\nb").is_none() && VariableText::read("é").is_none());
    }
}
