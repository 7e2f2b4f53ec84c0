//! The whole message at once.

use super::message::{citations, ending, envelope, id, stop_reason, tool_use, usage};
use super::opaque::Opaque;
use crate::answer::details::{Place, merge};
use crate::answer::draft::{Block, ChoiceDraft, Draft};
use crate::answer::options::AnswerOptions;
use crate::answer::step::Usage;
use event::{Array, Object};

/// The message, with the blocks that its stream would have stopped.
pub(super) fn whole(
    options: &AnswerOptions,
    draft: &Draft,
    counts: &Usage,
    model: &str,
) -> Vec<u8> {
    let empty = ChoiceDraft::default();
    let choice = draft
        .choices
        .iter()
        .find(|c| c.number == 0)
        .unwrap_or(&empty);
    let has_refusal = choice.blocks.iter().any(|b| matches!(b, Block::Refusal(_)));
    let mut out = Vec::new();
    let mut o = Object::open(&mut out);
    envelope(
        &mut o,
        &id(options),
        if model.is_empty() {
            &options.model
        } else {
            model
        },
    );
    let followers = choice.blocks.iter().map(Some).skip(1).chain([None]);
    o.array("content", |a| {
        choice
            .blocks
            .iter()
            .zip(followers)
            .for_each(|(b, next)| block(a, b, next))
    });
    let reason = stop_reason(
        choice.finish.unwrap_or_default(),
        choice.provider_finish.as_deref(),
        has_refusal,
    );
    let mut members = choice
        .details
        .get(&Place::Choice)
        .cloned()
        .unwrap_or_default();
    merge(
        &mut members,
        choice
            .details
            .get(&Place::Message)
            .cloned()
            .unwrap_or_default(),
        false,
    );
    merge(
        &mut members,
        draft
            .details
            .get(&Place::Answer)
            .cloned()
            .unwrap_or_default(),
        false,
    );
    ending(&mut o, reason, &members);
    usage(&mut o, counts, draft.details.get(&Place::Usage));
    o.close();
    out
}

/// Writes one block; `next` is what follows it.
fn block(content: &mut Array<'_>, block: &Block, next: Option<&Block>) {
    match block {
        Block::Reasoning { text, provider } => {
            let opaque = provider.as_deref().map_or(Opaque::None, Opaque::of);
            let signature = if let Opaque::Signature(signature) = &opaque {
                signature
            } else {
                ""
            };
            if !text.is_empty() || !signature.is_empty() {
                content.object(|o| {
                    o.str("type", "thinking")
                        .str("thinking", text)
                        .str("signature", signature);
                });
            }
            if let Some(own) = provider.as_deref().and_then(Opaque::whole_block) {
                content.raw(&own);
            }
        }
        Block::Text(text) | Block::Refusal(text) => {
            content.object(|o| {
                o.str("type", "text").str("text", text);
                if let Some(Block::Details(Place::Text, members)) = next {
                    let list: Vec<_> = citations(members).cloned().collect();
                    if !list.is_empty() {
                        o.raw("citations", &serde_json::Value::from(list).to_string());
                    }
                }
            });
        }
        Block::Call {
            id,
            name,
            arguments,
            is_complete: true,
            ..
        } => {
            content.object(|o| tool_use(o, id, name, arguments));
        }
        Block::Details(Place::Item, members) => {
            _ = content.raw(&serde_json::Value::from(members.clone()).to_string());
        }
        Block::Call { .. } | Block::Details(..) => {}
    }
}
