//! All commands in one binary: by a link, by the first argument, and where a command starts itself
//! or another one again.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use testkit::{Conversation, Ran, Scratch, root};

const TOOLPIPE: &str = env!("CARGO_BIN_EXE_toolpipe");

fn toolpipe(arguments: &[&str]) -> Ran {
    let mut command = Command::new(TOOLPIPE);
    command.args(arguments);
    run(command)
}

fn run(mut command: Command) -> Ran {
    command.stdin(Stdio::null());
    Ran::from(command.output().unwrap())
}

/// The names of the commands, as `toolpipe` lists them.
fn names() -> Vec<String> {
    let listed = toolpipe(&[]);
    assert_eq!(listed.status, 0, "{listed:?}");
    let name = |line: &str| line.split_once(' ').unwrap().0.to_owned();
    listed.stdout.lines().map(name).collect()
}

/// A folder with a copy of the binary, so that no other command is beside it.
pub(crate) fn alone() -> Scratch {
    let folder = Scratch::new();
    // By a process of its own: a file that this process has open for writing cannot be run, and a
    // test beside this one that starts a process hands it on.
    let mut copy = Command::new("cp");
    copy.arg(TOOLPIPE).arg(folder.path("toolpipe"));
    assert!(copy.status().unwrap().success());
    folder
}

/// Runs a script in the folder, which comes first in its PATH.
pub(crate) fn sh(folder: &Scratch, script: &str) -> Ran {
    run(bash(folder, script))
}

/// A shell in the folder, which comes first in its PATH.
pub(crate) fn bash(folder: &Scratch, script: &str) -> Command {
    let mut shell = Command::new("bash");
    let path = std::env::var("PATH").unwrap();
    shell
        .args(["-euo", "pipefail", "-c", script])
        .current_dir(folder.path("."))
        .env("PATH", format!("{}:{path}", folder.path("").display()))
        .env("FIXTURES", root().join("fixtures"))
        .env("RESERVATIONS", folder.path("reserved"))
        .env("XDG_STATE_HOME", folder.path(""))
        .stdin(Stdio::null());
    shell
}

#[test]
fn every_command_is_in_the_list() {
    let commands = std::fs::read_dir(root().join("bin")).unwrap().flatten();
    let commands: BTreeSet<String> = commands
        .filter(|entry| entry.path().join("src/lib.rs").is_file())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    assert_eq!(commands, names().into_iter().collect());
}

#[test]
fn a_link_and_the_first_argument_name_the_command() {
    let folder = alone();
    assert_eq!(sh(&folder, "toolpipe --link .").status, 0);
    for name in names() {
        let version = |ran: Ran| (ran.status, ran.stdout, ran.stderr);
        let by_link = version(sh(&folder, &format!("{name} --version")));
        assert_eq!(by_link.0, 0, "{by_link:?}");
        assert!(by_link.1.starts_with(&format!("{name} ")), "{by_link:?}");
        assert_eq!(by_link, version(toolpipe(&[&name, "--version"])));
    }
}

#[test]
fn a_word_that_is_not_a_command_is_refused_with_a_similar_one() {
    let ran = toolpipe(&["llm-strem", "-m", "x"]);
    assert!(ran.refusal().contains("'llm-stream'"), "{ran:?}");
}

#[test]
fn a_link_replaces_a_link_and_no_other_file() {
    let folder = alone();
    folder.write("tc-view", "mine");
    let ran = sh(&folder, "toolpipe --link .");
    assert!(ran.refusal().contains("tc-view"), "{ran:?}");
    assert_eq!(folder.read("tc-view"), "mine");
    std::fs::remove_file(folder.path("tc-view")).unwrap();
    for _ in 0..2 {
        assert_eq!(
            sh(&folder, "toolpipe --link . && toolpipe --link deep/er").status,
            0
        );
    }
    let link = std::fs::read_link(folder.path("tc-view")).unwrap();
    assert_eq!(link, Path::new("toolpipe"));
    assert!(folder.path("deep/er/tc-view").is_file());
}

/// The supervisor and the launch stage of a call, and the trial of a sandbox, are this program
/// again.
#[test]
fn tool_exec_starts_itself_again() {
    let folder = alone();
    let turn = r#"
        turn() {
            toolpipe llm-stream --tape $FIXTURES/tapes/huts.tape -t $FIXTURES/tools/tools.json \
                'We are four and would like to spend Saturday night in a hut by a lake. Can you reserve one, and what should we pack?'
        }"#;
    let with = |stages: &str| {
        let ran = sh(&folder, &format!("{turn}\nturn | {stages}"));
        assert_eq!(ran.status, 0, "{ran:?}");
        let result = ran.event("tool_result");
        assert_eq!(result["status"], "success", "{ran:?}");
        result["output"].to_string()
    };
    let tools = "--no-time --trust -t $FIXTURES/tools/tools.json";
    let alone = with(&format!(
        "toolpipe tc-accumulate | toolpipe tool-exec {tools}"
    ));
    assert_eq!(sh(&folder, "toolpipe --link .").status, 0);
    let linked = with(&format!("tc-accumulate | tool-exec {tools}"));
    assert_eq!(alone, linked);
    // What confines commands is tried by the same words, whichever way the command was called.
    let doctor = |command: &str| sh(&folder, &format!("{command} --doctor")).stdout;
    let found = doctor("tool-exec");
    assert!(
        !found.contains("unrecognized") && !found.contains("unexpected argument"),
        "{found}"
    );
    assert_eq!(found, doctor("toolpipe tool-exec"));
    let trial = sh(
        &folder,
        "toolpipe tool-exec --doctor --sandbox landlock || :",
    );
    assert!(!trial.stderr.contains("unexpected argument"), "{trial:?}");
}

const SERVER: &str = r#"echo started >>started
while read -r line; do
    id=${line##*\"id\":} id=${id%%[!0-9]*}
    case $line in
    *'"method":"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"t","version":"1"}}' ;;
    *'"method":"tools/list"'*) result='{"tools":[{"name":"beds","description":"Free beds.","inputSchema":{"type":"object"}}]}' ;;
    *) continue ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

/// `tc-serve` begins again under `tool-exec --hub`, and asks `tool-exec` for the tools.
#[test]
fn tc_serve_runs_servers_of_tools_with_no_other_command_in_reach() {
    let folder = alone();
    folder.write("server.sh", SERVER);
    let tools = format!(
        r#"{{"mcpServers":{{"huts":{{"command":"sh","args":["server.sh"],"cwd":"{}","class":"read"}}}}}}"#,
        folder.path("").display()
    );
    folder.write("tools.json", tools);
    let locked = sh(&folder, "toolpipe tool-exec -t tools.json --update-lock");
    assert_eq!(locked.status, 0, "{locked:?}");
    let before = folder.read("started").lines().count();
    let mut service = Command::new(folder.path("toolpipe"));
    service
        .args("tc-serve --listen 127.0.0.1:0 --tools tools.json --sessions sessions".split(' '))
        .args(["--base-url", "http://127.0.0.1:9"])
        .current_dir(folder.path("."));
    let service = Conversation::start(service);
    assert!(service.hear().starts_with("http://"));
    assert_eq!(folder.read("started").lines().count(), before + 1);
    assert!(testkit::kill(service.id(), "TERM"));
    service.end();
}
