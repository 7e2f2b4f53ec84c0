//! The interface that an API's `writer.rs` implements to write responses.

use crate::answer::failure::{FailedAnswer, OPENAI};
use crate::answer::step::RunningStatus;
use crate::answer::step::{AnswerOptions, ReportedUsage, Step};
use event::Object;

/// Writes a response in one API: as a stream, or as the object that the stream adds up to.
pub(crate) trait AnswerWriter {
    /// Writes one step of `choice`. For a complete response, the step is stored instead, and
    /// `Usage` and `Failed` are never passed. `model` is the upstream's model name, or "" if it is
    /// not yet known.
    fn step(&mut self, choice: u32, step: &Step<'_>, model: &str);

    /// Returns a complete response as one JSON object, after the last step. `usage` is `None` if
    /// the tokens are not known. `failure` is added to the content received so far.
    fn whole(
        &mut self,
        usage: Option<&ReportedUsage>,
        failure: Option<&FailedAnswer>,
        model: &str,
    ) -> Vec<u8>;

    /// Returns the bytes that were written but not yet taken. Always empty for a complete response.
    fn bytes(&mut self) -> &mut Vec<u8>;

    /// Sets the response id that the provider sent. Bytes already written keep the old id.
    fn set_id(&mut self, id: &str);

    /// Returns the response so far as one object with this status, or `None` if the API has no such
    /// object.
    fn snapshot(&self, _status: RunningStatus) -> Option<Vec<u8>> {
        None
    }

    /// Writes a keep-alive between two steps after `Begin`: a comment, unless the API has an event
    /// for it. Some clients count only events as a keep-alive.
    fn keep_alive(&mut self) {
        self.bytes().extend_from_slice(b": keep-alive\n\n");
    }
}

/// Creates the writer for a response. `is_whole` is true for a complete response.
pub(crate) type NewWriter = fn(options: &AnswerOptions, is_whole: bool) -> Box<dyn AnswerWriter>;

/// How one API writes responses.
pub(crate) struct AnswerFormat {
    /// The path for requests.
    pub path: &'static str,
    /// Creates a response writer.
    pub writer: NewWriter,
    /// Whether a response can show calls that the service runs.
    pub has_steps: bool,
    /// Writes the `error` member, for an HTTP error or a response that contains an error.
    pub error: fn(&mut Object<'_>, &FailedAnswer),
}

/// Appends the event `name`. Its data is an object whose first member is `type`, with the same
/// value: Anthropic's clients drop events without a name, and clients of both APIs read `type`.
pub(crate) fn frame(out: &mut Vec<u8>, name: &str, fill: impl FnOnce(&mut Object<'_>)) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    let mut data = Object::open(out);
    data.str("type", name);
    fill(&mut data);
    data.close();
    out.extend_from_slice(b"\n\n");
}

/// Writes the `error` member of OpenAI's APIs. An error from a provider of these APIs keeps its
/// type and code, because clients match on them.
/// <https://platform.openai.com/docs/guides/error-codes>
pub(crate) fn openai_error(o: &mut Object<'_>, failure: &FailedAnswer) {
    let provider = |key: &str| {
        failure
            .provider_text(OPENAI, key)
            .filter(|_| failure.code != "context_overflow")
    };
    let kind = provider("type");
    let kind = kind.as_deref().unwrap_or(match failure.code.as_str() {
        "insufficient_quota" => "insufficient_quota",
        _ => failure.names().openai,
    });
    let code = provider("code");
    let code = code.as_deref().unwrap_or_else(|| failure.openai_code());
    let param = failure.param.as_deref().map(str::to_owned);
    let param = param.or_else(|| failure.provider_text(OPENAI, "param"));
    o.object("error", |o| {
        o.str("message", &failure.message).str("type", kind);
        match &param {
            Some(param) => o.str("param", param),
            None => o.raw("param", "null"),
        };
        if code.starts_with("http_") && failure.provider_has_null(OPENAI, "code") {
            o.raw("code", "null");
        } else {
            o.str("code", code);
        }
    });
}
