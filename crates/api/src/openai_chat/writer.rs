//! Writes streams and complete responses of `/v1/chat/completions`.
//!
//! The format is documented at <https://platform.openai.com/docs/api-reference/chat-streaming> and
//! <https://platform.openai.com/docs/api-reference/chat/object>.

use crate::answer::delta::DeltaFrame;
use crate::answer::details;
use crate::answer::details::{DetailMembers, DetailsPlace, merge};
use crate::answer::failure::FailedAnswer;
use crate::answer::step::{AnswerOptions, CallStepKind, ReportedUsage, Step, TextKind};
use crate::answer::writer::{AnswerFormat, AnswerWriter, openai_error};
use event::payload::FinishReason;
use event::{Choices, Object, Raw};
use serde_json::Value;
use std::collections::HashMap;

/// How this API writes responses.
pub(crate) const FORMAT: AnswerFormat = AnswerFormat {
    path: "/v1/chat/completions",
    writer: |options, is_whole| Box::new(ChatWriter::new(options, is_whole)),
    has_steps: false,
    error: openai_error,
};

/// The member for each [`TextKind`](crate::answer::step::TextKind).
const TEXTS: [&str; 3] = ["reasoning_content", "content", "refusal"];

struct ChatWriter {
    envelope: ChunkEnvelope,
    is_whole: bool,
    include_usage: bool,
    choices: Choices<ChatChoice>,
    /// The provider's own token counts.
    counts: DetailMembers,
    /// The content of the key `toolpipe` in a complete response.
    extras: Option<String>,
    out: Vec<u8>,
}

/// One choice.
#[derive(Debug, Default)]
struct ChatChoice {
    /// The index of the open call, or of the next one.
    place: CallPlace,
    /// Details of the choice and of its message. In a stream they wait for the next chunk.
    details: DetailMembers,
    message_details: DetailMembers,
    /// The number of entries written for each list of the message.
    entries: HashMap<String, usize>,
    /// The bytes around the text of the choice's deltas.
    frame: DeltaFrame<(u32, DeltaText)>,
    /// The message of a complete response.
    message: ChatMessage,
    finish: FinishReason,
}

/// The text that a delta continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeltaText {
    Of(TextKind),
    Arguments(CallPlace),
}

impl DeltaText {
    fn write(self, o: &mut Object<'_>, text: &str) {
        match self {
            DeltaText::Of(kind) => _ = o.str(TEXTS[kind as usize], text),
            DeltaText::Arguments(place) => place.arguments(o, text),
        }
    }
}

/// The message of a complete response.
#[derive(Debug, Default)]
struct ChatMessage {
    /// The texts, in the order of [`TEXTS`].
    texts: [String; 3],
    calls: Vec<ChatCall>,
}

#[derive(Debug, Default)]
struct ChatCall {
    id: String,
    name: String,
    arguments: String,
    extra: Option<String>,
}

impl ChatWriter {
    fn new(options: &AnswerOptions, is_whole: bool) -> ChatWriter {
        let object = if is_whole {
            "chat.completion"
        } else {
            "chat.completion.chunk"
        };
        ChatWriter {
            envelope: ChunkEnvelope::new(options, object),
            is_whole,
            include_usage: options.include_usage,
            choices: Choices::default(),
            counts: DetailMembers::new(),
            extras: None,
            out: Vec::new(),
        }
    }

    /// Writes a chunk with one delta.
    fn delta(&mut self, choice: u32, fill: impl FnOnce(&mut Object<'_>)) {
        self.choice(choice, fill, |o| _ = o.raw("finish_reason", "null"));
    }

    /// Writes a chunk with the next piece of a text.
    fn text(&mut self, choice: u32, of: DeltaText, text: &str) {
        let waits = self.choices.of(choice);
        let has_details = !waits.details.is_empty() || !waits.message_details.is_empty();
        let envelope = &self.envelope;
        if has_details || !envelope.is_steady {
            return self.delta(choice, |o| of.write(o, text));
        }
        let key = (envelope.version, of);
        waits.frame.push(&mut self.out, key, text, |out, text| {
            envelope.event(out, |o| {
                let none = DetailMembers::new();
                let end = |o: &mut Object<'_>| _ = o.raw("finish_reason", "null");
                write_choice(o, choice, |o| of.write(o, text), [&none, &none], end);
            });
        });
    }

    /// Writes a chunk of one choice, with its pending details.
    fn choice(
        &mut self,
        choice: u32,
        delta: impl FnOnce(&mut Object<'_>),
        end: impl FnOnce(&mut Object<'_>),
    ) {
        let waits = self.choices.of(choice);
        let of_choice = std::mem::take(&mut waits.details);
        let mut of_message = std::mem::take(&mut waits.message_details);
        number(&mut of_message, &mut waits.entries);
        self.envelope.chunk(&mut self.out, |o| {
            write_choice(o, choice, delta, [&of_message, &of_choice], end);
        });
    }
}

/// Writes the choice of a chunk, with details of its message and its own.
fn write_choice(
    o: &mut Object<'_>,
    choice: u32,
    delta: impl FnOnce(&mut Object<'_>),
    [of_message, of_choice]: [&DetailMembers; 2],
    end: impl FnOnce(&mut Object<'_>),
) {
    o.array("choices", |list| {
        list.object(|o| {
            o.int("index", choice).object("delta", |o| {
                delta(o);
                details::write(o, of_message);
            });
            details::write(o, of_choice);
            end(o);
        });
    });
}

/// Adds an `index` with its position to each list entry. openai-python merges the lists of a stream
/// by it, and raises an exception without it. `written` is the number of earlier entries of each
/// list.
fn number(message: &mut DetailMembers, written: &mut HashMap<String, usize>) {
    for (name, list) in message
        .iter_mut()
        .filter_map(|(name, value)| Some((name, value.as_array_mut()?)))
    {
        let next = written.entry(name.clone()).or_default();
        for entry in list.iter_mut().filter_map(Value::as_object_mut) {
            entry.entry("index").or_insert((*next).into());
            *next += 1;
        }
    }
}

impl AnswerWriter for ChatWriter {
    fn set_id(&mut self, id: &str) {
        self.envelope.set_id(id);
    }

    fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    fn step(&mut self, choice: u32, step: &Step<'_>, model: &str) {
        self.envelope.set_model(model);
        match step {
            Step::Details(place, members) => {
                let (into, joins) = match place {
                    DetailsPlace::Answer => (self.envelope.members(), false),
                    DetailsPlace::Usage => (&mut self.counts, false),
                    DetailsPlace::Choice => (&mut self.choices.of(choice).details, false),
                    DetailsPlace::Message
                    | DetailsPlace::Text
                    | DetailsPlace::Call
                    | DetailsPlace::Item => (&mut self.choices.of(choice).message_details, true),
                };
                merge(into, members.clone().into_owned(), joins);
            }
            // The API cannot represent these calls.
            Step::Call(call) if call.is_own => {}
            Step::Extras(json) if self.is_whole => self.extras = Some(json.to_string()),
            step if self.is_whole => self.choices.of(choice).keep(step),
            Step::Begin => self.delta(choice, |o| {
                o.str("role", "assistant").str("content", "");
            }),
            Step::Text { kind, text, .. } => {
                if !text.is_empty() {
                    self.text(choice, DeltaText::Of(*kind), text);
                }
            }
            Step::Call(call) => {
                let place = self.choices.of(choice).place;
                match call.kind {
                    CallStepKind::Begin => {
                        self.delta(choice, |o| place.begin(o, &call.id, &call.name));
                    }
                    CallStepKind::Arguments => {
                        self.text(choice, DeltaText::Arguments(place), &call.text);
                    }
                    _ => {
                        if let Some(extra) = call.provider.as_deref().and_then(extra_content) {
                            self.delta(choice, |o| place.extra(o, &extra));
                        }
                        self.choices.of(choice).place.advance();
                    }
                }
            }
            Step::End { reason, .. } => {
                // The chunk with the finish reason contains nothing else but the choice's details.
                let waits = self.choices.of(choice);
                if !waits.message_details.is_empty() {
                    let of_choice = std::mem::take(&mut waits.details);
                    self.delta(choice, |_| {});
                    self.choices.of(choice).details = of_choice;
                }
                self.choice(
                    choice,
                    |_| {},
                    |o| _ = o.str("finish_reason", reason_name(*reason)),
                );
            }
            Step::Extras(json) => self.envelope.chunk(&mut self.out, |o| {
                o.array("choices", |_| {}).raw("toolpipe", json);
            }),
            Step::Usage(usage) => {
                if self.include_usage {
                    let counts = details::counts(&self.counts, |o| usage_members(usage, o));
                    self.envelope.chunk(&mut self.out, |o| {
                        _ = o.array("choices", |_| {}).raw("usage", &counts)
                    });
                }
                self.out.extend_from_slice(b"data: [DONE]\n\n");
            }
            Step::Failed(failed) => {
                self.out.extend_from_slice(b"data: ");
                let mut o = Object::open(&mut self.out);
                openai_error(&mut o, failed);
                o.close();
                self.out.extend_from_slice(b"\n\n");
            }
        }
    }

    fn whole(
        &mut self,
        usage: Option<&ReportedUsage>,
        failure: Option<&FailedAnswer>,
        model: &str,
    ) -> Vec<u8> {
        self.envelope.set_model(model);
        let mut out = Vec::new();
        self.envelope.object(&mut out, |o| {
            o.array("choices", |list| {
                for (number, choice) in self.choices.by_number() {
                    list.object(|o| {
                        o.int("index", number).object("message", |o| {
                            choice.message.write(o);
                            details::write(o, &choice.message_details);
                        });
                        details::write(o, &choice.details);
                        o.str("finish_reason", reason_name(choice.finish));
                    });
                }
            });
            if let Some(usage) = usage {
                let counts = details::counts(&self.counts, |o| usage_members(usage, o));
                o.raw("usage", &counts);
            }
            if let Some(extras) = &self.extras {
                o.raw("toolpipe", extras);
            }
            if let Some(failure) = failure {
                openai_error(o, failure);
            }
        });
        out
    }
}

impl ChatChoice {
    /// Stores a step of a complete response.
    fn keep(&mut self, step: &Step<'_>) {
        let message = &mut self.message;
        match step {
            Step::Text { kind, text, .. } => message.texts[*kind as usize].push_str(text),
            Step::Call(call) => {
                if call.kind == CallStepKind::Begin {
                    message.calls.push(ChatCall {
                        id: call.id.to_string(),
                        name: call.name.to_string(),
                        ..ChatCall::default()
                    });
                }
                if let Some(kept) = message.calls.last_mut() {
                    if call.kind == CallStepKind::Arguments {
                        kept.arguments.push_str(&call.text);
                    } else {
                        kept.extra = call.provider.as_deref().and_then(extra_content);
                    }
                }
            }
            Step::End { reason, .. } => self.finish = *reason,
            _ => {}
        }
    }
}

impl ChatMessage {
    fn write(&self, o: &mut Object<'_>) {
        o.str("role", "assistant");
        let [reasoning, text, refusal] = &self.texts;
        let has_other = !self.calls.is_empty() || !refusal.is_empty();
        if text.is_empty() && has_other {
            o.raw("content", "null");
        } else {
            o.str("content", text);
        }
        for (name, text) in [("refusal", refusal), ("reasoning_content", reasoning)] {
            if !text.is_empty() {
                o.str(name, text);
            }
        }
        if !self.calls.is_empty() {
            o.array("tool_calls", |list| {
                for call in &self.calls {
                    list.object(|o| {
                        o.str("id", &call.id)
                            .str("type", "function")
                            .object("function", |o| {
                                o.str("name", &call.name).str("arguments", &call.arguments);
                            });
                        if let Some(extra) = &call.extra {
                            o.raw("extra_content", extra);
                        }
                    });
                }
            });
        }
    }
}

/// Returns the value of `finish_reason`. A failed stream has none.
fn reason_name(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::Length => "length",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::Stop => "stop",
        FinishReason::Error | FinishReason::Cancelled | FinishReason::Cut => "error",
    }
}

fn usage_members(usage: &ReportedUsage, o: &mut Object<'_>) {
    o.int("prompt_tokens", usage.input)
        .int("completion_tokens", usage.output)
        .int("total_tokens", usage.total);
    o.object("prompt_tokens_details", |o| usage.cache(o));
    o.object("completion_tokens_details", |o| {
        o.int("reasoning_tokens", usage.reasoning);
    });
}

/// The index of a call among those of its choice. Indexes are dense from 0, because openai-python
/// uses them as list indexes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallPlace(u32);

impl CallPlace {
    /// Advances to the next call.
    pub(crate) fn advance(&mut self) {
        self.0 += 1;
    }

    /// Writes a call's first delta. Only the first delta has the id, the type and the name:
    /// openai-python concatenates repeated strings, and openai-node rejects a delta that changes
    /// them. `arguments` must not be missing (open-webui#13125).
    pub(crate) fn begin(self, o: &mut Object<'_>, id: &str, name: &str) {
        self.item(o, |o| {
            o.str("id", id)
                .str("type", "function")
                .object("function", |o| {
                    o.str("name", name).str("arguments", "");
                });
        });
    }

    /// Writes the next piece of the arguments.
    pub(crate) fn arguments(self, o: &mut Object<'_>, more: &str) {
        self.item(o, |o| {
            o.object("function", |o| {
                o.str("arguments", more);
            });
        });
    }

    /// Writes the data that must be sent back with the call. The AI SDK requires `function` in
    /// every item.
    pub(crate) fn extra(self, o: &mut Object<'_>, extra: &str) {
        self.item(o, |o| {
            o.object("function", |o| {
                o.str("arguments", "");
            });
            o.raw("extra_content", extra);
        });
    }

    fn item(self, o: &mut Object<'_>, fill: impl FnOnce(&mut Object<'_>)) {
        o.array("tool_calls", |list| {
            list.object(|o| {
                o.int("index", self.0);
                fill(o);
            });
        });
    }
}

/// Returns the value of `extra_content`, in which a client sends back the data that the provider
/// requires with the call. Data from an upstream of this API is unchanged, Gemini's signature has
/// the form of Google's own OpenAI endpoint
/// (<https://ai.google.dev/gemini-api/docs/thought-signatures>), and other data is under the key
/// `toolpipe`.
pub(crate) fn extra_content(provider: &str) -> Option<String> {
    let data = Raw::parse(provider).ok().filter(|data| data.is_object())?;
    if let Some(extra) = data
        .at(&["openai-chat", "extra_content"])
        .filter(|extra| extra.is_object())
    {
        return Some(extra.text().to_owned());
    }
    if let Some(signature) = data
        .at(&["gemini", "thoughtSignature"])
        .filter(|signature| signature.is_str())
    {
        return Some(format!(
            "{{\"google\":{{\"thought_signature\":{}}}}}",
            signature.text()
        ));
    }
    Some(format!("{{\"toolpipe\":{}}}", data.text()))
}

/// The members in every chunk, because openai-python only keeps the last one
/// (`lib/streaming/chat/_completions.py`).
const REPEATED: [&str; 3] = ["system_fingerprint", "service_tier", "provider"];

/// The id, the object type, the time and the model of a chunk.
pub(crate) struct ChunkEnvelope {
    id: String,
    object: &'static str,
    created: u64,
    model: String,
    /// Members of the provider's response for the next object.
    members: DetailMembers,
    /// Whether the next chunk has no members that the one after it lacks.
    is_steady: bool,
    /// Changes with all that is written into each chunk.
    version: u32,
}

impl ChunkEnvelope {
    pub(crate) fn new(options: &AnswerOptions, object: &'static str) -> ChunkEnvelope {
        let id = options
            .provider_id
            .clone()
            .unwrap_or_else(|| format!("chatcmpl-{}", options.id));
        ChunkEnvelope {
            id,
            object,
            created: options.created,
            model: options.model.clone(),
            members: DetailMembers::new(),
            is_steady: true,
            version: 0,
        }
    }

    /// Sets the id.
    pub(crate) fn set_id(&mut self, id: &str) {
        id.clone_into(&mut self.id);
        self.version += 1;
    }

    /// Sets the model's name, unless `model` is empty.
    pub(crate) fn set_model(&mut self, model: &str) {
        if !model.is_empty() && model != self.model {
            model.clone_into(&mut self.model);
            self.version += 1;
        }
    }

    /// Returns the members for the next object, to add some.
    pub(crate) fn members(&mut self) -> &mut DetailMembers {
        self.is_steady = false;
        self.version += 1;
        &mut self.members
    }

    /// Appends one event to the stream. `fill` adds the members specific to it.
    pub(crate) fn chunk(&mut self, out: &mut Vec<u8>, fill: impl FnOnce(&mut Object<'_>)) {
        self.event(out, fill);
        self.members
            .retain(|name, _| REPEATED.contains(&name.as_str()));
        self.is_steady = true;
    }

    /// Does the same as [`ChunkEnvelope::chunk`], but keeps all members for the next object.
    fn event(&self, out: &mut Vec<u8>, fill: impl FnOnce(&mut Object<'_>)) {
        out.extend_from_slice(b"data: ");
        self.object(out, fill);
        out.extend_from_slice(b"\n\n");
    }

    /// Appends one object.
    pub(crate) fn object(&self, out: &mut Vec<u8>, fill: impl FnOnce(&mut Object<'_>)) {
        let mut o = Object::open(out);
        o.str("id", &self.id).str("object", self.object);
        if self.created != 0 {
            o.int("created", self.created);
        }
        o.str("model", &self.model);
        fill(&mut o);
        details::write(&mut o, &self.members);
        o.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(writer: &mut ChatWriter, model: &str) -> String {
        let step = Step::piece(TextKind::Answer, "word", None).expect("a text");
        writer.step(0, &step, model);
        String::from_utf8(std::mem::take(writer.bytes())).expect("UTF-8")
    }

    #[test]
    fn what_changes_between_deltas_is_in_the_next_chunk() {
        let mut writer = ChatWriter::new(&AnswerOptions::default(), false);
        let plain = [(); 4].map(|()| text(&mut writer, "m"));
        assert!(plain.iter().all(|chunk| *chunk == plain[0]), "{plain:?}");
        let details = |writer: &mut ChatWriter, place, members: Value| {
            let members = members.as_object().cloned().unwrap_or_default();
            let step = Step::Details(place, std::borrow::Cow::Owned(members));
            writer.step(0, &step, "m");
            [(); 4].map(|()| text(writer, "m"))
        };
        let once = [true, false, false, false];
        let members = json!({"system_fingerprint": "fp", "once": 1});
        let chunks = details(&mut writer, DetailsPlace::Answer, members);
        assert!(chunks.iter().all(|chunk| chunk.contains("\"fp\"")));
        assert_eq!(chunks.map(|chunk| chunk.contains("once")), once);
        for place in [DetailsPlace::Choice, DetailsPlace::Message] {
            let chunks = details(&mut writer, place, json!({"once": 1}));
            assert_eq!(chunks.map(|chunk| chunk.contains("once")), once);
        }
        assert!(
            [(); 3]
                .iter()
                .all(|()| text(&mut writer, "other").contains("\"other\""))
        );
        writer.set_id("later");
        assert!(
            [(); 3]
                .iter()
                .all(|()| text(&mut writer, "").contains("\"later\""))
        );
    }
}
