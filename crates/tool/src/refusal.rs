//! Why the arguments of a call are not used.

/// The longest item that Linux starts a command with, in bytes (`MAX_ARG_STRLEN` without the byte that ends it).
pub const MAX_ITEM: usize = 131_071;

/// Why arguments are not used. The text is written for the model, which can correct them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No JSON, or JSON that two parsers could read differently.
    #[error("{0}")]
    Json(#[from] json::JsonError),
    /// JSON, but no object.
    #[error("the arguments are a JSON {0}, not an object")]
    NotAnObject(&'static str),
    /// A string or a key holds the character U+0000, which no command can be given.
    #[error("a text holds the character U+0000")]
    Nul,
    /// A key that the schema does not declare.
    #[error("the key {0} is not declared")]
    Undeclared(String),
    /// The schema says no.
    #[error("{0}")]
    Schema(String),
    /// A text would be read as an option of the command.
    #[error("the value of {0:?} begins with \"-\", which the command would read as an option")]
    Option(String),
    /// One item of the command line would be longer than the system takes.
    #[error("with the value of {0:?} an item of the command line has {1} bytes, the system's limit is {limit}", limit = MAX_ITEM)]
    TooLong(String, usize),
    /// What an earlier stage found wrong with the call.
    #[error("{0}")]
    Earlier(String),
}
