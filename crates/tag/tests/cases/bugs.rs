//! The bugs of other parsers that are about when something comes, not what: numbers as in
//! `fixtures/dialects/bugs.cases`.

use super::outcome::Outcome;
use event::{Collect, Scanner};
use json::ToolList;
use serde_json::{Value, json};
use std::rc::Rc;
use testkit::places::is_full;
use toolpipe_tag::{CallPiece, Dialect, Look, Outlet, Parser, PromptCall, Streams, TagOptions};

const TOOLS: &str = r#"[{"type": "function", "function": {"name": "search", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}}}]"#;

/// How much was emitted so far.
#[derive(Default)]
struct Sizes {
    text: String,
    /// The pieces of arguments: how long each is.
    arguments: Vec<usize>,
    done: usize,
    retracted: usize,
}

impl Outlet for Sizes {
    fn content(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn reasoning(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn call(&mut self, piece: CallPiece<'_>) {
        self.arguments.extend(piece.arguments.map(str::len));
        self.done += usize::from(piece.done);
    }

    fn retract(&mut self, _index: i64, _reason: &'static str) {
        self.retracted += 1;
    }

    fn warning(&mut self, _code: &'static str, _message: &str, _raw: &str) {}
}

fn parser(dialect: &str) -> Parser {
    let tools = Rc::new(ToolList::read(TOOLS).expect("a list of tools"));
    Parser::new(
        Rc::new(Look::new(dialect).expect("a dialect of the table")),
        Some(tools),
        Some(""),
    )
}

/// A call whose argument is this long, and where its value begins and ends.
fn long(dialect: &Dialect, length: usize) -> (String, usize, usize) {
    let value = "ab c".repeat(length / 4);
    let text = dialect.calls(&[PromptCall {
        id: "",
        name: "search",
        arguments: &json!({ "query": value }).to_string(),
    }]);
    let from = text.find(&value).expect("the value stands in the text");
    (text, from, from + value.len())
}

/// 3 and 25: arguments go on as they come, each byte of them once, so that nothing is kept to be
/// read again. What reading costs is measured by the benchmark.
#[test]
fn bug_03_and_25_arguments_go_on_as_they_come() {
    /// White space and quotes that may be a marker's beginning or end.
    const HELD: usize = 64;
    for dialect in Dialect::all() {
        let (text, from, to) = long(dialect, 4000);
        let mut parser = parser(dialect.name);
        let mut out = Sizes::default();
        parser.push(&text[..from], &mut out);
        let mut at = from;
        while at + 4 <= to {
            parser.push(&text[at..at + 4], &mut out);
            at += 4;
            let said: usize = out.arguments.iter().sum();
            assert!(
                said + HELD >= at - from,
                "{}: {said} of {} bytes",
                dialect.name,
                at - from
            );
        }
        parser.push(&text[at..], &mut out);
        parser.finish(false, &mut out);
        let said: usize = out.arguments.iter().sum();
        assert!(
            out.done == 1 && out.retracted == 0 && said <= to - from + HELD,
            "{}: {said}",
            dialect.name
        );
        assert!(
            out.arguments.iter().all(|piece| *piece <= HELD),
            "{}",
            dialect.name
        );
    }
}

/// 7 and 8: a stream that ends inside a call ends as it said, after the call was taken back.
#[test]
fn bug_07_and_08_the_end_of_the_stream_stays_as_it_was() {
    for dialect in Dialect::all() {
        let (text, from, _) = long(dialect, 64);
        for end in ["length", "stop", "content_filter"] {
            let start = json!({"type": "stream_start", "stream": "s", "v": 1, "tools_mode": "tag", "dialect": dialect.name,
                "prefill": "", "tools": serde_json::from_str::<Value>(TOOLS).expect("JSON")});
            let last =
                json!({"type": "stream_end", "stream": "s", "finish_reason": end}).to_string();
            let delta = json!({"type": "content_delta", "stream": "s", "text": &text[..from + 9]})
                .to_string();
            let lines = [start.to_string(), delta, last.clone()];
            let begin = || {
                Streams::new(TagOptions::default())
                    .begin(&Scanner::default().read(&lines[0]).expect("an event"))
            };
            let got = Collect::run(&mut begin(), &lines);
            assert_eq!(got.last(), Some(&last), "{}", dialect.name);
            let outcome = Outcome::read(&got);
            assert!(
                outcome.lasting(true).calls().is_empty(),
                "{}: {:?}",
                dialect.name,
                outcome.lines()
            );
            // Without its last event it is the same.
            assert_eq!(
                Outcome::read(&Collect::run(&mut begin(), &lines[..2])).lasting(true),
                outcome.lasting(true)
            );
        }
    }
}

/// 6, 10 and 26: what cannot open anything is out with the byte that tells, in every dialect.
#[test]
fn bug_26_nothing_is_held_that_opens_nothing() {
    let call = [PromptCall {
        id: "",
        name: "search",
        arguments: r#"{"query": "x"}"#,
    }];
    for dialect in Dialect::all() {
        let written = dialect.calls(&call);
        for name in [dialect.name, "auto"] {
            let mut starts: Vec<String> = (1..4)
                .map(|n| written.trim_start().chars().take(n).collect())
                .collect();
            starts.extend(
                [
                    "<",
                    "< ",
                    "[",
                    "{",
                    "<|",
                    "</",
                    "``",
                    "<abcdefghijklmnopqrstuvwxyz",
                ]
                .map(str::to_owned),
            );
            for start in starts {
                let mut parser = parser(name);
                let mut out = Sizes::default();
                let text = format!("Say {start}🛖");
                parser.push(&text, &mut out);
                assert_eq!(out.text, text, "{} as {name}", dialect.name);
                assert!(
                    parser.passes("and more"),
                    "{} as {name}: {text}",
                    dialect.name
                );
            }
        }
    }
}

/// Texts of one beginning after another, as one piece: each byte is read a bounded number of times.
/// Where every beginning reads or copies all that follows it, this test takes minutes.
#[test]
fn bug_25_beginnings_without_end_take_linear_time() {
    for (dialect, unit) in [
        ("harmony", "<|channel|>comme"),
        ("harmony", "<|start|>"),
        ("auto", "<|start|>assistant to=f"),
        ("hermes", "\""),
        ("hermes", "{\"a\":"),
        ("hermes", "[\"\n\"] "),
        ("hermes", "<tool_call>x"),
        ("hermes", "<tool_call>{\"name\": \"search\", x"),
        ("kimi-k2", "<|tool_calls_section_begin|>x"),
    ] {
        let text = unit.repeat(if is_full() { 1_000_000 } else { 100_000 } / unit.len());
        let mut parser = parser(dialect);
        let mut out = Sizes::default();
        parser.push(&text, &mut out);
        parser.finish(false, &mut out);
        assert_eq!(
            (out.text.len(), out.done),
            (text.len(), 0),
            "{dialect}: {unit}"
        );
    }
}

/// The words of warnings.
#[derive(Default)]
struct Words(Vec<String>);

impl Outlet for Words {
    fn content(&mut self, _text: &str) {}
    fn reasoning(&mut self, _text: &str) {}
    fn call(&mut self, _piece: CallPiece<'_>) {}
    fn retract(&mut self, _index: i64, _reason: &'static str) {}
    fn warning(&mut self, _code: &'static str, message: &str, _raw: &str) {
        self.0.push(message.to_owned());
    }
}

/// A warning says what is wrong with the call: `search` is a tool of the list, and `launch` is not.
#[test]
fn a_warning_names_what_is_wrong() {
    const NO_MARKER: &str =
        "not a call: the name of the tool is not followed by the expected marker";
    const NO_TOOL: &str = "not a call: the tool is not in the list";
    for (dialect, text, want) in [
        ("auto", "<tool_call>search(query=1)</tool_call>", NO_MARKER),
        ("auto", "<function=\"search\">\n</function>", NO_MARKER),
        ("auto", "<tool_call>search for huts", NO_MARKER),
        (
            "auto",
            "<tool_call>{\"name\": \"launch\", \"arguments\": {}}</tool_call>",
            NO_TOOL,
        ),
        (
            "kimi-k2",
            "<|tool_call_begin|>functions.launch:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
            NO_TOOL,
        ),
        ("glm45", "<tool_call>launch\n</tool_call>", NO_TOOL),
        (
            "anthropic-xml",
            "<function_calls><invoke>",
            "not a call: the tag has no name",
        ),
        (
            "auto",
            "<tool_call>{\"tool\": \"search\"}</tool_call>",
            "not a call: the call has no name",
        ),
        (
            "harmony",
            "<|channel|>commentary to=functions.launch<|message|>{}<|call|>",
            NO_TOOL,
        ),
        (
            "hermes",
            "<tool_call>{\"name\": \"se",
            "not a call: the text ends before the call is complete",
        ),
    ] {
        let mut parser = parser(dialect);
        let mut out = Words::default();
        parser.push(text, &mut out);
        parser.finish(false, &mut out);
        assert_eq!(out.0, [want], "{dialect}: {text}");
    }
}
