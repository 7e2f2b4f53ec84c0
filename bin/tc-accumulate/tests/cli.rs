//! `tc-accumulate` as a user runs it.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn run(args: &[&str], events: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tc-accumulate"))
        .arg("--no-time")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let input: String = events.iter().map(|e| format!("{e}\n")).collect();
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// The lines of the output, shortened: `tool_call` and `retract` with what matters, other events by
/// their type.
fn told(out: &Output) -> Vec<String> {
    String::from_utf8_lossy(&out.stdout)
        .lines()
        .map(|line| {
            let mut scanner = event::Scanner::default();
            let e = scanner.read(line).unwrap();
            let get = |key: &str| e.get_str(key).unwrap_or_default().into_owned();
            match e.kind() {
                event::Kind::ToolCall => {
                    let error = e.get("error").and_then(|e| e.get_str("code"));
                    let what = error.map_or(
                        e.get("arguments").map_or("null", |a| a.text()).to_owned(),
                        |c| c.into_owned(),
                    );
                    format!(
                        "call {} {} {what} {}",
                        get("tool_id"),
                        get("tool_name"),
                        get("commit")
                    )
                }
                event::Kind::Retract => format!("retract {} {}", get("tool_id"), get("reason")),
                event::Kind::Warning => format!("warning {}", get("code")),
                kind => kind.name().to_owned(),
            }
        })
        .collect()
}

const START: &str = r#"{"type":"stream_start","v":1,"id":"r1"}"#;
const OPEN: &str =
    r#"{"type":"tool_call_delta","index":0,"tool_id":"a","tool_name":"f","arguments":"{\"x\""}"#;
const CLOSE: &str = r#"{"type":"tool_call_delta","index":0,"arguments":":1}"}"#;
const SECOND: &str =
    r#"{"type":"tool_call_delta","index":1,"tool_id":"b","tool_name":"g","arguments":"{\"y\":2}"}"#;
const STOP: &str = r#"{"type":"stream_end","finish_reason":"tool_calls"}"#;
const LENGTH: &str = r#"{"type":"stream_end","finish_reason":"length"}"#;
const CUT: &str = r#"{"type":"stream_end","finish_reason":"cut"}"#;

#[test]
fn each_level_emits_at_its_event() {
    for (level, want) in [
        (
            "balanced",
            &[
                "stream_start",
                "call a f {\"x\":1} balanced",
                "call b g {\"y\":2} balanced",
                "message",
                "stream_end",
            ][..],
        ),
        (
            "sealed",
            &[
                "stream_start",
                "call a f {\"x\":1} sealed",
                "call b g {\"y\":2} final",
                "message",
                "stream_end",
            ],
        ),
        (
            "final",
            &[
                "stream_start",
                "call a f {\"x\":1} final",
                "call b g {\"y\":2} final",
                "message",
                "stream_end",
            ],
        ),
    ] {
        assert_eq!(
            told(&run(
                &["--emit-on", level],
                &[START, OPEN, CLOSE, SECOND, STOP]
            )),
            want,
            "{level}"
        );
    }
}

#[test]
fn what_was_cut_never_runs() {
    let done = r#"{"type":"tool_call_delta","index":0,"done":true}"#;
    let named = r#"{"type":"tool_call_delta","index":0,"tool_id":"a","tool_name":"f"}"#;
    for (events, want) in [
        (
            &[START, OPEN, LENGTH][..],
            &[
                "stream_start",
                "call a f incomplete ",
                "message",
                "stream_end",
            ][..],
        ),
        (
            &[START, OPEN, CLOSE, LENGTH],
            &[
                "stream_start",
                "call a f {\"x\":1} balanced",
                "message",
                "stream_end",
            ],
        ),
        (
            &[START, OPEN, CLOSE, CUT],
            &[
                "stream_start",
                "call a f {\"x\":1} balanced",
                "retract a stream_failed",
                "stream_end",
            ],
        ),
        (
            &[START, OPEN, CUT],
            &["stream_start", "call a f incomplete ", "stream_end"],
        ),
        (
            &[START, OPEN, CLOSE],
            &[
                "stream_start",
                "call a f {\"x\":1} balanced",
                "retract a stream_failed",
            ],
        ),
        // Whatever the finish reason is, the text is open.
        (
            &[START, OPEN, STOP],
            &[
                "stream_start",
                "call a f incomplete ",
                "message",
                "stream_end",
            ],
        ),
        // The block of a call without arguments closes also when the token limit was hit right
        // after its name.
        (
            &[START, named, done, LENGTH],
            &[
                "stream_start",
                "call a f incomplete ",
                "message",
                "stream_end",
            ],
        ),
        (
            &[START, named, done, STOP],
            &["stream_start", "call a f {} final", "message", "stream_end"],
        ),
        (
            &[START, named, done, SECOND, STOP],
            &[
                "stream_start",
                "call a f {} sealed",
                "call b g {\"y\":2} balanced",
                "message",
                "stream_end",
            ],
        ),
    ] {
        assert_eq!(told(&run(&[], events)), want, "{events:?}");
    }
}

#[test]
fn arguments_must_fit_the_schema_of_the_file_or_of_the_stream() {
    let tools = r#"[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"x":{"type":"string"}},"required":["x"]}}}]"#;
    let start = format!(r#"{{"type":"stream_start","v":1,"id":"r1","tools":{tools}}}"#);
    let want = ["stream_start", "call a f schema ", "message", "stream_end"];
    assert_eq!(told(&run(&[], &[&start, OPEN, CLOSE, STOP])), want);
    let file = std::env::temp_dir().join(format!("tc-accumulate-{}.json", std::process::id()));
    std::fs::write(&file, tools).unwrap();
    let path = file.to_str().unwrap();
    assert_eq!(
        told(&run(&["--tools", path], &[START, OPEN, CLOSE, STOP])),
        want
    );
    let out = run(&["--tools", path], &[START, OPEN, CLOSE, STOP]);
    std::fs::remove_file(&file).unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(
        text.contains(r#""arguments":null"#)
            && text.contains(r#""arguments_text":"{\"x\":1}""#)
            && text.contains("/x"),
        "{text}"
    );
    assert!(
        text.contains(r#""function":{"name":"f","arguments":"{}"}"#),
        "the history stays valid: {text}"
    );
}

#[test]
fn repair_is_listed_and_can_be_switched_off() {
    let odd = r#"{"type":"tool_call_delta","index":0,"tool_id":"a","tool_name":"f","arguments":"{'x': 1,}"}"#;
    let out = run(&[], &[START, odd, STOP]);
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(
        text.contains(r#""arguments":{"x":1}"#)
            && text.contains(r#""kind":"single_quotes""#)
            && text.contains(r#""arguments_text":"{'x': 1,}""#),
        "{text}"
    );
    assert_eq!(
        told(&run(&["--repair", "none"], &[START, odd, STOP]))[1],
        "call a f invalid_json "
    );
    let twice = r#"{"type":"tool_call_delta","index":0,"tool_id":"a","tool_name":"f","arguments":"{\"p\":1,\"p\":2}"}"#;
    assert_eq!(
        told(&run(&[], &[START, twice, STOP]))[1],
        "call a f invalid_json ",
        "a key that appears twice is not repaired"
    );
}

#[test]
fn twice_is_once() {
    let thinking = r#"{"type":"thinking","text":"hm","provider":{"anthropic":{"signature":"s"}}}"#;
    let text = r#"{"type":"content_delta","text":"Let me look."}"#;
    for end in [STOP, LENGTH, CUT] {
        for args in [&[][..], &["--keep-deltas"], &["--emit-on", "final"]] {
            let once = run(args, &[START, thinking, text, OPEN, CLOSE, SECOND, end]);
            let lines: Vec<&str> = std::str::from_utf8(&once.stdout).unwrap().lines().collect();
            let again = run(args, &lines);
            assert_eq!(
                String::from_utf8_lossy(&again.stdout),
                String::from_utf8_lossy(&once.stdout),
                "{args:?} {end}"
            );
        }
    }
}

/// Deltas that were kept make the same calls again: neither a call nor a warning may be written
/// twice.
#[test]
fn twice_is_once_for_every_case_with_kept_deltas() {
    let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/cases");
    let mut seen = 0;
    for case in std::fs::read_dir(cases).unwrap() {
        let Ok(input) = std::fs::read_to_string(case.unwrap().path().join("in.ndjson")) else {
            continue;
        };
        let input: Vec<&str> = input.lines().collect();
        for args in [
            &["--keep-deltas", "--partial"][..],
            &["--keep-deltas", "--emit-on", "final"],
            &["--keep-deltas"],
        ] {
            let once = run(args, &input);
            let lines: Vec<&str> = std::str::from_utf8(&once.stdout).unwrap().lines().collect();
            let again = run(args, &lines);
            assert_eq!(
                String::from_utf8_lossy(&again.stdout),
                String::from_utf8_lossy(&once.stdout),
                "{args:?}"
            );
            seen += 1;
        }
    }
    assert!(seen > 100, "{seen}");
}

#[test]
fn choices_have_their_own_calls_and_messages() {
    let one = r#"{"type":"tool_call_delta","choice":1,"index":0,"tool_id":"b","tool_name":"g","arguments":"{}"}"#;
    let out = run(&[], &[START, OPEN, one, CLOSE, STOP]);
    let text = String::from_utf8_lossy(&out.stdout);
    assert_eq!(
        text.lines().filter(|l| l.contains("\"message\",")).count(),
        2,
        "{text}"
    );
    assert!(
        text.contains(r#"{"type":"tool_call","choice":1,"index":0,"tool_id":"b""#),
        "{text}"
    );
    assert!(text.contains(r#"{"type":"message","choice":1,"#), "{text}");
    for shape in ["openai", "gemini"] {
        let whole = run(&["--as", shape], &[START, one, OPEN, CLOSE, STOP]);
        let whole = String::from_utf8_lossy(&whole.stdout);
        let [zero, one] =
            ["\"index\":0", "\"index\":1"].map(|index| whole.find(index).expect("both choices"));
        assert!(zero < one, "{whole}");
    }
}

#[test]
fn a_retract_drops_a_call_that_was_begun() {
    let retract = r#"{"type":"retract","index":0,"reason":"not a call"}"#;
    let out = run(&[], &[START, OPEN, retract, STOP]);
    assert_eq!(
        told(&out),
        [
            "stream_start",
            "retract a not a call",
            "message",
            "stream_end"
        ]
    );
    assert!(!String::from_utf8_lossy(&out.stdout).contains("tool_calls\":["));
}

#[test]
fn whole_responses_in_three_shapes() {
    let text = r#"{"type":"content_delta","text":"Let me look."}"#;
    let stats =
        r#"{"type":"session_stats","prompt_tokens":7,"completion_tokens":3,"total_tokens":10}"#;
    for (shape, want) in [
        (
            "openai",
            r#""tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":7"#,
        ),
        (
            "anthropic",
            r#"{"type":"tool_use","id":"a","name":"f","input":{"x":1}}],"stop_reason":"tool_use""#,
        ),
        (
            "gemini",
            r#"{"functionCall":{"id":"a","name":"f","args":{"x":1}}}],"role":"model"},"finishReason":"STOP""#,
        ),
    ] {
        let out = run(
            &["--as", shape],
            &[r#"{"type":"x"}"#, START, text, OPEN, CLOSE, stats, STOP],
        );
        let got = String::from_utf8_lossy(&out.stdout);
        assert!(
            got.lines().count() == 1 && got.contains(want),
            "{shape}: {got}"
        );
    }
}

#[test]
fn readings_for_user_interfaces() {
    let more = r#"{"type":"tool_call_delta","index":0,"arguments":":\"lo"}"#;
    let out = run(&["--partial"], &[START, OPEN, more, STOP]);
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(
        text.contains(r#"{"type":"tool_call_partial","index":0,"tool_id":"a","tool_name":"f","arguments":{"x":"lo"}}"#),
        "{text}"
    );
}

#[test]
fn an_error_passes_and_shows_in_the_status() {
    let error = r#"{"type":"error","source":"x","code":"y","message":"z","retryable":true}"#;
    let out = run(&[], &[START, error, CUT]);
    assert_eq!(
        (out.status.code(), told(&out)),
        (
            Some(2),
            vec!["stream_start".into(), "error".into(), "stream_end".into()]
        )
    );
}

#[test]
fn mistakes_are_one_line_and_status_2() {
    for (args, words) in [
        (
            &["--tools", "no-such-file.json"][..],
            "no-such-file.json: No such file or directory (os error 2), check the path",
        ),
        (
            &["--tools", "Cargo.toml"],
            "Cargo.toml: not JSON: expected value at line 1 column 2",
        ),
        (&["--emit-on", "never"], "invalid value 'never'"),
        (&["--as", "cobol"], "invalid value 'cobol'"),
    ] {
        let out = run(args, &[]);
        let err = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        assert!(
            err.starts_with("tc-accumulate: ") && err.contains(words) && err.lines().count() == 1,
            "{args:?}: {err}"
        );
    }
}

#[test]
fn a_second_call_under_a_used_id_keeps_its_own_name() {
    let again = r#"{"type":"tool_call_delta","index":0,"tool_id":"a","tool_name":"g"}"#;
    let rest = r#"{"type":"tool_call_delta","index":0,"tool_id":"a","arguments":"{\"y\":2}"}"#;
    let got = told(&run(&[], &[START, OPEN, CLOSE, again, rest, STOP]));
    assert_eq!(
        got[1..3],
        ["call a f {\"x\":1} balanced", "warning id_twice"]
    );
    assert!(
        got[3].ends_with(" g {\"y\":2} balanced") && !got[3].starts_with("call a "),
        "{got:?}"
    );
}

/// Lines that look alike are read by a template, which must not let a long one through.
#[test]
fn a_line_like_the_one_before_is_limited_too() {
    let delta = |length| {
        let text = "x".repeat(length);
        format!(r#"{{"type":"content_delta","text":"{text}"}}"#)
    };
    let [short, long] = [delta(1), delta(5000)];
    let out = run(&["--max-line", "4K"], &[&short, &short, &long, &short]);
    let got = told(&out);
    let passed = got.iter().filter(|line| *line == "content_delta").count();
    assert_eq!((passed, out.status.code()), (3, Some(2)), "{got:?}");
    assert!(got.contains(&"warning not_an_event".to_owned()), "{got:?}");
}

#[test]
fn a_message_that_is_too_long_is_not_kept() {
    use std::io::Read;
    // 64 MB of text are not a half of the memory that the message alone took without a limit.
    let script = format!(
        "ulimit -v 60000; exec {} --max-line 8M",
        env!("CARGO_BIN_EXE_tc-accumulate")
    );
    for shape in ["events", "openai"] {
        let mut child = Command::new("bash")
            .args(["-c", &format!("{script} --as {shape}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || {
            let text = format!(
                "{{\"type\":\"content_delta\",\"text\":\"{}\"}}\n",
                "x".repeat(1 << 20)
            );
            let _ = input.write_all(b"{\"type\":\"stream_start\",\"v\":1,\"id\":\"r\"}\n");
            (0..64).for_each(|_| drop(input.write_all(text.as_bytes())));
            let _ = input.write_all(b"{\"type\":\"stream_end\",\"finish_reason\":\"stop\"}\n");
        });
        let mut out = child.stdout.take().unwrap();
        let mut block = vec![0; 1 << 16];
        let mut end = Vec::new();
        while let Ok(count @ 1..) = out.read(&mut block) {
            end.extend_from_slice(&block[..count]);
            end.drain(..end.len().saturating_sub(600));
        }
        writer.join().unwrap();
        let done = child.wait_with_output().unwrap();
        let end = String::from_utf8_lossy(&end);
        let error = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{error}");
        assert!(
            error.lines().count() == 1 && error.contains("a message of"),
            "{error}"
        );
        if shape == "openai" {
            assert!(
                end.contains(r#""finish_reason":"error""#)
                    && end.contains(r#""code":"line_too_long""#),
                "{end}"
            );
        } else {
            assert!(
                !end.contains(r#""type":"message""#) && end.contains("\"stream_end\""),
                "{end}"
            );
        }
    }
}
