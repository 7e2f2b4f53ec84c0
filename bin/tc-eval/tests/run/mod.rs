//! Runs the built command in a folder of its own, which is removed afterwards.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

/// A folder for one test.
pub(crate) struct Folder {
    path: PathBuf,
}

/// What a run left.
#[derive(Debug)]
pub(crate) struct Ran {
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
    /// The exit status; `None` after a signal.
    pub status: Option<i32>,
}

impl Folder {
    /// An empty folder.
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Folder { path }
    }

    /// The path of a file in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file, with the folders above it.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, content).expect("a file");
        path
    }

    /// Reads a file.
    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("a file")
    }

    /// The command with these arguments, in this folder.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tc-eval"));
        command.args(args).current_dir(&self.path).env_remove("CI");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the command with these arguments, in this folder.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().expect("the command runs"))
    }

    /// Runs the command with `input` on its standard input.
    pub(crate) fn run_with(&self, args: &[&str], input: impl AsRef<[u8]>) -> Ran {
        let mut child: Child = self
            .command(args)
            .stdin(Stdio::piped())
            .spawn()
            .expect("the command runs");
        // A command that stops reading early is not a failure of the writer.
        let _ = child
            .stdin
            .take()
            .expect("a pipe")
            .write_all(input.as_ref());
        Ran::of(child.wait_with_output().expect("the command ends"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that is left is removed with the target folder.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

impl Ran {
    /// The output of a process that has ended.
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        Ran {
            out: text(output.stdout),
            err: text(output.stderr),
            status: output.status.code(),
        }
    }

    /// The lines of standard output as JSON.
    pub(crate) fn lines(&self) -> Vec<serde_json::Value> {
        self.out
            .lines()
            .map(|line| serde_json::from_str(line).expect("a line of JSON"))
            .collect()
    }
}

/// The project's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
