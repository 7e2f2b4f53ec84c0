//! A server of tools for tests: this test program itself, when it is started with
//! `mcp-server FOLDER`. It reads its tools from `FOLDER/tools.json` at each `tools/list`, two a
//! page; the name of a tool decides what it does.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    missing_docs,
    reason = "tests; `ctor` makes a function that is public"
)]

pub(crate) mod http;

use serde_json::{Value, json};
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

use crate::harness::{self, Dir, Out, message, run_command, with};

/// Serves, if this process was started for that, before the test harness parses arguments.
#[ctor::ctor]
fn serve_if_asked() {
    let args: Vec<String> = std::env::args().collect();
    match &args[..] {
        [_, kind, folder] if kind == "mcp-server" => serve(Path::new(folder)),
        [_, kind, _] if kind == "mcp-sleep" => {
            std::thread::sleep(std::time::Duration::from_secs(1000))
        }
        _ => return,
    }
    std::process::exit(0);
}

/// Writes the messages that come to standard input's answers to standard output.
fn serve(folder: &Path) {
    note(folder, "started", &std::process::id().to_string());
    eprintln!("the server is here");
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line.unwrap()).unwrap();
        answer(folder, &request, &say);
    }
    note(folder, "ended", &std::process::id().to_string());
}

/// Handles one message of a client, and sends messages back by `say`.
pub(crate) fn answer(folder: &Path, request: &Value, say: &(dyn Fn(&Value) + Sync)) {
    let id = &request["id"];
    let params = &request["params"];
    let reply = |result: Value| say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    match request["method"].as_str().unwrap_or_default() {
        "initialize" => reply(json!({
            "protocolVersion": params["protocolVersion"], "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "test", "version": "1"}
        })),
        "tools/list" => {
            // Fails or stays without an answer as often as the files have lines.
            if take_line(folder, "lists_lost") {
                return;
            }
            if take_line(folder, "lists_failed") {
                say(
                    &json!({"jsonrpc": "2.0", "id": id, "error": {"code": -1, "message": "no list"}}),
                );
                return;
            }
            let tools: Vec<Value> =
                serde_json::from_str(&std::fs::read_to_string(folder.join("tools.json")).unwrap())
                    .unwrap();
            let from: usize = params["cursor"]
                .as_str()
                .map_or(0, |cursor| cursor.parse().unwrap());
            let mut page = json!({"tools": tools.iter().skip(from).take(2).collect::<Vec<_>>()});
            if from + 2 < tools.len() {
                page["nextCursor"] = (from + 2).to_string().into();
            }
            reply(page);
        }
        "tools/call" => {
            let folder = folder.to_owned();
            let request = request.clone();
            call(&folder, &request, say);
        }
        "notifications/cancelled" => note(folder, "cancelled", &params["requestId"].to_string()),
        _ => {}
    }
}

fn call(folder: &Path, request: &Value, say: &(dyn Fn(&Value) + Sync)) {
    let id = request["id"].clone();
    let arguments = request["params"]["arguments"].clone();
    let reply =
        |content: Value| say(&json!({"jsonrpc": "2.0", "id": id, "result": {"content": content}}));
    let text = |text: &str| reply(json!([{"type": "text", "text": text}]));
    let name = request["params"]["name"].as_str().unwrap();
    note(folder, "called", name);
    match name {
        "echo" => text(&arguments.to_string()),
        "meta" => text(&request["params"]["_meta"].to_string()),
        "two_parts" => {
            reply(json!([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]))
        }
        "pid" => text(&std::process::id().to_string()),
        "env" => {
            let names: Vec<String> = std::env::vars()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            text(&names.join("\n"));
        }
        "touch" => match std::fs::write(arguments["path"].as_str().unwrap(), "") {
            Ok(()) => text("written"),
            Err(e) => text(&e.to_string()),
        },
        "fail" => say(
            &json!({"jsonrpc": "2.0", "id": id, "result": {"isError": true, "content": [{"type": "text", "text": "no luck"}]}}),
        ),
        "refuse" => say(
            &json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "bad luck"}}),
        ),
        "refuse_long" => say(
            &json!({"jsonrpc": "2.0", "id": id, "error": {"code": -1, "message": format!("{}end", "E".repeat(5_000_000))}}),
        ),
        "progress_long" => {
            let token = &request["params"]["_meta"]["progressToken"];
            let message = format!(
                "{}{}",
                "P".repeat(4092),
                "s3cret-canary\u{20ac}".repeat(100_000)
            );
            say(
                &json!({"jsonrpc": "2.0", "method": "notifications/progress",
                "params": {"progressToken": token, "progress": 1, "total": 2, "message": message}}),
            );
            text("done");
        }
        // The result is an argument.
        "result" => say(&json!({"jsonrpc": "2.0", "id": id, "result": arguments["result"]})),
        "structured" => say(
            &json!({"jsonrpc": "2.0", "id": id, "result": {"content": [], "structuredContent": {"n": 1.50}}}),
        ),
        "odd" => reply(json!([{"type": "hologram", "data": "x"}])),
        "image" => reply(
            json!([{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "x://y", "blob": "AAEC", "mimeType": "application/x-y"}},
            {"type": "resource_link", "uri": "x://z", "name": "z"}]),
        ),
        "progress" => {
            let token = &request["params"]["_meta"]["progressToken"];
            for (progress, message) in [(1, "one"), (3, "three")] {
                say(
                    &json!({"jsonrpc": "2.0", "method": "notifications/progress",
                    "params": {"progressToken": token, "progress": progress, "total": 4, "message": message}}),
                );
            }
            text("done");
        }
        // Answers when the file `go` is there; tells by the file `waiting` how many wait.
        "wait" => {
            let folder = folder.to_owned();
            std::thread::spawn(move || {
                note(&folder, "waiting", "x");
                while !folder.join("go").exists() {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                crate::server::say(
                    &json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "went"}]}}),
                );
            });
        }
        "spawn" => {
            let mut child = std::process::Command::new(std::env::current_exe().unwrap());
            child
                .args(["mcp-sleep".as_ref(), folder.as_os_str()])
                .stdout(std::process::Stdio::null());
            let mut child = child.spawn().unwrap();
            std::thread::spawn(move || child.wait());
            text("spawned");
        }
        "crash" => {
            eprintln!("out of cheese");
            std::process::exit(3);
        }
        // Mistakes of servers, see fixtures/hostile-inputs.md, bad-77.
        "log" => {
            println!("I am a log line");
            text("after the log");
        }
        // An answer that is not a message: `jsonrpc` is missing.
        "no_message" => say(&json!({"id": id, "result": {"content": []}})),
        "no_id" => say(
            &json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "cannot read that"}}),
        ),
        "wrong_id" => {
            say(
                &json!({"jsonrpc": "2.0", "id": 4711, "result": {"content": [{"type": "text", "text": "wrong"}]}}),
            );
            text("right");
        }
        // The id is a text of the same digits.
        "text_id" => {
            let id = id.to_string();
            say(
                &json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "a text"}]}}),
            );
        }
        // An id that only a reader of numbers takes for the same.
        "padded_id" => {
            let id = format!("0{id}");
            say(
                &json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "wrong"}]}}),
            );
            text("right");
        }
        "twice" => {
            text("first");
            text("second");
        }
        "asks" => {
            let mut out = std::io::stdout().lock();
            // Without an end, and without reading one answer: the client leaves before that.
            for id in 0..1_000_000 {
                let ask = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
                if writeln!(out, "{ask}").is_err() {
                    return;
                }
            }
        }
        "long" => {
            let mut out = std::io::stdout().lock();
            let piece = vec![b'x'; 1 << 20];
            // Without an end, up to a gigabyte: the reader leaves before that.
            for _ in 0..1024 {
                if out.write_all(&piece).is_err() {
                    return;
                }
            }
        }
        // How many of the next lists are left without an answer, and how many fail, are arguments.
        "change" => {
            for name in ["lists_lost", "lists_failed"] {
                let count = usize::try_from(arguments[name].as_u64().unwrap_or(0)).unwrap();
                std::fs::write(folder.join(name), "x\n".repeat(count)).unwrap();
            }
            let changed = std::fs::read_to_string(folder.join("changed.json")).unwrap();
            std::fs::write(folder.join("tools.json"), changed).unwrap();
            say(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
            text("changed");
        }
        other => text(&format!("no tool {other}")),
    }
}

/// Writes a message as a line.
pub(crate) fn say(message: &Value) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{message}"); // fails when the client has left
    let _ = out.flush();
}

/// Adds a line to a file of the folder.
fn note(folder: &Path, name: &str, line: &str) {
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(folder.join(name))
        .unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Takes a line away from a file of the folder; whether there was one.
fn take_line(folder: &Path, name: &str) -> bool {
    let text = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    let Some((_, rest)) = text.split_once('\n') else {
        return false;
    };
    std::fs::write(folder.join(name), rest).unwrap();
    true
}

/// How many processes work for the server in the folder: it, and what it started. They have the
/// folder in their command lines.
pub(crate) fn processes(folder: &Path) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let has = |entry: &std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0)
            .any(|item| item == folder.as_os_str().as_encoded_bytes())
    };
    entries.filter(has).count()
}

/// A tool as a server lists it.
pub(crate) fn listed(name: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}."), "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": true, "destructiveHint": false}})
}

/// A folder with the tools of a server.
pub(crate) fn with_tools(dir: &Dir, server: &str, tools: &[&str]) -> PathBuf {
    let folder = dir.path(server);
    std::fs::create_dir_all(&folder).unwrap();
    write_tools(
        &folder,
        &tools.iter().map(|name| listed(name)).collect::<Vec<_>>(),
    );
    folder
}

/// Gives a server other tools.
pub(crate) fn write_tools(folder: &Path, tools: &[Value]) {
    std::fs::write(folder.join("tools.json"), json!(tools).to_string()).unwrap();
}

/// The entry of `mcpServers` for the server in the folder, with more members.
pub(crate) fn entry(folder: &Path, more: &Value) -> Value {
    let program = std::env::current_exe().unwrap();
    with(
        json!({"command": program, "args": ["mcp-server", folder]}),
        more,
    )
}

/// The command over the tools file `tools.json` of the folder with these contents.
pub(crate) fn command(dir: &Dir, file: &Value, args: &[&str]) -> std::process::Command {
    let program = std::process::Command::new(testkit::program("tool-exec"));
    harness::command_over(program, dir, file, args)
}

/// Runs the command over a turn of calls of `(id, name, arguments)`, which all may run.
pub(crate) fn run_calls(
    dir: &Dir,
    file: &Value,
    calls: &[(&str, &str, Value)],
    args: &[&str],
) -> Out {
    let args = [&["--no-time", "--ask", "none"][..], args].concat();
    run_command(command(dir, file, &args), &(message(calls) + "\n"))
}

/// Locks the tools of the servers as they are.
pub(crate) fn lock(dir: &Dir, file: &Value) -> Out {
    let out = run_command(command(dir, file, &["--update-lock"]), "");
    assert_eq!(out.status, 0, "{}", out.errors);
    out
}

/// One server `s` with these tools, locked; its folder, and the contents of the tools file.
pub(crate) fn locked(dir: &Dir, tools: &[&str], more: &Value) -> (PathBuf, Value) {
    let folder = with_tools(dir, "s", tools);
    let file = json!({"mcpServers": {"s": entry(&folder, more)}});
    lock(dir, &file);
    (folder, file)
}
