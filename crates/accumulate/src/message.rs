//! The assistant's `message`, which commits the calls and which the client sends back in its next
//! request.

use crate::call::OpenCall;
use event::{Object, Surrogates, Text, WriteJson};

/// A reasoning block whose data must go back to the provider at the same position relative to the
/// text and the calls.
#[derive(Debug)]
struct ReasoningBlock {
    thinking: (usize, usize),
    data: String,
    calls: usize,
    text: bool,
}

/// The text and reasoning of one choice so far.
#[derive(Debug, Default)]
pub(crate) struct AnswerDraft {
    pub content: String,
    pub half: Surrogates,
    pub refusal: String,
    pub refusal_half: Surrogates,
    reasoning: String,
    reasoning_half: Surrogates,
    blocks: Vec<ReasoningBlock>,
    /// Offset in `reasoning` at which the text that no block has closed starts.
    open: usize,
}

impl AnswerDraft {
    /// Appends a piece of reasoning. `provider` holds the provider's data, which closes the block;
    /// `calls` is the number of calls started so far.
    pub(crate) fn think(&mut self, text: Text<'_>, provider: Option<&str>, calls: usize) {
        self.reasoning_half.push_text(text, &mut self.reasoning);
        if let Some(data) = provider {
            self.reasoning_half.finish(&mut self.reasoning);
            let thinking = (self.open, self.reasoning.len());
            self.blocks.push(ReasoningBlock {
                thinking,
                data: data.to_owned(),
                calls,
                text: !self.content.is_empty(),
            });
            self.open = self.reasoning.len();
        }
    }

    /// Handles the end of the stream. Half of a surrogate pair at the end of a text stays unpaired.
    pub(crate) fn finish(&mut self) {
        self.half.finish(&mut self.content);
        self.refusal_half.finish(&mut self.refusal);
        self.reasoning_half.finish(&mut self.reasoning);
    }

    /// Writes `content`, which is null if the answer has only calls or a refusal, and `refusal`.
    pub(crate) fn answer(&self, o: &mut Object<'_>, calls: bool) {
        if self.content.is_empty() && (calls || !self.refusal.is_empty()) {
            o.raw("content", "null");
        } else {
            o.str("content", &self.content);
        }
        if !self.refusal.is_empty() {
            o.str("refusal", &self.refusal);
        }
    }
}

/// The message in OpenAI's format, with `reasoning` and `provider` if the answer has them.
/// `provider` lists the reasoning blocks in order, each with its text (`thinking`), its `data` and
/// its position (`calls`: the number of calls started before it; `text`: whether any text preceded
/// it).
#[derive(Debug)]
pub(crate) struct AssistantMessage<'a> {
    pub draft: &'a AnswerDraft,
    pub calls: &'a [OpenCall],
}

impl WriteJson for AssistantMessage<'_> {
    fn write_json(&self, out: &mut Vec<u8>) {
        let mut o = Object::open(out);
        let draft = self.draft;
        let mut named = self
            .calls
            .iter()
            .filter(|c| !c.name.is_empty() && !c.is_forgotten())
            .peekable();
        o.str("role", "assistant");
        draft.answer(&mut o, named.peek().is_some());
        if named.peek().is_some() {
            o.array("tool_calls", |list| {
                for call in named {
                    list.object(|o| {
                        o.str("id", &call.id)
                            .str("type", "function")
                            .object("function", |o| {
                                o.str("name", call.tool_name())
                                    .str("arguments", call.emission.object().unwrap_or("{}"));
                            });
                        if let Some(p) = call.provider.text() {
                            o.raw("provider", p);
                        }
                    });
                }
            });
        }
        if !draft.reasoning.is_empty() {
            o.str("reasoning", &draft.reasoning);
        }
        if !draft.blocks.is_empty() {
            o.array("provider", |list| {
                for b in &draft.blocks {
                    list.object(|o| {
                        o.str("thinking", &draft.reasoning[b.thinking.0..b.thinking.1])
                            .raw("data", &b.data);
                        o.int("calls", b.calls as u64).bool("text", b.text);
                    });
                }
            });
        }
        o.close();
    }
}
