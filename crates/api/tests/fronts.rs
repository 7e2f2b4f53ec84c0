//! What the fronts write, as files: a folder of `tests/fronts/` has `events.ndjson`, `options.json`
//! where it needs options, and the stream and the whole answer of each front. `UPDATE=1` writes
//! them anew. `step ` stands before the events of a call that the service runs.
//!
//! Each answer is read back by the decoder of its API, and must have the text, the calls, the end
//! and the counts of the events.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use accumulate::{Accumulate, AccumulateOptions, EmitOn};
use event::{Collect, Raw, Scanner};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use toolpipe_api::{
    AnswerForm, AnswerOptions, Api, Encoder, End, Front, NamespacedTool, RequestOptions, Stream,
    StreamOptions, inbound, request,
};

/// The fronts whose files are here, with the decoder that reads them.
const FRONTS: [(Front, Api, &str); 3] = [
    (Front::Chat, Api::OpenaiChat, "chat"),
    (Front::Responses, Api::OpenaiResponses, "responses"),
    (Front::Messages, Api::Anthropic, "messages"),
];

fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fronts");
    let mut folders: Vec<_> = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    folders.sort();
    folders
}

fn options(folder: &Path) -> AnswerOptions {
    let text = fs::read_to_string(folder.join("options.json")).unwrap_or_else(|_| "{}".into());
    let given = Raw::parse(&text).unwrap();
    let strings = |key: &str| {
        given
            .get(key)
            .into_iter()
            .flat_map(Raw::items)
            .filter_map(Raw::str)
    };
    AnswerOptions {
        id: "0001".into(),
        model: given.get_str("model").unwrap_or("m".into()).into_owned(),
        created: 1_700_000_000,
        include_usage: true,
        shows_steps: true,
        echo: given
            .get("echo")
            .into_iter()
            .flat_map(Raw::entries)
            .map(|(k, v)| (k.into_owned(), v.text().into()))
            .collect(),
        namespaced_tools: given
            .get("namespaced_tools")
            .into_iter()
            .flat_map(Raw::items)
            .map(|tool| {
                let [full_name, namespace, name] = ["full_name", "namespace", "name"]
                    .map(|key| tool.get_str(key).unwrap().into_owned());
                NamespacedTool {
                    full_name,
                    namespace,
                    name,
                }
            })
            .collect(),
        carries: given.get("carries").and_then(Raw::bool) == Some(true),
        custom_tools: strings("custom_tools")
            .map(|name| name.into_owned())
            .collect(),
        ..AnswerOptions::default()
    }
}

/// The answer of a front, or the body of its error if it failed before its first byte.
fn answer(front: Front, form: AnswerForm, options: AnswerOptions, events: &str) -> String {
    let mut encoder = Encoder::new(front, form, options);
    let mut scanner = Scanner::default();
    let mut out = Vec::new();
    for line in events.lines() {
        if line == "keep alive" {
            encoder.keep_alive(&mut out);
        } else if let Some(step) = line.strip_prefix("step ") {
            encoder.step(&scanner.read(step).unwrap(), &mut out);
        } else {
            encoder.push(&scanner.read(line).unwrap(), &mut out);
        }
    }
    encoder.finish(&mut out);
    match encoder.failure() {
        Some(failure) if out.is_empty() => {
            let body = String::from_utf8(front.failure(failure)).unwrap();
            format!("HTTP {}\n{body}", failure.status)
        }
        _ => String::from_utf8(out).unwrap(),
    }
}

/// What a stream of events means, a line for each part.
#[derive(Debug, Default, PartialEq, Eq)]
struct Meaning {
    text: String,
    refusal: String,
    reasoning: String,
    calls: Vec<String>,
    end: String,
    tokens: String,
    has_error: bool,
}

impl Meaning {
    fn of<'a>(lines: impl Iterator<Item = &'a str>) -> Meaning {
        let mut meaning = Meaning::default();
        for line in lines {
            let event = Raw::parse(line).unwrap();
            if event.get("choice").is_some() {
                continue;
            }
            let text = |key: &str| event.get_str(key).unwrap_or_default().into_owned();
            match text("type").as_str() {
                "content_delta" => meaning.text += &text("text"),
                "refusal_delta" => meaning.refusal += &text("text"),
                "thinking" => meaning.reasoning += &text("text"),
                "tool_call" if event.get("error").is_none() => {
                    let arguments = event.get("arguments").map(Raw::text).unwrap_or_default();
                    // What the id carries is not part of it.
                    let id = text("tool_id");
                    let id = id.split("__toolpipe_").next().unwrap_or_default();
                    meaning
                        .calls
                        .push(format!("{id} {} {arguments}", text("tool_name")));
                }
                "stream_end" => meaning.end = text("finish_reason"),
                "session_stats" => {
                    for key in ["prompt_tokens", "completion_tokens", "cached_tokens"] {
                        let count = event.get(key).map(Raw::text).filter(|n| *n != "0");
                        write!(meaning.tokens, "{} ", count.unwrap_or("-")).unwrap();
                    }
                }
                "error" => meaning.has_error = true,
                _ => {}
            }
        }
        meaning
    }

    /// Takes the namespaces off the names of the calls: our decoder does not read them.
    fn name_in_namespaces(&mut self, tools: &[NamespacedTool]) {
        for tool in tools {
            for call in &mut self.calls {
                *call = call.replace(&tool.full_name, &tool.name);
            }
        }
    }

    /// The same meaning, as far as an answer in this API can have it.
    fn in_api(mut self, api: Api) -> Meaning {
        if self.has_error || matches!(self.end.as_str(), "cut" | "cancelled") {
            // The counts of a failed answer are not sent.
            (self.end, self.tokens, self.has_error) = ("error".into(), String::new(), true);
        }
        if api == Api::Anthropic && !self.refusal.is_empty() {
            // The API has no refusals but the end of a message.
            self.text += &std::mem::take(&mut self.refusal);
            self.end = "content_filter".into();
        }
        self
    }
}

/// Reads an answer with the decoder of its API.
fn read(api: Api, form: AnswerForm, answer: &str, emit_on: EmitOn) -> Meaning {
    let mut stream = Stream::new(api, StreamOptions::default());
    let mut events = Collect::default();
    if form == AnswerForm::Whole {
        stream.whole(answer.as_bytes(), &mut events);
    } else {
        stream.push(answer.as_bytes(), &mut events);
        stream.finish(End::Eof, &mut events);
    }
    let merged = Collect::run(
        &mut Accumulate::new(Rc::new(AccumulateOptions {
            emit_on,
            ..AccumulateOptions::default()
        })),
        &events.lines,
    );
    let mut meaning = Meaning::of(merged.iter().map(String::as_str));
    if meaning.has_error {
        meaning.tokens.clear();
    }
    meaning
}

#[test]
fn every_case_has_its_bytes_and_reads_back() {
    let mut problems = String::new();
    for folder in folders() {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let events = fs::read_to_string(folder.join("events.ndjson")).unwrap();
        for (front, api, stem) in FRONTS {
            for (form, extension) in [(AnswerForm::Stream, "sse"), (AnswerForm::Whole, "json")] {
                let file = folder.join(format!("{stem}.{extension}"));
                let got = answer(front, form, options(&folder), &events);
                if std::env::var_os("UPDATE").is_some() {
                    fs::write(&file, &got).unwrap();
                } else if fs::read_to_string(&file).unwrap_or_default() != got {
                    writeln!(
                        problems,
                        "{name}/{stem}.{extension} has other bytes; UPDATE=1 writes them\n{got}"
                    )
                    .unwrap();
                }
                if !got.starts_with("HTTP ") {
                    let mut want = Meaning::of(events.lines().filter(|line| line.starts_with('{')))
                        .in_api(api);
                    if api == Api::OpenaiResponses {
                        want.name_in_namespaces(&options(&folder).namespaced_tools);
                    }
                    let read = read(api, form, &got, EmitOn::Balanced);
                    if read != want {
                        writeln!(
                            problems,
                            "{name}/{stem}.{extension} reads as\n{read:?}\nand not as\n{want:?}"
                        )
                        .unwrap();
                    }
                }
            }
        }
    }
    assert!(problems.is_empty(), "{problems}");
}

/// The whole of the events up to the first `count` lines, then the end of the connection.
fn lost_after(events: &str, count: usize) -> String {
    events.split_inclusive('\n').take(count).collect()
}

#[test]
fn a_connection_that_is_lost_anywhere_never_looks_finished() {
    let mut answers = 0;
    for folder in folders() {
        let events = fs::read_to_string(folder.join("events.ndjson")).unwrap();
        let end = events
            .lines()
            .position(|line| line.contains(r#""type":"stream_end""#))
            .unwrap();
        for count in 1..=end {
            for (front, api, _) in FRONTS {
                let got = answer(
                    front,
                    AnswerForm::Stream,
                    options(&folder),
                    &lost_after(&events, count),
                );
                let place = format!("{} after {count} events:\n{got}", folder.display());
                let (ends, failed): (&[&str], _) = match front {
                    Front::Chat => (&["\"finish_reason\":\"", "[DONE]"], "data: {\"error\":"),
                    Front::Responses => (
                        &["event: response.completed", "event: response.incomplete"],
                        "event: response.failed",
                    ),
                    Front::Messages => (
                        &["event: message_delta", "event: message_stop"],
                        "event: error",
                    ),
                };
                for end in ends {
                    assert!(!got.contains(end), "{end} in {place}");
                }
                if got.starts_with("HTTP ") {
                    continue;
                }
                answers += 1;
                assert_eq!(got.matches(failed).count(), 1, "{place}");
                // Only calls that had ended before may have an end in the answer.
                let whole = events
                    .lines()
                    .take(count)
                    .filter(|line| line.contains(r#""commit":"#))
                    .count();
                assert!(
                    read(api, AnswerForm::Stream, &got, EmitOn::Sealed)
                        .calls
                        .len()
                        <= whole,
                    "{place}"
                );
            }
        }
    }
    assert!(
        answers > 50,
        "{answers} answers are too few to show anything"
    );
}

/// The request that follows an answer: the client sends the answer back with what it says next, to
/// an upstream of `upstream`.
fn next_request(front: Front, upstream: Api, case: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fronts")
        .join(case);
    let events = fs::read_to_string(folder.join("events.ndjson")).unwrap();
    // The id is as long as those of requests, by which an item that was made here is known.
    let options = AnswerOptions {
        id: "0001".repeat(8),
        ..options(&folder)
    };
    let got = answer(front, AnswerForm::Whole, options, &events);
    let got = Raw::parse(&got).unwrap();
    let (api, body) = match front {
        Front::Messages => {
            let content = got.get("content").unwrap().text();
            let result = r#"[{"type":"tool_result","tool_use_id":"toolu_1","content":"1"},{"type":"text","text":"Go on."}]"#;
            let answer = format!(r#"{{"role":"assistant","content":{content}}}"#);
            let next = format!(r#"{{"role":"user","content":{result}}}"#);
            (
                Api::Anthropic,
                format!(
                    r#"{{"max_tokens":9,"messages":[{{"role":"user","content":"a"}},{answer},{next}]}}"#
                ),
            )
        }
        _ => {
            let output = got.get("output").unwrap().text();
            let items = &output[1..output.len() - 1];
            let result = r#"{"type":"function_call_output","call_id":"toolu_1","output":"1"},{"role":"user","content":"Go on."}"#;
            (
                Api::OpenaiResponses,
                format!(r#"{{"input":[{{"role":"user","content":"a"}},{items},{result}]}}"#),
            )
        }
    };
    let inbound = inbound(api, body.as_bytes()).unwrap();
    request(
        upstream,
        &inbound.conversation,
        &RequestOptions {
            model: "m".into(),
            ..RequestOptions::default()
        },
    )
    .unwrap()
    .body
}

#[test]
fn reasoning_goes_back_to_the_provider_that_wrote_it() {
    for front in [Front::Messages, Front::Responses] {
        let body = next_request(front, Api::Anthropic, "reasoning-of-anthropic");
        for block in [
            r#"{"type":"thinking","thinking":"hm","signature":"EqRk/=="}"#,
            r#"{"type":"redacted_thinking","data":"RRR"}"#,
            r#"{"type":"thinking","thinking":"","signature":"hidden"}"#,
        ] {
            assert_eq!(
                body.matches(block).count(),
                1,
                "{front:?}: {block} in {body}"
            );
        }
        let body = next_request(front, Api::OpenaiResponses, "reasoning-of-openai");
        for item in [
            r#""id":"rs_up""#,
            r#""encrypted_content":"gAAA==""#,
            r#""id":"rs_2""#,
            r#""encrypted_content":"gBBB==""#,
        ] {
            assert_eq!(body.matches(item).count(), 1, "{front:?}: {item} in {body}");
        }
        assert!(
            !body.contains("rs_0001"),
            "{front:?}: an id that the provider does not know in {body}"
        );
        // Nobody else gets it.
        for (upstream, case) in [
            (Api::OpenaiResponses, "reasoning-of-anthropic"),
            (Api::Anthropic, "reasoning-of-openai"),
            (Api::OpenaiChat, "reasoning-of-openai"),
        ] {
            let body = next_request(front, upstream, case);
            for foreign in ["toolpipe:", "signature", "encrypted_content\":", "rs_0001"] {
                assert!(!body.contains(foreign), "{front:?}: {foreign} in {body}");
            }
        }
    }
}

/// The request to `upstream` that follows an answer with calls, of a client that keeps nothing of
/// the answer but the members that its API documents, and sends a result of each call.
fn next_of_strict_client(front: Front, upstream: Api, case: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fronts")
        .join(case);
    let events = fs::read_to_string(folder.join("events.ndjson")).unwrap();
    let got = answer(front, AnswerForm::Whole, options(&folder), &events);
    let got: serde_json::Value = serde_json::from_str(&got).unwrap();
    let results = |list: &serde_json::Value, id: &str, result: &dyn Fn(&str) -> String| {
        let ids = list.as_array().unwrap().iter();
        ids.filter_map(|call| Some(result(call.get(id)?.as_str()?)))
            .collect::<String>()
    };
    let (api, body) = match front {
        Front::Chat => {
            let mut calls = got["choices"][0]["message"]["tool_calls"].clone();
            for call in calls.as_array_mut().unwrap() {
                call.as_object_mut().unwrap().shift_remove("extra_content");
            }
            let results = results(&calls, "id", &|id| {
                format!(r#",{{"role":"tool","tool_call_id":"{id}","content":"1"}}"#)
            });
            let body = format!(
                r#"{{"messages":[{{"role":"user","content":"a"}},{{"role":"assistant","content":null,"tool_calls":{calls}}}{results}]}}"#
            );
            (Api::OpenaiChat, body)
        }
        Front::Messages => {
            let content = &got["content"];
            let results = results(content, "id", &|id| {
                format!(r#",{{"type":"tool_result","tool_use_id":"{id}","content":"1"}}"#)
            });
            let results = &results[1..];
            let body = format!(
                r#"{{"max_tokens":9,"messages":[{{"role":"user","content":"a"}},{{"role":"assistant","content":{content}}},{{"role":"user","content":[{results}]}}]}}"#
            );
            (Api::Anthropic, body)
        }
        Front::Responses => {
            let output = &got["output"];
            let results = results(output, "call_id", &|id| {
                format!(r#",{{"type":"function_call_output","call_id":"{id}","output":"1"}}"#)
            });
            let items = output.to_string();
            let items = &items[1..items.len() - 1];
            let body = format!(r#"{{"input":[{{"role":"user","content":"a"}},{items}{results}]}}"#);
            (Api::OpenaiResponses, body)
        }
    };
    let inbound = inbound(api, body.as_bytes()).unwrap();
    let options = RequestOptions {
        model: "gemini-3-pro".into(),
        ..RequestOptions::default()
    };
    request(upstream, &inbound.conversation, &options)
        .unwrap()
        .body
}

#[test]
fn what_goes_back_with_a_call_survives_every_client() {
    for front in [Front::Chat, Front::Messages, Front::Responses] {
        let body = next_of_strict_client(front, Api::Gemini, "signed-call-of-gemini");
        assert_eq!(
            body.matches(r#""thoughtSignature":"c2ln+/==""#).count(),
            1,
            "{front:?}: {body}"
        );
        for upstream in Api::ALL {
            let body = next_of_strict_client(front, upstream, "signed-call-of-gemini");
            assert!(
                !body.contains("toolpipe"),
                "{front:?}, {upstream:?}: {body}"
            );
            let is_foreign = upstream != Api::Gemini;
            assert!(
                !(is_foreign && body.contains("c2ln+/==")) || upstream == Api::OpenaiChat,
                "{front:?}, {upstream:?}: {body}"
            );
        }
        if front != Front::Responses {
            let body =
                next_of_strict_client(front, Api::OpenaiResponses, "call-of-a-provider-tool");
            for item in [r#""type":"shell_call""#, r#""type":"shell_call_output""#] {
                assert_eq!(body.matches(item).count(), 1, "{front:?}: {item} in {body}");
            }
        }
    }
}

#[test]
fn reasoning_of_other_providers_has_a_signature_and_comes_back() {
    for front in [Front::Messages, Front::Responses] {
        let body = next_request(
            front,
            Api::OpenaiResponses,
            "server-items-between-reasoning",
        );
        let places = ["rs_1", "ws_1", "rs_2"].map(|id| {
            assert_eq!(body.matches(id).count(), 1, "{front:?}: {id} in {body}");
            body.find(id)
        });
        assert!(places.is_sorted(), "{front:?}: {body}");
        let read = sent_back(front, "reasoning-of-chat");
        let answer = serde_json::Value::from(read.conversation.messages[1].fields().clone());
        assert_eq!(answer["reasoning"], "Where?", "{front:?}");
        assert_eq!(
            answer["provider"][0]["data"]["openai-chat"]["field"], "reasoning_content",
            "{front:?}"
        );
    }
}

/// The conversation of a client that sends an answer with steps back.
fn sent_back(front: Front, case: &str) -> toolpipe_api::InboundRequest {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fronts")
        .join(case);
    let events = fs::read_to_string(folder.join("events.ndjson")).unwrap();
    let got = answer(front, AnswerForm::Whole, options(&folder), &events);
    let got = Raw::parse(&got).unwrap();
    let (api, body) = if front == Front::Messages {
        let content = got.get("content").unwrap().text();
        let body = format!(
            r#"{{"max_tokens":9,"messages":[{{"role":"user","content":"a"}},{{"role":"assistant","content":{content}}},{{"role":"user","content":"b"}}]}}"#
        );
        (Api::Anthropic, body)
    } else {
        let output = got.get("output").unwrap().text();
        let items = &output[1..output.len() - 1];
        let approval = r#"{"type":"mcp_approval_response","approval_request_id":"mcpr_call_a","approve":true}"#;
        let body = format!(
            r#"{{"input":[{{"role":"user","content":"a"}},{items},{approval},{{"role":"user","content":"b"}}]}}"#
        );
        (Api::OpenaiResponses, body)
    };
    inbound(api, body.as_bytes()).unwrap()
}

#[test]
fn steps_come_back_as_the_calls_and_results_that_they_were() {
    for front in [Front::Responses, Front::Messages] {
        let asked = sent_back(front, "steps");
        let talk = &asked.conversation;
        let shown: Vec<String> = talk
            .messages
            .iter()
            .map(|message| {
                let calls: Vec<String> = message
                    .calls()
                    .iter()
                    .map(|call| format!(" {} {}", call.name, call.arguments))
                    .collect();
                format!("{} {:?}{}", message.role(), message.text(), calls.concat())
            })
            .collect();
        let invalid = match front {
            // A block has an object.
            Front::Messages => "{}",
            _ => "\"now\"",
        };
        let want = [
            "user \"a\"".to_owned(),
            format!(
                "assistant \"I look at both.\" weather {{\"city\":\"Paris\"}} weather {{\"city\":\"Oslo\"}} time {invalid}"
            ),
            "tool \"no such city\"".to_owned(),
            "tool \"the arguments are not JSON\"".to_owned(),
            "tool \"4 °C\\n\"".to_owned(),
            "assistant \"Once more.\" weather {}".to_owned(),
            "tool \"5 °C\"".to_owned(),
            "assistant \"It is 5 °C in Paris.\"".to_owned(),
            "user \"b\"".to_owned(),
        ];
        let want = match front {
            // The results come in the order of the items, which is that of the calls.
            Front::Responses => [0, 1, 4, 2, 3, 5, 6, 7, 8].map(|at: usize| want[at].clone()),
            _ => want,
        };
        assert_eq!(shown, want, "{front:?}");
        let url = "http://127.0.0.1/v1";
        let api = front.api();
        asked.check(api, Some((api, url))).unwrap();
        // A provider of the same API does not know these items.
        let options = RequestOptions {
            model: "m".into(),
            ..RequestOptions::default()
        };
        let body = request(api, talk, &options).unwrap().body;
        assert!(!body.contains("mcp"), "{body}");
    }
    let asked = sent_back(Front::Responses, "steps-that-wait");
    let [approval] = &asked.approvals[..] else {
        panic!("{:?}", asked.approvals)
    };
    assert_eq!(
        (approval.call_id.as_str(), approval.is_approved),
        ("call_a", true)
    );
}
