//! Runs commands for tests, to their end or line by line.

use crate::short;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;
use std::fmt::{Debug, Formatter};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Maximum time that any step may take before its test fails. A passing test never waits this long.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// All commands that the workspace builds.
pub const COMMANDS: [&str; 9] = [
    "llm-stream",
    "react",
    "tag-parse",
    "tc-detect",
    "tc-accumulate",
    "tool-exec",
    "tc-view",
    "tc-eval",
    "tc-serve",
];

/// Returns the project's root folder.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap()
}

/// Returns the path of a command that was built beside this test.
pub fn program(name: &str) -> PathBuf {
    // target/PROFILE/deps/TEST
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).unwrap().join(name)
}

/// Returns a shell for `script` that runs in `folder` and fails when any stage of a pipe fails. The
/// built commands are first in its PATH, and its environment contains nothing that could change
/// their behaviour.
///
/// # Panics
/// If a command is missing: `cargo build` builds them all.
pub fn bash(script: &str, folder: &Path) -> Command {
    let mut missing = COMMANDS.map(program).into_iter();
    if let Some(missing) = missing.find(|command| !command.exists()) {
        panic!(
            "{} is missing, run cargo build, which builds all commands",
            missing.display()
        );
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = [program("")]
        .into_iter()
        .chain(std::env::split_paths(&path));
    let mut shell = Command::new("bash");
    shell
        .args(["-o", "pipefail", "-c", script])
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::join_paths(all).unwrap())
        .env("LC_ALL", "C")
        .env("HOME", std::env::temp_dir())
        .env("TOOLPIPE_KEEP", "0")
        .env("NO_COLOR", "1");
    // Runs in the background of the terminal that the tests may run on, so that no command can
    // prompt there.
    shell.process_group(0);
    shell
}

/// The result of a command.
pub struct Ran {
    /// The exit status, see [`code`].
    pub status: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// Shortens long outputs, since most assertions print this.
impl Debug for Ran {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let mut ran = f.debug_struct("Ran");
        ran.field("status", &self.status);
        ran.field("stdout", &short(&self.stdout));
        ran.field("stderr", &short(&self.stderr)).finish()
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        Ran {
            status: code(output.status),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    /// Returns the events on standard output.
    pub fn events(&self) -> Vec<Value> {
        events(&self.stdout)
    }

    /// Returns the types of the events, separated by spaces.
    pub fn types(&self) -> String {
        let events = self.events();
        let types: Vec<&str> = events.iter().map(|e| e["type"].as_str().unwrap()).collect();
        types.join(" ")
    }

    /// Returns the first event of a type.
    pub fn event(&self, kind: &str) -> Value {
        let found = self.events().into_iter().find(|e| e["type"] == kind);
        found.unwrap_or_else(|| panic!("no {kind} in {self:?}"))
    }

    /// Returns the text of the response: all `content_delta` events, concatenated.
    pub fn text(&self) -> String {
        let mut events = self.events();
        events.retain(|e| e["type"] == "content_delta");
        events.iter().map(|e| e["text"].as_str().unwrap()).collect()
    }

    /// Returns the single line on standard error of a usage error.
    pub fn refusal(&self) -> &str {
        let lines = self.stderr.lines().count();
        let ended = (self.status, self.stdout.as_str(), lines);
        assert_eq!(ended, (2, "", 1), "{self:?}");
        &self.stderr
    }
}

/// Returns the exit status, or the negated number of the signal that ended the process.
pub fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| -status.signal().unwrap())
}

/// Parses the lines of `text` as JSON.
pub fn events(text: &str) -> Vec<Value> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let read = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    lines.map(read).collect()
}

/// Runs a command to its end.
pub fn run(mut command: Command) -> Ran {
    finish(command.spawn().unwrap(), None)
}

/// Runs a command to its end with `stdin` as its input, which it need not read.
pub fn run_with(mut command: Command, stdin: &str) -> Ran {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || pipe.write_all(stdin.as_bytes()));
        finish(child, None)
    })
}

/// Waits for a running command, whose output may have been taken already; kills a command that does
/// not exit.
pub fn finish(child: Child, stdout: Option<BufReader<ChildStdout>>) -> Ran {
    let pid = child.id();
    let (done, wait) = channel::<()>();
    std::thread::spawn(move || {
        if wait.recv_timeout(5 * PATIENCE) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            kill(pid, "KILL");
        }
    });
    let mut rest = String::new();
    if let Some(mut stdout) = stdout {
        stdout.read_to_string(&mut rest).unwrap();
    }
    let mut ran = Ran::from(child.wait_with_output().unwrap());
    drop(done);
    ran.stdout.insert_str(0, &rest);
    ran
}

/// Reads until a line contains `text`, and returns that line.
pub fn until(lines: &mut impl BufRead, text: &str) -> String {
    loop {
        let mut line = String::new();
        let count = lines.read_line(&mut line).unwrap();
        assert!(count > 0, "the output ended before {text:?}");
        if line.contains(text) {
            return line;
        }
    }
}

/// A pipeline that a test writes to and reads from line by line, over real pipes.
pub struct Conversation {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Conversation {
    /// Starts the command, with the test's standard error.
    pub fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let mut lines = stdout.lines().map_while(Result::ok);
            lines.try_for_each(|line| sender.send(line))
        });
        Conversation {
            stdin: child.stdin.take(),
            child,
            lines,
        }
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes bytes without buffering.
    pub fn say(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).unwrap();
    }

    /// Returns the next line. The input stays open, so the line arrives only if the command does
    /// not hold it back.
    pub fn hear(&self) -> String {
        let line = self.lines.recv_timeout(PATIENCE);
        line.expect("a line while the input is open")
    }

    /// Closes the input, and returns the rest of the output and the exit status.
    pub fn end(mut self) -> (Vec<String>, Option<i32>) {
        drop(self.stdin.take());
        let rest = self.lines.iter().collect();
        (rest, self.child.wait().unwrap().code())
    }
}

/// Returns a command that sends signals, with the arguments of kill(1). It uses the shell's
/// builtin, since kill(1) may be missing.
pub fn kill_command() -> Command {
    let mut kill = Command::new("bash");
    kill.args(["-c", "kill \"$@\"", "kill"]);
    kill
}

/// Sends the signal of this name to a process or, with a minus before the number, to a process
/// group. Returns whether the process existed.
pub fn kill(process: impl ToString, signal: &str) -> bool {
    let process = process.to_string();
    let signal = signal.trim_start_matches('-');
    let mut kill = kill_command();
    kill.args(["-s", signal, "--", &process])
        .status()
        .unwrap()
        .success()
}

/// Whether the process with this id is running; zombies do not count.
pub fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    state.is_some_and(|state| !state.starts_with('Z'))
}

/// Waits until `done` returns true; panics after [`PATIENCE`].
pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let since = std::time::Instant::now();
    while !done() {
        assert!(since.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Opens a pseudoterminal. Returns the user's end, and the end for the command.
pub fn terminal() -> std::io::Result<(fs::File, fs::File)> {
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&person)?;
    unlockpt(&person)?;
    let name = ptsname(&person, vec![])?;
    let mut options = fs::File::options();
    let command = options
        .read(true)
        .write(true)
        .open(name.to_str().unwrap())?;
    Ok((person.into(), command))
}
