//! Writes a tool as a TypeScript type, as the prompts of gpt-oss and Functionary show tools.

use serde_json::Value;

/// The maximum depth to which nested schemas are followed.
const DEEPEST: usize = 16;

/// Returns the declaration of one tool, with its descriptions as comments.
pub(super) fn tool(function: &Value) -> String {
    let name = function["name"].as_str().unwrap_or_default();
    let comment = comment(function);
    match function["parameters"]["properties"].as_object() {
        Some(properties) if !properties.is_empty() => {
            format!(
                "{comment}type {name} = (_: {}) => any;",
                object(&function["parameters"], DEEPEST)
            )
        }
        _ => format!("{comment}type {name} = () => any;"),
    }
}

/// Returns the description as comments, one per line.
fn comment(schema: &Value) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    text.lines().map(|line| format!("// {line}\n")).collect()
}

fn object(schema: &Value, depth: usize) -> String {
    let required = |name: &str| {
        schema["required"]
            .as_array()
            .is_some_and(|r| r.iter().any(|n| n == name))
    };
    let members = schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, property)| {
            let mark = if required(name) { "" } else { "?" };
            format!(
                "{}{}{mark}: {},\n",
                comment(property),
                key(name),
                kind(property, depth - 1)
            )
        });
    format!("{{\n{}}}", members.collect::<String>())
}

/// Returns a member's name, in quotes if it is not an identifier.
fn key(name: &str) -> String {
    let plain = name.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_numeric());
    if plain && !name.is_empty() {
        name.to_owned()
    } else {
        Value::from(name).to_string()
    }
}

fn kind(schema: &Value, depth: usize) -> String {
    if depth == 0 {
        return "any".to_owned();
    }
    let union = |parts: Vec<String>| parts.join(" | ");
    if let Some(values) = schema["enum"].as_array() {
        return union(values.iter().map(Value::to_string).collect());
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    if let Some(choices) = schema["anyOf"]
        .as_array()
        .or_else(|| schema["oneOf"].as_array())
    {
        return union(choices.iter().map(|s| kind(s, depth - 1)).collect());
    }
    match &schema["type"] {
        Value::Array(names) => union(
            names
                .iter()
                .map(|name| named(name.as_str(), schema, depth))
                .collect(),
        ),
        name => named(name.as_str(), schema, depth),
    }
}

fn named(name: Option<&str>, schema: &Value, depth: usize) -> String {
    match name {
        Some("string") => "string".to_owned(),
        Some("integer" | "number") => "number".to_owned(),
        Some("boolean") => "boolean".to_owned(),
        Some("null") => "null".to_owned(),
        Some("array") => match kind(&schema["items"], depth - 1) {
            items if items.contains(" | ") => format!("({items})[]"),
            items => format!("{items}[]"),
        },
        Some("object") if schema["properties"].is_object() => object(schema, depth),
        Some("object") => "object".to_owned(),
        _ => "any".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tool_is_declared_with_its_comments() {
        let weather = json!({"name": "get_weather", "description": "The weather.\nNow.", "parameters": {
            "type": "object", "required": ["city"], "properties": {
                "city": {"type": "string", "description": "Where"},
                "unit": {"enum": ["c", "f"]},
                "days": {"type": "array", "items": {"type": ["integer", "null"]}},
                "at-time": {"anyOf": [{"type": "object", "properties": {"h": {"type": "number"}}}, {"const": "now"}]}
            }
        }});
        let want = "// The weather.\n// Now.\ntype get_weather = (_: {\n// Where\ncity: string,\nunit?: \"c\" | \"f\",\n\
        days?: (number | null)[],\n\"at-time\"?: {\nh?: number,\n} | \"now\",\n}) => any;";
        assert_eq!(tool(&weather), want);
        assert_eq!(
            tool(&json!({"name": "ping", "parameters": {"type": "object", "properties": {}}})),
            "type ping = () => any;"
        );
    }
}
