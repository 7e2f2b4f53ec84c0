//! The whole answer of Gemini's `generateContent`
//! (<https://ai.google.dev/api/generate-content>). No client of a server here speaks its stream.

use crate::answer::draft::{AnswerBlock, AnswerDraft, ChoiceDraft};
use crate::answer::failure::FailedAnswer;
use crate::answer::step::{AnswerOptions, ReportedUsage};
use crate::answer::writer::AnswerFormat;
use event::payload::FinishReason;
use event::{Array, Object};

/// How this API writes answers.
pub(crate) const FORMAT: AnswerFormat = AnswerFormat {
    path: "/v1beta/models/{model}:generateContent",
    stream: None,
    whole,
    has_steps: false,
    error,
};

/// The member `error` (<https://ai.google.dev/gemini-api/docs/troubleshooting>).
fn error(o: &mut Object<'_>, failure: &FailedAnswer) {
    let (code, status) = failure.names().gemini;
    o.object("error", |o| {
        o.int("code", code.unwrap_or(failure.status))
            .str("message", &failure.message)
            .str("status", status);
    });
}

fn whole(
    options: &AnswerOptions,
    draft: &AnswerDraft,
    usage: Option<&ReportedUsage>,
    model: &str,
) -> Vec<u8> {
    let mut out = Vec::new();
    let mut o = Object::open(&mut out);
    o.array("candidates", |list| {
        for choice in &draft.choices {
            list.object(|o| candidate(o, choice));
        }
    });
    if let Some(usage) = usage {
        o.object("usageMetadata", |o| {
            o.int("promptTokenCount", usage.input)
                .int("candidatesTokenCount", usage.output)
                .int("totalTokenCount", usage.total);
        });
    }
    let id = options.provider_id.as_ref().unwrap_or(&options.id);
    o.str("modelVersion", model).str("responseId", id);
    if let Some(failure) = &draft.failure {
        error(&mut o, failure);
    }
    o.close();
    out
}

fn candidate(o: &mut Object<'_>, choice: &ChoiceDraft) {
    o.object("content", |o| {
        o.array("parts", |list| {
            choice.blocks.iter().for_each(|block| part(list, block))
        })
        .str("role", "model");
    });
    let finish = match choice.finish.unwrap_or_default() {
        FinishReason::Length => "MAX_TOKENS",
        FinishReason::ContentFilter => "SAFETY",
        FinishReason::Error | FinishReason::Cancelled | FinishReason::Cut => "OTHER",
        FinishReason::Stop | FinishReason::ToolCalls => "STOP",
    };
    o.str("finishReason", finish).int("index", choice.number);
}

fn part(list: &mut Array<'_>, block: &AnswerBlock) {
    _ = match block {
        AnswerBlock::Reasoning { text, .. } if !text.is_empty() => {
            list.object(|o| _ = o.str("text", text).bool("thought", true))
        }
        AnswerBlock::Text(text) | AnswerBlock::Refusal(text) => {
            list.object(|o| _ = o.str("text", text))
        }
        AnswerBlock::Call {
            id,
            name,
            arguments,
            is_complete: true,
            ..
        } => list.object(|o| {
            o.object("functionCall", |o| {
                o.str("id", id)
                    .str("name", name)
                    .minified("args", arguments);
            });
        }),
        _ => list,
    };
}
