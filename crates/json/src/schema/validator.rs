//! The validator for JSON Schema, from draft 4 to 2020-12.
//!
//! Only patterns are compiled. `walk.rs` walks the schema together with the value. A reference must
//! lead to the same part of the schema from everywhere.

use super::fault::{self, quote};
use super::pattern::Pattern;
use super::references::References;
use super::size::{REFERENCES, SchemaError, cut, short};
use crate::decimal::Decimal;
use serde_json::Value;
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet, VecDeque};

/// The keywords in the order in which their faults are listed.
pub(super) const ORDER: [&str; 39] = [
    "type",
    "const",
    "enum",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "uniqueItems",
    "required",
    "dependentRequired",
    "dependencies",
    "pattern",
    "properties",
    "patternProperties",
    "additionalProperties",
    "propertyNames",
    "prefixItems",
    "items",
    "additionalItems",
    "contains",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "dependentSchemas",
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "unevaluatedItems",
    "unevaluatedProperties",
    "$schema",
];

/// The supported drafts, by their URI without the scheme.
const DRAFTS: [&str; 5] = [
    "://json-schema.org/draft-04/schema",
    "://json-schema.org/draft-06/schema",
    "://json-schema.org/draft-07/schema",
    "://json-schema.org/draft/2019-09/schema",
    "://json-schema.org/draft/2020-12/schema",
];
const DRAFT_4: usize = 0;
pub(super) const DRAFT_7: usize = 2;
pub(super) const DRAFT_2019: usize = 3;
pub(super) const DRAFT_2020: usize = 4;

/// Returns the first draft that has a keyword.
pub(super) fn since(key: &str) -> usize {
    match key {
        "const" | "contains" | "propertyNames" => 1,
        "if" => DRAFT_7,
        "dependentRequired"
        | "dependentSchemas"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "$recursiveRef" => DRAFT_2019,
        "prefixItems" | "$dynamicRef" => DRAFT_2020,
        _ => DRAFT_4,
    }
}

/// A schema that was checked and can validate values.
#[derive(Debug)]
pub(super) struct Validator {
    pub(super) patterns: HashMap<String, Pattern>,
    /// The index in [`DRAFTS`].
    pub(super) draft: usize,
    /// Whether any reference is not a pointer from the root.
    pub(super) has_names: bool,
}

impl Validator {
    /// Checks that the schema is valid.
    ///
    /// # Errors
    /// Returns what is invalid, and where.
    pub(super) fn new(root: &Value) -> Result<Validator, SchemaError> {
        let mut validator = Validator {
            patterns: HashMap::new(),
            draft: DRAFT_2020,
            has_names: false,
        };
        if let Some(Value::String(uri)) = root.get("$schema") {
            let name = uri.strip_suffix('#').unwrap_or(uri);
            let name = name.trim_start_matches("http").trim_start_matches('s');
            validator.draft = DRAFTS
                .iter()
                .position(|draft| *draft == name)
                .ok_or_else(|| SchemaError::Invalid(wrong("", "$schema", &root["$schema"])))?;
        }
        // Places are recorded only when a message needs them.
        if validator
            .examine_all(root, |_, _, _| String::new())
            .is_err()
        {
            validator.examine_all(root, |place, key, name| {
                let name = name.map_or(String::new(), |name| fault::member("", name));
                format!("{place}/{key}{name}")
            })?;
        }
        Ok(validator)
    }

    fn examine_all(&mut self, root: &Value, inside: InnerPlace) -> Result<(), SchemaError> {
        let references = OnceCell::new();
        let mut waiting = VecDeque::from([(String::new(), root)]);
        let mut seen = HashSet::new();
        while let Some((place, schema)) = waiting.pop_back() {
            if seen.insert(std::ptr::from_ref(schema)) {
                self.examine(schema, (&place, inside), (root, &references), &mut waiting)
                    .map_err(SchemaError::Invalid)?;
            }
        }
        match references.get() {
            Some(references) => references.check().map_err(SchemaError::TooComplex),
            None => Ok(()),
        }
    }

    /// Examines one schema and queues the schemas inside it.
    fn examine<'s>(
        &mut self,
        schema: &'s Value,
        (place, inside): (&str, InnerPlace),
        (root, references): (&'s Value, &OnceCell<References<'s>>),
        waiting: &mut VecDeque<(String, &'s Value)>,
    ) -> Result<(), String> {
        let members = match schema {
            Value::Object(members) => members,
            Value::Bool(_) => return Ok(()),
            other => return Err(format!("{place}: cannot be {}", quote(other))),
        };
        let targets = |reference: &str| {
            let references = references.get_or_init(|| References::new(root));
            references.targets(reference)
        };
        for (key, value) in members {
            let is_known = match (key.as_str(), value) {
                ("type", Value::Array(names)) => !names.is_empty() && are_distinct(names),
                ("type" | "title" | "description" | "$comment" | "format", value) => {
                    value.is_string()
                }
                ("required", Value::Array(names)) => are_distinct(names),
                ("enum", Value::Array(options)) => {
                    !options.is_empty() && options.iter().all(is_exact)
                }
                ("const", value) => is_exact(value),
                ("exclusiveMinimum" | "exclusiveMaximum", Value::Bool(_)) => self.draft == DRAFT_4,
                ("minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum", value) => {
                    value.is_number() && is_exact(value)
                }
                ("multipleOf", Value::Number(divisor)) => {
                    let zero = Decimal::new("0");
                    zero.is_multiple_of(&Decimal::new(divisor.as_str()))
                        .is_some()
                }
                (
                    "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
                    | "maxProperties" | "minContains" | "maxContains",
                    Value::Number(limit),
                ) => Decimal::new(limit.as_str()).is_whole() && !limit.as_str().starts_with('-'),
                ("pattern", Value::String(pattern)) => self.pattern(pattern),
                (
                    "properties" | "patternProperties" | "$defs" | "definitions"
                    | "dependentSchemas" | "dependencies",
                    Value::Object(named),
                ) => {
                    for (name, value) in named {
                        let place = inside(place, key, Some(name));
                        if key == "patternProperties" && !self.pattern(name) {
                            return Err(bad_pattern(&place, name));
                        }
                        match value {
                            Value::Array(names) if key == "dependencies" && are_distinct(names) => {
                            }
                            schema => waiting.push_back((place, schema)),
                        }
                    }
                    true
                }
                ("dependentRequired", Value::Object(named)) => {
                    let mut lists = named.values();
                    lists.all(|names| names.as_array().is_some_and(|names| are_distinct(names)))
                }
                ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Value::Array(all)) => {
                    waiting.extend(all.iter().map(|schema| (inside(place, key, None), schema)));
                    !all.is_empty() || key == "items"
                }
                (
                    "items"
                    | "additionalItems"
                    | "unevaluatedItems"
                    | "contains"
                    | "additionalProperties"
                    | "unevaluatedProperties"
                    | "propertyNames"
                    | "not"
                    | "if"
                    | "then"
                    | "else",
                    schema,
                ) => {
                    waiting.push_back((inside(place, key, None), schema));
                    true
                }
                (key, Value::String(reference)) if REFERENCES.contains(&key) => {
                    let targets = targets(reference);
                    self.has_names |= targets.first().copied().map(std::ptr::from_ref)
                        != pointed(root, reference).map(std::ptr::from_ref);
                    // Examine these last, because a keyword leads to most of them and gives them a
                    // place.
                    for part in &targets {
                        waiting.push_front((String::new(), *part));
                    }
                    targets.len() == 1
                }
                ("$schema", _) => std::ptr::eq(schema, root) && value.is_string(),
                ("deprecated" | "readOnly" | "writeOnly" | "uniqueItems", value) => {
                    value.is_boolean()
                }
                ("examples", value) => value.is_array(),
                ("$defs" | "definitions", _) => false,
                // All other keywords describe only the value.
                (key, _) => !ORDER.contains(&key),
            };
            if !is_known {
                return Err(match value {
                    Value::String(pattern) if key == "pattern" => {
                        bad_pattern(&format!("{place}/pattern"), pattern)
                    }
                    Value::String(reference) if REFERENCES.contains(&&**key) => {
                        let count = targets(reference).len();
                        let place = fault::member(place, key);
                        short(&format!(
                            "{place}: {value} leads to {count} parts of the schema, not to one"
                        ))
                    }
                    _ => wrong(place, key, value),
                });
            }
        }
        Ok(())
    }

    fn pattern(&mut self, text: &str) -> bool {
        if !self.patterns.contains_key(text) {
            let Some(pattern) = Pattern::new(text) else {
                return false;
            };
            self.patterns.insert(text.to_owned(), pattern);
        }
        true
    }
}

/// Returns the message for a member that is invalid in a schema.
fn wrong(place: &str, key: &str, value: &Value) -> String {
    short(&format!(
        "{}: cannot be {}",
        fault::member(place, key),
        quote(value)
    ))
}

fn bad_pattern(place: &str, pattern: &str) -> String {
    short(&format!(
        "{place}: {} is too large, is not valid in ECMA-262, or has look-around, a back-reference or a \
         surrogate escape (\\ud83d)",
        Value::from(cut(pattern, 100))
    ))
}

fn are_distinct(names: &[Value]) -> bool {
    let mut seen = HashSet::new();
    names
        .iter()
        .all(|name| name.as_str().is_some_and(|name| seen.insert(name)))
}

/// Whether all numbers of a value can be compared.
fn is_exact(value: &Value) -> bool {
    match value {
        Value::Number(number) => Decimal::new(number.as_str()).is_exact(),
        Value::Array(items) => items.iter().all(is_exact),
        Value::Object(members) => members.values().all(is_exact),
        _ => true,
    }
}

/// Returns the part that a reference leads to if it is a pointer from the root.
pub(super) fn pointed<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    root.pointer(reference.strip_prefix('#')?)
}

/// Returns the place of an inner schema, from the place of the outer schema, the keyword that holds
/// the inner schema, and the inner schema's name below that keyword.
type InnerPlace = fn(&str, &str, Option<&str>) -> String;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::size::Size;
    use crate::schema::walk::most_steps;
    use proptest::prelude::*;
    use proptest::sample::{select, subsequence};
    use serde_json::{Map, json};

    /// Runs the test suite of JSON Schema. Schemas with an ambiguous anchor, an ambiguous
    /// `$recursiveRef` or another metaschema are rejected, and the number of rejected schemas is
    /// checked.
    #[test]
    fn the_verdicts_are_those_of_the_test_suite() {
        for (draft, refused, text) in [
            (
                DRAFT_2020,
                3,
                include_str!("../../tests/suite/draft2020-12.ndjson"),
            ),
            (
                DRAFT_2019,
                9,
                include_str!("../../tests/suite/draft2019-09.ndjson"),
            ),
            (DRAFT_7, 0, include_str!("../../tests/suite/draft7.ndjson")),
            (DRAFT_4, 0, include_str!("../../tests/suite/draft4.ndjson")),
        ] {
            let mut left = Vec::new();
            for line in text.lines() {
                let mut line: Value = serde_json::from_str(line).unwrap();
                // The contents of strings are not checked, and `1.0` is an integer in every draft.
                let others = ["optional/content", "optional/zeroTerminatedFloats"];
                if others.iter().any(|file| line["file"] == *file) {
                    continue;
                }
                // For the older drafts the suite does not mark the draft in the schemas.
                if let Value::Object(schema) = &mut line["schema"] {
                    let uri = format!("http{}", DRAFTS[draft]);
                    schema.entry("$schema").or_insert(Value::from(uri));
                }
                let schema = &line["schema"];
                if let Err(SchemaError::Remote(_)) = Size::default().schema(&mut schema.clone(), 0)
                {
                    continue;
                }
                let validator = match Validator::new(schema) {
                    Ok(validator) => validator,
                    Err(why) => {
                        left.push(format!("{why} {line:.300}"));
                        continue;
                    }
                };
                for case in line["tests"].as_array().unwrap() {
                    let what = format!("{} {line:.300} {}", DRAFTS[draft], case[0]);
                    let fits = validator.fits(schema, &case[0], most_steps(0));
                    assert_eq!(fits, Ok(case[1] == json!(true)), "{what}");
                    let faults = validator.faults(schema, &case[0]).unwrap();
                    assert_eq!(Ok(faults.is_empty()), fits, "{what}");
                }
            }
            assert_eq!(left.len(), refused, "{left:#?}");
        }
    }
    const NAMES: [&str; 4] = ["a", "b/~", "c", "x y"];

    fn number() -> impl Strategy<Value = Value> {
        let texts = [
            "0",
            "1",
            "-1",
            "2.5",
            "1.0",
            "1e1",
            "10",
            "-0.5",
            "3",
            "0.01",
            "12345678901234567890",
        ];
        select(texts.to_vec()).prop_map(|text| serde_json::from_str(text).unwrap())
    }

    fn value() -> impl Strategy<Value = Value> {
        let texts = ["", "a", "ab", "abc", "é", "A1 ", "1-2"];
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<bool>().prop_map(Value::from),
            number(),
            select(texts.to_vec()).prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((select(&NAMES[..]), inner), 0..4).prop_map(|members| {
                    Value::Object(
                        members
                            .into_iter()
                            .map(|(k, v)| (k.to_owned(), v))
                            .collect(),
                    )
                }),
            ]
        })
    }

    /// Generates a schema with some of these keywords.
    fn schema() -> impl Strategy<Value = Value> {
        let types = [
            "null", "boolean", "integer", "number", "string", "array", "object",
        ];
        let limits = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];
        let lengths = [
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "minProperties",
            "maxProperties",
        ];
        let patterns = [
            "^a",
            "b$",
            r"^\w+$",
            r"^[^a-c]*$",
            r"\d-\d|é",
            "^(?:ab?){1,2}c?$",
            "^.{2}$",
            r"\s",
        ];
        let references = ["#", "#/$defs/x", "#/$defs/y", "#/properties/b~1~0", "#z"];
        let keyword = |key: &'static str, value: Value| (key.to_owned(), value);
        let leaf = prop_oneof![
            select(types.to_vec()).prop_map(move |name| keyword("type", json!(name))),
            subsequence(types.to_vec(), 1..4).prop_map(move |names| keyword("type", json!(names))),
            prop::collection::vec(value(), 1..4)
                .prop_map(move |options| keyword("enum", json!(options))),
            value().prop_map(move |constant| keyword("const", constant)),
            (select(limits.to_vec()), number()).prop_map(move |(key, limit)| keyword(key, limit)),
            (select(lengths.to_vec()), 0..4)
                .prop_map(move |(key, limit)| keyword(key, json!(limit))),
            select(&["1", "2", "0.5", "0.01", "3"][..])
                .prop_map(move |text| keyword("multipleOf", serde_json::from_str(text).unwrap())),
            select(patterns.to_vec()).prop_map(move |pattern| keyword("pattern", json!(pattern))),
            subsequence(&NAMES[..], 0..4).prop_map(move |names| keyword("required", json!(names))),
            select(references.to_vec())
                .prop_map(move |reference| keyword("$ref", json!(reference))),
            Just(keyword("uniqueItems", json!(true))),
            (select(&["minContains", "maxContains"][..]), 0..3)
                .prop_map(move |(key, limit)| keyword(key, json!(limit))),
            (select(&NAMES[..]), subsequence(&NAMES[..], 0..3)).prop_map(move |(name, names)| {
                keyword("dependentRequired", json!({name: names}))
            }),
        ];
        let object = |members: Vec<(String, Value)>| Value::Object(members.into_iter().collect());
        let leaves = prop::collection::vec(leaf.clone(), 0..3).prop_map(object);
        let leaves = prop_oneof![8 => leaves, 1 => any::<bool>().prop_map(Value::from)];
        leaves.prop_recursive(3, 24, 4, move |inner| {
            let forms = ["anyOf", "oneOf", "allOf"];
            let named = prop::collection::vec((select(&NAMES[..]), inner.clone()), 0..4);
            let parts = [
                "not",
                "if",
                "then",
                "else",
                "additionalProperties",
                "items",
                "propertyNames",
                "contains",
                "unevaluatedItems",
                "unevaluatedProperties",
            ];
            let applicator = prop_oneof![
                named.prop_map(move |named| {
                    let named: Map<_, _> =
                        named.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
                    keyword("properties", Value::Object(named))
                }),
                (select(parts.to_vec()), inner.clone())
                    .prop_map(move |(key, schema)| keyword(key, schema)),
                Just(keyword("additionalProperties", json!(false))),
                Just(keyword("unevaluatedProperties", json!(false))),
                (select(&["a", "^b"][..]), inner.clone()).prop_map(move |(pattern, schema)| {
                    keyword("patternProperties", json!({pattern: schema}))
                }),
                (select(&NAMES[..]), inner.clone()).prop_map(move |(name, schema)| keyword(
                    "dependentSchemas",
                    json!({name: schema})
                )),
                prop::collection::vec(inner.clone(), 1..3)
                    .prop_map(move |all| keyword("prefixItems", json!(all))),
                (select(forms.to_vec()), prop::collection::vec(inner, 1..4))
                    .prop_map(move |(key, all)| keyword(key, json!(all))),
            ];
            prop::collection::vec(prop_oneof![leaf.clone(), applicator], 0..5).prop_map(object)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_000) })]

        /// The crate `jsonschema` is the reference. In 2019-09 it treats items matched by
        /// `contains` as evaluated, which that draft does not.
        #[test]
        fn any_schema_has_the_verdicts_of_another_validator(
            schema in schema(), x in schema(), y in schema(), values in prop::collection::vec(value(), 1..8), draft in select(vec![DRAFT_7, DRAFT_2020]),
        ) {
            let mut schema = schema;
            if let Value::Object(members) = &mut schema {
                members.insert("$defs".to_owned(), json!({"x": x, "y": y, "z": {"$anchor": "z", "minimum": 1}}));
                let b = members.entry("properties").or_insert(json!({}));
                b.as_object_mut().unwrap().entry("b/~").or_insert(json!({"type": "string"}));
                members.insert("$schema".to_owned(), json!(format!("http{}", DRAFTS[draft])));
            }
            // Self-referring schemas are rejected, and so are names in drafts that lack them.
            let Ok(validator) = Validator::new(&schema) else { return Ok(()) };
            let Ok(other) = jsonschema::options().should_validate_formats(false).build(&schema) else { return Ok(()) };
            for value in values {
                let fits = validator.fits(&schema, &value, most_steps(0));
                prop_assert_eq!(fits, Ok(other.is_valid(&value)), "{} {}", schema, value);
                let faults = validator.faults(&schema, &value).unwrap();
                prop_assert_eq!(Ok(faults.is_empty()), fits, "{} {}", schema, value);
            }
        }
    }
}
