//! What the README says works: its pipelines as they are written, and the demo, whose output is `fixtures/demo.txt`
//! (`UPDATE=1 cargo test --test readme` writes that file anew, for review by `git diff`).

#[path = "pipeline/bins.rs"]
mod bins;
#[path = "pipeline/golden.rs"]
mod golden;

use std::process::Stdio;

/// Runs a script in the root of the repository, with a folder for temporary files that goes after it; gives its standard output.
fn run(script: &str) -> String {
    let script = format!("export TMPDIR=$(mktemp -d); trap 'rm -rf \"$TMPDIR\"' EXIT\n{script}");
    let output = bins::bash(&script, bins::root()).stdin(Stdio::null()).output().expect("bash runs");
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(output.status.success() && err.is_empty(), "{script}\n{}\n{out}\n{err}", output.status);
    out
}

/// The blocks that follow the mark `<!-- test -->`.
fn blocks(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while lines.by_ref().any(|line| line == "<!-- test -->") {
        assert_eq!(lines.next(), Some("```sh"), "after a mark, of block {}", blocks.len() + 1);
        blocks.push(lines.by_ref().take_while(|line| *line != "```").collect::<Vec<_>>().join("\n"));
    }
    blocks
}

#[test]
fn every_pipeline_of_the_readme_works_as_written() {
    let readme = std::fs::read_to_string(bins::root().join("README.md")).expect("README.md");
    let blocks = blocks(&readme);
    assert!(blocks.len() >= 5, "only {} pipelines are marked", blocks.len());
    for block in blocks {
        assert!(!run(&block).is_empty(), "it prints nothing:\n{block}");
    }
}

#[test]
fn the_demo_is_plain_in_a_pipe_and_what_it_prints_can_be_typed_again() {
    // From any folder, with the commands of this build.
    let built = run("dirname \"$(command -v llm-stream)\"");
    let shown =
        run("root=$PWD; export TOOLPIPE_BIN=$(dirname \"$(command -v llm-stream)\"); cd / && \"$root/bin/demo\"");
    assert!(!shown.contains('\u{1b}'), "{shown}");
    // The folder of the commands is shown from the repository's root where it lies below it, and whole where it does not.
    let built = built.trim();
    let short = built.replacen(&bins::root().display().to_string(), "$PWD", 1);
    let shown = shown.replace(&format!("PATH={short}:"), "PATH=$PWD/target/release:");
    let wrong = golden::compare(&bins::root().join("fixtures/demo.txt"), shown.as_bytes());
    assert!(wrong.is_none(), "{}", wrong.unwrap_or_default());

    let (_, by_hand) = shown.split_once("root of the repository:\n").expect("the pipeline at the end");
    let again = run(&by_hand.replace("PATH=$PWD/target/release:", "PATH="));
    assert!(again.contains("-> reserve") && again.contains("sleeping bags"), "{again}");
}
