//! Sessions with the servers that the makers of the protocol publish. `MCP_SERVERS` names a folder
//! in which npm and a Python venv have installed them; else `target/mcp-servers` is looked at.
//! Where they are missing the test is skipped with a line: the same is tested with servers of our
//! own in `mcp.rs` and `mcp_http.rs`.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::harness::{Dir, needs, run_command, wait_until};
use crate::server::{command, lock, run_calls};
use serde_json::{Value, json};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// The program of a server from npm, if it is installed and `node` is here.
fn npm(package: &str) -> Option<PathBuf> {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/mcp-servers");
    let folder = std::env::var_os("MCP_SERVERS").map_or_else(beside, PathBuf::from);
    let path = folder
        .join("node_modules/@modelcontextprotocol")
        .join(package)
        .join("dist/index.js");
    let servers = "the servers of modelcontextprotocol";
    let is_here = needs::programs(&["node"])
        && needs::installed(path.is_file(), servers, "see docs/tools-file.md");
    is_here.then_some(path)
}

/// A server that is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_session_with_a_real_program_and_a_real_http_server() {
    let (Some(everything), Some(files)) = (npm("server-everything"), npm("server-filesystem"))
    else {
        return;
    };
    let dir = Dir::new();
    dir.write("note.txt", "bring a torch");
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let mut web = Command::new("node");
    web.arg(&everything)
        .arg("streamableHttp")
        .env("PORT", port.to_string());
    let _web = Running(
        web.stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    wait_until("the HTTP server listens", || {
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    let folder = dir.path(".").canonicalize().unwrap();
    let file = json!({"mcpServers": {
        "web": {"type": "streamable-http", "url": format!("http://127.0.0.1:{port}/mcp")},
        "files": {"command": "node", "args": [files, folder], "class": {"read_*": "read"}},
        "every": {"command": "node", "args": [everything, "stdio"], "tools": ["echo", "get-env"]},
    }});
    lock(&dir, &file);
    let list = run_command(command(&dir, &file, &["--list"]), "");
    let list: Vec<Value> = serde_json::from_str(&list.text).unwrap();
    let names: Vec<&str> = list
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    for name in ["web__echo", "files__read_text_file", "every__echo"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    assert!(!names.contains(&"every__get-sum"));
    let calls = [
        ("a", "web__echo", json!({"message": "over the network"})),
        (
            "b",
            "files__read_text_file",
            json!({"path": folder.join("note.txt")}),
        ),
        ("c", "every__echo", json!({"message": "over pipes"})),
        (
            "d",
            "web__trigger-long-running-operation",
            json!({"duration": 0.2, "steps": 2}),
        ),
        ("e", "web__get-tiny-image", json!({})),
        ("f", "files__read_text_file", json!({"path": "/etc/passwd"})),
    ];
    let out = run_calls(&dir, &file, &calls, &["--progress"]);
    assert_eq!(out.outcome("a"), ("success", "Echo: over the network"));
    assert_eq!(out.outcome("b"), ("success", "bring a torch"));
    assert_eq!(out.outcome("c"), ("success", "Echo: over pipes"));
    assert_eq!(out.outcome("d").0, "success", "{}", out.text);
    assert!(
        out.of("tool_progress")
            .iter()
            .any(|step| step["tool_id"] == "d" && step["progress"] == 1),
        "{}",
        out.text
    );
    let image = out.outcome("e").1;
    let path = image
        .split_once("in the file ")
        .and_then(|(_, rest)| rest.split_once(']'))
        .unwrap()
        .0;
    assert!(
        std::fs::read(path).unwrap().starts_with(b"\x89PNG"),
        "{image}"
    );
    assert_eq!(out.outcome("f").0, "error");
}
