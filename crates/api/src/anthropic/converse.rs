//! Decodes Bedrock's Converse API, which has the same message in another format: events are named
//! by their only member or by the `event` field.
//!
//! Source of the format: `ConverseStreamOutput` and `Converse` in Amazon Bedrock's API reference
//! (docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStreamOutput.html). Text
//! blocks have no start, `metadata` may come before `messageStop`, and some gateways omit
//! `contentBlockStop` (docs/deviations.md, row-32).

use crate::anthropic::message::AnthropicMessage;
use crate::failure::StreamFailure;
use crate::turn::EventWriter;
use event::Raw;

/// The keys of the token counts; see [`UsageParts::take`](crate::turn::UsageParts::take).
const COUNTS: [&str; 4] = [
    "inputTokens",
    "cacheReadInputTokens",
    "cacheWriteInputTokens",
    "outputTokens",
];

/// Decodes one event. Unknown events are skipped.
pub(crate) fn frame(
    to: &mut AnthropicMessage,
    name: Option<&str>,
    data: Raw<'_>,
    turn: &mut EventWriter<'_>,
) {
    const NAMES: [&str; 6] = [
        "messageStart",
        "contentBlockStart",
        "contentBlockDelta",
        "contentBlockStop",
        "messageStop",
        "metadata",
    ];
    // `{"contentBlockDelta":{…}}`, or only the inner object if the event has its name in a field.
    let wrapped = data
        .entries()
        .find(|(key, _)| NAMES.contains(&key.as_ref()) || key.ends_with("Exception"));
    let (kind, body) = match (&wrapped, name) {
        (Some((key, body)), _) => (key.as_ref(), *body),
        (None, Some(name)) => (name, data),
        (None, None) => return,
    };
    let index = body
        .get("contentBlockIndex")
        .and_then(Raw::i64)
        .unwrap_or(0);
    match kind {
        "messageStart" => to.begin(body, turn),
        "contentBlockStart" => {
            if let Some(tool) = body.at(&["start", "toolUse"]) {
                tool_use(to, index, tool, turn);
            }
        }
        "contentBlockDelta" => {
            if let Some(delta) = body.get("delta") {
                piece(to, index, delta, turn);
            }
        }
        "contentBlockStop" => to.close(index, turn),
        "messageStop" => {
            to.close_all(true, turn);
            to.stop_reason(body.get("stopReason"), turn);
        }
        "metadata" => to.usage(body.get("usage"), COUNTS, turn),
        kind if kind.ends_with("Exception") => {
            let message = body
                .get_str("message")
                .or_else(|| body.get_str("Message"))
                .unwrap_or("no message".into());
            let retryable = [
                "throttling",
                "internal",
                "serviceUnavailable",
                "modelStream",
                "modelTimeout",
            ];
            turn.error(&StreamFailure::new(
                kind,
                message,
                retryable.iter().any(|w| kind.starts_with(w)),
            ));
        }
        _ => {}
    }
}

/// Whether this is a non-streaming response.
pub(crate) fn is_whole(body: Raw<'_>) -> bool {
    body.at(&["output", "message", "content"])
        .is_some_and(Raw::is_array)
}

/// Decodes a non-streaming response.
pub(crate) fn whole(to: &mut AnthropicMessage, body: Raw<'_>, turn: &mut EventWriter<'_>) {
    turn.choice(0);
    let blocks = || {
        body.at(&["output", "message", "content"])
            .into_iter()
            .flat_map(Raw::items)
    };
    turn.with_call = blocks().any(|block| block.get("toolUse").is_some());
    for (index, block) in (0..).zip(blocks()) {
        if let Some(tool) = block.get("toolUse") {
            tool_use(to, index, tool, turn);
        } else {
            piece(to, index, block, turn);
        }
        to.close(index, turn);
    }
    to.settle(turn);
    to.usage(body.get("usage"), COUNTS, turn);
    to.stop_reason(body.get("stopReason"), turn);
    turn.marked = true;
}

fn tool_use(to: &mut AnthropicMessage, index: i64, tool: Raw<'_>, turn: &mut EventWriter<'_>) {
    let start = event::object(|o| {
        o.str("type", "tool_use")
            .maybe_str("id", tool.get_str("toolUseId").as_deref());
        o.maybe_str("name", tool.get_str("name").as_deref());
        if let Some(input) = tool.get("input") {
            o.raw("input", input.text());
        }
    });
    if let Ok(start) = Raw::parse(&start) {
        to.open(index, start, turn);
    }
}

/// Decodes a piece of a block. Deltas in streams and blocks in non-streaming responses have the
/// same members.
fn piece(to: &mut AnthropicMessage, index: i64, delta: Raw<'_>, turn: &mut EventWriter<'_>) {
    if let Some(text) = delta.get("text") {
        turn.text(0, text);
    } else if let Some(input) = delta.at(&["toolUse", "input"]) {
        to.input(index, input, turn);
    } else if let Some(reasoning) = delta.get("reasoningContent") {
        let inner = reasoning.get("reasoningText").unwrap_or(reasoning);
        for (key, kind, member) in [
            ("text", "thinking_delta", "thinking"),
            ("signature", "signature_delta", "signature"),
        ] {
            if let Some(text) = inner.get(key).filter(|t| t.is_str()) {
                rename(to, index, kind, member, text, turn);
            }
        }
        if let Some(redacted) = reasoning.get("redactedContent").filter(|t| t.is_str()) {
            let start = format!(
                r#"{{"type":"redacted_thinking","data":{}}}"#,
                redacted.text()
            );
            if let Ok(start) = Raw::parse(&start) {
                to.open(index, start, turn);
            }
        }
    }
}

/// Converts a piece to the names of the Messages API and forwards it.
fn rename(
    to: &mut AnthropicMessage,
    index: i64,
    kind: &str,
    member: &str,
    text: Raw<'_>,
    turn: &mut EventWriter<'_>,
) {
    if let Ok(delta) = Raw::parse(&format!(
        r#"{{"type":"{kind}","{member}":{}}}"#,
        text.text()
    )) {
        to.delta(index, delta, turn);
    }
}
