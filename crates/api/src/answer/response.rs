//! One stream of merged events as one whole response, however the stream ended.

use crate::answer::draft::AnswerDraft;
use crate::answer::failure::FailedAnswer;
use crate::answer::step::{AnswerOptions, ReportedUsage, Step, TextKind, piece};
use crate::api::Api;
use event::payload::{
    Error, FinishReason, Payload, Retract, SessionStats, StreamEnd, StreamStart, ToolCall,
};
use event::{Choices, Event, Json, Kind, Sink, Surrogates, Text};

/// The whole response of one stream, in the shape of an API's endpoint without streaming. Unlike
/// an [`crate::Encoder`] it has what came of an answer that failed, with the error beside it, and
/// only calls that are valid. A machine that merges deltas writes into [`WholeResponse::sink`].
pub struct WholeResponse {
    api: Api,
    /// The name of the provider's API.
    provider: String,
    model: String,
    options: AnswerOptions,
    draft: AnswerDraft,
    /// Half a surrogate pair at the end of each [`TextKind`] of a choice.
    halves: Choices<[Surrogates; 3]>,
    usage: Option<ReportedUsage>,
    /// The most bytes that are kept of the answer.
    most: usize,
    is_over: bool,
    is_lost: bool,
}

impl WholeResponse {
    /// The response as `api` writes it: chat completions, Anthropic or Gemini. It keeps at most
    /// `most` bytes of the answer, and has failed where there are more.
    pub fn new(api: Api, most: usize) -> WholeResponse {
        WholeResponse {
            api,
            provider: String::new(),
            model: String::new(),
            options: AnswerOptions {
                provider_id: Some(String::new()),
                ..AnswerOptions::default()
            },
            draft: AnswerDraft::default(),
            halves: Choices::default(),
            usage: None,
            most,
            is_over: false,
            is_lost: false,
        }
    }

    /// A sink of the machine that merges deltas, while that takes `event`; `None` at the end of
    /// the input. Events that are too long are reported to `out`, which gets nothing else.
    pub fn sink<'r>(
        &'r mut self,
        event: Option<&'r Event<'r>>,
        out: &'r mut dyn Sink,
    ) -> impl Sink + 'r {
        ResponseSink {
            response: self,
            event,
            out,
        }
    }

    /// How many bytes are kept.
    pub fn kept(&self) -> usize {
        self.draft.kept()
    }

    fn push(&mut self, event: &Event<'_>) {
        let choice = event.choice();
        match event.kind() {
            Kind::StreamStart => {
                let start = StreamStart::read(event);
                let owned = |text: Option<Text<'_>>| text.unwrap_or_default().str().into_owned();
                (self.provider, self.model) = (owned(start.api), owned(start.model));
                self.options.provider_id = Some(owned(start.id));
                self.draft.push(0, &Step::Begin);
            }
            Kind::Error => {
                let error = Error::read(event);
                self.is_lost |= error.code == "line_too_long";
                let failure = FailedAnswer::of_event(&error, &self.provider);
                self.draft.failure.get_or_insert(failure);
            }
            Kind::SessionStats => self.usage = ReportedUsage::of(&SessionStats::read(event)),
            _ if self.is_over => {}
            Kind::ToolCall => self.call(choice, &ToolCall::read(event)),
            Kind::Retract => {
                if let Some(id) = Retract::read(event).tool_id {
                    self.draft.retract(choice, &id.str());
                }
            }
            _ => {
                if let Some((kind, text, provider)) = piece(event) {
                    // The first half of a surrogate pair at its end waits for the other.
                    let mut whole = String::new();
                    self.halves.of(choice)[kind as usize].push_text(text, &mut whole);
                    self.text(choice, kind, &whole, provider.map(Json::text).as_deref());
                }
            }
        }
    }

    fn text(&mut self, choice: u32, kind: TextKind, text: &str, provider: Option<&str>) {
        self.draft.push(choice, &Step::Begin);
        if let Some(step) = Step::piece(kind, text, provider) {
            self.draft.push(choice, &step);
        }
    }

    /// Takes a call. One that is not valid shows as nothing but its choice.
    fn call(&mut self, choice: u32, call: &ToolCall<'_>) {
        self.draft.push(choice, &Step::Begin);
        let (Some(arguments), None) = (call.arguments, &call.error) else {
            return;
        };
        let [id, name] = [call.tool_id, call.tool_name].map(Text::str);
        let arguments = arguments.text();
        let provider = call.provider.map(Json::text);
        let begin = Step::CallBegin {
            id: &id,
            name: &name,
            provider: None,
        };
        let end = Step::CallEnd {
            arguments: &arguments,
            provider: provider.as_deref(),
        };
        self.draft.push(choice, &begin);
        self.draft.push(choice, &end);
    }

    /// More has come than is kept: the response has no content any more.
    fn overrun(&mut self, length: usize) {
        (self.is_over, self.is_lost) = (true, true);
        let message = format!("the answer has more than {length} bytes, which is all that is kept");
        let failure = self.draft.failure.take();
        self.draft = AnswerDraft::default();
        self.draft.failure = failure.or_else(|| Some(FailedAnswer::new("line_too_long", &message)));
        self.halves = Choices::default();
        self.draft.push(0, &Step::Begin);
    }

    /// The response on one line, once the machine has taken the end of its stream: `end` is the
    /// `stream_end`, `None` where the stream lacks it.
    pub fn finish(&mut self, end: Option<&Event<'_>>) -> String {
        let mut reason = end.map_or(FinishReason::Cut, |end| StreamEnd::read(end).finish_reason);
        if self.is_lost {
            reason = FinishReason::Error;
        }
        let mut halves = std::mem::take(&mut self.halves);
        for (choice, halves) in halves.by_number() {
            for (kind, half) in TextKind::ALL.into_iter().zip(halves) {
                let mut text = String::new();
                half.finish(&mut text);
                self.text(choice, kind, &text, None);
            }
        }
        self.draft.end(reason);
        let draft = std::mem::take(&mut self.draft);
        let format = self.api.provider().answers;
        let format = format.unwrap_or(&crate::openai_chat::writer::FORMAT);
        let json = (format.whole)(&self.options, &draft, self.usage.as_ref(), &self.model);
        String::from_utf8(json).unwrap_or_default()
    }
}

struct ResponseSink<'r> {
    response: &'r mut WholeResponse,
    event: Option<&'r Event<'r>>,
    out: &'r mut dyn Sink,
}

impl ResponseSink<'_> {
    fn count(&mut self) {
        let kept = self.response.kept();
        if kept > self.response.most && !self.response.is_over {
            self.too_long(Kind::Message, kept);
        }
    }
}

impl Sink for ResponseSink<'_> {
    fn pass(&mut self) {
        if let Some(event) = self.event {
            self.response.push(event);
            self.count();
        }
    }

    fn write(&mut self, choice: u32, payload: &Payload<'_>) {
        self.response.push(&Event::of(payload, None, choice, None));
        self.count();
    }

    fn lost(&self) -> bool {
        self.response.is_over
    }

    fn too_long(&mut self, kind: Kind, length: usize) {
        self.response.overrun(length);
        self.out.too_long(kind, length);
    }
}
