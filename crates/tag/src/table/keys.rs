//! The members of calls that are written as JSON.

use crate::dialect::{Keys, Shape};

/// `{"name": …, "arguments": …}`, an object a call.
pub(super) static OBJECT: Keys =
    Keys { name: &["name"], arguments: ARGUMENTS, id: &["id"], write_id: false, shape: Shape::Object };

/// The same in one array for all calls.
pub(super) static ARRAY: Keys =
    Keys { name: &["name"], arguments: ARGUMENTS, id: &["id"], write_id: false, shape: Shape::Array };

/// The array as Python writes it.
pub(super) static PYTHON: Keys =
    Keys { name: &["name"], arguments: ARGUMENTS, id: &["id"], write_id: false, shape: Shape::Python };

/// `[{NAME: ARGUMENTS}]`.
pub(super) static SINGLE: Keys =
    Keys { name: &["name"], arguments: ARGUMENTS, id: &["id"], write_id: false, shape: Shape::Single };

/// `{"name": …, "parameters": …}`.
pub(super) static PARAMETERS: Keys = Keys {
    name: &["name"],
    arguments: &["parameters", "arguments"],
    id: &["id"],
    write_id: false,
    shape: Shape::Object,
};

/// `{"name": …, "args": …}`.
pub(super) static ARGS: Keys = Keys {
    name: &["name"],
    arguments: &["args", "arguments", "parameters"],
    id: &["id"],
    write_id: false,
    shape: Shape::Object,
};

/// Cohere's array, with ids.
pub(super) static COHERE: Keys = Keys {
    name: &["tool_name", "name"],
    arguments: &["parameters", "arguments"],
    id: &["tool_call_id", "id"],
    write_id: true,
    shape: Shape::Array,
};

/// Cohere's array before it had ids.
pub(super) static COHERE_R: Keys = Keys {
    name: &["tool_name", "name"],
    arguments: &["parameters", "arguments"],
    id: &["tool_call_id", "id"],
    write_id: false,
    shape: Shape::Array,
};

const ARGUMENTS: &[&str] = &["arguments", "parameters"];
