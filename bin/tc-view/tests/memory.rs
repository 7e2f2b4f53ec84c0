//! The memory of a view does not grow with the log.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// The lines of one turn of a loop: a question, an answer with a call, and its result.
fn turn(n: usize) -> String {
    let mut turn = String::new();
    let mut line = |line: &str| writeln!(turn, "{line}").unwrap();
    let (t, id) = (1_760_000_000_000 + n * 5000, format!("call_{n}"));
    line(r#"{"type":"message","message":{"role":"user","content":"Is it *raining*?"}}"#);
    line(&format!(
        r#"{{"type":"stream_start","v":1,"api":"openai-chat","model":"phi4","id":"r{n}","timestamp":{t}}}"#
    ));
    line(r#"{"type":"thinking","text":"Hm. ","t":10.5}"#);
    for n in 0..8 {
        line(&format!(
            r#"{{"type":"content_delta","text":"It is **sunny** in Köln.\n\n","t":{}}}"#,
            20 + n
        ));
    }
    line(&format!(
        r#"{{"type":"tool_call","index":0,"tool_id":"{id}","tool_name":"look","arguments":{{"n":{n}}},"t":40}}"#
    ));
    line(&format!(
        r#"{{"type":"message","message":{{"role":"assistant","content":"It is sunny.","tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"look","arguments":"{{}}"}}}}]}}}}"#
    ));
    line(
        r#"{"type":"session_stats","prompt_tokens":100,"completion_tokens":40,"duration_ms":320.5}"#,
    );
    line(r#"{"type":"stream_end","finish_reason":"tool_calls","t":50}"#);
    line(&format!(
        r#"{{"type":"tool_use","tool_name":"look","tool_id":"{id}","status":"running","timestamp":{}}}"#,
        t + 60
    ));
    let output = "It is sunny. ".repeat(40);
    line(&format!(
        r#"{{"type":"tool_result","tool_id":"{id}","tool_name":"look","status":"success","output":"{output}","duration_ms":{},"timestamp":{}}}"#,
        n % 90,
        t + 90
    ));
    line(&format!(
        r#"{{"type":"message","message":{{"role":"tool","tool_call_id":"{id}","content":"{output}"}}}}"#
    ));
    turn
}

/// The same turn as chat messages, as other programs store them.
fn messages(n: usize) -> String {
    let call = format!(
        r#"{{"id":"call_{n}","type":"function","function":{{"name":"look","arguments":"{{}}"}}}}"#
    );
    let output = "It is sunny. ".repeat(40);
    format!(
        r#"{{"role":"user","content":"Is it raining?"}}
{{"role":"assistant","content":null,"tool_calls":[{call}]}}
{{"role":"tool","tool_call_id":"call_{n}","content":"{output}"}}
{{"role":"assistant","content":"No."}}
"#
    )
}

/// The peak memory of a process, in KiB.
fn most_memory(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Measures the peak memory of a view after it has read a log, except for the rest in the pipe. A log of
/// ten times the size may need at most one MiB more.
#[test]
fn no_form_keeps_the_log() {
    let logs = [turn, messages];
    for (form, turn) in view::FORMS
        .iter()
        .flat_map(|form| logs.map(|log| (form, log)))
    {
        let mut view = Command::new(env!("CARGO_BIN_EXE_tc-view"))
            .args(["--format", form.name])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = view.stdin.take().unwrap();
        let size = 400 << 10;
        let mut turns = (0..).map(turn);
        let mut feed = |bytes: usize| {
            let mut written = 0;
            while written < bytes {
                let turn = turns.next().unwrap();
                input.write_all(turn.as_bytes()).unwrap();
                written += turn.len();
            }
            most_memory(view.id())
        };
        let small = feed(size);
        let large = feed(9 * size);
        drop(input);
        assert!(view.wait().unwrap().success(), "{}", form.name);
        assert!(
            large < small + 1024,
            "{}: {small} KiB, then {large} KiB",
            form.name
        );
    }
}
