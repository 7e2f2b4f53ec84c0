//! Removes secrets from everything that a command outputs: tapes, `error` and `warning` events,
//! tool results, messages on standard error.
//!
//! One [`Redactor`] serves all outputs and applies three filters: it removes the values of fields
//! whose name is that of a credential (headers, query parameters, members of a body), the keys that
//! this process was given, and texts in the format of a well-known kind of key. The caller passes
//! the secrets in; this crate reads neither the environment nor files, and does not decide what is
//! output.

mod environment;
mod names;
mod shape;
mod spelling;

pub use names::{is_secret_answer, is_secret_header, is_secret_parameter};
pub use shape::credential;

use base64::Engine;
use names::is_secret_member;
use serde_json::{Map, Value};
use shape::{begun_shape, shapes};
use spelling::SecretSpellings;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// The text that replaces a secret.
pub const REDACTED: &str = "[redacted]";

/// Removes secrets from texts, JSON and URLs. Cheap to clone, so all outputs of a command share one
/// redactor.
#[derive(Clone, Default)]
pub struct Redactor {
    secrets: Arc<SecretSpellings>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor")
            .field("secrets", &self.secrets.count())
            .finish()
    }
}

impl Redactor {
    /// Creates a redactor for `secrets`, the keys of this process. They are found in any format and
    /// in any escaping. Secrets shorter than six bytes are ignored, because they would match
    /// ordinary text. A long line of a secret with several lines counts as a secret of its own.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Redactor {
        Redactor {
            secrets: Arc::new(SecretSpellings::new(secrets)),
        }
    }

    /// Creates a redactor for the secrets among environment variables: those whose name is that of
    /// a credential (`OPENAI_API_KEY`, `DB_PASSWORD`) and whose value is not an ordinary word, a
    /// number or a path.
    pub fn of_environment(variables: impl IntoIterator<Item = (String, String)>) -> Redactor {
        Redactor::new(environment::secrets(variables, |_| false))
    }

    /// Like [`Redactor::of_environment`], with additional secrets: the variables whose name `named`
    /// accepts, and the texts in `others`, except ordinary words, numbers and paths.
    pub fn with_named(
        variables: impl IntoIterator<Item = (String, String)>,
        named: impl Fn(&str) -> bool,
        others: impl IntoIterator<Item = String>,
    ) -> Redactor {
        let others = others.into_iter().filter_map(environment::not_ordinary);
        Redactor::new(environment::secrets(variables, named).chain(others))
    }

    /// Returns `value` with its secrets removed.
    pub fn json(&self, value: &Value) -> Value {
        self.json_at(value, "", &mut vec![])
    }

    /// Returns `value` with its secrets removed. `path` is the path of `value`; the path of each
    /// removed secret is appended to `paths`.
    pub fn json_at(&self, value: &Value, path: &str, paths: &mut Vec<String>) -> Value {
        match value {
            Value::String(text) => {
                let clean = self.text(text);
                if clean != *text {
                    paths.push(path.to_owned());
                }
                Value::String(clean.into_owned())
            }
            Value::Array(items) => items
                .iter()
                .enumerate()
                .map(|(at, item)| self.json_at(item, &format!("{path}[{at}]"), paths))
                .collect(),
            Value::Object(members) => {
                let mut clean = Map::new();
                for (key, member) in members {
                    let path = format!("{path}.{key}");
                    let member = if member.is_string() && is_secret_member(key) {
                        paths.push(path);
                        Value::from(REDACTED)
                    } else {
                        self.json_at(member, &path, paths)
                    };
                    clean.insert(self.text(key).into_owned(), member);
                }
                Value::Object(clean)
            }
            other => other.clone(),
        }
    }

    /// Returns `text` with its secrets removed.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let found = self.found(text.as_bytes());
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let clean = without(text.as_bytes(), 0..text.len(), &found);
        // A secret is ASCII or a complete key, so the remaining bytes are still UTF-8.
        Cow::Owned(String::from_utf8(clean).unwrap_or_else(|_| REDACTED.to_owned()))
    }

    /// Returns `json`, a JSON value on one line, with its secrets removed, however its strings are
    /// escaped.
    pub fn json_text<'t>(&self, json: &'t str) -> Cow<'t, str> {
        let mut paths = vec![];
        match serde_json::from_str(json) {
            Ok(value) => {
                let clean = self.json_at(&value, "", &mut paths);
                if paths.is_empty() {
                    Cow::Borrowed(json)
                } else {
                    Cow::Owned(clean.to_string())
                }
            }
            // The text nests too deeply for serde_json (128 levels), or is not JSON.
            Err(_) => self.text(json),
        }
    }

    /// Returns `url` without its user and password, and without the values of parameters whose name
    /// is that of a credential.
    pub fn url(&self, url: &str) -> String {
        self.url_at(url, "", &mut vec![])
    }

    /// Like [`Redactor::url`]. Appends the path of each removed secret, which begins with `path`,
    /// to `paths`.
    pub fn url_at(&self, url: &str, path: &str, paths: &mut Vec<String>) -> String {
        let clean = self.text(url);
        if clean != url {
            paths.push(path.to_owned());
        }
        let (front, rest) = clean.split_at(clean.find(['?', '#']).unwrap_or(clean.len()));
        let mut out = front.to_owned();
        if let Some(start) = front.find("//").map(|at| at + 2) {
            let end = front[start..]
                .find('/')
                .map_or(front.len(), |at| start + at);
            if let Some(at) = front[start..end].rfind('@') {
                out = format!("{}{REDACTED}{}", &front[..start], &front[start + at..]);
                paths.push(format!("{path}@"));
            }
        }
        for pair in rest.split_inclusive(['?', '#', '&', ';']) {
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

    /// Returns how many bytes at the beginning of `text` can be shown before more of the text
    /// arrives. The remaining bytes may be the beginning of a secret in any spelling, or of a
    /// well-known kind of key.
    pub fn settled(&self, text: &[u8]) -> usize {
        text.len() - self.secrets.begun(text).max(begun_shape(text))
    }

    /// Replaces the secrets in text that arrived in pieces, including secrets that span several
    /// pieces. Returns whether there was a secret.
    pub fn pieces(&self, pieces: &mut [&mut Vec<u8>]) -> bool {
        let all: Vec<u8> = pieces
            .iter()
            .flat_map(|piece| piece.iter())
            .copied()
            .collect();
        let found = self.found(&all);
        if found.is_empty() {
            return false;
        }
        let (mut start, mut first) = (0, 0);
        for piece in pieces {
            let end = start + piece.len();
            // Secrets that end before this piece cannot affect later pieces, so each secret is
            // examined once for each piece that it spans.
            first += found[first..]
                .iter()
                .take_while(|range| range.end <= start)
                .count();
            **piece = without(&all, start..end, &found[first..]);
            start = end;
        }
        true
    }

    /// Returns the ranges of the secrets in order. Overlapping ranges are merged.
    fn found(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut found = self.secrets.find(bytes);
        found.extend(shapes(bytes).map(|(kind, range)| keep_scheme(kind, range)));
        found.sort_by_key(|r| r.start);
        found.dedup_by(|next, before| {
            let is_one = next.start < before.end;
            if is_one {
                before.end = before.end.max(next.end);
            }
            is_one
        });
        found
    }
}

/// Returns the secrets in a credential of `Authorization: Basic` (RFC 7617): `user:password`, and
/// the password.
pub fn basic(credential: &str) -> Vec<String> {
    let decoded = base64::engine::general_purpose::STANDARD
        .decode(credential)
        .ok()
        .and_then(|b| String::from_utf8(b).ok());
    let password = decoded
        .as_ref()
        .and_then(|pair| Some(pair.split_once(':')?.1.to_owned()));
    decoded.into_iter().chain(password).collect()
}

/// Keeps the word `Bearer`, so that readers see which kind of credential was removed.
fn keep_scheme(kind: &str, range: Range<usize>) -> Range<usize> {
    if kind == "Bearer …" {
        range.start + "Bearer ".len()..range.end
    } else {
        range
    }
}

/// Returns the bytes of `piece` outside all ranges in `found` (in order and disjoint), with
/// [`REDACTED`] inserted where a range begins.
fn without(all: &[u8], piece: Range<usize>, found: &[Range<usize>]) -> Vec<u8> {
    let mut out = vec![];
    let mut at = piece.start;
    for range in found.iter().take_while(|range| range.start < piece.end) {
        if range.start >= piece.start {
            out.extend_from_slice(&all[at..range.start]);
            out.extend_from_slice(REDACTED.as_bytes());
        }
        at = range.end.min(piece.end);
    }
    out.extend_from_slice(&all[at..piece.end]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const CANARY: &str = "canary/7Q=z";

    #[test]
    fn a_canary_is_found_nowhere_in_json_and_urls() {
        let redactor = Redactor::new([CANARY.to_owned()]);
        let mut paths = vec![];
        let body = json!({"messages":[{"content":format!("my key is {CANARY}!")}], "tools":[{"authorization_token":"t0k",
            "parameters":{"properties":{"password":{"type":"string"}}}}], format!("k{CANARY}"): 1});
        let clean = redactor.json_at(&body, "body", &mut paths).to_string();
        assert!(
            !clean.contains("canary") && !clean.contains("t0k") && clean.contains("password"),
            "{clean}"
        );
        assert_eq!(
            paths,
            [
                "body.messages[0].content",
                "body.tools[0].authorization_token"
            ]
        );
        assert_eq!(redactor.json_text(&body.to_string()), clean);
        let url = format!("https://me:{CANARY}@host/v1?key={CANARY}&x=1&echo=canary%2F7Q%3dz");
        assert_eq!(
            redactor.url(&url),
            "https://[redacted]@host/v1?key=[redacted]&x=1&echo=[redacted]"
        );
    }

    #[test]
    fn a_secret_may_lie_over_several_pieces() {
        let mut pieces = [
            "canary/",
            "7Q",
            "=z and sk-ant-api03-",
            "0123456789abcdef\\nsk-aaaaaaaaaaaaaaaaaaaaaaaa",
            " Bearer 0123456789abcdef",
        ]
        .map(|text| text.as_bytes().to_vec());
        assert!(Redactor::new([CANARY.to_owned()]).pieces(&mut pieces.each_mut()));
        let text = String::from_utf8(pieces.concat()).unwrap();
        assert_eq!(
            text,
            "[redacted] and [redacted]\\n[redacted] Bearer [redacted]"
        );
    }

    #[test]
    fn what_may_be_the_beginning_of_a_secret_is_not_settled() {
        let redactor = Redactor::new([CANARY.to_owned()]);
        for (settled, begun) in [
            ("a text", ""),
            ("a ", "canary/7Q="),
            ("my key: ", "c"),
            ("a key: ", "sk-"),
            ("a key: ", "s"),
            ("a key: ", "sk-0123456789abcdef"),
            ("Authorization: ", "Bear"),
            ("Authorization: ", "Bearer abc.def"),
            ("the files", ""),
            ("Bearer of bad ", ""),
            ("sk-learn is good", ""),
            ("canary/7Q=z.", ""),
        ] {
            assert_eq!(
                redactor.settled(format!("{settled}{begun}").as_bytes()),
                settled.len(),
                "{settled}{begun}"
            );
        }
    }

    #[test]
    fn ordinary_text_stays() {
        let text = "task-management-system-for-users 2024, a bearer of bad news, sk-learn-is-a-library-name, AIza, desk-0123456789012345, Bearer authentication-is-used";
        assert_eq!(Redactor::default().text(text), text);
    }
}
