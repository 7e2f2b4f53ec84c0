//! How much of a stream is kept, and what happens where that is too much.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use event::{Kind, Machine, Payload, Scanner, Sink};
use std::rc::Rc;
use toolpipe_accumulate::{Accumulate, AccumulateOptions};

const MOST: usize = 100_000;

const START: &str = r#"{"type":"stream_start","v":1,"id":"r1"}"#;
const STOP: &str = r#"{"type":"stream_end","finish_reason":"stop"}"#;

/// What a machine writes, by kind, and how often it found something too long.
#[derive(Default)]
struct Written {
    kinds: Vec<Kind>,
    lost: usize,
}

impl Sink for Written {
    fn pass(&mut self) {}

    fn write(&mut self, _: u32, payload: &Payload<'_>) {
        self.kinds.push(payload.kind());
    }

    fn too_long(&mut self, kind: Kind, length: usize) {
        assert!(kind == Kind::Message && length > MOST);
        self.lost += 1;
    }
}

/// Runs a machine over `line` of each number below `count`, and returns what it wrote.
fn run(options: AccumulateOptions, count: usize, line: impl Fn(usize) -> String) -> Written {
    let mut machine = Accumulate::new(Rc::new(options));
    let mut scanner = Scanner::default();
    let mut out = Written::default();
    let lines = [START.to_owned()]
        .into_iter()
        .chain((0..count).map(line))
        .chain([STOP.to_owned()]);
    for line in lines {
        machine.push(&scanner.read(&line).unwrap(), &mut out);
    }
    out
}

#[test]
fn whatever_a_stream_is_made_of_is_counted_and_ends_at_the_limit() {
    let text = |n: usize| format!(r#"{{"type":"content_delta","text":"{n:0>999}"}}"#);
    let refusal = |n: usize| format!(r#"{{"type":"refusal_delta","text":"{n:0>999}"}}"#);
    let thinking = |n: usize| {
        format!(r#"{{"type":"thinking","text":"{n:0>999}","provider":{{"a":{{"n":{n}}}}}}}"#)
    };
    let signature = |n: usize| {
        format!(r#"{{"type":"thinking","text":"","provider":{{"a":{{"s":"{n:0>999}"}}}}}}"#)
    };
    let arguments = |n: usize| {
        let begin = if n == 0 {
            r#""tool_name":"f","arguments":"{\"a\":\""#
        } else {
            r#""arguments":""#
        };
        format!(r#"{{"type":"tool_call_delta","index":0,{begin}{n:0>999}"}}"#)
    };
    let calls = |n: usize| {
        format!(r#"{{"type":"tool_call_delta","index":{n},"tool_name":"f","arguments":"{{}}"}}"#)
    };
    let far = |n: usize| {
        format!(
            r#"{{"type":"tool_call_delta","index":{},"tool_name":"f"}}"#,
            n + (1 << 40)
        )
    };
    let choices = |n: usize| format!(r#"{{"type":"content_delta","choice":{n},"text":"x"}}"#);
    let passed = |n: usize| {
        format!(
            r#"{{"type":"tool_call","index":{n},"tool_id":"a{n}","tool_name":"f","arguments":{{"a":"{n:0>999}"}}}}"#
        )
    };
    let warnings = |n: usize| {
        format!(r#"{{"type":"warning","source":"tc-accumulate","code":"x","message":"{n:0>999}"}}"#)
    };
    let all: [&dyn Fn(usize) -> String; 10] = [
        &text, &refusal, &thinking, &signature, &arguments, &calls, &far, &choices, &passed,
        &warnings,
    ];
    for line in all {
        let free = run(AccumulateOptions::default(), 10_000, line);
        assert_eq!(free.lost, 0, "{}", line(1));
        let bound = run(
            AccumulateOptions {
                max_kept: Some(MOST),
                ..AccumulateOptions::default()
            },
            10_000,
            line,
        );
        assert!(
            bound.lost == 1 && !bound.kinds.contains(&Kind::Message),
            "{}: {:?}",
            line(1),
            bound.kinds
        );
    }
}

#[test]
fn calls_before_and_behind_the_limit_are_withdrawn() {
    let line = |n: usize| {
        match n {
        0 => r#"{"type":"tool_call_delta","index":0,"tool_id":"a","tool_name":"f","arguments":"{\"a\":1}"}"#.to_owned(),
        1 => r#"{"type":"tool_call","index":1,"tool_id":"b","tool_name":"f","arguments":{}}"#.to_owned(),
        200 => r#"{"type":"tool_call","index":2,"tool_id":"c","tool_name":"f","arguments":{}}"#.to_owned(),
        _ => format!(r#"{{"type":"content_delta","text":"{n:0>999}"}}"#),
    }
    };
    let out = run(
        AccumulateOptions {
            max_kept: Some(MOST),
            ..AccumulateOptions::default()
        },
        201,
        line,
    );
    assert_eq!(
        out.kinds,
        [Kind::ToolCall, Kind::Retract, Kind::Retract, Kind::Retract]
    );
}

#[test]
fn without_a_message_no_text_is_kept() {
    let text = |n: usize| format!(r#"{{"type":"content_delta","text":"{n:0>999}"}}"#);
    let out = run(
        AccumulateOptions {
            no_message: true,
            max_kept: Some(MOST),
            ..AccumulateOptions::default()
        },
        1000,
        text,
    );
    assert!(out.lost == 0 && out.kinds.is_empty(), "{:?}", out.kinds);
}

#[test]
fn the_tools_that_come_again_are_not_read_again() {
    let options = Rc::new(AccumulateOptions::default());
    let tools = r#"[{"name":"f","parameters":{"type":"object"}}]"#;
    let known = options.recent.read_valid(tools).unwrap();
    let holders = Rc::strong_count(&known);
    let start = format!(r#"{{"type":"stream_start","v":1,"tools":{tools}}}"#);
    let mut machine = Accumulate::new(Rc::clone(&options));
    machine.push(
        &Scanner::default().read(&start).unwrap(),
        &mut Written::default(),
    );
    assert_eq!(Rc::strong_count(&known), holders + 1);
}
