//! The forms in which one turn can be asked.

use tag::Dialect;

/// How a request is made.
#[derive(Clone, Copy, Debug)]
pub struct RequestForm {
    /// The answer is asked for at once, not as a stream.
    pub is_whole: bool,
    /// How the model learns of its tools.
    pub tools: ToolsForm,
}

/// How the model learns of its tools.
#[derive(Clone, Copy, Debug)]
pub enum ToolsForm {
    /// In the request's own member, if there are any.
    Native,
    /// In the prompt, in this dialect.
    Tag(&'static Dialect),
    /// Not at all; earlier calls are text of this dialect.
    Nothing(&'static Dialect),
}

/// What the user asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolsMode {
    /// The request's own member.
    Native,
    /// The prompt.
    Tag,
    /// Whichever the model takes.
    Auto,
}
