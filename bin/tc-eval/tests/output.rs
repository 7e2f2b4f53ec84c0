//! The forms of a report, its files, and requirements as the gate of a CI job.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use crate::run::{Folder, Ran, root};
use std::io::Read as _;

/// Runs two checkers on the fixtures.
fn evaluate(folder: &Folder, more: &[&str]) -> Ran {
    let corpus = root().join("fixtures");
    folder.run(
        &[
            &[
                corpus.to_str().unwrap(),
                "-c",
                "first-chunk",
                "-c",
                "full",
                "--only",
                "api=anthropic",
            ],
            more,
        ]
        .concat(),
    )
}

#[test]
fn a_missed_requirement_is_a_line_with_its_value_and_status_1() {
    let folder = Folder::new();
    let ran = evaluate(
        &folder,
        &[
            "--require",
            "recall >= 99%",
            "--require",
            "full:precision>=0.5",
            "--format",
            "json",
        ],
    );
    assert_eq!(ran.status, Some(1));
    let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let metrics = &report["checkers"][0]["metrics"];
    let expected = format!(
        "tc-eval: first-chunk: recall is {:.3} ({} of {}), required >= 0.99\n",
        metrics["recall"].as_f64().unwrap(),
        metrics["true_positives"],
        metrics["calls"]
    );
    assert_eq!(ran.err, expected);
    let verdicts: Vec<_> = report["verdicts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|verdict| &verdict["is_met"])
        .collect();
    assert_eq!(verdicts, [false, true, true]);
    let ran = evaluate(&folder, &["--require", "streams>0"]);
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
}

#[test]
fn a_requirement_that_cannot_be_checked_is_refused_before_anything_runs() {
    let folder = Folder::new();
    for (requirement, words) in [
        (
            "recal>=1",
            "--require 'recal>=1': unknown metric \"recal\", did you mean \"recall\"? The metrics are streams",
        ),
        (
            "fulll:recall>=1",
            "no checker \"fulll\" in this run; it has first-chunk, full",
        ),
        ("recall", "not a comparison; write METRIC, then one of"),
        ("baseline.broken<=0", "add --baseline FILE"),
    ] {
        let ran = evaluate(
            &folder,
            &["--require", requirement, "--output", "report.json"],
        );
        assert_eq!(ran.status, Some(2), "{requirement}");
        assert!(
            ran.err.contains(words) && ran.err.lines().count() == 1,
            "{requirement}: {}",
            ran.err
        );
        assert!(!folder.path("report.json").exists());
    }
}

#[test]
fn one_run_writes_every_form_by_the_name_of_its_file() {
    let folder = Folder::new();
    let names = ["r.json", "r.xml", "r.md", "r.html", "r.TXT", "report", "-"];
    let outputs: Vec<&str> = names.iter().flat_map(|name| ["--output", *name]).collect();
    let ran = evaluate(&folder, &outputs);
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
    for (name, beginning) in [
        ("r.json", "{\n  \"version\": 1,"),
        ("r.xml", "<?xml version=\"1.0\""),
        ("r.md", "## Checkers"),
        ("r.html", "<!DOCTYPE html>"),
    ] {
        assert!(
            folder.read(name).starts_with(beginning),
            "{name}: {}",
            folder.read(name)
        );
    }
    // A name without an ending has the form of --format, as standard output has.
    assert_eq!(folder.read("report"), ran.out);
    assert_eq!(folder.read("r.TXT"), ran.out);
    assert!(
        ran.out
            .lines()
            .all(|line| line.chars().count() <= 80 || line.contains("tc-eval explain ")),
        "{}",
        ran.out
    );
    assert!(!ran.out.contains('\x1b'));
    // With files alone standard output stays empty.
    let ran = evaluate(&folder, &["--output", "again.json"]);
    assert_eq!(
        (ran.out.as_str(), folder.read("again.json")),
        ("", folder.read("r.json"))
    );
    let left: Vec<_> = std::fs::read_dir(folder.path(""))
        .unwrap()
        .map(|file| file.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 7, "no draft is left: {left:?}");
}

#[test]
fn an_unknown_ending_is_an_error_that_names_the_known_ones() {
    let folder = Folder::new();
    let ran = evaluate(&folder, &["--output", "r.json", "--output", "r.pdf"]);
    assert_eq!((ran.status, ran.out.as_str()), (Some(2), ""));
    assert_eq!(
        ran.err,
        "tc-eval: --output r.pdf: unknown ending, use one of .txt, .json, .xml, .md, .markdown, .html, .htm, or \
         name the form with --format\n"
    );
    assert!(!folder.path("r.pdf").exists() && !folder.path("r.json").exists());
    // Who names the form may name the file as they like.
    let ran = evaluate(&folder, &["--output", "r.pdf", "--format", "json"]);
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
    assert!(folder.read("r.pdf").starts_with('{'));
    // The help has all endings that are not another spelling.
    let help = folder.run(&["--help"]).out;
    assert!(help.contains("(.txt, .json, .xml, .md, .html)"), "{help}");
}

#[test]
fn a_summary_has_a_row_for_each_checker() {
    let folder = Folder::new();
    let whole = evaluate(&folder, &[]);
    let ran = evaluate(&folder, &["--summary"]);
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
    assert!(whole.out.starts_with(ran.out.trim_end()) && whole.out.len() > 2 * ran.out.len());
    for checker in ["first-chunk", "full"] {
        let rows = ran
            .out
            .lines()
            .filter(|line| line.trim_start().starts_with(checker));
        assert_eq!(rows.count(), 1, "{}", ran.out);
    }
    assert!(ran.out.lines().count() <= 12, "{}", ran.out);
}

#[test]
fn a_file_keeps_its_content_where_the_run_fails() {
    let folder = Folder::new();
    folder.write("report.json", "old");
    let ran = folder.run(&["no-such-corpus", "-c", "full", "--output", "report.json"]);
    assert_eq!(ran.status, Some(2));
    assert_eq!(folder.read("report.json"), "old");
    let ran = evaluate(&folder, &["--output", "no-such-folder/report.json"]);
    assert_eq!(ran.status, Some(2));
    assert!(
        ran.err.starts_with("tc-eval: no-such-folder/report.json: ")
            && ran.err.lines().count() == 1,
        "{}",
        ran.err
    );
}

#[test]
fn a_full_disk_is_an_error_in_one_line() {
    let folder = Folder::new();
    let ran = evaluate(&folder, &["--output", "/dev/full", "--format", "json"]);
    assert_eq!(ran.status, Some(2), "{}", ran.err);
    assert!(
        ran.err.starts_with("tc-eval: /dev/full: ") && ran.err.lines().count() == 1,
        "{}",
        ran.err
    );
}

#[test]
fn a_gate_fails_even_if_nobody_reads_the_report() {
    let folder = Folder::new();
    let corpus = root().join("fixtures");
    let args = [
        corpus.to_str().unwrap(),
        "-c",
        "first-chunk",
        "--format",
        "json",
        "--require",
        "recall==1",
    ];
    let mut child = folder.command(&args).spawn().unwrap();
    // The report is larger than a pipe holds.
    drop(child.stdout.take());
    let mut messages = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut messages)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(
        messages.starts_with("tc-eval: first-chunk: recall is "),
        "{messages}"
    );
    assert_eq!(messages.lines().count(), 1);
}

#[test]
fn by_chooses_the_groups_of_every_form() {
    let folder = Folder::new();
    let ran = evaluate(
        &folder,
        &["--by", "model", "--by", "tag", "--format", "json"],
    );
    let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let groups = report["groups"].as_array().unwrap();
    assert!(
        !groups.is_empty()
            && groups
                .iter()
                .all(|group| group["by"] == "model" || group["by"] == "tag")
    );
    let ran = evaluate(&folder, &["--by", "weather"]);
    assert_eq!(ran.status, Some(2));
    assert!(
        ran.err.contains("one of api, provider, model, tag, corpus"),
        "{}",
        ran.err
    );
}
