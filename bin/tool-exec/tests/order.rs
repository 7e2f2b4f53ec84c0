//! Which lines pass, which are added, and in which order.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::harness::{
    self, Dir, END, Live, START, call, message, one, processes, run, run_in, script, tool, turn,
};
use serde_json::{Value, json};

fn say(class: &str) -> Value {
    tool("say", &["printf", "%s", "{text}"], json!({"class": class}))
}

fn text(text: &str) -> Value {
    json!({"text": text})
}

#[test]
fn every_line_passes_byte_for_byte() {
    let odd = [
        START,
        r#"  {"text":"a" , "type":"content_delta","unknown":[1.50,{"x":null}],"choice":3}"#,
        r#"{"type":"from_the_future","x":"\u00e9"}"#,
        "  ",
        r#"{"type":"message","message":{"role":"user","content":"hi"}}"#,
        r#"{"type":"message","message":{"role":"assistant","content":"no call"}}"#,
        r#"{"type":"stream_end","finish_reason":"stop"}"#,
    ];
    let input = odd.join("\r\n");
    let out = run(&[say("read")], &input, &[]);
    assert_eq!(
        (out.text.as_str(), out.status),
        (format!("{input}\n").as_str(), 1)
    );
}

#[test]
fn a_turn_in_full() {
    let input = turn(&[("a", "say", text("one")), ("b", "say", text("two"))]);
    let out = run(&[say("write")], &input, &["--no-time"]);
    let added = [
        r#"{"type":"tool_result","tool_id":"a","tool_name":"say","status":"success","output":"one","output_summary":"one","output_bytes":3,"truncated":false,"cached":false,"exit_code":0}"#,
        r#"{"type":"message","message":{"role":"tool","tool_call_id":"a","name":"say","content":"one"}}"#,
        r#"{"type":"tool_result","tool_id":"b","tool_name":"say","status":"success","output":"two","output_summary":"two","output_bytes":3,"truncated":false,"cached":false,"exit_code":0}"#,
        r#"{"type":"message","message":{"role":"tool","tool_call_id":"b","name":"say","content":"two"}}"#,
        r#"{"type":"session_stats","calls":2,"cache_hits":0}"#,
    ];
    let mut want: Vec<String> = input.lines().map(str::to_owned).collect();
    let used = |id: &str, text: &str| {
        format!(
            r#"{{"type":"tool_use","tool_name":"say","tool_id":"{id}","status":"running","input_summary":"text={text}"}}"#
        )
    };
    want.splice(4..4, [used("a", "one"), used("b", "two")]);
    // The two commands end in any order; their results are written in call order.
    want.extend(added.map(str::to_owned));
    assert_eq!((out.text, out.status), (want.join("\n") + "\n", 0));
}

#[test]
fn times_are_written_unless_they_are_not_wanted() {
    let input = turn(&[("a", "say", text("x"))])
        .replace(r#""type":"message""#, r#""type":"message","t":12.5"#);
    let out = run(&[say("write")], &input, &[]);
    assert!(
        out.result("a")["duration_ms"].is_number()
            && out.result("a")["timestamp"].as_u64().unwrap() > 1_600_000_000_000
    );
    assert_eq!(out.of("tool_use")[0]["t"], json!(12.5));
    assert!(out.of("session_stats")[0]["duration_ms"].is_number());
    let out = run(&[say("write")], &input, &["--no-time"]);
    let added = out
        .text
        .lines()
        .filter(|line| !input.contains(line))
        .collect::<Vec<_>>()
        .join("\n");
    assert!(
        !added.contains("timestamp") && !added.contains("duration_ms") && !added.contains("\"t\":"),
        "{added}"
    );
}

#[test]
fn a_read_tool_starts_at_the_event_that_closed_its_arguments() {
    let dir = Dir::new();
    let mut live = Live::new(
        &dir,
        &[say("read"), tool("put", &["echo", "put"], json!({}))],
        &[],
    );
    live.send(START);
    live.send(&call(0, "a", "say", &text("early")).replacen('{', r#"{"t":250.5,"#, 1));
    // Nothing more is sent: the lines that are read now do not wait for the rest of the stream.
    assert_eq!(live.kinds(2), ["stream_start", "tool_call"]);
    let used = live.line();
    assert_eq!(
        (&used["type"], &used["tool_id"], &used["t"]),
        (&json!("tool_use"), &json!("a"), &json!(250.5))
    );
    let result = live.line();
    assert_eq!(
        (&result["type"], &result["output"]),
        (&json!("tool_result"), &json!("early"))
    );
    live.send(&call(1, "b", "put", &json!({})));
    live.send(r#"{"type":"content_delta","text":"still talking"}"#);
    assert_eq!(live.kinds(2), ["tool_call", "content_delta"]);
    live.send(&message(&[
        ("a", "say", text("early")),
        ("b", "put", json!({})),
    ]));
    assert_eq!(
        live.kinds(2),
        ["message", "tool_use"],
        "the other class starts at the commit point"
    );
    live.send(END);
    assert_eq!(
        live.kinds(4),
        ["stream_end", "message", "tool_result", "message"]
    );
    let (status, rest) = live.end();
    assert_eq!((status, rest.len()), (0, 1));
}

#[test]
fn lines_pass_at_once_while_a_command_runs() {
    let dir = Dir::new();
    let gate = dir.path("gate");
    let wait = script(
        "wait",
        &format!("read line <'{}'; echo $line", gate.display()),
        json!({"class": "read"}),
    );
    std::process::Command::new("mkfifo")
        .arg(&gate)
        .status()
        .unwrap();
    let mut live = Live::new(&dir, &[wait], &[]);
    live.send(START);
    live.send(&call(0, "a", "wait", &json!({})));
    assert_eq!(live.kinds(3), ["stream_start", "tool_call", "tool_use"]);
    for n in 0..100 {
        let line = format!(r#"{{"type":"content_delta","text":"{n}"}}"#);
        live.send(&line);
        assert_eq!(live.line()["text"], n.to_string());
    }
    std::fs::write(&gate, "open\n").unwrap();
    assert_eq!(live.line()["output"], "open\n");
}

#[test]
fn a_call_that_is_taken_back_is_ended() {
    let dir = Dir::new();
    let mut live = Live::new(
        &dir,
        &[script(
            "wait",
            "echo $$; exec sleep 1000",
            json!({"class": "read"}),
        )],
        &["--progress"],
    );
    live.send(START);
    live.send(&call(0, "a", "wait", &json!({})));
    live.until("tool_progress");
    live.send(r#"{"type":"retract","tool_id":"a","reason":"overturned"}"#);
    assert_eq!(live.until("tool_result")["status"], "cancelled");
    assert_eq!(processes(&dir), [""; 0]);
    live.send(r#"{"type":"message","message":{"role":"assistant","content":"text after all"}}"#);
    live.send(r#"{"type":"stream_end","finish_reason":"stop"}"#);
    let (status, rest) = live.end();
    assert_eq!((status, rest.len()), (1, 3), "{rest:?}");
}

#[test]
fn a_stream_that_fails_ends_what_runs_and_says_so() {
    for end in [
        Some(
            r#"{"type":"error","source":"llm-stream","code":"disconnected","message":"x","retryable":true}"#,
        ),
        Some(r#"{"type":"stream_end","finish_reason":"cut"}"#),
        None,
    ] {
        let dir = Dir::new();
        let mut live = Live::new(
            &dir,
            &[script("wait", "exec sleep 1000", json!({"class": "read"}))],
            &[],
        );
        live.send(START);
        live.send(&call(0, "a", "wait", &json!({})));
        live.until("tool_use");
        if let Some(end) = end {
            live.send(end);
        }
        let (status, rest) = live.end();
        let results: Vec<_> = rest
            .iter()
            .filter(|e| e["type"] == "tool_result")
            .map(|e| e["status"].clone())
            .collect();
        assert_eq!((status, results), (2, vec![json!("cancelled")]), "{end:?}");
        assert!(!rest.iter().any(|e| e["type"] == "message"));
    }
}

#[test]
fn results_as_they_are_done() {
    let dir = Dir::new();
    let gate = dir.path("gate");
    std::process::Command::new("mkfifo")
        .arg(&gate)
        .status()
        .unwrap();
    let tools = [
        script("first", &format!("cat '{}'", gate.display()), json!({})),
        script(
            "second",
            &format!("echo go >'{}'; echo done", gate.display()),
            json!({}),
        ),
    ];
    let calls = [
        ("a", "first", json!({})),
        ("b", "second", json!({})),
        ("c", "none", json!({})),
    ];
    for order in ["call", "completion"] {
        let out = run_in(&dir, &tools, &turn(&calls), &["--order", order]);
        let sent: Vec<_> = out
            .of("message")
            .iter()
            .filter_map(|m| m["message"]["tool_call_id"].as_str())
            .collect();
        assert_eq!((sent, out.status), (vec!["a", "b", "c"], 0));
        let first = out.of("tool_result")[0]["tool_id"].clone();
        assert_eq!(first, if order == "call" { "a" } else { "c" });
    }
}

#[test]
fn only_so_many_run_at_once() {
    let dir = Dir::new();
    let count = "echo x >>running; wc -l <running; sleep 0.05; truncate -s -2 running";
    let calls: Vec<(String, Value)> = (0..6).map(|n| (format!("c{n}"), json!({}))).collect();
    let calls: Vec<(&str, &str, Value)> = calls
        .iter()
        .map(|(id, a)| (id.as_str(), "count", a.clone()))
        .collect();
    let out = run_in(
        &dir,
        &[script("count", count, json!({}))],
        &turn(&calls),
        &["--jobs", "1"],
    );
    for result in out.of("tool_result") {
        assert_eq!(result["output"], "1\n");
    }
    assert!(
        out.shape().contains(
            "tool_use:c0 stream_end tool_result:c0 message:c0 tool_use:c1 tool_result:c1 message:c1"
        ),
        "{}",
        out.shape()
    );
}

#[test]
fn large_results_of_many_calls_never_mix() {
    let big = script(
        "big",
        "head -c 100000 /dev/zero | tr '\\0' \"$1\"",
        json!({}),
    );
    let mut big = big;
    big["exec"]["command"]
        .as_array_mut()
        .unwrap()
        .extend([json!("sh"), json!("{text}")]);
    let ids: Vec<String> = (0..testkit::places::count(200, 1000))
        .map(|n| format!("c{n}"))
        .collect();
    let calls: Vec<_> = ids
        .iter()
        .enumerate()
        .map(|(n, id)| {
            (
                id.as_str(),
                "big",
                text(&char::from(b'a' + (n % 26) as u8).to_string()),
            )
        })
        .collect();
    let dir = Dir::new();
    dir.write("in", turn(&calls));
    let mut command = harness::command(
        &dir,
        &[big],
        &["--jobs", "100", "--order", "completion", "in"],
    );
    let out = command.output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let mut results = 0;
    let mut sent = Vec::new();
    let mut scanner = event::Scanner::default();
    for line in text.lines() {
        let event = scanner
            .read(line)
            .unwrap_or_else(|e| panic!("{e}: {}", &line[..200.min(line.len())]));
        let message = event
            .get("message")
            .filter(|m| m.get_str("role").as_deref() == Some("tool"));
        let (id, output) = match (event.kind(), message) {
            (event::Kind::ToolResult, _) => (
                event.get_str("tool_id").unwrap(),
                event.get_str("output").unwrap(),
            ),
            (_, Some(message)) => (
                message.get_str("tool_call_id").unwrap(),
                message.get_str("content").unwrap(),
            ),
            _ => continue,
        };
        let letter = b'a' + (id[1..].parse::<usize>().unwrap() % 26) as u8;
        assert!(
            output.len() == 100_000 && output.bytes().all(|b| b == letter),
            "{id}"
        );
        if message.is_some() {
            sent.push(id.into_owned())
        } else {
            results += 1
        }
    }
    assert_eq!(
        (harness::code(out.status), results, sent),
        (0, ids.len(), ids)
    );
}

#[test]
fn streams_on_one_pipe_and_choices_are_kept_apart() {
    let named = |name: &str, turn: &str| -> Vec<String> {
        turn.lines()
            .map(|line| line.replacen('{', &format!(r#"{{"stream":"{name}","#), 1))
            .collect()
    };
    let x = named("x", &turn(&[("a", "say", text("of x"))]));
    let y = named("y", &turn(&[("a", "say", text("of y"))]));
    let mixed: Vec<String> = x.into_iter().zip(y).flat_map(|(x, y)| [x, y]).collect();
    let other = message(&[("a", "say", text("choice 1"))]).replacen('{', r#"{"choice":1,"#, 1);
    let out = run(&[say("write")], &(mixed.join("\n") + "\n" + &other), &[]);
    for name in ["x", "y"] {
        let mine: Vec<_> = out
            .events
            .iter()
            .filter(|e| e["stream"] == name && e["type"] == "tool_result")
            .collect();
        assert_eq!(
            (mine.len(), &mine[0]["output"]),
            (1, &json!(format!("of {name}")))
        );
    }
    assert_eq!(
        out.of("tool_result").len(),
        2,
        "the calls of another choice are not run"
    );
    let out = run(&[say("write")], &other, &["--choice", "1"]);
    assert_eq!(
        (&out.result("a")["output"], &out.result("a")["choice"]),
        (&json!("choice 1"), &json!(1))
    );
}

#[test]
fn a_log_that_answers_its_own_calls_runs_nothing() {
    let first = run(&[say("write")], &turn(&[("a", "say", text("x"))]), &[]);
    let again = run(&[say("write")], &first.text, &[]);
    assert_eq!((again.text, again.status), (first.text.clone(), 1));
    // From a file, too, and through it as an operand.
    let dir = Dir::new();
    dir.write("log", &first.text);
    let again = run_in(&dir, &[say("write")], "", &["log"]);
    assert_eq!((again.text, again.status), (first.text, 1));
}

#[test]
fn a_result_may_be_the_final_answer() {
    let last = |code: u8| {
        script(
            "last",
            &format!("echo the answer; exit {code}"),
            json!({"return_directly": true}),
        )
    };
    let out = one(&last(0), &json!({}));
    assert_eq!(
        (out.status, &out.result("i")["return_directly"]),
        (1, &json!(true))
    );
    assert_eq!(
        one(&last(1), &json!({})).status,
        0,
        "a failure is for the model"
    );
}

#[test]
fn progress_shows_output_as_it_appears() {
    let dir = Dir::new();
    let gate = dir.path("gate");
    std::process::Command::new("mkfifo")
        .arg(&gate)
        .status()
        .unwrap();
    let mut live = Live::new(
        &dir,
        &[script(
            "slow",
            &format!("printf 'one \\303'; cat '{}'", gate.display()),
            json!({}),
        )],
        &["--progress"],
    );
    live.send(&message(&[("a", "slow", json!({}))]));
    let progress = live.until("tool_progress");
    assert_eq!(
        (&progress["text"], &progress["tool_id"]),
        (&json!("one "), &json!("a")),
        "half a character waits"
    );
    std::fs::write(&gate, b"\xa9 two").unwrap();
    assert_eq!(live.until("tool_progress")["text"], "é two");
    assert_eq!(live.until("tool_result")["output"], "one é two");
}

/// All are answered in call order, with one line of the way on for those above the cap.
#[test]
fn ten_thousand_calls_of_a_turn_are_answered_and_few_of_them_run_53() {
    let dir = Dir::new();
    let say = script("say", "echo x >>ran", json!({"class": "read"}));
    let ids: Vec<String> = (0..10_000).map(|n| format!("c{n}")).collect();
    let calls: Vec<_> = ids
        .iter()
        .map(|id| (id.as_str(), "say", json!({"text": id})))
        .collect();
    let out = run_in(&dir, &[say], &turn(&calls), &["--max-calls", "3"]);
    assert_eq!(dir.read("ran"), "x\n".repeat(3));
    let results = out.of("tool_result");
    assert_eq!(
        results
            .iter()
            .filter(|result| result["status"] == "success")
            .count(),
        3
    );
    let denied = results.iter().filter(|result| result["status"] == "denied");
    assert!(
        denied
            .clone()
            .all(|result| result["output"].as_str().unwrap().contains("3 calls")),
        "{}",
        results[9999]
    );
    assert_eq!((denied.count(), out.status), (9997, 0));
    assert!(
        results
            .iter()
            .zip(&ids)
            .all(|(result, id)| result["tool_id"] == **id)
    );
}
