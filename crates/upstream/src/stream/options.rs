//! What a stream is given beside its bytes, and how they ended.

use redact::Redactor;

/// What `stream_start` says beside what the provider does.
#[derive(Clone, Debug, Default)]
pub struct StreamOptions {
    /// The tools of the request: a JSON array in OpenAI's shape, on one line.
    pub tools: Option<String>,
    /// `native`, `tag` or `none`.
    pub tools_mode: Option<String>,
    /// The dialect's name in tag mode.
    pub dialect: Option<String>,
    /// The model that was asked for; used where the response names none.
    pub model: Option<String>,
    /// The end of the prompt that the model's text continues.
    pub prefill: Option<String>,
    /// Which attempt this is, from 1.
    pub attempt: Option<u32>,
    /// Whether the endpoint without streaming had to be used.
    pub fallback: bool,
    /// What the response is called where the provider gives it no id; ids of calls are made from it. See [`crate::Request::name`].
    pub id: Option<String>,
    /// Takes credentials out of errors, warnings and names: a server may repeat the key that it was sent. What the model writes stays.
    pub redactor: Redactor,
    /// The most bytes of one event of the body, or one JSON value; 64 MiB by default.
    pub max_frame: Option<usize>,
}

/// How the bytes of a response ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The body's regular end.
    Eof,
    /// The connection was lost; a sentence for people.
    Reset(String),
    /// Nothing came for too long; a sentence for people.
    Timeout(String),
    /// We stopped it.
    Cancelled,
}
