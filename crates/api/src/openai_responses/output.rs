//! The items in a response's `output`.

use crate::answer::details;
use crate::answer::details::DetailMembers;
use event::{Object, Raw, Surrogates};
use serde_json::Value;

/// The open item.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Message {
        parts: Vec<MessagePart>,
        /// Members of the provider's item.
        members: DetailMembers,
    },
    /// An item from the provider, with its id.
    Own(String, DetailMembers),
    Reasoning {
        /// The text of its single summary.
        text: String,
        /// Another provider's data.
        carried: Option<String>,
        /// The item as a provider of this API ended it, as JSON. A later request must contain it
        /// unchanged.
        own: Option<String>,
    },
    /// Reasoning that only the API can read.
    Encrypted(EncryptedItem),
    Call(CallItem),
}

/// Reasoning in the form that must be sent back to the API. Its encrypted content requires its own
/// id, which the API verifies (github.com/maximhq/bifrost/issues/5186). It arrives after the text
/// was sent under another id, so it becomes a separate item.
#[derive(Clone, Debug)]
pub(crate) struct EncryptedItem {
    id: Option<String>,
    content: String,
}

/// A call.
#[derive(Clone, Debug)]
pub(crate) struct CallItem {
    pub kind: CallKind,
    pub call_id: String,
    pub name: String,
    pub namespace: Option<String>,
    /// The item id that a provider of this API assigned.
    pub item_id: Option<String>,
    /// The arguments so far; unused if the tool takes free-form text.
    pub arguments: String,
}

/// The kind of a call's tool, which determines the type of the call's item.
#[derive(Clone, Debug)]
pub(crate) enum CallKind {
    Function,
    /// A tool that takes free-form text, which is extracted from the arguments as they arrive.
    Custom(FreeTextInput),
    /// One of the API's own tools, with the type of the item.
    Own(String),
}

/// Information about the items of a provider of this API, in the `provider` data of a reasoning
/// step.
#[derive(Debug)]
pub(crate) enum ItemData {
    /// The next item of this kind has this id.
    Begins { kind: String, id: String },
    /// The reasoning with this id has ended.
    Ends { id: String, json: String },
}

impl ItemData {
    /// Parses `provider`: JSON by API name.
    pub(crate) fn of(provider: &str) -> Option<ItemData> {
        let data = Raw::parse(provider).ok()?.get("openai-responses")?;
        if let Some(begins) = data.get("begins") {
            let [kind, id] =
                ["type", "id"].map(|key| begins.get_str(key).unwrap_or_default().into_owned());
            return Some(ItemData::Begins { kind, id });
        }
        let item = data.get("item")?;
        Some(ItemData::Ends {
            id: item.get_str("id")?.into_owned(),
            json: item.text().to_owned(),
        })
    }
}

/// Returns a string in a call's `provider` data: the `id` of its item, or the `kind` of a call of
/// the API's own tools.
pub(crate) fn of_call(provider: &str, name: &str) -> Option<String> {
    let text = Raw::parse(provider)
        .ok()?
        .get("openai-responses")?
        .get_str(name)?;
    (!text.is_empty()).then(|| text.into_owned())
}

/// One part of a message.
#[derive(Clone, Debug)]
pub(crate) struct MessagePart {
    pub is_refusal: bool,
    pub text: String,
    pub annotations: Vec<Value>,
    pub logprobs: Vec<Value>,
}

/// The `status` of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemStatus {
    InProgress,
    Completed,
    Incomplete,
}

impl ItemStatus {
    fn name(self) -> &'static str {
        match self {
            ItemStatus::InProgress => "in_progress",
            ItemStatus::Completed => "completed",
            ItemStatus::Incomplete => "incomplete",
        }
    }
}

impl MessagePart {
    pub(crate) fn json(&self) -> String {
        event::object(|o| {
            if self.is_refusal {
                o.str("type", "refusal").str("refusal", &self.text);
            } else {
                o.str("type", "output_text").str("text", &self.text);
                o.raw("annotations", &list(&self.annotations))
                    .raw("logprobs", &list(&self.logprobs));
            }
        })
    }
}

impl Item {
    /// Creates an empty reasoning item.
    pub(crate) fn reasoning() -> Item {
        Item::Reasoning {
            text: String::new(),
            carried: None,
            own: None,
        }
    }

    /// Returns the `type` of an item that the provider announces.
    pub(crate) fn kind(&self) -> Option<&'static str> {
        match self {
            Item::Message { .. } => Some("message"),
            Item::Reasoning { .. } => Some("reasoning"),
            Item::Own(..) | Item::Encrypted(_) | Item::Call(_) => None,
        }
    }

    pub(crate) fn is_call(&self) -> bool {
        matches!(self, Item::Call(_))
    }

    /// Returns the item's id, which differs from the call's id because clients store both.
    pub(crate) fn id(&self, answer: &str, index: usize) -> String {
        let prefix = match self {
            Item::Message { .. } => "msg",
            Item::Own(id, _)
            | Item::Encrypted(EncryptedItem { id: Some(id), .. })
            | Item::Call(CallItem {
                item_id: Some(id), ..
            }) => return id.clone(),
            Item::Reasoning { .. } | Item::Encrypted(_) => "rs",
            Item::Call(call) => match &call.kind {
                CallKind::Function => "fc",
                CallKind::Custom(_) => "ctc",
                // OpenAI checks the prefixes of its ids.
                CallKind::Own(kind) => match kind.as_str() {
                    "shell_call" => "sh",
                    "local_shell_call" => "lsh",
                    "apply_patch_call" => "apc",
                    _ => "cu",
                },
            },
        };
        format!("{prefix}_{answer}_{index}")
    }

    /// Serializes the item as JSON with this id and status.
    pub(crate) fn json(&self, id: &str, status: ItemStatus) -> String {
        if let Item::Reasoning {
            own: Some(own),
            text,
            ..
        } = self
        {
            return with_summary(own, text);
        }
        event::object(|o| self.write(id, status.name(), o))
    }

    fn write(&self, id: &str, status: &str, o: &mut Object<'_>) {
        match self {
            Item::Message { parts, members } => {
                o.str("type", "message")
                    .str("id", id)
                    .str("status", status)
                    .str("role", "assistant");
                o.array("content", |a| {
                    parts.iter().for_each(|part| _ = a.raw(&part.json()))
                });
                details::write(o, members);
            }
            Item::Own(_, members) => details::write(o, members),
            // Reasoning has no status: the API rejects it when the item is sent back.
            Item::Reasoning { text, carried, .. } => {
                o.str("type", "reasoning")
                    .str("id", id)
                    .array("summary", |a| {
                        if !text.is_empty() {
                            a.object(|o| summary(o, text));
                        }
                    });
                o.maybe_str("encrypted_content", carried.as_deref());
            }
            Item::Encrypted(item) => {
                o.str("type", "reasoning")
                    .str("id", id)
                    .raw("summary", "[]");
                o.str("encrypted_content", &item.content);
            }
            Item::Call(call) => call.write(id, status, o),
        }
    }
}

/// Adds `text` as the summary of a provider's reasoning item that has none, because the AI SDK
/// reads only the summary of a complete response. Encrypted reasoning is verified when it is sent
/// back, so it is not changed.
fn with_summary(own: &str, text: &str) -> String {
    let mut members = details::members(own.as_bytes());
    let is_empty = |name: &str| {
        members
            .get(name)
            .is_none_or(|value| value.is_null() || value.as_array().is_some_and(Vec::is_empty))
    };
    if text.is_empty() || !is_empty("summary") || !is_empty("encrypted_content") {
        return own.to_owned();
    }
    members.insert(
        "summary".to_owned(),
        serde_json::json!([{"type": "summary_text", "text": text}]),
    );
    Value::from(members).to_string()
}

/// Serializes a list as JSON.
pub(crate) fn list(values: &[Value]) -> String {
    if values.is_empty() {
        "[]".to_owned()
    } else {
        Value::from(values.to_vec()).to_string()
    }
}

/// Writes the single part of a summary.
pub(crate) fn summary(o: &mut Object<'_>, text: &str) {
    o.str("type", "summary_text").str("text", text);
}

impl CallItem {
    fn write(&self, id: &str, status: &str, o: &mut Object<'_>) {
        let kind = match &self.kind {
            CallKind::Function => "function_call",
            CallKind::Custom(_) => "custom_tool_call",
            CallKind::Own(kind) => kind,
        };
        o.str("type", kind)
            .str("id", id)
            .str("call_id", &self.call_id);
        if let CallKind::Own(_) = &self.kind {
            o.str("status", status);
            return details::write(o, &details::members(self.arguments.as_bytes()));
        }
        o.str("name", &self.name);
        o.maybe_str("namespace", self.namespace.as_deref());
        match &self.kind {
            CallKind::Custom(input) => o.str("input", input.text()),
            _ => o.str("arguments", &self.arguments),
        };
        o.str("status", status);
    }
}

impl EncryptedItem {
    /// Parses the item in a step's `provider` data. Returns `None` if it is not an encrypted item
    /// of this API.
    pub(crate) fn of(provider: &str) -> Option<EncryptedItem> {
        let provider = Raw::parse(provider).ok()?;
        let item = provider.at(&["openai-responses", "item"])?;
        let text = |key: &str| {
            item.get_str(key)
                .filter(|text| !text.is_empty())
                .map(std::borrow::Cow::into_owned)
        };
        Some(EncryptedItem {
            id: text("id"),
            content: text("encrypted_content")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::with_summary;

    #[test]
    fn reasoning_gets_a_summary_only_where_it_has_none_and_is_not_encrypted() {
        let bare = r#"{"type":"reasoning","id":"rs","summary":[],"content":[]}"#;
        let summed = with_summary(bare, "Think.");
        assert!(
            summed.contains(r#""summary":[{"type":"summary_text","text":"Think."}]"#),
            "{summed}"
        );
        let own = r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"Own."}]}"#;
        let sealed = r#"{"type":"reasoning","summary":[],"encrypted_content":"x"}"#;
        for (item, text) in [(own, "Think."), (sealed, "Think."), (bare, "")] {
            assert_eq!(with_summary(item, text), item);
        }
    }
}

/// Extracts the free-form text from a custom tool's arguments.
#[derive(Clone, Debug, Default)]
pub(crate) struct FreeTextInput {
    place: ArgumentPlace,
    /// Arguments not yet parsed: the start of `{"input":"`, or an incomplete escape.
    rest: String,
    half: Surrogates,
    text: String,
}

/// The position in the arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ArgumentPlace {
    /// Before the text.
    #[default]
    Before,
    Inside,
    Behind,
    /// The arguments start differently and are parsed at their end.
    Elsewhere,
}

impl FreeTextInput {
    /// Returns the text so far.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Processes a piece of the arguments and returns the text that it adds.
    pub(crate) fn push(&mut self, arguments: &str) -> String {
        if matches!(self.place, ArgumentPlace::Behind | ArgumentPlace::Elsewhere) {
            return String::new();
        }
        self.rest.push_str(arguments);
        if self.place == ArgumentPlace::Before {
            let Some(at) = start(&self.rest) else {
                if self.rest.len() > LONGEST_START {
                    self.place = ArgumentPlace::Elsewhere;
                    self.rest = String::new();
                }
                return String::new();
            };
            self.rest.drain(..at);
            self.place = ArgumentPlace::Inside;
        }
        let (whole, is_closed) = inside(&self.rest);
        let text = self.unescape(whole);
        self.rest.drain(..whole);
        if is_closed {
            self.place = ArgumentPlace::Behind;
        }
        text
    }

    /// Handles the end of the arguments. `all` are the complete arguments. Returns the text that
    /// was not returned before. Arguments without a string `input` are themselves the text.
    pub(crate) fn finish(&mut self, all: &str) -> String {
        if matches!(self.place, ArgumentPlace::Before | ArgumentPlace::Elsewhere) {
            let input = Raw::parse(all).ok().and_then(|raw| raw.get_str("input"));
            self.text = input.map_or_else(|| all.to_owned(), std::borrow::Cow::into_owned);
            self.place = ArgumentPlace::Behind;
            return self.text.clone();
        }
        String::new()
    }

    /// Decodes the first `len` bytes of `rest`, which are the inside of a JSON string.
    fn unescape(&mut self, len: usize) -> String {
        let mut text = String::new();
        if let Ok(string) = Raw::parse(&format!("\"{}\"", &self.rest[..len])) {
            self.half.push(string, &mut text);
        }
        self.text.push_str(&text);
        text
    }
}

/// The maximum length of `{"input":"` with white space, so that the search for it stays cheap.
const LONGEST_START: usize = 64;

/// Returns the index after `{"input":"`, allowing white space between the tokens.
fn start(arguments: &str) -> Option<usize> {
    let arguments = event::cut(arguments, LONGEST_START);
    let mut rest = arguments;
    for token in ["{", "\"input\"", ":", "\""] {
        rest = rest
            .trim_start_matches([' ', '\t', '\n', '\r'])
            .strip_prefix(token)?;
    }
    Some(arguments.len() - rest.len())
}

/// Returns how many bytes of the inside of a JSON string can be decoded now, and whether the string
/// ends there.
fn inside(rest: &str) -> (usize, bool) {
    let bytes = rest.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let width = match (byte, bytes.get(at + 1)) {
            (b'"', _) => return (at, true),
            (b'\\', Some(b'u')) => 6,
            (b'\\', _) => 2,
            _ => 1,
        };
        if at + width > bytes.len() {
            break;
        }
        at += width;
    }
    (at, false)
}

#[cfg(test)]
mod custom_tests {
    use super::*;

    #[test]
    fn any_split_gives_the_same_text() {
        let all = r#" { "input" : "a\n\"b\" \u00e9\ud83d\ude00é}" }"#;
        let want = "a\n\"b\" é😀é}";
        for first in (0..=all.len()).filter(|at| all.is_char_boundary(*at)) {
            for second in (first..=all.len()).filter(|at| all.is_char_boundary(*at)) {
                let mut free = FreeTextInput::default();
                let mut text = free.push(&all[..first])
                    + &free.push(&all[first..second])
                    + &free.push(&all[second..]);
                text += &free.finish(all);
                assert_eq!(
                    (text.as_str(), free.text()),
                    (want, want),
                    "split at {first} and {second}"
                );
            }
        }
    }

    #[test]
    fn other_arguments_are_read_at_their_end() {
        for (all, want) in [
            (r#"{"patch":"x","input":"y"}"#, "y"),
            (r#"{"patch":"x"}"#, r#"{"patch":"x"}"#),
            (r#"{"input":{"a":1}}"#, r#"{"input":{"a":1}}"#),
            (r#"{"input":""}"#, ""),
            ("{}", "{}"),
            (
                &format!(
                    "{{{}\"input\":\"late\",\"input\":\"later\"}}",
                    " ".repeat(LONGEST_START)
                ),
                "later",
            ),
        ] {
            let mut free = FreeTextInput::default();
            let text = free.push(all) + &free.finish(all);
            assert_eq!((text.as_str(), free.text()), (want, want));
            let mut free = FreeTextInput::default();
            let text = all
                .chars()
                .map(|c| free.push(c.encode_utf8(&mut [0; 4])))
                .collect::<String>()
                + &free.finish(all);
            assert_eq!((text.as_str(), free.text()), (want, want));
        }
    }
}
