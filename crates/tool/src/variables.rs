//! Variables of the environment in the texts of a tools file: `$NAME`, `${NAME}` and
//! `${NAME:-text}`, as other clients of MCP write them. `$$` is one `$`; a `$` before anything else
//! is itself. No argument of a model is ever put in such a text.

/// The name that is replaced by the key of the call, which is the same when the call runs again.
pub const CALL_ID: &str = "TOOL_CALL_ID";

/// The value of a header, or of a query's parameter: printable ASCII characters, with variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableText(String);

impl VariableText {
    /// Reads a text. `None` if it holds anything but printable ASCII characters: a line break would
    /// end a header.
    pub(crate) fn read(text: &str) -> Option<VariableText> {
        is_printable(text).then(|| VariableText(text.to_owned()))
    }

    /// Whether it holds anything but text.
    pub(crate) fn is_filled(&self) -> bool {
        !self.names().is_empty()
    }

    /// The names of its variables of the environment.
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

    /// The text with the values of its variables, without white space around each. `value` looks a
    /// variable up, or [`CALL_ID`].
    ///
    /// # Errors
    /// The name of a variable that is not set, is empty, or holds anything but printable ASCII
    /// characters.
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

/// A variable that a value needs and the environment does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the environment has no {0}, set it, or write ${{{0}:-TEXT}} for a text in its place")]
pub struct MissingVariable(pub String);

/// `text` with the values of its variables, and whether it has any.
///
/// # Errors
/// [`MissingVariable`].
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

/// `text` with what `value` returns in the place of each variable: it gets the name, and the text
/// for one that is missing.
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

/// The first `${…}` of a text that is not a variable of the environment, such as `${input:key}`.
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

/// The variable that follows a `$`: its name, the text in its place, and what follows it.
fn variable(text: &str) -> Option<(&str, Option<&str>, &str)> {
    if let Some(inner) = text.strip_prefix('{') {
        let (inner, after) = inner.split_once('}')?;
        // As VS Code writes it (https://code.visualstudio.com/docs/reference/variables-reference).
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

/// How many bytes at the beginning of `text` are the name of a variable.
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
