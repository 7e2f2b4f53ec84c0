//! Checks a value against a schema by walking both together. Each step is counted, so that neither a
//! schema nor a value can use more time or stack than the limits below.

use super::fault::{self, About, Fault, quote};
use super::references::References;
use super::validator::{DRAFT_7, DRAFT_2019, DRAFT_2020, ORDER, Validator, pointed, since};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};

mod leaf;
mod unevaluated;

/// The maximum number of steps for listing faults, and for checking whether an empty value fits. A
/// step is one keyword at one value, or a few bytes of a text.
const MAX_STEPS: u64 = 2_000_000;

/// Returns the maximum number of steps for checking whether a value of `length` bytes fits.
pub(super) fn most_steps(length: usize) -> u64 {
    MAX_STEPS + 16 * length as u64
}

/// The maximum number of schemas that may be open at once, at nested values and in a row at one
/// value. Each uses stack.
const MAX_OPEN: u32 = 1_000;
/// The number of steps that a fault costs, for the text that describes it.
const FAULT_STEPS: usize = 20;

/// The limit of steps or of the stack was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exhausted;

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

impl Validator {
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

/// A part of a value.
#[derive(Clone, Copy)]
enum Part<'v> {
    Member(&'v str),
    Item(usize),
}

/// A keyword with its schema, since some keywords depend on others in the same schema.
#[derive(Clone, Copy)]
struct Keyword<'s> {
    key: &'s str,
    argument: &'s Value,
    schema: &'s Map<String, Value>,
}

/// The list to which faults are added; without a list the first fault ends the walk.
type Faults<'f> = Option<&'f mut Vec<Fault>>;

/// A walk over a value and its schema.
struct Walk<'s> {
    validator: &'s Validator,
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
    fn new(validator: &'s Validator, root: &'s Value, steps: u64) -> Walk<'s> {
        Walk {
            validator,
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
        if !self.validator.has_names {
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
            return self.report(fits, faults, message);
        };
        if self.open == MAX_OPEN {
            return Err(Exhausted);
        }
        self.open += 1;
        let keyword = |key, argument| Keyword {
            key,
            argument,
            schema: members,
        };
        let all = members.iter().map(|(key, argument)| keyword(key, argument));
        let reference = members
            .get("$ref")
            .filter(|_| self.validator.draft <= DRAFT_7);
        let fits = if let Some(argument) = reference {
            self.keyword(keyword("$ref", argument), value, faults)?
        } else if let Some(list) = &mut faults {
            let rank = |key: &str| ORDER.iter().position(|known| *known == key);
            let mut keywords: Vec<_> = all
                .filter_map(|keyword| Some((rank(keyword.key)?, keyword)))
                .collect();
            keywords.sort_unstable_by_key(|(rank, _)| *rank);
            let mut fits = true;
            for (_, keyword) in keywords {
                fits &= self.keyword(keyword, value, Some(list))?;
            }
            fits
        } else {
            let mut fits = true;
            for keyword in all {
                fits = fits && self.keyword(keyword, value, None)?;
            }
            fits
        };
        self.open -= 1;
        Ok(fits)
    }

    /// Whether `value` fits one keyword of a schema.
    fn keyword(
        &mut self,
        keyword: Keyword<'s>,
        value: &Value,
        faults: Faults<'_>,
    ) -> Result<bool, Exhausted> {
        self.spend(1)?;
        let Keyword { key, argument, .. } = keyword;
        if self.validator.draft < DRAFT_2020 && since(key) > self.validator.draft {
            return Ok(true);
        }
        match value {
            _ if argument.is_number() => self.leaf(keyword, value, faults),
            _ if IN_PLACE.contains(&key) => self.in_place(keyword, value, faults),
            Value::Object(members) => self.of_object(keyword, value, members, faults),
            Value::Array(items) => self.of_list(keyword, value, items, faults),
            _ => self.leaf(keyword, value, faults),
        }
    }

    /// Whether `value` fits a keyword that applies schemas to the value itself.
    fn in_place(
        &mut self,
        keyword: Keyword<'s>,
        value: &Value,
        mut faults: Faults<'_>,
    ) -> Result<bool, Exhausted> {
        let Keyword {
            key,
            argument,
            schema,
        } = keyword;
        match (key, argument, value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference), _) => {
                let target = self.follow(reference)?;
                self.target(target, value, faults)
            }
            ("not", schema, _) => {
                let fits = !self.schema(schema, value, None)?;
                let message = || format!("value fits what is not allowed: {}", quote(schema));
                self.report(fits, faults, || fault::given(&message(), value))
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
                        Value::Array(_) => self.keyword(
                            Keyword {
                                key: "required",
                                argument: needs,
                                schema,
                            },
                            value,
                            faults,
                        )?,
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
        keyword: Keyword<'s>,
        value: &Value,
        members: &Map<String, Value>,
        mut faults: Faults<'_>,
    ) -> Result<bool, Exhausted> {
        let Keyword {
            key,
            argument,
            schema,
        } = keyword;
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
                    return self.report(false, faults, message);
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
            _ => self.leaf(keyword, value, faults),
        }
    }

    /// Whether a list fits a keyword.
    fn of_list(
        &mut self,
        keyword: Keyword<'s>,
        value: &Value,
        items: &[Value],
        faults: Faults<'_>,
    ) -> Result<bool, Exhausted> {
        let Keyword {
            key,
            argument,
            schema,
        } = keyword;
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
                        if since("prefixItems") <= self.validator.draft =>
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
                    let limit = schema
                        .get(key)
                        .filter(|_| self.validator.draft >= DRAFT_2019);
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
                self.report(fits, faults, || fault::given(&message(), value))
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
                self.report(fits, faults, || {
                    fault::given("value has an item twice", value)
                })
            }
            _ => self.leaf(keyword, value, faults),
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
        let compiled = self.validator.patterns.get(pattern).ok_or(Exhausted)?;
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
        self.report(false, faults, || match found {
            0 => fault::none_of(forms.into_iter()),
            _ => fault::given(
                "value is valid under more than one of the schemas listed in the 'oneOf' keyword",
                value,
            ),
        })
    }

    /// Adds a fault to the list unless the value fits.
    fn report(
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
        self.spend(FAULT_STEPS)?;
        faults.push(Fault {
            path: self.path.clone(),
            message,
            about,
        });
        Ok(false)
    }
}
