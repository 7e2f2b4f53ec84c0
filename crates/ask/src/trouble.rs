//! Describes a failed attempt to the user.

use api::{End, Stream};
use client::{AttemptTrouble, Error, ErrorKind};
use event::Sink;
use redact::Redactor;
use std::borrow::Cow;
use std::time::SystemTime;

/// Whether the server failed, so that another server may answer the same request: it cannot be
/// reached, is busy, or reports an internal error.
pub(crate) fn is_of_server(trouble: &AttemptTrouble) -> bool {
    match trouble {
        AttemptTrouble::Lost(error) => {
            !matches!(error.kind, ErrorKind::Deadline | ErrorKind::Forbidden)
        }
        AttemptTrouble::Refused(head, _) => matches!(head.status, 408 | 429 | 500..),
        AttemptTrouble::Miss(_) => false,
    }
}

/// Returns a sentence about what went wrong. `server` is as for [`sentence`].
pub(crate) fn message<'t>(trouble: &'t AttemptTrouble, server: Option<&str>) -> Cow<'t, str> {
    match trouble {
        AttemptTrouble::Lost(error) => Cow::Owned(sentence(error, server)),
        other => other.message(),
    }
}

/// Ends the stream with this failure as its error. `advice` is appended to the provider's message.
pub(crate) fn write(
    trouble: &AttemptTrouble,
    advice: Option<&str>,
    redactor: &Redactor,
    stream: &mut Stream,
    sink: &mut dyn Sink,
) {
    match trouble {
        AttemptTrouble::Lost(error) => stream.finish(end(error, stream.server()), sink),
        AttemptTrouble::Refused(head, _) if (300..400).contains(&head.status) => {
            let to = redactor.url(head.header("location").unwrap_or("nowhere"));
            let message = match stream.server() {
                Some(server) => {
                    format!("{server} redirects to another address, which is not followed")
                }
                None => format!(
                    "HTTP {}: redirected to {to}, which is not followed; if it is right, give it \
                     as --base-url",
                    head.status
                ),
            };
            stream.error("redirected", &message, false, sink);
        }
        AttemptTrouble::Refused(head, body) => {
            stream.retry_after(client::retry_after(head, SystemTime::now()));
            stream.error_body(head.status, body.as_bytes(), advice, sink);
        }
        AttemptTrouble::Miss(miss) => stream.error("tape_miss", &miss.to_string(), false, sink),
    }
}

// Network errors, with the option that helps.

/// Returns a sentence that says what to do and what happened. For a client of a service, `server`
/// is the name of the server that failed, and no option is mentioned, since the client cannot set
/// any.
pub fn sentence(error: &Error, server: Option<&str>) -> String {
    if let Some(server) = server {
        return sentence_for_client(error.kind, &error.to_string(), server);
    }
    // The remedy precedes the address and the system's message, so that it is visible on a terminal
    // of 80 columns.
    let remedy = match error.kind {
        ErrorKind::ConnectTimeout => "check the address in --base-url and the network",
        ErrorKind::UnknownName => "check the name in --base-url, and the network",
        ErrorKind::Refused => "start the server, or correct the port in --base-url",
        ErrorKind::Unreachable => "check the network",
        ErrorKind::PlainHttp => "if the server speaks plain HTTP, write http:// in --base-url",
        ErrorKind::Certificate => {
            "check the name in --base-url and the clock, and name a private authority's \
             certificates with SSL_CERT_FILE"
        }
        ErrorKind::Tls => "check that the port in --base-url speaks TLS",
        ErrorKind::MaybeTls => "if the server speaks TLS, write https:// in --base-url",
        ErrorKind::Connect => "check --base-url",
        _ => "",
    };
    let option = match error.kind {
        ErrorKind::ConnectTimeout => " (--connect-timeout)",
        ErrorKind::Idle => " (--idle-timeout)",
        ErrorKind::Deadline => " (--timeout)",
        ErrorKind::Injected => " by --error-at",
        _ => "",
    };
    let colon = if remedy.is_empty() { "" } else { ": " };
    format!("{remedy}{colon}{error}{option}")
}

/// Returns a sentence for a client, with the server's name. It shows only the host of the server's
/// address, since the path may contain a secret.
fn sentence_for_client(kind: ErrorKind, what: &str, server: &str) -> String {
    let word = |word: &str| {
        let Some(at) = ["http://", "https://"]
            .iter()
            .find_map(|scheme| word.find(scheme))
        else {
            return word.to_owned();
        };
        let end = word.trim_end_matches([':', ',', ';', ')']).len();
        format!("{}{server}{}", &word[..at], &word[end..])
    };
    let what = what.split(' ').map(word).collect::<Vec<_>>().join(" ");
    let what = if what.contains(server) {
        what
    } else {
        format!("{server}: {what}")
    };
    let is_guarded = matches!(kind, ErrorKind::Forbidden | ErrorKind::Exposed);
    let is_address = kind.is_before_sending() && !is_guarded;
    let remedy = if is_address {
        "; tc-serve asks this server by its --base-url"
    } else {
        ""
    };
    format!("{what}{remedy}")
}

/// Returns the end of a stream whose rest was lost because of `error`. `server` is as for
/// [`sentence`].
pub fn end(error: &Error, server: Option<&str>) -> End {
    let sentence = sentence(error, server);
    if error.is_timeout() {
        End::Timeout(sentence)
    } else {
        End::Reset(sentence)
    }
}

#[cfg(test)]
mod lost_tests {
    use super::*;

    #[test]
    fn a_client_reads_the_host_of_the_server_and_nothing_else_of_its_address() {
        let remedy = "; tc-serve asks this server by its --base-url";
        for (kind, message, want) in [
            (
                ErrorKind::Refused,
                "no connection to http://h:1/v1/SECRET: refused",
                "no connection to h:1: refused",
            ),
            (
                ErrorKind::Lost,
                "the connection to https://h:1/key was lost: reset",
                "the connection to h:1 was lost: reset",
            ),
            (
                ErrorKind::Idle,
                "nothing came for 5s",
                "h:1: nothing came for 5s",
            ),
        ] {
            let want = format!(
                "{want}{}",
                if kind == ErrorKind::Refused {
                    remedy
                } else {
                    ""
                }
            );
            assert_eq!(sentence_for_client(kind, message, "h:1"), want);
        }
    }
}
