//! A stream as one whole response, in the shape of a provider's endpoint without streaming
//! (`--as`).

use crate::call::OpenCall;
use crate::failure::StreamError;
use crate::message::AnswerDraft;
use event::payload::{FinishReason, SessionStats};
use event::{Array, Object};

/// The provider whose shape a response has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseShape {
    /// A `chat.completion` (<https://platform.openai.com/docs/api-reference/chat/object>).
    Openai,
    /// A `message` (<https://docs.anthropic.com/en/api/messages>).
    Anthropic,
    /// A `GenerateContentResponse` (<https://ai.google.dev/api/generate-content>).
    Gemini,
}

/// What a response shows of a choice.
#[derive(Debug)]
pub(crate) struct ChoiceSummary<'a> {
    pub number: u32,
    pub draft: &'a AnswerDraft,
    pub calls: &'a [OpenCall],
}

/// What a response shows of a stream.
#[derive(Debug)]
pub(crate) struct StreamSummary<'a> {
    pub id: &'a str,
    pub model: &'a str,
    pub parts: &'a [ChoiceSummary<'a>],
    pub reason: FinishReason,
    pub stats: Option<SessionStats>,
    pub error: Option<&'a StreamError>,
}

impl ChoiceSummary<'_> {
    /// The calls that hold.
    fn calls(&self) -> impl Iterator<Item = &OpenCall> {
        self.calls.iter().filter(|c| c.emission.object().is_some())
    }

    fn has_calls(&self) -> bool {
        self.calls().next().is_some()
    }
}

impl ResponseShape {
    /// The response on one line.
    pub(crate) fn response(self, whole: &StreamSummary<'_>) -> String {
        let mut out = Vec::new();
        let mut o = Object::open(&mut out);
        match self {
            ResponseShape::Openai => openai(&mut o, whole),
            ResponseShape::Anthropic => anthropic(&mut o, whole),
            ResponseShape::Gemini => gemini(&mut o, whole),
        }
        if let Some(error) = whole.error {
            o.object("error", |o| match self {
                ResponseShape::Openai => error.openai(o),
                ResponseShape::Anthropic => error.anthropic(o),
                ResponseShape::Gemini => error.gemini(o),
            });
        }
        o.close();
        String::from_utf8(out).unwrap_or_default()
    }
}

/// The tokens of the prompt, of the answer and of both, under a provider's own names; unknown ones
/// are left out.
fn usage<const N: usize>(
    o: &mut Object<'_>,
    key: &str,
    stats: Option<SessionStats>,
    names: [&str; N],
) {
    if let Some(stats) = stats {
        o.object(key, |o| {
            let counts = [
                stats.prompt_tokens,
                stats.completion_tokens,
                stats.total_tokens,
            ];
            for (name, count) in names.iter().zip(counts) {
                if let Some(count) = count {
                    o.int(name, count);
                }
            }
        });
    }
}

fn openai(o: &mut Object<'_>, whole: &StreamSummary<'_>) {
    let StreamSummary {
        id,
        model,
        parts,
        reason,
        stats,
        ..
    } = *whole;
    o.str("id", id)
        .str("object", "chat.completion")
        .str("model", model)
        .array("choices", |list| {
            for part in parts {
                list.object(|o| {
                    o.int("index", part.number)
                        .object("message", |o| openai_message(o, part));
                    let finish = match reason {
                        FinishReason::Length => "length",
                        FinishReason::ContentFilter => "content_filter",
                        FinishReason::Error | FinishReason::Cancelled | FinishReason::Cut => {
                            "error"
                        }
                        FinishReason::Stop | FinishReason::ToolCalls if part.has_calls() => {
                            "tool_calls"
                        }
                        FinishReason::Stop | FinishReason::ToolCalls => "stop",
                    };
                    o.str("finish_reason", finish);
                });
            }
        });
    usage(
        o,
        "usage",
        stats,
        ["prompt_tokens", "completion_tokens", "total_tokens"],
    );
}

fn openai_message(o: &mut Object<'_>, part: &ChoiceSummary<'_>) {
    o.str("role", "assistant");
    part.draft.answer(o, part.has_calls());
    if !part.draft.reasoning().is_empty() {
        o.str("reasoning_content", part.draft.reasoning());
    }
    if part.has_calls() {
        o.array("tool_calls", |list| {
            for call in part.calls() {
                list.object(|o| {
                    o.str("id", &call.id)
                        .str("type", "function")
                        .object("function", |o| {
                            o.str("name", &call.name)
                                .str("arguments", call.emission.object().unwrap_or("{}"));
                        });
                });
            }
        });
    }
}

fn anthropic(o: &mut Object<'_>, whole: &StreamSummary<'_>) {
    let StreamSummary {
        id,
        model,
        parts,
        reason,
        stats,
        ..
    } = *whole;
    o.str("id", id)
        .str("type", "message")
        .str("role", "assistant")
        .str("model", model);
    let first = parts.iter().find(|p| p.number == 0);
    o.array("content", |list| {
        let Some(part) = first else { return };
        if !part.draft.reasoning().is_empty() {
            list.object(|o| {
                o.str("type", "thinking")
                    .str("thinking", part.draft.reasoning());
            });
        }
        text(list, "text", Some("text"), &part.draft.content);
        text(list, "text", Some("text"), &part.draft.refusal);
        for call in part.calls() {
            list.object(|o| {
                o.str("type", "tool_use")
                    .str("id", &call.id)
                    .str("name", &call.name)
                    .raw("input", call.emission.object().unwrap_or("{}"));
            });
        }
    });
    let stop = match reason {
        FinishReason::Length => "max_tokens",
        FinishReason::ContentFilter => "refusal",
        FinishReason::Error | FinishReason::Cancelled | FinishReason::Cut => "error",
        FinishReason::Stop | FinishReason::ToolCalls
            if first.is_some_and(ChoiceSummary::has_calls) =>
        {
            "tool_use"
        }
        FinishReason::Stop | FinishReason::ToolCalls
            if first.is_some_and(|p| !p.draft.refusal.is_empty()) =>
        {
            "refusal"
        }
        FinishReason::Stop | FinishReason::ToolCalls => "end_turn",
    };
    o.str("stop_reason", stop).raw("stop_sequence", "null");
    usage(o, "usage", stats, ["input_tokens", "output_tokens"]);
}

fn gemini(o: &mut Object<'_>, whole: &StreamSummary<'_>) {
    let StreamSummary {
        id,
        model,
        parts,
        reason,
        stats,
        ..
    } = *whole;
    o.array("candidates", |list| {
        for part in parts {
            list.object(|o| {
                o.object("content", |o| {
                    o.array("parts", |list| {
                        if !part.draft.reasoning().is_empty() {
                            list.object(|o| {
                                o.str("text", part.draft.reasoning()).bool("thought", true);
                            });
                        }
                        text(list, "text", None, &part.draft.content);
                        text(list, "text", None, &part.draft.refusal);
                        for call in part.calls() {
                            list.object(|o| {
                                o.object("functionCall", |o| {
                                    o.str("id", &call.id)
                                        .str("name", &call.name)
                                        .raw("args", call.emission.object().unwrap_or("{}"));
                                });
                            });
                        }
                    })
                    .str("role", "model");
                });
                let finish = match reason {
                    FinishReason::Length => "MAX_TOKENS",
                    FinishReason::ContentFilter => "SAFETY",
                    FinishReason::Error | FinishReason::Cancelled | FinishReason::Cut => "OTHER",
                    FinishReason::Stop | FinishReason::ToolCalls => "STOP",
                };
                o.str("finishReason", finish).int("index", part.number);
            });
        }
    });
    usage(
        o,
        "usageMetadata",
        stats,
        [
            "promptTokenCount",
            "candidatesTokenCount",
            "totalTokenCount",
        ],
    );
    o.str("modelVersion", model).str("responseId", id);
}

/// Writes a part that is text, unless the text is empty.
fn text(list: &mut Array<'_>, key: &str, kind: Option<&str>, text: &str) {
    if !text.is_empty() {
        list.object(|o| {
            o.maybe_str("type", kind).str(key, text);
        });
    }
}
