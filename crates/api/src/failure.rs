//! Parses the error objects of providers.

use crate::members::minified;
use crate::{overflow, refusal};
use event::Raw;
use redact::Redactor;

/// Returns the message in the body of an HTTP error response, prefixed with the status.
pub fn error_message(status: u16, body: &[u8]) -> String {
    StreamFailure::of_body(status, &String::from_utf8_lossy(body)).message
}

/// Whether an HTTP response reports that the conversation exceeds the model's context.
pub fn is_context_overflow(status: u16, body: &[u8]) -> bool {
    StreamFailure::of_body(status, &String::from_utf8_lossy(body)).is_overflow()
}

/// Why a stream failed: the fields of an `error` event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamFailure {
    /// A code that programs can match.
    pub code: String,
    /// A message for the user.
    pub message: String,
    /// Whether the same request may be retried.
    pub retryable: bool,
    /// The provider's own error, as JSON on one line.
    pub provider: Option<String>,
    /// The HTTP status of the provider's response; `None` if it was not an error.
    pub status: Option<u16>,
}

/// The wording of messages for one command: its name, and the remedies it offers to the user.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// The `source` of warnings and errors.
    pub source: &'static str,
    /// The remedy for a conversation that exceeds the model's context.
    pub overflow: &'static str,
    /// The remedy for a server that rejects tools; `None` if the caller has none.
    pub no_tools: Option<&'static str>,
    /// The remedy for a stream of another API. The API's name is appended.
    pub other_api: &'static str,
    /// The name of the option that limits the size of an event.
    pub max_frame: &'static str,
}

impl Default for Words {
    fn default() -> Self {
        Words {
            source: "api",
            overflow: "send fewer or shorter messages, lower the most tokens of the answer, or \
                ask a model with a longer context",
            no_tools: None,
            other_api: "use the API",
            max_frame: "the limit",
        }
    }
}

impl StreamFailure {
    pub(crate) fn new(code: &str, message: impl Into<String>, retryable: bool) -> Self {
        StreamFailure {
            code: code.to_owned(),
            message: message.into(),
            retryable,
            ..StreamFailure::default()
        }
    }

    /// Rewords the failure of an HTTP response for a client of a service, which sees the status
    /// separately. `server` is the name of the server that answered.
    pub(crate) fn for_client(&mut self, server: &str) {
        let Some(status) = self.status else { return };
        if let Some(message) = self.message.strip_prefix(&format!("HTTP {status}: ")) {
            self.message = match message {
                NO_MESSAGE | UNNAMED => {
                    format!("{server} answered with the status {status} and without a message")
                }
                message => message.to_owned(),
            };
        }
    }

    /// Adds a remedy to the message, if there is one. `native` means that the request had tools.
    pub(crate) fn advised(mut self, native: bool, words: &Words) -> StreamFailure {
        if self.is_overflow() {
            self.code = "context_overflow".to_owned();
            self.retryable = false;
            self.message = format!("{}; {}", self.message, words.overflow);
        } else if let Some(remedy) = words.no_tools.filter(|_| native && self.refuses_tools()) {
            self.message = format!("{}; {remedy}", self.message);
        }
        self
    }

    /// Removes credentials, because a server may echo the key that it received.
    pub(crate) fn redacted(self, redactor: &Redactor) -> StreamFailure {
        let text = |text: String| redactor.text(&text).into_owned();
        StreamFailure {
            code: text(self.code),
            message: text(self.message),
            retryable: self.retryable,
            provider: self
                .provider
                .map(|json| redactor.json_text(&json).into_owned()),
            status: self.status,
        }
    }

    fn is_overflow(&self) -> bool {
        let mut texts = vec![self.code.clone()];
        match self.provider.as_deref().map(Raw::parse) {
            Some(Ok(provider)) => refusal::texts(provider, &mut texts),
            _ => texts.push(self.message.clone()),
        }
        overflow::is_overflow(&self.code, texts.iter().map(String::as_str))
    }

    fn refuses_tools(&self) -> bool {
        let status = self
            .code
            .strip_prefix("http_")
            .and_then(|n| n.parse().ok())
            .unwrap_or(400);
        refusal::refuses_tools(status, self.provider.as_deref().unwrap_or(&self.message)).is_some()
    }

    /// Returns the error at the top level of `frame`, in any provider's format: `{"error":{…}}`,
    /// `{"error":"…"}`, `{"type":"error",…}`, `{"object":"error",…}`, or any object in an
    /// `event: error`. `None` if there is no error. [`StreamFailure::of`] parses the result.
    #[inline]
    pub(crate) fn in_frame<'f>(frame: Raw<'f>, name: Option<&str>) -> Option<Raw<'f>> {
        let [error, object, kind] = frame.fields(["error", "object", "type"]);
        let named = name == Some("error")
            || [object, kind]
                .into_iter()
                .flatten()
                .any(|name| name.text() == "\"error\"");
        error
            .filter(|e| says_something(*e))
            .or(named.then_some(frame))
    }

    /// Parses the body of an HTTP error response in any format.
    pub(crate) fn of_body(status: u16, body: &str) -> StreamFailure {
        let parsed = Raw::parse(body).ok();
        let inner = parsed.and_then(|v| {
            if v.is_array() {
                v.items().next()
            } else {
                Some(v)
            }
        });
        let mut failure = match inner.filter(|v| v.is_object()) {
            Some(v) => Self::of(
                v.get("error").filter(|e| says_something(*e)).unwrap_or(v),
                Some(status),
            ),
            None => StreamFailure {
                message: sentence(body),
                ..StreamFailure::default()
            },
        };
        failure.message = format!(
            "HTTP {status}: {}",
            if failure.message.is_empty() {
                NO_MESSAGE
            } else {
                &failure.message
            }
        );
        failure.code = format!("http_{status}");
        failure.status = Some(status);
        failure.retryable = retryable(status);
        failure
    }

    /// Parses an error object, or a string that is the message.
    pub(crate) fn of(error: Raw<'_>, status: Option<u16>) -> StreamFailure {
        let provider = Some(minified(error));
        if let Some(message) = error.str() {
            return StreamFailure {
                code: "provider_error".into(),
                message: message.into_owned(),
                provider,
                ..StreamFailure::default()
            };
        }
        let number = ["code", "status", "http_status", "status_code"]
            .iter()
            .find_map(|key| {
                let v = error.get(key)?;
                v.i64().or_else(|| v.str()?.parse().ok())
            });
        let status = status.or_else(|| {
            number
                .and_then(|n| u16::try_from(n).ok())
                .filter(|n| (400..600).contains(n))
        });
        let word = ["code", "type", "status"].iter().find_map(|key| {
            error
                .get_str(key)
                .filter(|w| !w.is_empty() && w.parse::<i64>().is_err() && w != "error")
        });
        let code = match (word, status) {
            (Some(word), _) => word.into_owned(),
            (None, Some(status)) => format!("http_{status}"),
            (None, None) => "provider_error".to_owned(),
        };
        let message = ["message", "detail", "msg", "error"]
            .iter()
            .find_map(|key| {
                let v = error.get(key)?;
                Some(
                    v.str()
                        .map_or_else(|| v.text().to_owned(), |s| s.into_owned()),
                )
            });
        let retryable = status.is_some_and(retryable)
            || RETRYABLE
                .iter()
                .any(|w| code.to_ascii_lowercase().contains(w));
        let message = message
            .filter(|m| !m.is_empty())
            .unwrap_or_else(|| UNNAMED.to_owned());
        StreamFailure {
            code,
            message,
            retryable,
            provider,
            status: None,
        }
    }
}

/// The message for an error response whose body has none.
const NO_MESSAGE: &str = "no message";

/// The message for an error object that has none.
const UNNAMED: &str = "the provider reports an error";

fn says_something(error: Raw<'_>) -> bool {
    error.entries().next().is_some() || error.str().is_some_and(|e| !e.is_empty())
}

/// Words in providers' error codes that mark an error as possibly temporary.
const RETRYABLE: [&str; 9] = [
    "overloaded",
    "capacity",
    "rate_limit",
    "server_error",
    "unavailable",
    "timeout",
    "api_error",
    "resource_exhausted",
    "internal",
];

/// Whether a request answered with this HTTP status may be retried.
pub(crate) fn retryable(status: u16) -> bool {
    matches!(status, 408 | 409 | 429 | 500..=599)
}

/// Returns the start of a body that is not JSON, as plain text on one line: without HTML tags, and
/// at most 200 characters.
pub(crate) fn sentence(body: &str) -> String {
    let mut plain = String::new();
    let mut inside = false;
    for c in body.chars().take(20_000) {
        match c {
            '<' => inside = true,
            '>' if inside => {
                inside = false;
                plain.push(' ');
            }
            c if !inside => plain.push(c),
            _ => {}
        }
    }
    let words: Vec<&str> = plain.split_whitespace().collect();
    words
        .join(" ")
        .chars()
        .filter(|c| !c.is_control())
        .take(200)
        .collect()
}
