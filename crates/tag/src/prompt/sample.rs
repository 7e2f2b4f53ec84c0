//! A plausible value for a schema, to show how a call is written.

use serde_json::{Map, Value, json};

/// Schemas within schemas are followed this far.
const DEEPEST: usize = 6;

/// Arguments that a tool might get, as JSON text: those that it requires, or else the first one.
pub(super) fn arguments(schema: &Value) -> String {
    spaced(&members(schema, DEEPEST))
}

/// JSON with a space after each comma and colon, as models' own templates write it.
fn spaced(value: &Value) -> String {
    match value {
        Value::Array(items) => format!(
            "[{}]",
            items.iter().map(spaced).collect::<Vec<_>>().join(", ")
        ),
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(key, value)| format!("{}: {}", Value::from(&key[..]), spaced(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        plain => plain.to_string(),
    }
}

fn members(schema: &Value, depth: usize) -> Value {
    let Some(properties) = schema["properties"].as_object() else {
        return json!({});
    };
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut object = Map::new();
    for (name, property) in properties
        .iter()
        .filter(|(name, _)| required.contains(&&name[..]))
    {
        object.insert(name.clone(), value(property, depth));
    }
    if object.is_empty()
        && let Some((name, property)) = properties.iter().next()
    {
        object.insert(name.clone(), value(property, depth));
    }
    Value::Object(object)
}

fn value(schema: &Value, depth: usize) -> Value {
    if depth == 0 {
        return Value::Null;
    }
    let first = |key: &str| {
        schema[key]
            .as_array()
            .and_then(|list| list.first())
            .cloned()
    };
    let given = schema
        .get("const")
        .or_else(|| schema.get("default"))
        .cloned();
    if let Some(value) = given
        .or_else(|| first("enum"))
        .or_else(|| first("examples"))
    {
        return value;
    }
    if let Some(schema) = ["anyOf", "oneOf", "allOf"]
        .iter()
        .find_map(|key| first(key))
    {
        return value(&schema, depth - 1);
    }
    let kind = schema["type"]
        .as_str()
        .or_else(|| schema["type"].as_array()?.first()?.as_str());
    match kind {
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        Some("boolean") => json!(true),
        Some("null") => Value::Null,
        Some("array") => json!([value(&schema["items"], depth - 1)]),
        Some("object") => members(schema, depth - 1),
        _ => json!("some text"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_arguments_are_shown_and_others_are_not() {
        let schema = json!({"type": "object", "required": ["n", "unit", "list"], "properties": {
            "city": {"type": "string"}, "n": {"type": "integer", "minimum": 3}, "unit": {"enum": ["c", "f"]},
            "list": {"type": "array", "items": {"anyOf": [{"type": "boolean"}, {"type": "null"}]}}
        }});
        assert_eq!(
            arguments(&schema),
            r#"{"n": 3, "unit": "c", "list": [true]}"#
        );
    }

    #[test]
    fn without_required_ones_the_first_is_shown() {
        assert_eq!(
            arguments(&json!({"properties": {"a": {"type": "string"}, "b": {}}})),
            r#"{"a": "some text"}"#
        );
        assert_eq!(arguments(&json!({})), "{}");
    }
}
