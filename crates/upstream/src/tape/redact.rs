//! Taking credentials out of what is recorded, and noticing them in what is read.
//!
//! Three nets, one behind the other: fields that hold credentials by their name (headers, query parameters, members of the
//! body), the very keys that this process was given, and texts that have the shape of a well-known kind of key.

use super::{Exchange, Read, shape::shapes};
use serde_json::{Map, Value};
use std::ops::Range;

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

/// Names of query parameters and of JSON members (compared without `-`, `_` and case) whose texts are credentials.
const SECRET_NAMES: [&str; 16] = [
    "accesstoken",
    "apikey",
    "authorization",
    "authorizationtoken",
    "clientsecret",
    "cookie",
    "key",
    "password",
    "proxyauthorization",
    "refreshtoken",
    "secret",
    "setcookie",
    "sig",
    "signature",
    "token",
    "xapikey",
];

/// Of those, the ones that are too common in a conversation to be taken for credentials in a JSON body. (`signature` is what
/// providers call the proof of a reasoning block, which must go back unchanged.)
const PLAIN_IN_BODIES: [&str; 4] = ["key", "sig", "signature", "token"];

/// Takes credentials out of what goes to a tape.
#[derive(Clone, Default)]
pub struct Redactor {
    secrets: Vec<String>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").field("secrets", &self.secrets.len()).finish()
    }
}

impl Redactor {
    /// `secrets` are the keys that this process knows; they are taken out wherever they stand, whatever their shape.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Redactor {
        // Shorter ones would be found in any text; a real key is never that short.
        Redactor { secrets: secrets.into_iter().filter(|s| s.len() >= 6).collect() }
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
                Value::String(clean)
            }
            Value::Array(items) => {
                items.iter().enumerate().map(|(at, item)| self.json(item, &format!("{path}[{at}]"), paths)).collect()
            }
            Value::Object(members) => {
                let mut clean = Map::new();
                for (key, member) in members {
                    let path = format!("{path}.{key}");
                    let secret =
                        member.is_string() && secret_name(key) && !PLAIN_IN_BODIES.contains(&plain(key).as_str());
                    let member = if secret {
                        paths.push(path);
                        Value::from(REDACTED)
                    } else {
                        self.json(member, &path, paths)
                    };
                    clean.insert(self.text(key), member);
                }
                Value::Object(clean)
            }
            other => other.clone(),
        }
    }

    /// `text` without credentials.
    pub fn text(&self, text: &str) -> String {
        let mut pieces = [Read { bytes: text.as_bytes().to_vec(), ..Read::default() }];
        self.reads(&mut pieces);
        let [Read { bytes, .. }] = pieces;
        // What is taken out is ASCII or a whole key, so the rest is still UTF-8.
        String::from_utf8(bytes).unwrap_or_else(|_| REDACTED.to_owned())
    }

    /// `url` without a user's name and password and without the values of parameters that are named like credentials.
    pub fn url(&self, url: &str, path: &str, paths: &mut Vec<String>) -> String {
        let clean = self.text(url);
        if clean != url {
            paths.push(path.to_owned());
        }
        let (front, query) = clean.split_once('?').map_or((&*clean, None), |(front, query)| (front, Some(query)));
        let mut out = front.to_owned();
        if let Some((scheme, rest)) = front.split_once("://")
            && let Some((user, _)) = rest.split_once('/').map_or(rest, |(host, _)| host).rsplit_once('@')
        {
            out = format!("{scheme}://{REDACTED}{}", &rest[user.len()..]);
            paths.push(format!("{path}@"));
        }
        for (at, pair) in query.into_iter().flat_map(|q| q.split('&')).enumerate() {
            out.push(if at == 0 { '?' } else { '&' });
            match pair.split_once('=') {
                Some((name, _)) if secret_name(name) => {
                    out.push_str(&format!("{name}={REDACTED}"));
                    paths.push(format!("{path}?{name}"));
                }
                _ => out.push_str(pair),
            }
        }
        out
    }

    fn header(&self, (name, value): (String, String), paths: &mut Vec<String>) -> Option<(String, String)> {
        if secret_name(&name) {
            paths.push(format!("response.headers.{name}"));
            return None;
        }
        if !KEPT_HEADERS.contains(&name.as_str()) && !name.contains("ratelimit") {
            return None;
        }
        let path = format!("response.headers.{name}");
        let value = if name == "location" { self.url(&value, &path, paths) } else { self.text(&value) };
        Some((name, value))
    }

    /// Takes credentials out of bytes that came in pieces; one may lie over several of them. Gives whether there was any.
    fn reads(&self, reads: &mut [Read]) -> bool {
        let all: Vec<u8> = reads.iter().flat_map(|r| &r.bytes).copied().collect();
        let mut found: Vec<Range<usize>> = shapes(&all).map(|(kind, range)| keep_scheme(kind, range)).collect();
        for secret in &self.secrets {
            let quoted = event::quoted(secret);
            for form in [secret.as_str(), &quoted[1..quoted.len() - 1], &percent(secret)] {
                found.extend(find_all(&all, form.as_bytes()).map(|at| at..at + form.len()));
            }
        }
        if found.is_empty() {
            return false;
        }
        found.sort_by_key(|r| (r.start, usize::MAX - r.end));
        let mut start = 0;
        for read in reads {
            let end = start + read.bytes.len();
            read.bytes = without(&all, start..end, &found);
            start = end;
        }
        true
    }
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

fn find_all<'b>(bytes: &'b [u8], word: &'b [u8]) -> impl Iterator<Item = usize> + 'b {
    bytes.windows(word.len()).enumerate().filter(move |(_, w)| *w == word).map(|(at, _)| at)
}

fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

fn secret_name(name: &str) -> bool {
    let name = plain(name);
    SECRET_NAMES.contains(&name.as_str()) || ["xamzsignature", "xgoogsignature", "xgoogapikey"].contains(&name.as_str())
}

fn percent(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'~');
    text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
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
                url: format!("https://me:{CANARY}@host/v1?key={CANARY}&x=1&echo={}", percent(CANARY)),
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
