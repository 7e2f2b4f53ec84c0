//! Texts as models write them, and what comes out of them: the cases of `fixtures/dialects/*.cases`, and for every dialect of the
//! table what its own writer writes.
//!
//! Each text is read whole, in two pieces for every place to cut it, character by character, and broken off after every
//! character; and the same again with the dialect not named. `UPDATE=1 cargo test -p toolpipe-tag --test cases` rewrites what
//! must come out; then review with `git diff`.

#[path = "cases/bugs.rs"]
mod bugs;
#[path = "cases/closers.rs"]
mod closers;
#[path = "cases/file.rs"]
mod file;
#[path = "cases/generated.rs"]
mod generated;
#[path = "cases/outcome.rs"]
mod outcome;
#[path = "cases/quoted.rs"]
mod quoted;
#[path = "cases/reader.rs"]
mod reader;
#[path = "cases/rehearsed.rs"]
mod rehearsed;

use crate::file::File;
use crate::reader::{Reader, Text};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use toolpipe_tag::Dialect;

#[test]
fn every_case_gives_what_it_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/dialects");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("fixtures/dialects")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|e| e == "cases"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no cases");
    let only = std::env::var("CASES").unwrap_or_default();
    let (mut reader, mut failed, mut count, mut seen) = (Reader::new(), Vec::new(), 0, HashSet::new());
    for path in files.iter().filter(|path| path.to_string_lossy().contains(&only)) {
        let file = File::read(path);
        count += file.cases.len();
        seen.extend(file.cases.iter().map(|case| file.header(case, "dialect").unwrap_or(&stem(path)).to_owned()));
        failed.extend(check(path, &file, &mut reader));
    }
    let missing: Vec<&str> = Dialect::all().iter().map(|d| d.name).filter(|name| !seen.contains(*name)).collect();
    assert!(missing.is_empty() || !only.is_empty(), "no cases of {missing:?}");
    assert!(failed.is_empty(), "{} things wrong in {count} cases:\n{}", failed.len(), failed.join("\n"));
}

/// The name of a file of cases, which names its dialect.
fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Runs the cases of a file; gives what does not agree.
fn check(path: &Path, file: &File, reader: &mut Reader) -> Vec<String> {
    let stem = stem(path);
    let (mut failed, mut outcomes) = (Vec::new(), Vec::new());
    for case in &file.cases {
        let get = |key: &str| file.header(case, key);
        let tools = get("tools").filter(|name| *name != "none").map(|name| {
            if name.starts_with('[') { Ok(name.to_owned()) } else { std::fs::read_to_string(path.with_file_name(name)) }
        });
        let tools = tools.transpose().expect("a file of tools");
        let prefill = get("prefill").filter(|prefill| *prefill != "unknown");
        let prefill: Option<String> = prefill.map(|json| serde_json::from_str(json).expect("a JSON string"));
        let mut text = Text {
            dialect: get("dialect").unwrap_or(&stem),
            text: &case.text,
            tools: tools.as_deref(),
            prefill: prefill.as_deref(),
            finish: get("finish").unwrap_or("stop"),
        };
        let (outcome, mut wrong) = reader.every(&text, true);
        if outcome.lines() != case.want && std::env::var_os("UPDATE").is_none_or(|v| v != "1") {
            wrong.push(format!("came: {:#?}\nnot: {:#?}", outcome.lines(), case.want));
        }
        if !get("auto").is_some_and(|auto| auto.starts_with("no ")) {
            text.dialect = "auto";
            let (auto, more) = reader.every(&text, true);
            wrong.extend(more.into_iter().map(|why| format!("auto: {why}")));
            let (auto, named) = (auto.lasting(false), outcome.lasting(false));
            if auto != named {
                wrong.push(format!("auto: {:#?}\nnamed: {:#?}", auto.lines(), named.lines()));
            }
        }
        failed.extend(wrong.into_iter().map(|why| format!("{stem}: {}: {why}", case.name)));
        outcomes.push(outcome);
    }
    if std::env::var_os("UPDATE").is_some_and(|v| v == "1") {
        std::fs::write(path, file.written(&outcomes)).expect("the file can be written");
    }
    failed
}
