//! `tc-view --follow` with the other commands: a session of `tc-serve` that is killed and restarted,
//! and the log of `react` on a terminal while the turns run.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::pipeline::scratch::{ASK, QUESTION, Scratch};
use crate::service::{JSON, Service, Upstream, streamed};
use serde_json::Value;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const ID: &str = "3fa90000000000000000000000000001";

/// A view that follows.
fn follow(args: &[&str]) -> Child {
    let mut view = Command::new(testkit::program("tc-view"));
    view.args(["--follow", "--format", "text"])
        .args(args)
        .env_remove("TC_SERVE_KEY")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    view.spawn().unwrap()
}

/// Appends to a session as another program would.
fn append(file: &Path, line: &str) {
    let mut options = OpenOptions::new();
    let mut file = options
        .append(true)
        .create(true)
        .mode(0o600)
        .open(file)
        .unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

fn text(text: &str) -> String {
    format!(r#"{{"type":"content_delta","text":"{text}\n"}}"#)
}

/// A service that is killed leaves its view waiting, and the next one on the same folder and port
/// gives it the lines that were written in between, once. The end is that of the session.
#[test]
fn a_session_is_followed_through_a_restart_to_its_removal() {
    let folder = testkit::Scratch::new();
    let sessions = folder.path("sessions");
    let mut private = DirBuilder::new();
    private.mode(0o700).recursive(true);
    private.create(sessions.join(&ID[..2])).unwrap();
    let file = sessions.join(&ID[..2]).join(format!("{ID}.ndjson"));
    append(
        &file,
        &format!(r#"{{"type":"session","v":1,"id":"{ID}","created":1}}"#),
    );
    append(&file, &text("one"));
    let upstream = Upstream::always(streamed("hi"));
    let options = ["--sessions", sessions.to_str().unwrap()];
    let mut service = Service::of(&upstream, &options);
    let address = service.address.clone();

    let mut view = follow(&[&format!("http://{address}/v1/sessions/{ID}")]);
    let mut out = BufReader::new(view.stdout.take().unwrap());
    testkit::until(&mut out, "one");
    append(&file, &text("two"));
    testkit::until(&mut out, "two");
    for (between, after) in [("three", "four"), ("five", "six")] {
        service.signal(rustix::process::Signal::KILL);
        service.ended();
        append(&file, &text(between));
        service = Service::of(&upstream, &[&options[..], &["--listen", &address]].concat());
        let line = testkit::until(&mut out, "e");
        assert_eq!(line.trim_end(), between);
        append(&file, &text(after));
        testkit::until(&mut out, after);
    }
    // A service that ends in order is waited for, too.
    service.signal(rustix::process::Signal::TERM);
    service.ended();
    let service = Service::of(&upstream, &[&options[..], &["--listen", &address]].concat());
    append(&file, &text("seven"));
    testkit::until(&mut out, "seven");
    let removed = service.ask("DELETE", &format!("/v1/sessions/{ID}"), "", "");
    assert_eq!(removed.status, 204, "{removed:?}");
    let ran = testkit::finish(view, Some(out));
    assert_eq!((ran.status, ran.stdout.trim()), (0, ""), "{ran:?}");
    assert_eq!(ran.stderr, "tc-view: the session was removed\n");
}

/// The key is the one that the service was given, by the same file.
#[test]
fn the_session_of_a_key_is_followed_with_that_key_alone() {
    let folder = testkit::Scratch::new();
    let keys = folder.path("keys");
    let key = "tp-0123456789abcdef";
    fs::write(&keys, format!("# mine\n{key}\n")).unwrap();
    let (sessions, keys) = (folder.path("sessions"), keys.to_str().unwrap().to_owned());
    let upstream = Upstream::always(streamed("It is sunny."));
    let service = Service::of(
        &upstream,
        &[
            "--sessions",
            sessions.to_str().unwrap(),
            "--key-file",
            &keys,
        ],
    );
    let bearer = format!("authorization: Bearer {key}\r\n");
    let body = r#"{"model":"any","input":"Rome?"}"#;
    let made = service.ask("POST", "/v1/responses", &format!("{bearer}{JSON}"), body);
    assert_eq!(made.status, 200, "{made:?}");
    let list = service.ask("GET", "/v1/sessions", &bearer, "").body;
    let list: Value = serde_json::from_str(&list).unwrap();
    let id = list["data"][0]["id"].as_str().unwrap();
    // The address of the page.
    let page = format!("http://{}/#{id}", service.address);

    let refused = testkit::finish(follow(&[&page]), None);
    assert!(
        refused.refusal().contains("export the key as TC_SERVE_KEY"),
        "{refused:?}"
    );
    let mut view = follow(&["--key-file", &keys, &page]);
    let mut out = BufReader::new(view.stdout.take().unwrap());
    testkit::until(&mut out, "It is sunny.");
    testkit::kill(view.id(), "INT");
    assert_eq!(testkit::finish(view, Some(out)).status, 130);
}

/// `react --log` in one terminal, and the view of its log in another.
#[test]
fn the_log_of_react_is_shown_while_its_turns_run() {
    let scratch = Scratch::new();
    let log = scratch.0.path("log");
    let (person, command) = testkit::terminal().unwrap();
    let size = rustix::termios::Winsize {
        ws_row: 24,
        ws_col: 80,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    rustix::termios::tcsetwinsize(&person, size).unwrap();
    let view = Command::new(testkit::program("tc-view"))
        .arg("--follow")
        .arg(&log)
        .envs([("TERM", "xterm"), ("NO_COLOR", "1")])
        .stdin(Stdio::null())
        .stdout(command.try_clone().unwrap())
        .stderr(command)
        .spawn()
        .unwrap();
    let ran = scratch.run(&format!("{ASK} {QUESTION}"));
    assert_eq!(ran.0, 0, "{ran:?}");
    let mut seen = String::new();
    let mut block = [0; 4096];
    while !seen.contains("sleeping bags") {
        let count = (&person).read(&mut block).unwrap();
        seen += &String::from_utf8_lossy(&block[..count]);
    }
    assert!(testkit::kill(view.id(), "INT"));
    let mut rest = Vec::new();
    let _ = (&person).read_to_end(&mut rest); // fails when the last copy of the other end is closed
    seen += &String::from_utf8_lossy(&rest);
    assert_eq!(testkit::finish(view, None).status, 130);
    // Cards that were drawn again, none of which is left open, and the cursor on a line of its own.
    assert!(seen.contains("\u{1b}[J") && seen.contains('✓'), "{seen:?}");
    assert!(
        !seen.contains("no result") && seen.ends_with('\n'),
        "{seen:?}"
    );
}
