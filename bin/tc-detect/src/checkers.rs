//! All checkers by their names: those of `detect`, and `cmd:`, which starts processes.

use crate::learn::Learning;
use anyhow::{Context, bail};
use detect::{
    CHECKERS, CallFilter, Checker, CheckerSettings, Checkers, Factory, Risk, StreamEnding, Verdict,
};
use event::Event;
use std::io::{ErrorKind, Write};
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::rc::Rc;

/// The name of the adapter and how it decides.
const COMMAND: (&str, &str) = (
    "cmd:COMMAND",
    "any command that reads events and exits 0 or 1",
);

fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    CHECKERS
        .iter()
        .map(|row| (row.name, row.help))
        .chain([COMMAND])
}

/// The help of `--checker`.
pub(crate) fn help() -> String {
    let checkers: Vec<_> = all()
        .map(|(name, help)| format!("{name} ({help})"))
        .collect();
    format!("Who decides: {}", checkers.join(", "))
}

/// The checkers of that name, which count live streams where `learning` is given; `calls` decides
/// what counts as a call.
///
/// # Errors
/// When the name is unknown; the message lists all names. When the file of `--learn` is not a
/// table, or another checker should learn.
pub(crate) fn find(
    name: &str,
    calls: &CallFilter,
    risk: Risk,
    learning: Option<&Learning>,
) -> anyhow::Result<Checkers> {
    let usual = named(name, calls, &CheckerSettings { risk, table: None })?;
    let Some(learning) = learning else {
        return Ok(usual);
    };
    if name != "auto" && !name.starts_with("auto:") {
        bail!("--learn: {name} does not learn, use --checker auto");
    }
    if calls.name.is_some() {
        bail!("--learn: counts calls of all tools, leave --name out");
    }
    let table = Some(Rc::new(learning.table()?));
    Ok(learning.checkers(usual, named(name, calls, &CheckerSettings { risk, table })?))
}

fn named(name: &str, calls: &CallFilter, settings: &CheckerSettings) -> anyhow::Result<Checkers> {
    if let Some(command) = name.strip_prefix("cmd:") {
        if command.trim().is_empty() {
            bail!(
                "--checker cmd: has no command, write one behind it, such as 'cmd:grep -q \
                 tool_call_delta'"
            );
        }
        let command = command.to_owned();
        let factory: Factory = Rc::new(move || Box::new(CheckerCommand::start(&command)));
        return Ok(Rc::new(move |_| Rc::clone(&factory)));
    }
    detect::checkers_with(name, calls, settings).with_context(|| {
        let names: Vec<_> = all().map(|(name, _)| name).collect();
        format!("unknown checker '{name}', use one of: {}", names.join(", "))
    })
}

/// A running command. It decides by its exit status, and may end before the stream does.
struct CheckerCommand {
    text: String,
    child: Option<Child>,
    stdin: Option<ChildStdin>,
}

impl CheckerCommand {
    /// Starts the command with `sh -c`. Where `sh` cannot start, that is reported on standard error
    /// and the stream stays undecided.
    fn start(text: &str) -> Self {
        let child = std::process::Command::new("sh")
            .args(["-c", text])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        let mut child = child
            .inspect_err(|e| {
                stdio::message(
                    "tc-detect",
                    &format!("cannot start sh for 'cmd:{text}': {e}, install a shell"),
                );
            })
            .ok();
        CheckerCommand {
            text: text.to_owned(),
            stdin: child.as_mut().and_then(|child| child.stdin.take()),
            child,
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
                        "'cmd:{text}' ended with {status} instead of 0 or 1, the stream stays \
                         undecided"
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

impl Checker for CheckerCommand {
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

impl Drop for CheckerCommand {
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
