//! `tc-eval explain`: from a failing gate to the stream, the event and the bytes that caused it;
//! for every stream of the corpus, the bytes that are shown are those that made the event.

use crate::run::{Folder, Ran, root};
use api::{Api, Stream, StreamOptions};
use event::Collect;
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a script in `folder` with the built command first in its PATH.
fn bash(folder: &Path, script: &str) -> Ran {
    let bins = Path::new(env!("CARGO_BIN_EXE_tc-eval"))
        .parent()
        .expect("a folder");
    let path = format!(
        "{}:{}",
        bins.display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let mut bash = Command::new("bash");
    bash.args(["-c", script])
        .current_dir(folder)
        .env("PATH", path)
        .env_remove("CI")
        .stdin(Stdio::null());
    Ran::of(bash.output().expect("bash runs"))
}

/// The bytes that a script prints.
fn printed(folder: &Path, script: &str) -> Vec<u8> {
    let mut bash = Command::new("bash");
    bash.args(["-c", script])
        .current_dir(folder)
        .stdin(Stdio::null());
    bash.output().expect("bash runs").stdout
}

fn json(ran: &Ran) -> Value {
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    serde_json::from_str(&ran.out).expect("JSON")
}

#[test]
fn each_step_from_a_failing_gate_to_the_bytes_is_one_command_that_was_printed() {
    let root = root();
    let gate = bash(
        &root,
        "tc-eval fixtures --only id=anthropic/* --checker first-chunk --require 'recall>=0.99'",
    );
    assert_eq!(gate.status, Some(1), "{gate:?}");
    let explain = gate
        .out
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with("tc-eval explain "))
        .expect("a command");
    let explained = bash(&root, explain);
    assert_eq!(
        (explained.status, explained.err.as_str()),
        (Some(0), ""),
        "{explained:?}"
    );
    assert!(
        explained.out.contains("first-chunk: no, WRONG at event "),
        "{explained:?}"
    );
    let shows: Vec<&str> = explained
        .out
        .lines()
        .filter_map(|line| line.trim().strip_prefix("show "))
        .collect();
    assert_eq!(shows.len(), 2, "the decision and the call: {explained:?}");
    let [decision, call] =
        [shows[0], shows[1]].map(|show| String::from_utf8(printed(&root, show)).expect("UTF-8"));
    assert!(
        decision.contains("\"text_delta\"") && call.contains("\"tool_use\""),
        "{decision} {call}"
    );
    assert!(
        decision.starts_with("event: ") && decision.ends_with("\n\n"),
        "whole frames: {decision:?}"
    );
}

#[test]
fn the_bytes_of_every_stream_are_those_that_made_the_event() {
    let root = root();
    let folder = Folder::new();
    let checkers = ["-c", "first-chunk", "-c", "full"];
    let mut listed: HashMap<String, Vec<Value>> = HashMap::new();
    let list = folder
        .command(&[&["fixtures", "--list"], &checkers[..]].concat())
        .current_dir(&root)
        .output();
    for line in Ran::of(list.expect("the command runs")).lines() {
        listed
            .entry(line["id"].as_str().unwrap_or_default().to_owned())
            .or_default()
            .push(line);
    }
    let (mut bodies, mut wrong) = (0, 0);
    for (id, lines) in &listed {
        let args = [
            &["explain", "fixtures", "--stream", id, "-f", "json"],
            &checkers[..],
        ]
        .concat();
        let ran = Ran::of(
            folder
                .command(&args)
                .current_dir(&root)
                .output()
                .expect("the command runs"),
        );
        let got = json(&ran);
        assert_eq!(got["stream"], **id);
        let file = root.join(got["file"].as_str().expect("a file"));
        let bytes = std::fs::read(&file).expect("a recording");
        let mut events = Vec::new();
        for checker in got["checkers"].as_array().expect("a list") {
            let line = lines
                .iter()
                .find(|line| line["checker"] == checker["checker"])
                .expect("a line of the list");
            for (ours, theirs) in [("answer", "answer"), ("reason", "reason")] {
                assert_eq!(checker[ours], line[theirs], "{id}");
            }
            assert_eq!(
                (&checker["at"]["events"], &checker["at"]["bytes"]),
                (&line["event"], &line["bytes"]),
                "{id}"
            );
            let before = checker["text_before"].as_str();
            let after = checker["text_after"].as_str();
            let text = [before.expect("text"), after.expect("text")];
            assert_eq!(checker["at"]["chars"], text[0].chars().count(), "{id}");
            assert_eq!(got["end"]["chars"], text.concat().chars().count(), "{id}");
            let is_yes = checker["answer"] == "yes";
            if checker["answer"] != "undecided" {
                assert_eq!(
                    checker["right"],
                    is_yes == (got["has_tool_call"] == true),
                    "{id}"
                );
            }
            wrong += u32::from(checker["right"] == false);
            assert_eq!(checker["event"]["number"], checker["at"]["events"]);
            events.push(&checker["event"]);
        }
        if !got["first_call"].is_null() {
            events.push(&got["first_call"]["event"]);
        }
        for event in events {
            let place = |key: &str| {
                usize::try_from(event[key].as_u64().expect("a number")).expect("a place")
            };
            let from = place("offset");
            let to = place("offset") + place("length");
            let lines = |end: usize| {
                bytes[..end]
                    .trim_ascii_end()
                    .iter()
                    .filter(|byte| **byte == b'\n')
                    .count()
                    + 1
            };
            assert_eq!(event["lines"][1], lines(to), "{id} {event}");
            assert_eq!(
                event["excerpt"],
                *String::from_utf8_lossy(&bytes[from..to]),
                "{id}"
            );
            let count = |end: usize| {
                events_of(
                    &file,
                    got["api"].as_str().unwrap_or_default(),
                    &bytes[..end],
                )
            };
            if file.starts_with(root.join("fixtures/logs")) {
                assert_eq!(
                    event["excerpt"].as_str().map(str::trim),
                    event["event"].as_str(),
                    "{id}"
                );
            }
            let number = place("number");
            if let (Some(until), Some(all), Some(without)) =
                (count(to), count(bytes.len()), count(from))
            {
                // What is known only at the end of the file has the last frame as its place.
                assert!(until >= number.min(all), "{id}: {until} of {event}");
                assert!(
                    without < number,
                    "{id}: the event is there before its bytes: {event}"
                );
                bodies += 1;
            }
        }
    }
    assert!(
        bodies > 500 && wrong > 50,
        "{bodies} events of bodies, {wrong} wrong answers"
    );
}

/// How many events the beginning of a body gives, before its end is known; `None` for a tape or a
/// log.
fn events_of(file: &Path, api: &str, bytes: &[u8]) -> Option<usize> {
    if [root().join("fixtures/tapes"), root().join("fixtures/logs")]
        .iter()
        .any(|folder| file.starts_with(folder))
    {
        return None;
    }
    let mut stream = Stream::new(Api::from_name(api)?, StreamOptions::default());
    let mut out = Collect::default();
    stream.push(bytes, &mut out);
    Some(out.lines.len())
}

#[test]
fn names_and_texts_that_are_hostile_are_shown_on_their_lines() {
    let folder = Folder::new();
    let log = [
        r#"{"type":"stream_start","v":1,"model":"m\n\u001b[31m<script>"}"#,
        r#"{"type":"content_delta","text":"one\n\u001b[2J\u202e"}"#,
        r#"{"type":"tool_call_delta","index":0,"tool_id":"a","tool_name":"f\u001b[2J","arguments":"{}","done":true}"#,
        r#"{"type":"stream_end","finish_reason":"tool_calls"}"#,
    ];
    let name = "it's $(touch x)\n\u{1b}[31m.ndjson";
    folder.write(name, log.join("\n") + "\n");
    let id = "-s\n\u{1b}[2J'\"";
    let label = serde_json::json!({"id": id, "file": name, "has_tool_call": false, "tags": ["\u{202e}a\nb"], "calls": []});
    folder.write("index.ndjson", label.to_string() + "\n");
    let stream = format!("--stream={id}");
    let ran = folder.run(&[
        "explain",
        "index.ndjson",
        &stream,
        "-c",
        "first-chunk",
        "-c",
        "full",
    ]);
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    let hidden = |text: &str| {
        text.chars()
            .any(|c| (c.is_control() && c != '\n') || c == '\u{202e}')
    };
    assert!(!hidden(&ran.out), "{ran:?}");
    for says in [
        "first-chunk: no, right at event 2",
        "full: yes, WRONG at event 3",
        "a call begins 1 event and 0 characters after",
    ] {
        assert!(ran.out.contains(says), "{says}: {ran:?}");
    }
    let show = ran
        .out
        .lines()
        .find_map(|line| line.trim().strip_prefix("show "))
        .expect("a command");
    assert_eq!(
        printed(&folder.path(""), show),
        [log[1].as_bytes(), b"\n"].concat()
    );
    assert!(!folder.path("x").exists());
    let ran = folder.run(&[
        "explain",
        "index.ndjson",
        &stream,
        "-c",
        "full",
        "-f",
        "json",
    ]);
    assert!(!hidden(&ran.out) && ran.out.lines().count() == 1, "{ran:?}");
    assert_eq!(json(&ran)["stream"], id);
}

#[test]
fn a_recording_without_a_label_is_explained_by_its_calls() {
    let folder = Folder::new();
    let one = |text: &str| {
        format!(
            "{{\"type\":\"stream_start\",\"v\":1}}\n{{\"type\":\"content_delta\",\"text\":\"{text}\"}}\n{{\"type\":\"stream_end\",\"finish_reason\":\"stop\"}}\n"
        )
    };
    folder.write("two", one("a") + &one("bc"));
    folder.write(
        "call",
        one("a").replace(
            "\"content_delta\",\"text\"",
            "\"tool_call_delta\",\"tool_id\":\"i\",\"tool_name\"",
        ),
    );
    let second = json(&folder.run(&["explain", "two", "--part", "2", "-c", "full", "-f", "json"]));
    assert_eq!(
        (
            &second["end"]["chars"],
            &second["checkers"][0]["event"]["lines"]
        ),
        (&2.into(), &serde_json::json!([6, 6]))
    );
    assert_eq!(
        (&second["labelled"], &second["checkers"][0]["right"]),
        (&false.into(), &true.into())
    );
    let call = folder.run(&["explain", "call", "-c", "first-chunk"]);
    assert!(
        call.out
            .contains("call: calls a tool (by the calls that were read)\n"),
        "{call:?}"
    );
    assert!(
        call.out
            .contains("first-chunk: yes, right at event 2 of 3\n"),
        "{call:?}"
    );
}

#[test]
fn checkers_outside_of_the_process_are_explained_too() {
    let folder = Folder::new();
    let text = "{\"type\":\"stream_start\",\"v\":1}\n{\"type\":\"content_delta\",\"text\":\"{\"}\n{\"type\":\"stream_end\",\"finish_reason\":\"stop\"}\n";
    folder.write("log", text);
    folder.write(
        "index.ndjson",
        "{\"id\":\"s\",\"file\":\"log\",\"has_tool_call\":false,\"calls\":[]}\n",
    );
    folder.write(
        "made.ndjson",
        "{\"type\":\"decision\",\"stream\":\"s\",\"tool_call\":true,\"event\":2,\"reason\":\"a brace\"}\n",
    );
    let ran = folder.run(&[
        "explain",
        ".",
        "--stream",
        "s",
        "-c",
        "full",
        "--decisions",
        "braces=made.ndjson",
    ]);
    assert!(
        ran.status == Some(0) && ran.out.contains("\nbraces: yes, WRONG at event 2 of 3\n"),
        "{ran:?}"
    );
    assert!(
        ran.out.contains("  reason   a brace\n")
            && ran.out.contains("  later    no event of a call was read\n"),
        "{ran:?}"
    );
}

#[test]
fn calls_that_differ_from_those_of_the_label_are_listed() {
    let folder = Folder::new();
    let call = r#"{"type":"tool_call","index":0,"tool_id":"a","tool_name":"find","arguments":{"n":1},"commit":"final"}"#;
    folder.write("log", format!("{{\"type\":\"stream_start\",\"v\":1}}\n{call}\n{{\"type\":\"stream_end\",\"finish_reason\":\"tool_calls\"}}\n"));
    let label = r#"{"id":"s","file":"log","has_tool_call":true,"calls":[{"name":"find","arguments":{"n":2}}]}"#;
    folder.write(
        "index.ndjson",
        format!(
            "{label}\n{}\n",
            label.replace("\"s\"", "\"t\"").replace("2}", "1.0}")
        ),
    );
    let [wrong, right] = ["s", "t"].map(|id| {
        folder
            .run(&["explain", ".", "--stream", id, "-c", "full"])
            .out
    });
    assert!(wrong.contains("  call     find {\"n\":1}\n"), "{wrong}");
    assert!(
        wrong.contains("  wrong    the label has 1 call, of which 0 were read exactly:\n  label    find {\"n\":2}\n"),
        "{wrong}"
    );
    assert!(!right.contains("  wrong "), "{right}");
}

#[test]
fn what_cannot_be_explained_is_one_line_and_status_2() {
    let folder = Folder::new();
    let log = "{\"type\":\"stream_start\",\"v\":1}\n{\"type\":\"stream_end\",\"finish_reason\":\"stop\"}\n";
    folder.write("log", log);
    folder.write("two", log.repeat(2));
    folder.write("noise", "not a recording");
    folder.write(
        "index.ndjson",
        "{\"id\":\"openai/one\",\"file\":\"log\"}\n{\"id\":\"lost\",\"file\":\"absent\"}\n",
    );
    folder.write("bad/index.ndjson", "nothing\n");
    for (args, says) in [
        (
            &["."][..],
            "this is a corpus; name one of its streams with --stream ID",
        ),
        (&["index.ndjson"], "this is a corpus"),
        (&[".", "--stream", "one"], "did you mean 'openai/one'?"),
        (&[".", "--stream", "x"], "tc-eval --list shows all ids"),
        (
            &["bad", "--stream", "x"],
            "but a line cannot be read: bad, line 1: not a label",
        ),
        (&[".", "--stream", "lost"], "absent: No such file"),
        (
            &["two"],
            "the file holds 2 streams; choose one, such as --part 1",
        ),
        (&["two", "--part", "3"], "part 3 does not exist"),
        (&["noise"], "neither a body"),
        (&["nowhere"], "nowhere: No such file"),
        (&["log", "-c", "ful"], "unknown checker 'ful'"),
        (&["log", "-a", "opnai"], "the API \"opnai\" is unknown"),
        (
            &[".", "--stream", "lost", "--part", "1"],
            "cannot be used with",
        ),
    ] {
        let ran = folder.run(&[&["explain"], args].concat());
        assert!(
            ran.status == Some(2) && ran.out.is_empty() && ran.err.lines().count() == 1,
            "{args:?} {ran:?}"
        );
        assert!(
            ran.err.starts_with("tc-eval: ") && ran.err.contains(says),
            "{args:?} {ran:?}"
        );
    }
}
