//! What a provider wants back goes back: for every recorded body of `fixtures/streams` the next
//! request to the same provider holds each opaque member of the answer.
//!
//! The members are found in the bodies by [`wanted`], which shares nothing with the decoders. The
//! table with their sources: docs/protocol.md, "What goes back to the provider".

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use accumulate::Accumulate;
use event::Collect;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::rc::Rc;
use toolpipe_api::{Api, Conversation, End, RequestOptions, Stream, StreamOptions, request};

/// The JSON values of a body: the data of server-sent events, or values one after the other; the
/// elements of an array are values of their own.
fn frames(body: &str) -> Vec<Value> {
    let mut out = Vec::new();
    let mut take = |text: &str| {
        for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
            match value {
                Ok(Value::Array(list)) => out.extend(list),
                Ok(value) => out.push(value),
                Err(_) => break,
            }
        }
    };
    if body.lines().any(|line| line.starts_with("data:")) {
        let lines = body.lines().filter_map(|line| line.strip_prefix("data:"));
        lines.for_each(&mut take);
    } else {
        take(body);
    }
    out
}

/// One part of an answer: what goes back of it, and whether it is reasoning, which goes back only
/// before something else.
#[derive(Debug, Default)]
struct Part {
    is_reasoning: bool,
    members: Vec<String>,
}

/// The opaque members of an answer that its API wants back, in their order.
fn wanted(api: Api, frames: &[Value]) -> Vec<String> {
    let mut parts: Vec<Part> = match api {
        Api::Anthropic => anthropic(frames),
        Api::Gemini => gemini(frames),
        Api::OpenaiResponses => responses(frames),
        _ => chat(frames),
    };
    while parts.pop_if(|part| part.is_reasoning).is_some() {}
    let members = parts.into_iter().flat_map(|part| part.members);
    members.filter(|member| !member.is_empty()).collect()
}

fn text<'v>(value: &'v Value, path: &str) -> &'v str {
    value.pointer(path).and_then(Value::as_str).unwrap_or("")
}

/// The strings of `value` under a name that begins with `encrypted_`, at any depth.
fn encrypted(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(text) if name.starts_with("encrypted_") => out.push(text.clone()),
                    value => encrypted(value, out),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| encrypted(value, out)),
        _ => {}
    }
}

fn anthropic(frames: &[Value]) -> Vec<Part> {
    let mut blocks: BTreeMap<u64, Part> = BTreeMap::new();
    let open = |block: &Value| {
        let kind = text(block, "/type");
        let mut members = Vec::new();
        match kind {
            "thinking" => members.push(text(block, "/signature").to_owned()),
            "redacted_thinking" => members.push(text(block, "/data").to_owned()),
            "server_tool_use" | "mcp_tool_use" => members.push(text(block, "/id").to_owned()),
            kind if kind.ends_with("_tool_result") => {
                members.push(text(block, "/tool_use_id").to_owned());
                encrypted(block, &mut members);
            }
            _ => {}
        }
        Part {
            is_reasoning: kind.ends_with("thinking"),
            members,
        }
    };
    for frame in frames {
        let index = frame.get("index").and_then(Value::as_u64).unwrap_or(0);
        match text(frame, "/type") {
            "message_start" => blocks.clear(),
            "content_block_start" => _ = blocks.insert(index, open(&frame["content_block"])),
            "content_block_delta" => {
                let signature = text(frame, "/delta/signature");
                let block = blocks.entry(index).or_insert_with(|| Part {
                    is_reasoning: text(frame, "/delta/type").starts_with("thinking"),
                    members: vec![String::new()],
                });
                if let Some(all) = block.members.first_mut().filter(|all| *all != signature) {
                    all.push_str(signature);
                }
            }
            "message" => {
                let list = frame["content"].as_array().into_iter().flatten();
                blocks = (0..).zip(list.map(open)).collect();
            }
            _ => {}
        }
    }
    blocks.into_values().collect()
}

fn gemini(frames: &[Value]) -> Vec<Part> {
    let mut out = Vec::new();
    for frame in frames {
        let parts = frame.pointer("/candidates/0/content/parts");
        for part in parts.and_then(Value::as_array).into_iter().flatten() {
            let signature = text(part, "/thoughtSignature").to_owned();
            out.push(Part {
                is_reasoning: part["thought"] == true,
                members: vec![signature],
            });
        }
    }
    out
}

fn responses(frames: &[Value]) -> Vec<Part> {
    let mut items: Vec<&Value> = Vec::new();
    let done = |frame: &&Value| text(frame, "/type") == "response.output_item.done";
    items.extend(frames.iter().filter(done).map(|frame| &frame["item"]));
    if items.is_empty() {
        let list = |frame: &'_ Value| {
            let whole = frame.pointer("/response/output");
            whole.or(frame.get("output")).is_some_and(Value::is_array)
        };
        let last = frames.iter().rev().find(|frame| list(frame));
        let output = last.and_then(|f| f.pointer("/response/output").or(f.get("output")));
        items.extend(output.and_then(Value::as_array).into_iter().flatten());
    }
    let members = |item: &&Value| {
        let kind = text(item, "/type");
        let id = text(item, "/id").to_owned();
        let members = match kind {
            "message" => vec![text(item, "/phase").to_owned()],
            "reasoning" => vec![text(item, "/encrypted_content").to_owned()],
            "function_call" | "custom_tool_call" => Vec::new(),
            // The client runs these, and names them by the id of the call.
            "shell_call" | "apply_patch_call" | "computer_call"
                if !text(item, "/environment/type").starts_with("container") =>
            {
                vec![kind.to_owned(), text(item, "/call_id").to_owned()]
            }
            _ => vec![id, text(item, "/encrypted_content").to_owned()],
        };
        Part {
            is_reasoning: kind == "reasoning",
            members,
        }
    };
    items.iter().map(members).collect()
}

fn chat(frames: &[Value]) -> Vec<Part> {
    let mut out = Vec::new();
    for frame in frames {
        let message = frame
            .pointer("/choices/0/delta")
            .or(frame.pointer("/choices/0/message"));
        let calls = message.and_then(|message| message.get("tool_calls")?.as_array());
        for call in calls.into_iter().flatten() {
            let members = [
                "/extra_content/google/thought_signature",
                "/provider_specific_fields/thought_signature",
            ];
            let members = members.map(|path| text(call, path).to_owned()).to_vec();
            out.push(Part {
                is_reasoning: false,
                members,
            });
        }
    }
    out
}

/// The next request after an answer with these events, to the same provider; `None` if the answer
/// did not end well.
fn next(api: Api, body: &[u8]) -> Option<String> {
    let mut events = Collect::default();
    let mut stream = Stream::new(api, StreamOptions::default());
    stream.push(body, &mut events);
    stream.finish(End::Eof, &mut events);
    let merged = Collect::run(&mut Accumulate::new(Rc::default()), &events.lines);
    let mut log = "{\"role\":\"user\",\"content\":\"a\"}\n".to_owned();
    for line in &merged {
        let event: Value = serde_json::from_str(line).unwrap();
        let is_end = |reason| {
            text(&event, "/type") == "stream_end" && text(&event, "/finish_reason") == reason
        };
        if text(&event, "/type") == "error" || is_end("cut") || is_end("error") {
            return None;
        }
        log += line;
        log.push('\n');
        let calls = event
            .pointer("/message/tool_calls")
            .and_then(Value::as_array);
        for call in calls
            .into_iter()
            .flatten()
            .filter(|_| event.get("choice").is_none())
        {
            let id = &call["id"];
            log += &format!("{{\"role\":\"tool\",\"tool_call_id\":{id},\"content\":\"1\"}}\n");
        }
    }
    log += "{\"role\":\"user\",\"content\":\"b\"}\n";
    let (talk, problems) = Conversation::read(&log);
    assert_eq!(problems, []);
    let options = RequestOptions {
        model: "m".into(),
        ..RequestOptions::default()
    };
    Some(request(api, &talk, &options).unwrap().body)
}

/// Every string of a request, in order.
fn strings(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(text) => out.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|value| strings(value, out)),
        Value::Object(members) => members.values().for_each(|value| strings(value, out)),
        _ => {}
    }
}

#[test]
fn every_opaque_member_of_a_recording_is_in_the_next_request() {
    let (mut wrong, mut count) = (Vec::new(), BTreeMap::new());
    for body in testkit::bodies() {
        let apis = [
            Api::Anthropic,
            Api::Gemini,
            Api::OpenaiChat,
            Api::OpenaiResponses,
        ];
        let Some(api) = Api::from_name(&body.api).filter(|api| apis.contains(api)) else {
            continue;
        };
        let name = body.name;
        let body = fs::read(&body.path).unwrap();
        let members = wanted(api, &frames(&String::from_utf8_lossy(&body)));
        if members.is_empty() {
            continue;
        }
        let Some(next) = next(api, &body) else {
            continue;
        };
        let mut sent = Vec::new();
        strings(&serde_json::from_str(&next).unwrap(), &mut sent);
        let mut rest = sent.iter();
        for member in members {
            *count.entry(api.name()).or_insert(0) += 1;
            if !rest.any(|sent| *sent == member) {
                let is_out_of_order = sent.contains(&member);
                wrong.push(format!(
                    "{name}: {} {}",
                    event::cut(&member, 60),
                    if is_out_of_order {
                        "comes too early"
                    } else {
                        "is lost"
                    }
                ));
                rest = sent.iter();
            }
        }
    }
    assert!(count.len() == 4 || !testkit::bodies_are_ours(), "{count:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What each API refuses of a conversation is in [`testkit::refusal`], with its sources.
#[test]
fn no_provider_refuses_the_next_request_after_a_recording() {
    let (mut wrong, mut count) = (Vec::new(), BTreeMap::new());
    for recorded in testkit::bodies() {
        let Some(api) = Api::from_name(&recorded.api) else {
            continue;
        };
        let mut known = testkit::Protocol::ALL.into_iter();
        let (_, protocol) = known.find(|(name, _)| *name == api.name()).unwrap();
        let body = fs::read(&recorded.path).unwrap();
        let Some(text) = next(api, &body) else {
            continue;
        };
        let asked = testkit::Request {
            line: String::new(),
            headers: vec![("anthropic-version".to_owned(), "2023-06-01".to_owned())],
            body: serde_json::from_str(&text).unwrap(),
            text,
        };
        *count.entry(api.name()).or_insert(0) += 1;
        if let Some((status, why)) =
            testkit::refusal(protocol, &asked, &String::from_utf8_lossy(&body))
        {
            let name = recorded.name;
            wrong.push(format!(
                "{name}: {status} {why}\n    {}",
                event::cut(&asked.text, 900)
            ));
        }
    }
    assert!(
        count.len() == Api::ALL.len() || !testkit::bodies_are_ours(),
        "{count:?}"
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A refusal of Anthropic's is a member beside the content; to write its explanation as the model's
/// text would put words into the conversation that nobody wrote.
#[test]
fn an_explanation_of_a_refusal_does_not_go_back() {
    let mut count = 0;
    for recorded in testkit::bodies() {
        if Api::from_name(&recorded.api) != Some(Api::Anthropic) {
            continue;
        }
        let body = fs::read(&recorded.path).unwrap();
        let details = frames(&String::from_utf8_lossy(&body));
        let paths = [
            "/stop_details/explanation",
            "/delta/stop_details/explanation",
        ];
        let found = details
            .iter()
            .flat_map(|frame| paths.map(|path| text(frame, path)));
        let Some(explanation) = found.max_by_key(|text| text.len()) else {
            continue;
        };
        let Some(next) = next(Api::Anthropic, &body).filter(|_| !explanation.is_empty()) else {
            continue;
        };
        count += 1;
        let mut sent = Vec::new();
        let next: Value = serde_json::from_str(&next).unwrap();
        strings(&next, &mut sent);
        assert!(
            !sent.iter().any(|sent| sent.contains(explanation)),
            "{}: {next}",
            recorded.name
        );
        // The API refuses a message without content.
        let messages = next["messages"].as_array().unwrap();
        let is_empty = |message: &Value| message["content"].as_array().is_some_and(Vec::is_empty);
        assert!(!messages.iter().any(is_empty), "{next}");
    }
    assert!(count > 0 || !testkit::bodies_are_ours());
}
