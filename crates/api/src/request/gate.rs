//! The history gate: repairs history that providers would reject.
//!
//! - Arguments that are not a JSON object become `{}`; a call without a name is dropped.
//! - A tool name that matches a known tool is replaced by that tool's name, and any other invalid
//!   name by one that providers accept. A server may forward a name with a token of the model's
//!   template at its end, and OpenAI and Anthropic then answer 400 to every later turn.
//! - Each call of an assistant message is followed by its result, in call order. A call without a
//!   tool message gets the output of its `tool_result` event, if the log has one, because the run
//!   may have ended between the two. Otherwise its result says that it was started, or that it was
//!   not run. If a call has two results, the later one is used.
//! - A result is dropped if the preceding assistant message has no call with its id.
//! - Messages between a call and its result are moved behind the results.

use crate::conversation::{Conversation, Message, PastCall};
use crate::members::{GetText, Put};
use event::Raw;
use json::ToolList;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::HashSet;

/// The result of a call that was never run.
const CANCELLED: &str = "cancelled: this call was not run";

/// The result of a call that was started but has no recorded result.
const UNKNOWN: &str = "unknown: this call was started and its result is not known, so it may \
    have done its work; look before you repeat it";

/// Returns the conversation in a form that providers accept, for a request with `tools`.
pub(crate) fn gated(talk: &Conversation, tools: Option<&ToolList>) -> Conversation {
    let mut out = Vec::with_capacity(talk.messages.len());
    let mut rest = talk.messages.as_slice();
    while let [message, after @ ..] = rest {
        rest = after;
        match message.role() {
            "tool" => {}
            "assistant" if message.get("tool_calls").is_some() => {
                let until = rest
                    .iter()
                    .position(|m| m.role() == "assistant")
                    .unwrap_or(rest.len());
                let (turn, next) = rest.split_at(until);
                let message = with_valid_calls(message, out.len());
                let results = results(&message, turn);
                let first = out.len();
                out.push(message);
                out.extend(results);
                out[first..]
                    .iter_mut()
                    .for_each(|message| rename(message, tools));
                out.extend(turn.iter().filter(|m| m.role() != "tool").cloned());
                rest = next;
            }
            _ => out.push(message.clone()),
        }
    }
    Conversation::of(out)
}

/// Returns the id of the first result that has no matching call before it, or `None`. By default
/// the call must be in the assistant message before the result, as in [`gated`]. If `is_verbatim`
/// is true, the messages are sent as the client wrote them, so any earlier call matches.
pub(crate) fn result_without_call(talk: &Conversation, is_verbatim: bool) -> Option<&str> {
    if !is_verbatim {
        return dropped_result(&talk.messages);
    }
    let mut called = HashSet::new();
    talk.messages.iter().find_map(|message| {
        called.extend(message.calls().iter().map(|call| call.id));
        let id = message.tool_call_id();
        (message.role() == "tool" && !called.contains(id)).then_some(id)
    })
}

/// Returns the id of the first result that [`gated`] drops.
fn dropped_result(messages: &[Message]) -> Option<&str> {
    let mut rest = messages;
    while let [message, after @ ..] = rest {
        rest = after;
        match message.role() {
            "tool" => return Some(message.tool_call_id()),
            "assistant" if message.get("tool_calls").is_some() => {
                let until = rest
                    .iter()
                    .position(|m| m.role() == "assistant")
                    .unwrap_or(rest.len());
                let (turn, next) = rest.split_at(until);
                rest = next;
                if !turn.iter().any(|m| m.role() == "tool") {
                    continue;
                }
                let message = with_valid_calls(message, 0);
                if let (_, Some(dropped)) = answers(&message.calls(), turn) {
                    return Some(dropped.tool_call_id());
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns the message with only valid calls: each has a name, an id, and an object as its
/// arguments. `position` makes generated ids unique.
fn with_valid_calls(message: &Message, position: usize) -> Message {
    let mut fields = message.fields().clone();
    let mut calls = Vec::new();
    for (at, call) in message.list_of("tool_calls").iter().enumerate() {
        let name = call
            .pointer("/function/name")
            .and_then(Value::as_str)
            .filter(|name| !name.is_empty());
        let (Some(_), Some(whole)) = (name, call.as_object()) else {
            continue;
        };
        let mut call = whole.clone();
        if call.text_of("id").is_none_or(str::is_empty) {
            call.put("id", format!("call{position:03}{at:02}"));
        }
        if let Some(function) = call.get_mut("function").and_then(Value::as_object_mut) {
            let text = match function.get("arguments") {
                Some(Value::String(text)) => text.clone(),
                Some(object @ Value::Object(_)) => object.to_string(),
                _ => String::new(),
            };
            let valid = Raw::parse(&text).is_ok_and(Raw::is_object);
            function.put("arguments", if valid { text } else { "{}".to_owned() });
        }
        calls.push(Value::Object(call));
    }
    if calls.is_empty() {
        fields.shift_remove("tool_calls");
    } else {
        fields.put("tool_calls", calls);
    }
    Message {
        fields: fields.into(),
        ran: message.ran.clone(),
        is_explained: message.is_explained,
    }
}

/// Replaces invalid tool names in a message's calls, or in the `name` of a tool message.
fn rename(message: &mut Message, tools: Option<&ToolList>) {
    let is_result = message.role() == "tool";
    let names: Vec<&mut Value> = if is_result {
        message.fields_mut().get_mut("name").into_iter().collect()
    } else {
        let calls = message.fields_mut().get_mut("tool_calls");
        let calls = calls.and_then(Value::as_array_mut).into_iter().flatten();
        calls
            .filter_map(|call| call.pointer_mut("/function/name"))
            .collect()
    };
    for name in names {
        if let Value::String(text) = name
            && let Cow::Owned(accepted) = accepted(text, tools)
        {
            *text = accepted;
        }
    }
}

/// Returns a tool name that providers accept: ASCII letters, digits, `_` and `-`, or the name of a
/// tool in `tools`. Without a tool list, any valid tool name is kept.
fn accepted<'n>(name: &'n str, tools: Option<&ToolList>) -> Cow<'n, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let is_listable = tools.is_none() && json::is_name(name);
    if is_listable || (name.len() <= 128 && name.chars().all(is_plain)) {
        return Cow::Borrowed(name);
    }
    if let Some(tool) = tools.and_then(|tools| tools.meant(name)) {
        return match tool == name {
            true => Cow::Borrowed(name),
            false => Cow::Owned(tool.to_owned()),
        };
    }
    let bare = json::without_token(name).trim();
    let bare = Some(bare).filter(|bare| !bare.is_empty()).unwrap_or(name);
    let plain = bare.chars().map(|c| if is_plain(c) { c } else { '_' });
    Cow::Owned(plain.take(128).collect())
}

/// Returns one result per call of `message`, from the messages before the next assistant message.
fn results(message: &Message, turn: &[Message]) -> Vec<Message> {
    let calls = message.calls();
    let (found, _) = answers(&calls, turn);
    calls
        .iter()
        .zip(found)
        .map(|(call, found)| {
            let mut fields =
                found.map_or_else(|| unanswered(message, call), |m| m.fields().clone());
            fields.put("tool_call_id", call.id);
            Message::new(fields)
        })
        .collect()
}

/// Returns the tool message for each of `calls`, and the first tool message that matches no call.
fn answers<'m>(
    calls: &[PastCall<'_>],
    turn: &'m [Message],
) -> (Vec<Option<&'m Message>>, Option<&'m Message>) {
    let mut found: Vec<Option<&Message>> = vec![None; calls.len()];
    let mut dropped = None;
    for result in turn.iter().filter(|m| m.role() == "tool") {
        let id = result.tool_call_id();
        let name = result.get_str("name");
        // A result without an id answers the first open call, with the same name if the result has
        // a name.
        let mine = |at: &usize| {
            if id.is_empty() {
                name.is_none_or(|n| n == calls[*at].name)
            } else {
                calls[*at].id == id
            }
        };
        let open = (0..calls.len()).find(|at| found[*at].is_none() && mine(at));
        if let Some(at) =
            open.or_else(|| (0..calls.len()).rev().find(|at| !id.is_empty() && mine(at)))
        {
            found[at] = Some(result);
        } else {
            dropped = dropped.or(Some(result));
        }
    }
    (found, dropped)
}

/// Creates the result of a call that has no tool message.
fn unanswered(message: &Message, call: &PastCall<'_>) -> Map<String, Value> {
    let mut ran = message
        .ran
        .iter()
        .filter(|ran| ran.id == call.id)
        .peekable();
    let was_started = ran.peek().is_some();
    let output = ran.find_map(|ran| ran.output.as_deref());
    let content = output.unwrap_or(if was_started { UNKNOWN } else { CANCELLED });
    match json!({"role": "tool", "tool_call_id": "", "name": call.name, "content": content}) {
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
        gated(&talk, None)
            .messages
            .into_iter()
            .map(|m| Value::Object(m.fields().clone()).to_string())
            .collect()
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
    fn a_call_that_ran_is_never_said_not_to_have_run() {
        let asked = r#"{"type":"message","message":{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f"}},{"id":"b","function":{"name":"f"}}]}}"#;
        let [start, other] =
            ["", r#","stream":"s""#].map(|s| format!(r#"{{"type":"stream_start"{s},"v":1}}"#));
        let used = |id: &str| format!(r#"{{"type":"tool_use","tool_id":"{id}"}}"#);
        let result = |id: &str, status: &str| {
            format!(
                r#"{{"type":"tool_result","tool_id":"{id}","status":"{status}","output":"out \"{id}\""}}"#
            )
        };
        let sent = r#"{"role":"tool","tool_call_id":"b","content":"sent"}"#.to_owned();
        for (lines, want) in [
            (vec![&start, asked, &used("a"), &sent], [UNKNOWN, "sent"]),
            (
                vec![
                    &start,
                    &used("a"),
                    &result("a", "success"),
                    asked,
                    &used("b"),
                ],
                ["out \"a\"", UNKNOWN],
            ),
            (
                vec![
                    &start,
                    &used("a"),
                    asked,
                    &result("a", "error"),
                    &result("b", "denied"),
                ],
                ["out \"a\"", "out \"b\""],
            ),
            (
                vec![
                    asked,
                    &used("a"),
                    &result("a", "pending"),
                    &result("b", "pending"),
                ],
                [UNKNOWN, CANCELLED],
            ),
            // The ids are used again by a later turn and in another stream.
            (
                vec![&start, asked, &start, &used("a"), &result("b", "success")],
                [CANCELLED, CANCELLED],
            ),
            (
                vec![&start, asked, &used("a"), &other, &used("b")],
                [UNKNOWN, UNKNOWN],
            ),
        ] {
            let out = gate(&lines);
            let contents: Vec<_> = out
                .iter()
                .filter_map(|m| {
                    serde_json::from_str::<Value>(m).unwrap()["content"]
                        .as_str()
                        .map(str::to_owned)
                })
                .collect();
            assert_eq!(contents, want, "{lines:?}");
        }
    }

    #[test]
    fn each_name_is_one_that_providers_accept() {
        let tools = ToolList::read(r#"[{"name":"find_hut"},{"name":"fs.read"}]"#).unwrap();
        let long = "n".repeat(200);
        for (name, with_tools, without) in [
            ("find_hut", "find_hut", "find_hut"),
            ("find_hut<|channel|>commentary", "find_hut", "find_hut"),
            ("functions.find_hut", "find_hut", "functions.find_hut"),
            ("fs.read", "fs.read", "fs.read"),
            ("fs.write", "fs_write", "fs.write"),
            ("list<|channel|>commentary", "list", "list"),
            ("<|channel|>x", "__channel__x", "__channel__x"),
            ("two words", "two_words", "two_words"),
            (&long, &long[..128], &long[..128]),
        ] {
            let lines = [
                json!({"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": name}}, {"id": "b", "function": {"name": name}}]}),
                json!({"role": "tool", "tool_call_id": "a", "name": name, "content": "x"}),
            ];
            let text = lines.map(|line| line.to_string()).join("\n");
            let (talk, problems) = Conversation::read(&text);
            assert!(problems.is_empty(), "{problems:?}");
            for (tools, want) in [(Some(&tools), with_tools), (None, without)] {
                let out = gated(&talk, tools).messages;
                let calls = out[0].list_of("tool_calls").iter();
                let mut names: Vec<_> = calls
                    .filter_map(|call| call.pointer("/function/name")?.as_str())
                    .collect();
                names.extend(out[1..].iter().filter_map(|m| m.fields.text_of("name")));
                assert_eq!(names, [want; 4], "{name}");
            }
        }
    }

    #[test]
    fn the_gate_is_idempotent_and_a_last_turn_is_answered_too() {
        let lines = [
            r#"{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":""}}]}"#,
        ];
        let once = gate(&lines);
        assert_eq!(once.len(), 2);
        assert_eq!(
            gate(&once.iter().map(String::as_str).collect::<Vec<_>>()),
            once
        );
        assert_eq!(
            gate(&[r#"{"role":"assistant","content":"x","tool_calls":[{"function":{}}]}"#]),
            [r#"{"role":"assistant","content":"x"}"#]
        );
    }
}
