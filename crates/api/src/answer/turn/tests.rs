//! Events into steps, by the cases of `steps.cases`: a line `# what the case shows`, the events, a
//! line `=>`, and the steps.

use super::Turn;
use crate::answer::step::Step;
use event::Scanner;
use std::fmt::Write;

/// The steps of events, a line each.
fn steps(events: &[&str], is_whole: bool) -> String {
    let mut out = String::new();
    let mut turn = Turn::new(true, is_whole);
    let mut take = |_: &str, choice: u32, step: &Step<'_>| {
        if choice > 0 {
            write!(out, "{choice}: ").unwrap();
        }
        line(step, &mut out);
    };
    let mut scanner = Scanner::default();
    for event in events {
        if *event == "begin()" {
            turn.begin(&mut take);
            continue;
        }
        turn.push(&scanner.read(event).unwrap(), &mut take);
    }
    turn.finish(&mut take);
    assert!(turn.is_done);
    for (what, count) in turn.dropped.notes() {
        writeln!(out, "note {what} {count}").unwrap();
    }
    if let Some(failure) = turn.failure.filter(|_| !turn.has_begun) {
        writeln!(
            out,
            "status {} {}: {}",
            failure.status, failure.code, failure.message
        )
        .unwrap();
    }
    out
}

fn line(step: &Step<'_>, out: &mut String) {
    match step {
        Step::Begin => writeln!(out, "begin"),
        Step::Reasoning {
            text,
            provider: None,
        } => writeln!(out, "reasoning {text:?}"),
        Step::Reasoning {
            text,
            provider: Some(data),
        } => writeln!(out, "reasoning {text:?} {data}"),
        Step::Text(text) => writeln!(out, "text {text:?}"),
        Step::Refusal(text) => writeln!(out, "refusal {text:?}"),
        Step::CallBegin { id, name, .. } => writeln!(out, "call {id} {name}"),
        Step::CallArguments(more) => writeln!(out, "  {more}"),
        Step::CallEnd {
            arguments,
            provider,
        } => writeln!(out, "end of call {arguments} {}", provider.unwrap_or("")),
        Step::Details(place, members) => {
            writeln!(
                out,
                "details {place:?} {}",
                serde_json::Value::from((*members).clone())
            )
        }
        Step::End {
            reason,
            provider: None,
        } => writeln!(out, "end {}", reason.name()),
        Step::End {
            reason,
            provider: Some(word),
        } => writeln!(out, "end {} {word}", reason.name()),
        Step::Extras(json) => writeln!(out, "extras {json}"),
        Step::Usage(u) => {
            writeln!(
                out,
                "usage {} {} {} {} {}",
                u.input, u.output, u.total, u.cached, u.reasoning
            )
        }
        Step::Failed(failure) => writeln!(
            out,
            "failed {} {}: {}",
            failure.status, failure.code, failure.message
        ),
    }
    .unwrap();
    let length = out.trim_end().len();
    out.truncate(length);
    out.push('\n');
}

#[test]
fn events_become_steps() {
    let text = include_str!("steps.cases");
    let mut wrong = Vec::new();
    for case in text
        .split("\n# ")
        .map(|case| case.strip_prefix("# ").unwrap_or(case))
    {
        let (name, rest) = case.split_once('\n').unwrap();
        let (events, want) = rest.split_once("=>\n").unwrap_or((rest, ""));
        let events: Vec<&str> = events.lines().filter(|line| !line.is_empty()).collect();
        let got = steps(&events, false);
        if got.trim_end() != want.trim_end() {
            wrong.push(format!("{name}:\n{got}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The steps without those that show when they came: texts are joined, and so are arguments.
fn joined(steps: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for line in steps.lines().filter(|line| !line.starts_with("  ")) {
        let kind = ["text \"", "reasoning \""]
            .into_iter()
            .find(|kind| line.starts_with(kind));
        match (out.last_mut(), kind) {
            (Some(last), Some(kind)) if last.starts_with(kind) && last.ends_with('"') => {
                last.pop();
                last.push_str(&line[kind.len()..]);
            }
            _ => out.push(line.to_owned()),
        }
    }
    out
}

#[test]
fn a_whole_answer_is_the_stream_at_its_end_and_nothing_of_it_was_sent_too_early() {
    let mut mended = 0;
    for case in include_str!("steps.cases").split("\n# ") {
        let (name, rest) = case.split_once('\n').unwrap();
        let events: Vec<&str> = rest
            .lines()
            .take_while(|line| *line != "=>")
            .filter(|line| !line.is_empty())
            .collect();
        // A stream writes its choices as they come.
        if events[0] == "begin()" || events.iter().any(|event| event.contains("\"choice\":")) {
            continue;
        }
        let (stream, whole) = (steps(&events, false), steps(&events, true));
        if ["call_withdrawn", "call_changed"]
            .iter()
            .any(|code| stream.contains(code))
        {
            // Only what was sent made these fail.
            assert!(
                whole.contains("\nusage") && !whole.contains("status"),
                "{name}:\n{whole}"
            );
            assert!(
                !stream.contains("call_withdrawn") || !whole.contains("call "),
                "{name}:\n{whole}"
            );
            mended += 1;
        } else if let Some((_, failure)) = stream.split_once("failed ") {
            assert_eq!(whole, format!("status {failure}"), "{name}");
        } else {
            assert_eq!(joined(&whole), joined(&stream), "{name}");
        }
    }
    assert!(mended > 3);
}
