//! The events of a run. Source of their shapes: `dist/schemas.mjs` of the package `@ag-ui/core`,
//! version 1.0.0; their order is what `verifyEvents` of `@ag-ui/client` accepts.

use crate::answer::step::ReportedUsage;
use crate::ui::UiOptions;
use crate::ui::step::{UiEnd, UiFacts, UiResultFacts, UiStep, UiWriter, frame};
use event::Object;
use std::collections::HashSet;

/// Writes the stream.
pub(crate) struct AgUiWriter {
    thread: String,
    run: String,
    /// What the ids of messages begin with.
    message: String,
    turn: usize,
    /// The messages of the turn so far: the first is what its calls belong to.
    messages: usize,
    has_calls: bool,
    /// The calls whose progress is shown.
    progress: HashSet<String>,
    facts: UiFacts,
    has_failed: bool,
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
            messages: 0,
            has_calls: false,
            progress: HashSet::new(),
            facts: UiFacts::default(),
            has_failed: false,
        }
    }

    /// The message that the calls of the turn belong to.
    fn parent(&self) -> String {
        format!("{}_{}", self.message, self.turn)
    }

    /// The id of the text that begins, or that has begun.
    fn text_id(&self, part: &str) -> String {
        match self.messages {
            1 if !self.has_calls => self.parent(),
            _ => self.part_id(part),
        }
    }

    fn part_id(&self, part: &str) -> String {
        format!("{}_{}_{part}", self.message, self.turn)
    }

    fn turn_name(&self) -> String {
        format!("turn {}", self.turn)
    }

    fn result(&self, call: &str, content: &str, facts: &UiResultFacts<'_>, out: &mut Vec<u8>) {
        frame(out, "TOOL_CALL_RESULT", |o| {
            o.str("messageId", &format!("{}_{call}", self.message));
            o.str("toolCallId", call).str("content", content);
            o.str("role", "tool");
            o.object("metadata", |o| {
                o.str("status", facts.status);
                if let Some(duration) = facts.duration_ms {
                    o.raw("durationMs", duration);
                }
            });
        });
    }

    fn finished(&self, out: &mut Vec<u8>, fill: impl FnOnce(&mut Object<'_>)) {
        frame(out, "RUN_FINISHED", |o| {
            o.str("threadId", &self.thread).str("runId", &self.run);
            fill(o);
            self.usage(o);
        });
    }

    fn usage(&self, o: &mut Object<'_>) {
        let usage = ReportedUsage::of(&self.facts.usage);
        if usage.is_none() && self.facts.model.is_empty() {
            return;
        }
        o.array("usage", |list| {
            list.object(|o| {
                if !self.facts.model.is_empty() {
                    o.str("model", &self.facts.model);
                }
                if let Some(usage) = usage {
                    usage.counts(o);
                }
            });
        });
    }
}

/// An event that the protocol has no other for.
fn custom(out: &mut Vec<u8>, name: &str, fill: impl FnOnce(&mut Object<'_>)) {
    frame(out, "CUSTOM", |o| {
        o.str("name", &format!("toolpipe.{name}"));
        o.object("value", fill);
    });
}

/// An event about one message.
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
                (self.messages, self.has_calls) = (0, false);
                frame(out, "STEP_STARTED", |o| {
                    o.str("stepName", &self.turn_name());
                });
            }
            UiStep::TurnEnd => frame(out, "STEP_FINISHED", |o| {
                o.str("stepName", &self.turn_name());
            }),
            UiStep::Reset => {}
            UiStep::TakenBack => custom(out, "taken_back", |o| {
                o.str("stepName", &self.turn_name());
            }),
            UiStep::TextStart { id } => {
                self.messages += 1;
                frame(out, "TEXT_MESSAGE_START", |o| {
                    o.str("messageId", &self.text_id(id))
                        .str("role", "assistant");
                });
            }
            UiStep::TextDelta { id, text } => {
                delta(out, "TEXT_MESSAGE_CONTENT", &self.text_id(id), text);
            }
            UiStep::TextEnd { id } => message(out, "TEXT_MESSAGE_END", &self.text_id(id)),
            UiStep::ThinkingStart { id } => {
                let id = self.part_id(id);
                message(out, "REASONING_START", &id);
                frame(out, "REASONING_MESSAGE_START", |o| {
                    o.str("messageId", &id).str("role", "reasoning");
                });
            }
            UiStep::ThinkingDelta { id, text } => {
                delta(out, "REASONING_MESSAGE_CONTENT", &self.part_id(id), text);
            }
            UiStep::ThinkingEnd { id, provider } => {
                let id = self.part_id(id);
                message(out, "REASONING_MESSAGE_END", &id);
                if let Some(provider) = provider {
                    frame(out, "REASONING_ENCRYPTED_VALUE", |o| {
                        o.str("subtype", "message").str("entityId", &id);
                        o.str("encryptedValue", provider);
                    });
                }
                message(out, "REASONING_END", &id);
            }
            UiStep::CallStart { call } => {
                self.has_calls = true;
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
                let facts = UiResultFacts {
                    status: event::payload::Status::Invalid.name(),
                    ..UiResultFacts::default()
                };
                self.result(call.id, message, &facts, out);
            }
            UiStep::Asked { id, ask } => custom(out, "approval_requested", |o| {
                o.str("interruptId", &ask.id).str("toolCallId", id);
                o.str("message", &ask.reason);
            }),
            UiStep::Answered {
                id,
                ask,
                is_approved,
            } => custom(out, "approval_responded", |o| {
                o.str("interruptId", ask).str("toolCallId", id);
                o.bool("approved", is_approved);
            }),
            UiStep::Progress { id, progress, text } => {
                let is_first = self.progress.insert(id.to_owned());
                let activity = format!("{}_{id}_progress", self.message);
                let progress = progress.unwrap_or("null");
                let kind = match is_first {
                    true => "ACTIVITY_SNAPSHOT",
                    false => "ACTIVITY_DELTA",
                };
                frame(out, kind, |o| {
                    o.str("messageId", &activity)
                        .str("activityType", "TOOL_PROGRESS");
                    if is_first {
                        o.object("content", |o| {
                            o.str("toolCallId", id).raw("progress", progress);
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
            UiStep::Output { id, output, facts } => self.result(id, output, facts, out),
            UiStep::Failed { id, message, facts } | UiStep::Denied { id, message, facts } => {
                self.result(id, message, facts, out);
            }
            UiStep::Said { id, text } => {
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
            UiStep::Facts(facts) => self.facts = facts.clone(),
            UiStep::Error { code, message } => {
                self.has_failed = true;
                frame(out, "RUN_ERROR", |o| {
                    o.str("message", message).str("code", code);
                    self.usage(o);
                });
            }
            UiStep::Abort { .. } => self.finished(out, |o| {
                o.object("outcome", |o| {
                    o.str("type", "cancelled");
                });
            }),
            UiStep::Finish { .. } if self.has_failed => {}
            UiStep::Finish {
                reason,
                asked,
                clients,
            } => self.finished(out, |o| {
                o.object("outcome", |o| {
                    if asked.is_empty() {
                        o.str("type", "success");
                        if !clients.is_empty() {
                            o.array("pendingToolCallIds", |list| {
                                clients.iter().for_each(|id| _ = list.str(id));
                            });
                        }
                        return;
                    }
                    o.str("type", "interrupt");
                    o.array("interrupts", |list| {
                        for (call, ask) in asked {
                            list.object(|o| {
                                o.str("id", &ask.id).str("reason", "tool_approval");
                                o.str("message", &ask.reason).str("toolCallId", call.id);
                                o.raw("responseSchema", ANSWER);
                            });
                        }
                    });
                });
                o.object("metadata", |o| {
                    o.str(
                        "finishReason",
                        match reason {
                            UiEnd::Stop => "stop",
                            UiEnd::Calls => "tool_calls",
                            UiEnd::Length => "length",
                            UiEnd::Filter => "content_filter",
                            UiEnd::Error => "error",
                        },
                    );
                });
            }),
            UiStep::Done => {}
        }
    }

    fn resets(&self) -> bool {
        false
    }
}

/// The schema of a person's answer.
const ANSWER: &str =
    r#"{"type":"object","properties":{"approved":{"type":"boolean"}},"required":["approved"]}"#;

fn arguments(out: &mut Vec<u8>, id: &str, piece: &str) {
    frame(out, "TOOL_CALL_ARGS", |o| {
        o.str("toolCallId", id).str("delta", piece);
    });
}
