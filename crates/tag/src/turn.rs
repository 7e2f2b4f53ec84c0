//! What a prompt tells of turns: earlier calls, their results, and whether the model is to call tools now.

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

/// A tool's answer to one.
#[derive(Clone, Copy, Debug)]
pub struct PromptResult<'a> {
    /// The id of the call; "" if it has none.
    pub id: &'a str,
    /// The tool's name.
    pub name: &'a str,
    /// What the tool said, whatever it is.
    pub text: &'a str,
}

/// What is asked of the model about calls.
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
