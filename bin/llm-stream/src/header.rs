//! `--header 'K: V'`: a header of the user's, whose value may come from the environment.

use anyhow::{Context, Result, bail};
use redact::is_secret_header;

/// A header of the user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub name: String,
    pub value: String,
    /// Whether its value is from the environment, and must not be shown.
    pub is_secret: bool,
    /// What the environment holds, if the value names a variable.
    variable: Option<String>,
}

impl Header {
    /// Reads what was typed. Messages never repeat it: it may be a key.
    ///
    /// # Errors
    /// One line that names the remedy.
    pub fn read(typed: &str) -> Result<Header> {
        let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        let parts = typed.split_once(':').map(|(name, value)| (name.trim(), value.trim()));
        let Some((name, value)) = parts.filter(|(name, _)| !name.is_empty() && name.bytes().all(token)) else {
            bail!("--header: not a header, write it as 'X-Title: my app'");
        };
        let (before, variable) = match value.rsplit_once('$') {
            Some((before, rest)) => {
                (before, Some(rest.strip_prefix('{').and_then(|r| r.strip_suffix('}')).unwrap_or(rest)))
            }
            None => (value, None),
        };
        let (value, variable) = match variable {
            Some(variable) if is_name(variable) => {
                let inside = std::env::var(variable)
                    .with_context(|| format!("--header {name}: the environment has no {variable}, export it"))?;
                (format!("{before}{}", inside.trim()), Some(inside.trim().to_owned()))
            }
            // Other users can see what was typed.
            _ if is_secret_header(name) => {
                bail!("--header {name}: others can see a key that is typed here, export it and write '{name}: $NAME'")
            }
            _ => (value.to_owned(), None),
        };
        if value.chars().any(char::is_control) {
            bail!("--header {name}: a value cannot hold a line break or another control character, leave it out");
        }
        Ok(Header { name: name.to_owned(), value, is_secret: variable.is_some(), variable })
    }

    /// The secrets in it: the value of the variable, the credential behind a scheme (`Bearer`), and what `Basic` encodes.
    pub fn secrets(&self) -> Vec<String> {
        let Some(variable) = &self.variable else { return vec![] };
        let (scheme, credential) = self.value.rsplit_once(' ').unwrap_or(("", &self.value));
        let mut secrets = vec![variable.clone(), credential.to_owned()];
        if scheme.eq_ignore_ascii_case("basic") {
            secrets.extend(redact::basic(credential));
        }
        secrets
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_or_refused_with_a_remedy() {
        let read = Header::read("X-A:b: c").unwrap();
        assert_eq!((read.name.as_str(), read.value.as_str(), read.is_secret), ("X-A", "b: c", false));
        assert!(read.secrets().is_empty());
        let refused = |typed: &str| Header::read(typed).unwrap_err().to_string();
        assert!(refused("x y: 1").contains("X-Title") && refused("a: b\r\nc: d").contains("line break"));
        for typed in ["Authorization: Bearer abcdef", "X-My-Token: abcdef"] {
            let refused = refused(typed);
            assert!(refused.contains("$NAME") && !refused.contains("abcdef"), "{refused}");
        }
        assert!(refused("api-key: $NO_SUCH_VARIABLE_HERE").contains("NO_SUCH_VARIABLE_HERE"));
        assert!(Header::read("X-Price: 5$").is_ok() && Header::read("Idempotency-Key: 7").is_ok());
    }

    #[test]
    fn what_comes_from_the_environment_is_secret_whatever_the_name_is() {
        // The one variable that is surely there while tests run.
        let path = std::env::var("PATH").unwrap();
        let read = Header::read("X-Tenant: Basic ${PATH}").unwrap();
        assert!(read.is_secret && read.secrets().contains(&path) && read.value == format!("Basic {path}"));
    }
}
