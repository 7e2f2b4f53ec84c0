//! The tools of a request, and which of them the model may or must call.

use super::options::RequestOptions;
use json::{ProviderTool, ToolEntry};
use serde_json::Value;

/// One tool of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tool<'a> {
    /// One that the client runs.
    Function(&'a ToolEntry),
    /// The provider's own, in its words: it goes out as it came.
    Provider(&'a ProviderTool),
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
    /// The tools, the provider's own last.
    pub(crate) fn tool_list(&self) -> Vec<Tool<'_>> {
        let Some(tools) = &self.tools else {
            return Vec::new();
        };
        tools
            .iter()
            .map(Tool::Function)
            .chain(tools.provider().iter().map(Tool::Provider))
            .collect()
    }

    /// The choice of the user, if there is one.
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
            Tool::Function(tool) => Some(&tool.name),
            Tool::Provider(_) => None,
        }
    }

    /// In OpenAI's shape.
    pub(crate) fn openai(&self) -> Value {
        let mut out = Vec::new();
        match self {
            Tool::Provider(tool) => return value(&tool.text),
            Tool::Function(tool) => {
                let mut entry = event::Object::open(&mut out);
                tool.write_openai(&mut entry);
                entry.close();
            }
        }
        serde_json::from_slice(&out).unwrap_or_default()
    }
}

/// The tree of a text that is JSON already.
pub(crate) fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}
