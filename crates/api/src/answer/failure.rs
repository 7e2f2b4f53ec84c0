//! Why an answer failed, for the status of the response or for its stream.

use event::Raw;
use event::payload::{Error, FinishReason};

/// Why an answer failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailedAnswer {
    /// The HTTP status for a client that has no byte of the answer yet: that of the upstream where
    /// it answered, else one that fits.
    pub status: u16,
    /// A word to match on, such as `context_overflow`.
    pub code: String,
    /// A sentence for people.
    pub message: String,
    /// How long to wait before another try, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// The member of the request that is wrong.
    pub param: Option<Box<str>>,
    /// The error of the provider.
    pub provider: Option<Box<ProviderError>>,
}

/// The error as a provider reported it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderError {
    /// The name of the provider's API.
    pub api: String,
    /// Its own error, as JSON.
    pub json: String,
}

/// The code of an answer that was cancelled.
pub(crate) const CANCELLED: &str = "cancelled";

/// The APIs whose providers report errors in OpenAI's shape.
pub(crate) const OPENAI: &[&str] = &["openai-chat", "openai-responses"];

/// The API of Anthropic, whose errors may have details.
pub(crate) const ANTHROPIC: &[&str] = &["anthropic"];

/// Words in our codes and in providers' own codes, with the HTTP status that they mean. The first
/// that a code contains counts.
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

/// What each API calls a failure with a status.
/// <https://platform.openai.com/docs/guides/error-codes>,
/// <https://platform.claude.com/docs/en/api/errors>,
/// <https://ai.google.dev/gemini-api/docs/troubleshooting>.
pub(crate) struct FailureNames {
    pub openai: &'static str,
    pub anthropic: &'static str,
    /// With the code, where that is not the status.
    pub gemini: (Option<u16>, &'static str),
}

/// The first row with the status counts.
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
    /// What each API calls it.
    pub(crate) fn names(&self) -> &'static FailureNames {
        let row = NAMES
            .iter()
            .find(|(statuses, _)| statuses.contains(&self.status));
        &row.unwrap_or(&NAMES[NAMES.len() - 1]).1
    }

    /// Whether the answer was cancelled, and did not go wrong.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.code == CANCELLED
    }

    /// A failure with the status that fits its code.
    pub fn new(code: &str, message: &str) -> FailedAnswer {
        FailedAnswer {
            status: status_of(code),
            code: code.to_owned(),
            message: message.to_owned(),
            ..FailedAnswer::default()
        }
    }

    /// The failure of a stream that ended for this reason, if that is one.
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

    /// The failure that an `error` event of a stream of the provider `api` reports.
    pub fn of_event(error: &Error<'_>, api: &str) -> FailedAnswer {
        let status = error
            .status
            .and_then(|n| u16::try_from(n).ok())
            .filter(|n| (400..600).contains(n));
        let message = error.message.str();
        // A person reads the status in the message, a client has it beside the message.
        let prefix = status
            .map(|status| format!("HTTP {status}: "))
            .unwrap_or_default();
        let made = FailedAnswer::new(
            &error.code.str(),
            message.strip_prefix(&prefix).unwrap_or(&message),
        );
        // A conversation that is too long is the client's to mend, with whatever status the
        // upstream reports it (llama.cpp: 500). A body that has too many bytes has a status of its
        // own.
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

    /// The text `key` of the error of a provider that speaks one of `apis`.
    pub(crate) fn provider_text(&self, apis: &[&str], key: &str) -> Option<String> {
        let provider = self
            .provider
            .as_ref()
            .filter(|provider| apis.contains(&provider.api.as_str()))?;
        let text = Raw::parse(&provider.json).ok()?.get_str(key)?;
        // An event of a stream may be its own error, and the word is its kind then.
        (!text.is_empty() && text != "error").then(|| text.into_owned())
    }

    /// Whether the error of a provider that speaks one of `apis` has `key` with the value `null`.
    pub(crate) fn provider_has_null(&self, apis: &[&str], key: &str) -> bool {
        let provider = self
            .provider
            .as_ref()
            .filter(|provider| apis.contains(&provider.api.as_str()));
        provider.is_some_and(|p| {
            Raw::parse(&p.json).is_ok_and(|json| json.get(key).is_some_and(Raw::is_null))
        })
    }

    /// The `details` of an error of the Messages API, as JSON: the provider's own, or the word by
    /// which clients know that a thread is not kept.
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

    /// Whether the account has used up what it may use: waiting does not help.
    pub(crate) fn is_quota(&self) -> bool {
        let word = |key| {
            self.provider_text(OPENAI, key)
                .is_some_and(|word| word.contains("quota"))
        };
        self.status == 429 && (self.code.contains("quota") || word("code") || word("type"))
    }

    /// The word that OpenAI's APIs use for this failure, so that clients match on it.
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

/// The HTTP status that a code means: its own number in `http_503`, else the first word of the
/// table that it contains, else 502, since the upstream failed rather than this server.
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
