//! What the tests of `react` share: a folder for a run, and the command line.

use std::io::Read;
use std::process::{Command, Stdio};

pub(crate) const ASK: &str = "react --tools fixtures/tools/tools.json --tape fixtures/tapes/huts.tape --model demo --log $SCRATCH/log";
/// The same conversation with calls that are text.
pub(crate) const ASK_TAG: &str = "react --tools fixtures/tools/tools.json --tape fixtures/tapes/huts-tag.tape --tools-mode tag \
    --model demo --log $SCRATCH/log";
pub(crate) const QUESTION: &str = "'We are four and would like to spend Saturday night in a hut by a lake. Can you reserve one, and what should we pack?'";

/// An empty folder, removed when the test ends, for the log of a run and the file of the tool that
/// reserves; and the command line of react.
pub(crate) struct Scratch(pub testkit::Scratch, pub &'static str);

impl Scratch {
    pub(crate) fn new() -> Self {
        Scratch::asking(ASK)
    }

    pub(crate) fn asking(ask: &'static str) -> Self {
        Scratch(testkit::Scratch::new(), ask)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        self.0.read(name)
    }

    pub(crate) fn bash(&self, script: &str) -> Command {
        let mut bash = testkit::bash(script, testkit::root());
        bash.env("SCRATCH", &*self.0)
            .env("TMPDIR", &*self.0)
            .env("RESERVATIONS", self.0.join("reservations"));
        bash.stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        bash
    }

    /// Status, standard output and standard error.
    pub(crate) fn run(&self, script: &str) -> (i32, String, String) {
        let ran = testkit::run(self.bash(script));
        (ran.status, ran.stdout, ran.stderr)
    }
}

/// Reads until `text` has come.
pub(crate) fn wait_for(from: &mut impl Read, text: &str) {
    let mut seen = Vec::new();
    let mut byte = [0];
    while !seen.ends_with(text.as_bytes()) {
        let count = from.read(&mut byte).expect("a pipe");
        assert_eq!(count, 1, "{}", String::from_utf8_lossy(&seen));
        seen.push(byte[0]);
    }
}
