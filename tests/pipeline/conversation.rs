//! A pipeline that a test writes to and reads from line by line, over real pipes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long a line may take before the test fails; a test that passes never waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running pipeline.
pub struct Conversation {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Conversation {
    /// Starts it; its standard error goes to the test's.
    pub fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Conversation {
            stdin: child.stdin.take(),
            child,
            lines,
        }
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes bytes at once.
    pub fn say(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("its input is open");
        stdin
            .write_all(bytes)
            .and_then(|()| stdin.flush())
            .expect("it reads");
    }

    /// The next line; the input stays open, so it comes only if nothing is held back.
    pub fn hear(&self) -> String {
        self.lines
            .recv_timeout(PATIENCE)
            .expect("a line while the input is open")
    }

    /// Closes the input; returns the rest of the output and the exit status.
    pub fn end(mut self) -> (Vec<String>, Option<i32>) {
        drop(self.stdin.take());
        let rest = self.lines.iter().collect();
        (rest, self.child.wait().expect("it ends").code())
    }
}
