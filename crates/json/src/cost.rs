//! What it may cost to explain why a value does not fit a schema.
//!
//! Saying yes or no is cheap, since the validator remembers what it has seen. Collecting the errors is not: alternatives that
//! refer to each other multiply. So the paths are counted first.

use serde_json::Value;
use std::collections::HashMap;

/// Steps that an explanation may take.
const AFFORDABLE: u64 = 2_000_000;

/// Whether the errors of `value` under `root` can be collected without an explosion.
pub(crate) fn affordable(root: &Value, value: &Value) -> bool {
    let (depth, parts) = measure(value);
    let mut count = Count { root, seen: HashMap::new() };
    count.paths(root, depth, 0).saturating_mul(parts) <= AFFORDABLE
}

/// How deep a value nests, and how many values it holds.
fn measure(value: &Value) -> (usize, u64) {
    let children: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => members.values().collect(),
        _ => return (0, 1),
    };
    children.into_iter().map(measure).fold((1, 1), |(d, n), (depth, parts)| (d.max(depth + 1), n + parts))
}

struct Count<'s> {
    root: &'s Value,
    /// Paths below a schema, by its address and the depth that is left; [`AFFORDABLE`] while they are being counted, so that
    /// a schema that leads back to itself without a step into the value counts as too many.
    seen: HashMap<(*const Value, usize), u64>,
}

impl<'s> Count<'s> {
    fn paths(&mut self, schema: &'s Value, depth: usize, nested: usize) -> u64 {
        if let Some(known) = self.seen.get(&(std::ptr::from_ref(schema), depth)) {
            return *known;
        }
        // Chains of references nest calls too.
        if nested > 1000 {
            return AFFORDABLE;
        }
        self.seen.insert((std::ptr::from_ref(schema), depth), AFFORDABLE);
        let mut sum: u64 = 1;
        match schema {
            Value::Object(members) => {
                for (key, value) in members {
                    let n = match key.as_str() {
                        "$ref" | "$dynamicRef" | "$recursiveRef" => match self.target(value) {
                            Some(target) => self.paths(target, depth, nested + 1),
                            None => AFFORDABLE,
                        },
                        "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "dependentSchemas"
                        | "dependencies" => self.children(value, depth, nested),
                        "$defs" | "definitions" | "enum" | "const" | "default" | "example" | "examples" => 0,
                        _ if depth == 0 => 0,
                        "properties" | "patternProperties" | "prefixItems" => self.children(value, depth - 1, nested),
                        _ => self.paths(value, depth - 1, nested + 1),
                    };
                    sum = sum.saturating_add(n);
                }
            }
            Value::Array(_) => sum = self.children(schema, depth, nested),
            _ => {}
        }
        self.seen.insert((std::ptr::from_ref(schema), depth), sum);
        sum
    }

    fn children(&mut self, schemas: &'s Value, depth: usize, nested: usize) -> u64 {
        match schemas {
            Value::Array(all) => all.iter().fold(0, |n: u64, s| n.saturating_add(self.paths(s, depth, nested + 1))),
            Value::Object(all) => all.values().fold(0, |n: u64, s| n.saturating_add(self.paths(s, depth, nested + 1))),
            _ => 0,
        }
    }

    fn target(&self, reference: &Value) -> Option<&'s Value> {
        self.root.pointer(reference.as_str()?.strip_prefix('#')?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn explosions_are_seen() {
        let flat = json!({"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}}});
        assert!(affordable(&flat, &json!({"a":[1,2,3]})));
        let tree = json!({"$defs":{"n":{"properties":{"c":{"items":{"$ref":"#/$defs/n"}}}}},"$ref":"#/$defs/n"});
        assert!(affordable(&tree, &json!({"c":[{"c":[{"c":[1]}]}]})));
        let double = json!({"$defs":{"n":{"anyOf":[{"items":{"$ref":"#/$defs/n"}},{"items":{"$ref":"#/$defs/n"}}]}},"$ref":"#/$defs/n"});
        let deep = (0..60).fold(json!([]), |v, _| json!([v]));
        assert!(affordable(&double, &json!([[]])) && !affordable(&double, &deep));
        assert!(!affordable(&json!({"$ref":"#"}), &json!({})));
    }
}
