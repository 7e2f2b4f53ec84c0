//! Finds the recorded response to a request.

use crate::tape::format::{Tape, TapeExchange};
use redact::Redactor;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// The body members that decide whether two requests are equal, in the order in which differences
/// are reported. Others (`stream`, sampling, token limits) are ignored, so that a tape stays usable
/// when they change.
const ASKED: [&str; 9] = [
    "model",
    "system",
    "system_instruction",
    "systemInstruction",
    "instructions",
    "tools",
    "messages",
    "contents",
    "input",
];

/// The parts of a request that select its recorded response: model, messages, tools and system
/// prompt, with sorted keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Canonical {
    asked: Map<String, Value>,
    /// The SHA-256 of the JSON text, in hexadecimal.
    pub sha256: String,
}

impl Canonical {
    /// Extracts these parts from a request. `model` is used if the body does not name one (Gemini
    /// has it in the URL). Text that looks like a credential is redacted, as it is on a tape.
    pub fn of(model: &str, body: &Value, redactor: &Redactor) -> Canonical {
        let mut asked = Map::new();
        for key in ASKED {
            match body.get(key) {
                Some(value) => asked.insert(key.to_owned(), redactor.json(value)),
                None if key == "model" => asked.insert(key.to_owned(), Value::from(model)),
                None => None,
            };
        }
        let mut sorted = Value::Object(asked.clone());
        sorted.sort_all_objects();
        let hash = Sha256::digest(sorted.to_string().as_bytes());
        Canonical {
            asked,
            sha256: hash.iter().map(|b| format!("{b:02x}")).collect(),
        }
    }
}

/// The tape contains no response to a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no answer to this request is on the tape: {0}")]
pub struct Miss(pub(crate) String);

impl Tape {
    /// Returns the next recorded response to this request. Equal requests are answered in the order
    /// of the tape, and each recording is used once.
    ///
    /// # Errors
    /// [`Miss`] names the nearest recorded request and the first difference from it.
    pub fn take(&mut self, asked: &Canonical) -> Result<&TapeExchange, Miss> {
        let mut equal = 0;
        let mut nearest: Option<(usize, usize, Canonical)> = None;
        for (at, exchange) in self.exchanges.iter().enumerate() {
            let recorded = exchange.canonical();
            if recorded
                .as_ref()
                .map_or(&exchange.request.sha256, |r| &r.sha256)
                == &asked.sha256
            {
                if !std::mem::replace(&mut self.played[at], true) {
                    return Ok(&self.exchanges[at]);
                }
                equal += 1;
            } else if let Some(recorded) = recorded {
                let shared = shared(&asked.asked, &recorded.asked);
                if nearest.as_ref().is_none_or(|(most, ..)| shared > *most) {
                    nearest = Some((shared, exchange.line, recorded));
                }
            }
        }
        Err(Miss(match nearest {
            _ if equal > 0 => format!("it is recorded {equal} times, and all of them were played"),
            None => "the tape holds no request to compare with".to_owned(),
            Some((_, line, recorded)) => {
                let (path, ours, theirs) = json::difference(
                    &Value::from(asked.asked.clone()),
                    &Value::from(recorded.asked.clone()),
                );
                format!(
                    "the nearest recorded request (line {line}) differs first at {path}: {ours} \
                     here, {theirs} on the tape"
                )
            }
        }))
    }
}

impl TapeExchange {
    /// Returns `None` if the tape contains only the hash of the body.
    fn canonical(&self) -> Option<Canonical> {
        self.request
            .body
            .is_object()
            .then(|| Canonical::of(&self.model, &self.request.body, &Redactor::default()))
    }
}

/// Returns the length of the common prefix of two requests, in bytes of JSON.
fn shared(a: &Map<String, Value>, b: &Map<String, Value>) -> usize {
    let text = |m: &Map<String, Value>| serde_json::to_string(m).unwrap_or_default();
    text(a)
        .bytes()
        .zip(text(b).bytes())
        .take_while(|(x, y)| x == y)
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tape(bodies: &[Value]) -> Tape {
        let text: String = bodies
            .iter()
            .map(|b| format!("{{\"tape\":1,\"model\":\"m\",\"request\":{{\"body\":{b}}}}}\n"))
            .collect();
        Tape::read(&text).unwrap()
    }

    fn of(body: &Value) -> Canonical {
        Canonical::of("m", body, &Redactor::default())
    }

    #[test]
    fn keys_may_stand_in_any_order_and_sampling_does_not_count() {
        let a = json!({"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true});
        let b = json!({"temperature":0,"messages":[{"content":"hi","role":"user"}]});
        assert_eq!(of(&a).sha256, of(&b).sha256);
        assert_ne!(
            of(&a).sha256,
            of(&json!({"model":"n","messages":a["messages"]})).sha256
        );
    }

    #[test]
    fn equal_requests_are_answered_in_order_and_then_no_more() {
        let a = json!({"messages":["a"]});
        let mut tape = tape(&[a.clone(), json!({"messages":["b"]}), a.clone()]);
        assert_eq!(tape.take(&of(&a)).unwrap().line, 1);
        assert_eq!(tape.take(&of(&a)).unwrap().line, 3);
        assert!(
            tape.take(&of(&a))
                .unwrap_err()
                .to_string()
                .contains("recorded 2 times")
        );
    }

    #[test]
    fn a_miss_names_the_nearest_and_the_first_difference() {
        let mut tape = tape(&[
            json!({"messages":[{"role":"system"}]}),
            json!({"messages":[{"role":"user","content":"What is 2+2?"},{"role":"assistant","content":"4"}]}),
        ]);
        let asked = json!({"messages":[{"role":"user","content":"What is 2+2?"},{"role":"assistant","content":"5"}]});
        let says = tape.take(&of(&asked)).unwrap_err().to_string();
        assert!(
            says.contains(
                "(line 2) differs first at messages[1].content: \"5\" here, \"4\" on the tape"
            ),
            "{says}"
        );
        let says = tape
            .take(&of(&json!({"messages":[],"tools":[1]})))
            .unwrap_err()
            .to_string();
        assert!(
            says.contains("at tools: [1] here, nothing on the tape"),
            "{says}"
        );
        let empty = Tape::default().take(&of(&asked)).unwrap_err().to_string();
        assert!(empty.contains("holds no request"), "{empty}");
    }
}
