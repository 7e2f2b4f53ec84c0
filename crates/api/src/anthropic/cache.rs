//! Prompt caching: marks at the ends of the request prefixes that the provider caches.
//!
//! Source: <https://platform.claude.com/docs/en/build-with-claude/prompt-caching>. A prefix
//! consists of the tools, the system prompt and the messages up to the mark. Cached tokens cost a
//! quarter more to write and a tenth to read.

use serde_json::{Map, Value, json};

/// The member that marks the end of a cached prefix.
pub(crate) const MARK: &str = "cache_control";

/// The maximum number of marks that the provider accepts.
const MOST: usize = 4;

/// The minimum size of a prefix to mark, in bytes of a request: 1,024 tokens for most models. Some
/// models require larger prefixes, and for these the provider ignores the mark.
const LEAST: usize = 4 * 1024;

/// Returns the cache mark of a block, a part or a tool.
pub(crate) fn mark(of: &Value) -> Option<&Value> {
    of.get(MARK).filter(|mark| mark.is_object())
}

/// Marks the end of the constant prefix and the end of the request, if the next request will start
/// with the same content: from the second turn on, or if there are tools, whose results will
/// follow. A body that already has a mark is not changed.
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
    // Reasoning blocks cannot be marked.
    if let Some(Value::Object(block)) = last
        && !block
            .get("type")
            .is_some_and(|kind| kind == "thinking" || kind == "redacted_thinking")
    {
        block.insert(MARK.to_owned(), mark());
    }
}

/// Removes excess marks: first the earliest ones in the messages, then the earliest of the others.
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

/// Returns the JSON pointers of all marked values.
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
