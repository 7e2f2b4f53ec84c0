//! The JSON types that a schema allows for an argument, and the conversion of bare text between
//! tags to JSON.
//!
//! This module does not validate: the schema only decides how the text is read. Numbers are not
//! converted, so no digits are lost.

use crate::decimal::Decimal;
use crate::lex::{pieces, with_valid_strings};
use crate::{JsonError, Literal, LiteralProgress, Notation, check};
use event::Raw;
use serde_json::{Map, Value};

/// The maximum depth to which references and combinations are followed.
const MAX_DEPTH: u32 = 16;
/// The maximum number of schema parts that one look-up visits. Schemas come from untrusted sources
/// and may refer to themselves.
const MAX_PARTS: u32 = 2000;

/// A JSON type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonType {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean,
    /// A number without a fraction.
    Integer,
    /// Any number.
    Number,
    /// `"…"`
    String,
    /// `[…]`
    Array,
    /// `{…}`
    Object,
}

/// The type of one value as far as the schema declares it: the parts of the schema that describe
/// the value, any of which may apply.
#[derive(Clone, Debug, Default)]
pub struct ValueType<'a> {
    root: Option<&'a Value>,
    any: Vec<&'a Value>,
}

/// Whether a converted text has a type that its schema allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// The text has an allowed type.
    Fits,
    /// The text has no allowed type, and became a string although the schema does not allow a
    /// string.
    Misfit,
}

impl<'a> ValueType<'a> {
    /// Creates the type of a value that `schema` describes.
    pub fn new(schema: &'a Value) -> ValueType<'a> {
        ValueType {
            root: Some(schema),
            any: vec![schema],
        }
    }

    /// Whether a schema describes this value.
    pub fn is_known(&self) -> bool {
        !self.any.is_empty()
    }

    /// Returns the type of this object's member `key`.
    pub fn property(&self, key: &str) -> ValueType<'a> {
        let mut declared = Vec::new();
        let mut other = Vec::new();
        self.visit(
            &mut |part| match part.get("properties").and_then(|p| p.get(key)) {
                Some(found) => declared.push(found),
                None => other.extend(part.get("additionalProperties").filter(|a| a.is_object())),
            },
        );
        ValueType {
            root: self.root,
            any: if declared.is_empty() { other } else { declared },
        }
    }

    /// Returns the type of this array's items.
    pub fn items(&self) -> ValueType<'a> {
        let mut any = Vec::new();
        self.visit(&mut |part| any.extend(part.get("items").filter(|i| i.is_object())));
        ValueType {
            root: self.root,
            any,
        }
    }

    /// Returns the names of the declared members, in the schema's order.
    pub fn keys(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let mut keys: Vec<&'a str> = Vec::new();
        self.visit(&mut |part| {
            let properties = part.get("properties").and_then(Value::as_object);
            for key in properties.into_iter().flat_map(Map::keys) {
                if !keys.contains(&key.as_str()) {
                    keys.push(key);
                }
            }
        });
        keys.into_iter()
    }

    /// Whether the member `key` is declared.
    pub fn declares(&self, key: &str) -> bool {
        let mut found = false;
        self.visit(&mut |part| {
            found |= part.get("properties").is_some_and(|p| p.get(key).is_some())
        });
        found
    }

    /// Whether the schema allows a value of this type; true if the schema declares no type.
    pub fn allows(&self, kind: JsonType) -> bool {
        self.kinds().is_none_or(|kinds| has(&kinds, kind))
    }

    /// Whether every text is read as a string, because the schema allows only strings or declares
    /// no type.
    pub fn only_string(&self) -> bool {
        self.kinds().is_none_or(|kinds| kinds == [JsonType::String])
    }

    /// Appends the JSON of a raw text, converted to the first allowed type that it parses as. A
    /// string is tried last, because any text is a string. The order of the types in the schema is
    /// ignored.
    ///
    /// If [`ValueType::only_string`], every byte is kept. Otherwise surrounding white space is
    /// dropped, and `null` and `None` become null if the schema allows null or does not allow a
    /// string. Valid JSON stays as it is written. Objects and arrays may also contain raw control
    /// characters in their strings, or use Python's notation.
    pub fn convert(&self, text: &str, out: &mut String) -> Conversion {
        let mut kinds = self.kinds().unwrap_or_else(|| vec![JsonType::String]);
        kinds.sort_by_key(|kind| *kind == JsonType::String);
        let bare = text.trim_ascii();
        if kinds == [JsonType::String] {
            out.push_str(&event::quoted(text));
            return Conversion::Fits;
        }
        // If neither null nor a string is allowed, null means that the argument is omitted:
        // `Schema::check` counts it as missing.
        let may_be_null = kinds.contains(&JsonType::Null) || !kinds.contains(&JsonType::String);
        if may_be_null && matches!(bare, "null" | "None") {
            out.push_str("null");
            return Conversion::Fits;
        }
        for kind in kinds {
            if read(kind, text, bare, out) {
                return Conversion::Fits;
            }
        }
        out.push_str(&event::quoted(text));
        Conversion::Misfit
    }

    /// Returns the allowed types in any order, or `None` if the schema does not restrict them.
    fn kinds(&self) -> Option<Vec<JsonType>> {
        let mut walk = SchemaWalk {
            root: self.root,
            left: MAX_PARTS,
        };
        let mut kinds = Vec::new();
        for schema in &self.any {
            union(&mut kinds, &walk.kinds(schema, 0)?);
        }
        Some(kinds).filter(|kinds| !kinds.is_empty())
    }

    /// Calls `see` for each part that describes this value: the schema, the targets of its
    /// references, and its branches.
    fn visit(&self, see: &mut dyn FnMut(&'a Map<String, Value>)) {
        let mut walk = SchemaWalk {
            root: self.root,
            left: MAX_PARTS,
        };
        for schema in &self.any {
            walk.visit(schema, 0, see);
        }
    }
}

/// A walk over a schema that may refer to itself.
struct SchemaWalk<'a> {
    root: Option<&'a Value>,
    left: u32,
}

impl<'a> SchemaWalk<'a> {
    fn enter(&mut self, schema: &'a Value, depth: u32) -> Option<&'a Map<String, Value>> {
        self.left = self.left.checked_sub(1)?;
        schema.as_object().filter(|_| depth < MAX_DEPTH)
    }

    fn visit(
        &mut self,
        schema: &'a Value,
        depth: u32,
        see: &mut dyn FnMut(&'a Map<String, Value>),
    ) {
        let Some(part) = self.enter(schema, depth) else {
            return;
        };
        see(part);
        if let Some(target) = self.target(part) {
            self.visit(target, depth + 1, see);
        }
        for branch in ["anyOf", "oneOf", "allOf"]
            .iter()
            .flat_map(|key| branches(part, key))
        {
            self.visit(branch, depth + 1, see);
        }
    }

    fn kinds(&mut self, schema: &'a Value, depth: u32) -> Option<Vec<JsonType>> {
        let part = self.enter(schema, depth)?;
        let mut kinds = named(part);
        let mut narrow = |more: Option<Vec<JsonType>>| {
            kinds = match (kinds.take(), more) {
                (Some(a), Some(b)) => Some(both(&a, &b)),
                (a, b) => a.or(b),
            }
        };
        narrow(values(part));
        if let Some(target) = self.target(part) {
            narrow(self.kinds(target, depth + 1));
        }
        for key in ["anyOf", "oneOf"] {
            if part.contains_key(key) {
                let mut any = Vec::new();
                let mut unknown = false;
                for branch in branches(part, key) {
                    match self.kinds(branch, depth + 1) {
                        Some(more) => union(&mut any, &more),
                        None => unknown = true,
                    }
                }
                // A branch without a type allows a string, like a schema without a type.
                if unknown && !any.is_empty() {
                    union(&mut any, &[JsonType::String]);
                }
                narrow(Some(any).filter(|any| !any.is_empty()));
            }
        }
        for branch in branches(part, "allOf") {
            narrow(self.kinds(branch, depth + 1));
        }
        if kinds.is_none() {
            let object = ["properties", "additionalProperties", "required"]
                .iter()
                .any(|key| part.contains_key(*key));
            let array = ["items", "prefixItems"]
                .iter()
                .any(|key| part.contains_key(*key));
            kinds = match (object, array) {
                (true, _) => Some(vec![JsonType::Object]),
                (false, true) => Some(vec![JsonType::Array]),
                _ => None,
            };
        }
        if part.get("nullable") == Some(&Value::Bool(true))
            && let Some(kinds) = &mut kinds
        {
            union(kinds, &[JsonType::Null]);
        }
        kinds
    }

    /// Returns the target of a local reference, or `None` if there is no such reference.
    fn target(&self, part: &Map<String, Value>) -> Option<&'a Value> {
        let pointer = part.get("$ref")?.as_str()?.strip_prefix('#')?;
        self.root?.pointer(pointer)
    }
}

fn branches<'a>(
    part: &'a Map<String, Value>,
    key: &str,
) -> impl Iterator<Item = &'a Value> + use<'a> {
    part.get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// Returns the types that `type` lists, in lower or upper case.
fn named(part: &Map<String, Value>) -> Option<Vec<JsonType>> {
    let kind = |name: &Value| {
        Some(match &name.as_str()?.to_ascii_lowercase()[..] {
            "null" => JsonType::Null,
            "boolean" | "bool" => JsonType::Boolean,
            "integer" | "int" => JsonType::Integer,
            "number" | "float" => JsonType::Number,
            "string" | "str" => JsonType::String,
            "array" | "list" => JsonType::Array,
            "object" | "dict" => JsonType::Object,
            _ => return None,
        })
    };
    match part.get("type")? {
        Value::Array(names) => names.iter().map(kind).collect(),
        name => Some(vec![kind(name)?]),
    }
}

/// Returns the types of the values that `enum` or `const` lists.
fn values(part: &Map<String, Value>) -> Option<Vec<JsonType>> {
    let listed = part
        .get("enum")
        .and_then(Value::as_array)
        .map(Vec::as_slice);
    let listed = part.get("const").map(std::slice::from_ref).or(listed)?;
    let mut kinds: Vec<JsonType> = Vec::new();
    for value in listed {
        let kind = match value {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Number(number) if Decimal::new(&number.to_string()).is_whole() => {
                JsonType::Integer
            }
            Value::Number(_) => JsonType::Number,
            Value::String(_) => JsonType::String,
            Value::Array(_) => JsonType::Array,
            Value::Object(_) => JsonType::Object,
        };
        union(&mut kinds, &[kind]);
    }
    Some(kinds)
}

/// Whether a list allows a type; a list that contains `number` also allows integers.
fn has(kinds: &[JsonType], kind: JsonType) -> bool {
    kinds.contains(&kind) || kind == JsonType::Integer && kinds.contains(&JsonType::Number)
}

fn union(kinds: &mut Vec<JsonType>, more: &[JsonType]) {
    for kind in more {
        if !kinds.contains(kind) {
            kinds.push(*kind);
        }
    }
}

/// Returns the types that both lists allow, or the first list if they have none in common.
fn both(a: &[JsonType], b: &[JsonType]) -> Vec<JsonType> {
    let mut kinds: Vec<JsonType> = a.iter().copied().filter(|kind| has(b, *kind)).collect();
    if a.contains(&JsonType::Number)
        && !b.contains(&JsonType::Number)
        && b.contains(&JsonType::Integer)
    {
        union(&mut kinds, &[JsonType::Integer]);
    }
    if kinds.is_empty() { a.to_vec() } else { kinds }
}

/// Appends the JSON of `text` if it parses as this type. `bare` is `text` without surrounding white
/// space.
fn read(kind: JsonType, text: &str, bare: &str, out: &mut String) -> bool {
    let json = match (kind, bare) {
        (JsonType::Boolean, "true" | "True") => "true",
        (JsonType::Boolean, "false" | "False") => "false",
        (JsonType::Integer, _) if is_number(bare) && Decimal::new(bare).is_whole() => bare,
        (JsonType::Number, _) if is_number(bare) => bare,
        (JsonType::Object | JsonType::Array, _) => {
            if !bare.starts_with(if kind == JsonType::Object { '{' } else { '[' }) {
                return false;
            }
            if Raw::parse(bare).is_err() {
                return nearly_json(bare, out);
            }
            bare
        }
        (JsonType::String, _) => {
            out.push_str(&event::quoted(text));
            return true;
        }
        _ => return false,
    };
    out.push_str(json);
    true
}

fn is_number(text: &str) -> bool {
    text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) && Raw::parse(text).is_ok()
}

/// Appends the JSON of `text`, which is one value without surrounding white space. Returns `false`,
/// and appends nothing, if `text` is neither JSON nor a Python literal. JSON numbers keep their
/// digits.
fn nearly_json(text: &str, out: &mut String) -> bool {
    let json = with_valid_strings(&pieces(text));
    if Raw::parse(&json).is_ok() {
        out.push_str(&json);
        return true;
    }
    let start = out.len();
    let is_whole = Literal::value(Notation::Python).push(text, out)
        == LiteralProgress::End(text.len())
        && !matches!(check(&out[start..]), Err(JsonError::LoneSurrogate { .. }));
    if !is_whole {
        out.truncate(start);
    }
    is_whole
}

#[cfg(test)]
mod tests {

    fn json(text: &str) -> Option<String> {
        let mut out = String::from("x");
        let whole = super::nearly_json(text, &mut out);
        assert!(whole || out == "x", "{out}");
        whole.then(|| out[1..].to_owned())
    }

    #[test]
    fn literals() {
        for (text, expected) in [
            ("{'a': [1, 2.50,], 'b': {}}", r#"{"a":[1,2.50],"b":{}}"#),
            ("{'a': (0x10, 1_000, u'b' 'c')}", r#"{"a":[16,1000,"bc"]}"#),
            (
                "[\"two\nlines\", \"C:\\x\\/\"]",
                r#"["two\nlines", "C:\\x\/"]"#,
            ),
            (
                "['\\u00e9\\ud83d\\ude00\\x1b', '日本']",
                r#"["é\ud83d\ude00\u001b","日本"]"#,
            ),
            ("[\"a\u{7f}\"]", r#"["a\u007f"]"#),
            ("()", "[]"),
        ] {
            assert_eq!(json(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn everything_else() {
        let deep = "[".repeat(100_000);
        for text in [
            "{'a' 1}",
            "{a: 1}",
            "[1 2]",
            "[,]",
            "['a",
            "[0xg]",
            "[1]]",
            "['\\ud83d']",
            "{'a':1}}",
            "",
            &deep,
        ] {
            assert_eq!(json(text), None, "{text:.20}");
        }
    }
}
