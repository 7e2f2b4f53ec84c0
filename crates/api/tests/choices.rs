//! How many choices a client gets.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use event::{Raw, Scanner};
use toolpipe_api::{AnswerForm, AnswerOptions, Encoder, Front};

/// Two choices of one upstream, of which the second begins first and has a call that is cut.
const EVENTS: [&str; 5] = [
    r#"{"type":"stream_start","v":1,"model":"m"}"#,
    r#"{"type":"content_delta","choice":1,"text":"two"}"#,
    r#"{"type":"tool_call_delta","choice":1,"index":0,"tool_id":"c1","tool_name":"f","arguments":"{\"a\":"}"#,
    r#"{"type":"content_delta","text":"one"}"#,
    r#"{"type":"stream_end","finish_reason":"stop"}"#,
];

fn answer(front: Front, form: AnswerForm, choices: Option<u32>) -> String {
    let mut encoder = Encoder::new(
        front,
        form,
        AnswerOptions {
            choices,
            ..AnswerOptions::default()
        },
    );
    let mut out = Vec::new();
    let mut scanner = Scanner::default();
    for event in EVENTS {
        encoder.push(&scanner.read(event).unwrap(), &mut out);
    }
    encoder.finish(&mut out);
    // What the client does not get is counted.
    assert_eq!(
        encoder.dropped().other_choices,
        if choices == Some(1) { 2 } else { 0 }
    );
    String::from_utf8(out).unwrap()
}

#[test]
fn a_choice_that_the_client_did_not_ask_for_is_dropped() {
    for front in Front::ALL {
        for form in [AnswerForm::Stream, AnswerForm::Whole] {
            let text = answer(front, form, Some(1));
            assert!(
                text.contains("one") && !text.contains("two") && !text.contains("c1"),
                "{front:?} {form:?}: {text}"
            );
        }
    }
    let text = answer(Front::Chat, AnswerForm::Whole, Some(1));
    assert_eq!(
        Raw::parse(&text)
            .unwrap()
            .get("choices")
            .unwrap()
            .items()
            .count(),
        1,
        "{text}"
    );
}

#[test]
fn choices_begin_in_order() {
    let text = answer(Front::Chat, AnswerForm::Stream, Some(2));
    let first = text.lines().next().unwrap();
    assert!(first.contains(r#""index":0"#), "{first}");
    assert!(text.contains("two"), "{text}");
}
