//! What the tests of `bin/react` share: a folder for a run, the command line, and signals.

#![allow(dead_code, reason = "tests, each of which uses a part")]

use crate::{bins, needs};
use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};

pub const ASK: &str = "bin/react --tools fixtures/tools/tools.json --tape fixtures/tapes/huts.tape --model demo --log $SCRATCH/log";
/// The same conversation with calls that are text.
pub const ASK_TAG: &str = "bin/react --tools fixtures/tools/tools.json --tape fixtures/tapes/huts-tag.tape --tools-mode tag \
    --model demo --log $SCRATCH/log";
pub const QUESTION: &str = "'We are four and would like to spend Saturday night in a hut by a lake. Can you reserve one, and what should we pack?'";

/// An empty folder, removed when the test ends, for the log of a run and the file of the tool that
/// reserves; and the command line of react.
pub struct Scratch(pub PathBuf, pub &'static str);

impl Scratch {
    pub fn new(test: &str) -> Self {
        Scratch::asking(ASK, test)
    }

    pub fn asking(ask: &'static str, test: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("toolpipe-react-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder for the test");
        Scratch(path, ask)
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_default()
    }

    pub fn bash(&self, script: &str) -> Command {
        let mut bash = bins::bash(script, bins::root());
        bash.env("SCRATCH", &self.0)
            .env("TMPDIR", &self.0)
            .env("RESERVATIONS", self.0.join("reservations"));
        bash.stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        bash
    }

    /// Status, standard output and standard error.
    pub fn run(&self, script: &str) -> (i32, String, String) {
        let output = self.bash(script).output().expect("bash runs");
        let [out, err] = [&output.stdout, &output.stderr]
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        (output.status.code().unwrap_or(-1), out, err)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Reads until `text` has come.
pub fn wait_for(from: &mut impl Read, text: &str) {
    let mut seen = Vec::new();
    let mut byte = [0];
    while !seen.ends_with(text.as_bytes()) {
        assert_eq!(
            from.read(&mut byte).expect("a pipe"),
            1,
            "{}",
            String::from_utf8_lossy(&seen)
        );
        seen.push(byte[0]);
    }
}

pub fn kill(signal: &str, process: &str) {
    let status = needs::kill()
        .args([signal, "--", process])
        .status()
        .expect("kill runs");
    assert!(status.success());
}
