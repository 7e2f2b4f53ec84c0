//! A server on loopback that does what a script says, and tools that ask it.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::harness::{parameters, with};
use serde_json::{Value, json};
pub(crate) use testkit::{JSON, PATIENCE as GUARD, Server, Step, answer};

pub(crate) const TEXT: &str = "content-type: text/plain\r\n";

/// The entry of `exec.http.allow` for this server.
pub(crate) fn allow(server: &Server) -> Value {
    json!([format!("127.0.0.1:{}", server.port)])
}

/// All requests that came, as text. Ask when the command has ended.
pub(crate) fn asked(server: &Server) -> Vec<String> {
    server.asked().iter().map(ToString::to_string).collect()
}

/// A tool with the string arguments `text`, `a` and `b` that sends a request to `server`, with
/// these members of `exec.http`, and these of `exec`.
pub(crate) fn web(name: &str, server: &Server, path: &str, http: Value, more: Value) -> Value {
    let request = json!({"url": server.at(path), "allow": allow(server)});
    let exec = with(json!({"http": with(request, &http)}), &more);
    json!({"name": name, "parameters": parameters(), "exec": exec})
}
