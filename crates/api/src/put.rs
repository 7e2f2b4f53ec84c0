//! Members of JSON objects.

use serde_json::{Map, Value};

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
