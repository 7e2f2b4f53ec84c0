//! Whole answers that tc-serve requests whole from a provider of the client's API, because they are
//! short: they are the same as those that it makes of a stream.

#![allow(clippy::unwrap_used, reason = "it is how a test fails")]

use crate::service::{JSON, SSE, Server, Service, answer, provider};
use serde_json::{Value, json};
use testkit::{Protocol, Scratch, Turn};

/// The limits of tokens on both sides of the line: an answer of at most the first is requested
/// whole.
const FEW: u64 = 512;
const MANY: u64 = 513;

/// The APIs that clients speak, with the path of a request and the member of its limit of tokens.
const APIS: [(&str, Protocol, &str, &str); 3] = [
    (
        "openai-chat",
        Protocol::Chat,
        "/v1/chat/completions",
        "max_tokens",
    ),
    (
        "openai-responses",
        Protocol::Responses,
        "/v1/responses",
        "max_output_tokens",
    ),
    (
        "anthropic",
        Protocol::Messages,
        "/v1/messages",
        "max_tokens",
    ),
];

/// A request for a whole answer of at most so many tokens, with a tool.
fn request(protocol: Protocol, member: &str, most: u64) -> Value {
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    });
    let mut request = match protocol {
        Protocol::Responses => json!({
            "input": "hi",
            "tools": [{"type": "function", "name": "f", "parameters": schema}],
        }),
        Protocol::Messages => json!({
            "messages": [{"role": "user", "content": "hi"}],
            "tools": [{"name": "f", "input_schema": schema}],
        }),
        _ => json!({
            "messages": [{"role": "user", "content": "hi"}],
            "tools": [{"type": "function", "function": {"name": "f", "parameters": schema}}],
        }),
    };
    request["model"] = json!("m");
    request[member] = json!(most);
    request
}

/// Removes what differs between two answers to equal requests: times, and ids that are made here.
fn without_chance(value: &mut Value) {
    match value {
        Value::Object(members) => {
            let is_chance =
                |name: &str| matches!(name, "id" | "created" | "created_at" | "completed_at");
            members.retain(|name, value| {
                !is_chance(name) || value.as_str().is_some_and(|id| id.starts_with('c'))
            });
            // The request's own limit, which a response repeats.
            members.shift_remove("max_output_tokens");
            members.values_mut().for_each(without_chance);
        }
        Value::Array(items) => items.iter_mut().for_each(without_chance),
        _ => {}
    }
}

/// The status and the body of an answer, without what chance decides.
fn answered(service: &Service, path: &str, body: &Value) -> (u16, Value) {
    let response = service.post(path, &body.to_string());
    let mut value = serde_json::from_str(&response.body).unwrap();
    without_chance(&mut value);
    (response.status, value)
}

/// Whether each request that the provider got since the last call was for a stream.
fn streams(server: &Server) -> Vec<bool> {
    let is_stream = |request: testkit::Request| request.body["stream"] == true;
    server.asked().into_iter().map(is_stream).collect()
}

#[test]
fn a_short_whole_answer_is_requested_whole_and_is_the_same_as_of_a_stream() {
    let rome = json!({"city": "Rome"});
    let in_text = |city: &str| {
        format!("<tool_call>{{\"name\":\"f\",\"arguments\":{{\"city\":\"{city}\"}}}}</tool_call>")
    };
    let turns = [
        ("a text", Turn::says("Hello").then_says(" there.")),
        ("counts", Turn::says("Hi.").tokens(12, 4, 5)),
        ("no counts", Turn::says("Hi.").without_usage()),
        ("a cut text", Turn::says("Hi").finish("length")),
        ("a filtered text", Turn::says("Hi").finish("content_filter")),
        ("reasoning", Turn::default().thinks("Hm.").then_says("Hi.")),
        ("reasoning in the text", Turn::says("<think>Hm.</think>Hi.")),
        ("a call", Turn::calling("call_1", "f", &rome)),
        (
            "a text and a call",
            Turn::says("Wait.").calls("call_1", "f", &rome),
        ),
        (
            "two calls",
            Turn::calling("call_1", "f", &rome).calls("call_2", "f", &json!({"city": "Paris"})),
        ),
        (
            "a cut call",
            Turn::calling("call_1", "f", &rome).finish("length"),
        ),
        ("a call in the text", Turn::says(&in_text("Rome"))),
        (
            "calls in a text",
            Turn::says("So: ")
                .then_says(&in_text("Rome"))
                .then_says(&in_text("Paris")),
        ),
        (
            "an unfinished call in the text",
            Turn::says("<tool_call>{\"name\":\"f\",").finish("length"),
        ),
    ];
    for (api, protocol, path, member) in APIS {
        for (what, turn) in &turns {
            let server = Server::of_turns(vec![turn.clone()]);
            let service = Service::new(&["--base-url", &server.url, "--api", api]);
            let [whole, streamed] =
                [FEW, MANY].map(|most| answered(&service, path, &request(protocol, member, most)));
            assert_eq!(whole, streamed, "{api}: {what}");
            assert_eq!(whole.0, 200, "{api}: {what}: {}", whole.1);
            assert_eq!(streams(&server), [false, true], "{api}: {what}");
        }
    }
}

#[test]
fn a_stream_in_place_of_a_requested_whole_answer_is_read() {
    for (api, protocol, path, member) in APIS {
        let turn = Turn::says("Wait.").calls("call_1", "f", &json!({"city": "Rome"}));
        let body = turn.stream(protocol);
        let server =
            provider(move |_, _, stream| answer(stream, "200 OK", SSE, body.as_bytes(), None));
        let service = Service::new(&["--base-url", &server.url, "--api", api]);
        let [whole, streamed] =
            [FEW, MANY].map(|most| answered(&service, path, &request(protocol, member, most)));
        assert_eq!(whole, streamed, "{api}");
        assert!(whole.1.to_string().contains("Rome"), "{api}: {}", whole.1);
        assert_eq!(streams(&server), [false, true], "{api}");
    }
}

#[test]
fn a_failure_is_the_same_whether_a_short_answer_is_requested_whole_or_streamed() {
    type Case = (&'static str, &'static str, &'static str, Option<usize>);
    const CASES: [Case; 9] = [
        (
            "400 Bad",
            "",
            r#"{"error":{"message":"no such thing"}}"#,
            None,
        ),
        ("401 Key", "", r#"{"error":{"message":"wrong key"}}"#, None),
        (
            "429 Slow",
            "retry-after: 0\r\n",
            r#"{"error":{"message":"slow down"}}"#,
            None,
        ),
        ("500 Oops", "", "{}", None),
        ("503 Busy", "retry-after: 0\r\n", "busy", None),
        (
            "200 OK",
            JSON,
            r#"{"error":{"message":"overloaded","code":"overloaded"}}"#,
            None,
        ),
        ("200 OK", JSON, "", None),
        (
            "200 OK",
            "content-type: text/html\r\n",
            "<html>a gateway</html>",
            None,
        ),
        // The connection is lost before the first event.
        ("200 OK", JSON, "", Some(0)),
    ];
    for (api, protocol, path, member) in APIS {
        for (status, headers, body, end) in CASES {
            let server =
                provider(move |_, _, stream| answer(stream, status, headers, body.as_bytes(), end));
            let service = Service::new(&["--base-url", &server.url, "--api", api]);
            let mut asked = vec![];
            let [whole, streamed] = [FEW, MANY].map(|most| {
                let answered = answered(&service, path, &request(protocol, member, most));
                asked.push(streams(&server).len());
                answered
            });
            assert_eq!(whole, streamed, "{api}: {status} {body}");
            assert!(whole.0 >= 400, "{api}: {status} {body}: {}", whole.1);
            assert_eq!(asked[0], asked[1], "{api}: {status} {body}");
        }
    }
}

#[test]
fn a_fallback_answers_where_a_request_for_a_short_answer_fails() {
    let good = Server::of_turns(vec![Turn::says("rescued")]);
    for status in ["503 Busy", "500 Oops"] {
        let bad = provider(move |_, _, stream| answer(stream, status, "", b"{}", None));
        let folder = Scratch::new();
        std::fs::create_dir_all(folder.path("toolpipe")).unwrap();
        let config = format!(
            "[models.m]\nbase_url = {:?}\nfallbacks = [\"good\"]\n[models.good]\nbase_url = {:?}\n",
            bad.url, good.url
        );
        folder.write("toolpipe/config.toml", &config);
        let variable = format!("XDG_CONFIG_HOME={}", folder.path("").display());
        let service = Service::with_variables(&[&variable], &[]);
        let (_, protocol, path, member) = APIS[0];
        let [whole, streamed] =
            [FEW, MANY].map(|most| answered(&service, path, &request(protocol, member, most)));
        assert_eq!(whole, streamed, "{status}");
        assert!(whole.1.to_string().contains("rescued"), "{}", whole.1);
        assert_eq!(streams(&bad), [false, true]);
        assert_eq!(streams(&good), [false, true]);
    }
}

#[test]
fn a_provider_that_only_streams_is_asked_once_for_a_whole_answer() {
    let server = provider(|_, request, stream| {
        if request.body["stream"] == true {
            return stream.answer(request, &Turn::says("streamed"));
        }
        let refusal = br#"{"error":{"message":"this model only supports stream mode"}}"#;
        answer(stream, "400 Bad Request", JSON, refusal, None)
    });
    let service = Service::new(&["--base-url", &server.url]);
    let (_, protocol, path, member) = APIS[0];
    for asked in [&[false, true][..], &[true]] {
        let (status, body) = answered(&service, path, &request(protocol, member, FEW));
        assert_eq!(status, 200, "{body}");
        assert_eq!(body["choices"][0]["message"]["content"], "streamed");
        assert_eq!(streams(&server), asked);
    }
}

#[test]
fn an_answer_that_may_be_long_or_is_converted_or_followed_is_streamed() {
    let sessions = Scratch::new();
    let sessions = sessions.path("").display().to_string();
    let tape = Scratch::new();
    let tape = tape.path("t.tape").display().to_string();
    let chat = |members: Value| {
        let mut body = request(Protocol::Chat, "max_tokens", FEW);
        body.as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        body
    };
    let few = || chat(json!({}));
    for (what, options, path, body) in [
        (
            "no limit",
            &[][..],
            APIS[0].2,
            chat(json!({"max_tokens": null})),
        ),
        (
            "a name that the server may ignore",
            &[],
            APIS[0].2,
            chat(json!({"max_tokens": null, "max_completion_tokens": 9})),
        ),
        ("a stream", &[], APIS[0].2, chat(json!({"stream": true}))),
        ("events", &[], "/v1/events", few()),
        (
            "another API",
            &[],
            APIS[2].2,
            request(Protocol::Messages, "max_tokens", FEW),
        ),
        (
            "tools in the prompt",
            &["--tools-mode", "tag"],
            APIS[0].2,
            few(),
        ),
        (
            "a session",
            &["--api", "openai-responses", "--sessions", &sessions],
            APIS[1].2,
            request(Protocol::Responses, APIS[1].3, FEW),
        ),
        (
            "a tape",
            &["--tape", &tape, "--tape-mode", "record"],
            APIS[0].2,
            few(),
        ),
    ] {
        let server = Server::of_turns(vec![Turn::says("hi")]);
        let service = Service::new(&[&["--base-url", &server.url], options].concat());
        assert_eq!(service.post(path, &body.to_string()).status, 200, "{what}");
        assert_eq!(streams(&server), [true], "{what}");
    }
    // The limit of the options counts as that of a request.
    let server = Server::of_turns(vec![Turn::says("hi")]);
    let service = Service::new(&["--base-url", &server.url, "--max-tokens", "512"]);
    service.post(APIS[0].2, &chat(json!({"max_tokens": null})).to_string());
    assert_eq!(streams(&server), [false]);
}
