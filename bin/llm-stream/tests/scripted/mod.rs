//! The command, run against a server that does what a script says.

use std::process::{Command, Stdio};
pub(crate) use testkit::{
    File, JSON, PATIENCE as GUARD, Ran, Request, SSE, Scratch, Server, Step, answer, finish, gzip,
    gzip_run, kill, run, run_with, sse_head, terminal, until,
};

/// A whole stream of chat completions with these pieces of content.
pub(crate) fn chat(pieces: &[&str]) -> String {
    let mut body = String::new();
    for piece in pieces {
        let text = serde_json::Value::from(*piece);
        body += &format!(
            "data: {{\"id\":\"r1\",\"model\":\"m1\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":{text}}}}}]}}\n\n"
        );
    }
    body + "data: {\"id\":\"r1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
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
