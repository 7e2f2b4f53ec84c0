//! The law that all views of a log show the same calls with the same arguments and states: over every
//! log of the fixtures, and over logs made by chance ([`testkit::logs`]), whose calls are known.

#![expect(clippy::unwrap_used, reason = "a test")]

use event::{Raw, Scanner, View};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use testkit::Emulator;
use testkit::logs::{self, MadeCall};
use testkit::places::{count, sampled};
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

/// What the views call a state, by the status of the result or the state of a made call.
fn state_of(state: &str) -> &str {
    match state {
        "success" | "answered" => "done",
        "pending" => "waits",
        "running" | "incomplete" => "lost",
        "denied" | "invalid" | "unknown_tool" | "refused" => "refused",
        "error" | "timeout" => "failed",
        state => state,
    }
}

/// The number behind the first `mark`.
fn number(text: &str, mark: &str) -> Option<usize> {
    let rest = text.split_once(mark)?.1.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit());
    rest[..end.unwrap_or(rest.len())].parse().ok()
}

/// What a view says of each call, by the call's number.
type Said = BTreeMap<usize, String>;

fn lines(mut view: impl View, log: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let (mut scanner, mut out) = (Scanner::default(), Vec::new());
    for line in log.lines().filter(|line| is_taken(line)) {
        view.push(&scanner.read(line).unwrap(), &mut out);
    }
    view.finish(&mut out);
    String::from_utf8(out).unwrap()
}

/// Arguments and state, by the json view. It has no word for a call without a result.
fn said_by_json(log: &str, calls: &[MadeCall]) -> Said {
    let json = lines(JsonView::default(), log, |line| {
        !line.contains(r#""role":"user""#)
    });
    let mut said = Said::new();
    for answer in json.lines().map(|line| Raw::parse(line).unwrap()) {
        for call in answer.get("calls").unwrap().items() {
            let arguments = call.get("arguments").unwrap();
            let arguments = arguments.str().unwrap_or(arguments.text().into());
            let n = number(&arguments, r#""n":"#).unwrap();
            let state = call.get_str("status");
            let state = match (state.as_deref(), call.get("error")) {
                (None | Some("retracted"), None) => state_of(calls[n].state).to_owned(),
                (Some(status), _) => state_of(status).to_owned(),
                (None, Some(_)) if calls[n].state == "cancelled" => "cancelled".to_owned(),
                (None, Some(_)) => "refused".to_owned(),
            };
            let name = call.get_str("tool_name").unwrap();
            let twice = said.insert(n, format!("{name} {arguments} {state}"));
            assert_eq!(twice, None, "json has call {n} twice\n{log}");
        }
    }
    said
}

/// Names and arguments, by the lines where calls start in the text.
fn said_by_text(log: &str) -> Said {
    let text = lines(view::text(false, true), log, |_| true);
    let starts = text.lines().filter_map(|line| line.strip_prefix("-> "));
    starts
        .map(|line| {
            let n = number(line, r#""n":"#);
            (
                n.unwrap_or_else(|| {
                    panic!(
                        "{line}
{log}"
                    )
                }),
                line.to_owned(),
            )
        })
        .collect()
}

/// States, by the cards of a page. A late result has a card of its own.
fn said_by_html(log: &str) -> Said {
    let page = lines(view::html(true), log, |_| true);
    let cards = page.split("<details class=\"card\" data-state=\"").skip(1);
    cards
        .map(|card| {
            let n = number(card, "&quot;n&quot;:").unwrap();
            (n, card.split_once('"').unwrap().0.to_owned())
        })
        .collect()
}

/// Words of states, by the summaries of a report in Markdown.
fn said_by_markdown(log: &str) -> Said {
    let report = lines(view::markdown(true), log, |_| true);
    let cards = report.split("<summary>").skip(1);
    cards
        .map(|card| {
            let n = number(card, " n: ").or(number(card, "&quot;n&quot;:"));
            let word = card
                .split_once("<b>")
                .unwrap()
                .1
                .split_once("</b>")
                .unwrap()
                .0;
            let word = match word {
                "done" | "failed" | "called" | "cancelled" => word,
                "no result" | "incomplete" => "lost",
                "waits for approval" => "waits",
                "taken back" => "retracted",
                "cancelled, not run" => "cancelled",
                word => state_of(word.strip_prefix("refused: ").map_or(word, |_| "refused")),
            };
            (n.unwrap(), word.to_owned())
        })
        .collect()
}

/// Signs of states, by the cards on a terminal.
fn said_by_terminal(log: &str) -> Said {
    let terminal = Terminal {
        columns: 120,
        rows: 50,
        colour: false,
    };
    let mut screen = Emulator::new(120, 50);
    screen.write(&lines(Term::new(terminal, true), log, |_| true));
    let text = screen.text();
    let cards = text.lines().filter_map(|line| {
        let n = number(line, " n: ").or(number(line, r#""n":"#))?;
        Some((n, line.trim_start().chars().next()?.to_string()))
    });
    cards.collect()
}

/// The arguments of the calls that ran, by their spans, and how many spans there are.
fn said_by_trace(log: &str) -> (Said, usize) {
    let trace = lines(TraceView::new(true), log, |_| true);
    let spans = trace.split(r#""name":"execute_tool "#).skip(1);
    let spans: Vec<&str> = spans.collect();
    let key = r#"{"key":"gen_ai.tool.call.arguments","value":{"stringValue":"#;
    let said = spans.iter().filter_map(|span| {
        let (_, rest) = span.split_once(key)?;
        let arguments = Raw::parse(rest.split_once("}}").unwrap().0);
        let end = rest
            .char_indices()
            .skip(1)
            .find(|(at, c)| *c == '"' && !rest[..*at].ends_with('\\'));
        let arguments = arguments.unwrap_or_else(|_| Raw::parse(&rest[..=end.unwrap().0]).unwrap());
        let arguments = arguments.str().unwrap().into_owned();
        Some((number(&arguments, r#""n":"#)?, arguments))
    });
    (said.collect(), spans.len())
}

/// How many calls ended in which way, by the metrics.
fn said_by_metrics(log: &str) -> Vec<u64> {
    let row = view::FORMS.iter().find(|row| row.name == "openmetrics");
    let surface = view::Surface {
        size: || None,
        is_terminal: false,
        colour: None,
        no_time: true,
        contents: false,
        conversation: None,
    };
    let mut page = (row.unwrap().view)(&surface);
    let (mut scanner, mut out) = (Scanner::default(), Vec::new());
    for line in log.lines() {
        page.push(&scanner.read(line).unwrap(), &mut out);
    }
    page.finish(&mut out);
    let page = String::from_utf8(out).unwrap();
    ["whole", "incomplete", "retracted"]
        .map(|outcome| {
            let name = format!("toolpipe_calls_total{{outcome=\"{outcome}\"}} ");
            let count = page.split_once(&name).unwrap().1.lines().next().unwrap();
            count.parse().unwrap()
        })
        .to_vec()
}

#[track_caller]
fn compare(seed: u64, view: &str, log: &str, said: &Said, want: Said) {
    assert_eq!(
        said, &want,
        "seed {seed}, {view} (left) and what was made (right)\n{log}"
    );
}

#[test]
fn every_view_of_a_made_log_shows_its_calls() {
    sampled();
    for seed in 1..=count(500, 10_000) {
        let made = logs::log(seed);
        let (log, calls) = (&*made.text, &made.calls[..]);
        let all = |say: &dyn Fn(&MadeCall) -> String| -> Said {
            calls.iter().map(say).enumerate().collect()
        };
        let states = || all(&|call| state_of(call.state).to_owned());
        compare(
            seed,
            "json",
            log,
            &said_by_json(log, calls),
            all(&|call| {
                let state = state_of(call.state);
                format!("{} {} {state}", call.name, call.arguments)
            }),
        );
        compare(
            seed,
            "text",
            log,
            &said_by_text(log),
            all(&|call| format!("{} {}", call.name, call.arguments)),
        );
        compare(seed, "html", log, &said_by_html(log), states());
        let words = said_by_markdown(log);
        compare(seed, "markdown", log, &words, states());
        let sign = |call: &MadeCall| {
            let sign = match state_of(call.state) {
                "called" => "○",
                "done" => "✓",
                "waits" => "?",
                "refused" | "failed" => "✗",
                _ => "–",
            };
            sign.to_owned()
        };
        compare(seed, "term", log, &said_by_terminal(log), all(&sign));
        let ran = || calls.iter().enumerate().filter(|(_, call)| call.has_run);
        let (arguments, spans) = said_by_trace(log);
        assert_eq!(spans, ran().count(), "seed {seed}, spans\n{log}");
        let want = ran().map(|(n, call)| (n, call.arguments.clone()));
        compare(seed, "otlp", log, &arguments, want.collect());
        let of = |outcome: &str| {
            let merged = calls.iter().filter(|call| {
                let outcome_of = match (call.is_retracted, Raw::parse(&call.arguments)) {
                    (true, _) => "retracted",
                    (false, Ok(_)) => "whole",
                    (false, Err(_)) => "incomplete",
                };
                (call.is_merged || call.is_retracted) && outcome_of == outcome
            });
            merged.count() as u64
        };
        assert_eq!(
            said_by_metrics(log),
            ["whole", "incomplete", "retracted"].map(of),
            "seed {seed}, metrics\n{log}"
        );
    }
}
