//! An upstream that is lost at any byte, or loses a frame: never a clean end, and no call that looks
//! finished although its arguments had not all come.
//!
//! A call looks finished to a client: on chat when its choice has a finish reason, and to the AI
//! SDK as soon as its arguments are JSON; on Responses with the status `completed` in its
//! `output_item.done`, which Codex runs at once; on Messages with the end of its block, until an
//! `error` event stops Claude Code from running it (MadAppGang/claudish#246).

use super::pipe::{Asked, accumulated, answer, events};
use super::read::{content, read};
use super::reading::{Ending, Reading};
use super::recorded::{Recorded, nothing, recorded};
use super::truth::truth;
use api::{AnswerForm, Api, End, Front};
use testkit::damage::{Damage, frames};
use testkit::places::{BODY, Sample, hash, is_full, is_named_tried, is_tried};

/// The streams that are cut at a wide sample of their bytes, one for each API of a front; all
/// others are cut at fewer places.
const WIDELY: [&str; 3] = [
    "openai-chat/row-21-text-before-call.sse",
    "anthropic/row-22-thinking-before-call.sse",
    "openai-responses/row-21-text-before-calls.sse",
];

/// What is wrong with the answers to a body that ends after each of these numbers of bytes.
fn cut(
    body: &Recorded,
    places: impl Iterator<Item = usize>,
    ends: &[End],
    wrong: &mut Vec<String>,
) {
    let whole = events(body.api, [&body.bytes[..]], End::Eof, None);
    let asked: Vec<_> = Asked::all()
        .map(|asked| (truth(&accumulated(&whole, &asked)), asked))
        .collect();
    for at in places {
        // In a sample the ends take turns.
        let turn = if is_full() {
            ends
        } else {
            &ends[at % ends.len()..][..1]
        };
        for end in turn {
            let want = truth(&events(body.api, [&body.bytes[..at]], end.clone(), None)).ending;
            let part = Part {
                name: format!("{} at {at}", body.name),
                api: body.api,
                bytes: &body.bytes[..at],
                end: end.clone(),
                want,
            };
            for (complete, asked) in &asked {
                part.answered(complete, asked, wrong);
            }
        }
    }
}

/// What came of a body that is not whole.
struct Part<'b> {
    name: String,
    api: Api,
    bytes: &'b [u8],
    end: End,
    /// How its events end.
    want: Ending,
}

impl Part<'_> {
    /// What is wrong with one answer to it. `complete` is the answer to the whole body.
    fn answered(&self, complete: &Reading, asked: &Asked, wrong: &mut Vec<String>) {
        let answered = answer(self.api, [self.bytes], self.end.clone(), asked);
        let got = read(asked, &answered);
        let name = format!("{}, {:?} {:?}", self.name, asked.front, asked.form);
        let mut rule = |holds: bool, what: &str| {
            if !holds {
                wrong.push(format!("{name}: {what}:\n{}", answered.text()));
            }
        };
        rule(got.wrong.is_empty(), &got.wrong.join("; "));
        if self.want == Ending::Clean {
            // The provider's end mark had come.
            let failed = complete.has_withdrawn && matches!(got.ending, Ending::Failed(_));
            rule(
                got.ending == Ending::Clean || failed || complete.ending != Ending::Clean,
                "an end",
            );
            return;
        }
        rule(
            matches!(got.ending, Ending::Failed(_)),
            "a clean end, or none",
        );
        rule(
            got.choices.iter().all(|c| c.finish.is_none()),
            "a finish reason",
        );
        rule(
            asked.form == AnswerForm::Stream || answered.refused.is_some(),
            "a whole answer",
        );
        let whole = content(asked.front, complete);
        for (choice, whole) in content(asked.front, &got).iter().zip(&whole) {
            let known = choice.calls.iter().all(|call| whole.calls.contains(call));
            // A call that the upstream takes back later is not in the complete answer.
            rule(
                known || complete.has_withdrawn,
                "a finished call that the upstream had not finished",
            );
        }
    }
}

/// Frames of which a part is lost, or all of it, with another text in their place: no front has an
/// end, and no call that a piece may be missing of is finished.
#[test]
fn a_frame_that_is_lost_on_its_way_never_ends_cleanly() {
    let mut wrong = Vec::new();
    let mut tried = 0;
    for body in recorded() {
        let whole = events(body.api, [&body.bytes[..]], End::Eof, None);
        let asked: Vec<_> = Asked::all()
            .map(|asked| (truth(&accumulated(&whole, &asked)), asked))
            .collect();
        for (number, frame) in frames(&body.bytes).iter().enumerate() {
            let place = number ^ hash(body.name.as_bytes()) as usize;
            for (turn, damage) in Damage::ALL.into_iter().enumerate() {
                if !is_tried(place + turn, 64) {
                    continue;
                }
                let bytes = damage.of(&body.bytes, frame);
                let lines = events(body.api, [&bytes[..]], End::Eof, None);
                // The end had come, or what is left of the first line is a comment of an event stream.
                if lines == whole || bytes.starts_with(b":") {
                    continue;
                }
                tried += 1;
                let part = Part {
                    name: format!("{}, frame {number}, {damage:?}", body.name),
                    api: body.api,
                    bytes: &bytes,
                    end: End::Eof,
                    want: Ending::Failed(String::new()),
                };
                for (complete, asked) in &asked {
                    part.answered(complete, asked, &mut wrong);
                }
            }
        }
    }
    assert!(tried > 100, "{tried}");
    nothing(&wrong);
}

#[test]
fn a_call_is_finished_only_when_its_upstream_has_closed_it() {
    let mut wrong = Vec::new();
    let name = "openai-chat/row-21-text-before-call.sse";
    let body = recorded()
        .into_iter()
        .find(|body| body.name == name)
        .expect("the recorded body");
    let text = String::from_utf8(body.bytes.clone()).expect("UTF-8");
    // All arguments have come here, and chat completions close a call with the finish reason alone.
    let finish = text
        .find(r#""finish_reason":"tool_calls""#)
        .expect("a finish reason");
    let at = text[..finish]
        .rfind("data:")
        .expect("the frame of the finish reason");
    for asked in Asked::all().filter(|asked| asked.form == AnswerForm::Stream) {
        let answered = answer(
            body.api,
            [&body.bytes[..at]],
            End::Reset("reset".to_owned()),
            &asked,
        )
        .text();
        let (call, end) = match asked.front {
            // The last brace makes JSON of the arguments, which the AI SDK runs.
            Front::Chat => (r#""tool_calls""#, r#"}"}}]}"#),
            Front::Responses => (
                r#""function_call""#,
                "response.function_call_arguments.done",
            ),
            Front::Messages => (r#""tool_use""#, "content_block_stop"),
        };
        let begun = answered.find(call).expect("a call that has begun");
        if answered[begun..].contains(end) {
            wrong.push(format!("{:?}: a finished call: {answered}", asked.front));
        }
    }
    nothing(&wrong);
}

#[test]
fn a_connection_that_is_lost_at_any_byte_never_ends_cleanly() {
    let mut wrong = Vec::new();
    let mut bodies = 0;
    for body in recorded()
        .into_iter()
        .filter(|body| WIDELY.contains(&body.name.as_str()))
    {
        bodies += 1;
        cut(
            &body,
            Sample::WIDE.places(&body.bytes, BODY).into_iter(),
            &[End::Reset("the connection was reset".to_owned())],
            &mut wrong,
        );
    }
    assert_eq!(bodies, WIDELY.len());
    nothing(&wrong);
}

#[test]
fn every_body_that_is_lost_somewhere_never_ends_cleanly() {
    const MOST: usize = 64;
    let ends = [
        End::Eof,
        End::Reset("reset".to_owned()),
        End::Timeout("no bytes for 60 s".to_owned()),
    ];
    let mut wrong = Vec::new();
    for body in recorded() {
        if !is_named_tried(&body.name, 2) {
            continue;
        }
        // Each place takes six answers for each end: every byte of every body would take hours.
        let places = Sample::FEW.places(&body.bytes, BODY);
        let step = places.len().div_ceil(MOST);
        cut(&body, places.into_iter().step_by(step), &ends, &mut wrong);
    }
    nothing(&wrong);
}
