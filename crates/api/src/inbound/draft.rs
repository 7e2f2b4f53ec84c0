//! Messages of a conversation while a reader puts them together out of items and blocks.

use crate::carried::id_without;
use crate::conversation::Message;
use crate::members::Put;
use serde_json::{Map, Value, json};

/// An assistant's message so far, in the shape in which `accumulate` writes it.
#[derive(Debug, Default)]
pub(crate) struct AssistantDraft {
    content: String,
    refusal: String,
    calls: Vec<Value>,
    reasoning: String,
    blocks: Vec<Value>,
}

impl AssistantDraft {
    /// Appends text of the answer.
    pub(crate) fn say(&mut self, text: &str) {
        self.content.push_str(text);
    }

    /// Appends text of a refusal.
    pub(crate) fn refuse(&mut self, text: &str) {
        self.refusal.push_str(text);
    }

    /// Appends reasoning. `data` is what a provider wants back with it, by the name of its API.
    pub(crate) fn think(&mut self, text: &str, data: Option<Value>) {
        self.reasoning.push_str(text);
        if let Some(data) = data {
            let calls = self.calls.len();
            let text_came = !self.content.is_empty();
            self.blocks
                .push(json!({"thinking": text, "data": data, "calls": calls, "text": text_came}));
        }
    }

    /// Appends a call. `data` is what a provider wants back with it, by the name of its API.
    pub(crate) fn call(&mut self, id: &str, name: &str, arguments: &str, data: Option<Value>) {
        let (id, carried) = id_without(id);
        let mut call = json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
        if let (Some(call), Some(data)) = (call.as_object_mut(), carried.or(data)) {
            call.insert("provider".to_owned(), data);
        }
        self.calls.push(call);
    }

    /// Whether it has text or a refusal.
    pub(crate) fn has_answer(&self) -> bool {
        !self.content.is_empty() || !self.refusal.is_empty()
    }

    /// The characters of its text.
    pub(crate) fn length(&self) -> usize {
        self.content.chars().count()
    }

    /// Whether it has calls.
    pub(crate) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// The message, unless nothing was put into it. The draft is empty afterwards.
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

/// What is kept with reasoning that the provider of the client's API did not sign: it is an answer
/// of another upstream, which may want it back. DeepSeek rejects the results of tools without it
/// (<https://api-docs.deepseek.com/guides/thinking_mode>).
pub(crate) fn foreign_reasoning() -> Value {
    json!({"openai-chat": {"field": "reasoning_content"}, "ollama": {"field": "thinking"}})
}

/// A message with a role and its content, which is a string where `parts` are one text alone.
pub(crate) fn message(role: &str, parts: Vec<Value>) -> Message {
    let mut fields = Map::new();
    fields.put("role", role);
    fields.insert("content".to_owned(), content(parts));
    Message::new(fields)
}

/// A tool's message.
pub(crate) fn result(id: &str, parts: Vec<Value>) -> Message {
    let mut fields = Map::new();
    fields.put("role", "tool");
    fields.put("tool_call_id", id_without(id).0);
    fields.insert("content".to_owned(), content(parts));
    Message::new(fields)
}

/// The content that these parts are.
fn content(mut parts: Vec<Value>) -> Value {
    match &mut parts[..] {
        [] => "".into(),
        [part] if part.get("type").is_some_and(|kind| kind == "text") => part["text"].take(),
        _ => parts.into(),
    }
}

/// A part of text.
pub(crate) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// A part that is an image. `detail` is how closely the model looks at it.
pub(crate) fn image(url: &str, detail: Option<&str>) -> Value {
    match detail.filter(|detail| *detail != "auto") {
        Some(detail) => json!({"type": "image_url", "image_url": {"url": url, "detail": detail}}),
        None => json!({"type": "image_url", "image_url": {"url": url}}),
    }
}

/// A part that is a file: its bytes as a `data:` address (`file_data`) or its address (`file_url`),
/// and its name.
pub(crate) fn file(key: &str, value: &str, name: Option<&str>) -> Value {
    let mut file = Map::new();
    if let Some(name) = name {
        file.put("filename", name);
    }
    file.insert(key.to_owned(), value.into());
    json!({"type": "file", "file": file})
}

/// The conversation of an API whose system prompt is not one of the messages.
#[derive(Debug, Default)]
pub(crate) struct ConversationDraft {
    system: Vec<String>,
    messages: Vec<Message>,
}

impl ConversationDraft {
    /// Takes a text of the system prompt. After the first message it becomes part of the user's:
    /// Claude Code and Codex write such messages, and most servers of OpenAI's API reject a system
    /// prompt that is not at the beginning
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
            // Templates of many models want the roles of a user and of an assistant in turn.
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

    /// Takes the next message.
    pub(crate) fn push(&mut self, message: Message) {
        self.messages.push(message);
    }

    /// How many messages and texts of the system prompt it has.
    pub(crate) fn len(&self) -> usize {
        self.system.len() + self.messages.len()
    }

    /// How many texts the system prompt has, and how many messages there are.
    pub(crate) fn lens(&self) -> (usize, usize) {
        (self.system.len(), self.messages.len())
    }

    /// The first `count` texts of the system prompt as one, and the others as one.
    pub(crate) fn prompts(&self, count: usize) -> [String; 2] {
        let (first, others) = self.system.split_at(count);
        [first, others].map(|texts| texts.join("\n\n"))
    }

    /// All messages, the system prompt first.
    pub(crate) fn into_messages(self) -> Vec<Message> {
        let mut messages = self.messages;
        if !self.system.is_empty() {
            messages.insert(0, message("system", vec![text(&self.system.join("\n\n"))]));
        }
        messages
    }
}

/// How many notes are kept. A hostile request could give one for each of its members.
const MOST: usize = 40;

/// How many bytes of a client's word a note repeats.
const WORD: usize = 40;

/// Sentences about what a reader left out.
#[derive(Debug, Default)]
pub(crate) struct InboundNotes {
    list: Vec<String>,
    foreign: Vec<String>,
    more: usize,
}

impl InboundNotes {
    /// Takes a sentence; one that is there already is not repeated.
    pub(crate) fn add(&mut self, note: impl Into<String>) {
        self.push(note.into(), false);
    }

    /// Takes a sentence about what an upstream of the client's API gets, and another does not.
    pub(crate) fn add_foreign(&mut self, note: impl Into<String>) {
        self.push(note.into(), true);
    }

    /// Notes a message of an unknown role, the element `at` of `list`.
    pub(crate) fn unknown_role(&mut self, list: &str, at: usize, role: &str) {
        let role = quoted(role);
        self.add(format!(
            "{list}[{at}]: the role {role} is not known, the message is skipped"
        ));
    }

    /// Notes the members of an object of `what` that are not among `read`, which an upstream of the
    /// client's API alone gets.
    pub(crate) fn unread(&mut self, what: &str, object: &Value, read: &[&str]) {
        for (name, value) in object.as_object().into_iter().flatten() {
            let is_empty = match value {
                Value::Null | Value::Bool(false) => true,
                Value::Array(list) => list.is_empty(),
                Value::Object(members) => members.is_empty(),
                _ => false,
            };
            // A mark of what the provider is to keep for the next request changes no answer.
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

    /// All sentences, and those that are true for an upstream of another API alone; the last one
    /// counts those that were too many.
    pub(crate) fn into_lists(mut self) -> (Vec<String>, Vec<String>) {
        if self.more > 0 {
            self.list
                .push(format!("{} more notes are not shown", self.more));
        }
        (self.list, self.foreign)
    }
}

/// A word of the client's in quotes, shortened, without control characters.
pub(crate) fn quoted(word: &str) -> String {
    let mut end = word.len().min(WORD);
    while !word.is_char_boundary(end) {
        end -= 1;
    }
    let dots = if end < word.len() { "…" } else { "" };
    format!("{:?}", format!("{}{dots}", &word[..end]))
}
