//! What servers that speak chat completions, and Mistral, Cohere and Ollama, get wrong or do in
//! their own way: the words that become events, one case a deviation. The same deviations are whole
//! streams in `fixtures/streams`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use event::{Collect, Raw};
use toolpipe_api::{Api, End, Stream, StreamOptions, Words};

/// The words of a command.
const WORDS: Words = Words {
    source: "command",
    overflow: "leave old messages out of the log",
    no_tools: Some("use --tools-mode tag"),
    other_api: "use --api",
    max_frame: "--max-frame",
};

/// The events of a body, without `stream_start`.
fn events(api: Api, body: &str) -> Vec<String> {
    let mut out = Collect::default();
    let mut stream = Stream::new(api, StreamOptions::default());
    stream.whole(body.as_bytes(), &mut out);
    out.lines.split_off(1)
}

/// The events of deltas of choice 0 and a finish reason, without `stream_start` and `stream_end`.
fn deltas(api: Api, deltas: &[&str], finish: &str) -> Vec<String> {
    let mut body = String::new();
    for delta in deltas {
        body +=
            &format!("data: {{\"id\":\"r\",\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n");
    }
    body += &format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{finish}\"}}]}}\n\ndata: [DONE]\n\n"
    );
    let mut out = events(api, &body);
    out.pop();
    out
}

fn field(line: &str, key: &str) -> String {
    Raw::parse(line)
        .unwrap()
        .get_str(key)
        .unwrap_or_default()
        .into_owned()
}

#[test]
fn what_a_stream_says_of_itself() {
    let options = StreamOptions {
        tools: Some("[]".into()),
        tools_mode: Some("native".into()),
        model: Some("asked".into()),
        attempt: Some(2),
        fallback: true,
        ..StreamOptions::default()
    };
    let mut out = Collect::default();
    let mut stream = Stream::new(Api::OpenaiChat, options);
    stream.push(
        b": wait\n\ndata: {\"id\":\"r1\",\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
        &mut out,
    );
    assert!(!stream.has_started() && out.lines.is_empty());
    stream.push(
        b"data: {\"id\":\"r1\",\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"usage\":{\"prompt_tokens\":3}}\n\n",
        &mut out,
    );
    assert!(stream.has_started() && !stream.is_done());
    stream.stats().retries = Some(1);
    stream.push(b"data: {\"choices\":[{\"finish_reason\":\"stop\",\"delta\":{}}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}\n\ndata: [DONE]\n\ndata: x\n\n", &mut out);
    assert!(stream.is_done() && !stream.failed());
    stream.finish(End::Reset("too late to matter".into()), &mut out);
    assert_eq!(
        out.lines,
        [
            r#"{"type":"stream_start","v":1,"api":"openai-chat","model":"asked","id":"r1","tools_mode":"native","tools":[],"attempt":2,"fallback":"sync"}"#,
            r#"{"type":"content_delta","text":"a"}"#,
            r#"{"type":"session_stats","prompt_tokens":3,"completion_tokens":1,"total_tokens":4,"retries":1}"#,
            r#"{"type":"stream_end","finish_reason":"stop","provider_finish_reason":"stop"}"#,
        ]
    );
}

#[test]
fn tokens_that_the_provider_wrote_to_its_cache_are_counted() {
    let usage = |api: Api, body: &str| {
        let mut out = Collect::default();
        let mut stream = Stream::new(api, StreamOptions::default());
        stream.push(body.as_bytes(), &mut out);
        stream.finish(End::Eof, &mut out);
        let stats = out
            .lines
            .into_iter()
            .find(|line| line.contains("session_stats"));
        let stats: serde_json::Value = serde_json::from_str(&stats.unwrap()).unwrap();
        ["prompt_tokens", "cached_tokens", "cache_write_tokens"].map(|name| stats[name].as_u64())
    };
    let chat = |written: u32| {
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"content\":\"a\"}},\"finish_reason\":\"stop\"}}],\"usage\":{{\"prompt_tokens\":9,\"completion_tokens\":1,\"prompt_tokens_details\":{{\"cached_tokens\":2,\"cache_write_tokens\":{written}}}}}}}\n\ndata: [DONE]\n\n"
        )
    };
    let claude = r#"data: {"type":"message_start","message":{"id":"m","model":"c","content":[],"usage":{"input_tokens":3,"cache_creation_input_tokens":4,"cache_read_input_tokens":2,"output_tokens":1}}}

data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}

data: {"type":"message_stop"}

"#;
    let responses = r#"data: {"type":"response.completed","response":{"id":"r","status":"completed","output":[],"usage":{"input_tokens":9,"output_tokens":1,"input_tokens_details":{"cached_tokens":2,"cache_write_tokens":4}}}}

"#;
    for (api, body, written) in [
        (Api::OpenaiChat, &*chat(4), Some(4)),
        (Api::OpenaiChat, &*chat(0), None),
        (Api::Anthropic, claude, Some(4)),
        (Api::OpenaiResponses, responses, Some(4)),
    ] {
        assert_eq!(usage(api, body), [Some(9), Some(2), written], "{body}");
    }
}

#[test]
fn pieces_of_calls_pass_as_they_are_labelled() {
    let out = deltas(
        Api::OpenaiChat,
        &[
            r#"{"tool_calls":[{"index":-1,"id":"a","type":"function","function":{"name":"f","arguments":""}},{"id":"","function":{"arguments":"{\"x\""}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":null},{},null,{"index":"2","function":{"name":"","arguments":null}}]}"#,
            r#"{"tool_calls":[{"index":2,"function":{"name":"g","arguments":{ "n" : 1.10 }}}]}"#,
            r#"{"tool_calls":{"index":3,"name":"h","arguments":"{}"}}"#,
            r#"{"tool_calls":null,"function_call":{"name":"old","arguments":"{}"}}"#,
        ],
        "tool_calls",
    );
    assert_eq!(
        out,
        [
            r#"{"type":"tool_call_delta","index":-1,"tool_id":"a","tool_name":"f"}"#,
            r#"{"type":"tool_call_delta","arguments":"{\"x\""}"#,
            r#"{"type":"tool_call_delta","index":2,"tool_name":"g","arguments":"{\"n\":1.10}"}"#,
            r#"{"type":"tool_call_delta","index":3,"tool_name":"h","arguments":"{}"}"#,
            r#"{"type":"tool_call_delta","tool_name":"old","arguments":"{}"}"#,
        ]
    );
}

#[test]
fn reasoning_is_told_from_text_and_says_where_it_goes_back() {
    let back = |data: &str| {
        format!(r#"{{"type":"thinking","text":"","provider":{{"openai-chat":{data}}}}}"#)
    };
    // Both fields with the same text; reasoning before text in one delta, whatever their order.
    let out = deltas(
        Api::OpenaiChat,
        &[
            r#"{"content":"b","reasoning":"a","reasoning_content":"a"}"#,
            r#"{"reasoning_content":null,"content":null}"#,
        ],
        "stop",
    );
    assert_eq!(
        out,
        [
            r#"{"type":"thinking","text":"a"}"#,
            &back(r#"{"field":"reasoning_content"}"#),
            r#"{"type":"content_delta","text":"b"}"#
        ]
    );
    // Details without any other field; those of another index or kind stay apart.
    let out = deltas(
        Api::OpenaiChat,
        &[
            r#"{"reasoning_details":[{"type":"reasoning.summary","summary":"a","index":0}]}"#,
            r#"{"reasoning_details":[{"type":"reasoning.summary","summary":"b","index":0},{"type":"reasoning.text","text":"c","signature":null,"index":1}]}"#,
            r#"{"reasoning_details":[{"type":"reasoning.text","text":"","signature":"s","index":1},{"type":"reasoning.encrypted","data":"x","index":2}]}"#,
        ],
        "stop",
    );
    assert_eq!(
        out[..2]
            .iter()
            .map(|l| field(l, "text"))
            .collect::<Vec<_>>(),
        ["a", "bc"]
    );
    let details = r#"[{"type":"reasoning.summary","summary":"ab","index":0},{"type":"reasoning.text","text":"c","signature":"s","index":1},{"type":"reasoning.encrypted","data":"x","index":2}]"#;
    assert_eq!(
        out[2..],
        [back(&format!(r#"{{"reasoning_details":{details}}}"#))]
    );
    // A block that the end cuts is closed too.
    let out = events(
        Api::OpenaiChat,
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning\":\"a\"}}]}\n\n",
    );
    assert_eq!(out[1], back(r#"{"field":"reasoning"}"#));
}

#[test]
fn the_reason_of_the_end_is_decided_from_what_came() {
    let call = r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}"#;
    for (deltas, words, want) in [
        (r#"{"content":"a"}"#, vec!["stop"], "stop"),
        (call, vec!["stop"], "tool_calls"),
        (call, vec!["eos"], "tool_calls"),
        (call, vec!["length"], "length"),
        (call, vec!["content_filter"], "content_filter"),
        (call, vec!["tool_calls", "length"], "length"),
        (call, vec!["length", "stop"], "length"),
        (r#"{"content":"a"}"#, vec![], "cut"),
        (
            r#"{"content":"a"}"#,
            vec!["insufficient_system_resource"],
            "error",
        ),
    ] {
        let mut body = format!("data: {{\"choices\":[{{\"delta\":{deltas}}}]}}\n\n");
        for word in &words {
            body += &format!(
                "data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"{word}\"}}]}}\n\n"
            );
        }
        let out = events(Api::OpenaiChat, &body);
        assert_eq!(
            field(out.last().unwrap(), "finish_reason"),
            want,
            "{words:?}"
        );
        assert_eq!(
            out.iter().any(|l| field(l, "type") == "error"),
            ["cut", "error"].contains(&want),
            "{words:?}"
        );
    }
    // One choice has not finished: the stream was cut.
    let out = events(
        Api::OpenaiChat,
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"},{\"index\":1,\"delta\":{\"content\":\"b\"}}]}\n\n",
    );
    assert_eq!(field(out.last().unwrap(), "finish_reason"), "cut");
}

#[test]
fn what_is_no_answer_is_an_error_and_never_an_empty_success() {
    for (api, body, code, says) in [
        (
            Api::OpenaiChat,
            "",
            "disconnected",
            "the response was empty",
        ),
        (Api::OpenaiChat, "data: [DONE]\n\n", "disconnected", "empty"),
        (
            Api::OpenaiChat,
            "<html><body>Log in</body>",
            "not_a_stream",
            "an HTML page: Log in",
        ),
        (
            Api::Anthropic,
            "upstream connect error",
            "not_a_stream",
            "upstream connect error",
        ),
        (
            Api::Cohere,
            r#"{"id":"x","message":"invalid api token"}"#,
            "provider_error",
            "invalid api token",
        ),
        (
            Api::Mistral,
            r#"{"detail":"Unauthorized"}"#,
            "provider_error",
            "Unauthorized",
        ),
        (
            Api::OpenaiChat,
            r#"{"status":"ok"}"#,
            "not_a_stream",
            "nothing of openai-chat",
        ),
        (
            Api::Anthropic,
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n",
            "wrong_api",
            "use the API openai-chat",
        ),
        (
            Api::OpenaiChat,
            "data: {\"choices\":[]}\n\n",
            "disconnected",
            "end mark",
        ),
        (
            Api::Ollama,
            "{\"error\":\"model 'x' not found\"}",
            "provider_error",
            "not found",
        ),
        (
            Api::Gemini,
            "[{\"error\":{\"code\":503,\"message\":\"later\",\"status\":\"UNAVAILABLE\"}}]",
            "UNAVAILABLE",
            "later",
        ),
    ] {
        let out = events(api, body);
        assert_eq!(field(&out[0], "code"), code, "{body}: {out:?}");
        assert!(field(&out[0], "message").contains(says), "{body}: {out:?}");
        assert_eq!(field(out.last().unwrap(), "type"), "stream_end");
    }
}

#[test]
fn the_body_of_an_http_error_is_told_and_says_whether_to_try_again() {
    for (status, body, message, retryable) in [
        (
            401,
            r#"{"error":{"message":"Incorrect API key","code":"invalid_api_key"}}"#,
            "HTTP 401: Incorrect API key",
            "false",
        ),
        (
            429,
            r#"[{"error":{"code":429,"message":"slow down"}}]"#,
            "HTTP 429: slow down",
            "true",
        ),
        (
            503,
            "<html><h1>Service\nUnavailable</h1></html>",
            "HTTP 503: Service Unavailable",
            "true",
        ),
        (500, "", "HTTP 500: no message", "true"),
        (
            422,
            r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#,
            r#"HTTP 422: [{"loc":["body"],"msg":"field required"}]"#,
            "false",
        ),
    ] {
        let mut out = Collect::default();
        let mut stream = Stream::new(Api::OpenaiChat, StreamOptions::default());
        stream.error_body(status, body.as_bytes(), None, &mut out);
        let error = Raw::parse(&out.lines[1]).unwrap();
        assert_eq!(error.get_str("message").unwrap(), message);
        assert_eq!(error.get("retryable").unwrap().text(), retryable);
        assert_eq!(error.get_str("code").unwrap(), format!("http_{status}"));
        assert_eq!(
            out.lines[2],
            r#"{"type":"stream_end","finish_reason":"error"}"#
        );
        assert!(stream.is_done() && stream.failed());
    }
}

#[test]
fn a_refusal_is_said_and_is_no_text() {
    let out = deltas(
        Api::OpenaiChat,
        &[
            r#"{"refusal":"I "}"#,
            r#"{"refusal":"won't.\ud83d"}"#,
            r#"{"refusal":""}"#,
        ],
        "stop",
    );
    let said: Vec<_> = out[..3]
        .iter()
        .map(|l| (field(l, "type"), field(l, "text")))
        .collect();
    let want =
        ["I ", "won't.", "\u{fffd}"].map(|text| ("refusal_delta".to_owned(), text.to_owned()));
    assert_eq!(said, want);
}

#[test]
fn a_custom_tools_text_is_put_into_an_object() {
    let out = deltas(
        Api::OpenaiChat,
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","type":"custom","custom":{"name":"sql","input":""}}]}"#,
            r#"{"tool_calls":[{"index":0,"custom":{"input":"say \"x\"\n"}}]}"#,
        ],
        "tool_calls",
    );
    let text: String = out.iter().map(|l| field(l, "arguments")).collect();
    assert_eq!(
        Raw::parse(&text).unwrap().get_str("input").unwrap(),
        "say \"x\"\n"
    );
    assert!(
        out[0].contains(r#""provider":{"openai-chat":{"custom":true}}"#)
            && out[2].contains(r#""done":true"#)
    );
}

#[test]
fn mistrals_content_comes_in_parts() {
    let out = deltas(
        Api::Mistral,
        &[
            r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}"#,
            r#"{"content":[{"type":"thinking","thinking":"c","closed":true},{"type":"text","text":"d"},"e"]}"#,
        ],
        "stop",
    );
    assert_eq!(
        out.iter().map(|l| field(l, "text")).collect::<Vec<_>>(),
        ["a", "b", "c", "", "d", "e"]
    );
    assert_eq!(
        out[3],
        r#"{"type":"thinking","text":"","provider":{"mistral":{"field":"thinking"}}}"#
    );
}

#[test]
fn a_response_without_an_id_is_named_by_when_it_was_made() {
    for (api, body, id) in [
        (
            Api::Ollama,
            "{\"created_at\":\"t1\",\"message\":{\"content\":\"a\"},\"done\":true}",
            "t1",
        ),
        (
            Api::OpenaiChat,
            "data: {\"id\":\"\",\"created\":0,\"choices\":[]}\n\ndata: {\"created\":7,\"id\":\"x\",\"choices\":[{\"text\":\"a\"}]}\n\n",
            "x",
        ),
        (
            Api::OpenaiChat,
            "data: {\"created\":7,\"choices\":[{\"text\":\"a\"}]}\n\n",
            "7",
        ),
    ] {
        let mut out = Collect::default();
        Stream::new(api, StreamOptions::default()).whole(body.as_bytes(), &mut out);
        assert_eq!(field(&out.lines[0], "id"), id, "{body}");
    }
}

#[test]
fn a_context_that_is_too_long_has_one_code_in_every_apis_stream() {
    for (api, body) in [
        (
            Api::OpenaiChat,
            "data: {\"error\":{\"message\":\"This model's maximum context length is 8 tokens.\",\"code\":\"context_length_exceeded\"}}\n\n",
        ),
        (
            Api::OpenaiChat,
            "data: {\"error\":{\"code\":500,\"message\":\"Context size has been exceeded.\",\"type\":\"server_error\"}}\n\n",
        ),
        (
            Api::OpenaiChat,
            "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"model_context_window_exceeded\"}]}\n\ndata: [DONE]\n\n",
        ),
        (
            Api::OpenaiResponses,
            "event: error\ndata: {\"type\":\"error\",\"code\":\"context_length_exceeded\",\"message\":\"Your input exceeds the context window of this model.\"}\n\n",
        ),
        (
            Api::OpenaiResponses,
            "data: {\"type\":\"response.failed\",\"response\":{\"id\":\"r\",\"status\":\"failed\",\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"Your input exceeds the context window of this model.\"}}}\n\n",
        ),
        (
            Api::Anthropic,
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 9 tokens > 8 maximum\"}}\n\n",
        ),
        (
            Api::Anthropic,
            "{\"validationException\":{\"message\":\"Input is too long for requested model.\"}}",
        ),
        (
            Api::Gemini,
            "[{\"error\":{\"code\":400,\"message\":\"The input token count (9) exceeds the maximum number of tokens allowed (8).\",\"status\":\"INVALID_ARGUMENT\"}}]",
        ),
        (
            Api::Ollama,
            "{\"error\":\"prompt too long; exceeded max context length by 1 tokens\"}\n",
        ),
        (
            Api::Mistral,
            "{\"object\":\"error\",\"message\":\"Prompt contains 9 tokens, too large for model with 8 maximum context length\",\"code\":\"3051\"}",
        ),
        (
            Api::Cohere,
            "{\"message\":\"too many tokens: size limit exceeded by 1 tokens. Try using shorter or fewer inputs.\"}",
        ),
    ] {
        let mut out = Collect::default();
        let options = StreamOptions {
            words: WORDS,
            ..StreamOptions::default()
        };
        Stream::new(api, options).whole(body.as_bytes(), &mut out);
        let error = out
            .lines
            .iter()
            .find(|line| line.starts_with("{\"type\":\"error\""))
            .unwrap_or_else(|| panic!("{body}\n{out:?}"));
        assert_eq!(field(error, "code"), "context_overflow", "{body}");
        assert!(
            error.contains("leave old messages out of the log")
                && error.contains("\"retryable\":false"),
            "{error}"
        );
        assert!(
            out.lines
                .iter()
                .any(|line| line.contains("\"finish_reason\":\"error\"")),
            "{out:?}"
        );
    }
}

#[test]
fn a_refusal_of_tools_names_what_to_do_where_tools_were_asked_with() {
    let body = r#"{"error":"registry.ollama.ai/library/phi4 does not support tools"}"#;
    for (mode, named) in [("native", true), ("tag", false), ("none", false)] {
        let mut out = Collect::default();
        let options = StreamOptions {
            tools_mode: Some(mode.to_owned()),
            words: WORDS,
            ..StreamOptions::default()
        };
        Stream::new(Api::Ollama, options).error_body(400, body.as_bytes(), None, &mut out);
        let message = field(&out.lines[1], "message");
        assert_eq!(message.contains("use --tools-mode tag"), named, "{message}");
        assert!(
            message.starts_with("HTTP 400: registry.ollama.ai/library/phi4 does not support tools")
        );
    }
}

#[test]
fn what_is_said_aloud_is_text_and_its_sound_an_item() {
    let whole = r#"{"id":"c","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"audio":{"id":"a","data":"UklGRg==","transcript":"Hi there","expires_at":1}},"finish_reason":"stop"}]}"#;
    let pieces = r#"data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant","audio":{"id":"a","transcript":"Hi "}}}]}

data: {"id":"c","choices":[{"index":0,"delta":{"audio":{"transcript":"there"}}}]}

data: {"id":"c","choices":[{"index":0,"delta":{"audio":{"data":"UklGRg=="}}}]}

data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

"#;
    let responses = r#"data: {"type":"response.created","response":{"id":"c"}}

data: {"type":"response.audio.transcript.delta","delta":"Hi there"}

data: {"type":"response.audio.delta","delta":"UklGRg=="}

data: {"type":"response.completed","response":{"id":"c","status":"completed","output":[]}}

"#;
    for (api, body) in [
        (Api::OpenaiChat, whole),
        (Api::OpenaiChat, pieces),
        (Api::OpenaiResponses, responses),
    ] {
        let out = events(api, body);
        let of = |kind: &'static str| out.iter().filter(move |l| field(l, "type") == kind);
        let text: String = of("content_delta").map(|l| field(l, "text")).collect();
        assert_eq!(text, "Hi there", "{out:?}");
        let item = of("server_item").next().unwrap();
        assert!(
            field(item, "kind") == "audio" && item.contains("UklGRg=="),
            "{item}"
        );
        assert_eq!(of("error").count(), 0, "{out:?}");
    }
}
