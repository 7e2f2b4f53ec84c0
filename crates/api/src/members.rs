//! JSON that is read and written as a tree, and JSON as text.

use event::{Object, Raw};
use serde_json::{Map, Value};

/// A tree whose members are read.
pub(crate) trait GetText {
    /// The text of a member.
    fn text_of(&self, name: &str) -> Option<&str>;
}

impl GetText for Map<String, Value> {
    fn text_of(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }
}

impl GetText for Value {
    fn text_of(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
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

/// A value as JSON without white space.
pub(crate) fn minified(value: Raw<'_>) -> String {
    let mut json = Vec::with_capacity(value.text().len());
    event::minify(&mut json, value.text());
    text(json)
}

/// An object with the members that `fill` writes, as JSON.
pub(crate) fn object(fill: impl FnOnce(&mut Object<'_>)) -> String {
    let mut json = Vec::new();
    let mut o = Object::open(&mut json);
    fill(&mut o);
    o.close();
    text(json)
}

/// JSON that was written here, which is UTF-8.
pub(crate) fn text(json: Vec<u8>) -> String {
    String::from_utf8(json).unwrap_or_default()
}
