//! The keys that clients may send, and random bytes.

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// The keys that clients may send.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    /// Their SHA-256 hashes; without any no key is needed.
    pub hashes: Vec<[u8; 32]>,
    /// The key that was made at the start, to be printed.
    pub made: Option<String>,
    /// The file that holds the keys.
    pub file: Option<PathBuf>,
}

impl Keys {
    /// A new key of 128 random bits.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub(crate) fn make() -> Result<Keys> {
        let key = random().context("/dev/urandom: no key can be made; give one with --key-file")?;
        let key = format!("tp-{}", hex(&key));
        Ok(Keys {
            hashes: vec![hash(&key)],
            made: Some(key),
            file: None,
        })
    }

    /// The keys of a file.
    ///
    /// # Errors
    /// One line for a file that cannot be read, or whose keys cannot be used.
    pub(crate) fn read(file: &Path) -> Result<Keys> {
        Ok(Keys {
            hashes: ::args::file(file, read_keys)?,
            made: None,
            file: Some(file.to_owned()),
        })
    }

    /// The place of `key` in the list. Takes the same time for every key of the same length.
    pub(crate) fn find(&self, key: &str) -> Option<usize> {
        let sent = hash(key);
        let mut found = None;
        for (place, known) in self.hashes.iter().enumerate() {
            let difference = known.iter().zip(&sent).fold(0, |all, (a, b)| all | (a ^ b));
            if difference == 0 {
                found = Some(place);
            }
        }
        found
    }

    /// A key's hash, in hexadecimal, by which a session names the key that began it.
    pub(crate) fn hash(&self, place: usize) -> String {
        hex(&self.hashes[place])
    }

    /// The place of the key with this hash, as [`Keys::hash`] gives it.
    pub(crate) fn place_of(&self, hash: &str) -> Option<usize> {
        self.hashes.iter().position(|known| hex(known) == hash)
    }

    /// The beginning of a key's hash, by which a log names it.
    pub(crate) fn name(&self, place: usize) -> String {
        hex(&self.hashes[place][..4])
    }
}

/// 16 random bytes.
///
/// # Errors
/// When `/dev/urandom` cannot be read.
pub(crate) fn random() -> std::io::Result<[u8; 16]> {
    use std::io::Read as _;
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Two hexadecimal digits for each byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hash(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}

/// The hashes of the keys of a file: one a line, empty lines and lines with # left out.
///
/// # Errors
/// One line for a file without a key, and for a key that is too short or has other characters.
fn read_keys(text: &str) -> Result<Vec<[u8; 32]>> {
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let keys: Vec<[u8; 32]> = lines
        .map(|key| {
            if key.len() < 16 || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
                bail!(
                    "a key has at least 16 letters, digits or signs and no space, make one with 'openssl rand -hex 16'"
                );
            }
            Ok(hash(key))
        })
        .collect::<Result<_>>()?;
    if keys.is_empty() {
        bail!("the file has no key, write one a line");
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_by_its_whole_text() {
        let keys = Keys {
            hashes: read_keys("# mine\n\n0123456789abcdef\n  another-key-of-mine \n").unwrap(),
            made: None,
            file: None,
        };
        assert_eq!(keys.find("0123456789abcdef"), Some(0));
        assert_eq!(keys.find("another-key-of-mine"), Some(1));
        assert_eq!(keys.find("0123456789abcde"), None);
        assert_eq!(keys.find(""), None);
        assert_eq!(keys.name(0).len(), 8);
        assert_eq!(keys.place_of(&keys.hash(1)), Some(1));
        assert_eq!(keys.place_of(&keys.name(1)), None);
        for wrong in ["", "# only\n", "short\n", "0123456789abcdef with spaces"] {
            assert!(read_keys(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn keys_that_are_made_differ() {
        let one = Keys::make().unwrap();
        let other = Keys::make().unwrap();
        assert_ne!(one.made, other.made);
        assert_eq!(one.find(one.made.as_deref().unwrap()), Some(0));
        assert_eq!(one.find(other.made.as_deref().unwrap()), None);
    }
}
