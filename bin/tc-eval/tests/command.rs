//! Checkers that are commands (`cmd:`), and decisions from a file: what they answer, how they fail,
//! and that nothing of them is left.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use testkit::needs;

/// A folder with corpora, which is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("tc-eval-command-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        Folder(folder)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    }

    /// A corpus of streams of one piece of text each, `(id, text, whether a call follows)`.
    fn corpus(&self, name: &str, streams: &[(&str, &str, bool)]) -> String {
        let mut index = String::new();
        for (number, (id, text, calls)) in streams.iter().enumerate() {
            let text = serde_json::to_string(text).expect("JSON");
            let call = r#"{"type":"tool_call_delta","index":0,"tool_id":"c","tool_name":"f","arguments":"{}"}"#;
            let call = if *calls {
                format!("{call}\n")
            } else {
                String::new()
            };
            let events = format!(
                "{{\"type\":\"stream_start\",\"v\":1}}\n{{\"type\":\"content_delta\",\"text\":{text}}}\n{call}{{\"type\":\"stream_end\",\"finish_reason\":\"stop\"}}\n"
            );
            self.write(&format!("{name}/{number}.ndjson"), &events);
            let id = serde_json::to_string(id).expect("JSON");
            let calls = if *calls {
                (true, r#"[{"name":"f","arguments":{}}]"#)
            } else {
                (false, "[]")
            };
            index.push_str(&format!(
                "{{\"id\":{id},\"file\":\"{number}.ndjson\",\"has_tool_call\":{},\"calls\":{},\"tags\":[]}}\n",
                calls.0, calls.1
            ));
        }
        self.write(&format!("{name}/index.ndjson"), &index);
        self.0.join(name).display().to_string()
    }

    /// A checker in Python: `body` is run for each event, and `answer(yes, reason, at)` answers.
    fn python(&self, name: &str, body: &str) -> String {
        let body = body
            .lines()
            .map(|line| format!("    {line}\n"))
            .collect::<String>();
        let script = format!(
            "import json, os, sys\n\
             def answer(yes, reason='', **more):\n    \
                 print(json.dumps(dict(type='decision', stream=event['stream'], tool_call=yes, reason=reason, **more)), flush=True)\n\
             for line in sys.stdin:\n    event = json.loads(line)\n    kind = event['type']\n{body}"
        );
        format!("cmd:exec python3 '{}'", self.write(name, &script))
    }

    fn fifo(&self) -> PathBuf {
        let path = self.0.join("fifo");
        assert!(
            Command::new("mkfifo")
                .arg(&path)
                .status()
                .expect("mkfifo runs")
                .success()
        );
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn tc_eval(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tc-eval"));
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn run(arguments: &[&str]) -> Output {
    tc_eval(arguments).output().expect("tc-eval runs")
}

/// The lines of `--list`, and standard error, of a run that ends well.
fn list(arguments: &[&str]) -> (Vec<Value>, String) {
    list_ending(0, arguments)
}

/// The same of a run that ends with this status.
fn list_ending(status: i32, arguments: &[&str]) -> (Vec<Value>, String) {
    let output = run(&[arguments, &["--list"]].concat());
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        output.status.code(),
        Some(status),
        "{arguments:?}: {stderr}"
    );
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    (
        lines
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect(),
        stderr,
    )
}

fn answers(lines: &[Value]) -> Vec<&str> {
    lines
        .iter()
        .map(|line| line["answer"].as_str().expect("an answer"))
        .collect()
}

fn reason(line: &Value) -> &str {
    line["reason"].as_str().expect("a reason")
}

const BY_CALL: &str = "\
if kind == 'stream_start': number, done = 0, False
number += 1
if kind == 'tool_call_delta' and not done:
    done = True
    answer(True, f'{os.getpid()}', event=number)
if kind == 'stream_end' and not done: answer(False, f'{os.getpid()}', event=number)";

#[test]
fn one_process_a_thread_answers_all_streams_with_their_places() {
    if !needs::programs(&["python3"]) {
        return;
    }
    let folder = Folder::new("places");
    let streams: Vec<_> = (0..40).map(|n| (format!("s{n}"), n % 3 == 0)).collect();
    let streams: Vec<_> = streams
        .iter()
        .map(|(id, calls)| (id.as_str(), "four", *calls))
        .collect();
    let corpus = folder.corpus("corpus", &streams);
    let checker = folder.python("mine.py", BY_CALL);
    for (jobs, processes) in [("1", 1..=1), ("3", 1..=3)] {
        let (lines, stderr) = list(&[&corpus, "--jobs", jobs, "--checker", &checker]);
        assert_eq!((lines.len(), stderr.as_str()), (40, ""));
        for (line, (id, _, calls)) in lines.iter().zip(&streams) {
            assert_eq!(line["id"], *id);
            assert_eq!(line["answer"], if *calls { "yes" } else { "no" });
            assert_eq!(
                (&line["event"], &line["chars"]),
                (&Value::from(3), &Value::from(4)),
                "{line}"
            );
        }
        let mut pids: Vec<_> = lines.iter().map(reason).collect();
        pids.sort_unstable();
        pids.dedup();
        assert!(processes.contains(&pids.len()), "{pids:?}");
    }
}

#[test]
fn ids_may_hold_anything_and_may_be_equal_in_two_corpora() {
    if !needs::programs(&["python3"]) {
        return;
    }
    let folder = Folder::new("ids");
    let ids = [
        "a\nb",
        "\"quoted\\\"",
        "<script>\u{1b}[31m",
        "ümlaut \u{1f600}",
        "{\"type\":\"decision\"}",
        "-",
        " ",
    ];
    let streams = |calls: bool| ids.map(|id| (id, "text", calls));
    let without = folder.corpus("without", &streams(false));
    let with = folder.corpus("with", &streams(true));
    let checker = folder.python("mine.py", BY_CALL);
    let (lines, stderr) = list(&[&without, &with, "--checker", &checker]);
    assert_eq!(stderr, "");
    assert_eq!(answers(&lines), [["no"; 7], ["yes"; 7]].concat());
    assert_eq!(
        lines
            .iter()
            .map(|line| line["id"].as_str().expect("an id"))
            .collect::<Vec<_>>(),
        [ids, ids].concat()
    );
}

#[test]
fn a_command_that_dies_leaves_its_stream_undecided_and_is_started_again() {
    if !needs::programs(&["python3"]) {
        return;
    }
    let folder = Folder::new("dies");
    let streams = [
        ("a", "x", true),
        ("b", "die", true),
        ("c", "x", false),
        ("d", "die", false),
        ("e", "x", true),
    ];
    let corpus = folder.corpus("corpus", &streams);
    let body = format!("if event.get('text') == 'die': sys.exit('no \u{1b}[31mmore')\n{BY_CALL}");
    let checker = folder.python("mine.py", &body);
    let (lines, stderr) = list(&[&corpus, "--jobs", "1", "--checker", &checker]);
    assert_eq!(
        answers(&lines),
        ["yes", "undecided", "no", "undecided", "yes"]
    );
    assert_eq!(
        reason(&lines[1]),
        "it ended before it decided (exit status: 1): no \u{1b}[31mmore"
    );
    let printed: Vec<_> = stderr.lines().collect();
    assert!(
        printed[0].contains("mine.py': stream b stays undecided: it ended")
            && !stderr.contains('\u{1b}'),
        "{stderr}"
    );
    assert!(
        printed[1].ends_with("2 streams stay undecided since it failed, --list has the reasons"),
        "{stderr}"
    );
    assert_eq!(printed.len(), 2, "{stderr}");
}

#[test]
fn a_command_that_gives_nothing_is_given_up_after_three_streams() {
    let folder = Folder::new("nothing");
    let corpus = folder.corpus(
        "corpus",
        &["a", "b", "c", "d", "e", "f"].map(|id| (id, "x", true)),
    );
    for (command, why) in [
        ("cmd:exit 3", "it ended before it decided (exit status: 3)"),
        ("cmd:exec no-such-command-here", "(exit status: 127)"),
        ("cmd:true", "it must read until its input ends"),
        (
            "cmd:kill -SEGV $$",
            "it ended before it decided (signal: 11",
        ),
        (
            "cmd:echo '{\"type\":\"decision\",\"tool_call\":true}'",
            "has no \"stream\"",
        ),
    ] {
        let (lines, stderr) = list_ending(2, &[&corpus, "--jobs", "1", "--checker", command]);
        assert!(
            stderr.contains("it answered no stream"),
            "{command}: {stderr}"
        );
        assert_eq!(answers(&lines), ["undecided"; 6], "{command}");
        assert!(
            stderr.contains(": 6 streams stay undecided"),
            "{command}: {stderr}"
        );
        assert!(reason(&lines[2]).contains(why), "{command}: {}", lines[2]);
        assert_eq!(
            reason(&lines[3]),
            "not run: 3 streams before this one got no answer",
            "{command}"
        );
    }
}

#[test]
fn full_pipes_and_silence_do_not_hang_a_run() {
    if !needs::programs(&["python3"]) {
        return;
    }
    let folder = Folder::new("pipes");
    let large = "y".repeat(3 << 20);
    let corpus = folder.corpus("corpus", &[("large", &large, true)]);
    let checker = |status, timeout, command: &str| {
        let (lines, _) = list_ending(
            status,
            &[&corpus, "--checker-timeout", timeout, "--checker", command],
        );
        let [line] = &lines[..] else {
            panic!("{lines:?}")
        };
        (
            line["answer"].as_str().expect("an answer").to_owned(),
            reason(line).to_owned(),
        )
    };
    for command in [
        "cmd:exec sleep 100000",
        "cmd:cat >/dev/null; sleep 100000",
        "cmd:trap '' TERM INT HUP; while :; do sleep 1; done",
        "cmd:yes garbage",
        "cmd:yes garbage >&2",
        "cmd:tr '\\0' x </dev/zero",
        // It passes the events on, and its answer stays in a buffer.
        "cmd:sed -u p; sleep 100000",
    ] {
        let (answer, reason) = checker(2, "300ms", command);
        assert_eq!(answer, "undecided", "{command}");
        assert!(
            reason.starts_with("no answer within 0.3 s; it must flush each line"),
            "{command}: {reason}"
        );
    }
    // 10 MB before it reads anything, long lines, and bytes that are not text.
    let by_call = folder.python("mine.py", BY_CALL);
    let command = by_call.strip_prefix("cmd:").expect("a command");
    for noise in [
        "yes noise | head -c 12000000",
        "head -c 5000000 /dev/zero; echo",
        "printf '\\377\\n{}\\n[]\\n{\"type\":7}\\n'",
    ] {
        assert_eq!(
            checker(0, "60s", &format!("cmd:{noise}; {command}")).0,
            "yes",
            "{noise}"
        );
        assert_eq!(
            checker(0, "60s", &format!("cmd:{{ {noise}; }} >&2; {command}")).0,
            "yes",
            "{noise} to standard error"
        );
    }
    // It answers early and reads no more; the next stream meets a closed pipe.
    let two = folder.corpus("two", &[("a", &large, true), ("b", "x", true)]);
    let early = folder.python(
        "early.py",
        "answer(True)\nos.close(0)\nimport time\ntime.sleep(100000)",
    );
    let (lines, _) = list(&[
        &two,
        "--jobs",
        "1",
        "--checker-timeout",
        "60s",
        "--checker",
        &early,
    ]);
    assert_eq!(answers(&lines), ["yes", "undecided"]);
    assert_eq!(
        reason(&lines[1]),
        "it closed its input before this stream began"
    );
}

#[test]
fn what_counts_is_the_first_decision_of_the_stream_and_its_place_if_there_is_one() {
    if !needs::programs(&["python3"]) {
        return;
    }
    let folder = Folder::new("first");
    let corpus = folder.corpus("corpus", &[("a", "x", true)]);
    for (body, answer, last, event) in [
        (
            "if kind == 'stream_end': answer(True, event=2); answer(False, event=3)",
            "yes",
            "yes",
            Some(2),
        ),
        (
            "if kind == 'stream_end': answer(True, event=99)",
            "yes",
            "yes",
            None,
        ),
        (
            "if kind == 'stream_end': answer(True, event='two')",
            "yes",
            "yes",
            None,
        ),
        (
            "if kind == 'stream_end': answer(None)",
            "undecided",
            "undecided",
            None,
        ),
        (
            "if kind == 'stream_end': answer(True, undecided=True)",
            "undecided",
            "undecided",
            None,
        ),
        (
            "if kind == 'stream_end': answer(False, choice=1); answer(True)",
            "yes",
            "yes",
            None,
        ),
        // A filter, which revises before it passes the end on.
        (
            "print(line, end='', flush=True)\nif kind == 'content_delta': answer(True, event=2)\n\
             if kind == 'tool_call_delta': answer(False, revised=True)",
            "yes",
            "no",
            Some(2),
        ),
        // It passes the beginning on and not the end: its answer counts once it is late.
        (
            "if kind == 'stream_start': print(line, end='')\nif kind == 'stream_end': answer(True)",
            "yes",
            "yes",
            None,
        ),
    ] {
        let checker = folder.python("mine.py", body);
        let (lines, stderr) = list(&[&corpus, "--checker-timeout", "5s", "--checker", &checker]);
        assert_eq!(stderr, "", "{body}");
        let line = &lines[0];
        assert_eq!(
            (&line["answer"], &line["last"]),
            (&answer.into(), &last.into()),
            "{body}"
        );
        assert_eq!(line["event"].as_u64(), event, "{body}");
    }
}

#[test]
fn every_reading_of_a_stream_is_a_stream_of_its_own() {
    if !needs::programs(&["python3"]) {
        return;
    }
    let folder = Folder::new("split");
    let corpus = folder.corpus("corpus", &[("a", "several words", true), ("b", "w", true)]);
    let checker = folder.python(
        "mine.py",
        "if kind == 'content_delta': first = len(event['text'])\nif kind == 'stream_end': answer(first < 5)",
    );
    let (lines, _) = list(&[&corpus, "--resplit", "3", "--checker", &checker]);
    let depends: Vec<_> = lines
        .iter()
        .map(|line| line["depends_on_split"].as_bool())
        .collect();
    assert_eq!(depends, [Some(true), Some(false)], "{lines:?}");
}

/// Starts a run whose command holds a fifo open in all its processes; returns the run, and the
/// reader after the command has started.
fn held(folder: &Folder, corpus: &str, command: &str) -> (Child, BufReader<std::fs::File>) {
    let fifo = folder.fifo();
    let command = format!(
        "cmd:exec 9>'{}'; echo started >&9; {command}",
        fifo.display()
    );
    let run = tc_eval(&[corpus, "--jobs", "1", "--checker", &command])
        .spawn()
        .expect("tc-eval runs");
    let mut reader = BufReader::new(std::fs::File::open(&fifo).expect("the fifo opens"));
    let mut line = String::new();
    reader.read_line(&mut line).expect("a line");
    assert_eq!(line, "started\n");
    (run, reader)
}

/// Waits until every process that holds the fifo has ended. A process that is left behind holds it
/// for a day.
fn all_end(mut reader: BufReader<std::fs::File>) {
    let mut rest = String::new();
    reader.read_to_string(&mut rest).expect("read");
}

#[test]
fn nothing_that_a_command_started_outlives_the_run() {
    if !needs::programs(&["python3"]) {
        return;
    }
    let folder = Folder::new("orphans");
    let corpus = folder.corpus("corpus", &[("a", "x", true)]);
    let checker = folder.python("mine.py", BY_CALL);
    let (run, reader) = held(
        &folder,
        &corpus,
        &format!("sleep 86400 & (sleep 86400 &) ; {}", &checker[4..]),
    );
    // Read first: the run itself must not be what ends them.
    all_end(reader);
    let output = run.wait_with_output().expect("it ends");
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_run_that_is_killed_takes_its_commands_along() {
    for signal in ["INT", "TERM", "KILL"] {
        let folder = Folder::new(signal);
        let corpus = folder.corpus("corpus", &[("a", "x", true)]);
        let (mut run, reader) = held(
            &folder,
            &corpus,
            "trap '' INT TERM HUP; sleep 86400 & sleep 86400",
        );
        let killed = needs::kill()
            .args(["-s", signal, &run.id().to_string()])
            .status()
            .expect("kill runs");
        assert!(killed.success(), "{signal}");
        run.wait().expect("it ends");
        all_end(reader);
    }
}

#[test]
fn decisions_of_a_file_are_one_more_checker() {
    let folder = Folder::new("decisions");
    let corpus = folder.corpus(
        "corpus",
        &[("a\n\"", "four", true), ("b", "x", false), ("c", "x", true)],
    );
    let file = folder.write(
        "mine.ndjson",
        "{\"type\":\"decision\",\"stream\":\"b\",\"tool_call\":true,\"event\":2,\"reason\":\"why\"}\n\
         {\"type\":\"stream_start\",\"stream\":\"b\"}\n\
         {\"type\":\"decision\",\"stream\":\"a\\n\\\"\",\"tool_call\":true,\"event\":3}\n\
         {\"type\":\"decision\",\"stream\":\"b\",\"tool_call\":false,\"revised\":true}\n\
         {\"type\":\"decision\",\"stream\":\"z\\u001b\",\"tool_call\":true}\n",
    );
    let named = format!("mine={file}");
    let (lines, stderr) = list(&[&corpus, "--checker", "full", "--decisions", &named]);
    let mine: Vec<_> = lines
        .iter()
        .filter(|line| line["checker"] == "mine")
        .collect();
    let given: Vec<_> = mine
        .iter()
        .map(|l| [&l["answer"], &l["last"], &l["event"], &l["chars"]].map(Value::to_string))
        .collect();
    assert_eq!(
        given,
        [
            ["\"yes\"", "\"yes\"", "3", "4"],
            ["\"yes\"", "\"no\"", "2", "1"],
            ["\"undecided\"", "\"undecided\"", "null", "null"]
        ]
    );
    assert_eq!(reason(mine[2]), format!("no decision in {file}"));
    assert!(
        stderr.contains("1 decisions are about streams that were not evaluated, the first is 'z"),
        "{stderr}"
    );
    assert_eq!(
        (stderr.lines().count(), stderr.contains('\u{1b}')),
        (1, false),
        "{stderr}"
    );
}

#[test]
fn what_is_wrong_with_a_checker_is_one_line() {
    let folder = Folder::new("wrong");
    let corpus = folder.corpus("corpus", &[("a", "x", true)]);
    let twice = folder.write(
        "twice.ndjson",
        &"{\"type\":\"decision\",\"stream\":\"a\",\"tool_call\":true}\n".repeat(2),
    );
    let text = folder.write("text.ndjson", "yes\n");
    for (arguments, error) in [
        (
            ["--checker", "cmd: "],
            "write a name and a command".to_owned(),
        ),
        (
            ["--checker", "=cmd:cat"],
            "write a name and a command".to_owned(),
        ),
        (
            ["--checker", "auto=cmd:cat"],
            "choose another name, 'auto' is that of another checker".to_owned(),
        ),
        (["--checker", "nothing"], "cmd:COMMAND".to_owned()),
        (["--checker-timeout", "0"], "above 0".to_owned()),
        (["--decisions", "mine"], "not NAME=FILE".to_owned()),
        (
            ["--decisions", "mine=/nowhere"],
            "check the path".to_owned(),
        ),
        (
            ["--decisions", &format!("full={twice}")],
            "choose another name, 'full' is that of another checker".to_owned(),
        ),
        (
            ["--decisions", &format!("mine={twice}")],
            format!("{twice}: line 2 decides again about 'a' of line 1"),
        ),
        (
            ["--decisions", &format!("mine={text}")],
            format!("{text}: line 1 is not an event"),
        ),
    ] {
        let output = run(&[&corpus, "--checker", "full", arguments[0], arguments[1]]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            (output.status.code(), stderr.lines().count()),
            (Some(2), 1),
            "{arguments:?}: {stderr}"
        );
        assert!(
            stderr.starts_with("tc-eval: ") && stderr.contains(&error),
            "{arguments:?}: {stderr}"
        );
    }
}

#[test]
fn a_command_has_the_name_that_the_user_gives_it() {
    if !needs::programs(&["python3"]) {
        return;
    }
    let folder = Folder::new("named");
    let corpus = folder.corpus("corpus", &[("a", "x", true), ("b", "x", false)]);
    let always = folder.python(
        "always.py",
        "if kind == 'stream_end': answer(True, 'always')",
    );
    let checker = format!("mine={always}");
    let list = run(&[&corpus, "--list", "--checker", &checker]);
    assert!(
        String::from_utf8_lossy(&list.stdout).contains("\"checker\":\"mine\""),
        "{list:?}"
    );
    let report = run(&[
        &corpus,
        "--checker",
        &checker,
        "--require",
        "mine:recall>=1",
    ]);
    let text = String::from_utf8_lossy(&report.stdout).into_owned();
    assert_eq!(report.status.code(), Some(0), "{report:?}");
    // The command that shows the wrong stream runs as it is pasted.
    let explain = text.lines().find(|line| line.contains("tc-eval explain "));
    let explain =
        explain
            .expect("a command")
            .trim()
            .replacen("tc-eval", env!("CARGO_BIN_EXE_tc-eval"), 1);
    let shown = Command::new("bash")
        .args(["-c", &explain])
        .output()
        .expect("bash runs");
    let shown_text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        shown.status.success() && shown_text.contains("mine"),
        "{explain}: {shown:?}"
    );
}

#[test]
fn a_folder_of_a_checker_is_the_folder_of_the_run() {
    if !needs::programs(&["python3"]) {
        return;
    }
    let folder = Folder::new("cwd");
    let corpus = folder.corpus("corpus", &[("a", "x", true)]);
    folder.python("mine.py", BY_CALL);
    let mut command = tc_eval(&[&corpus, "--list", "--checker", "cmd:python3 mine.py"]);
    let output = command
        .current_dir(Path::new(&folder.0))
        .output()
        .expect("tc-eval runs");
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("\"answer\":\"yes\""),
        "{output:?}"
    );
}
