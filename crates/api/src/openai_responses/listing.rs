//! Converts messages to the items listed by `GET /v1/responses/{id}/input_items` and
//! `GET /v1/conversations/{id}/items`. Source of the format: `response_item.py` and
//! `conversation_item.py` in openai-python.

use crate::conversation::{Conversation, Message};
use crate::members::{GetText, Put};
use crate::openai_responses::request::{OwnCalls, items};
use crate::request::options::is_system;
use serde_json::{Value, json};

/// Converts messages to items, in order. Each id consists of `prefix` and the item's number,
/// starting at `first`. `before` contains the earlier messages, whose calls these messages may
/// answer. Messages with an unknown role are skipped.
pub fn response_items(
    messages: &[Message],
    before: [&[Message]; 2],
    prefix: &str,
    first: usize,
) -> Vec<Value> {
    let mut own = OwnCalls::default();
    let mut list = Vec::new();
    for (place, message) in messages.iter().enumerate() {
        let id = message.tool_call_id();
        if !id.is_empty() && !own.contains_key(id) {
            let is_of = |message: &Message| message.calls().iter().any(|call| call.id == id);
            let mut earlier = [before[0], before[1], &messages[..place]]
                .into_iter()
                .flatten()
                .rev();
            let asked = earlier.find(|message| is_of(message)).cloned();
            // Only the type of the call matters here.
            let _ = items(&Conversation::of(asked.into_iter().collect()), &mut own);
        }
        if is_system(message.role()) {
            let content = json!([{"type": "input_text", "text": message.text()}]);
            list.push(json!({"type": "message", "role": message.role(), "content": content}));
        } else {
            // The calls before a result determine the type of its item.
            let talk = Conversation::of(vec![message.clone()]);
            list.extend(items(&talk, &mut own).unwrap_or_default());
        }
    }
    for (place, item) in (first..).zip(&mut list) {
        complete(item, prefix, place);
    }
    list
}

/// Adds the members that are optional for an item in a request.
fn complete(item: &mut Value, prefix: &str, place: usize) {
    let short = match item.text_of("type") {
        Some("message") => "msg",
        Some("function_call") => "fc",
        Some("function_call_output") => "fco",
        Some("custom_tool_call") => "ctc",
        Some("custom_tool_call_output") => "ctco",
        Some("reasoning") => "rs",
        _ => "item",
    };
    let Some(members) = item.as_object_mut() else {
        return;
    };
    let made = || format!("{short}_{prefix}_{place}").into();
    members.entry("id").or_insert_with(made);
    if short != "rs" {
        members
            .entry("status")
            .or_insert_with(|| "completed".into());
    }
    if let (Some(Value::String(text)), "msg") = (members.get("content"), short) {
        let content = json!([{"type": "input_text", "text": text}]);
        members.put("content", content);
    }
}

#[cfg(test)]
mod tests {
    use super::response_items;
    use crate::conversation::Conversation;
    use serde_json::{Value, json};

    #[test]
    fn messages_are_listed_as_items_with_ids() {
        let (talk, _) = Conversation::read(concat!(
            r#"{"role":"developer","content":"Rules."}"#,
            "\n",
            r#"{"role":"user","content":"Hi"}"#,
            "\n",
            r#"{"role":"assistant","content":"Two.","provider":[{"thinking":"hm","data":{"openai-responses":{"item":{"type":"reasoning","id":"rs_own","summary":[],"encrypted_content":"e"}}},"calls":0,"text":false}],"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"sql","arguments":"{\"input\":\"x\"}"},"provider":{"openai-responses":{"custom":true}}}]}"#,
            "\n",
            r#"{"role":"tool","tool_call_id":"a","content":"1"}"#,
            "\n",
            r#"{"role":"tool","tool_call_id":"b","content":[{"type":"text","text":"2"},{"type":"image_url","image_url":{"url":"https://x/y"}}]}"#,
            "\n",
            r#"{"role":"wizard","content":"?"}"#,
        ));
        let text = |text: &str| json!([{"type": "input_text", "text": text}]);
        let want = json!([
            {"type": "message", "role": "developer", "content": text("Rules."), "id": "msg_p_0", "status": "completed"},
            {"type": "message", "role": "user", "content": text("Hi"), "id": "msg_p_1", "status": "completed"},
            {"type": "reasoning", "id": "rs_own", "summary": [], "encrypted_content": "e"},
            {"type": "message", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "Two.", "annotations": []}], "id": "msg_p_3"},
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}", "id": "fc_p_4", "status": "completed"},
            {"type": "custom_tool_call", "call_id": "b", "name": "sql", "input": "x", "id": "ctc_p_5", "status": "completed"},
            {"type": "function_call_output", "call_id": "a", "output": "1", "id": "fco_p_6", "status": "completed"},
            {"type": "custom_tool_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "2"}, {"type": "input_image", "image_url": "https://x/y", "detail": "auto"}], "id": "ctco_p_7", "status": "completed"},
        ]);
        let (before, answers) = talk.messages.split_at(3);
        let mut items = response_items(before, [&[], &[]], "p", 0);
        items.extend(response_items(answers, [&[], before], "p", items.len()));
        assert_eq!(Value::from(items), want);
        let whole = response_items(&talk.messages, [&[], &[]], "p", 0);
        assert_eq!(Value::from(whole), want);
    }
}
