//! Variables of the environment in the values of a tools file: `$NAME`, `${NAME}` and
//! `${NAME:-text}`, as other clients of MCP write them.

/// A variable that a value needs and the environment does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the environment has no {0}, set it, or write ${{{0}:-TEXT}} for a text in its place")]
pub struct MissingVariable(pub String);

/// `text` with the values of its variables, and whether it has any. `$$` is one `$`; a `$` before
/// anything else is itself.
///
/// # Errors
/// [`MissingVariable`].
pub fn fill(
    text: &str,
    value: impl Fn(&str) -> Option<String>,
) -> Result<(String, bool), MissingVariable> {
    let (mut out, mut rest, mut found) = (String::with_capacity(text.len()), text, false);
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some((name, default, after)) = variable(rest) {
            found = true;
            match (value(name), default) {
                (Some(value), _) => out.push_str(&value),
                (None, Some(default)) => out.push_str(default),
                (None, None) => return Err(MissingVariable(name.to_owned())),
            }
            rest = after;
        } else {
            out.push('$');
        }
    }
    out.push_str(rest);
    Ok((out, found))
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
