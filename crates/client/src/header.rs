//! A request header whose value may come from an environment variable, and is then secret.

use redact::is_secret_header;

/// A request header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// The name, spelled as given.
    pub name: String,
    /// Its value.
    pub value: String,
    /// The variable's content; `None` if the value names no variable.
    variable: Option<String>,
}

/// Why a text is not a valid header. Messages never repeat the value, since it may be a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The text is not a name, a colon and a value.
    #[error("not a header, write it as 'X-Title: my app'")]
    Shape,
    /// The header's name, and the variable that is not set.
    #[error("{0}: the environment has no {1}, export it")]
    NoVariable(String, String),
    /// The name of a header whose value is a key written in plain text.
    #[error("{0}: others can see a key that is written here, export it and write '{0}: $NAME'")]
    PlainSecret(String),
    /// The name of a header whose value contains a control character.
    #[error("{0}: a value cannot hold a line break or another control character, leave it out")]
    Control(String),
}

impl RequestHeader {
    /// Parses `NAME: VALUE`. The value may be, or end with, `$VARIABLE` or `${VARIABLE}`, which
    /// `variable` looks up.
    ///
    /// # Errors
    /// See [`HeaderError`].
    pub fn read(
        text: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<RequestHeader, HeaderError> {
        let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        let parts = text
            .split_once(':')
            .map(|(name, value)| (name.trim().to_owned(), value.trim()));
        let Some((name, value)) =
            parts.filter(|(name, _)| !name.is_empty() && name.bytes().all(token))
        else {
            return Err(HeaderError::Shape);
        };
        let (before, named) = match value.rsplit_once('$') {
            Some((before, rest)) => (
                before,
                Some(
                    rest.strip_prefix('{')
                        .and_then(|r| r.strip_suffix('}'))
                        .unwrap_or(rest),
                ),
            ),
            None => (value, None),
        };
        let (value, variable) = match named {
            Some(named) if is_variable(named) => {
                let Some(held) = variable(named) else {
                    return Err(HeaderError::NoVariable(name, named.to_owned()));
                };
                (
                    format!("{before}{}", held.trim()),
                    Some(held.trim().to_owned()),
                )
            }
            _ if is_secret_header(&name) => return Err(HeaderError::PlainSecret(name)),
            _ => (value.to_owned(), None),
        };
        if value.chars().any(char::is_control) {
            return Err(HeaderError::Control(name));
        }
        Ok(RequestHeader {
            name,
            value,
            variable,
        })
    }

    /// Whether the value comes from a variable. Such a value must not be shown, whatever the
    /// header's name.
    pub fn is_secret(&self) -> bool {
        self.variable.is_some()
    }

    /// Returns the secrets in the value: the variable's content, the credential after a scheme such
    /// as `Bearer`, and the text that `Basic` encodes.
    pub fn secrets(&self) -> Vec<String> {
        let Some(variable) = &self.variable else {
            return vec![];
        };
        let (scheme, credential) = self.value.rsplit_once(' ').unwrap_or(("", &self.value));
        let mut secrets = vec![variable.clone(), credential.to_owned()];
        if scheme.eq_ignore_ascii_case("basic") {
            secrets.extend(redact::basic(credential));
        }
        secrets
    }
}

fn is_variable(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<RequestHeader, HeaderError> {
        RequestHeader::read(text, |name| (name == "KEY").then(|| " k-1\n".to_owned()))
    }

    #[test]
    fn headers_are_read_or_refused_with_a_remedy() {
        let plain = read("X-A:b: c").unwrap();
        assert_eq!(
            (plain.name.as_str(), plain.value.as_str(), plain.is_secret()),
            ("X-A", "b: c", false)
        );
        assert!(plain.secrets().is_empty());
        let refused = |text: &str| read(text).unwrap_err().to_string();
        assert!(
            refused("x y: 1").contains("X-Title") && refused("a: b\r\nc: d").contains("line break")
        );
        for text in ["Authorization: Bearer abcdef", "X-My-Token: abcdef"] {
            let refused = refused(text);
            assert!(
                refused.contains("$NAME") && !refused.contains("abcdef"),
                "{refused}"
            );
        }
        assert!(refused("api-key: $OTHER").contains("no OTHER"));
        assert!(read("X-Price: 5$").is_ok() && read("Idempotency-Key: 7").is_ok());
    }

    #[test]
    fn what_comes_from_a_variable_is_secret_whatever_the_name_is() {
        let read = read("X-Tenant: Basic ${KEY}").unwrap();
        assert!(
            read.is_secret()
                && read.secrets().contains(&"k-1".to_owned())
                && read.value == "Basic k-1"
        );
    }
}
