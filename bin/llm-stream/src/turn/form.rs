//! The forms in which one turn can be asked.

use clap::ValueEnum;
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

/// What the user asks for. The comments are those of `--help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ToolsMode {
    /// In the request's own field
    Native,
    /// In the system prompt, in a dialect's form
    Tag,
    /// Whichever the model takes: see 'Tools mode auto'
    Auto,
}
