//! The recorded cases: each folder of `fixtures/cases` is a test, made of a command, its input and
//! its whole output.
//!
//! bash runs `cmd` with the built commands in its PATH, in the case's folder, with `in.ndjson` (if
//! there is one) as standard input. Standard output, standard error and the exit status must be
//! those of `out.ndjson`, `err.txt` and `status`; a missing file means empty, or 0. The events of
//! standard output fit `docs/events.schema.json`. `$SCRATCH` is an empty folder.
//! `UPDATE=1 cargo test --test fixtures cases/NAME` rewrites the files.

use crate::pipeline::schema;
use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use testkit::trials::{self, Trial};
use testkit::{golden, needs};

pub(crate) fn trials() -> Vec<Trial<'static>> {
    let cases = testkit::folders(&testkit::root().join("fixtures/cases"));
    trials::each("cases", cases, |case| run(case))
}

/// Runs one case; returns what differs.
fn run(case: &Path) -> Vec<String> {
    let Ok(script) = fs::read_to_string(case.join("cmd")) else {
        return vec!["it has no file `cmd`".to_owned()];
    };
    let name = case.file_name().unwrap_or_default().to_string_lossy();
    if !needs::script(&format!("case {name}"), &script) {
        return Vec::new();
    }
    let scratch = std::env::temp_dir().join(format!(
        "toolpipe-case-{}-{}",
        std::process::id(),
        case.file_name().unwrap_or_default().to_string_lossy()
    ));
    fs::create_dir_all(&scratch).expect("a folder for the case");
    let input = File::open(case.join("in.ndjson")).map_or_else(|_| Stdio::null(), Stdio::from);
    let output = testkit::bash(&script, case)
        .env("SCRATCH", &scratch)
        .stdin(input)
        .output()
        .expect("bash runs");
    fs::remove_dir_all(&scratch).expect("the folder can go");
    let status = match output.status.code() {
        Some(0) => String::new(),
        Some(code) => format!("{code}\n"),
        None => "ended by a signal\n".to_owned(),
    };
    [
        ("out.ndjson", &output.stdout[..]),
        ("err.txt", &output.stderr),
        ("status", status.as_bytes()),
    ]
    .into_iter()
    .filter_map(|(name, got)| golden::compare(&case.join(name), got))
    .chain(schema::misfits(&output.stdout))
    .collect()
}
