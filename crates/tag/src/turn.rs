//! What a prompt says about turns: earlier calls, their results, and whether the model must call a
//! tool now.

/// A call of an earlier turn.
#[derive(Clone, Copy, Debug)]
pub struct PromptCall<'a> {
    /// Its id; "" if it has none.
    pub id: &'a str,
    /// The tool's name.
    pub name: &'a str,
    /// The text of a JSON object.
    pub arguments: &'a str,
}

/// The result of a call.
#[derive(Clone, Copy, Debug)]
pub struct PromptResult<'a> {
    /// The id of the call; "" if it has none.
    pub id: &'a str,
    /// The tool's name.
    pub name: &'a str,
    /// The result's text. It may hold anything.
    pub text: &'a str,
}

/// Whether the model must call a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PromptChoice<'a> {
    /// It may call tools.
    #[default]
    Auto,
    /// It must call one.
    Required,
    /// It must call this one.
    Tool(&'a str),
}
