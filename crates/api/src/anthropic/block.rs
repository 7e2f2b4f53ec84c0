//! What a content block of an Anthropic message has so far.

use event::Raw;
use serde_json::Value;

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
        let mut json = Vec::new();
        event::minify(&mut json, citation.text());
        self.list.push(String::from_utf8_lossy(&json).into_owned());
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
    scanner: json::Scanner,
    pieces: bool,
    pub(crate) done: bool,
}

impl ToolBlock {
    pub(crate) fn new(input: Option<Raw<'_>>) -> ToolBlock {
        let start = input
            .filter(|i| i.is_object() && i.entries().next().is_some())
            .map(|i| {
                let mut text = Vec::new();
                event::minify(&mut text, i.text());
                String::from_utf8_lossy(&text).into_owned()
            });
        ToolBlock {
            start,
            scanner: json::Scanner::default(),
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
        self.block
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or("unknown")
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
