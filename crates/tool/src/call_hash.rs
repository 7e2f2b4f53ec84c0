//! The hash of a call, by which a person's answer names exactly what the person saw.

use crate::canonical::{Hash, hex};
use std::fmt;

/// How many hexadecimal digits of the digest are kept: 128 bits cannot be made to fit another call
/// by trying.
const DIGITS: usize = 32;

/// The hash of a call: the first 32 hexadecimal digits of a SHA-256 digest, in small letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallHash([u8; DIGITS]);

impl CallHash {
    /// The first digits of this digest.
    pub(crate) fn of(digest: &Hash) -> CallHash {
        let mut digits = [0; DIGITS];
        digits.copy_from_slice(&hex(digest).as_bytes()[..DIGITS]);
        CallHash(digits)
    }

    /// Reads what [`CallHash::as_str`] returns; capital letters are accepted too. `None` for any
    /// other text.
    pub fn read(text: &str) -> Option<CallHash> {
        let digits: [u8; DIGITS] = text.as_bytes().try_into().ok()?;
        digits
            .iter()
            .all(u8::is_ascii_hexdigit)
            .then(|| CallHash(digits.map(|digit| digit.to_ascii_lowercase())))
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for CallHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_reads_back() {
        let base = CallHash::of(&[0xa7; 32]);
        let text = base.to_string();
        assert_eq!((text.len(), CallHash::read(&text)), (32, Some(base)));
        assert_eq!(CallHash::read(&text.to_uppercase()), Some(base));
        for bad in [
            "",
            "0",
            &text[1..],
            &format!("{text}0"),
            &format!("+{}", &text[1..]),
            &"é".repeat(16),
        ] {
            assert_eq!(CallHash::read(bad), None, "{bad}");
        }
    }
}
