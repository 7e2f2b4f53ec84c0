//! The settings of a stream, and how its bytes ended.

use redact::Redactor;

/// Fields of `stream_start` that the provider does not send, and limits.
#[derive(Clone, Debug, Default)]
pub struct StreamOptions {
    /// The tools of the request: a JSON array in OpenAI's shape, on one line.
    pub tools: Option<String>,
    /// `native`, `tag` or `none`.
    pub tools_mode: Option<String>,
    /// The dialect's name in tag mode.
    pub dialect: Option<String>,
    /// The requested model; used if the response names none.
    pub model: Option<String>,
    /// The end of the prompt that the model's text continues.
    pub prefill: Option<String>,
    /// Which attempt this is, from 1.
    pub attempt: Option<u32>,
    /// Whether the endpoint without streaming had to be used.
    pub fallback: bool,
    /// The name of a response that has no id; ids of calls are made from it. See
    /// [`crate::Request::name`].
    pub id: Option<String>,
    /// Takes credentials out of errors, warnings and names: a server may repeat the key that it
    /// received. The model's text stays.
    pub redactor: Redactor,
    /// The name of the server, where errors are for a client of a service, who knows neither its
    /// options nor a log.
    pub server: Option<String>,
    /// Whether the ids of output items go along as `provider` data (OpenAI Responses): a later
    /// request may refer to them.
    pub item_ids: bool,
    /// Whether `details` events hold the members of the answer that no other event has.
    pub details: bool,
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
    /// No bytes came for too long; a sentence for people.
    Timeout(String),
    /// We stopped it.
    Cancelled,
}
