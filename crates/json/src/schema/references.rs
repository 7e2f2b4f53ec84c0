//! Finds the targets of a schema's references, and checks that references terminate.

use super::size::{DATA, NAMED, REFERENCES};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// The maximum number of schemas in a row that apply to the same value. Each uses stack at each
/// level of the value.
const MAX_ROW: usize = 48;
/// The maximum number of parts with an `$id`, because each reference is looked up in all of them.
const MAX_ROOTS: usize = 100;
const ROW: &str = "more than 48 schemas in a row apply to one value";

/// The parts of a schema that a reference can name: the roots at which pointers start, and the
/// anchors.
#[derive(Debug)]
pub(super) struct References<'s> {
    /// The whole schema, and each part with an `$id`: pointers inside such a part start there.
    roots: Vec<&'s Value>,
    anchors: HashMap<&'s str, Vec<&'s Value>>,
    /// Each part of the schema that may be a schema.
    parts: Vec<&'s Value>,
}

impl<'s> References<'s> {
    pub(super) fn new(root: &'s Value) -> References<'s> {
        let mut found = References {
            roots: vec![root],
            anchors: HashMap::new(),
            parts: Vec::new(),
        };
        let mut rest = vec![root];
        while let Some(value) = rest.pop() {
            match value {
                Value::Array(items) => rest.extend(items),
                Value::Object(members) => {
                    found.note(value, members);
                    for (key, value) in members {
                        match (key.as_str(), value) {
                            (key, _) if DATA.contains(&key) => {}
                            (key, Value::Object(named)) if NAMED.contains(&key) => {
                                rest.extend(named.values());
                            }
                            _ => rest.push(value),
                        }
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// Records a part of the schema, and its names.
    fn note(&mut self, part: &'s Value, members: &'s Map<String, Value>) {
        self.parts.push(part);
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

    /// Checks that references terminate at each value.
    ///
    /// # Errors
    /// Returns why they do not terminate, or that they lead through too many schemas.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        if self.roots.len() > MAX_ROOTS {
            return Err("more than 100 of its parts have an $id");
        }
        let mut rows = HashMap::new();
        for part in &self.parts {
            self.row(part, 1, &mut rows)?;
        }
        Ok(())
    }

    /// Returns how many schemas apply to a value in a row, beginning with `schema`, which is the
    /// `n`th of its row. `rows` contains the counts so far, by the address of a schema; `None`
    /// while a schema is being counted.
    fn row(
        &self,
        schema: &'s Value,
        n: usize,
        rows: &mut HashMap<*const Value, Option<usize>>,
    ) -> Result<usize, &'static str> {
        let mut longest = 1;
        let Value::Object(members) = schema else {
            return Ok(longest);
        };
        let address = std::ptr::from_ref(schema);
        match rows.get(&address) {
            Some(Some(known)) => return Ok(*known),
            Some(None) => return Err("it refers to itself without a step into the value"),
            None if n > MAX_ROW => return Err(ROW),
            None => rows.insert(address, None),
        };
        for part in self.in_place(members) {
            longest = longest.max(1 + self.row(part, n + 1, rows)?);
        }
        if longest > MAX_ROW {
            return Err(ROW);
        }
        rows.insert(address, Some(longest));
        Ok(longest)
    }

    /// Returns the parts of a schema that apply to the same value as the schema.
    fn in_place(&self, members: &'s Map<String, Value>) -> Vec<&'s Value> {
        let mut parts = Vec::new();
        for (key, value) in members {
            match (key.as_str(), value) {
                ("allOf" | "anyOf" | "oneOf", Value::Array(all)) => parts.extend(all),
                ("not" | "if" | "then" | "else", schema) => parts.push(schema),
                ("dependentSchemas" | "dependencies", Value::Object(all)) => {
                    parts.extend(all.values())
                }
                (key, Value::String(reference)) if REFERENCES.contains(&key) => {
                    parts.extend(self.targets(reference));
                }
                _ => {}
            }
        }
        parts
    }

    /// Returns each part that a local reference (`#…`) may lead to, without duplicates. The drafts
    /// of JSON Schema disagree about the root at which a pointer starts, so each root is tried.
    pub(super) fn targets(&self, reference: &str) -> Vec<&'s Value> {
        let Some(fragment) = reference.strip_prefix('#') else {
            return Vec::new();
        };
        let fragment = decoded(fragment);
        let mut targets: Vec<_> = if fragment.is_empty() || fragment.starts_with('/') {
            let roots = self.roots.iter();
            roots.filter_map(|root| root.pointer(&fragment)).collect()
        } else {
            let found = self.anchors.get(fragment.as_str());
            found.cloned().unwrap_or_default()
        };
        targets.dedup_by_key(|part| std::ptr::from_ref::<Value>(part));
        targets
    }
}

/// Returns a URI's fragment with its percent escapes decoded.
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
    fn a_schema_that_leads_back_needs_a_step_into_the_value() {
        let refused = |schema: Value| {
            References::new(&schema)
                .check()
                .unwrap_err()
                .contains("without a step")
        };
        assert!(refused(json!({"$ref": "#"})));
        assert!(refused(json!({"allOf": [{"$ref": "#"}]})));
        assert!(refused(
            json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}}, "items": {"$ref": "#/$defs/a"}})
        ));
        assert!(refused(
            json!({"$dynamicAnchor": "n", "anyOf": [{"$dynamicRef": "#n"}, {"type": "string"}]})
        ));
        for schema in [
            json!({"properties": {"a": {"$ref": "#"}}}),
            json!({"const": {"$ref": "#"}, "properties": {"const": {"type": "string"}}}),
        ] {
            assert_eq!(References::new(&schema).check(), Ok(()));
        }
    }

    #[test]
    fn a_row_and_all_targets_are_limited() {
        let chain = |n: usize, make: fn(Value) -> Value| {
            let mut defs = Map::new();
            for i in 0..n {
                defs.insert(
                    format!("d{i}"),
                    make(json!({"$ref": format!("#/$defs/d{}", i + 1)})),
                );
            }
            defs.insert(format!("d{n}"), json!({"type": "string"}));
            let schema = json!({"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": defs});
            References::new(&schema).check()
        };
        assert_eq!(chain(40, |next| next), Ok(()));
        assert_eq!(chain(60, |next| next), Err(ROW));
        assert_eq!(chain(5_000, |next| next), Err(ROW));
        assert_eq!(chain(900, |next| json!({"items": next})), Ok(()));
        assert_eq!(chain(5_000, |next| json!({"items": next})), Ok(()));
    }

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
