//! The whole message at once.

use super::message::{envelope, id, stop_reason, tool_use, usage};
use super::opaque::Opaque;
use crate::draft::{Block, ChoiceDraft, Draft};
use crate::options::AnswerOptions;
use crate::step::Usage;
use event::{Array, Object};

/// The message, with the blocks that its stream would have stopped.
pub(super) fn whole(options: &AnswerOptions, draft: &Draft, counts: &Usage, model: &str) -> Vec<u8> {
    let empty = ChoiceDraft::default();
    let choice = draft.choices.iter().find(|c| c.number == 0).unwrap_or(&empty);
    let has_refusal = choice.blocks.iter().any(|b| matches!(b, Block::Refusal(_)));
    let mut out = Vec::new();
    let mut o = Object::open(&mut out);
    envelope(&mut o, &id(options), if options.model.is_empty() { model } else { &options.model });
    o.array("content", |a| choice.blocks.iter().for_each(|b| block(a, b)));
    let reason = stop_reason(choice.finish.unwrap_or_default(), choice.provider_finish.as_deref(), has_refusal);
    o.str("stop_reason", reason).raw("stop_sequence", "null");
    usage(&mut o, counts);
    o.close();
    out
}

fn block(content: &mut Array<'_>, block: &Block) {
    match block {
        Block::Reasoning { text, provider } => {
            let opaque = provider.as_deref().map_or(Opaque::None, Opaque::of);
            let signature = if let Opaque::Signature(signature) = &opaque { signature } else { "" };
            if !text.is_empty() || !signature.is_empty() {
                content.object(|o| {
                    o.str("type", "thinking").str("thinking", text).str("signature", signature);
                });
            }
            if let Some(own) = provider.as_deref().and_then(Opaque::whole_block) {
                content.raw(&own);
            }
        }
        Block::Text(text) | Block::Refusal(text) => {
            content.object(|o| {
                o.str("type", "text").str("text", text);
            });
        }
        Block::Call { id, name, arguments, is_complete: true, .. } => {
            content.object(|o| tool_use(o, id, name, arguments));
        }
        Block::Call { .. } => {}
    }
}
