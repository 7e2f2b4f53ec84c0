//! Helpers for JSON trees and JSON text.

use event::Raw;
use serde_json::{Map, Value};

/// Read access to the members of a JSON object.
pub(crate) trait GetText {
    /// Returns a member.
    fn member(&self, name: &str) -> Option<&Value>;

    /// Returns a member that is a string.
    fn text_of(&self, name: &str) -> Option<&str> {
        self.member(name)?.as_str()
    }

    /// Returns the items of a member that is an array; empty if there is no such array.
    fn list_of(&self, name: &str) -> &[Value] {
        let list = self.member(name).and_then(Value::as_array);
        list.map(Vec::as_slice).unwrap_or_default()
    }
}

impl GetText for Map<String, Value> {
    fn member(&self, name: &str) -> Option<&Value> {
        self.get(name)
    }
}

impl GetText for Value {
    fn member(&self, name: &str) -> Option<&Value> {
        self.get(name)
    }
}

/// Insertion of members into an object.
pub(crate) trait Put {
    /// Inserts a member, replacing one with the same name.
    fn put(&mut self, name: &str, value: impl Into<Value>);
}

impl Put for Map<String, Value> {
    fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.insert(name.to_owned(), value.into());
    }
}

/// Removal of members from an object.
pub(crate) trait Take {
    /// Removes and returns a member. Returns `None` if it is missing or `null`.
    fn take_member(&mut self, name: &str) -> Option<Value>;

    /// Removes a member and returns its string. Returns `None` if it is not a string or is empty.
    fn take_text(&mut self, name: &str) -> Option<String> {
        match self.take_member(name)? {
            Value::String(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }
}

impl Take for Map<String, Value> {
    fn take_member(&mut self, name: &str) -> Option<Value> {
        self.shift_remove(name).filter(|value| !value.is_null())
    }
}

/// Returns the value as JSON without white space.
pub(crate) fn minified(value: Raw<'_>) -> String {
    let mut json = Vec::with_capacity(value.text().len());
    event::minify(&mut json, value.text());
    text(json)
}

/// Converts JSON written by this crate, which is always UTF-8, to a string.
pub(crate) fn text(json: Vec<u8>) -> String {
    String::from_utf8(json).unwrap_or_default()
}
