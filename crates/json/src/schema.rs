//! JSON Schema for tool arguments. Schemas come from untrusted sources (a tool server, a stream),
//! so no references are fetched, sizes and steps are limited, and patterns match in linear time.

use crate::{JsonError, JsonType, Repair, Repaired, Shape, ValueType, apply, check};
use event::Raw;
use event::payload::RepairKind;
use fault::{About, Fault};
use serde_json::Value;
use size::{Size, cut, short};
use std::collections::HashSet;
use std::sync::OnceLock;
use validator::Validator;
use walk::Exhausted;

mod fault;
mod pattern;
mod references;
mod size;
mod validator;
mod walk;

pub use size::SchemaError;

/// A schema that arguments can be checked against.
#[derive(Debug)]
pub struct Schema {
    root: Value,
    validator: Validator,
    unknown_types: Vec<String>,
    /// See [`Schema::unpacked`].
    unpacked: OnceLock<HashSet<String>>,
}

impl Schema {
    /// Compiles the JSON text of a schema. OpenAPI's `nullable` and Gemini's upper-case type names
    /// are accepted too. If the schema names an unknown type, such as `str`, the type of that value
    /// is not checked, see [`Schema::unknown_types`].
    ///
    /// # Errors
    /// See [`SchemaError`].
    pub fn new(json: &str) -> Result<Schema, SchemaError> {
        let mut root: Value =
            serde_json::from_str(json).map_err(|e| SchemaError::Syntax(short(&e.to_string())))?;
        let mut size = Size::default();
        size.schema(&mut root, 0)?;
        let validator = Validator::new(&root)?;
        Ok(Schema {
            root,
            validator,
            unknown_types: size.unknown_types,
            unpacked: OnceLock::new(),
        })
    }

    /// Returns the type names in the schema that JSON Schema does not define, such as `str`. They
    /// are ignored in validation.
    pub fn unknown_types(&self) -> &[String] {
        &self.unknown_types
    }

    /// Checks arguments: first strictly as JSON (see [`crate::check`]), then against the schema. A
    /// declared member counts as missing if it is `null` and the schema does not allow `null` for
    /// it.
    ///
    /// # Errors
    /// [`Misfit`] describes what does not fit, in words that a model can act on.
    pub fn check(&self, arguments: &str) -> Result<(), Misfit> {
        check(arguments).map_err(|e| Misfit::json(&e))?;
        let mut value: Value = serde_json::from_str(arguments)
            .map_err(|e| Misfit::at_root(&format!("not valid JSON: {e}")))?;
        let most = walk::most_steps(arguments.len());
        let fits = |value: &Value| {
            self.validator
                .fits(&self.root, value, most)
                .map_err(|Exhausted| {
                    Misfit::at_root(
                        "the schema is too complex for so many values, call it with fewer",
                    )
                })
        };
        if fits(&value)?
            || leave_out_nulls(&mut value, &ValueType::new(&self.root)) && fits(&value)?
        {
            return Ok(());
        }
        let faults = self.validator.faults(&self.root, &value);
        let faults = faults.map_err(|Exhausted| {
            Misfit::at_root("the schema is too involved to say what does not fit")
        })?;
        let known: Vec<_> = self.properties().collect();
        Err(Misfit::of(&faults, &known))
    }

    /// Returns the names of the parameters that the schema lists in its own `properties`.
    pub fn properties(&self) -> impl Iterator<Item = &str> {
        self.resolve(&self.root)
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(|p| p.keys().map(String::as_str))
    }

    /// Returns the first key in `arguments` that the schema does not declare. Returns `None` if
    /// there is no such key, or if the schema may allow further keys: it has no `properties`, or it
    /// has `additionalProperties`, `patternProperties` or a combination (`allOf`, `anyOf`, …) with
    /// a value other than `false`.
    pub fn undeclared(&self, arguments: Raw<'_>) -> Option<String> {
        let root = self.resolve(&self.root);
        let declared = root.get("properties").and_then(Value::as_object)?;
        let others = [
            "additionalProperties",
            "unevaluatedProperties",
            "patternProperties",
            "allOf",
            "anyOf",
            "oneOf",
            "if",
            "dependentSchemas",
        ];
        if others
            .iter()
            .any(|key| root.get(key).is_some_and(|v| *v != Value::Bool(false)))
        {
            return None;
        }
        arguments
            .entries()
            .map(|(key, _)| key)
            .find(|key| !declared.contains_key(key.as_ref()))
            .map(Into::into)
    }

    /// Whether all arguments that fit the schema have a member `name` that is not `null`: the
    /// schema requires the member and does not allow `null` for it, both unconditionally. May be
    /// `false` if the schema requires the member by other means than its own `required`.
    pub fn always_has(&self, name: &str) -> bool {
        let required = self
            .resolve(&self.root)
            .get("required")
            .and_then(Value::as_array);
        if !required.is_some_and(|names| names.iter().any(|n| n.as_str() == Some(name))) {
            return false;
        }
        let probe = serde_json::json!({ name: null });
        let place = fault::member("", name);
        self.validator.has_fault(&self.root, &probe, &place)
    }

    /// Replaces a string that contains an encoded object or array by that object or array, if the
    /// schema allows an object or array there but not a string, because models sometimes encode
    /// nested values twice. Each string is decoded once. Returns `None` if no string was replaced,
    /// or if the result does not fit the schema.
    pub fn coerce(&self, arguments: &str) -> Option<Repaired> {
        let checked = check(arguments).ok()?;
        let mut repairs = Vec::new();
        self.unwrap(checked.value, &self.root, arguments, &mut repairs);
        if repairs.is_empty() {
            return None;
        }
        let text = apply(arguments, &repairs)?;
        self.check(&text)
            .is_ok()
            .then_some(Repaired { text, repairs })
    }

    /// Returns the names of the properties, at any depth of the schema, whose strings
    /// [`Schema::coerce`] may replace: the schema of the property, or of its items, allows an
    /// object or array but not a string.
    pub fn unpacked(&self) -> &HashSet<String> {
        self.unpacked.get_or_init(|| {
            let mut keys = HashSet::new();
            let mut seen = HashSet::new();
            let mut waiting = vec![(None, &self.root)];
            while let Some((key, schema)) = waiting.pop() {
                let schema = self.resolve(schema);
                // A schema that refers to itself is visited once for each key that leads to it.
                if !seen.insert((key, std::ptr::from_ref(schema))) {
                    continue;
                }
                let types = types(schema);
                if let Some(key) = key
                    && !types.contains(&"string")
                    && types.iter().any(|name| ["object", "array"].contains(name))
                {
                    keys.insert(String::clone(key));
                }
                waiting.extend(schema.get("items").map(|items| (key, items)));
                let properties = schema.get("properties").and_then(Value::as_object);
                waiting.extend(
                    properties
                        .into_iter()
                        .flatten()
                        .map(|(key, schema)| (Some(key), schema)),
                );
            }
            keys
        })
    }

    fn unwrap(&self, value: Raw<'_>, schema: &Value, whole: &str, repairs: &mut Vec<Repair>) {
        let schema = self.resolve(schema);
        match Shape::of(value) {
            Shape::Object => {
                let Some(properties) = schema.get("properties") else {
                    return;
                };
                for (key, value) in value.entries() {
                    if let Some(schema) = properties.get(key.as_ref()) {
                        self.unwrap(value, schema, whole, repairs);
                    }
                }
            }
            Shape::Array => {
                let Some(items) = schema.get("items") else {
                    return;
                };
                value
                    .items()
                    .for_each(|item| self.unwrap(item, items, whole, repairs));
            }
            Shape::String => {
                let types = types(schema);
                let Some(inner) = value.str() else { return };
                let fits = |shape: Shape| {
                    matches!(shape, Shape::Object | Shape::Array) && types.contains(&shape.name())
                };
                if !types.contains(&"string") && check(&inner).is_ok_and(|c| fits(c.shape)) {
                    repairs.push(Repair {
                        offset: value.text().as_ptr() as usize - whole.as_ptr() as usize,
                        kind: RepairKind::DoubleEncoded,
                        before: value.text().to_owned(),
                        after: inner.into_owned(),
                    });
                }
            }
            Shape::Number | Shape::Bool | Shape::Null => {}
        }
    }

    /// Returns the schema at the end of a chain of local references.
    fn resolve<'s>(&'s self, mut schema: &'s Value) -> &'s Value {
        for _ in 0..16 {
            let Some(Value::String(target)) = schema.get("$ref") else {
                break;
            };
            match target
                .strip_prefix('#')
                .and_then(|pointer| self.root.pointer(pointer))
            {
                Some(found) => schema = found,
                None => break,
            }
        }
        schema
    }
}

/// Returns the types that a schema and its alternatives allow; empty if the types are not
/// restricted.
fn types(schema: &Value) -> Vec<&str> {
    let mut out: Vec<&str> = match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    for key in ["anyOf", "oneOf"] {
        for branch in schema
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            match branch.get("type") {
                Some(Value::String(name)) => out.push(name),
                // A branch without a type may allow a string. A branch with a list of types is
                // treated the same way.
                _ => out.push("string"),
            }
        }
    }
    out
}

/// The maximum number of members that are looked up in the schema, because each look-up walks the
/// schema. Further members stay in the value.
const LOOKED_UP: u32 = 100_000;

/// Removes from `value`, at any depth, each member that counts as missing. Returns whether any
/// member was removed.
fn leave_out_nulls(value: &mut Value, typed: &ValueType<'_>) -> bool {
    Nulls {
        left: LOOKED_UP,
        found: false,
    }
    .leave_out(value, typed)
}

struct Nulls {
    left: u32,
    found: bool,
}

impl Nulls {
    fn leave_out(mut self, value: &mut Value, typed: &ValueType<'_>) -> bool {
        self.visit(value, typed);
        self.found
    }

    fn visit(&mut self, value: &mut Value, typed: &ValueType<'_>) {
        match value {
            Value::Object(members) => members.retain(|key, member| {
                if !matches!(member, Value::Null | Value::Object(_) | Value::Array(_))
                    || self.left == 0
                {
                    return true;
                }
                self.left -= 1;
                if !member.is_null() {
                    self.visit(member, &typed.property(key));
                    return true;
                }
                let stays = !typed.declares(key) || typed.property(key).allows(JsonType::Null);
                self.found |= !stays;
                stays
            }),
            Value::Array(items) => {
                let typed = typed.items();
                if typed.is_known() {
                    items.iter_mut().for_each(|item| self.visit(item, &typed));
                }
            }
            _ => {}
        }
    }
}

/// The maximum number of violations that are listed.
const TOLD: usize = 5;
/// The maximum length of a message, in characters.
const MESSAGE: usize = 240;

/// One violation of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The place of the violation as a JSON pointer into the arguments; empty for the arguments as
    /// a whole.
    pub path: String,
    /// What is wrong with the value: `must be integer, not "x"`, `is required`, `is not a
    /// parameter`.
    pub message: String,
}

/// Why arguments do not fit: at most five violations. Its `Display` is one line:
/// `/city: is required; /days: must be …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The first violations, at most five.
    pub violations: Vec<Violation>,
    /// The number of violations that are not listed.
    pub more: usize,
}

impl std::fmt::Display for Misfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (n, v) in self.violations.iter().enumerate() {
            let comma = if n > 0 { "; " } else { "" };
            let colon = if v.path.is_empty() { "" } else { ": " };
            write!(f, "{comma}{}{colon}{}", v.path, v.message)?;
        }
        if self.more > 0 {
            write!(f, "; and {} more", self.more)?;
        }
        Ok(())
    }
}

impl std::error::Error for Misfit {}

impl Misfit {
    fn at_root(message: &str) -> Misfit {
        Misfit {
            violations: vec![Violation {
                path: String::new(),
                message: cut(message, MESSAGE),
            }],
            more: 0,
        }
    }

    fn json(error: &JsonError) -> Misfit {
        Misfit::at_root(&error.to_string())
    }

    /// Describes the faults of arguments; `known` contains the parameters' names.
    fn of(faults: &[Fault], known: &[&str]) -> Misfit {
        let mut misfit = Misfit {
            violations: Vec::new(),
            more: 0,
        };
        for fault in faults {
            match &fault.about {
                About::Value => misfit.add(&fault.path, &fault.message),
                About::Missing(name) => {
                    misfit.add(&fault::member(&fault.path, name), "is required");
                }
                About::Unexpected(names) => {
                    let hint = if fault.path.is_empty() && !known.is_empty() {
                        format!(", known are {}", known.join(", "))
                    } else {
                        String::new()
                    };
                    for name in names {
                        let path = fault::member(&fault.path, name);
                        misfit.add(&path, &format!("is not a parameter{hint}"));
                    }
                }
            }
        }
        misfit
    }

    fn add(&mut self, path: &str, message: &str) {
        if self.violations.len() < TOLD {
            self.violations.push(Violation {
                path: cut(path, MESSAGE),
                message: cut(message, MESSAGE),
            });
        } else {
            self.more += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_null_that_is_declared_and_not_allowed_counts_as_missing() {
        let schema = json!({
            "$defs": {"point": {"type": "object", "properties": {"x": {"type": "number"}, "label": {"type": ["string", "null"]}}}},
            "properties": {
                "unit": {"enum": ["C", "F"]}, "note": {"type": "string", "nullable": true}, "any": {}, "at": {"$ref": "#/$defs/point"},
                "path": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/point"}, {"type": "null"}]}},
                "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "by": {"additionalProperties": {"$ref": "#/$defs/point"}},
            },
            "oneOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {"type": "string"}}}],
        });
        for (before, after) in [
            (
                json!({"unit": null, "note": null, "any": null, "maybe": null, "other": null}),
                json!({"note": null, "any": null, "maybe": null, "other": null}),
            ),
            (
                json!({"at": {"x": null, "label": null}}),
                json!({"at": {"label": null}}),
            ),
            (json!({"at": null, "path": null}), json!({})),
            (
                json!({"path": [{"x": null}, null, {"x": 1}]}),
                json!({"path": [{}, null, {"x": 1}]}),
            ),
            (
                json!({"by": {"p": {"x": null}, "q": null}}),
                json!({"by": {"p": {}, "q": null}}),
            ),
            (json!({"a": "x", "b": null}), json!({"a": "x"})),
        ] {
            let mut value = before.clone();
            assert_eq!(
                leave_out_nulls(&mut value, &ValueType::new(&schema)),
                before != after
            );
            assert_eq!(value, after, "{before}");
        }
    }
}
