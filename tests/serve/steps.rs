//! The laws of answers with steps: calls that the service ran are shown by every front that has a
//! place for them, and the strict readers accept the answers.

use super::pipe::{Answered, Asked, accumulated, events};
use super::read::read;
use super::reading::{Ending, Step};
use super::recorded::recorded;
use api::{AnswerForm, AnswerOptions, Encoder, End, Front};
use event::payload::{ContentDelta, StreamEnd, ToolCall, ToolResult};
use event::{Event, Kind, Payload, Scanner};
use serde_json::Value;

/// Loops: the events of each recorded body that has calls, then results of them, then a text of the
/// next turn.
fn loops() -> Vec<(String, Vec<String>)> {
    let asked = Asked::new(Front::Chat, AnswerForm::Stream);
    let mut all = Vec::new();
    for body in recorded() {
        let events = events(body.api, [&body.bytes[..]], End::Eof, None);
        let mut lines = accumulated(&events, &asked);
        let Some(calls) = calls(&lines) else { continue };
        for (place, (id, name)) in calls.iter().enumerate() {
            let status = ["success", "error", "denied", "timeout", "pending"][place % 5];
            let output = format!("result {place}");
            let result = ToolResult {
                tool_id: id.as_str().into(),
                tool_name: name.as_str().into(),
                status: status.into(),
                output: output.as_str().into(),
                ..ToolResult::default()
            };
            lines.push(line(&result.into()));
        }
        let text = ContentDelta {
            text: "Done.".into(),
            ..ContentDelta::default()
        };
        lines.push(line(&text.into()));
        all.push((body.name, lines));
    }
    assert!(all.len() > 50, "{}", all.len());
    all
}

fn line(payload: &Payload<'_>) -> String {
    Event::of(payload, None, 0, None).raw().into_owned()
}

/// The ids and names of the calls of choice 0, the last call first; `None` without one, and where the
/// stream failed or withdrew a call.
fn calls(lines: &[String]) -> Option<Vec<(String, String)>> {
    let mut scanner = Scanner::default();
    let mut calls = Vec::new();
    for line in lines {
        let event = scanner.read(line).ok()?;
        match event.kind() {
            Kind::Error | Kind::Retract => return None,
            Kind::ToolCall if event.choice() == 0 => {
                let call = ToolCall::read(&event);
                let [id, name] = [call.tool_id, call.tool_name].map(|text| text.str().into_owned());
                if name.is_empty() {
                    return None;
                }
                calls.push((id, name));
            }
            _ => {}
        }
    }
    calls.reverse();
    (!calls.is_empty()).then_some(calls)
}

/// The steps of a log.
fn wanted(lines: &[String]) -> Vec<Step> {
    let mut scanner = Scanner::default();
    let mut steps: Vec<(String, Step)> = Vec::new();
    for line in lines {
        let event = scanner.read(line).expect("an event");
        match event.kind() {
            Kind::ToolCall if event.choice() == 0 => {
                let call = ToolCall::read(&event);
                let arguments = call.arguments.map(|json| json.text().into_owned());
                let text = || call.arguments_text.unwrap_or_default().str().into_owned();
                let text = arguments.filter(|json| json != "null").unwrap_or_else(text);
                let step = Step {
                    name: call.tool_name.str().into_owned(),
                    arguments: serde_json::from_str(&text).unwrap_or_else(|_| text.into()),
                    result: None,
                };
                steps.push((call.tool_id.str().into_owned(), step));
            }
            Kind::ToolResult => {
                let result = ToolResult::read(&event);
                let id = result.tool_id.str();
                let is_error = result.status != "success";
                let is_it = |(other, _): &&mut (String, Step)| *other == id;
                if let Some((_, step)) = steps.iter_mut().rev().find(is_it)
                    && result.status != "pending"
                {
                    step.result = Some((result.output.str().into_owned(), is_error));
                }
            }
            _ => {}
        }
    }
    steps.into_iter().map(|(_, step)| step).collect()
}

/// The answer of a log, in which every call is the service's.
fn answered(asked: &Asked, lines: &[String]) -> Answered {
    let mut encoder = Encoder::new(asked.front, asked.form, asked.options.clone());
    let mut scanner = Scanner::default();
    let mut body = Vec::new();
    for line in lines {
        let event = scanner.read(line).expect("an event");
        match event.kind() {
            _ if event.choice() > 0 => {}
            Kind::ToolCallDelta | Kind::ToolCall | Kind::ToolResult => {
                encoder.step(&event, &mut body);
            }
            Kind::StreamEnd => {}
            _ => encoder.push(&event, &mut body),
        }
    }
    let end = StreamEnd {
        finish_reason: event::payload::FinishReason::Stop,
        ..StreamEnd::default()
    };
    encoder.push(&Event::of(&end.into(), None, 0, None), &mut body);
    encoder.finish(&mut body);
    let failure = encoder.failure().cloned();
    assert!(failure.is_none(), "{failure:?}");
    Answered {
        body,
        refused: None,
        failure,
    }
}

#[test]
fn every_front_shows_the_steps_of_a_loop_or_none_of_them() {
    let mut shown = 0;
    for (name, lines) in &loops() {
        for asked in Asked::all() {
            let options = AnswerOptions {
                shows_steps: true,
                ..asked.options.clone()
            };
            let asked = Asked { options, ..asked };
            let place = format!("{name} {:?} {:?}", asked.front, asked.form);
            let answered = answered(&asked, lines);
            let got = read(&asked, &answered);
            assert!(
                got.wrong.is_empty(),
                "{place}: {:#?}\n{}",
                got.wrong,
                answered.text()
            );
            assert_eq!(got.ending, Ending::Clean, "{place}");
            let mut want = wanted(lines);
            if asked.front == Front::Messages {
                // A block has an object.
                for step in want.iter_mut().filter(|step| !step.arguments.is_object()) {
                    step.arguments = Value::Object(serde_json::Map::new());
                }
            }
            if asked.front == Front::Responses {
                let failed = ("the call was not run".to_owned(), true);
                let waits = answered.text().contains("mcp_approval_request");
                for step in want
                    .iter_mut()
                    .filter(|step| step.result.is_none() && !waits)
                {
                    step.result = Some(failed.clone());
                }
            }
            let steps = got.choices.first().map(|choice| choice.steps.clone());
            let steps = steps.unwrap_or_default();
            if asked.front == Front::Chat {
                assert!(steps.is_empty(), "{place}");
                continue;
            }
            assert_eq!(steps, want, "{place}");
            shown += steps.len();
        }
    }
    assert!(shown > 50, "{shown}");
}

#[test]
fn steps_are_hidden_unless_they_are_asked_for() {
    for (name, lines) in &loops() {
        for front in Front::ALL {
            let asked = Asked::new(front, AnswerForm::Stream);
            let text = answered(&asked, lines).text();
            assert!(!text.contains("mcp_"), "{name} {front:?}: {text}");
        }
    }
}
