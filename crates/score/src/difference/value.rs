//! A JSON value of which only the meaning counts: the order of keys and the spelling of numbers and
//! strings are gone.

use event::{Index, Raw, quoted};
use std::collections::BTreeMap;

/// A JSON value. Two values are equal if they mean the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, equal by its value: `1`, `1.0` and `10e-1` are one number, and no digit is lost.
    Number(Number),
    /// A string.
    String(String),
    /// A list.
    Array(Vec<Value>),
    /// An object. Of a repeated key the last counts, as everywhere in the protocol.
    Object(BTreeMap<String, Value>),
}

impl Value {
    /// The value that `json` holds; `None` if it is not JSON, or is nested deeper than the protocol
    /// allows.
    pub fn parse(json: &str) -> Option<Self> {
        Raw::indexed(json, &mut Index::default())
            .ok()
            .map(Value::of)
    }

    fn of(raw: Raw<'_>) -> Self {
        if let Some(text) = raw.str() {
            Value::String(text.into_owned())
        } else if raw.is_object() {
            Value::Object(
                raw.entries()
                    .map(|(key, value)| (key.into_owned(), Value::of(value)))
                    .collect(),
            )
        } else if raw.is_array() {
            Value::Array(raw.items().map(Value::of).collect())
        } else if let Some(claim) = raw.bool() {
            Value::Bool(claim)
        } else if raw.is_null() {
            Value::Null
        } else {
            Value::Number(Number::of(raw.text()))
        }
    }

    /// The value as JSON with sorted keys.
    pub fn json(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        match self {
            Value::Null => out.push_str("null"),
            Value::Bool(claim) => out.push_str(if *claim { "true" } else { "false" }),
            Value::Number(number) => out.push_str(&number.text),
            Value::String(text) => out.push_str(&quoted(text)),
            Value::Array(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    item.write(out);
                }
                out.push(']');
            }
            Value::Object(members) => {
                out.push('{');
                for (at, (key, value)) in members.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    out.push_str(&quoted(key));
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

/// A number as it was written, and its value.
#[derive(Clone, Debug)]
pub struct Number {
    /// As it was written.
    pub text: String,
    value: Decimal,
}

/// A decimal number: its sign, its digits without zeros at either end, and the power of ten of the
/// last digit.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Decimal {
    is_negative: bool,
    digits: String,
    power: i128,
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Eq for Number {}

impl Number {
    fn of(text: &str) -> Self {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let is_negative = whole.starts_with('-');
        let all = format!("{}{fraction}", whole.trim_start_matches('-'));
        let digits = all.trim_start_matches('0').trim_end_matches('0');
        let zeros = all.len() - all.trim_end_matches('0').len();
        let value = if digits.is_empty() {
            Decimal {
                is_negative: false,
                digits: String::new(),
                power: 0,
            }
        } else {
            match exponent.parse::<i64>() {
                Ok(exponent) => Decimal {
                    is_negative,
                    digits: digits.to_owned(),
                    power: i128::from(exponent) + zeros as i128 - fraction.len() as i128,
                },
                // An exponent beyond all uses: such numbers are equal only as they are written.
                Err(_) => Decimal {
                    is_negative,
                    digits: text.to_owned(),
                    power: 0,
                },
            }
        };
        Number {
            text: text.to_owned(),
            value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_equal_by_their_meaning() {
        for (a, b, are_equal) in [
            (
                r#"{"a":1,"b":[true,null]}"#,
                " { \"b\" : [ true , null ] , \"a\" : 1.0 } ",
                true,
            ),
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#, true),
            (r#""\u00e9\/""#, "\"é/\"", true),
            ("100", "1e2", true),
            ("-0", "0.000e9", true),
            ("0.10", "1e-1", true),
            ("12345678901234567890", "12345678901234567891", false),
            ("1", "-1", false),
            ("1", "10", false),
            ("1", "\"1\"", false),
            ("1e99999999999999999999", "1e99999999999999999998", false),
            ("[1,2]", "[2,1]", false),
            ("{}", "[]", false),
            ("null", "false", false),
        ] {
            assert_eq!(
                Value::parse(a).unwrap() == Value::parse(b).unwrap(),
                are_equal,
                "{a} {b}"
            );
        }
        assert_eq!(Value::parse("{\"a\":"), None);
        assert_eq!(
            Value::parse("{\"b\":1.50,\"a\":\"\\u0007\"}")
                .unwrap()
                .json(),
            "{\"a\":\"\\u0007\",\"b\":1.50}"
        );
    }
}
