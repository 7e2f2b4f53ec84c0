//! Metrics against other programs: the numbers by Python, the text by promtool.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use testkit::{finish, needs, program, root};

/// The logs of the fixtures.
fn logs() -> Vec<PathBuf> {
    let views = testkit::folders(&root().join("fixtures/views"));
    let views = views
        .into_iter()
        .map(|(_, folder)| folder.join("in.ndjson"));
    let logs = fs::read_dir(root().join("fixtures/logs")).expect("a folder");
    let logs = logs.map(|entry| entry.expect("an entry").path());
    logs.chain(views).collect()
}

#[test]
fn the_numbers_of_every_log_are_those_of_sorted_truth() {
    if !needs::programs(&["python3", "promtool"]) {
        return;
    }
    let check = Command::new("python3")
        .arg(root().join("tests/metrics/check.py"))
        .arg(program("tc-view"))
        .arg("12")
        .args(logs())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let ran = finish(check.expect("python3"), None);
    assert_eq!(ran.status, 0, "{}{}", ran.stdout, ran.stderr);
}
