//! `cmd:COMMAND`: any command as a checker. It reads the events of one choice and exits 0 (a call)
//! or 1 (none).

use detect::{Checker, StreamEnding, Verdict};
use event::Event;
use std::io::{ErrorKind, Write};
use std::process::{Child, ChildStdin, ExitStatus, Stdio};

/// A running command. It decides by its exit status, and may end before the stream does.
pub struct Command {
    text: String,
    child: Option<Child>,
    stdin: Option<ChildStdin>,
}

impl Command {
    /// Starts the command with `sh -c`. Where `sh` cannot start, that is reported on standard error
    /// and the stream stays undecided.
    pub fn start(text: &str) -> Self {
        let child = std::process::Command::new("sh")
            .args(["-c", text])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        match child {
            Ok(mut child) => {
                let stdin = child.stdin.take();
                Command {
                    text: text.to_owned(),
                    child: Some(child),
                    stdin,
                }
            }
            Err(e) => {
                stdio::message(
                    "tc-detect",
                    &format!("cannot start sh for 'cmd:{text}': {e}, install a shell"),
                );
                Command {
                    text: text.to_owned(),
                    child: None,
                    stdin: None,
                }
            }
        }
    }

    fn verdict(&mut self, status: ExitStatus) -> Option<Verdict> {
        (self.child, self.stdin) = (None, None);
        match status.code() {
            Some(code @ (0 | 1)) => Some(Verdict::new(
                code == 0,
                format!("{} ended with {code}", self.text),
            )),
            _ => {
                let text = &self.text;
                stdio::message(
                    "tc-detect",
                    &format!(
                        "'cmd:{text}' ended with {status} instead of 0 or 1, the stream stays undecided"
                    ),
                );
                None
            }
        }
    }

    fn wait(&mut self) -> Option<Verdict> {
        self.stdin = None;
        let status = self.child.as_mut()?.wait().ok()?;
        self.verdict(status)
    }
}

impl Checker for Command {
    fn push(&mut self, event: &Event<'_>) -> Option<Verdict> {
        let stdin = self.stdin.as_mut()?;
        match stdin
            .write_all(event.raw().as_bytes())
            .and_then(|()| stdin.write_all(b"\n"))
        {
            // A broken pipe: the command needs no more input, so its exit status is the answer.
            Err(e) if e.kind() == ErrorKind::BrokenPipe => self.wait(),
            Err(_) => None,
            Ok(()) => {
                let status = self.child.as_mut()?.try_wait().ok()??;
                self.verdict(status)
            }
        }
    }

    fn end(&mut self, _: StreamEnding) -> Option<Verdict> {
        self.wait()
    }
}

impl Drop for Command {
    fn drop(&mut self) {
        self.stdin = None;
        if let Some(child) = &mut self.child {
            // Its answer is not needed any more, for example because the reader of standard output
            // left. Its input is closed, which ends a command that reads it; waiting leaves no
            // zombie.
            let _ = child.wait();
        }
    }
}
