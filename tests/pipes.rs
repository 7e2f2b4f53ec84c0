//! Real pipes between the built commands: latency, readers that leave, full disks, killed stages,
//! bad input, and memory.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use testkit::{Conversation, Protocol, Turn, bash};

const START: &str = "{\"type\":\"stream_start\",\"v\":1}\n";
const TEXT: &str = "{\"type\":\"content_delta\",\"text\":\"Grüße\"}\n";
const END: &str = "{\"type\":\"stream_end\",\"finish_reason\":\"stop\"}\n";

/// An empty folder, removed when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("toolpipe-pipes-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder for the test");
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn run(script: &str, folder: &Path, input: impl Into<Stdio>) -> Output {
    bash(script, folder)
        .stdin(input)
        .output()
        .expect("bash runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A body of chat completions: `frames` frames of text, and one call.
fn body(frames: usize) -> String {
    let turn = (0..frames).fold(Turn::default(), |turn, n| {
        turn.then_says(&format!("word{n} "))
    });
    let turn = turn.calls("call_a", "read_file", &serde_json::json!({"path": "a"}));
    turn.stream(Protocol::Chat)
}

#[test]
fn one_line_in_one_line_out() {
    for script in [
        "tc-detect",
        "tc-accumulate",
        "tc-detect | tc-accumulate | tc-detect -c first-chunk | tc-accumulate --keep-deltas",
    ] {
        let mut pipe = Conversation::start(bash(script, testkit::root()));
        pipe.say(START.as_bytes());
        assert_eq!(pipe.hear() + "\n", START, "{script}");
        for n in 0..200 {
            let line = format!("{{\"type\":\"thinking\",\"text\":\"{n}\"}}");
            pipe.say(format!("{line}\n").as_bytes());
            assert_eq!(pipe.hear(), line, "{script}");
        }
        // A line in two writes is one line; the lines before it do not wait for its end.
        pipe.say(b"{\"type\":\"thinking\",\"text\":\"x\"}\n{\"type\":\"thin");
        assert_eq!(
            pipe.hear(),
            "{\"type\":\"thinking\",\"text\":\"x\"}",
            "{script}"
        );
        pipe.say(b"king\",\"text\":\"y\"}\n");
        assert_eq!(
            pipe.hear(),
            "{\"type\":\"thinking\",\"text\":\"y\"}",
            "{script}"
        );
        assert!(pipe.id() > 0);
        pipe.say(END.as_bytes());
        let (rest, _) = pipe.end();
        assert_eq!(
            rest.last().map(|l| l.clone() + "\n").as_deref(),
            Some(END),
            "{script}"
        );
    }
}

#[test]
fn a_frame_of_the_provider_comes_out_before_the_next_one_is_sent() {
    let script = "llm-stream --no-time --api openai-chat --replay - | tc-detect --no-time | tc-accumulate --no-time";
    let mut pipe = Conversation::start(bash(script, testkit::root()));
    let body = body(50);
    let mut frames = body.split_inclusive("\n\n");
    pipe.say(frames.next().expect("the role").as_bytes());
    for (n, frame) in frames.by_ref().take(50).enumerate() {
        pipe.say(frame.as_bytes());
        if n == 0 {
            assert!(pipe.hear().starts_with("{\"type\":\"stream_start\""));
        }
        assert!(
            pipe.hear().ends_with(&format!("\"text\":\"word{n} \"}}")),
            "frame {n}"
        );
    }
    // The call is emitted at the frame that closes its arguments, while the stream is still open.
    for frame in frames.take(3) {
        pipe.say(frame.as_bytes());
    }
    let decision = pipe.hear();
    assert!(
        decision.contains("\"decision\"") && decision.contains("\"tool_call\":true"),
        "{decision}"
    );
    assert!(
        pipe.hear()
            .contains("\"arguments\":{\"path\":\"a\"},\"commit\":\"balanced\"")
    );
    pipe.say(b"data: [DONE]\n\n");
    let (_, status) = pipe.end();
    assert_eq!(status, Some(0));
}

#[test]
fn a_reader_that_leaves_ends_the_pipe_silently_with_0() {
    let scratch = Scratch::new("head");
    fs::write(scratch.0.join("body.sse"), body(50_000)).expect("written");
    for tail in [
        "head -1",
        "while read -r line; do case $line in *word7*) exit ;; esac; done",
    ] {
        let script = format!(
            "(llm-stream --replay body.sse | tc-detect --checker first-chunk | tc-accumulate --keep-deltas; echo \"${{PIPESTATUS[*]}}\" >status) | ({tail})"
        );
        let output = run(&script, &scratch.0, Stdio::null());
        assert_eq!(
            (output.status.code(), text(&output.stderr)),
            (Some(0), String::new()),
            "{tail}"
        );
        // The detector ends with 1 (no) at the end of its input, and with 0 when its reader has
        // left.
        assert_eq!(
            fs::read_to_string(scratch.0.join("status")).expect("written"),
            "0 0 0\n",
            "{tail}"
        );
    }
}

#[test]
fn a_detector_that_has_its_answer_stops_the_stream() {
    let scratch = Scratch::new("early");
    fs::write(scratch.0.join("body.sse"), body(2)).expect("written");
    let script = "llm-stream --replay body.sse | tc-detect -q && echo call";
    let output = run(script, &scratch.0, Stdio::null());
    assert_eq!(
        (text(&output.stdout).as_str(), text(&output.stderr).as_str()),
        ("call\n", "")
    );
}

#[test]
fn a_full_disk_is_one_line_and_status_2() {
    let scratch = Scratch::new("full");
    fs::write(scratch.0.join("body.sse"), body(3)).expect("written");
    fs::write(scratch.0.join("events"), [START, TEXT, END].concat()).expect("written");
    for command in [
        "llm-stream --replay body.sse",
        "tc-detect events",
        "tc-accumulate events",
        "tc-view events",
    ] {
        let output = run(&format!("{command} >/dev/full"), &scratch.0, Stdio::null());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command}: {said}");
        let name = command.split(' ').next().unwrap_or_default();
        assert!(
            said.starts_with(&format!("{name}: standard output: ")) && said.lines().count() == 1,
            "{said}"
        );
    }
}

#[test]
fn a_stage_that_is_killed_leaves_a_log_that_can_be_read() {
    let scratch = Scratch::new("kill");
    let log = scratch.0.join("log");
    fs::write(
        &log,
        "{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"Read a.\"}}\n",
    )
    .expect("written");
    let body = body(5);
    let (first, _) = body.split_at(body.len() / 2);
    // The second stage prints its process id, appends to the log, and copies its output to the
    // test, which so follows its progress.
    let script = "llm-stream --api openai-chat --replay - | (echo $BASHPID; exec tc-accumulate) | tee -a log";
    let mut command = bash(script, &scratch.0);
    command.stderr(Stdio::null()); // where bash reports the kill
    let mut pipe = Conversation::start(command);
    let victim: u32 = pipe.hear().parse().expect("a process id");
    pipe.say(first.as_bytes());
    while !pipe.hear().contains("word1") {}
    assert!(
        bash(&format!("kill -9 {victim}"), &scratch.0)
            .status()
            .expect("bash runs")
            .success()
    );
    let (_, status) = pipe.end();
    assert_ne!(status, Some(0), "a pipe with a killed stage has failed");
    // The cut turn has no message: the next turn asks again from the same conversation. The cut
    // last line changes nothing.
    fs::OpenOptions::new()
        .append(true)
        .open(&log)
        .and_then(|mut f| f.write_all(b"{\"type\":\"content_del"))
        .expect("appended");
    let output = run(
        "llm-stream --api openai-chat --model m --dry-run <log",
        &scratch.0,
        Stdio::null(),
    );
    let request = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(
        request.contains("Read a.") && !request.contains("word") && !request.contains("assistant"),
        "{request}"
    );
    // The complete turn, appended after it.
    fs::write(scratch.0.join("body.sse"), &body).expect("written");
    let script = "echo >>log; llm-stream --replay body.sse | tc-accumulate >>log && llm-stream --model m --dry-run <log";
    let output = run(script, &scratch.0, Stdio::null());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(
        text(&output.stdout).contains("read_file"),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn a_line_that_is_no_event_is_told_and_loses_nothing() {
    let scratch = Scratch::new("bad");
    let bad = [
        START.as_bytes(),
        b"not JSON\n",
        TEXT.as_bytes(),
        b"{\"type\":\"content_delta\",\"text\":\"\xff\"}\n",
        END.as_bytes(),
        b"{\"type\":\"content_del",
    ]
    .concat();
    fs::write(scratch.0.join("events"), bad).expect("written");
    for command in ["tc-detect", "tc-accumulate"] {
        let output = run(
            &format!("{command} --no-time events"),
            &scratch.0,
            Stdio::null(),
        );
        let out = text(&output.stdout);
        let said = text(&output.stderr);
        for (line, raw) in [
            (2, "\"raw\":\"not JSON\""),
            (
                4,
                "\"raw_base64\":\"eyJ0eXBlIjoiY29udGVudF9kZWx0YSIsInRleHQiOiL/In0=\"",
            ),
            (6, "\"raw\":\"{\\\"type\\\":\\\"content_del\""),
        ] {
            let told: Vec<_> = said
                .lines()
                .filter(|l| l.starts_with(&format!("{command}: events, line {line}: ")))
                .collect();
            assert_eq!(told.len(), 1, "{said}");
            let warning = out
                .lines()
                .find(|l| l.contains(raw))
                .unwrap_or_else(|| panic!("{raw} is lost: {out}"));
            assert!(
                warning.starts_with("{\"type\":\"warning\"")
                    && warning.ends_with(&format!("\"line\":{line}}}")),
                "{warning}"
            );
        }
        assert_eq!(said.lines().count(), 3, "{said}");
        for line in [START, TEXT, END] {
            assert!(out.contains(line), "{out}");
        }
        assert!(matches!(output.status.code(), Some(0 | 1)), "{command}");
        let output = run(
            &format!("{command} --strict events"),
            &scratch.0,
            Stdio::null(),
        );
        assert_eq!(output.status.code(), Some(2), "{command} --strict");
        assert_eq!(
            text(&output.stderr).lines().count(),
            1,
            "{command} --strict"
        );
    }
}

#[test]
fn a_line_of_100_mb_is_cut_into_its_warning() {
    let line = "printf '{\"type\":\"content_delta\",\"text\":\"'; head -c 100000000 /dev/zero | tr '\\0' x; printf '\"}\\n'";
    for command in ["tc-detect", "tc-accumulate"] {
        let script = format!("({line}; printf '%s' '{TEXT}{END}') | {command}");
        let output = run(&script, testkit::root(), Stdio::null());
        let out = text(&output.stdout);
        let said = text(&output.stderr);
        assert!(out.len() < 80_000, "{command} writes {} bytes", out.len());
        assert!(
            out.contains("\"raw_bytes\":100000034") && out.contains(TEXT) && out.contains(END),
            "{}",
            &out[..200]
        );
        assert_eq!(
            said,
            format!(
                "{command}: standard input, line 1: not an event (longer than --max-line), passed on as a warning\n"
            )
        );
        // With a larger limit it is an event like any other.
        let script = format!("({line}; printf '%s' '{END}') | {command} --max-line 200M | wc -c");
        let output = run(&script, testkit::root(), Stdio::null());
        assert!(
            text(&output.stdout)
                .trim()
                .parse::<usize>()
                .is_ok_and(|n| n > 100_000_000),
            "{}",
            text(&output.stdout)
        );
        assert_eq!(text(&output.stderr), "", "{command}");
    }
}

#[test]
fn what_cannot_be_used_is_one_line_with_a_remedy() {
    let scratch = Scratch::new("usage");
    fs::write(scratch.0.join("events"), [START, END].concat()).expect("written");
    fs::write(scratch.0.join("broken.json"), "[{\"type\":").expect("written");
    fs::write(
        scratch.0.join("remote.json"),
        r#"[{"name":"f","input_schema":{"$ref":"http://example.com/s"}}]"#,
    )
    .expect("written");
    for (command, words) in [
        ("tc-detect missing", "missing"),
        ("tc-detect .", "directory"),
        ("tc-accumulate events missing", "missing"),
        ("tc-view missing", "missing"),
        ("llm-stream --replay missing", "missing"),
        ("llm-stream --replay broken.json", "--api"),
        ("llm-stream --api nonesuch hello", "openai-chat"),
        ("tc-detect --checker guess events", "first-chunk"),
        ("tc-accumulate --tools missing events", "missing"),
        ("tc-accumulate --tools broken.json events", "broken.json"),
        (
            "tc-accumulate --tools remote.json events",
            "http://example.com/s",
        ),
        ("tc-accumulate --emit-on never events", "balanced"),
        ("tc-view --format html5 events", "html"),
        ("tc-detect --max-line none events", "64M"),
        ("tool-exec --tools missing events", "missing"),
        ("tool-exec --tools broken.json events", "broken.json"),
    ] {
        let output = run(command, &scratch.0, Stdio::null());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command}: {said}");
        let name = command.split(' ').next().unwrap_or_default();
        assert!(
            said.starts_with(&format!("{name}: "))
                && said.lines().count() == 1
                && said.contains(words),
            "{command}: {said}"
        );
    }
}

/// The largest memory that a process had, in KiB.
#[cfg(target_os = "linux")]
fn peak(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).expect("the process runs");
    let line = status
        .lines()
        .find_map(|l| l.strip_prefix("VmHWM:"))
        .expect("a peak");
    line.trim()
        .trim_end_matches("kB")
        .trim()
        .parse()
        .expect("a number")
}

#[cfg(target_os = "linux")]
#[test]
fn memory_does_not_grow_with_what_passes() {
    // Streams that follow each other: the text of one is not kept for the next.
    let turn = START.to_owned() + &TEXT.repeat(1000) + END;
    for command in ["exec tc-detect --checker full", "exec tc-accumulate"] {
        let mut pipe = Conversation::start(bash(command, testkit::root()));
        let mut count = 0;
        let peaks = [20, 400].map(|turns| {
            for _ in 0..turns {
                pipe.say(turn.as_bytes());
                while !pipe.hear().contains("stream_end") {
                    count += 1;
                }
            }
            peak(pipe.id())
        });
        assert!(
            count > 420_000 && peaks[1] < peaks[0] + 2048,
            "{command}: {peaks:?} KiB after {count} lines"
        );
        pipe.end();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_memory_of_a_report_does_not_grow_with_the_log() {
    // Calls with and without a result, and an answer of several blocks.
    let answer = event::quoted(&"Some *words*.\n\n- an item\n\n```\ncode\n```\n\n".repeat(40));
    for form in ["html", "markdown", "text"] {
        let command = format!("exec tc-view --format {form}");
        let mut pipe = Conversation::start(bash(&command, testkit::root()));
        let mut count = 0;
        let peaks = [100, 600].map(|turns| {
            for _ in 0..turns {
                count += 1;
                let call = |id: &str| {
                    format!(
                        r#"{{"type":"tool_call","index":0,"tool_id":"{id}{count}","tool_name":"f","arguments":{{}}}}"#
                    )
                };
                let note = |text: &str| {
                    format!(r#"{{"type":"warning","source":"w","code":"c","message":"{text} {count}"}}"#)
                };
                let turn = [
                    format!(r#"{{"type":"message","message":{{"role":"user","content":"Question {count}"}}}}"#),
                    START.trim().to_owned(),
                    format!(r#"{{"type":"content_delta","text":{answer}}}"#),
                    call("a"),
                    call("b"),
                    END.trim().to_owned(),
                    format!(
                        r#"{{"type":"tool_result","tool_id":"a{count}","tool_name":"f","status":"success","output":{answer}}}"#
                    ),
                    note("end"),
                    // A line of a report ends when the next one begins.
                    note("more"),
                ];
                pipe.say((turn.join("\n") + "\n").as_bytes());
                let end = format!("w: end {count} ");
                while !pipe.hear().contains(&end) {}
            }
            peak(pipe.id())
        });
        pipe.end();
        assert!(
            peaks[1] < peaks[0] + 1024,
            "{form}: {peaks:?} KiB after {count} turns"
        );
    }
}

#[test]
fn a_read_tool_starts_by_tape_time_when_its_arguments_close() {
    let root = testkit::root();
    let script = "llm-stream --replay fixtures/tapes/huts.tape | tc-accumulate | tool-exec --tools fixtures/tools/tools.json";
    let scratch = Scratch::new("tape-time");
    let script = format!(
        "export RESERVATIONS={}; {script}",
        scratch.0.join("reservations").display()
    );
    let output = run(&script, root, Stdio::null());
    let lines = text(&output.stdout);
    let events: Vec<serde_json::Value> = lines
        .lines()
        .map(|l| serde_json::from_str(l).expect("JSON"))
        .collect();
    let of = |kind: &str| {
        events
            .iter()
            .filter(|e| e["type"] == kind)
            .collect::<Vec<_>>()
    };
    let calls = of("tool_call");
    let uses = of("tool_use");
    let ends = of("stream_end");
    assert_eq!((calls.len(), uses.len(), ends.len()), (3, 3, 3), "{lines}");
    // The first turn: two calls of the class read, each started at the event that closed its
    // arguments, before the turn's end.
    for (call, used) in calls.iter().zip(&uses).take(2) {
        assert_eq!(call["tool_id"], used["tool_id"]);
        assert_eq!(call["t"], used["t"]);
        assert!(used["t"].as_f64() < ends[0]["t"].as_f64());
    }
    // The second turn reserves; that tool is of the class write, so the call starts at the commit
    // point, the end of the turn.
    assert_eq!(uses[2]["t"], ends[1]["t"]);
}
