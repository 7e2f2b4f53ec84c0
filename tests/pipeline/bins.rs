//! The commands that were built beside this test, and a shell that finds them.

#![allow(dead_code, reason = "tests, each of which uses a part")]

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Every command that is built.
pub const COMMANDS: [&str; 8] = [
    "llm-stream",
    "tag-parse",
    "tc-detect",
    "tc-accumulate",
    "tool-exec",
    "tc-view",
    "tc-eval",
    "tc-serve",
];

/// The project's root.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A shell that fails when any stage of a pipe fails, in `folder`, with the built commands first in
/// its PATH and nothing in its environment that could change what they do.
///
/// # Panics
/// When a command is missing: `cargo test --workspace` builds them all.
pub fn bash(script: &str, folder: &Path) -> Command {
    let bins = folder_of_bins();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(bins).chain(std::env::split_paths(&path));
    let mut shell = Command::new("bash");
    shell
        .args(["-o", "pipefail", "-c", script])
        .current_dir(folder)
        .env_clear();
    shell.env(
        "PATH",
        std::env::join_paths(all).expect("a PATH without a colon in its parts"),
    );
    // In the background of the terminal that the tests may run on: nobody is asked there.
    shell.process_group(0);
    shell
        .env("LC_ALL", "C")
        .env("HOME", std::env::temp_dir())
        .env("NO_COLOR", "1");
    shell
}

fn folder_of_bins() -> PathBuf {
    let exe = std::env::current_exe().expect("this test has a path");
    let bins = exe
        .parent()
        .and_then(Path::parent)
        .expect("target/PROFILE/deps/TEST")
        .to_owned();
    let missing: Vec<_> = COMMANDS
        .iter()
        .filter(|name| !bins.join(name).exists())
        .collect();
    assert!(
        missing.is_empty(),
        "{missing:?} not in {}, run cargo test --workspace",
        bins.display()
    );
    bins
}
