//! A failed attempt in the words of this command.

use crate::lost::{end, sentence};
use api::Stream;
use client::Trouble;
use event::Sink;
use redact::Redactor;
use std::borrow::Cow;
use std::time::SystemTime;

/// A sentence about what went wrong.
pub fn message(trouble: &Trouble) -> Cow<'_, str> {
    match trouble {
        Trouble::Lost(error) => Cow::Owned(sentence(error, None)),
        other => other.message(),
    }
}

/// Ends the stream with this trouble as its error. `advice` follows the provider's message.
pub fn write(
    trouble: &Trouble,
    advice: Option<&str>,
    redactor: &Redactor,
    stream: &mut Stream,
    sink: &mut dyn Sink,
) {
    match trouble {
        Trouble::Lost(error) => stream.finish(end(error, stream.server()), sink),
        Trouble::Refused(head, _) if (300..400).contains(&head.status) => {
            let to = redactor.url(head.header("location").unwrap_or("nowhere"));
            let message = match stream.server() {
                Some(server) => {
                    format!("{server} redirects to another address, which is not followed")
                }
                None => format!(
                    "HTTP {}: redirected to {to}, which is not followed; if it is right, give it as --base-url",
                    head.status
                ),
            };
            stream.error("redirected", &message, false, sink);
        }
        Trouble::Refused(head, body) => {
            stream.retry_after(client::retry_after(head, SystemTime::now()));
            stream.error_body(head.status, body.as_bytes(), advice, sink);
        }
        Trouble::Miss(miss) => stream.error("tape_miss", &miss.to_string(), false, sink),
    }
}
