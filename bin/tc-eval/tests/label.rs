//! `tc-eval label` as a user runs it.

use crate::run::{Folder, Ran, root};
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Stdio};
use testkit::needs;

const UNKNOWN_APIS: [&str; 2] = [
    "streams/cohere/error-body.json",
    "streams/openai-chat/html-page.sse",
];

const NO_TOOLS: &str = "\"tools_offered\":0";

fn chunk(delta: &str, finish: &str) -> String {
    let choice = format!(r#"{{"index":0,"delta":{delta},"finish_reason":{finish}}}"#);
    format!("data: {{\"id\":\"c\",\"model\":\"m\",\"choices\":[{choice}]}}\n\n")
}

fn call(city: &str) -> String {
    let text = chunk(r#"{"role":"assistant","content":"I look.\n"}"#, "null");
    let function = format!(r#"{{"name":"get_weather","arguments":"{{\"city\":\"{city}\"}}"}}"#);
    let call = chunk(
        &format!(
            r#"{{"tool_calls":[{{"index":0,"id":"a","type":"function","function":{function}}}]}}"#
        ),
        "null",
    );
    format!(
        "{text}{call}{}data: [DONE]\n\n",
        chunk("{}", "\"tool_calls\"")
    )
}

fn answer(text: &str) -> String {
    let text = chunk(
        &format!(r#"{{"role":"assistant","content":"{text}"}}"#),
        "null",
    );
    format!("{text}{}data: [DONE]\n\n", chunk("{}", "\"stop\""))
}

fn index(folder: &Folder) -> Vec<Value> {
    folder
        .read("rec/index.ndjson")
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// Runs the command on a terminal of its own, on which these lines are typed.
fn on_a_terminal(folder: &Folder, args: &str, typed: &str) -> Ran {
    let script = "
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
os.write(fd, sys.stdin.buffer.read())
try:
    while data := os.read(fd, 65536):
        os.write(1, data)
except OSError:
    pass
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))";
    let mut python = Command::new("python3");
    python
        .args(["-c", script, env!("CARGO_BIN_EXE_tc-eval")])
        .args(args.split(' '))
        .current_dir(folder.path(""));
    let mut child = python
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("python3");
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(typed.as_bytes())
        .expect("typed");
    Ran::of(child.wait_with_output().expect("it ends"))
}

#[test]
fn proposals_are_what_a_full_reading_finds_and_confirm_nothing() {
    let folder = Folder::new();
    folder.write("rec/b/call.sse", call("Paris"));
    folder.write("rec/a.sse", answer("Sunny."));
    folder.write(
        "rec/a.json",
        r#"{"error":{"message":"no","type":"invalid_request_error"}}"#,
    );
    folder.write("rec/.hidden.sse", call("Rome"));
    let ran = folder.run(&["label", "rec"]);
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
    let lines = ran.lines();
    let ids: Vec<&str> = lines.iter().filter_map(|l| l["id"].as_str()).collect();
    assert_eq!(ids, ["rec/a", "rec/a.sse", "rec/b/call"]);
    assert!(lines.iter().all(|line| line["has_tool_call"].is_null()));
    let proposed: Vec<bool> = lines
        .iter()
        .filter_map(|l| l["proposed"].as_bool())
        .collect();
    assert_eq!(proposed, [false, false, true]);
    assert_eq!(
        lines[2]["calls"],
        serde_json::json!([{"name": "get_weather", "arguments": {"city": "Paris"}}])
    );
    assert_eq!(lines[2]["tags"], serde_json::json!(["text-before-call"]));
    assert_eq!(lines[2]["api"], "openai-chat");
}

#[test]
fn the_streams_of_a_tape_are_parts_and_a_dialect_reads_text() {
    let folder = Folder::new();
    for (tape, dialect) in [("huts", None), ("huts-tag", Some("tool-name-tag"))] {
        let path = root()
            .join(format!("fixtures/tapes/{tape}.tape"))
            .display()
            .to_string();
        let mut args = vec!["label", &path];
        args.extend(dialect.iter().flat_map(|dialect| ["--dialect", dialect]));
        let ran = folder.run(&args);
        let lines = ran.lines();
        let found: Vec<_> = lines
            .iter()
            .map(|l| {
                (
                    l["part"].as_u64(),
                    l["proposed"].as_bool(),
                    l["calls"].as_array().map(Vec::len),
                )
            })
            .collect();
        let expected = [
            (Some(1), Some(true), Some(2)),
            (Some(2), Some(true), Some(1)),
            (Some(3), Some(false), Some(0)),
        ];
        assert_eq!(found, expected, "{tape}: {}", ran.err);
    }
}

#[test]
fn proposals_for_our_corpus_agree_with_its_labels() {
    // The labels were written by hand; where a full reading is wrong, or has to know the dialect,
    // their tags show it.
    let folder = Folder::new();
    let fixtures = root().join("fixtures");
    let streams = fixtures.join("streams").display().to_string();
    let proposed = folder
        .run(&[
            "label",
            &streams,
            &fixtures.join("logs").display().to_string(),
        ])
        .lines();
    let labels = std::fs::read_to_string(fixtures.join("index.ndjson")).expect("the index");
    let mut count = 0;
    let mut unknown = Vec::new();
    for label in labels
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a label"))
    {
        let file = label["file"].as_str().expect("a file");
        let tags: Vec<&str> = label["tags"]
            .as_array()
            .expect("tags")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let is_body_in_tag_mode = tags.contains(&"tag-mode") && !tags.contains(&"log");
        if tags.contains(&"full-is-wrong") || tags.contains(&"tape") || is_body_in_tag_mode {
            continue;
        }
        let same = |line: &&Value| {
            line["file"]
                .as_str()
                .is_some_and(|known| known.ends_with(&format!("fixtures/{file}")))
                && (line["part"] == label["part"] || line["part"].is_null())
        };
        // A client that offered no tools knows more than the body shows.
        let log = fixtures.join(file).with_extension("events.ndjson");
        if std::fs::read_to_string(log).is_ok_and(|log| log.contains(NO_TOOLS)) {
            continue;
        }
        let Some(line) = proposed.iter().find(same) else {
            unknown.push(file.to_owned());
            continue;
        };
        assert_eq!(line["proposed"], label["has_tool_call"], "{file}");
        assert_eq!(line["calls"], label["calls"], "{file}");
        count += 1;
    }
    // These bodies do not show their API.
    assert_eq!(unknown, UNKNOWN_APIS);
    assert!(count > 300, "{count} labels were compared");
}

#[test]
fn an_index_keeps_what_it_has_and_gets_what_is_new() {
    let folder = Folder::new();
    folder.write("rec/one.sse", call("Paris"));
    let output = ["label", "rec", "--output", "rec/index.ndjson"];
    assert_eq!(folder.run(&output).status, Some(0));
    // A person confirms it, in a form of their own.
    let mine = folder.read("rec/index.ndjson").replace(
        "\"has_tool_call\":null",
        "\"has_tool_call\":true, \"note\":1.50",
    );
    folder.write("rec/index.ndjson", &mine);
    folder.write("rec/two.sse", answer("Hello"));
    let ran = folder.run(&output);
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
    let now = folder.read("rec/index.ndjson");
    assert!(now.starts_with(&mine), "{now}");
    assert_eq!(index(&folder).len(), 2);
    assert_eq!(index(&folder)[1]["file"], "two.sse");
    // Nothing new, nothing changed.
    assert_eq!(folder.run(&output).status, Some(0));
    assert_eq!(folder.read("rec/index.ndjson"), now);

    // Another recording under the same name is not what was confirmed.
    folder.write("rec/one.sse", answer("Never mind."));
    let ran = folder.run(&output);
    assert_eq!(ran.status, Some(0));
    assert!(
        ran.err
            .contains("1 label has another recording now and must be confirmed again"),
        "{}",
        ran.err
    );
    let label = &index(&folder)[0];
    assert!(
        label["has_tool_call"].is_null() && label["proposed"] == false,
        "{label}"
    );
    assert!(
        folder.read("rec/index.ndjson").contains("\"note\":1.50"),
        "members of others stay, with their digits"
    );
}

#[test]
fn a_log_that_grows_keeps_its_confirmed_labels() {
    let folder = Folder::new();
    let turn = |text: &str| {
        format!(
            "{{\"type\":\"stream_start\",\"api\":\"ollama\"}}\n{{\"type\":\"content_delta\",\"text\":\"{text}\"}}\n{}\n",
            r#"{"type":"stream_end","finish_reason":"stop"}"#
        )
    };
    let first = turn("one");
    let second = turn("two");
    folder.write("rec/chat.ndjson", format!("{first}{second}"));
    let output = ["label", "rec", "--output", "rec/index.ndjson"];
    assert_eq!(folder.run(&output).status, Some(0));
    let confirmed = folder
        .read("rec/index.ndjson")
        .replace("\"has_tool_call\":null", "\"has_tool_call\":false");
    folder.write("rec/index.ndjson", &confirmed);
    folder.write(
        "rec/chat.ndjson",
        format!("{first}{second}{}", turn("three")),
    );
    let ran = folder.run(&output);
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
    let now = folder.read("rec/index.ndjson");
    assert!(now.starts_with(&confirmed), "{now}");
    assert_eq!(index(&folder)[2]["part"], 3);
}

#[test]
fn a_person_confirms_on_the_terminal() {
    if !needs::programs(&["python3"]) {
        return;
    }
    let folder = Folder::new();
    folder.write("rec/a.sse", answer(r"I call \u001b[2J\u202eget_weather."));
    folder.write("rec/b.sse", call("Paris"));
    folder.write("rec/c.sse", call("Rome"));
    folder.write("rec/d.sse", call("Oslo"));
    folder.run(&["label", "rec", "--output", "rec/index.ndjson"]);
    // An empty line answers nothing.
    let ran = on_a_terminal(&folder, "label --confirm rec/index.ndjson", "n\n\ny\nq\n");
    assert_eq!(ran.status, Some(0), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("1 of 4: a.sse"), "{}", ran.out);
    assert!(
        ran.out.contains(r#"call: get_weather {"city":"Paris"}"#),
        "{}",
        ran.out
    );
    assert!(
        ran.out.contains(r"I call \x1b[2J\u202eget_weather."),
        "{}",
        ran.out
    );
    assert!(
        !ran.out.contains("\u{1b}[2J"),
        "a model's text clears no screen"
    );
    let answers: Vec<Value> = index(&folder)
        .iter()
        .map(|line| line["has_tool_call"].clone())
        .collect();
    assert_eq!(
        answers,
        [
            Value::Bool(false),
            Value::Bool(true),
            Value::Null,
            Value::Null
        ]
    );
    // The next run asks about the labels that have no answer yet. A label that is answered with no
    // loses its proposed calls.
    let ran = on_a_terminal(&folder, "label --confirm rec", "n\ns\n");
    assert!(ran.out.contains("1 of 2: c.sse"), "{}", ran.out);
    let label = &index(&folder)[2];
    assert_eq!(
        (&label["has_tool_call"], &label["calls"]),
        (&Value::Bool(false), &serde_json::json!([]))
    );
}

#[test]
fn without_a_terminal_nothing_is_confirmed() {
    if !needs::programs(&["setsid"]) {
        return;
    }
    let folder = Folder::new();
    folder.write("rec/a.sse", call("Paris"));
    folder.run(&["label", "rec", "--output", "rec/index.ndjson"]);
    let before = folder.read("rec/index.ndjson");
    let mut command = Command::new("setsid");
    command.args([
        "--wait",
        env!("CARGO_BIN_EXE_tc-eval"),
        "label",
        "--confirm",
        "rec/index.ndjson",
    ]);
    let ran = Ran::of(
        command
            .current_dir(folder.path(""))
            .stdin(Stdio::null())
            .output()
            .expect("setsid"),
    );
    assert_eq!(ran.status, Some(2));
    assert!(
        ran.err
            .contains("write has_tool_call into the index by hand"),
        "{}",
        ran.err
    );
    assert_eq!(folder.read("rec/index.ndjson"), before);
}

#[test]
fn proposed_calls_are_those_that_an_evaluation_reads() {
    let folder = Folder::new();
    // The second call is complete first, and does not fit the schema.
    folder.write(
        "rec/a.ndjson",
        r#"{"type":"stream_start","v":1,"tools":[{"type":"function","function":{"name":"find","parameters":{"type":"object","properties":{"n":{"type":"integer"}}}}}]}
{"type":"tool_call_delta","index":0,"tool_id":"a","tool_name":"find","arguments":"{\"n\":"}
{"type":"tool_call_delta","index":1,"tool_id":"b","tool_name":"find","arguments":"{\"n\":[]}","done":true}
{"type":"tool_call_delta","index":0,"arguments":"1}","done":true}
{"type":"stream_end","finish_reason":"tool_calls"}
"#,
    );
    folder.run(&["label", "rec", "--output", "rec/index.ndjson"]);
    let label = &index(&folder)[0];
    assert_eq!(
        label["calls"],
        serde_json::json!([{"name": "find", "arguments": {"n": 1}}, {"name": "find", "arguments": {"n": []}}])
    );
    assert_eq!(label["tags"], serde_json::json!(["several-calls"]));
    let confirmed = folder
        .read("rec/index.ndjson")
        .replace("\"has_tool_call\":null", "\"has_tool_call\":true");
    folder.write("rec/index.ndjson", confirmed);
    let calls = &folder.run(&["rec", "-c", "full", "--list"]).lines()[0]["calls"];
    assert_eq!(
        (&calls["exact"], &calls["in_order"]),
        (&2.into(), &true.into()),
        "{calls}"
    );
}

#[test]
fn an_evaluation_leaves_out_what_is_not_confirmed() {
    let folder = Folder::new();
    folder.write("rec/a.sse", call("Paris"));
    folder.write("rec/b.sse", answer("Hello"));
    folder.run(&["label", "rec", "--output", "rec/index.ndjson"]);
    let first = folder.read("rec/index.ndjson").replacen(
        "\"has_tool_call\":null",
        "\"has_tool_call\":true",
        1,
    );
    folder.write("rec/index.ndjson", first);
    let ran = folder.run(&["rec", "--checker", "full", "--require", "streams==1"]);
    assert_eq!(ran.status, Some(0), "{}{}", ran.out, ran.err);
    assert!(
        ran.err
            .contains("1 stream left out, confirm the labels with: tc-eval label --confirm rec\n"),
        "{}",
        ran.err
    );
}

#[test]
fn a_full_disk_and_a_broken_index_lose_nothing() {
    let folder = Folder::new();
    folder.write("rec/a.sse", call("Paris"));
    let ran = folder.run(&["label", "rec", "--output", "/dev/full"]);
    assert_eq!(ran.status, Some(2));
    assert!(
        ran.err.starts_with("tc-eval: /dev/full: cannot be written")
            && ran.err.lines().count() == 1,
        "{}",
        ran.err
    );
    folder.write("rec/index.ndjson", "{\"file\":\"x.sse\"}\nnot json\n");
    let ran = folder.run(&["label", "rec", "--output", "rec/index.ndjson"]);
    assert_eq!(ran.status, Some(2));
    assert!(
        ran.err.contains("rec/index.ndjson, line 2: not a label"),
        "{}",
        ran.err
    );
    assert_eq!(
        folder.read("rec/index.ndjson"),
        "{\"file\":\"x.sse\"}\nnot json\n"
    );
    let endless = folder.run(&["label", "/dev/zero"]);
    assert_eq!(endless.status, Some(2));
    assert!(
        endless.err.contains("/dev/zero: not an ordinary file"),
        "{}",
        endless.err
    );
    let named = folder.run(&["label", "rec/index.ndjson"]);
    assert_eq!(
        (named.status, named.err.lines().count()),
        (Some(2), 1),
        "{}",
        named.err
    );
}

#[test]
fn a_hostile_recording_stays_in_its_line() {
    let folder = Folder::new();
    let body = answer(r"Hi").replace(
        "\"model\":\"m\"",
        r#""model":"\n{\"id\":\"x\",\"has_tool_call\":true}\u001b[1m\u202e""#,
    );
    folder.write("rec/line\nfeed.sse", body);
    let ran = folder.run(&["label", "rec"]);
    assert_eq!(ran.status, Some(0), "{}", ran.err);
    assert_eq!(ran.out.lines().count(), 1, "{}", ran.out);
    assert!(!ran.out.contains(['\u{1b}', '\u{202e}']), "{:?}", ran.out);
    assert_eq!(ran.lines()[0]["file"], "rec/line\nfeed.sse");
}
