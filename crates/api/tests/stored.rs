//! Answers that are kept: what is written again from the lines of a log is what the client got, for
//! every recorded body of `fixtures/streams` and every front; and the response object of OpenAI
//! Responses at any time.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use accumulate::{Accumulate, AccumulateOptions};
use event::{Emitted, Event, Machine, Scanner, SinkOf};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::rc::Rc;
use toolpipe_api::{
    AnswerForm, AnswerOptions, Api, Clock, Encoder, End, Front, NamespacedTool, RunningStatus,
    Stream, StreamOptions,
};

/// Every recorded body with its API.
fn bodies() -> Vec<(Api, PathBuf)> {
    let all = testkit::bodies().into_iter();
    all.map(|body| (Api::from_name(&body.api).unwrap(), body.path))
        .collect()
}

/// The merged events of a body, as the machines of a process hand them on, to `take`.
fn run(api: Api, body: &[u8], take: &mut dyn FnMut(&Event<'_>)) {
    let mut merge = Accumulate::new(Rc::new(AccumulateOptions {
        live: true,
        ..AccumulateOptions::default()
    }));
    let mut stream = Stream::new(api, StreamOptions::default());
    let mut is_over = false;
    let mut hand = |event: &Event<'_>| {
        is_over |= event.kind() == event::Kind::StreamEnd;
        merge.push(
            event,
            &mut SinkOf(|emitted: Emitted<'_>| match emitted {
                Emitted::Passed => take(event),
                Emitted::Written(choice, payload) => {
                    take(&Event::of(payload, None, choice, None));
                }
            }),
        );
    };
    let mut out = SinkOf(|emitted: Emitted<'_>| {
        if let Emitted::Written(choice, payload) = emitted {
            hand(&Event::of(payload, None, choice, None));
        }
    });
    stream.push(body, &mut out);
    stream.finish(End::Eof, &mut out);
    assert!(is_over);
}

fn options() -> AnswerOptions {
    AnswerOptions {
        id: "0001".into(),
        model: "m".into(),
        created: 1_700_000_000,
        clock: Some(Clock::new(|| 7)),
        include_usage: true,
        extras: true,
        choices: Some(2),
        is_stored: true,
        is_background: true,
        conversation: Some("conv_1".into()),
        echo: vec![("metadata".into(), r#"{ "a" : "\u00e9" }"#.into())],
        custom_tools: vec!["sql".into()],
        namespaced_tools: vec![NamespacedTool {
            full_name: "a__b".into(),
            namespace: "a".into(),
            name: "b".into(),
        }],
        ..AnswerOptions::default()
    }
}

/// The options as the log of a session holds them.
fn reread(options: &AnswerOptions) -> AnswerOptions {
    let json = serde_json::to_string(options).unwrap();
    let mut options: AnswerOptions = serde_json::from_str(&json).unwrap();
    options.clock = Some(Clock::new(|| 7));
    options
}

/// What an encoder writes in the end, or its failure.
fn ended(mut encoder: Encoder, mut out: Vec<u8>) -> String {
    encoder.finish(&mut out);
    let failure = encoder.failure().filter(|_| !encoder.has_begun());
    let status = failure.map(|failure| format!("HTTP {}: {}", failure.status, failure.message));
    status.unwrap_or_default() + &String::from_utf8(out).unwrap()
}

/// The answer of a log of merged events.
fn of_log(front: Front, form: AnswerForm, options: AnswerOptions, log: &str) -> String {
    let mut encoder = Encoder::new(front, form, options);
    let mut scanner = Scanner::default();
    let mut out = Vec::new();
    for line in log.lines() {
        encoder.push(&scanner.read(line).unwrap(), &mut out);
    }
    ended(encoder, out)
}

#[test]
fn an_answer_written_again_from_its_log_is_the_same_byte_for_byte() {
    for (api, path) in bodies() {
        let body = std::fs::read(&path).unwrap();
        for front in Front::ALL {
            for form in [AnswerForm::Stream, AnswerForm::Whole, AnswerForm::Object] {
                let mut log = String::new();
                let mut encoder = Encoder::new(front, form, options());
                let mut out = Vec::new();
                run(api, &body, &mut |event| {
                    log += &event.raw();
                    log.push('\n');
                    encoder.push(event, &mut out);
                });
                let first = ended(encoder, out);
                assert_eq!(
                    of_log(front, form, reread(&options()), &log),
                    first,
                    "{} {front:?} {form:?}",
                    path.display()
                );
            }
        }
    }
}

/// The frames that keep a connection alive, which are no part of the answer.
fn without_signs_of_life(front: Front, text: &str) -> String {
    let is_sign = |frame: &&str| match front {
        Front::Chat => frame.starts_with(": "),
        Front::Responses => frame.starts_with("event: keepalive"),
        Front::Messages => frame.starts_with("event: ping"),
    };
    let frames = text.split_inclusive("\n\n");
    frames.filter(|frame| !is_sign(frame)).collect()
}

#[test]
fn when_a_stored_answer_begins_and_what_keeps_it_alive_do_not_show() {
    for (api, path) in bodies() {
        let mut lines = Vec::new();
        run(api, &std::fs::read(&path).unwrap(), &mut |event| {
            lines.push(event.raw().into_owned());
        });
        // The first events of a stream are before its content.
        let places = [0, 1, 2, lines.len()];
        for front in Front::ALL {
            let written = |begin: usize, alive: usize| {
                let mut encoder = Encoder::new(front, AnswerForm::Stream, options());
                let mut scanner = Scanner::default();
                let mut out = Vec::new();
                for (at, line) in lines.iter().enumerate() {
                    if at == begin {
                        encoder.begin(&mut out);
                    }
                    if at >= alive {
                        encoder.keep_alive(&mut out);
                    }
                    encoder.push(&scanner.read(line).unwrap(), &mut out);
                }
                without_signs_of_life(front, &ended(encoder, out))
            };
            let first = written(0, usize::MAX);
            for begin in places {
                let again = written(begin, usize::MAX);
                if !again.starts_with("HTTP ") && !again.is_empty() {
                    assert_eq!(again, first, "{} {front:?} {begin}", path.display());
                }
            }
            assert_eq!(written(0, 0), first, "{} {front:?}", path.display());
        }
    }
}

const LOG: &str = concat!(
    r#"{"type":"stream_start","v":1,"model":"upstream","api":"openai-responses"}"#,
    "\n",
    r#"{"type":"details","place":"answer","data":{"store":false,"previous_response_id":null,"service_tier":"flex"}}"#,
    "\n",
    r#"{"type":"thinking","text":"hm"}"#,
    "\n",
    r#"{"type":"content_delta","text":"It is "}"#,
    "\n",
    r#"{"type":"content_delta","text":"42."}"#,
    "\n",
    r#"{"type":"tool_call_delta","index":0,"tool_id":"c","tool_name":"f","arguments":"{\"a\":"}"#,
    "\n",
);

const CALL: &str = r#"{"type":"tool_call","index":0,"tool_id":"c","tool_name":"f","arguments":{"a":1}}
{"type":"stream_end","finish_reason":"tool_calls"}
"#;

#[test]
fn starting_after_leaves_out_the_events_that_the_client_has() {
    let log = format!("{LOG}{CALL}");
    let whole = of_log(Front::Responses, AnswerForm::Stream, options(), &log);
    let frames: Vec<&str> = whole.split_inclusive("\n\n").collect();
    assert!(frames.len() > 20 && frames.last().unwrap().contains("[DONE]"));
    for last in 0..frames.len() + 2 {
        let options = AnswerOptions {
            starting_after: Some(last as u64),
            ..options()
        };
        let rest = of_log(Front::Responses, AnswerForm::Stream, options, &log);
        let from = (last + 1).min(frames.len() - 1);
        assert_eq!(rest, frames[from..].concat(), "{last}");
    }
}

/// The object of a log.
fn object(form: AnswerForm, log: &str) -> Value {
    serde_json::from_str(&of_log(Front::Responses, form, options(), log)).unwrap()
}

/// The type and the status of each item.
fn items(response: &Value) -> Vec<(&str, Option<&str>)> {
    let output = response["output"].as_array().unwrap();
    output
        .iter()
        .map(|item| (item["type"].as_str().unwrap(), item["status"].as_str()))
        .collect()
}

#[test]
fn a_stored_answer_says_where_it_is_kept() {
    let response = object(AnswerForm::Whole, &format!("{LOG}{CALL}"));
    for (name, want) in [
        ("store", json!(true)),
        ("background", json!(true)),
        ("conversation", json!({"id": "conv_1"})),
        ("service_tier", json!("flex")),
        ("model", json!("m")),
        ("completed_at", json!(7)),
        ("status", json!("completed")),
    ] {
        assert_eq!(response[name], want, "{name}");
    }
    let plain = of_log(
        Front::Responses,
        AnswerForm::Whole,
        AnswerOptions::default(),
        LOG,
    );
    assert!(plain.starts_with("HTTP 502"), "{plain}");
    let small = serde_json::to_string(&AnswerOptions::default()).unwrap();
    assert_eq!(small, "{}");
}

#[test]
fn a_running_answer_has_its_items_so_far_and_no_call_that_is_open() {
    let mut encoder = Encoder::new(Front::Responses, AnswerForm::Stream, options());
    let snapshot = |encoder: &Encoder, status| -> Value {
        serde_json::from_slice(&encoder.snapshot(status).unwrap()).unwrap()
    };
    let queued = snapshot(&encoder, RunningStatus::Queued);
    assert_eq!(
        (&queued["status"], &queued["output"]),
        (&json!("queued"), &json!([]))
    );
    let mut scanner = Scanner::default();
    let mut out = Vec::new();
    let mut seen = Vec::new();
    for line in format!("{LOG}{CALL}").lines() {
        encoder.push(&scanner.read(line).unwrap(), &mut out);
        let now = snapshot(&encoder, RunningStatus::InProgress);
        assert_eq!(now["status"], "in_progress");
        let shown: Vec<_> = items(&now)
            .iter()
            .map(|(kind, status)| format!("{kind} {}", status.unwrap_or("-")))
            .collect();
        seen.push(shown.join(", "));
    }
    seen.dedup();
    assert_eq!(
        seen,
        [
            "",
            "reasoning -",
            "reasoning -, message in_progress",
            "reasoning -, message completed",
            "reasoning -, message completed, function_call completed",
        ]
    );
    let whole = Encoder::new(Front::Responses, AnswerForm::Whole, options());
    assert_eq!(snapshot(&whole, RunningStatus::Queued), queued);
    let chat = Encoder::new(Front::Chat, AnswerForm::Stream, options());
    assert_eq!(chat.snapshot(RunningStatus::Queued), None);
}

#[test]
fn a_cancelled_answer_is_an_object_and_its_stream_ends_without_an_error() {
    let log = format!(
        "{LOG}{}\n",
        r#"{"type":"stream_end","finish_reason":"cancelled"}"#
    );
    for form in [AnswerForm::Whole, AnswerForm::Object] {
        let response = object(form, &log);
        assert_eq!(response["status"], "cancelled");
        assert_eq!(
            (&response["error"], &response["usage"]),
            (&Value::Null, &Value::Null)
        );
        assert_eq!(
            items(&response),
            [
                ("reasoning", None),
                ("message", Some("completed")),
                ("function_call", Some("incomplete"))
            ]
        );
    }
    let stream = of_log(Front::Responses, AnswerForm::Stream, options(), &log);
    let last = stream
        .split("\n\n")
        .filter(|frame| frame.starts_with("event: "))
        .last()
        .unwrap();
    assert!(last.starts_with("event: response.failed\n"), "{last}");
    assert!(last.contains(r#""status":"cancelled""#) && last.contains(r#""error":null"#));
    for front in [Front::Chat, Front::Messages] {
        let text = of_log(front, AnswerForm::Whole, options(), &log);
        assert!(text.starts_with("HTTP 502"), "{front:?} {text}");
    }
}

#[test]
fn a_failed_answer_is_an_http_error_or_an_object_with_the_error() {
    let log = format!(
        "{LOG}{}\n",
        r#"{"type":"error","code":"interrupted","message":"the service stopped"}"#
    );
    let text = of_log(Front::Responses, AnswerForm::Whole, options(), &log);
    assert_eq!(text, "HTTP 502: the service stopped");
    let response = object(AnswerForm::Object, &log);
    assert_eq!(response["status"], "failed");
    assert_eq!(
        response["error"],
        json!({"code": "interrupted", "message": "the service stopped"})
    );
    assert_eq!(items(&response).len(), 3);
    // One that ends well is the same in both forms.
    let log = format!("{LOG}{CALL}");
    assert_eq!(
        object(AnswerForm::Object, &log),
        object(AnswerForm::Whole, &log)
    );
}
