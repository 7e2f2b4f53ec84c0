//! What of a request the provider keeps for the next one: marks at the ends of prefixes.
//!
//! Source: <https://platform.claude.com/docs/en/build-with-claude/prompt-caching>. A prefix is the
//! tools, the system prompt and the messages up to the mark. Writing one costs a quarter more than
//! other tokens, reading one a tenth.

use serde_json::{Map, Value, json};

/// The member that marks the end of a prefix.
pub(crate) const MARK: &str = "cache_control";

/// The most marks that the provider takes.
const MOST: usize = 4;

/// The least prefix that is kept, in bytes of a request: 1,024 tokens for most models; of those that
/// keep only larger ones, the provider ignores the mark.
const LEAST: usize = 4 * 1024;

/// The mark of a block, a part or a tool of any shape.
pub(crate) fn mark(of: &Value) -> Option<&Value> {
    of.get(MARK).filter(|mark| mark.is_object())
}

/// Marks the end of the prefix that stays, and of the whole request, where the next request begins
/// with the same: from the second turn on, or with tools, whose results follow. A body with a mark
/// stays as it is.
pub(crate) fn mark_prefix(body: &mut Map<String, Value>, is_later_turn: bool) {
    let has_tools = body.contains_key("tools");
    let is_small = || Value::Object(body.clone()).to_string().len() < LEAST;
    if !(has_tools || is_later_turn) || is_small() || !places(body).is_empty() {
        return;
    }
    let mark = || json!({"type": "ephemeral"});
    match body.get_mut("system") {
        Some(system @ Value::String(_)) => {
            let text = system.take();
            *system = json!([{"type": "text", "text": text, MARK: mark()}]);
        }
        _ => {
            let tools = body.get_mut("tools").and_then(Value::as_array_mut);
            if let Some(Value::Object(tool)) = tools.and_then(|tools| tools.last_mut()) {
                tool.insert(MARK.to_owned(), mark());
            }
        }
    }
    let messages = body.get_mut("messages").and_then(Value::as_array_mut);
    let Some(content) = messages.and_then(|all| all.last_mut()?.get_mut("content")) else {
        return;
    };
    if content.is_string() {
        let text = content.take();
        *content = json!([{"type": "text", "text": text}]);
    }
    let last = content.as_array_mut().and_then(|blocks| blocks.last_mut());
    // Reasoning cannot be marked.
    if let Some(Value::Object(block)) = last
        && !block
            .get("type")
            .is_some_and(|kind| kind == "thinking" || kind == "redacted_thinking")
    {
        block.insert(MARK.to_owned(), mark());
    }
}

/// Removes marks of which there are too many: the first of the messages, then the first of all.
pub(crate) fn keep_most(body: &mut Map<String, Value>) {
    let over = places(body).len().saturating_sub(MOST);
    let is_message = |place: &&String| place.starts_with("/messages");
    let all = places(body);
    let (late, early): (Vec<&String>, Vec<&String>) = all.iter().partition(is_message);
    let mut root = Value::Object(std::mem::take(body));
    for place in late.into_iter().chain(early).take(over) {
        if let Some(Value::Object(marked)) = root.pointer_mut(place) {
            marked.shift_remove(MARK);
        }
    }
    if let Value::Object(members) = root {
        *body = members;
    }
}

/// The JSON pointers of what is marked.
fn places(body: &Map<String, Value>) -> Vec<String> {
    let mut all = Vec::new();
    let mut list = |value: Option<&Value>, at: &str| {
        for (number, value) in value
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .enumerate()
        {
            if value.get(MARK).is_some() {
                all.push(format!("{at}/{number}"));
            }
        }
    };
    list(body.get("tools"), "/tools");
    list(body.get("system"), "/system");
    let messages = body.get("messages").and_then(Value::as_array);
    for (number, message) in messages.into_iter().flatten().enumerate() {
        list(
            message.get("content"),
            &format!("/messages/{number}/content"),
        );
    }
    all
}
