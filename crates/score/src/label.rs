//! The labels of a corpus: one line of `index.ndjson` for each recorded stream.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The true answer for one recorded stream. Fields that other programs add to the line are ignored.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Label {
    /// The name of the stream in reports and baselines; unique in its corpus.
    pub id: String,
    /// The path of the recording, relative to the folder of the index.
    pub file: String,
    /// The number of the stream in a tape or log, counted from 1; `None` if the file holds a single
    /// stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<u64>,
    /// The provider API; `None` if the recording itself shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    /// The provider that served the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The origin of the recording. Streams of the same source resemble each other, so intervals
    /// count sources instead of streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Whether choice 0 of the stream calls a tool that the client must run; `None` until a person
    /// has confirmed the answer.
    pub has_tool_call: Option<bool>,
    /// The value that a program proposes for `has_tool_call`. No score uses it: a person copies it
    /// there, by hand or with `tc-eval label --confirm`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposed: Option<bool>,
    /// The calls of choice 0 that the client must run, in order; proposed ones if the label is not
    /// confirmed.
    pub calls: Vec<LabelledCall>,
    /// Keywords that describe the stream, by which a report can be split.
    pub tags: Vec<String>,
    /// The tool list of the request, in any provider's format; `None` if it is unknown, which
    /// differs from an empty list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Box<RawValue>>,
    /// `tag` if the model was told to write calls as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_mode: Option<String>,
    /// The dialect of that text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    /// The SHA-256 of the recording up to the end of this stream, in hexadecimal, from when the
    /// label was made. It detects another recording under the same name, which was never confirmed,
    /// and it allows a log to grow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// One call that a stream makes.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct LabelledCall {
    /// The name of the tool.
    pub name: String,
    /// The arguments as JSON; `null` if they were cut off or are not JSON.
    pub arguments: Option<Box<RawValue>>,
}
