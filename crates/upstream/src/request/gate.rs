//! The history gate: repairs what a log may hold and providers reject.
//!
//! - Arguments that are not a JSON object become `{}`; a call without a name is dropped.
//! - Each call of an assistant's message is followed by its result, in call order. A call without one (the turn was cancelled)
//!   gets a result with this reason. Of two results for one call the later counts.
//! - A result is dropped if the assistant's message before it has no call of its id.
//! - Messages between a call and its result move behind the results.

use crate::conversation::{Conversation, Message};
use event::Raw;
use serde_json::{Map, Value, json};

/// What a call that was never run is answered with.
const CANCELLED: &str = "cancelled: this call was not run";

pub(crate) fn gated(talk: &Conversation) -> Conversation {
    let mut out = Vec::with_capacity(talk.messages.len());
    let mut rest = talk.messages.as_slice();
    while let [message, after @ ..] = rest {
        rest = after;
        match message.role() {
            "tool" => {}
            "assistant" if message.get("tool_calls").is_some() => {
                let until = rest.iter().position(|m| m.role() == "assistant").unwrap_or(rest.len());
                let (turn, next) = rest.split_at(until);
                let message = with_valid_calls(message, out.len());
                let results = results(&message, turn);
                out.push(message);
                out.extend(results);
                out.extend(turn.iter().filter(|m| m.role() != "tool").cloned());
                rest = next;
            }
            _ => out.push(message.clone()),
        }
    }
    Conversation { messages: out }
}

/// The message with calls that have a name, an id and an object as their arguments. `position` keeps made-up ids apart.
fn with_valid_calls(message: &Message, position: usize) -> Message {
    let mut fields = message.fields().clone();
    let mut calls = Vec::new();
    for (at, call) in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let name = call.pointer("/function/name").and_then(Value::as_str).filter(|name| !name.is_empty());
        let (Some(_), Some(whole)) = (name, call.as_object()) else { continue };
        let mut call = whole.clone();
        if call.get("id").and_then(Value::as_str).is_none_or(str::is_empty) {
            call.insert("id".into(), format!("call{position:03}{at:02}").into());
        }
        if let Some(function) = call.get_mut("function").and_then(Value::as_object_mut) {
            let text = match function.get("arguments") {
                Some(Value::String(text)) => text.clone(),
                Some(object @ Value::Object(_)) => object.to_string(),
                _ => String::new(),
            };
            let valid = Raw::parse(&text).is_ok_and(Raw::is_object);
            function.insert("arguments".into(), if valid { text } else { "{}".to_owned() }.into());
        }
        calls.push(Value::Object(call));
    }
    if calls.is_empty() {
        fields.shift_remove("tool_calls");
    } else {
        fields.insert("tool_calls".into(), calls.into());
    }
    Message { fields }
}

/// One result for each call of `message`, out of the messages up to the next assistant's.
fn results(message: &Message, turn: &[Message]) -> Vec<Message> {
    let calls = message.calls();
    let mut found: Vec<Option<&Message>> = vec![None; calls.len()];
    for result in turn.iter().filter(|m| m.role() == "tool") {
        let id = result.tool_call_id();
        let name = result.get_str("name");
        // A result without an id answers the first open call, of its name if it has one.
        let mine =
            |at: &usize| if id.is_empty() { name.is_none_or(|n| n == calls[*at].name) } else { calls[*at].id == id };
        let open = (0..calls.len()).find(|at| found[*at].is_none() && mine(at));
        if let Some(at) = open.or_else(|| (0..calls.len()).rev().find(|at| !id.is_empty() && mine(at))) {
            found[at] = Some(result);
        }
    }
    calls
        .iter()
        .zip(found)
        .map(|(call, found)| {
            let mut fields = found.map_or_else(|| cancelled(call.name), |m| m.fields().clone());
            fields.insert("tool_call_id".into(), call.id.into());
            Message { fields }
        })
        .collect()
}

fn cancelled(name: &str) -> Map<String, Value> {
    match json!({"role": "tool", "tool_call_id": "", "name": name, "content": CANCELLED}) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(lines: &[&str]) -> Vec<String> {
        let (talk, problems) = Conversation::read(&lines.join("\n"));
        assert!(problems.is_empty(), "{problems:?}");
        gated(&talk).messages.into_iter().map(|m| Value::Object(m.fields).to_string()).collect()
    }

    #[test]
    fn results_stand_behind_their_calls_in_call_order_and_a_call_without_one_was_cancelled() {
        let out = gate(&[
            r#"{"role":"tool","tool_call_id":"zz","content":"orphan"}"#,
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\": 1}"}},{"id":"b","function":{"name":"g","arguments":"{\"x\":"}},{"function":{"name":"h","arguments":{"y":1.50}}},{"id":"c","function":{"name":"","arguments":"{}"}}]}"#,
            r#"{"role":"user","content":"hurry"}"#,
            r#"{"role":"tool","tool_call_id":"b","content":"first"}"#,
            r#"{"role":"tool","name":"h","content":"no id"}"#,
            r#"{"role":"tool","tool_call_id":"b","content":"again"}"#,
            r#"{"role":"assistant","content":"done"}"#,
        ]);
        assert_eq!(
            out,
            [
                r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\": 1}"}},{"id":"b","function":{"name":"g","arguments":"{}"}},{"function":{"name":"h","arguments":"{\"y\":1.50}"},"id":"call00002"}]}"#,
                r#"{"role":"tool","tool_call_id":"a","name":"f","content":"cancelled: this call was not run"}"#,
                r#"{"role":"tool","tool_call_id":"b","content":"again"}"#,
                r#"{"role":"tool","name":"h","content":"no id","tool_call_id":"call00002"}"#,
                r#"{"role":"user","content":"hurry"}"#,
                r#"{"role":"assistant","content":"done"}"#,
            ]
        );
    }

    #[test]
    fn the_gate_is_idempotent_and_a_last_turn_is_answered_too() {
        let lines = [r#"{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":""}}]}"#];
        let once = gate(&lines);
        assert_eq!(once.len(), 2);
        assert_eq!(gate(&once.iter().map(String::as_str).collect::<Vec<_>>()), once);
        assert_eq!(
            gate(&[r#"{"role":"assistant","content":"x","tool_calls":[{"function":{}}]}"#]),
            [r#"{"role":"assistant","content":"x"}"#]
        );
    }
}
