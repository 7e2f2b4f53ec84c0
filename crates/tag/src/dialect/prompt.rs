//! Columns for prompts: how a dialect shows tools and results to the model.

/// How a prompt shows tools and results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prompt {
    /// Text before the list of tools.
    pub open: &'static str,
    /// Text after the list of tools.
    pub close: &'static str,
    /// How the list is written.
    pub list: ToolListStyle,
    /// A result: `{result}` is its text as a JSON string, `{name}` and `{id}` the call's, escaped
    /// as it is.
    pub result: &'static str,
    /// Text before and after all results of a turn.
    pub results: (&'static str, &'static str),
    /// Text between two results.
    pub between: &'static str,
}

/// How a list of tools is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolListStyle {
    /// A JSON object a line.
    Lines,
    /// One JSON array.
    Array,
    /// A type a tool, as TypeScript declares it.
    TypeScript,
}
