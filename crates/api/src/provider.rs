//! The columns of the table of provider APIs.

use crate::answer::writer::AnswerFormat;
use crate::request::options::{BodyBuilder, RequestError, RequestOptions};
use crate::turn::Decoder;

/// How an API key is sent in the request headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyRule {
    /// `authorization: Bearer KEY`
    Bearer,
    /// `x-api-key: KEY`
    XApiKey,
    /// `x-goog-api-key: KEY`
    Google,
}

/// One provider API. Each API's folder defines one as the constant `PROVIDER`.
pub(crate) struct Provider {
    /// The API's name, as used in `--api`.
    pub name: &'static str,
    /// Other names that `--api` accepts.
    pub aliases: &'static [&'static str],
    /// The base URL of the provider's service. Includes the version if official clients include it.
    pub base_url: &'static str,
    /// The environment variable that conventionally holds the API key.
    pub key_env: &'static str,
    /// Returns the path to append to the base URL, optionally with a query. A model name in the
    /// path is percent-encoded, or rejected if it would lead to another path.
    pub path: fn(&RequestOptions) -> Result<String, RequestError>,
    pub key: KeyRule,
    /// Headers sent with every request.
    pub headers: &'static [(&'static str, &'static str)],
    /// Whether messages have a member for refusals. If not, refusals are sent back as text.
    pub has_refusals: bool,
    /// Whether a tool result must be a single text. If so, its images and files are moved into a
    /// user message.
    pub has_text_results: bool,
    /// Creates the decoder for this API's streams.
    pub decoder: fn() -> Box<dyn Decoder>,
    /// Builds the request body.
    pub body: BodyBuilder,
    /// How responses are written for clients that speak this API. `None` if clients cannot use it.
    pub answers: Option<&'static AnswerFormat>,
}
