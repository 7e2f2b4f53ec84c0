//! How many packages each command needs, which is a table of `crates/README.md`, and that a build of
//! the demo's commands compiles each dependency as a build of all does.

#![allow(clippy::unwrap_used, reason = "it is how a test fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// The commands of the table.
const COMMANDS: [&str; 10] = [
    "llm-stream",
    "react",
    "tag-parse",
    "tc-accumulate",
    "tc-detect",
    "tc-eval",
    "tc-serve",
    "tc-view",
    "tool-exec",
    "toolpipe-commands",
];

/// Whether this user can run the cargo that built the tests.
fn has_cargo() -> bool {
    let ran = Command::new(env!("CARGO")).arg("--version").output();
    testkit::needs::installed(ran.is_ok(), env!("CARGO"), "run the tests as its owner")
}

/// The packages that `cargo tree` lists with these words, each once.
fn tree(words: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .current_dir(testkit::root())
        .args(["tree", "--locked", "--offline", "--prefix", "none"])
        .args(words)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo tree {words:?}: {errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    // A package whose dependencies were listed before has a mark.
    let lines = text.lines().map(|line| line.trim_end_matches(" (*)"));
    lines
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_table_has_the_packages_of_each_command() {
    if !has_cargo() {
        return;
    }
    let readme = std::fs::read_to_string(testkit::root().join("crates/README.md")).unwrap();
    for command in COMMANDS {
        let package = ["-p", command, "-e", "normal"];
        let all = tree(&package).len();
        let small = tree(&[&package[..], &["--no-default-features"]].concat()).len();
        let row = format!("| {command} | {all} | {small} |");
        let start = format!("| {command} | ");
        let is_there = readme.lines().any(|line| line == row);
        let found: Vec<&str> = readme
            .lines()
            .filter(|line| {
                line.strip_prefix(&start)
                    .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
            })
            .collect();
        assert!(is_there, "crates/README.md has {found:?}, write: {row}");
    }
}

#[test]
fn the_demo_compiles_each_dependency_as_a_build_of_all_does() {
    if !has_cargo() {
        return;
    }
    let demo = std::fs::read_to_string(testkit::root().join("bin/demo")).unwrap();
    assert!(demo.contains("cargo build --locked --no-default-features "));
    // The first is that of the conversation; the one with a service is built seldom.
    let words = demo.split_once("packages=(").unwrap().1;
    let build: Vec<&str> = words.split_once(')').unwrap().0.split(' ').collect();
    let all = features(&["--workspace"]);
    for (package, of_demo) in features(&[&build[..], &["--no-default-features"]].concat()) {
        let missing: Vec<&String> = of_demo.difference(&all[&package]).collect();
        assert!(
            missing.is_empty(),
            "bin/demo compiles {package} with the features {missing:?}, a build of all with {:?}: name them all in the \
             workspace's Cargo.toml",
            all[&package]
        );
    }
}

/// The features with which each package of others is compiled: more than one list where it is
/// compiled for build scripts, too.
fn features(words: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let form = ["-e", "normal,build", "-f", "{p}\t{f}"];
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in tree(&[words, &form].concat()) {
        let (package, features) = line.split_once('\t').unwrap();
        // Those of this workspace have a path.
        if !package.contains(" (/") {
            all.entry(package.to_owned())
                .or_default()
                .insert(features.to_owned());
        }
    }
    all
}
