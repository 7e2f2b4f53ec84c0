//! Law 4, linear: searches for inputs whose cost grows faster than they do.
//!
//! Pieces of markup and of JSON are repeated, as text, as arguments and as bodies, in one event and in many, and events with a new
//! name, index or choice each follow each other. Twice the input may take 2.5 times the processor's time and write 2.5 times the
//! bytes. The machines run in this process; `growth_commands.rs` runs the commands.

#[path = "pipeline/bodies.rs"]
mod bodies;
#[path = "pipeline/cost.rs"]
mod cost;
#[path = "pipeline/units.rs"]
mod units;

use accumulate::{Accumulate, Options, Shape};
use bodies::bodies;
use cost::{Cost, compare};
use detect::{Calls, Detect, Tally};
use event::{Event, Machine, Payload, Scanner, Sink, payload, quoted};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeSet;
use std::rc::Rc;
use tag::{Dialect, Streams};
use upstream::{Api, End, Stream, StreamOptions};

const STOP: &str = r#"{"type":"stream_end","finish_reason":"stop"}"#;

/// Every input is first run at two smaller sizes. One that grows as it may is not looked at again.
const GLANCE: [usize; 2] = [1_000, 4_000];
const GLANCE_MOST: f64 = 5.5;
const GLANCE_MICROS: u64 = 4_000;

/// The processor's time that this thread has had, in microseconds.
fn now() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1000
}

/// Looks at an input, and compares its cost with that of twice the input where it grows too fast.
fn judge(what: impl Fn() -> String, wrong: &mut Vec<String>, mut run: impl FnMut(usize) -> Cost) {
    let [few, more] = GLANCE.map(&mut run);
    let grows = |few: f64, more: f64| more > GLANCE_MOST * few;
    let slow = more.micros > GLANCE_MICROS && grows(few.micros as f64, more.micros as f64);
    if slow || grows(few.written as f64 + 1000.0, more.written as f64) {
        compare(&what(), wrong, run);
    }
}

/// Counts what is written.
#[derive(Default)]
struct Count {
    passing: usize,
    written: usize,
    line: Vec<u8>,
}

impl Sink for Count {
    fn pass(&mut self) {
        self.written += self.passing;
    }

    fn write(&mut self, choice: u32, payload: &dyn Payload) {
        self.line.clear();
        payload::line(&mut self.line, payload, None, choice, None);
        self.written += self.line.len();
    }

    fn line(&mut self, json: &str) {
        self.written += json.len();
    }
}

/// Hands what is written to the next machine.
struct Pipe<'p> {
    event: &'p Event<'p>,
    next: &'p mut dyn Machine,
    out: &'p mut Count,
}

impl Sink for Pipe<'_> {
    fn pass(&mut self) {
        self.next.push(self.event, self.out);
    }

    fn write(&mut self, choice: u32, payload: &dyn Payload) {
        let mut line = Vec::new();
        payload::line(&mut line, payload, None, choice, None);
        let mut scanner = Scanner::default();
        let line = String::from_utf8(line).expect("JSON is UTF-8");
        let passing = std::mem::replace(&mut self.out.passing, line.len());
        self.next.push(&scanner.read(&line).expect("an event"), self.out);
        self.out.passing = passing;
    }

    fn line(&mut self, _: &str) {}
}

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
        for line in self.first.iter().map(String::as_str).chain(again).chain([STOP]) {
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
    Cost { micros: now() - start, written: out.written }
}

/// Reads calls in the text of the events, and merges them.
fn parse(streams: &Streams, events: &Events) -> Cost {
    let mut scanner = Scanner::default();
    let mut tag = streams.begin(&scanner.read(&events.first[0]).expect("an event"));
    let (mut next, mut out) = (Accumulate::new(Rc::default()), Count::default());
    let start = now();
    events.each(|event| {
        out.passing = event.raw().len();
        tag.push(event, &mut Pipe { event, next: &mut next, out: &mut out });
    });
    Cost { micros: now() - start, written: out.written }
}

fn start(dialect: Option<&str>) -> String {
    let dialect = dialect.map(|name| format!(r#","dialect":"{name}""#)).unwrap_or_default();
    format!(
        r#"{{"type":"stream_start","v":1,"id":"r1","tools_mode":"tag"{dialect},"tools":[{{"type":"function","function":{{"name":"f"}}}}]}}"#
    )
}

/// A stream of `first`, then `unit` again and again, in one event or in many; `event` makes an event of a text.
fn stream(start: String, first: &str, unit: &str, n: usize, many: bool, event: impl Fn(&str) -> String) -> Events {
    if many {
        Events { first: vec![start, event(first)], again: event(unit), times: n }
    } else {
        Events { first: vec![start, event(&(first.to_owned() + &unit.repeat(n)))], again: String::new(), times: 0 }
    }
}

fn text(text: &str) -> String {
    format!(r#"{{"type":"content_delta","text":{}}}"#, quoted(text))
}

fn none_is_wrong(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} inputs cost too much:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn markup_that_is_read_for_every_dialect() {
    let streams = Streams::default();
    let markers: BTreeSet<String> = Dialect::all().iter().flat_map(units::markers).collect();
    let whole = || markers.iter().map(String::as_str).chain(units::JSON.iter().copied());
    let pieces: BTreeSet<&str> = markers.iter().flat_map(|m| units::prefixes(m)).chain(whole()).collect();
    let mut wrong = Vec::new();
    for (unit, many) in pieces.into_iter().map(|unit| (unit, false)).chain(whole().map(|unit| (unit, true))) {
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
            cases.extend(units::prefixes(marker).into_iter().skip(2).map(|unit| ("", unit)));
            cases.push((&open, marker));
        }
        for (first, unit) in cases {
            judge(
                || format!("{}, {first:?} and {unit:?}", dialect.name),
                &mut wrong,
                |n| parse(&streams, &stream(start(Some(dialect.name)), first, unit, n, false, text)),
            );
        }
    }
    none_is_wrong(&wrong);
}

fn arguments(text: &str) -> String {
    format!(r#"{{"type":"tool_call_delta","index":0,"tool_id":"a","tool_name":"f","arguments":{}}}"#, quoted(text))
}

#[test]
fn arguments_of_native_calls() {
    let markers: BTreeSet<String> = Dialect::all().iter().flat_map(units::markers).collect();
    let partial = Options { keep_deltas: true, partial: true, ..Options::default() };
    let [plain, partial, shape] =
        [Options::default(), partial, Options { shape: Some(Shape::Openai), ..Options::default() }].map(Rc::new);
    let mut cases = Vec::new();
    for unit in units::JSON {
        for first in ["", "{\"a\":1}", "{\"a\":\"", "{\"a\":[", "{'a':"] {
            cases.extend([(first, *unit, false, &plain), (first, unit, true, &plain), (first, unit, true, &partial)]);
        }
        cases.extend([("{\"a\":1}", *unit, false, &partial), ("{\"a\":1}", unit, false, &shape)]);
    }
    for marker in &markers {
        cases.extend([("{\"a\":1}", marker.as_str(), false, &plain), ("{\"a\":1}", marker, true, &plain)]);
    }
    let mut wrong = Vec::new();
    for (first, unit, many, options) in cases {
        judge(
            || format!("arguments {first:?} and {unit:?}, many: {many}, {options:?}"),
            &mut wrong,
            |n| run(&mut Accumulate::new(Rc::clone(options)), &stream(start(None), first, unit, n, many, arguments)),
        );
    }
    // Each object begins a call; a name that is long would be written with each.
    for (name, options) in [("f", &plain), ("f", &partial), ("f", &shape), (&*"f".repeat(5000), &plain)] {
        judge(
            || format!("objects in one delta, {} bytes of name, {options:?}", name.len()),
            &mut wrong,
            |n| {
                let objects: String = (0..n).map(|i| format!("{{\"a\":{i}}}")).collect();
                let event = arguments(&objects).replace("\"f\"", &format!("\"{name}\""));
                let events = Events { first: vec![start(None), event], again: String::new(), times: 0 };
                run(&mut Accumulate::new(Rc::clone(options)), &events)
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
    let all = [one, other].into_iter().flat_map(|event| (0..n / 2).map(|i| event.replace('#', &i.to_string())));
    Events { first: std::iter::once(start(None)).chain(all).collect(), again: String::new(), times: 0 }
}

#[test]
fn events_with_a_new_number_each() {
    let options = Rc::new(Options { keep_deltas: true, partial: true, ..Options::default() });
    let streams = Streams::default();
    let mut wrong = Vec::new();
    for one in NUMBERED {
        for other in NUMBERED {
            judge(
                || format!("tc-accumulate, {one} and {other}"),
                &mut wrong,
                |n| run(&mut Accumulate::new(Rc::clone(&options)), &numbered(one, other, n)),
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
                    let build =
                        Rc::new(move || detect::build(checker, &Calls::default()).expect("a checker of the table"));
                    let events = numbered(one, r#"{"type":"x"}"#, n);
                    let mut scanner = Scanner::default();
                    let first = scanner.read(&events.first[0]).expect("an event");
                    run(&mut Detect::new(checker.into(), build, Tally::default(), &first), &events)
                },
            );
        }
    }
    none_is_wrong(&wrong);
}

/// Runs a body through the decoder of `api`.
fn decode(api: Api, body: &[u8]) -> Cost {
    let mut out = Count::default();
    let mut stream = Stream::new(api, StreamOptions::default());
    let start = now();
    for piece in body.chunks(64 * 1024) {
        stream.push(piece, &mut out);
    }
    stream.finish(End::Eof, &mut out);
    Cost { micros: now() - start, written: out.written }
}

/// The frames that the recorded bodies of an API consist of, one of each form: numbers and the inside of strings make no form.
fn frames(api: Api) -> Vec<String> {
    let mut forms = BTreeSet::new();
    let mut frames = Vec::new();
    for body in bodies().into_iter().filter(|body| Api::from_name(&body.api) == Some(api)) {
        let text = std::fs::read_to_string(&body.path).unwrap_or_default();
        let end = if body.name.ends_with(".sse") { "\n\n" } else { "\n" };
        for frame in text.split_inclusive(end).filter(|frame| frame.len() < 2000) {
            let is_word = |part: &&str| part.len() < 24 && part.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
            if forms.insert(frame.split('"').filter(is_word).collect::<Vec<_>>().join(" ")) {
                frames.push(frame.to_owned());
            }
        }
    }
    frames
}

/// Frames that differ by a number.
const NUMBERED_FRAMES: &[(Api, &str)] = &[
    (
        Api::OpenaiChat,
        r#"data: {"choices":[{"index":#,"delta":{"content":"x","reasoning_content":"y","refusal":"z"}}]}"#,
    ),
    (Api::OpenaiChat, r#"data: {"choices":[{"index":#,"delta":{},"finish_reason":"stop"}]}"#),
    (
        Api::OpenaiChat,
        r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":#,"id":"a#","function":{"name":"f","arguments":"{}"}}]}}]}"#,
    ),
    (
        Api::OpenaiChat,
        r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":#,"id":"a#","type":"custom","custom":{"name":"f","input":"x"}}]}}]}"#,
    ),
    (Api::OpenaiChat, r#"data: {"error":{"message":"m#"}}"#),
    (
        Api::OpenaiResponses,
        r#"data: {"type":"response.output_item.added","output_index":#,"item":{"type":"function_call","id":"i#","call_id":"c#","name":"f","arguments":""}}"#,
    ),
    (
        Api::OpenaiResponses,
        r#"data: {"type":"response.output_item.done","output_index":#,"item":{"type":"function_call","id":"i#","call_id":"c#","name":"f","arguments":"{}"}}"#,
    ),
    (
        Api::OpenaiResponses,
        r#"data: {"type":"response.output_item.done","item":{"type":"function_call","call_id":"c#","name":"f","arguments":"{}"}}"#,
    ),
    (Api::OpenaiResponses, r#"data: {"type":"response.function_call_arguments.delta","item_id":"i#","delta":"{"}"#),
    (Api::OpenaiResponses, r#"data: {"type":"response.function_call_arguments.delta","delta":"{"}"#),
    (Api::OpenaiResponses, r#"data: {"type":"response.refusal.delta","item_id":"i","content_index":#,"delta":"x"}"#),
    (Api::OpenaiResponses, r#"data: {"type":"response.created","response":{"id":"r#"}}"#),
    (Api::OpenaiResponses, r#"data: {"type":"response.completed","response":{"status":"completed","output":[]}}"#),
    (
        Api::Anthropic,
        r#"data: {"type":"content_block_start","index":#,"content_block":{"type":"tool_use","id":"t#","name":"f","input":{}}}"#,
    ),
    (
        Api::Anthropic,
        r#"data: {"type":"content_block_start","index":#,"content_block":{"type":"thinking","thinking":"x"}}"#,
    ),
    (
        Api::Anthropic,
        r#"data: {"type":"content_block_delta","index":#,"delta":{"type":"input_json_delta","partial_json":"{"}}"#,
    ),
    (Api::Anthropic, r#"data: {"type":"content_block_stop","index":#}"#),
    (Api::Anthropic, r#"data: {"type":"message_start","message":{"id":"m#","content":[]}}"#),
    (Api::Anthropic, r#"data: {"type":"message_stop"}"#),
    (
        Api::Gemini,
        r#"data: {"candidates":[{"index":#,"content":{"parts":[{"text":"x"},{"functionCall":{"name":"f","args":{}}}]}}]}"#,
    ),
    (
        Api::Gemini,
        r#"data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","willContinue":true,"partialArgs":[{"jsonPath":"$.a#","stringValue":"x"}]}}]}}]}"#,
    ),
    (
        Api::Gemini,
        r#"data: {"candidates":[{"content":{"parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.a[#]","stringValue":"x","willContinue":true}],"willContinue":true}}]}}]}"#,
    ),
    (
        Api::Cohere,
        r#"data: {"type":"tool-call-start","index":#,"delta":{"message":{"tool_calls":{"id":"a#","type":"function","function":{"name":"f","arguments":""}}}}}"#,
    ),
    (
        Api::Cohere,
        r#"data: {"type":"content-start","index":#,"delta":{"message":{"content":{"type":"text","text":""}}}}"#,
    ),
    (
        Api::Mistral,
        r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":#,"id":"a#","function":{"name":"f","arguments":"{}"}}]}}]}"#,
    ),
    (
        Api::Ollama,
        r#"{"message":{"content":"","tool_calls":[{"function":{"index":#,"name":"f","arguments":{"a":#}}}]}}"#,
    ),
];

/// Beginnings of lines and events of every framing.
const FRAMING: &[&str] = &[
    "data",
    "data:",
    "data: ",
    "data\n",
    "data:\n",
    "data: {}\n\n",
    "data: {\n",
    "data: [\n",
    "event: x\n",
    "event: error\n\n",
    ":\n",
    ": x\n\n",
    "\n",
    "\r",
    "\r\n",
    "id: 1\n",
    "retry: 1\n\n",
    "\u{feff}",
    "\0",
    " ",
    "\t",
    "{",
    "}",
    "{}",
    "{}\n",
    "[",
    "]",
    "[{}",
    ",{}",
    "\"",
    "\\",
    "<",
    "<html>",
    "data: [DONE]\n\n",
    "data: null\n\n",
    "null\n",
    "0",
    "data: \"",
    "x",
    "é",
];

#[test]
fn bodies_of_every_api() {
    let mut wrong = Vec::new();
    for api in Api::ALL {
        let recorded = frames(api);
        let pieces = recorded.iter().map(String::as_str).chain(FRAMING.iter().copied());
        for first in ["", "data: {\"a\":\""] {
            for piece in pieces.clone().filter(|piece| first.is_empty() || piece.len() < 20) {
                judge(
                    || format!("{}, {first:?} and {piece:?}", api.name()),
                    &mut wrong,
                    |n| decode(api, (first.to_owned() + &piece.repeat(n)).as_bytes()),
                );
            }
        }
        let numbered: Vec<&str> =
            NUMBERED_FRAMES.iter().filter(|(of, _)| *of == api).map(|(_, frame)| *frame).collect();
        for one in &numbered {
            for other in &numbered {
                judge(
                    || format!("{}, {one} and {other}", api.name()),
                    &mut wrong,
                    |n| {
                        let frames = [one, other].into_iter().flat_map(|frame| (0..n).map(move |i| (frame, i)));
                        let body: String =
                            frames.map(|(frame, i)| frame.replace('#', &i.to_string()) + "\n\n").collect();
                        decode(api, body.as_bytes())
                    },
                );
            }
        }
    }
    none_is_wrong(&wrong);
}
