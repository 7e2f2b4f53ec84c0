//! The command, run against a server that does what a script says.

use std::process::{Command, Stdio};
pub(crate) use testkit::{
    File, JSON, PATIENCE as GUARD, Protocol, Ran, Request, SSE, Scratch, Server, Step, Turn,
    answer, finish, gzip, gzip_run, kill, run, run_with, sse_head, terminal, until,
};

/// A model that writes these pieces of text.
pub(crate) fn turn(pieces: &[&str]) -> Turn {
    let turn = Turn::default().id("r1").model("m1");
    pieces.iter().fold(turn, |turn, text| turn.then_says(text))
}

/// The stream of chat completions of [`turn`].
pub(crate) fn chat(pieces: &[&str]) -> String {
    turn(pieces).stream(Protocol::Chat)
}

/// How much of [`chat`] is needed for its first piece of text: the first frame has only the role.
pub(crate) fn first(body: &str) -> usize {
    body.split_inclusive("\n\n").take(2).map(str::len).sum()
}

/// The command, with nothing of this process's environment.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(testkit::program("llm-stream"));
    command
        .args(args)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The command against `server`.
pub(crate) fn asking(server: &Server, args: &[&str]) -> Command {
    let mut command = command(&["--base-url", &server.url, "--model", "m", "--no-time"]);
    command.args(args);
    command
}
