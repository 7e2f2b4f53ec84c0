//! What happens in an answer, in the one order that every front can write.

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
    /// It waits for its turn.
    Queued,
    /// The model writes.
    InProgress,
}

/// One step of an answer. For each choice the steps are in this order: `Begin`; then texts and
/// calls, one after the other, in which no step comes between [`CallStepKind::Begin`] and
/// [`CallStepKind::Called`] of a call of the client; then `End`. `Usage` follows the last `End`.
/// `Failed` may take the place of any step but the first, and is the last. A call of the client that
/// was cut is never `Called`: the next step of its choice is `End` with `Length` or `ContentFilter`,
/// or the answer failed. A front writes it in a form that no client runs.
///
/// A step borrows what it has of the event that it is made of, and owns it where it waits
/// ([`Step::to_kept`]).
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step<'a> {
    /// The answer begins: the first step, once.
    Begin,
    /// The next piece of a text, which is empty only where `provider` is not.
    Text {
        kind: TextKind,
        text: Cow<'a, str>,
        /// What must go back to the provider with reasoning, which it ends: JSON, by the name of
        /// the API.
        provider: Option<Cow<'a, str>>,
    },
    /// What happens to a call.
    Call(CallStep<'a>),
    /// Members of the provider's answer, in the words of the front. Those of [`DetailsPlace::Text`] and
    /// [`DetailsPlace::Item`] are in order with the content, and others may come before `Begin`: they wait
    /// for the next step.
    Details(DetailsPlace, Cow<'a, DetailMembers>),
    /// The choice ends.
    End {
        /// Why. With calls that are complete it is `ToolCalls`, unless the answer was cut.
        reason: FinishReason,
        /// The provider's own word for it, which may be more exact; only with the reasons `Stop`
        /// and `Length`, and on a front only where the provider speaks the client's API.
        provider: Option<Cow<'a, str>>,
    },
    /// What the answer holds under the key `toolpipe`, as JSON: warnings, repairs, and what the
    /// provider ran itself. Once, after the last `End`, and only if
    /// [`crate::AnswerOptions::extras`] asks for it.
    Extras(Cow<'a, str>),
    /// The counts of tokens, after the last choice has ended.
    Usage(ReportedUsage),
    /// The answer failed after it began.
    Failed(Cow<'a, FailedAnswer>),
}

/// What happens to a call. The place of a call of the client among the calls of its choice is the
/// number of calls before it. Those that the service runs may overlap, and other steps may come
/// between theirs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallStep<'a> {
    pub kind: CallStepKind,
    /// Whether the service runs the call; else the client does.
    pub is_own: bool,
    /// The id of the call, never empty. A client gets the one of the beginning.
    pub id: Cow<'a, str>,
    /// The tool's name, never empty.
    pub name: Cow<'a, str>,
    /// The arguments, a piece of them, or the output.
    pub text: Cow<'a, str>,
    /// What must go back to the provider with it, as far as it is known: JSON, by the name of the
    /// API.
    pub provider: Option<Cow<'a, str>>,
}

/// What happens to a call: `Begin`, `Arguments`, `Called`. One of the service is then `Pending`
/// where it waits for a person, and has a `Result`; its `Arguments` may be missing, and need not add
/// up to what `Called` has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallStepKind {
    /// The model begins to write it.
    Begin,
    /// The next piece of its arguments, never empty. All of them up to here are the beginning of a
    /// JSON object.
    Arguments,
    /// It is complete. The text is all of its arguments: an object, unless the call cannot run.
    Called,
    /// It has run, or is not run: the text is what the model reads.
    Result {
        /// Whether it failed.
        is_error: bool,
    },
    /// It waits for a person. Its `Result` follows if a person answers before the answer ends.
    Pending,
}

/// What a piece of text is. A choice ends in this order.
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

/// The piece of text that an event is, and what must go back to the provider with it.
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
    /// The step of a piece of text; `None` for an empty one.
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

    /// The step with all that it has as its own, so that it can wait.
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

    /// Takes a further piece of the same text; returns `false` if `more` belongs to another block.
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

/// Counts of tokens; 0 where the upstream sends none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReportedUsage {
    /// Tokens of the request.
    pub input: u64,
    /// Tokens of the answer, reasoning included.
    pub output: u64,
    /// Tokens of both.
    pub total: u64,
    /// Tokens of the request that came from a cache.
    pub cached: u64,
    /// Tokens of the request that were written to a cache.
    pub written: u64,
    /// Tokens of reasoning.
    pub reasoning: u64,
}

impl ReportedUsage {
    /// Writes the members of OpenAI's APIs for the tokens of the cache. `cache_write_tokens` is as
    /// <https://openrouter.ai/docs/use-cases/usage-accounting> has it.
    pub(crate) fn cache(&self, o: &mut Object<'_>) {
        o.int("cached_tokens", self.cached);
        if self.written > 0 {
            o.int("cache_write_tokens", self.written);
        }
    }

    /// The counts of `stats`; `None` where those have none.
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

/// What tells the time: the seconds since 1970.
#[derive(Clone)]
pub struct Clock(Rc<dyn Fn() -> u64>);

impl Clock {
    /// A clock that `now` reads.
    pub fn new(now: impl Fn() -> u64 + 'static) -> Clock {
        Clock(Rc::new(now))
    }

    /// The seconds since 1970 now.
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

/// What an answer says besides what the model wrote. But for `clock` the same events and options
/// give the same bytes. As JSON it has the members that differ from the default; `clock` and
/// `starting_after` belong to one writing of the answer, and are left out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AnswerOptions {
    /// The id of the answer, without the prefix of a front such as `chatcmpl-`.
    #[serde(skip_serializing_if = "is_default")]
    pub id: String,
    /// Whether the ids of a provider of the front's own API stay: a later request of the client may
    /// refer to them.
    #[serde(skip_serializing_if = "is_default")]
    pub keeps_ids: bool,
    /// The id that the provider gave to the answer, which takes the place of one made of `id`. An
    /// [`crate::Encoder`] sets it by the events.
    #[serde(skip_serializing_if = "is_default")]
    pub provider_id: Option<String>,
    /// For `completed_at` of OpenAI Responses; `null` without it.
    #[serde(skip)]
    pub clock: Option<Clock>,
    /// The model that the client asked for; the upstream's name of it counts where this is empty.
    #[serde(skip_serializing_if = "is_default")]
    pub model: String,
    /// When the request came: seconds since 1970.
    #[serde(skip_serializing_if = "is_default")]
    pub created: u64,
    /// How many choices the client asked for; the others of the upstream are dropped. `None` keeps
    /// all of them.
    #[serde(skip_serializing_if = "is_default")]
    pub choices: Option<u32>,
    /// Whether a chat stream ends with a chunk of usage (`stream_options.include_usage`).
    #[serde(skip_serializing_if = "is_default")]
    pub include_usage: bool,
    /// Whether warnings and repairs go along under the key `toolpipe`, in chunks without choices.
    #[serde(skip_serializing_if = "is_default")]
    pub extras: bool,
    /// Whether the answer is kept and may be written again from its events. Then its bytes do not
    /// depend on when it is begun ([`crate::Encoder::begin`]) or kept alive: `model` has its name
    /// for the model whatever the upstream's is, and OpenAI Responses says `"store":true`.
    #[serde(skip_serializing_if = "is_default")]
    pub is_stored: bool,
    /// Whether the answer is made in the background: OpenAI Responses says `"background":true`.
    #[serde(skip_serializing_if = "is_default")]
    pub is_background: bool,
    /// The id of the conversation that the answer belongs to (OpenAI Responses).
    #[serde(skip_serializing_if = "is_default")]
    pub conversation: Option<String>,
    /// The events of OpenAI Responses up to this `sequence_number` are not written: the client has
    /// them.
    #[serde(skip)]
    pub starting_after: Option<u64>,
    /// Whether a stream keeps its items behind its end, where [`crate::Encoder::snapshot`] still has
    /// them.
    #[serde(skip)]
    pub keeps_items: bool,
    /// Whether calls that the service runs are shown ([`crate::Encoder::step`]), on the fronts that
    /// have a place for them.
    #[serde(skip_serializing_if = "is_default")]
    pub shows_steps: bool,
    /// Members of the request that the answer of OpenAI Responses repeats, such as `tools` and
    /// `instructions`: pairs of a name and JSON.
    #[serde(skip_serializing_if = "is_default")]
    pub echo: Vec<(String, String)>,
    /// Whether the ids of calls carry what a provider wants back with the call: see `carried.rs`.
    #[serde(skip_serializing_if = "is_default")]
    pub carries: bool,
    /// The names of the tools of the request that have one free text in place of arguments
    /// (`custom` tools of OpenAI Responses).
    #[serde(skip_serializing_if = "is_default")]
    pub custom_tools: Vec<String>,
    /// The tools of the request that the client has in a namespace (OpenAI Responses): an answer
    /// names the two apart.
    #[serde(skip_serializing_if = "is_default")]
    pub namespaced_tools: Vec<NamespacedTool>,
}

/// Counts of what is in no part of an answer that did not fail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Events of choices that the client did not ask for.
    pub other_choices: u64,
    /// Calls that were cut before the client got anything of them.
    pub cut_calls: u64,
    /// Calls and pieces of text behind a call that was cut, which stays open.
    pub behind_cut: u64,
    /// Events with content behind the end of the answer.
    pub late: u64,
    /// Members of the provider's answer, and items that it ran itself, that the client's API has no
    /// place for.
    pub members: Vec<String>,
    /// The upstream's name of the model, where the answer has the one that the client asked for.
    pub model: Option<String>,
}

/// How many names of members are kept, and how many bytes of one.
const NAMES: (usize, usize) = (32, 48);

impl Dropped {
    /// Takes the name of a member.
    pub(crate) fn member(&mut self, name: &str) {
        let name = event::cut(name, NAMES.1);
        if self.members.len() < NAMES.0 && !self.members.iter().any(|other| other == name) {
            self.members.push(name.to_owned());
        }
    }

    /// Each count that is not 0, with a sentence for people.
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
