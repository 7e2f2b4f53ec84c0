//! A hub: servers of tools that outlive a turn.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::harness::{Dir, Out, code, events, kill, message, needs, wait_until};
use crate::server::{self, entry, listed, locked, processes, with_tools, write_tools};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A turn: the name of its file, and its calls of `(id, name, arguments)`.
type Turn<'a> = (&'a str, &'a [(&'a str, &'a str, Value)]);

/// The command that a hub runs: a script, in which `$T` runs tool-exec over the tools file, and
/// `NAME.in` are turns.
fn hub(dir: &Dir, file: &Value, turns: &[Turn<'_>], script: &str) -> Command {
    for (name, calls) in turns {
        dir.write(&format!("{name}.in"), message(calls) + "\n");
    }
    let mut command = server::command(dir, file, &["--hub", "--", "sh", "-c", script]);
    let tools = dir.path("tools.json");
    let run = format!(
        "{} --no-time --ask none --tools {}",
        env!("CARGO_BIN_EXE_tool-exec"),
        tools.display()
    );
    command.env("T", run).env("XDG_RUNTIME_DIR", dir.path("."));
    command
}

fn run(mut command: Command) -> Out {
    let out = command.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let events = if text.starts_with('{') {
        events(&text)
    } else {
        vec![]
    };
    Out {
        status: code(out.status),
        errors: String::from_utf8(out.stderr).unwrap(),
        events,
        text,
    }
}

fn started(folder: &Path) -> usize {
    std::fs::read_to_string(folder.join("started"))
        .unwrap_or_default()
        .lines()
        .count()
}

#[test]
fn servers_start_once_for_a_command_and_end_with_it() {
    let dir = Dir::new();
    let (folder, file) = locked(&dir, &["pid", "progress", "spawn"], &json!({}));
    let before = started(&folder);
    let turns: [(&str, &[_]); 2] = [
        (
            "a",
            &[("a", "s__pid", json!({})), ("s", "s__spawn", json!({}))],
        ),
        (
            "b",
            &[("b", "s__pid", json!({})), ("p", "s__progress", json!({}))],
        ),
    ];
    let script = "stat -c %a \"$(dirname \"$TOOLPIPE_HUB\")\" >mode; $T a.in >a.out; $T --progress b.in >b.out & $T a.in >c.out & wait; cat a.out b.out c.out; exit 7";
    let out = run(hub(&dir, &file, &turns, script));
    assert_eq!(
        (out.status, dir.read("mode").trim()),
        (7, "700"),
        "{}",
        out.errors
    );
    let pids: Vec<&str> = out
        .of("tool_result")
        .iter()
        .filter(|e| e["tool_name"] == "s__pid")
        .map(|e| e["output"].as_str().unwrap())
        .collect();
    assert!(
        pids.len() == 3 && pids[0] == pids[1] && pids[1] == pids[2],
        "{pids:?}"
    );
    assert_eq!(started(&folder), before + 1);
    let steps: Vec<_> = out
        .of("tool_progress")
        .iter()
        .map(|e| (e["progress"].as_f64(), e["text"].clone()))
        .collect();
    assert_eq!(
        steps,
        [(Some(0.25), json!("one")), (Some(0.75), json!("three"))]
    );
    wait_until("the server is gone", || processes(&folder) == 0);
    let left = std::fs::read_dir(dir.path("."))
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().into_string().unwrap());
    assert_eq!(
        left.filter(|name| name.starts_with("toolpipe-hub")).count(),
        0,
        "the socket is removed"
    );
}

#[test]
fn the_processes_above_a_server_keep_no_file_of_the_hub_open() {
    let dir = Dir::new();
    let (_, file) = locked(&dir, &["pid"], &json!({}));
    let turns: [(&str, &[_]); 1] = [("a", &[("a", "s__pid", json!({}))])];
    let script = "$T a.in; for p in /proc/[0-9]*; do \
        ls -l $p/fd 2>/dev/null | grep -q \"$PWD/held\" && tr '\\0' ' ' <$p/cmdline; done >holders";
    let hub = hub(&dir, &file, &turns, script);
    let mut command = Command::new("sh");
    command
        .args(["-c", "exec 9>held; exec \"$@\"", "sh"])
        .arg(hub.get_program())
        .args(hub.get_args());
    command.current_dir(hub.get_current_dir().unwrap());
    let variables = hub.get_envs();
    command.envs(variables.filter_map(|(name, value)| Some((name, value?))));
    let out = run(command);
    assert_eq!(out.outcome("a").0, "success", "{}", out.errors);
    let holders = dir.read("holders");
    if !holders.contains("--hub") {
        needs::skip("the files of a hub are out of reach here");
        return;
    }
    assert!(!holders.contains("--supervise"), "{holders}");
}

#[test]
fn a_change_that_one_client_could_not_check_blocks_the_next_one_74() {
    let dir = Dir::new();
    let (folder, file) = locked(&dir, &["change", "echo"], &json!({"timeout": "500ms"}));
    let mut other = listed("echo");
    other["description"] = "Other.".into();
    std::fs::write(
        folder.join("changed.json"),
        json!([listed("change"), other]).to_string(),
    )
    .unwrap();
    let turns: [(&str, &[_]); 2] = [
        (
            "a",
            &[
                (
                    "a",
                    "s__change",
                    json!({"lists_lost": 1, "lists_failed": 1}),
                ),
                ("b", "s__echo", json!({})),
            ],
        ),
        (
            "b",
            &[
                ("c", "s__echo", json!({})),
                ("d", "s__echo", json!({})),
                ("e", "s__change", json!({})),
            ],
        ),
    ];
    let out = run(hub(
        &dir,
        &file,
        &turns,
        "$T --jobs 1 a.in; $T --jobs 1 b.in",
    ));
    let states: Vec<_> = ["a", "b", "c", "d", "e"]
        .iter()
        .map(|id| out.outcome(id).0)
        .collect();
    assert_eq!(
        states,
        ["success", "timeout", "error", "error", "success"],
        "{}",
        out.text
    );
    assert!(out.outcome("c").1.contains("no list"), "{}", out.text);
    assert!(
        out.outcome("d")
            .1
            .contains("differently from the lock file"),
        "{}",
        out.text
    );
    assert_eq!(
        std::fs::read_to_string(folder.join("called")).unwrap(),
        "change\nchange\n"
    );
}

#[test]
fn no_tool_gets_the_way_to_the_hub() {
    let dir = Dir::new();
    let folder = with_tools(&dir, "s", &["env"]);
    let more = json!({"env": {"TOOLPIPE_HUB": "x", "COPY": "${TOOLPIPE_HUB:-nothing}"}});
    let own = json!([{"name": "own", "exec": {"command": ["env"], "env": ["TOOLPIPE_HUB", "XDG_RUNTIME_DIR"]}}]);
    let file = json!({"tools": own, "mcpServers": {"s": entry(&folder, &more)}});
    server::lock(&dir, &file);
    let turns: [(&str, &[_]); 1] = [("a", &[("a", "s__env", json!({})), ("b", "own", json!({}))])];
    let out = run(hub(&dir, &file, &turns, "$T a.in"));
    assert!(
        out.outcome("a").1.contains("COPY=nothing") && !out.outcome("a").1.contains("TOOLPIPE_HUB"),
        "{}",
        out.outcome("a").1
    );
    assert!(
        out.outcome("b").1.contains("XDG_RUNTIME_DIR=")
            && !out.outcome("b").1.contains("TOOLPIPE_HUB"),
        "{}",
        out.outcome("b").1
    );
}

/// Connects to the socket that is its argument, greets it for other servers, and prints what comes
/// back and its own PID namespace.
const GREET: &str = r#"import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
try:
    s.sendall(b'{"hello":{"version":1,"servers":"0000"}}\n')
    print(s.makefile().read())
except OSError:
    pass
print(os.readlink("/proc/self/ns/pid"))"#;

#[test]
fn a_command_of_a_tool_that_finds_the_socket_is_not_served() {
    if !needs::programs(&["python3"]) {
        return;
    }
    let dir = Dir::new();
    let folder = with_tools(&dir, "s", &["pid"]);
    let script = format!(
        "exec python3 {0}/greet $(cat {0}/socket)",
        dir.path(".").display()
    );
    let own = json!([{"name": "own", "exec": {"command": ["sh", "-c", script]}}]);
    let file = json!({"tools": own, "mcpServers": {"s": entry(&folder, &json!({}))}});
    dir.write("greet", GREET);
    server::lock(&dir, &file);
    let turns: [(&str, &[_]); 1] = [("a", &[("a", "own", json!({}))])];
    let out = run(hub(
        &dir,
        &file,
        &turns,
        "echo $TOOLPIPE_HUB >socket; python3 greet $TOOLPIPE_HUB >beside; $T a.in",
    ));
    assert!(
        dir.read("beside").contains("refused"),
        "a process beside the hub gets an answer: {}",
        dir.read("beside")
    );
    let output = out.outcome("a").1;
    if output.contains(
        std::fs::read_link("/proc/self/ns/pid")
            .unwrap()
            .to_str()
            .unwrap(),
    ) {
        needs::skip("there are no PID namespaces here");
        return;
    }
    assert!(
        output.contains("pid:[") && !output.contains("refused"),
        "{output}"
    );
}

#[test]
fn a_hub_with_other_servers_and_one_that_is_gone_are_clear_errors() {
    let dir = Dir::new();
    let (folder, file) = locked(&dir, &["pid"], &json!({}));
    let other = json!({"mcpServers": {"s": entry(&folder, &json!({"class": "read"}))}});
    std::fs::create_dir(dir.path("other")).unwrap();
    dir.write("other/tools.json", other.to_string());
    std::fs::copy(
        dir.path("tools.json.lock"),
        dir.path("other/tools.json.lock"),
    )
    .unwrap();
    let turns: [(&str, &[_]); 1] = [("a", &[("a", "s__pid", json!({}))])];
    let script = "T=${T% --tools*}; $T --tools other/tools.json a.in; echo $? >status";
    let out = run(hub(&dir, &file, &turns, script));
    assert_eq!(dir.read("status"), "2\n", "{}", out.errors);
    assert!(
        out.errors
            .contains("mcpServers, or its --sandbox, are not those that the hub was started with"),
        "{}",
        out.errors
    );
    // A link that leads to another folder now: the rules of a client's policy would be about a
    // folder in which the server does not run.
    for name in ["one", "two"] {
        std::fs::create_dir(dir.path(name)).unwrap();
    }
    std::os::unix::fs::symlink("one", dir.path("here")).unwrap();
    let moving = json!({"mcpServers": {"s": entry(&folder, &json!({"cwd": "here"}))}});
    let out = run(hub(
        &dir,
        &moving,
        &turns,
        "$T a.in; ln -sfn two here; $T a.in; echo $? >status",
    ));
    assert_eq!(
        (dir.read("status").as_str(), out.of("tool_result").len()),
        ("2\n", 1),
        "{}",
        out.errors
    );
    assert!(
        out.errors
            .contains("the cwd of a server leads to another folder now"),
        "{}",
        out.errors
    );
    let out = run(hub(
        &dir,
        &file,
        &turns,
        "TOOLPIPE_HUB=/no/socket $T a.in; echo $? >status",
    ));
    assert_eq!(dir.read("status"), "2\n");
    assert!(
        out.errors
            .contains("the hub /no/socket (TOOLPIPE_HUB) does not answer"),
        "{}",
        out.errors
    );
}

#[test]
fn a_server_that_dies_under_a_hub_starts_again() {
    let dir = Dir::new();
    let (_, file) = locked(&dir, &["crash", "pid"], &json!({}));
    let turns: [(&str, &[_]); 2] = [
        ("a", &[("a", "s__crash", json!({}))]),
        ("b", &[("b", "s__pid", json!({}))]),
    ];
    let out = run(hub(&dir, &file, &turns, "$T a.in; $T b.in"));
    let (status, why) = out.outcome("a");
    assert!(
        status == "error" && why.contains("it has ended") && why.contains("out of cheese"),
        "{why}"
    );
    assert_eq!(out.outcome("b").0, "success");
    assert!(
        out.errors
            .contains("the server \"s\" has ended and is started again"),
        "{}",
        out.errors
    );
}

#[test]
fn tools_that_are_not_as_they_were_locked_block_the_hub_and_its_calls_74() {
    let dir = Dir::new();
    let (folder, file) = locked(&dir, &["change", "echo"], &json!({}));
    let mut other = listed("echo");
    other["description"] = "Other.".into();
    std::fs::write(
        folder.join("changed.json"),
        json!([listed("change"), other]).to_string(),
    )
    .unwrap();
    let turns: [(&str, &[_]); 2] = [
        ("a", &[("a", "s__change", json!({}))]),
        ("b", &[("b", "s__echo", json!({}))]),
    ];
    let out = run(hub(
        &dir,
        &file,
        &turns,
        "$T a.in; $T b.in; echo $? >status; $T --list; echo $? >list",
    ));
    assert_eq!(
        (out.outcome("a").0, out.outcome("b").0),
        ("success", "error")
    );
    assert_eq!(
        (dir.read("status"), dir.read("list")),
        ("2\n".to_owned(), "2\n".to_owned())
    );
    assert!(out.errors.contains("+ Other."), "{}", out.errors);
    // It does not start over such tools.
    let out = run(hub(&dir, &file, &turns, "touch ran"));
    assert!(
        out.status == 2 && out.errors.contains("+ Other.") && !dir.path("ran").exists(),
        "{}",
        out.errors
    );
    // Nor over a lock file that does not know a server.
    write_tools(&folder, &[listed("change"), listed("echo")]);
    std::fs::remove_file(dir.path("tools.json.lock")).unwrap();
    let out = run(hub(&dir, &file, &turns, "touch ran"));
    assert!(
        out.status == 2 && out.errors.contains("--update-lock") && !dir.path("ran").exists(),
        "{}",
        out.errors
    );
}

#[test]
fn a_client_that_is_killed_has_its_calls_cancelled() {
    let dir = Dir::new();
    let (folder, file) = locked(&dir, &["wait", "pid"], &json!({"timeout": "60s"}));
    let turns: [(&str, &[_]); 2] = [
        ("a", &[("a", "s__wait", json!({}))]),
        ("b", &[("b", "s__pid", json!({}))]),
    ];
    let script = "$T a.in >/dev/null & until [ -e s/waiting ]; do :; done; kill -9 $!; until [ -e s/cancelled ]; do :; done; $T b.in";
    let out = run(hub(&dir, &file, &turns, script));
    assert_eq!(out.outcome("b").0, "success", "{}", out.errors);
    assert_eq!(
        std::fs::read_to_string(folder.join("cancelled"))
            .unwrap()
            .lines()
            .count(),
        1
    );
}

#[test]
fn signals_go_to_the_command_and_a_hub_that_is_killed_ends_its_servers() {
    let dir = Dir::new();
    let (folder, file) = locked(&dir, &["pid"], &json!({}));
    let script = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.02; done";
    let start = |script: &str| {
        let mut command = hub(&dir, &file, &[], script);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut ready).unwrap();
        assert_eq!((ready.as_str(), processes(&folder)), ("ready\n", 1));
        (child, output)
    };
    let (mut child, _output) = start(script);
    kill(child.id(), "TERM");
    assert_eq!(code(child.wait().unwrap()), 9);
    assert_eq!(processes(&folder), 0);
    // The command of a hub that is killed goes on; here it ends with its folder, which may be gone
    // before the command sees `go`.
    let (mut child, _output) =
        start("echo ready; until [ -e go ] || ! [ -e \"$PWD\" ]; do sleep 0.01; done");
    kill(child.id(), "KILL");
    child.wait().unwrap();
    wait_until("the server is gone", || processes(&folder) == 0);
    dir.write("go", "");
}

#[test]
fn the_socket_is_for_this_user_alone_and_nonsense_closes_it() {
    let dir = Dir::new();
    let (_, file) = locked(&dir, &["pid"], &json!({}));
    let script = "echo \"$TOOLPIPE_HUB\"; until [ -e go ]; do sleep 0.01; done";
    let mut command = hub(&dir, &file, &[], script);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut path = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut path)
        .unwrap();
    let path = Path::new(path.trim());
    assert_eq!(
        path.parent()
            .unwrap()
            .metadata()
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o700
    );
    // A call before a greeting, a greeting for other servers, and text that is not a message.
    for line in [
        r#"{"call":{"id":1,"server":"s","tool":"pid","definition":"","arguments":{}}}"#,
        r#"{"hello":{"version":1,"servers":"0000"}}"#,
        "nonsense",
    ] {
        use std::io::Write;
        let mut stream = std::os::unix::net::UnixStream::connect(path).unwrap();
        writeln!(stream, "{line}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap(); // the hub closes it
        assert!(answer.is_empty() || answer.contains("refused"), "{answer}");
    }
    dir.write("go", "");
    assert_eq!(code(child.wait().unwrap()), 0);
}

#[test]
fn a_hub_serves_a_tools_file_beside_programs() {
    let dir = Dir::new();
    let (_folder, file) = locked(&dir, &["echo"], &json!({}));
    let program = dir.path("x.sh");
    std::fs::write(&program, "#!/bin/sh\n# @describe X.\n").unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let both = format!("-t {}", program.display());
    let mut command = hub(&dir, &file, &[], &format!("$T {both} --list"));
    // The hub gets the sources in the order in which its clients get them.
    let words: Vec<_> = command.get_args().map(std::ffi::OsStr::to_owned).collect();
    let at = words.iter().position(|word| word == "--hub").unwrap();
    let mut with_program = Command::new(command.get_program());
    with_program
        .args(&words[..at])
        .args(["-t".as_ref(), program.as_os_str()])
        .args(&words[at..])
        .envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
    command = with_program;
    let out = run(command);
    assert!(
        out.status == 0 && out.text.contains("s__echo") && out.text.contains("\"x\""),
        "{} {}",
        out.text,
        out.errors
    );
}
