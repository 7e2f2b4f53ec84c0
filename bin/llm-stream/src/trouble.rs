//! Why an attempt failed before anything was written, and what follows from it.

use crate::out::{Clock, Out};
use crate::retry::{self, Wait};
use redact::Redactor;
use std::borrow::Cow;
use std::time::SystemTime;
use upstream::tape::{Head, Miss};
use upstream::{End, Stream, error_message, is_context_overflow, refuses_tools};

/// Why an attempt failed before anything was written.
pub enum Trouble {
    /// The connection ended before the first event.
    Broken(End),
    /// The answer's status is not a success.
    Refused(Head, String),
    /// The tape has no answer.
    Miss(Miss),
}

impl Trouble {
    /// The wait before the same is asked again after attempt `attempt`; `None` where that would not help.
    pub fn wait(&self, attempt: u32) -> Option<Wait> {
        let wait = |head: Option<&Head>| {
            Wait::new(attempt, |name| head.and_then(|h| h.header(name)), SystemTime::now(), retry::chance())
        };
        match self {
            Trouble::Broken(End::Reset(_) | End::Timeout(_)) => Some(wait(None)),
            Trouble::Refused(head, body)
                if retry::may_retry(head.status) && !is_context_overflow(head.status, body.as_bytes()) =>
            {
                Some(wait(Some(head)))
            }
            _ => None,
        }
    }

    /// What went wrong, in a sentence.
    pub fn message(&self) -> Cow<'_, str> {
        match self {
            Trouble::Broken(End::Reset(why) | End::Timeout(why)) => Cow::Borrowed(why),
            Trouble::Broken(End::Eof | End::Cancelled) => Cow::Borrowed("the response was empty"),
            Trouble::Refused(head, body) => Cow::Owned(error_message(head.status, body.as_bytes())),
            Trouble::Miss(miss) => Cow::Owned(miss.to_string()),
        }
    }

    /// What the provider said, if it takes no tools.
    pub fn refuses_tools(&self) -> Option<String> {
        let Trouble::Refused(head, body) = self else { return None };
        refuses_tools(head.status, body)
    }

    /// Whether the provider would answer if it were not asked for a stream.
    pub fn refuses_streaming(&self) -> bool {
        let Trouble::Refused(head, body) = self else { return false };
        match head.status {
            405 | 501 => true,
            400 | 403 | 404 | 406 | 415 | 422 => {
                let body = body.to_lowercase().replace("upstream", "").replace("downstream", "");
                body.contains("stream") && REFUSALS.iter().any(|word| body.contains(word))
            }
            _ => false,
        }
    }

    /// Ends the stream with this as its error. `advice` follows the provider's message.
    pub fn write(&self, advice: Option<&str>, redactor: &Redactor, stream: &mut Stream, out: &mut Out) {
        let clock = Clock::default();
        let sink = &mut clock.sink(None, out);
        match self {
            Trouble::Broken(end) => stream.finish(end.clone(), sink),
            Trouble::Refused(head, _) if (300..400).contains(&head.status) => {
                let to = redactor.url(head.header("location").unwrap_or("nowhere"));
                let message = format!(
                    "HTTP {}: redirected to {to}, which is not followed; if it is right, give it as --base-url",
                    head.status
                );
                stream.error("redirected", &message, false, sink);
            }
            Trouble::Refused(head, body) => stream.error_body(head.status, body.as_bytes(), advice, sink),
            Trouble::Miss(miss) => stream.error("tape_miss", &miss.to_string(), false, sink),
        }
    }
}

/// Words with which servers say that they do not stream, or do not know a member that asks for it.
const REFUSALS: [&str; 15] = [
    "not support",
    "n't support",
    "unsupported",
    "not available",
    "unavailable",
    "not allowed",
    "not permitted",
    "not enabled",
    "disabled",
    "not implemented",
    "unknown",
    "unrecognized",
    "verified to stream",
    "cannot stream",
    "must be false",
];
