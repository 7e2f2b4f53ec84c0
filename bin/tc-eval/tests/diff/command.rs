//! The built command, run in a folder of its own.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// An empty folder, removed when the test ends.
pub struct Folder(PathBuf);

/// What a run printed.
#[derive(Debug, PartialEq, Eq)]
pub struct Ran {
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl Folder {
    pub fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tc-eval-diff-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder for the test");
        Folder(path)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).expect("a file");
    }

    /// Runs `tc-eval diff` with these arguments.
    pub fn diff<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tc-eval"));
        command.arg("diff").args(args).stdin(Stdio::null());
        self.run(command)
    }

    /// Runs a script with the command as `$EVAL`.
    pub fn bash(&self, script: &str) -> Ran {
        let mut command = Command::new("bash");
        command.args(["-c", script]).env("EVAL", env!("CARGO_BIN_EXE_tc-eval")).stdin(Stdio::null());
        self.run(command)
    }

    fn run(&self, mut command: Command) -> Ran {
        let Output { status, stdout, stderr } =
            command.current_dir(&self.0).env("LC_ALL", "C").output().expect("the command runs");
        let [out, err] = [stdout, stderr].map(|bytes| String::from_utf8(bytes).expect("UTF-8"));
        Ran { status: status.code().expect("it was not killed"), out, err }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
