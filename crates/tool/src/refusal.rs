//! Why the arguments of a call are refused.

/// The longest item of a command line on Linux, in bytes: `MAX_ARG_STRLEN` without the final zero
/// byte (execve(2)).
pub const MAX_ITEM: usize = 131_071;

/// The longest address of a request, in bytes. Servers take 8,000 at least (RFC 9110, section 4.1),
/// and few take more than this.
pub const MAX_URL: usize = 16 * 1024;

/// Why arguments are refused. The text is written for the model, which can correct them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The text is not JSON, or two parsers could read it differently.
    #[error("{0}")]
    Json(#[from] json::JsonError),
    /// The text is JSON, but not an object.
    #[error("the arguments are a JSON {0}, not an object")]
    NotAnObject(&'static str),
    /// A string or a key contains U+0000, which ends an item of a command line.
    #[error("a text holds the character U+0000")]
    Nul,
    /// A key that the schema does not declare.
    #[error("the key {0} is not declared")]
    Undeclared(String),
    /// The arguments do not fit the schema.
    #[error("{0}")]
    Schema(String),
    /// The command would read a value as an option.
    #[error("the value of {0:?} begins with \"-\", which the command would read as an option")]
    Option(String),
    /// An item of the command line would exceed [`MAX_ITEM`].
    #[error("with the value of {0:?} an item of the command line has {1} bytes, the system's limit is {limit}", limit = MAX_ITEM)]
    TooLong(String, usize),
    /// The path of an address needs an argument that is missing.
    #[error("{0:?} is missing, and the address needs it")]
    NoSegment(String),
    /// A value would change the path of an address.
    #[error(
        "the value of {0:?} cannot be a part of an address: it is empty, or leads to another folder (\".\", \"..\")"
    )]
    Segment(String),
    /// An address would exceed [`MAX_URL`].
    #[error("the address would have {0} bytes, the limit is {limit}", limit = MAX_URL)]
    LongUrl(usize),
    /// What an earlier stage found wrong with the call.
    #[error("{0}")]
    Earlier(String),
}
