//! The message of an Anthropic stream as it grows: its content blocks, and what is open of them.

use crate::members::{GetText, minified};
use crate::turn::{EventWriter, UsageParts};
use event::payload::{FinishReason, RetractReason, ToolCallDelta};
use event::{Raw, Text};
use serde_json::Value;
use std::collections::BTreeMap;

/// One message; a stream that begins a second one continues with the same value.
#[derive(Debug, Default)]
pub(crate) struct AnthropicMessage {
    blocks: BTreeMap<i64, ContentBlock>,
    /// The block that was opened last, for a frame without `index`.
    pub(crate) latest: i64,
    /// The tool block that has ended without whole arguments; its `done` waits until nothing of it
    /// can follow.
    waiting: Option<i64>,
    usage: UsageParts,
    /// How many characters of text have come.
    written: usize,
    begun: bool,
    pub(crate) stopped: bool,
}

/// The keys of the counts, see [`UsageParts::take`].
pub(crate) const COUNTS: [&str; 4] = [
    "input_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "output_tokens",
];

/// The members of a message that are read.
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

/// The bytes of a place in the map of blocks.
const PLACE: usize = size_of::<(i64, ContentBlock)>();

impl AnthropicMessage {
    /// A message begins. One that had begun and not ended is void: the server has started anew.
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

    /// A block begins, with what it holds already.
    pub(crate) fn open(&mut self, index: i64, start: Raw<'_>, turn: &mut EventWriter<'_>) {
        self.settle(turn);
        self.latest = index;
        let block = match start.get_str("type").as_deref() {
            Some("text") => {
                // The API begins a block that has citations with their list.
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

    /// Puts a block in the place of the one that it has had.
    fn put(&mut self, index: i64, block: ContentBlock, turn: &mut EventWriter<'_>) {
        turn.keep(PLACE + block.kept());
        if let Some(before) = self.blocks.insert(index, block) {
            turn.free(PLACE + before.kept());
        }
    }

    /// The block that a piece belongs to; `make` makes one that has had no start.
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

    /// A piece of a block. The first piece of a block without a start decides its kind.
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
                // Some gateways have the signature beside the text, and may repeat it whole.
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

    /// A piece of the answer's text.
    pub(crate) fn text(&mut self, piece: Raw<'_>, turn: &mut EventWriter<'_>) {
        if turn.options.details {
            self.written += piece.str().map_or(0, |text| text.chars().count());
        }
        turn.text(0, piece);
    }

    /// A piece of a call's input.
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

    /// A block ends.
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

    /// Writes the `done` of a tool's block that still waits: nothing of the block can follow any
    /// more.
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

    /// Closes what is open at the end. Calls only if the message ended well: a cut one must not
    /// look whole.
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

    /// Why the message ended; `null` while it goes on.
    pub(crate) fn stop_reason(&mut self, reason: Option<Raw<'_>>, turn: &mut EventWriter<'_>) {
        let Some(word) = reason.and_then(Raw::str).filter(|w| !w.is_empty()) else {
            return;
        };
        self.stopped = true;
        let reason = match word.as_ref() {
            "tool_use" => FinishReason::ToolCalls,
            "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
            "refusal" | "guardrail_intervened" | "content_filtered" => FinishReason::ContentFilter,
            // `end_turn`, `stop_sequence`, `pause_turn`, and unknown ones.
            _ => FinishReason::Stop,
        };
        turn.finish_reason(0, reason, &word);
    }

    /// Takes a `usage` object; `names` as in [`UsageParts::take`].
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

/// A block by its kind.
#[derive(Debug)]
pub(crate) enum ContentBlock {
    Text(CitedText),
    Thinking {
        signature: String,
    },
    Tool(ToolBlock),
    /// Run by the provider, or of an unknown kind.
    Server(ServerBlock),
    /// Closed, with nothing that could follow.
    Ended,
}

/// The citations of a block of text.
#[derive(Debug, Default)]
pub(crate) struct CitedText {
    /// How many characters of the answer came before it.
    pub(crate) begins: usize,
    /// JSON.
    pub(crate) list: Vec<String>,
}

impl CitedText {
    /// Takes a citation.
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

    /// The bytes that are kept of what came.
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
    /// The input that came whole with the start; it counts only when no piece follows.
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

    /// The bytes that are kept of what came.
    pub(crate) fn kept(&self) -> usize {
        self.start.as_ref().map_or(0, String::len)
    }

    /// Notes a piece of the input.
    pub(crate) fn push(&mut self, piece: Raw<'_>) {
        if let Some(text) = piece.str() {
            self.pieces |= !text.is_empty();
            self.scanner.push(&text);
        }
    }

    /// Whether the input is whole, so that nothing of it can follow.
    pub(crate) fn is_balanced(&self) -> bool {
        self.scanner.is_balanced() || (self.start.is_some() && !self.pieces)
    }

    /// The input that is still to be written when the block closes.
    pub(crate) fn input(&mut self) -> Option<String> {
        self.start.take().filter(|_| !self.pieces)
    }
}

/// A block that passes as a `server_item`: its start, and what its pieces add to it.
#[derive(Debug, Default)]
pub(crate) struct ServerBlock {
    block: Value,
    input: String,
    /// The bytes of its start and its pieces.
    bytes: usize,
}

impl ServerBlock {
    /// Adds a piece: input is collected, text is appended to the member of its name, anything else
    /// is set.
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

    /// The bytes that are kept of what came.
    pub(crate) fn kept(&self) -> usize {
        self.bytes
    }

    /// Its `type`.
    pub(crate) fn kind(&self) -> &str {
        self.block.text_of("type").unwrap_or("unknown")
    }

    /// Whether the provider wants it back with the next request: its own calls and their results.
    pub(crate) fn goes_back(&self) -> bool {
        matches!(
            self.kind(),
            "server_tool_use" | "mcp_tool_use" | "compaction"
        ) || self.kind().ends_with("_tool_result")
    }

    /// The whole block. Input that is not JSON stays text.
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
