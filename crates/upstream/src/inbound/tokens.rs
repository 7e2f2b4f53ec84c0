//! How many tokens a client's request may have.

use super::request::InboundRequest;
use serde_json::Value;

/// Bytes of text that make a token, times two. English prose has about four characters a token, code and JSON about three, and text in three
/// bytes a character about one token a character.
const HALF_BYTES: usize = 7;

/// What the frame of a message takes.
const MESSAGE: usize = 5;

/// What an image takes at most after it was made smaller
/// (<https://platform.claude.com/docs/en/build-with-claude/vision>, "Evaluate image size").
const IMAGE: usize = 1600;

/// What a file takes, of which the reader does not know how many pages it has
/// (<https://platform.claude.com/docs/en/build-with-claude/pdf-support>: 1,500 to 3,000 tokens a page).
const FILE: usize = 2000;

impl InboundRequest {
    /// An estimate of the tokens of the request: a token for each 3.5 bytes of its texts, calls, results and tools, 5 for each message, 1,600
    /// for each image and 2,000 for each file. Every model counts otherwise, so an answer that has this number must call it an estimate.
    pub fn estimated_tokens(&self) -> usize {
        let mut count = Count::default();
        for message in &self.conversation.messages {
            count.whole += MESSAGE;
            for (key, value) in message.fields() {
                // What providers want back is not text, and reasoning of earlier turns is not counted.
                if !matches!(key.as_str(), "role" | "provider" | "reasoning") {
                    count.value(value);
                }
            }
        }
        if let Some(tools) = &self.tools {
            count.bytes += tools.openai(|_| true).len();
        }
        count.bytes += self.provider_tools.iter().map(|tool| tool.to_string().len()).sum::<usize>();
        count.whole + (count.bytes * 2).div_ceil(HALF_BYTES)
    }
}

/// What was counted so far.
#[derive(Default)]
struct Count {
    bytes: usize,
    whole: usize,
}

impl Count {
    fn value(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.bytes += text.len(),
            Value::Array(items) => items.iter().for_each(|item| self.value(item)),
            Value::Object(members) => match members.get("type").and_then(Value::as_str) {
                Some("image_url" | "input_image" | "image") => self.whole += IMAGE,
                Some("file" | "input_file" | "input_audio" | "document") => self.whole += FILE,
                _ => {
                    let counted = members.iter().filter(|(key, _)| !matches!(key.as_str(), "type" | "id" | "provider"));
                    counted.for_each(|(_, value)| self.value(value));
                }
            },
            Value::Number(number) => self.bytes += number.as_str().len(),
            Value::Bool(_) | Value::Null => {}
        }
    }
}
