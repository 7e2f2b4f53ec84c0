//! Law 4, linear, of the commands: the search of `growth.rs` with fewer inputs and each command as
//! a process, so that drivers, views and memory are measured too.

use crate::pipeline::cost::{Cost, compare};
use event::quoted;
use std::fs;
use std::path::{Path, PathBuf};
use testkit::places::is_named_tried;

const START: &str = r#"{"type":"stream_start","v":1,"id":"r1","tools":[{"type":"function","function":{"name":"f"}}]}"#;
const STOP: &str = r#"{"type":"stream_end","finish_reason":"stop"}"#;

/// Repeated as text and as arguments.
const PIECES: &[&str] = &[
    "{",
    "}",
    "]",
    "\"",
    "<",
    "<|channel|>comme",
    "<tool_call>",
    "</tool_call>",
    "```",
    "{\"a\":1}",
    "**",
    "\u{1b}[",
];

/// Commands that read text, and that read calls.
const OF_TEXT: &[&str] = &[
    "tag-parse",
    "tc-detect --checker tag",
    "tc-accumulate --as anthropic",
    "tc-view --format term",
    "tc-view --format text",
    "tc-view --format json",
];
const OF_CALLS: &[&str] = &[
    "tc-accumulate --partial",
    "tc-accumulate | tc-view --format term",
    "tc-accumulate | tool-exec --tools tools.json",
    "tc-view --format json",
];

/// Runs a pipeline with 1 GiB of memory for each of its commands.
fn run(pipeline: &str, folder: &Path) -> Cost {
    let script = format!(
        "ulimit -v 1048576; TIMEFORMAT=%3U; time {{ {pipeline}; }} <input 2>errors | wc -c"
    );
    let output = testkit::bash(&script, folder).output().expect("bash runs");
    let said = String::from_utf8_lossy(&output.stderr);
    let written = String::from_utf8_lossy(&output.stdout);
    let seconds: f64 = said
        .trim()
        .parse()
        .unwrap_or_else(|_| panic!("{pipeline}: {said}"));
    Cost {
        micros: (seconds * 1e6) as u64,
        written: written.trim().parse().expect("a number of bytes"),
    }
}

/// An empty folder.
fn folder(name: &str) -> PathBuf {
    let folder =
        std::env::temp_dir().join(format!("toolpipe-growth-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn check(pipelines: &[&str], event: impl Fn(&str, &str) -> String) {
    let folder = folder(&pipelines.len().to_string());
    fs::copy(
        testkit::root().join("fixtures/tools/tools.json"),
        folder.join("tools.json"),
    )
    .expect("copied");
    let mut wrong = Vec::new();
    for piece in PIECES {
        for many in [false, true] {
            let write = |n: usize| {
                let (unit, times) = if many {
                    (event("", piece), n)
                } else {
                    (event("", &piece.repeat(n)), 1)
                };
                let first = event("{\"a\":1}", "");
                fs::write(
                    folder.join("input"),
                    format!(
                        "{START}\n{first}\n{}{STOP}\n",
                        format!("{unit}\n").repeat(times)
                    ),
                )
                .expect("written");
            };
            for pipeline in pipelines {
                let what = format!("{pipeline}, {piece:?}, many: {many}");
                if !is_named_tried(&what, 6) {
                    continue;
                }
                compare(&what, &mut wrong, |n| {
                    write(n);
                    run(pipeline, &folder)
                });
            }
        }
    }
    fs::remove_dir_all(&folder).expect("the folder can go");
    assert!(
        wrong.is_empty(),
        "{} inputs cost too much:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn text_through_every_command() {
    check(OF_TEXT, |_, text| {
        format!(r#"{{"type":"content_delta","text":{}}}"#, quoted(text))
    });
}

#[test]
fn calls_through_every_command() {
    check(OF_CALLS, |first, text| {
        let arguments = quoted(&format!("{first}{text}"));
        format!(
            r#"{{"type":"tool_call_delta","index":0,"tool_id":"a","tool_name":"f","arguments":{arguments}}}"#
        )
    });
}

#[test]
fn bodies_that_are_replayed() {
    let folder = folder("replay");
    let mut wrong = Vec::new();
    for piece in [
        "\n",
        " ",
        "data:",
        "data: {\n",
        ":\n",
        "{",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n",
    ] {
        compare(
            &format!("llm-stream --replay, {piece:?}"),
            &mut wrong,
            |n| {
                fs::write(folder.join("body.sse"), piece.repeat(n)).expect("written");
                fs::write(folder.join("input"), "").expect("written");
                run("llm-stream --api openai-chat --replay body.sse", &folder)
            },
        );
    }
    fs::remove_dir_all(&folder).expect("the folder can go");
    assert!(
        wrong.is_empty(),
        "{} inputs cost too much:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
