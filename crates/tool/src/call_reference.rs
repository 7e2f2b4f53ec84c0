//! How a person names a call in an answer: `ID:HASH`.

use crate::call_hash::CallHash;
use crate::visible::{is_unclear, visible_json};
use std::fmt;

/// A call that waits for a person, named by its id and its hash. As text it is `ID:HASH`. An id
/// that begins with `"`, is empty, or has white space or a character that a terminal does not show
/// is written as a JSON string: `"a\nb":HASH`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallReference {
    /// The id of the call.
    pub id: Box<str>,
    /// The hash of the call.
    pub hash: CallHash,
}

/// Why a text is not a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// It has no hash.
    #[error(
        "it names no hash, and an id alone does not say what was seen: write ID:HASH, as --list-pending prints it"
    )]
    NoHash,
    /// The id begins with `"` and is not a JSON string.
    #[error("the id begins with \" and is not a JSON string, copy it as --list-pending prints it")]
    Quoting,
}

impl CallReference {
    /// Reads what [`fmt::Display`] writes. An id may hold `:`, since the hash is what follows the
    /// last one.
    ///
    /// # Errors
    /// A [`ReferenceError`].
    pub fn read(text: &str) -> Result<Self, ReferenceError> {
        let (id, hash) = text.rsplit_once(':').ok_or(ReferenceError::NoHash)?;
        let hash = CallHash::read(hash).ok_or(ReferenceError::NoHash)?;
        let id = if id.starts_with('"') {
            serde_json::from_str::<String>(id)
                .map_err(|_| ReferenceError::Quoting)?
                .into()
        } else {
            id.into()
        };
        Ok(CallReference { id, hash })
    }
}

impl fmt::Display for CallReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_odd = |c: char| c == ' ' || is_unclear(c);
        if self.id.is_empty() || self.id.starts_with('"') || self.id.contains(is_odd) {
            write!(
                f,
                "{}:{}",
                visible_json(&event::quoted(&self.id)),
                self.hash
            )
        } else {
            write!(f, "{}:{}", self.id, self.hash)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn every_id_reads_back_from_one_printable_line() {
        for id in [
            "call_1",
            "",
            "a:b",
            "a b",
            "a\nb",
            "\"",
            "\"a\":x",
            "é中",
            "a\u{202e}b",
            "a\u{200d}b",
            "--x",
            "\u{1b}[2J",
            "\\u202e",
            ":",
        ] {
            let hash = CallHash::read(HASH).unwrap();
            let reference = CallReference {
                id: id.into(),
                hash,
            };
            let text = reference.to_string();
            assert!(
                !text.contains(|c: char| is_unclear(c) || c == '\n'),
                "{text:?}"
            );
            assert_eq!(CallReference::read(&text), Ok(reference), "{text}");
        }
        assert_eq!(
            CallReference::read(&format!("a:{HASH}"))
                .unwrap()
                .to_string(),
            format!("a:{HASH}")
        );
    }

    #[test]
    fn an_id_alone_is_refused_with_the_remedy() {
        for text in [
            "call_1",
            "",
            "a:b",
            &format!("a:{}", &HASH[1..]),
            HASH,
            &format!("{HASH}:a"),
        ] {
            assert_eq!(
                CallReference::read(text),
                Err(ReferenceError::NoHash),
                "{text}"
            );
        }
        assert_eq!(
            CallReference::read(&format!("\"a:{HASH}")),
            Err(ReferenceError::Quoting)
        );
        assert!(
            ReferenceError::NoHash
                .to_string()
                .contains("--list-pending")
        );
    }
}
