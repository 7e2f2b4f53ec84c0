//! Writes the events of a run. Their shapes come from `dist/schemas.mjs` in the package
//! `@ag-ui/core`, version 1.0.0. Their order is the one that `verifyEvents` of `@ag-ui/client`
//! accepts.

use crate::answer::step::TextKind;
use crate::ui::UiOptions;
use crate::ui::step::{UiEnd, UiResult, UiStep, UiWriter, frame};
use event::Object;
use event::payload::{FinishReason, Status};

/// Writes the stream.
pub(crate) struct AgUiWriter {
    thread: String,
    run: String,
    /// The prefix of message ids.
    message: String,
    turn: usize,
    /// Whether the message that the turn's calls belong to was started, by a text or a call.
    has_parent: bool,
    /// The id of the open text.
    text: String,
}

impl AgUiWriter {
    pub(crate) fn new(options: &UiOptions) -> AgUiWriter {
        AgUiWriter {
            thread: options.chat.clone(),
            run: options
                .run
                .clone()
                .unwrap_or_else(|| options.response.clone()),
            message: options.message.clone(),
            turn: 0,
            has_parent: false,
            text: String::new(),
        }
    }

    /// Returns the id of the message that the turn's calls belong to: its first text.
    fn parent(&self) -> String {
        format!("{}_{}", self.message, self.turn)
    }

    fn turn_name(&self) -> String {
        format!("turn {}", self.turn)
    }

    fn text_start(&mut self, kind: TextKind, part: &str, out: &mut Vec<u8>) {
        self.text = match kind != TextKind::Reasoning && !self.has_parent {
            true => self.parent(),
            false => format!("{}_{part}", self.parent()),
        };
        let (event, role) = match kind {
            TextKind::Reasoning => {
                message(out, "REASONING_START", &self.text);
                ("REASONING_MESSAGE_START", "reasoning")
            }
            TextKind::Answer | TextKind::Refusal => {
                self.has_parent = true;
                ("TEXT_MESSAGE_START", "assistant")
            }
        };
        frame(out, event, |o| {
            o.str("messageId", &self.text).str("role", role);
        });
    }

    fn text_end(&self, kind: TextKind, provider: Option<&str>, out: &mut Vec<u8>) {
        if kind != TextKind::Reasoning {
            return message(out, "TEXT_MESSAGE_END", &self.text);
        }
        message(out, "REASONING_MESSAGE_END", &self.text);
        if let Some(provider) = provider {
            frame(out, "REASONING_ENCRYPTED_VALUE", |o| {
                o.str("subtype", "message").str("entityId", &self.text);
                o.str("encryptedValue", provider);
            });
        }
        message(out, "REASONING_END", &self.text);
    }

    fn progress(&self, call: &str, is_first: bool, progress: &str, text: &str, out: &mut Vec<u8>) {
        let kind = match is_first {
            true => "ACTIVITY_SNAPSHOT",
            false => "ACTIVITY_DELTA",
        };
        frame(out, kind, |o| {
            o.str("messageId", &format!("{}_{call}_progress", self.message))
                .str("activityType", "TOOL_PROGRESS");
            if is_first {
                o.object("content", |o| {
                    o.str("toolCallId", call).raw("progress", progress);
                    o.str("text", text);
                });
                return;
            }
            o.array("patch", |patch| {
                patch.object(|o| {
                    o.str("op", "replace").str("path", "/progress");
                    o.raw("value", progress);
                });
                patch.object(|o| {
                    o.str("op", "replace")
                        .str("path", "/text")
                        .str("value", text);
                });
            });
        });
    }

    fn result(&self, result: &UiResult<'_>, out: &mut Vec<u8>) {
        frame(out, "TOOL_CALL_RESULT", |o| {
            o.str("messageId", &format!("{}_{}", self.message, result.id));
            o.str("toolCallId", result.id).str("content", result.output);
            o.str("role", "tool");
            o.object("metadata", |o| {
                o.str("status", result.status);
                if let Some(duration) = result.duration_ms {
                    o.raw("durationMs", duration);
                }
            });
        });
    }

    fn end(&self, end: &UiEnd<'_>, out: &mut Vec<u8>) {
        if let Some(failure) = end.failure {
            return frame(out, "RUN_ERROR", |o| {
                o.str("message", &failure.message)
                    .str("code", &failure.code);
                usage(end, o);
            });
        }
        frame(out, "RUN_FINISHED", |o| {
            o.str("threadId", &self.thread).str("runId", &self.run);
            o.object("outcome", |o| outcome(end, o));
            if end.reason != FinishReason::Cancelled {
                o.object("metadata", |o| {
                    o.str("finishReason", end.reason.name());
                });
            }
            usage(end, o);
        });
    }
}

/// Writes the outcome of a run that did not fail.
fn outcome(end: &UiEnd<'_>, o: &mut Object<'_>) {
    if end.reason == FinishReason::Cancelled {
        o.str("type", "cancelled");
    } else if end.asked.is_empty() {
        o.str("type", "success");
        if !end.clients.is_empty() {
            o.array("pendingToolCallIds", |list| {
                end.clients.iter().for_each(|id| _ = list.str(id));
            });
        }
    } else {
        o.str("type", "interrupt");
        o.array("interrupts", |list| {
            for (call, ask) in end.asked {
                list.object(|o| {
                    o.str("id", &ask.id).str("reason", "tool_approval");
                    o.str("message", &ask.reason).str("toolCallId", call.id);
                    o.raw("responseSchema", ANSWER);
                });
            }
        });
    }
}

fn usage(end: &UiEnd<'_>, o: &mut Object<'_>) {
    if end.usage.is_none() && end.model.is_empty() {
        return;
    }
    o.array("usage", |list| {
        list.object(|o| {
            if !end.model.is_empty() {
                o.str("model", end.model);
            }
            if let Some(usage) = end.usage {
                usage.counts(o);
            }
        });
    });
}

/// Writes one of our own events, for which the protocol has no type.
fn custom(out: &mut Vec<u8>, name: &str, fill: impl FnOnce(&mut Object<'_>)) {
    frame(out, "CUSTOM", |o| {
        o.str("name", &format!("toolpipe.{name}"));
        o.object("value", fill);
    });
}

/// Writes an event about one message.
fn message(out: &mut Vec<u8>, kind: &str, id: &str) {
    frame(out, kind, |o| {
        o.str("messageId", id);
    });
}

fn delta(out: &mut Vec<u8>, kind: &str, id: &str, text: &str) {
    frame(out, kind, |o| {
        o.str("messageId", id).str("delta", text);
    });
}

impl UiWriter for AgUiWriter {
    fn step(&mut self, step: &UiStep<'_>, out: &mut Vec<u8>) {
        match *step {
            UiStep::Start => frame(out, "RUN_STARTED", |o| {
                o.str("threadId", &self.thread).str("runId", &self.run);
            }),
            UiStep::TurnStart => {
                self.turn += 1;
                self.has_parent = false;
                frame(out, "STEP_STARTED", |o| {
                    o.str("stepName", &self.turn_name());
                });
            }
            UiStep::TurnEnd => frame(out, "STEP_FINISHED", |o| {
                o.str("stepName", &self.turn_name());
            }),
            UiStep::Reset => custom(out, "taken_back", |o| {
                o.str("stepName", &self.turn_name());
            }),
            UiStep::TextStart { kind, id } => self.text_start(kind, id, out),
            UiStep::TextDelta {
                kind: TextKind::Reasoning,
                text,
                ..
            } => delta(out, "REASONING_MESSAGE_CONTENT", &self.text, text),
            UiStep::TextDelta { text, .. } => {
                delta(out, "TEXT_MESSAGE_CONTENT", &self.text, text);
            }
            UiStep::TextEnd { kind, provider, .. } => self.text_end(kind, provider, out),
            UiStep::CallStart { call } => {
                self.has_parent = true;
                frame(out, "TOOL_CALL_START", |o| {
                    o.str("toolCallId", call.id).str("toolCallName", call.name);
                    o.str("parentMessageId", &self.parent());
                });
            }
            UiStep::CallDelta { id, piece } => arguments(out, id, piece),
            UiStep::CallEnd { call, rest, .. } => {
                if !rest.is_empty() {
                    arguments(out, call.id, rest);
                }
                frame(out, "TOOL_CALL_END", |o| {
                    o.str("toolCallId", call.id);
                });
            }
            UiStep::CallError { call, message, .. } => {
                frame(out, "TOOL_CALL_END", |o| {
                    o.str("toolCallId", call.id);
                });
                self.result(
                    &UiResult::without_run(call.id, message, Status::Invalid),
                    out,
                );
            }
            UiStep::Asked { id, ask } => custom(out, "approval_requested", |o| {
                o.str("interruptId", &ask.id).str("toolCallId", id);
                o.str("message", &ask.reason);
            }),
            UiStep::Answered {
                id,
                ask,
                is_approved,
                reason,
            } => custom(out, "approval_responded", |o| {
                o.str("interruptId", ask).str("toolCallId", id);
                o.bool("approved", is_approved);
                if let Some(reason) = reason {
                    o.str("reason", reason);
                }
            }),
            UiStep::Progress {
                id,
                is_first,
                progress,
                text,
            } => self.progress(id, is_first, progress.unwrap_or("null"), text, out),
            UiStep::Result(ref result) => self.result(result, out),
            UiStep::UserMessage { id, text } => {
                let id = format!("{}_{id}", self.message);
                frame(out, "TEXT_MESSAGE_START", |o| {
                    o.str("messageId", &id).str("role", "user");
                });
                if !text.is_empty() {
                    delta(out, "TEXT_MESSAGE_CONTENT", &id, text);
                }
                message(out, "TEXT_MESSAGE_END", &id);
            }
            UiStep::Source { id, url, title } => custom(out, "source", |o| {
                o.str("id", id).str("url", url).str("title", title);
            }),
            UiStep::File { url, media_type } => custom(out, "file", |o| {
                o.str("url", url).str("mediaType", media_type);
            }),
            UiStep::End(ref end) => self.end(end, out),
        }
    }

    fn resets(&self) -> bool {
        false
    }
}

/// The schema of a user's answer.
const ANSWER: &str = r#"{"type":"object","properties":{"approved":{"type":"boolean"},"reason":{"type":"string"}},"required":["approved"]}"#;

fn arguments(out: &mut Vec<u8>, id: &str, piece: &str) {
    frame(out, "TOOL_CALL_ARGS", |o| {
        o.str("toolCallId", id).str("delta", piece);
    });
}
