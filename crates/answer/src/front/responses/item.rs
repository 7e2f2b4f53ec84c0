//! The items of `output`.

use super::custom::FreeText;
use event::{Object, Raw};

/// The item that is open.
#[derive(Clone, Debug)]
pub(super) enum Item {
    Message {
        parts: Vec<Part>,
    },
    Reasoning {
        /// The text of its one summary.
        text: String,
        /// What the API wants back: a JSON string.
        encrypted: Option<String>,
    },
    Call {
        call_id: String,
        name: String,
        arguments: String,
    },
    /// A call of a tool that takes free text.
    Custom {
        call_id: String,
        name: String,
        input: FreeText,
    },
}

/// One part of a message.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub is_refusal: bool,
    pub text: String,
}

/// The member `status` of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemStatus {
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

impl Part {
    pub fn json(&self) -> String {
        let mut out = Vec::new();
        let mut o = Object::open(&mut out);
        if self.is_refusal {
            o.str("type", "refusal").str("refusal", &self.text);
        } else {
            o.str("type", "output_text").str("text", &self.text).raw("annotations", "[]").raw("logprobs", "[]");
        }
        o.close();
        text(out)
    }
}

impl Item {
    pub fn call(id: &str, name: &str, is_custom: bool) -> Item {
        let (call_id, name) = (id.to_owned(), name.to_owned());
        if is_custom {
            Item::Custom { call_id, name, input: FreeText::default() }
        } else {
            Item::Call { call_id, name, arguments: String::new() }
        }
    }

    pub fn is_call(&self) -> bool {
        matches!(self, Item::Call { .. } | Item::Custom { .. })
    }

    /// Its id, which differs from the id of its call: clients keep both.
    pub fn id(&self, answer: &str, index: u32) -> String {
        let prefix = match self {
            Item::Message { .. } => "msg",
            Item::Reasoning { .. } => "rs",
            Item::Call { .. } => "fc",
            Item::Custom { .. } => "ctc",
        };
        format!("{prefix}_{answer}_{index}")
    }

    pub fn json(&self, answer: &str, index: u32, status: ItemStatus) -> String {
        let mut out = Vec::new();
        let mut o = Object::open(&mut out);
        let id = self.id(answer, index);
        let status = status.name();
        match self {
            Item::Message { parts } => {
                o.str("type", "message").str("id", &id).str("status", status).str("role", "assistant");
                o.array("content", |a| parts.iter().for_each(|part| _ = a.raw(&part.json())));
            }
            Item::Reasoning { text, encrypted } => {
                // Without a status, which the API refuses when the item comes back.
                o.str("type", "reasoning").str("id", &id).array("summary", |a| {
                    if !text.is_empty() {
                        a.object(|o| summary(o, text));
                    }
                });
                if let Some(encrypted) = encrypted {
                    o.raw("encrypted_content", encrypted);
                }
            }
            Item::Call { call_id, name, arguments } => {
                o.str("type", "function_call").str("id", &id).str("call_id", call_id).str("name", name);
                o.str("arguments", arguments).str("status", status);
            }
            Item::Custom { call_id, name, input } => {
                o.str("type", "custom_tool_call").str("id", &id).str("call_id", call_id).str("name", name);
                o.str("input", input.text()).str("status", status);
            }
        }
        o.close();
        text(out)
    }
}

/// The one part of a summary.
pub(super) fn summary(o: &mut Object<'_>, text: &str) {
    o.str("type", "summary_text").str("text", text);
}

/// The reasoning that only the API can read, as a JSON string, out of the `provider` data of a step.
pub(super) fn encrypted_content(provider: &str) -> Option<String> {
    let content = Raw::parse(provider).ok()?.at(&["openai-responses", "item", "encrypted_content"])?;
    content.str().filter(|text| !text.is_empty()).map(|text| event::quoted(&text))
}

/// What was written here is UTF-8.
fn text(json: Vec<u8>) -> String {
    String::from_utf8(json).unwrap_or_default()
}
