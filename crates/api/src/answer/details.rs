//! The members of a provider's response beyond text, reasoning and calls.
//!
//! A client that speaks the provider's API gets all of them. A client of another API gets those
//! with an equivalent there ([`mapped`]); the names of the others are logged.

use event::payload::Details;
use event::{Object, Raw};
use serde_json::{Map, Value, json};

/// JSON members, in order.
pub(crate) type DetailMembers = Map<String, Value>;

/// The part of the response that the members belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DetailsPlace {
    /// The whole response.
    Answer,
    /// The token counts.
    Usage,
    /// A choice.
    Choice,
    /// A choice's message.
    Message,
    /// The preceding text.
    Text,
    /// A call. No front writes these members.
    Call,
    /// The output: a complete item or block from the provider.
    Item,
}

impl DetailsPlace {
    fn of(name: &str) -> Option<DetailsPlace> {
        Some(match name {
            "answer" => DetailsPlace::Answer,
            "usage" => DetailsPlace::Usage,
            "choice" => DetailsPlace::Choice,
            "message" => DetailsPlace::Message,
            "text" => DetailsPlace::Text,
            "call" => DetailsPlace::Call,
            _ => return None,
        })
    }
}

const CHAT: &str = "openai-chat";
const RESPONSES: &str = "openai-responses";
const MESSAGES: &str = "anthropic";

/// Converts a member of a response in `from` to its place, name and value in `to`, or returns
/// `None` if `to` has no equivalent. Sources:
/// <https://platform.openai.com/docs/api-reference/chat/object>,
/// <https://platform.openai.com/docs/api-reference/responses/object>,
/// <https://platform.claude.com/docs/en/api/messages>.
fn mapped(
    from: &str,
    to: &str,
    place: DetailsPlace,
    name: &str,
    value: &Value,
) -> Option<(DetailsPlace, &'static str, Value)> {
    use DetailsPlace::{Choice, Item, Message, Text};
    Some(match (from, place, name, to) {
        (CHAT | "ollama", Choice, "logprobs", RESPONSES) => {
            let list = value.get("content").filter(|list| list.is_array());
            (Text, "logprobs", list?.clone())
        }
        ("ollama", Choice, "logprobs", CHAT) => (Choice, "logprobs", value.clone()),
        (RESPONSES, Text, "logprobs", CHAT) => {
            let both = json!({"content": value, "refusal": null});
            (Choice, "logprobs", both)
        }
        (CHAT, Message, "annotations", RESPONSES) => (Text, "annotations", each(value, flat)?),
        (RESPONSES, Text, "annotations", CHAT) => (Message, "annotations", each(value, nested)?),
        (MESSAGES, Text, "citations", CHAT) => {
            (Message, "annotations", each(&cited_urls(value)?, nested)?)
        }
        (MESSAGES, Text, "citations", RESPONSES) => (Text, "annotations", cited_urls(value)?),
        (CHAT, Message, "images", RESPONSES) => (Item, "", each(value, image_item)?),
        _ => return None,
    })
}

/// Converts each element of a list. Returns `None` if any conversion fails.
fn each(list: &Value, convert: fn(&Value) -> Option<Value>) -> Option<Value> {
    list.as_array()?
        .iter()
        .map(convert)
        .collect::<Option<Vec<_>>>()
        .map(Value::from)
}

/// Converts a Chat Completions annotation to a Responses annotation.
fn flat(annotation: &Value) -> Option<Value> {
    let kind = annotation.get("type")?.as_str()?.to_owned();
    let mut out = annotation
        .get(&kind)
        .filter(|_| kind == "url_citation")?
        .clone();
    out.as_object_mut()?.insert("type".to_owned(), kind.into());
    Some(out)
}

/// Converts a Responses annotation to Chat Completions, which only supports URL citations.
fn nested(annotation: &Value) -> Option<Value> {
    let mut annotation = annotation.clone();
    let kind = annotation
        .as_object_mut()?
        .shift_remove("type")
        .filter(|kind| kind == "url_citation")?;
    Some(json!({"type": kind, "url_citation": annotation}))
}

/// Converts an image in a message
/// (<https://openrouter.ai/docs/features/multimodal/image-generation>) to a Responses item, which
/// contains its data.
fn image_item(image: &Value) -> Option<Value> {
    let url = image.pointer("/image_url/url")?.as_str()?;
    let (_, bytes) = url.strip_prefix("data:")?.split_once(";base64,")?;
    Some(json!({"type": "image_generation_call", "status": "completed", "result": bytes}))
}

/// Converts an image item from a provider of `from` for a client that speaks `to`.
pub(crate) fn image_for(
    from: &str,
    to: &str,
    kind: &str,
    data: &str,
) -> Option<(DetailsPlace, DetailMembers)> {
    let item: Value = serde_json::from_str(data).ok()?;
    let text = |path: &str| item.pointer(path).and_then(Value::as_str);
    let url = match (from, kind) {
        (RESPONSES, "image_generation_call") => {
            format!(
                "data:image/{};base64,{}",
                text("/output_format").unwrap_or("png"),
                text("/result")?
            )
        }
        ("gemini", "inlineData") => {
            let mime = text("/inlineData/mimeType").filter(|mime| mime.starts_with("image/"))?;
            format!("data:{mime};base64,{}", text("/inlineData/data")?)
        }
        ("mistral" | CHAT, "image_url") => {
            text("/image_url/url").or(text("/image_url"))?.to_owned()
        }
        _ => return None,
    };
    let image = json!({"type": "image_url", "image_url": {"url": url}});
    match to {
        CHAT => Some((
            DetailsPlace::Message,
            Map::from_iter([("images".to_owned(), json!([image]))]),
        )),
        RESPONSES => match image_item(&image)? {
            Value::Object(item) => Some((DetailsPlace::Item, item)),
            _ => None,
        },
        _ => None,
    }
}

/// Converts Messages citations to Responses annotations. Only URL citations can be converted.
fn cited_urls(cited: &Value) -> Option<Value> {
    let start = cited.get("start_index")?;
    let end = cited.get("end_index")?;
    let citation = |citation: &Value| {
        let url = citation.get("url")?;
        let title = citation.get("title").filter(|title| !title.is_null());
        let title = title.cloned().unwrap_or_else(|| "".into());
        Some(
            json!({"type": "url_citation", "url": url, "title": title, "start_index": start, "end_index": end}),
        )
    };
    cited
        .get("list")?
        .as_array()?
        .iter()
        .map(citation)
        .collect::<Option<Vec<_>>>()
        .map(Value::from)
}

/// Called with the name of each member that is dropped.
pub(crate) type Lose<'l> = dyn FnMut(&str) + 'l;

/// Converts an event's details from a provider of `from` for a client that speaks `to`. Calls
/// `lose` with the name of each dropped member.
pub(crate) fn details_for(
    from: &str,
    to: &str,
    event: &Details<'_>,
    lose: &mut Lose<'_>,
) -> Vec<(DetailsPlace, DetailMembers)> {
    let place = DetailsPlace::of(&event.place.str());
    let data = serde_json::from_str(&event.data.text());
    let (Some(place), Ok(Value::Object(members))) = (place, data) else {
        return Vec::new();
    };
    // Mistral speaks Chat Completions.
    let from = if from == "mistral" { CHAT } else { from };
    if place == DetailsPlace::Call {
        members
            .keys()
            .for_each(|name| lose(&format!("{name} of a call")));
        return Vec::new();
    }
    if from == to {
        return vec![(place, members)];
    }
    let mut out: Vec<(DetailsPlace, DetailMembers)> = Vec::new();
    for (name, value) in members {
        match mapped(from, to, place, &name, &value) {
            // Each item in a list becomes a separate entry.
            Some((DetailsPlace::Item, _, Value::Array(items))) => {
                out.extend(items.into_iter().filter_map(|item| match item {
                    Value::Object(item) => Some((DetailsPlace::Item, item)),
                    _ => None,
                }));
            }
            Some((place, name, value)) => {
                out.push((place, Map::from_iter([(name.to_owned(), value)])));
            }
            // A response's `service_tier` is the tier that served it, so it is not a repeated
            // setting.
            None if (from, place) == (RESPONSES, DetailsPlace::Answer)
                && name != "service_tier"
                && REPEATED.contains(&name.as_str()) => {}
            None if place == DetailsPlace::Usage => lose_counts(to, &name, &value, lose),
            None => lose(&name),
        }
    }
    if place == DetailsPlace::Text && out.is_empty() {
        // Marks the end of a text.
        out.push((place, Map::new()));
    }
    out
}

/// The request members that an OpenAI Responses response repeats. Source:
/// <https://platform.openai.com/docs/api-reference/responses/object>.
pub const REPEATED: [&str; 25] = [
    "background",
    "conversation",
    "frequency_penalty",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "parallel_tool_calls",
    "presence_penalty",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];

/// The counts that every front writes under its own names.
const COUNTED: [&str; 26] = [
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "prompt_tokens_details",
    "completion_tokens_details",
    "input_tokens",
    "output_tokens",
    "input_tokens_details",
    "output_tokens_details",
    "cached_tokens",
    "reasoning_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "cache_write_tokens",
    "prompt_cache_hit_tokens",
    "prompt_cache_miss_tokens",
    "num_cached_tokens",
    "promptTokenCount",
    "candidatesTokenCount",
    "totalTokenCount",
    "thoughtsTokenCount",
    "cachedContentTokenCount",
    "promptTokensDetails",
    "toolUsePromptTokenCount",
    "tokens",
    "billed_units",
];

/// Reports the non-zero counts that the client's API cannot represent.
fn lose_counts(to: &str, name: &str, value: &Value, lose: &mut Lose<'_>) {
    match value {
        Value::Object(members) => members
            .iter()
            .for_each(|(name, value)| lose_counts(to, name, value, lose)),
        Value::Null => {}
        Value::Number(number) if number.as_f64() == Some(0.0) => {}
        _ if COUNTED.contains(&name) && (to != MESSAGES || name != "reasoning_tokens") => {}
        _ => lose(&format!("usage.{name}")),
    }
}

/// Merges members from a later event. Lists are concatenated, objects are merged, and other values
/// are replaced. Strings are concatenated if `joins` is true.
pub(crate) fn merge(into: &mut DetailMembers, more: DetailMembers, joins: bool) {
    for (name, value) in more {
        match (into.get_mut(&name), value) {
            (Some(Value::Object(before)), Value::Object(more)) => merge(before, more, joins),
            (Some(Value::Array(before)), Value::Array(more)) => before.extend(more),
            (Some(Value::String(before)), Value::String(more))
                if joins && !IDENTITY.contains(&name.as_str()) =>
            {
                before.push_str(&more);
            }
            (Some(_), Value::Null) => {}
            (_, value) => _ = into.insert(name, value),
        }
    }
}

/// Message members whose strings are never concatenated.
const IDENTITY: [&str; 5] = ["id", "type", "format", "phase", "role"];

/// Adds the members of the provider's counts that `ours` lacks.
fn complete(ours: &mut DetailMembers, theirs: &DetailMembers) {
    for (name, value) in theirs {
        match (ours.get_mut(name), value) {
            (Some(Value::Object(ours)), Value::Object(theirs)) => complete(ours, theirs),
            (Some(_), _) => {}
            (None, value) => _ = ours.insert(name.clone(), value.clone()),
        }
    }
}

/// Whether `ours` has all of the provider's counts, so that [`complete`] would add none.
fn has_all(ours: Raw<'_>, theirs: &DetailMembers) -> bool {
    theirs
        .iter()
        .all(|(name, value)| match (ours.get(name), value) {
            (Some(ours), Value::Object(theirs)) => !ours.is_object() || has_all(ours, theirs),
            (ours, _) => ours.is_some(),
        })
}

/// Writes members into an object.
pub(crate) fn write(o: &mut Object<'_>, members: &DetailMembers) {
    for (name, value) in members {
        o.raw(name, &value.to_string());
    }
}

/// Returns the counts that `ours` writes, plus the provider's counts that these lack.
pub(crate) fn counts(theirs: &DetailMembers, ours: impl FnOnce(&mut Object<'_>)) -> String {
    let out = event::object(ours);
    if Raw::parse(&out).is_ok_and(|ours| has_all(ours, theirs)) {
        return out;
    }
    let mut ours = members(out.as_bytes());
    complete(&mut ours, theirs);
    Value::from(ours).to_string()
}

/// Parses an object that was written here.
pub(crate) fn members(json: &[u8]) -> DetailMembers {
    serde_json::from_slice(json).unwrap_or_default()
}

/// Whether reasoning data contains parts that only the provider can read and that Chat Completions
/// cannot represent.
pub(crate) fn is_encrypted(provider: &str) -> bool {
    let data = Raw::parse(provider).ok();
    let own = data.and_then(|data| data.get(MESSAGES).or_else(|| data.get(RESPONSES)));
    own.is_some_and(|own| {
        ["item", "redacted", "block"]
            .iter()
            .any(|name| own.get(name).is_some())
            || own
                .get_str("signature")
                .is_some_and(|signature| !signature.is_empty())
    })
}

/// Whether an item that the provider ran must be sent back to it. Such an item also arrives as
/// reasoning data.
pub(crate) fn comes_as_reasoning(kind: &str, data: Raw<'_>) -> bool {
    data.get("type").is_some()
        && (matches!(kind, "server_tool_use" | "mcp_tool_use" | "compaction")
            || kind.ends_with("_tool_result"))
}
