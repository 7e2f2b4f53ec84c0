//! The tools a request named, and their schemas.

use crate::{Misfit, Schema, SchemaError, Typed};
use event::Raw;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::OnceLock;

/// Tools by name. A schema is compiled when it is first needed.
#[derive(Debug, Default)]
pub struct Tools {
    tools: HashMap<String, Tool>,
    names: Vec<String>,
}

#[derive(Debug)]
struct Tool {
    parameters: Option<String>,
    schema: OnceLock<Result<Schema, SchemaError>>,
    tree: OnceLock<Option<Value>>,
}

/// Why a list of tools cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolsError {
    /// It is no JSON.
    #[error("the tools are not JSON: {0}")]
    Syntax(#[from] event::ScanError),
    /// It is no array of tools, nor an object that holds one under `tools`.
    #[error("the tools must be an array, or an object with an array \"tools\"")]
    NoArray,
    /// Two tools have one name, so that it cannot be known which schema is meant.
    #[error("two tools are named {0:?}")]
    Twice(String),
}

/// Why a call's arguments must not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// They do not fit the schema.
    #[error("{0}")]
    Arguments(#[from] Misfit),
    /// The schema itself cannot be used, so that nothing can be said of the arguments.
    #[error("{0}")]
    Schema(#[from] SchemaError),
}

impl Tools {
    /// Reads a tools array, in the spellings of OpenAI Chat (`{"type":"function","function":{…}}`), OpenAI Responses
    /// (`{"type":"function","name":…}`), Anthropic (`input_schema`), MCP (`inputSchema`, also as the result of `tools/list`)
    /// and Gemini (`functionDeclarations`). Entries without a name, such as a provider's own tools, are left out.
    ///
    /// # Errors
    /// See [`ToolsError`]. A schema that cannot be used is no error here, but when it is needed.
    pub fn parse(json: &str) -> Result<Tools, ToolsError> {
        let root = Raw::parse(json)?;
        let list =
            if root.is_array() { Some(root) } else { root.get("tools").or_else(|| root.at(&["result", "tools"])) };
        let list = list.filter(|l| l.is_array()).ok_or(ToolsError::NoArray)?;
        let mut tools = Tools::default();
        for item in list.items() {
            let declarations = item.get("functionDeclarations").or_else(|| item.get("function_declarations"));
            match declarations {
                Some(declarations) => declarations.items().try_for_each(|d| tools.add(d))?,
                None => tools.add(item.get("function").filter(|f| f.is_object()).unwrap_or(item))?,
            }
        }
        Ok(tools)
    }

    fn add(&mut self, item: Raw<'_>) -> Result<(), ToolsError> {
        let Some(name) = item.get_str("name").filter(|n| !n.is_empty()) else { return Ok(()) };
        let keys = ["parameters", "input_schema", "inputSchema", "parametersJsonSchema", "parameters_json_schema"];
        let parameters = keys.iter().find_map(|key| item.get(key)).map(|p| p.text().to_owned());
        let name = name.into_owned();
        if self
            .tools
            .insert(name.clone(), Tool { parameters, schema: OnceLock::new(), tree: OnceLock::new() })
            .is_some()
        {
            return Err(ToolsError::Twice(name));
        }
        self.names.push(name);
        Ok(())
    }

    /// Whether a tool has this name, byte for byte.
    pub fn knows(&self, name: &str) -> bool {
        self.tools.contains_key(name)
    }

    /// The tools' names, in the order of the list.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// The compiled schema of a tool; `None` for a tool that is not known or has no schema.
    pub fn schema(&self, name: &str) -> Option<Result<&Schema, &SchemaError>> {
        let tool = self.tools.get(name)?;
        let parameters = tool.parameters.as_deref()?;
        Some(tool.schema.get_or_init(|| Schema::new(parameters)).as_ref())
    }

    /// What the schema of a tool says of the types of its arguments; nothing for a tool that is not known or has no schema.
    pub fn parameters(&self, tool: &str) -> Typed<'_> {
        let tree = self.tools.get(tool).and_then(|tool| {
            let read = || tool.parameters.as_deref().and_then(|text| serde_json::from_str(text).ok());
            tool.tree.get_or_init(read).as_ref()
        });
        tree.map(Typed::new).unwrap_or_default()
    }

    /// Checks a call's arguments against its tool's schema. A tool that is not known or has no schema asks for nothing.
    ///
    /// # Errors
    /// What does not fit, or why the schema cannot be used.
    pub fn check(&self, name: &str, arguments: &str) -> Result<(), Unfit> {
        match self.schema(name) {
            Some(Ok(schema)) => Ok(schema.check(arguments)?),
            Some(Err(e)) => Err(e.clone().into()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling() {
        let schema = r#"{"type":"object","required":["a"]}"#;
        for list in [
            format!(
                r#"[{{"type":"function","function":{{"name":"f","parameters":{schema}}}}},{{"type":"web_search"}}]"#
            ),
            format!(r#"[{{"type":"function","name":"f","parameters":{schema}}}]"#),
            format!(r#"[{{"name":"f","input_schema":{schema}}}]"#),
            format!(r#"{{"tools":[{{"name":"f","inputSchema":{schema}}}]}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{{"name":"f","inputSchema":{schema}}}]}}}}"#),
            r#"[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT","required":["a"]}}]}]"#.to_owned(),
        ] {
            let t = Tools::parse(&list).unwrap();
            assert_eq!(t.names().collect::<Vec<_>>(), ["f"], "{list}");
            assert_eq!(t.check("f", "{}").unwrap_err().to_string(), "/a: is required", "{list}");
            assert!(t.parameters("f").is_known() && !t.parameters("g").is_known());
            assert!(t.check("f", r#"{"a":1}"#).is_ok() && t.check("g", "{}").is_ok() && !t.knows("F"));
        }
    }

    #[test]
    fn what_cannot_be_read() {
        assert_eq!(Tools::parse("{}").unwrap_err(), ToolsError::NoArray);
        assert!(matches!(Tools::parse("[").unwrap_err(), ToolsError::Syntax(_)));
        assert_eq!(
            Tools::parse(r#"[{"name":"f"},{"name":"f"}]"#).unwrap_err().to_string(),
            "two tools are named \"f\""
        );
        let t = Tools::parse(r#"[{"name":"f","parameters":{"$ref":"http://evil/"}},{"name":"g"}]"#).unwrap();
        assert!(matches!(t.check("f", "{}"), Err(Unfit::Schema(_))) && t.check("g", "[]").is_ok());
    }
}
