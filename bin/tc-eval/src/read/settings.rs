//! How recordings are read.

use crate::split::Sizes;
use api::{StreamOptions, Words};
use json::ToolList;

/// The events are those of `llm-stream --replay`.
const WORDS: Words = Words {
    source: "llm-stream",
    overflow: "leave old messages out of the log, lower max_tokens, or ask a model with a longer context",
    no_tools: None,
    other_api: "use --api",
    max_frame: "--max-line",
};

/// How to read a recording.
#[derive(Clone, Debug, Default)]
pub struct ReadSettings {
    /// The API of a body; without it the body shows its API.
    pub api: Option<api::Api>,
    /// Which stream of the file to read, from 1 on; `None`: all.
    pub part: Option<u64>,
    /// The requested model; used where the recording names none.
    pub model: Option<String>,
    /// The tools of the request as JSON in any provider's shape, if known; they become `tools` of
    /// `stream_start` where the recording has none. A list that cannot be read counts as unknown.
    pub tools: Option<String>,
    /// `tag` where calls are text, with the dialect.
    pub tools_mode: Option<String>,
    /// See `tools_mode`.
    pub dialect: Option<String>,
    /// The most bytes of one frame of a body or one line of a log; 64 MiB by default.
    pub max_line: Option<usize>,
    /// Whether a line of a log that is not an event is an error; by default it is skipped.
    pub strict: bool,
    /// The sizes of the pieces in which bytes reach the decoder; by default lines, or the reads of
    /// a tape.
    pub pieces: Option<Sizes>,
}

impl ReadSettings {
    /// Whether the stream of this number is read.
    pub(super) fn reads(&self, part: u64) -> bool {
        self.part.is_none_or(|wanted| wanted == part)
    }

    /// The tools in OpenAI's shape, on one line; `None` where they are unknown.
    pub(super) fn tools(&self) -> Option<String> {
        openai_tools(self.tools.as_deref()?)
    }

    /// The fields of `stream_start` where the recording has none of them.
    pub(super) fn options(&self) -> StreamOptions {
        let tools = self.tools();
        let tools_mode = self
            .tools_mode
            .clone()
            .or_else(|| tools.as_deref().map(native_or_none));
        StreamOptions {
            tools,
            tools_mode,
            dialect: self.dialect.clone(),
            model: self.model.clone(),
            max_frame: self.max_line,
            words: WORDS,
            ..StreamOptions::default()
        }
    }
}

/// A list of tools in any provider's shape as a list in OpenAI's, on one line. `None` if it cannot
/// be read.
pub(super) fn openai_tools(json: &str) -> Option<String> {
    Some(ToolList::read(json).ok()?.openai(|_| true))
}

/// The `tools_mode` of a request with these tools.
pub(super) fn native_or_none(tools: &str) -> String {
    if tools == "[]" { "none" } else { "native" }.to_owned()
}
