//! Why an attempt failed before anything of its answer was used, and what follows from that.

use crate::{Error, Wait, retry};
use api::tape::{Head, Miss};
use api::{error_message, is_context_overflow, refuses_tools};
use std::borrow::Cow;
use std::time::SystemTime;

/// Why an attempt failed before anything of its answer was used.
#[derive(Debug)]
pub enum Trouble {
    /// The connection was lost before the first event.
    Lost(Error),
    /// The answer's status is not a success; its body follows, without secrets.
    Refused(Head, String),
    /// The tape that is replayed has no answer to this request.
    Miss(Miss),
}

impl Trouble {
    /// The wait before the request is sent again after attempt `attempt` (from 1); `None` if
    /// another attempt would fail in the same way.
    pub fn wait(&self, attempt: u32) -> Option<Wait> {
        let wait = |head: Option<&Head>| {
            Wait::new(
                attempt,
                |name| head.and_then(|h| h.header(name)),
                SystemTime::now(),
                retry::chance(),
            )
        };
        match self {
            Trouble::Lost(_) => Some(wait(None)),
            Trouble::Refused(head, body)
                if retry::may_retry(head.status)
                    && !is_context_overflow(head.status, body.as_bytes()) =>
            {
                Some(wait(Some(head)))
            }
            _ => None,
        }
    }

    /// Whether the connection was lost, and not by a time that passed.
    pub fn is_lost_connection(&self) -> bool {
        matches!(self, Trouble::Lost(error) if !error.is_timeout())
    }

    /// Whether the same request may succeed later.
    pub fn may_pass(&self) -> bool {
        self.wait(1).is_some()
    }

    /// A sentence about what went wrong.
    pub fn message(&self) -> Cow<'_, str> {
        match self {
            Trouble::Lost(error) => Cow::Owned(error.to_string()),
            Trouble::Refused(head, body) => Cow::Owned(error_message(head.status, body.as_bytes())),
            Trouble::Miss(miss) => Cow::Owned(miss.to_string()),
        }
    }

    /// The provider's message if it refuses tools, else `None`.
    pub fn refuses_tools(&self) -> Option<String> {
        let Trouble::Refused(head, body) = self else {
            return None;
        };
        refuses_tools(head.status, body)
    }

    /// Whether the provider seems to refuse streaming, by its status and the words of its body. If
    /// so, the same request without streaming may succeed.
    pub fn refuses_streaming(&self) -> bool {
        let Trouble::Refused(head, body) = self else {
            return false;
        };
        match head.status {
            405 | 501 => true,
            400 | 403 | 404 | 406 | 415 | 422 => {
                let body = body
                    .to_lowercase()
                    .replace("upstream", "")
                    .replace("downstream", "");
                body.contains("stream") && REFUSALS.iter().any(|word| body.contains(word))
            }
            _ => false,
        }
    }
}

/// Phrases in the messages of servers that refuse streaming, or the member of the body that asks
/// for it.
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
