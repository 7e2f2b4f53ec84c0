//! What a command reports while it runs.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::harness::{Dir, Live, message, run, script, tool};
use serde_json::json;

#[test]
fn a_command_reports_how_far_it_has_come() {
    let dir = Dir::new();
    let text = "echo '{\"progress\":0.25,\"message\":\"one\"}' >&2; until [ -e open ]; do sleep 0.05; done
        printf '{\"progress\":0.25,\"message\":\"one\"}\\n{\"progress\":7}\\n{\"progress\":NaN}\\n{\"progress\":1}' >&2; echo done; exit $CODE";
    for code in ["0", "3"] {
        let _ = std::fs::remove_file(dir.path("open"));
        let tools = [script("t", &text.replace("$CODE", code), json!({}))];
        let mut live = Live::new(&dir, &tools, &["--progress"]);
        live.send(&message(&[("i", "t", json!({}))]));
        let event = live.until("tool_progress");
        assert_eq!(
            (&event["progress"], &event["text"]),
            (&json!(0.25), &json!("one")),
            "while it runs"
        );
        dir.write("open", "");
        let (_, rest) = live.end();
        let steps: Vec<_> = rest
            .iter()
            .filter(|e| e["progress"].is_number())
            .map(|e| e["progress"].clone())
            .collect();
        assert_eq!(
            steps,
            [json!(1)],
            "neither what is the same nor what is not from 0 to 1"
        );
        let result = rest.iter().find(|e| e["type"] == "tool_result").unwrap();
        let output = result["output"].as_str().unwrap();
        assert!(
            output.contains("NaN") == (code == "3")
                && !output.contains(":1}")
                && !output.contains("0.25"),
            "{output}"
        );
        assert_eq!(result["truncated"], false);
    }
}

#[test]
fn a_flood_of_reports_neither_ends_the_command_nor_fills_its_errors() {
    let flood = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo \"{\\\"progress\\\":0.$i}\"; done >&2; echo the reason >&2; exit 1";
    let out = run(
        &[script("t", flood, json!({"max_output": "1K"}))],
        &(message(&[("i", "t", json!({}))]) + "\n"),
        &[],
    );
    let (status, output) = out.outcome("i");
    assert!(
        status == "error" && output.contains("stderr:\nthe reason") && !output.contains("progress"),
        "{output}"
    );
    assert!(output.contains("exit status 1"), "{output}");
}

#[test]
fn lines_come_as_they_are_written() {
    let dir = Dir::new();
    let tools = [tool(
        "t",
        &[
            "sh",
            "-c",
            "echo one; until [ -e open ]; do sleep 0.05; done; echo two",
        ],
        json!({}),
    )];
    let mut live = Live::new(&dir, &tools, &["--progress"]);
    live.send(&message(&[("i", "t", json!({}))]));
    assert_eq!(live.until("tool_progress")["text"], "one\n");
    dir.write("open", "");
    assert_eq!(live.until("tool_progress")["text"], "two\n");
    assert_eq!(live.end().0, 0);
}
