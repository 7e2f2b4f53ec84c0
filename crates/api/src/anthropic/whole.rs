//! The message format, and the parts shared by streams and complete messages.

use crate::answer::details;
use crate::answer::details::{DetailMembers, merge};
use crate::answer::failure::{ANTHROPIC, FailedAnswer};
use crate::answer::service::SERVICE;
use crate::answer::step::{AnswerOptions, CallStep, CallStepKind, ReportedUsage};
use crate::carried::carry;
use crate::members::minified;
use event::payload::FinishReason;
use event::{Object, Raw};
use serde_json::Value;

/// A block of a complete message: its start, and the content that deltas add to its members.
#[derive(Debug)]
pub(crate) struct MessageBlock {
    start: String,
    /// The concatenated pieces of each member.
    pieces: Vec<(&'static str, String)>,
    citations: Vec<String>,
}

impl MessageBlock {
    /// Creates a block from its start, a JSON object.
    pub(crate) fn new(start: String) -> MessageBlock {
        MessageBlock {
            start,
            pieces: Vec::new(),
            citations: Vec::new(),
        }
    }

    /// Appends a piece to a member.
    pub(crate) fn push(&mut self, member: &'static str, piece: &str) {
        match self.pieces.iter_mut().find(|(own, _)| *own == member) {
            Some((_, all)) => all.push_str(piece),
            None => self.pieces.push((member, piece.to_owned())),
        }
    }

    /// Adds a citation as JSON.
    pub(crate) fn cite(&mut self, citation: String) {
        self.citations.push(citation);
    }

    /// Returns the complete block as JSON.
    pub(crate) fn json(&self) -> String {
        let start = Raw::parse(&self.start).ok();
        event::object(|o| {
            for (key, value) in start.iter().flat_map(|start| start.entries()) {
                let delta = if key == "input" {
                    "partial_json"
                } else {
                    &*key
                };
                let pieces = self.pieces.iter().find(|(member, _)| *member == delta);
                _ = match pieces {
                    Some((_, json)) if key == "input" => o.minified(&key, json),
                    Some((_, text)) => o.str(&key, text),
                    None => o.minified(&key, value.text()),
                };
            }
            if !self.citations.is_empty() {
                o.raw("citations", &format!("[{}]", self.citations.join(",")));
            }
        })
    }
}

/// Returns the block for a step of a call that the service runs, or `None` if the step has none:
/// `mcp_tool_use` with its complete input, which the AI SDK reads at the start of the block, and
/// `mcp_tool_result`. The SDKs' accumulators accept both, also outside of `beta`. Source:
/// `beta_mcp_tool_use_block.py` and `beta_mcp_tool_result_block.py` in anthropic-sdk-python.
pub(crate) fn service_block(call: &CallStep<'_>) -> Option<String> {
    let CallStep { id, name, text, .. } = call;
    match call.kind {
        CallStepKind::Called => Some(event::object(|o| {
            let input = Raw::parse(text).ok().filter(|input| input.is_object());
            o.str("type", "mcp_tool_use")
                .str("id", id)
                .str("name", name)
                .minified("input", input.map_or("{}", Raw::text))
                .str("server_name", SERVICE);
        })),
        CallStepKind::Result { is_error } => Some(event::object(|o| {
            o.str("type", "mcp_tool_result")
                .str("tool_use_id", id)
                .bool("is_error", is_error);
            o.array("content", |a| {
                a.object(|o| _ = o.str("type", "text").str("text", text));
            });
        })),
        CallStepKind::Begin | CallStepKind::Arguments | CallStepKind::Pending => None,
    }
}

/// Returns the message's id.
pub(crate) fn id(options: &AnswerOptions) -> String {
    options
        .provider_id
        .clone()
        .unwrap_or_else(|| format!("msg_{}", options.id))
}

/// Writes the first members of a message.
pub(crate) fn envelope(o: &mut Object<'_>, id: &str, model: &str) {
    o.str("id", id)
        .str("type", "message")
        .str("role", "assistant")
        .str("model", model);
}

/// Writes a call block.
pub(crate) fn tool_use(o: &mut Object<'_>, id: &str, name: &str, input: &str) {
    o.str("type", "tool_use")
        .str("id", id)
        .str("name", name)
        .minified("input", input);
}

/// Writes the token counts. In this API `input_tokens` excludes cached tokens. `theirs` are the
/// provider's own counts if it speaks this API, and have priority.
pub(crate) fn usage(o: &mut Object<'_>, counts: &ReportedUsage, theirs: &DetailMembers) {
    // A provider was seen to count more cached tokens than the request has. The limits make the
    // counts add up to the request.
    let cached = counts.cached.min(counts.input);
    let written = counts.written.min(counts.input - cached);
    let ours = |o: &mut Object<'_>| {
        o.int("input_tokens", counts.input - cached - written)
            .int("cache_creation_input_tokens", written)
            .int("cache_read_input_tokens", cached)
            .int("output_tokens", counts.output);
    };
    let mut all = details::members(event::object(ours).as_bytes());
    merge(&mut all, theirs.clone(), false);
    o.raw("usage", &Value::from(all).to_string());
}

/// Writes why the message ended, and the other members of its end. A matched stop sequence replaces
/// the reason `end_turn`.
pub(crate) fn ending(o: &mut Object<'_>, reason: &str, members: &DetailMembers) {
    let is_matched = members.get("stop_sequence").is_some_and(Value::is_string);
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

/// Returns the citations in a text's members.
pub(crate) fn citations(members: &DetailMembers) -> impl Iterator<Item = &Value> {
    members
        .get("citations")
        .and_then(|cited| cited.get("list")?.as_array())
        .into_iter()
        .flatten()
}

/// Returns the `stop_reason`. `provider` is the reason from a provider of this API, which is kept
/// unchanged. A client sends a paused turn back to continue it, so `pause_turn` must not become
/// `end_turn`, and `compaction` does not end the turn either. `stop_sequence` needs its text from
/// the provider ([`ending`]). Source:
/// <https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons>.
///
/// Other providers often end a refusal with their reason for a normal end.
pub(crate) fn stop_reason(reason: FinishReason, provider: Option<&str>, has_refusal: bool) -> &str {
    match reason {
        FinishReason::Stop | FinishReason::Length if provider.is_some() && !has_refusal => {
            provider.unwrap_or_default()
        }
        FinishReason::ToolCalls => "tool_use",
        FinishReason::Length => "max_tokens",
        FinishReason::ContentFilter => "refusal",
        FinishReason::Error | FinishReason::Cancelled | FinishReason::Cut => "error",
        _ if has_refusal => "refusal",
        _ => "end_turn",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::Raw;

    #[test]
    fn the_counts_of_the_request_add_up_to_it() {
        for (input, cached, written) in [
            (235, 373, 0),
            (235, 200, 0),
            (235, 0, 0),
            (235, 200, 7),
            (235, 200, 70),
        ] {
            let mut bytes = Vec::new();
            let mut object = Object::open(&mut bytes);
            usage(
                &mut object,
                &ReportedUsage {
                    input,
                    cached,
                    written,
                    ..ReportedUsage::default()
                },
                &DetailMembers::new(),
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
            let written = count("cache_creation_input_tokens");
            assert_eq!(
                count("input_tokens") + count("cache_read_input_tokens") + written,
                input,
                "{text}"
            );
        }
    }
}

/// Data that must be sent back to Anthropic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Opaque {
    /// No data.
    None,
    /// The signature of the preceding reasoning, or another provider's data in its place.
    Signature(String),
    /// A separate block, such as redacted reasoning or the result of a tool that the provider ran.
    Block {
        /// The block's start as JSON.
        start: String,
        /// The block's input if the API sends it in deltas.
        input: Option<String>,
    },
}

impl Opaque {
    /// Parses `provider`: JSON by API name.
    pub(crate) fn of(provider: &str) -> Opaque {
        let own = Raw::parse(provider)
            .ok()
            .and_then(|data| data.get("anthropic"));
        let Some(own) = own else {
            return carry(provider, "anthropic").map_or(Opaque::None, Opaque::Signature);
        };
        if let Some(signature) = own.get_str("signature") {
            return Opaque::Signature(signature.into_owned());
        }
        if let Some(data) = own.get_str("redacted") {
            return Opaque::Block {
                start: event::object(|o| _ = o.str("type", "redacted_thinking").str("data", &data)),
                input: None,
            };
        }
        own.get("block")
            .filter(|b| b.is_object())
            .map_or(Opaque::None, Opaque::block)
    }

    /// Converts a block from the provider.
    pub(crate) fn of_block(block: &DetailMembers) -> Opaque {
        let json = Value::from(block.clone()).to_string();
        Raw::parse(&json).map_or(Opaque::None, Opaque::block)
    }

    /// Converts a block's JSON. The AI SDK expects the input of `mcp_tool_use` at its start, and
    /// that of `server_tool_use` in deltas, which is how the API sends them.
    fn block(block: Raw<'_>) -> Opaque {
        let has_deltas = block
            .get_str("type")
            .is_some_and(|t| t == "server_tool_use");
        let input = block.get("input").filter(|_| has_deltas);
        let start = event::object(|o| {
            for (key, value) in block.entries() {
                let is_empty = has_deltas && key == "input";
                o.minified(&key, if is_empty { "{}" } else { value.text() });
            }
        });
        Opaque::Block {
            start,
            input: input.map(minified),
        }
    }
}

/// Writes the `error` member.
pub(crate) fn error(o: &mut Object<'_>, failure: &FailedAnswer) {
    // A 413 concerns the size of the request in bytes. Anthropic's clients distinguish it from a
    // prompt that is too long.
    let is_overflow = failure.code == "context_overflow" && failure.status != 413;
    let own = failure
        .provider_text(ANTHROPIC, "type")
        .filter(|_| !is_overflow);
    o.object("error", |o| {
        o.str(
            "type",
            own.as_deref().unwrap_or(match failure.status {
                _ if is_overflow => "invalid_request_error",
                _ if failure.is_quota() => "billing_error",
                _ => failure.names().anthropic,
            }),
        );
        if is_overflow && !failure.message.contains(TOO_LONG) {
            o.str("message", &format!("{TOO_LONG}: {}", failure.message));
        } else {
            o.str("message", &failure.message);
        }
        if let Some(details) = failure.details() {
            o.raw("details", &details);
        }
    });
}

/// Anthropic's own message, from which Claude Code and other clients recognise that the
/// conversation must be shortened.
const TOO_LONG: &str = "prompt is too long";
