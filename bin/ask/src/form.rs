//! The forms of the request of one turn.

use clap::ValueEnum;
use tag::Dialect;

/// The form of a request.
#[derive(Clone, Copy, Debug)]
pub struct RequestForm {
    /// Whether it asks for the whole answer at once, not for a stream.
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
pub enum ToolsModeChoice {
    /// In the request's own field
    Native,
    /// In the system prompt, in a dialect's form
    Tag,
    /// Whichever the model takes: see 'Tools mode auto'
    Auto,
}
