//! Texts as models write them, and their results: a test for each file of `fixtures/dialects`,
//! named after it.
//!
//! Each text is read whole, by single characters, and split and cut at a sample of its places, or
//! at all of them with `LAWS=full`; and the same again without the dialect's name.
//! `cargo test -p toolpipe-tag --test cases NAME` runs the files whose name contains NAME; with
//! `UPDATE=1` it rewrites the expected results, for review by `git diff`.

#[path = "cases/file.rs"]
mod file;
#[allow(dead_code, reason = "generated.rs uses the rest")]
#[path = "cases/outcome.rs"]
mod outcome;
#[allow(dead_code, reason = "generated.rs uses the rest")]
#[path = "cases/reader.rs"]
mod reader;

use crate::file::File;
use crate::reader::{Reader, Text};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use testkit::trials;
use toolpipe_tag::Dialect;

fn main() -> ExitCode {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/dialects");
    let files = std::fs::read_dir(&folder)
        .expect("fixtures/dialects")
        .map(|entry| entry.expect("a readable folder").path());
    let mut files: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|e| e == "cases"))
        .collect();
    files.sort();
    let mut tests: Vec<(String, Option<PathBuf>)> = files
        .iter()
        .map(|path| (stem(path), Some(path.clone())))
        .collect();
    tests.push(("every dialect has cases".to_owned(), None));
    trials::run([trials::each("cases", tests, |path| match path {
        Some(path) => check(path, &File::read(path), &mut Reader::new()),
        None => without_cases(&files),
    })])
}

/// The dialects of the table that no case is of.
fn without_cases(files: &[PathBuf]) -> Vec<String> {
    let mut seen = HashSet::new();
    for path in files {
        let file = File::read(path);
        seen.extend(file.cases.iter().map(|case| {
            file.header(case, "dialect")
                .unwrap_or(&stem(path))
                .to_owned()
        }));
    }
    Dialect::all()
        .iter()
        .map(|d| d.name.to_owned())
        .filter(|name| !seen.contains(name))
        .collect()
}

/// The name of a file of cases, which names its dialect.
fn stem(path: &Path) -> String {
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Runs the cases of a file; gives what does not agree.
fn check(path: &Path, file: &File, reader: &mut Reader) -> Vec<String> {
    let stem = stem(path);
    let mut failed = Vec::new();
    let mut outcomes = Vec::new();
    for case in &file.cases {
        let get = |key: &str| file.header(case, key);
        let tools = get("tools").filter(|name| *name != "none").map(|name| {
            if name.starts_with('[') {
                Ok(name.to_owned())
            } else {
                std::fs::read_to_string(path.with_file_name(name))
            }
        });
        let tools = tools.transpose().expect("a file of tools");
        let prefill = get("prefill").filter(|prefill| *prefill != "unknown");
        let prefill: Option<String> =
            prefill.map(|json| serde_json::from_str(json).expect("a JSON string"));
        let mut text = Text {
            dialect: get("dialect").unwrap_or(&stem),
            text: &case.text,
            tools: tools.as_deref(),
            prefill: prefill.as_deref(),
            finish: get("finish").unwrap_or("stop"),
        };
        let (outcome, mut wrong) = reader.every(&text, true);
        if outcome.lines() != case.want && std::env::var_os("UPDATE").is_none_or(|v| v != "1") {
            wrong.push(format!(
                "came: {:#?}\nnot: {:#?}",
                outcome.lines(),
                case.want
            ));
        }
        if !get("auto").is_some_and(|auto| auto.starts_with("no ")) {
            text.dialect = "auto";
            let (auto, more) = reader.every(&text, true);
            wrong.extend(more.into_iter().map(|why| format!("auto: {why}")));
            let auto = auto.lasting(false);
            let named = outcome.lasting(false);
            if auto != named {
                wrong.push(format!(
                    "auto: {:#?}\nnamed: {:#?}",
                    auto.lines(),
                    named.lines()
                ));
            }
        }
        failed.extend(wrong.into_iter().map(|why| format!("{}: {why}", case.name)));
        outcomes.push(outcome);
    }
    if std::env::var_os("UPDATE").is_some_and(|v| v == "1") {
        std::fs::write(path, file.written(&outcomes)).expect("the file can be written");
    }
    failed
}
