//! `docs/dialects.md` is written from the table of dialects:
//! `UPDATE=1 cargo test -p toolpipe-tag --test dialects_md`.

use serde_json::json;
use std::fmt::Write;
use std::path::Path;
use toolpipe_tag::{Dialect, PromptCall, PromptChoice, PromptResult};

#[test]
fn the_list_of_dialects_is_what_the_table_says() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/dialects.md");
    let page = page();
    if std::env::var_os("UPDATE").is_some_and(|v| v == "1") {
        std::fs::write(&file, page).expect("docs/dialects.md can be written");
        return;
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    let line = kept.lines().zip(page.lines()).position(|(a, b)| a != b);
    assert!(
        kept == page,
        "docs/dialects.md is not what the table says, from line {line:?} on; rewrite it with UPDATE=1"
    );
}

fn page() -> String {
    let mut page = String::from(INTRODUCTION);
    for dialect in Dialect::all() {
        let _ = writeln!(
            page,
            "| [`{0}`](#{1}) | {2} | {3} |",
            dialect.name,
            anchor(dialect.name),
            aliases(dialect),
            dialect.models
        );
    }
    for dialect in Dialect::all() {
        section(&mut page, dialect);
    }
    page
}

fn section(page: &mut String, dialect: &Dialect) {
    let weather = PromptCall {
        id: "0",
        name: "get_weather",
        arguments: r#"{"city": "Paris"}"#,
    };
    let time = PromptCall {
        id: "1",
        name: "get_time",
        arguments: "{}",
    };
    let results = [
        PromptResult {
            id: "0",
            name: "get_weather",
            text: "18 °C, <b>sunny</b>",
        },
        PromptResult {
            id: "1",
            name: "get_time",
            text: "12:30",
        },
    ];
    let tools = json!([
        {"type": "function", "function": {"name": "get_weather", "description": "The weather in a city.", "parameters": {
            "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}},
        {"type": "function", "function": {"name": "get_time", "description": "The time now.", "parameters": {
            "type": "object", "properties": {}}}}
    ]);
    let _ = write!(
        page,
        "\n## {}\n\nModels: {}. Source: {}.\n\n",
        dialect.name,
        dialect.models,
        source(dialect.source)
    );
    let notes = notes(dialect);
    if !notes.is_empty() {
        let _ = write!(page, "{}\n\n", notes.join(" "));
    }
    block(page, "One call:", &dialect.example());
    block(
        page,
        "Two calls, the second without arguments:",
        &dialect.calls(&[weather, time]),
    );
    page.push_str("<details>\n<summary>The prompt, and the results of both calls</summary>\n\n");
    block(
        page,
        "At the end of the system prompt:",
        &dialect.system(&tools, PromptChoice::Auto),
    );
    block(
        page,
        "The message after the calls:",
        &dialect.results(&results),
    );
    page.push_str("</details>\n");
}

/// A link as its file, or its page.
fn source(source: &str) -> String {
    let Some(link) = source.strip_prefix("https://") else {
        return source.to_owned();
    };
    let shown = match link.split('/').collect::<Vec<_>>()[..] {
        ["github.com", owner, repository, "blob", _, .., file] => {
            format!("{owner}/{repository}, {file}")
        }
        _ => link.to_owned(),
    };
    format!("[{shown}]({source})")
}

/// What a user of the dialect should know.
fn notes(dialect: &Dialect) -> Vec<String> {
    let mut notes: Vec<String> = [
        (
            dialect.begins_messages(),
            "A call counts only where a message begins.",
        ),
        (
            dialect.needs_known_tools(),
            "A call counts only where its tool is known, since it is found in ordinary text too.",
        ),
        (
            dialect.call_closes_reasoning(),
            "Reasoning ends with the marker that ends a call.",
        ),
        (
            dialect.call_always_ends_reasoning(),
            "A call always ends reasoning.",
        ),
        (
            dialect.may_begin_in_reasoning(),
            "The prompt may end inside reasoning.",
        ),
    ]
    .into_iter()
    .filter(|(holds, _)| *holds)
    .map(|(_, note)| note.to_owned())
    .collect();
    let characters = |n: u8| {
        if n == 1 {
            "1 character".to_owned()
        } else {
            format!("{n} characters")
        }
    };
    match dialect.late {
        (0, 0) => {}
        (0, auto) => notes.push(format!(
            "With `auto`, a name is reported {} after its end.",
            characters(auto)
        )),
        (known, _) => notes.push(format!(
            "A name is reported {} after its end.",
            characters(known)
        )),
    }
    notes
}

/// A text in a fence that is longer than any in it.
fn block(page: &mut String, title: &str, text: &str) {
    let _ = write!(page, "{title}\n\n````text\n{text}\n````\n\n");
}

fn aliases(dialect: &Dialect) -> String {
    dialect
        .aliases
        .iter()
        .map(|alias| format!("`{alias}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// What a heading of this name is linked by.
fn anchor(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
        .collect()
}

const INTRODUCTION: &str = "\
# Dialects

How models write tool calls as text. `tag-parse` reads all of these (`--dialect NAME`, several names, or `auto`), and
`llm-stream --tools-mode tag --dialect NAME` prompts a model to write one. `tag-parse --list-dialects` prints the list. For a model whose
dialect is not here, [new-dialect.md](new-dialect.md) shows how to write it down in a file of your own.

A result is a JSON string in which every character that markers are made of is written as `\\uXXXX`: nothing in it can open or
close a tag of any dialect, and reading the string gives the text back unchanged.

This page is written from the files in [`crates/tag/dialects`](../crates/tag/dialects):
`UPDATE=1 cargo test -p toolpipe-tag --test dialects_md`.

| name | also named | models |
| --- | --- | --- |
";
