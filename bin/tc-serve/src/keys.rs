//! The keys that clients may send, and random bytes.

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use tokio::sync::Notify;

/// Which client asks: its key by the SHA-256 hash, `None` where no key is asked for. It is a value of
/// its own, so that it means the same client whatever becomes of the list of keys.
pub(crate) type ClientKey = Option<KeyHash>;

/// Who cancels the responses of a key that is taken out, and the code of streams that end with it.
pub(crate) const KEY_REMOVED: &str = "key_removed";

/// The SHA-256 hash of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct KeyHash([u8; 32]);

impl KeyHash {
    fn of(key: &str) -> KeyHash {
        KeyHash(Sha256::digest(key.as_bytes()).into())
    }

    /// The hash that a session names ([`KeyHash::hex`]).
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

    /// The hash in hexadecimal, by which a session names the key that began it.
    pub(crate) fn hex(self) -> String {
        hex(&self.0)
    }

    /// The beginning of the hash, by which a log names the key.
    pub(crate) fn name(self) -> String {
        hex(&self.0[..4])
    }
}

/// The keys that clients may send.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    /// Their hashes; without any no key is needed.
    pub hashes: Vec<KeyHash>,
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
        let key =
            random().context("/dev/urandom: no key can be generated; give one with --key-file")?;
        let key = format!("tp-{}", hex(&key));
        Ok(Keys {
            hashes: vec![KeyHash::of(&key)],
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

    /// The hash of `key` if clients may send it. Takes the same time for every key of the same length.
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

    /// Whether clients may send the key of this hash.
    pub(crate) fn has(&self, key: KeyHash) -> bool {
        self.hashes.contains(&key)
    }
}

/// The keys that clients may send now. All clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct CurrentKeys(Rc<CurrentKeysState>);

#[derive(Debug)]
struct CurrentKeysState {
    keys: RefCell<Keys>,
    changed: Notify,
}

impl CurrentKeys {
    /// These keys, until they are replaced.
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

    /// As [`Keys::find`].
    pub(crate) fn find(&self, key: &str) -> ClientKey {
        self.0.keys.borrow().find(key)
    }

    /// Whether this client may still ask.
    pub(crate) fn admit(&self, key: ClientKey) -> bool {
        key.is_none_or(|key| self.0.keys.borrow().has(key))
    }

    /// The file that holds the keys.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        self.0.keys.borrow().file.clone()
    }

    /// Takes other keys. What was begun with a key that is not one of them ends.
    pub(crate) fn replace(&self, keys: Keys) {
        *self.0.keys.borrow_mut() = keys;
        self.0.changed.notify_waiters();
    }

    /// Waits until the key of this client is taken out.
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

/// The hashes of the keys of a file: one a line, empty lines and lines with # left out.
///
/// # Errors
/// One line for a file without a key, and for a key that is too short or has other characters.
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
