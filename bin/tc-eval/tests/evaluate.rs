//! `tc-eval` measures what checkers do on recorded streams.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use crate::run::{self, Folder, root};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Stdio;
use testkit::needs;

const TEXT: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Let me look.\"}}]}\n\n";
const CALL: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"n\\\": 1}\"}}]}}]}\n\n";
const STOP: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// A folder with a body of these frames as `body.sse`.
fn body(frames: &[&str]) -> Folder {
    let folder = Folder::new();
    folder.write("body.sse", frames.concat());
    folder
}

/// The line of an index for `body.sse`, with these members more.
fn label(id: &str, has_tool_call: bool, more: &Value) -> String {
    let mut label =
        json!({"id": id, "file": "body.sse", "api": "openai-chat", "has_tool_call": has_tool_call});
    label
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    format!("{label}\n")
}

/// Streams in which the first text and a call come in one chunk: a whole response is one, too.
const WITH_CALL: [&str; 7] = [
    "anthropic/whole",
    "gemini/row-21-text-and-call-in-one-chunk",
    "gemini/whole",
    "openai-chat/message-instead-of-delta",
    "openai-chat/row-21-text-and-call-in-one-chunk",
    "openai-chat/whole",
    "openai-responses/whole",
];

#[test]
fn first_chunk_is_wrong_where_text_comes_before_the_call_and_nowhere_else() {
    let folder = Folder::new();
    let ran = folder.run(&[
        root().join("fixtures").to_str().unwrap(),
        "-c",
        "first-chunk",
        "-c",
        "full",
        "--list",
    ]);
    let (mut wrong, mut streams) = (0, 0);
    for line in ran
        .lines()
        .iter()
        .filter(|line| line["checker"] == "first-chunk")
    {
        // In tag mode the call is text itself.
        let before = if line["first_call"].is_null() {
            &line["end"]
        } else {
            &line["first_call"]
        };
        let is_with_call = WITH_CALL.iter().any(|id| line["id"] == *id);
        let must_be_wrong =
            line["has_tool_call"] == true && before["chars"].as_u64() > Some(0) && !is_with_call;
        assert_eq!(
            line["answer"] == "no" && line["has_tool_call"] == true,
            must_be_wrong,
            "{line}"
        );
        assert!(
            line["answer"] != "yes" || line["has_tool_call"] == true,
            "{line}"
        );
        streams += 1;
        wrong += u64::from(must_be_wrong);
    }
    assert!(
        streams > 100 && wrong > 5,
        "{wrong} of {streams}: {}",
        ran.err
    );
}

#[test]
fn the_place_of_a_decision_counts_events_characters_bytes_and_recorded_time() {
    let folder = Folder::new();
    let log = [
        r#"{"type":"stream_start","v":1,"t":0}"#,
        r#"{"type":"content_delta","t":10,"text":"é "}"#,
        r#"{"type":"refusal_delta","t":20,"text":"no"}"#,
        r#"{"type":"content_delta","choice":1,"t":21,"text":"other"}"#,
        r#"{"type":"decision","t":22,"tool_call":false,"checker":"full","reason":"x","event":1,"bytes":0}"#,
        r#"{"type":"tool_call_delta","t":30,"index":0,"tool_id":"a","tool_name":"f","arguments":"{\"n\":"}"#,
        r#"{"type":"tool_call_delta","t":40,"index":0,"arguments":"1}"}"#,
        r#"{"type":"stream_end","t":45.5,"finish_reason":"tool_calls"}"#,
    ];
    folder.write("log.ndjson", log.join("\n"));
    folder.write(
        "index.ndjson",
        r#"{"id":"x","file":"log.ndjson","has_tool_call":true,"calls":[{"name":"f","arguments":{}}]}"#,
    );
    let ran = folder.run(&[".", "-c", "full", "-c", "first-chunk", "--list"]);
    let lines = ran.lines();
    let place = |at: &Value| ["event", "chars", "bytes", "ms"].map(|key| at[key].clone());
    assert_eq!(
        place(&lines[0]),
        [json!(5), json!(4), json!(5), json!(30)],
        "{}",
        ran.err
    );
    assert_eq!(
        lines[0]["answer"], "yes",
        "a decision in the log was made by another run"
    );
    assert_eq!(place(&lines[0]["first_call"]), place(&lines[0]));
    assert_eq!(place(&lines[1]), [json!(2), json!(2), json!(3), json!(10)]);
    assert_eq!(
        (&lines[1]["answer"], place(&lines[1]["end"])),
        (&json!("no"), [json!(7), json!(4), json!(5), json!(45.5)])
    );
    assert_eq!(lines[0]["saved_ms"], 5.5);
}

#[test]
fn calls_are_compared_as_values_in_order_and_as_a_set() {
    let folder = Folder::new();
    let call = |index: u64, name: &str, arguments: &str| {
        let arguments = json!(arguments);
        format!(
            r#"{{"type":"tool_call_delta","index":{index},"tool_id":"i{index}","tool_name":"{name}","arguments":{arguments}}}"#
        )
    };
    let start = r#"{"type":"stream_start","v":1}"#.to_owned();
    let end = r#"{"type":"stream_end","finish_reason":"tool_calls"}"#.to_owned();
    let cut = r#"{"type":"stream_end","finish_reason":"length"}"#.to_owned();
    let mut index = String::new();
    let mut wanted = BTreeMap::new();
    let a = r#"{"x":1.0,"y":"\u00e9"}"#;
    let b = r#"{"n":null}"#;
    for (id, calls, end, label, counts) in [
        (
            "equal",
            vec![call(0, "f", a), call(1, "g", b)],
            &end,
            json!([["f", {"y": "é", "x": 1}], ["g", {"n": null}]]),
            [2, 2, 2, 1, 0, 0],
        ),
        (
            "swapped",
            vec![call(0, "f", a), call(1, "g", b)],
            &end,
            json!([["g", {"n": null}], ["f", {"y": "é", "x": 1}]]),
            [2, 2, 2, 0, 0, 0],
        ),
        (
            "twice",
            vec![call(0, "f", a), call(1, "f", a)],
            &end,
            json!([["f", {"y": "é", "x": 1}]]),
            [1, 2, 1, 0, 0, 0],
        ),
        (
            "true is not 1",
            vec![call(0, "f", "{\"x\":true}")],
            &end,
            json!([["f", {"x": 1}]]),
            [1, 1, 0, 0, 0, 0],
        ),
        (
            "repaired",
            vec![call(0, "f", "{'x': 1,}")],
            &end,
            json!([["f", {"x": 1}]]),
            [1, 1, 1, 1, 1, 0],
        ),
        (
            "cut",
            vec![call(0, "f", "{\"x\": 1")],
            &cut,
            json!([["f", null]]),
            [1, 1, 1, 1, 0, 1],
        ),
        (
            "not called",
            vec![],
            &end,
            json!([["f", {}]]),
            [1, 0, 0, 0, 0, 0],
        ),
    ] {
        let file = format!("{id}.ndjson");
        let lines = [vec![start.clone()], calls, vec![end.clone()]].concat();
        folder.write(&file, lines.join("\n"));
        let calls: Vec<Value> = label
            .as_array()
            .unwrap()
            .iter()
            .map(|c| json!({"name": c[0], "arguments": c[1]}))
            .collect();
        let line = json!({"id": id, "file": file, "has_tool_call": true, "calls": calls});
        index += &format!("{line}\n");
        wanted.insert(id.to_owned(), counts);
    }
    folder.write("index.ndjson", index);
    let ran = folder.run(&[".", "-c", "full", "--list"]);
    for line in ran.lines() {
        let calls = &line["calls"];
        let count = |key: &str| {
            calls[key]
                .as_u64()
                .unwrap_or_else(|| u64::from(calls[key] == true))
        };
        let counts = [
            "expected",
            "read",
            "exact",
            "in_order",
            "repaired",
            "incomplete",
        ]
        .map(count);
        assert_eq!(
            wanted.remove(line["id"].as_str().unwrap()),
            Some(counts),
            "{line}"
        );
    }
    assert!(wanted.is_empty(), "{wanted:?} {}", ran.err);
}

#[test]
fn in_tag_mode_calls_are_read_from_the_text_and_checkers_see_the_text() {
    let folder = Folder::new();
    let text =
        json!("I look. <tool_call>\n{\"name\": \"f\", \"arguments\": {\"n\": 1}}\n</tool_call>");
    folder.write(
        "body.sse",
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":{text}}}}}]}}\n\n{STOP}"
        ),
    );
    let calls = json!([{"name": "f", "arguments": {"n": 1}}]);
    let tag = label(
        "tag",
        true,
        &json!({"tools_mode": "tag", "dialect": "hermes", "calls": calls}),
    );
    let native = label("native", false, &json!({"tools": []}));
    folder.write("index.ndjson", tag + &native);
    let answers = |more: &[&str]| {
        let ran = folder.run(&[&[".", "-c", "full", "-c", "tag", "--list"], more].concat());
        let one = |line: &Value| {
            format!(
                "{} {} {} {}",
                line["id"], line["checker"], line["answer"], line["calls"]["exact"]
            )
            .replace('"', "")
        };
        (ran.lines().iter().map(one).collect::<Vec<_>>(), ran.err)
    };
    let (untouched, err) = answers(&[]);
    assert_eq!(
        untouched,
        [
            "tag full no 1",
            "tag tag yes 1",
            "native full no 0",
            "native tag no 0"
        ],
        "{err}"
    );
    assert_eq!(
        answers(&["--tag-parse"]).0,
        [
            "tag full yes 1",
            "tag tag yes 1",
            "native full no 0",
            "native tag no 0"
        ]
    );
}

#[test]
fn a_split_shows_where_it_changes_an_answer() {
    if !needs::programs(&["jq"]) {
        return;
    }
    let folder = body(&[TEXT, CALL, STOP]);
    folder.write("index.ndjson", label("x", true, &json!({})));
    let depends = |checker: &str, split: &str| {
        let ran = folder.run(&[".", "-c", checker, "--resplit", split, "--list"]);
        let lines = ran.lines();
        assert_eq!(lines.len(), 1, "{}", ran.err);
        (
            lines[0]["answer"].as_str().unwrap().to_owned(),
            lines[0]["depends_on_split"].as_bool().unwrap(),
        )
    };
    for split in ["1", "5", "random:3", "1000"] {
        for (checker, answer) in [
            ("full", "yes"),
            ("first-chunk", "no"),
            ("lookahead:12", "no"),
            ("lookahead:13", "yes"),
        ] {
            assert_eq!(
                depends(checker, split),
                (answer.to_owned(), false),
                "{checker} {split}"
            );
        }
    }
    // Looks at one delta alone, as checkers of markup often do.
    let command = r#"cmd:jq --unbuffered -c 'select(.type == "content_delta" or .type == "stream_end") |
        {type: "decision", stream, tool_call: ((.text // "") | contains("look")), revised: true}'"#;
    assert_eq!(depends(command, "1"), ("yes".to_owned(), true));
    assert_eq!(depends(command, "1000"), ("yes".to_owned(), false));
}

#[test]
fn the_order_of_the_output_does_not_depend_on_the_number_of_threads() {
    let folder = Folder::new();
    let fixtures = root().join("fixtures");
    let run = |jobs: &str| {
        let args = [
            fixtures.to_str().unwrap(),
            "-c",
            "full",
            "-c",
            "tag",
            "--resplit",
            "random:1",
            "--list",
            "--jobs",
            jobs,
        ];
        folder.run(&args).out
    };
    let one = run("1");
    assert!(one.lines().count() > 200);
    assert!(one == run("2") && one == run("7"));
}

#[test]
fn a_part_of_the_corpus_is_chosen_by_fields() {
    let folder = body(&[TEXT, STOP]);
    let tags = |tags: &[&str], provider: &str| json!({"tags": tags, "provider": provider});
    folder.write(
        "index.ndjson",
        [
            label("a/1", false, &tags(&["text", "row-18"], "p")),
            label("a/2", false, &tags(&["text"], "p")),
            label("b/1", false, &tags(&["row-18"], "q")),
        ]
        .concat(),
    );
    let ids = |only: &[&str]| {
        let mut args = vec![".", "-c", "full", "--list"];
        args.extend(only.iter().flat_map(|only| ["--only", only]));
        let ran = folder.run(&args);
        (
            ran.lines()
                .iter()
                .map(|line| line["id"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>(),
            ran.status,
            ran.err,
        )
    };
    assert_eq!(ids(&["tag=row-18"]).0, ["a/1", "b/1"]);
    assert_eq!(ids(&["id=a/*", "tag=row-*"]).0, ["a/1"]);
    assert_eq!(ids(&["provider=q"]).0, ["b/1"]);
    let (none, status, err) = ids(&["api=gemini"]);
    assert!(
        none.is_empty() && status == Some(2) && err.contains("no stream was measured"),
        "{err}"
    );
    let (_, status, err) = ids(&["apis=x"]);
    assert!(
        status == Some(2) && err.lines().count() == 1 && err.contains("api=GLOB"),
        "{err}"
    );
}

#[test]
fn what_cannot_be_read_is_named_counted_and_left_out() {
    let folder = body(&[TEXT, STOP]);
    folder.write("unknown.txt", "hello");
    folder.write(
        "two.ndjson",
        "{\"type\":\"stream_start\",\"v\":1}\n{\"type\":\"stream_end\",\"finish_reason\":\"stop\"}\n".repeat(2),
    );
    let long_id = "x".repeat(100_000);
    let index = [
        label("good", false, &json!({})),
        label("missing", false, &json!({"file": "none.sse"})),
        "{\"id\":1}\n".to_owned(),
        "not JSON \u{1b}[2J\n".to_owned(),
        "\n  \n".to_owned(),
        label("", false, &json!({})),
        label("file", false, &json!({"file": ""})),
        label("api", false, &json!({"api": "none\n\u{1b}[2J"})),
        label(
            "unknown",
            false,
            &json!({"file": "unknown.txt", "api": null}),
        ),
        label(
            "several",
            false,
            &json!({"file": "two.ndjson", "api": null}),
        ),
        label(
            "part",
            false,
            &json!({"file": "two.ndjson", "api": null, "part": 3}),
        ),
        label(
            "second",
            false,
            &json!({"file": "two.ndjson", "api": null, "part": 2}),
        ),
        label("folder", false, &json!({"file": "."})),
        label("endless", false, &json!({"file": "/dev/zero"})),
        label("mode", false, &json!({"tools_mode": "tags"})),
        label(
            "dialect",
            false,
            &json!({"tools_mode": "tag", "dialect": "hermes\u{1b}"}),
        ),
        label("tools", false, &json!({"tools": 7})),
        label("no list", false, &json!({"tools": "f"})),
        label(
            "calls",
            false,
            &json!({"calls": [{"name": "f", "arguments": {}}]}),
        ),
        label("open", false, &json!({"has_tool_call": null})),
        label(&long_id, false, &json!({})),
    ]
    .concat();
    folder.write("index.ndjson", index);
    let ran = folder.run(&["index.ndjson", "-c", "full", "--list"]);
    let ids: Vec<_> = ran
        .lines()
        .iter()
        .map(|line| line["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids, ["good", "second", long_id.as_str()], "{}", ran.err);
    assert_eq!(ran.status, Some(2));
    let lines: Vec<_> = ran.err.lines().collect();
    for (line, says) in lines.iter().zip([
        "line 2: ./none.sse: ",
        "line 3: not a label",
        "line 4: not a label",
        "line 7: the label has no id",
        "line 8: the label names no file",
        "line 9: the API \"none",
        "line 10: ./unknown.txt: neither a body",
        "line 11: ./two.ndjson: the file holds several streams",
        "line 12: ./two.ndjson: part 3 does not exist; the file has 2 streams",
        "line 14: ./.: not a regular file",
        "line 15: /dev/zero: not a regular file",
        "line 16: the tools_mode \"tags\" of the label is unknown",
        "line 17: the dialect \"hermes",
        "line 18: the tools of the label are not a list of tools",
        "line 19: the tools of the label are not a list of tools",
        "line 20: the label has calls, and its has_tool_call is false",
        "1 stream left out, confirm the labels with: tc-eval label --confirm index.ndjson",
    ]) {
        let says = says.replace("./", "");
        assert!(
            line.starts_with("tc-eval: ") && line.contains(&says),
            "{says}: {line}"
        );
    }
    assert_eq!(lines.len(), 17, "{}", ran.err);
    assert!(!ran.err.contains('\u{1b}'));
}

#[test]
fn a_body_with_an_event_that_is_too_long_is_unreadable() {
    let folder = body(&[TEXT, CALL, STOP]);
    folder.write("index.ndjson", label("x", true, &json!({})));
    let whole = folder.run(&[".", "-c", "full", "--max-line", "1000", "--list"]);
    assert_eq!(
        (whole.lines()[0]["answer"].as_str(), whole.status),
        (Some("yes"), Some(0)),
        "{}",
        whole.err
    );
    let ran = folder.run(&[".", "-c", "full", "--max-line", "100", "--list"]);
    assert_eq!(
        (ran.out.as_str(), ran.status, ran.err.lines().count()),
        ("", Some(2), 1),
        "{ran:?}"
    );
    assert!(
        ran.err.contains("body.sse") && ran.err.contains("raise --max-line"),
        "{}",
        ran.err
    );
}

#[test]
fn a_byte_order_mark_at_the_start_of_an_index_or_of_decisions_is_skipped() {
    let folder = body(&[TEXT, STOP]);
    folder.write(
        "index.ndjson",
        format!("\u{feff}{}", label("x", false, &json!({}))),
    );
    folder.write(
        "mine",
        "\u{feff}{\"type\":\"decision\",\"stream\":\"x\",\"tool_call\":true}\n",
    );
    let ran = folder.run(&[".", "-c", "full", "--decisions", "mine=mine", "--list"]);
    let answers: Vec<_> = ran
        .lines()
        .iter()
        .map(|line| line["answer"].clone())
        .collect();
    assert_eq!(
        (answers, ran.status),
        (vec![json!("no"), json!("yes")], Some(0)),
        "{}",
        ran.err
    );
}

#[test]
fn a_command_that_answers_no_stream_fails_the_run_and_saves_no_baseline() {
    let folder = body(&[TEXT, STOP]);
    folder.write("index.ndjson", label("x", false, &json!({})));
    let ran = folder.run(&[
        ".",
        "-c",
        "full",
        "-c",
        "cmd:no-such-command-here",
        "--save-baseline",
        "base",
    ]);
    assert_eq!(ran.status, Some(2), "{}", ran.err);
    assert!(
        ran.err.contains("answered no stream") && ran.out.contains("full"),
        "{ran:?}"
    );
    assert!(!folder.path("base").exists());
    let ran = folder.run(&[".", "-c", "full", "--save-baseline", "base"]);
    assert!(
        ran.status == Some(0) && folder.path("base").exists(),
        "{}",
        ran.err
    );
}

#[test]
fn strict_ends_at_the_first_fault_and_no_time_leaves_times_out() {
    let folder = Folder::new();
    folder.write(
        "log.ndjson",
        "{\"type\":\"stream_start\",\"v\":1}\nhello\n\n{\"type\":\"stream_end\",\"t\":7,\"finish_reason\":\"stop\"}\n",
    );
    let label = |id: &str, file: &str| {
        format!(
            "{}\n",
            json!({"id": id, "file": file, "has_tool_call": false})
        )
    };
    folder.write(
        "index.ndjson",
        label("a", "none") + &label("b", "log.ndjson"),
    );
    let run = |args: &[&str]| folder.run(&[&[".", "-c", "full", "--list"], args].concat());
    let lax = run(&[]);
    assert_eq!(
        (
            lax.lines().len(),
            lax.lines()[0]["end"]["ms"].as_f64(),
            lax.status
        ),
        (1, Some(7.0), Some(2))
    );
    assert!(run(&["--no-time"]).lines()[0]["end"]["ms"].is_null());
    let strict = run(&["--strict"]);
    assert!(
        strict.out.is_empty() && strict.status == Some(2) && strict.err.lines().count() == 1,
        "{strict:?}"
    );
    let strict = run(&["--strict", "--only", "id=b"]);
    assert!(
        strict.err.contains("log.ndjson: line 2 is not an event") && strict.status == Some(2),
        "{strict:?}"
    );
}

#[test]
fn mistakes_in_the_arguments_are_one_line() {
    let folder = body(&[TEXT, STOP]);
    folder.write("index.ndjson", label("x", false, &json!({})));
    folder.write("empty/x", "");
    for (args, says) in [
        (&["."][..], ""),
        (&["none"], "none: "),
        (&["empty"], "empty: the folder holds no index.ndjson"),
        (&[".", "-c", "none"], "unknown checker 'none', use one of: "),
        (
            &[".", "-c", "full", "-c", "full"],
            "choose another name, 'full' is that of another checker",
        ),
        (&[".", "--resplit", "0"], "use a size"),
        (&[".", "--jobs", "0"], "0"),
    ] {
        let ran = folder.run(args);
        let status = if says.is_empty() { 0 } else { 2 };
        assert_eq!(ran.status, Some(status), "{args:?} {}", ran.err);
        assert!(
            ran.err.contains(says) && ran.err.lines().count() <= 1,
            "{args:?}: {}",
            ran.err
        );
        assert!(says.is_empty() || ran.out.is_empty(), "{args:?}");
    }
}

#[test]
fn an_index_may_come_through_a_pipe() {
    let folder = body(&[TEXT, STOP]);
    let ran = folder.run_with(
        &["-", "-c", "full", "--list"],
        label("x", false, &json!({})),
    );
    assert_eq!(
        (ran.lines()[0]["answer"].as_str(), ran.status),
        (Some("no"), Some(0)),
        "{}",
        ran.err
    );
}

#[test]
fn a_line_without_end_ends_the_run_in_bounded_memory() {
    let folder = body(&[TEXT, STOP]);
    let script = format!(
        "ulimit -v 400000; exec {} -c full --jobs 2 - </dev/zero",
        env!("CARGO_BIN_EXE_tc-eval")
    );
    let ran = run::Ran::of(
        std::process::Command::new("bash")
            .args(["-c", &script])
            .output()
            .unwrap(),
    );
    assert_eq!(ran.status, Some(2), "{}", ran.err);
    assert!(
        ran.err.contains("-, line 1: longer than 16 MiB"),
        "{}",
        ran.err
    );
    drop(folder);
}

#[test]
fn a_reader_that_leaves_ends_the_run_silently() {
    let folder = body(&[TEXT, STOP]);
    let index: String = (0..5000)
        .map(|n| label(&n.to_string(), false, &json!({})))
        .collect();
    folder.write("index.ndjson", index);
    let mut child = folder
        .command(&[".", "-c", "full", "--list"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ran = run::Ran::of(child.wait_with_output().unwrap());
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
}

#[test]
fn an_interrupt_ends_a_run_that_waits_for_its_index() {
    let folder = body(&[TEXT, STOP]);
    let mut child = folder
        .command(&["-", "-c", "full", "--list"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let stdin = child.stdin.take().unwrap();
    let killed = needs::kill()
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    let ran = run::Ran::of(child.wait_with_output().unwrap());
    drop(stdin);
    assert!(
        ran.status.is_none_or(|status| status == 130) && ran.out.is_empty(),
        "{ran:?}"
    );
}
