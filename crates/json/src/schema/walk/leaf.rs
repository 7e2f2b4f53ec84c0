//! Keywords that contain no schemas: types, constants, limits and patterns.

use super::{Exhausted, Faults, Keyword, Walk};
use crate::decimal::Decimal;
use crate::schema::fault;
use serde_json::{Number, Value};

impl<'s> Walk<'s> {
    /// Whether `value` fits a keyword that has no schemas.
    pub(super) fn leaf(
        &mut self,
        keyword: Keyword<'s>,
        value: &Value,
        faults: Faults<'_>,
    ) -> Result<bool, Exhausted> {
        let Keyword {
            key,
            argument,
            schema,
        } = keyword;
        match (key, argument) {
            ("type", names) => {
                let one = std::slice::from_ref(names);
                let names = names.as_array().map_or(one, Vec::as_slice);
                let mut names = names.iter().filter_map(Value::as_str);
                let fits = names.clone().any(|name| has_type(value, name));
                self.report(fits, faults, || fault::not_of_type(&mut names, value))
            }
            ("enum", Value::Array(options)) => {
                let mut fits = false;
                for option in options {
                    fits = fits || self.equal(option, value)?;
                }
                self.report(fits, faults, || fault::not_one_of(argument, value))
            }
            ("const", constant) => {
                let fits = self.equal(constant, value)?;
                self.report(fits, faults, || fault::not_constant(constant, value))
            }
            ("pattern", Value::String(pattern)) => {
                let Value::String(text) = value else {
                    return Ok(true);
                };
                let fits = self.matches(pattern, text)?;
                let message = || format!("value does not match \"{pattern}\"");
                self.report(fits, faults, || fault::given(&message(), value))
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
                self.report(fits, faults, || fault::given(&message(), value))
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
    pub(super) fn equal(&mut self, a: &Value, b: &Value) -> Result<bool, Exhausted> {
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
