//! The UI message stream. Source of the chunks: `uiMessageChunkSchema` of the package `ai`, version
//! 7.0.173, in `src/ui-message-stream/ui-message-chunks.ts`.

use crate::answer::step::ReportedUsage;
use crate::ui::UiOptions;
use crate::ui::step::{UiCallName, UiEnd, UiResultFacts, UiStep, UiWriter, frame};
use event::Object;

/// The member under which the SDK carries what a provider wants back.
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

/// The members of a chunk about a call that name the call and whoever runs it. The SDK takes a tool
/// that is not among the client's own for `dynamic`, and expects no output from the client for a call
/// that is `providerExecuted`.
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

/// The members of a chunk about a result. Only calls of the service have one.
fn result(o: &mut Object<'_>, facts: &UiResultFacts<'_>) {
    o.bool("providerExecuted", true).bool("dynamic", true);
    o.object("toolMetadata", |o| {
        o.str("status", facts.status);
        if let Some(duration) = facts.duration_ms {
            o.raw("durationMs", duration);
        }
        if facts.is_cached {
            o.bool("cached", true);
        }
    });
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
            UiStep::TakenBack => {}
            UiStep::TextStart { id } => frame(out, "text-start", |o| {
                o.str("id", id);
            }),
            UiStep::TextDelta { id, text } => frame(out, "text-delta", |o| {
                o.str("id", id).str("delta", text);
            }),
            UiStep::TextEnd { id } => frame(out, "text-end", |o| {
                o.str("id", id);
            }),
            UiStep::ThinkingStart { id } => frame(out, "reasoning-start", |o| {
                o.str("id", id);
            }),
            UiStep::ThinkingDelta { id, text } => frame(out, "reasoning-delta", |o| {
                o.str("id", id).str("delta", text);
            }),
            UiStep::ThinkingEnd { id, provider: data } => frame(out, "reasoning-end", |o| {
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
                ask, is_approved, ..
            } => frame(out, "tool-approval-response", |o| {
                o.str("approvalId", ask).bool("approved", is_approved);
                o.bool("providerExecuted", true);
            }),
            UiStep::Progress { id, progress, text } => frame(out, "tool-output-available", |o| {
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
            UiStep::Output { id, output, facts } => frame(out, "tool-output-available", |o| {
                o.str("toolCallId", id).str("output", output);
                result(o, facts);
            }),
            UiStep::Failed { id, message, facts } => frame(out, "tool-output-error", |o| {
                o.str("toolCallId", id).str("errorText", message);
                result(o, facts);
            }),
            UiStep::Denied { id, .. } => frame(out, "tool-output-denied", |o| {
                o.str("toolCallId", id);
            }),
            UiStep::Said { id, text } => frame(out, "steering-message", |o| {
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
            UiStep::Facts(facts) => {
                let usage = ReportedUsage::of(&facts.usage);
                if !facts.model.is_empty() || usage.is_some() {
                    frame(out, "message-metadata", |o| {
                        o.object("messageMetadata", |o| {
                            if !facts.model.is_empty() {
                                o.str("model", &facts.model);
                            }
                            if let Some(usage) = usage {
                                o.object("usage", |o| usage.counts(o));
                            }
                        });
                    });
                }
            }
            UiStep::Error { message, .. } => frame(out, "error", |o| {
                o.str("errorText", message);
            }),
            UiStep::Abort { by } => frame(out, "abort", |o| {
                o.str("reason", &format!("cancelled by {by}"));
            }),
            UiStep::Finish { reason, .. } => frame(out, "finish", |o| {
                o.str(
                    "finishReason",
                    match reason {
                        UiEnd::Stop => "stop",
                        UiEnd::Calls => "tool-calls",
                        UiEnd::Length => "length",
                        UiEnd::Filter => "content-filter",
                        UiEnd::Error => "error",
                    },
                );
            }),
            UiStep::Done => out.extend_from_slice(b"data: [DONE]\n\n"),
        }
    }

    fn resets(&self) -> bool {
        true
    }
}
