//! `tc-eval diff`: pairs of recordings with the words that are expected (`tests/diff/*.case`), and
//! laws over all recorded bodies.
//!
//! A case is a text: `args: …` (what is typed before the two files), then `--- a.KIND`,
//! `--- b.KIND` and `--- STATUS`, each followed by what the file or the output holds.
//! `UPDATE=1 cargo test -p tc-eval --test main diff::` rewrites the outputs.

mod bodies;

use crate::run::{Folder, Ran};
use bodies::{Body, bodies};
use std::fs;
use std::path::Path;
use std::process::Command;
use testkit::places::{count, is_named_tried};

/// Runs `tc-eval diff` with these arguments.
fn diff<'a>(folder: &Folder, args: impl IntoIterator<Item = &'a str>) -> Ran {
    let args: Vec<&str> = ["diff"].into_iter().chain(args).collect();
    folder.run(&args)
}

/// The parts of a case.
struct Case {
    head: String,
    args: Vec<String>,
    files: [(String, String); 2],
}

impl Case {
    fn read(text: &str) -> (Case, String) {
        let mut parts = text.split("\n--- ");
        let head = parts.next().expect("a head").to_owned();
        let args = head
            .lines()
            .find_map(|line| line.strip_prefix("args:"))
            .unwrap_or_default();
        let args = args.split_whitespace().map(str::to_owned).collect();
        let mut file = || {
            let (name, text) = parts
                .next()
                .and_then(|part| part.split_once('\n'))
                .expect("a file");
            (name.to_owned(), format!("{text}\n"))
        };
        let files = [file(), file()];
        let expected = parts.next().expect("a status and the output").to_owned();
        (Case { head, args, files }, expected)
    }

    fn text(&self, expected: &str) -> String {
        let [(a, x), (b, y)] = &self.files;
        format!("{}\n--- {a}\n{x}--- {b}\n{y}--- {expected}", self.head)
    }
}

#[test]
fn each_pair_gives_the_expected_words() {
    let mut cases = 0;
    let mut wrong = Vec::new();
    let folder = Folder::new();
    for entry in
        fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diff")).expect("tests/diff")
    {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "case") {
            continue;
        }
        cases += 1;
        let (case, expected) = Case::read(&fs::read_to_string(&path).expect("a case"));
        for (name, text) in &case.files {
            folder.write(name, text);
        }
        let args = case
            .args
            .iter()
            .map(String::as_str)
            .chain(case.files.iter().map(|(name, _)| name.as_str()));
        let Ran { status, out, err } = diff(&folder, args);
        let got = format!("{}\n{out}{err}", status.expect("it was not killed"));
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, case.text(&got)).expect("a case");
        } else if got != expected {
            wrong.push(format!("{}:\n{got}instead of\n{expected}", path.display()));
        }
    }
    assert!(
        wrong.is_empty() && cases >= 12,
        "{cases} cases, {}",
        wrong.join("\n")
    );
}

#[test]
fn a_body_is_equal_to_every_log_that_is_made_of_it() {
    let folder = Folder::new();
    for body in bodies() {
        if !is_named_tried(&body.name, 4) {
            continue;
        }
        let file = body.path.to_str().expect("UTF-8");
        let mut logs = vec![("as recorded", body.recorded())];
        logs.push(("as deltas, split by bytes", body.deltas(3).join("\n")));
        logs.push((
            "as deltas of one character",
            split_texts(&body.deltas(usize::MAX)).join("\n"),
        ));
        logs.push((
            "with deltas and calls",
            body.merged(&body.deltas(64)).join("\n"),
        ));
        for (what, log) in logs {
            folder.write("log", log + "\n");
            let swapped = (what == "with deltas and calls").then_some(["log", file]);
            for pair in [[file, "log"]].into_iter().chain(swapped) {
                let options = [
                    "--all",
                    "--reasoning",
                    "--usage",
                    "--prompts",
                    "-a",
                    &body.api,
                ];
                let ran = diff(&folder, options.into_iter().chain(pair));
                assert_eq!(
                    (ran.status, ran.out.as_str(), ran.err.as_str()),
                    (Some(0), "", ""),
                    "{} {what}",
                    body.name
                );
            }
        }
    }
}

/// Every text in pieces of one character, with other ids and times.
fn split_texts(lines: &[String]) -> Vec<String> {
    let mut out = Vec::new();
    for line in lines {
        let mut event: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let object = event.as_object_mut().expect("an object");
        object.insert("t".into(), (out.len() as u64).into());
        let kind = object["type"].as_str().unwrap_or_default().to_owned();
        if kind == "stream_start" && object.contains_key("id") {
            object.insert("id".into(), "another".into());
        }
        if matches!(kind.as_str(), "content_delta" | "thinking") && !object.contains_key("provider")
        {
            let text = object["text"].as_str().unwrap_or_default().to_owned();
            for c in text.chars() {
                object.insert("text".into(), c.to_string().into());
                out.push(serde_json::to_string(object).expect("JSON"));
            }
        } else {
            out.push(event.to_string());
        }
    }
    out
}

/// One change of a log: what it is, the changed lines, and words that the difference has.
type Mutation = (String, Vec<String>, &'static str);

#[test]
fn every_change_of_the_meaning_is_found() {
    let folder = Folder::new();
    let (mut changes, mut of_reasoning) = (0, 0);
    for body in bodies() {
        let lines: Vec<String> = body.recorded().lines().map(str::to_owned).collect();
        for (what, changed, says) in mutations(&lines) {
            if !is_named_tried(&format!("{} {what}", body.name), 4) {
                continue;
            }
            folder.write("log", &(changed.join("\n") + "\n"));
            let file = body.path.to_str().expect("UTF-8");
            let ran = diff(&folder, ["-a", &body.api, file, "log"]);
            let is_reasoning = says == "reasoning";
            of_reasoning += i32::from(is_reasoning);
            let name = format!("{}: {what}: {ran:?}", body.name);
            assert!(
                ran.status == Some(i32::from(!is_reasoning)) && ran.err.is_empty(),
                "{name}"
            );
            let found = if is_reasoning {
                diff(&folder, ["--reasoning", "-a", &body.api, file, "log"])
            } else {
                ran
            };
            assert!(
                found.status == Some(1)
                    && found.out.contains(says)
                    && found.out.lines().count() == 1,
                "{name} {found:?}"
            );
            assert!(
                found.out.contains("in B (log:") || found.out.contains("missing in B"),
                "{name}"
            );
            changes += 1;
        }
    }
    assert!(
        changes > count(150, 900) && of_reasoning > count(1, 10),
        "{changes} changes, {of_reasoning} of reasoning"
    );
}

/// The changes of a log that matter: each kind at its first and its last event.
fn mutations(lines: &[String]) -> Vec<Mutation> {
    let events: Vec<serde_json::Value> = lines
        .iter()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let retracted: Vec<&serde_json::Value> = events
        .iter()
        .filter(|event| event["type"] == "retract")
        .map(|event| &event["tool_id"])
        .collect();
    let places = |kind: &str| {
        let all: Vec<usize> = (0..events.len())
            .filter(|at| {
                events[*at]["type"] == kind && !retracted.contains(&&events[*at]["tool_id"])
            })
            .filter(|at| events[*at]["text"] != "")
            .collect();
        let ends = [all.first(), all.last()]
            .into_iter()
            .flatten()
            .copied()
            .collect::<std::collections::BTreeSet<_>>();
        ends.into_iter().collect::<Vec<_>>()
    };
    let replaced = |at: usize, change: &dyn Fn(&mut serde_json::Value)| {
        let mut event = events[at].clone();
        change(&mut event);
        let mut lines = lines.to_vec();
        lines[at] = event.to_string();
        lines
    };
    let dropped = |at: usize| [&lines[..at], &lines[at + 1..]].concat();
    let mut out: Vec<Mutation> = Vec::new();
    for (kind, says) in [
        ("content_delta", "text"),
        ("refusal_delta", "refusal"),
        ("thinking", "reasoning"),
    ] {
        for at in places(kind) {
            if events[at]["text"].as_str().is_none() {
                continue;
            }
            out.push((format!("line {at} dropped"), dropped(at), says));
            let letter = replaced(at, &|event| {
                let mut text: Vec<char> =
                    event["text"].as_str().unwrap_or_default().chars().collect();
                let last = text.len() - 1;
                text[last] = if text[last] == 'x' { 'y' } else { 'x' };
                event["text"] = text.into_iter().collect::<String>().into();
            });
            out.push((format!("another letter in line {at}"), letter, says));
        }
    }
    for at in places("tool_call") {
        out.push((
            format!("the call of line {at} dropped"),
            dropped(at),
            "call",
        ));
        if events[at]["tool_name"] != "" {
            let name = replaced(at, &|event| event["tool_name"] = "another".into());
            out.push((format!("another tool in line {at}"), name, "tool"));
        }
        let argument = replaced(at, &|event| match &event["arguments"] {
            serde_json::Value::Object(members) if event["arguments_text"].is_null() => {
                let mut members = members.clone();
                match members.iter_mut().next() {
                    Some((_, value)) => *value = serde_json::json!([value.clone()]),
                    None => drop(members.insert("more".into(), true.into())),
                }
                event["arguments"] = members.into();
            }
            _ => {
                event["arguments_text"] =
                    format!("{}?", event["arguments_text"].as_str().unwrap_or_default()).into();
                event["arguments"] = serde_json::Value::Null;
            }
        });
        out.push((
            format!("another argument in line {at}"),
            argument,
            "argument",
        ));
    }
    for at in places("stream_end") {
        let other = if events[at]["finish_reason"] == "length" {
            "content_filter"
        } else {
            "length"
        };
        out.push((
            "another finish".into(),
            replaced(at, &|event| event["finish_reason"] = other.into()),
            "finish",
        ));
    }
    out
}

/// A log of one turn with these events.
fn log(events: &[&str]) -> String {
    let start = r#"{"type":"stream_start","v":1}"#;
    let end = r#"{"type":"stream_end","finish_reason":"stop"}"#;
    [&[start], events, &[end]].concat().join("\n") + "\n"
}

#[test]
fn hostile_names_and_values_are_escaped_on_one_line() {
    let folder = Folder::new();
    let value = "\\u001b[2J\\n\\u202e<script>";
    let call = |value: &str| {
        format!(
            r#"{{"type":"tool_call","index":0,"tool_id":"a","tool_name":"t{value}","arguments":{{"k{value}":"{value}1","d":{}}},"commit":"balanced"}}"#,
            "[".repeat(100) + &"]".repeat(100)
        )
    };
    let name = "a\n\u{1b}[31m\u{202e}.log";
    folder.write(name, log(&[&call(value)]));
    folder.write("b", log(&[&call(value).replace("1\"", "2\"")]));
    folder.write("c", log(&[&call("")]));
    for (other, all) in [("b", "--all"), ("c", "--all")] {
        for form in ["text", "json"] {
            let ran = diff(&folder, [all, "-f", form, name, other]);
            assert_eq!(
                (ran.status, ran.err.as_str(), ran.out.lines().count()),
                (Some(1), "", 1),
                "{ran:?}"
            );
            let hidden = ran
                .out
                .trim_end()
                .chars()
                .find(|c| c.is_control() || *c == '\u{202e}');
            assert_eq!(hidden, None, "{ran:?}");
        }
    }
}

#[test]
fn what_cannot_be_compared_is_one_line_and_status_2() {
    let folder = Folder::new();
    folder.write("log", log(&[]));
    folder.write("empty", "");
    folder.write("noise", "\u{0}\u{1}\u{2} not a recording");
    for (args, says) in [
        (vec!["log", "absent"], "absent: No such file"),
        (vec!["log", "noise"], "noise: neither a body"),
        (vec!["log", "empty"], "empty: "),
        (vec!["log", "."], ".: "),
        (vec!["-", "-"], "name a file for one of them"),
        (
            vec!["--mask", "a(", "log", "log"],
            "--mask 'a(': unclosed group",
        ),
        (vec!["-a", "opnai", "log", "log"], "use one of: openai-chat"),
        (vec!["log"], "--help"),
    ] {
        let ran = diff(&folder, args.iter().copied());
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

#[test]
fn standard_input_is_a_recording_and_standard_output_may_be_full_or_gone() {
    let folder = Folder::new();
    let text = |text: &str| log(&[&format!(r#"{{"type":"content_delta","text":"{text}"}}"#)]);
    folder.write("a", text("one"));
    folder.write("b", text("two"));
    let run = |script: &str| {
        let mut bash = Command::new("bash");
        bash.args(["-c", script])
            .env("EVAL", env!("CARGO_BIN_EXE_tc-eval"))
            .current_dir(folder.path(""));
        Ran::of(bash.output().expect("bash runs"))
    };
    let same = run("\"$EVAL\" diff - a <a");
    assert_eq!(
        (same.status, same.out.as_str(), same.err.as_str()),
        (Some(0), "", "")
    );
    let ran = run("\"$EVAL\" diff a - <b");
    assert!(
        ran.status == Some(1) && ran.out.ends_with("\"two\" in B (-:2)\n"),
        "{ran:?}"
    );
    let full = run("\"$EVAL\" diff a b >/dev/full");
    assert!(
        full.status == Some(2) && full.err.contains("free some space"),
        "{full:?}"
    );
    let gone = run("{ \"$EVAL\" diff a b; echo $? >status; } | :; cat status");
    assert!(
        matches!(gone.out.as_str(), "0\n" | "1\n") && gone.err.is_empty(),
        "{gone:?}"
    );
}

/// A body's name, so that a failure can be repeated.
impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}
