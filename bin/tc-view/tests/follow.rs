//! `tc-view --follow`: a file that grows, and a session of a scripted server.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use testkit::{Ran, Request, Scratch, Server};

fn tc_view(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tc-view"));
    command
        .args(args)
        .env_remove("TC_SERVE_KEY")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A view whose output is read while it follows.
struct Watcher {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Watcher {
    fn start(args: &[&str]) -> Watcher {
        let mut child = tc_view(&[&["--follow"], args].concat()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Watcher { child, out }
    }

    /// The next line that is not blank.
    fn line(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert!(self.out.read_line(&mut line).unwrap() > 0, "no more output");
            if !line.trim().is_empty() {
                return line.trim_end().to_owned();
            }
        }
    }

    /// Ends it with Ctrl-C.
    fn interrupt(self) -> Ran {
        assert!(testkit::kill(self.child.id(), "INT"));
        self.end()
    }

    fn end(self) -> Ran {
        testkit::finish(self.child, Some(self.out))
    }
}

fn text(text: &str) -> String {
    format!("{{\"type\":\"content_delta\",\"text\":\"{text}\\n\"}}\n")
}

fn append(path: &Path, bytes: &str) {
    let mut options = OpenOptions::new();
    let mut file = options.create(true).append(true).open(path).unwrap();
    file.write_all(bytes.as_bytes()).unwrap();
}

#[test]
fn a_file_is_followed_from_its_first_line_to_those_that_come() {
    let folder = Scratch::new();
    let path = folder.path("log");
    fs::write(&path, text("one")).unwrap();
    let mut view = Watcher::start(&[path.to_str().unwrap()]);
    assert_eq!(view.line(), "one");
    for line in ["two", "three"] {
        append(&path, &text(line));
        assert_eq!(view.line(), line);
    }
    // A line that is written byte by byte.
    for byte in text("four").chars() {
        append(&path, &byte.to_string());
    }
    assert_eq!(view.line(), "four");
    let ran = view.interrupt();
    assert_eq!((ran.status, &*ran.stdout, &*ran.stderr), (130, "", ""));
}

#[test]
fn a_file_may_come_later_and_is_followed_by_its_name() {
    let folder = Scratch::new();
    let path = folder.path("log");
    let name = path.to_str().unwrap();
    let mut view = Watcher::start(&[name]);
    let mut notes = BufReader::new(view.child.stderr.take().unwrap());
    let waits = testkit::until(&mut notes, "waiting");
    assert!(
        waits.contains("is not there yet, waiting for it"),
        "{waits}"
    );
    append(&path, &text("one"));
    assert_eq!(view.line(), "one");

    // The file is replaced while its last line is incomplete.
    append(&path, "torn");
    let other = folder.path("other");
    fs::write(&other, text("two")).unwrap();
    fs::rename(&other, &path).unwrap();
    assert!(view.line().contains("line 2 of") && view.line().contains("file_replaced"));
    assert_eq!(view.line(), "two");

    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(0).unwrap();
    assert!(view.line().contains("file_truncated"));
    append(&path, &text("three"));
    assert_eq!(view.line(), "three");

    fs::remove_file(&path).unwrap();
    let waits = testkit::until(&mut notes, "waiting");
    assert!(waits.contains("was removed, waiting for it"), "{waits}");
    fs::write(&path, text("four")).unwrap();
    assert!(view.line().contains("file_replaced"));
    assert_eq!(view.line(), "four");
    assert_eq!(view.interrupt().status, 130);
}

/// A writer that was killed leaves an incomplete line, which the next writer takes out
/// (`store::AppendedFile`).
#[test]
fn an_incomplete_line_that_the_next_writer_takes_out_is_not_shown() {
    let folder = Scratch::new();
    let path = folder.path("log");
    fs::write(&path, text("one")).unwrap();
    let length = fs::metadata(&path).unwrap().len();
    let mut view = Watcher::start(&[path.to_str().unwrap()]);
    assert_eq!(view.line(), "one");
    append(&path, "{\"type\":\"content_delta\",\"te");
    let file = OpenOptions::new().append(true).open(&path).unwrap();
    file.set_len(length).unwrap();
    append(&path, &text("two"));
    assert_eq!(view.line(), "two");
    let ran = view.interrupt();
    assert_eq!((ran.status, &*ran.stdout, &*ran.stderr), (130, "", ""));
}

#[test]
fn a_link_is_followed_to_another_file() {
    let folder = Scratch::new();
    let (a, b, link) = (folder.path("a"), folder.path("b"), folder.path("link"));
    fs::write(&a, text("one")).unwrap();
    fs::write(&b, text("two")).unwrap();
    std::os::unix::fs::symlink(&a, &link).unwrap();
    let mut view = Watcher::start(&[link.to_str().unwrap()]);
    assert_eq!(view.line(), "one");
    let other = folder.path("other");
    std::os::unix::fs::symlink(&b, &other).unwrap();
    fs::rename(&other, &link).unwrap();
    assert!(view.line().contains("file_replaced"));
    assert_eq!(view.line(), "two");
    view.interrupt();
}

#[test]
fn a_fifo_and_standard_input_are_read_to_their_end() {
    let folder = Scratch::new();
    let fifo = folder.path("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    let view = Watcher::start(&[fifo.to_str().unwrap()]);
    fs::write(&fifo, text("one")).unwrap();
    let ran = view.end();
    assert_eq!((ran.status, &*ran.stdout, &*ran.stderr), (0, "one\n", ""));
    let mut command = tc_view(&["--follow", "-"]);
    command.stdin(Stdio::piped());
    assert_eq!(testkit::run_with(command, &text("two")).stdout, "two\n");
}

/// Ctrl-C ends the view but not the call, so the view does not wait for the result.
#[test]
fn an_interrupt_closes_the_cards_that_are_open() {
    let folder = Scratch::new();
    let path = folder.path("log");
    let call = r#"{"type":"tool_use","tool_id":"a","tool_name":"slow","status":"running"}"#;
    fs::write(&path, format!("{call}\n{{\"type\":\"content_delta\"")).unwrap();
    let mut view = Watcher::start(&[path.to_str().unwrap()]);
    assert_eq!(view.line(), "-> slow");
    let ran = view.interrupt();
    assert_eq!(
        (ran.status, &*ran.stdout, &*ran.stderr),
        (130, "<- slow no result\n", "")
    );
}

#[test]
fn a_reader_that_leaves_ends_the_view() {
    let folder = Scratch::new();
    let path = folder.path("log");
    fs::write(&path, text("one")).unwrap();
    let mut view = Watcher::start(&[path.to_str().unwrap()]);
    assert_eq!(view.line(), "one");
    drop(view.out);
    assert_eq!(view.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_long_log_is_shown_as_without_follow() {
    let folder = Scratch::new();
    let path = folder.path("log");
    let mut file = File::create(&path).unwrap();
    let text = text(&"0123456789 ".repeat(90));
    let mut length = 0;
    while length < 10 << 20 {
        file.write_all(text.as_bytes()).unwrap();
        length += text.len();
    }
    let name = path.to_str().unwrap();
    let whole = testkit::run(tc_view(&[name])).stdout;
    let mut view = Watcher::start(&[name]);
    let mut shown = vec![0; whole.len()];
    view.out.read_exact(&mut shown).unwrap();
    assert!(whole.as_bytes() == shown, "other bytes");
    assert_eq!(view.interrupt().status, 130);
}

#[test]
fn usage_errors_are_one_line() {
    for (args, says) in [
        (
            &["--follow", "a", "b"][..],
            "--follow b: one file or session",
        ),
        (&["--follow", "/"], "a folder cannot be followed"),
        (&["--follow", "http://h/"], "names no session"),
        (&["http://h/"], "add --follow"),
        (&["--key-file", "a"], "--follow"),
        (
            &[
                "--follow",
                "--key-file",
                "no-such",
                "http://h/3fa90000000000000000000000000001",
            ],
            "no-such: ",
        ),
    ] {
        let ran = testkit::run(tc_view(args));
        assert!(ran.refusal().contains(says), "{args:?}: {ran:?}");
    }
}

const ID: &str = "3fa90000000000000000000000000001";

/// A session with an answer, a call, characters of several bytes, a blank line and a line that is
/// not an event.
const SESSION: &str = concat!(
    r#"{"type":"session","v":1,"id":"3fa90000000000000000000000000001","created":1}"#,
    "\n",
    r#"{"type":"message","message":{"role":"user","content":"Wie kalt ist es in Köln? 🥶"}}"#,
    "\r\n\n",
    r#"{"type":"stream_start","v":1}"#,
    "\n",
    r#"{"type":"content_delta","text":"Es ist \u001b[31mkalt\u202e – 3 °C."}"#,
    "\nwhat\n",
    r#"{"type":"tool_call","index":0,"tool_id":"a","tool_name":"heat","arguments":{"to":20}}"#,
    "\n",
    r#"{"type":"tool_result","tool_id":"a","tool_name":"heat","status":"success","output":"on"}"#,
    "\n",
    r#"{"type":"stream_end","finish_reason":"tool_calls"}"#,
    "\n",
);

/// The byte that a request asks for.
fn offset(request: &Request) -> usize {
    let (_, rest) = request.path().split_once("?offset=").unwrap();
    let number = rest.strip_suffix("&live=ndjson").unwrap();
    number.parse().unwrap()
}

/// The head of an answer of this media type, which lasts until the connection is closed.
fn head(kind: &str, more: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: {kind}\r\n{more}\r\n")
}

const LINES: &str = "application/x-ndjson; charset=utf-8";
const GONE: &[u8] = b"HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";

/// A server that sends `piece` bytes of the session and closes; the session is removed once all
/// bytes are sent. With `is_lost` the connection ends before the announced length.
fn piecewise(piece: usize, is_lost: bool) -> Server {
    Server::answering(move |_, request, stream| {
        let bytes = &SESSION.as_bytes()[offset(request)..];
        if bytes.is_empty() {
            let _ = stream.write_all(GONE);
            return false;
        }
        let length = match is_lost {
            true => format!("content-length: {}\r\n", bytes.len() + 1),
            false => String::new(),
        };
        let _ = stream.write_all(head(LINES, &length).as_bytes());
        let _ = stream.write_all(&bytes[..piece.min(bytes.len())]);
        false
    })
}

/// Runs the view on a file with the whole session.
fn uncut(args: &[&str]) -> Ran {
    let folder = Scratch::new();
    let path = folder.path("log");
    fs::write(&path, SESSION).unwrap();
    let name = path.to_str().unwrap();
    let mut ran = testkit::run(tc_view(&[args, &[name]].concat()));
    let seen = "the session";
    ran.stdout = ran.stdout.replace(name, seen);
    ran
}

#[test]
fn a_session_that_is_cut_is_shown_as_the_whole_one() {
    for form in ["text", "json"] {
        let args = ["--format", form];
        let whole = uncut(&args);
        // The same at every byte is a test of `follow/session.rs`: this command pauses between so many
        // connections.
        for (piece, is_lost) in [(61, true), (113, false), (SESSION.len(), false)] {
            let server = piecewise(piece, is_lost);
            let url = server.at(&format!("/v1/sessions/{ID}"));
            let ran = testkit::run(tc_view(&[&args[..], &["--follow", &url]].concat()));
            let case = format!("{form}, {piece} bytes at once");
            assert_eq!(
                ran.stdout.replace(&url, "the session"),
                whole.stdout,
                "{case}"
            );
            assert_eq!(ran.status, 0, "{case}");
            assert!(
                ran.stderr.ends_with("tc-view: the session was removed\n"),
                "{case}"
            );
            // Each byte is asked for once.
            let asked: Vec<usize> = server.asked().iter().map(offset).collect();
            assert!(asked.is_sorted_by(|a, b| a < b), "{case}: {asked:?}");
        }
    }
}

/// Runs the view against a server that gives the same answer to each request.
fn with(answer: &'static [u8], args: &[&str]) -> (Ran, Server) {
    let server = Server::answering(move |_, _, stream| {
        let _ = stream.write_all(answer);
        false
    });
    let url = server.at(&format!("/v1/sessions/{ID}/events"));
    let ran = testkit::run(tc_view(&[args, &["--follow", &url]].concat()));
    (ran, server)
}

#[test]
fn an_answer_other_than_a_session_is_refused_in_one_line() {
    for (answer, says) in [
        (
            &b"HTTP/1.1 401 U\r\ncontent-length: 0\r\n\r\n"[..],
            "export the key as TC_SERVE_KEY",
        ),
        (b"HTTP/1.1 403 F\r\ncontent-length: 2\r\n\r\nno", "403"),
        (GONE, "GET /v1/sessions lists"),
        (
            b"HTTP/1.1 302 F\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n",
            "redirected to /elsewhere, which is not followed",
        ),
        (
            b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>",
            "the answer is text/html, not the lines of a session",
        ),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>",
            "the answer is no media type",
        ),
        (b"HTTP/1.1 204 No\r\ncontent-length: 0\r\n\r\n", "204"),
        (
            b"HTTP/1.1 429 R\r\nretry-after: 4000\r\ncontent-length: 0\r\n\r\n",
            "follow it again later",
        ),
        (b"\x16\x03garbage\r\n\r\n", "if the server speaks TLS"),
        (b"", "if the server speaks TLS"),
    ] {
        let (ran, server) = with(answer, &[]);
        assert!(ran.refusal().contains(says), "{ran:?}");
        assert_eq!(server.asked().len(), 1, "{ran:?}");
    }
}

#[test]
fn the_key_is_sent_and_never_shown() {
    let folder = Scratch::new();
    let file = folder.path("keys");
    fs::write(
        &file,
        "# mine\n\n tp-0123456789abcdef \nanother-key-of-mine\n",
    )
    .unwrap();
    let name = file.to_str().unwrap();
    const ECHO: &[u8] = b"HTTP/1.1 401 U\r\ncontent-length: 48\r\n\r\n{\"error\":{\"message\":\"tp-0123456789abcdef is bad\"}";
    let (ran, server) = with(ECHO, &["--key-file", name]);
    let said = ran.refusal();
    assert!(
        said.contains("check the key in TC_SERVE_KEY or --key-file"),
        "{said}"
    );
    assert!(!said.contains("0123456789abcdef"), "{said}");
    let asked = server.asked();
    assert_eq!(
        asked[0].header("authorization"),
        Some("Bearer tp-0123456789abcdef")
    );

    let ran = testkit::run(tc_view(&[
        "--follow",
        "--key-file",
        name,
        &format!("http://192.0.2.1/{ID}"),
    ]));
    assert!(ran.refusal().contains("--allow-insecure"), "{ran:?}");
}

#[test]
fn a_busy_service_is_waited_for_and_that_is_reported_once() {
    let server = Server::answering(|number, _, stream| {
        let wait = ["0", "0", "100"][number.min(2)];
        let head = format!("HTTP/1.1 503 Busy\r\nretry-after: {wait}\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(head.as_bytes()).is_ok()
    });
    let mut view = Watcher::start(&[&server.at(&format!("/{ID}"))]);
    let mut notes = BufReader::new(view.child.stderr.take().unwrap());
    let said = testkit::until(&mut notes, "waiting for the service");
    assert!(said.contains("503"), "{said}");
    view.child.stderr = None;
    assert_eq!(view.interrupt().status, 130);
    let mut rest = String::new();
    notes.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.as_str(), server.asked().len()), ("", 3));
}

#[test]
fn a_session_that_was_never_there_was_not_removed() {
    let server = Server::answering(|number, _, stream| {
        let busy = b"HTTP/1.1 503 Busy\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n";
        let answer = if number == 0 { &busy[..] } else { GONE };
        stream.write_all(answer).is_ok() && number == 0
    });
    let ran = testkit::run(tc_view(&["--follow", &server.at(&format!("/{ID}"))]));
    assert!(ran.refusal().contains("404"), "{ran:?}");
}

/// Invalid lines are shown as warnings, and a line of 100 MiB does not need memory of that size.
#[test]
fn hostile_bytes_are_shown_and_bounded() {
    let server = Server::answering(|number, _, stream| {
        let send = |stream: &mut testkit::Connection, bytes: &[u8]| stream.write_all(bytes).is_ok();
        if number > 0 {
            send(stream, GONE);
            return false;
        }
        send(stream, head(LINES, "").as_bytes());
        send(stream, b"\x00\xff\x1b]0;title\x07\n{\"type\":3}\n[]\n");
        send(stream, b"{\"type\":\"content_delta\",\"text\":\"");
        let block = vec![b'x'; 1 << 20];
        (0..100).all(|_| send(stream, &block));
        send(stream, b"\"}\n");
        send(stream, text("after it").as_bytes());
        // The last line lacks its line feed.
        send(stream, b"{\"type\":\"warning\",\"message\":\"the last\"}");
        false
    });
    let mut view = Watcher::start(&["--max-line", "1M", &server.at(&format!("/{ID}"))]);
    let mut seen = String::new();
    while !seen.ends_with("after it") {
        seen += &view.line();
    }
    let memory = fs::read_to_string(format!("/proc/{}/status", view.child.id())).unwrap();
    let most = memory
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap();
    let kilobytes: u64 = most.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kilobytes < 40 << 10, "{most}");
    let ran = view.end();
    assert_eq!(ran.status, 2, "{ran:?}");
    assert!(ran.stdout.contains("the last"), "{ran:?}");
    assert!(seen.contains("longer than --max-line"), "{seen}");
    let is_control = |c: char| c.is_control() && c != '\n';
    assert!(!seen.contains(is_control) && !ran.stderr.contains(is_control));
}

#[test]
fn the_cards_on_a_terminal_follow_the_file_and_its_width() {
    let folder = Scratch::new();
    let path = folder.path("log");
    fs::write(&path, text("one")).unwrap();
    let (person, command) = testkit::terminal().unwrap();
    let size = |columns| rustix::termios::Winsize {
        ws_row: 20,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    rustix::termios::tcsetwinsize(&person, size(40)).unwrap();
    let mut view = tc_view(&["--follow", path.to_str().unwrap()]);
    view.env("TERM", "xterm").env("NO_COLOR", "1");
    view.stdout(command.try_clone().unwrap()).stderr(command);
    let child = view.spawn().unwrap();
    drop(view);
    let mut seen = String::new();
    let mut until = |text: &str| {
        let before = seen.len();
        let mut block = [0; 4096];
        while !seen[before..].contains(text) {
            let count = (&person).read(&mut block).unwrap();
            assert!(count > 0, "{seen:?}");
            seen += &String::from_utf8_lossy(&block[..count]);
        }
        seen[before..].to_owned()
    };
    until("one");
    append(
        &path,
        "{\"type\":\"tool_use\",\"tool_id\":\"a\",\"tool_name\":\"slow\",\"status\":\"running\"}\n",
    );
    until("running");
    // The card is drawn again in the new width.
    rustix::termios::tcsetwinsize(&person, size(60)).unwrap();
    append(
        &path,
        "{\"type\":\"tool_progress\",\"tool_id\":\"a\",\"tool_name\":\"slow\",\"progress\":0.5}\n",
    );
    let drawn = until("[53Grunning");
    assert!(drawn.contains("\u{1b}[J"), "{drawn:?}");
    // The report of the removed file does not break the card.
    fs::remove_file(&path).unwrap();
    let drawn = until("[53Grunning");
    assert!(
        drawn.contains("\u{1b}[J") && drawn.contains("waiting for it (waiting)"),
        "{drawn:?}"
    );
    assert!(testkit::kill(child.id(), "INT"));
    let end = until("no result");
    let mut rest = Vec::new();
    let _ = (&person).read_to_end(&mut rest); // fails when the last copy of the other end is closed
    let end = end + &String::from_utf8(rest).unwrap();
    assert!(end.ends_with('\n'), "{end:?}");
    assert_eq!(testkit::finish(child, None).status, 130);
}
