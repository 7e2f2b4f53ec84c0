//! The members of an object in a tools file. Each member is taken once, and a `null` member counts
//! as missing. A mistake is reported with the path of the member and how to fix it.

use event::unit;
use serde_json::{Map, Value};
use std::time::Duration;

/// The type of a member: its description for messages, its parser, and whether a message may quote
/// the value. The value of a header, a query parameter or a variable may be a secret.
pub(crate) struct MemberKind<T>(pub &'static str, pub fn(&Value) -> Option<T>, pub bool);

/// A duration: a number of seconds or a text with a unit.
pub(crate) const TIME: MemberKind<Duration> = MemberKind(
    "a time above 0, such as \"30s\" or 30",
    |value| unit::time(&text(value)).ok().filter(|time| !time.is_zero()),
    true,
);

/// A number of bytes, or a text with a unit.
pub(crate) const BYTES: MemberKind<u64> = MemberKind(
    "a number of bytes above 0, such as 65536 or \"64K\"",
    |value| unit::size(&text(value)).ok().filter(|n| *n > 0),
    true,
);

/// A number above 0.
pub(crate) const COUNT: MemberKind<u64> = MemberKind(
    "a number above 0",
    |value| value.as_u64().filter(|n| *n > 0),
    true,
);

/// A boolean.
pub(crate) const FLAG: MemberKind<bool> = MemberKind("true or false", Value::as_bool, true);

/// A string that is not empty.
pub(crate) const TEXT: MemberKind<String> = MemberKind(
    "a text that is not empty",
    |value| value.as_str().filter(|s| !s.is_empty()).map(str::to_owned),
    false,
);

/// The members of an object that were not taken yet.
pub(crate) struct Members {
    /// The path of the object, or an empty text if the caller puts the path before each message.
    path: String,
    left: Map<String, Value>,
}

impl Members {
    /// Reads the members of `value`, which is at `path` in the file. `example` is a valid object
    /// for messages.
    ///
    /// # Errors
    /// Returns an error if `value` is not an object or has a member that is not in `known`.
    pub(crate) fn of(
        value: Value,
        path: &str,
        known: &[&str],
        example: &str,
    ) -> Result<Self, String> {
        let name = if path.is_empty() { "it" } else { path };
        let Value::Object(mut left) = value else {
            return Err(format!("{name} must be an object, such as {example}"));
        };
        let path = path.to_owned();
        if let Some(key) = left.keys().find(|key| !known.contains(&key.as_str())) {
            let key = Members {
                path,
                left: Map::new(),
            }
            .name(key);
            return Err(format!(
                "{key} is unknown, {name} may have {}",
                known.join(", ")
            ));
        }
        left.retain(|_, value| !value.is_null());
        Ok(Members { path, left })
    }

    /// Returns the path of a member.
    pub(crate) fn name(&self, key: &str) -> String {
        match &*self.path {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        }
    }

    /// Whether the member is present and was not taken yet.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.left.contains_key(key)
    }

    /// Takes a member without parsing it. Returns `None` if it is missing.
    pub(crate) fn value(&mut self, key: &str) -> Option<Value> {
        self.left.remove(key)
    }

    /// Takes and parses a member. Returns `None` if it is missing.
    ///
    /// # Errors
    /// Returns the expected form if the value has another one.
    pub(crate) fn take<T>(&mut self, key: &str, kind: &MemberKind<T>) -> Result<Option<T>, String> {
        let MemberKind(wanted, read, is_shown) = kind;
        let Some(value) = self.value(key) else {
            return Ok(None);
        };
        read(&value).map(Some).ok_or_else(|| {
            let name = self.name(key);
            if *is_shown {
                format!("{name} must be {wanted}, not {value}")
            } else {
                format!("{name} must be {wanted}")
            }
        })
    }
}

/// Returns the items of a list of strings, or `None` if `value` is anything else.
pub(crate) fn strings(value: &Value) -> Option<Vec<String>> {
    let text = |item: &Value| item.as_str().map(str::to_owned);
    value.as_array()?.iter().map(text).collect()
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
