//! The key of a result in the cache.

use crate::argument::Arguments;
use crate::canonical::{Hash, digest};

/// The key of a call's result: a digest of the tool's definition, the canonical arguments, the environment that the tool gets (names and
/// values), and the folder it runs in. Whatever could change the result changes the key.
pub fn key(definition: &Hash, arguments: &Arguments, env: &[(String, String)], folder: &str) -> Hash {
    let canonical = arguments.canonical();
    let mut texts: Vec<&[u8]> = vec![definition, canonical.as_bytes(), folder.as_bytes()];
    for (name, value) in env {
        texts.extend([name.as_bytes(), value.as_bytes()]);
    }
    digest(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_could_change_the_result_changes_the_key() {
        let args = |text| Arguments::read(text).unwrap();
        let env = |value: &str| vec![("A".to_owned(), value.to_owned())];
        let base = key(&[1; 32], &args(r#"{"a":1,"b":2}"#), &env("x"), "/");
        assert_eq!(base, key(&[1; 32], &args(r#"{ "b":2, "a":1 }"#), &env("x"), "/"));
        assert_ne!(base, key(&[2; 32], &args(r#"{"a":1,"b":2}"#), &env("x"), "/"));
        assert_ne!(base, key(&[1; 32], &args(r#"{"a":1,"b":3}"#), &env("x"), "/"));
        assert_ne!(base, key(&[1; 32], &args(r#"{"a":1,"b":2}"#), &env("y"), "/"));
        assert_ne!(base, key(&[1; 32], &args(r#"{"a":1,"b":2}"#), &env("x"), "/tmp"));
    }
}
