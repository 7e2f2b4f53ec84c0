//! The streams of user interfaces, as files: a folder of `tests/ui/` has `events.ndjson`, and the
//! stream of each protocol. `UPDATE=1` writes them anew. In a folder whose name begins with `goes-on`
//! the client has the beginning of the message, and in `calls-of-the-client` it runs the calls.
//!
//! The laws are tried on these events and on those of `tests/fronts/`, cut after each line, and on
//! recorded bodies.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "the tests of `tc-serve` use the rest")]
mod reader;

use accumulate::{Accumulate, AccumulateOptions, EmitOn};
use event::{Chain, Collect, Event, Scanner};
use reader::{Shown, read};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use toolpipe_api::{Api, End, Stream, StreamOptions, UiFront, UiOptions, UiRunner, UiStream};

fn folders(name: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(name);
    let entries = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut folders: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

fn options(name: &str) -> UiOptions {
    let runner = match name == "calls-of-the-client" {
        true => UiRunner::Client,
        false => UiRunner::Service(Vec::new()),
    };
    UiOptions {
        chat: "chat".into(),
        message: "msg_1".into(),
        response: "resp_1".into(),
        continues: name.starts_with("goes-on"),
        runner,
        ..UiOptions::default()
    }
}

fn stream<'l>(front: UiFront, options: UiOptions, lines: impl Iterator<Item = &'l str>) -> String {
    let mut stream = UiStream::new(front, options);
    let mut scanner = Scanner::default();
    let mut out = Vec::new();
    for line in lines {
        stream.push(&scanner.read(line).unwrap(), &mut out);
    }
    stream.finish(&mut out);
    let length = out.len();
    // Nothing follows the end.
    stream.push(
        &scanner
            .read(r#"{"type":"content_delta","text":"more"}"#)
            .unwrap(),
        &mut out,
    );
    stream.finish(&mut out);
    stream.keep_alive(&mut out);
    assert_eq!(out.len(), length);
    match stream.failure() {
        Some(failure) if out.is_empty() => {
            format!("HTTP {}: {}\n", failure.status, failure.message)
        }
        _ => String::from_utf8(out).unwrap(),
    }
}

#[test]
fn each_protocol_writes_what_its_file_has() {
    let mut wrong = Vec::new();
    for folder in folders("ui") {
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let events = fs::read_to_string(folder.join("events.ndjson")).unwrap();
        for front in UiFront::ALL {
            let file = folder.join(format!("{}.sse", front.name()));
            let got = stream(front, options(&name), events.lines());
            if std::env::var_os("UPDATE").is_some() {
                fs::write(&file, &got).unwrap();
            }
            if fs::read_to_string(&file).unwrap_or_default() != got {
                wrong.push(format!("{}:\n{got}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The message that a stream of the AI SDK gives, where it is one.
fn shown(name: &str, lines: &[&str]) -> Option<Shown> {
    let options = options(name);
    let before = match options.continues {
        false => Shown::default(),
        // The client has the question that an earlier answer asked.
        true => read(
            concat!(
                "data: {\"type\":\"start\",\"messageId\":\"msg_1\"}\n\ndata: {\"type\":\"start-step\"}\n\n",
                "data: {\"type\":\"tool-input-start\",\"toolCallId\":\"a\",\"toolName\":\"remove\",\"dynamic\":true}\n\n",
                "data: {\"type\":\"tool-input-available\",\"toolCallId\":\"a\",\"toolName\":\"remove\",\"input\":{}}\n\n",
                "data: {\"type\":\"tool-approval-request\",\"toolCallId\":\"a\",\"approvalId\":\"a:11\"}\n\n",
                "data: {\"type\":\"finish-step\"}\n\ndata: [DONE]\n\n"
            ),
            &Shown::default(),
        ),
    };
    let text = stream(UiFront::AiSdk, options, lines.iter().copied());
    (!text.starts_with("HTTP ")).then(|| read(&text, &before))
}

/// Each call has ended, or waits for somebody who can answer.
fn check(shown: &Shown, what: &str) {
    for part in shown
        .parts
        .iter()
        .filter(|part| part["toolCallId"].is_string())
    {
        let state = part["state"].as_str().unwrap();
        assert_ne!(state, "input-streaming", "{what}: {part}");
        let waits = state == "input-available" || state == "approval-responded";
        let is_own = part["providerExecuted"] == true;
        assert!(
            !(waits && is_own),
            "{what}: a call of the service has no end: {part}"
        );
        let is_over = shown.error.is_some() || shown.is_aborted;
        assert!(
            !(waits && is_over),
            "{what}: a call of an answer that failed: {part}"
        );
    }
    let has_end = shown.finish.is_some() || shown.is_aborted;
    assert!(has_end, "{what}: no end");
    assert_eq!(
        shown.error.is_some(),
        shown.finish.as_deref() == Some("error"),
        "{what}"
    );
}

#[test]
fn wherever_the_events_end_every_part_has_an_end() {
    for name in ["ui", "fronts"] {
        for folder in folders(name) {
            let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
            let events = fs::read_to_string(folder.join("events.ndjson")).unwrap();
            let merged = merged(events.lines().filter_map(|line| {
                let line = line.strip_prefix("step ").unwrap_or(line);
                (line != "keep alive").then_some(line)
            }));
            let raw = events.lines().filter(|line| line.starts_with('{'));
            let merged = merged.iter().map(String::as_str);
            for (lines, what) in [
                (raw.collect::<Vec<_>>(), "raw"),
                (merged.collect(), "merged"),
            ] {
                for end in 0..=lines.len() {
                    if let Some(shown) = shown(&name, &lines[..end]) {
                        check(&shown, &format!("{name}, {what}, {end} events"));
                    }
                }
            }
        }
    }
}

/// The options with which `tc-serve` merges events.
fn merging() -> Rc<AccumulateOptions> {
    Rc::new(AccumulateOptions {
        live: true,
        emit_on: EmitOn::Sealed,
        no_message: true,
        ..AccumulateOptions::default()
    })
}

fn merged<'l>(lines: impl Iterator<Item = &'l str>) -> Vec<String> {
    Collect::run(&mut Accumulate::new(merging()), lines)
}

/// The events of a body that comes in pieces of this size, as `tc-serve` merges them.
fn events(api: Api, body: &[u8], size: usize) -> Vec<String> {
    let mut out = Collect::default();
    let mut stream = Stream::new(api, StreamOptions::default());
    for piece in body.chunks(size.max(1)) {
        stream.push(piece, &mut out);
    }
    stream.finish(End::Eof, &mut out);
    let tag = tag::Streams::new(tag::TagOptions {
        always: true,
        ..tag::TagOptions::default()
    });
    let options = merging();
    let mut scanner = Scanner::default();
    let first = out.lines.first().cloned().unwrap_or_default();
    let Ok(first) = scanner.read(&first) else {
        return Vec::new();
    };
    let mut chain = Chain::new(tag.begin(&first), move |_: &Event<'_>| {
        Accumulate::new(Rc::clone(&options))
    });
    Collect::run(&mut chain, &out.lines)
}

#[test]
fn how_a_body_was_cut_never_shows_in_what_a_client_holds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/streams");
    let mut count = 0;
    for api in Api::ALL {
        let Ok(entries) = fs::read_dir(root.join(api.name())) else {
            continue;
        };
        for file in entries.map(|entry| entry.unwrap().path()) {
            let body = fs::read(&file).unwrap();
            let of = |size: usize| {
                let lines = events(api, &body, size);
                let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
                shown("calls-of-the-client", &lines)
            };
            let whole = of(usize::MAX);
            if let Some(shown) = &whole {
                check(shown, &file.display().to_string());
                count += 1;
            }
            for size in [1, 7] {
                assert_eq!(
                    of(size).map(plain),
                    whole.clone().map(plain),
                    "{} in pieces of {size}",
                    file.display()
                );
            }
        }
    }
    assert!(count > 100, "{count} bodies");
}

/// A message without what depends on where its texts were cut.
fn plain(mut shown: Shown) -> Shown {
    for part in &mut shown.parts {
        if part["type"] == "text"
            && part["text"]
                .as_str()
                .is_some_and(|text| text.trim().is_empty())
        {
            *part = Value::Null;
        }
    }
    shown
}
