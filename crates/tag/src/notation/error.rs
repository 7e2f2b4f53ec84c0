//! The error of a file of dialects.

/// What is wrong with a file of dialects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotationError {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there, and what was expected.
    pub message: String,
}

impl std::fmt::Display for NotationError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} line {}: {}", self.file, self.line, self.message)
    }
}

impl std::error::Error for NotationError {}
