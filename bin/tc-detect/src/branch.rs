//! `--then CMD` and `--else CMD`: pipes the whole stream, from its first event, into the command
//! that the decision chooses.

use detect::Detect;
use event::payload::line;
use event::{Emitted, Event, Machine, Raw, Sink, SinkOf};
use std::cell::Cell;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::rc::Rc;
use stdio::{RawLines, Status};

/// The two commands; the streams of one that is missing go to standard output.
#[derive(Clone, Debug)]
pub(crate) struct BranchCommands {
    then: Option<Rc<str>>,
    or_else: Option<Rc<str>>,
    /// The status of the first command that failed.
    failed: Rc<Cell<Option<u8>>>,
}

impl BranchCommands {
    /// From the two options.
    ///
    /// # Errors
    /// When one of them is empty: its streams would be lost.
    pub(crate) fn new(then: Option<String>, or_else: Option<String>) -> anyhow::Result<Self> {
        for (option, command) in [("--then", &then), ("--else", &or_else)] {
            if command
                .as_deref()
                .is_some_and(|command| command.trim().is_empty())
            {
                anyhow::bail!(
                    "{option} has no command, write one behind it, such as {option} tc-view, or \
                     leave the option out"
                );
            }
        }
        Ok(BranchCommands {
            then: then.map(Into::into),
            or_else: or_else.map(Into::into),
            failed: Rc::default(),
        })
    }

    /// The status of the first command that failed: its own, 128 plus the signal that ended it, or
    /// the status of an error if it cannot be started.
    pub(crate) fn failed(&self) -> Option<u8> {
        self.failed.get()
    }

    fn ended(&self, command: &str, status: ExitStatus) {
        let code = match (status.code(), status.signal()) {
            // 141 and SIGPIPE mean that the reader of the command's output has left, which is not a
            // failure.
            (Some(0 | 141), _) | (None, Some(SIGPIPE)) => return,
            (Some(code), _) => u8::try_from(code).unwrap_or(u8::MAX),
            (None, signal) => {
                stdio::message("tc-detect", &format!("'{command}' was ended by {status}"));
                u8::try_from(128 + signal.unwrap_or_default()).unwrap_or(u8::MAX)
            }
        };
        self.failed.set(self.failed.get().or(Some(code)));
    }
}

const SIGPIPE: i32 = 13;

/// Where the lines of one stream go.
enum LineTarget {
    /// Undecided: they are kept.
    Undecided(Vec<u8>),
    Child(Child, Rc<str>),
    Stdout,
}

/// A [`Detect`] that keeps its stream until it has decided, and then pipes it on.
pub(crate) struct Branch {
    detect: Detect,
    commands: BranchCommands,
    target: LineTarget,
    stream: Option<String>,
    no_time: bool,
    /// The lines for standard output.
    lines: RawLines,
}

impl Branch {
    /// Wraps the machine of one stream.
    pub(crate) fn new(
        detect: Detect,
        commands: BranchCommands,
        no_time: bool,
        lines: RawLines,
    ) -> Self {
        Branch {
            detect,
            commands,
            target: LineTarget::Undecided(Vec::new()),
            stream: None,
            no_time,
            lines,
        }
    }

    /// Keeps the lines of one event until the decision is made. Then chooses the target, and sends
    /// all lines there.
    fn send(&mut self, lines: &[u8]) {
        if let LineTarget::Undecided(kept) = &mut self.target {
            kept.extend_from_slice(lines);
            if let Some(decided) = self.detect.decided() {
                let kept = std::mem::take(kept);
                self.target = self.choose(decided);
                self.put(&kept);
            }
        } else {
            self.put(lines);
        }
    }

    fn choose(&self, decided: bool) -> LineTarget {
        let Some(command) = (if decided {
            &self.commands.then
        } else {
            &self.commands.or_else
        }) else {
            return LineTarget::Stdout;
        };
        match Command::new("sh")
            .args(["-c", command])
            .stdin(Stdio::piped())
            .spawn()
        {
            Ok(child) => LineTarget::Child(child, Rc::clone(command)),
            Err(e) => {
                self.commands
                    .failed
                    .set(self.commands.failed().or(Some(Status::Error.code())));
                stdio::message(
                    "tc-detect",
                    &format!(
                        "cannot start sh for '{command}': {e}, the stream goes to standard output"
                    ),
                );
                LineTarget::Stdout
            }
        }
    }

    fn put(&mut self, lines: &[u8]) {
        match &mut self.target {
            // A command may stop reading before the end: that is not a failure.
            LineTarget::Child(child, _) => drop(
                child
                    .stdin
                    .as_mut()
                    .map(|stdin| stdin.write_all(lines).and_then(|()| stdin.flush())),
            ),
            _ => {
                for line in String::from_utf8_lossy(lines).lines() {
                    self.lines.push(line);
                }
            }
        }
    }

    /// Ends the stream: closes the input of its command and waits for the command. Without a
    /// decision, the kept lines go to standard output.
    fn close(&mut self) {
        if let LineTarget::Undecided(kept) = &mut self.target {
            let kept = std::mem::take(kept);
            self.target = LineTarget::Stdout;
            self.put(&kept);
        }
        if let LineTarget::Child(child, command) = &mut self.target {
            drop(child.stdin.take());
            match child.wait() {
                Ok(status) => self.commands.ended(command, status),
                Err(e) => stdio::message("tc-detect", &format!("waiting for '{command}': {e}")),
            }
            self.target = LineTarget::Stdout;
        }
    }
}

impl Machine for Branch {
    fn push(&mut self, event: &Event<'_>, _: &mut dyn Sink) {
        if self.stream.is_none() {
            self.stream = event.stream().map(|s| s.text().to_owned());
        }
        let t = event.t().map(Raw::text).filter(|_| !self.no_time);
        let mut lines = Vec::new();
        self.detect.push(
            event,
            &mut spool(&mut lines, &event.raw(), self.stream.as_deref(), t),
        );
        self.send(&lines);
        if event.kind() == event::Kind::StreamEnd {
            self.close();
        }
    }

    fn finish(&mut self, _: &mut dyn Sink) {
        let mut lines = Vec::new();
        self.detect
            .finish(&mut spool(&mut lines, "", self.stream.as_deref(), None));
        self.send(&lines);
        self.close();
    }
}

/// Collects the lines that the event `raw` leads to.
fn spool<'s>(
    lines: &'s mut Vec<u8>,
    raw: &'s str,
    stream: Option<&'s str>,
    t: Option<&'s str>,
) -> impl Sink + 's {
    SinkOf(move |emitted: Emitted<'_>| {
        match emitted {
            Emitted::Passed => lines.extend_from_slice(raw.as_bytes()),
            Emitted::Written(choice, payload) => line(lines, payload, stream, choice, t),
        }
        lines.push(b'\n');
    })
}
