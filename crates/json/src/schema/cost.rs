//! The cost of a schema: the steps of a validation, counted before the schema is compiled.
//!
//! Alternatives and references that lead to each other multiply: thirty pairs of references, 2 kB
//! of schema, are a billion steps at one value. The validator (jsonschema 0.60) remembers only the
//! results of lists and objects under a schema that refers to itself. So the steps of everything
//! else are counted here, with references followed; a schema with too many is refused.

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

/// The deepest nesting of brackets in a schema.
const MAX_DEPTH: usize = 64;
/// The most objects and arrays in a schema.
const MAX_PARTS: usize = 10_000;
/// The most text in all patterns of a schema, in bytes.
const MAX_PATTERNS: usize = 64 * 1024;

/// The types of JSON Schema
/// (<https://json-schema.org/draft/2020-12/json-schema-validation#section-6.1.1>).
const TYPES: [&str; 7] = [
    "null", "boolean", "object", "array", "number", "integer", "string",
];

/// The size of a schema.
#[derive(Default)]
pub(super) struct Size {
    parts: usize,
    patterns: usize,
    /// Names of types that JSON Schema does not have, each once. The pass takes them out, so that
    /// the rest of the schema counts.
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

    /// Counts the parts of a schema, at a depth.
    ///
    /// # Errors
    /// It refers to another document, or is too large.
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
                        ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(target))
                            if !target.starts_with('#') =>
                        {
                            return Err(SchemaError::Remote(short(target)));
                        }
                        ("pattern", Value::String(pattern)) => self.pattern(pattern)?,
                        ("type", value) => lower(value),
                        ("enum" | "const" | "default" | "example" | "examples", value) => {
                            self.data(value, depth + 1)?
                        }
                        (
                            "properties" | "patternProperties" | "$defs" | "definitions"
                            | "dependentSchemas",
                            Value::Object(named),
                        ) => {
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

    /// Removes a `type` with a name that JSON Schema does not have, such as `str`: what the schema
    /// means by it is a guess.
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

/// Gemini writes `"STRING"` for `"string"` (<https://ai.google.dev/api/caching#Type>).
fn lower(types: &mut Value) {
    match types {
        Value::String(name) => name.make_ascii_lowercase(),
        Value::Array(names) => names.iter_mut().for_each(lower),
        _ => {}
    }
}

/// `"nullable": true` of OpenAPI 3.0 allows `null` beside the type
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
    /// A `$ref` that does not begin with `#`.
    #[error("the schema refers to {0}, only references inside the schema (#/…) are followed")]
    Remote(String),
    /// It nests too deep, or has too many parts or too much text in patterns.
    #[error("the schema is too large: {0}")]
    TooLarge(&'static str),
    /// A validation could take too many steps, see `schema/cost.rs`.
    #[error("the schema is too complex: {0}, use fewer references and alternatives")]
    TooComplex(&'static str),
    /// It is not a JSON Schema, or a pattern cannot be matched in linear time.
    #[error("the schema is not valid: {0}")]
    Invalid(String),
}

/// The first 300 characters of a text.
pub(super) fn short(text: &str) -> String {
    cut(text, 300)
}

/// The first `max` characters of a text, with `…` if there are more.
pub(super) fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
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
