//! How tc-serve asks its provider: attempts, connections, models, tools in the prompt, recorded
//! answers.

#![allow(clippy::unwrap_used, reason = "it is how a test fails")]

use crate::service::{JSON, PATIENCE, SSE, Server, Service, answer, provider};
use serde_json::Value;
use std::io::{Read, Write};
use std::sync::mpsc::channel;
use testkit::{Connection, Protocol, Turn};

const HI: &str = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;

fn text(text: &str) -> Vec<u8> {
    Turn::says(text).stream(Protocol::Chat).into_bytes()
}

fn content(body: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap();
    body["choices"][0]["message"]["content"]
        .as_str()
        .unwrap_or_else(|| panic!("{body}"))
        .to_owned()
}

#[test]
fn a_request_is_sent_again_until_something_of_an_answer_came() {
    let provider = provider(|number, _, stream| match number {
        0 => answer(stream, "503 Busy", "retry-after: 0\r\n", b"{}", None),
        1 => answer(stream, "200 OK", SSE, b"data: [DO", Some(0)),
        _ => answer(stream, "200 OK", SSE, &text("at last"), None),
    });
    let service = Service::new(&["--base-url", &provider.url, "--retries", "2"]);
    let (head, body) = service.reply("POST", "/v1/chat/completions", HI);
    assert!(head.starts_with("http/1.1 200"), "{head}");
    assert_eq!(
        (content(&body).as_str(), provider.asked().len()),
        ("at last", 3)
    );
}

/// How often a provider is asked for one request of a client, by the client's header and by what
/// the provider does: who sends a failed request again is one layer.
#[test]
fn a_client_that_retries_is_not_retried_for_and_any_other_once_after_a_lost_connection() {
    type Case = (&'static str, fn(&mut Connection) -> bool);
    const FAILURES: [Case; 8] = [
        ("lost", |_| false),
        ("cut", |stream| {
            answer(stream, "200 OK", SSE, b"data: [DO", Some(9))
        }),
        ("429", |stream| {
            answer(stream, "429 Slow", "retry-after: 0\r\n", b"{}", None)
        }),
        ("500", |stream| {
            answer(stream, "500 Broken", "", b"{}", None)
        }),
        ("501", |stream| {
            answer(stream, "501 Not Implemented", "", b"{}", None)
        }),
        ("503", |stream| {
            answer(stream, "503 Busy", "retry-after: 0\r\n", b"{}", None)
        }),
        ("529", |stream| {
            answer(stream, "529 Overloaded", "", b"{}", None)
        }),
        ("400", |stream| {
            answer(stream, "400 Bad Request", "", b"{}", None)
        }),
    ];
    const ITSELF: [usize; 8] = [1; 8];
    const OTHER: [usize; 8] = [2, 2, 1, 1, 1, 1, 1, 1];
    for (client, options, asked) in [
        ("x-stainless-retry-count: 0", &[][..], ITSELF),
        ("X-Stainless-Lang: python", &[], ITSELF),
        (
            "user-agent: codex_cli_rs/0.144.6 (Ubuntu 24.4.0; x86_64) xterm",
            &[],
            ITSELF,
        ),
        ("user-agent: codex_exec/0.144.6", &[], ITSELF),
        (
            "user-agent: claude-cli/2.1.220 (external, cli)",
            &[],
            ITSELF,
        ),
        (
            "user-agent: opencode/1.18.31 ai-sdk/provider-utils/4.0.40 runtime/bun/1.3.14",
            &[],
            ITSELF,
        ),
        (
            "user-agent: my-app ai-sdk/openai-compatible/2.0.47",
            &[],
            ITSELF,
        ),
        (
            "user-agent: ai/7.0.173 ai-sdk-provider-utils/5.0.81 node.js/22",
            &[],
            ITSELF,
        ),
        ("user-agent: toolpipe/0.1.0", &[], ITSELF),
        ("user-agent: curl/8.5.0", &[], OTHER),
        ("accept: */*", &[], OTHER),
        (
            "user-agent: curl/8.5.0",
            &["--retries", "0"],
            [1, 1, 1, 1, 2, 1, 1, 1],
        ),
        (
            "x-stainless-retry-count: 1",
            &["--retries", "1"],
            [2, 2, 2, 2, 3, 2, 2, 1],
        ),
    ] {
        for ((what, fail), asked) in FAILURES.into_iter().zip(asked) {
            let provider = provider(move |_, _, stream| fail(stream));
            let service = Service::new(&[&["--base-url", &provider.url], options].concat());
            let (head, _) = service.reply_as(client, "POST", "/v1/chat/completions", HI);
            assert!(
                head.starts_with("http/1.1 4") || head.starts_with("http/1.1 5"),
                "{client}: {what}: {head}"
            );
            assert_eq!(
                provider.asked().len(),
                asked,
                "{client} {options:?}: {what}"
            );
        }
    }
}

#[test]
fn a_clients_model_is_one_segment_of_the_url_or_is_refused() {
    let provider = provider(|_, request, stream| {
        stream.answer(request, &Turn::says("hi"));
        false
    });
    let service = Service::new(&[
        "--base-url",
        &provider.url,
        "--api",
        "gemini",
        "--retries",
        "0",
    ]);
    let ask = |model: &str| {
        let (head, body) = service.reply(
            "POST",
            "/v1/chat/completions",
            &HI.replacen("\"m\"", &format!("{model:?}"), 1),
        );
        (head.lines().next().unwrap_or_default().to_owned(), body)
    };
    let (line, _) = ask("models/a/b?x=#:c");
    assert_eq!(line, "http/1.1 200 ok");
    let asked = provider.asked();
    assert_eq!(
        asked[0].line,
        "POST /v1beta/models/a%2Fb%3Fx%3D%23%3Ac:streamGenerateContent?alt=sse HTTP/1.1"
    );
    for model in [
        "../../admin/keys?x=#",
        "..",
        "tunedModels/..",
        "%2e%2e",
        "..%2f..%2fadmin",
    ] {
        let (line, body) = ask(model);
        assert!(
            line == "http/1.1 400 bad request" && body.contains("not the name of a model"),
            "{model}: {line} {body}"
        );
    }
    assert!(provider.asked().is_empty());
}

#[test]
fn nothing_is_sent_again_after_content() {
    let frames = Turn::says("begun, and more").frames(Protocol::Chat);
    let (begun, first) = (frames.concat(), frames[..2].concat().len());
    let (has_read, wait) = channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let provider = provider(move |_, _, stream| {
        let is_open = answer(stream, "200 OK", SSE, begun.as_bytes(), Some(first));
        let _ = wait.lock().unwrap().recv_timeout(PATIENCE);
        is_open
    });
    let service = Service::new(&["--base-url", &provider.url]);
    let request = HI.replacen('{', "{\"stream\":true,", 1);
    let mut client = service.send("POST", "/v1/chat/completions", JSON, &request);
    client.until("begun, and more");
    has_read.send(()).unwrap();
    let body = client.rest().body;
    assert!(
        body.contains("\"error\"") && !body.contains("[DONE]"),
        "{body}"
    );
    assert_eq!(provider.asked().len(), 1);
}

#[test]
fn the_status_of_the_provider_and_the_wait_that_it_asks_for_are_passed_on() {
    let provider = provider(|_, _, stream| {
        answer(
            stream,
            "429 Slow",
            "retry-after: 3600\r\n",
            b"{\"error\":{\"message\":\"slow down\"}}",
            None,
        )
    });
    let service = Service::new(&["--base-url", &provider.url]);
    for (path, request) in [
        ("/v1/chat/completions", HI),
        ("/v1/messages", HI),
        ("/v1/responses", r#"{"model":"m","input":"hi"}"#),
    ] {
        let (head, body) = service.reply("POST", path, request);
        assert!(
            head.starts_with("http/1.1 429") && head.contains("retry-after: 3600"),
            "{path} {head}"
        );
        assert!(body.contains("slow down"), "{path} {body}");
    }
    assert_eq!(provider.asked().len(), 3, "an hour is too long to wait for");
}

#[test]
fn requests_one_after_the_other_share_a_connection() {
    let provider = provider(|_, _, stream| {
        // The end of the body follows the provider's end mark in a packet of its own.
        let bytes = text("hi");
        let head = format!(
            "HTTP/1.1 200 OK\r\n{SSE}transfer-encoding: chunked\r\n\r\n{:x}\r\n",
            bytes.len()
        );
        stream.set_nodelay(true).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&bytes).unwrap();
        stream.write_all(b"\r\n").unwrap();
        std::thread::yield_now();
        stream.write_all(b"0\r\n\r\n").is_ok()
    });
    let service = Service::new(&["--base-url", &provider.url]);
    const REQUESTS: usize = 20;
    for _ in 0..REQUESTS {
        assert_eq!(
            content(&service.reply("POST", "/v1/chat/completions", HI).1),
            "hi"
        );
    }
    let connections = provider.connections();
    // The next request may come before the end of the body has.
    assert!(connections < REQUESTS / 2, "{connections} connections");
}

#[test]
fn a_client_that_leaves_before_the_first_byte_closes_the_providers_connection() {
    let (send, closed) = channel();
    let send = std::sync::Mutex::new(send);
    let provider = provider(move |_, _, stream| {
        let read = stream.read(&mut [0; 1]);
        send.lock()
            .unwrap()
            .send(matches!(read, Ok(0) | Err(_)))
            .unwrap();
        false
    });
    let service = Service::new(&["--base-url", &provider.url]);
    let client = service.send("POST", "/v1/chat/completions", JSON, HI);
    provider.requests.recv_timeout(PATIENCE).unwrap();
    drop(client);
    assert!(closed.recv_timeout(PATIENCE).unwrap());
}

#[test]
fn the_clients_model_is_asked_unless_another_is_named() {
    for (options, model) in [(&[][..], "m"), (&["--model", "mine"], "mine")] {
        let provider = provider(|_, _, stream| answer(stream, "200 OK", SSE, &text("hi"), None));
        let service = Service::new(&[&["--base-url", &provider.url], options].concat());
        service.reply("POST", "/v1/chat/completions", HI);
        assert_eq!(provider.asked()[0].body["model"], model);
    }
}

#[test]
fn a_server_of_openais_api_gets_texts_as_results_and_the_most_tokens_by_the_older_name() {
    let provider = provider(|_, _, stream| answer(stream, "200 OK", SSE, &text("hi"), None));
    let service = Service::new(&["--base-url", &provider.url]);
    let body = r#"{"model":"m","max_tokens":9,"messages":[
        {"role":"user","content":"Look."},
        {"role":"assistant","content":[{"type":"tool_use","id":"a","name":"read","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[
            {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}]}]}"#;
    service.reply("POST", "/v1/messages", body);
    let asked = &provider.asked()[0].body;
    assert_eq!(
        (&asked["max_tokens"], asked.get("max_completion_tokens")),
        (&Value::from(9), None),
        "{asked}"
    );
    let messages = asked["messages"].as_array().unwrap();
    assert!(
        messages[2]["role"] == "tool" && messages[2]["content"].is_string(),
        "{asked}"
    );
    assert_eq!(
        (&messages[3]["role"], &messages[3]["content"][1]["type"]),
        (&"user".into(), &"image_url".into())
    );
}

#[test]
fn the_models_are_those_of_the_provider() {
    let provider = provider(|_, request, stream| {
        assert_eq!(request.line, "GET /v1/models HTTP/1.1");
        answer(
            stream,
            "200 OK",
            "",
            br#"{"data":[{"id":"one"},{"id":"two"}]}"#,
            None,
        )
    });
    let service = Service::new(&["--base-url", &provider.url]);
    let (_, body) = service.reply("GET", "/v1/models", "");
    assert!(
        body.contains("\"one\"") && body.contains("\"two\""),
        "{body}"
    );
}

#[test]
fn a_parameter_that_the_provider_lacks_is_left_out_and_named() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fixtures/streams/anthropic/llamacpp-text.sse"
    );
    let answered = std::fs::read(path).unwrap();
    let provider = provider(move |_, _, stream| answer(stream, "200 OK", SSE, &answered, None));
    let options = [
        "--api",
        "anthropic",
        "--base-url",
        &provider.url,
        "--param",
        "top_p=0.5",
    ];
    let service = Service::new(&options);
    let request = HI.replacen(
        '{',
        "{\"logit_bias\":{\"5\":1},\"temperature\":0.25,\"top_p\":1,",
        1,
    );
    let (_, events) = service.reply("POST", "/v1/events", &request);
    assert!(
        events.contains("parameter_left_out") && events.contains("logit_bias"),
        "{events}"
    );
    let asked = &provider.asked()[0].body;
    assert!(asked.get("logit_bias").is_none(), "{asked}");
    assert_eq!(
        (asked["temperature"].as_f64(), asked["top_p"].as_f64()),
        (Some(0.25), Some(0.5)),
        "{asked}"
    );
}

const WITH_TOOL: &str = r#"{"model":"m","messages":[{"role":"user","content":"weather?"}],"tools":[{"type":"function","function":{"name":"get_weather","description":"Weather of a city","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}]}"#;

/// A call in the dialect tool-name-tag.
const CALL: &str = r#"<tool name="get_weather">{"city":"Paris"}</tool>"#;

#[test]
fn tools_go_into_the_prompt_and_calls_come_back_as_calls() {
    let provider = provider(|_, _, stream| answer(stream, "200 OK", SSE, &text(CALL), None));
    let service = Service::new(&["--base-url", &provider.url, "--tools-mode", "tag"]);
    let (_, body) = service.reply("POST", "/v1/chat/completions", WITH_TOOL);
    let asked = &provider.asked()[0].body;
    assert!(asked.get("tools").is_none(), "{asked}");
    assert!(
        asked["messages"][0]
            .to_string()
            .contains("Weather of a city"),
        "{asked}"
    );
    let body: Value = serde_json::from_str(&body).unwrap();
    let call = &body["choices"][0]["message"]["tool_calls"][0]["function"];
    assert_eq!(
        (call["name"].as_str(), call["arguments"].as_str()),
        (Some("get_weather"), Some(r#"{"city":"Paris"}"#))
    );
    assert_eq!(body["choices"][0]["finish_reason"], "tool_calls");
}

#[test]
fn auto_remembers_that_a_model_refuses_tools() {
    let provider = provider(|_, request, stream| {
        if request.line.starts_with("GET") {
            return answer(stream, "404 Not Found", "", b"{}", None);
        }
        if request.body.get("tools").is_some() {
            let refusal = br#"{"error":{"message":"this model does not support tools"}}"#;
            return answer(stream, "400 Bad Request", "", refusal, None);
        }
        answer(stream, "200 OK", SSE, &text(CALL), None)
    });
    let service = Service::new(&[
        "--base-url",
        &provider.url,
        "--tools-mode",
        "auto",
        "--capability-cache",
        "none",
    ]);
    for native in [1, 0, 0] {
        let (_, body) = service.reply("POST", "/v1/chat/completions", WITH_TOOL);
        assert!(body.contains("get_weather"), "{body}");
        let asked = provider.asked();
        assert_eq!(
            asked
                .iter()
                .filter(|request| request.body.get("tools").is_some())
                .count(),
            native,
            "{asked:?}"
        );
    }
}

#[test]
fn recorded_answers_take_the_place_of_a_provider_in_their_order_again_and_again() {
    let folder = format!(
        "{}/../../fixtures/streams/openai-chat",
        env!("CARGO_MANIFEST_DIR")
    );
    let first = format!("{folder}/byte-order-mark.sse");
    let second = format!("{folder}/content-in-parts.sse");
    let service = Service::new(&["--replay", &first, "--replay", &second]);
    let answers: Vec<String> = (0..4)
        .map(|_| content(&service.reply("POST", "/v1/chat/completions", HI).1))
        .collect();
    assert_eq!((&answers[0], &answers[1]), (&answers[2], &answers[3]));
    assert_ne!(answers[0], answers[1]);
    let (_, models) = service.reply("GET", "/v1/models", "");
    assert!(models.contains("\"replay\""), "{models}");
}

#[test]
fn a_recorded_tape_answers_the_same_request() {
    let tape = std::env::temp_dir().join(format!("tc-serve-asks-{}.tape", std::process::id()));
    let _ = std::fs::remove_file(&tape);
    let path = tape.to_str().unwrap();
    {
        let provider =
            provider(|_, _, stream| answer(stream, "200 OK", SSE, &text("recorded"), None));
        let service = Service::new(&[
            "--base-url",
            &provider.url,
            "--tape",
            path,
            "--tape-mode",
            "record",
        ]);
        assert_eq!(
            content(&service.reply("POST", "/v1/chat/completions", HI).1),
            "recorded"
        );
    }
    let service = Service::new(&["--tape", path]);
    assert_eq!(
        content(&service.reply("POST", "/v1/chat/completions", HI).1),
        "recorded"
    );
    let (head, body) = service.reply("POST", "/v1/chat/completions", &HI.replace("hi", "other"));
    std::fs::remove_file(&tape).unwrap();
    assert!(
        head.starts_with("http/1.1 4") || head.starts_with("http/1.1 5"),
        "{head}\n{body}"
    );
}

/// What a server answers by the beginning of the request's line, and what it does with any other
/// request.
type Known = &'static [(&'static str, &'static str, &'static str)];

fn known_server(known: Known, text_of_answer: &'static str) -> Server {
    Server::answering(move |_, request, stream| {
        match known
            .iter()
            .find(|(line, ..)| request.line.starts_with(&format!("{line} HTTP")))
        {
            Some((_, status, body)) => answer(stream, status, "", body.as_bytes(), None),
            None if request.line.contains("/chat/completions") => {
                answer(stream, "200 OK", SSE, &text(text_of_answer), None)
            }
            None => answer(stream, "404 Not Found", "", b"{}", None),
        }
    })
}

/// A template of Llama 3.1, and one of Qwen 2.5, by what they write around calls.
const LLAMA: &str = r#"{"chat_template":"<|start_header_id|>ipython<|end_header_id|> <|python_tag|>{{ name }}.call( <|eom_id|><|eot_id|>","build_info":"b1"}"#;
const QWEN: &str = r#"{"template":"{{ range .ToolCalls }}<tool_call>\n{\"name\": \"{{ .Function.Name }}\"}\n</tool_call>{{ end }}<|im_end|>"}"#;

/// A form that prose can have, too: JSON with text behind it is a call where the model's family
/// writes it.
#[test]
fn a_family_is_known_by_the_template_of_the_server_where_the_models_name_has_none() {
    const JSON_CALL: &str =
        "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\"}}\nThat was it.";
    const ALONE: &str = "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\"}}";
    const NOTHING: Known = &[];
    const LLAMA_CPP: Known = &[("GET /props", "200 OK", LLAMA)];
    const OLLAMA: Known = &[
        ("GET /api/version", "200 OK", r#"{"version":"0.13.5"}"#),
        ("POST /api/show", "200 OK", QWEN),
    ];
    const BROKEN: Known = &[
        ("GET /props", "500 Broken", "<html>"),
        ("GET /api/version", "200 OK", "["),
    ];
    for (known, model, written, is_call, questions) in [
        (NOTHING, "m", JSON_CALL, false, 2),
        (NOTHING, "m", ALONE, true, 2),
        (BROKEN, "m", ALONE, true, 2),
        (LLAMA_CPP, "m", JSON_CALL, true, 1),
        (LLAMA_CPP, "gpt-4o", JSON_CALL, true, 1),
        // The name goes before, and nobody is asked.
        (LLAMA_CPP, "qwen2.5-7b", JSON_CALL, false, 0),
        // Qwen writes its calls between markers, so that JSON is an answer.
        (OLLAMA, "m", ALONE, false, 3),
    ] {
        let provider = known_server(known, written);
        let service = Service::new(&["--base-url", &provider.url]);
        for again in [false, true] {
            let request = WITH_TOOL.replacen("\"m\"", &format!("{model:?}"), 1);
            let (_, body) = service.reply("POST", "/v1/chat/completions", &request);
            assert_eq!(
                body.contains("\"tool_calls\""),
                is_call,
                "{known:?} {model}: {body}"
            );
            // What is known is not asked again.
            assert_eq!(
                provider.asked().len(),
                if again { 1 } else { 1 + questions },
                "{known:?} {model}"
            );
        }
        // Without tools no text is a call.
        service.reply(
            "POST",
            "/v1/chat/completions",
            &HI.replacen("\"m\"", "\"other\"", 1),
        );
        assert_eq!(provider.asked().len(), 1);
    }
}

#[test]
fn a_server_is_asked_again_after_its_connection_was_lost_and_its_silence_delays_no_more_than_one_answer()
 {
    let provider = Server::answering(|number, request, stream| match (&*request.line, number) {
        ("GET /props HTTP/1.1", _) => answer(stream, "200 OK", "", LLAMA.as_bytes(), None),
        (_, 2) => false,
        _ => answer(stream, "200 OK", SSE, &text("hi"), None),
    });
    let service = Service::new(&["--base-url", &provider.url, "--retries", "0"]);
    let asks = |what: &str| {
        let (head, _) = service.reply("POST", "/v1/chat/completions", WITH_TOOL);
        let questions = provider
            .asked()
            .iter()
            .filter(|request| request.line.starts_with("GET /props"))
            .count();
        (head.starts_with(&format!("http/1.1 {what}")), questions)
    };
    assert_eq!(
        [asks("200"), asks("502"), asks("200"), asks("200")],
        [(true, 1), (true, 0), (true, 1), (true, 0)]
    );

    // It takes the question, and never answers.
    let provider = Server::answering(|_, request, stream| {
        if request.line.starts_with("GET") {
            let _ = stream.read(&mut [0; 1]);
            return false;
        }
        answer(stream, "200 OK", SSE, &text("hi"), None)
    });
    let service = Service::new(&["--base-url", &provider.url]);
    for asked in [2, 1] {
        let (_, body) = service.reply("POST", "/v1/chat/completions", WITH_TOOL);
        assert_eq!(
            (content(&body).as_str(), provider.asked().len()),
            ("hi", asked)
        );
    }
}

#[test]
fn tokens_are_counted_by_who_can_and_estimated_otherwise() {
    let request = r#"{"model":"m","system":"Be brief.","messages":[{"role":"user","content":"Rome?"}],
        "tools":[{"name":"f","description":"F","input_schema":{"type":"object"}}]}"#;
    let count = |service: &Service| {
        let (head, body) = service.reply_as(
            "anthropic-beta: b",
            "POST",
            "/v1/messages/count_tokens",
            request,
        );
        let body: Value = serde_json::from_str(&body).unwrap_or_else(|_| panic!("{head} {body}"));
        (
            body["input_tokens"].as_u64().expect("a number"),
            head.contains("x-toolpipe-estimate: true"),
        )
    };
    // Another of the same API.
    let anthropic = known_server(
        &[(
            "POST /v1/messages/count_tokens",
            "200 OK",
            r#"{"input_tokens":256}"#,
        )],
        "",
    );
    let service = Service::new(&[
        "--api",
        "anthropic",
        "--base-url",
        &anthropic.url,
        "--model",
        "mine",
    ]);
    assert_eq!(count(&service), (256, false));
    let asked = anthropic.asked();
    assert_eq!(
        (asked.len(), &asked[0].body["model"]),
        (1, &Value::from("mine")),
        "{asked:?}"
    );
    assert!(
        asked[0]
            .headers
            .contains(&("anthropic-beta".to_owned(), "b".to_owned())),
        "{asked:?}"
    );
    assert_eq!(asked[0].body["tools"][0]["name"], "f");

    let llama = known_server(
        &[
            ("GET /props", "200 OK", LLAMA),
            (
                "POST /apply-template",
                "200 OK",
                r#"{"prompt":"<|begin|>Be brief. Rome?"}"#,
            ),
            ("POST /tokenize", "200 OK", r#"{"tokens":[1,2,3,4,5]}"#),
        ],
        "",
    );
    let service = Service::new(&["--base-url", &llama.url]);
    assert_eq!(count(&service), (5, false));
    let asked = llama.asked();
    let template = &asked[1].body;
    assert_eq!(
        (
            &template["messages"][0]["content"],
            &template["tools"][0]["function"]["name"]
        ),
        (&"Be brief.".into(), &"f".into())
    );
    assert_eq!(asked[2].body["content"], "<|begin|>Be brief. Rome?");

    for (known, api) in [
        (&[][..], "openai-chat"),
        (&[], "anthropic"),
        (
            &[
                ("GET /props", "200 OK", LLAMA),
                ("POST /apply-template", "500 Broken", "{}"),
            ],
            "openai-chat",
        ),
    ] {
        let provider = known_server(known, "");
        let service = Service::new(&["--api", api, "--base-url", &provider.url]);
        let (tokens, is_estimate) = count(&service);
        assert!(is_estimate && (120..250).contains(&tokens), "{tokens}");
    }
}

/// What a server of chat completions sends beside text: log probabilities, annotations, an image,
/// times, the text that matched.
const DETAILED: &str = concat!(
    r#"data: {"id":"c","model":"up","system_fingerprint":"fp","choices":[{"index":0,"delta":{"role":"assistant","content":"Hello"},"logprobs":{"content":[{"token":"Hello","logprob":-0.5,"bytes":null,"top_logprobs":[]}]},"finish_reason":null}]}"#,
    "\n\n",
    r#"data: {"id":"c","model":"up","system_fingerprint":"fp","choices":[{"index":0,"delta":{"annotations":[{"type":"url_citation","url_citation":{"url":"https://a.example","title":"A","start_index":0,"end_index":5}}],"images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]},"finish_reason":null}]}"#,
    "\n\n",
    r#"data: {"id":"c","model":"up","system_fingerprint":"fp","choices":[{"index":0,"delta":{},"finish_reason":"stop","stop_reason":"END"}],"timings":{"prompt_ms":7},"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2,"cost":0.25}}"#,
    "\n\ndata: [DONE]\n\n"
);

#[test]
fn a_client_gets_what_the_providers_answer_has_beside_text_where_its_api_has_a_place() {
    let limits = "content-type: text/event-stream\r\nx-ratelimit-remaining-requests: 41\r\nset-cookie: a=b\r\n";
    let provider =
        provider(move |_, _, stream| answer(stream, "200 OK", limits, DETAILED.as_bytes(), None));
    let service = Service::new(&["--base-url", &provider.url]);
    let (head, body) = service.reply("POST", "/v1/chat/completions", HI);
    assert!(
        head.contains("x-ratelimit-remaining-requests: 41") && !head.contains("set-cookie"),
        "{head}"
    );
    let body: Value = serde_json::from_str(&body).unwrap();
    let at = |path: &str| {
        body.pointer(path)
            .unwrap_or_else(|| panic!("{path}: {body}"))
    };
    assert_eq!(
        (at("/model"), at("/system_fingerprint")),
        (&"up".into(), &"fp".into())
    );
    assert_eq!(
        (at("/choices/0/stop_reason"), at("/timings/prompt_ms")),
        (&"END".into(), &7.into())
    );
    assert_eq!(at("/choices/0/logprobs/content/0/token"), "Hello");
    assert_eq!(
        at("/choices/0/message/annotations/0/url_citation/title"),
        "A"
    );
    assert_eq!(
        at("/choices/0/message/images/0/image_url/url"),
        "data:image/png;base64,AAAA"
    );
    assert_eq!(at("/usage/cost"), &Value::from(0.25));

    let stream = HI.replacen(
        '{',
        r#"{"stream":true,"stream_options":{"include_usage":true},"#,
        1,
    );
    let (_, body) = service.reply("POST", "/v1/chat/completions", &stream);
    let chunks = body
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
    let chunks: Vec<Value> = chunks.collect();
    assert!(
        chunks
            .iter()
            .all(|chunk| chunk["system_fingerprint"] == "fp" && chunk["model"] == "up"),
        "{body}"
    );
    for member in [
        "\"token\":\"Hello\"",
        "url_citation",
        "base64,AAAA",
        "\"prompt_ms\":7",
        "\"cost\":0.25",
    ] {
        assert_eq!(
            body.matches(member).count(),
            if member == "url_citation" { 2 } else { 1 },
            "{member}: {body}"
        );
    }
    // openai-python puts the lists of deltas together by the index of their entries.
    for list in ["annotations", "images"] {
        let entries = chunks
            .iter()
            .filter_map(|chunk| chunk["choices"][0]["delta"][list].as_array())
            .flatten();
        assert_eq!(
            entries.map(|entry| &entry["index"]).collect::<Vec<_>>(),
            [&Value::from(0)],
            "{list}: {body}"
        );
    }
    let end = chunks
        .iter()
        .find(|chunk| chunk["choices"][0]["finish_reason"] == "stop")
        .unwrap();
    assert_eq!(end["choices"][0]["stop_reason"], "END");

    let (_, body) = service.reply("POST", "/v1/responses", r#"{"model":"m","input":"hi"}"#);
    let body: Value = serde_json::from_str(&body).unwrap();
    let part = &body["output"][0]["content"][0];
    assert_eq!(
        (
            &part["logprobs"][0]["token"],
            &part["annotations"][0]["url"]
        ),
        (&"Hello".into(), &"https://a.example".into())
    );
    let image = body["output"]
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["type"] == "image_generation_call")
        .unwrap();
    assert_eq!(
        (&image["result"], &body["model"]),
        (&"AAAA".into(), &"m".into())
    );
}

#[test]
fn a_failure_before_the_first_content_stays_a_status_whatever_else_has_come() {
    let body = concat!(
        r#"data: {"id":"c","system_fingerprint":"fp","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
        "\n\n",
        r#"data: {"error":{"message":"no room","code":503}}"#,
        "\n\n"
    );
    let provider =
        provider(move |_, _, stream| answer(stream, "200 OK", SSE, body.as_bytes(), None));
    let service = Service::new(&["--base-url", &provider.url, "--retries", "0"]);
    let stream = HI.replacen('{', r#"{"stream":true,"#, 1);
    let (head, _) = service.reply("POST", "/v1/chat/completions", &stream);
    assert!(!head.starts_with("http/1.1 200"), "{head}");
}

#[test]
fn no_call_gets_an_id_that_the_conversation_has() {
    let written = text(r#"<tool_call>{"name":"f","arguments":{}}</tool_call>"#);
    let native = Turn::calling("call_0", "f", &serde_json::json!({})).stream(Protocol::Chat);
    for (body, is_provider_own) in [(written, false), (native.into_bytes(), true)] {
        // Each answer has the same id, and so have the calls that the provider counts.
        let provider = provider(move |_, _, stream| answer(stream, "200 OK", SSE, &body, None));
        let service = Service::new(&["--base-url", &provider.url]);
        let mut messages = vec![serde_json::json!({"role": "user", "content": "hi"})];
        let mut ids = std::collections::HashSet::new();
        for turn in 0..4 {
            let request = serde_json::json!({"model": "m", "messages": messages,
                "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]});
            let (_, body) = service.reply("POST", "/v1/chat/completions", &request.to_string());
            let body: Value = serde_json::from_str(&body).unwrap();
            let message = body["choices"][0]["message"].clone();
            let id = message["tool_calls"][0]["id"]
                .as_str()
                .unwrap_or_else(|| panic!("{body}"))
                .to_owned();
            assert_eq!(
                id == "call_0",
                is_provider_own && turn == 0,
                "the provider's id stays where it is new"
            );
            messages.extend([
                message,
                serde_json::json!({"role": "tool", "tool_call_id": id, "content": "4"}),
            ]);
            assert!(ids.insert(id), "{messages:?}");
        }
    }
}
