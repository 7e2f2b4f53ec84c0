//! Calls that models write as text, through the three fronts: native calls for the client, and no
//! marker in the text.

use super::pipe::{Answered, Asked, answer};
use super::read::{content, read};
use super::reading::{Choice, Ending, Finish};
use super::recorded::nothing;
use crate::dialect_cases::file::File;
use api::{Api, End};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use tag::{Dialect, PromptCall};
use testkit::places::{hash, is_tried};

/// A chat stream of an upstream that writes `text` in pieces of some characters.
fn upstream(text: &str, finish: &str) -> Vec<u8> {
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        format!(
            "data: {}\n\n",
            json!({"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice]})
        )
    };
    let letters: Vec<char> = text.chars().collect();
    let deltas = letters
        .chunks(5)
        .map(|piece| chunk(json!({"content": String::from_iter(piece)}), Value::Null));
    let begin = chunk(json!({"role": "assistant", "content": ""}), Value::Null);
    let end = chunk(json!({}), finish.into()) + "data: [DONE]\n\n";
    std::iter::once(begin)
        .chain(deltas)
        .chain([end])
        .collect::<String>()
        .into_bytes()
}

fn served(body: &[u8], asked: &Asked) -> Answered {
    answer(Api::OpenaiChat, [body], End::Eof, asked)
}

/// What a file of cases expects, as an answer; `None` where the result is not a text with complete
/// calls.
fn expected(want: &[String], finish: &str) -> Option<Choice> {
    let mut choice = Choice::default();
    for line in want {
        let (kind, rest) = line.split_once(' ')?;
        match kind {
            "content" => choice.text += serde_json::from_str::<String>(rest).ok()?.as_str(),
            "reasoning" => choice.reasoning += serde_json::from_str::<String>(rest).ok()?.as_str(),
            "call" => {
                let (name, rest) = rest.split_once(' ')?;
                let (arguments, _id) = rest.rsplit_once(" #").unwrap_or((rest, ""));
                // Arguments of several lines are written as a string.
                let text = serde_json::from_str::<String>(arguments)
                    .unwrap_or_else(|_| arguments.to_owned());
                let arguments = serde_json::from_str::<Value>(&text)
                    .ok()
                    .filter(Value::is_object)?
                    .to_string();
                choice.calls.push(super::reading::Call {
                    name: name.to_owned(),
                    arguments,
                    ..Default::default()
                });
            }
            "retract" | "warning" => {}
            _ => return None,
        }
    }
    choice.finish = Some(match (finish, choice.calls.is_empty()) {
        ("length", _) => Finish::Length,
        (_, true) => Finish::Stop,
        (_, false) => Finish::ToolCalls,
    });
    Some(choice)
}

/// The tools of a case: those of its headers, or a list of the tools that the result names.
fn tools(file: &File, case: &crate::dialect_cases::file::Case, folder: &Path) -> String {
    match file.header(case, "tools").unwrap_or("none") {
        "none" => {
            let called = case
                .want
                .iter()
                .filter_map(|line| line.strip_prefix("call ")?.split(' ').next());
            let names: BTreeSet<&str> = called.collect();
            let list: Vec<Value> = names
                .into_iter()
                .map(|name| json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}))
                .collect();
            Value::from(list).to_string()
        }
        list if list.starts_with('[') => list.to_owned(),
        name => std::fs::read_to_string(folder.join(name)).expect("a file of tools"),
    }
}

/// What differs between an answer and the calls and texts that it has to give.
fn compare(asked: &Asked, answered: &Answered, want: &Choice) -> Vec<String> {
    let got = read(asked, answered);
    let mut wrong = got.wrong.clone();
    if got.ending != Ending::Clean {
        wrong.push(format!("the end is {:?}", got.ending));
    }
    let mut first = content(asked.front, &got)
        .into_iter()
        .next()
        .unwrap_or_default();
    for call in &mut first.calls {
        call.id.clear();
        call.is_finished = false;
    }
    if first != *want {
        wrong.push(format!("came: {first:?}\n  not: {want:?}"));
    }
    wrong
}

#[test]
fn every_case_of_every_dialect_is_native_calls_on_every_front() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/dialects");
    let mut wrong = Vec::new();
    let mut cases = 0;
    let mut calls = 0;
    let mut paths: Vec<_> = std::fs::read_dir(&folder)
        .expect("a folder")
        .map(|e| e.expect("an entry").path())
        .collect();
    paths.sort();
    for path in paths
        .iter()
        .filter(|path| path.extension().is_some_and(|e| e == "cases"))
    {
        let stem = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let file = File::read(path);
        for case in &file.cases {
            let finish = file.header(case, "finish").unwrap_or("stop");
            if !["stop", "length", "tool_calls"].contains(&finish) {
                continue;
            }
            let Some(want) = expected(&case.want, finish) else {
                continue;
            };
            let body = upstream(&case.text, finish);
            let prefill = file
                .header(case, "prefill")
                .filter(|prefill| *prefill != "unknown");
            let by_name = file.header(case, "dialect").unwrap_or(&stem).to_owned();
            let is_alike = !file
                .header(case, "auto")
                .is_some_and(|auto| auto.starts_with("no "));
            cases += 1;
            calls += want.calls.len();
            for dialect in [Some(by_name), is_alike.then(|| "auto".to_owned())]
                .into_iter()
                .flatten()
            {
                for (number, mut asked) in Asked::all().enumerate() {
                    // In a sample each text is tried on a third of them.
                    if !is_tried(hash(case.text.as_bytes()) as usize ^ number, 3) {
                        continue;
                    }
                    asked.dialect.clone_from(&dialect);
                    asked.prefill =
                        prefill.map(|json| serde_json::from_str(json).expect("a JSON string"));
                    asked.tools = Some(tools(&file, case, &folder));
                    let name = format!(
                        "{stem}, {}, {dialect}, {:?} {:?}",
                        case.name, asked.front, asked.form
                    );
                    let found = compare(&asked, &served(&body, &asked), &want);
                    wrong.extend(found.into_iter().map(|why| format!("{name}: {why}")));
                }
            }
        }
    }
    assert!(
        cases > 500 && calls > 400,
        "only {cases} cases with {calls} calls"
    );
    nothing(&wrong);
}

#[test]
fn calls_that_every_dialect_writes_are_native_calls_on_every_front() {
    let list = json!([
        {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {
            "a": {"type": "integer"}, "s": {"type": "string"}, "l": {"type": "array", "items": {"type": "integer"}}}}}},
        {"type": "function", "function": {"name": "g", "parameters": {"type": "object", "properties": {}}}},
    ]);
    let calls = [
        ("f", r#"{"a":1,"s":"x \"y\" é","l":[1,-2]}"#),
        ("g", "{}"),
        ("f", r#"{"s":"{\"a\": 2}"}"#),
    ];
    let prompt: Vec<PromptCall<'_>> = calls
        .iter()
        .map(|(name, arguments)| PromptCall {
            id: "",
            name,
            arguments,
        })
        .collect();
    let wanted = |n: usize| Choice {
        calls: calls[..n]
            .iter()
            .map(|(name, arguments)| super::reading::Call {
                name: (*name).to_owned(),
                arguments: serde_json::from_str::<Value>(arguments)
                    .expect("JSON")
                    .to_string(),
                ..Default::default()
            })
            .collect(),
        finish: Some(Finish::ToolCalls),
        ..Choice::default()
    };
    let mut wrong = Vec::new();
    for dialect in Dialect::all() {
        for n in [1, 3] {
            let body = upstream(&dialect.calls(&prompt[..n]), "stop");
            for mut asked in Asked::all() {
                asked.dialect = dialect.name.to_owned();
                asked.prefill = Some(String::new());
                asked.tools = Some(list.to_string());
                let mut want = wanted(n);
                // White space around calls is text.
                let got = read(&asked, &served(&body, &asked));
                let text = got
                    .choices
                    .first()
                    .map(|c| c.text.clone())
                    .unwrap_or_default();
                if text.trim().is_empty() {
                    want.text = text;
                }
                let found = compare(&asked, &served(&body, &asked), &want);
                let name = format!("{} × {n}, {:?} {:?}", dialect.name, asked.front, asked.form);
                wrong.extend(found.into_iter().map(|why| format!("{name}: {why}")));
            }
        }
    }
    nothing(&wrong);
}
