//! When an answer begins: the status of the response is open until then.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use event::Scanner;
use toolpipe_api::{AnswerForm, AnswerOptions, Encoder, FailedAnswer, Front};

const START: &str = r#"{"type":"stream_start","v":1,"model":"m"}"#;
const TEXT: &str = r#"{"type":"content_delta","text":"Hi"}"#;
const ERROR: &str = r#"{"type":"error","code":"http_429","message":"slow down","status":429,"retry_after_ms":1500}"#;

fn push(encoder: &mut Encoder, event: &str, out: &mut Vec<u8>) {
    encoder.push(&Scanner::default().read(event).unwrap(), out);
}

#[test]
fn an_error_before_the_first_content_is_the_status_and_writes_nothing() {
    for front in Front::ALL {
        for form in [AnswerForm::Stream, AnswerForm::Whole] {
            let mut encoder = Encoder::new(front, form, AnswerOptions::default());
            let mut out = Vec::new();
            push(&mut encoder, START, &mut out);
            assert!(!encoder.has_begun() && !encoder.has_content() && encoder.failure().is_none());
            push(&mut encoder, ERROR, &mut out);
            encoder.finish(&mut out);
            let failure = encoder.failure().unwrap();
            assert_eq!(
                (failure.status, failure.retry_after_ms),
                (429, Some(1500)),
                "{front:?} {form:?}"
            );
            assert!(out.is_empty() && !encoder.has_begun() && encoder.is_done());
        }
    }
}

#[test]
fn an_error_behind_a_sign_of_life_goes_into_the_stream() {
    for front in Front::ALL {
        let mut encoder = Encoder::new(front, AnswerForm::Stream, AnswerOptions::default());
        let mut out = Vec::new();
        encoder.keep_alive(&mut out);
        assert!(encoder.has_begun() && !encoder.has_content());
        let begun = out.len();
        encoder.keep_alive(&mut out);
        assert!(begun > 0 && out.len() > begun, "{front:?}");
        push(&mut encoder, ERROR, &mut out);
        encoder.finish(&mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches("slow down").count(), 1, "{front:?}: {text}");
        assert!(
            !text.contains("[DONE]") || front == Front::Responses,
            "{front:?}: {text}"
        );
        assert!(
            !text.contains("message_stop") && !text.contains("response.completed"),
            "{front:?}: {text}"
        );
    }
}

#[test]
fn a_server_may_end_an_answer_at_any_time_and_only_once() {
    for front in Front::ALL {
        let mut encoder = Encoder::new(front, AnswerForm::Stream, AnswerOptions::default());
        let mut out = Vec::new();
        push(&mut encoder, TEXT, &mut out);
        encoder.fail(FailedAnswer::new("unavailable", "going down"), &mut out);
        let length = out.len();
        encoder.fail(FailedAnswer::new("timeout", "again"), &mut out);
        encoder.keep_alive(&mut out);
        push(&mut encoder, TEXT, &mut out);
        encoder.finish(&mut out);
        assert_eq!(
            out.len(),
            length,
            "{front:?}: {}",
            String::from_utf8_lossy(&out[length..])
        );
        assert_eq!(encoder.failure().unwrap().status, 503);
        assert_eq!(
            String::from_utf8_lossy(&out).matches("going down").count(),
            1
        );
    }
}

#[test]
fn a_whole_answer_writes_nothing_before_its_end() {
    for front in Front::ALL {
        let mut encoder = Encoder::new(front, AnswerForm::Whole, AnswerOptions::default());
        let mut out = Vec::new();
        encoder.begin(&mut out);
        push(&mut encoder, TEXT, &mut out);
        encoder.keep_alive(&mut out);
        push(
            &mut encoder,
            r#"{"type":"stream_end","finish_reason":"stop"}"#,
            &mut out,
        );
        assert!(out.is_empty() && !encoder.has_begun(), "{front:?}");
        encoder.finish(&mut out);
        assert!(String::from_utf8_lossy(&out).contains("Hi"), "{front:?}");
    }
}
