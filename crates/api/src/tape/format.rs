//! Reads and writes the text of a tape.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use event::{Index, Object, Raw};
use redact::{Redactor, credential, is_secret_answer};
use serde_json::Value;
use std::time::Duration;

/// The maximum time between two lines, in seconds.
const DAY: f64 = 86_400.0;

/// Whether `text` is a tape rather than a raw body. It must be the start of a file, up to at least
/// the first line that is not a comment.
pub fn is_tape(text: &[u8]) -> bool {
    let first = text
        .split(|b| *b == b'\n')
        .map(<[u8]>::trim_ascii)
        .find(|line| !line.is_empty() && line[0] != b'#');
    let Some(rest) = first.and_then(|line| line.strip_prefix(b"{")) else {
        return false;
    };
    rest.trim_ascii_start()
        .strip_prefix(b"\"tape\"")
        .is_some_and(|rest| rest.trim_ascii_start().starts_with(b":"))
}

impl Tape {
    /// Parses the lines of a tape; see [`Tape::read`].
    pub(super) fn of_lines(text: &str) -> Result<Tape, TapeError> {
        let mut exchanges: Vec<TapeExchange> = vec![];
        let mut index = Index::default();
        for (number, line) in text.lines().enumerate() {
            let at = |what: String| TapeError {
                line: number + 1,
                what,
            };
            let line = line.trim_start_matches('\u{feff}').trim();
            if let Some(shape) = credential(line.as_bytes()) {
                return Err(at(refusal(shape)));
            }
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let value = Raw::indexed(line, &mut index)
                .map_err(|e| at(format!("not a JSON value ({e}), fix the line")))?;
            if value.is_object() {
                exchanges.push(header(value, number + 1).map_err(at)?);
                continue;
            }
            let Some(exchange) = exchanges.last_mut() else {
                return Err(at(
                    "this line comes before any header, begin the tape with {\"tape\":1,…}".into(),
                ));
            };
            piece(value, exchange).map_err(at)?;
        }
        for exchange in &exchanges {
            // A credential split between two reads is only visible once the pieces are joined.
            if let Some(shape) = credential(&exchange.body()) {
                return Err(TapeError {
                    line: exchange.line,
                    what: refusal(shape),
                });
            }
        }
        Ok(Tape {
            played: vec![false; exchanges.len()],
            exchanges,
            messages: None,
        })
    }
}

fn refusal(shape: &str) -> String {
    format!("holds what looks like a credential ({shape}), put [redacted] in its place")
}

impl TapeExchange {
    /// Appends the lines of this exchange, each with a line feed. Call [`TapeExchange::redact`]
    /// first.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut o = Object::open(out);
        o.int("tape", 1)
            .str("api", &self.api)
            .str("model", &self.model)
            .object("request", |o| {
                o.str("method", &self.request.method)
                    .str("url", &self.request.url);
                o.minified("body", &self.request.body.to_string())
                    .str("sha256", &self.request.sha256);
            });
        o.array("redactions", |a| {
            for path in &self.redactions {
                a.str(path);
            }
        });
        o.close();
        out.push(b'\n');
        if let Some(head) = &self.head {
            line(out, head.after, "head", |out| {
                let mut o = Object::open(out);
                o.int("status", head.status).object("headers", |o| {
                    for (name, value) in &head.headers {
                        o.str(name, value);
                    }
                });
                o.close();
            });
        }
        for read in &self.reads {
            match std::str::from_utf8(&read.bytes) {
                Ok(text) => line(out, read.after, "text", |out| event::push_string(out, text)),
                Err(_) => line(out, read.after, "bytes", |out| {
                    event::push_string(out, &STANDARD.encode(&read.bytes))
                }),
            }
        }
        if let Some((after, ending)) = self.end {
            line(out, after, "end", |out| {
                event::push_string(out, ending.name())
            });
        }
    }

    /// Returns all bytes of the response.
    pub fn body(&self) -> Vec<u8> {
        let reads: Vec<&[u8]> = self.reads.iter().map(|read| &read.bytes[..]).collect();
        reads.concat()
    }
}

impl TapeEnding {
    /// Returns the word for this ending on a tape.
    pub fn name(self) -> &'static str {
        match self {
            TapeEnding::Eof => "eof",
            TapeEnding::Reset => "reset",
            TapeEnding::Timeout => "timeout",
        }
    }
}

fn line(out: &mut Vec<u8>, after: Duration, kind: &str, value: impl FnOnce(&mut Vec<u8>)) {
    let micros = after.as_micros();
    let seconds = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    let seconds = seconds.trim_end_matches('0').trim_end_matches('.');
    out.extend_from_slice(format!("[{seconds},\"{kind}\",").as_bytes());
    value(out);
    out.extend_from_slice(b"]\n");
}

fn header(value: Raw<'_>, line: usize) -> Result<TapeExchange, String> {
    match value.get("tape").and_then(Raw::i64) {
        Some(1) => {}
        Some(n) => {
            return Err(format!(
                "tape version {n} is newer than this command, which reads version 1"
            ));
        }
        None => {
            return Err(
                "a header without \"tape\":1, begin each request with {\"tape\":1,…}".into(),
            );
        }
    }
    let text = |v: Raw<'_>, key: &str| v.get_str(key).unwrap_or_default().into_owned();
    let Some(request) = value.get("request").filter(|r| r.is_object()) else {
        return Err("a header without a \"request\" object, say what was asked".into());
    };
    let body = request
        .get("body")
        .map_or(Ok(Value::Null), |b| serde_json::from_str(b.text()));
    let body = body.map_err(|e| format!("the request's body cannot be read ({e}), fix it"))?;
    let redactions = value
        .get("redactions")
        .map(|r| r.items().filter_map(Raw::str).map(Into::into).collect());
    Ok(TapeExchange {
        line,
        api: text(value, "api"),
        model: text(value, "model"),
        request: RecordedRequest {
            method: text(request, "method"),
            url: text(request, "url"),
            body,
            sha256: text(request, "sha256"),
        },
        redactions: redactions.unwrap_or_default(),
        ..TapeExchange::default()
    })
}

fn piece(value: Raw<'_>, exchange: &mut TapeExchange) -> Result<(), String> {
    let shape = "not [SECONDS,\"head\"|\"text\"|\"bytes\"|\"end\",VALUE], fix the line";
    let items: Vec<Raw<'_>> = value.items().collect();
    let [time, kind, value] = items[..] else {
        return Err(shape.into());
    };
    let after = seconds(time)?;
    if exchange.end.is_some() {
        return Err(
            "this line comes after the end of its answer, give it a header of its own".into(),
        );
    }
    match (kind.str().as_deref(), value.str()) {
        (Some("head"), _) if exchange.head.is_some() || !exchange.reads.is_empty() => {
            return Err("a second head, or one after its body, give it a header of its own".into());
        }
        (Some("head"), _) => exchange.head = Some(head(value, after)?),
        (Some("text"), Some(text)) => exchange.reads.push(TapeRead {
            after,
            bytes: text.into_owned().into_bytes(),
        }),
        (Some("bytes"), Some(text)) => {
            let bytes = STANDARD
                .decode(text.as_bytes())
                .map_err(|e| format!("not base64 ({e}), fix the line"))?;
            exchange.reads.push(TapeRead { after, bytes });
        }
        (Some("end"), Some(word)) => {
            let ending = [TapeEnding::Eof, TapeEnding::Reset, TapeEnding::Timeout]
                .into_iter()
                .find(|e| e.name() == word);
            let ending =
                ending.ok_or_else(|| format!("an end \"{word}\", use eof, reset or timeout"))?;
            exchange.end = Some((after, ending));
        }
        _ => return Err(shape.into()),
    }
    Ok(())
}

fn head(value: Raw<'_>, after: Duration) -> Result<Head, String> {
    let status = value
        .get("status")
        .and_then(Raw::i64)
        .and_then(|n| u16::try_from(n).ok());
    let status = status
        .filter(|n| (100..600).contains(n))
        .ok_or("a head without an HTTP status, such as {\"status\":200}")?;
    let headers = value.get("headers").map(|h| {
        h.entries()
            .filter_map(|(name, v)| Some((name.to_ascii_lowercase(), v.str()?.into_owned())))
            .collect()
    });
    Ok(Head {
        after,
        status,
        headers: headers.unwrap_or_default(),
    })
}

fn seconds(value: Raw<'_>) -> Result<Duration, String> {
    match value.f64() {
        Some(n) if (0.0..=DAY).contains(&n) => Ok(Duration::from_micros((n * 1e6).round() as u64)),
        _ => Err(format!(
            "{} is no time, use seconds since the line before, from 0 to {DAY}",
            value.text()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAPE: &str = "# a comment\n\n{\"tape\":1,\"api\":\"ollama\",\"model\":\"m\",\"request\":{\"method\":\"POST\",\"url\":\"http://h/api/chat\",\
        \"body\":{\"model\":\"m\",\"n\":1.50},\"sha256\":\"ab\"},\"redactions\":[\"x\"]}\n\
        [0.412,\"head\",{\"status\":200,\"headers\":{\"content-type\":\"x/y\"}}]\n[0.031,\"text\",\"a\\n\\u001b€\"]\n[0,\"bytes\",\"4oI=\"]\n[2,\"end\",\"eof\"]\n";

    #[test]
    fn what_is_written_reads_the_same() {
        let tape = Tape::read(TAPE).unwrap();
        let exchange = &tape.exchanges[0];
        assert_eq!(exchange.reads[1].bytes, [0xe2, 0x82]);
        assert_eq!(
            exchange.head.as_ref().unwrap().header("content-type"),
            Some("x/y")
        );
        assert_eq!(
            exchange.end,
            Some((Duration::from_secs(2), TapeEnding::Eof))
        );
        let mut out = vec![];
        exchange.write(&mut out);
        let out = String::from_utf8(out).unwrap();
        assert_eq!(out, TAPE.trim_start_matches("# a comment\n\n"));
        assert!(
            is_tape(TAPE.as_bytes())
                && is_tape(b"\n{ \"tape\" : 1")
                && !is_tape(b"{\"type\":\"x\"}\n{\"tape\":1}")
                && !is_tape(b"")
        );
    }

    #[test]
    fn a_bad_line_is_named() {
        let header = "{\"tape\":1,\"request\":{}}\n";
        for (line, says) in [
            ("[-1,\"text\",\"x\"]", "-1 is no time"),
            ("[1e18,\"text\",\"x\"]", "1e18 is no time"),
            ("[NaN,\"text\",\"x\"]", "not a JSON value"),
            ("[\"1\",\"text\",\"x\"]", "is no time"),
            ("[0,\"bytes\",\"*\"]", "not base64"),
            ("[0,\"end\",\"later\"]", "an end \"later\""),
            ("[0,\"text\"]", "not [SECONDS"),
            ("[0,\"head\",{}]", "a head without an HTTP status"),
            ("{\"tape\":2,\"request\":{}}", "tape version 2"),
            ("{}", "without \"tape\":1"),
            (
                "[0,\"text\",\"key sk-proj-0123456789abcdefghij\"]",
                "looks like a credential (sk-…)",
            ),
            ("# Bearer abcdefghij0123456789", "looks like a credential"),
            ("[0,\"end\",\"eof\"]\n[0,\"text\",\"x\"]", "after the end"),
        ] {
            let e = Tape::read(&format!("{header}{line}\n")).unwrap_err();
            assert!(e.to_string().contains(says), "{line}: {e}");
            assert!(e.line >= 2);
        }
        assert_eq!(Tape::read("[0,\"text\",\"x\"]").unwrap_err().line, 1);
        let split =
            format!("{header}[0,\"text\",\"sk-proj-01234567\"]\n[0,\"text\",\"89abcdefghij\"]\n");
        assert_eq!(
            Tape::read(&split).unwrap_err().line,
            1,
            "a credential cut in two"
        );
    }
}

/// The exchanges of a tape, in order, and which of them were already played.
#[derive(Clone, Debug, Default)]
pub struct Tape {
    /// The recorded exchanges.
    pub exchanges: Vec<TapeExchange>,
    /// Which exchanges [`Tape::take`] has returned.
    pub(crate) played: Vec<bool>,
    /// The messages of a log; `None` if this is not a log.
    pub(crate) messages: Option<Vec<Value>>,
}

/// One request and its response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TapeExchange {
    /// The line number of its header on the tape, starting at 1; 0 if it is not yet on a tape.
    pub line: usize,
    /// The API's name.
    pub api: String,
    /// The requested model.
    pub model: String,
    /// The request.
    pub request: RecordedRequest,
    /// The redacted members, as paths such as `request.url?key` and `response.headers.set-cookie`.
    pub redactions: Vec<String>,
    /// The status and headers of the response; `None` if the connection failed before them.
    pub head: Option<Head>,
    /// The decompressed data of each read from the network, in order.
    pub reads: Vec<TapeRead>,
    /// The time since the previous line, and how the response ended; `None` if the tape has no end.
    pub end: Option<(Duration, TapeEnding)>,
    /// The request as recorded in a log; `None` on a tape.
    pub logged: Option<LoggedRequest>,
}

/// The request of an answer as recorded in a log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoggedRequest {
    /// The number of messages in the log before the answer.
    pub(super) messages: usize,
    /// The system prompt that is not one of the messages.
    pub(super) system: Option<Value>,
    /// The tools, in OpenAI's shape.
    pub(super) tools: Option<Value>,
}

/// A request as stored on a tape: without headers, because they contain the key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedRequest {
    /// `POST`.
    pub method: String,
    /// The URL, without credentials.
    pub url: String,
    /// The JSON body; `Null` if the tape only contains the hash.
    pub body: Value,
    /// The hash on the tape, used only if the body is missing; see `Canonical`.
    pub sha256: String,
}

/// The start of a response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Head {
    /// The time since the request was sent.
    pub after: Duration,
    /// The HTTP status.
    pub status: u16,
    /// The headers, with names in lower case, in the order received.
    pub headers: Vec<(String, String)>,
}

impl Head {
    /// Returns the first header with this name, given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    }
}

/// One read from the network.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TapeRead {
    /// The time since the previous line.
    pub after: Duration,
    /// The bytes received.
    pub bytes: Vec<u8>,
}

/// How the response's bytes ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapeEnding {
    /// The server closed the body.
    Eof,
    /// The connection was lost or could not be opened.
    Reset,
    /// No bytes arrived for too long.
    Timeout,
}

/// Why a text is not a valid tape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct TapeError {
    /// The line number, starting at 1.
    pub line: usize,
    /// What is wrong in that line, and what to do.
    pub what: String,
}

/// The response headers that are recorded. An allow-list, because no list could name every header
/// that contains a cookie, an account or an organisation. Encodings are omitted because bodies are
/// recorded decompressed.
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

impl TapeExchange {
    /// Replaces the secrets in the whole exchange, and appends the path of each to its
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

/// Returns a response header as it is recorded, or `None` if it is dropped.
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
mod exchange_tests {
    use super::*;
    use crate::tape::{Head, RecordedRequest, Tape, TapeRead};
    use serde_json::json;

    const CANARY: &str = "canary/7Q=z";

    fn planted() -> TapeExchange {
        TapeExchange {
            api: "openai-chat".into(),
            request: RecordedRequest {
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
            .map(|t| TapeRead {
                bytes: t.into(),
                ..TapeRead::default()
            })
            .to_vec(),
            ..TapeExchange::default()
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
