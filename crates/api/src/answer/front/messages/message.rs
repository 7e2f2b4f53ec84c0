//! The members that a message has in a stream and at once.

use crate::answer::details::{self, Members, merge};
use crate::answer::options::AnswerOptions;
use crate::answer::step::Usage;
use event::Object;
use event::payload::FinishReason;

/// The id of the message.
pub(super) fn id(options: &AnswerOptions) -> String {
    options
        .provider_id
        .clone()
        .unwrap_or_else(|| format!("msg_{}", options.id))
}

/// The first members of a message.
pub(super) fn envelope(o: &mut Object<'_>, id: &str, model: &str) {
    o.str("id", id)
        .str("type", "message")
        .str("role", "assistant")
        .str("model", model);
}

/// A block of a call.
pub(super) fn tool_use(o: &mut Object<'_>, id: &str, name: &str, input: &str) {
    o.str("type", "tool_use")
        .str("id", id)
        .str("name", name)
        .minified("input", input);
}

/// The counts of tokens. Those from the cache are not part of `input_tokens` in this API.
/// `theirs` are the provider's counts, where it speaks this API: they go before.
pub(super) fn usage(o: &mut Object<'_>, counts: &Usage, theirs: Option<&Members>) {
    // A provider was seen to count more tokens from the cache than in the request; the two counts
    // add up to the request here.
    let cached = counts.cached.min(counts.input);
    let ours = |o: &mut Object<'_>| {
        o.int("input_tokens", counts.input - cached)
            .int("cache_creation_input_tokens", 0)
            .int("cache_read_input_tokens", cached)
            .int("output_tokens", counts.output);
    };
    let mut all = details::members(details::counts(None, ours).as_bytes());
    merge(&mut all, theirs.cloned().unwrap_or_default(), false);
    o.raw("usage", &serde_json::Value::from(all).to_string());
}

/// Writes why the message ended, and the other members of its end. A matched stop sequence is the
/// reason by itself.
pub(super) fn ending(o: &mut Object<'_>, reason: &str, members: &Members) {
    let is_matched = members
        .get("stop_sequence")
        .is_some_and(serde_json::Value::is_string);
    o.str(
        "stop_reason",
        if is_matched && reason == "end_turn" {
            "stop_sequence"
        } else {
            reason
        },
    );
    if !is_matched {
        o.raw("stop_sequence", "null");
    }
    details::write(o, members);
}

/// The citations among the members of a text.
pub(super) fn citations(members: &Members) -> impl Iterator<Item = &serde_json::Value> {
    members
        .get("citations")
        .and_then(|cited| cited.get("list")?.as_array())
        .into_iter()
        .flatten()
}

/// `stop_reason`; `provider`: the provider's own word. A refusal of another provider often ends
/// with its word for a good end.
///
/// A client sends a paused turn back to have it continued, so `pause_turn` must not become
/// `end_turn`. `stop_sequence` keeps its word, too; the member `stop_sequence` has its text where
/// the provider gives it ([`ending`]). Source:
/// <https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons>.
pub(super) fn stop_reason(
    reason: FinishReason,
    provider: Option<&str>,
    has_refusal: bool,
) -> &'static str {
    match reason {
        FinishReason::ToolCalls => "tool_use",
        FinishReason::Length => "max_tokens",
        FinishReason::ContentFilter => "refusal",
        _ if has_refusal => "refusal",
        FinishReason::Stop if provider == Some("pause_turn") => "pause_turn",
        FinishReason::Stop if provider == Some("stop_sequence") => "stop_sequence",
        _ => "end_turn",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::Raw;

    #[test]
    fn the_counts_of_the_request_add_up_to_it() {
        for (input, cached) in [(235, 373), (235, 200), (235, 0)] {
            let mut bytes = Vec::new();
            let mut object = Object::open(&mut bytes);
            usage(
                &mut object,
                &Usage {
                    input,
                    cached,
                    ..Usage::default()
                },
                None,
            );
            object.close();
            let text = String::from_utf8(bytes).unwrap();
            let raw = Raw::parse(&text).unwrap();
            let count = |name| {
                raw.at(&["usage", name])
                    .unwrap()
                    .text()
                    .parse::<u64>()
                    .unwrap()
            };
            assert_eq!(
                count("input_tokens") + count("cache_read_input_tokens"),
                input,
                "{text}"
            );
        }
    }
}
