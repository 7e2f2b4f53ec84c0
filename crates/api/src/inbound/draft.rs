//! Builders that assemble messages from a request's items and blocks.

use crate::carried::id_without;
use crate::conversation::Message;
use crate::members::Put;
use serde_json::{Map, Value, json};

/// A partial assistant message, in the shape that `accumulate` writes.
#[derive(Debug, Default)]
pub(crate) struct AssistantDraft {
    content: String,
    refusal: String,
    calls: Vec<Value>,
    reasoning: String,
    blocks: Vec<Value>,
}

impl AssistantDraft {
    /// Appends answer text.
    pub(crate) fn say(&mut self, text: &str) {
        self.content.push_str(text);
    }

    /// Appends refusal text.
    pub(crate) fn refuse(&mut self, text: &str) {
        self.refusal.push_str(text);
    }

    /// Appends reasoning. `data`, by API name, must be sent back to the provider with it.
    pub(crate) fn think(&mut self, text: &str, data: Option<Value>) {
        self.reasoning.push_str(text);
        if let Some(data) = data {
            let calls = self.calls.len();
            let text_came = !self.content.is_empty();
            self.blocks
                .push(json!({"thinking": text, "data": data, "calls": calls, "text": text_came}));
        }
    }

    /// Appends a call. `data`, by API name, must be sent back to the provider with it.
    pub(crate) fn call(&mut self, id: &str, name: &str, arguments: &str, data: Option<Value>) {
        let (id, carried) = id_without(id);
        let mut call = json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
        if let (Some(call), Some(data)) = (call.as_object_mut(), carried.or(data)) {
            call.insert("provider".to_owned(), data);
        }
        self.calls.push(call);
    }

    /// Whether the draft has text or a refusal.
    pub(crate) fn has_answer(&self) -> bool {
        !self.content.is_empty() || !self.refusal.is_empty()
    }

    /// Returns the length of the text, in characters.
    pub(crate) fn length(&self) -> usize {
        self.content.chars().count()
    }

    /// Whether the draft has calls.
    pub(crate) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Returns the message and clears the draft. Returns `None` if the draft is empty.
    pub(crate) fn take(&mut self) -> Option<Message> {
        let draft = std::mem::take(self);
        let has_calls = draft.has_calls();
        if !has_calls
            && !draft.has_answer()
            && draft.reasoning.is_empty()
            && draft.blocks.is_empty()
        {
            return None;
        }
        let mut fields = Map::new();
        fields.put("role", "assistant");
        let is_null = draft.content.is_empty() && (has_calls || !draft.refusal.is_empty());
        fields.insert(
            "content".to_owned(),
            if is_null {
                Value::Null
            } else {
                draft.content.into()
            },
        );
        if !draft.refusal.is_empty() {
            fields.put("refusal", draft.refusal);
        }
        if has_calls {
            fields.put("tool_calls", draft.calls);
        }
        if !draft.reasoning.is_empty() {
            fields.put("reasoning", draft.reasoning);
        }
        if !draft.blocks.is_empty() {
            fields.put("provider", draft.blocks);
        }
        Some(Message::new(fields))
    }
}

/// Returns provider data for reasoning that the client's API did not sign, because it came from an
/// upstream of another API that may need it back. DeepSeek rejects tool results without their
/// reasoning (<https://api-docs.deepseek.com/guides/thinking_mode>).
pub(crate) fn foreign_reasoning() -> Value {
    json!({"openai-chat": {"field": "reasoning_content"}, "ollama": {"field": "thinking"}})
}

/// Creates a message. Its content is a string if `parts` is a single text.
pub(crate) fn message(role: &str, parts: Vec<Value>) -> Message {
    let mut fields = Map::new();
    fields.put("role", role);
    fields.insert("content".to_owned(), content(parts));
    Message::new(fields)
}

/// Creates a tool message.
pub(crate) fn result(id: &str, parts: Vec<Value>) -> Message {
    let mut fields = Map::new();
    fields.put("role", "tool");
    fields.put("tool_call_id", id_without(id).0);
    fields.insert("content".to_owned(), content(parts));
    Message::new(fields)
}

/// Converts parts to message content.
fn content(mut parts: Vec<Value>) -> Value {
    match &mut parts[..] {
        [] => "".into(),
        [part] if part.get("type").is_some_and(|kind| kind == "text") => part["text"].take(),
        _ => parts.into(),
    }
}

/// Creates a text part.
pub(crate) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Creates an image part. `detail` is the image's detail level.
pub(crate) fn image(url: &str, detail: Option<&str>) -> Value {
    match detail.filter(|detail| *detail != "auto") {
        Some(detail) => json!({"type": "image_url", "image_url": {"url": url, "detail": detail}}),
        None => json!({"type": "image_url", "image_url": {"url": url}}),
    }
}

/// Creates a file part. `key` is `file_data` for a `data:` URL or `file_url` for another URL.
pub(crate) fn file(key: &str, value: &str, name: Option<&str>) -> Value {
    let mut file = Map::new();
    if let Some(name) = name {
        file.put("filename", name);
    }
    file.insert(key.to_owned(), value.into());
    json!({"type": "file", "file": file})
}

/// A partial conversation of an API whose system prompt is separate from the messages.
#[derive(Debug, Default)]
pub(crate) struct ConversationDraft {
    system: Vec<String>,
    messages: Vec<Message>,
}

impl ConversationDraft {
    /// Adds system prompt text. After the first message, the text is added to a user message
    /// instead: Claude Code and Codex send such messages, and most servers of OpenAI's API reject a
    /// system prompt that is not at the start
    /// (<https://github.com/anthropics/claude-code/issues/77698>,
    /// <https://github.com/vllm-project/vllm/issues/44000>).
    pub(crate) fn system(&mut self, words: &str) {
        if words.trim().is_empty() {
            return;
        }
        if self.messages.is_empty() {
            self.system.push(words.to_owned());
            return;
        }
        let reminder = text(&format!("<system-reminder>\n{words}\n</system-reminder>"));
        match self
            .messages
            .last_mut()
            .filter(|last| last.role() == "user")
        {
            // Many models' chat templates require alternating user and assistant messages.
            Some(last) => {
                let content = last.fields_mut().entry("content").or_insert(Value::Null);
                let mut parts = match content.take() {
                    Value::Array(parts) => parts,
                    Value::String(words) => vec![text(&words)],
                    _ => Vec::new(),
                };
                parts.push(reminder);
                *content = parts.into();
            }
            None => self.messages.push(message("user", vec![reminder])),
        }
    }

    /// Appends a message.
    pub(crate) fn push(&mut self, message: Message) {
        self.messages.push(message);
    }

    /// Returns the number of system prompt texts plus messages.
    pub(crate) fn len(&self) -> usize {
        self.system.len() + self.messages.len()
    }

    /// Returns the number of system prompt texts, and the number of messages.
    pub(crate) fn lens(&self) -> (usize, usize) {
        (self.system.len(), self.messages.len())
    }

    /// Returns the first `count` system prompt texts joined, and the remaining ones joined.
    pub(crate) fn prompts(&self, count: usize) -> [String; 2] {
        let (first, others) = self.system.split_at(count);
        [first, others].map(|texts| texts.join("\n\n"))
    }

    /// Returns all messages, with the system prompt first.
    pub(crate) fn into_messages(self) -> Vec<Message> {
        let mut messages = self.messages;
        if !self.system.is_empty() {
            messages.insert(0, message("system", vec![text(&self.system.join("\n\n"))]));
        }
        messages
    }
}

/// The maximum number of notes. Without it, a hostile request could cause one for each of its
/// members.
const MOST: usize = 40;

/// The maximum length in bytes of a client's text quoted in a note.
const WORD: usize = 40;

/// Sentences about content that was left out.
#[derive(Debug, Default)]
pub(crate) struct InboundNotes {
    list: Vec<String>,
    foreign: Vec<String>,
    more: usize,
}

impl InboundNotes {
    /// Adds a note, unless it is a duplicate.
    pub(crate) fn add(&mut self, note: impl Into<String>) {
        self.push(note.into(), false);
    }

    /// Adds a note about content that only an upstream of the client's own API receives.
    pub(crate) fn add_foreign(&mut self, note: impl Into<String>) {
        self.push(note.into(), true);
    }

    /// Adds a note about a message with an unknown role at `list[at]`.
    pub(crate) fn unknown_role(&mut self, list: &str, at: usize, role: &str) {
        let role = quoted(role);
        self.add(format!(
            "{list}[{at}]: the role {role} is not known, the message is skipped"
        ));
    }

    /// Adds a note for each member of `object` that is not in `read`. Only an upstream of the
    /// client's own API receives those members. `what` names the object.
    pub(crate) fn unread(&mut self, what: &str, object: &Value, read: &[&str]) {
        for (name, value) in object.as_object().into_iter().flatten() {
            let is_empty = match value {
                Value::Null | Value::Bool(false) => true,
                Value::Array(list) => list.is_empty(),
                Value::Object(members) => members.is_empty(),
                _ => false,
            };
            // A cache mark does not affect the answer.
            let is_mark = name == "cache_control";
            if !is_empty && !is_mark && !read.contains(&name.as_str()) {
                self.add_foreign(format!("{what}: {} is left out", quoted(name)));
            }
        }
    }

    fn push(&mut self, note: String, is_foreign: bool) {
        let is_full = self.list.len() + self.foreign.len() >= MOST;
        let list = if is_foreign {
            &mut self.foreign
        } else {
            &mut self.list
        };
        if list.contains(&note) {
            return;
        }
        if is_full {
            self.more += 1
        } else {
            list.push(note)
        }
    }

    /// Returns the notes that always apply, and those that apply only to an upstream of another
    /// API. The last note of the first list counts the notes beyond the limit.
    pub(crate) fn into_lists(mut self) -> (Vec<String>, Vec<String>) {
        if self.more > 0 {
            self.list
                .push(format!("{} more notes are not shown", self.more));
        }
        (self.list, self.foreign)
    }
}

/// Quotes a client's text, truncated and with control characters escaped.
pub(crate) fn quoted(word: &str) -> String {
    let mut end = word.len().min(WORD);
    while !word.is_char_boundary(end) {
        end -= 1;
    }
    let dots = if end < word.len() { "…" } else { "" };
    format!("{:?}", format!("{}{dots}", &word[..end]))
}
