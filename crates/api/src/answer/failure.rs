//! Failures of a response, for its HTTP status or its stream.

use event::Raw;
use event::payload::{Error, FinishReason};

/// Why a response failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailedAnswer {
    /// The HTTP status if no byte of the response was sent: the upstream's status if it answered,
    /// otherwise a suitable one.
    pub status: u16,
    /// A code that programs can match, such as `context_overflow`.
    pub code: String,
    /// A message for the user.
    pub message: String,
    /// How long to wait before a retry, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// The invalid member of the request.
    pub param: Option<Box<str>>,
    /// The provider's own error.
    pub provider: Option<Box<ProviderError>>,
}

/// An error as reported by a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderError {
    /// The name of the provider's API.
    pub api: String,
    /// The provider's error as JSON.
    pub json: String,
}

/// The code of a cancelled response.
pub(crate) const CANCELLED: &str = "cancelled";

/// The APIs whose providers report errors in OpenAI's format.
pub(crate) const OPENAI: &[&str] = &["openai-chat", "openai-responses"];

/// Anthropic's API, whose errors may have details.
pub(crate) const ANTHROPIC: &[&str] = &["anthropic"];

/// Words in our error codes and in providers' codes, with the matching HTTP status. The first entry
/// that occurs in a code applies.
const WORDS: [(&str, u16); 23] = [
    ("context", 400),
    ("overloaded", 529),
    ("queue", 429),
    ("unavailable", 503),
    ("capacity", 503),
    ("rate_limit", 429),
    ("too_many_requests", 429),
    ("throttl", 429),
    ("exhausted", 429),
    ("quota", 429),
    ("billing", 402),
    ("timeout", 504),
    ("timed_out", 504),
    ("deadline", 504),
    ("idle", 504),
    ("permission", 403),
    ("forbidden", 403),
    ("auth", 401),
    ("api_key", 401),
    ("not_found", 404),
    ("tape_miss", 404),
    ("too_large", 413),
    ("invalid_request", 400),
];

/// The names for an HTTP status in each API. <https://platform.openai.com/docs/guides/error-codes>,
/// <https://platform.claude.com/docs/en/api/errors>,
/// <https://ai.google.dev/gemini-api/docs/troubleshooting>.
pub(crate) struct FailureNames {
    pub openai: &'static str,
    pub anthropic: &'static str,
    /// The status name, with a code if it differs from the HTTP status.
    pub gemini: (Option<u16>, &'static str),
}

/// The first row that contains the status applies.
#[rustfmt::skip]
const NAMES: &[(std::ops::RangeInclusive<u16>, FailureNames)] = &[
    (401..=401, FailureNames { openai: "authentication_error", anthropic: "authentication_error", gemini: (None, "UNAUTHENTICATED") }),
    (402..=402, FailureNames { openai: "invalid_request_error", anthropic: "billing_error", gemini: (None, "INVALID_ARGUMENT") }),
    (403..=403, FailureNames { openai: "permission_error", anthropic: "permission_error", gemini: (None, "PERMISSION_DENIED") }),
    (404..=404, FailureNames { openai: "not_found_error", anthropic: "not_found_error", gemini: (None, "NOT_FOUND") }),
    (413..=413, FailureNames { openai: "invalid_request_error", anthropic: "request_too_large", gemini: (None, "INVALID_ARGUMENT") }),
    (429..=429, FailureNames { openai: "rate_limit_error", anthropic: "rate_limit_error", gemini: (None, "RESOURCE_EXHAUSTED") }),
    (400..=499, FailureNames { openai: "invalid_request_error", anthropic: "invalid_request_error", gemini: (None, "INVALID_ARGUMENT") }),
    (503..=503, FailureNames { openai: "server_error", anthropic: "api_error", gemini: (None, "UNAVAILABLE") }),
    (504..=504, FailureNames { openai: "server_error", anthropic: "timeout_error", gemini: (None, "DEADLINE_EXCEEDED") }),
    (529..=529, FailureNames { openai: "server_error", anthropic: "overloaded_error", gemini: (Some(503), "UNAVAILABLE") }),
    (0..=u16::MAX, FailureNames { openai: "server_error", anthropic: "api_error", gemini: (Some(500), "INTERNAL") }),
];

impl FailedAnswer {
    /// Returns the names for this failure in each API.
    pub(crate) fn names(&self) -> &'static FailureNames {
        let row = NAMES
            .iter()
            .find(|(statuses, _)| statuses.contains(&self.status));
        &row.unwrap_or(&NAMES[NAMES.len() - 1]).1
    }

    /// Whether the response was cancelled rather than failed.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.code == CANCELLED
    }

    /// Creates a failure with the HTTP status that matches its code.
    pub fn new(code: &str, message: &str) -> FailedAnswer {
        FailedAnswer {
            status: status_of(code),
            code: code.to_owned(),
            message: message.to_owned(),
            ..FailedAnswer::default()
        }
    }

    /// Returns the failure of a stream that ended with this reason, or `None` if the reason is not
    /// a failure.
    pub(crate) fn of_reason(reason: FinishReason) -> Option<FailedAnswer> {
        let (code, message) = match reason {
            FinishReason::Error => ("upstream_error", "the upstream reports an error"),
            FinishReason::Cut => (
                "upstream_cut",
                "the upstream's answer ended before its own end",
            ),
            FinishReason::Cancelled => (CANCELLED, "the answer was cancelled"),
            _ => return None,
        };
        Some(FailedAnswer::new(code, message))
    }

    /// Converts an `error` event in a stream of the provider `api`.
    pub fn of_event(error: &Error<'_>, api: &str) -> FailedAnswer {
        let status = error
            .status
            .and_then(|n| u16::try_from(n).ok())
            .filter(|n| (400..600).contains(n));
        let message = error.message.str();
        // Users see the status in the message; clients get it separately.
        let prefix = status
            .map(|status| format!("HTTP {status}: "))
            .unwrap_or_default();
        let made = FailedAnswer::new(
            &error.code.str(),
            message.strip_prefix(&prefix).unwrap_or(&message),
        );
        // The client can fix a conversation that is too long, so the status is 400 whatever the
        // upstream reports (llama.cpp: 500). A body with too many bytes keeps its own status, 413.
        let is_overflow = made.code == "context_overflow" && status != Some(413);
        let status = if is_overflow {
            400
        } else {
            status.unwrap_or(made.status)
        };
        let provider = error.provider.map(|json| {
            Box::new(ProviderError {
                api: api.to_owned(),
                json: json.text().into_owned(),
            })
        });
        FailedAnswer {
            status,
            retry_after_ms: error.retry_after_ms,
            provider,
            ..made
        }
    }

    /// Returns the string `key` in the error of a provider that speaks one of `apis`.
    pub(crate) fn provider_text(&self, apis: &[&str], key: &str) -> Option<String> {
        let provider = self
            .provider
            .as_ref()
            .filter(|provider| apis.contains(&provider.api.as_str()))?;
        let text = Raw::parse(&provider.json).ok()?.get_str(key)?;
        // If a whole stream event is the error, the string is only its `type`.
        (!text.is_empty() && text != "error").then(|| text.into_owned())
    }

    /// Whether the error of a provider that speaks one of `apis` has `key` set to `null`.
    pub(crate) fn provider_has_null(&self, apis: &[&str], key: &str) -> bool {
        let provider = self
            .provider
            .as_ref()
            .filter(|provider| apis.contains(&provider.api.as_str()));
        provider.is_some_and(|p| {
            Raw::parse(&p.json).is_ok_and(|json| json.get(key).is_some_and(Raw::is_null))
        })
    }

    /// Returns the `details` of a Messages API error as JSON: the provider's own, or the code by
    /// which clients recognise that a thread is not stored.
    pub(crate) fn details(&self) -> Option<String> {
        if self.code == "thread_not_found" {
            return Some(r#"{"error_code":"thread_not_found"}"#.to_owned());
        }
        let provider = self
            .provider
            .as_ref()
            .filter(|provider| ANTHROPIC.contains(&provider.api.as_str()))?;
        let details = Raw::parse(&provider.json)
            .ok()?
            .get("details")
            .filter(|details| details.is_object())?;
        Some(details.text().to_owned())
    }

    /// Whether the account's quota is exhausted, so that waiting does not help.
    pub(crate) fn is_quota(&self) -> bool {
        let word = |key| {
            self.provider_text(OPENAI, key)
                .is_some_and(|word| word.contains("quota"))
        };
        self.status == 429 && (self.code.contains("quota") || word("code") || word("type"))
    }

    /// Returns the code that OpenAI's APIs use for this failure, because clients match on it.
    /// <https://platform.openai.com/docs/guides/error-codes>
    pub(crate) fn openai_code(&self) -> &str {
        match (self.code.as_str(), self.status) {
            ("context_overflow", _) => "context_length_exceeded",
            ("http_429", _) => "rate_limit_exceeded",
            ("http_401", _) => "invalid_api_key",
            (code, _) => code,
        }
    }
}

/// Returns the HTTP status for a code: the number in `http_503`, otherwise that of the first
/// matching word in the table, otherwise 502, because the upstream failed rather than this server.
fn status_of(code: &str) -> u16 {
    let code = code.to_ascii_lowercase();
    let number = code
        .strip_prefix("http_")
        .and_then(|n| n.parse().ok())
        .filter(|n| (400..600).contains(n));
    number
        .or_else(|| {
            WORDS
                .iter()
                .find(|(word, _)| code.contains(word))
                .map(|(_, n)| *n)
        })
        .unwrap_or(502)
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::Scanner;

    #[test]
    fn statuses() {
        for (fields, status, retry) in [
            (
                r#""code":"http_429","retry_after_ms":1500"#,
                429,
                Some(1500),
            ),
            (r#""code":"http_503","status":503"#, 503, None),
            (r#""code":"context_overflow","status":500"#, 400, None),
            (r#""code":"context_overflow","status":413"#, 413, None),
            (r#""code":"overloaded_error""#, 529, None),
            (r#""code":"authentication_error""#, 401, None),
            (r#""code":"idle_timeout""#, 504, None),
            (r#""code":"connection_lost""#, 502, None),
            (r#""code":"provider_error","status":200"#, 502, None),
            (r#""code":"http_99999999""#, 502, None),
            (r#""code":"RESOURCE_EXHAUSTED""#, 429, None),
            (r#""code":"insufficient_quota","status":429"#, 429, None),
        ] {
            let line = format!(r#"{{"type":"error",{fields}}}"#);
            let mut scanner = Scanner::default();
            let failure =
                FailedAnswer::of_event(&Error::read(&scanner.read(&line).unwrap()), "openai-chat");
            assert_eq!(
                (failure.status, failure.retry_after_ms),
                (status, retry),
                "{fields}"
            );
        }
    }
}
