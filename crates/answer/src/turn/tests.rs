//! Events into steps, by the cases of `steps.cases`: a line `# what the case shows`, the events, a line `=>`, and the steps. `UPDATE=1` rewrites the
//! steps, for review by `git diff`.

use super::Turn;
use crate::step::Step;
use event::Scanner;
use std::fmt::Write;

/// The steps of events, a line each.
fn steps(events: &[&str]) -> String {
    let mut out = String::new();
    let mut turn = Turn::new(true);
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
    if let Some(failure) = turn.failure.filter(|_| !turn.has_begun) {
        writeln!(out, "status {} {}: {}", failure.status, failure.code, failure.message).unwrap();
    }
    out
}

fn line(step: &Step<'_>, out: &mut String) {
    match step {
        Step::Begin => writeln!(out, "begin"),
        Step::Reasoning { text, provider: None } => writeln!(out, "reasoning {text:?}"),
        Step::Reasoning { text, provider: Some(data) } => writeln!(out, "reasoning {text:?} {data}"),
        Step::Text(text) => writeln!(out, "text {text:?}"),
        Step::Refusal(text) => writeln!(out, "refusal {text:?}"),
        Step::CallBegin { id, name } => writeln!(out, "call {id} {name}"),
        Step::CallArguments(more) => writeln!(out, "  {more}"),
        Step::CallEnd { arguments, provider } => writeln!(out, "end of call {arguments} {}", provider.unwrap_or("")),
        Step::End(reason) => writeln!(out, "end {}", reason.name()),
        Step::Extras(json) => writeln!(out, "extras {json}"),
        Step::Usage(u) => {
            writeln!(out, "usage {} {} {} {} {}", u.input, u.output, u.total, u.cached, u.reasoning)
        }
        Step::Failed(failure) => writeln!(out, "failed {} {}: {}", failure.status, failure.code, failure.message),
    }
    .unwrap();
    let length = out.trim_end().len();
    out.truncate(length);
    out.push('\n');
}

#[test]
fn events_become_steps() {
    let text = include_str!("steps.cases");
    let mut rewritten = String::new();
    let mut wrong = Vec::new();
    for case in text.split("\n# ").map(|case| case.strip_prefix("# ").unwrap_or(case)) {
        let (name, rest) = case.split_once('\n').unwrap();
        let (events, want) = rest.split_once("=>\n").unwrap_or((rest, ""));
        let events: Vec<&str> = events.lines().filter(|line| !line.is_empty()).collect();
        let got = steps(&events);
        if got.trim_end() != want.trim_end() {
            wrong.push(format!("{name}:\n{got}"));
        }
        write!(rewritten, "# {name}\n{}\n=>\n{got}\n", events.join("\n")).unwrap();
    }
    if std::env::var_os("UPDATE").is_some_and(|v| v == "1") {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/turn/steps.cases");
        return std::fs::write(path, format!("{}\n", rewritten.trim_end())).unwrap();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
