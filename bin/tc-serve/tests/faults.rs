//! A provider whose connection breaks, at any byte: no front ends such an answer cleanly, and no
//! call looks finished that is not.

#![allow(clippy::unwrap_used, reason = "it is how a test fails")]

use crate::service::{Service, answer, provider};
use accumulate::Accumulate;
use api::{AnswerForm, AnswerOptions, Encoder, Front};
use api::{Api, End, Stream, StreamOptions};
use event::payload::Payload;
use event::{Chain, Event, Machine, Sink};
use serde_json::Value;
use std::rc::Rc;
use testkit::places::{BODY, Sample};

/// Streams with a call, and the text in them after which the provider has ended the answer.
const STREAMS: [(Api, &str, &str); 3] = [
    (
        Api::OpenaiChat,
        "openai-chat/row-03-index-of-tool.sse",
        "\"finish_reason\":\"tool_calls\"",
    ),
    (
        Api::Anthropic,
        "anthropic/row-22-thinking-before-call.sse",
        "\"stop_reason\":\"tool_use\"",
    ),
    (
        Api::OpenaiResponses,
        "openai-responses/row-22-reasoning-before-call.sse",
        "\"type\":\"response.completed\"",
    ),
];

fn body(file: &str) -> Vec<u8> {
    std::fs::read(format!(
        "{}/../../fixtures/streams/{file}",
        env!("CARGO_MANIFEST_DIR")
    ))
    .unwrap()
}

/// The number of bytes after which the answer is complete: the end of the line that holds `mark`.
fn complete(body: &[u8], mark: &str) -> usize {
    let text = std::str::from_utf8(body).unwrap();
    let at = text.find(mark).expect("the mark of the end");
    at + text[at..].find('\n').unwrap()
}

/// The machines of tc-serve, one after the other.
struct Pipe {
    machine: Option<Box<dyn Machine>>,
    streams: tag::Streams,
    encoder: Encoder,
    out: Vec<u8>,
}

struct Last<'p>(Option<&'p Event<'p>>, &'p mut Encoder, &'p mut Vec<u8>);

impl Sink for Last<'_> {
    fn pass(&mut self) {
        self.1.push(self.0.unwrap(), self.2);
    }

    fn write(&mut self, choice: u32, payload: &Payload<'_>) {
        self.1.push(&Event::of(payload, None, choice, None), self.2);
    }
}

impl Sink for Pipe {
    fn pass(&mut self) {}

    fn write(&mut self, choice: u32, payload: &Payload<'_>) {
        let event = Event::of(payload, None, choice, None);
        let streams = &self.streams;
        let machine = self.machine.get_or_insert_with(|| {
            let options = Rc::new(accumulate::AccumulateOptions {
                live: true,
                emit_on: accumulate::EmitOn::Sealed,
                ..accumulate::AccumulateOptions::default()
            });
            Box::new(Chain::new(streams.begin(&event), move |_: &Event<'_>| {
                Accumulate::new(Rc::clone(&options))
            }))
        });
        machine.push(
            &event,
            &mut Last(Some(&event), &mut self.encoder, &mut self.out),
        );
    }
}

/// The answer of `front` to `bytes`, which end in this way; and whether it failed.
fn answered(api: Api, bytes: &[u8], end: &End, front: Front, form: AnswerForm) -> (String, bool) {
    let options = AnswerOptions {
        id: "x".into(),
        model: "m".into(),
        ..AnswerOptions::default()
    };
    let streams = tag::Streams::new(tag::TagOptions {
        always: true,
        ..tag::TagOptions::default()
    });
    let mut pipe = Pipe {
        machine: None,
        streams,
        encoder: Encoder::new(front, form, options),
        out: vec![],
    };
    let mut stream = Stream::new(api, StreamOptions::default());
    stream.push(bytes, &mut pipe);
    stream.finish(end.clone(), &mut pipe);
    if let Some(mut machine) = pipe.machine.take() {
        machine.finish(&mut Last(None, &mut pipe.encoder, &mut pipe.out));
    }
    pipe.encoder.finish(&mut pipe.out);
    (
        String::from_utf8(pipe.out).unwrap(),
        pipe.encoder.failure().is_some(),
    )
}

/// The JSON of the `data:` lines.
fn data(text: &str) -> Vec<Value> {
    text.lines()
        .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
        .collect()
}

/// What a client takes for the end of an answer that is whole.
fn ends_well(front: Front, text: &str) -> bool {
    data(text).iter().any(|event| match front {
        Front::Chat => event["choices"][0]["finish_reason"].is_string(),
        Front::Responses => event["type"] == "response.completed",
        Front::Messages => {
            event["type"] == "message_stop" || event["delta"]["stop_reason"].is_string()
        }
    })
}

/// The arguments of the calls that a client takes for finished, before the answer has ended.
fn finished_calls(front: Front, text: &str) -> Vec<String> {
    let mut calls = vec![];
    let mut open = None::<String>;
    for event in data(text) {
        match (front, event["type"].as_str().unwrap_or_default()) {
            (Front::Responses, "response.output_item.done")
                if event["item"]["type"] == "function_call" =>
            {
                calls.push(event["item"]["arguments"].as_str().unwrap().to_owned());
            }
            (Front::Messages, "content_block_start")
                if event["content_block"]["type"] == "tool_use" =>
            {
                open = Some(String::new());
            }
            (Front::Messages, "content_block_delta") => {
                if let (Some(open), Some(more)) =
                    (&mut open, event["delta"]["partial_json"].as_str())
                {
                    open.push_str(more);
                }
            }
            (Front::Messages, "content_block_stop") => calls.extend(open.take()),
            _ => {}
        }
    }
    calls
}

#[test]
fn a_reset_at_any_byte_is_an_error_on_every_front() {
    let reset = End::Reset("the connection was lost".into());
    for (api, file, mark) in STREAMS {
        let body = body(file);
        let complete = complete(&body, mark);
        for front in Front::ALL {
            let (whole, failed) = answered(api, &body, &End::Eof, front, AnswerForm::Stream);
            assert!(
                !failed && ends_well(front, &whole),
                "{file} {front:?}: the stream itself is whole: {whole}"
            );
            let calls = finished_calls(front, &whole);
            assert!(
                front == Front::Chat || !calls.is_empty(),
                "{file} {front:?}: no call: {whole}"
            );
            for at in Sample::WIDE.places(&body[..complete - 1], BODY) {
                let (text, failed) = answered(api, &body[..at], &reset, front, AnswerForm::Stream);
                assert!(
                    failed && !ends_well(front, &text),
                    "{file} {front:?} at byte {at}: {text}"
                );
                for call in finished_calls(front, &text) {
                    assert!(
                        calls.contains(&call),
                        "{file} {front:?} at byte {at}: a part of a call is finished: {text}"
                    );
                }
                if at % 5 > 0 {
                    continue; // a whole answer is written at the end alone
                }
                let (text, failed) = answered(api, &body[..at], &reset, front, AnswerForm::Whole);
                assert!(
                    failed && text.is_empty(),
                    "{file} {front:?} at byte {at}: a whole answer: {text}"
                );
            }
        }
    }
}

#[test]
fn a_reset_over_a_socket_is_an_error_on_every_front() {
    const STEP: usize = 83;
    for (api, file, mark) in STREAMS {
        let body = body(file);
        let complete = complete(&body, mark);
        let sent = body.clone();
        let provider = provider(move |number, _, stream| {
            let at = number / (2 * Front::ALL.len()) * STEP;
            answer(
                stream,
                "200 OK",
                "content-type: text/event-stream\r\n",
                &sent,
                Some(at),
            )
        });
        let service = Service::new(&[
            "--api",
            api.name(),
            "--base-url",
            &provider.url,
            "--retries",
            "0",
        ]);
        for at in (0..complete).step_by(STEP) {
            for front in Front::ALL {
                for streams in [true, false] {
                    let request = format!(
                        r#"{{"model":"m","stream":{streams},"max_tokens":9,"{}":[{{"role":"user","content":"hi"}}]}}"#,
                        if front == Front::Responses {
                            "input"
                        } else {
                            "messages"
                        }
                    );
                    let (head, text) = service.reply("POST", front.path(), &request);
                    let what =
                        format!("{file} {front:?} stream {streams} at byte {at}: {head}\n{text}");
                    assert!(!ends_well(front, &text), "{what}");
                    let has_error = text.contains("\"error\"") || text.contains("response.failed");
                    assert!(has_error, "{what}");
                    if !streams || !text.contains("data: ") {
                        assert!(head.starts_with("http/1.1 50"), "{what}");
                    }
                }
            }
        }
    }
}
