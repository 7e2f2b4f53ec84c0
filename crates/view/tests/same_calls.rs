//! The law that all views of a log show the same calls, over every log of the fixtures.

#![expect(clippy::unwrap_used, reason = "a test")]

use event::{Raw, Scanner, View};
use std::fs;
use std::path::{Path, PathBuf};
use testkit::Emulator;
use toolpipe_view::{self as view, JsonView, Term, Terminal, TraceView};

/// How much of the arguments is compared, in characters: some views cut them.
const COMPARED: usize = 60;

/// A call: its name, and the beginning of its arguments without white space.
type Call = (String, String);

/// The output of a view for a log. The user's messages are left out: `json` begins anew at each.
fn shown(mut view: impl View, log: &str) -> String {
    let is_user = |line| {
        let role = Raw::parse(line).ok()?.at(&["message", "role"])?;
        Some(role.text() == "\"user\"")
    };
    let mut scanner = Scanner::default();
    let mut out = Vec::new();
    for line in log.lines().filter(|line| is_user(line) != Some(true)) {
        if let Ok(event) = scanner.read(line) {
            view.push(&event, &mut out);
        }
    }
    view.finish(&mut out);
    String::from_utf8(out).unwrap()
}

fn call(name: &str, arguments: &str) -> Call {
    // `text` quotes a text in the place of the object, and escapes what cannot be seen.
    let arguments = view::one_line(arguments, 10 * COMPARED);
    let arguments = arguments
        .chars()
        .filter(|c| !c.is_whitespace() && !"\"\\".contains(*c));
    let name = view::one_line(name, 10 * COMPARED);
    (name, arguments.take(COMPARED).collect())
}

fn of_json(log: &str) -> Vec<Call> {
    let text = shown(JsonView::default(), log);
    let mut all = Vec::new();
    for answer in text.lines().map(|line| Raw::parse(line).unwrap()) {
        for of in answer.get("calls").into_iter().flat_map(Raw::items) {
            // `null` counts as missing.
            let text = |of: Raw<'_>| of.str().unwrap_or(of.text().into()).into_owned();
            let arguments = of.get("arguments").map_or("null".to_owned(), text);
            all.push(call(&of.get_str("tool_name").unwrap(), &arguments));
        }
    }
    all
}

fn of_text(log: &str) -> Vec<Call> {
    let text = shown(view::text(false, true), log);
    let calls = text.lines().filter_map(|line| line.strip_prefix("->"));
    calls
        .map(|line| {
            let line = line.strip_prefix(' ').unwrap_or(line);
            let (name, arguments) = line.split_once(' ').unwrap_or((line, ""));
            call(name, arguments)
        })
        .collect()
}

/// The names of the calls of a report, each between `begin` and `end` on a line with `mark`.
fn of_report(report: &str, mark: &str, [begin, end]: [&str; 2]) -> Vec<String> {
    let lines = report.lines().filter(|line| line.contains(mark));
    let names = lines.filter_map(|line| Some(line.split_once(begin)?.1.split_once(end)?.0));
    names.map(str::to_owned).collect()
}

/// The names of the calls on a terminal that is large enough to keep all of them: each is bold
/// behind the coloured sign of its state.
fn of_terminal(log: &str) -> Vec<String> {
    let lines = log.lines().count();
    let (columns, rows) = (400, 40 + 4 * lines);
    let mut screen = Emulator::new(columns, rows);
    let terminal = Terminal {
        columns,
        rows,
        colour: true,
    };
    screen.write(&shown(Term::new(terminal, true), log));
    let text = screen.marked();
    let names = text.lines().filter_map(|line| {
        let (sign, card) = line.strip_prefix("  {")?.split_once("{} ")?;
        let is_sign = sign.chars().skip_while(|c| *c != '}').count() == 2;
        // A call without a name has nothing that is bold.
        let name = card.strip_prefix("{1}").unwrap_or_default();
        is_sign.then(|| {
            name.split_once("{}")
                .map_or(name, |(name, _)| name)
                .to_owned()
        })
    });
    names.collect()
}

/// The names of the calls in the messages of the model that a trace holds, of each answer.
fn of_trace(log: &str) -> Vec<String> {
    let mut names = Vec::new();
    for line in shown(TraceView::new(true), log).lines() {
        let trace = Raw::parse(line).unwrap();
        let scopes = trace
            .list("resourceSpans")
            .flat_map(|r| r.list("scopeSpans"));
        for span in scopes.flat_map(|scope| scope.list("spans")) {
            let is_answer = span.list("attributes").any(|attribute| {
                attribute.get_str("key").as_deref() == Some("gen_ai.operation.name")
                    && attribute
                        .at(&["value", "stringValue"])
                        .and_then(Raw::str)
                        .as_deref()
                        == Some("chat")
            });
            for attribute in span.list("attributes").filter(|_| is_answer) {
                if attribute.get_str("key").as_deref() != Some("gen_ai.output.messages") {
                    continue;
                }
                let messages = attribute
                    .at(&["value", "stringValue"])
                    .unwrap()
                    .str()
                    .unwrap();
                let messages = Raw::parse(&messages).unwrap();
                let parts = messages.items().flat_map(|message| message.list("parts"));
                let calls =
                    parts.filter(|part| part.get_str("type").as_deref() == Some("tool_call"));
                names.extend(calls.map(|call| call.get_str("name").unwrap().into_owned()));
            }
        }
    }
    names
}

/// Every file of events below a folder.
fn logs(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            logs(&path, all);
        } else if path.extension().is_some_and(|of| of == "ndjson") {
            all.push(path);
        }
    }
}

/// What differs between the views of a log.
fn difference(log: &str) -> Option<String> {
    let mut calls = [of_json(log), of_text(log)];
    calls.iter_mut().for_each(|calls| calls.sort());
    if calls[0] != calls[1] {
        return Some(format!("json {:?}\ntext {:?}", calls[0], calls[1]));
    }
    let names = |mut names: Vec<String>| {
        names.sort();
        names
    };
    let want: Vec<String> = calls[0].iter().map(|(name, _)| name.clone()).collect();
    let html = shown(view::html(true), log);
    let markdown = shown(view::markdown(true), log);
    for (form, found) in [
        (
            "html",
            of_report(
                &html,
                "<b class=\"state\">",
                ["<code class=\"name\">", "</code>"],
            ),
        ),
        (
            "markdown",
            of_report(&markdown, "<summary>", ["<code>", "</code>"]),
        ),
        ("term", of_terminal(log)),
    ] {
        let found = names(found);
        if found != want {
            return Some(format!("json {want:?}\n{form} {found:?}"));
        }
    }
    // A trace has the calls of whole messages alone.
    let mut left = want.clone();
    for name in names(of_trace(log)) {
        match left.iter().position(|known| *known == name) {
            Some(at) => _ = left.remove(at),
            None => return Some(format!("json {want:?}\notlp has another {name:?}")),
        }
    }
    None
}

#[test]
fn all_views_of_a_log_show_the_same_calls() {
    let mut all = Vec::new();
    logs(&testkit::root().join("fixtures"), &mut all);
    all.sort();
    let mut wrong = Vec::new();
    let mut count = 0;
    for path in all {
        let Ok(log) = fs::read_to_string(&path) else {
            continue;
        };
        count += usize::from(!of_json(&log).is_empty());
        if let Some(difference) = difference(&log) {
            wrong.push(format!("{}\n{difference}", path.display()));
        }
    }
    assert!(count > 100, "{count} logs have calls");
    assert!(
        wrong.is_empty(),
        "{} logs:\n{}",
        wrong.len(),
        wrong.join("\n\n")
    );
}

/// Two turns of a server that numbers the calls of each turn anew, each in several forms.
#[test]
fn calls_of_two_turns_with_one_id_stay_two() {
    let delta = |n: u32| {
        format!(
            r#"{{"type":"tool_call_delta","index":0,"tool_id":"call_0","tool_name":"f","arguments":"{{\"a\":{n}}}"}}"#
        )
    };
    let half = |_: u32| {
        r#"{"type":"tool_call_delta","index":0,"tool_id":"call_0","tool_name":"f","arguments":"{\"a\":"}"#.to_owned()
    };
    let whole = |n: u32| {
        format!(
            r#"{{"type":"tool_call","index":0,"tool_id":"call_0","tool_name":"f","arguments":{{"a":{n}}},"commit":"balanced"}}"#
        )
    };
    let partial = |n: u32| {
        format!(
            r#"{{"type":"tool_call_partial","index":0,"tool_id":"call_0","tool_name":"f","arguments":{{"a":{n}}}}}"#
        )
    };
    let forms: [&dyn Fn(u32) -> String; 4] = [&delta, &half, &whole, &partial];
    let turn = |event: String, choice: u32| {
        let event = event.replacen('{', &format!(r#"{{"choice":{choice},"#), 1);
        format!(
            "{{\"type\":\"stream_start\",\"v\":1}}\n{event}\n{{\"type\":\"stream_end\",\"finish_reason\":\"tool_calls\"}}\n"
        )
    };
    for first in forms {
        for second in forms {
            for choice in [0, 1] {
                let log = turn(first(1), choice) + &turn(second(2), choice);
                assert_eq!(of_json(&log).len(), 2, "{log}");
                assert_eq!(difference(&log), None, "{log}");
            }
        }
    }
}
