//! The targets of the references inside a schema.

use serde_json::{Map, Value};
use std::collections::HashMap;

/// The parts of a schema that a reference can name: the roots that pointers start at, and the
/// anchors.
#[derive(Debug)]
pub(super) struct References<'s> {
    /// The schema, and each part with an `$id`: the pointers below such a part start there.
    roots: Vec<&'s Value>,
    anchors: HashMap<&'s str, Vec<&'s Value>>,
}

impl<'s> References<'s> {
    pub(super) fn new(root: &'s Value) -> References<'s> {
        let mut found = References {
            roots: vec![root],
            anchors: HashMap::new(),
        };
        let mut rest = vec![root];
        while let Some(value) = rest.pop() {
            match value {
                Value::Array(items) => rest.extend(items),
                Value::Object(members) => {
                    found.note(value, members);
                    rest.extend(members.values());
                }
                _ => {}
            }
        }
        found
    }

    /// How many roots there are.
    pub(super) fn roots(&self) -> usize {
        self.roots.len()
    }

    /// Notes the names of a part of the schema.
    fn note(&mut self, part: &'s Value, members: &'s Map<String, Value>) {
        for key in ["$id", "id", "$anchor", "$dynamicAnchor"] {
            let Some(Value::String(name)) = members.get(key) else {
                continue;
            };
            match name.strip_prefix('#') {
                Some(anchor) => self.anchors.entry(anchor).or_default().push(part),
                None if key.ends_with("nchor") => self.anchors.entry(name).or_default().push(part),
                None if !std::ptr::eq(part, self.roots[0]) => self.roots.push(part),
                None => {}
            }
        }
    }

    /// Every part that a reference inside the schema (`#…`) may lead to. The drafts of JSON Schema
    /// differ in the root that a pointer starts at, so each root is tried: the cost must cover the
    /// part that the validator takes.
    pub(super) fn targets(&self, reference: &str) -> Vec<&'s Value> {
        let Some(fragment) = reference.strip_prefix('#') else {
            return Vec::new();
        };
        let fragment = decoded(fragment);
        if fragment.is_empty() || fragment.starts_with('/') {
            self.roots
                .iter()
                .filter_map(|root| pointed(root, &fragment))
                .collect()
        } else {
            self.anchors
                .get(fragment.as_str())
                .cloned()
                .unwrap_or_default()
        }
    }
}

/// The part that a JSON pointer leads to. Like the validator, it accepts array indexes with leading
/// zeros or a sign.
fn pointed<'s>(root: &'s Value, pointer: &str) -> Option<&'s Value> {
    pointer.split('/').skip(1).try_fold(root, |value, token| {
        let token = token.replace("~1", "/").replace("~0", "~");
        match value {
            Value::Object(members) => members.get(&token),
            Value::Array(items) => items.get(token.parse::<usize>().ok()?),
            _ => None,
        }
    })
}

/// A URI's fragment without its percent escapes.
fn decoded(fragment: &str) -> String {
    let hex = |byte: Option<u8>| byte.and_then(|b| char::from(b).to_digit(16));
    let mut bytes = fragment.bytes();
    let mut out = Vec::with_capacity(fragment.len());
    while let Some(byte) = bytes.next() {
        let mut ahead = bytes.clone();
        match (byte, hex(ahead.next()), hex(ahead.next())) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                bytes = ahead;
            }
            _ => out.push(byte),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_way_to_name_a_part() {
        let schema = json!({
            "$id": "https://example.org/s",
            "$defs": {"a b": [1, {"$anchor": "x"}], "c/d": 2, "inner": {"$id": "inner", "$defs": {"e": 3}}, "old": {"$id": "#y"}},
            "e": 4,
        });
        let references = References::new(&schema);
        let found = |reference: &str| {
            references
                .targets(reference)
                .iter()
                .map(|v| v.to_string().chars().take(20).collect::<String>())
                .collect::<Vec<_>>()
        };
        assert_eq!(found("#/e"), ["4"]);
        assert_eq!(found("#/$defs/a%20b/0"), ["1"]);
        assert_eq!(found("#/$defs/a%20b/00"), ["1"]);
        assert_eq!(found("#/%24defs/c~1d"), ["2"]);
        assert_eq!(found("#/$defs/e"), ["3"]);
        assert_eq!(found("#x"), [r#"{"$anchor":"x"}"#]);
        assert_eq!(found("#y"), [r##"{"$id":"#y"}"##]);
        assert_eq!(references.targets("#").len(), 2);
        assert!(
            found("#/none").is_empty()
                && found("#none").is_empty()
                && found("http://x").is_empty()
                && found("#%").is_empty()
        );
    }
}
