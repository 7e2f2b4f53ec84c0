//! Converts one event stream into the bytes of one response.

use crate::answer::details::{
    DetailsPlace, comes_as_reasoning, details_for, image_for, is_encrypted, members,
};
use crate::answer::failure::FailedAnswer;
use crate::answer::step::{AnswerOptions, CallStep, CallStepKind, Dropped, RunningStatus, Step};
use crate::answer::turn::{AnswerSteps, TakeStep};
use crate::answer::writer::{AnswerFormat, AnswerWriter};
use crate::api::Api;
use crate::carried::id_with;
use event::payload::{Details, ServerItem, StreamStart, Thinking};
use event::{Event, Kind, Object, Raw, Text};

/// The form in which a response is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerForm {
    /// Server-sent events, written while the model generates.
    Stream,
    /// One JSON object at the end.
    Whole,
    /// One JSON object at the end, even if the response failed, as `GET /v1/responses/{id}` returns
    /// it.
    Object,
}

/// Writes the response for one front. Pass the events to [`Encoder::push`], then call
/// [`Encoder::finish`] once.
///
/// A stream writes nothing before the model's first content, so that an earlier failure can still
/// be reported as the HTTP status. A server that must respond sooner calls [`Encoder::begin`];
/// later failures are then reported inside the stream.
pub struct Encoder {
    turn: AnswerSteps,
    page: StepPage,
}

/// The writer of the steps, and its settings.
struct StepPage {
    front: Front,
    /// The provider's API; "" before the stream starts.
    api: String,
    options: AnswerOptions,
    writer: Box<dyn AnswerWriter>,
    form: AnswerForm,
    /// Details of a stored response that arrived before its first step; `None` once they were
    /// written, or if the response is not stored.
    early: Option<Vec<(u32, Step<'static>)>>,
}

impl StepPage {
    /// Returns the maximum number of choices for the client. Clients that asked for one choice
    /// would merge several into one (AI SDK) or fail (openai-python).
    fn choices(&self) -> u32 {
        if self.front.has_choices() {
            self.options.choices.unwrap_or(u32::MAX)
        } else {
            1
        }
    }

    /// Sets the provider's response id, if responses keep those ids.
    fn set_id(&mut self, api: &str, id: &str) {
        // Some Chat Completions servers send no id, and their stream gets a timestamp (digits only)
        // as its id. The client then gets our id instead.
        let is_time = self.front == Front::Chat && id.bytes().all(|b| b.is_ascii_digit());
        if !self.options.keeps_ids
            || api != self.front.name()
            || id.is_empty()
            || id == self.options.id
            || is_time
        {
            return;
        }
        self.writer.set_id(id);
        self.options.provider_id = Some(id.to_owned());
    }

    /// Writes one step.
    fn write(&mut self, model: &str, choice: u32, step: &Step<'_>) {
        if choice >= self.choices() {
            return;
        }
        let own = self.front.name();
        let model = model_for(&self.options, self.api == own, model);
        let changed = match step {
            Step::End { reason, .. } if self.api != own => Some(Step::End {
                reason: *reason,
                provider: None,
            }),
            Step::Call(
                call @ CallStep {
                    kind: CallStepKind::Begin,
                    provider: Some(provider),
                    ..
                },
            ) if self.options.carries => id_with(&call.id, provider, own).map(|id| {
                Step::Call(CallStep {
                    id: id.into(),
                    ..call.clone()
                })
            }),
            // A complete response is given these at its end.
            Step::Usage(_) | Step::Failed(_) if self.form != AnswerForm::Stream => return,
            _ => None,
        };
        let step = changed.as_ref().unwrap_or(step);
        // The start of a stored response must not depend on when it was started.
        match (step, &mut self.early) {
            (Step::Details(..), Some(early)) => early.push((choice, step.to_kept())),
            (Step::Begin, early) => {
                self.writer.step(choice, step, model);
                for (choice, step) in early.take().unwrap_or_default() {
                    self.writer.step(choice, &step, model);
                }
            }
            _ => self.writer.step(choice, step, model),
        }
    }
}

/// Returns the model name for the client: the upstream's name if it speaks the client's API
/// (`is_own`), as the client would get without a service in between. Other clients compare the name
/// with the one that they requested.
fn model_for<'m>(options: &'m AnswerOptions, is_own: bool, upstream: &'m str) -> &'m str {
    // A stored response may start before the upstream's name is known.
    let is_kept = is_own && !upstream.is_empty() && !options.is_stored;
    if is_kept || options.model.is_empty() {
        upstream
    } else {
        &options.model
    }
}

/// Whether events of this kind belong to one choice rather than to the whole stream.
fn is_of_one_choice(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::StreamStart | Kind::StreamEnd | Kind::SessionStats | Kind::Error
    )
}

impl Encoder {
    /// Creates an encoder for a response that has not started.
    pub fn new(front: Front, form: AnswerForm, options: AnswerOptions) -> Encoder {
        let is_whole = form != AnswerForm::Stream;
        let writer = (front.format().writer)(&options, is_whole);
        let mut turn = AnswerSteps::new(options.extras, is_whole);
        turn.keeps_failed = form == AnswerForm::Object || front == Front::Responses;
        Encoder {
            turn,
            page: StepPage {
                front,
                api: String::new(),
                early: options.is_stored.then(Vec::new),
                options,
                writer,
                form,
            },
        }
    }

    /// Encodes the next event and appends the bytes that can be sent now.
    pub fn push(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        if event.choice() >= self.page.choices() && is_of_one_choice(event.kind()) {
            self.turn.dropped.other_choices += 1;
            return;
        }
        let Encoder { turn, page } = self;
        let front = page.front.name();
        match event.kind() {
            Kind::StreamStart => {
                let start = StreamStart::read(event);
                let [api, id] =
                    [start.api, start.id].map(|text| text.map(Text::str).unwrap_or_default());
                page.set_id(&api, &id);
                page.api = api.into_owned();
                let model = start
                    .model
                    .map(|model| model.str().into_owned())
                    .unwrap_or_default();
                if model_for(&page.options, page.api == front, &model) != model {
                    turn.dropped.model = Some(event::cut(&model, 100).to_owned());
                }
            }
            Kind::Details => {
                let details = Details::read(event);
                let mut lost = |name: &str| turn.dropped.member(name);
                for (place, members) in details_for(&page.api, front, &details, &mut lost) {
                    self.run(out, |turn, take| turn.details(event, place, members, take));
                }
                return;
            }
            Kind::Thinking if page.front == Front::Chat => {
                let provider = Thinking::read(event).provider;
                if provider.is_some_and(|provider| is_encrypted(&provider.text())) {
                    turn.dropped.member("encrypted reasoning");
                }
            }
            // Anthropic's explanation of a refusal is the member `stop_details` rather than
            // content.
            Kind::RefusalDelta if page.front == Front::Messages && page.api == front => return,
            Kind::ServerItem => {
                let item = ServerItem::read(event);
                let kind = item.kind.str();
                let is_own = page.api == front;
                let data = item.data.text();
                // A client would try to run a call (xAI reports its own searches as calls), and a
                // piece of audio is not an output item.
                let is_no_item = matches!(&*kind, "function_call" | "custom_tool_call" | "audio");
                let found;
                if is_own && page.front != Front::Chat && !is_no_item {
                    let has_come = page.front == Front::Messages
                        && Raw::parse(&data).is_ok_and(|data| comes_as_reasoning(&kind, data));
                    found = (!has_come).then(|| (DetailsPlace::Item, members(data.as_bytes())));
                } else {
                    found = image_for(&page.api, front, &kind, &data);
                    // A Chat Completions client gets the audio in the member that it arrived in.
                    let has_come = is_own && page.front == Front::Chat && kind == "audio";
                    if found.is_none() && (!is_own || is_no_item) && !has_come {
                        turn.dropped.member(&kind);
                    }
                }
                if let Some((place, members)) = found {
                    self.run(out, |turn, take| turn.details(event, place, members, take));
                }
            }
            _ => {}
        }
        self.run(out, |turn, take| turn.push(event, take));
    }

    /// Encodes the next event of a call that the service itself runs; use it instead of
    /// [`Encoder::push`]. The event is a delta, the call, its result, or a `retract`. The response
    /// shows the call ([`AnswerOptions::shows_steps`]), but the client must not answer it. Ids of
    /// open calls must be unique.
    pub fn step(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        if self.page.options.shows_steps && self.page.front.has_steps() {
            self.run(out, |turn, take| turn.service(event, take));
        }
    }

    /// Runs `work`, writes its steps, and appends the bytes.
    fn run(&mut self, out: &mut Vec<u8>, work: impl FnOnce(&mut AnswerSteps, &mut TakeStep<'_>)) {
        let Encoder { turn, page } = self;
        work(turn, &mut |model, choice, step| {
            page.write(model, choice, step)
        });
        out.append(page.writer.bytes());
    }

    /// Sets the response's id before the first event. A provider `api` may send the id long before
    /// any content, and the response may have to start in between. Has no effect unless
    /// [`AnswerOptions::keeps_ids`] is set.
    pub fn set_id(&mut self, api: &str, id: &str) {
        self.page.set_id(api, id);
    }

    /// Ends the response and appends the remaining bytes; for a complete response, that is all of
    /// them. A complete response that failed writes nothing; see [`Encoder::failure`]. A cancelled
    /// OpenAI Responses response is written as an object with that status.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.run(out, |turn, take| turn.finish(take));
        let is_failed = self.failure().is_some();
        let Encoder { turn, page } = self;
        if page.form != AnswerForm::Stream && !is_failed {
            let is_own = page.api == page.front.name();
            let model = model_for(&page.options, is_own, &turn.model);
            let failure = turn.failure.as_ref();
            out.extend(page.writer.whole(Some(&turn.usage), failure, model));
        }
    }

    /// Starts a stream before the model's first content and appends its opening bytes. Has no
    /// effect if the stream has already started.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        if self.page.form == AnswerForm::Stream {
            self.run(out, |turn, take| turn.begin(take));
        }
    }

    /// Ends the response with a failure that no event reports, such as a server shutdown. Appends
    /// the error if the stream has started; [`Encoder::failure`] then returns the failure. Has no
    /// effect if the response is already done.
    pub fn fail(&mut self, failure: FailedAnswer, out: &mut Vec<u8>) {
        self.run(out, |turn, take| turn.fail(failure, take));
    }

    /// Whether a stream has started: bytes were written, so a failure must be reported inside the
    /// stream. Always false for a complete response, whose failure becomes the HTTP status.
    pub fn has_begun(&self) -> bool {
        self.page.form == AnswerForm::Stream && self.turn.has_begun
    }

    /// Whether any of the model's content was written, so that the request must not be retried.
    pub fn has_content(&self) -> bool {
        self.turn.has_content
    }

    /// Whether the last byte of a stream was written. Later events are ignored. A complete response
    /// is written by [`Encoder::finish`].
    pub fn is_done(&self) -> bool {
        self.turn.is_done
    }

    /// Returns the counts of events that were not passed to the client although the response
    /// succeeded.
    pub fn dropped(&self) -> Dropped {
        self.turn.dropped.clone()
    }

    /// Whether the whole response is kept in memory: a complete response is written at its end, and
    /// a Responses stream repeats all content at its end.
    pub fn keeps_all(&self) -> bool {
        self.is_whole() || self.page.front == Front::Responses
    }

    /// Whether the response is written at its end, as one JSON object.
    pub fn is_whole(&self) -> bool {
        self.page.form != AnswerForm::Stream
    }

    /// Returns why the response failed. If [`Encoder::has_begun`] is false, the failure must be
    /// sent as the HTTP status and body. Returns `None` if the response did not fail, or if
    /// [`Encoder::finish`] writes an object that contains the failure.
    pub fn failure(&self) -> Option<&FailedAnswer> {
        let StepPage { front, form, .. } = &self.page;
        self.turn.failure.as_ref().filter(|failure| match form {
            AnswerForm::Stream => true,
            AnswerForm::Whole => *front != Front::Responses || !failure.is_cancelled(),
            AnswerForm::Object => false,
        })
    }

    /// Returns the current OpenAI Responses object, with `status` and the items so far: the body of
    /// `GET /v1/responses/{id}` while the response runs, and the first answer to a background
    /// request. A call is included once it is complete. A complete (non-streaming) response has no
    /// items before its end. `None` for other fronts.
    pub fn snapshot(&self, status: RunningStatus) -> Option<Vec<u8>> {
        self.page.writer.snapshot(status)
    }

    /// Appends a keep-alive in the front's format, after the stream's opening bytes if it has not
    /// started. May be called between any two events. Has no effect on a complete response or one
    /// that is done.
    pub fn keep_alive(&mut self, out: &mut Vec<u8>) {
        self.begin(out);
        if self.page.form == AnswerForm::Stream && !self.turn.is_done {
            self.page.writer.keep_alive();
            out.append(self.page.writer.bytes());
        }
    }
}

/// An API that clients speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Front {
    /// Chat Completions.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Anthropic Messages.
    Messages,
}

impl Front {
    /// Every front.
    pub const ALL: [Front; 3] = [Front::Chat, Front::Responses, Front::Messages];

    /// Returns the front's API.
    pub fn api(self) -> Api {
        match self {
            Front::Chat => Api::OpenaiChat,
            Front::Responses => Api::OpenaiResponses,
            Front::Messages => Api::Anthropic,
        }
    }

    /// Returns the API's name, as used in `--api`.
    pub fn name(self) -> &'static str {
        self.api().name()
    }

    /// Returns how the front's responses are written.
    pub(crate) fn format(self) -> &'static AnswerFormat {
        let format = self.api().provider().answers;
        format.expect("the row of each front has the format of its answers")
    }

    /// Returns the path for requests.
    pub fn path(self) -> &'static str {
        self.format().path
    }

    /// Whether the front can show calls that the service runs itself.
    pub fn has_steps(self) -> bool {
        self.format().has_steps
    }

    /// Whether a response may have several choices; otherwise it only has choice 0.
    pub(crate) fn has_choices(self) -> bool {
        self == Front::Chat
    }

    /// Returns the body of an HTTP error in the front's format.
    pub fn failure(self, failure: &FailedAnswer) -> Vec<u8> {
        let mut out = Vec::new();
        let mut o = Object::open(&mut out);
        if self == Front::Messages {
            o.str("type", "error");
        }
        (self.format().error)(&mut o, failure);
        o.close();
        out
    }
}
