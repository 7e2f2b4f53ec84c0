//! Standard input: a log, or words to ask about.

#![allow(clippy::unwrap_used, reason = "it is how a test fails")]

use crate::scripted::*;
use serde_json::json;
use std::fs::File as Handle;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

const LOG: &str = "{\"role\":\"user\",\"content\":\"one\"}\n";

fn run_bytes(args: &[&str], stdin: &[u8]) -> Ran {
    let mut command = command(&["--dry-run", "--model", "m"]);
    let mut child = command.args(args).stdin(Stdio::piped()).spawn().unwrap();
    // The command may refuse before it has read everything.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    finish(child, None)
}

/// What is asked: the contents of all messages.
fn asked(args: &[&str], stdin: &str) -> Vec<String> {
    let ran = run_bytes(args, stdin.as_bytes());
    assert_eq!(ran.status, 0, "{ran:?}");
    let body: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["content"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn words_come_after_the_prompt_or_are_the_question() {
    let notes = "Buy milk.\n\n\tand \"bread\"\r\n";
    assert_eq!(
        asked(&["summarise"], notes),
        ["summarise\n\nBuy milk.\n\n\tand \"bread\""]
    );
    assert_eq!(asked(&[], notes), ["Buy milk.\n\n\tand \"bread\""]);
    assert_eq!(asked(&[""], notes), ["Buy milk.\n\n\tand \"bread\""]);
    assert_eq!(asked(&["--system", "Rhyme.", "hi"], notes).len(), 2);
    // As the shell's $(cat notes.txt): line ends at the end do not count, and so tapes find the
    // same request.
    assert_eq!(asked(&["a"], "b"), asked(&["a"], "b\n\n"));
    // A byte order mark is dropped: it is not text, and a log may begin with one.
    assert_eq!(asked(&[], "\u{feff}Why?\n"), ["Why?"]);
    assert_eq!(asked(&["two"], &format!("\u{feff}{LOG}")), ["one", "two"]);
    // A line that is JSON but not an object is text too.
    for text in [
        "[1,2]",
        "17",
        "\"x\"",
        "{\n  \"a\": 1\n}",
        "{'role': 'user'}",
        "{\"role\":\"user\",\"content\":\"cut",
    ] {
        assert_eq!(
            asked(&["explain"], text),
            [format!("explain\n\n{text}")],
            "{text}"
        );
    }
    for api in [
        "openai-responses",
        "anthropic",
        "gemini",
        "ollama",
        "mistral",
        "cohere",
    ] {
        let ran = run_bytes(&["--api", api, "summarise"], notes.as_bytes());
        assert!(
            ran.stdout.contains("summarise\\n\\nBuy milk."),
            "{api} {ran:?}"
        );
    }
}

#[test]
fn the_message_that_is_written_holds_prompt_and_words() {
    for (args, content) in [
        (&["summarise"][..], "summarise\n\nBuy milk."),
        (&[], "Buy milk."),
    ] {
        let server = Server::new(vec![answer("200 OK", SSE, chat(&["Milk."]))]);
        let ran = run_with(asking(&server, args), "Buy milk.\n");
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
        assert_eq!(
            ran.events()[0],
            json!({"type": "message", "message": {"role": "user", "content": content}})
        );
        assert_eq!(
            server.asked()[0].body["messages"],
            json!([{"role": "user", "content": content}])
        );
        // So it is a log by which the next turn goes on.
        let log = ran.stdout + "{\"role\":\"assistant\",\"content\":\"Milk.\"}\n";
        assert_eq!(
            asked(&["And?"], &log)[..],
            [content, "Milk.", "And?"].map(str::to_owned)
        );
    }
}

#[test]
fn one_value_with_messages_is_the_conversation() {
    let list = "[\n  {\"role\": \"user\", \"content\": \"one\"}\n]";
    for text in [
        format!("{list}\n"),
        list.replace('\n', ""),
        format!("{{\n\"messages\": {list}\n}}\n"),
        format!("{{\"messages\": {}}}\n", list.replace('\n', "")),
    ] {
        assert_eq!(asked(&["two"], &text), ["one", "two"], "{text}");
    }
    // An array of anything else is a text.
    assert_eq!(asked(&["two"], "[1]\n"), ["two\n\n[1]"]);
    let ran = run_bytes(&["two"], b"{\"conversations\":[]}\n");
    assert!(ran.stderr.contains("ShareGPT"), "{ran:?}");
}

#[test]
fn a_log_with_a_damaged_line_stays_a_log() {
    for damaged in ["nonsense", "{\"role\":\"user\",\"content\":\"cu", "[1]"] {
        for log in [
            format!("{LOG}{damaged}\n"),
            format!("{damaged}\n{LOG}"),
            format!("\n{damaged}\r\n\r\n{LOG}"),
        ] {
            let ran = run_bytes(&["two"], log.as_bytes());
            assert!(
                ran.stderr.contains("not an event") && ran.stdout.lines().count() == 1,
                "{ran:?}"
            );
            assert_eq!(asked(&["two"], &log), ["one", "two"]);
        }
    }
    // JSON objects that are not messages are not sent; a line on standard error reports it.
    let ran = run_bytes(&["explain"], b"{\"a\":1}\n{\"b\":2}\n");
    assert!(
        ran.stderr
            .lines()
            .any(|l| l.contains("nothing of it is sent") && l.contains("PROMPT")),
        "{ran:?}"
    );
    assert_eq!(asked(&["explain"], "{\"a\":1}\n"), ["explain"]);
}

#[test]
fn nothing_but_white_space_is_nothing() {
    for nothing in ["", "\n", " \t\r\n\n", "\u{feff}\n"] {
        assert_eq!(asked(&["hi"], nothing), ["hi"], "{nothing:?}");
        let ran = run_bytes(&[], nothing.as_bytes());
        assert!(
            ran.refusal().contains("give a PROMPT"),
            "{nothing:?} {ran:?}"
        );
    }
}

#[test]
fn what_cannot_be_sent_whole_is_refused() {
    for (args, input, says) in [
        (&["hi"][..], &b"caf\xe9\n"[..], "line 1"),
        (&["hi"], b"a\nb\n\x89PNG\r\n\x1a\n\0\0", "iconv"),
        (&[], b"\xff\xfeh\0i\0", "not UTF-8"),
        (
            &["--max-line", "10", "hi"],
            b"short\n12345678901\n",
            "--max-line",
        ),
        (
            &["--max-line", "10", "hi"],
            b"1234\n5678\n90\n",
            "--max-line",
        ),
        (
            &["--max-line", "10", "hi"],
            b"1234567890123456789012345678901234567890",
            "--max-line",
        ),
        (&["--strict", "hi"], b"\nBuy milk.\n", "line 2"),
        (&["--strict"], b"Buy milk.", "line 1"),
        (&["--strict", "hi"], b"caf\xe9\n", "line 1"),
    ] {
        let ran = run_bytes(args, input);
        assert!(
            ran.refusal().contains(says) && ran.stderr.contains("standard input"),
            "{args:?} {ran:?}"
        );
    }
    // Text without an end is not read for ever.
    let mut child = command(&["--model", "m", "--dry-run", "--max-line", "1M", "hi"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    while stdin.write_all(b"more and more\n").is_ok() {}
    assert!(finish(child, None).refusal().contains("--max-line"));
    // As much as is allowed is sent.
    assert_eq!(asked(&["--max-line", "10"], "1234\n567\n"), ["1234\n567"]);
}

/// Standard error is a terminal and standard input never ends, as where a program that starts this
/// one leaves a pipe open.
#[test]
fn who_waits_at_a_terminal_is_told_for_what() {
    let start = |args: &[&str], input: &str| {
        let (terminal, other_end) = terminal().unwrap();
        let mut command = command(&["--dry-run", "--model", "m"]);
        let mut child = command
            .args(args)
            .stdin(Stdio::piped())
            .stderr(Stdio::from(other_end))
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        (child, stdin, BufReader::new(terminal))
    };
    let reported = |screen: &mut BufReader<Handle>| {
        let mut line = String::new();
        screen.read_line(&mut line).unwrap();
        assert!(
            line.contains("llm-stream: still reading standard input")
                && line.contains("</dev/null"),
            "{line}"
        );
    };
    let stopped = ["-INT", "-TERM"].map(|signal| (signal, start(&["hi"], "words")));
    for (child, mut stdin, mut screen) in [start(&["hi"], ""), start(&[], ""), start(&["hi"], LOG)]
    {
        reported(&mut screen);
        // It goes on waiting, and reports it once.
        stdin.write_all(LOG.as_bytes()).unwrap();
        drop(stdin);
        let ran = finish(child, None);
        assert!(ran.status == 0 && ran.stdout.contains("one"), "{ran:?}");
        let mut rest = vec![];
        // A terminal whose last other end was closed gives an error.
        let _ = screen.read_to_end(&mut rest);
        assert!(!String::from_utf8_lossy(&rest).contains("</dev/null"));
    }
    // Whoever reads the message may stop the command: nothing of the input so far is sent.
    for (signal, (child, _stdin, mut screen)) in stopped {
        reported(&mut screen);
        assert!(kill(child.id(), signal));
        let ran = finish(child, None);
        assert_eq!(
            (ran.status, ran.stdout.as_str()),
            (if signal == "-INT" { 130 } else { 143 }, "")
        );
    }
}
