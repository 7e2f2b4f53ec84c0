//! What the README says works: its pipelines as they are written, and the demo, whose output is `fixtures/demo.txt`.
//! `BLESS=1 cargo test --test readme` writes that file anew, for review by `git diff`.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where the commands of this build are: beside the folder of this test.
fn commands() -> PathBuf {
    let folder = std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().to_owned();
    for command in ["llm-stream", "tc-detect", "tc-accumulate", "tool-exec", "tc-view"] {
        assert!(folder.join(command).exists(), "{command} is not built, run 'cargo build --workspace' first");
    }
    folder
}

/// A command in the root of the repository, with the commands in PATH and nothing that could change what they do.
fn bash(script: &str) -> Command {
    let path = std::env::join_paths(
        std::iter::once(commands()).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    let mut bash = Command::new("bash");
    bash.args(["-o", "pipefail", "-c", script]).current_dir(root()).env("PATH", path.unwrap());
    for name in ["LLM_API", "LLM_BASE_URL", "LLM_MODEL", "LLM_TAPE", "LLM_TAPE_MODE", "NO_COLOR"] {
        bash.env_remove(name);
    }
    bash.env("OPENAI_API_KEY", "").stdin(Stdio::null());
    bash
}

fn run(mut command: Command) -> (String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (stdout, stderr) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
    assert!(status.success(), "{status}\n{stdout}\n{stderr}");
    (stdout, stderr)
}

/// The blocks that follow the mark `<!-- test -->`, with the line that each begins in.
fn blocks(text: &str) -> Vec<(usize, String)> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((_, line)) = lines.next() {
        if line == "<!-- test -->" {
            let (number, fence) = lines.next().unwrap();
            assert_eq!(fence, "```sh", "line {}", number + 1);
            let block = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```");
            blocks.push((number + 2, block.collect::<Vec<_>>().join("\n")));
        }
    }
    blocks
}

#[test]
fn every_pipeline_of_the_readme_works_as_written() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let blocks = blocks(&readme);
    assert!(blocks.len() >= 5, "only {} pipelines are marked", blocks.len());
    for (line, block) in blocks {
        let (stdout, stderr) = run(bash(&block));
        assert!(!stdout.is_empty() && stderr.is_empty(), "README.md, line {line}:\n{stdout}\n{stderr}");
    }
}

#[test]
fn the_demo_is_plain_in_a_pipe_and_its_own_pipeline_works() {
    let bin = commands();
    let mut demo = Command::new(root().join("bin/demo"));
    demo.env("TOOLPIPE_BIN", &bin).env_remove("NO_COLOR").current_dir("/").stdin(Stdio::null());
    let (stdout, stderr) = run(demo);
    assert_eq!(stderr, "");
    assert!(!stdout.contains('\u{1b}'), "{stdout}");
    let built = bin.strip_prefix(root()).map_or_else(|_| bin.clone(), Path::to_owned);
    let shown = stdout.replace(&built.display().to_string(), "target/release");
    let expected = root().join("fixtures/demo.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&expected, &shown).unwrap();
    }
    assert_eq!(shown, std::fs::read_to_string(expected).unwrap());

    // What it prints at its end, typed again.
    let (_, by_hand) = stdout.split_once("root of the repository:\n").unwrap();
    let (again, stderr) = run(bash(&format!("{by_hand}\nrm $log")));
    assert_eq!(stderr, "");
    assert!(again.contains("-> reserve") && again.contains("sleeping bags"), "{again}");
}
