//! `tc-view` as a command.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Output, Stdio};

fn tc_view(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tc-view"));
    command
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn run(args: &[&str], input: &str) -> Output {
    let mut child = tc_view(args).spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

fn texts(o: &Output) -> (i32, &str, &str) {
    (
        o.status.code().unwrap(),
        str::from_utf8(&o.stdout).unwrap(),
        str::from_utf8(&o.stderr).unwrap(),
    )
}

const TURN: &str = concat!(
    r#"{"type":"stream_start","v":1}"#,
    "\n",
    r#"{"type":"content_delta","text":"It is \u001b[31mcold\u202e."}"#,
    "\n",
    r#"{"type":"tool_call","index":0,"tool_id":"a","tool_name":"heat","arguments":{"to":20}}"#,
    "\n",
    r#"{"type":"tool_result","tool_id":"a","tool_name":"heat","status":"success","output":"on","duration_ms":7}"#,
    "\n",
);

#[test]
fn without_a_terminal_the_form_is_text_without_escapes() {
    for args in [&[][..], &["--format", "term"], &["--format", "text"]] {
        let expected =
            "It is \\x1b[31mcold\\u202e.\n\n-> heat {\"to\":20}\n<- heat done, 7.0 ms: on\n";
        assert_eq!(texts(&run(args, TURN)), (0, expected, ""), "{args:?}");
    }
    assert!(
        texts(&run(&["--no-time"], TURN))
            .1
            .contains("<- heat done: on\n")
    );
}

#[test]
fn json_is_one_object() {
    let out = run(&["-f", "json"], TURN);
    let call = r#"{"tool_id":"a","tool_name":"heat","arguments":{"to":20},"status":"success","output":"on"}"#;
    let expected = format!("{{\"text\":\"It is \\u001b[31mcold\u{202e}.\",\"calls\":[{call}]}}\n");
    assert_eq!(texts(&out), (0, expected.as_str(), ""));
}

#[test]
fn an_error_event_is_shown_and_makes_the_status_2() {
    let out = run(
        &[],
        "{\"type\":\"error\",\"source\":\"llm-stream\",\"code\":\"no_key\",\"message\":\"no key\"}\n",
    );
    assert_eq!(texts(&out), (2, "error: llm-stream: no key (no_key)\n", ""));
}

#[test]
fn a_line_that_is_no_event_is_shown_as_a_warning_or_is_fatal() {
    let out = run(&[], "what\n{\"type\":\"content_delta\",\"text\":\"ok\"}\n");
    let (status, stdout, stderr) = texts(&out);
    assert_eq!(status, 0);
    let warning = "warning: tc-view: line 1 of standard input is not an event: not a JSON object at byte 0 (not_an_event)";
    assert_eq!(stdout, format!("{warning}\n\nok\n"));
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    let out = run(&["--strict"], "what\n");
    let (status, _, stderr) = texts(&out);
    assert_eq!((status, stderr.lines().count()), (2, 1), "{stderr}");
}

/// A call that came in one delta without an id, as calls in text do: merged, with the delta kept
/// after it, and retracted by its index and by the id that it got.
#[test]
fn a_call_with_its_delta_behind_it_is_one_and_is_taken_back_once() {
    let call = r#"{"type":"tool_call","index":0,"tool_id":"a","tool_name":"f","arguments":{"x":1}}
{"type":"tool_call_delta","index":0,"tool_name":"f","arguments":"{\"x\":1}","done":true}
{"type":"tool_result","tool_id":"a","tool_name":"f","status":"success","output":"yes"}
"#;
    let out = run(&["--format", "text"], call);
    assert_eq!(texts(&out).1, "-> f {\"x\":1}\n<- f done: yes\n");
    let again = format!(
        "{}{}",
        call,
        call.replace("\"a\"", "\"b\"")
            .replace(r#""index":0"#, r#""index":1"#)
    );
    let out = run(&["--format", "text"], &again);
    assert_eq!(
        texts(&out).1.matches("-> f").count(),
        2,
        "{}",
        texts(&out).1
    );
    let retracted = format!(
        "{call}{}\n{}\n",
        r#"{"type":"retract","tool_id":"a","reason":"reasoning"}"#,
        r#"{"type":"retract","index":0,"reason":"reasoning"}"#
    );
    let out = run(&["--format", "text"], &retracted);
    assert_eq!(
        texts(&out).1.matches("taken back").count(),
        1,
        "{}",
        texts(&out).1
    );
}

#[test]
fn usage_errors_are_one_line() {
    for args in [
        &["--format", "html5"][..],
        &["--no-such"],
        &["no-such-file"],
    ] {
        let out = run_without_input(args);
        let (status, stdout, stderr) = texts(&out);
        assert_eq!(
            (status, stdout, stderr.lines().count()),
            (2, "", 1),
            "{stderr}"
        );
        assert!(stderr.starts_with("tc-view: "), "{stderr}");
    }
}

fn run_without_input(args: &[&str]) -> Output {
    tc_view(args).stdin(Stdio::null()).output().unwrap()
}

/// The text of a line is there before the next line is sent: nothing waits while the next read
/// would block.
#[test]
fn each_event_is_shown_at_once() {
    let mut child = tc_view(&[]).spawn().unwrap();
    let mut to = child.stdin.take().unwrap();
    let from = child.stdout.take().unwrap();
    let mut from = BufReader::new(from);
    for n in 0..20 {
        writeln!(
            to,
            "{{\"type\":\"content_delta\",\"text\":\"line {n}\\n\"}}"
        )
        .unwrap();
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        assert_eq!(line, format!("line {n}\n"));
    }
    drop(to);
    assert_eq!(ended(child), 0);
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let mut child = tc_view(&[]).spawn().unwrap();
    let mut to = child.stdin.take().unwrap();
    let mut from = child.stdout.take().unwrap();
    to.write_all(b"{\"type\":\"content_delta\",\"text\":\"a\"}\n")
        .unwrap();
    from.read_exact(&mut [0]).unwrap();
    drop(from);
    // Its standard input stays open: it ends because its reader has left.
    assert_eq!(ended(child), 0);
}

#[test]
fn a_full_disk_is_told() {
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut child = tc_view(&[]).stdout(full).spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(TURN.as_bytes())
        .unwrap();
    let out = child.wait_with_output().unwrap();
    let (status, _, stderr) = texts(&out);
    assert_eq!((status, stderr.lines().count()), (2, 1), "{stderr}");
}

/// The bytes that a terminal of 40 columns gets.
fn on_a_terminal(args: &[&str], variables: &[(&str, &str)]) -> String {
    use rustix::{pty, termios};
    let terminal = pty::openpt(pty::OpenptFlags::RDWR | pty::OpenptFlags::NOCTTY).unwrap();
    pty::grantpt(&terminal).unwrap();
    pty::unlockpt(&terminal).unwrap();
    let name = pty::ptsname(&terminal, Vec::new()).unwrap();
    let stdout = std::fs::File::options()
        .write(true)
        .open(name.to_str().unwrap())
        .unwrap();
    let size = termios::Winsize {
        ws_row: 20,
        ws_col: 40,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    termios::tcsetwinsize(&stdout, size).unwrap();
    let mut command = tc_view(args);
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command
        .env("TERM", "xterm")
        .envs(variables.iter().copied())
        .stdout(stdout);
    let mut child = command.spawn().unwrap();
    drop(command); // and with it this process's copy of the terminal's other end
    child
        .stdin
        .take()
        .unwrap()
        .write_all(TURN.as_bytes())
        .unwrap();
    // Reading fails when every copy of the other end is closed.
    let mut seen = Vec::new();
    let _ = std::fs::File::from(terminal).read_to_end(&mut seen);
    assert_eq!(ended(child), 0);
    String::from_utf8(seen).unwrap()
}

#[test]
fn a_terminal_gets_cards_that_change_in_place() {
    let seen = on_a_terminal(&[], &[]);
    assert!(seen.contains("It is \\x1b[31mcold\\u202e."), "{seen:?}");
    let (before, after) = seen.split_once("\u{1b}[J").unwrap();
    assert!(
        before.contains("○") && before.contains("called"),
        "{before:?}"
    );
    assert!(
        after.contains("✓") && after.contains("\u{1b}[34G") && after.contains("7.0 ms"),
        "{after:?}"
    );
    assert!(seen.contains("\u{1b}[1m"), "{seen:?}");

    for (args, variables) in [
        (&[][..], &[("NO_COLOR", "1")][..]),
        (&[], &[("CLICOLOR", "0")]),
        (&["--color", "never"], &[("CLICOLOR_FORCE", "1")]),
    ] {
        let plain = on_a_terminal(args, variables);
        assert!(
            plain.contains("\u{1b}[J") && plain.contains("✓ heat"),
            "{plain:?}"
        );
        assert!(
            !plain.contains("\u{1b}[1m") && !plain.contains("\u{1b}[2m"),
            "{plain:?}"
        );
    }
    assert!(on_a_terminal(&["--color", "always"], &[("NO_COLOR", "1")]).contains("\u{1b}[1m"));

    let dumb = on_a_terminal(&[], &[("TERM", "dumb")]);
    assert!(
        !dumb.contains('\u{1b}') && dumb.contains("-> heat"),
        "{dumb:?}"
    );
}

#[test]
fn json_on_a_terminal_has_its_hidden_characters_escaped() {
    let seen = on_a_terminal(&["--format", "json"], &[]);
    assert!(
        seen.starts_with("{\"text\":\"It is \\u001b[31mcold\\u202e.\","),
        "{seen:?}"
    );
}

/// Ctrl-C goes to the whole pipe: the stage that runs calls takes some time to end them, and the
/// view must show their results.
#[test]
fn after_a_signal_the_results_of_running_calls_are_still_shown() {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut child = tc_view(&[]).spawn().unwrap();
    let mut to = child.stdin.take().unwrap();
    let from = child.stdout.take().unwrap();
    let mut from = BufReader::new(from);
    let call = r#"{"type":"tool_use","tool_id":"a","tool_name":"slow","status":"running"}"#;
    writeln!(to, "{call}").unwrap();
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    assert_eq!(line, "-> slow\n");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    // It goes on reading, however long nothing comes (without a running call it would end after
    // half a second).
    let second = Timespec {
        tv_sec: 1,
        tv_nsec: 500_000_000,
    };
    assert_eq!(
        poll(
            &mut [PollFd::new(from.get_ref(), PollFlags::IN)],
            Some(&second)
        ),
        Ok(0)
    );
    let result = r#"{"type":"tool_result","tool_id":"a","tool_name":"slow","status":"cancelled","output":""}"#;
    writeln!(to, "{result}").unwrap();
    line.clear();
    from.read_line(&mut line).unwrap();
    assert_eq!(line, "<- slow cancelled\n");
    drop(to);
    assert_eq!(ended(child), 130);
}

#[test]
fn interrupts_that_are_ignored_end_nothing() {
    let mut child = tc_view(&["--ignore-interrupts"]).spawn().unwrap();
    let mut to = child.stdin.take().unwrap();
    let from = child.stdout.take().unwrap();
    let mut from = BufReader::new(from);
    let mut line = String::new();
    for (event, shown) in [
        (
            r#"{"type":"tool_use","tool_id":"a","tool_name":"slow","status":"running"}"#,
            "-> slow\n",
        ),
        (
            r#"{"type":"tool_result","tool_id":"a","tool_name":"slow","status":"cancelled","output":""}"#,
            "<- slow cancelled\n",
        ),
    ] {
        writeln!(to, "{event}").unwrap();
        line.clear();
        from.read_line(&mut line).unwrap();
        assert_eq!(line, shown);
        let pid = rustix::process::Pid::from_child(&child);
        (0..2).for_each(|_| {
            rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap()
        });
    }
    drop(to);
    assert_eq!(ended(child), 0);
}

fn ended(mut child: Child) -> i32 {
    let status = child.wait().unwrap().code().unwrap();
    let mut stderr = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut stderr)
        .unwrap();
    assert_eq!(stderr, "");
    status
}

const ANSWERED: &str = concat!(
    r#"{"type":"message","message":{"role":"user","content":"Is it cold?"}}"#,
    "\n",
    r#"{"type":"stream_start","v":1}"#,
    "\n",
    r#"{"type":"thinking","text":"Hm."}"#,
    "\n",
    r#"{"type":"content_delta","text":"\n\nIt is \u001b[31mcold\u202e.\r\n"}"#,
    "\n",
    r#"{"type":"stream_end","finish_reason":"stop"}"#,
    "\n",
);

#[test]
fn the_answer_alone_is_as_the_model_wrote_it() {
    let out = run(&["-f", "answer"], ANSWERED);
    assert_eq!(texts(&out), (0, "It is \u{1b}[31mcold\u{202e}.\n", ""));
    // A refusal is an answer, too; neither is what was answered before.
    let refused = format!(
        "{ANSWERED}{}",
        ANSWERED.replace("content_delta", "refusal_delta")
    );
    assert_eq!(texts(&run(&["-f", "answer"], &refused)).1, texts(&out).1);
    let asked = ANSWERED.lines().next().unwrap();
    assert_eq!(
        texts(&run(&["-f", "answer"], &format!("{ANSWERED}{asked}\n"))).1,
        ""
    );
}

/// A turn that failed, was cut or waits for results has none.
#[test]
fn an_answer_that_is_not_whole_is_none() {
    let error = r#"{"type":"error","source":"llm-stream","code":"disconnected","message":"gone"}"#;
    let call = r#"{"type":"tool_call","index":0,"tool_id":"a","tool_name":"heat","arguments":{}}"#;
    let result = r#"{"type":"tool_result","tool_id":"a","tool_name":"heat","status":"success","output":"on"}"#;
    let end = r#"{"type":"stream_end","finish_reason":"stop"}"#;
    let before = |line: &str| ANSWERED.replace(end, &format!("{line}\n{end}"));
    let ending = |reason: &str| ANSWERED.replace("\"stop\"", &format!("\"{reason}\""));
    let cut = "tc-view: warning: the connection ended before the answer did\n";
    for (log, status, err) in [
        (
            before(error),
            2,
            "tc-view: llm-stream: gone (disconnected)\n",
        ),
        (ending("cut"), 0, cut),
        (
            ending("cut").replace(
                "{\"type\":\"stream_end\"",
                &format!("{error}\n{{\"type\":\"stream_end\""),
            ),
            2,
            "tc-view: llm-stream: gone (disconnected)\n",
        ),
        (ending("cancelled"), 0, ""),
        (before(call), 0, ""),
        (before(&format!("{call}\n{result}")), 0, ""),
        (ANSWERED.replace(&format!("{end}\n"), ""), 0, ""),
    ] {
        let out = run(&["-f", "answer"], &log);
        assert_eq!(texts(&out), (status, "", err), "{log}");
    }
    // The output of a tool that answers is the answer, and a call that was taken back counts no more.
    let direct = result.replace("\"on\"", "\"on\",\"return_directly\":true");
    let out = run(&["-f", "answer"], &before(&format!("{call}\n{direct}")));
    assert_eq!(texts(&out), (0, "on\n", ""));
    let retract = r#"{"type":"retract","tool_id":"a","reason":"reasoning"}"#;
    let out = run(&["-f", "answer"], &before(&format!("{call}\n{retract}")));
    assert!(texts(&out).1.starts_with("It is "), "{out:?}");
}

#[test]
fn notices_that_an_answer_does_not_show_are_on_standard_error() {
    let warning =
        r#"{"type":"warning","source":"tag-parse","code":"tag_unread","message":"read it"}"#;
    let out = run(&["-f", "answer"], &format!("{warning}\n{ANSWERED}"));
    let (status, stdout, stderr) = texts(&out);
    assert!(status == 0 && stdout.starts_with("It is"), "{stdout}");
    assert_eq!(
        stderr,
        "tc-view: warning: tag-parse: read it (tag_unread)\n"
    );
    // Only so many; a line that is not an event is one line.
    let out = run(&["-f", "answer"], &format!("{warning}\n").repeat(100));
    let (_, _, stderr) = texts(&out);
    assert_eq!(stderr.lines().count(), 10);
    assert!(
        stderr.ends_with("; further warnings are not reported\n"),
        "{stderr}"
    );
    let out = run(&["-f", "answer"], &format!("what\n{ANSWERED}"));
    assert_eq!(texts(&out).2.lines().count(), 1, "{out:?}");
    // Other forms show them.
    let out = run(&["-f", "text"], &format!("{warning}\n{ANSWERED}"));
    assert_eq!(texts(&out).2, "");
}

#[test]
fn events_are_the_lines_themselves() {
    let odd = "{ \"type\" : \"content_delta\", \"text\":\"\u{202e}\\u001b\", \"more\":1.50 }\n{\"type\":\"new\"}\n";
    let log = format!("{odd}\n{ANSWERED}{TURN}");
    let out = run(&["-f", "events"], &log);
    assert_eq!(texts(&out), (0, &*log.replace("\n\n", "\n"), ""));
    let bare = run(
        &["-f", "events"],
        "{\"role\":\"user\",\"content\":\"Hi\"}\n",
    );
    let message = r#"{"type":"message","message":{"role":"user","content":"Hi"}}"#;
    assert_eq!(texts(&bare), (0, &*format!("{message}\n"), ""));
    let long = run(&["-f", "events", "--max-line", "40"], &log);
    assert!(!texts(&long).1.contains("\n\n"), "{long:?}");
}
