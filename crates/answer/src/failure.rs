//! Why an answer failed, for the status of the response or for its stream.

/// Why an answer failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// The HTTP status for a client that has no byte of the answer yet: that of the upstream where it answered, else one that fits.
    pub status: u16,
    /// A word to match on, such as `context_overflow`.
    pub code: String,
    /// A sentence for people.
    pub message: String,
    /// How long to wait before another try, in milliseconds.
    pub retry_after_ms: Option<u64>,
}
