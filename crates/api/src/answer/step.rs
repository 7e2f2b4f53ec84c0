//! The steps of a response, in an order that every front can write.

use crate::answer::details::{DetailMembers, DetailsPlace};
use crate::answer::failure::FailedAnswer;
use crate::inbound::tools::NamespacedTool;
use event::payload::{ContentDelta, FinishReason, RefusalDelta, SessionStats, Thinking};
use event::{Event, Json, Kind, Object, Text};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::rc::Rc;

/// The status of a response that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunningStatus {
    /// The response is queued.
    Queued,
    /// The model is generating.
    InProgress,
}

/// One step of a response. The steps of each choice are in this order: `Begin`; then texts and
/// calls, one after the other; then `End`. No step comes between [`CallStepKind::Begin`] and
/// [`CallStepKind::Called`] of a client's call. `Usage` follows the last `End`. `Failed` may
/// replace any step except the first, and ends the response.
///
/// A truncated client call never gets `Called`: the next step of its choice is `End` with `Length`
/// or `ContentFilter`, or the response fails. A front writes it in a form that no client runs.
///
/// A step borrows from its event; [`Step::to_kept`] returns an owned copy for later.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step<'a> {
    /// The response starts. This is the first step of each choice.
    Begin,
    /// A piece of text. Only empty if `provider` is set.
    Text {
        kind: TextKind,
        text: Cow<'a, str>,
        /// Data that must be sent back to the provider with the reasoning, as JSON by API name. It
        /// ends the reasoning block.
        provider: Option<Cow<'a, str>>,
    },
    /// A step in the life of a call.
    Call(CallStep<'a>),
    /// Members of the provider's response, named as in the front's API. [`DetailsPlace::Text`] and
    /// [`DetailsPlace::Item`] are in order with the content. Others may come before `Begin`;
    /// writers hold them until the next step.
    Details(DetailsPlace, Cow<'a, DetailMembers>),
    /// The choice ends.
    End {
        /// The finish reason. It is `ToolCalls` if there are complete calls, unless the response
        /// was truncated.
        reason: FinishReason,
        /// The provider's own reason, which may be more specific. Only set with `Stop` and
        /// `Length`. A front only writes it if the provider speaks the client's API.
        provider: Option<Cow<'a, str>>,
    },
    /// The JSON under the key `toolpipe`: warnings, repairs, and items that the provider ran
    /// itself. Emitted once after the last `End`, only if [`crate::AnswerOptions::extras`] is set.
    Extras(Cow<'a, str>),
    /// The token counts, after the last choice has ended.
    Usage(ReportedUsage),
    /// The response failed after it had started.
    Failed(Cow<'a, FailedAnswer>),
}

/// A step in the life of a call. A client's call has as its index the number of calls before it in
/// its choice. Calls that the service runs may overlap, with other steps in between.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallStep<'a> {
    pub kind: CallStepKind,
    /// Whether the service runs the call; otherwise the client does.
    pub is_own: bool,
    /// The call's id, never empty. The client gets the id from `Begin`.
    pub id: Cow<'a, str>,
    /// The tool's name, never empty.
    pub name: Cow<'a, str>,
    /// The complete arguments, a piece of them, or the output, depending on `kind`.
    pub text: Cow<'a, str>,
    /// Data that must be sent back to the provider with the call, as far as it is known: JSON by
    /// API name.
    pub provider: Option<Cow<'a, str>>,
}

/// The kind of step in the life of a call: `Begin`, `Arguments`, then `Called`. A call of the
/// service then has a `Result`, preceded by `Pending` if it needs approval. Its `Arguments` may be
/// missing, and may not add up to the text of `Called`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallStepKind {
    /// The model starts to write the call.
    Begin,
    /// The next piece of the arguments, never empty. The pieces so far form the start of a JSON
    /// object.
    Arguments,
    /// The call is complete. The text is its complete arguments: an object, unless the call cannot
    /// run.
    Called,
    /// The call was run, or will not be run. The text is the result for the model.
    Result {
        /// Whether the call failed.
        is_error: bool,
    },
    /// The call needs approval. Its `Result` follows if the user decides before the response ends.
    Pending,
}

/// The type of a piece of text. At the end of a choice, leftover text is written in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextKind {
    Reasoning,
    Answer,
    Refusal,
}

impl TextKind {
    pub(crate) const ALL: [TextKind; 3] =
        [TextKind::Reasoning, TextKind::Answer, TextKind::Refusal];
}

/// Returns the piece of text in an event, and the data that must be sent back to the provider with
/// it.
pub(crate) fn piece<'e>(event: &Event<'e>) -> Option<(TextKind, Text<'e>, Option<Json<'e>>)> {
    Some(match event.kind() {
        Kind::Thinking => {
            let Thinking { text, provider } = Thinking::read(event);
            (TextKind::Reasoning, text, provider)
        }
        Kind::ContentDelta => (TextKind::Answer, ContentDelta::read(event).text, None),
        Kind::RefusalDelta => (TextKind::Refusal, RefusalDelta::read(event).text, None),
        _ => return None,
    })
}

impl<'a> Step<'a> {
    /// Creates a text step, or returns `None` if there is neither text nor provider data.
    pub(crate) fn piece(
        kind: TextKind,
        text: &'a str,
        provider: Option<&'a str>,
    ) -> Option<Step<'a>> {
        let is_empty = text.is_empty() && provider.is_none();
        (!is_empty).then(|| Step::Text {
            kind,
            text: text.into(),
            provider: provider.map(Cow::from),
        })
    }

    /// Returns an owned copy of the step.
    pub(crate) fn to_kept(&self) -> Step<'static> {
        let own = |text: &Cow<'_, str>| Cow::Owned(text.clone().into_owned());
        let opt = |text: &Option<Cow<'_, str>>| text.as_ref().map(own);
        match self {
            Step::Begin => Step::Begin,
            Step::Text {
                kind,
                text,
                provider,
            } => Step::Text {
                kind: *kind,
                text: own(text),
                provider: opt(provider),
            },
            Step::Call(call) => Step::Call(CallStep {
                kind: call.kind,
                is_own: call.is_own,
                id: own(&call.id),
                name: own(&call.name),
                text: own(&call.text),
                provider: opt(&call.provider),
            }),
            Step::Details(place, members) => {
                Step::Details(*place, Cow::Owned(members.clone().into_owned()))
            }
            Step::End { reason, provider } => Step::End {
                reason: *reason,
                provider: opt(provider),
            },
            Step::Extras(json) => Step::Extras(own(json)),
            Step::Usage(usage) => Step::Usage(*usage),
            Step::Failed(failure) => Step::Failed(Cow::Owned(failure.clone().into_owned())),
        }
    }

    /// Appends another piece of the same text. Returns false if `more` belongs to another block.
    pub(crate) fn join(&mut self, more: &Step<'_>) -> bool {
        match (self, more) {
            (
                Step::Text {
                    kind,
                    text,
                    provider: data @ None,
                },
                Step::Text {
                    kind: other,
                    text: more,
                    provider,
                },
            ) if kind == other => {
                text.to_mut().push_str(more);
                *data = provider.as_ref().map(|data| data.to_string().into());
                true
            }
            _ => false,
        }
    }
}

/// Token counts; 0 if the upstream does not send them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReportedUsage {
    /// Tokens in the request.
    pub input: u64,
    /// Tokens in the response, including reasoning.
    pub output: u64,
    /// Tokens in both.
    pub total: u64,
    /// Request tokens that were read from a cache.
    pub cached: u64,
    /// Request tokens that were written to a cache.
    pub written: u64,
    /// Reasoning tokens.
    pub reasoning: u64,
}

impl ReportedUsage {
    /// Writes the cache counts with the names of OpenAI's APIs. `cache_write_tokens` is the name
    /// used by OpenRouter <https://openrouter.ai/docs/use-cases/usage-accounting>.
    pub(crate) fn cache(&self, o: &mut Object<'_>) {
        o.int("cached_tokens", self.cached);
        if self.written > 0 {
            o.int("cache_write_tokens", self.written);
        }
    }

    /// Returns the counts in `stats`; `None` if it has no token count.
    pub(crate) fn of(stats: &SessionStats) -> Option<ReportedUsage> {
        let counts = [
            stats.prompt_tokens,
            stats.completion_tokens,
            stats.total(),
            stats.cached_tokens,
            stats.cache_write_tokens,
            stats.reasoning_tokens,
        ];
        counts.iter().any(Option::is_some).then(|| {
            let [input, output, total, cached, written, reasoning] =
                counts.map(Option::unwrap_or_default);
            ReportedUsage {
                input,
                output,
                total: total.max(input).max(output),
                cached,
                written,
                reasoning,
            }
        })
    }
}

/// A source of the current time, in seconds since 1970.
#[derive(Clone)]
pub struct Clock(Rc<dyn Fn() -> u64>);

impl Clock {
    /// Creates a clock that calls `now`.
    pub fn new(now: impl Fn() -> u64 + 'static) -> Clock {
        Clock(Rc::new(now))
    }

    /// Returns the current time, in seconds since 1970.
    pub fn now(&self) -> u64 {
        (self.0)()
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The settings of a response. Apart from `clock`, the same events and options produce the same
/// bytes. Serialized as JSON, members with default values are omitted, as are `clock` and
/// `starting_after`, which only concern one transmission of the response.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AnswerOptions {
    /// The response's id, without a front's prefix such as `chatcmpl-`.
    #[serde(skip_serializing_if = "is_default")]
    pub id: String,
    /// Whether to keep the ids of a provider that speaks the front's API, because a later request
    /// of the client may refer to them.
    #[serde(skip_serializing_if = "is_default")]
    pub keeps_ids: bool,
    /// The response id that the provider sent, which replaces the one derived from `id`. An
    /// [`crate::Encoder`] sets it from the events.
    #[serde(skip_serializing_if = "is_default")]
    pub provider_id: Option<String>,
    /// The source of `completed_at` in OpenAI Responses, which is `null` if this is `None`.
    #[serde(skip)]
    pub clock: Option<Clock>,
    /// The model that the client requested. If empty, the upstream's name is used.
    #[serde(skip_serializing_if = "is_default")]
    pub model: String,
    /// When the request arrived, in seconds since 1970.
    #[serde(skip_serializing_if = "is_default")]
    pub created: u64,
    /// How many choices the client asked for; further choices are dropped. `None` keeps all of
    /// them.
    #[serde(skip_serializing_if = "is_default")]
    pub choices: Option<u32>,
    /// Whether a Chat Completions stream ends with a usage chunk (`stream_options.include_usage`).
    #[serde(skip_serializing_if = "is_default")]
    pub include_usage: bool,
    /// Whether to send warnings and repairs under the key `toolpipe`, in chunks without choices.
    #[serde(skip_serializing_if = "is_default")]
    pub extras: bool,
    /// Whether the response is stored and may be written again from its events. Its bytes then do
    /// not depend on when it is started ([`crate::Encoder::begin`]) or kept alive: the model's name
    /// is always `model`, whatever the upstream calls it, and OpenAI Responses has `"store":true`.
    #[serde(skip_serializing_if = "is_default")]
    pub is_stored: bool,
    /// Whether the response runs in the background: OpenAI Responses has `"background":true`.
    #[serde(skip_serializing_if = "is_default")]
    pub is_background: bool,
    /// The id of the conversation that the response belongs to (OpenAI Responses).
    #[serde(skip_serializing_if = "is_default")]
    pub conversation: Option<String>,
    /// The last `sequence_number` that the client already has. Events of OpenAI Responses up to
    /// this number are not written.
    #[serde(skip)]
    pub starting_after: Option<u64>,
    /// Whether a stream keeps its items after its end, for [`crate::Encoder::snapshot`].
    #[serde(skip)]
    pub keeps_items: bool,
    /// Whether to show calls that the service runs ([`crate::Encoder::step`]), on fronts that
    /// support them.
    #[serde(skip_serializing_if = "is_default")]
    pub shows_steps: bool,
    /// Members of the request that an OpenAI Responses response repeats, such as `tools` and
    /// `instructions`: pairs of a name and JSON.
    #[serde(skip_serializing_if = "is_default")]
    pub echo: Vec<(String, String)>,
    /// Whether call ids carry the data that must be sent back to a provider with the call; see
    /// `carried.rs`.
    #[serde(skip_serializing_if = "is_default")]
    pub carries: bool,
    /// The names of the request's tools that take one free-form text instead of arguments (`custom`
    /// tools of OpenAI Responses).
    #[serde(skip_serializing_if = "is_default")]
    pub custom_tools: Vec<String>,
    /// The client's tools that are in a namespace (OpenAI Responses). The response contains the
    /// namespace and the name separately.
    #[serde(skip_serializing_if = "is_default")]
    pub namespaced_tools: Vec<NamespacedTool>,
}

/// Counts of content that was dropped from a successful response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Events of choices that the client did not ask for.
    pub other_choices: u64,
    /// Calls that were truncated before any part of them was sent to the client.
    pub cut_calls: u64,
    /// Calls and texts that came after a truncated call, which stays open.
    pub behind_cut: u64,
    /// Content events after the end of the response.
    pub late: u64,
    /// Members of the provider's response, and items that it ran itself, that the client's API
    /// cannot represent.
    pub members: Vec<String>,
    /// The upstream's name for the model, if the response contains the client's name instead.
    pub model: Option<String>,
}

/// The maximum number of member names kept, and the maximum length of each in bytes.
const NAMES: (usize, usize) = (32, 48);

impl Dropped {
    /// Adds the name of a dropped member.
    pub(crate) fn member(&mut self, name: &str) {
        let name = event::cut(name, NAMES.1);
        if self.members.len() < NAMES.0 && !self.members.iter().any(|other| other == name) {
            self.members.push(name.to_owned());
        }
    }

    /// Returns each non-zero count with a sentence that describes it.
    pub fn notes(&self) -> impl Iterator<Item = (String, u64)> {
        let members = (!self.members.is_empty()).then(|| {
            format!(
                "dropped parts of the answer that the client's API cannot express: {}",
                self.members.join(", ")
            )
        });
        let model = self
            .model
            .as_ref()
            .map(|model| format!("the upstream names the model {model}"));
        let counts = [
            (
                "dropped an event of a choice that the client did not ask for",
                self.other_choices,
            ),
            ("dropped a call that was cut", self.cut_calls),
            (
                "dropped a call or text behind a call that was cut",
                self.behind_cut,
            ),
            (
                "dropped an event with content behind the end of the answer",
                self.late,
            ),
        ]
        .into_iter()
        .filter(|(_, count)| *count > 0);
        counts
            .map(|(what, count)| (what.to_owned(), count))
            .chain(members.into_iter().chain(model).map(|note| (note, 1)))
    }
}
