//! One stream of events into the bytes of one answer.

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

/// How the answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerForm {
    /// Server-sent events, while the model writes.
    Stream,
    /// One JSON object at the end.
    Whole,
    /// One JSON object at the end, also of an answer that failed: what `GET /v1/responses/{id}`
    /// returns.
    Object,
}

/// Writes the answer of one front. Feed it with [`Encoder::push`], then call [`Encoder::finish`]
/// once.
///
/// A stream writes nothing before the model's first content, so that a failure until then can still
/// be the status of the response. A server that cannot wait longer calls [`Encoder::begin`]: from
/// then on a failure goes into the stream.
pub struct Encoder {
    turn: AnswerSteps,
    page: StepPage,
}

/// What steps are written to.
struct StepPage {
    front: Front,
    /// The API of the provider; "" before the stream begins.
    api: String,
    options: AnswerOptions,
    writer: Box<dyn AnswerWriter>,
    form: AnswerForm,
    /// The details of a stored answer that came before its first step.
    early: Option<Vec<(u32, Step<'static>)>>,
}

impl StepPage {
    /// How many choices the client gets. Clients that asked for one take all choices for the same
    /// (AI SDK) or fail (openai-python).
    fn choices(&self) -> u32 {
        if self.front.has_choices() {
            self.options.choices.unwrap_or(u32::MAX)
        } else {
            1
        }
    }

    /// Sets the id of an answer of the provider `api`, if answers keep their ids.
    fn set_id(&mut self, api: &str, id: &str) {
        // Some servers of chat completions send no id. Their stream then has the time (digits
        // alone) as its id; a client gets our id.
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

    /// The name of the model: the upstream's where it speaks the client's API, as it would without
    /// a service in between. Clients of others compare the name with the one that they asked for.
    fn model<'m>(&'m self, upstream: &'m str) -> &'m str {
        // A stored answer may begin before the upstream's name is known.
        let is_own =
            self.api == self.front.name() && !upstream.is_empty() && !self.options.is_stored;
        if is_own || self.options.model.is_empty() {
            upstream
        } else {
            &self.options.model
        }
    }

    /// Writes one step.
    fn write(&mut self, model: &str, choice: u32, step: &Step<'_>) {
        if choice >= self.choices() {
            return;
        }
        let model = self.model(model).to_owned();
        let model = model.as_str();
        let own = self.front.name();
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
            // They are what a whole answer is finished with.
            Step::Usage(_) | Step::Failed(_) if self.form != AnswerForm::Stream => return,
            _ => None,
        };
        let step = changed.as_ref().unwrap_or(step);
        // What opens a stored answer is the same whenever it is begun.
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

/// Whether events of this kind concern one choice, and not the whole stream.
fn is_of_one_choice(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::StreamStart | Kind::StreamEnd | Kind::SessionStats | Kind::Error
    )
}

impl Encoder {
    /// An answer that has not begun.
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

    /// Takes the next event of the stream, and appends what can be sent now.
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
                if page.model(&model) != model {
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
            // What Anthropic's API says of a refusal is a member of its own, `stop_details`, and no
            // content.
            Kind::RefusalDelta if page.front == Front::Messages && page.api == front => return,
            Kind::ServerItem => {
                let item = ServerItem::read(event);
                let kind = item.kind.str();
                let is_own = page.api == front;
                let data = item.data.text();
                // A client would run a call (xAI writes its own searches as calls), and a piece of
                // audio is not an item of an answer.
                let is_no_item = matches!(&*kind, "function_call" | "custom_tool_call" | "audio");
                let found;
                if is_own && page.front != Front::Chat && !is_no_item {
                    let has_come = page.front == Front::Messages
                        && Raw::parse(&data).is_ok_and(|data| comes_as_reasoning(&kind, data));
                    found = (!has_come).then(|| (DetailsPlace::Item, members(data.as_bytes())));
                } else {
                    found = image_for(&page.api, front, &kind, &data);
                    // A client of chat completions gets the sound as the member that it came in.
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

    /// Takes the next event of a call that the service itself runs, in place of
    /// [`Encoder::push`]: its deltas, the call, its result, or a `retract`. The answer shows the call
    /// ([`AnswerOptions::shows_steps`]), and the client does not have to answer it. Each call has
    /// an id of its own among those that are open.
    pub fn step(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        if self.page.options.shows_steps && self.page.front.has_steps() {
            self.run(out, |turn, take| turn.service(event, take));
        }
    }

    /// Runs `work`, writes the steps that it takes, and appends the bytes.
    fn run(&mut self, out: &mut Vec<u8>, work: impl FnOnce(&mut AnswerSteps, &mut TakeStep<'_>)) {
        let Encoder { turn, page } = self;
        work(turn, &mut |model, choice, step| {
            page.write(model, choice, step)
        });
        out.append(page.writer.bytes());
    }

    /// Sets the id of the answer before its first event: the provider `api` may think for long
    /// after the id, and the answer may have to begin. Does nothing unless
    /// [`AnswerOptions::keeps_ids`].
    pub fn set_id(&mut self, api: &str, id: &str) {
        self.page.set_id(api, id);
    }

    /// Handles the end of the events, and appends the rest: all of it for a whole answer. A whole
    /// answer that failed writes nothing, see [`Encoder::failure`]; one of OpenAI Responses that was
    /// cancelled is an object with this status.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.run(out, |turn, take| turn.finish(take));
        let is_failed = self.failure().is_some();
        let Encoder { turn, page } = self;
        if page.form != AnswerForm::Stream && !is_failed {
            let model = page.model(&turn.model).to_owned();
            let failure = turn.failure.as_ref();
            out.extend(page.writer.whole(Some(&turn.usage), failure, &model));
        }
    }

    /// Begins a stream before the model's first content, and appends what opens it. It does nothing
    /// in a stream that has begun.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        if self.page.form == AnswerForm::Stream {
            self.run(out, |turn, take| turn.begin(take));
        }
    }

    /// Ends an answer that fails for a reason that no event reports, such as a server that shuts
    /// down. Appends the error's form in a stream that has begun; [`Encoder::failure`] returns it
    /// from now on. It does nothing once the answer is done.
    pub fn fail(&mut self, failure: FailedAnswer, out: &mut Vec<u8>) {
        self.run(out, |turn, take| turn.fail(failure, take));
    }

    /// Whether the stream has begun: bytes were written, so that a failure is reported inside the
    /// stream. `false` for a whole answer, whose failure is always the status of the response.
    pub fn has_begun(&self) -> bool {
        self.page.form == AnswerForm::Stream && self.turn.has_begun
    }

    /// Whether something of the model's was written, so that no further attempt is allowed.
    pub fn has_content(&self) -> bool {
        self.turn.has_content
    }

    /// Whether the last byte of a stream was written; later events change nothing. A whole answer
    /// is written by [`Encoder::finish`].
    pub fn is_done(&self) -> bool {
        self.turn.is_done
    }

    /// What of the events the client did not get, although the answer did not fail.
    pub fn dropped(&self) -> Dropped {
        self.turn.dropped.clone()
    }

    /// Whether all of the answer stays in memory: a whole one is written at its end, and the end of
    /// a stream of Responses repeats it.
    pub fn keeps_all(&self) -> bool {
        self.page.form != AnswerForm::Stream || self.page.front == Front::Responses
    }

    /// Why the answer failed, if it did. Unless [`Encoder::has_begun`], it is due as the response's
    /// status and body. `None` where [`Encoder::finish`] writes an object that has the failure.
    pub fn failure(&self) -> Option<&FailedAnswer> {
        let StepPage { front, form, .. } = &self.page;
        self.turn.failure.as_ref().filter(|failure| match form {
            AnswerForm::Stream => true,
            AnswerForm::Whole => *front != Front::Responses || !failure.is_cancelled(),
            AnswerForm::Object => false,
        })
    }

    /// The response object of OpenAI Responses as it is now, with `status` and the items so far:
    /// what `GET /v1/responses/{id}` returns while the answer runs, and the first answer to a
    /// request in the background. A call is among the items once it is complete. A whole answer has
    /// no items before its end. `None` for other fronts.
    pub fn snapshot(&self, status: RunningStatus) -> Option<Vec<u8>> {
        self.page.writer.snapshot(status)
    }

    /// Appends what keeps the connection of a stream alive, in the form of its front, after what
    /// opens the stream if it has not begun. May be called between any two events. A whole answer
    /// and one that is done need nothing.
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
    /// Chat completions.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Anthropic Messages.
    Messages,
}

impl Front {
    /// Every front.
    pub const ALL: [Front; 3] = [Front::Chat, Front::Responses, Front::Messages];

    /// The API.
    pub fn api(self) -> Api {
        match self {
            Front::Chat => Api::OpenaiChat,
            Front::Responses => Api::OpenaiResponses,
            Front::Messages => Api::Anthropic,
        }
    }

    /// The name of the API, as `--api` has it.
    pub fn name(self) -> &'static str {
        self.api().name()
    }

    /// How its answers are written.
    pub(crate) fn format(self) -> &'static AnswerFormat {
        let format = self.api().provider().answers;
        format.expect("the row of each front has the format of its answers")
    }

    /// The path of its requests.
    pub fn path(self) -> &'static str {
        self.format().path
    }

    /// Whether it can show calls that the service runs itself.
    pub fn has_steps(self) -> bool {
        self.format().has_steps
    }

    /// Whether an answer may have several choices; else it has choice 0 alone.
    pub(crate) fn has_choices(self) -> bool {
        self == Front::Chat
    }

    /// The body of an HTTP error in the form of this front.
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
