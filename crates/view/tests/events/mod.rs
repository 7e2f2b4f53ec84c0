//! Random events, for the laws of views.

use proptest::prelude::*;

/// Text with control characters, escape sequences and wide characters.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<char>().prop_map(String::from),
        "[\\x00-\\x1f\\x7f-\\u{9f}\\u{202a}-\\u{202e}\\u{2066}-\\u{2069}]",
        "[ -~\n\t]{0,12}",
        Just("\u{1b}]52;c;eA==\u{7}".to_owned()),
        Just("\u{9b}2J\r\u{8}".to_owned()),
        Just("**a** `b`\n\n- c\n> [d](e)\n".to_owned()),
        Just("\n```sh\n".to_owned()),
        Just("\n| a | b |\n|---|---|\n| c | &#27; |\n".to_owned()),
        Just("<b a='\"'>&lt;</b></pre><script>x</script>".to_owned()),
        Just("[a](javascript:b) @ann #12 http://c.d ```".to_owned()),
        Just("天気🙂👩\u{200d}👩\u{200d}👧❤\u{fe0f}e\u{301}".to_owned()),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|p| p.concat())
}

const KINDS: [&str; 20] = [
    "stream_start",
    "thinking",
    "content_delta",
    "refusal_delta",
    "tool_call_delta",
    "decision",
    "tool_call",
    "tool_call_partial",
    "retract",
    "server_item",
    "details",
    "message",
    "tool_use",
    "tool_progress",
    "tool_result",
    "session_stats",
    "warning",
    "error",
    "stream_end",
    "unheard_of",
];
const WORDS: [&str; 7] = [
    "user",
    "assistant",
    "tool",
    "success",
    "error",
    "length",
    "pending",
];

/// Any event: each string field may hold any text, and each id is one of a few, so that events name
/// the same calls.
pub(crate) fn any_event() -> impl Strategy<Value = String> {
    let texts = prop::array::uniform4(text().prop_map(|t| event::quoted(&t)));
    let parts = (
        prop::sample::select(&KINDS),
        texts,
        0..3_u8,
        prop::sample::select(&WORDS),
        any::<bool>(),
    );
    parts.prop_map(|(kind, [a, b, c, d], id, word, flag)| {
        let stream = if flag { String::new() } else { format!(r#""stream":{a},"#) };
        let call = format!(r#"{{"id":"{id}","function":{{"name":{c},"arguments":{d}}}}}"#);
        let message = format!(
            r#"{{"role":"{word}","content":{a},"reasoning":{d},"tool_call_id":{c},"tool_calls":[{call}]}}"#
        );
        format!(
            r#"{{"type":"{kind}",{stream}"text":{b},"tool_id":"{id}","index":{id},"tool_name":{c},
            "arguments":{{{a}:{d}}},"status":"{word}","output":{d},"output_summary":{b},"input_summary":{a},
            "reason":{b},"checker":{c},"kind":{d},"source":{a},"code":{b},"message":{},"error":{{"code":{a},"message":{d}}},
            "duration_ms":{id},"cached":{flag},"return_directly":{flag},"finish_reason":"{word}",
            "prompt_tokens":1,"completion_tokens":2}}"#,
            if kind == "message" { &message } else { &c }
        )
    })
}
