//! The tools of a request, in whichever spelling they came.

use super::{RequestError, RequestOptions};
use serde_json::{Map, Value, json};

/// One tool as a request describes it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tool<'a> {
    /// One that the client runs.
    Function {
        name: &'a str,
        description: Option<&'a str>,
        parameters: Option<&'a Map<String, Value>>,
        strict: Option<bool>,
    },
    /// Something else, in the provider's own words (a web search, a custom tool): it goes out as it came.
    Other(&'a Value),
}

/// What the model is to do with the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolChoice<'a> {
    Auto,
    None,
    Required,
    /// This one must be called.
    Name(&'a str),
}

impl RequestOptions {
    /// The tools, or an empty list.
    pub(crate) fn tool_list(&self) -> Result<Vec<Tool<'_>>, RequestError> {
        self.tools.as_ref().map_or(Ok(Vec::new()), list)
    }

    /// The choice that was asked for.
    pub(crate) fn choice(&self) -> Option<ToolChoice<'_>> {
        Some(match self.tool_choice.as_deref()? {
            "auto" => ToolChoice::Auto,
            "none" => ToolChoice::None,
            "required" => ToolChoice::Required,
            name => ToolChoice::Name(name),
        })
    }
}

impl Tool<'_> {
    /// The name of a function.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Tool::Function { name, .. } => Some(name),
            Tool::Other(_) => None,
        }
    }

    /// The schema of a function's arguments; one that takes none has an empty object.
    pub(crate) fn schema(&self) -> Value {
        match self {
            Tool::Function { parameters: Some(schema), .. } if !schema.is_empty() => Value::Object((*schema).clone()),
            _ => json!({"type": "object", "properties": {}}),
        }
    }

    /// In OpenAI's shape.
    pub(crate) fn openai(&self) -> Value {
        match self {
            Tool::Function { name, description, strict, .. } => {
                let mut function = Map::new();
                function.insert("name".into(), (*name).into());
                if let Some(description) = description {
                    function.insert("description".into(), (*description).into());
                }
                function.insert("parameters".into(), self.schema());
                if let Some(strict) = strict {
                    function.insert("strict".into(), (*strict).into());
                }
                json!({"type": "function", "function": function})
            }
            Tool::Other(tool) => (*tool).clone(),
        }
    }
}

/// The tools of a tools file (an array, or an object with `tools`) as a JSON array in OpenAI's shape on one line, without what
/// only the one who runs them needs. What `stream_start` carries.
///
/// # Errors
/// When it is no list of tools.
pub fn openai_tools(tools: &Value) -> Result<String, RequestError> {
    Ok(Value::Array(list(tools)?.iter().map(Tool::openai).collect()).to_string())
}

fn list(tools: &Value) -> Result<Vec<Tool<'_>>, RequestError> {
    let tools = tools.get("tools").unwrap_or(tools);
    let wrong = |what: &str| RequestError::Tools(what.to_owned());
    tools
        .as_array()
        .ok_or_else(|| wrong("they are no JSON array"))?
        .iter()
        .enumerate()
        .map(|(at, tool)| one(at + 1, tool))
        .collect()
}

/// OpenAI's form, its flat form (Responses), Anthropic's (`input_schema`) or MCP's (`inputSchema`).
fn one(number: usize, tool: &Value) -> Result<Tool<'_>, RequestError> {
    let wrong = |what: &str| RequestError::Tools(format!("tool {number} {what}"));
    let item = tool.as_object().ok_or_else(|| wrong("is no object"))?;
    let function = item.get("function").and_then(Value::as_object);
    let schemas = ["parameters", "input_schema", "inputSchema"];
    let kind = item.get("type").and_then(Value::as_str).unwrap_or("function");
    // Anthropic calls a client's tool "custom"; OpenAI's custom tool has a member of that name.
    let plain = kind == "function" || schemas.iter().any(|key| item.contains_key(*key));
    // Gemini's own tools are one member, named like the tool: `{"googleSearch":{}}`.
    let single = item.len() == 1 && item.values().all(Value::is_object);
    if function.is_none() && (!plain || single) {
        return Ok(Tool::Other(tool));
    }
    let function = function.unwrap_or(item);
    let name = function.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
    Ok(Tool::Function {
        name: name.ok_or_else(|| wrong("has no \"name\""))?,
        description: function.get("description").and_then(Value::as_str),
        parameters: schemas.iter().find_map(|key| function.get(*key)?.as_object()),
        strict: function.get("strict").and_then(Value::as_bool),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_becomes_openais_and_the_command_stays_at_home() {
        let tools = json!([
            {"type": "function", "function": {"name": "a", "description": "A", "parameters": {"type": "object"}, "strict": true}, "exec": {"command": ["a"]}},
            {"name": "b", "input_schema": {"type": "object", "properties": {"x": {}}}, "exec": {}},
            {"type": "custom", "name": "c", "inputSchema": {}},
            {"type": "web_search_preview"},
        ]);
        let want = concat!(
            r#"[{"type":"function","function":{"name":"a","description":"A","parameters":{"type":"object"},"strict":true}},"#,
            r#"{"type":"function","function":{"name":"b","parameters":{"type":"object","properties":{"x":{}}}}},"#,
            r#"{"type":"function","function":{"name":"c","parameters":{"type":"object","properties":{}}}},"#,
            r#"{"type":"web_search_preview"}]"#,
        );
        assert_eq!(openai_tools(&tools).unwrap(), want);
        assert_eq!(openai_tools(&json!({"tools": tools, "mcpServers": {}})).unwrap(), want);
        assert_eq!(
            openai_tools(&json!([{"type": "function"}])).unwrap_err().to_string(),
            "the tools are wrong: tool 1 has no \"name\""
        );
        assert!(openai_tools(&json!("x")).is_err());
    }
}
