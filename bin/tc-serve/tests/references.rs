//! What a request refers to: ids of the client's own API stay the provider's, and a reference that
//! nobody here can know is an error.

#![allow(clippy::unwrap_used, reason = "it is how a test fails")]

use crate::service::{self, SSE, Service, answer};
use serde_json::{Value, json};
use testkit::{Protocol, Turn};

const IDS: [&str; 4] = ["rs_up", "msg_up", "rs_bare", "fc_up"];

/// A stream of OpenAI Responses: reasoning, a text, reasoning that only its id can name, and a
/// call.
fn responses(id: &str) -> Vec<u8> {
    let reasoning = json!({"type": "reasoning", "id": "rs_up", "summary": [{"type": "summary_text", "text": "Hmm."}],
        "encrypted_content": "e"});
    let bare = json!({"type": "reasoning", "id": "rs_bare", "summary": []});
    let text = json!({"type": "message", "id": "msg_up", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "Hm.", "annotations": []}]});
    let call = json!({"type": "function_call", "id": "fc_up", "call_id": "call_up", "name": "f",
        "arguments": "{\"a\":1}", "status": "completed"});
    let open = |item: &Value, member: &str, empty: Value| {
        let mut item = item.clone();
        item[member] = empty;
        item["status"] = "in_progress".into();
        item
    };
    let events = [
        json!({"type": "response.created", "response": {"id": id, "model": "m", "status": "in_progress", "output": []}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": open(&reasoning, "summary", json!([]))}),
        json!({"type": "response.reasoning_summary_text.delta", "item_id": "rs_up", "output_index": 0, "summary_index": 0,
            "delta": "Hmm."}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": reasoning}),
        json!({"type": "response.output_item.added", "output_index": 1, "item": open(&text, "content", json!([]))}),
        json!({"type": "response.output_text.delta", "item_id": "msg_up", "output_index": 1, "delta": "Hm."}),
        json!({"type": "response.output_item.done", "output_index": 1, "item": text}),
        json!({"type": "response.output_item.added", "output_index": 2, "item": bare}),
        json!({"type": "response.output_item.done", "output_index": 2, "item": bare}),
        json!({"type": "response.output_item.added", "output_index": 3, "item": open(&call, "arguments", "".into())}),
        json!({"type": "response.function_call_arguments.delta", "item_id": "fc_up", "output_index": 3, "delta": "{\"a\":1}"}),
        json!({"type": "response.output_item.done", "output_index": 3, "item": call}),
        json!({"type": "response.completed", "response": {"id": id, "status": "completed", "output": [reasoning, text, bare, call],
            "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}}}),
    ];
    events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect::<String>()
        .into_bytes()
}

fn chat(id: &str) -> Vec<u8> {
    Turn::says("Hi").id(id).stream(Protocol::Chat).into_bytes()
}

fn messages(id: &str) -> Vec<u8> {
    Turn::says("Hi")
        .id(id)
        .stream(Protocol::Messages)
        .into_bytes()
}

/// The JSON of the events of a stream, in the chunks of its body.
fn events(body: &str) -> Vec<Value> {
    body.lines()
        .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
        .collect()
}

fn parsed(body: &str) -> Value {
    serde_json::from_str(body).unwrap_or_else(|_| panic!("{body}"))
}

/// A client sees what of its request does not reach the model.
#[test]
fn what_a_provider_cannot_get_is_in_a_header_of_the_answer() {
    for (api, answered, body, notes) in [
        (
            "anthropic",
            messages("msg_up"),
            json!({"n": 2, "response_format": {"type": "json_object"}}),
            &["n", "response_format"][..],
        ),
        (
            "responses",
            responses("resp_up"),
            json!({"n": 2, "stop": ["END"]}),
            &["n", "stop"],
        ),
        (
            "openai-chat",
            chat("c"),
            json!({"n": 2, "stop": ["END"]}),
            &[],
        ),
    ] {
        let provider =
            service::provider(move |_, _, stream| answer(stream, "200 OK", SSE, &answered, None));
        let service = Service::new(&["--api", api, "--base-url", &provider.url]);
        for streams in [false, true] {
            let mut body = body.clone();
            body["model"] = "m".into();
            body["stream"] = streams.into();
            body["messages"] = json!([{"role": "user", "content": "hi"}]);
            let (head, text) = service.reply("POST", "/v1/chat/completions", &body.to_string());
            assert!(head.contains(" 200 "), "{head}{text}");
            let header = head
                .lines()
                .find_map(|line| line.strip_prefix("x-toolpipe-notes: "));
            let shown = header.unwrap_or_default();
            let has = |name: &&str| shown.split([' ', ',', ';']).any(|word| word == *name);
            assert!(notes.iter().all(has), "{api}: {head}");
            assert_eq!(header.is_some(), !notes.is_empty(), "{api}: {head}");
        }
    }
}

#[test]
fn a_client_refers_to_an_answer_by_the_id_that_the_provider_gave() {
    let provider = service::provider(|number, _, stream| {
        answer(
            stream,
            "200 OK",
            SSE,
            &responses(&format!("resp_up{number}")),
            None,
        )
    });
    let service = Service::new(&["--api", "responses", "--base-url", &provider.url]);
    let ids = |output: &Value| -> Vec<String> {
        output
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let (_, whole) = service.reply("POST", "/v1/responses", r#"{"model":"m","input":"hi"}"#);
    let whole = parsed(&whole);
    assert_eq!(whole["id"], "resp_up0");
    assert_eq!(ids(&whole["output"]), IDS);
    assert_eq!(whole["output"][0]["encrypted_content"], "e");
    assert_eq!(whole["output"][3]["call_id"], "call_up");
    assert_eq!(whole["store"], true);
    assert!(
        whole["completed_at"].as_u64() >= whole["created_at"].as_u64(),
        "{whole}"
    );

    let second = r#"{"model":"m","stream":true,"previous_response_id":"resp_up0","input":[
        {"type":"item_reference","id":"rs_up"},{"type":"function_call_output","call_id":"call_up","output":"2"}]}"#;
    let (head, stream) = service.reply("POST", "/v1/responses", second);
    assert!(head.starts_with("http/1.1 200"), "{head}");
    let events = events(&stream);
    for event in &events {
        match event["type"].as_str().unwrap() {
            "response.created" | "response.in_progress" => {
                assert_eq!(event["response"]["id"], "resp_up1")
            }
            "response.completed" => {
                assert_eq!(event["response"]["id"], "resp_up1");
                assert_eq!(event["response"]["output"], whole["output"]);
            }
            "response.output_item.added" | "response.output_item.done" => {
                let want = IDS[usize::try_from(event["output_index"].as_u64().unwrap()).unwrap()];
                assert_eq!(event["item"]["id"], want, "{event}");
            }
            "response.output_text.delta" => assert_eq!(event["item_id"], "msg_up"),
            "response.function_call_arguments.delta" => assert_eq!(event["item_id"], "fc_up"),
            _ => {}
        }
    }
    let asked = provider.asked();
    // Whether the provider stores the first answer is not decided here.
    assert_eq!(asked[0].body.get("store"), None);
    assert_eq!(asked[1].body["previous_response_id"], "resp_up0");
    assert_eq!(asked[1].body["input"], parsed(second)["input"]);
    let (_, alone) = service.reply(
        "POST",
        "/v1/responses",
        r#"{"model":"m","previous_response_id":"resp_up1"}"#,
    );
    assert_eq!(parsed(&alone)["id"], "resp_up2");
    assert_eq!(provider.asked()[0].body.get("input"), None);
}

#[test]
fn ids_of_chat_completions_and_messages_stay_too_and_those_of_another_api_do_not() {
    let provider = service::provider(|_, request, stream| {
        let body = if request.line.contains("/messages") {
            messages("msg_up")
        } else {
            chat("chatcmpl-up")
        };
        answer(stream, "200 OK", SSE, &body, None)
    });
    let request = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}"#;
    for api in ["openai-chat", "anthropic"] {
        let service = Service::new(&["--api", api, "--base-url", &provider.url]);
        for (path, front, own) in [
            ("/v1/chat/completions", "openai-chat", "chatcmpl-up"),
            ("/v1/messages", "anthropic", "msg_up"),
        ] {
            let (head, whole) = service.reply("POST", path, request);
            let id = parsed(&whole)["id"].as_str().unwrap().to_owned();
            let (_, stream) =
                service.reply("POST", path, &request.replacen('{', "{\"stream\":true,", 1));
            let first = &events(&stream)[0];
            let streamed = first
                .pointer("/message/id")
                .or(first.get("id"))
                .unwrap()
                .as_str()
                .unwrap();
            if api == front {
                assert_eq!((id.as_str(), streamed), (own, own));
            } else {
                let made = head
                    .lines()
                    .find_map(|line| line.strip_prefix("x-request-id: "))
                    .unwrap();
                assert!(
                    id.ends_with(made) && !streamed.ends_with("up"),
                    "{id} {streamed}"
                );
            }
        }
    }
}

#[test]
fn an_error_of_the_clients_own_api_comes_back_as_it_is() {
    let error = json!({"error": {"message": "Previous response with id 'resp_1' not found.", "type": "invalid_request_error",
        "param": "previous_response_id", "code": "previous_response_not_found"}});
    let sent = error.to_string();
    let provider = service::provider(move |_, _, stream| {
        answer(
            stream,
            "400 Bad Request",
            "content-type: application/json\r\n",
            sent.as_bytes(),
            None,
        )
    });
    let service = Service::new(&["--api", "responses", "--base-url", &provider.url]);
    for streams in [true, false] {
        let body = json!({"model": "m", "stream": streams, "previous_response_id": "resp_1", "input": "x"}).to_string();
        let (head, body) = service.reply("POST", "/v1/responses", &body);
        assert!(head.starts_with("http/1.1 400"), "{head}");
        assert_eq!(parsed(&body), error);
    }
    let lost = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "Gone.",
        "details": {"error_code": "thread_already_continued"}}});
    let sent = lost.to_string();
    let provider = service::provider(move |_, _, stream| {
        answer(
            stream,
            "400 Bad Request",
            "content-type: application/json\r\n",
            sent.as_bytes(),
            None,
        )
    });
    let service = Service::new(&["--api", "anthropic", "--base-url", &provider.url]);
    let body = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}"#;
    assert_eq!(parsed(&service.reply("POST", "/v1/messages", body).1), lost);
}

#[test]
fn what_nobody_here_can_know_is_an_error_and_nobody_is_asked() {
    let provider =
        service::provider(|_, _, stream| answer(stream, "200 OK", SSE, &chat("c"), None));
    let result = r#"{"role":"tool","tool_call_id":"a","content":"1"}"#;
    let block =
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]}"#;
    let output = r#"{"type":"function_call_output","call_id":"a","output":"1"}"#;
    let thread = r#""thread":{"type":"continue","previous_message_id":"msg_1"}"#;
    for options in [&["--api", "openai-chat"][..], &["--api", "anthropic"][..]] {
        let service = Service::new(&[options, &["--base-url", &provider.url]].concat());
        for (path, body, member, code) in [
            (
                "/v1/chat/completions",
                format!(r#"{{"messages":[{result}]}}"#),
                "messages",
                "invalid_request_error",
            ),
            (
                "/v1/events",
                format!(r#"{{"messages":[{result}]}}"#),
                "messages",
                "invalid_request_error",
            ),
            (
                "/v1/chat/completions",
                r#"{"messages":[]}"#.to_owned(),
                "messages",
                "invalid_request_error",
            ),
            (
                "/v1/responses",
                format!(r#"{{"input":[{output}]}}"#),
                "input",
                "invalid_request_error",
            ),
            (
                "/v1/responses",
                format!(r#"{{"previous_response_id":"resp_1","input":[{output}]}}"#),
                "previous_response_id",
                "previous_response_not_found",
            ),
            (
                "/v1/messages",
                format!(r#"{{"messages":[{block}]}}"#),
                "messages",
                "-",
            ),
            (
                "/v1/messages",
                format!(r#"{{{thread},"messages":[{block}]}}"#),
                "thread",
                "thread_not_found",
            ),
            (
                "/v1/messages/count_tokens",
                format!(r#"{{"messages":[{block}]}}"#),
                "messages",
                "-",
            ),
        ] {
            let (head, answer) = service.reply("POST", path, &body);
            assert!(
                head.starts_with("http/1.1 400"),
                "{path} {body}: {head} {answer}"
            );
            let error = &parsed(&answer)["error"];
            assert!(
                error["message"]
                    .as_str()
                    .unwrap()
                    .starts_with(&format!("{member}: ")),
                "{error}"
            );
            assert_eq!(error["type"], "invalid_request_error");
            if path.contains("messages") {
                let details = error["details"]["error_code"].as_str().unwrap_or("-");
                assert_eq!(details, code, "{error}");
            } else {
                assert_eq!(
                    (&error["param"], &error["code"]),
                    (&json!(member), &json!(code)),
                    "{error}"
                );
            }
        }
    }
    assert!(provider.asked().is_empty());
}
