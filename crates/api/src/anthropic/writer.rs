//! Writes streams and complete responses of Anthropic's `/v1/messages`.
//!
//! Source of the format: Anthropic's "Streaming messages"
//! (platform.claude.com/docs/en/build-with-claude/streaming), and the accumulators of its clients
//! (`lib/streaming/_messages.py` in anthropic-sdk-python, `lib/MessageStream.ts` in
//! anthropic-sdk-typescript): one message, its blocks one after the other, and an `event:` name for
//! every event.
//!
//! A call that the token limit truncated has no `content_block_stop` in a stream and is left out of
//! a complete response; `stop_reason` is `max_tokens`. Claude Code (2.1.197, measured on
//! 2026-11-23) runs a call when its block stops, whatever the stop reason
//! (github.com/MadAppGang/claudish/pull/246 reports the same). Without the stop, it reports the
//! limit and asks again. The AI SDK also reports a call when its block stops.

use crate::answer::delta::DeltaFrame;
use crate::answer::details;
use crate::answer::details::{DetailMembers, DetailsPlace, merge};
use crate::answer::failure::FailedAnswer;
use crate::answer::step::{AnswerOptions, CallStepKind, ReportedUsage, Step, TextKind};
use crate::answer::writer::{AnswerFormat, AnswerWriter, frame};
use crate::anthropic::whole;
use crate::anthropic::whole::{MessageBlock, Opaque, envelope, stop_reason, tool_use, usage};
use crate::carried::UNSIGNED;
use event::Object;

/// How this API writes responses.
pub(crate) const FORMAT: AnswerFormat = AnswerFormat {
    path: "/v1/messages",
    writer: |options, is_whole| Box::new(MessagesWriter::new(options, is_whole)),
    has_steps: true,
    error: whole::error,
};

/// The type of the open block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenBlock {
    Thinking,
    Text,
    /// A text block with a refusal, for which the API has no block type.
    Refusal,
    Tool,
}

#[derive(Debug)]
struct MessagesWriter {
    id: String,
    model: String,
    /// The index of the open block, or of the next one if none is open.
    index: u32,
    open: Option<OpenBlock>,
    /// Whether the open reasoning has its signature, or the provider sent an empty one.
    is_signed: bool,
    has_refusal: bool,
    stop_reason: Option<String>,
    /// Members of the event that ends the message, and of its delta.
    last: DetailMembers,
    delta: DetailMembers,
    /// The provider's own token counts.
    counts: DetailMembers,
    is_done: bool,
    /// Whether the blocks are stored for a complete response, so that no events are written.
    is_whole: bool,
    block: Option<MessageBlock>,
    /// The finished blocks as JSON.
    content: Vec<String>,
    /// The bytes around the text of the open block's deltas.
    frame: DeltaFrame<(u32, &'static str)>,
    out: Vec<u8>,
}

impl MessagesWriter {
    fn new(options: &AnswerOptions, is_whole: bool) -> MessagesWriter {
        MessagesWriter {
            id: whole::id(options),
            model: options.model.clone(),
            index: 0,
            open: None,
            is_signed: false,
            has_refusal: false,
            stop_reason: None,
            last: DetailMembers::new(),
            delta: DetailMembers::new(),
            counts: DetailMembers::new(),
            is_done: false,
            is_whole,
            block: None,
            content: Vec::new(),
            frame: DeltaFrame::default(),
            out: Vec::new(),
        }
    }

    fn begin(&mut self) {
        let (id, model) = (&self.id, &self.model);
        frame(&mut self.out, "message_start", |o| {
            o.object("message", |o| {
                envelope(o, id, model);
                o.raw("content", "[]")
                    .raw("stop_reason", "null")
                    .raw("stop_sequence", "null");
                // The counts at the end overwrite these. The AI SDK and other clients require
                // numbers here.
                usage(o, &ReportedUsage::default(), &DetailMembers::new());
            });
        });
        frame(&mut self.out, "ping", |_| {});
    }

    /// Opens a block of this type unless one is open.
    fn block(&mut self, kind: OpenBlock) {
        if self.open != Some(kind) {
            self.close();
            let start = match kind {
                OpenBlock::Thinking => r#"{"type":"thinking","thinking":"","signature":""}"#,
                OpenBlock::Text | OpenBlock::Refusal | OpenBlock::Tool => {
                    r#"{"type":"text","text":""}"#
                }
            };
            self.start(start.to_owned());
            self.open = Some(kind);
        }
    }

    /// Starts a block, given as JSON.
    fn start(&mut self, block: String) {
        if self.is_whole {
            self.block = Some(MessageBlock::new(block));
            return;
        }
        frame(&mut self.out, "content_block_start", |o| {
            o.int("index", self.index).raw("content_block", &block);
        });
    }

    fn delta(&mut self, kind: &'static str, member: &'static str, text: &str) {
        if let Some(block) = &mut self.block {
            return block.push(member, text);
        }
        let index = self.index;
        let write = |out: &mut Vec<u8>, text: &str| {
            frame(out, "content_block_delta", |o| {
                o.int("index", index).object("delta", |o| {
                    o.str("type", kind).str(member, text);
                });
            });
        };
        self.frame.push(&mut self.out, (index, kind), text, write);
    }

    fn cite(&mut self, citation: String) {
        if let Some(block) = &mut self.block {
            return block.cite(citation);
        }
        frame(&mut self.out, "content_block_delta", |o| {
            o.int("index", self.index).object("delta", |o| {
                o.str("type", "citations_delta").raw("citation", &citation);
            });
        });
    }

    fn stop(&mut self) {
        let is_signed = std::mem::take(&mut self.is_signed);
        if self.open == Some(OpenBlock::Thinking) && !is_signed {
            self.delta("signature_delta", "signature", UNSIGNED);
        }
        match self.block.take() {
            Some(block) => self.content.push(block.json()),
            None => frame(&mut self.out, "content_block_stop", |o| {
                _ = o.int("index", self.index)
            }),
        }
        self.index += 1;
        self.open = None;
    }

    fn close(&mut self) {
        if self.open.is_some() {
            self.stop();
        }
    }

    /// Ends reasoning, with the data that must be sent back to the provider.
    fn opaque(&mut self, opaque: Opaque) {
        match opaque {
            Opaque::None => self.close_thinking(),
            Opaque::Signature(signature) => {
                if !signature.is_empty() {
                    // Some models send a signature without showing their reasoning.
                    self.block(OpenBlock::Thinking);
                    // Sent in one piece, because anthropic-sdk-python keeps only the last one.
                    self.delta("signature_delta", "signature", &signature);
                }
                self.is_signed = self.open == Some(OpenBlock::Thinking);
                self.close_thinking();
            }
            Opaque::Block { start, input } => {
                self.close();
                self.start(start);
                if let Some(input) = input {
                    self.delta("input_json_delta", "partial_json", &input);
                }
                self.stop();
            }
        }
    }

    /// Processes members of the provider's response.
    fn details(&mut self, place: DetailsPlace, members: &DetailMembers) {
        match place {
            DetailsPlace::Answer => merge(&mut self.last, members.clone(), false),
            DetailsPlace::Usage => merge(&mut self.counts, members.clone(), false),
            DetailsPlace::Choice | DetailsPlace::Message => {
                merge(&mut self.delta, members.clone(), false)
            }
            DetailsPlace::Text => {
                for citation in whole::citations(members) {
                    self.block(OpenBlock::Text);
                    self.cite(citation.to_string());
                }
                if self.open == Some(OpenBlock::Text) {
                    self.close();
                }
            }
            DetailsPlace::Call => {}
            DetailsPlace::Item => self.opaque(Opaque::of_block(members)),
        }
    }

    fn close_thinking(&mut self) {
        if self.open == Some(OpenBlock::Thinking) {
            self.stop();
        }
    }

    fn end(&mut self, counts: &ReportedUsage) {
        self.is_done = true;
        let reason = self.stop_reason.as_deref().unwrap_or("end_turn");
        frame(&mut self.out, "message_delta", |o| {
            o.object("delta", |o| whole::ending(o, reason, &self.delta));
            usage(o, counts, &self.counts);
            details::write(o, &self.last);
        });
        frame(&mut self.out, "message_stop", |_| {});
    }

    fn fail(&mut self, failure: &FailedAnswer) {
        self.is_done = true;
        frame(&mut self.out, "error", |o| whole::error(o, failure));
    }
}

impl AnswerWriter for MessagesWriter {
    fn set_id(&mut self, id: &str) {
        id.clone_into(&mut self.id);
    }

    fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    fn step(&mut self, choice: u32, step: &Step<'_>, model: &str) {
        // This API has only one choice.
        if self.is_done || (choice > 0 && !matches!(step, Step::Usage(_) | Step::Failed(_))) {
            return;
        }
        if !model.is_empty() {
            model.clone_into(&mut self.model);
        }
        match step {
            Step::Begin if self.is_whole => {}
            Step::Begin => self.begin(),
            Step::Text {
                kind,
                text,
                provider,
            } => {
                let (block, delta, member) = match kind {
                    TextKind::Reasoning => (OpenBlock::Thinking, "thinking_delta", "thinking"),
                    TextKind::Answer => (OpenBlock::Text, "text_delta", "text"),
                    TextKind::Refusal => (OpenBlock::Refusal, "text_delta", "text"),
                };
                self.has_refusal |= block == OpenBlock::Refusal;
                if !text.is_empty() {
                    self.block(block);
                    self.delta(delta, member, text);
                }
                if let Some(provider) = provider {
                    self.opaque(Opaque::of(provider));
                }
            }
            Step::Call(call) if call.is_own => {
                if let Some(block) = whole::service_block(call) {
                    self.close();
                    self.start(block);
                    self.stop();
                }
            }
            Step::Call(call) => match call.kind {
                CallStepKind::Begin => {
                    self.close();
                    // Claude Code crashes if `input` is missing
                    // (github.com/farion1231/cc-switch/issues/2556).
                    self.start(event::object(|o| tool_use(o, &call.id, &call.name, "{}")));
                    self.open = Some(OpenBlock::Tool);
                }
                CallStepKind::Arguments => {
                    self.delta("input_json_delta", "partial_json", &call.text);
                }
                _ => self.close(),
            },
            Step::End { reason, provider } => {
                if self.open != Some(OpenBlock::Tool) {
                    self.close();
                }
                self.stop_reason =
                    Some(stop_reason(*reason, provider.as_deref(), self.has_refusal).to_owned());
            }
            Step::Details(place, members) => self.details(*place, members),
            // The API cannot represent these notes.
            Step::Extras(_) => {}
            Step::Usage(counts) => self.end(counts),
            Step::Failed(failure) => self.fail(failure),
        }
    }

    fn whole(
        &mut self,
        counts: Option<&ReportedUsage>,
        failure: Option<&FailedAnswer>,
        model: &str,
    ) -> Vec<u8> {
        let mut out = Vec::new();
        let mut o = Object::open(&mut out);
        let model = if model.is_empty() { &self.model } else { model };
        envelope(&mut o, &self.id, model);
        o.raw("content", &format!("[{}]", self.content.join(",")));
        let reason = self.stop_reason.as_deref().unwrap_or("end_turn");
        let mut members = self.delta.clone();
        merge(&mut members, self.last.clone(), false);
        whole::ending(&mut o, reason, &members);
        if let Some(counts) = counts {
            usage(&mut o, counts, &self.counts);
        }
        if let Some(failure) = failure {
            whole::error(&mut o, failure);
        }
        o.close();
        out
    }

    fn keep_alive(&mut self) {
        frame(&mut self.out, "ping", |_| {});
    }
}
