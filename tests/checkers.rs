//! Checkers outside of this project on every stream of `fixtures`: the example of docs/evaluation.md
//! as it is written, the scripts of `fixtures/checkers`, and our own command as a command.

use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Stdio;
use testkit::needs;

/// What each of these checkers did on each stream of the fixtures, by the stream's id.
fn evaluate(checkers: &[&str]) -> BTreeMap<String, Vec<Value>> {
    let named: String = checkers
        .iter()
        .map(|name| format!(" --checker '{name}'"))
        .collect();
    let script = format!("tc-eval fixtures --list{named}");
    let output = testkit::bash(&script, testkit::root())
        .stdin(Stdio::null())
        .output()
        .expect("bash runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && stderr.is_empty(),
        "{script}: {stderr}"
    );
    let mut streams: BTreeMap<_, Vec<Value>> = BTreeMap::new();
    for line in String::from_utf8(output.stdout).expect("UTF-8").lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        streams
            .entry(text(&line, "id").to_owned())
            .or_default()
            .push(line);
    }
    assert!(
        streams.len() > 150 && streams.values().all(|lines| lines.len() == checkers.len()),
        "{}",
        streams.len()
    );
    streams
}

fn text<'v>(line: &'v Value, field: &str) -> &'v str {
    line[field].as_str().unwrap_or_default()
}

fn has_tag(line: &Value, tag: &str) -> bool {
    line["tags"]
        .as_array()
        .is_some_and(|tags| tags.iter().any(|t| t == tag))
}

#[test]
fn the_example_of_the_page_is_a_lookahead() {
    if !needs::programs(&["python3"]) {
        return;
    }
    let page = std::fs::read_to_string(testkit::root().join("docs/evaluation.md"))
        .expect("docs/evaluation.md");
    let (_, block) = page
        .split_once("<!-- test -->\n```python\n")
        .expect("an example");
    let (script, _) = block.split_once("```").expect("its end");
    let path = std::env::temp_dir().join(format!("docs-checkers-{}.py", std::process::id()));
    std::fs::write(&path, script).expect("a file");
    for (id, lines) in evaluate(&["lookahead:80", &format!("cmd:python3 {}", path.display())]) {
        let [ours, theirs] = &lines[..] else {
            panic!("{id}")
        };
        assert_eq!(text(ours, "answer"), text(theirs, "answer"), "{id}");
        assert!(theirs["event"].is_u64(), "{id}: {theirs}");
    }
    std::fs::remove_file(path).expect("the file can be removed");
}

#[test]
fn our_own_command_as_a_command_is_the_built_in_checker() {
    for checker in ["full", "tag"] {
        for (id, mut lines) in evaluate(&[checker, &format!("cmd:tc-detect --checker {checker}")]) {
            for line in &mut lines {
                line["checker"] = Value::Null;
            }
            assert_eq!(lines[0], lines[1], "{id}");
        }
    }
}

#[test]
fn the_checker_of_eino_is_first_chunk_but_for_refusals_and_errors() {
    if !needs::programs(&["python3"]) {
        return;
    }
    let mut others = Vec::new();
    for (id, lines) in evaluate(&[
        "first-chunk",
        "cmd:python3 fixtures/checkers/eino_first_chunk.py",
    ]) {
        let [ours, eino] = &lines[..] else {
            panic!("{id}")
        };
        assert_eq!(text(ours, "answer"), text(eino, "answer"), "{id}");
        if ours["event"] != eino["event"] {
            // A refusal is not content there, so the end decides; an error is returned at once, and
            // first-chunk waits for the end.
            let is_explained = match text(eino, "reason") {
                "the stream ended" => has_tag(eino, "refusal"),
                "the stream returned an error" => has_tag(eino, "error"),
                _ => false,
            };
            assert!(is_explained, "{id}: {ours} {eino}");
            others.push(text(eino, "reason").to_owned());
        }
    }
    others.sort();
    others.dedup();
    assert_eq!(
        others.len(),
        2,
        "both kinds are in the fixtures: {others:?}"
    );
}

#[test]
fn the_condition_of_langgraph_is_full_at_the_end_but_for_failed_streams_and_arguments_that_are_not_an_object()
 {
    if !needs::programs(&["python3"]) {
        return;
    }
    let mut raised = 0;
    let mut invalid = Vec::new();
    let mut cancelled = Vec::new();
    for (id, lines) in evaluate(&[
        "full",
        "cmd:python3 fixtures/checkers/langgraph_tools_condition.py",
    ]) {
        let [ours, theirs] = &lines[..] else {
            panic!("{id}")
        };
        assert_eq!(theirs["event"], theirs["end"]["event"], "{id}");
        match (text(ours, "answer"), text(theirs, "answer")) {
            (a, b) if a == b => {}
            ("yes", "undecided") => {
                assert!(has_tag(theirs, "error"), "{id}: {theirs}");
                raised += 1;
            }
            ("yes", "no") => {
                assert!(
                    text(theirs, "reason").contains("0 tool_calls and 1 invalid"),
                    "{id}: {theirs}"
                );
                invalid.push(id);
            }
            // It takes what had come when somebody cancelled the stream for the answer.
            ("undecided", "no") => cancelled.push(id),
            other => panic!("{id}: {other:?} {theirs}"),
        }
    }
    assert_eq!(cancelled, ["logs/session/cancelled"]);
    assert!(raised > 3, "{raised}");
    // Arguments that are JSON in a JSON string, and arguments that every delta repeats from the
    // beginning.
    for id in [
        "openai-chat/row-12-double-encoded",
        "openai-chat/row-15-cumulative",
    ] {
        assert!(invalid.iter().any(|other| other == id), "{invalid:?}");
    }
}

#[test]
fn a_brace_at_the_beginning_finds_calls_in_text_and_takes_answers_in_json_for_calls() {
    if !needs::programs(&["python3"]) {
        return;
    }
    let (mut found, mut wrong) = (0, 0);
    for (id, lines) in evaluate(&[
        "first-chunk",
        "cmd:python3 fixtures/checkers/starts_with_brace.py",
    ]) {
        let [ours, theirs] = &lines[..] else {
            panic!("{id}")
        };
        if text(ours, "answer") == text(theirs, "answer") {
            continue;
        }
        if text(ours, "answer") == "yes" {
            // The call comes in one chunk with the text.
            assert_eq!(text(theirs, "reason"), "the text begins otherwise", "{id}");
            continue;
        }
        assert_eq!(
            (text(ours, "answer"), text(theirs, "answer")),
            ("no", "yes"),
            "{id}"
        );
        assert_eq!(text(theirs, "reason"), "the text begins with {", "{id}");
        if theirs["has_tool_call"] == true {
            found += 1;
        } else {
            assert!(has_tag(theirs, "json-answer"), "{id}: {theirs}");
            wrong += 1;
        }
    }
    assert!(found >= 2 && wrong >= 3, "{found} {wrong}");
}
