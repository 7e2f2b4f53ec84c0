//! `react`: its statuses, a log that was cut anywhere, Ctrl-C, a stage that is killed, and
//! models that write their calls as text.

use crate::pipeline::scratch::{ASK, ASK_TAG, QUESTION, Scratch, wait_for};
use std::collections::HashSet;
use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use testkit::places::{is_full, is_named_tried};
use testkit::{Turn, kill};

/// Runs react on the log as it is until the answer is there.
fn goes_on(scratch: &Scratch, what: &str) {
    let ask = scratch.1;
    let (mut status, mut out, mut err) = scratch.run(&format!("{ask} --plain"));
    if status == 3 {
        // The call was started and its result is unknown: a person must decide.
        assert!(
            out.contains("reserve waits for approval") && scratch.read("reservations").is_empty(),
            "{what}: {out}"
        );
        let last = err.lines().last().unwrap_or_default();
        let yes = last
            .split_once("or run it with:")
            .unwrap_or_else(|| panic!("{what}: no command in {err}"))
            .1
            .to_owned();
        (status, out, err) = scratch.run(&yes);
    }
    assert!(
        status == 0 && out.contains("sleeping bags"),
        "{what}: {status}\n{out}\n{err}"
    );
    // A line that was cut is reported once.
    assert!(
        err.lines().count() <= 1 && !out.contains("warning"),
        "{what}: {out}\n{err}"
    );
    whole_lines(&scratch.read("log"));
}

/// Every line is an event.
fn whole_lines(log: &str) {
    let mut scanner = event::Scanner::default();
    let broken: Vec<_> = log
        .lines()
        .filter(|line| scanner.read(line).is_err())
        .collect();
    assert!(broken.is_empty() && log.ends_with('\n'), "{broken:?}");
}

#[test]
fn an_answer_is_0_and_leaves_nothing_behind() {
    let scratch = Scratch::new();
    let (status, out, err) = scratch.run(&format!(
        "{} -f json {QUESTION}",
        ASK.replace("--log $SCRATCH/log", "")
    ));
    assert_eq!((status, err.as_str()), (0, ""), "{out}");
    assert!(
        out.starts_with(r#"{"text":"Four beds in the **Lake hut**"#),
        "{out}"
    );
    assert_eq!(out.matches(r#""status":"success""#).count(), 3, "{out}");
    let left: Vec<_> = fs::read_dir(&*scratch.0)
        .expect("the folder")
        .map(|e| e.expect("an entry").file_name())
        .collect();
    assert_eq!(left, ["reservations"]);
}

/// The output after tag-parse is that of a model with native calls, apart from ids and from how
/// text is split.
#[test]
fn calls_written_as_text_are_run_like_native_ones() {
    let [native, tag] = [ASK, ASK_TAG].map(|ask| {
        let scratch = Scratch::asking(ask);
        let (status, out, err) = scratch.run(&format!("{ask} --plain --no-time {QUESTION}"));
        assert_eq!((status, err.as_str()), (0, ""), "{out}");
        (out, scratch.read("reservations"), scratch.read("log"))
    });
    assert_eq!((&native.0, &native.1), (&tag.0, &tag.1));
    assert_eq!(
        tag.2
            .matches(r#""tools_mode":"tag","dialect":"tool-name-tag""#)
            .count(),
        3
    );
    let calls = |log: &str| -> Vec<String> {
        let results = log
            .lines()
            .filter(|line| line.starts_with(r#"{"type":"tool_result""#));
        let mut results: Vec<_> = results
            .filter_map(|l| Some(l.split_once("\"tool_name\"")?.1.to_owned()))
            .collect();
        results.sort();
        results
    };
    assert_eq!(calls(&native.2), calls(&tag.2));
    // No markup of a call is left in the text.
    assert!(
        !tag.2
            .lines()
            .any(|line| line.contains("content_delta") && line.contains("tool")),
        "{}",
        tag.2
    );
}

/// A server that refuses tools: the first turn is asked again with the tools in the prompt, as are
/// all that follow.
#[test]
fn a_refusal_of_tools_is_answered_with_tag_mode() {
    let scratch = Scratch::new();
    let read = |name: &str| {
        fs::read_to_string(testkit::root().join("fixtures/tapes").join(name)).expect("a tape")
    };
    let native = read("huts.tape");
    let tag = read("huts-tag.tape");
    let asked = native
        .lines()
        .find(|line| line.starts_with(r#"{"tape""#))
        .expect("the first request");
    let refused = r#"[0.01,"head",{"status":400,"headers":{"content-type":"application/json"}}]
[0.001,"text","{\"error\":{\"message\":\"demo does not support tools\",\"type\":\"invalid_request_error\"}}"]
[0.001,"end","eof"]"#;
    fs::write(scratch.0.join("tape"), format!("{asked}\n{refused}\n{tag}")).expect("a tape");
    let ask = ASK.replace(
        "fixtures/tapes/huts.tape",
        "$SCRATCH/tape --tools-mode auto",
    );
    let (status, out, err) = scratch.run(&format!("{ask} --plain {QUESTION}"));
    assert_eq!((status, err.as_str()), (0, ""), "{out}");
    assert_eq!(out.matches("(tools_refused)").count(), 1, "{out}");
    assert!(
        out.contains("<- reserve done") && out.contains("sleeping bags"),
        "{out}"
    );
}

/// A stream with native calls passes tag-parse unchanged, even if its text looks like a call.
#[test]
fn tag_parse_leaves_a_native_stream_alone() {
    let scratch = Scratch::new();
    let events = r#"{"type":"stream_start","tools_mode":"native"}
{"type":"content_delta","text":"<tool name=\"reserve\">{}</tool>"}
{"type":"stream_end","finish_reason":"stop"}"#;
    fs::write(scratch.0.join("native"), format!("{events}\n")).expect("a file");
    let (status, out, err) = scratch.run(
        "{ llm-stream --replay fixtures/tapes/huts.tape; cat $SCRATCH/native; } >$SCRATCH/all
         tag-parse $SCRATCH/all >$SCRATCH/parsed && tag-parse --when always $SCRATCH/native",
    );
    assert_eq!(
        (status, err.as_str(), out.matches("tool_name").count()),
        (0, "", 1),
        "{out}"
    );
    // How text is split may change: what may begin a call of the model's family waits for more.
    let joined = |name: &str| {
        let log = scratch.read(name);
        let mut lines = Vec::new();
        let mut text = String::new();
        for event in testkit::events(&log) {
            match event["type"].as_str() {
                Some("content_delta") => text += event["text"].as_str().unwrap_or_default(),
                _ => lines.push((std::mem::take(&mut text), event)),
            }
        }
        lines
    };
    assert_eq!(joined("parsed"), joined("all"));
}

#[test]
fn mistakes_are_one_line_and_2() {
    let scratch = Scratch::new();
    for arguments in [
        "",
        "--no-such x",
        "--tools",
        "one two",
        "--tools no-such-file x",
        "--model demo --tape no-such-tape x",
        "--model demo --tools <(cat fixtures/tools/tools.json) x",
        "--model demo --policy <(echo) x",
        "--replay <(cat fixtures/logs/hermes.ndjson)",
    ] {
        let (status, out, err) = scratch.run(&format!("react {arguments}"));
        let line = err.lines().next().unwrap_or_default();
        assert_eq!(status, 2, "{arguments}: {out}{err}");
        assert!(
            line.contains(": ") && !line.contains("line "),
            "{arguments}: {err}"
        );
        let is_pipe = arguments.contains("<(");
        assert!(!is_pipe || line.contains("write it to a file"), "{err}");
        // Nothing has happened, so there is no log to continue.
        let left = fs::read_dir(&*scratch.0).map_or(0, Iterator::count);
        assert!(!err.contains("go on") && left == 0, "{arguments}: {err}");
    }
    // A question that is not on the tape is an error event, and the log can be continued.
    let (status, out, err) = scratch.run(&format!("{ASK} 'Something else?'"));
    assert_eq!(status, 2);
    assert!(
        out.is_empty()
            && err.lines().count() == 2
            && err.contains("(tape_miss)\nreact: stopped with status 2"),
        "{out}{err}"
    );
    assert!(scratch.read("log").contains("Something else?"));
}

#[test]
fn an_answer_that_cannot_be_shown_is_2_and_a_wrong_view_or_log_runs_nothing() {
    let scratch = Scratch::new();
    for wrong in ["-f foo", "--log /dev/full", "--log /dev/null"] {
        let (status, _, err) = scratch.run(&format!("{ASK} {wrong} {QUESTION}"));
        assert!(
            status == 2 && err.lines().count() == 1,
            "{wrong}: {status} {err}"
        );
        assert_eq!(scratch.read("reservations"), "", "{wrong}");
    }
    let (status, _, err) = scratch.run(&format!("{ASK} {QUESTION} >/dev/full"));
    assert!(
        status == 2 && err.contains("No space left"),
        "{status} {err}"
    );
    let (status, _, err) = scratch.run(&format!(
        "root=$PWD; cd $SCRATCH && react --tape $root/fixtures/tapes/huts.tape --model demo \
         --tools $root/fixtures/tools/tools.json --log -x.log --plain {QUESTION}"
    ));
    assert!(
        status == 0 && scratch.read("-x.log").ends_with('\n'),
        "a log that begins with a dash: {status} {err}"
    );
}

/// A terminal and /dev/null hold no text, and neither does a pipe without any.
#[test]
fn text_on_standard_input_belongs_to_the_question() {
    for (given, question, content) in [
        ("printf 'a\\nb\\n\\n' |", "Why?", r#""Why?\n\na\nb""#),
        ("printf '{\"a\":1}' |", "-5?", r#""-5?\n\n{\"a\":1}""#),
        ("<Cargo.toml", "Why?", r#""Why?\n\n[package]\n"#),
        ("printf '%0200000d' 0 |", "Why?", r#""Why?\n\n00000000"#),
        ("echo '--help' |", "", r#""--help""#),
        (": |", "Why?", r#""Why?""#),
        ("printf ' \\n' |", "Why?", r#""Why?""#),
        ("</dev/null", "Why?", r#""Why?""#),
    ] {
        let ask = |options: &str| {
            let question = match question {
                "" => String::new(),
                text => format!("--question '{text}'"),
            };
            format!("{ASK} --no-time {options} {question}")
        };
        let scratch = Scratch::new();
        let (status, out, err) = scratch.run(&format!("{given} {}", ask("")));
        let log = scratch.read("log");
        let asked = format!(r#"{{"type":"message","message":{{"role":"user","content":{content}"#);
        assert!(
            status == 2 && err.contains("(tape_miss)") && log.starts_with(&asked),
            "{given} {out}{err}{log}"
        );
        let printed = Scratch::new();
        let (_, line, _) = printed.run(&format!("{given} {}", ask("--print-pipeline")));
        printed.run(&format!("{given} bash -c {}", event::shell_word(&line)));
        assert_eq!(printed.read("log"), log, "{line}");
    }
    let scratch = Scratch::new();
    let (status, _, err) = scratch.run(&format!("echo {QUESTION} | {ASK}"));
    assert_eq!((status, &*err), (0, ""), "the text alone is the question");
}

#[test]
fn text_that_cannot_be_sent_is_an_error_before_anything_runs() {
    let scratch = Scratch::new();
    for (given, says) in [
        (
            "yes | tr -d '\\n' |",
            "larger than 1024 bytes; raise --max-line",
        ),
        ("yes |", "larger than 1024 bytes; raise --max-line"),
        (
            "printf 'a\\n\\377' |",
            ", line 2: not UTF-8, convert it first",
        ),
        ("</", "standard input: "),
    ] {
        let (status, out, err) = scratch.run(&format!(
            "set +o pipefail; {given} {ASK} --max-line 1K Why?"
        ));
        assert_eq!((status, &*out, err.lines().count()), (2, "", 1), "{err}");
        assert!(
            err.starts_with("react: standard input") && err.contains(says),
            "{given} {err}"
        );
        assert!(!scratch.0.join("log").exists(), "{given}");
    }
    // The text is not in the command that goes on.
    fs::write(
        scratch.0.join("log"),
        "{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"Hi\"}}\n",
    )
    .expect("a log");
    let (_, _, err) = scratch.run(&format!(
        "echo text | {} Why?",
        ASK.replace("huts.tape", "none.tape")
    ));
    let last = err.lines().last().unwrap_or_default();
    assert!(
        last.contains("--question 'Why?'") && last.ends_with(" # with the same standard input"),
        "{err}"
    );
}

/// Nobody can know whether a program that is silent will write: it is waited for.
#[test]
fn a_silent_pipe_is_waited_for_and_named() {
    let scratch = Scratch::new();
    let mut bash = scratch.bash(&format!("exec {ASK} {QUESTION}"));
    let mut child = bash
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("bash runs");
    let mut err = child.stderr.take().expect("a pipe");
    wait_for(&mut err, "react: still reading standard input to its end");
    drop(child.stdin.take());
    let mut out = String::new();
    child
        .stdout
        .take()
        .expect("a pipe")
        .read_to_string(&mut out)
        .expect("text");
    assert!(
        child.wait().expect("it ends").success() && out.contains("sleeping bags"),
        "{out}"
    );
}

/// The log keeps what has come, and the next run continues from it.
#[test]
fn a_reader_that_leaves_ends_the_loop_silently_with_0() {
    let scratch = Scratch::new();
    let script =
        format!("({ASK} -f text {QUESTION} -- --speed real; echo $? >$SCRATCH/status) | head -n 1");
    let (status, out, err) = scratch.run(&script);
    assert_eq!(
        (status, out.lines().count(), err.as_str()),
        (0, 1, ""),
        "{out}"
    );
    assert_eq!(scratch.read("status"), "0\n");
    let log = scratch.read("log");
    assert!(!log.contains("sleeping bags"), "the loop went on: {log}");
    goes_on(&scratch, "after head");
}

/// The error alone reports it; the last line is the way on.
#[test]
fn a_failure_is_reported_once() {
    let scratch = Scratch::new();
    let ask = "react --base-url http://127.0.0.1:1/v1 --retries 0 --model m --log $SCRATCH/log --plain hi | cat";
    let (status, out, err) = scratch.run(ask);
    assert_eq!(
        (
            status,
            out.matches("error: ").count(),
            out.contains("warning")
        ),
        (2, 1, false),
        "{out}"
    );
    assert!(
        err.lines().count() == 1 && err.contains("go on with: "),
        "{err}"
    );
}

/// No file may grow over so many KiB, as where a disk is full.
#[test]
fn a_log_that_cannot_grow_is_one_error_and_no_call_runs() {
    for most in [1, 8] {
        let scratch = Scratch::new();
        let script = format!("trap '' XFSZ; ulimit -f {most}; {ASK} --plain {QUESTION}");
        let (status, out, err) = scratch.run(&script);
        assert_eq!(status, 2, "{out}{err}");
        let full = "the log cannot be written (File too large (os error 27)), so no further call was started";
        assert!(
            err.lines().count() == 2 && err.matches(full).count() == 1,
            "{err}"
        );
        assert_eq!(scratch.read("reservations"), "", "{most}: {out}");
        goes_on(&scratch, "after a full disk");
    }
}

#[test]
fn at_most_so_many_steps() {
    let scratch = Scratch::new();
    let (status, out, err) = scratch.run(&format!("{ASK} --max-steps 2 {QUESTION}"));
    assert_eq!((status, &*out), (2, ""));
    assert!(err.contains("(max_steps)"), "{err}");
}

/// A log that ends anywhere, even in the middle of a line: the run continues from it to the same
/// answer, and nothing is reserved twice.
#[test]
fn a_log_that_was_cut_anywhere_is_gone_on_from() {
    cut_anywhere(ASK);
}

#[test]
fn a_log_of_tag_mode_that_was_cut_anywhere_is_gone_on_from() {
    cut_anywhere(ASK_TAG);
}

fn cut_anywhere(ask: &'static str) {
    let whole = Scratch::asking(ask);
    let (status, ..) = whole.run(&format!("{ask} {QUESTION}"));
    assert_eq!(status, 0);
    let log = whole.read("log");
    let reserved = whole.read("reservations");
    // Every kind of place: after a line and inside it, but not after each single delta; only the
    // first of its kind in tag mode, and without `LAWS=full`.
    let mut last = String::new();
    let mut seen = HashSet::new();
    let mut at = 0;
    for line in log.split_inclusive('\n') {
        let kind = line.get(..24).unwrap_or_default().to_owned();
        let is_new = seen.insert(kind.clone()) && is_named_tried(&kind, 2);
        if kind != last && (is_new || ask == ASK && is_full()) {
            let middle = if kind.contains("delta") {
                at
            } else {
                at + line.len() / 2
            };
            for cut in [middle, at + line.len()] {
                // Before the question is complete there is nothing to continue, and after the
                // answer nothing to do.
                if cut >= log.find('\n').unwrap_or_default()
                    && cut < log.rfind("{\"type\":\"message\"").unwrap_or_default()
                {
                    cut_there(ask, &log, cut, &reserved);
                }
            }
        }
        last = kind;
        at += line.len();
    }
}

fn cut_there(ask: &'static str, log: &str, cut: usize, reserved: &str) {
    let scratch = Scratch::asking(ask);
    fs::write(scratch.0.join("log"), &log.as_bytes()[..cut]).expect("a log");
    // A reservation that the log records was made.
    let whole = log[..cut].rfind('\n').map_or("", |end| &log[..end]);
    if whole.contains("reserved:") {
        fs::write(scratch.0.join("reservations"), reserved).expect("a file");
    }
    goes_on(&scratch, &format!("cut at byte {cut}"));
    assert_eq!(scratch.read("reservations"), reserved, "cut at byte {cut}");
}

/// SIGINT to the whole group, as Ctrl-C sends it, while text arrives.
#[test]
fn ctrl_c_ends_the_loop_and_the_log_is_closed() {
    for ask in [ASK, ASK_TAG] {
        let scratch = Scratch::asking(ask);
        let script = format!("{ask} -f text {QUESTION} -- --speed real");
        let mut child = scratch
            .bash(&script)
            .process_group(0)
            .spawn()
            .expect("bash runs");
        let mut out = child.stdout.take().expect("a pipe");
        wait_for(&mut out, "I'll");
        assert!(kill(format!("-{}", child.id()), "INT"));
        let mut rest = String::new();
        out.read_to_string(&mut rest).expect("text");
        assert_eq!(child.wait().expect("it ends").code(), Some(130), "{rest}");
        let log = scratch.read("log");
        whole_lines(&log);
        assert!(log.contains(r#""finish_reason":"cancelled""#), "{log}");
        goes_on(&scratch, "after Ctrl-C");
    }
}

/// SIGTERM to react alone, as `kill` and supervisors send it.
#[test]
fn sigterm_to_react_ends_its_stages() {
    let scratch = Scratch::new();
    let script = format!("exec {ASK} -f text {QUESTION} -- --speed real");
    let mut child = scratch.bash(&script).spawn().expect("bash runs");
    let mut out = child.stdout.take().expect("a pipe");
    wait_for(&mut out, "I'll");
    assert!(kill(child.id(), "TERM"));
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(143), "{rest}");
    let log = scratch.read("log");
    whole_lines(&log);
    assert!(log.contains(r#""finish_reason":"cancelled""#), "{log}");
    goes_on(&scratch, "after SIGTERM");
}

/// What `--print-pipeline` prints does in bash what react does.
#[test]
fn the_printed_pipeline_runs_in_bash_with_the_same_result() {
    for (ask, status) in [
        // Two calls at once would end in any order.
        (format!("{ASK} --jobs 1"), 0),
        (format!("{ASK_TAG} --jobs 1"), 0),
        (format!("{ASK} --plain --jobs 1"), 0),
        (
            format!("{ASK} -f json --jobs 1 --max-steps 2 -- --speed max"),
            2,
        ),
    ] {
        let (before, after) = ask.split_once(" -- ").unwrap_or((&ask, ""));
        let ask = format!("{before} --no-time {QUESTION} -- {after}");
        let react = Scratch::new();
        let ran = react.run(&ask);
        let bash = Scratch::new();
        let (printed, line, err) = bash.run(&ask.replacen("react ", "react --print-pipeline ", 1));
        assert_eq!((printed, line.lines().count(), &*err), (0, 1, ""), "{line}");
        assert!(!bash.0.join("log").exists(), "it prints, and does no more");
        let typed = bash.run(&line);
        assert_eq!(ran.0, status, "{ran:?}");
        assert_eq!((typed.0, &typed.1), (ran.0, &ran.1), "{line}{}", typed.2);
        assert_eq!(bash.read("log"), react.read("log"), "{line}");
        assert_eq!(bash.read("reservations"), react.read("reservations"));
    }
}

/// The stages are beside react, else in PATH.
#[test]
fn a_stage_that_is_missing_is_named_before_anything_runs() {
    let scratch = Scratch::new();
    let copy = "mkdir $SCRATCH/bin && cp \"$(command -v react)\" $SCRATCH/bin";
    let alone = ASK.replacen("react", "PATH= $SCRATCH/bin/react", 1);
    let (status, out, err) = scratch.run(&format!("{copy}; {alone} {QUESTION}"));
    assert_eq!((status, &*out, err.lines().count()), (2, "", 1), "{err}");
    assert!(
        err.starts_with("react: llm-stream is neither beside react nor in PATH, run ")
            && !scratch.0.join("log").exists(),
        "{err}"
    );
    let in_path = ASK.replacen("react", "$SCRATCH/bin/react", 1);
    let (status, _, err) = scratch.run(&format!("{in_path} {QUESTION}"));
    assert_eq!((status, &*err), (0, ""));
    let beside = "for stage in llm-stream tag-parse tc-accumulate tool-exec tc-view; do \
                  ln -s \"$(command -v $stage)\" $SCRATCH/bin; done";
    let (status, _, err) = scratch.run(&format!("rm $SCRATCH/log; {beside}; {alone} {QUESTION}"));
    assert_eq!((status, &*err), (0, ""));
}

/// Any stage killed in the middle of a turn: the loop stops with 2, the log holds complete lines,
/// and the next run continues from it.
#[test]
fn a_stage_that_is_killed_stops_the_loop() {
    for stage in ["llm-stream", "tag-parse", "tc-accumulate", "tool-exec"] {
        let scratch = Scratch::new();
        let script = format!("{ASK} -f text {QUESTION} -- --speed real");
        let mut child = scratch
            .bash(&script)
            .process_group(0)
            .spawn()
            .expect("bash runs");
        let mut out = child.stdout.take().expect("a pipe");
        wait_for(&mut out, "I'll");
        assert!(kill(process(child.id(), stage), "KILL"));
        let mut rest = String::new();
        out.read_to_string(&mut rest).expect("text");
        assert_eq!(
            child.wait().expect("it ends").code(),
            Some(2),
            "{stage}: {rest}"
        );
        let mut err = String::new();
        let from = child.stderr.as_mut().expect("a pipe");
        from.read_to_string(&mut err).expect("text");
        // A stage after it may report that its input was cut.
        let killed = format!("react: {stage} was killed by signal 9, go on with: ");
        assert!(
            err.lines().count() <= 2 && err.lines().last().is_some_and(|l| l.starts_with(&killed)),
            "{stage}: {err}"
        );
        goes_on(&scratch, stage);
    }
}

/// The last process of this name in a group.
fn process(group: u32, name: &str) -> String {
    let mut found = None;
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let Some(stat) = read_stat(&entry.path()) else {
            continue;
        };
        let Some((_, rest)) = stat.split_once(&format!("({name}) ")) else {
            continue;
        };
        if rest.split(' ').nth(2) == Some(&group.to_string()) {
            found = Some(entry.file_name().to_string_lossy().into_owned());
        }
    }
    found.unwrap_or_else(|| panic!("{name} does not run"))
}

fn read_stat(process: &Path) -> Option<String> {
    fs::read_to_string(process.join("stat")).ok()
}

/// The servers of the tools file are started once, for the list of tools and for the calls of all
/// turns.
#[test]
fn servers_of_tools_are_started_once_for_all_turns() {
    const SERVER: &str = r#"echo started >>"$1"
while read -r line; do
    id=${line##*\"id\":} id=${id%%[!0-9]*}
    case $line in
    *'"method":"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"t","version":"1"}}' ;;
    *'"method":"tools/list"'*) result='{"tools":[{"name":"beds","description":"Free beds.","inputSchema":{"type":"object"}}]}' ;;
    *'"method":"tools/call"'*) result='{"content":[{"type":"text","text":"4 beds by '$$'"}]}' ;;
    *) continue ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;
    let scratch = Scratch::new();
    let folder = scratch.0.display();
    fs::write(scratch.0.join("server.sh"), SERVER).expect("a server");
    let tools = format!(
        r#"{{"mcpServers":{{"huts":{{"command":"sh","args":["{folder}/server.sh","{folder}/started"],"class":"read"}}}}}}"#
    );
    fs::write(scratch.0.join("tools.json"), tools).expect("a tools file");
    let call = |id| Turn::calling(id, "huts__beds", &serde_json::json!({}));
    let turns = vec![call("call_1"), call("call_2"), Turn::says("Four beds.")];
    let provider = testkit::Server::of_turns(turns);
    let react = format!(
        "echo today | OPENAI_API_KEY=k react --base-url {} --api openai-chat -m demo -t $SCRATCH/tools.json --log $SCRATCH/log --plain {QUESTION}",
        provider.url
    );
    let (status, out, err) = scratch.run(&react);
    assert!(status == 2 && err.contains("--update-lock"), "{out}{err}");
    let (status, _, err) = scratch.run("tool-exec -t $SCRATCH/tools.json --update-lock");
    assert_eq!(status, 0, "{err}");
    let before = scratch.read("started").lines().count();
    let (status, out, err) = scratch.run(&react);
    assert!(status == 0 && out.contains("Four beds."), "{out}{err}");
    assert_eq!(scratch.read("started").lines().count(), before + 1);
    let log = scratch.read("log");
    assert!(
        log.contains(r"what should we pack?\n\ntoday"),
        "text goes through the hub: {log}"
    );
    let by: HashSet<&str> = log
        .split("4 beds by ")
        .skip(1)
        .map(|rest| &rest[..rest.find(['"', '\\']).unwrap_or(0)])
        .collect();
    assert_eq!(
        (log.matches(r#""type":"tool_result""#).count(), by.len()),
        (2, 1),
        "{log}"
    );
}

/// The messages of the request are the conversation, and the last one is the question. The first
/// answer is recorded for this question.
#[test]
fn react_answers_the_requests_of_tc_serve() {
    if !testkit::needs::programs(&["curl"]) {
        return;
    }
    let scratch = Scratch::new();
    let react = ASK.replace("--log $SCRATCH/log", "");
    let question = QUESTION.trim_matches('\'');
    let script = format!(
        r#"coproc service {{ exec tc-serve --listen 127.0.0.1:0 --no-key -- "$REACT"; }}
        read -r url <&"${{service[0]}}"
        curl -s -H 'content-type: application/json' "$url/v1/chat/completions" -d '{{"model":"x","messages":[{{"role":"user","content":"{question}"}}]}}'
        kill $service_PID"#
    );
    let output = scratch
        .bash(&script)
        .env("REACT", &react)
        .output()
        .expect("bash runs");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
        panic!(
            "{}",
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat())
        )
    });
    let content = answer["choices"][0]["message"]["content"]
        .as_str()
        .expect("a text");
    assert!(
        content.contains("Four beds in the **Lake hut**"),
        "{answer}"
    );
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    assert_eq!(
        scratch.read("reservations").lines().count(),
        1,
        "each tool runs once"
    );
    // A question or a log of its own would hide the request.
    let log = format!("TOOLPIPE_REQUEST_ID=1 {react} --log $SCRATCH/log");
    let (status, _, err) = scratch.run(&log);
    assert!(status == 2 && err.contains("leave --log out"), "{err}");
}
