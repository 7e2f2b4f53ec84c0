//! Law 4, linear: searches for inputs whose cost grows faster than they do.
//!
//! Pieces of markup and of JSON are repeated, as text and as arguments, in one event and in many,
//! and events with a new name, index or choice each follow each other. Four times the input may
//! take eight times the processor's time and write eight times the bytes. The machines run in this
//! process; `growth_bodies.rs` does the same with the bodies of providers, `growth_commands.rs`
//! with commands.

use crate::pipeline::cost::{Cost, Count, judge, none_is_wrong, now};
use crate::pipeline::units;
use accumulate::{Accumulate, AccumulateOptions};
use api::{Api, WholeResponse};
use detect::{CallFilter, CheckerAnswers, Detect};
use event::{Chain, Event, Machine, Scanner, quoted};
use redact::Redactor;
use std::collections::BTreeSet;
use std::rc::Rc;
use tag::{Dialect, Streams};

const STOP: &str = r#"{"type":"stream_end","finish_reason":"stop"}"#;

/// A stream: events that come once, and one that is repeated.
struct Events {
    first: Vec<String>,
    again: String,
    times: usize,
}

impl Events {
    fn each(&self, mut take: impl FnMut(&Event<'_>)) {
        let mut scanner = Scanner::default();
        let again = std::iter::repeat_n(self.again.as_str(), self.times);
        for line in self
            .first
            .iter()
            .map(String::as_str)
            .chain(again)
            .chain([STOP])
        {
            take(&scanner.read(line).expect("an event"));
        }
    }
}

/// Runs the events through a machine.
fn run(machine: &mut dyn Machine, events: &Events) -> Cost {
    let mut out = Count::default();
    let start = now();
    events.each(|event| {
        out.passing = event.raw().len();
        machine.push(event, &mut out);
    });
    Cost {
        micros: now() - start,
        written: out.written,
    }
}

/// Merges the deltas of the events, into one whole response where there are no options.
fn merge(options: Option<&Rc<AccumulateOptions>>, events: &Events) -> Cost {
    if let Some(options) = options {
        return run(&mut Accumulate::new(Rc::clone(options)), events);
    }
    let mut merging = Accumulate::new(Rc::default());
    let mut response = WholeResponse::new(Api::OpenaiChat, usize::MAX);
    let mut out = Count::default();
    let start = now();
    events.each(|event| merging.push(event, &mut response.sink(Some(event), &mut out)));
    let written = response.finish(None).len();
    Cost {
        micros: now() - start,
        written,
    }
}

/// Reads calls in the text of the events, and merges them.
fn parse(streams: &Streams, events: &Events) -> Cost {
    let mut scanner = Scanner::default();
    let tag = streams.begin(&scanner.read(&events.first[0]).expect("an event"));
    run(
        &mut Chain::new(tag, |_: &Event<'_>| Accumulate::new(Rc::default())),
        events,
    )
}

fn start(dialect: Option<&str>) -> String {
    let dialect = dialect
        .map(|name| format!(r#","dialect":"{name}""#))
        .unwrap_or_default();
    format!(
        r#"{{"type":"stream_start","v":1,"id":"r1","tools_mode":"tag"{dialect},"tools":[{{"type":"function","function":{{"name":"f"}}}}]}}"#
    )
}

/// A stream of `first`, then `unit` again and again, in one event or in many; `event` makes an
/// event of a text.
fn stream(
    start: String,
    first: &str,
    unit: &str,
    n: usize,
    many: bool,
    event: impl Fn(&str) -> String,
) -> Events {
    if many {
        Events {
            first: vec![start, event(first)],
            again: event(unit),
            times: n,
        }
    } else {
        Events {
            first: vec![start, event(&(first.to_owned() + &unit.repeat(n)))],
            again: String::new(),
            times: 0,
        }
    }
}

fn text(text: &str) -> String {
    format!(r#"{{"type":"content_delta","text":{}}}"#, quoted(text))
}

#[test]
fn markup_that_is_read_for_every_dialect() {
    let streams = Streams::default();
    let markers: BTreeSet<String> = Dialect::all().iter().flat_map(units::markers).collect();
    let whole = || {
        markers
            .iter()
            .map(String::as_str)
            .chain(units::JSON.iter().copied())
    };
    let prefixes = markers.iter().flat_map(|m| units::prefixes(m));
    let pieces: BTreeSet<&str> = prefixes.chain(whole()).collect();
    assert!(pieces.len() > markers.len() + units::JSON.len());
    let mut wrong = Vec::new();
    for (unit, many) in pieces
        .into_iter()
        .map(|unit| (unit, false))
        .chain(whole().map(|unit| (unit, true)))
    {
        judge(
            || format!("auto, {unit:?}, many: {many}"),
            &mut wrong,
            |n| parse(&streams, &stream(start(None), "", unit, n, many, text)),
        );
    }
    none_is_wrong(&wrong);
}

#[test]
fn markup_of_the_dialect_that_is_named() {
    let streams = Streams::default();
    let mut wrong = Vec::new();
    for dialect in Dialect::all() {
        let (open, close) = units::written(dialect);
        let markers = units::markers(dialect);
        let whole = format!("{open}{close}");
        let mut cases = vec![("", whole.as_str()), (&open, &close)];
        for marker in &markers {
            cases.extend(
                units::prefixes(marker)
                    .into_iter()
                    .skip(2)
                    .map(|unit| ("", unit)),
            );
            cases.push((&open, marker));
        }
        for (first, unit) in cases {
            judge(
                || format!("{}, {first:?} and {unit:?}", dialect.name),
                &mut wrong,
                |n| {
                    parse(
                        &streams,
                        &stream(start(Some(dialect.name)), first, unit, n, false, text),
                    )
                },
            );
        }
    }
    none_is_wrong(&wrong);
}

fn arguments(text: &str) -> String {
    format!(
        r#"{{"type":"tool_call_delta","index":0,"tool_id":"a","tool_name":"f","arguments":{}}}"#,
        quoted(text)
    )
}

#[test]
fn arguments_of_native_calls() {
    let markers: BTreeSet<String> = Dialect::all().iter().flat_map(units::markers).collect();
    let partial = AccumulateOptions {
        keep_deltas: true,
        partial: true,
        ..AccumulateOptions::default()
    };
    let options = [AccumulateOptions::default(), partial].map(Rc::new);
    let [plain, partial] = options.each_ref().map(Some);
    let shape = None;
    let mut cases = Vec::new();
    for unit in units::JSON {
        for first in ["", "{\"a\":1}", "{\"a\":\"", "{\"a\":[", "{'a':"] {
            cases.extend([
                (first, *unit, false, plain),
                (first, unit, true, plain),
                (first, unit, true, partial),
            ]);
        }
        cases.extend([
            ("{\"a\":1}", *unit, false, partial),
            ("{\"a\":1}", unit, false, shape),
        ]);
    }
    for marker in &markers {
        cases.extend([
            ("{\"a\":1}", marker.as_str(), false, plain),
            ("{\"a\":1}", marker, true, plain),
        ]);
    }
    let mut wrong = Vec::new();
    for (first, unit, many, options) in cases {
        judge(
            || format!("arguments {first:?} and {unit:?}, many: {many}, {options:?}"),
            &mut wrong,
            |n| {
                merge(
                    options,
                    &stream(start(None), first, unit, n, many, arguments),
                )
            },
        );
    }
    // Each object begins a call, and a long name would be written with each of them.
    for (name, options) in [
        ("f", plain),
        ("f", partial),
        ("f", shape),
        (&*"f".repeat(5000), plain),
    ] {
        judge(
            || {
                format!(
                    "objects in one delta, {} bytes of name, {options:?}",
                    name.len()
                )
            },
            &mut wrong,
            |n| {
                let objects: String = (0..n).map(|i| format!("{{\"a\":{i}}}")).collect();
                let event = arguments(&objects).replace("\"f\"", &format!("\"{name}\""));
                let events = Events {
                    first: vec![start(None), event],
                    again: String::new(),
                    times: 0,
                };
                merge(options, &events)
            },
        );
    }
    none_is_wrong(&wrong);
}

/// Events that differ by a number.
const NUMBERED: &[&str] = &[
    r#"{"type":"content_delta","choice":#,"text":"x"}"#,
    r#"{"type":"refusal_delta","choice":#,"text":"x"}"#,
    r#"{"type":"thinking","choice":#,"text":"x","provider":{"a":1}}"#,
    r#"{"type":"tool_call_delta","choice":#,"index":65535,"tool_name":"f","arguments":"{}"}"#,
    r#"{"type":"tool_call_delta","choice":#,"index":0,"arguments":"}"}"#,
    r#"{"type":"tool_call_delta","index":#,"tool_name":"f","arguments":"{\"a\":1}"}"#,
    r#"{"type":"tool_call_delta","index":#,"tool_name":"f"}"#,
    r#"{"type":"tool_call_delta","index":#,"arguments":"}"}"#,
    r#"{"type":"tool_call_delta","index":1#0000,"tool_name":"f"}"#,
    r#"{"type":"tool_call_delta","index":-#,"tool_name":"f","arguments":"{"}"#,
    r#"{"type":"tool_call_delta","index":0,"tool_id":"a#","tool_name":"f","arguments":"{\"a\":1}"}"#,
    r#"{"type":"tool_call_delta","index":0,"tool_id":"a#","arguments":"{"}"#,
    r#"{"type":"tool_call_delta","tool_id":"a#"}"#,
    r#"{"type":"tool_call_delta","tool_id":"a","tool_name":"f#","arguments":"{\"a\":1}"}"#,
    r#"{"type":"tool_call_delta","index":0,"tool_name":"f#"}"#,
    r#"{"type":"tool_call_delta","arguments":"{\"a\":#}"}"#,
    r#"{"type":"tool_call_delta","index":0,"tool_id":"a","tool_name":"f","arguments":"{\"a\":#}"}"#,
    r#"{"type":"tool_call_delta","arguments":"}"}"#,
    r#"{"type":"tool_call","index":#,"tool_id":"a#","tool_name":"f","arguments":{},"commit":"final"}"#,
    r#"{"type":"tool_call_partial","index":#,"tool_id":"a#","tool_name":"f","arguments":{}}"#,
    r#"{"type":"retract","index":#,"reason":"x"}"#,
    r#"{"type":"retract","tool_id":"a#","reason":"x"}"#,
    r#"{"type":"warning","source":"tc-accumulate","code":"x","message":"m#"}"#,
    r#"{"type":"warning","source":"tag-parse","code":"x","message":"m#","raw":"r#"}"#,
    r#"{"type":"decision","choice":#,"tool_call":true,"checker":"full"}"#,
    r#"{"type":"error","source":"x","code":"x","message":"m#","retryable":false}"#,
    r#"{"type":"session_stats","prompt_tokens":#}"#,
    r#"{"type":"message","choice":#,"message":{"role":"assistant","content":"x"}}"#,
    r#"{"type":"server_item","kind":"x","data":{"n":#}}"#,
];

/// Every event of one kind, then every event of another.
fn numbered(one: &str, other: &str, n: usize) -> Events {
    let all = [one, other]
        .into_iter()
        .flat_map(|event| (0..n / 2).map(|i| event.replace('#', &i.to_string())));
    Events {
        first: std::iter::once(start(None)).chain(all).collect(),
        again: String::new(),
        times: 0,
    }
}

#[test]
fn events_with_a_new_number_each() {
    let options = Rc::new(AccumulateOptions {
        keep_deltas: true,
        partial: true,
        ..AccumulateOptions::default()
    });
    let streams = Streams::default();
    let mut wrong = Vec::new();
    for one in NUMBERED {
        for other in NUMBERED {
            judge(
                || format!("tc-accumulate, {one} and {other}"),
                &mut wrong,
                |n| {
                    run(
                        &mut Accumulate::new(Rc::clone(&options)),
                        &numbered(one, other, n),
                    )
                },
            );
        }
        for other in [
            r#"{"type":"x"}"#,
            NUMBERED[0],
            r#"{"type":"error","source":"x","code":"x","message":"m","retryable":false}"#,
        ] {
            judge(
                || format!("tag-parse, {one} and {other}"),
                &mut wrong,
                |n| parse(&streams, &numbered(one, other, n)),
            );
        }
        for checker in ["full", "first-chunk", "lookahead:20"] {
            judge(
                || format!("tc-detect --checker {checker}, {one}"),
                &mut wrong,
                |n| {
                    let checkers = detect::checkers(checker, &CallFilter::default())
                        .expect("a checker of the table");
                    let events = numbered(one, r#"{"type":"x"}"#, n);
                    let mut scanner = Scanner::default();
                    let first = scanner.read(&events.first[0]).expect("an event");
                    run(
                        &mut Detect::new(
                            checker.into(),
                            checkers(&first),
                            CheckerAnswers::default(),
                            &first,
                        ),
                        &events,
                    )
                },
            );
        }
    }
    none_is_wrong(&wrong);
}

/// What a tape does with the reads of an answer that repeats a key again and again.
#[test]
fn secrets_in_many_reads() {
    let redactor = Redactor::new(["canary/7Q=z".to_owned(), r"k\ey\\7-%Q&z".to_owned()]);
    let mut wrong = Vec::new();
    for unit in [
        "canary/7Q=z",
        "canary",
        "/7Q=z and canary",
        "Y2FuYXJ5LzdRPXo=",
        "sk-ant-api03-0123456789abcdef ",
        "Bearer 0123456789abcdef\\n",
        "sk-",
        r"k\",
        "\\",
        "%25",
        "&amp;",
    ] {
        judge(
            || format!("reads of {unit:?}"),
            &mut wrong,
            |n| {
                let mut reads = vec![unit.as_bytes().to_vec(); n];
                let mut reads: Vec<&mut Vec<u8>> = reads.iter_mut().collect();
                let start = now();
                redactor.pieces(&mut reads);
                Cost {
                    micros: now() - start,
                    written: 0,
                }
            },
        );
    }
    none_is_wrong(&wrong);
}
