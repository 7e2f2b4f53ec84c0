//! How many tokens a client's request may have.

use super::request::InboundRequest;
use serde_json::Value;

/// Bytes of text that make a token, times two. English prose has about four characters a token,
/// code and JSON about three, and text in three bytes a character about one token a character.
const HALF_BYTES: usize = 7;

/// What the frame of a message takes.
const MESSAGE: usize = 5;

/// What an image takes at most after it was made smaller
/// (<https://platform.claude.com/docs/en/build-with-claude/vision>, "Evaluate image size").
const IMAGE: usize = 1600;

/// What a file takes, of which the reader does not know how many pages it has
/// (<https://platform.claude.com/docs/en/build-with-claude/pdf-support>: 1,500 to 3,000 tokens a
/// page).
const FILE: usize = 2000;

/// What Claude's API writes around the tools of a request
/// (<https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview>, "Pricing": 346 tokens
/// with the choice `auto`).
const CLAUDE_TOOLS: usize = 346;

/// What the chat template of another model writes around them: how calls are written, and where the
/// list begins and ends. That of Qwen 2.5 and 3 has 430 bytes.
const TOOLS: usize = 120;

impl InboundRequest {
    /// An estimate of the tokens of the request: a token for each 3.5 bytes of its texts, calls,
    /// results and tools, 5 for each message, 1,600 for each image and 2,000 for each file, and
    /// with tools 346 for a Claude and 120 for any other model. Every model counts otherwise, so an
    /// answer that has this number must call it an estimate.
    pub fn estimated_tokens(&self) -> usize {
        let mut count = self.counted();
        let is_claude = self
            .model
            .as_deref()
            .is_some_and(|model| model.to_lowercase().contains("claude"));
        let has_tools = self
            .tools
            .as_ref()
            .is_some_and(|tools| tools.iter().next().is_some());
        if has_tools || !self.provider_tools.is_empty() {
            count.whole += if is_claude { CLAUDE_TOOLS } else { TOOLS };
        }
        if let Some(tools) = &self.tools {
            count.bytes += tools.openai(|_| true).len();
        }
        count.bytes += self
            .provider_tools
            .iter()
            .map(|tool| tool.to_string().len())
            .sum::<usize>();
        count.whole + count.media + (count.bytes * 2).div_ceil(HALF_BYTES)
    }

    /// What of it are images and files, which a count of the prompt's text leaves out.
    pub fn estimated_media_tokens(&self) -> usize {
        self.counted().media
    }

    fn counted(&self) -> Count {
        let mut count = Count::default();
        for message in &self.conversation.messages {
            count.whole += MESSAGE;
            for (key, value) in message.fields() {
                // What providers want back is not text, and reasoning of earlier turns is not
                // counted.
                if !matches!(key.as_str(), "role" | "provider" | "reasoning") {
                    count.value(value);
                }
            }
        }
        count
    }
}

/// What was counted so far.
#[derive(Default)]
struct Count {
    bytes: usize,
    whole: usize,
    /// Of images and files.
    media: usize,
}

impl Count {
    fn value(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.bytes += text.len(),
            Value::Array(items) => items.iter().for_each(|item| self.value(item)),
            Value::Object(members) => match members.get("type").and_then(Value::as_str) {
                Some("image_url" | "input_image" | "image") => self.media += IMAGE,
                Some("file" | "input_file" | "input_audio" | "document") => self.media += FILE,
                _ => {
                    let counted = members
                        .iter()
                        .filter(|(key, _)| !matches!(key.as_str(), "type" | "id" | "provider"));
                    counted.for_each(|(_, value)| self.value(value));
                }
            },
            Value::Number(number) => self.bytes += number.as_str().len(),
            Value::Bool(_) | Value::Null => {}
        }
    }
}
