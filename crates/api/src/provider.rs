//! The columns of the table of provider APIs.

use crate::answer::writer::AnswerFormat;
use crate::request::options::{BodyBuilder, RequestError, RequestOptions};
use crate::turn::Decoder;

/// How a key goes into the headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyRule {
    /// `authorization: Bearer KEY`
    Bearer,
    /// `x-api-key: KEY`
    XApiKey,
    /// `x-goog-api-key: KEY`
    Google,
}

/// One provider API: a constant `PROVIDER` in its folder.
pub(crate) struct Provider {
    /// As `--api` names it.
    pub name: &'static str,
    /// Other names that people type for it.
    pub aliases: &'static [&'static str],
    /// With the version, if official clients have it in their base URL.
    pub base_url: &'static str,
    /// The environment variable that holds the key by custom.
    pub key_env: &'static str,
    /// What follows the base URL; it may hold a query. A name of a client's in it is one segment.
    pub path: fn(&RequestOptions) -> Result<String, RequestError>,
    pub key: KeyRule,
    /// Headers that every request has.
    pub headers: &'static [(&'static str, &'static str)],
    /// Whether its messages have a member for refusals; elsewhere a refusal goes back as text.
    pub has_refusals: bool,
    /// Whether the result of a tool is one text; images and files of it then go into a message of
    /// the user.
    pub has_text_results: bool,
    /// The rules of its stream.
    pub decoder: fn() -> Box<dyn Decoder>,
    /// The builder of its requests.
    pub body: BodyBuilder,
    /// How its answers are written, for its clients.
    pub answers: Option<&'static AnswerFormat>,
}
