//! The laws of reading clients' requests: what our own writers write is read back, an upstream of
//! the same API gets what the client sent, and no body makes a reader panic.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use json::ToolList;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use toolpipe_api::{
    Api, Conversation, InboundError, RequestOptions, TargetServer, inbound, request, request_event,
};

const APIS: [Api; 3] = [Api::OpenaiChat, Api::OpenaiResponses, Api::Anthropic];

/// The recorded bodies of clients.
static BODIES: LazyLock<Vec<(Api, Value)>> = LazyLock::new(|| {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/requests");
    let mut bodies = Vec::new();
    for api in APIS {
        for entry in std::fs::read_dir(root.join(api.name())).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "json") {
                // serde_json rejects bodies with half of a surrogate pair; `tests/inbound.rs` reads
                // those.
                let body = serde_json::from_slice(&std::fs::read(&path).unwrap()).ok();
                bodies.extend(body.map(|body| (path, api, body)));
            }
        }
    }
    bodies.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(bodies.len() > 20, "{} bodies", bodies.len());
    bodies
        .into_iter()
        .map(|(_, api, body)| (api, body))
        .collect()
});

/// What is asked for after a request was read.
fn options(request: &toolpipe_api::InboundRequest, from: Api, to: Api) -> RequestOptions {
    RequestOptions {
        model: request.model.clone().unwrap_or_default(),
        tools: request.tools.clone(),
        tool_choice: request.tool_choice.clone(),
        params: request
            .parameters_for(
                from,
                &TargetServer {
                    api: to,
                    url: to.base_url(),
                    model: "m",
                },
            )
            .0,
        stream: request.streams,
        ..RequestOptions::default()
    }
}

#[test]
fn an_upstream_of_the_same_api_gets_what_the_client_sent() {
    let mut compared = 0;
    for (api, body) in BODIES.iter().filter(|(api, _)| *api != Api::OpenaiChat) {
        let Ok(read) = inbound(*api, body.to_string().as_bytes()) else {
            continue;
        };
        let sent = request(*api, &read.conversation, &options(&read, *api, *api)).unwrap();
        let sent: Map<String, Value> = serde_json::from_str(&sent.body).unwrap();
        let client = body.as_object().unwrap();
        for (name, value) in client
            .iter()
            .filter(|(name, value)| *name != "model" && !value.is_null())
        {
            // Choices without tools, and lists without a tool, are rejected. Tools may be in the
            // input, too.
            let in_input = client
                .get("input")
                .and_then(|input| input.pointer("/0/tools"))
                .filter(|_| *name == "tool_choice");
            if *name != "tools" && *name != "tool_choice"
                || client
                    .get("tools")
                    .or(in_input)
                    .is_some_and(|t| t.as_array().is_some_and(|t| !t.is_empty()))
            {
                assert_eq!(
                    sent.get(name),
                    Some(value).filter(|v| **v != json!(false) || name != "stream"),
                    "{name} of {body}"
                );
                compared += 1;
            }
        }
        let names = [
            "system",
            "messages",
            "instructions",
            "input",
            "tools",
            "tool_choice",
        ];
        for name in names.iter().filter(|name| !client.contains_key(**name)) {
            assert_eq!(sent.get(*name), None, "{name} of {body}");
        }
    }
    assert!(compared > 30);
}

#[test]
fn a_question_after_the_conversation_is_sent() {
    let body = br#"{"model":"m","messages":[{"role":"user","content":"first"}]}"#;
    let mut read = inbound(Api::Anthropic, body).unwrap();
    read.conversation.push_user("second");
    let sent = request(
        Api::Anthropic,
        &read.conversation,
        &options(&read, Api::Anthropic, Api::Anthropic),
    )
    .unwrap();
    assert!(sent.body.contains("second"), "{}", sent.body);
}

/// Text without white space at its ends and control characters, which some APIs do not keep.
fn words() -> impl Strategy<Value = String> {
    "[a-zA-Zé\"\\\\{}<>&]{1,12}"
}

/// A user's content.
fn content() -> impl Strategy<Value = Value> {
    prop_oneof![
        words().prop_map(Value::from),
        words().prop_map(|text| json!([
            {"type": "text", "text": text},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}},
        ])),
    ]
}

/// An answer: its text, the inputs of its calls, and its reasoning.
type Answer = (Option<String>, Vec<String>, Option<String>);

/// One turn: the user's content, the answers with their results, and whether the user speaks after
/// the last results.
fn turn() -> impl Strategy<Value = (Value, Vec<Answer>, String)> {
    let answer = (
        proptest::option::of(words()),
        proptest::collection::vec(words(), 0..3),
        proptest::option::of(words()),
    );
    (content(), proptest::collection::vec(answer, 0..3), words())
}

/// The messages of a conversation that `api` can hold.
fn messages(
    api: Api,
    system: Option<String>,
    turns: &[(Value, Vec<Answer>, String)],
) -> Vec<Value> {
    let mut out = Vec::new();
    out.extend(system.map(|text| json!({"role": "system", "content": text})));
    let mut count = 0;
    for (user, answers, last) in turns {
        out.push(json!({"role": "user", "content": user}));
        for (text, inputs, thought) in answers.iter().filter(|(_, inputs, _)| !inputs.is_empty()) {
            let mut answer = json!({"role": "assistant", "content": text});
            let mut results = Vec::new();
            let mut calls = Vec::new();
            for input in inputs {
                count += 1;
                let (id, arguments) =
                    (format!("call_{count}"), json!({"input": input}).to_string());
                calls.push(json!({"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}}));
                results.push(json!({"role": "tool", "tool_call_id": id, "content": input}));
            }
            answer["tool_calls"] = calls.into();
            if let Some(thought) = thought {
                let data = match api {
                    Api::Anthropic => json!({"anthropic": {"signature": thought}}),
                    Api::OpenaiResponses => {
                        json!({"openai-responses": {"item": {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": thought}], "encrypted_content": "e"}}})
                    }
                    _ => json!({"openai-chat": {"field": "reasoning_content"}}),
                };
                answer["reasoning"] = thought.as_str().into();
                answer["provider"] =
                    json!([{"thinking": thought, "data": data, "calls": 0, "text": false}]);
            }
            out.push(answer);
            out.append(&mut results);
        }
        out.push(json!({"role": "assistant", "content": last}));
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_our_writers_write_is_read_back(
        system in proptest::option::of(words()),
        turns in proptest::collection::vec(turn(), 1..4),
        choice in proptest::sample::select(vec![None, Some("auto"), Some("none"), Some("required"), Some("f")]),
        streams: bool,
    ) {
        let tools = r#"[{"type":"function","function":{"name":"f","description":"F.","parameters":{"type":"object","properties":{"input":{"type":"string"}}},"strict":true}},{"type":"function","function":{"name":"g","parameters":{"type":"object","properties":{}},"strict":true}}]"#;
        for api in APIS {
            let messages = messages(api, system.clone(), &turns);
            let log: String = messages.iter().map(|message| format!("{message}\n")).collect();
            let (talk, problems) = Conversation::read(&log);
            prop_assert_eq!(problems, vec![]);
            let options = RequestOptions {
                model: "gpt-5".to_owned(),
                tools: Some(Arc::new(ToolList::read(tools).unwrap())),
                tool_choice: choice.map(str::to_owned),
                params: vec![("temperature".to_owned(), json!(0.5))],
                stream: streams,
                ..RequestOptions::default()
            };
            let body = request(api, &talk, &options).unwrap().body;
            let read = inbound(api, body.as_bytes()).unwrap();
            let found: Vec<Value> = read.conversation.messages.iter().map(|m| Value::Object(m.fields().clone())).collect();
            prop_assert_eq!(found, messages, "{}: {}", api.name(), body);
            prop_assert_eq!(read.tools.unwrap().openai(|_| true), tools);
            prop_assert_eq!((read.model.as_deref(), read.tool_choice.as_deref()), (Some("gpt-5"), choice));
            prop_assert_eq!(read.params.get("temperature"), Some(&json!(0.5)));
            prop_assert_eq!((read.streams, read.notes), (streams, vec![]));
        }
    }

    #[test]
    fn no_body_makes_a_reader_panic(
        which in any::<prop::sample::Index>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), 0..12_u8), 1..5),
        api in proptest::sample::select(APIS.to_vec()),
    ) {
        let (_, mut body) = BODIES[which.index(BODIES.len())].clone();
        for (place, change) in changes {
            let count = nodes(&mut body, &mut |_, _| {});
            let wanted = place.index(count);
            nodes(&mut body, &mut |at, value| if at == wanted { *value = changed(change, value.take()) });
        }
        match inbound(api, body.to_string().as_bytes()) {
            Err(InboundError::NotJson(_)) => prop_assert!(!body.is_object()),
            Err(error @ InboundError::Member { .. }) => prop_assert!(error.to_string().contains("it has no message"), "{error}"),
            Err(other) => prop_assert!(false, "{other}"),
            Ok(read) => {
                let lines = read.lines(api, None);
                prop_assert_eq!(Conversation::read(&lines).1, vec![]);
                prop_assert!(lines.lines().all(|line| event::Raw::parse(line).is_ok()));
                let (same_api, event) = request_event(lines.lines().next().unwrap()).unwrap();
                prop_assert_eq!((same_api, &event.model, event.streams), (api, &read.model.clone().filter(|m| !m.is_empty()), read.streams));
                prop_assert_eq!(event.tools.map(|t| t.openai(|_| true)), read.tools.as_ref().map(|t| t.openai(|_| true)));
                prop_assert_eq!((&event.tool_choice, &event.params), (&read.tool_choice, &read.params));
                prop_assert_eq!(event.notes, Vec::<String>::new());
                for to in Api::ALL {
                    // What the upstream's API cannot hold is an error with a place, never a panic.
                    let _ = request(to, &read.conversation, &options(&read, api, to));
                }
            }
        }
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64), cut in any::<prop::sample::Index>(), which in any::<prop::sample::Index>()) {
        let body = BODIES[which.index(BODIES.len())].1.to_string();
        let cut = cut.index(body.len());
        for api in APIS {
            let _ = inbound(api, &bytes);
            prop_assert!(matches!(inbound(api, &body.as_bytes()[..cut]), Err(InboundError::NotJson(_))));
        }
    }
}

/// Calls `each` with every value of a tree and its number; returns how many there are.
fn nodes(value: &mut Value, each: &mut impl FnMut(usize, &mut Value)) -> usize {
    fn walk(value: &mut Value, next: &mut usize, each: &mut impl FnMut(usize, &mut Value)) {
        let at = *next;
        *next += 1;
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| walk(item, next, each)),
            Value::Object(members) => members
                .values_mut()
                .for_each(|member| walk(member, next, each)),
            _ => {}
        }
        each(at, value);
    }
    let mut next = 0;
    walk(value, &mut next, each);
    next
}

/// Another value in the place of `value`.
fn changed(how: u8, value: Value) -> Value {
    match how {
        0 => Value::Null,
        1 => json!(-1.5e300),
        2 => json!("\u{0}\u{7f}\u{9b}\u{2028}é"),
        3 => json!([]),
        4 => json!({}),
        5 => json!([value, null]),
        6 => json!({"type": value}),
        7 => json!({"role": "assistant", "content": value}),
        8 => json!(true),
        9 => json!("none"),
        10 => json!(18_446_744_073_709_551_615_u64),
        _ => json!([[[[[value]]]]]),
    }
}

#[test]
fn large_and_deep_bodies_are_read_or_refused() {
    let deep = format!(
        r#"{{"messages":{}1{}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let many = |member: &str, item: &str| {
        format!(
            r#"{{"{member}":[{}{item}]}}"#,
            format!("{item},").repeat(29_999)
        )
    };
    for api in APIS {
        assert!(matches!(
            inbound(api, deep.as_bytes()),
            Err(InboundError::NotJson(_))
        ));
        let member = if api == Api::OpenaiResponses {
            "input"
        } else {
            "messages"
        };
        let read = inbound(
            api,
            many(member, r#"{"role":"user","content":"x"}"#).as_bytes(),
        )
        .unwrap();
        assert_eq!(
            (read.conversation.messages.len(), read.notes.len()),
            (30_000, 0)
        );
        // Notes have a limit of their own.
        let Err(InboundError::Member { why, .. }) = inbound(api, many(member, "7").as_bytes())
        else {
            panic!()
        };
        assert!(why.len() < 200, "{why}");
    }
}
