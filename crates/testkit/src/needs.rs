//! The programs that a test needs. If one is missing, the test prints a line that says what to
//! install, and passes; `tests/skipped` counts these lines at the end of `cargo test --workspace`.
//! With `CI=true` a missing program fails the test.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use crate::process::kill_command as kill;
use crate::process::root;

/// The programs besides bash and coreutils that tests run, with the Debian packages that contain
/// them. `.ci/setup` uses the same names.
const PROGRAMS: [(&str, &str); 20] = [
    ("bwrap", "bubblewrap"),
    ("cmp", "diffutils"),
    ("curl", "curl"),
    ("dpkg-deb", "dpkg"),
    ("find", "findutils"),
    ("grep", "grep"),
    ("ipcmk", "util-linux"),
    ("java", "default-jre-headless"),
    ("jq", "jq"),
    ("node", "nodejs"),
    ("parallel", "parallel"),
    ("promtool", "prometheus"),
    ("python3", "python3"),
    ("sed", "sed"),
    ("setpriv", "util-linux"),
    ("setsid", "util-linux"),
    ("strace", "strace"),
    ("systemd-analyze", "systemd"),
    ("unshare", "util-linux"),
    ("xargs", "findutils"),
];

/// Programs that share their name with another program (moreutils has a `parallel`), with the text
/// in `--version` that identifies the right one.
const NAMESAKES: [(&str, &str); 1] = [("parallel", "GNU parallel")];

/// Whether `programs` (names or paths) are installed; reports the missing ones. Another program of
/// the same name counts as missing.
#[must_use]
pub fn programs(programs: &[&str]) -> bool {
    are_installed(&name(), programs)
}

/// Whether the programs of [`PROGRAMS`] that `script` mentions are installed; reports the missing
/// ones under the name `what`.
#[must_use]
pub fn script(what: &str, script: &str) -> bool {
    let words: BTreeSet<&str> = script
        .split(|c: char| !c.is_ascii_alphanumeric() && !"-_./".contains(c))
        .collect();
    let named: Vec<&str> = PROGRAMS
        .iter()
        .map(|(program, _)| *program)
        .filter(|name| words.contains(name))
        .collect();
    are_installed(what, &named)
}

/// Returns `is_here`; if it is false, reports that `what` is missing and how to `install` it.
///
/// # Panics
/// If it is missing and `CI` is `true`.
#[must_use]
pub fn installed(is_here: bool, what: &str, install: &str) -> bool {
    if !is_here {
        lacks(&name(), &format!("{what} is missing, {install}"));
    }
    is_here
}

/// Returns a Python that can import `modules` (`"numpy, scipy"`): that of `.ci/setup`, or
/// `python3`. If there is none, reports this and returns `None`.
///
/// # Panics
/// If there is none and `CI` is `true`.
#[must_use]
pub fn python(modules: &str) -> Option<PathBuf> {
    let imports = |python: &PathBuf| {
        let ran = Command::new(python)
            .args(["-c", &format!("import {modules}")])
            .output();
        ran.is_ok_and(|ran| ran.status.success())
    };
    let own = root().join("target/python/bin/python");
    let found = [own, PathBuf::from("python3")].into_iter().find(imports);
    let what = format!("a Python with {modules}");
    if !installed(found.is_some(), &what, ".ci/setup tools installs it") {
        return None;
    }
    found
}

/// Reports a missing capability of the system or the user that no package provides.
pub fn skip(why: &str) {
    report(&name(), why);
}

fn are_installed(what: &str, programs: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_here = |program: &str| {
        std::env::split_paths(&path)
            .map(|folder| folder.join(program))
            .find(|file| file.is_file())
            .is_some_and(|file| is_meant(program, &file))
    };
    let missing: Vec<&str> = programs
        .iter()
        .copied()
        .filter(|program| !is_here(program))
        .collect();
    if missing.is_empty() {
        return true;
    }
    let package = |path: &&str| {
        let program = path.rsplit('/').next().unwrap_or(path);
        PROGRAMS
            .iter()
            .find(|(name, _)| *name == program)
            .map_or(program.to_owned(), |(_, package)| (*package).to_owned())
    };
    let packages: BTreeSet<String> = missing.iter().map(package).collect();
    let packages = packages.into_iter().collect::<Vec<_>>().join(" ");
    lacks(
        what,
        &format!("missing: {}; install {packages}", missing.join(", ")),
    );
    false
}

/// Whether the file is the intended program of this name, see [`NAMESAKES`].
fn is_meant(program: &str, file: &Path) -> bool {
    let Some((_, words)) = NAMESAKES.iter().find(|(name, _)| *name == program) else {
        return true;
    };
    let printed = Command::new(file).arg("--version").output();
    printed.is_ok_and(|ran| String::from_utf8_lossy(&ran.stdout).contains(words))
}

fn lacks(test: &str, why: &str) {
    assert!(
        std::env::var_os("CI").is_none_or(|ci| ci != "true"),
        "{test} cannot run: {why}"
    );
    report(test, why);
}

/// Writes the line directly to standard error, since the test harness discards the output of tests
/// that pass. Also appends it to the list of this cargo run.
fn report(test: &str, why: &str) {
    let line = format!("SKIPPED {test}: {why}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
    let mut options = std::fs::OpenOptions::new();
    let list = options.create(true).append(true).open(list());
    let _ = list.and_then(|mut list| list.write_all(line.as_bytes()));
}

/// Returns the file with the lines of this cargo run.
pub fn list() -> PathBuf {
    let run = std::os::unix::process::parent_id();
    crate::process::program("").join(format!("../tmp/skipped-{run}"))
}

/// Returns the name of the test, which is the name of its thread.
fn name() -> String {
    std::thread::current().name().unwrap_or("a test").to_owned()
}
