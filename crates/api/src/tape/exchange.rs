//! What is on a tape.

use redact::{Redactor, is_secret_answer};
use serde_json::Value;
use std::time::Duration;

/// The exchanges of a tape in their order, and which of them were played already.
#[derive(Clone, Debug, Default)]
pub struct Tape {
    /// The recorded exchanges.
    pub exchanges: Vec<Exchange>,
    /// Which exchanges [`Tape::take`] gave out.
    pub(crate) played: Vec<bool>,
}

/// One request and what came back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exchange {
    /// The 1-based line of its header on the tape; 0 for one that is not yet on a tape.
    pub line: usize,
    /// The API's name.
    pub api: String,
    /// The requested model.
    pub model: String,
    /// The request.
    pub request: Request,
    /// The redacted members, as paths such as `request.url?key` and `response.headers.set-cookie`.
    pub redactions: Vec<String>,
    /// Status and headers of the answer; `None` when the connection failed before.
    pub head: Option<Head>,
    /// The reads from the network, decompressed, in order.
    pub reads: Vec<Read>,
    /// How it ended and how long after the line before; `None` if the tape has no end.
    pub end: Option<(Duration, Ending)>,
}

/// A request as a tape has it: without headers, since those carry the key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// `POST`.
    pub method: String,
    /// Without credentials.
    pub url: String,
    /// The JSON body; `Null` when a tape leaves it out and names only the hash.
    pub body: Value,
    /// The hash on the tape, which counts only when the body is left out; see [`Canonical`].
    pub sha256: String,
}

/// How an answer began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Head {
    /// Since the request was sent.
    pub after: Duration,
    /// The HTTP status.
    pub status: u16,
    /// Names in lower case, in the order received.
    pub headers: Vec<(String, String)>,
}

impl Head {
    /// The first header of this name (in lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    }
}

/// One read from the network.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Read {
    /// Since the line before.
    pub after: Duration,
    /// What came.
    pub bytes: Vec<u8>,
}

/// How the answer's bytes ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The server closed the body.
    Eof,
    /// The connection broke, or could not be made.
    Reset,
    /// Nothing came for too long.
    Timeout,
}

/// Why a text is not a tape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct TapeError {
    /// 1-based.
    pub line: usize,
    /// What is wrong there and what to do.
    pub what: String,
}

/// Response headers that are recorded. All others are dropped: a list of every name under which a
/// cookie, an account or an organisation travels. Encodings are left out because bodies are
/// recorded decoded.
const KEPT_HEADERS: [&str; 10] = [
    "content-type",
    "date",
    "location",
    "openai-processing-ms",
    "openai-version",
    "request-id",
    "retry-after",
    "retry-after-ms",
    "server",
    "x-request-id",
];

impl Exchange {
    /// Takes the secrets out of the whole exchange and appends the path of each to its
    /// `redactions`.
    pub fn redact(&mut self, redactor: &Redactor) {
        let paths = &mut self.redactions;
        self.request.url = redactor.url_at(&self.request.url, "request.url", paths);
        self.request.body = redactor.json_at(&self.request.body, "request.body", paths);
        if let Some(head) = &mut self.head {
            let headers = std::mem::take(&mut head.headers).into_iter();
            head.headers = headers
                .filter_map(|header| recorded(header, redactor, paths))
                .collect();
        }
        let mut pieces: Vec<&mut Vec<u8>> =
            self.reads.iter_mut().map(|read| &mut read.bytes).collect();
        if redactor.pieces(&mut pieces) {
            paths.push("response.body".to_owned());
        }
    }
}

/// A response header as it is recorded, if it is.
fn recorded(
    (name, value): (String, String),
    redactor: &Redactor,
    paths: &mut Vec<String>,
) -> Option<(String, String)> {
    let path = format!("response.headers.{name}");
    if is_secret_answer(&name) {
        paths.push(path);
        return None;
    }
    if !KEPT_HEADERS.contains(&name.as_str()) && !name.contains("ratelimit") {
        return None;
    }
    let value = if name == "location" {
        redactor.url_at(&value, &path, paths)
    } else {
        redactor.text(&value).into_owned()
    };
    Some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::{Head, Read, Request, Tape};
    use serde_json::json;

    const CANARY: &str = "canary/7Q=z";

    fn planted() -> Exchange {
        Exchange {
            api: "openai-chat".into(),
            request: Request {
                method: "POST".into(),
                url: format!(
                    "https://me:{CANARY}@host/v1?key={CANARY}&x=1&echo={}",
                    CANARY.replace('/', "%2F").replace('=', "%3d")
                ),
                body: json!({"messages":[{"role":"user","content":format!("my key is {CANARY}!")}], "tools":[{"authorization_token":"t0k", "parameters":{"properties":{"password":{"type":"string"}}}}],
                    format!("k{CANARY}"): 1}),
                sha256: String::new(),
            },
            head: Some(Head {
                status: 200,
                headers: [
                    ("set-cookie", CANARY),
                    ("x-request-id", CANARY),
                    ("openai-organization", "org-1"),
                    ("content-type", "a/b"),
                    ("location", "http://h/?token=5"),
                ]
                .map(|(n, v)| (n.to_owned(), v.to_owned()))
                .to_vec(),
                ..Head::default()
            }),
            reads: [
                "data: canary/",
                "7Q",
                "=z and sk-ant-api03-",
                "0123456789abcdef\\nsk-aaaaaaaaaaaaaaaaaaaaaaaa",
                " Bearer 0123456789abcdef",
            ]
            .map(|t| Read {
                bytes: t.into(),
                ..Read::default()
            })
            .to_vec(),
            ..Exchange::default()
        }
    }

    #[test]
    fn a_canary_is_found_nowhere_and_the_tape_loads() {
        let mut exchange = planted();
        exchange.redact(&Redactor::new([CANARY.to_owned()]));
        let mut out = vec![];
        exchange.write(&mut out);
        let out = String::from_utf8(out).unwrap();
        assert!(
            !out.contains("canary")
                && !out.contains("t0k")
                && !out.contains("org-1")
                && !out.contains("abcdef"),
            "{out}"
        );
        assert_eq!(
            String::from_utf8(exchange.body()).unwrap(),
            "data: [redacted] and [redacted]\\n[redacted] Bearer [redacted]"
        );
        assert_eq!(
            exchange.request.url,
            "https://[redacted]@host/v1?key=[redacted]&x=1&echo=[redacted]"
        );
        for path in [
            "request.url@",
            "request.url?key",
            "request.url",
            "request.body.messages[0].content",
            "request.body.tools[0].authorization_token",
            "response.headers.set-cookie",
            "response.headers.location?token",
            "response.body",
        ] {
            assert!(
                exchange.redactions.iter().any(|p| p == path),
                "{path} is not in {:?}",
                exchange.redactions
            );
        }
        assert!(Tape::read(&out).is_ok());
    }
}
