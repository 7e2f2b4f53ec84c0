//! The keys that clients may send, and random bytes.

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use tokio::sync::Notify;

/// The client, identified by the SHA-256 hash of its key; `None` if no key is required. It stays
/// valid and means the same client even if the list of keys changes.
pub(crate) type ClientKey = Option<KeyHash>;

/// The code of streams that end because the client's key was removed, and the reason for cancelling
/// its responses.
pub(crate) const KEY_REMOVED: &str = "key_removed";

/// The SHA-256 hash of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct KeyHash([u8; 32]);

impl KeyHash {
    fn of(key: &str) -> KeyHash {
        KeyHash(Sha256::digest(key.as_bytes()).into())
    }

    /// Parses a hash written by [`KeyHash::hex`]. Returns `None` if `hex` is not one.
    pub(crate) fn parse(hex: &str) -> Option<KeyHash> {
        let mut bytes = [0; 32];
        let digits = hex.as_bytes();
        if digits.len() != 2 * bytes.len() || !hex.is_ascii() {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(0..) {
            *byte = u8::from_str_radix(hex.get(2 * pair..2 * pair + 2)?, 16).ok()?;
        }
        Some(KeyHash(bytes))
    }

    /// Returns the hash in hexadecimal. A session stores it to name the key that created it.
    pub(crate) fn hex(self) -> String {
        hex(&self.0)
    }

    /// Returns the start of the hash, which names the key in logs.
    pub(crate) fn name(self) -> String {
        hex(&self.0[..4])
    }
}

/// The keys that clients may send.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    /// The hashes of the keys. If there are none, no key is required.
    pub hashes: Vec<KeyHash>,
    /// The key generated at startup, to be printed; `None` if the keys come from a file.
    pub made: Option<String>,
    /// The file that contains the keys, if there is one.
    pub file: Option<PathBuf>,
}

impl Keys {
    /// Generates a key of 128 random bits.
    ///
    /// # Errors
    /// If the system cannot supply random bytes.
    pub(crate) fn make() -> Result<Keys> {
        let key =
            random().context("/dev/urandom: no key can be generated; give one with --key-file")?;
        let key = format!("tp-{}", hex(&key));
        Ok(Keys {
            hashes: vec![KeyHash::of(&key)],
            made: Some(key),
            file: None,
        })
    }

    /// Reads the keys from a file.
    ///
    /// # Errors
    /// A one-line error if the file cannot be read, or contains invalid keys.
    pub(crate) fn read(file: &Path) -> Result<Keys> {
        Ok(Keys {
            hashes: ::args::file(file, read_keys)?,
            made: None,
            file: Some(file.to_owned()),
        })
    }

    /// Returns the hash of `key` if clients may use that key. Takes the same time for all keys of
    /// the same length.
    pub(crate) fn find(&self, key: &str) -> ClientKey {
        let sent = KeyHash::of(key);
        let mut found = None;
        for known in &self.hashes {
            let pairs = known.0.iter().zip(&sent.0);
            if pairs.fold(0, |all, (a, b)| all | (a ^ b)) == 0 {
                found = Some(*known);
            }
        }
        found
    }

    /// Whether the key with this hash is valid.
    pub(crate) fn has(&self, key: KeyHash) -> bool {
        self.hashes.contains(&key)
    }
}

/// The keys that are valid now. All clones share one list.
#[derive(Clone, Debug)]
pub(crate) struct CurrentKeys(Rc<CurrentKeysState>);

#[derive(Debug)]
struct CurrentKeysState {
    keys: RefCell<Keys>,
    changed: Notify,
}

impl CurrentKeys {
    /// Creates the list with these keys, until they are replaced.
    pub(crate) fn new(keys: Keys) -> CurrentKeys {
        CurrentKeys(Rc::new(CurrentKeysState {
            keys: RefCell::new(keys),
            changed: Notify::new(),
        }))
    }

    /// Whether requests need a key.
    pub(crate) fn are_needed(&self) -> bool {
        !self.0.keys.borrow().hashes.is_empty()
    }

    /// Returns the hash of `key` if it is valid; see [`Keys::find`].
    pub(crate) fn find(&self, key: &str) -> ClientKey {
        self.0.keys.borrow().find(key)
    }

    /// Whether this client's key is still valid.
    pub(crate) fn admit(&self, key: ClientKey) -> bool {
        key.is_none_or(|key| self.0.keys.borrow().has(key))
    }

    /// Returns the path of the file that contains the keys, if there is one.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        self.0.keys.borrow().file.clone()
    }

    /// Replaces the keys. Responses that were started with a removed key end.
    pub(crate) fn replace(&self, keys: Keys) {
        *self.0.keys.borrow_mut() = keys;
        self.0.changed.notify_waiters();
    }

    /// Waits until this client's key is removed.
    pub(crate) fn removed(&self, key: ClientKey) -> impl Future<Output = ()> + use<> {
        let keys = self.clone();
        async move {
            loop {
                let changed = keys.0.changed.notified();
                if !keys.admit(key) {
                    return;
                }
                changed.await;
            }
        }
    }
}

/// Returns 16 random bytes.
///
/// # Errors
/// If `/dev/urandom` cannot be read.
pub(crate) fn random() -> std::io::Result<[u8; 16]> {
    use std::io::Read as _;
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Returns the bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Parses a file of keys and returns their hashes. Each line is a key; empty lines and lines that
/// start with # are skipped.
///
/// # Errors
/// A one-line error if the file has no key, or a key is too short or has invalid characters.
fn read_keys(text: &str) -> Result<Vec<KeyHash>> {
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let keys: Vec<KeyHash> = lines
        .map(|key| {
            if key.len() < 16 || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
                bail!(
                    "a key has at least 16 letters, digits or signs and no space, make one with 'openssl rand -hex 16'"
                );
            }
            Ok(KeyHash::of(key))
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
        let known = ["0123456789abcdef", "another-key-of-mine"];
        for key in known {
            let found = keys.find(key).unwrap();
            assert_eq!(found, KeyHash::of(key));
            assert_eq!(found.name().len(), 8);
            assert_eq!(KeyHash::parse(&found.hex()), Some(found));
            assert_eq!(KeyHash::parse(&found.name()), None);
        }
        for wrong in ["0123456789abcde", ""] {
            assert_eq!(keys.find(wrong), None);
        }
        assert_eq!(KeyHash::parse(&"é".repeat(32)), None);
        for wrong in ["", "# only\n", "short\n", "0123456789abcdef with spaces"] {
            assert!(read_keys(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_key_is_removed_with_its_line_and_not_by_another_order() {
        let keys = |text: &str| Keys {
            hashes: read_keys(text).unwrap(),
            ..Keys::default()
        };
        let [one, other] = ["0123456789abcdef", "another-key-of-mine"];
        let current = CurrentKeys::new(keys(&format!("{one}\n{other}\n")));
        let is_removed = |removed: &mut std::pin::Pin<Box<dyn Future<Output = ()>>>| {
            let waker = std::task::Waker::noop();
            removed
                .as_mut()
                .poll(&mut std::task::Context::from_waker(waker))
                .is_ready()
        };
        let [mut first, mut second, mut nobody] = [current.find(one), current.find(other), None]
            .map(|key| {
                Box::pin(current.removed(key)) as std::pin::Pin<Box<dyn Future<Output = ()>>>
            });
        for text in [
            format!("{other}\n{one}\n"),
            format!("{other}\n{other}\n{one}\n"),
        ] {
            current.replace(keys(&text));
            assert!(!is_removed(&mut first) && !is_removed(&mut second));
        }
        current.replace(keys(&format!("{other}\n")));
        assert!(is_removed(&mut first) && !is_removed(&mut second) && !is_removed(&mut nobody));
    }

    #[test]
    fn keys_that_are_made_differ() {
        let one = Keys::make().unwrap();
        let other = Keys::make().unwrap();
        assert_ne!(one.made, other.made);
        assert!(one.find(one.made.as_deref().unwrap()).is_some());
        assert_eq!(one.find(other.made.as_deref().unwrap()), None);
    }
}
