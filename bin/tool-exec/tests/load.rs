//! Many calls in one stream: all results, in order, whole, in memory that does not grow with their
//! number.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::harness::{Dir, Live, message, run_in, script, turn};
use serde_json::{Value, json};
use testkit::places::count;

/// How many bytes each call writes.
const EACH: usize = 100_000;

/// The output of the call of that number.
fn output(n: usize) -> String {
    char::from(b'a' + (n % 26) as u8).to_string().repeat(EACH)
}

/// A tool that writes [`EACH`] times the letter that it gets.
fn big() -> Value {
    let mut big = script(
        "big",
        &format!("head -c {EACH} /dev/zero | tr '\\0' \"$1\""),
        json!({}),
    );
    big["exec"]["command"]
        .as_array_mut()
        .unwrap()
        .extend([json!("sh"), json!("{text}")]);
    big
}

/// Runs `n` calls and checks each line; returns the most memory that the process has had, in KiB.
fn peak(n: usize) -> u64 {
    let dir = Dir::new();
    let ids: Vec<String> = (0..n).map(|n| format!("c{n}")).collect();
    let calls: Vec<_> = ids
        .iter()
        .enumerate()
        .map(|(n, id)| (id.as_str(), "big", json!({"text": &output(n)[..1]})))
        .collect();
    let mut live = Live::new(&dir, &[big()], &["--jobs", "64", "--no-time"]);
    live.send(turn(&calls).trim_end());
    let (mut results, mut messages) = (0, 0);
    while messages < n {
        let event = live.line();
        if event["type"] == "tool_result" {
            assert_eq!(
                (event["tool_id"].as_str().unwrap(), &event["status"]),
                (ids[results].as_str(), &json!("success"))
            );
            assert!(
                event["output"] == output(results),
                "the output of call {results} is not whole"
            );
            results += 1;
        } else if event["message"]["role"] == "tool" {
            assert_eq!(
                (
                    event["message"]["tool_call_id"].as_str().unwrap(),
                    messages + 1
                ),
                (ids[messages].as_str(), results)
            );
            assert!(
                event["message"]["content"] == output(messages),
                "the message of call {messages} is not whole"
            );
            messages += 1;
        }
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", live.child.id())).unwrap();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    let peak = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert_eq!(live.end().0, 0);
    peak
}

#[test]
fn many_calls_come_whole_in_order_and_in_flat_memory() {
    let few = peak(count(200, 250));
    let many = peak(count(600, 1000));
    // What the further calls wrote is 40 or 75 MB, which come twice each, as result and message.
    assert!(
        many < few + 32 * 1024,
        "{few} KiB for the fewer calls, {many} KiB for all"
    );
}

#[test]
fn ten_thousand_calls_are_too_many_53() {
    let dir = Dir::new();
    let ids: Vec<String> = (0..10_000).map(|n| format!("c{n}")).collect();
    let calls: Vec<_> = ids.iter().map(|id| (id.as_str(), "t", json!({}))).collect();
    let tools = [script("t", "echo ran", json!({}))];
    for input in [turn(&calls), message(&calls) + "\n"] {
        let out = run_in(&dir, &tools, &input, &["--max-calls", "20"]);
        let results = out.of("tool_result");
        assert_eq!(
            (out.status, results.len(), out.of("tool_use").len()),
            (0, 10_000, 20)
        );
        for (n, result) in results.iter().enumerate() {
            assert_eq!(
                (
                    result["tool_id"].as_str().unwrap(),
                    result["status"] == "success"
                ),
                (ids[n].as_str(), n < 20)
            );
            let output = result["output"].as_str().unwrap();
            assert!(
                n < 20
                    || result["status"] == "denied"
                        && output.contains("at most 20 calls of one turn may run (--max-calls)")
            );
        }
    }
}
