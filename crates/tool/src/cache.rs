//! The key of a result in the cache.

use crate::argument::Arguments;
use crate::canonical::{Hash, digest};

/// The key of a call's result: a digest of the tool's definition, the canonical arguments, and all
/// of `around` that could change the result: what really runs, its environment, its folder, its
/// sandbox. Whatever could change the result changes the key.
pub fn key(definition: &Hash, arguments: &Arguments, around: &[Vec<u8>]) -> Hash {
    let canonical = arguments.canonical();
    let texts: [&[u8]; 2] = [definition, canonical.as_bytes()];
    digest(texts.into_iter().chain(around.iter().map(Vec::as_slice)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_could_change_the_result_changes_the_key() {
        let args = |text| Arguments::read(text).unwrap();
        let around = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| text.as_bytes().to_vec())
                .collect::<Vec<_>>()
        };
        let base = key(&[1; 32], &args(r#"{"a":1,"b":2}"#), &around(&["A", "x"]));
        assert_eq!(
            base,
            key(&[1; 32], &args(r#"{ "b":2, "a":1 }"#), &around(&["A", "x"]))
        );
        assert_ne!(
            base,
            key(&[2; 32], &args(r#"{"a":1,"b":2}"#), &around(&["A", "x"]))
        );
        assert_ne!(
            base,
            key(&[1; 32], &args(r#"{"a":1,"b":3}"#), &around(&["A", "x"]))
        );
        assert_ne!(
            base,
            key(&[1; 32], &args(r#"{"a":1,"b":2}"#), &around(&["A", "y"]))
        );
        assert_ne!(
            base,
            key(&[1; 32], &args(r#"{"a":1,"b":2}"#), &around(&["Ax"]))
        );
    }
}
