//! Commands that lack something of the system's: open files, threads, standard files.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use testkit::needs;

/// Each command with work that needs everything it ever opens: threads, signals, processes, a
/// network.
const COMMANDS: [&str; 10] = [
    "llm-stream --replay $ROOT/fixtures/tapes/huts.tape",
    "llm-stream --replay - --api openai-chat",
    "llm-stream --tape $ROOT/fixtures/tapes/huts.tape --model demo Hello",
    "llm-stream --base-url http://localhost:1/v1 --model demo --retries 0 --no-time Hello",
    "tag-parse $SCRATCH/turn",
    "tc-detect $SCRATCH/turn",
    "tc-accumulate $SCRATCH/turn",
    "tc-view $SCRATCH/turn",
    "tool-exec --no-time --tools $SCRATCH/tools.json $SCRATCH/turn",
    "tool-exec --tools $SCRATCH/tools.json --dry-run $SCRATCH/turn",
];

const TURN: &str = r#"{"type":"stream_start","v":1}
{"type":"tool_call","index":0,"tool_id":"a","tool_name":"pwd","arguments":{},"commit":"balanced"}
{"type":"message","message":{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"pwd","arguments":"{}"}}]}}
{"type":"stream_end","finish_reason":"tool_calls"}
"#;

/// A folder that every user may read, removed when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("toolpipe-limits-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder for the test");
        fs::write(path.join("turn"), TURN).expect("written");
        let tools = r#"[{"name":"pwd","parameters":{"type":"object"},"exec":{"command":["pwd"],"cwd":"/"}}]"#;
        fs::write(path.join("tools.json"), tools).expect("written");
        Scratch(path)
    }

    /// Status, standard output and standard error.
    fn run(&self, script: &str) -> (i32, String, String) {
        let mut bash = testkit::bash(script, &self.0);
        bash.env("SCRATCH", &self.0).env("ROOT", testkit::root());
        let output = bash.stdin(Stdio::null()).output().expect("bash runs");
        let [out, err] = [&output.stdout, &output.stderr]
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        (output.status.code().unwrap_or(-1), out, err)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn name(command: &str) -> &str {
    let program = command.split(' ').next().unwrap_or_default();
    program.rsplit('/').next().unwrap_or_default()
}

/// Whether the command refused to work: one line on standard error, and status 2.
fn is_refusal(command: &str, (status, out, err): &(i32, String, String)) -> bool {
    *status == 2
        && out.is_empty()
        && err.starts_with(&format!("{}: ", name(command)))
        && err.lines().count() == 1
}

/// Checks what a command does under a limit: it refuses with one line, or it reports later what it
/// could not do, in an `error` event or in the result of a tool.
fn check(command: &str, limit: &str, got: &(i32, String, String), want: &(i32, String, String)) {
    let (status, out, err) = got;
    assert!(
        !err.contains("panicked"),
        "{limit} {command}: {status} {err}"
    );
    let is_result = *status == 0
        && out.contains(r#""status":"error","output":"The command could not be started: "#);
    let reports =
        is_result || (*status == 2 && out.contains(r#"{"type":"error","source":"llm-stream""#));
    assert!(
        got == want || is_refusal(command, got) || reports,
        "{limit} {command}: {status}\n{out}\n{err}"
    );
}

#[test]
fn where_files_cannot_be_opened_a_command_says_so() {
    let scratch = Scratch::new("files");
    for command in COMMANDS {
        let want = scratch.run(&format!("exec {command}"));
        let mut refused = 0;
        for limit in 4..24 {
            let got = scratch.run(&format!("ulimit -n {limit}; exec {command}"));
            refused += u32::from(is_refusal(command, &got));
            check(command, &format!("ulimit -n {limit}"), &got, &want);
        }
        // A dry run starts nothing and needs the least.
        assert!(
            refused > 0 || command.contains("--dry-run"),
            "{command} is not refused, so nothing was tested"
        );
    }
}

#[test]
fn where_threads_and_processes_cannot_be_started_a_command_says_so() {
    if !needs::programs(&["setpriv"]) {
        return;
    }
    let scratch = Scratch::new("threads");
    let mut refused = Vec::new();
    for command in COMMANDS {
        // The limit does not apply to root, so another user runs the command then.
        let script = format!("ulimit -u 1; exec {command}");
        let other = "setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all";
        let [want, got] = [format!("exec {command}"), script].map(|script| {
            scratch.run(&format!(
                "if [ $(id -u) = 0 ]; then exec {other} bash -c '{script}'; fi; {script}"
            ))
        });
        assert!(
            (0..=3).contains(&want.0),
            "{command} cannot be run by another user: {want:?}"
        );
        check(command, "ulimit -u 1", &got, &want);
        refused.extend(is_refusal(command, &got).then(|| name(command)));
    }
    assert!(
        ["llm-stream", "tool-exec"]
            .iter()
            .all(|name| refused.contains(name)),
        "only {refused:?} need threads"
    );
}

#[test]
fn a_closed_standard_error_changes_nothing_else() {
    let scratch = Scratch::new("error");
    for command in COMMANDS {
        let [want, got] =
            ["2>/dev/null", "2>&-"].map(|error| scratch.run(&format!("{command} {error}")));
        assert_eq!(got, want, "{command}");
    }
}

/// A device has no end: of a file that a person names 64 MiB are read, and no more.
#[test]
fn a_file_without_end_is_refused() {
    let scratch = Scratch::new("endless");
    let rows = [
        "llm-stream --dry-run -m m --schema /dev/zero Hi",
        "llm-stream --dry-run -m m --dialect-file /dev/zero Hi",
        "llm-stream --base-url http://127.0.0.1:1 -m m --api-key-file /dev/zero Hi",
        "llm-stream --dry-run -m m -t /dev/zero Hi",
        "llm-stream --dry-run -m m --attach /dev/zero Hi",
        "llm-stream --dry-run -m m --text /dev/zero Hi",
        "tag-parse --dialect-file /dev/zero",
        "tool-exec -t /dev/zero",
        "tool-exec -t $SCRATCH/tools.json --policy /dev/zero",
        "tool-exec --describe /dev/zero",
        "react -t /dev/zero -m m Hi",
        "react --schema /dev/zero -m m Hi",
        "tc-serve --base-url http://127.0.0.1:1 --listen 127.0.0.1:0 --key-file /dev/zero",
    ];
    for command in rows {
        let got = scratch.run(&format!("ulimit -v 4194304; exec {command}"));
        let (status, out, err) = &got;
        assert!(
            (*status, &**out, err.lines().count()) == (2, "", 1) && err.contains("/dev/zero: "),
            "{command}: {got:?}"
        );
    }
}
