//! JSON that is read and written as a tree, and JSON as text.

use event::Raw;
use serde_json::{Map, Value};

/// A tree whose members are read.
pub(crate) trait GetText {
    /// A member.
    fn member(&self, name: &str) -> Option<&Value>;

    /// The text of a member.
    fn text_of(&self, name: &str) -> Option<&str> {
        self.member(name)?.as_str()
    }

    /// The items of a member; none if there is no such array.
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

/// Objects that take members.
pub(crate) trait Put {
    /// Puts a member into the object, in the place of one of the same name.
    fn put(&mut self, name: &str, value: impl Into<Value>);
}

impl Put for Map<String, Value> {
    fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.insert(name.to_owned(), value.into());
    }
}

/// Objects whose members are taken out.
pub(crate) trait Take {
    /// Takes out a member, unless it is missing or `null`.
    fn take_member(&mut self, name: &str) -> Option<Value>;

    /// Takes out the text of a member; `None` for an empty one.
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

/// A value as JSON without white space.
pub(crate) fn minified(value: Raw<'_>) -> String {
    let mut json = Vec::with_capacity(value.text().len());
    event::minify(&mut json, value.text());
    text(json)
}

/// JSON that was written here, which is UTF-8.
pub(crate) fn text(json: Vec<u8>) -> String {
    String::from_utf8(json).unwrap_or_default()
}
