//! Why a schema cannot be used.

/// Why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The text is not JSON.
    #[error("the schema is not JSON: {0}")]
    Syntax(String),
    /// A `$ref` that does not begin with `#`.
    #[error("the schema refers to {0}, only references inside the schema (#/…) are followed")]
    Remote(String),
    /// It nests too deep, or has too many parts or too much text in patterns.
    #[error("the schema is too large: {0}")]
    TooLarge(&'static str),
    /// A validation could take too many steps, see `schema/cost.rs`.
    #[error("the schema is too complex: {0}, use fewer references and alternatives")]
    TooComplex(&'static str),
    /// It is not a JSON Schema, or a pattern cannot be matched in linear time.
    #[error("the schema is not valid: {0}")]
    Invalid(String),
}
