//! The recorded cases: each folder of `fixtures/cases` is a command, its input, and all that must come out.
//!
//! `cmd` is run by bash with the built commands in its PATH, in the case's folder, with `in.ndjson` (if there is one) as standard
//! input. Standard output, standard error and the exit status must be those of `out.ndjson`, `err.txt` and `status`; a missing
//! file means empty, or 0. `$SCRATCH` is an empty folder. `UPDATE=1 cargo test --test cases` rewrites the files.

#[path = "pipeline/bins.rs"]
mod bins;
#[path = "pipeline/golden.rs"]
mod golden;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;

#[test]
fn every_case_gives_what_it_says() {
    let mut cases: Vec<PathBuf> = fs::read_dir(bins::root().join("fixtures/cases"))
        .expect("fixtures/cases")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.is_dir())
        .collect();
    cases.sort();
    assert!(!cases.is_empty(), "no cases");
    let failed: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let wrong = run(case);
            let name = case.file_name().unwrap_or_default().to_string_lossy();
            (!wrong.is_empty()).then(|| format!("{name}\n  {}", wrong.join("\n  ")))
        })
        .collect();
    assert!(failed.is_empty(), "{} of {} cases failed:\n{}", failed.len(), cases.len(), failed.join("\n"));
}

/// Runs one case; gives what does not agree.
fn run(case: &Path) -> Vec<String> {
    let Ok(script) = fs::read_to_string(case.join("cmd")) else { return vec!["it has no file `cmd`".to_owned()] };
    let scratch = std::env::temp_dir().join(format!(
        "toolpipe-case-{}-{}",
        std::process::id(),
        case.file_name().unwrap_or_default().to_string_lossy()
    ));
    fs::create_dir_all(&scratch).expect("a folder for the case");
    let input = File::open(case.join("in.ndjson")).map_or_else(|_| Stdio::null(), Stdio::from);
    let output = bins::bash(&script, case).env("SCRATCH", &scratch).stdin(input).output().expect("bash runs");
    fs::remove_dir_all(&scratch).expect("the folder can go");
    let status = match output.status.code() {
        Some(0) => String::new(),
        Some(code) => format!("{code}\n"),
        None => "ended by a signal\n".to_owned(),
    };
    [("out.ndjson", &output.stdout[..]), ("err.txt", &output.stderr), ("status", status.as_bytes())]
        .into_iter()
        .filter_map(|(name, got)| golden::compare(&case.join(name), got))
        .collect()
}
