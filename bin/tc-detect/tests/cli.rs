//! `tc-detect` as a user runs it.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};

const START: &str = r#"{"type":"stream_start","v":1}"#;
const TEXT: &str = r#"{"type":"content_delta","text":"Let me look."}"#;
const CALL: &str = r#"{"type":"tool_call_delta","index":0,"tool_id":"a","tool_name":"read_file"}"#;
const END: &str = r#"{"type":"stream_end","finish_reason":"tool_calls"}"#;

fn detect(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tc-detect"));
    command
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn run(args: &[&str], input: &str) -> Output {
    let mut child = detect(args).spawn().unwrap();
    // A command that stops reading early is not a failure of the writer.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn lines(events: &[&str]) -> String {
    events.iter().map(|e| format!("{e}\n")).collect()
}

#[test]
fn the_status_is_the_answer() {
    let cut = r#"{"type":"stream_end","finish_reason":"cut"}"#;
    let error = r#"{"type":"error","source":"x","code":"y","message":"z","retryable":true}"#;
    let other = r#"{"type":"stream_start","stream":"b","v":1}"#;
    let other_end = r#"{"type":"stream_end","stream":"b","finish_reason":"stop"}"#;
    let nothing = r#"{"type":"tool_call_delta","index":0,"tool_id":"null","done":true}"#;
    let unnamed = r#"{"type":"tool_call_delta","index":0,"tool_id":"a"}"#;
    for (args, events, status) in [
        (&["-q"][..], &[START, TEXT, CALL, END][..], 0),
        (
            &["-q", "--checker", "first-chunk"],
            &[START, TEXT, CALL, END],
            1,
        ),
        (&["-q", "-c", "lookahead:5"], &[START, TEXT, CALL, END], 1),
        (&["-q", "-c", "lookahead:50"], &[START, TEXT, CALL, END], 0),
        (&["-q", "--name", "read_*"], &[START, CALL, END], 0),
        (&["-q", "--name", "write_*"], &[START, CALL, END], 1),
        (&["-q"], &[START, TEXT, cut], 3),
        (&["-q"], &[START, TEXT, error, cut], 3),
        (&["-q"], &[START, TEXT], 3),
        (&[], &[START, CALL, error, cut], 2),
        (&["-q"], &[other, other_end, START, CALL, END], 0),
        (&["-q"], &[other, other_end, START, TEXT, cut], 3),
        (&["-q"], &[], 3),
        (
            &["-q"],
            &[r#"{"type":"message","message":{"role":"user","content":"x"}}"#],
            1,
        ),
        (
            &[
                "-q",
                "-c",
                "cmd:case $(cat) in *tool_call_delta*) ;; *) exit 1 ;; esac",
            ],
            &[START, TEXT, CALL, END],
            0,
        ),
        (
            &[
                "-q",
                "-c",
                "cmd:case $(cat) in *no_such_thing*) ;; *) exit 1 ;; esac",
            ],
            &[START, TEXT, CALL, END],
            1,
        ),
        (&["-q", "-c", "cmd:exit 7"], &[START, TEXT, END], 3),
        (&["-q"], &[START, TEXT, END, START, CALL, END], 0),
        (&[], &[START, nothing, END], 1),
        (
            &["-c", "first-chunk"],
            &[START, nothing, TEXT, CALL, END],
            1,
        ),
        (
            &["-c", "first-chunk", "--name", "read_*"],
            &[START, unnamed, CALL, END],
            0,
        ),
    ] {
        let out = run(args, &lines(events));
        assert_eq!(
            out.status.code(),
            Some(status),
            "{args:?} {events:?}: {}",
            text(&out.stderr)
        );
        assert!(!args.contains(&"-q") || out.stdout.is_empty());
    }
}

/// A call that is written as text, in three deltas.
const WRITTEN: [&str; 3] = [
    r#"{"type":"content_delta","text":"\n\n<tool_"}"#,
    r#"{"type":"content_delta","text":"call>{\"name\": \"read_file\", "}"#,
    r#"{"type":"content_delta","text":"\"arguments\": {}}\n</tool_call>"}"#,
];

#[test]
fn a_call_that_is_written_as_text_counts() {
    let native =
        r#"{"type":"stream_start","v":1,"tools_mode":"native","dialect":"hermes","prefill":""}"#;
    let react =
        r#"{"type":"stream_start","v":1,"tools_mode":"tag","dialect":"react","prefill":""}"#;
    let tools = r#"{"type":"stream_start","v":1,"tools":[{"type":"function","function":{"name":"g"}}],"prefill":""}"#;
    let quoted = r#"{"type":"content_delta","text":"`<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>`"}"#;
    let [a, b, c] = WRITTEN;
    for (args, events, status) in [
        (&[][..], &[START, a, b, c, END][..], 0),
        (&[], &[native, a, b, c, END], 0),
        (&[], &[react, a, b, c, END], 1),
        (&[], &[tools, a, b, c, END], 1),
        (&[], &[START, quoted, END], 1),
        (&[], &[START, TEXT, CALL, END], 0),
        (&["--name", "read_*"], &[START, a, b, c, END], 0),
        (&["--name", "write_*"], &[START, a, b, c, END], 1),
        (&[], &[START, TEXT], 3),
    ] {
        let out = run(&[&["-q", "-c", "tag"], args].concat(), &lines(events));
        assert_eq!(
            out.status.code(),
            Some(status),
            "{args:?} {events:?}: {}",
            text(&out.stderr)
        );
    }
    assert_eq!(
        run(&["-q"], &lines(&[START, a, b, c, END])).status.code(),
        Some(1),
        "text is text for all others"
    );
    // The decision is made at the delta that completes the name, and is the answer.
    let mut child = detect(&["-q", "-c", "tag"]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(lines(&[native, a, b]).as_bytes()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    drop(stdin);
}

#[test]
fn one_decision_is_added_before_its_event_and_the_rest_passes() {
    let odd = r#" { "unknown" : 1, "type":"x" } "#;
    let input = lines(&[START, odd, "", TEXT, CALL, END]);
    let out = run(&["--no-time"], &input);
    let (added, passed): (Vec<_>, Vec<_>) = text(&out.stdout)
        .lines()
        .partition(|l| l.contains("\"decision\""));
    assert_eq!(passed.join("\n") + "\n", input);
    assert_eq!(
        added,
        [
            r#"{"type":"decision","tool_call":true,"checker":"full","reason":"a call of read_file","event":4,"bytes":12}"#
        ]
    );
    let again = run(&["--no-time"], text(&out.stdout));
    assert_eq!(
        text(&again.stdout),
        text(&out.stdout),
        "a stream that is detected twice has one decision still"
    );
}

#[test]
fn a_no_to_the_first_stream_of_a_file_is_not_the_answer() {
    let path =
        |n: u8| std::env::temp_dir().join(format!("tc-detect-{n}-{}.ndjson", std::process::id()));
    let no = path(1);
    let both = path(2);
    std::fs::write(&no, lines(&[START, TEXT, END])).unwrap();
    std::fs::write(&both, lines(&[START, TEXT, END, START, CALL, END])).unwrap();
    for checker in ["full", "first-chunk"] {
        let status = |files: &[&std::path::Path]| {
            detect(&["-q", "-c", checker])
                .args(files)
                .status()
                .unwrap()
                .code()
        };
        assert_eq!(status(&[&no]), Some(1), "{checker}");
        assert_eq!(status(&[&both]), Some(0), "{checker}");
        assert_eq!(status(&[&no, &both]), Some(0), "{checker}");
    }
    std::fs::remove_file(no).unwrap();
    std::fs::remove_file(both).unwrap();
}

#[test]
fn quiet_stops_at_a_no_while_its_upstream_goes_on() {
    let mut child = detect(&["-q", "-c", "first-chunk"]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(lines(&[START, TEXT]).as_bytes()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    drop(stdin);
}

#[test]
fn quiet_stops_reading_reading_at_the_answer() {
    let mut child = detect(&["-q"]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(lines(&[START, CALL]).as_bytes()).unwrap();
    // Standard input stays open: only the answer can end it.
    assert_eq!(child.wait().unwrap().code(), Some(0));
    drop(stdin);
}

#[test]
fn decisions_go_to_a_descriptor_of_their_own() {
    let file = std::env::temp_dir().join(format!("tc-detect-{}.ndjson", std::process::id()));
    let script = format!(
        "printf '%s' \"$INPUT\" | {} --no-time --decide-fd 3 3>'{}'",
        env!("CARGO_BIN_EXE_tc-detect"),
        file.display()
    );
    let input = lines(&[START, TEXT, END]);
    let out = Command::new("bash")
        .args(["-c", &script])
        .env("INPUT", &input)
        .output()
        .unwrap();
    assert_eq!(
        (text(&out.stdout), out.status.code()),
        (input.as_str(), Some(1)),
        "{}",
        text(&out.stderr)
    );
    let decisions = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(
        decisions.starts_with(r#"{"type":"decision","tool_call":false"#)
            && decisions.lines().count() == 1,
        "{decisions}"
    );
}

#[test]
fn the_whole_stream_goes_into_the_chosen_command() {
    for (events, first) in [
        (&[START, TEXT, CALL, END][..], "then"),
        (&[START, TEXT, END], "else"),
    ] {
        let out = run(
            &[
                "--no-time",
                "--then",
                "echo then; cat",
                "--else",
                "echo else; cat",
            ],
            &lines(events),
        );
        let mut got: Vec<_> = text(&out.stdout)
            .lines()
            .filter(|l| !l.contains("\"decision\""))
            .collect();
        assert_eq!(got.remove(0), first);
        assert_eq!(got, events);
    }
    let out = run(
        &["--no-time", "--then", "cat >/dev/null"],
        &lines(&[START, TEXT, END]),
    );
    assert_eq!(
        text(&out.stdout).lines().count(),
        4,
        "without --else the stream passes"
    );
}

#[test]
fn the_status_of_a_command_that_fails_counts() {
    let yes = lines(&[START, CALL, END]);
    let no = lines(&[START, TEXT, END]);
    let both = yes.clone() + &no;
    for (args, input, status) in [
        (&["--then", "cat >/dev/null; exit 7"][..], &yes, 7),
        (&["--then", "cat >/dev/null; exit 7"], &no, 1),
        (&["--else", "cat >/dev/null; exit 9"], &no, 9),
        (&["--then", "cat >/dev/null; kill -KILL $$"], &yes, 137),
        (&["--then", "exec no-such-command"], &yes, 127),
        (&["--then", "exit 7", "--else", "exit 9"], &both, 7),
        (&["--then", "true", "--else", "exit 9"], &both, 9),
        // A command that stops reading is not a failure, nor is one whose reader has left.
        (&["--then", "true", "--else", "true"], &both, 0),
        (&["--then", "kill -PIPE $$"], &yes, 0),
    ] {
        let out = run(args, input);
        assert_eq!(
            out.status.code(),
            Some(status),
            "{args:?} {input}: {}",
            text(&out.stderr)
        );
        let said = text(&out.stderr);
        assert_eq!(
            said.contains("was ended by signal: 9"),
            status == 137,
            "{said}"
        );
    }
}

#[test]
fn quiet_reports_the_errors_that_it_swallows() {
    let error = r#"{"type":"error","source":"llm-stream","code":"http_401","message":"the key\u001b is wrong","retryable":false}"#;
    let cut = r#"{"type":"stream_end","finish_reason":"error"}"#;
    let out = run(&["-q"], &lines(&[START, error, cut]));
    assert_eq!(out.status.code(), Some(3));
    let said = "tc-detect: llm-stream: the key\\u{1b} is wrong (http_401)\n";
    assert_eq!((text(&out.stdout), text(&out.stderr)), ("", said));
    let out = run(&[], &lines(&[START, error, cut]));
    assert_eq!(
        text(&out.stderr),
        "",
        "it passes, so whoever reads it sees it"
    );
    let out = run(&["-q"], &lines(&[error]).repeat(30));
    assert_eq!(
        (text(&out.stderr).lines().count(), out.status.code()),
        (10, Some(3))
    );
}

#[test]
fn recordings_are_no_events() {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/");
    for file in [
        "tapes/huts.tape",
        "streams/anthropic/row-31-second-message-start.sse",
        "streams/openai-responses/whole.json",
        "streams/anthropic/whole.json",
        "streams/openai-chat/chunks-as-lines.ndjson",
        "streams/openai-chat/error-body.json",
    ] {
        let path = format!("{fixtures}{file}");
        for args in [&["-q"][..], &[], &["--then", "cat", "--else", "cat"]] {
            let out = detect(args)
                .arg(&path)
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let said = text(&out.stderr);
            assert_eq!(
                (out.status.code(), text(&out.stdout)),
                (Some(3), ""),
                "{file} {said}"
            );
            assert!(
                said.lines().count() == 1
                    && said.contains(&format!("llm-stream --replay {path} |")),
                "{said}"
            );
        }
        let stdin = std::fs::File::open(&path).unwrap();
        let out = detect(&["-q"]).stdin(stdin).output().unwrap();
        assert!(
            out.status.code() == Some(3)
                && text(&out.stderr).contains("run: llm-stream --replay FILE"),
            "{file}"
        );
        // A pipe cannot be read twice, so an input without events is reported at its end.
        let out = run(
            &["-q", "--max-line", "1G"],
            &std::fs::read_to_string(&path).unwrap(),
        );
        let is_told =
            out.status.code() == Some(3) && text(&out.stderr).contains("llm-stream --replay FILE");
        assert_eq!(
            is_told,
            !file.contains("anthropic/whole"),
            "{file}: {}",
            text(&out.stderr)
        );
    }
    let tape = format!("{fixtures}tapes/huts.tape");
    let events = std::env::temp_dir().join(format!("tc-detect-3-{}.ndjson", std::process::id()));
    for (with, status) in [(&[START, TEXT, END][..], 3), (&[START, CALL, END], 0)] {
        std::fs::write(&events, lines(with)).unwrap();
        let out = detect(&["-q"]).arg(&tape).arg(&events).output().unwrap();
        assert_eq!(out.status.code(), Some(status), "{}", text(&out.stderr));
    }
    // An event may be longer than the part that is looked at.
    let long = format!(
        r#"{{"type":"stream_start","v":1,"tools":[{{"response":"{}"}}]}}"#,
        "x".repeat(100_000)
    );
    std::fs::write(&events, lines(&[&long, CALL, END])).unwrap();
    assert_eq!(
        detect(&["-q"]).arg(&events).status().unwrap().code(),
        Some(0)
    );
    // Events of this format are never read as those of a provider, whatever they begin with.
    let error = r#"{"type":"error","source":"x","code":"y","message":"z"}"#;
    for with in [
        &[r#"{"type":"custom"}"#, error, START, CALL, END][..],
        &[error, START, CALL, END],
    ] {
        std::fs::write(&events, lines(with)).unwrap();
        let out = detect(&["-q"]).arg(&events).output().unwrap();
        assert_eq!(
            out.status.code(),
            Some(2),
            "an error and a call: {}",
            text(&out.stderr)
        );
    }
    std::fs::remove_file(&events).unwrap();
}

#[test]
fn mistakes_are_one_line_and_status_2() {
    for (args, words) in [
        (
            &["--checker", "psychic"][..],
            "unknown checker 'psychic', use one of: full",
        ),
        (
            &["--checker", "lookahead:many"],
            "unknown checker 'lookahead:many'",
        ),
        (
            &["no-such-file.ndjson"],
            "no-such-file.ndjson: No such file or directory",
        ),
        (
            &["--checker", "tags"],
            "lookahead:N, auto, auto:RISK, tag, cmd:COMMAND",
        ),
        (&["--checker", "cmd:"], "--checker cmd: has no command"),
        (&["--checker", "cmd: "], "--checker cmd: has no command"),
        (&["--then", ""], "--then has no command"),
        (&["--then", "cat", "--else", " "], "--else has no command"),
        (&["--decide-fd", "77"], "--decide-fd 77"),
        (&["--frobnicate"], "unexpected argument '--frobnicate'"),
        (&["--strict", "-"], "line 2: not an event"),
    ] {
        let out = run(args, "{\"type\":\"x\"}\nnot json\n");
        let err = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        assert!(
            err.starts_with("tc-detect: ") && err.contains(words) && err.lines().count() == 1,
            "{args:?}: {err}"
        );
    }
}

#[test]
fn a_bad_line_is_carried_by_a_warning() {
    let mut child = detect(&["--no-time"]).spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"{\"type\":\"x\"}\nnot json\n\xff\xfe\n{\"type\":\"y\"")
        .unwrap();
    let out = child.wait_with_output().unwrap();
    let got: Vec<_> = text(&out.stdout).lines().collect();
    assert_eq!(got.len(), 4, "{got:?}");
    assert!(
        got[1].contains(r#""code":"not_an_event""#)
            && got[1].contains(r#""raw":"not json""#)
            && got[1].contains(r#""line":2"#)
    );
    assert!(
        got[2].contains(r#""raw_base64":"//4=""#),
        "bytes that are no text are kept too: {}",
        got[2]
    );
    assert!(
        got[3].contains(r#""raw":"{\"type\":\"y\"""#),
        "a cut last line: {}",
        got[3]
    );
    assert_eq!(text(&out.stderr).lines().count(), 3);
}

#[test]
fn help_runs_and_may_be_cut_short() {
    let mut child = detect(&["--help"]).spawn().unwrap();
    let mut help = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut help)
        .unwrap();
    assert!(help.contains("Examples:") && help.contains("--checker"));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn an_interrupt_ends_it_although_its_upstream_goes_on() {
    let mut endless = Command::new("yes")
        .arg(TEXT)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_tc-detect"))
        .stdin(endless.stdout.take().unwrap())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut block = vec![0; 1 << 16];
    assert!(stdout.read(&mut block).unwrap() > 0, "it is at work");
    assert!(testkit::kill(child.id(), "-INT"));
    while stdout.read(&mut block).unwrap() > 0 {}
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let _ = endless.wait(); // it ends by SIGPIPE
}

/// The counts of `text` in a table: streams with a call after text, and streams without a call.
fn counted(path: &std::path::Path) -> String {
    let table = std::fs::read_to_string(path).unwrap_or_default();
    table
        .lines()
        .find(|line| line.starts_with("text "))
        .unwrap_or("text 0 0")
        .to_owned()
}

#[test]
fn auto_learns_from_live_streams_alone() {
    let folder = std::env::temp_dir().join(format!("tc-detect-learn-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("mine.table");
    let learn = ["--checker", "auto", "--learn", file.to_str().unwrap()];
    let end = r#"{"type":"stream_end","finish_reason":"stop"}"#;
    let cut = r#"{"type":"stream_end","finish_reason":"cut"}"#;

    run(
        &learn,
        &lines(&[START, TEXT, CALL, END, START, TEXT, end, START, TEXT, cut]),
    );
    assert_eq!(
        counted(&file),
        "text 1 1",
        "a stream that failed does not count"
    );

    let named = r#"{"type":"stream_start","stream":"a.sse","v":1}"#;
    let named_text = TEXT.replace('}', r#","stream":"a.sse"}"#);
    run(
        &learn,
        &lines(&[
            named,
            &named_text,
            r#"{"type":"stream_end","stream":"a.sse","finish_reason":"stop"}"#,
        ]),
    );
    let events = folder.join("events.ndjson");
    std::fs::write(&events, lines(&[START, TEXT, end])).unwrap();
    let mut with_file = learn.to_vec();
    with_file.push(events.to_str().unwrap());
    for (args, stdin) in [
        (&with_file[..], "/dev/null".as_ref()),
        (&learn, events.as_path()),
    ] {
        let out = detect(args)
            .stdin(std::fs::File::open(stdin).unwrap())
            .output()
            .unwrap();
        let said = "tc-detect: --learn: nothing is learned from a recording; pipe live streams into tc-detect\n";
        assert_eq!((text(&out.stderr), out.status.code()), (said, Some(1)));
    }
    assert_eq!(
        counted(&file),
        "text 1 1",
        "a replayed stream and a file of events do not count"
    );

    let children: Vec<_> = (0..8)
        .map(|_| {
            let mut child = detect(&learn).spawn().unwrap();
            child
                .stdin
                .take()
                .unwrap()
                .write_all(lines(&[START, TEXT, end]).as_bytes())
                .unwrap();
            child
        })
        .collect();
    for child in children {
        assert_eq!(child.wait_with_output().unwrap().status.code(), Some(1));
    }
    assert_eq!(
        counted(&file),
        "text 1 9",
        "no process loses the counts of another"
    );

    let limited = format!(
        "ulimit -f 0; trap '' XFSZ; exec {} --checker auto --learn {}",
        env!("CARGO_BIN_EXE_tc-detect"),
        file.display()
    );
    let mut child = Command::new("sh")
        .args(["-c", &limited])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(lines(&[START, TEXT, end]).as_bytes())
        .unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(
        text(&out.stderr).contains("--learn ") && out.status.code() == Some(1),
        "{}",
        text(&out.stderr)
    );
    assert_eq!(
        counted(&file),
        "text 1 9",
        "a full disk leaves the old file"
    );

    std::fs::write(&file, "text one two\n").unwrap();
    let out = run(&learn, &lines(&[START, TEXT, end]));
    assert!(
        out.status.code() == Some(2) && text(&out.stderr).contains("line 1: a count"),
        "{}",
        text(&out.stderr)
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A call that is written as text was a call: else `auto` would learn that such a model never
/// calls.
#[test]
fn a_call_in_the_text_is_learned_as_a_call() {
    let folder = std::env::temp_dir().join(format!("tc-detect-learn-text-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("mine.table");
    let call = r#"{"type":"content_delta","text":"Yes. <tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>"}"#;
    let end = r#"{"type":"stream_end","finish_reason":"stop"}"#;
    run(
        &["--checker", "auto", "--learn", file.to_str().unwrap()],
        &lines(&[START, call, end, START, TEXT, end]),
    );
    assert_eq!(counted(&file), "text 1 1");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_is_learned_goes_into_regular_files_alone() {
    let folder = std::env::temp_dir().join(format!("tc-detect-regular-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("folder")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(folder.join("socket")).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(folder.join("pipe"))
            .status()
            .unwrap()
            .success()
    );
    std::os::unix::fs::symlink("pipe", folder.join("link")).unwrap();
    // Only root makes devices: this one is like /dev/null.
    let mut names = vec!["folder", "socket", "pipe", "link"];
    let made = Command::new("mknod")
        .arg(folder.join("device"))
        .args(["c", "1", "3"])
        .output();
    names.extend(
        made.is_ok_and(|out| out.status.success())
            .then_some("device"),
    );
    let list = || {
        let entries = std::fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap());
        let mut kinds: Vec<_> = entries
            .map(|e| (e.file_name(), e.file_type().unwrap()))
            .collect();
        kinds.sort_by(|a, b| a.0.cmp(&b.0));
        kinds
    };
    let before = list();
    for name in names {
        let path = folder.join(name);
        let learn = ["--checker", "auto", "--learn", path.to_str().unwrap()];
        let out = run(&learn, &lines(&[START, TEXT, CALL, END]));
        let said = format!(
            "tc-detect: --learn {}: not a regular file; name a file\n",
            path.display()
        );
        assert_eq!(
            (text(&out.stderr), out.status.code()),
            (said.as_str(), Some(2))
        );
    }
    assert_eq!(
        list(),
        before,
        "all are as they were, and nothing is beside them"
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_learned_file_is_replaced_where_its_link_leads_and_keeps_its_permissions() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = std::env::temp_dir().join(format!("tc-detect-link-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("kept")).unwrap();
    let target = folder.join("kept/mine.table");
    let link = folder.join("second");
    symlink("kept/mine.table", folder.join("first")).unwrap();
    symlink("first", &link).unwrap();
    let learn = ["--checker", "auto", "--learn", link.to_str().unwrap()];
    let live = lines(&[START, TEXT, CALL, END]);
    run(&learn, &live);
    assert_eq!(
        counted(&target),
        "text 1 0",
        "a link may lead to a file that does not exist yet"
    );
    for mode in [0o600, 0o664] {
        std::fs::set_permissions(&target, PermissionsExt::from_mode(mode)).unwrap();
        // What a killed process left is removed; a link in its place is not written through.
        symlink("../victim", folder.join("kept/mine.table.tmp")).unwrap();
        std::fs::write(folder.join("victim"), "old").unwrap();
        let out = run(&learn, &live);
        assert_eq!((text(&out.stderr), out.status.code()), ("", Some(0)));
        assert_eq!(
            target.metadata().unwrap().permissions().mode() & 0o7777,
            mode
        );
        assert_eq!(std::fs::read(folder.join("victim")).unwrap(), b"old");
    }
    assert_eq!(counted(&target), "text 3 0");
    assert!(link.is_symlink() && folder.join("first").is_symlink());
    assert!(folder.join("kept/mine.table.lock").exists() && !folder.join("second.lock").exists());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_learned_file_has_a_largest_length_and_largest_counts() {
    let file = std::env::temp_dir().join(format!("tc-detect-long-{}.table", std::process::id()));
    let learn = ["--checker", "auto", "--learn", file.to_str().unwrap()];
    let live = lines(&[START, TEXT, CALL, END]);
    let long = "#\n".repeat((1 << 19) - 5) + "text 1 2 \n";
    assert_eq!(long.len(), 1 << 20);
    for (content, problem) in [
        (long.clone().into_bytes(), None),
        ((long.clone() + "#").into_bytes(), Some("longer than 1 MiB")),
        (
            (long[..(1 << 20) - 1].to_owned() + "#\u{e9}").into_bytes(),
            Some("longer than 1 MiB"),
        ),
        (b"text 1 2 # \xff".to_vec(), Some("cannot be read")),
    ] {
        std::fs::write(&file, content).unwrap();
        let out = run(&learn, &live);
        let said = text(&out.stderr);
        let Some(problem) = problem else {
            assert_eq!(
                (counted(&file).as_str(), said, out.status.code()),
                ("text 2 2", "", Some(0))
            );
            continue;
        };
        assert!(
            out.status.code() == Some(2) && said.lines().count() == 1 && said.contains(problem),
            "{said}"
        );
    }
    let most = 1_u64 << 50;
    std::fs::write(&file, format!("text {most} 0\n")).unwrap();
    for _ in 0..2 {
        assert_eq!(
            text(&run(&learn, &live).stderr),
            "",
            "it reads what it wrote"
        );
        assert_eq!(counted(&file), format!("text {most} 0"));
    }
    std::fs::remove_file(file.with_extension("table.lock")).unwrap();
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn only_auto_learns() {
    for (args, words) in [
        (&["--learn", "x"][..], "--learn: full does not learn"),
        (
            &["-c", "auto", "--learn", "x", "--name", "f"],
            "--learn: counts calls of all tools",
        ),
        (
            &["-c", "auto", "--risk", "2"],
            "a risk is a share from 0 to 1",
        ),
        (&["-c", "auto:2"], "unknown checker 'auto:2'"),
    ] {
        let out = run(args, "");
        assert!(
            out.status.code() == Some(2) && text(&out.stderr).contains(words),
            "{args:?}: {}",
            text(&out.stderr)
        );
    }
}
