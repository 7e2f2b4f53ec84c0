//! `docs/dialects.md` is an index that is written from the table of dialects:
//! `UPDATE=1 cargo test -p toolpipe-tag --test main dialects_md::`.

use std::fmt::Write;
use std::path::Path;
use toolpipe_tag::Dialect;

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
        let aliases: Vec<String> = dialect.aliases.iter().map(|a| format!("`{a}`")).collect();
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} |",
            dialect.name,
            aliases.join(", "),
            dialect.models,
            source(dialect.source)
        );
    }
    page
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

const INTRODUCTION: &str = "\
# Dialects

How models write tool calls as text. `tag-parse` reads all of these (`--dialect NAME`, several names, or `auto`), and
`llm-stream --tools-mode tag --dialect NAME` prompts a model to write one. `tag-parse --list-dialects` prints the list, and
`tag-parse --show-dialect NAME` prints one dialect: calls, the prompt, results, and what to know. For a model whose
dialect is not here, [new-dialect.md](new-dialect.md) shows how to write it down in a file of your own.

    tag-parse --show-dialect hermes
    llm-stream --tools-mode tag --dialect hermes --tools tools.json 'Is a hut free?' | tag-parse | tc-accumulate

A result is a JSON string in which every character that markers are made of is written as `\\uXXXX`: nothing in it can open or
close a tag of any dialect, and reading the string gives the text back unchanged.

This page is written from the files in [`crates/tag/dialects`](../crates/tag/dialects):
`UPDATE=1 cargo test -p toolpipe-tag --test main dialects_md::`.

| name | also named | models | source |
| --- | --- | --- | --- |
";
