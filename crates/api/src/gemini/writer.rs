//! Writes complete responses in the format of Gemini's `generateContent`
//! (<https://ai.google.dev/api/generate-content>). No supported client uses its streams.

use crate::answer::failure::FailedAnswer;
use crate::answer::step::{CallStepKind, ReportedUsage, Step, TextKind};
use crate::answer::writer::{AnswerFormat, AnswerWriter};
use event::payload::FinishReason;
use event::{Choices, Object};

/// How this API writes responses.
pub(crate) const FORMAT: AnswerFormat = AnswerFormat {
    path: "/v1beta/models/{model}:generateContent",
    writer: |options, _| {
        Box::new(GeminiWriter {
            id: options.provider_id.as_ref().unwrap_or(&options.id).clone(),
            candidates: Choices::default(),
            out: Vec::new(),
        })
    },
    has_steps: false,
    error,
};

struct GeminiWriter {
    id: String,
    candidates: Choices<Candidate>,
    /// Always empty: Gemini responses are only written complete, never as a stream.
    out: Vec<u8>,
}

#[derive(Debug, Default)]
struct Candidate {
    /// The parts as JSON.
    parts: Vec<String>,
    finish: FinishReason,
}

/// Writes the `error` member (<https://ai.google.dev/gemini-api/docs/troubleshooting>).
fn error(o: &mut Object<'_>, failure: &FailedAnswer) {
    let (code, status) = failure.names().gemini;
    o.object("error", |o| {
        o.int("code", code.unwrap_or(failure.status))
            .str("message", &failure.message)
            .str("status", status);
    });
}

impl AnswerWriter for GeminiWriter {
    fn set_id(&mut self, id: &str) {
        id.clone_into(&mut self.id);
    }

    fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    fn step(&mut self, choice: u32, step: &Step<'_>, _model: &str) {
        let Candidate { parts, finish } = self.candidates.of(choice);
        match step {
            Step::Text { kind, text, .. } if !text.is_empty() => parts.push(event::object(|o| {
                o.str("text", text);
                if *kind == TextKind::Reasoning {
                    o.bool("thought", true);
                }
            })),
            Step::Call(call) if call.kind == CallStepKind::Called => {
                parts.push(event::object(|o| {
                    o.object("functionCall", |o| {
                        o.str("id", &call.id)
                            .str("name", &call.name)
                            .minified("args", &call.text);
                    });
                }));
            }
            Step::End { reason, .. } => *finish = *reason,
            _ => {}
        }
    }

    fn whole(
        &mut self,
        usage: Option<&ReportedUsage>,
        failure: Option<&FailedAnswer>,
        model: &str,
    ) -> Vec<u8> {
        let mut out = Vec::new();
        let mut o = Object::open(&mut out);
        o.array("candidates", |list| {
            for (number, candidate) in self.candidates.by_number() {
                list.object(|o| {
                    o.object("content", |o| {
                        o.array("parts", |list| {
                            candidate.parts.iter().for_each(|part| _ = list.raw(part));
                        })
                        .str("role", "model");
                    });
                    o.str("finishReason", finish_reason(candidate.finish))
                        .int("index", number);
                });
            }
        });
        if let Some(usage) = usage {
            o.object("usageMetadata", |o| {
                o.int("promptTokenCount", usage.input)
                    .int("candidatesTokenCount", usage.output)
                    .int("totalTokenCount", usage.total);
            });
        }
        o.str("modelVersion", model).str("responseId", &self.id);
        if let Some(failure) = failure {
            error(&mut o, failure);
        }
        o.close();
        out
    }
}

fn finish_reason(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::Length => "MAX_TOKENS",
        FinishReason::ContentFilter => "SAFETY",
        FinishReason::Error | FinishReason::Cancelled | FinishReason::Cut => "OTHER",
        FinishReason::Stop | FinishReason::ToolCalls => "STOP",
    }
}
