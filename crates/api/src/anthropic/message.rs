//! The state of the message in an Anthropic stream: its content blocks and which of them are open.

use crate::members::{GetText, minified};
use crate::turn::{EventWriter, UsageParts};
use event::payload::{FinishReason, RetractReason, ToolCallDelta};
use event::{Raw, Text};
use serde_json::Value;
use std::collections::BTreeMap;

/// One message. A second message in the same stream reuses this value.
#[derive(Debug, Default)]
pub(crate) struct AnthropicMessage {
    blocks: BTreeMap<i64, ContentBlock>,
    /// The index of the block opened last, for frames without `index`.
    pub(crate) latest: i64,
    /// The tool block that ended with incomplete arguments. Its `done` is delayed until no more of
    /// the block can follow.
    waiting: Option<i64>,
    usage: UsageParts,
    /// The number of text characters so far.
    written: usize,
    begun: bool,
    pub(crate) stopped: bool,
}

/// The keys of the token counts; see [`UsageParts::take`].
pub(crate) const COUNTS: [&str; 4] = [
    "input_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "output_tokens",
];

/// The members of a message that are parsed.
const READ: [&str; 8] = [
    "id",
    "type",
    "role",
    "model",
    "content",
    "stop_reason",
    "stop_sequence",
    "usage",
];

/// The size of an entry in the map of blocks, in bytes.
const PLACE: usize = size_of::<(i64, ContentBlock)>();

impl AnthropicMessage {
    /// Starts a message. If the previous message did not end, it is void, because the server
    /// restarted.
    pub(crate) fn begin(&mut self, message: Raw<'_>, turn: &mut EventWriter<'_>) {
        if std::mem::replace(&mut self.begun, true) && !self.stopped {
            for (index, block) in &self.blocks {
                if matches!(block, ContentBlock::Tool(_)) {
                    turn.retract(0, *index, RetractReason::MessageRestarted);
                }
            }
            let message = "the provider began its message again: the calls of the first are \
                dropped, and its text is kept";
            turn.warning(0, "message_restarted", message, None);
        } else {
            self.close_all(true, turn);
        }
        turn.free(
            std::mem::take(&mut self.blocks)
                .values()
                .map(|block| PLACE + block.kept())
                .sum(),
        );
        self.waiting = None;
        self.stopped = false;
        turn.choice(0);
        turn.id(message.get("id"));
        turn.model(message.get("model"));
        self.usage = UsageParts::default();
        turn.details(0, "answer", message, &READ);
        self.usage(message.get("usage"), COUNTS, turn);
    }

    /// Opens a block and processes its initial content.
    pub(crate) fn open(&mut self, index: i64, start: Raw<'_>, turn: &mut EventWriter<'_>) {
        self.settle(turn);
        self.latest = index;
        let block = match start.get_str("type").as_deref() {
            Some("text") => {
                // The API opens a block that has citations with a list of them.
                if start.get("citations").is_some_and(|list| !list.is_null()) {
                    turn.text_ends();
                }
                if let Some(text) = start.get("text") {
                    self.text(text, turn);
                }
                let citations: Vec<Raw<'_>> = start.list("citations").collect();
                let mut block = CitedText {
                    begins: self.written,
                    list: Vec::new(),
                };
                citations
                    .into_iter()
                    .for_each(|citation| block.push(citation));
                ContentBlock::Text(block)
            }
            Some("thinking") => {
                if let Some(text) = start.get("thinking") {
                    turn.thinking(0, text);
                }
                ContentBlock::Thinking {
                    signature: start.get_str("signature").unwrap_or_default().into_owned(),
                }
            }
            Some("redacted_thinking") => {
                let data = start.get_str("data").unwrap_or_default();
                turn.goes_back(0, "redacted", &event::quoted(&data));
                ContentBlock::Ended
            }
            Some("tool_use") => {
                turn.details(0, "call", start, &["type", "id", "name", "input"]);
                let delta = ToolCallDelta {
                    index: Some(index),
                    tool_id: start.get("id").and_then(Text::of),
                    tool_name: start.get("name").and_then(Text::of),
                    ..ToolCallDelta::default()
                };
                turn.call(0, &delta, None);
                ContentBlock::Tool(ToolBlock::new(start.get("input")))
            }
            Some(_) => ContentBlock::server(start),
            None => return,
        };
        self.put(index, block, turn);
    }

    /// Inserts a block, replacing the previous one with this index.
    fn put(&mut self, index: i64, block: ContentBlock, turn: &mut EventWriter<'_>) {
        turn.keep(PLACE + block.kept());
        if let Some(before) = self.blocks.insert(index, block) {
            turn.free(PLACE + before.kept());
        }
    }

    /// Returns the block that a piece belongs to. `make` creates a block that was never opened.
    fn block(
        &mut self,
        index: i64,
        make: impl FnOnce() -> ContentBlock,
        turn: &mut EventWriter<'_>,
    ) -> &mut ContentBlock {
        self.blocks.entry(index).or_insert_with(|| {
            turn.keep(PLACE);
            make()
        })
    }

    /// Processes a piece of a block. For a block that was never opened, the first piece decides its
    /// type.
    pub(crate) fn delta(&mut self, index: i64, delta: Raw<'_>, turn: &mut EventWriter<'_>) {
        let [kind, text, json] = delta.fields(["type", "text", "partial_json"]);
        let kind = kind.and_then(Raw::str).unwrap_or_default();
        if let Some(ContentBlock::Server(item)) = self.blocks.get_mut(&index) {
            turn.keep(delta.text().len());
            return item.push(&kind, delta);
        }
        match kind.as_ref() {
            "text_delta" => {
                if let Some(text) = text {
                    self.text(text, turn);
                }
            }
            "citations_delta" => {
                if let (Some(ContentBlock::Text(block)), Some(citation)) =
                    (self.blocks.get_mut(&index), delta.get("citation"))
                {
                    block.push(citation);
                    turn.keep(block.list.last().map_or(0, String::len));
                }
            }
            "input_json_delta" => {
                if let Some(piece) = json {
                    self.input(index, piece, turn);
                }
            }
            "thinking_delta" | "signature_delta" => {
                let block = self.block(
                    index,
                    || ContentBlock::Thinking {
                        signature: String::new(),
                    },
                    turn,
                );
                // Some gateways send the signature with the text, and may repeat it in full.
                if let (ContentBlock::Thinking { signature }, Some(piece)) =
                    (block, delta.get("signature"))
                    && piece.str().is_some_and(|piece| piece != *signature)
                {
                    let before = signature.len();
                    piece.append_str(signature);
                    turn.keep(signature.len() - before);
                }
                if let Some(text) = delta.get("thinking") {
                    turn.thinking(0, text);
                }
            }
            _ => {}
        }
    }

    /// Writes a piece of answer text.
    pub(crate) fn text(&mut self, piece: Raw<'_>, turn: &mut EventWriter<'_>) {
        if turn.options.details {
            self.written += piece.str().map_or(0, |text| text.chars().count());
        }
        turn.text(0, piece);
    }

    /// Writes a piece of a call's input.
    pub(crate) fn input(&mut self, index: i64, piece: Raw<'_>, turn: &mut EventWriter<'_>) {
        if let ContentBlock::Tool(tool) =
            self.block(index, || ContentBlock::Tool(ToolBlock::new(None)), turn)
        {
            tool.push(piece);
            turn.call(
                0,
                &ToolCallDelta {
                    index: Some(index),
                    ..ToolCallDelta::default()
                },
                Some(piece),
            );
        }
    }

    /// Closes a block.
    pub(crate) fn close(&mut self, index: i64, turn: &mut EventWriter<'_>) {
        self.settle(turn);
        let ends = self.written;
        match self.blocks.get_mut(&index) {
            Some(ContentBlock::Text(block)) if !block.list.is_empty() => {
                turn.free(block.list.iter().map(String::len).sum());
                let json = format!(
                    r#"{{"list":[{}],"start_index":{},"end_index":{ends}}}"#,
                    std::mem::take(&mut block.list).join(","),
                    block.begins,
                );
                turn.member(0, "text", "citations", &json);
            }
            Some(ContentBlock::Thinking { signature }) => {
                turn.goes_back(0, "signature", &event::quoted(signature));
                self.put(index, ContentBlock::Ended, turn);
            }
            Some(ContentBlock::Tool(tool)) if !tool.done => {
                if tool.is_balanced() {
                    self.done(index, turn);
                } else {
                    self.waiting = Some(index);
                }
            }
            Some(ContentBlock::Server(item)) => {
                let item = std::mem::take(item);
                turn.free(item.kept());
                let json = item.json();
                if let Ok(data) = Raw::parse(&json) {
                    turn.server_item(0, item.kind(), data);
                    if item.goes_back() {
                        turn.goes_back(0, "block", &json);
                    }
                }
                self.put(index, ContentBlock::Ended, turn);
            }
            _ => {}
        }
    }

    /// Writes the delayed `done` of a tool block, because no more of the block can follow.
    pub(crate) fn settle(&mut self, turn: &mut EventWriter<'_>) {
        if let Some(index) = self.waiting.take() {
            self.done(index, turn);
        }
    }

    fn done(&mut self, index: i64, turn: &mut EventWriter<'_>) {
        let Some(ContentBlock::Tool(tool)) = self.blocks.get_mut(&index) else {
            return;
        };
        tool.done = true;
        let before = tool.kept();
        let input = tool.input();
        turn.free(before - tool.kept());
        turn.end_call(0, Some(index), input.as_deref().unwrap_or_default());
    }

    /// Closes the open blocks at the end. Calls are only closed if the message ended normally, so
    /// that a truncated call does not look complete.
    pub(crate) fn close_all(&mut self, whole: bool, turn: &mut EventWriter<'_>) {
        self.settle(turn);
        let open: Vec<i64> = self
            .blocks
            .iter()
            .filter(|(_, block)| match block {
                ContentBlock::Tool(tool) => whole && !tool.done,
                ContentBlock::Thinking { signature } => whole || !signature.is_empty(),
                ContentBlock::Server(_) => whole,
                ContentBlock::Text(block) => !block.list.is_empty(),
                ContentBlock::Ended => false,
            })
            .map(|(index, _)| *index)
            .collect();
        for index in open {
            self.close(index, turn);
        }
        self.settle(turn);
    }

    /// Records why the message ended. `null` means that it continues.
    pub(crate) fn stop_reason(&mut self, reason: Option<Raw<'_>>, turn: &mut EventWriter<'_>) {
        let Some(word) = reason.and_then(Raw::str).filter(|w| !w.is_empty()) else {
            return;
        };
        self.stopped = true;
        let reason = match word.as_ref() {
            "tool_use" => FinishReason::ToolCalls,
            "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
            "refusal" | "guardrail_intervened" | "content_filtered" => FinishReason::ContentFilter,
            // `end_turn`, `stop_sequence`, `pause_turn`, and unknown reasons.
            _ => FinishReason::Stop,
        };
        turn.finish_reason(0, reason, &word);
    }

    /// Reads a `usage` object. `names` are as in [`UsageParts::take`].
    pub(crate) fn usage(
        &mut self,
        usage: Option<Raw<'_>>,
        names: [&str; 4],
        turn: &mut EventWriter<'_>,
    ) {
        if let Some(usage) = usage {
            turn.counts(usage, true);
            self.usage.take(usage, names);
            turn.usage(self.usage.usage());
        }
    }
}

/// A content block, by type.
#[derive(Debug)]
pub(crate) enum ContentBlock {
    Text(CitedText),
    Thinking {
        signature: String,
    },
    Tool(ToolBlock),
    /// A block that the provider ran itself, or of an unknown type.
    Server(ServerBlock),
    /// A closed block that cannot receive more pieces.
    Ended,
}

/// The citations of a text block.
#[derive(Debug, Default)]
pub(crate) struct CitedText {
    /// The number of answer characters before the block.
    pub(crate) begins: usize,
    /// The citations as JSON.
    pub(crate) list: Vec<String>,
}

impl CitedText {
    /// Adds a citation.
    pub(crate) fn push(&mut self, citation: Raw<'_>) {
        self.list.push(minified(citation));
    }
}

impl ContentBlock {
    pub(crate) fn server(start: Raw<'_>) -> ContentBlock {
        ContentBlock::Server(ServerBlock {
            block: serde_json::from_str(start.text()).unwrap_or_default(),
            input: String::new(),
            bytes: start.text().len(),
        })
    }

    /// Returns the number of bytes held for the block.
    pub(crate) fn kept(&self) -> usize {
        match self {
            ContentBlock::Thinking { signature } => signature.len(),
            ContentBlock::Tool(tool) => tool.kept(),
            ContentBlock::Server(item) => item.kept(),
            ContentBlock::Text(text) => text.list.iter().map(String::len).sum(),
            ContentBlock::Ended => 0,
        }
    }
}

/// A call that the client runs.
#[derive(Debug)]
pub(crate) struct ToolBlock {
    /// The complete input from the block's start. It is only used if no pieces follow.
    start: Option<String>,
    scanner: json::JsonScanner,
    pieces: bool,
    pub(crate) done: bool,
}

impl ToolBlock {
    pub(crate) fn new(input: Option<Raw<'_>>) -> ToolBlock {
        let start = input
            .filter(|i| i.is_object() && i.entries().next().is_some())
            .map(|i| minified(i));
        ToolBlock {
            start,
            scanner: json::JsonScanner::default(),
            pieces: false,
            done: false,
        }
    }

    /// Returns the number of bytes held for the call.
    pub(crate) fn kept(&self) -> usize {
        self.start.as_ref().map_or(0, String::len)
    }

    /// Records a piece of the input.
    pub(crate) fn push(&mut self, piece: Raw<'_>) {
        if let Some(text) = piece.str() {
            self.pieces |= !text.is_empty();
            self.scanner.push(&text);
        }
    }

    /// Whether the input is complete, so that no more of it can follow.
    pub(crate) fn is_balanced(&self) -> bool {
        self.scanner.is_balanced() || (self.start.is_some() && !self.pieces)
    }

    /// Returns the input that still has to be written when the block closes.
    pub(crate) fn input(&mut self) -> Option<String> {
        self.start.take().filter(|_| !self.pieces)
    }
}

/// A block that is forwarded as a `server_item`: its start plus the content of its pieces.
#[derive(Debug, Default)]
pub(crate) struct ServerBlock {
    block: Value,
    input: String,
    /// The size of the start and the pieces, in bytes.
    bytes: usize,
}

impl ServerBlock {
    /// Adds a piece: input is collected, text is appended to the member with its name, and other
    /// values are set.
    pub(crate) fn push(&mut self, kind: &str, delta: Raw<'_>) {
        self.bytes += delta.text().len();
        if kind == "input_json_delta" {
            if let Some(piece) = delta.get("partial_json") {
                piece.append_str(&mut self.input);
            }
            return;
        }
        let Value::Object(members) = &mut self.block else {
            return;
        };
        for (key, value) in delta.entries().filter(|(key, _)| key != "type") {
            let value: Value = serde_json::from_str(value.text()).unwrap_or_default();
            match (members.get_mut(key.as_ref()), value) {
                (Some(Value::String(text)), Value::String(more)) => text.push_str(&more),
                (_, value) => {
                    members.insert(key.into_owned(), value);
                }
            }
        }
    }

    /// Returns the number of bytes held for the block.
    pub(crate) fn kept(&self) -> usize {
        self.bytes
    }

    /// Returns the block's `type`.
    pub(crate) fn kind(&self) -> &str {
        self.block.text_of("type").unwrap_or("unknown")
    }

    /// Whether the block must be sent back in the next request: the provider's own calls and their
    /// results.
    pub(crate) fn goes_back(&self) -> bool {
        matches!(
            self.kind(),
            "server_tool_use" | "mcp_tool_use" | "compaction"
        ) || self.kind().ends_with("_tool_result")
    }

    /// Returns the complete block. Input that is not valid JSON stays a string.
    pub(crate) fn json(&self) -> String {
        let mut block = self.block.clone();
        if let (Value::Object(members), false) = (&mut block, self.input.is_empty()) {
            let input = serde_json::from_str(&self.input)
                .unwrap_or_else(|_| Value::String(self.input.clone()));
            members.insert("input".to_owned(), input);
        }
        block.to_string()
    }
}
