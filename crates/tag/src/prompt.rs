//! How a dialect is written: the tools and the instruction in the system prompt, a call, and a tool's result.

use crate::Dialect;
use serde_json::Value;

/// How tools and results are told to the models of a dialect.
#[derive(Debug)]
pub(crate) struct Prompt {
    /// What stands before the list of tools.
    pub open: &'static str,
    /// What stands after it.
    pub close: &'static str,
    /// How the list is written.
    pub list: List,
    /// A result: `{result}` is its text as a JSON string, `{name}` and `{id}` the call's, escaped as it is.
    pub result: &'static str,
    /// What stands before and after all results of a turn.
    pub results: (&'static str, &'static str),
    /// What stands between two results.
    pub between: &'static str,
}

/// How a list of tools is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    /// A JSON object a line.
    Lines,
    /// One JSON array.
    Array,
    /// A type a tool, as TypeScript declares it.
    TypeScript,
}

/// A call of an earlier turn.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Its id; "" if it has none.
    pub id: &'a str,
    /// The tool's name.
    pub name: &'a str,
    /// The text of a JSON object.
    pub arguments: &'a str,
}

/// A tool's answer to one.
#[derive(Clone, Copy, Debug)]
pub struct Output<'a> {
    /// The id of the call; "" if it has none.
    pub id: &'a str,
    /// The tool's name.
    pub name: &'a str,
    /// What the tool said, whatever it is.
    pub text: &'a str,
}

/// What is asked of the model about calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice<'a> {
    /// It may call tools.
    #[default]
    Auto,
    /// It must call one.
    Required,
    /// It must call this one.
    Tool(&'a str),
}

impl Dialect {
    /// The end of the system prompt: the tools (an array in OpenAI's shape) and how to call them.
    pub fn system(&self, tools: &Value, choice: Choice<'_>) -> String {
        let _ = choice;
        format!("You can call these tools:\n{tools}\nTo call one, write <tool name=\"NAME\">{{JSON}}</tool>.")
    }

    /// The calls of one assistant's message, as the model itself would write them.
    pub fn calls(&self, calls: &[Call<'_>]) -> String {
        calls.iter().map(|c| format!("<tool name=\"{}\">{}</tool>", c.name, c.arguments)).collect()
    }

    /// The results of one turn's calls, as the text of one user's message. Nothing in them can open or close a tag of any
    /// dialect, and each result is a JSON string that gives its text back unchanged.
    pub fn results(&self, results: &[Output<'_>]) -> String {
        results.iter().map(|r| format!("<tool_result name=\"{}\">{:?}</tool_result>", r.name, r.text)).collect()
    }
}
