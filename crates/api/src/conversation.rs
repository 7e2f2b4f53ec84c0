//! The messages of a conversation, as stored in a log.

use crate::inbound::inbound_size;
use crate::members::{GetText, Put};
use crate::verbatim::Verbatim;
use event::Raw;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::Arc;

/// The messages of a conversation, in OpenAI's shape.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    /// The messages in order.
    pub messages: Vec<Message>,
    /// The same conversation in the client's own JSON, for an upstream of the same API; `None` if
    /// every upstream gets the converted messages.
    pub(crate) verbatim: Option<Verbatim>,
    /// The API of the client that sent the messages; `None` if they come from a log.
    pub(crate) client: Option<&'static str>,
    /// The number of `stream_start` events in the log after the last message.
    pub(crate) begun: usize,
}

/// One chat message in OpenAI's shape, plus `reasoning` and `provider` (see [`PastBlock`]). Cloning
/// is cheap: clones share the members.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub(crate) fields: Arc<Map<String, Value>>,
    /// The calls of an assistant message that events in the log report as started or answered, in
    /// addition to the tool messages.
    pub(crate) ran: Arc<Vec<RanCall>>,
    /// Whether the refusal is the provider's explanation rather than text from the model.
    pub(crate) is_explained: bool,
}

/// A call that the log reports as started or answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RanCall {
    /// The id of the call.
    pub(crate) id: String,
    /// The output of the `tool_result`; `None` if the call was started but has no result.
    pub(crate) output: Option<String>,
}

/// Reads a log line by line. [`LogReader::conversation`] shares the messages with the reader, so
/// its cost does not depend on the length of their text.
#[derive(Clone, Debug, Default)]
pub struct LogReader {
    /// The messages that stay for the whole conversation.
    talk: Conversation,
    /// The messages that apply only to the latest response.
    once: Vec<Message>,
    /// The current turn of each stream, by the event's `stream` field.
    turns: HashMap<Option<String>, StreamTurn>,
    /// The approximate size of `talk`, in bytes.
    kept: usize,
    /// The approximate size of `once`, in bytes.
    kept_once: usize,
}

/// The state of one stream's current turn.
#[derive(Clone, Debug, Default)]
struct StreamTurn {
    /// The calls that were started or answered before the assistant's message arrived.
    early: Vec<RanCall>,
    /// The index of the assistant's message; `None` before it arrives.
    message: Option<usize>,
    /// Whether the API is Anthropic's, whose refusals are explanations.
    is_anthropic: bool,
}

/// One call in an assistant message.
#[derive(Clone, Copy, Debug)]
pub struct PastCall<'a> {
    /// The call's id, or "" if it has none.
    pub id: &'a str,
    /// The tool's name.
    pub name: &'a str,
    /// The call's arguments: the text of a JSON object. Guaranteed to be one after the history
    /// gate.
    pub arguments: &'a str,
    /// The data that providers require to be sent back with the call, by API name; see
    /// [`PastCall::provider`].
    provider: Option<&'a Value>,
}

/// A block of reasoning in an assistant message that a provider requires to be sent back.
#[derive(Clone, Copy, Debug)]
pub struct PastBlock<'a> {
    /// The block's text.
    pub thinking: &'a str,
    /// The number of the message's calls that started before this block.
    pub calls: usize,
    /// Whether answer text came before this block.
    pub text: bool,
    data: &'a Value,
}

/// A line of a log that should be a message but is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line's number, starting at 1.
    pub line: u64,
    /// What is wrong with the line, as the end of a sentence.
    pub what: String,
}

impl Conversation {
    /// Reads a log: `message` events of choice 0, bare `{"role":…}` lines, and the events that
    /// report which calls have run. Skips all other events. Reports lines that are not JSON
    /// objects, and messages without a role. A message marked `once` applies to one response: a
    /// later `response` event drops it; otherwise it is moved to the front, like instructions.
    ///
    /// The text may also be a single JSON value: an array of messages, or an object with a
    /// `messages` array, as in a request or a line of fine-tuning data
    /// (<https://platform.openai.com/docs/guides/supervised-fine-tuning>).
    pub fn read(log: &str) -> (Conversation, Vec<Problem>) {
        let mut talk = Conversation::default();
        let mut problems = Vec::new();
        if let Some(value) = Conversation::whole(log) {
            let line = 1;
            let read = match value.is_array() {
                true => talk.list(value),
                false => talk.example(value),
            };
            problems.extend(read.err().map(|what| Problem { line, what }));
            return (talk, problems);
        }
        let mut reader = LogReader::default();
        for (line, text) in (1..)
            .zip(log.split('\n'))
            .filter(|(_, text)| !text.trim().is_empty())
        {
            if let Err(what) = reader.push(text) {
                problems.push(Problem { line, what });
            }
        }
        (reader.into_conversation(), problems)
    }

    /// Whether `text` is a single JSON value with messages rather than a log.
    pub fn is_whole(text: &str) -> bool {
        Conversation::whole(text).is_some()
    }

    /// Parses `text` if it is an array of messages or a multi-line object with `messages`.
    fn whole(text: &str) -> Option<Raw<'_>> {
        let text = text.trim();
        match text.as_bytes().first()? {
            b'[' => Raw::parse(text).ok().filter(|list| {
                list.items()
                    .next()
                    .is_some_and(|item| item.get("role").is_some())
            }),
            b'{' if text
                .lines()
                .next()
                .is_none_or(|line| Raw::parse(line).is_err()) =>
            {
                Raw::parse(text).ok().filter(|value| is_example(*value))
            }
            _ => None,
        }
    }

    /// Appends the messages in a list.
    fn list(&mut self, list: Raw<'_>) -> Result<(), String> {
        for (number, item) in (1..).zip(list.items()) {
            let found = message(item).map_err(|why| format!("message {number}: {why}"))?;
            let Some(mut found) = found else {
                return Err(format!(
                    "message {number}: an item without a role, which is not read"
                ));
            };
            // The weight of an answer in training.
            found.fields_mut().shift_remove("weight");
            self.messages.push(found);
        }
        Ok(())
    }

    /// Appends the messages of an object with `messages`.
    fn example(&mut self, value: Raw<'_>) -> Result<(), String> {
        if !self.messages.is_empty() {
            return Err(
                "a conversation of its own (\"messages\"), give one conversation at a time".into(),
            );
        }
        if let Some(messages) = value.get("messages") {
            self.list(messages)?;
        }
        if value.get("tools").is_some_and(|tools| !tools.is_null()) {
            return Err(
                "its messages are read and its tools are not, write them into a file for --tools"
                    .into(),
            );
        }
        Ok(())
    }

    /// Creates a conversation from these messages.
    pub(crate) fn of(messages: Vec<Message>) -> Conversation {
        Conversation {
            messages,
            verbatim: None,
            client: None,
            begun: 0,
        }
    }

    /// Returns the conversation without the client's own JSON if that JSON is only valid for an API
    /// other than `api`.
    #[must_use]
    pub fn for_provider(self, api: &str) -> Conversation {
        let verbatim = self
            .verbatim
            .filter(|verbatim| verbatim.fits(api, self.messages.len()));
        Conversation { verbatim, ..self }
    }

    /// Returns one sentence for each kind of content that is not sent to a provider of `api`.
    pub fn notes_for(&self, api: &str) -> Vec<String> {
        if self
            .verbatim
            .as_ref()
            .is_some_and(|verbatim| verbatim.fits(api, self.messages.len()))
        {
            return Vec::new();
        }
        let count =
            |is_lost: &dyn Fn(&Message) -> usize| self.messages.iter().map(is_lost).sum::<usize>();
        let errors = count(&|message| {
            usize::from(
                message.role() == "tool"
                    && message
                        .get("is_error")
                        .is_some_and(|is_error| is_error == true),
            )
        });
        let broken = count(&|message| {
            let is_broken =
                |call: &&PastCall<'_>| !Raw::parse(call.arguments).is_ok_and(Raw::is_object);
            message.calls().iter().filter(is_broken).count()
        });
        let foreign = count(&|message| {
            let blocks = message.blocks();
            let is_lost = !message.reasoning().is_empty()
                && blocks.iter().all(|block| block.data(api).is_none());
            usize::from(is_lost)
        });
        // The content part members that the API does not support.
        let in_parts: &[(&str, &str)] = match api {
            "ollama" => &[
                ("/type", "file"),
                ("/type", "input_file"),
                ("/type", "input_image"),
                ("/type", "input_audio"),
                ("/file/filename", ""),
                ("/image_url/detail", ""),
            ],
            "gemini" => &[("/file/filename", ""), ("/image_url/detail", "")],
            "anthropic" => &[("/image_url/detail", "")],
            _ => &[],
        };
        let mut notes = Vec::new();
        for (path, word) in in_parts {
            let parts = count(&|message| {
                let parts = message.list_of("content").iter();
                let found = parts.filter_map(|part| part.pointer(path)?.as_str());
                found
                    .filter(|found| word.is_empty() || found == word)
                    .count()
            });
            if parts > 0 {
                let name = if word.is_empty() {
                    path.rsplit('/').next().unwrap_or_default()
                } else {
                    word
                };
                notes.push(format!(
                    "left out, since {} has no such part of a message: {name} ({parts} of them)",
                    api
                ));
            }
        }
        if foreign > 0 {
            notes.push(format!(
                "left out, since it is not {}'s own: reasoning ({foreign} of the answers)",
                api
            ));
        }
        if errors > 0 && api != "anthropic" {
            notes.push(format!(
                "left out, since {} has no such member of a result: is_error ({errors} of the results)",
                api
            ));
        }
        if broken > 0 {
            notes.push(format!(
                "the arguments of a call in the history are not a JSON object, {{}} takes their \
                 place ({broken} of the calls)"
            ));
        }
        notes
    }

    /// Whether the texts of the messages total more than `bytes` bytes. Stops counting there.
    pub fn is_longer_than(&self, bytes: usize) -> bool {
        let mut left = bytes;
        let members = self
            .messages
            .iter()
            .flat_map(|message| message.fields().values());
        members.into_iter().any(|value| !fits(value, &mut left))
    }

    /// Appends a user message whose content is a string or a list of parts.
    pub fn push_user(&mut self, content: impl Into<Value>) {
        self.push(Message::user(content));
    }

    /// Appends a message.
    pub fn push(&mut self, message: Message) {
        self.begun = 0;
        self.messages.push(message);
    }

    /// Returns the number of answers that the log starts after the last message.
    pub fn begun(&self) -> usize {
        self.begun
    }

    /// Returns the number of assistant messages after the last user message.
    pub fn steps(&self) -> usize {
        self.messages
            .iter()
            .rev()
            .take_while(|m| m.role() != "user")
            .filter(|m| m.role() == "assistant")
            .count()
    }

    /// Converts refusals to text, for a provider whose messages cannot hold refusals. Drops the
    /// explanations of a provider's classifiers: the model did not write them, and they belong to
    /// the refused turn, which Anthropic asks clients to remove
    /// (<https://platform.claude.com/docs/en/test-and-evaluate/strengthen-guardrails/handle-streaming-refusals>).
    /// `are_explained` marks all refusals as such explanations.
    pub(crate) fn with_refusals_as_text(self, are_explained: bool) -> Conversation {
        let as_text = |mut message: Message| {
            message.is_explained |= are_explained;
            message.with_refusal_as_text()
        };
        Conversation::of(self.messages.into_iter().map(as_text).collect())
    }
}

/// Subtracts the size of `value` from `left`. Returns false if `left` is too small.
fn fits(value: &Value, left: &mut usize) -> bool {
    let own = value.as_str().map_or(1, str::len);
    let Some(rest) = left.checked_sub(own) else {
        return false;
    };
    *left = rest;
    match value {
        Value::Array(items) => items.iter().all(|item| fits(item, left)),
        Value::Object(members) => members.values().all(|member| fits(member, left)),
        _ => true,
    }
}

impl LogReader {
    /// Reads the next line.
    ///
    /// # Errors
    /// Returns what is wrong with the line, as the end of a sentence.
    pub fn push(&mut self, line: &str) -> Result<(), String> {
        let event = Raw::parse(line).map_err(|why| format!("no JSON: {why}"))?;
        if is_example(event) {
            return self.talk.example(event);
        }
        if event.get("choice").and_then(Raw::i64).unwrap_or(0) == 0 {
            match event.get_str("type").as_deref() {
                Some("stream_start") => {
                    let api = event.get_str("api");
                    *self.turn(event) = StreamTurn {
                        is_anthropic: api.is_some_and(|api| api == "anthropic"),
                        ..StreamTurn::default()
                    };
                    self.talk.begun += 1;
                }
                Some("response") => {
                    self.once.clear();
                    self.kept_once = 0;
                }
                Some(kind @ ("tool_use" | "tool_result")) => {
                    if let Some(ran) = RanCall::read(event, kind == "tool_result") {
                        self.kept += ran.kept();
                        self.ran(event, ran);
                    }
                }
                _ => {}
            }
        }
        let Some(mut message) = message(event)? else {
            return Ok(());
        };
        self.talk.begun = 0;
        let size = inbound_size(line.as_bytes());
        if event.get("once").and_then(Raw::bool) == Some(true) {
            self.kept_once += size;
            self.once.push(message);
            return Ok(());
        }
        if message.role() == "assistant" {
            let place = self.talk.messages.len();
            let turn = self.turn(event);
            turn.message = Some(place);
            message.ran = std::mem::take(&mut turn.early).into();
            message.is_explained = turn.is_anthropic;
        }
        self.kept += size;
        self.talk.messages.push(message);
        Ok(())
    }

    /// Returns the current turn of the event's stream.
    fn turn(&mut self, event: Raw<'_>) -> &mut StreamTurn {
        let stream = event.get("stream").map(|stream| stream.text().to_owned());
        self.turns.entry(stream).or_default()
    }

    /// Records a call that was started or answered.
    fn ran(&mut self, event: Raw<'_>, ran: RanCall) {
        let turn = self.turn(event);
        match turn.message {
            None => turn.early.push(ran),
            Some(place) => {
                if let Some(message) = self.talk.messages.get_mut(place) {
                    Arc::make_mut(&mut message.ran).push(ran);
                }
            }
        }
    }

    /// Returns the messages that stay for the whole conversation, in order.
    pub fn messages(&self) -> &[Message] {
        &self.talk.messages
    }

    /// Returns the conversation without the messages that apply only to the latest response.
    pub fn lasting(&self) -> Conversation {
        self.talk.clone()
    }

    /// Returns the conversation for the latest response. The messages that apply only to that
    /// response come first, like instructions: chat templates such as Qwen's reject a system
    /// message anywhere else.
    pub fn conversation(&self) -> Conversation {
        self.clone().into_conversation()
    }

    /// Same as [`LogReader::conversation`], but consumes the reader.
    pub fn into_conversation(mut self) -> Conversation {
        self.talk.messages.splice(..0, self.once);
        self.talk
    }

    /// Removes the message at index `place` of [`LogReader::messages`].
    pub fn remove(&mut self, place: usize) {
        self.talk.messages.remove(place);
        for turn in self.turns.values_mut() {
            turn.message = match turn.message {
                Some(message) if message == place => None,
                Some(message) if message > place => Some(message - 1),
                other => other,
            };
        }
    }

    /// Removes a member or a call from the message at `place`. Returns whether the message still
    /// has content, reasoning or calls.
    pub fn remove_part(&mut self, place: usize, part: MessagePart<'_>) -> bool {
        let message = &mut self.talk.messages[place];
        match part {
            MessagePart::Member(name) => _ = message.fields_mut().shift_remove(name),
            MessagePart::Call(id) => {
                let fields = message.fields_mut();
                if let Some(Value::Array(calls)) = fields.get_mut("tool_calls") {
                    calls.retain(|call| call.get("id").is_none_or(|known| known != id));
                    if calls.is_empty() {
                        fields.shift_remove("tool_calls");
                    }
                }
            }
        }
        let parts = ["content", "reasoning", "tool_calls"];
        parts.iter().any(|part| match message.get(part) {
            None => false,
            Some(Value::String(text)) => !text.is_empty(),
            Some(_) => true,
        })
    }

    /// Returns the approximate number of bytes that the reader holds.
    pub fn kept(&self) -> usize {
        self.kept + self.kept_once + self.turns.len() * size_of::<StreamTurn>()
    }
}

/// A part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessagePart<'a> {
    /// The member with this name.
    Member(&'a str),
    /// The call with this id.
    Call(&'a str),
}

impl RanCall {
    /// Returns the size of this record, in bytes.
    fn kept(&self) -> usize {
        let output = self.output.as_ref().map_or(0, String::len);
        size_of::<RanCall>() + self.id.len() + output
    }

    /// Parses a `tool_use` or `tool_result` event. Returns `None` if it has no id, or if it is the
    /// result of a call that is still pending approval.
    fn read(event: Raw<'_>, is_result: bool) -> Option<RanCall> {
        let id = event.get_str("tool_id")?.into_owned();
        if !is_result {
            return Some(RanCall { id, output: None });
        }
        let is_answered = event
            .get_str("status")
            .is_some_and(|status| status != "pending");
        let output = event.get_str("output").unwrap_or_default().into_owned();
        is_answered.then_some(RanCall {
            id,
            output: Some(output),
        })
    }
}

/// Whether an object has a `messages` array and is neither an event nor a message.
fn is_example(value: Raw<'_>) -> bool {
    ["type", "role"].iter().all(|key| value.get(key).is_none())
        && value.get("messages").is_some_and(Raw::is_array)
}

/// Formats of other programs that are detected but not supported: a member that identifies the
/// format, and its description.
const OTHERS: [(&str, &str); 5] = [
    ("conversations", "a conversation of ShareGPT"),
    ("contents", "a request of Gemini's API"),
    ("input", "a request of OpenAI's Responses API"),
    ("choices", "an answer of a chat API"),
    ("completion", "a line for fine-tuning without messages"),
];

/// Returns the message in a line, or `None` if the line is another event.
pub(crate) fn message(event: Raw<'_>) -> Result<Option<Message>, String> {
    if !event.is_object() {
        return Err("not a JSON object".into());
    }
    let message = match event.get_str("type").as_deref() {
        Some("message") if event.get("choice").and_then(Raw::i64).unwrap_or(0) != 0 => {
            return Ok(None);
        }
        Some("message") => event
            .get("message")
            .ok_or("a message event without \"message\"")?,
        None if event.get("role").is_some() => event,
        None => {
            let other = OTHERS.iter().find(|(key, _)| event.get(key).is_some());
            return Err(match other {
                Some((key, name)) => {
                    format!("{name} ({key:?}) is not read, write {{\"messages\":[{{\"role\":…}}]}}")
                }
                None => "neither an event (no \"type\") nor a message (no \"role\")".into(),
            });
        }
        Some(_) => return Ok(None),
    };
    match serde_json::from_str(message.text()) {
        Ok(Value::Object(fields)) if fields.get("role").is_some_and(Value::is_string) => {
            Ok(Some(Message::new(fields)))
        }
        Ok(_) => Err("a message without a \"role\"".into()),
        Err(why) => Err(format!("a message that is not JSON: {why}")),
    }
}

impl Message {
    /// Creates a message from its members.
    pub(crate) fn new(fields: Map<String, Value>) -> Message {
        Message {
            fields: fields.into(),
            ran: Arc::default(),
            is_explained: false,
        }
    }

    /// Returns the members for modification. Copies them first if the message has clones.
    pub(crate) fn fields_mut(&mut self) -> &mut Map<String, Value> {
        Arc::make_mut(&mut self.fields)
    }

    /// Creates a user message.
    pub(crate) fn user(content: impl Into<Value>) -> Message {
        let mut fields = Map::new();
        fields.put("role", "user");
        fields.put("content", content);
        Message::new(fields)
    }

    /// Returns the role: `system`, `developer`, `user`, `assistant` or `tool`.
    pub fn role(&self) -> &str {
        self.get_str("role").unwrap_or_default()
    }

    /// Returns all members, as stored in the log.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }

    /// Returns the member `key`, or `None` if it is missing or `null`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.fields.get(key).filter(|v| !v.is_null())
    }

    /// Returns the member `key` if it is a string.
    pub fn get_str(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    /// Returns the content: a string, or an array of parts in OpenAI's shape. `None` if it is
    /// missing or `null`.
    pub fn content(&self) -> Option<&Value> {
        self.get("content")
    }

    /// Returns the text of the content: the string, or all text parts concatenated.
    pub fn text(&self) -> String {
        match self.content() {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(parts)) => parts
                .iter()
                .filter_map(|p| p.as_str().or_else(|| p.get("text")?.as_str()))
                .collect(),
            Some(other) => other.to_string(),
            None => String::new(),
        }
    }

    /// Returns the refusal, from the `refusal` member or from the content parts; "" if there is
    /// none.
    pub fn refusal(&self) -> String {
        if let Some(refusal) = self.get_str("refusal") {
            return refusal.to_owned();
        }
        let parts = self.list_of("content").iter();
        parts
            .filter_map(|part| part.get("refusal")?.as_str())
            .collect()
    }

    /// Converts the refusal to text, for a provider whose messages cannot hold refusals.
    fn with_refusal_as_text(mut self) -> Message {
        let refusal = self.refusal();
        self.fields_mut().shift_remove("refusal");
        if refusal.is_empty() || self.is_explained {
            return self;
        }
        let content = match self.fields.get("content") {
            Some(Value::Array(parts)) => {
                let kept = parts
                    .iter()
                    .filter(|part| part.get("refusal").is_none())
                    .cloned();
                kept.chain([json!({"type": "text", "text": refusal})])
                    .collect()
            }
            _ => Value::from(self.text() + &refusal),
        };
        self.fields_mut().insert("content".into(), content);
        self
    }

    /// Returns the calls of an assistant message, in order. Skips calls without a tool name.
    pub fn calls(&self) -> Vec<PastCall<'_>> {
        self.list_of("tool_calls")
            .iter()
            .filter(|c| {
                c.pointer("/function/name")
                    .and_then(Value::as_str)
                    .is_some_and(|name| !name.is_empty())
            })
            .map(|c| {
                let text = |path: &str| c.pointer(path).and_then(Value::as_str).unwrap_or_default();
                PastCall {
                    id: text("/id"),
                    name: text("/function/name"),
                    arguments: text("/function/arguments"),
                    provider: c.get("provider"),
                }
            })
            .collect()
    }

    /// Returns the id of the call that a tool message answers, or "" if it has none.
    pub fn tool_call_id(&self) -> &str {
        self.get_str("tool_call_id").unwrap_or_default()
    }

    /// Returns the whole reasoning of an assistant message, or "" if it has none.
    pub fn reasoning(&self) -> &str {
        self.get_str("reasoning").unwrap_or_default()
    }

    /// Returns the blocks of reasoning that providers require to be sent back, in stream order. A
    /// request builder sends only those with [`PastBlock::data`] for its own API.
    pub fn blocks(&self) -> Vec<PastBlock<'_>> {
        self.list_of("provider")
            .iter()
            .filter_map(|b| {
                Some(PastBlock {
                    thinking: b.text_of("thinking").unwrap_or_default(),
                    calls: b
                        .get("calls")
                        .and_then(Value::as_u64)
                        .and_then(|n| usize::try_from(n).ok())
                        .unwrap_or_default(),
                    text: b.get("text").and_then(Value::as_bool).unwrap_or_default(),
                    data: b.get("data")?,
                })
            })
            .collect()
    }
}

impl GetText for Message {
    fn member(&self, name: &str) -> Option<&Value> {
        self.get(name)
    }
}

impl Message {
    /// Returns the reasoning that arrived in named members of `api`'s messages, as (member name,
    /// text) pairs in order. Request builders put each text back into its member.
    pub(crate) fn reasoning_fields(&self, api: &str) -> Vec<(String, String)> {
        let mut fields: Vec<(String, String)> = Vec::new();
        for block in self.blocks() {
            let Some(name) = block.data(api).and_then(|d| d.get("field")?.as_str()) else {
                continue;
            };
            match fields.iter_mut().find(|(before, _)| before == name) {
                Some((_, text)) => text.push_str(block.thinking),
                None => fields.push((name.to_owned(), block.thinking.to_owned())),
            }
        }
        fields
    }
}

/// Returns the tool name of the latest call with this id.
pub(crate) fn called<'m>(before: &'m [Message], id: &str) -> Option<&'m str> {
    before
        .iter()
        .rev()
        .find_map(|m| m.calls().into_iter().find(|c| c.id == id).map(|c| c.name))
}

impl<'a> PastBlock<'a> {
    /// Returns the data that the API named `api` requires to be sent back with this block, or
    /// `None` if the block came from another API.
    pub fn data(&self, api: &str) -> Option<&'a Value> {
        self.data.get(api)
    }
}

impl<'a> PastCall<'a> {
    /// Returns the data that the API named `api` requires to be sent back with this call, or `None`
    /// if the call came from another API.
    pub fn provider(&self, api: &str) -> Option<&'a Value> {
        self.provider?.get(api)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_its_messages_and_what_should_be_one_is_reported() {
        let log = concat!(
            "{\"role\":\"user\",\"content\":\"hi\",\"n\":12345678901234567890.10}\n\n",
            "{\"type\":\"stream_start\",\"v\":1}\r\n",
            "{\"message\":{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]},\"type\":\"message\"}\n",
            "{\"type\":\"message\",\"choice\":1,\"message\":{\"role\":\"assistant\",\"content\":\"x\"}}\n",
            "{\"type\":\"message\",\"message\":{}}\n",
            "{\"a\":1}\n[1]\nnonsense\n",
            "{\"type\":\"mess",
        );
        let (talk, problems) = Conversation::read(log);
        assert_eq!(
            talk.messages.iter().map(Message::role).collect::<Vec<_>>(),
            ["user", "assistant"]
        );
        assert_eq!(
            talk.messages[0].get("n").unwrap().to_string(),
            "12345678901234567890.10"
        );
        assert_eq!(talk.messages[1].text(), "ab");
        assert_eq!(
            problems.iter().map(|p| p.line).collect::<Vec<_>>(),
            [6, 7, 8, 9, 10]
        );
        assert_eq!(talk.steps(), 1);
    }

    #[test]
    fn one_value_with_messages_is_a_conversation() {
        let list = r#"[{"role":"system","content":"Be brief."},{"role":"user","content":"hi"},
            {"role":"assistant","content":"ho","weight":0}]"#;
        let example = format!("{{\"messages\":{list}}}");
        let line = example.replace('\n', " ");
        let twice = format!("{line}\n{line}");
        let with_tools = line.replace("{\"messages\"", "{\"tools\":[{}],\"messages\"");
        for (text, problem) in [
            (list, None),
            (&example, None),
            (&format!("{{\n\"messages\":{list}\n}}\n"), None),
            (&line, None),
            (&twice, Some((2, "one conversation at a time"))),
            (&with_tools, Some((1, "its tools are not"))),
            (
                &list.replace("0}]", "0},{\"type\":\"function_call\"}]"),
                Some((1, "message 4: an item without a role")),
            ),
        ] {
            let (talk, problems) = Conversation::read(text);
            let roles: Vec<_> = talk.messages.iter().map(Message::role).collect();
            assert_eq!(roles, ["system", "user", "assistant"], "{text}");
            assert!(talk.messages[2].get("weight").is_none(), "{text}");
            let said: Vec<_> = problems.iter().map(|p| (p.line, &*p.what)).collect();
            match (problem, &said[..]) {
                (None, []) => {}
                (Some((line, want)), [(at, what)]) => {
                    assert!(line == *at && what.contains(want), "{text}: {what}");
                }
                (_, said) => panic!("{text}: {said:?}"),
            }
        }
        for (line, want) in [
            (
                r#"{"conversations":[{"from":"human","value":"hi"}]}"#,
                "ShareGPT",
            ),
            (r#"{"contents":[]}"#, "Gemini"),
            (r#"{"input":"x"}"#, "Responses"),
            (
                r#"{"prompt":"x","completion":"y"}"#,
                "fine-tuning without messages",
            ),
        ] {
            let (talk, problems) = Conversation::read(line);
            assert!(
                talk.messages.is_empty() && problems[0].what.contains(want),
                "{line}"
            );
        }
    }

    #[test]
    fn a_message_that_holds_once_is_gone_with_the_next_response() {
        let message = |role: &str, text: &str, once: bool| {
            format!(
                "{{\"type\":\"message\",\"message\":{{\"role\":\"{role}\",\"content\":\"{text}\"}}{}}}\n",
                if once { ",\"once\":true" } else { "" }
            )
        };
        let call = concat!(
            r#"{"type":"stream_start","v":1}"#,
            "\n",
            r#"{"type":"message","message":{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}}"#,
            "\n",
        );
        let response = |id: &str| format!("{{\"type\":\"response\",\"id\":\"{id}\"}}\n");
        let ran = "{\"type\":\"tool_result\",\"tool_id\":\"a\",\"status\":\"success\",\"output\":\"7\"}\n";
        let first = response("1") + &message("system", "one", true) + &message("user", "q", false);
        let end = "{\"type\":\"response_end\",\"id\":\"1\",\"status\":\"completed\"}\n";
        let second = response("2")
            + &message("user", "r", false)
            + &message("system", "two", true)
            + &message("system", "three", true);
        let texts = |log: &str| {
            let (talk, problems) = Conversation::read(log);
            assert_eq!(problems, []);
            talk.messages.iter().map(Message::text).collect::<Vec<_>>()
        };
        assert_eq!(texts(&first), ["one", "q"]);
        let log = first + call + end + &second;
        assert_eq!(texts(&log), ["two", "three", "q", "", "r"]);
        assert_eq!(texts(&(log.clone() + &response("3"))), ["q", "", "r"]);
        // A result that comes after the next response still belongs to its call.
        let (talk, _) = Conversation::read(&(log + ran));
        assert_eq!(talk.messages[3].ran.len(), 1);
    }
}
