//! JSON Schema for tool arguments. Schemas come from strangers (a server of tools, a stream), so
//! nothing is fetched, sizes and costs are bounded, and patterns match in linear time.

mod absent;
mod cost;
mod error;
mod misfit;
mod references;
mod size;
#[cfg(test)]
mod tests;

pub use error::SchemaError;
pub use misfit::{Misfit, Violation};

use crate::{Repair, Repaired, Shape, ValueType, apply, check};
use absent::leave_out_nulls;
use event::Raw;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use misfit::{cut, short};
use serde_json::Value;
use size::Size;
use std::collections::HashSet;
use std::sync::OnceLock;

/// The largest compiled pattern, in bytes.
const MAX_PATTERN_SIZE: usize = 1 << 20;

/// A compiled schema.
#[derive(Debug)]
pub struct Schema {
    root: Value,
    validator: Validator,
    /// The most steps that a validation takes along one path down the value, see `cost.rs`.
    steps: u64,
    unknown_types: Vec<String>,
    /// See [`Schema::unpacked`].
    unpacked: OnceLock<HashSet<String>>,
}

impl Schema {
    /// Compiles the JSON text of a schema. Accepts OpenAPI's `nullable` and Gemini's type names in
    /// capitals, too. A value whose type has another name is not checked for its type, see
    /// [`Schema::unknown_types`].
    ///
    /// # Errors
    /// See [`SchemaError`].
    pub fn new(json: &str) -> Result<Schema, SchemaError> {
        let mut root: Value =
            serde_json::from_str(json).map_err(|e| SchemaError::Syntax(short(&e.to_string())))?;
        let mut size = Size::default();
        size.schema(&mut root, 0)?;
        let steps = cost::steps(&root).map_err(SchemaError::TooComplex)?;
        let validator = jsonschema::options()
            .offline()
            .should_validate_formats(false)
            .with_pattern_options(
                PatternOptions::regex()
                    .size_limit(MAX_PATTERN_SIZE)
                    .dfa_size_limit(MAX_PATTERN_SIZE),
            )
            .build(&root)
            .map_err(|e| SchemaError::Invalid(invalid(&e)))?;
        Ok(Schema {
            root,
            validator,
            steps,
            unknown_types: size.unknown_types,
            unpacked: OnceLock::new(),
        })
    }

    /// The names of types in the schema that JSON Schema does not have, such as `str`. Nothing is
    /// validated by them.
    pub fn unknown_types(&self) -> &[String] {
        &self.unknown_types
    }

    /// Checks arguments: strictly as JSON (see [`crate::check`]), then against the schema. A `null`
    /// that the schema does not allow counts as missing.
    ///
    /// # Errors
    /// [`Misfit`]: what does not fit, in words that a model can act on.
    pub fn check(&self, arguments: &str) -> Result<(), Misfit> {
        check(arguments).map_err(|e| Misfit::json(&e))?;
        let mut value: Value = serde_json::from_str(arguments)
            .map_err(|e| Misfit::at_root(&format!("not valid JSON: {e}")))?;
        if !cost::bearable(self.steps, arguments.len(), &value) {
            return Err(Misfit::at_root(
                "the schema is too complex for so many values, call it with fewer",
            ));
        }
        if self.validator.is_valid(&value)
            || leave_out_nulls(&mut value, &ValueType::new(&self.root))
                && self.validator.is_valid(&value)
        {
            return Ok(());
        }
        if !cost::affordable(&self.root, &value) {
            return Err(Misfit::at_root(
                "the schema is too involved to say what does not fit",
            ));
        }
        Err(Misfit::explain(
            &self.validator,
            &value,
            self.properties().collect(),
        ))
    }

    /// The names of the parameters that the schema lists in its own `properties`.
    pub fn properties(&self) -> impl Iterator<Item = &str> {
        self.resolve(&self.root)
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(|p| p.keys().map(String::as_str))
    }

    /// The first key of an arguments object that the schema does not declare. `None` for a schema
    /// that may allow further keys: one without `properties`, or with `additionalProperties`,
    /// `patternProperties` or a combination (`allOf`, `anyOf`, …).
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

    /// Whether all arguments that fit have the member `name` with a value other than `null`: the
    /// schema requires it and does not allow `null` for it, both without a condition. May be
    /// `false` for a schema that requires it in another way than by its own `required`.
    pub fn always_has(&self, name: &str) -> bool {
        let required = self
            .resolve(&self.root)
            .get("required")
            .and_then(Value::as_array);
        if !required.is_some_and(|names| names.iter().any(|n| n.as_str() == Some(name))) {
            return false;
        }
        let (probe, place) = (serde_json::json!({ name: null }), format!("/{name}"));
        let is_about_null = |error: ValidationError<'_>| {
            let path = error.evaluation_path().to_string();
            let conditional = |step: &str| {
                matches!(step, "if" | "then" | "else" | "anyOf" | "oneOf" | "not")
                    || step.starts_with("dependent")
            };
            let (before, _) = path.split_once("/properties/").unwrap_or(("/not", ""));
            error.instance_path().to_string() == place && !before.split('/').any(conditional)
        };
        self.validator.iter_errors(&probe).any(is_about_null)
    }

    /// Takes objects and arrays out of strings wherever the schema asks for an object or array and
    /// not for a string: models encode nested values twice. It unpacks each string once. Returns
    /// `None` if there are no such strings, or if the result does not fit the schema.
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

    /// The keys whose strings, or strings in lists, [`Schema::coerce`] may replace: those for which
    /// the schema asks for an object or array at any depth, and not for a string.
    pub fn unpacked(&self) -> &HashSet<String> {
        self.unpacked.get_or_init(|| {
            let (mut keys, mut seen) = (HashSet::new(), HashSet::new());
            let mut waiting = vec![(None, &self.root)];
            while let Some((key, schema)) = waiting.pop() {
                let schema = self.resolve(schema);
                // A schema that refers to itself is read once for each key that leads to it.
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
                        kind: "double_encoded",
                        before: value.text().to_owned(),
                        after: inner.into_owned(),
                    });
                }
            }
            Shape::Number | Shape::Bool | Shape::Null => {}
        }
    }

    /// The schema at the end of a chain of local references.
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

/// The types that a schema and its alternatives allow; empty if it does not restrict them.
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
                // A branch without a type may allow a string.
                _ => out.push("string"),
            }
        }
    }
    out
}

/// The message for an invalid schema, with the place in it.
fn invalid(error: &ValidationError<'_>) -> String {
    let what = match error.kind() {
        ValidationErrorKind::Format { format } if format == "regex" => format!(
            "{} is no pattern that can be matched in linear time (no look-around, no back-reference, not too large)",
            cut(&error.instance().to_string(), 100)
        ),
        _ => error.to_string(),
    };
    let path = error.instance_path().to_string();
    short(&if path.is_empty() {
        what
    } else {
        format!("{path}: {what}")
    })
}
