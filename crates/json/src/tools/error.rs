//! Why a list of tools cannot be used.

use crate::{JsonError, SchemaError};
use std::fmt;

/// Which tool of a list. Displayed as `tool 2 ("get_weather")`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolPlace {
    /// Its place among the tools, from 1.
    pub number: usize,
    /// Its name, if that could be read.
    pub name: Option<String>,
}

impl fmt::Display for ToolPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tool {}", self.number)?;
        self.name
            .as_ref()
            .map_or(Ok(()), |name| write!(f, " ({name:?})"))
    }
}

/// Why a list of tools cannot be used: one line with the remedy. The caller puts the name of the
/// file before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolsError {
    /// The text is not JSON.
    #[error("not JSON: {0}, mend it there")]
    Syntax(String),
    /// Two parsers could read the text differently.
    #[error("{0}, mend it there")]
    Ambiguous(JsonError),
    /// Neither an array nor an object.
    #[error(
        "neither an array of tools nor an object with one, write an array of tools: [{{\"type\":\"function\",…}}]"
    )]
    NoList,
    /// An object whose `tools` is missing or not an array.
    #[error(
        "an object without an array of tools, write {{\"tools\":[…]}} or write an array of tools alone"
    )]
    NoArray,
    /// Servers of tools, which the reader does not start; the name of the first.
    #[error("mcpServers{} is for tool-exec alone, which prints the tools of the servers too: tool-exec --tools FILE --list >LIST; give LIST here", .0.as_ref().map(|name| format!(" ({name:?})")).unwrap_or_default())]
    Servers(Option<String>),
    /// One tool.
    #[error("{0}: {1}")]
    Tool(ToolPlace, ToolFault),
}

/// What is wrong with one tool of a list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolFault {
    /// The entry is not an object.
    #[error("not an object, write {{\"name\":…,\"parameters\":…}}")]
    NotAnObject,
    /// A member of this name is not an object (`function`) or not an array
    /// (`functionDeclarations`).
    #[error("{0} is not {1}")]
    Member(&'static str, &'static str),
    /// The name is missing, empty or not a string.
    #[error("it has no name, add \"name\"")]
    NoName,
    /// See [`crate::is_name`].
    #[error("the name must be 1 to 128 of A-Z a-z 0-9 _ . -, rename it")]
    Name,
    /// A tool before it has the same name, so the name would not tell which schema counts.
    #[error("another tool has this name, rename one of them")]
    Twice,
    /// Parameters under two of the keys that hold them.
    #[error("it has two schemas, keep one of {0} and {1}")]
    Schemas(&'static str, &'static str),
    /// The parameters under this key are not an object.
    #[error("{0} is not an object, write a JSON Schema there")]
    NoSchema(&'static str),
    /// The schema cannot be compiled.
    #[error("parameters: {0}")]
    Schema(#[from] SchemaError),
}
