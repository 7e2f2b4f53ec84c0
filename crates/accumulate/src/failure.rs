//! The error of a stream in the form of each provider's error responses.

use event::Object;

/// The part of an `error` event that a response has, too.
#[derive(Clone, Debug)]
pub(crate) struct StreamError {
    pub code: String,
    pub message: String,
}

/// Words in our codes and in providers' own codes, with the HTTP status that they mean.
const WORDS: [(&str, u16); 13] = [
    ("overloaded", 529),
    ("unavailable", 503),
    ("capacity", 503),
    ("rate_limit", 429),
    ("exhausted", 429),
    ("quota", 429),
    ("timeout", 504),
    ("auth", 401),
    ("api_key", 401),
    ("permission", 403),
    ("not_found", 404),
    ("invalid", 400),
    ("context", 400),
];

impl StreamError {
    fn status(&self) -> u16 {
        let code = self.code.to_ascii_lowercase();
        let number = code.strip_prefix("http_").and_then(|n| n.parse().ok());
        number
            .or_else(|| {
                WORDS
                    .iter()
                    .find(|(word, _)| code.contains(word))
                    .map(|(_, n)| *n)
            })
            .unwrap_or(500)
    }

    /// platform.openai.com/docs/guides/error-codes
    pub fn openai(&self, o: &mut Object<'_>) {
        let kind = match self.status() {
            401 => "authentication_error",
            403 => "permission_error",
            429 => "rate_limit_error",
            400..=499 => "invalid_request_error",
            _ => "server_error",
        };
        o.str("message", &self.message)
            .str("type", kind)
            .raw("param", "null")
            .str("code", &self.code);
    }

    /// platform.claude.com/docs/en/api/errors
    pub fn anthropic(&self, o: &mut Object<'_>) {
        let kind = match self.status() {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            504 => "timeout_error",
            503 | 529 => "overloaded_error",
            400..=499 => "invalid_request_error",
            _ => "api_error",
        };
        o.str("type", kind).str("message", &self.message);
    }

    /// ai.google.dev/gemini-api/docs/troubleshooting
    pub fn gemini(&self, o: &mut Object<'_>) {
        let (code, status) = match self.status() {
            n @ 401 => (n, "UNAUTHENTICATED"),
            n @ 403 => (n, "PERMISSION_DENIED"),
            n @ 404 => (n, "NOT_FOUND"),
            n @ 429 => (n, "RESOURCE_EXHAUSTED"),
            n @ 504 => (n, "DEADLINE_EXCEEDED"),
            503 | 529 => (503, "UNAVAILABLE"),
            n @ 400..=499 => (n, "INVALID_ARGUMENT"),
            n => (n, "INTERNAL"),
        };
        o.int("code", code)
            .str("message", &self.message)
            .str("status", status);
    }
}
