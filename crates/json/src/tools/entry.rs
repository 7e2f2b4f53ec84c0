//! The tools of a list.

use event::Object;

/// The schema of a tool that describes no arguments, as providers that require one take it.
pub const NO_PARAMETERS: &str = r#"{"type":"object","properties":{}}"#;

/// A tool that its caller runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolEntry {
    /// Its name, see [`crate::is_name`].
    pub name: String,
    /// What it is for, in words for the model.
    pub description: Option<String>,
    /// The JSON Schema of its arguments: an object, byte for byte as it was written.
    pub parameters: Option<String>,
    /// Whether the provider is asked to make arguments fit the schema.
    pub strict: Option<bool>,
    /// The whole entry as it was written; of Gemini's entries, the one declaration.
    pub text: String,
}

/// A tool that the provider runs itself, such as its web search. It goes into a request as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderTool {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The entry as JSON on one line.
    pub text: String,
}

impl ToolEntry {
    /// The schema for a request: [`NO_PARAMETERS`] in place of a missing or an empty one.
    pub fn schema(&self) -> &str {
        let text = self.parameters.as_deref().unwrap_or_default();
        if event::Raw::parse(text).is_ok_and(|schema| schema.entries().next().is_some()) {
            text
        } else {
            NO_PARAMETERS
        }
    }

    /// Writes the members of the entry in OpenAI's shape: `{"type":"function","function":{…}}`.
    pub fn write_openai(&self, entry: &mut Object<'_>) {
        entry
            .str("type", "function")
            .object("function", |function| {
                function
                    .str("name", &self.name)
                    .maybe_str("description", self.description.as_deref());
                function.minified("parameters", self.schema());
                if let Some(strict) = self.strict {
                    function.bool("strict", strict);
                }
            });
    }
}
