//! Taking credentials out of whatever leaves: tapes, events about trouble, messages. And noticing them in what is read.
//!
//! Three nets, one behind the other: fields that hold credentials by their name (headers, query parameters, members of the
//! body), the very keys that this process was given, and texts that have the shape of a well-known kind of key.

mod names;
mod shape;
mod spelling;

pub use names::{is_secret_header, is_secret_parameter};
pub use shape::credential;

use crate::tape::{Exchange, Read};
use base64::Engine;
use names::{is_secret_answer, is_secret_member};
use serde_json::{Map, Value};
use shape::shapes;
use spelling::Spellings;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// What stands in the place of a credential.
pub const REDACTED: &str = "[redacted]";

/// Response headers that are recorded. All others are left out: nobody can list every name under which a cookie, an account or
/// an organisation travels. Encodings are left out because bodies are recorded decoded.
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

/// Takes credentials out. All ways out of a command share one.
#[derive(Clone, Default)]
pub struct Redactor {
    secrets: Arc<Spellings>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").field("secrets", &self.secrets.count()).finish()
    }
}

impl Redactor {
    /// `secrets` are the keys that this process knows; they are taken out wherever they stand, whatever their shape and however
    /// they are escaped. One of fewer than six bytes would be found in any text, and is left out.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Redactor {
        Redactor { secrets: Arc::new(Spellings::new(secrets)) }
    }

    /// Redacts a whole exchange and lists what was taken out in its `redactions`.
    pub fn exchange(&self, exchange: &mut Exchange) {
        let mut paths = std::mem::take(&mut exchange.redactions);
        exchange.request.url = self.url(&exchange.request.url, "request.url", &mut paths);
        exchange.request.body = self.json(&exchange.request.body, "request.body", &mut paths);
        if let Some(head) = &mut exchange.head {
            head.headers =
                std::mem::take(&mut head.headers).into_iter().filter_map(|h| self.header(h, &mut paths)).collect();
        }
        if self.reads(&mut exchange.reads) {
            paths.push("response.body".to_owned());
        }
        exchange.redactions = paths;
    }

    /// `value` without credentials; the paths of what was taken out are appended, below `path`.
    pub fn json(&self, value: &Value, path: &str, paths: &mut Vec<String>) -> Value {
        match value {
            Value::String(text) => {
                let clean = self.text(text);
                if clean != *text {
                    paths.push(path.to_owned());
                }
                Value::String(clean.into_owned())
            }
            Value::Array(items) => {
                items.iter().enumerate().map(|(at, item)| self.json(item, &format!("{path}[{at}]"), paths)).collect()
            }
            Value::Object(members) => {
                let mut clean = Map::new();
                for (key, member) in members {
                    let path = format!("{path}.{key}");
                    let member = if member.is_string() && is_secret_member(key) {
                        paths.push(path);
                        Value::from(REDACTED)
                    } else {
                        self.json(member, &path, paths)
                    };
                    clean.insert(self.text(key).into_owned(), member);
                }
                Value::Object(clean)
            }
            other => other.clone(),
        }
    }

    /// `text` without credentials.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let found = self.found(text.as_bytes());
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let clean = without(text.as_bytes(), 0..text.len(), &found);
        // What is taken out is ASCII or a whole key, so the rest is still UTF-8.
        Cow::Owned(String::from_utf8(clean).unwrap_or_else(|_| REDACTED.to_owned()))
    }

    /// A JSON value on one line without credentials, in whatever way its strings are escaped.
    pub fn json_text<'t>(&self, json: &'t str) -> Cow<'t, str> {
        let mut paths = vec![];
        match serde_json::from_str(json) {
            Ok(value) => {
                let clean = self.json(&value, "", &mut paths);
                if paths.is_empty() { Cow::Borrowed(json) } else { Cow::Owned(clean.to_string()) }
            }
            // Nested too deeply for a tree.
            Err(_) => self.text(json),
        }
    }

    /// `url` without a user's name and password and without the values of parameters that are named like credentials.
    pub fn url(&self, url: &str, path: &str, paths: &mut Vec<String>) -> String {
        let clean = self.text(url);
        if clean != url {
            paths.push(path.to_owned());
        }
        let (front, rest) = clean.split_at(clean.find(['?', '#']).unwrap_or(clean.len()));
        let mut out = front.to_owned();
        if let Some(start) = front.find("//").map(|at| at + 2) {
            let end = front[start..].find('/').map_or(front.len(), |at| start + at);
            if let Some(at) = front[start..end].rfind('@') {
                out = format!("{}{REDACTED}{}", &front[..start], &front[start + at..]);
                paths.push(format!("{path}@"));
            }
        }
        for pair in rest.split_inclusive(['?', '#', '&', ';']) {
            // The mark that ends a pair follows it.
            let (pair, mark) = pair.split_at(pair.trim_end_matches(['?', '#', '&', ';']).len());
            match pair.split_once('=') {
                Some((name, _)) if is_secret_parameter(name) => {
                    out.push_str(&format!("{name}={REDACTED}"));
                    paths.push(format!("{path}?{name}"));
                }
                _ => out.push_str(pair),
            }
            out.push_str(mark);
        }
        out
    }

    fn header(&self, (name, value): (String, String), paths: &mut Vec<String>) -> Option<(String, String)> {
        if is_secret_answer(&name) {
            paths.push(format!("response.headers.{name}"));
            return None;
        }
        if !KEPT_HEADERS.contains(&name.as_str()) && !name.contains("ratelimit") {
            return None;
        }
        let path = format!("response.headers.{name}");
        let value = if name == "location" { self.url(&value, &path, paths) } else { self.text(&value).into_owned() };
        Some((name, value))
    }

    /// Takes credentials out of bytes that came in pieces; one may lie over several of them. Gives whether there was any.
    fn reads(&self, reads: &mut [Read]) -> bool {
        let all: Vec<u8> = reads.iter().flat_map(|r| &r.bytes).copied().collect();
        let found = self.found(&all);
        if found.is_empty() {
            return false;
        }
        let mut start = 0;
        for read in reads {
            let end = start + read.bytes.len();
            read.bytes = without(&all, start..end, &found);
            start = end;
        }
        true
    }

    /// Where credentials stand, sorted by their start.
    fn found(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut found = self.secrets.find(bytes);
        found.extend(shapes(bytes).map(|(kind, range)| keep_scheme(kind, range)));
        found.sort_by_key(|r| (r.start, usize::MAX - r.end));
        found
    }
}

/// The secrets that the credential of `Authorization: Basic` encodes: a user's name with a password, and the password.
pub fn basic(credential: &str) -> Vec<String> {
    let decoded =
        base64::engine::general_purpose::STANDARD.decode(credential).ok().and_then(|b| String::from_utf8(b).ok());
    let password = decoded.as_ref().and_then(|pair| Some(pair.split_once(':')?.1.to_owned()));
    decoded.into_iter().chain(password).collect()
}

/// The word `Bearer` stays, so that one sees what was there.
fn keep_scheme(kind: &str, range: Range<usize>) -> Range<usize> {
    if kind == "Bearer …" { range.start + "Bearer ".len()..range.end } else { range }
}

/// The bytes of `piece` that lie in none of `found` (sorted by start), with a mark where one of these begins.
fn without(all: &[u8], piece: Range<usize>, found: &[Range<usize>]) -> Vec<u8> {
    let mut out = vec![];
    let mut at = piece.start;
    let mut covered = 0;
    for range in found {
        if range.start >= piece.end {
            break;
        }
        if range.end <= covered {
            continue; // inside the one before
        }
        if range.start >= piece.start && range.start >= covered {
            out.extend_from_slice(&all[at.min(range.start)..range.start]);
            out.extend_from_slice(REDACTED.as_bytes());
        }
        covered = range.end;
        at = at.max(covered.min(piece.end));
    }
    out.extend_from_slice(&all[at..piece.end]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::{Head, Request, Tape};
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
            .map(|t| Read { bytes: t.into(), ..Read::default() })
            .to_vec(),
            ..Exchange::default()
        }
    }

    #[test]
    fn a_canary_is_found_nowhere_and_the_tape_loads() {
        let mut exchange = planted();
        Redactor::new([CANARY.to_owned()]).exchange(&mut exchange);
        let mut out = vec![];
        exchange.write(&mut out);
        let out = String::from_utf8(out).unwrap();
        assert!(
            !out.contains("canary") && !out.contains("t0k") && !out.contains("org-1") && !out.contains("abcdef"),
            "{out}"
        );
        assert_eq!(
            String::from_utf8(exchange.body()).unwrap(),
            "data: [redacted] and [redacted]\\n[redacted] Bearer [redacted]"
        );
        assert_eq!(exchange.request.url, "https://[redacted]@host/v1?key=[redacted]&x=1&echo=[redacted]");
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
            assert!(exchange.redactions.iter().any(|p| p == path), "{path} is not in {:?}", exchange.redactions);
        }
        assert!(Tape::read(&out).is_ok());
    }

    #[test]
    fn ordinary_text_stays() {
        let text = "task-management-system-for-users 2024, a bearer of bad news, sk-learn-is-a-library-name, AIza, desk-0123456789012345, Bearer authentication-is-used";
        assert_eq!(Redactor::default().text(text), text);
    }
}
