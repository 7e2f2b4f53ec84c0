//! Deviations that show only in the bytes of a body: its framing, and what decoders skip.

use api::Api;
use event::Raw;
use score::deviation::{
    ARGUMENTS_OBJECT, BYTE_ORDER_MARK, CALLS_NULL, COMMENTS, CRLF, Deviation, EMPTY_CHOICES,
    EMPTY_DELTA, EMPTY_OUTPUT, FINISH_TWICE, INDEX_TWICE_IN_CHUNK, NO_BLANK_LINES, NO_END_MARK,
    NO_LAST_BLANK, OPENAI_DONE, USAGE_AFTER_FINISH, USAGE_IN_EVERY_CHUNK,
};
use std::collections::BTreeSet;

/// Gives each deviation of `body` to `found`, with the bytes up to the end of the line that shows
/// it. A deviation may come several times.
pub(super) fn search(body: &[u8], api: Api, found: &mut dyn FnMut(&'static Deviation, usize)) {
    let is_lines = api == Api::Ollama;
    let mut frames = CardFrames {
        api,
        finished: BTreeSet::new(),
        usages: 0,
        items: 0,
        has_ended: false,
        found,
    };
    let mut offset = 0;
    if body.starts_with(b"\xef\xbb\xbf") {
        (frames.found)(BYTE_ORDER_MARK, 3);
    }
    let (mut is_stream, mut is_open, mut was_object) = (false, false, false);
    for line in body.split_inclusive(|byte| *byte == b'\n') {
        offset += line.len();
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        let data = match text.strip_prefix(b"data:") {
            Some(data) => Some(data),
            None if is_lines && text.starts_with(b"{") => Some(text),
            None => None,
        };
        if let Some(data) = data {
            is_stream = true;
            // No text of JSON has an object behind an object.
            if is_open && was_object && data.trim_ascii_start().starts_with(b"{") {
                (frames.found)(NO_BLANK_LINES, offset);
            }
            is_open = !is_lines;
            was_object = data.trim_ascii_end().ends_with(b"}");
            frames.data(data.trim_ascii(), offset);
        } else if text.is_empty() {
            is_open = false;
        } else if text.first() == Some(&b':') {
            (frames.found)(COMMENTS, offset);
        }
        // A whole answer is JSON, in which line ends mean nothing.
        if is_stream && line.ends_with(b"\r\n") {
            (frames.found)(CRLF, offset);
        }
    }
    if is_open {
        (frames.found)(NO_LAST_BLANK, offset);
    }
    if is_stream && !frames.has_ended && api != Api::Gemini {
        (frames.found)(NO_END_MARK, offset);
    }
}

struct CardFrames<'f> {
    api: Api,
    /// The choices that have a finish reason.
    finished: BTreeSet<i64>,
    /// Frames with the usage.
    usages: u64,
    /// Items of a response.
    items: u64,
    has_ended: bool,
    found: &'f mut dyn FnMut(&'static Deviation, usize),
}

impl CardFrames<'_> {
    fn data(&mut self, data: &[u8], offset: usize) {
        if data == b"[DONE]" {
            match self.api {
                Api::OpenaiChat | Api::Mistral => self.has_ended = true,
                Api::Anthropic | Api::OpenaiResponses => (self.found)(OPENAI_DONE, offset),
                _ => {}
            }
            return;
        }
        let Some(frame) = std::str::from_utf8(data)
            .ok()
            .and_then(|text| Raw::parse(text).ok())
        else {
            return;
        };
        let kind = frame.get_str("type");
        match self.api {
            Api::OpenaiChat | Api::Mistral => self.chunk(frame, offset),
            Api::Anthropic => {
                self.has_ended |=
                    kind.as_deref() == Some("message_stop") || frame.get("messageStop").is_some();
                if kind.as_deref() == Some("message_delta")
                    && has_text(frame.at(&["delta", "stop_reason"]))
                {
                    self.finish(0, offset);
                }
            }
            Api::Gemini => {
                for candidate in frame.get("candidates").into_iter().flat_map(Raw::items) {
                    if has_text(candidate.get("finishReason")) {
                        self.finish(
                            candidate.get("index").and_then(Raw::i64).unwrap_or(0),
                            offset,
                        );
                    }
                }
                if frame.get("usageMetadata").is_some() {
                    self.usage(offset);
                }
            }
            Api::OpenaiResponses => match kind.as_deref() {
                Some("response.output_item.done" | "response.output_item.added") => self.items += 1,
                Some("response.completed" | "response.incomplete" | "response.failed") => {
                    self.has_ended = true;
                    let output = frame.at(&["response", "output"]);
                    if self.items > 0
                        && output.is_some_and(|output| {
                            output.is_array() && output.items().next().is_none()
                        })
                    {
                        (self.found)(EMPTY_OUTPUT, offset);
                    }
                }
                _ => {}
            },
            Api::Cohere => self.has_ended |= kind.as_deref() == Some("message-end"),
            Api::Ollama => self.has_ended |= frame.get("done").and_then(Raw::bool) == Some(true),
        }
    }

    /// Takes a chunk of OpenAI's chat API.
    fn chunk(&mut self, chunk: Raw<'_>, offset: usize) {
        let usage = chunk.get("usage").is_some_and(Raw::is_object);
        let mut choices = 0;
        let was_finished = !self.finished.is_empty();
        let mut finishes = false;
        for choice in chunk.get("choices").into_iter().flat_map(Raw::items) {
            choices += 1;
            self.delta(choice, offset);
            if has_text(choice.get("finish_reason")) {
                finishes = true;
                self.finish(choice.get("index").and_then(Raw::i64).unwrap_or(0), offset);
            }
        }
        if choices == 0 && !usage && chunk.get("choices").is_some_and(Raw::is_array) {
            (self.found)(EMPTY_CHOICES, offset);
        }
        if usage {
            self.usage(offset);
            if was_finished && !finishes {
                (self.found)(USAGE_AFTER_FINISH, offset);
            }
        }
    }

    fn delta(&mut self, choice: Raw<'_>, offset: usize) {
        let Some(delta) = choice.get("delta") else {
            if choice.get("message").is_none() {
                (self.found)(EMPTY_DELTA, offset);
            }
            return;
        };
        let Some(calls) = delta.get("tool_calls") else {
            return;
        };
        let mut indexes = BTreeSet::new();
        let mut count = 0;
        for call in calls.items() {
            count += 1;
            if let Some(index) = call.get("index").and_then(Raw::i64)
                && !indexes.insert(index)
            {
                (self.found)(INDEX_TWICE_IN_CHUNK, offset);
            }
            if call
                .at(&["function", "arguments"])
                .is_some_and(Raw::is_object)
            {
                (self.found)(ARGUMENTS_OBJECT, offset);
            }
        }
        if count == 0 {
            (self.found)(CALLS_NULL, offset);
        }
    }

    fn finish(&mut self, choice: i64, offset: usize) {
        if !self.finished.insert(choice) {
            (self.found)(FINISH_TWICE, offset);
        }
    }

    fn usage(&mut self, offset: usize) {
        self.usages += 1;
        if self.usages == 2 {
            (self.found)(USAGE_IN_EVERY_CHUNK, offset);
        }
    }
}

fn has_text(value: Option<Raw<'_>>) -> bool {
    value.is_some_and(|value| value.str_len() > 0)
}
