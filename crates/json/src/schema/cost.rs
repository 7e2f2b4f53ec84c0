//! The cost of a schema: the steps of a validation, counted before the schema is compiled.
//!
//! Alternatives and references that lead to each other multiply: thirty pairs of references, 2 kB
//! of schema, are a billion steps at one value. The validator (jsonschema 0.60) remembers only the
//! results of lists and objects under a schema that refers to itself. So the steps of everything
//! else are counted here, with references followed; a schema with too many is refused.

use super::references::References;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};

/// The most steps of a validation along one path down the value. A schema without references takes
/// about as many as it has keywords.
const MAX_STEPS: u64 = 1_000_000;
/// The most steps of the validation of a whole value.
const MAX_TOTAL: u64 = 200_000_000;
/// How many schemas in a row may apply to the same value. Each takes stack at each level of the
/// value.
const MAX_ROW: usize = 48;
/// How many schemas the references may lead through on one path down the value.
const MAX_NESTED: usize = 1_000;
/// How many parts may have an `$id`, since each reference is looked up in all of them.
const MAX_ROOTS: usize = 100;
/// The most steps of an explanation.
const AFFORDABLE: u64 = 2_000_000;

/// The most steps that a validation takes along one path down a value.
///
/// # Errors
/// Why the schema is too complex.
pub(super) fn steps(root: &Value) -> Result<u64, &'static str> {
    let references = References::new(root);
    if references.roots() > MAX_ROOTS {
        return Err("more than 100 of its parts have an $id");
    }
    let mut weigh = CostCount {
        references,
        places: HashMap::new(),
        paths: HashMap::new(),
        recursive: HashSet::new(),
    };
    let mut sum = weigh.path(root, 0)?;
    // A schema that refers to itself is validated once for each list and object that it applies to.
    for part in &weigh.recursive {
        sum = sum.saturating_add(
            weigh
                .paths
                .get(part)
                .copied()
                .flatten()
                .unwrap_or(MAX_STEPS),
        );
    }
    if sum > MAX_STEPS { Err(MANY) } else { Ok(sum) }
}

const MANY: &str =
    "its references and alternatives multiply to more than 1,000,000 steps at one value";
const ROW: &str = "more than 48 schemas in a row apply to one value";

/// Whether a value can be validated in `steps` for each part of it. `length` is that of its text, a
/// quick bound of the number of parts.
pub(super) fn bearable(steps: u64, length: usize, value: &Value) -> bool {
    let bears = |parts: u64| steps.saturating_mul(parts) <= MAX_TOTAL;
    bears(length as u64) || bears(measure(value).1)
}

/// The cost of a schema at one value.
#[derive(Clone, Copy, Debug)]
struct LocalCost {
    /// Steps at this value, without those at its members and items.
    steps: u64,
    /// Steps that find out which members and items were evaluated, for `unevaluatedProperties`.
    marks: u64,
    /// How many schemas apply in a row.
    row: usize,
}

/// The costs so far, by the address of a schema; `None` while it is being counted.
struct CostCount<'s> {
    references: References<'s>,
    places: HashMap<*const Value, Option<LocalCost>>,
    paths: HashMap<*const Value, Option<u64>>,
    /// Schemas that refer to themselves for a member or an item.
    recursive: HashSet<*const Value>,
}

impl<'s> CostCount<'s> {
    fn place(&mut self, schema: &'s Value, row: usize) -> Result<LocalCost, &'static str> {
        let mut place = LocalCost {
            steps: 1,
            marks: 1,
            row: 1,
        };
        let Value::Object(members) = schema else {
            return Ok(place);
        };
        let address = std::ptr::from_ref(schema);
        match self.places.get(&address) {
            Some(Some(known)) => return Ok(*known),
            Some(None) => return Err("it refers to itself without a step into the value"),
            None if row > MAX_ROW => return Err(ROW),
            None => self.places.insert(address, None),
        };
        place.steps += own(members);
        for part in self.in_place(members) {
            let part = self.place(part, row + 1)?;
            place.steps = place.steps.saturating_add(part.steps);
            place.marks = place
                .marks
                .saturating_add(part.steps.saturating_mul(2))
                .saturating_add(part.marks);
            place.row = place.row.max(part.row + 1);
            if place.row > MAX_ROW {
                return Err(ROW);
            }
        }
        if members.contains_key("unevaluatedProperties") || members.contains_key("unevaluatedItems")
        {
            place.steps = place.steps.saturating_add(place.marks);
        }
        if place.steps > MAX_STEPS {
            return Err(MANY);
        }
        self.places.insert(address, Some(place));
        Ok(place)
    }

    fn path(&mut self, schema: &'s Value, nested: usize) -> Result<u64, &'static str> {
        let Value::Object(members) = schema else {
            return Ok(1);
        };
        let address = std::ptr::from_ref(schema);
        match self.paths.get(&address) {
            Some(Some(known)) => return Ok(*known),
            Some(None) => {
                self.recursive.insert(address);
                return Ok(self.place(schema, 1)?.steps);
            }
            None if nested > MAX_NESTED => {
                return Err("its references lead through more than 1,000 schemas");
            }
            None => self.paths.insert(address, None),
        };
        let mut steps = self.place(schema, 1)?.steps;
        for part in self.in_place(members) {
            // `place` counted the steps of this part at the value itself.
            let below = self
                .path(part, nested + 1)?
                .saturating_sub(self.place(part, 1)?.steps);
            steps = steps.saturating_add(below);
        }
        steps = steps.saturating_add(self.below(members, nested + 1)?);
        if steps > MAX_STEPS {
            return Err(MANY);
        }
        self.paths.insert(address, Some(steps));
        Ok(steps)
    }

    /// The steps at the most expensive member, item or key.
    fn below(
        &mut self,
        members: &'s Map<String, Value>,
        nested: usize,
    ) -> Result<u64, &'static str> {
        let mut sum = |keys: &[&str], named: &[&str]| -> Result<u64, &'static str> {
            let mut sum: u64 = 0;
            for key in keys {
                sum = match members.get(*key) {
                    // Only one of the schemas for single names or positions applies to a member or
                    // item.
                    Some(Value::Array(all)) => sum.saturating_add(self.most(all.iter(), nested)?),
                    Some(Value::Object(all)) if named.contains(key) => {
                        sum.saturating_add(self.most(all.values(), nested)?)
                    }
                    Some(schema) => sum.saturating_add(self.path(schema, nested)?),
                    None => sum,
                };
            }
            Ok(sum)
        };
        let mut member = sum(
            &[
                "properties",
                "additionalProperties",
                "unevaluatedProperties",
            ],
            &["properties"],
        )?;
        let item = sum(
            &[
                "prefixItems",
                "items",
                "additionalItems",
                "contains",
                "unevaluatedItems",
            ],
            &[],
        )?;
        let key = sum(&["propertyNames"], &[])?;
        // Several patterns may match one name.
        if let Some(Value::Object(patterns)) = members.get("patternProperties") {
            for schema in patterns.values() {
                member = member.saturating_add(self.path(schema, nested)?);
            }
        }
        Ok(member.max(item).max(key))
    }

    fn most(
        &mut self,
        schemas: impl Iterator<Item = &'s Value>,
        nested: usize,
    ) -> Result<u64, &'static str> {
        schemas
            .map(|schema| self.path(schema, nested))
            .try_fold(0, |most, steps| Ok(steps?.max(most)))
    }

    /// The parts of a schema that apply to the same value as the schema.
    fn in_place(&self, members: &'s Map<String, Value>) -> Vec<&'s Value> {
        let mut parts = Vec::new();
        for (key, value) in members {
            match (key.as_str(), value) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(target)) => {
                    parts.extend(self.references.targets(target));
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(all)) => parts.extend(all),
                ("not" | "if" | "then" | "else", schema) => parts.push(schema),
                ("dependentSchemas" | "dependencies", Value::Object(all)) => {
                    parts.extend(all.values())
                }
                _ => {}
            }
        }
        parts
    }
}

/// The steps of a schema's own keywords at one value.
fn own(members: &Map<String, Value>) -> u64 {
    let mut steps = 0;
    for (key, value) in members {
        steps += match (key.as_str(), value) {
            (
                "properties" | "patternProperties" | "dependentRequired" | "dependencies",
                Value::Object(all),
            ) => all.len() as u64,
            ("required", Value::Array(all)) => all.len() as u64,
            ("enum" | "const", data) => measure(data).1,
            _ => 0,
        };
    }
    steps
}

/// Whether the errors of `value` under `root` can be collected in few enough steps.
pub(super) fn affordable(root: &Value, value: &Value) -> bool {
    let (depth, parts) = measure(value);
    let mut count = ErrorCount {
        references: References::new(root),
        seen: HashMap::new(),
    };
    count.paths(root, depth, 0).saturating_mul(parts) <= AFFORDABLE
}

/// How deep a value nests, and how many values it holds.
fn measure(value: &Value) -> (usize, u64) {
    let children: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => members.values().collect(),
        _ => return (0, 1),
    };
    children
        .into_iter()
        .map(measure)
        .fold((1, 1), |(d, n), (depth, parts)| {
            (d.max(depth + 1), n + parts)
        })
}

struct ErrorCount<'s> {
    references: References<'s>,
    /// The number of paths below a schema, by its address and the remaining depth. [`AFFORDABLE`]
    /// while it is being counted, so that a schema that refers to itself for the same value has too
    /// many.
    seen: HashMap<(*const Value, usize), u64>,
}

impl<'s> ErrorCount<'s> {
    fn paths(&mut self, schema: &'s Value, depth: usize, nested: usize) -> u64 {
        if let Some(known) = self.seen.get(&(std::ptr::from_ref(schema), depth)) {
            return *known;
        }
        // A chain of references nests calls, too.
        if nested > 1000 {
            return AFFORDABLE;
        }
        self.seen
            .insert((std::ptr::from_ref(schema), depth), AFFORDABLE);
        let mut sum: u64 = 1;
        match schema {
            Value::Object(members) => {
                for (key, value) in members {
                    let n = match key.as_str() {
                        "$ref" | "$dynamicRef" | "$recursiveRef" => {
                            let targets =
                                self.references.targets(value.as_str().unwrap_or_default());
                            targets.into_iter().fold(0, |n: u64, t| {
                                n.saturating_add(self.paths(t, depth, nested + 1))
                            })
                        }
                        "allOf" | "anyOf" | "oneOf" | "dependentSchemas" | "dependencies" => {
                            self.children(value, depth, nested)
                        }
                        "not" | "if" | "then" | "else" => self.paths(value, depth, nested + 1),
                        "$defs" | "definitions" | "enum" | "const" | "default" | "example"
                        | "examples" => 0,
                        _ if depth == 0 => 0,
                        "properties" | "patternProperties" | "prefixItems" => {
                            self.children(value, depth - 1, nested)
                        }
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
            Value::Array(all) => all.iter().fold(0, |n: u64, s| {
                n.saturating_add(self.paths(s, depth, nested + 1))
            }),
            Value::Object(all) => all.values().fold(0, |n: u64, s| {
                n.saturating_add(self.paths(s, depth, nested + 1))
            }),
            _ => 0,
        }
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

    /// `n` schemas, each of which `make` builds from a reference to the next; the last is `leaf`.
    fn chain(n: usize, leaf: Value, make: impl Fn(Value) -> Value) -> Value {
        let mut defs = Map::new();
        for i in 0..n {
            defs.insert(
                format!("d{i}"),
                make(json!({"$ref": format!("#/$defs/d{}", i + 1)})),
            );
        }
        defs.insert(format!("d{n}"), leaf);
        json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": defs})
    }

    #[test]
    fn what_multiplies_is_refused() {
        let text = || json!({"type": "string"});
        for schema in [
            // At one value: alternatives, conditions, and what is evaluated twice.
            chain(20, text(), |next| json!({"anyOf": [next, next]})),
            chain(20, text(), |next| json!({"oneOf": [next, next]})),
            chain(20, text(), |next| json!({"allOf": [next, next]})),
            chain(
                20,
                text(),
                |next| json!({"if": next, "then": next, "else": next}),
            ),
            chain(
                14,
                text(),
                |next| json!({"not": {"anyOf": [next, next, next]}}),
            ),
            chain(
                20,
                text(),
                |next| json!({"dependentSchemas": {"a": next, "b": next}}),
            ),
            chain(
                16,
                text(),
                |next| json!({"allOf": [next], "unevaluatedProperties": false}),
            ),
            chain(
                16,
                text(),
                |next| json!({"anyOf": [next], "unevaluatedItems": false}),
            ),
            // A step into the value between them.
            chain(
                30,
                text(),
                |next| json!({"anyOf": [{"items": next}, {"items": next}]}),
            ),
            chain(
                30,
                text(),
                |next| json!({"anyOf": [{"properties": {"x": next}}, {"properties": {"x": next}}]}),
            ),
            chain(
                30,
                text(),
                |next| json!({"allOf": [{"additionalProperties": next}, {"additionalProperties": next}]}),
            ),
            chain(
                30,
                text(),
                |next| json!({"patternProperties": {"^x": next, "x$": next}}),
            ),
            chain(30, text(), |next| json!({"items": next, "contains": next})),
            // The last leads back to the first.
            chain(
                30,
                json!({"items": {"$ref": "#/$defs/d0"}}),
                |next| json!({"oneOf": [{"items": next}, {"items": next}]}),
            ),
            // Wide instead of deep.
            json!({"$defs": {"w": {"anyOf": vec![text(); 2_000]}}, "anyOf": vec![json!({"$ref": "#/$defs/w"}); 2_000]}),
            // By an anchor, by escapes, and by a pointer that starts at another root.
            json!({"$defs": {"w": {"$anchor": "w", "anyOf": vec![text(); 2_000]}}, "anyOf": vec![json!({"$ref": "#w"}); 2_000]}),
            json!({"$defs": {"w w": {"anyOf": vec![text(); 2_000]}}, "anyOf": vec![json!({"$ref": "#/%24defs/w%20w"}); 2_000]}),
            json!({"$defs": {"w": {}, "in": {"$id": "in", "$defs": {"w": {"anyOf": vec![text(); 2_000]}},
                "anyOf": vec![json!({"$ref": "#/$defs/w"}); 2_000]}}, "$ref": "#/$defs/in"}),
        ] {
            assert_eq!(steps(&schema), Err(MANY), "{}", &schema.to_string()[..200]);
        }
        // Each schema in a row takes stack at each level of the value.
        assert_eq!(steps(&chain(60, text(), |next| next)), Err(ROW));
        assert_eq!(steps(&chain(5_000, text(), |next| next)), Err(ROW));
        assert!(
            steps(&chain(5_000, text(), |next| json!({"items": next})))
                .unwrap_err()
                .contains("1,000 schemas")
        );
    }

    #[test]
    fn a_schema_that_leads_back_needs_a_step_into_the_value() {
        let refused = |schema: Value| steps(&schema).unwrap_err().contains("without a step");
        assert!(refused(json!({"$ref": "#"})));
        assert!(refused(json!({"allOf": [{"$ref": "#"}]})));
        assert!(refused(
            json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}}, "items": {"$ref": "#/$defs/a"}})
        ));
        assert!(refused(
            json!({"$dynamicAnchor": "n", "anyOf": [{"$dynamicRef": "#n"}, {"type": "string"}]})
        ));
        assert!(steps(&json!({"properties": {"a": {"$ref": "#"}}})).is_ok());
    }

    #[test]
    fn what_tools_have_is_cheap() {
        for (schema, most) in [
            (json!({}), 1),
            (
                json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}),
                10,
            ),
            // A record of forty members in a list.
            (
                json!({"properties": {"rows": {"items": {"properties":
                    (0..40).map(|i| (format!("c{i}"), json!({"type": "string"}))).collect::<Map<_, _>>()}}}}),
                60,
            ),
            // An expression of ten operators, each with two operands that are expressions.
            (
                json!({"$ref": "#/$defs/e", "$defs": {"e": {"oneOf": (0..10).map(|i| json!({"type": "object", "required": ["op"],
                    "properties": {"op": {"const": i}, "left": {"$ref": "#/$defs/e"}, "right": {"$ref": "#/$defs/e"}}})).collect::<Vec<_>>()}}}),
                2_000,
            ),
            // Any JSON.
            (
                json!({"$defs": {"v": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/v"}},
                    {"type": "object", "additionalProperties": {"$ref": "#/$defs/v"}}]}}, "additionalProperties": {"$ref": "#/$defs/v"}}),
                60,
            ),
        ] {
            let counted = steps(&schema).unwrap();
            assert!(counted <= most, "{counted} {schema}");
        }
    }

    #[test]
    fn the_length_of_the_arguments_counts_too() {
        let many = json!(vec![1; 1_000]);
        assert!(bearable(1_000, 2_001, &many) && bearable(100_000, 3_000_000, &many));
        assert!(!bearable(300_000, 2_001, &many));
    }
}
