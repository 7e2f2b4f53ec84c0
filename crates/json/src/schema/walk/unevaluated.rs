//! Which parts of a value other keywords evaluate, for `unevaluatedItems` and
//! `unevaluatedProperties`.

use super::{Exhausted, MAX_OPEN, Part, Walk};
use crate::schema::validator::{DRAFT_2020, since};
use serde_json::{Map, Value};

impl<'s> Walk<'s> {
    /// Whether a schema that `value` fits evaluates this part of `value`. `is_own` is set if an
    /// `unevaluated…` keyword of `schema` itself asks; such a keyword then does not count.
    pub(super) fn evaluates(
        &mut self,
        schema: &'s Map<String, Value>,
        value: &Value,
        part: (Part<'_>, &Value),
        is_own: bool,
    ) -> Result<bool, Exhausted> {
        for (key, argument) in schema {
            self.spend(1)?;
            if since(key) > self.validator.draft {
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
                    self.validator.draft >= DRAFT_2020 && self.schema(needed, part.1, None)?
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
}
