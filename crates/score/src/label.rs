//! The labels of a corpus: one line of `index.ndjson` for each recorded stream.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// What is true of one recorded stream. Fields that other programs add to the line are ignored.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Label {
    /// The name of the stream in reports and baselines; unique in its corpus.
    pub id: String,
    /// The recording: a path relative to the folder of the index.
    pub file: String,
    /// Which stream of a tape or a log this is, from 1 on; `None` where the file holds one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<u64>,
    /// The provider API; without it the recording shows its API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    /// Who served the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Where the recording comes from. Streams of one source resemble each other, so intervals
    /// count sources and not streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Whether choice 0 of the stream calls a tool that the client must run; `None` while nobody
    /// has confirmed it.
    pub has_tool_call: Option<bool>,
    /// What a program proposes for `has_tool_call`. It counts nowhere: a person copies it there, by
    /// hand or with `tc-eval label --confirm`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposed: Option<bool>,
    /// Those calls, in order; of a label that is not confirmed, the proposed ones.
    pub calls: Vec<LabelledCall>,
    /// What the stream shows, in words by which a report can be split.
    pub tags: Vec<String>,
    /// The list of tools of the request, in any provider's shape; `None` where it is unknown, which
    /// is not an empty list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Box<RawValue>>,
    /// `tag` where the model was told to write calls as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_mode: Option<String>,
    /// The dialect of that text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    /// The SHA-256 of the recording up to the end of this stream, in hexadecimal, when the label
    /// was made: another recording under the same name is not what was confirmed, and a log may
    /// grow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// One call that a stream makes.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct LabelledCall {
    /// The name of the tool.
    pub name: String,
    /// The arguments as JSON, or `null` where they were cut or are not JSON.
    pub arguments: Option<Box<RawValue>>,
}
