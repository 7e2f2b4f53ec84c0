//! Members of a JSON object, each taken out once and read with a message that names the remedy.

use event::unit;
use serde_json::{Map, Value};
use std::time::Duration;

/// Takes the member `key`, if there is one, and reads it with `read`. `wanted` describes what it
/// should be, for the error.
///
/// # Errors
/// What the member is and should be, if `read` returns `None`.
pub(crate) fn take<T>(
    exec: &mut Map<String, Value>,
    key: &str,
    wanted: &str,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Result<Option<T>, String> {
    match exec.remove(key) {
        None => Ok(None),
        Some(value) => read(&value)
            .map(Some)
            .ok_or_else(|| format!("exec: {key} must be {wanted}, not {value}")),
    }
}

/// The items of a list of strings; `None` if one is not a string.
pub(crate) fn strings(items: Vec<Value>) -> Option<Vec<String>> {
    items
        .into_iter()
        .map(|item| {
            if let Value::String(text) = item {
                Some(text)
            } else {
                None
            }
        })
        .collect()
}

/// A time above 0, as a number of seconds or as a text with a unit.
pub(crate) fn time(value: &Value) -> Option<Duration> {
    unit::time(&text(value)).ok().filter(|time| !time.is_zero())
}

/// A number of bytes above 0, or a text with a unit.
pub(crate) fn bytes(value: &Value) -> Option<u64> {
    unit::size(&text(value)).ok().filter(|n| *n > 0)
}

/// A number above 0.
pub(crate) fn count(value: &Value) -> Option<u64> {
    value.as_u64().filter(|n| *n > 0)
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
