//! Writes the UI message stream. Source of the chunks: `uiMessageChunkSchema` in the package `ai`,
//! version 7.0.173, in `src/ui-message-stream/ui-message-chunks.ts`.

use crate::answer::step::TextKind;
use crate::ui::UiOptions;
use crate::ui::step::{UiCallName, UiEnd, UiResult, UiStep, UiWriter, frame};
use event::Object;
use event::payload::{FinishReason, Status};

/// The member of `providerMetadata` for data that must be sent back to the provider.
pub(crate) const PROVIDER: &str = "toolpipe";

/// Writes the stream.
pub(crate) struct AiSdkWriter {
    message: String,
    response: String,
}

impl AiSdkWriter {
    pub(crate) fn new(options: &UiOptions) -> AiSdkWriter {
        AiSdkWriter {
            message: options.message.clone(),
            response: options.response.clone(),
        }
    }
}

/// Writes the members of a chunk that identify a call and who runs it. The SDK treats tools that
/// the client does not have as `dynamic`, and expects no output from the client for a
/// `providerExecuted` call.
fn call(o: &mut Object<'_>, call: UiCallName<'_>) {
    o.str("toolCallId", call.id).str("toolName", call.name);
    if call.is_own {
        o.bool("providerExecuted", true).bool("dynamic", true);
    }
}

fn provider(o: &mut Object<'_>, data: Option<&str>) {
    if let Some(data) = data {
        o.object("providerMetadata", |o| {
            o.minified(PROVIDER, data);
        });
    }
}

/// Returns the types of the chunks that start, continue and end a text.
fn text_kinds(kind: TextKind) -> [&'static str; 3] {
    match kind {
        TextKind::Reasoning => ["reasoning-start", "reasoning-delta", "reasoning-end"],
        TextKind::Answer | TextKind::Refusal => ["text-start", "text-delta", "text-end"],
    }
}

/// Writes the chunk of a result. Only calls that the service runs have one.
fn result(result: &UiResult<'_>, out: &mut Vec<u8>) {
    let UiResult { id, output, .. } = *result;
    if result.is_refused {
        return frame(out, "tool-output-denied", |o| {
            o.str("toolCallId", id);
        });
    }
    let (kind, member) = match result.status == Status::Success.name() {
        true => ("tool-output-available", "output"),
        false => ("tool-output-error", "errorText"),
    };
    frame(out, kind, |o| {
        o.str("toolCallId", id).str(member, output);
        o.bool("providerExecuted", true).bool("dynamic", true);
        o.object("toolMetadata", |o| {
            o.str("status", result.status);
            if let Some(duration) = result.duration_ms {
                o.raw("durationMs", duration);
            }
            if result.is_cached {
                o.bool("cached", true);
            }
        });
    });
}

/// Writes the chunks at the end.
fn end(end: &UiEnd<'_>, out: &mut Vec<u8>) {
    if !end.model.is_empty() || end.usage.is_some() {
        frame(out, "message-metadata", |o| {
            o.object("messageMetadata", |o| {
                if !end.model.is_empty() {
                    o.str("model", end.model);
                }
                if let Some(usage) = end.usage {
                    o.object("usage", |o| usage.counts(o));
                }
            });
        });
    }
    if end.reason == FinishReason::Cancelled {
        frame(out, "abort", |o| {
            o.str("reason", &format!("cancelled by {}", end.cancelled_by));
        });
    } else {
        if let Some(failure) = end.failure {
            frame(out, "error", |o| {
                o.str("errorText", &failure.message);
            });
        }
        frame(out, "finish", |o| {
            o.str("finishReason", &end.reason.name().replace('_', "-"));
        });
    }
    out.extend_from_slice(b"data: [DONE]\n\n");
}

impl UiWriter for AiSdkWriter {
    fn step(&mut self, step: &UiStep<'_>, out: &mut Vec<u8>) {
        match *step {
            UiStep::Start => frame(out, "start", |o| {
                o.str("messageId", &self.message);
                o.object("messageMetadata", |o| {
                    o.str("responseId", &self.response);
                });
            }),
            UiStep::TurnStart => frame(out, "start-step", |_| {}),
            UiStep::TurnEnd => frame(out, "finish-step", |_| {}),
            UiStep::Reset => frame(out, "reset-step", |_| {}),
            UiStep::TextStart { kind, id } => frame(out, text_kinds(kind)[0], |o| {
                o.str("id", id);
            }),
            UiStep::TextDelta { kind, id, text } => frame(out, text_kinds(kind)[1], |o| {
                o.str("id", id).str("delta", text);
            }),
            UiStep::TextEnd {
                kind,
                id,
                provider: data,
            } => frame(out, text_kinds(kind)[2], |o| {
                o.str("id", id);
                provider(o, data);
            }),
            UiStep::CallStart { call: name } => frame(out, "tool-input-start", |o| call(o, name)),
            UiStep::CallDelta { id, piece } => frame(out, "tool-input-delta", |o| {
                o.str("toolCallId", id).str("inputTextDelta", piece);
            }),
            UiStep::CallEnd {
                call: name,
                arguments,
                provider: data,
                ..
            } => frame(out, "tool-input-available", |o| {
                call(o, name);
                o.minified("input", arguments);
                provider(o, data);
            }),
            UiStep::CallError {
                call: name,
                input,
                message,
            } => frame(out, "tool-input-error", |o| {
                call(o, name);
                o.minified("input", input).str("errorText", message);
            }),
            UiStep::Asked { id, ask } => frame(out, "tool-approval-request", |o| {
                o.str("approvalId", &ask.id).str("toolCallId", id);
                if !ask.reason.is_empty() {
                    o.str("reason", &ask.reason);
                }
            }),
            UiStep::Answered {
                ask,
                is_approved,
                reason,
                ..
            } => frame(out, "tool-approval-response", |o| {
                o.str("approvalId", ask).bool("approved", is_approved);
                if let Some(reason) = reason {
                    o.str("reason", reason);
                }
                o.bool("providerExecuted", true);
            }),
            UiStep::Progress {
                id, progress, text, ..
            } => frame(out, "tool-output-available", |o| {
                o.str("toolCallId", id);
                o.object("output", |o| {
                    if let Some(progress) = progress {
                        o.raw("progress", progress);
                    }
                    o.str("text", text);
                });
                o.bool("providerExecuted", true).bool("dynamic", true);
                o.bool("preliminary", true);
            }),
            UiStep::Result(ref ended) => result(ended, out),
            UiStep::UserMessage { id, text } => frame(out, "steering-message", |o| {
                o.str("id", id);
                o.array("parts", |parts| {
                    parts.object(|o| {
                        o.str("type", "text").str("text", text);
                    });
                });
            }),
            UiStep::Source { id, url, title } => frame(out, "source-url", |o| {
                o.str("sourceId", id).str("url", url);
                if !title.is_empty() {
                    o.str("title", title);
                }
            }),
            UiStep::File { url, media_type } => frame(out, "file", |o| {
                o.str("url", url).str("mediaType", media_type);
            }),
            UiStep::End(ref ended) => end(ended, out),
        }
    }

    fn resets(&self) -> bool {
        true
    }
}
