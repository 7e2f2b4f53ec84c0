//! Collects a stream of merged events into one complete response, however the stream ended.

use crate::answer::failure::FailedAnswer;
use crate::answer::step::{
    AnswerOptions, CallStep, CallStepKind, ReportedUsage, Step, TextKind, piece,
};
use crate::api::Api;
use event::payload::{
    Error, FinishReason, Payload, Retract, SessionStats, StreamEnd, StreamStart, ToolCall,
};
use event::{Choices, Event, Json, Kind, Meter, Sink, Surrogates, Text};

/// The complete response for one stream, in the format of an API's non-streaming endpoint. Unlike
/// an [`crate::Encoder`], it keeps the content of a failed response, with the error next to it, and
/// only includes valid calls. The machine that merges deltas writes to [`WholeResponse::sink`].
pub struct WholeResponse {
    api: Api,
    /// The name of the provider's API.
    provider: String,
    model: String,
    options: AnswerOptions,
    choices: Choices<ResponseChoice>,
    failure: Option<FailedAnswer>,
    /// Measures the size of the stored content.
    meter: Meter,
    usage: Option<ReportedUsage>,
    /// The maximum number of bytes to store.
    most: usize,
    is_over: bool,
    is_lost: bool,
}

impl WholeResponse {
    /// Creates an empty response in the format of `api`: Chat Completions, Anthropic or Gemini. The
    /// response fails if it exceeds `most` bytes.
    pub fn new(api: Api, most: usize) -> WholeResponse {
        WholeResponse {
            api,
            provider: String::new(),
            model: String::new(),
            options: AnswerOptions {
                provider_id: Some(String::new()),
                ..AnswerOptions::default()
            },
            choices: Choices::default(),
            failure: None,
            meter: Meter::default(),
            usage: None,
            most,
            is_over: false,
            is_lost: false,
        }
    }

    /// Returns the sink for the machine that merges deltas while it processes `event`; `None` at
    /// the end of the input. `out` only receives reports of events that are too long.
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

    fn push(&mut self, event: &Event<'_>) {
        let choice = event.choice();
        match event.kind() {
            Kind::StreamStart => {
                let start = StreamStart::read(event);
                let owned = |text: Option<Text<'_>>| text.unwrap_or_default().str().into_owned();
                (self.provider, self.model) = (owned(start.api), owned(start.model));
                self.options.provider_id = Some(owned(start.id));
                self.choice(0);
            }
            Kind::Error => {
                let error = Error::read(event);
                self.is_lost |= error.code == "line_too_long";
                let failure = FailedAnswer::of_event(&error, &self.provider);
                self.failure.get_or_insert(failure);
            }
            Kind::SessionStats => self.usage = ReportedUsage::of(&SessionStats::read(event)),
            _ if self.is_over => {}
            Kind::ToolCall => self.call(choice, &ToolCall::read(event)),
            Kind::Retract => {
                if let Some(id) = Retract::read(event).tool_id {
                    self.retract(choice, &id.str());
                }
            }
            _ => {
                if let Some((kind, text, provider)) = piece(event) {
                    // A first half of a surrogate pair at the end waits for the second half.
                    let mut whole = String::new();
                    self.choice(choice).halves[kind as usize].push_text(text, &mut whole);
                    let provider = provider.map(Json::text);
                    if let Some(step) = Step::piece(kind, &whole, provider.as_deref()) {
                        self.keep(choice, &step);
                    }
                }
            }
        }
    }

    /// Returns the choice with this number, creating it if needed.
    fn choice(&mut self, number: u32) -> &mut ResponseChoice {
        self.choices.of(number)
    }

    fn keep(&mut self, choice: u32, step: &Step<'_>) {
        self.choice(choice).keep(step);
    }

    /// Adds a call. An invalid call only creates its choice.
    fn call(&mut self, choice: u32, call: &ToolCall<'_>) {
        self.choice(choice);
        let (Some(arguments), None) = (call.arguments, &call.error) else {
            return;
        };
        self.keep(
            choice,
            &Step::Call(CallStep {
                kind: CallStepKind::Called,
                is_own: false,
                id: call.tool_id.str(),
                name: call.tool_name.str(),
                text: arguments.text(),
                provider: call.provider.map(Json::text),
            }),
        );
    }

    /// Removes the retracted call `id`.
    fn retract(&mut self, choice: u32, id: &str) {
        let Some(place) = self.choices.find(choice) else {
            return;
        };
        let is_it = |step: &Step<'_>| matches!(step, Step::Call(call) if call.id == id);
        self.choices[place].steps.retain(|step| !is_it(step));
    }

    /// Handles a response that exceeds the limit: drops all content and records the failure.
    fn overrun(&mut self, length: usize) {
        (self.is_over, self.is_lost) = (true, true);
        let message = format!("the answer has more than {length} bytes, which is all that is kept");
        let failure = || FailedAnswer::new("line_too_long", &message);
        self.failure.get_or_insert_with(failure);
        self.choices = Choices::default();
        self.choice(0);
    }

    /// Returns the response on one line, after the machine has processed the end of the stream.
    /// `end` is the `stream_end` event; `None` if the stream has none.
    pub fn finish(&mut self, end: Option<&Event<'_>>) -> String {
        let mut reason = end.map_or(FinishReason::Cut, |end| StreamEnd::read(end).finish_reason);
        if self.is_lost {
            reason = FinishReason::Error;
        }
        let format = self.api.provider().answers;
        let format = format.unwrap_or(&crate::openai_chat::writer::FORMAT);
        let mut writer = (format.writer)(&self.options, true);
        let model = self.model.as_str();
        let mut choices = std::mem::take(&mut self.choices);
        for (number, choice) in choices.by_number() {
            let halves = std::mem::take(&mut choice.halves);
            for (kind, mut half) in TextKind::ALL.into_iter().zip(halves) {
                let mut text = String::new();
                half.finish(&mut text);
                if let Some(step) = Step::piece(kind, &text, None) {
                    choice.keep(&step);
                }
            }
            let steps = &mut choice.steps;
            let has_calls = steps.iter().any(|step| matches!(step, Step::Call(_)));
            let reason = match reason {
                FinishReason::Stop | FinishReason::ToolCalls if has_calls => {
                    FinishReason::ToolCalls
                }
                FinishReason::ToolCalls => FinishReason::Stop,
                other => other,
            };
            writer.step(number, &Step::Begin, model);
            for mut step in steps.drain(..) {
                for kind in [CallStepKind::Begin, CallStepKind::Arguments] {
                    if let Step::Call(call) = &mut step {
                        call.kind = kind;
                        writer.step(number, &step, model);
                    }
                }
                if let Step::Call(call) = &mut step {
                    call.kind = CallStepKind::Called;
                }
                writer.step(number, &step, model);
            }
            let provider = None;
            writer.step(number, &Step::End { reason, provider }, model);
        }
        let json = writer.whole(self.usage.as_ref(), self.failure.as_ref(), model);
        String::from_utf8(json).unwrap_or_default()
    }
}

/// One choice of a response.
#[derive(Debug, Default)]
struct ResponseChoice {
    /// The texts and calls. They are stored until the end, because a call may be retracted at any
    /// time.
    steps: Vec<Step<'static>>,
    /// A pending half of a surrogate pair for each [`TextKind`].
    halves: [Surrogates; 3],
}

impl ResponseChoice {
    fn keep(&mut self, step: &Step<'_>) {
        if !self.steps.last_mut().is_some_and(|last| last.join(step)) {
            self.steps.push(step.to_kept());
        }
    }
}

struct ResponseSink<'r> {
    response: &'r mut WholeResponse,
    event: Option<&'r Event<'r>>,
    out: &'r mut dyn Sink,
}

impl ResponseSink<'_> {
    fn take(&mut self, event: &Event<'_>) {
        self.response.push(event);
        self.response.meter.take(event);
        let bytes = self.response.meter.bytes();
        if bytes > self.response.most && !self.response.is_over {
            self.too_long(Kind::Message, bytes);
        }
    }
}

impl Sink for ResponseSink<'_> {
    fn pass(&mut self) {
        if let Some(event) = self.event {
            self.take(event);
        }
    }

    fn write(&mut self, choice: u32, payload: &Payload<'_>) {
        self.take(&Event::of(payload, None, choice, None));
    }

    fn lost(&self) -> bool {
        self.response.is_over
    }

    fn too_long(&mut self, kind: Kind, length: usize) {
        self.response.overrun(length);
        self.out.too_long(kind, length);
    }
}
