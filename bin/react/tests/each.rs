//! `--each`: a row for each line of standard input.

#![allow(clippy::unwrap_used, reason = "it is how a test fails")]

use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use testkit::{PATIENCE, Ran, Request, Scratch, Server, Turn, kill, run_with};

/// The text of the last message of a request.
fn last(request: &Request) -> String {
    let messages = request.body["messages"].as_array().unwrap();
    let content = &messages.last().unwrap()["content"];
    content.as_str().unwrap_or_default().to_owned()
}

/// A model that repeats the question in brackets.
fn echo() -> Server {
    Server::answering(|_, request, stream| {
        stream.answer(request, &Turn::says(&format!("<{}>", last(request))));
        false
    })
}

/// The command that asks `server`, with a folder of its own for state and temporary files.
fn react(server: &Server, folder: &Scratch, words: &[&str]) -> Command {
    let mut command = Command::new(testkit::program("react"));
    command
        .args(["--base-url", &server.url, "--model", "m", "--each"])
        .args(words)
        .env("XDG_CONFIG_HOME", folder.path("config"))
        .env("XDG_STATE_HOME", folder.path("state"))
        .env("TMPDIR", folder.path(""))
        .current_dir(folder.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The command `plain`, started by the command of these words.
fn under(words: &[&str], plain: &Command, folder: &Scratch) -> Command {
    let envs = plain
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .arg(plain.get_program())
        .args(plain.get_args())
        .envs(envs)
        .current_dir(folder.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn rows(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Rows with the answers of [`echo`] to these lines.
fn echoed(lines: &[&str]) -> Vec<Value> {
    let row = |line: &&str| json!({"input": line, "answer": format!("<{line}>")});
    lines.iter().map(row).collect()
}

fn is_clean(ran: &Ran, status: i32) {
    assert_eq!((ran.status, &*ran.stderr), (status, ""), "{ran:?}");
}

#[test]
fn rows_have_the_order_of_their_lines_or_that_of_the_answers() {
    for is_unordered in [false, true] {
        let folder = Scratch::new();
        let answered = Arc::new((Mutex::new(0), Condvar::new()));
        let server = Server::answering(move |_, request, stream| {
            let (count, more) = &*answered;
            if last(request) == "a" {
                let count = count.lock().unwrap();
                let wait = more.wait_timeout_while(count, PATIENCE, |count| *count < 3);
                drop(wait.unwrap());
            }
            stream.answer(request, &Turn::says(&format!("<{}>", last(request))));
            *count.lock().unwrap() += 1;
            more.notify_all();
            false
        });
        let words: &[&str] = if is_unordered {
            &["--unordered", "-j", "2"]
        } else {
            &["-j", "2"]
        };
        let ran = run_with(react(&server, &folder, words), "a\nb\n\nc\nd\n");
        is_clean(&ran, 0);
        let mut got = rows(&ran.stdout);
        assert_eq!(got[0]["input"] == "a", !is_unordered, "{ran:?}");
        got.sort_by_key(|row| row["input"].to_string());
        assert_eq!(got, echoed(&["a", "b", "c", "d"]));
    }
}

#[test]
fn a_row_has_its_input_as_it_came_and_an_error_is_a_row() {
    let folder = Scratch::new();
    let server = Server::answering(|_, request, stream| {
        if last(request).contains("bad") {
            let body = "{\"error\":{\"message\":\"no such thing\"}}";
            let length = body.len();
            let head = format!(
                "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
            );
            let _ = stream.write_all(head.as_bytes());
            return false;
        }
        stream.answer(request, &Turn::says(&format!("<{}>", last(request))));
        false
    });
    let lines = "{\"word\": \"one\", \"n\": 1.50}\n{\"n\":2}\n{\"word\":\"bad\"}\nplain\n\"{\\\"a\\\":1}\"\n";
    let ran = run_with(react(&server, &folder, &["Say {{.word}}"]), lines);
    assert_eq!(ran.status, 2, "{ran:?}");
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(
        lines[0],
        r#"{"input":{"word": "one", "n": 1.50},"answer":"<Say one>"}"#
    );
    let got = rows(&ran.stdout);
    let lacks = "the input has no .word, which the question names";
    for (at, input, code, message) in [
        (1, json!({"n": 2}), "invalid_input", lacks),
        (
            2,
            json!({"word": "bad"}),
            "http_400",
            "HTTP 400: no such thing",
        ),
        (3, json!("plain"), "invalid_input", lacks),
        (4, json!("{\"a\":1}"), "invalid_input", lacks),
    ] {
        let want = json!({"input": input, "error": {"code": code, "message": message}});
        assert_eq!(got[at], want);
    }
    assert_eq!(got.len(), 5);
}

/// A tools file with a tool that is harmless, and one that needs an approval.
fn tools(folder: &Scratch) -> String {
    let tool = |name: &str, class: &str| {
        json!({"name": name, "description": "A tool.",
            "parameters": {"type": "object", "properties": {"of": {"type": "string"}}},
            "exec": {"class": class, "command": ["echo", "result of {of}"]}})
    };
    let path = folder.path("tools.json");
    fs::write(
        &path,
        json!([tool("look", "read"), tool("harm", "danger")]).to_string(),
    )
    .unwrap();
    path.display().to_string()
}

/// A model that calls the tool that the question names, and then tells its result.
fn caller() -> Server {
    Server::answering(|_, request, stream| {
        let messages = request.body["messages"].as_array().unwrap();
        let question = messages[0]["content"].as_str().unwrap();
        let turn = match (question, messages.len()) {
            ("look" | "harm", 1) => Turn::calling(
                &format!("call_{question}"),
                question,
                &json!({"of": question}),
            ),
            _ => Turn::says(&format!("{}: {}", messages.len(), last(request).trim())),
        };
        stream.answer(request, &turn);
        false
    })
}

#[test]
fn calls_run_between_the_turns_and_one_that_needs_approval_makes_its_row_pending() {
    let folder = Scratch::new();
    let server = caller();
    let tools = tools(&folder);
    let ran = run_with(
        react(&server, &folder, &["-t", &tools]),
        "look\nharm\nhello\nlook\n",
    );
    is_clean(&ran, 3);
    let looked = json!({"input": "look", "answer": "3: result of look"});
    let pending = json!([{"id": "call_harm", "name": "harm", "arguments": "{\"of\":\"harm\"}"}]);
    assert_eq!(
        rows(&ran.stdout),
        [
            looked.clone(),
            json!({"input": "harm", "pending": pending}),
            json!({"input": "hello", "answer": "1: hello"}),
            looked,
        ]
    );
    let left: Vec<_> = fs::read_dir(folder.path(""))
        .unwrap()
        .map(|file| file.unwrap().file_name())
        .collect();
    assert_eq!(left, ["tools.json"], "the logs of the lines are gone");
}

#[test]
fn the_members_of_a_schema_are_those_of_the_row() {
    let folder = Scratch::new();
    let schema = folder.path("schema.json");
    let of = |name: &str| {
        json!({"type": "object", "properties": {name: {"type": "integer"}}, "required": [name]})
            .to_string()
    };
    fs::write(&schema, of("n")).unwrap();
    let path = schema.display().to_string();
    let server = Server::answering(|_, request, stream| {
        let count = request.body["messages"].as_array().unwrap().len();
        let text = if count == 1 {
            "seven"
        } else {
            "```json\n{\"n\":\n7, \"s\": \"a\\nb\"}\n```"
        };
        stream.answer(request, &Turn::says(text));
        false
    });
    let ran = run_with(react(&server, &folder, &["--schema", &path]), "a\n");
    is_clean(&ran, 0);
    assert_eq!(ran.stdout, "{\"input\":\"a\",\"n\":7,\"s\":\"a\\nb\"}\n");
    fs::write(&schema, of("error")).unwrap();
    let ran = run_with(react(&server, &folder, &["--schema", &path]), "a\n");
    assert!(
        ran.status == 2 && ran.stderr.contains("\"error\""),
        "{ran:?}"
    );
}

#[test]
fn an_answer_that_breaks_off_is_asked_for_again() {
    let folder = Scratch::new();
    let server = Server::answering(|number, request, stream| {
        let answer = Turn::says("whole").answers(request);
        let is_lost = last(request) == "lost" || number == 0;
        let end = if is_lost {
            answer.len() / 2
        } else {
            answer.len()
        };
        let _ = stream.write_all(&answer[..end]);
        false
    });
    let ran = run_with(react(&server, &folder, &["-j", "1"]), "a\nlost\n");
    assert_eq!(ran.status, 2, "{ran:?}");
    let got = rows(&ran.stdout);
    assert_eq!(got[0], json!({"input": "a", "answer": "whole"}));
    assert_eq!(got[1]["error"]["code"], "disconnected");
    assert_eq!(server.asked().len(), 2 + 3, "each at most three times");
}

/// How often each question was asked.
fn asked(server: &Server) -> HashMap<String, usize> {
    let mut asked = HashMap::new();
    for request in server.asked() {
        *asked.entry(last(&request)).or_default() += 1;
    }
    asked
}

#[test]
fn a_file_of_rows_goes_on_where_it_stopped() {
    let folder = Scratch::new();
    let server = echo();
    let lines = "a\nb\na\n{\"x\":1}\n";
    let whole = "{\"input\":\"a\",\"answer\":\"<a>\"}\n{\"input\":\"b\",\"answer\":\"<b>\"}\n{\"input\":\"a\",\"answer\":\"<a>\"}\n{\"input\":{\"x\":1},\"answer\":\"<{\\\"x\\\":1}>\"}\n";
    let rest = |file: &str, lines: &str| {
        fs::write(folder.path("rows"), file).unwrap();
        let ran = run_with(react(&server, &folder, &["--rows", "rows"]), lines);
        is_clean(&ran, 0);
        assert_eq!(ran.stdout, "");
        (folder.read("rows"), asked(&server).values().sum::<usize>())
    };
    assert_eq!(rest("", lines), (whole.to_owned(), 4));
    assert_eq!(rest(whole, lines), (whole.to_owned(), 0));
    // Wherever a kill has cut the file, its last line is mended.
    let mut ends = 0;
    for at in 0..whole.len() {
        let there = whole[..at].matches('\n').count();
        // A row that lacks its line feed alone is there.
        let there = there + usize::from(whole[at..].starts_with('\n'));
        ends += usize::from(whole[at..].starts_with('\n'));
        if at % 7 == 0 || whole[at..].starts_with('\n') {
            assert_eq!(
                rest(&whole[..at], lines),
                (whole.to_owned(), 4 - there),
                "at {at}"
            );
        }
    }
    assert_eq!(ends, 4);
    // An identity is a value, however it is spelt and wherever it stands; equal lines are two rows.
    let spelt =
        "{ \"answer\" : \"?\", \"input\" : {\"x\" :\t1} }\n{\"input\":\"\\u0061\",\"error\":{}}\n";
    let more = "{\"input\":\"a\",\"answer\":\"<a>\"}\n{\"input\":\"b\",\"answer\":\"<b>\"}\n";
    assert_eq!(
        rest(spelt, "a\na\n{\"x\":1}\nb\n"),
        (format!("{spelt}{more}"), 2)
    );
}

#[test]
fn a_form_of_the_output_is_refused() {
    let folder = Scratch::new();
    for words in [["-f", "text"], ["--plain", "Q"]] {
        let ran = run_with(react(&echo(), &folder, &words), "a\n");
        assert!(
            ran.refusal().contains("leave --format out"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn a_file_that_holds_no_rows_is_refused_as_it_is() {
    let folder = Scratch::new();
    let server = echo();
    for text in ["a\n", "{\"input\":1}\n{\"output\":1}\n", "notes"] {
        fs::write(folder.path("rows"), text).unwrap();
        let ran = run_with(react(&server, &folder, &["--rows", "rows"]), "a\n");
        assert!(
            ran.status == 2 && ran.stderr.contains("not a row"),
            "{ran:?}"
        );
        assert_eq!(folder.read("rows"), text);
    }
    assert_eq!(server.asked().len(), 0);
}

#[test]
fn a_full_disk_is_an_error() {
    let folder = Scratch::new();
    let server = echo();
    let ran = run_with(react(&server, &folder, &["--rows", "/dev/full"]), "a\n");
    assert!(
        ran.status == 2 && ran.stderr.contains("not an ordinary file"),
        "{ran:?}"
    );
    // A file that may not grow, as on a full disk: the rows that fit stay whole.
    let words = ["bash", "-c", "ulimit -f 1; trap '' XFSZ; exec \"$@\"", "-"];
    let plain = react(&server, &folder, &["--rows", "rows", "-j", "1"]);
    let limited = under(&words, &plain, &folder);
    let lines: String = (0..40)
        .map(|n| format!("line {n} {}\n", "x".repeat(30)))
        .collect();
    let ran = run_with(limited, &lines);
    assert!(
        ran.status == 2 && ran.stderr.contains("a row cannot be written"),
        "{ran:?}"
    );
    let text = folder.read("rows");
    assert!(text.ends_with('\n') && text.lines().count() < 40, "{text}");
    rows(&text);
}

/// Kills the run while answers that have come wait for an earlier one.
#[test]
fn no_line_is_asked_about_again_after_its_answer_though_the_run_was_killed() {
    let folder = Scratch::new();
    let open = Arc::new(Mutex::new(false));
    let is_open = Arc::clone(&open);
    let server = Server::answering(move |_, request, stream| {
        if last(request) == "slow" && !*is_open.lock().unwrap() {
            return true; // without an answer, and the connection stays open
        }
        stream.answer(request, &Turn::says(&format!("<{}>", last(request))));
        false
    });
    let mut child = react(&server, &folder, &["--rows", "rows", "-j", "3"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"first\nslow\nb\nc\nb\n").unwrap();
    let early = folder.path("rows.early");
    testkit::wait_until("three rows wait", || {
        fs::read_to_string(&early).is_ok_and(|text| text.lines().count() == 3)
    });
    assert!(kill(child.id(), "-KILL"));
    child.wait().unwrap();
    assert_eq!(rows(&folder.read("rows")), echoed(&["first"]));
    // A row that was moved before the kill is in both files.
    let waited = folder.read("rows.early");
    fs::write(
        &early,
        format!(
            "{{\"turn\":1,\"row\":{}}}\n{waited}{{\"turn\":2,\"ro",
            folder.read("rows").trim_end()
        ),
    )
    .unwrap();
    *open.lock().unwrap() = true;
    let before = asked(&server);
    assert_eq!((before["b"], before["c"], before["first"]), (2, 1, 1));
    let ran = run_with(
        react(&server, &folder, &["--rows", "rows"]),
        "first\nslow\nb\nc\nb\nfirst\n",
    );
    is_clean(&ran, 0);
    let want = echoed(&["first", "slow", "b", "c", "b", "first"]);
    assert_eq!(rows(&folder.read("rows")), want);
    assert_eq!(
        asked(&server),
        HashMap::from([("slow".to_owned(), 1), ("first".to_owned(), 1)])
    );
    assert!(!early.exists());
}

#[test]
fn one_run_at_a_time_writes_a_file_of_rows() {
    let folder = Scratch::new();
    let server = echo();
    let mut first = react(&server, &folder, &["--rows", "rows"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = first.stdin.take().unwrap();
    stdin.write_all(b"a\n").unwrap();
    testkit::wait_until("a row", || {
        fs::read_to_string(folder.path("rows")).is_ok_and(|text| !text.is_empty())
    });
    let second = run_with(react(&server, &folder, &["--rows", "rows"]), "b\n");
    assert!(
        second.status == 2 && second.stderr.contains("another react works on rows"),
        "{second:?}"
    );
    drop(stdin);
    is_clean(&testkit::finish(first, None), 0);
}

#[test]
fn a_signal_ends_the_run_without_rows_of_what_was_open() {
    let folder = Scratch::new();
    let server = Server::answering(|_, request, stream| {
        if last(request) == "slow" {
            return true;
        }
        stream.answer(request, &Turn::says(&format!("<{}>", last(request))));
        false
    });
    let mut child = react(&server, &folder, &["--rows", "rows"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"a\nslow\n").unwrap();
    let slow = || asked(&server).contains_key("slow");
    testkit::wait_until("the second question", slow);
    testkit::wait_until("the first row", || {
        fs::read_to_string(folder.path("rows")).is_ok_and(|text| !text.is_empty())
    });
    assert!(kill(child.id(), "-TERM"));
    let ran = testkit::finish(child, None);
    assert_eq!((ran.status, &*ran.stderr), (143, ""), "{ran:?}");
    assert_eq!(rows(&folder.read("rows")), echoed(&["a"]));
}

/// A row would keep its line from being asked about again with the right key.
#[test]
fn a_key_that_is_refused_ends_the_run_and_leaves_no_rows() {
    let folder = Scratch::new();
    let server = Server::answering(|number, request, stream| {
        if number == 0 {
            stream.answer(request, &Turn::says("<a>"));
            return false;
        }
        let body = "{\"error\":{\"message\":\"wrong key\"}}";
        let length = body.len();
        let head = format!(
            "HTTP/1.1 401 Unauthorized\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        let _ = stream.write_all(head.as_bytes());
        false
    });
    let words = &["--rows", "rows", "-j", "1"];
    let ran = run_with(react(&server, &folder, words), "a\nb\nc\n");
    let says = "react: HTTP 401: wrong key; no line is answered with this key, so the run ends\n";
    assert_eq!((ran.status, &*ran.stderr), (2, says), "{ran:?}");
    assert_eq!(rows(&folder.read("rows")), echoed(&["a"]));
    assert_eq!(server.asked().len(), 2);
}

#[test]
fn at_a_terminal_nobody_is_asked_and_its_last_row_counts_the_rows() {
    if testkit::terminal().is_err() || !testkit::needs::programs(&["setsid"]) {
        return;
    }
    let folder = Scratch::new();
    let server = caller();
    let (mut person, terminal) = testkit::terminal().unwrap();
    let line = "printf 'harm\\nhello\\n' | \"$@\" >out";
    let words = ["setsid", "--wait", "--ctty", "bash", "-c", line, "-"];
    let tools = tools(&folder);
    let plain = react(&server, &folder, &["-j", "1", "-t", &tools]);
    let mut command = under(&words, &plain, &folder);
    let copy = || Stdio::from(terminal.try_clone().unwrap());
    let command = command.stdin(copy()).stdout(copy()).stderr(copy());
    let mut child = command.spawn().unwrap();
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    drop(terminal);
    let mut screen = Vec::new();
    // Ends with an error when nobody has the terminal any more.
    let _ = person.read_to_end(&mut screen);
    let screen = String::from_utf8(screen).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3), "{screen}");
    let got = rows(&folder.read("out"));
    assert!(
        got[0]["pending"].is_array() && got[1]["answer"] == "1: hello",
        "{got:?}"
    );
    assert!(
        screen.starts_with("\r\x1b[Kreact: 0 rows, 1 open") && screen.ends_with("\r\x1b[K"),
        "{screen:?}"
    );
}
