//! JSON Schema for tool arguments, safe for schemas that others wrote: nothing is fetched, sizes are bounded, patterns match in
//! linear time.

use crate::absent::leave_out_nulls;
use crate::misfit::Misfit;
use crate::size::Size;
use crate::{Repair, Repaired, Shape, Typed, apply, check, cost};
use event::Raw;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;

/// One compiled pattern, in bytes.
const MAX_PATTERN_SIZE: usize = 1 << 20;

/// Why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// It is no JSON.
    #[error("the schema is not JSON: {0}")]
    Syntax(String),
    /// A `$ref` that does not begin with `#`.
    #[error("the schema refers to {0}, only references inside the schema (#/…) are followed")]
    Remote(String),
    /// Too deep, too many parts, or too much text in patterns.
    #[error("the schema is too large: {0}")]
    TooLarge(&'static str),
    /// A validation could take too many steps, see `cost.rs`.
    #[error("the schema is too complex: {0}, use fewer references and alternatives")]
    TooComplex(&'static str),
    /// It is no JSON Schema, or a pattern needs what no linear-time engine has.
    #[error("the schema is not valid: {0}")]
    Invalid(String),
}

/// A compiled schema.
#[derive(Debug)]
pub struct Schema {
    root: Value,
    validator: Validator,
    /// Steps that a validation takes along one path down the value, at most.
    steps: u64,
}

impl Schema {
    /// Compiles the JSON text of a schema. Type names in capitals and `nullable`, as OpenAPI and Gemini write them, are understood.
    ///
    /// # Errors
    /// See [`SchemaError`].
    pub fn new(json: &str) -> Result<Schema, SchemaError> {
        let mut root: Value = serde_json::from_str(json).map_err(|e| SchemaError::Syntax(short(&e.to_string())))?;
        let mut size = Size::default();
        size.schema(&mut root, 0)?;
        let steps = cost::steps(&root).map_err(SchemaError::TooComplex)?;
        let validator = jsonschema::options()
            .offline()
            .should_validate_formats(false)
            .with_pattern_options(PatternOptions::regex().size_limit(MAX_PATTERN_SIZE).dfa_size_limit(MAX_PATTERN_SIZE))
            .build(&root)
            .map_err(|e| SchemaError::Invalid(invalid(&e)))?;
        Ok(Schema { root, validator, steps })
    }

    /// Checks arguments: strictly as JSON (see [`crate::check`]), then against the schema. A `null` that the schema does not
    /// allow counts as missing.
    ///
    /// # Errors
    /// What does not fit, in words that a model can act on.
    pub fn check(&self, arguments: &str) -> Result<(), Misfit> {
        check(arguments).map_err(|e| Misfit::json(&e))?;
        let mut value: Value =
            serde_json::from_str(arguments).map_err(|e| Misfit::at_root(&format!("not valid JSON: {e}")))?;
        if !cost::bearable(self.steps, arguments.len(), &value) {
            return Err(Misfit::at_root("the schema is too complex for so many values, call it with fewer"));
        }
        if self.validator.is_valid(&value)
            || leave_out_nulls(&mut value, &Typed::new(&self.root)) && self.validator.is_valid(&value)
        {
            return Ok(());
        }
        if !cost::affordable(&self.root, &value) {
            return Err(Misfit::at_root("the schema is too involved to say what does not fit"));
        }
        Err(Misfit::explain(&self.validator, &value, self.properties().collect()))
    }

    /// Whether the schema asks for an object, so that an object inside a string is meant as one.
    pub fn wants_object(&self) -> bool {
        let types = types(self.resolve(&self.root));
        types.is_empty() || types.contains(&"object")
    }

    /// The names under the schema's own `properties`.
    pub fn properties(&self) -> impl Iterator<Item = &str> {
        self.resolve(&self.root)
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(|p| p.keys().map(String::as_str))
    }

    /// The first key of an arguments object that the schema does not name, unless the schema says by `additionalProperties`,
    /// `patternProperties` or a combination (`allOf`, `anyOf`, …) what other keys may stand there, or names none at all.
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
        if others.iter().any(|key| root.get(key).is_some_and(|v| *v != Value::Bool(false))) {
            return None;
        }
        arguments.entries().map(|(key, _)| key).find(|key| !declared.contains_key(key.as_ref())).map(Into::into)
    }

    /// Arguments in which an object or array was put into a string although the schema asks for an object or array there (and
    /// not for a string): taken out of the string, once, wherever that is so. `None` unless the outcome fits the schema.
    pub fn coerce(&self, arguments: &str) -> Option<Repaired> {
        let checked = check(arguments).ok()?;
        let mut repairs = Vec::new();
        self.unwrap(checked.value, &self.root, arguments, &mut repairs);
        if repairs.is_empty() {
            return None;
        }
        let text = apply(arguments, &repairs)?;
        self.check(&text).is_ok().then_some(Repaired { text, repairs })
    }

    fn unwrap(&self, value: Raw<'_>, schema: &Value, whole: &str, repairs: &mut Vec<Repair>) {
        let schema = self.resolve(schema);
        match Shape::of(value) {
            Shape::Object => {
                let Some(properties) = schema.get("properties") else { return };
                for (key, value) in value.entries() {
                    if let Some(schema) = properties.get(key.as_ref()) {
                        self.unwrap(value, schema, whole, repairs);
                    }
                }
            }
            Shape::Array => {
                let Some(items) = schema.get("items") else { return };
                value.items().for_each(|item| self.unwrap(item, items, whole, repairs));
            }
            Shape::String => {
                let types = types(schema);
                let Some(inner) = value.str() else { return };
                let fits =
                    |shape: Shape| matches!(shape, Shape::Object | Shape::Array) && types.contains(&shape.name());
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

    /// The schema that a chain of local references ends at.
    fn resolve<'s>(&'s self, mut schema: &'s Value) -> &'s Value {
        for _ in 0..16 {
            let Some(Value::String(target)) = schema.get("$ref") else { break };
            match target.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)) {
                Some(found) => schema = found,
                None => break,
            }
        }
        schema
    }
}

/// The types a schema allows, its alternatives included; none when it does not say.
fn types(schema: &Value) -> Vec<&str> {
    let mut out: Vec<&str> = match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    for key in ["anyOf", "oneOf"] {
        for branch in schema.get(key).and_then(Value::as_array).into_iter().flatten() {
            match branch.get("type") {
                Some(Value::String(name)) => out.push(name),
                // A branch that does not say what it allows may allow a string.
                _ => out.push("string"),
            }
        }
    }
    out
}

pub(crate) fn short(text: &str) -> String {
    crate::misfit::cut(text, 300)
}

/// What is wrong with a schema, and where in it.
fn invalid(error: &ValidationError<'_>) -> String {
    let what = match error.kind() {
        ValidationErrorKind::Format { format } if format == "regex" => format!(
            "{} is no pattern that can be matched in linear time (no look-around, no back-reference, not too large)",
            crate::misfit::cut(&error.instance().to_string(), 100)
        ),
        _ => error.to_string(),
    };
    let path = error.instance_path().to_string();
    short(&if path.is_empty() { what } else { format!("{path}: {what}") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema(v: Value) -> Schema {
        Schema::new(&v.to_string()).unwrap()
    }

    fn says(s: &Schema, arguments: &str) -> String {
        s.check(arguments).map_or_else(|e| e.to_string(), |()| String::new())
    }

    #[test]
    fn messages_say_what_to_do() {
        let s = schema(
            json!({"type":"object","properties":{"city":{"type":"string","minLength":1},"days":{"type":"integer","maximum":14},
            "unit":{"enum":["C","F"]},"at":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["city"],"additionalProperties":false}),
        );
        for (arguments, want) in [
            (r#"{"city":"Paris","days":3}"#, ""),
            ("{}", "/city: is required"),
            (r#"{"city":7}"#, "/city: must be string, not 7"),
            (r#"{"city":"P","days":"three"}"#, "/days: must be integer, not \"three\""),
            (
                r#"{"city":"P","days":12345678901234567890123}"#,
                "/days: value is greater than the maximum of 14, given 12345678901234567890123",
            ),
            (r#"{"city":"P","unit":"K"}"#, "/unit: must be one of [\"C\",\"F\"], not \"K\""),
            (
                r#"{"city":"P","at":1}"#,
                "/at: fits none of the allowed forms (must be string, not 1; or must be null, not 1)",
            ),
            (
                r#"{"city; echo X; :":"x","city":"P"}"#,
                "/city; echo X; :: is not a parameter, known are city, days, unit, at",
            ),
            (r#"{"city":"P","city":"Q"}"#, "the key \"city\" stands twice in one object, again at byte 12"),
            ("[]", "must be object, not []"),
            (r#"{"city":"P","days":null,"unit":null,"at":null}"#, ""),
            (r#"{"city":null,"unit":null}"#, "/city: is required"),
            (r#"{"city":"P","other":null}"#, "/other: is not a parameter, known are city, days, unit, at"),
            (r#"{"city":""}"#, "/city: value is shorter than 1 character, given \"\""),
            ("{", "not valid JSON: no key in quotes at byte 1"),
        ] {
            assert_eq!(says(&s, arguments), want, "{arguments}");
        }
        let long = says(&s, &format!("{{\"city\":[\"{}\"]}}", "é".repeat(100_000)));
        assert!(long.len() < 300 && long.ends_with("…"), "{long}");
    }

    #[test]
    fn integers_keep_their_digits() {
        let s = schema(json!({"properties":{"n":{"type":"integer"}}}));
        for ok in ["9007199254740993", "12345678901234567890123", "-0", "1.0"] {
            assert_eq!(says(&s, &format!("{{\"n\":{ok}}}")), "", "{ok}");
        }
        assert_ne!(says(&s, "{\"n\":1.5}"), "");
        assert_eq!(says(&s, "{\"n\":1e400}"), "a number out of range at byte 5");
        let s = schema(json!({"properties":{"n":{"const": 9007199254740993_i64}}}));
        assert_eq!(says(&s, "{\"n\":9007199254740993}"), "");
        assert_ne!(says(&s, "{\"n\":9007199254740992}"), "");
    }

    #[test]
    fn hostile_schemas_are_bounded() {
        let refused = |v: Value| Schema::new(&v.to_string()).unwrap_err().to_string();
        assert!(refused(json!({"$ref":"http://evil/x"})).contains("http://evil/x"));
        assert!(refused(json!({"properties":{"a":{"$ref":"file:///etc/passwd"}}})).contains("only references inside"));
        assert!(refused(json!({"anyOf": vec![json!({"type":"string"}); 1 << 16]})).contains("10,000"));
        assert_eq!(
            refused(json!({"properties":{"a":{"pattern":"a{1000}{1000}"}}})),
            "the schema is not valid: /properties/a/pattern: \"a{1000}{1000}\" is no pattern that can be matched in linear \
             time (no look-around, no back-reference, not too large)"
        );
        assert!(refused(json!({"pattern":"^(?=a)b"})).contains("not valid"));
        assert!(refused(json!({"type":"objekt"})).contains("not valid"));
        assert!(Schema::new(&"{\"not\":".repeat(10_000)).is_err());
        assert!(
            Schema::new(&("{\"not\":".repeat(100) + "{}" + &"}".repeat(100))).unwrap_err().to_string().contains("64")
        );
        let s = schema(json!({"properties":{"a":{"pattern":"^(a+)+$"}}}));
        assert_ne!(says(&s, &format!("{{\"a\":\"{}!\"}}", "a".repeat(50))), "");
        // A property of that name is no reference.
        assert_eq!(says(&schema(json!({"properties":{"$ref":{"type":"string"}}})), r#"{"$ref":"http://x"}"#), "");
    }

    #[test]
    fn what_refers_to_itself_ends() {
        let n =
            json!({"anyOf":[{"items":{"$ref":"#/$defs/n"},"minItems":1},{"items":{"$ref":"#/$defs/n"},"minItems":1}]});
        let s = schema(json!({"$defs":{"n":n},"properties":{"a":{"$ref":"#/$defs/n"}}}));
        let deep = "{\"a\":".to_owned() + &"[".repeat(100) + &"]".repeat(100) + "}";
        assert!(says(&s, &deep).contains("too involved") && s.wants_object());
        // Many schemas at each level of a deep value fit onto a stack of 2 MiB.
        let next = |i| (format!("d{i}"), json!({"allOf":[{"$ref":format!("#/$defs/d{}", i + 1)}]}));
        let mut defs: serde_json::Map<_, _> = (0..22).map(next).collect();
        defs.insert("d22".into(), json!({"type":"array","items":{"$ref":"#/$defs/d0"}}));
        let s = schema(json!({"$defs":defs,"properties":{"a":{"$ref":"#/$defs/d0"}}}));
        let deep = |leaf: &str| format!("{{\"a\":{}{leaf}{}}}", "[".repeat(120), "]".repeat(120));
        assert_eq!(says(&s, &deep("")), "");
        assert!(says(&s, &deep("7")).contains("too involved"));
    }

    #[test]
    fn other_spellings() {
        let s = schema(json!({"type":"OBJECT","properties":{"a":{"type":"STRING","nullable":true,"enum":["x"]}}}));
        assert_eq!(says(&s, r#"{"a":"x"}"#) + &says(&s, r#"{"a":null}"#), "");
        assert!(
            s.wants_object() && schema(json!({})).wants_object() && !schema(json!({"type":"string"})).wants_object()
        );
    }

    #[test]
    fn undeclared_keys() {
        let find = |s: Value, a: &str| schema(s).undeclared(Raw::parse(a).unwrap());
        let p = json!({"properties":{"a":{}}});
        assert_eq!(find(p.clone(), r#"{"a":1,"city; echo X; :":2}"#).as_deref(), Some("city; echo X; :"));
        assert_eq!(find(p, r#"{"a":1}"#), None);
        assert_eq!(find(json!({"properties":{"a":{}},"additionalProperties":true}), r#"{"b":1}"#), None);
        assert_eq!(find(json!({"type":"object"}), r#"{"b":1}"#), None);
    }

    #[test]
    fn what_was_encoded_twice_is_unwrapped_where_the_schema_says_so() {
        let s = schema(json!({"$defs":{"tags":{"type":"array","items":{"type":"object"}}},
            "properties":{"tags":{"$ref":"#/$defs/tags"},"text":{"type":"string"},"any":{},"o":{"type":["object","null"]}},"required":["tags"]}));
        let r = s.coerce(r#"{"text":"[1]","tags":"[\"{}\"]","any":"{}","o":"{\"x\":\"[1]\"}"}"#);
        assert_eq!(r, None, "what fits only halfway is left alone");
        let r = s.coerce(r#"{"text":"[1]","tags":"[{}]","any":"{}","o":"{\"x\":\"[1]\"}"}"#).unwrap();
        assert_eq!(r.text, r#"{"text":"[1]","tags":[{}],"any":"{}","o":{"x":"[1]"}}"#);
        assert_eq!(
            r.repairs.iter().map(|r| (r.offset, r.kind)).collect::<Vec<_>>(),
            [(21, "double_encoded"), (43, "double_encoded")]
        );
        assert_eq!(s.coerce(r#"{"tags":["{}"]}"#).unwrap().text, r#"{"tags":[{}]}"#);
        assert_eq!(s.coerce(r#"{"tags":[]}"#), None);
    }
}
