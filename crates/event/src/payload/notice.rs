//! Warnings and errors.

use super::field::{Loose, payload};
use crate::{Json, Text};

payload! {
    /// Something odd that did not stop the stream.
    Warning<'a> {
        /// The command that noticed.
        source: Text<'a>,
        /// A word to match on.
        code: Text<'a>,
        /// A sentence for people.
        message: Text<'a>,
        /// The text that was wrong, cut at 64 KiB.
        raw: Option<Text<'a>>,
        /// The whole length of that text in bytes, where `raw` was cut or is not exact.
        raw_bytes: Option<u64>,
        /// The bytes of the text in base64, where they are not UTF-8 (cut likewise).
        raw_base64: Option<Text<'a>>,
        /// The 1-based number of the line that it was found in.
        line: Option<u64>,
    }
}

impl<'a> Warning<'a> {
    /// A warning of the command `source`: a word to match on, and a sentence.
    pub fn new(source: &'a str, code: &'a str, message: &'a str) -> Self {
        Warning {
            source: source.into(),
            code: code.into(),
            message: message.into(),
            ..Warning::default()
        }
    }

    /// How much of a text that was wrong a warning carries, in bytes.
    pub const RAW: usize = 64 * 1024;

    /// Carries the text that was wrong, cut where it is too long.
    #[must_use]
    pub fn about(mut self, text: &'a str) -> Self {
        self.raw = Some(crate::cut(text, Self::RAW).into());
        self.raw_bytes = Some(text.len() as u64).filter(|_| text.len() > Self::RAW);
        self
    }
}

payload! {
    /// The stream or the turn has failed; whatever was open is incomplete.
    Error<'a> {
        /// The command that reports it.
        source: Text<'a>,
        /// A word to match on.
        code: Text<'a> as Loose,
        /// A sentence for people.
        message: Text<'a> as Loose,
        /// Whether the same turn may be tried again.
        retryable: bool,
        /// What the provider said.
        provider: Option<Json<'a>>,
        /// The status of the provider's HTTP response, where that was an error.
        status: Option<u32>,
        /// How long the provider asks to wait before another try, in milliseconds.
        retry_after_ms: Option<u64>,
    }
}

impl<'a> Error<'a> {
    /// An error of the command `source` that another try would meet again: a word to match on, and
    /// a sentence.
    pub fn new(source: &'a str, code: &'a str, message: &'a str) -> Self {
        Error {
            source: source.into(),
            code: code.into(),
            message: message.into(),
            ..Error::default()
        }
    }
}
