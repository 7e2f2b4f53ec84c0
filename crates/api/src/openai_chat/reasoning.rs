//! Reasoning beside the content of a chat completion: which field it comes in, and what must go
//! back.

use crate::turn::Turn;
use event::{Raw, Sink};

/// The reasoning of one choice that has begun and is not closed by text or a call.
///
/// Servers name the field `reasoning_content` (DeepSeek, SiliconFlow, llama.cpp, vLLM) or
/// `reasoning` (OpenRouter, Groq, vLLM), and some send both with the same text. OpenRouter adds
/// `reasoning_details`, which must go back as they came
/// (openrouter.ai/docs/use-cases/reasoning-tokens): their pieces are joined here, and written once,
/// when the block is closed.
#[derive(Debug, Default)]
pub(crate) struct Reasoning {
    /// The field that the open block came in; empty while none is open.
    field: &'static str,
    details: Vec<Detail>,
    /// The text of details in this delta, for servers that send it nowhere else.
    detail_text: String,
    /// The bytes of the details.
    bytes: usize,
}

/// One entry of `reasoning_details`, its pieces joined.
#[derive(Debug)]
struct Detail {
    kind: String,
    /// The member that grows, and its text.
    text: Option<(&'static str, String)>,
    /// The other members as JSON; of a repeated one the last counts.
    members: Vec<(String, String)>,
}

const FIELDS: [&str; 2] = ["reasoning_content", "reasoning"];

impl Reasoning {
    /// Takes the `reasoning_details` of a delta.
    pub(crate) fn details(&mut self, value: Raw<'_>, turn: &mut Turn) {
        self.bytes += value.text().len();
        turn.keep(value.text().len());
        value.items().for_each(|item| self.detail(item));
    }

    /// Writes the reasoning of a delta, whose `reasoning_content` and `reasoning` these are.
    pub(crate) fn flow(
        &mut self,
        choice: u32,
        fields: [Option<Raw<'_>>; 2],
        turn: &mut Turn,
        out: &mut dyn Sink,
    ) {
        let says = |v: &Raw<'_>| v.is_str() && v.text() != "\"\"";
        if let Some((field, text)) = FIELDS
            .into_iter()
            .zip(fields)
            .find_map(|(f, v)| Some((f, v.filter(says)?)))
        {
            self.field = field;
            turn.thinking(choice, text, out);
        } else if !self.detail_text.is_empty() {
            turn.thinking_plain(choice, &self.detail_text, None, out);
        }
        self.detail_text.clear();
    }

    /// A part of the content that is reasoning (Mistral).
    pub(crate) fn part(&mut self, choice: u32, text: Raw<'_>, turn: &mut Turn, out: &mut dyn Sink) {
        if text.is_str() {
            self.field = "thinking";
            turn.thinking(choice, text, out);
        }
    }

    /// Text or a call begins, or the choice has ended: writes what must go back, if anything.
    pub(crate) fn close(&mut self, api: &str, choice: u32, turn: &mut Turn, out: &mut dyn Sink) {
        let field = std::mem::take(&mut self.field);
        let details = std::mem::take(&mut self.details);
        turn.free(std::mem::take(&mut self.bytes));
        if field.is_empty() && details.is_empty() {
            return;
        }
        let mut json = Vec::new();
        let mut o = event::Object::open(&mut json);
        o.object(api, |o| {
            if !field.is_empty() {
                o.str("field", field);
            }
            if !details.is_empty() {
                o.array("reasoning_details", |a| {
                    for d in &details {
                        a.object(|o| d.write(o));
                    }
                });
            }
        });
        o.close();
        turn.thinking_plain(choice, "", Some(&String::from_utf8_lossy(&json)), out);
    }

    fn detail(&mut self, item: Raw<'_>) {
        let kind = item.get_str("type").unwrap_or_default();
        let grown = ["text", "summary"]
            .into_iter()
            .find_map(|key| Some((key, item.get_str(key)?)));
        if let Some((_, text)) = &grown {
            self.detail_text.push_str(text);
        }
        let index = item.get("index").map(Raw::text);
        let same = |d: &Detail| {
            d.kind == kind
                && d.text.is_some()
                && index.is_none_or(|i| d.member("index").is_none_or(|before| before == i))
        };
        let at = match self.details.last() {
            Some(last) if grown.is_some() && same(last) => self.details.len() - 1,
            // A signature may come in an entry of its own, without text.
            Some(last) if grown.is_none() && item.get("signature").is_some() && same(last) => {
                self.details.len() - 1
            }
            _ => {
                self.details.push(Detail {
                    kind: kind.into_owned(),
                    text: None,
                    members: Vec::new(),
                });
                self.details.len() - 1
            }
        };
        let detail = &mut self.details[at];
        for (key, value) in item.entries() {
            match key.as_ref() {
                "type" => {}
                "text" | "summary" if value.is_str() => {}
                _ => detail.set(&key, value),
            }
        }
        if let Some((key, text)) = grown {
            detail
                .text
                .get_or_insert_with(|| (key, String::new()))
                .1
                .push_str(&text);
        }
    }
}

impl Detail {
    fn member(&self, key: &str) -> Option<&str> {
        self.members
            .iter()
            .find(|(k, _)| k == key)
            .map(|(_, v)| v.as_str())
    }

    fn set(&mut self, key: &str, value: Raw<'_>) {
        let mut json = Vec::new();
        event::minify(&mut json, value.text());
        let json = String::from_utf8_lossy(&json).into_owned();
        match self.members.iter_mut().find(|(k, _)| k == key) {
            Some((_, before)) if json != "null" => *before = json,
            Some(_) => {}
            None => self.members.push((key.to_owned(), json)),
        }
    }

    fn write(&self, o: &mut event::Object<'_>) {
        if !self.kind.is_empty() {
            o.str("type", &self.kind);
        }
        if let Some((key, text)) = &self.text {
            o.str(key, text);
        }
        for (key, json) in &self.members {
            o.raw(key, json);
        }
    }
}
