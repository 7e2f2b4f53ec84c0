//! `docs/dialects.md` is written from the table: `UPDATE=1 cargo test -p toolpipe-tag --test dialects_md`.

use serde_json::json;
use std::fmt::Write;
use std::path::Path;
use toolpipe_tag::{Call, Choice, Dialect, Output};

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
    let weather = Call { id: "0", name: "get_weather", arguments: r#"{"city": "Paris"}"# };
    let time = Call { id: "1", name: "get_time", arguments: "{}" };
    let results = [
        Output { id: "0", name: "get_weather", text: "18 °C, <b>sunny</b>" },
        Output { id: "1", name: "get_time", text: "12:30" },
    ];
    let tools = json!([
        {"type": "function", "function": {"name": "get_weather", "description": "The weather in a city.", "parameters": {
            "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}},
        {"type": "function", "function": {"name": "get_time", "description": "The time now.", "parameters": {
            "type": "object", "properties": {}}}}
    ]);
    let _ = write!(page, "\n## {}\n\nModels: {}.\n\n", dialect.name, dialect.models);
    block(page, "One call:", &dialect.example());
    block(page, "Two calls, the second without arguments:", &dialect.calls(&[weather, time]));
    page.push_str("<details>\n<summary>The prompt, and the results of both calls</summary>\n\n");
    block(page, "At the end of the system prompt:", &dialect.system(&tools, Choice::Auto));
    block(page, "The message after the calls:", &dialect.results(&results));
    page.push_str("</details>\n");
}

/// A text in a fence that is longer than any in it.
fn block(page: &mut String, title: &str, text: &str) {
    let _ = write!(page, "{title}\n\n````text\n{text}\n````\n\n");
}

fn aliases(dialect: &Dialect) -> String {
    dialect.aliases.iter().map(|alias| format!("`{alias}`")).collect::<Vec<_>>().join(", ")
}

/// What a heading of this name is linked by.
fn anchor(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
}

const INTRODUCTION: &str = "\
# Dialects

How models write tool calls as text. `tag-parse` reads all of these (`--dialect NAME`, several names, or `auto`), and
`llm-stream --tools-mode tag --dialect NAME` prompts a model to write one. `tag-parse --list-dialects` prints the list.

A result is a JSON string in which every character that markers are made of is written as `\\uXXXX`: nothing in it can open or
close a tag of any dialect, and reading the string gives the text back unchanged.

This page is written from the table in `crates/tag/src/table.rs`:
`UPDATE=1 cargo test -p toolpipe-tag --test dialects_md`.

| name | also named | models |
| --- | --- | --- |
";
