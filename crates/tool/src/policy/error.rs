//! What is wrong with a policy.

/// What is wrong with a policy: one line with the remedy. The caller puts the name of the file
/// before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct PolicyError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there, and what would be right.
    pub what: String,
}
