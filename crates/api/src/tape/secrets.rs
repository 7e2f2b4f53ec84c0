//! Secrets taken out of an exchange before it goes onto a tape.

use super::exchange::Exchange;
use redact::{Redactor, is_secret_answer};

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
