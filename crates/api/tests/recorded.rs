//! Every recorded body of `fixtures/streams` as upstream of every front: the answer, read back by
//! the decoder of its API, has the text, the calls and the end of the recording; its stream and its
//! whole answer agree; a recording that failed never ends well.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use accumulate::{Accumulate, AccumulateOptions};
use event::{Chain, Collect, Event, Raw, Scanner};
use std::fs;
use std::rc::Rc;
use toolpipe_api::{AnswerForm, AnswerOptions, Api, Encoder, End, Front, Stream, StreamOptions};

/// The events of a body.
fn events(api: Api, body: &[u8]) -> Vec<String> {
    let mut out = Collect::default();
    let mut stream = Stream::new(api, StreamOptions::default());
    stream.push(body, &mut out);
    stream.finish(End::Eof, &mut out);
    out.lines
}

/// What the first choice of a stream means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Meaning {
    text: String,
    refusal: String,
    /// Text and refusal in their order, which not every API keeps.
    both: String,
    calls: Vec<(String, String)>,
    end: String,
    has_cut_call: bool,
    /// A call was withdrawn that a stream may have sent.
    has_retract: bool,
}

impl Meaning {
    /// Of events that were merged.
    fn of(lines: &[String]) -> Meaning {
        let mut meaning = Meaning::default();
        let mut has_error = false;
        let mut ids = Vec::new();
        let mut api = String::new();
        for line in lines {
            let event = Raw::parse(line).unwrap();
            if event.get("choice").is_some() {
                continue;
            }
            let text = |key: &str| event.get_str(key).unwrap_or_default().into_owned();
            match text("type").as_str() {
                "stream_start" => api = text("api"),
                "content_delta" => {
                    meaning.text += &text("text");
                    meaning.both += &text("text");
                }
                "refusal_delta" => {
                    meaning.refusal += &text("text");
                    // An explanation of the same API is a member beside the content of Messages.
                    if api != "anthropic" {
                        meaning.both += &text("text");
                    }
                }
                "tool_call" => match event
                    .get("error")
                    .and_then(|error| error.get_str("code"))
                    .as_deref()
                {
                    None => {
                        let arguments = event.get("arguments").map(Raw::text).unwrap_or_default();
                        meaning
                            .calls
                            .push((text("tool_name"), arguments.to_owned()));
                        ids.push(text("tool_id"));
                    }
                    Some("incomplete") => meaning.has_cut_call = true,
                    // Valid JSON goes to the client, anything else fails the answer.
                    Some(_) => match Raw::parse(text("arguments_text").trim()) {
                        Ok(value) if value.is_object() && !text("tool_name").is_empty() => {
                            let mut out = Vec::new();
                            event::minify(&mut out, value.text());
                            meaning
                                .calls
                                .push((text("tool_name"), String::from_utf8(out).unwrap()));
                            ids.push(text("tool_id"));
                        }
                        _ => has_error = true,
                    },
                },
                "retract" => {
                    meaning.has_retract = true;
                    if let Some(at) = ids.iter().position(|id| *id == text("tool_id")) {
                        ids.remove(at);
                        meaning.calls.remove(at);
                    }
                }
                "stream_end" => meaning.end = text("finish_reason"),
                "error" => has_error = true,
                _ => {}
            }
        }
        if has_error || matches!(meaning.end.as_str(), "error" | "cut" | "cancelled" | "") {
            return Meaning {
                end: "error".into(),
                ..Meaning::default()
            };
        }
        meaning
    }
}

/// An answer, and whether it failed before its first byte.
fn answer(front: Front, form: AnswerForm, events: &[String]) -> (String, bool) {
    let options = AnswerOptions {
        id: "1".into(),
        model: "m".into(),
        include_usage: true,
        ..AnswerOptions::default()
    };
    let mut encoder = Encoder::new(front, form, options);
    let mut out = Vec::new();
    let mut scanner = Scanner::default();
    for line in events {
        encoder.push(&scanner.read(line).unwrap(), &mut out);
    }
    encoder.finish(&mut out);
    assert!(encoder.is_done());
    (
        String::from_utf8(out).unwrap(),
        encoder.failure().is_some() && !encoder.has_begun(),
    )
}

fn accumulate(live: bool) -> Accumulate {
    Accumulate::new(Rc::new(AccumulateOptions {
        live,
        ..AccumulateOptions::default()
    }))
}

/// What is wrong with the answers of one recording.
fn check(name: &str, body: &[u8], api: Api, wrong: &mut Vec<String>) {
    let raw = events(api, body);
    let tag = tag::Streams::new(tag::TagOptions {
        always: true,
        needs_tools: true,
        ..tag::TagOptions::default()
    });
    let first = raw.first().cloned().unwrap_or_default();
    let mut scanner = Scanner::default();
    let Ok(first) = scanner.read(&first) else {
        return;
    };
    let machines =
        |live: bool| Chain::new(tag.begin(&first), move |_: &Event<'_>| accumulate(live));
    let want = Meaning::of(&Collect::run(&mut machines(false), &raw));
    let merged = Collect::run(&mut machines(true), &raw);
    for (front, api) in [
        (Front::Chat, Api::OpenaiChat),
        (Front::Responses, Api::OpenaiResponses),
        (Front::Messages, Api::Anthropic),
    ] {
        let mut forms = Vec::new();
        for form in [AnswerForm::Stream, AnswerForm::Whole] {
            let (bytes, has_failed) = answer(front, form, &merged);
            let got = if has_failed || bytes.is_empty() {
                Meaning {
                    end: "error".into(),
                    ..Meaning::default()
                }
            } else {
                Meaning::of(&Collect::run(
                    &mut Accumulate::new(Rc::default()),
                    events(api, bytes.as_bytes()),
                ))
            };
            let mut want = want.clone();
            let is_cut = matches!(want.end.as_str(), "length" | "content_filter");
            if !is_cut {
                let whole = if want.calls.is_empty() {
                    "stop"
                } else {
                    "tool_calls"
                };
                want.end = match want.end.as_str() {
                    "error" => "error".into(),
                    _ if want.has_cut_call => "length".into(),
                    _ => whole.to_owned(),
                };
            }
            if front == Front::Messages && !want.refusal.is_empty() && want.end != "error" {
                // The API has no refusals but the end of a message: they are text, in their place.
                want.end = "content_filter".into();
                want.refusal.clear();
                want.text.clone_from(&want.both);
            }
            if want.has_retract && form == AnswerForm::Stream && got.end == "error" {
                // A stream cannot take back what was sent.
                forms.clear();
                continue;
            }
            if (&got.text, &got.refusal, &got.calls, &got.end)
                != (&want.text, &want.refusal, &want.calls, &want.end)
            {
                wrong.push(format!(
                    "{name} {front:?} {form:?}:\n  got  {got:?}\n  want {want:?}"
                ));
            }
            forms.push((got.text, got.refusal, got.calls, got.end));
        }
        if forms.len() == 2 && forms[0] != forms[1] {
            wrong.push(format!("{name} {front:?}: stream and whole answer differ"));
        }
    }
}

#[test]
fn every_front_says_what_was_recorded() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for body in testkit::bodies() {
        let api = Api::from_name(&body.api).unwrap();
        count += 1;
        let bytes = fs::read(&body.path).unwrap();
        check(&body.name, &bytes, api, &mut wrong);
    }
    assert!(count > 100, "{count} bodies");
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
