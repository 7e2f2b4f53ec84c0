//! Environment variables in the texts of a tools file: `$NAME`, `${NAME}` and `${NAME:-text}`, as
//! other MCP clients write them. `$$` is a literal `$`, and so is a `$` before anything else. An
//! argument from a model is never inserted into such a text.

/// The variable that is replaced by the call's idempotency key, which is the same when the call
/// runs again.
pub const CALL_ID: &str = "TOOL_CALL_ID";

/// The value of a header or a query parameter: printable ASCII with variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableText(String);

impl VariableText {
    /// Checks a text. Returns `None` if it contains anything but printable ASCII: a line break
    /// would end a header.
    pub(crate) fn read(text: &str) -> Option<VariableText> {
        is_printable(text).then(|| VariableText(text.to_owned()))
    }

    /// Whether the text contains variables.
    pub(crate) fn is_filled(&self) -> bool {
        !self.names().is_empty()
    }

    /// Returns the names of the environment variables in the text.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.names().into_iter().filter(|name| *name != CALL_ID)
    }

    fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        let _ = replaced(&self.0, |name, _| {
            names.push(name);
            Ok::<_, VariableError>(String::new())
        });
        names
    }

    /// Returns the text with the variables replaced by their values, each trimmed of white space.
    /// `value` returns the value of an environment variable or of [`CALL_ID`].
    ///
    /// # Errors
    /// Returns the name of a variable that is not set, is empty, or contains anything but printable
    /// ASCII.
    pub fn fill(&self, value: impl Fn(&str) -> Option<String>) -> Result<String, VariableError> {
        replaced(&self.0, |name, default| {
            let held = value(name).map(|held| held.trim().to_owned());
            let held = held.filter(|held| !held.is_empty());
            match held.or_else(|| default.map(str::to_owned)) {
                None => Err(VariableError::Missing(name.to_owned())),
                Some(held) if !is_printable(&held) => Err(VariableError::Control(name.to_owned())),
                Some(held) => Ok(held),
            }
        })
    }
}

/// Why a variable cannot be used. The message never contains its value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VariableError {
    /// The variable is not set or is empty.
    #[error("the environment has no {0}")]
    Missing(String),
    /// The value contains a line break or another character that a header cannot contain.
    #[error("the variable {0} holds a line break or another character that cannot be sent")]
    Control(String),
}

fn is_printable(text: &str) -> bool {
    text.bytes().all(|b| (b' '..=b'~').contains(&b))
}

/// A variable that a text needs but that the environment lacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the environment has no {0}, set it, or write ${{{0}:-TEXT}} for a text in its place")]
pub struct MissingVariable(pub String);

/// Returns `text` with its variables replaced, and whether it has any.
///
/// # Errors
/// Returns a [`MissingVariable`].
pub fn fill(
    text: &str,
    value: impl Fn(&str) -> Option<String>,
) -> Result<(String, bool), MissingVariable> {
    let mut found = false;
    let filled = replaced(text, |name, default| {
        found = true;
        value(name)
            .or_else(|| default.map(str::to_owned))
            .ok_or_else(|| MissingVariable(name.to_owned()))
    })?;
    Ok((filled, found))
}

/// Returns `text` with each variable replaced by the result of `value`, which receives the
/// variable's name and its default.
fn replaced<'t, E>(
    text: &'t str,
    mut value: impl FnMut(&'t str, Option<&'t str>) -> Result<String, E>,
) -> Result<String, E> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        rest = after;
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some((name, default, after)) = variable(rest) {
            out.push_str(&value(name, default)?);
            rest = after;
        } else {
            out.push('$');
        }
    }
    Ok(out + rest)
}

/// Returns the first `${…}` in a text that is not an environment variable, such as `${input:key}`.
pub(crate) fn unknown_variable(text: &str) -> Option<&str> {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('$') {
        if let Some(after) = after.strip_prefix('$') {
            rest = after;
        } else if let Some((_, _, after)) = variable(after) {
            rest = after;
        } else {
            if after.starts_with('{')
                && let Some(length) = after.find('}')
            {
                let start = text.len() - after.len() - 1;
                return Some(&text[start..=start + 1 + length]);
            }
            rest = after;
        }
    }
    None
}

/// Parses the variable after a `$`. Returns its name, its default, and the rest of the text.
fn variable(text: &str) -> Option<(&str, Option<&str>, &str)> {
    if let Some(inner) = text.strip_prefix('{') {
        let (inner, after) = inner.split_once('}')?;
        // VS Code's notation (https://code.visualstudio.com/docs/reference/variables-reference).
        let inner = inner.strip_prefix("env:").unwrap_or(inner);
        let (name, default) = inner
            .split_once(":-")
            .map_or((inner, None), |(name, text)| (name, Some(text)));
        return (name_length(name) == name.len() && !name.is_empty())
            .then_some((name, default, after));
    }
    let end = name_length(text);
    (end > 0).then(|| (&text[..end], None, &text[end..]))
}

/// Returns the length in bytes of the variable name at the start of `text`.
fn name_length(text: &str) -> usize {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return 0;
    }
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> Result<String, VariableError> {
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
        for (text, whole) in [
            ("Bearer $KEY", "Bearer k-1"),
            ("$KEY", "k-1"),
            ("${KEY}x$KEY", "k-1xk-1"),
            ("$KEY.v2", "k-1.v2"),
            ("5$ and $", "5$ and $"),
            ("$$KEY", "$KEY"),
            ("$1 ${}", "$1 ${}"),
            ("", ""),
        ] {
            assert_eq!(filled(text).as_deref(), Ok(whole), "{text}");
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
            assert_eq!(filled(text).unwrap_err().to_string(), says);
        }
        assert!(VariableText::read("a\r\nb").is_none() && VariableText::read("é").is_none());
    }

    #[test]
    fn variables_are_filled_in_and_other_dollars_stay() {
        let value = |name: &str| (name == "KEY").then(|| "k$KEY".to_owned());
        for (text, want) in [
            ("Bearer $KEY", ("Bearer k$KEY", true)),
            ("${KEY}x$KEY.y", ("k$KEYxk$KEY.y", true)),
            ("${env:KEY}", ("k$KEY", true)),
            ("${OTHER:-a b}", ("a b", true)),
            ("5$ $1 ${} ${a b} $", ("5$ $1 ${} ${a b} $", false)),
            ("$$KEY", ("$KEY", false)),
        ] {
            assert_eq!(fill(text, value), Ok((want.0.to_owned(), want.1)), "{text}");
        }
        assert!(
            fill("$OTHER", value)
                .unwrap_err()
                .to_string()
                .starts_with("the environment has no OTHER, set it")
        );
    }
}
