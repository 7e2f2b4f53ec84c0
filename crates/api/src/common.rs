//! Finds the common beginning of two conversations. A stateless client sends its whole history with
//! each request, in its SDK's own form.

use crate::conversation::{Conversation, Message, PastCall};
use crate::request::options::is_system;
use serde_json::Value;

impl Conversation {
    /// Returns the length of the common beginning: the index after the last common message, in this
    /// conversation and in `other`. Messages are compared by meaning: role, text, other content
    /// parts, refusal, calls (id, name and arguments as JSON) and the id of the call that a result
    /// answers. System messages, reasoning, provider data and empty messages are skipped on both
    /// sides.
    pub fn common_beginning(&self, other: &Conversation) -> (usize, usize) {
        let mut common = (0, 0);
        let mut theirs = counted(other);
        for (place, message) in counted(self) {
            match theirs.next() {
                Some((their_place, their)) if is_same(message, their) => {
                    common = (place + 1, their_place + 1);
                }
                _ => break,
            }
        }
        common
    }
}

/// Returns the messages to compare, with their indexes.
fn counted(talk: &Conversation) -> impl Iterator<Item = (usize, &Message)> {
    let is_nothing = |message: &Message| {
        message.role() == "assistant"
            && message.calls().is_empty()
            && message.refusal().is_empty()
            && parts(message).is_empty()
    };
    let messages = talk.messages.iter().enumerate();
    messages.filter(move |(_, message)| !is_system(message.role()) && !is_nothing(message))
}

fn is_same(one: &Message, other: &Message) -> bool {
    let [calls, others] = [one.calls(), other.calls()];
    one.role() == other.role()
        && one.tool_call_id() == other.tool_call_id()
        && one.refusal() == other.refusal()
        && calls.len() == others.len()
        && calls.iter().zip(&others).all(|(a, b)| is_same_call(a, b))
        && parts(one) == parts(other)
}

fn is_same_call(one: &PastCall<'_>, other: &PastCall<'_>) -> bool {
    let json =
        |text: &str| serde_json::from_str::<Value>(if text.is_empty() { "{}" } else { text });
    one.id == other.id
        && one.name == other.name
        && match (json(one.arguments), json(other.arguments)) {
            (Ok(one), Ok(other)) => is_same_value(&one, &other),
            _ => one.arguments == other.arguments,
        }
}

/// Whether two values are equal after a client has parsed and serialized them: `1.0` may become
/// `1`, and members may be reordered.
fn is_same_value(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same_value(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let has = |(key, value): (&String, &Value)| {
                b.get(key).is_some_and(|other| is_same_value(value, other))
            };
            a.len() == b.len() && a.iter().all(has)
        }
        _ => one == other,
    }
}

/// Returns the content parts. Adjacent texts are joined, and refusals are left out. White space at
/// the end of an answer is removed, as some clients do.
fn parts(message: &Message) -> Vec<Value> {
    let mut parts: Vec<Value> = Vec::new();
    let list = match message.content() {
        Some(Value::Array(list)) => list.as_slice(),
        Some(other) => std::slice::from_ref(other),
        None => &[],
    };
    for part in list {
        let text = part
            .as_str()
            .or_else(|| part.get("text").and_then(Value::as_str));
        match (text, parts.last_mut()) {
            (Some(text), Some(Value::String(last))) => last.push_str(text),
            (Some(text), _) => parts.push(text.into()),
            (None, _) if part.get("refusal").is_some() => {}
            (None, _) => parts.push(part.clone()),
        }
    }
    if let Some(Value::String(last)) = parts.last_mut()
        && message.role() == "assistant"
    {
        last.truncate(last.trim_end().len());
    }
    parts.retain(|part| part.as_str() != Some(""));
    parts
}

#[cfg(test)]
mod tests {
    use crate::conversation::Conversation;
    use crate::{Api, inbound};

    fn log(log: &str) -> Conversation {
        let (talk, problems) = Conversation::read(log);
        assert!(problems.is_empty());
        talk
    }

    /// A log of two turns, as written by `accumulate` and `tool-exec`.
    const LOG: &str = concat!(
        r#"{"role":"system","content":"Old rules."}"#,
        "\n",
        r#"{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"https://x/y.png"}}]}"#,
        "\n",
        r#"{"role":"assistant","content":"I look.\n","reasoning":"hm","provider":[],"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1.0,\"b\":[true]}"}}]}"#,
        "\n",
        r#"{"role":"tool","tool_call_id":"c","content":"42"}"#,
        "\n",
        r#"{"role":"assistant","content":"","reasoning":"nothing"}"#,
        "\n",
        r#"{"role":"assistant","content":"It is 42."}"#,
    );

    #[test]
    fn each_front_finds_the_beginning_that_its_client_sends_again() {
        for (api, body, place) in [
            (
                Api::OpenaiChat,
                r#"{"messages":[{"role":"developer","content":"New rules."},
                {"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"https://x/y.png"}}]},
                {"role":"assistant","content":"I look.","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"b\": [true], \"a\": 1}"}}]},
                {"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"4"},{"type":"text","text":"2"}]},
                {"role":"assistant","content":"It is 42."},{"role":"user","content":"thanks"}]}"#,
                5,
            ),
            (
                Api::OpenaiResponses,
                r#"{"instructions":"New rules.","input":[
                {"role":"user","content":[{"type":"input_text","text":"look"},{"type":"input_image","image_url":"https://x/y.png"}]},
                {"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}]},
                {"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":1,\"b\":[true]}"},
                {"type":"function_call_output","call_id":"c","output":"42"},
                {"type":"message","role":"assistant","content":[{"type":"output_text","text":"It is 42."}]},
                {"role":"user","content":"thanks"}]}"#,
                5,
            ),
            (
                Api::Anthropic,
                r#"{"system":"New rules.","messages":[
                {"role":"user","content":[{"type":"text","text":"look"},{"type":"image","source":{"type":"url","url":"https://x/y.png"}}]},
                {"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"c","name":"f","input":{"a":1,"b":[true]}}]},
                {"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"42"}]}]},
                {"role":"assistant","content":[{"type":"text","text":"It is 42."}]},{"role":"user","content":"thanks"}]}"#,
                5,
            ),
        ] {
            let asked = inbound(api, body.as_bytes()).unwrap().conversation;
            assert_eq!(
                log(LOG).common_beginning(&asked),
                (6, place),
                "{}",
                api.name()
            );
            assert_eq!(
                asked.common_beginning(&log(LOG)),
                (place, 6),
                "{}",
                api.name()
            );
            assert_eq!(asked.messages[place].text(), "thanks");
        }
    }

    #[test]
    fn what_differs_ends_the_beginning() {
        for (from, to, want) in [
            ("\"look\"", "\"see\"", 0),
            ("y.png", "z.png", 0),
            ("1.0", "2", 2),
            ("[true]", "[true,1]", 2),
            ("\"name\":\"f\"", "\"name\":\"g\"", 2),
            ("\"tool_call_id\":\"c\"", "\"tool_call_id\":\"d\"", 3),
            ("It is 42.", "It is 43.", 4),
            ("\"hm\"", "\"other\"", 6),
            ("Old rules.", "", 6),
        ] {
            let (here, _) = log(LOG).common_beginning(&log(&LOG.replace(from, to)));
            assert_eq!(here, want, "{from} {to}");
        }
        assert_eq!(log(LOG).common_beginning(&Conversation::default()), (0, 0));
    }
}
