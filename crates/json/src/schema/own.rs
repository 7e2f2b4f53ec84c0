//! The validator for what the schemas of tools use. A schema with anything else is left to the
//! crate `jsonschema`, whole (`library.rs`): this validator never guesses.
//!
//! Nothing is compiled but patterns. The schema is read beside the value, and each step is counted,
//! so that neither a schema nor a value can take more time or stack than the limits below.

use super::fault::{self, About, Fault, quote};
use super::pattern::Pattern;
use super::size::cut;
use crate::decimal::Decimal;
use serde_json::{Map, Number, Value};
use std::collections::{HashMap, HashSet};

/// The most steps that find out what does not fit, and whether an empty value fits. A step is a
/// keyword at a value, or some bytes of a text.
pub(super) const MAX_STEPS: u64 = 2_000_000;

/// The most steps that find out whether a value of `length` bytes fits.
pub(super) fn most_steps(length: usize) -> u64 {
    MAX_STEPS + 16 * length as u64
}

/// How many schemas may be open at once, down the value and in a row at one value. Each takes
/// stack.
pub(super) const MAX_OPEN: u32 = 1_000;
/// What a fault takes of the steps: the text that describes it.
const FAULT: usize = 20;

/// The limit of steps, or of the stack, was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exhausted;

/// The keywords in the order in which their faults are listed.
const ORDER: [&str; 24] = [
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
    "required",
    "pattern",
    "properties",
    "additionalProperties",
    "propertyNames",
    "items",
    "allOf",
    "anyOf",
    "oneOf",
    "$ref",
];

/// Keywords of some draft that this validator does not implement.
const LEFT: [&str; 29] = [
    "$id",
    "$anchor",
    "$dynamicRef",
    "$dynamicAnchor",
    "$recursiveRef",
    "$recursiveAnchor",
    "$vocabulary",
    "not",
    "if",
    "then",
    "else",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
    "prefixItems",
    "additionalItems",
    "contains",
    "minContains",
    "maxContains",
    "uniqueItems",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "disallow",
    "divisibleBy",
    "extends",
];

/// The drafts whose keywords of [`ORDER`] mean the same, but for the siblings of `$ref`.
const DRAFTS: [&str; 3] = [
    "://json-schema.org/draft-07/schema",
    "://json-schema.org/draft/2019-09/schema",
    "://json-schema.org/draft/2020-12/schema",
];

/// A schema that this validator takes.
#[derive(Debug)]
pub(super) struct Own {
    patterns: HashMap<String, Pattern>,
    /// Whether the keywords beside a `$ref` have no effect, as in draft 7.
    is_draft_7: bool,
    has_references: bool,
}

impl Own {
    /// Looks for what this validator does not implement.
    ///
    /// # Errors
    /// The keyword, with its value if only that is not implemented.
    pub(super) fn new(root: &Value) -> Result<Own, String> {
        let draft = match root.get("$schema") {
            None => DRAFTS[2],
            Some(Value::String(uri)) => {
                let uri = uri.strip_suffix('#').unwrap_or(uri);
                let name = uri.strip_prefix("http").unwrap_or_default();
                let name = name.strip_prefix('s').unwrap_or(name);
                DRAFTS
                    .into_iter()
                    .find(|draft| *draft == name)
                    .ok_or_else(|| left("$schema", &Value::from(uri)))?
            }
            Some(other) => return Err(left("$schema", other)),
        };
        let mut own = Own {
            patterns: HashMap::new(),
            is_draft_7: draft == DRAFTS[0],
            has_references: false,
        };
        own.look(root, root)?;
        Ok(own)
    }

    pub(super) fn has_references(&self) -> bool {
        self.has_references
    }

    fn look(&mut self, schema: &Value, root: &Value) -> Result<(), String> {
        let members = match schema {
            Value::Object(members) => members,
            Value::Bool(_) => return Ok(()),
            other => return Err(quote(other)),
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
                    | "maxProperties",
                    value,
                ) => value.as_u64().is_some(),
                ("pattern", Value::String(pattern)) => self.pattern(pattern),
                ("properties" | "$defs" | "definitions", Value::Object(named)) => {
                    for schema in named.values() {
                        self.look(schema, root)?;
                    }
                    true
                }
                ("anyOf" | "oneOf" | "allOf", Value::Array(all)) => {
                    for schema in all {
                        self.look(schema, root)?;
                    }
                    !all.is_empty()
                }
                ("items" | "additionalProperties" | "propertyNames", schema) => {
                    if schema.is_object() {
                        self.look(schema, root)?;
                    }
                    schema.is_object() || schema.is_boolean()
                }
                ("$ref", Value::String(reference)) => {
                    self.has_references = true;
                    target(root, reference).is_some()
                }
                ("$schema", _) => std::ptr::eq(schema, root),
                ("deprecated" | "readOnly" | "writeOnly", value) => value.is_boolean(),
                ("examples", value) => value.is_array(),
                ("$defs" | "definitions", _) => false,
                // Everything else describes the value only.
                (key, _) => !ORDER.contains(&key) && !LEFT.contains(&key),
            };
            if !is_known {
                return Err(left(key, value));
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

    /// Whether `value` fits the schema `root`.
    ///
    /// # Errors
    /// It takes more steps than `most`.
    pub(super) fn fits(&self, root: &Value, value: &Value, most: u64) -> Result<bool, Exhausted> {
        Walk::new(self, root, most).schema(root, value, None)
    }

    /// What does not fit.
    ///
    /// # Errors
    /// It takes too many steps.
    pub(super) fn faults(&self, root: &Value, value: &Value) -> Result<Vec<Fault>, Exhausted> {
        let mut faults = Vec::new();
        Walk::new(self, root, MAX_STEPS).schema(root, value, Some(&mut faults))?;
        Ok(faults)
    }
}

/// A keyword that is left to the crate, for a message.
fn left(key: &str, value: &Value) -> String {
    cut(&format!("{key}: {}", quote(value)), 100)
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

/// The schema that a reference inside the schema (`#/…`) leads to.
pub(super) fn target<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    /// What a token of the pointer may lead to.
    enum Place {
        Schema,
        /// The schemas by name or number, which a keyword lists.
        Schemas,
    }
    let pointer = reference.strip_prefix('#')?;
    if pointer.contains('%') || !(pointer.is_empty() || pointer.starts_with('/')) {
        return None;
    }
    let mut place = Place::Schema;
    let mut part = root;
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        place = match (place, token.as_str()) {
            (Place::Schemas, _) => Place::Schema,
            (_, "properties" | "$defs" | "definitions" | "anyOf" | "oneOf" | "allOf") => {
                Place::Schemas
            }
            (_, "items" | "additionalProperties" | "propertyNames") => Place::Schema,
            _ => return None,
        };
        part = match part {
            Value::Object(members) => members.get(&token)?,
            // An index has no sign and no leading zero.
            Value::Array(items) => items
                .get(token.parse::<usize>().ok()?)
                .filter(|_| token == "0" || !token.starts_with(['0', '+']))?,
            _ => return None,
        };
    }
    matches!(place, Place::Schema).then_some(part)
}

/// Where faults are listed; without a list the first one ends the walk.
type Faults<'f> = Option<&'f mut Vec<Fault>>;

/// One walk over a value and its schema.
struct Walk<'s> {
    own: &'s Own,
    root: &'s Value,
    /// How many steps are left.
    steps: u64,
    open: u32,
    /// Whether a list or an object fits the target of a reference, by their addresses: each pair is
    /// looked at once, so that references cannot multiply.
    known: HashMap<(*const Value, *const Value), bool>,
    /// Where the value is, as a JSON pointer. Kept only while faults are listed.
    path: String,
}

impl<'s> Walk<'s> {
    fn new(own: &'s Own, root: &'s Value, steps: u64) -> Walk<'s> {
        Walk {
            own,
            root,
            steps,
            open: 0,
            known: HashMap::new(),
            path: String::new(),
        }
    }

    fn spend(&mut self, steps: usize) -> Result<(), Exhausted> {
        self.steps = self.steps.checked_sub(steps as u64).ok_or(Exhausted)?;
        Ok(())
    }

    /// Whether `value` fits `schema`.
    fn schema(
        &mut self,
        schema: &'s Value,
        value: &Value,
        mut faults: Faults<'_>,
    ) -> Result<bool, Exhausted> {
        self.spend(1)?;
        let Value::Object(members) = schema else {
            let fits = *schema != Value::Bool(false);
            let message = || fault::given("False schema does not allow value", value);
            return self.told(fits, faults, message);
        };
        if self.open == MAX_OPEN {
            return Err(Exhausted);
        }
        self.open += 1;
        let reference = members
            .get_key_value("$ref")
            .filter(|_| self.own.is_draft_7);
        let fits = if let Some((key, argument)) = reference {
            self.keyword(key, argument, members, value, faults)?
        } else if let Some(list) = &mut faults {
            let rank = |key: &str| ORDER.iter().position(|known| *known == key);
            let mut keywords: Vec<_> = members
                .iter()
                .filter_map(|(key, argument)| Some((rank(key)?, key, argument)))
                .collect();
            keywords.sort_unstable_by_key(|(rank, ..)| *rank);
            let mut fits = true;
            for (_, key, argument) in keywords {
                fits &= self.keyword(key, argument, members, value, Some(list))?;
            }
            fits
        } else {
            let mut fits = true;
            for (key, argument) in members {
                fits = fits && self.keyword(key, argument, members, value, None)?;
            }
            fits
        };
        self.open -= 1;
        Ok(fits)
    }

    /// Whether `value` fits one keyword of a schema.
    fn keyword(
        &mut self,
        key: &str,
        argument: &'s Value,
        schema: &'s Map<String, Value>,
        value: &Value,
        mut faults: Faults<'_>,
    ) -> Result<bool, Exhausted> {
        self.spend(1)?;
        match (key, argument, value) {
            ("$ref", Value::String(reference), _) => {
                self.spend(reference.len() / 4)?;
                let target = target(self.root, reference).ok_or(Exhausted)?;
                self.target(target, value, faults)
            }
            ("allOf", Value::Array(all), _) => {
                let mut fits = true;
                for schema in all {
                    fits &= self.schema(schema, value, faults.as_deref_mut())?;
                    if !fits && faults.is_none() {
                        break;
                    }
                }
                Ok(fits)
            }
            ("anyOf" | "oneOf", Value::Array(all), _) => self.forms(key, all, value, faults),
            ("properties", Value::Object(declared), Value::Object(members)) => {
                let of = |name: &str| declared.get(name);
                self.members(of, members, faults)
            }
            ("additionalProperties", allowed, Value::Object(members)) => {
                let declared = schema.get("properties");
                let is_other = |name: &str| declared.and_then(|d| d.get(name)).is_none();
                if *allowed != Value::Bool(false) {
                    return self.members(|name| is_other(name).then_some(allowed), members, faults);
                }
                self.spend(members.len())?;
                let others: Vec<_> = members.keys().filter(|name| is_other(name)).collect();
                let Some(faults) = faults.filter(|_| !others.is_empty()) else {
                    return Ok(others.is_empty());
                };
                let others: Vec<_> = others.into_iter().cloned().collect();
                let message = fault::given(&fault::unexpected(&others), value);
                self.list(message, About::Unexpected(others), faults)
            }
            ("propertyNames", schema, Value::Object(members)) => {
                for name in members.keys() {
                    let name = Value::String(name.clone());
                    if self.schema(schema, &name, None)? {
                        continue;
                    }
                    let mut inner = Vec::new();
                    if faults.is_some() {
                        self.schema(schema, &name, Some(&mut inner))?;
                    }
                    let why = inner.first().map_or("", |fault| &fault.message);
                    let message = || format!("the name {}: {why}", quote(&name));
                    return self.told(false, faults, message);
                }
                Ok(true)
            }
            ("items", schema, Value::Array(items)) => {
                let start = self.path.len();
                let mut fits = true;
                for (n, item) in items.iter().enumerate() {
                    if faults.is_some() {
                        self.path.push_str(&format!("/{n}"));
                    }
                    fits &= self.schema(schema, item, faults.as_deref_mut())?;
                    self.path.truncate(start);
                    if !fits && faults.is_none() {
                        break;
                    }
                }
                Ok(fits)
            }
            ("required", Value::Array(names), Value::Object(members)) => {
                self.spend(names.len())?;
                let mut fits = true;
                for name in names.iter().filter_map(Value::as_str) {
                    if members.contains_key(name) {
                        continue;
                    }
                    fits = false;
                    let Some(faults) = &mut faults else { break };
                    let message = format!("{} is a required property", Value::from(name));
                    let message = fault::given(&message, value);
                    self.list(message, About::Missing(name.to_owned()), faults)?;
                }
                Ok(fits)
            }
            _ => self.leaf(key, argument, value, faults),
        }
    }

    /// Whether `value` fits the target of a reference.
    fn target(
        &mut self,
        target: &'s Value,
        value: &Value,
        faults: Faults<'_>,
    ) -> Result<bool, Exhausted> {
        // The addresses of lists and objects stay; a name of `propertyNames` has one for a moment.
        if faults.is_some() || !(value.is_array() || value.is_object()) {
            return self.schema(target, value, faults);
        }
        let pair = (std::ptr::from_ref(target), std::ptr::from_ref(value));
        if let Some(fits) = self.known.get(&pair) {
            return Ok(*fits);
        }
        let fits = self.schema(target, value, None)?;
        self.known.insert(pair, fits);
        Ok(fits)
    }

    /// Whether the members with a schema fit it.
    fn members(
        &mut self,
        schema: impl Fn(&str) -> Option<&'s Value>,
        members: &Map<String, Value>,
        mut faults: Faults<'_>,
    ) -> Result<bool, Exhausted> {
        self.spend(members.len())?;
        let start = self.path.len();
        let mut fits = true;
        for (name, member) in members {
            let Some(schema) = schema(name) else { continue };
            if faults.is_some() {
                self.path = fault::member(&self.path, name);
            }
            fits &= self.schema(schema, member, faults.as_deref_mut())?;
            self.path.truncate(start);
            if !fits && faults.is_none() {
                break;
            }
        }
        Ok(fits)
    }

    /// Whether `value` fits one of several schemas: at least one for `anyOf`, no other for `oneOf`.
    fn forms(
        &mut self,
        key: &str,
        all: &'s [Value],
        value: &Value,
        faults: Faults<'_>,
    ) -> Result<bool, Exhausted> {
        let mut found = 0;
        for schema in all {
            found += u32::from(self.schema(schema, value, None)?);
            if found == if key == "anyOf" { 1 } else { 2 } {
                break;
            }
        }
        if found == 1 {
            return Ok(true);
        }
        let mut forms = Vec::new();
        if faults.is_some() && found == 0 {
            for schema in &all[..all.len().min(3)] {
                let mut inner = Vec::new();
                self.schema(schema, value, Some(&mut inner))?;
                forms.extend(inner.into_iter().next().map(|fault| fault.message));
            }
        }
        self.told(false, faults, || match found {
            0 => fault::none_of(forms.into_iter()),
            _ => fault::given(
                "value is valid under more than one of the schemas listed in the 'oneOf' keyword",
                value,
            ),
        })
    }

    /// Whether `value` fits a keyword that looks at nothing but it.
    fn leaf(
        &mut self,
        key: &str,
        argument: &'s Value,
        value: &Value,
        faults: Faults<'_>,
    ) -> Result<bool, Exhausted> {
        match (key, argument) {
            ("type", names) => {
                let one = std::slice::from_ref(names);
                let names = names.as_array().map_or(one, Vec::as_slice);
                let mut names = names.iter().filter_map(Value::as_str);
                let fits = names.clone().any(|name| has_type(value, name));
                self.told(fits, faults, || fault::not_of_type(&mut names, value))
            }
            ("enum", Value::Array(options)) => {
                let mut fits = false;
                for option in options {
                    fits = fits || self.equal(option, value)?;
                }
                self.told(fits, faults, || fault::not_one_of(argument, value))
            }
            ("const", constant) => {
                let fits = self.equal(constant, value)?;
                self.told(fits, faults, || fault::not_constant(constant, value))
            }
            ("pattern", Value::String(pattern)) => {
                let Value::String(text) = value else {
                    return Ok(true);
                };
                let compiled = self.own.patterns.get(pattern).ok_or(Exhausted)?;
                self.spend(compiled.steps(text))?;
                let fits = compiled.is_match(text).ok_or(Exhausted)?;
                let message = || format!("value does not match \"{pattern}\"");
                self.told(fits, faults, || fault::given(&message(), value))
            }
            (_, Value::Number(limit)) => {
                let Some(fits) = self.within(key, limit, value)? else {
                    return Ok(true);
                };
                let message = || fault::beyond(key, limit.as_str());
                self.told(fits, faults, || fault::given(&message(), value))
            }
            _ => Ok(true),
        }
    }

    /// Whether `value` is within the limit of a keyword. Returns `None` if the keyword has no limit
    /// for such a value.
    fn within(
        &mut self,
        key: &str,
        limit: &Number,
        value: &Value,
    ) -> Result<Option<bool>, Exhausted> {
        let ordering = match (key, value) {
            (
                "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf",
                Value::Number(number),
            ) => {
                self.spend(number.as_str().len() / 8)?;
                let number = Decimal::new(number.as_str());
                let limit = Decimal::new(limit.as_str());
                if key == "multipleOf" {
                    return Ok(number.is_multiple_of(&limit));
                }
                number.cmp(&limit)
            }
            (_, Value::Number(_)) => return Ok(None),
            ("minLength" | "maxLength", Value::String(text)) => {
                self.spend(text.len() / 32)?;
                (text.chars().count() as u64).cmp(&limit.as_u64().unwrap_or_default())
            }
            ("minItems" | "maxItems", Value::Array(items)) => {
                (items.len() as u64).cmp(&limit.as_u64().unwrap_or_default())
            }
            ("minProperties" | "maxProperties", Value::Object(members)) => {
                (members.len() as u64).cmp(&limit.as_u64().unwrap_or_default())
            }
            _ => return Ok(None),
        };
        Ok(Some(match key {
            "exclusiveMinimum" => ordering.is_gt(),
            "exclusiveMaximum" => ordering.is_lt(),
            _ if key.starts_with("min") => ordering.is_ge(),
            _ => ordering.is_le(),
        }))
    }

    /// Whether two values are equal: numbers by every digit, members in any order.
    fn equal(&mut self, a: &Value, b: &Value) -> Result<bool, Exhausted> {
        self.spend(1)?;
        match (a, b) {
            (Value::Number(a), Value::Number(b)) => {
                self.spend(b.as_str().len() / 8)?;
                Ok(a == b || Decimal::new(a.as_str()) == Decimal::new(b.as_str()))
            }
            (Value::Array(a), Value::Array(b)) => {
                let mut equal = a.len() == b.len();
                for (a, b) in a.iter().zip(b) {
                    equal = equal && self.equal(a, b)?;
                }
                Ok(equal)
            }
            (Value::Object(a), Value::Object(b)) => {
                let mut equal = a.len() == b.len();
                for (key, a) in a {
                    equal = equal && b.get(key).map_or(Ok(false), |b| self.equal(a, b))?;
                }
                Ok(equal)
            }
            (Value::String(a), Value::String(b)) => {
                if a.len() == b.len() {
                    self.spend(a.len() / 32)?;
                }
                Ok(a == b)
            }
            _ => Ok(a == b),
        }
    }

    /// Lists a fault unless the value fits.
    fn told(
        &mut self,
        fits: bool,
        faults: Faults<'_>,
        message: impl FnOnce() -> String,
    ) -> Result<bool, Exhausted> {
        match faults {
            Some(faults) if !fits => self.list(message(), About::Value, faults),
            _ => Ok(fits),
        }
    }

    fn list(
        &mut self,
        message: String,
        about: About,
        faults: &mut Vec<Fault>,
    ) -> Result<bool, Exhausted> {
        self.spend(FAULT)?;
        faults.push(Fault {
            path: self.path.clone(),
            message,
            about,
        });
        Ok(false)
    }
}

/// Whether a value has the type of this name.
fn has_type(value: &Value, name: &str) -> bool {
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Number(number) => {
            name == "number" || name == "integer" && Decimal::new(number.as_str()).is_whole()
        }
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Every schema of the test suite of JSON Schema that this validator takes. How many it takes is
    /// counted, so that none is left to the crate unnoticed.
    #[test]
    fn the_verdicts_are_those_of_the_test_suite() {
        for (draft, text, taken) in [
            (
                "draft2020-12",
                include_str!("../../tests/suite/draft2020-12.ndjson"),
                174,
            ),
            (
                "draft2019-09",
                include_str!("../../tests/suite/draft2019-09.ndjson"),
                174,
            ),
            (
                "draft7",
                include_str!("../../tests/suite/draft7.ndjson"),
                170,
            ),
            ("draft4", include_str!("../../tests/suite/draft4.ndjson"), 0),
        ] {
            let mut own = 0;
            for line in text.lines() {
                let mut line: Value = serde_json::from_str(line).unwrap();
                // The suite leaves the draft of the older drafts' schemas to the reader.
                if let ("draft7", Value::Object(schema)) = (draft, &mut line["schema"]) {
                    let uri = format!("http{}#", DRAFTS[0]);
                    schema.entry("$schema").or_insert(Value::from(uri));
                } else if let ("draft4", Value::Object(schema)) = (draft, &mut line["schema"]) {
                    let uri = "http://json-schema.org/draft-04/schema#";
                    schema.entry("$schema").or_insert(Value::from(uri));
                }
                let schema = &line["schema"];
                let Ok(validator) = Own::new(schema) else {
                    continue;
                };
                own += 1;
                for case in line["tests"].as_array().unwrap() {
                    let what = format!("{draft} {line:.300} {}", case[0]);
                    let fits = validator.fits(schema, &case[0], most_steps(0));
                    assert_eq!(fits, Ok(case[1] == json!(true)), "{what}");
                    let faults = validator.faults(schema, &case[0]).unwrap();
                    assert_eq!(Ok(faults.is_empty()), fits, "{what}");
                }
            }
            println!("{draft}: {own} of {} schemas", text.lines().count());
            assert_eq!(own, taken, "{draft}");
        }
    }
}
