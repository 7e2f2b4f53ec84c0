//! Checks a schema before it is used: limits its size, normalizes its type names, and returns why a
//! schema is rejected.

use serde_json::Value;

/// The maximum nesting of brackets in a schema.
const MAX_DEPTH: usize = 64;
/// The maximum number of objects and arrays in a schema.
const MAX_PARTS: usize = 10_000;
/// The maximum length of all patterns in a schema together, in bytes.
const MAX_PATTERNS: usize = 64 * 1024;

/// The maximum size of a compiled pattern, in bytes.
pub(super) const MAX_PATTERN_SIZE: usize = 1 << 20;

/// The types of JSON Schema
/// (<https://json-schema.org/draft/2020-12/json-schema-validation#section-6.1.1>), in the order in
/// which messages list them.
pub(super) const TYPES: [&str; 7] = [
    "null", "boolean", "integer", "number", "string", "array", "object",
];

/// Keywords whose values are data, and contain no schemas.
pub(super) const DATA: [&str; 5] = ["enum", "const", "default", "example", "examples"];

/// Keywords whose values are objects with a schema in each member.
pub(super) const NAMED: [&str; 5] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
];

/// Keywords that refer to another schema.
pub(super) const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// The size of a schema.
#[derive(Default)]
pub(super) struct Size {
    parts: usize,
    patterns: usize,
    /// Type names that JSON Schema does not define, without duplicates. They are removed from the
    /// schema, so that the rest of the schema applies.
    pub(super) unknown_types: Vec<String>,
}

impl Size {
    fn part(&mut self, depth: usize) -> Result<(), SchemaError> {
        self.parts += 1;
        if depth > MAX_DEPTH {
            return Err(SchemaError::TooLarge("nested deeper than 64"));
        }
        if self.parts > MAX_PARTS {
            return Err(SchemaError::TooLarge("more than 10,000 parts"));
        }
        Ok(())
    }

    /// Counts the parts of a schema at this depth.
    ///
    /// # Errors
    /// The schema refers to another document, or is too large.
    pub(super) fn schema(&mut self, schema: &mut Value, depth: usize) -> Result<(), SchemaError> {
        match schema {
            Value::Array(all) => {
                self.part(depth)?;
                all.iter_mut().try_for_each(|s| self.schema(s, depth + 1))
            }
            Value::Object(members) => {
                self.part(depth)?;
                for (key, value) in members.iter_mut() {
                    match (key.as_str(), value) {
                        (key, Value::String(target))
                            if REFERENCES.contains(&key) && !target.starts_with('#') =>
                        {
                            return Err(SchemaError::Remote(short(target)));
                        }
                        ("pattern", Value::String(pattern)) => self.pattern(pattern)?,
                        ("type", value) => lower(value),
                        (key, value) if DATA.contains(&key) => self.data(value, depth + 1)?,
                        (key, Value::Object(named)) if NAMED.contains(&key) => {
                            self.part(depth + 1)?;
                            for (name, value) in named {
                                if key == "patternProperties" {
                                    self.pattern(name)?;
                                }
                                self.schema(value, depth + 2)?;
                            }
                        }
                        (_, value) => self.schema(value, depth + 1)?,
                    }
                }
                self.known_types(members);
                nullable(members);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Removes a `type` that JSON Schema does not define, such as `str`, because its meaning would
    /// be a guess.
    fn known_types(&mut self, members: &mut serde_json::Map<String, Value>) {
        let names = match members.get("type") {
            Some(Value::Array(names)) => &names[..],
            Some(name) => std::slice::from_ref(name),
            None => return,
        };
        let unknown: Vec<String> = names
            .iter()
            .filter_map(Value::as_str)
            .filter(|name| !TYPES.contains(name))
            .map(short)
            .collect();
        if !unknown.is_empty() {
            members.shift_remove("type");
        }
        for name in unknown {
            if !self.unknown_types.contains(&name) {
                self.unknown_types.push(name);
            }
        }
    }

    fn data(&mut self, value: &Value, depth: usize) -> Result<(), SchemaError> {
        match value {
            Value::Array(all) => {
                self.part(depth)?;
                all.iter().try_for_each(|v| self.data(v, depth + 1))
            }
            Value::Object(members) => {
                self.part(depth)?;
                members.values().try_for_each(|v| self.data(v, depth + 1))
            }
            _ => Ok(()),
        }
    }

    fn pattern(&mut self, pattern: &str) -> Result<(), SchemaError> {
        self.patterns += pattern.len();
        if self.patterns > MAX_PATTERNS {
            Err(SchemaError::TooLarge("more than 64 KiB of patterns"))
        } else {
            Ok(())
        }
    }
}

/// Converts type names to lower case: Gemini writes `"STRING"` for `"string"`
/// (<https://ai.google.dev/api/caching#Type>).
fn lower(types: &mut Value) {
    match types {
        Value::String(name) => name.make_ascii_lowercase(),
        Value::Array(names) => names.iter_mut().for_each(lower),
        _ => {}
    }
}

/// Applies OpenAPI 3.0's `"nullable": true`, which allows `null` in addition to the type
/// (<https://spec.openapis.org/oas/v3.0.3#schema-object>).
fn nullable(schema: &mut serde_json::Map<String, Value>) {
    if schema.get("nullable") != Some(&Value::Bool(true)) {
        return;
    }
    if let Some(name @ Value::String(_)) = schema.get("type").cloned() {
        schema.insert("type".into(), Value::Array(vec![name, "null".into()]));
    }
    if let Some(Value::Array(options)) = schema.get_mut("enum")
        && !options.contains(&Value::Null)
    {
        options.push(Value::Null);
    }
}

/// Why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The text is not JSON.
    #[error("the schema is not JSON: {0}")]
    Syntax(String),
    /// A `$ref` does not begin with `#`.
    #[error("the schema refers to {0}, only references inside the schema (#/…) are followed")]
    Remote(String),
    /// The schema is nested too deeply, or has too many parts or too much text in patterns.
    #[error("the schema is too large: {0}")]
    TooLarge(&'static str),
    /// The references do not terminate or form chains that are too long, see
    /// `schema/references.rs`.
    #[error("the schema is too complex: {0}, use fewer references and alternatives")]
    TooComplex(&'static str),
    /// The schema is invalid, or one of its patterns is not supported.
    #[error("the schema is not valid: {0}")]
    Invalid(String),
}

/// Returns the first 300 characters of a text.
pub(super) fn short(text: &str) -> String {
    cut(text, 300)
}

/// Returns the first `max` characters of a text, followed by `…` if there are more.
pub(super) fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
