//! What the `writer.rs` of an API gives: the writer of a stream, and how it writes answers.

use crate::answer::failure::{FailedAnswer, OPENAI};
use crate::answer::step::RunningStatus;
use crate::answer::step::{AnswerOptions, ReportedUsage, Step};
use event::Object;

/// Writes the answer of one API: its stream, or the object that the stream adds up to.
pub(crate) trait AnswerWriter {
    /// Writes what one step of the choice `choice` becomes; a whole answer keeps it, and gets no
    /// `Usage` and no `Failed`. `model` is the upstream's name of the
    /// model, empty if the upstream has sent none yet.
    fn step(&mut self, choice: u32, step: &Step<'_>, model: &str);

    /// The whole answer, of a writer that was made for one, after its last step: one JSON object.
    /// Without `usage` the tokens are not counted; `failure` goes beside what came of the answer.
    fn whole(
        &mut self,
        usage: Option<&ReportedUsage>,
        failure: Option<&FailedAnswer>,
        model: &str,
    ) -> Vec<u8>;

    /// What was written and not taken; nothing of a whole answer.
    fn bytes(&mut self) -> &mut Vec<u8>;

    /// Sets the id that the provider gave to the answer. Bytes that were written under another id
    /// stay.
    fn set_id(&mut self, id: &str);

    /// The answer so far as one object with this status; `None` where the API has no such object.
    fn snapshot(&self, _status: RunningStatus) -> Option<Vec<u8>> {
        None
    }

    /// Writes what keeps the connection alive, between two steps after `Begin`: a comment, unless
    /// the API has an event for it. Some clients count only events as a keep-alive.
    fn keep_alive(&mut self) {
        self.bytes().extend_from_slice(b": keep-alive\n\n");
    }
}

/// Makes the writer of an answer: of a whole one if `is_whole`.
pub(crate) type NewWriter = fn(options: &AnswerOptions, is_whole: bool) -> Box<dyn AnswerWriter>;

/// How one API writes answers.
pub(crate) struct AnswerFormat {
    /// The path of its requests.
    pub path: &'static str,
    /// The writer of its answers.
    pub writer: NewWriter,
    /// Whether calls of the service have a place in its answers.
    pub has_steps: bool,
    /// Writes the member `error`, of an HTTP error as of an answer that has one.
    pub error: fn(&mut Object<'_>, &FailedAnswer),
}

/// Appends the event `name`, whose data is an object with the member `type` of the same value
/// first. Anthropic's clients drop events without a name, and those of both APIs read `type`.
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

/// The member `error` of OpenAI's APIs. What a provider of these APIs says of an error stays, since
/// clients match on it. <https://platform.openai.com/docs/guides/error-codes>
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
