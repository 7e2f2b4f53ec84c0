//! The validator for JSON Schema, from draft 4 to 2020-12.
//!
//! Only patterns are compiled. The schema is walked together with the value, and each step is
//! counted, so that neither a schema nor a value can use more time or stack than the limits below.
//! A reference must lead to the same part of the schema from everywhere.

use super::fault::{self, About, Fault, quote};
use super::pattern::Pattern;
use super::references::References;
use super::size::{SchemaError, cut, short};
use crate::decimal::Decimal;
use serde_json::{Map, Number, Value};
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet, VecDeque};

/// The maximum number of steps for listing faults, and for checking whether an empty value fits. A
/// step is one keyword at one value, or a few bytes of a text.
pub(super) const MAX_STEPS: u64 = 2_000_000;

/// Returns the maximum number of steps for checking whether a value of `length` bytes fits.
pub(super) fn most_steps(length: usize) -> u64 {
    MAX_STEPS + 16 * length as u64
}

/// The maximum number of schemas that may be open at once, at nested values and in a row at one
/// value. Each uses stack.
pub(super) const MAX_OPEN: u32 = 1_000;
/// The number of steps that a fault costs, for the text that describes it.
const FAULT: usize = 20;

/// The limit of steps or of the stack was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exhausted;

/// The keywords in the order in which their faults are listed.
const ORDER: [&str; 39] = [
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

/// Keywords with schemas for the value itself, and keywords that depend on sibling members.
const IN_PLACE: [&str; 11] = [
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
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
const DRAFT_7: usize = 2;
const DRAFT_2019: usize = 3;
const DRAFT_2020: usize = 4;

/// Returns the first draft that has a keyword.
fn since(key: &str) -> usize {
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
pub(super) struct Own {
    patterns: HashMap<String, Pattern>,
    /// The index in [`DRAFTS`].
    draft: usize,
    /// Whether any reference is not a pointer from the root.
    has_names: bool,
}

impl Own {
    /// Checks that the schema is valid.
    ///
    /// # Errors
    /// Returns what is invalid, and where.
    pub(super) fn new(root: &Value) -> Result<Own, SchemaError> {
        let mut own = Own {
            patterns: HashMap::new(),
            draft: DRAFT_2020,
            has_names: false,
        };
        if let Some(Value::String(uri)) = root.get("$schema") {
            let name = uri.strip_suffix('#').unwrap_or(uri);
            let name = name.trim_start_matches("http").trim_start_matches('s');
            own.draft = DRAFTS
                .iter()
                .position(|draft| *draft == name)
                .ok_or_else(|| SchemaError::Invalid(wrong("", "$schema", &root["$schema"])))?;
        }
        // Places are recorded only when a message needs them.
        if own.look_at_all(root, |_, _, _| String::new()).is_err() {
            own.look_at_all(root, |place, key, name| {
                let name = name.map_or(String::new(), |name| fault::member("", name));
                format!("{place}/{key}{name}")
            })?;
        }
        Ok(own)
    }

    fn look_at_all(&mut self, root: &Value, inside: Inside) -> Result<(), SchemaError> {
        let references = OnceCell::new();
        let mut waiting = VecDeque::from([(String::new(), root)]);
        let mut seen = HashSet::new();
        while let Some((place, schema)) = waiting.pop_back() {
            if seen.insert(std::ptr::from_ref(schema)) {
                self.look(schema, (&place, inside), (root, &references), &mut waiting)
                    .map_err(SchemaError::Invalid)?;
            }
        }
        match references.get() {
            Some(references) => references.check().map_err(SchemaError::TooComplex),
            None => Ok(()),
        }
    }

    /// Examines one schema and queues the schemas inside it.
    fn look<'s>(
        &mut self,
        schema: &'s Value,
        (place, inside): (&str, Inside),
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
                            return Err(no_pattern(&place, name));
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
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
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
                        no_pattern(&format!("{place}/pattern"), pattern)
                    }
                    Value::String(reference) if key.ends_with("ef") => {
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

    /// Whether `value` fits the schema `root`.
    ///
    /// # Errors
    /// The check needs more than `most` steps.
    pub(super) fn fits(&self, root: &Value, value: &Value, most: u64) -> Result<bool, Exhausted> {
        Walk::new(self, root, most).schema(root, value, None)
    }

    /// Lists what does not fit.
    ///
    /// # Errors
    /// The check needs too many steps.
    pub(super) fn faults(&self, root: &Value, value: &Value) -> Result<Vec<Fault>, Exhausted> {
        Walk::new(self, root, MAX_STEPS).faults(value)
    }

    /// Whether the member at `place` has a fault that does not depend on a condition.
    pub(super) fn has_fault(&self, root: &Value, value: &Value, place: &str) -> bool {
        let mut walk = Walk::new(self, root, MAX_STEPS);
        walk.leaves_conditions = true;
        // Faults that depend on an alternative are reported for the whole value.
        let faults = walk.faults(value);
        faults.is_ok_and(|faults| faults.iter().any(|fault| fault.path == place))
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

fn no_pattern(place: &str, pattern: &str) -> String {
    short(&format!(
        "{place}: {} is no pattern that can be matched in linear time (no look-around, no back-reference, not too large)",
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
fn pointed<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    root.pointer(reference.strip_prefix('#')?)
}

/// A part of a value.
#[derive(Clone, Copy)]
enum Part<'v> {
    Member(&'v str),
    Item(usize),
}

/// The place of a schema in the one at a place, by its keyword, and its name there.
type Inside = fn(&str, &str, Option<&str>) -> String;

/// The list to which faults are added; without a list the first fault ends the walk.
type Faults<'f> = Option<&'f mut Vec<Fault>>;

/// A walk over a value and its schema.
struct Walk<'s> {
    own: &'s Own,
    root: &'s Value,
    /// The number of remaining steps.
    steps: u64,
    open: u32,
    /// Whether a list or an object fits the target of a reference, by their addresses. Each pair is
    /// checked once, so that references cannot multiply the work.
    known: HashMap<(*const Value, *const Value), bool>,
    /// The JSON pointer of the current value. Maintained only while faults are listed.
    path: String,
    /// The targets of references; `None` if all references are pointers.
    references: Option<References<'s>>,
    /// Whether conditional keywords count as satisfied.
    leaves_conditions: bool,
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
            references: None,
            leaves_conditions: false,
        }
    }

    fn faults(&mut self, value: &Value) -> Result<Vec<Fault>, Exhausted> {
        let mut faults = Vec::new();
        self.schema(self.root, value, Some(&mut faults))?;
        Ok(faults)
    }

    /// Returns the part that a reference leads to.
    fn follow(&mut self, reference: &str) -> Result<&'s Value, Exhausted> {
        self.spend(reference.len() / 4)?;
        if !self.own.has_names {
            return pointed(self.root, reference).ok_or(Exhausted);
        }
        let references = self
            .references
            .get_or_insert_with(|| References::new(self.root));
        references
            .targets(reference)
            .first()
            .copied()
            .ok_or(Exhausted)
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
            .filter(|_| self.own.draft <= DRAFT_7);
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
        faults: Faults<'_>,
    ) -> Result<bool, Exhausted> {
        self.spend(1)?;
        if self.own.draft < DRAFT_2020 && since(key) > self.own.draft {
            return Ok(true);
        }
        match value {
            _ if matches!(argument, Value::Number(_)) => {
                self.leaf((key, argument), schema, value, faults)
            }
            _ if IN_PLACE.contains(&key) => self.in_place(key, argument, schema, value, faults),
            Value::Object(members) => {
                self.of_object(key, argument, schema, (value, members), faults)
            }
            Value::Array(items) => self.of_list(key, argument, schema, (value, items), faults),
            _ => self.leaf((key, argument), schema, value, faults),
        }
    }

    /// Whether `value` fits a keyword that applies schemas to the value itself.
    fn in_place(
        &mut self,
        key: &str,
        argument: &'s Value,
        schema: &'s Map<String, Value>,
        value: &Value,
        mut faults: Faults<'_>,
    ) -> Result<bool, Exhausted> {
        match (key, argument, value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference), _) => {
                let target = self.follow(reference)?;
                self.target(target, value, faults)
            }
            ("not", schema, _) => {
                let fits = !self.schema(schema, value, None)?;
                let message = || format!("value fits what is not allowed: {}", quote(schema));
                self.told(fits, faults, || fault::given(&message(), value))
            }
            ("if" | "dependentSchemas", ..) if self.leaves_conditions => Ok(true),
            ("if", condition, _) => {
                let holds = self.schema(condition, value, None)?;
                match schema.get(if holds { "then" } else { "else" }) {
                    Some(branch) => self.schema(branch, value, faults),
                    None => Ok(true),
                }
            }
            (
                "dependentSchemas" | "dependentRequired" | "dependencies",
                Value::Object(all),
                Value::Object(members),
            ) => {
                self.spend(all.len())?;
                let mut fits = true;
                for (_, needs) in all.iter().filter(|(name, _)| members.contains_key(*name)) {
                    let faults = faults.as_deref_mut();
                    fits &= match needs {
                        Value::Array(_) => {
                            self.keyword("required", needs, schema, value, faults)?
                        }
                        needs => self.leaves_conditions || self.schema(needs, value, faults)?,
                    };
                }
                Ok(fits)
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
            _ => Ok(true),
        }
    }

    /// Whether an object fits a keyword.
    fn of_object(
        &mut self,
        key: &str,
        argument: &'s Value,
        schema: &'s Map<String, Value>,
        (value, members): (&Value, &Map<String, Value>),
        mut faults: Faults<'_>,
    ) -> Result<bool, Exhausted> {
        match (key, argument) {
            ("properties", Value::Object(declared)) => {
                self.spend(members.len())?;
                let parts = members.iter().filter_map(|(name, member)| {
                    Some((Part::Member(name), member, declared.get(name)?))
                });
                self.each(parts, faults)
            }
            ("patternProperties", Value::Object(patterns)) => {
                let mut parts = Vec::new();
                for (pattern, schema) in patterns {
                    for (name, member) in members {
                        if self.matches(pattern, name)? {
                            parts.push((Part::Member(name), member, schema));
                        }
                    }
                }
                self.each(parts, faults)
            }
            ("additionalProperties" | "unevaluatedProperties", allowed) => {
                self.spend(members.len())?;
                let mut others = Vec::new();
                for (name, member) in members {
                    let part = Part::Member(name);
                    let is_other = match key {
                        "additionalProperties" => !self.declares(schema, name)?,
                        _ => !self.evaluates(schema, value, (part, member), true)?,
                    };
                    if is_other {
                        others.push((part, member, allowed));
                    }
                }
                if *allowed != Value::Bool(false) || others.is_empty() {
                    return self.each(others, faults);
                }
                let Some(faults) = faults else {
                    return Ok(false);
                };
                let names = members.keys().filter(|name| {
                    let is_it = |part| matches!(part, Part::Member(other) if other == *name);
                    others.iter().any(|(part, ..)| is_it(*part))
                });
                let others: Vec<_> = names.cloned().collect();
                let message = fault::given(&fault::unexpected(&others), value);
                self.list(message, About::Unexpected(others), faults)
            }
            ("propertyNames", schema) => {
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
            ("required", Value::Array(names)) => {
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
            _ => self.leaf((key, argument), schema, value, faults),
        }
    }

    /// Whether a list fits a keyword.
    fn of_list(
        &mut self,
        key: &str,
        argument: &'s Value,
        schema: &'s Map<String, Value>,
        (value, items): (&Value, &[Value]),
        faults: Faults<'_>,
    ) -> Result<bool, Exhausted> {
        match (key, argument) {
            ("prefixItems" | "items", Value::Array(all)) => {
                let parts = items.iter().zip(all).enumerate();
                self.each(
                    parts.map(|(n, (item, schema))| (Part::Item(n), item, schema)),
                    faults,
                )
            }
            ("items" | "additionalItems" | "unevaluatedItems", allowed) => {
                let first = match (key, schema.get("items"), schema.get("prefixItems")) {
                    ("additionalItems", Some(Value::Array(all)), _) => all.len(),
                    ("additionalItems", ..) => return Ok(true),
                    ("items", _, Some(Value::Array(all)))
                        if since("prefixItems") <= self.own.draft =>
                    {
                        all.len()
                    }
                    _ => 0,
                };
                let mut parts = Vec::new();
                for (n, item) in items.iter().enumerate().skip(first) {
                    let part = Part::Item(n);
                    if key != "unevaluatedItems"
                        || !self.evaluates(schema, value, (part, item), true)?
                    {
                        parts.push((part, item, allowed));
                    }
                }
                self.each(parts, faults)
            }
            ("contains", needed) => {
                let limit = |key: &str| {
                    let limit = schema.get(key).filter(|_| self.own.draft >= DRAFT_2019);
                    limit.and_then(Value::as_f64)
                };
                let (least, most) = (limit("minContains").unwrap_or(1.0), limit("maxContains"));
                let mut found = 0.0;
                for item in items {
                    found += f64::from(u8::from(self.schema(needed, item, None)?));
                }
                let fits = found >= least && most.is_none_or(|most| found <= most);
                let message = || {
                    let most = most.map_or(String::new(), |most| format!(" and at most {most}"));
                    format!(
                        "value has {found} items of a kind of which it needs at least {least}{most}"
                    )
                };
                self.told(fits, faults, || fault::given(&message(), value))
            }
            ("uniqueItems", Value::Bool(true)) => {
                let mut texts = HashSet::new();
                let mut fits = true;
                for (n, item) in items.iter().enumerate() {
                    if let Value::String(text) = item {
                        self.spend(1 + text.len() / 32)?;
                        fits &= texts.insert(text);
                        continue;
                    }
                    for other in &items[..n] {
                        fits = fits && !self.equal(item, other)?;
                    }
                }
                self.told(fits, faults, || {
                    fault::given("value has an item twice", value)
                })
            }
            _ => self.leaf((key, argument), schema, value, faults),
        }
    }

    /// Whether `value` fits the target of a reference.
    fn target(
        &mut self,
        target: &'s Value,
        value: &Value,
        faults: Faults<'_>,
    ) -> Result<bool, Exhausted> {
        // Lists and objects keep their addresses, but a name of `propertyNames` exists only for a
        // moment.
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

    /// Whether the parts of a value fit their schemas.
    fn each<'v>(
        &mut self,
        parts: impl IntoIterator<Item = (Part<'v>, &'v Value, &'s Value)>,
        mut faults: Faults<'_>,
    ) -> Result<bool, Exhausted> {
        let start = self.path.len();
        let mut fits = true;
        for (part, value, schema) in parts {
            if faults.is_some() {
                self.path = match part {
                    Part::Member(name) => fault::member(&self.path, name),
                    Part::Item(n) => format!("{}/{n}", self.path),
                };
            }
            fits &= self.schema(schema, value, faults.as_deref_mut())?;
            self.path.truncate(start);
            if !fits && faults.is_none() {
                break;
            }
        }
        Ok(fits)
    }

    /// Whether a text matches a pattern of the schema.
    fn matches(&mut self, pattern: &str, text: &str) -> Result<bool, Exhausted> {
        let compiled = self.own.patterns.get(pattern).ok_or(Exhausted)?;
        self.spend(compiled.steps(text))?;
        compiled.is_match(text).ok_or(Exhausted)
    }

    /// Whether a schema declares a member of this name, directly or by a pattern.
    fn declares(&mut self, schema: &Map<String, Value>, name: &str) -> Result<bool, Exhausted> {
        let mut found = schema
            .get("properties")
            .is_some_and(|all| all.get(name).is_some());
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        for pattern in patterns.into_iter().flat_map(Map::keys) {
            found = found || self.matches(pattern, name)?;
        }
        Ok(found)
    }

    /// Whether a schema that `value` fits evaluates this part of `value`. `is_own` is set if an
    /// `unevaluated…` keyword of `schema` itself asks; such a keyword then does not count.
    fn evaluates(
        &mut self,
        schema: &'s Map<String, Value>,
        value: &Value,
        part: (Part<'_>, &Value),
        is_own: bool,
    ) -> Result<bool, Exhausted> {
        for (key, argument) in schema {
            self.spend(1)?;
            if since(key) > self.own.draft {
                continue;
            }
            let found = match (key.as_str(), argument, part.0) {
                ("additionalProperties", _, Part::Member(_)) => true,
                ("properties" | "patternProperties", _, Part::Member(name)) => {
                    self.declares(schema, name)?
                }
                ("prefixItems" | "items", Value::Array(all), Part::Item(n)) => n < all.len(),
                ("items", _, Part::Item(_)) => true,
                ("additionalItems", _, Part::Item(_)) => {
                    schema.get("items").is_some_and(Value::is_array)
                }
                ("unevaluatedProperties", _, Part::Member(_))
                | ("unevaluatedItems", _, Part::Item(_)) => !is_own,
                ("contains", needed, Part::Item(_)) => {
                    self.own.draft >= DRAFT_2020 && self.schema(needed, part.1, None)?
                }
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference), _) => {
                    let target = self.follow(reference)?;
                    self.evaluates_if_fits(target, value, part)?
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(all), _) => {
                    let mut found = false;
                    for schema in all {
                        found = found || self.evaluates_if_fits(schema, value, part)?;
                    }
                    found
                }
                ("if", condition, _) => {
                    let holds = self.schema(condition, value, None)?;
                    let branch = schema.get(if holds { "then" } else { "else" });
                    let both = [Some(condition).filter(|_| holds), branch];
                    let mut found = false;
                    for schema in both.into_iter().flatten() {
                        found = found || self.evaluates_if_fits(schema, value, part)?;
                    }
                    found
                }
                ("dependentSchemas", Value::Object(all), _) => {
                    let mut found = false;
                    for (name, schema) in all {
                        found = found
                            || value.get(name).is_some()
                                && self.evaluates_if_fits(schema, value, part)?;
                    }
                    found
                }
                _ => false,
            };
            if found {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn evaluates_if_fits(
        &mut self,
        schema: &'s Value,
        value: &Value,
        part: (Part<'_>, &Value),
    ) -> Result<bool, Exhausted> {
        let Value::Object(members) = schema else {
            return Ok(false);
        };
        if !self.target(schema, value, None)? {
            return Ok(false);
        }
        if self.open == MAX_OPEN {
            return Err(Exhausted);
        }
        self.open += 1;
        let found = self.evaluates(members, value, part, false)?;
        self.open -= 1;
        Ok(found)
    }

    /// Whether `value` fits one of several schemas: at least one for `anyOf`, exactly one for
    /// `oneOf`.
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

    /// Whether `value` fits a keyword that has no schemas.
    fn leaf(
        &mut self,
        (key, argument): (&str, &'s Value),
        schema: &Map<String, Value>,
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
                let fits = self.matches(pattern, text)?;
                let message = || format!("value does not match \"{pattern}\"");
                self.told(fits, faults, || fault::given(&message(), value))
            }
            (_, Value::Number(limit)) => {
                // In draft 4 a flag next to a limit means that the limit itself is excluded.
                let exclusive = match key {
                    "minimum" => "exclusiveMinimum",
                    "maximum" => "exclusiveMaximum",
                    _ => key,
                };
                let is_exclusive = schema.get(exclusive) == Some(&Value::Bool(true));
                let key = if is_exclusive { exclusive } else { key };
                let Some(fits) = self.within(key, limit, value)? else {
                    return Ok(true);
                };
                let message = || fault::beyond(key, limit.as_str());
                self.told(fits, faults, || fault::given(&message(), value))
            }
            _ => Ok(true),
        }
    }

    /// Whether `value` is within the limit of a keyword. Returns `None` if the keyword does not
    /// limit such a value.
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
                (text.chars().count() as u64).cmp(&whole(limit))
            }
            ("minItems" | "maxItems", Value::Array(items)) => {
                (items.len() as u64).cmp(&whole(limit))
            }
            ("minProperties" | "maxProperties", Value::Object(members)) => {
                (members.len() as u64).cmp(&whole(limit))
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

    /// Adds a fault to the list unless the value fits.
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

/// Returns the limit of a length, which may be written as `2.0`.
fn whole(limit: &Number) -> u64 {
    limit
        .as_u64()
        .unwrap_or_else(|| limit.as_f64().map_or(0, |limit| limit as u64))
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
    use crate::schema::size::Size;
    use proptest::prelude::*;
    use proptest::sample::{select, subsequence};
    use serde_json::json;

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
                let validator = match Own::new(schema) {
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
            let Ok(own) = Own::new(&schema) else { return Ok(()) };
            let Ok(other) = jsonschema::options().should_validate_formats(false).build(&schema) else { return Ok(()) };
            for value in values {
                let fits = own.fits(&schema, &value, most_steps(0));
                prop_assert_eq!(fits, Ok(other.is_valid(&value)), "{} {}", schema, value);
                let faults = own.faults(&schema, &value).unwrap();
                prop_assert_eq!(Ok(faults.is_empty()), fits, "{} {}", schema, value);
            }
        }
    }
}
