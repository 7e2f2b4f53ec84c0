//! Two machines in one process write byte for byte what two commands in a pipe write: for every
//! recorded body, and every text of the dialects, whole, cut off, and as a stream with a name.

use accumulate::{Accumulate, AccumulateOptions};
use api::{Api, End, Stream, StreamOptions};
use detect::{CallFilter, CheckerAnswers, Detect};
use event::{Chain, Collect, Event, Machine, Scanner, quoted};
use std::path::Path;
use std::rc::Rc;
use tag::Streams;
use testkit::bodies;

/// Makes the machine of a stream from its first event.
type Make = fn(&Event<'_>) -> Box<dyn Machine>;

fn tag(first: &Event<'_>) -> Box<dyn Machine> {
    Box::new(Streams::default().begin(first))
}

fn detect(first: &Event<'_>) -> Box<dyn Machine> {
    let checkers =
        detect::checkers("full", &CallFilter::default()).expect("a checker of the table");
    Box::new(Detect::new(
        "full".into(),
        checkers(first),
        CheckerAnswers::default(),
        first,
    ))
}

fn accumulate(_: &Event<'_>) -> Box<dyn Machine> {
    Box::new(Accumulate::new(Rc::new(AccumulateOptions {
        partial: true,
        ..AccumulateOptions::default()
    })))
}

/// A machine behind a pipe: it begins with the first event that begins a stream.
fn piped(make: Make, lines: &[String]) -> Vec<String> {
    let mut scanner = Scanner::default();
    let begins = |line: &String| {
        scanner
            .read(line)
            .is_ok_and(|event| event.kind().begins_stream())
    };
    let Some(first) = lines.iter().position(begins) else {
        return lines.to_vec();
    };
    let mut machine = make(&scanner.read(&lines[first]).expect("an event"));
    let mut out = lines[..first].to_vec();
    out.extend(Collect::run(machine.as_mut(), &lines[first..]));
    out
}

fn chained(first: Make, second: Make, lines: &[String]) -> Vec<String> {
    let mut scanner = Scanner::default();
    let machine = first(&scanner.read(&lines[0]).expect("an event"));
    Collect::run(&mut Chain::new(machine, second), lines)
}

/// The same stream under a name.
fn named(lines: &[String]) -> Vec<String> {
    lines
        .iter()
        .map(|line| line.replacen('{', "{\"stream\":\"a \\u00e9\",", 1))
        .collect()
}

#[track_caller]
fn agree(name: &str, lines: &[String]) {
    for lines in [
        lines,
        &lines[..lines.len() - 1],
        &lines[..lines.len() / 2 + 1],
        &named(lines),
    ] {
        for (first, second, what) in [
            (tag as Make, detect as Make, "tag | detect"),
            (detect, accumulate, "detect | accumulate"),
            (tag, accumulate, "tag | accumulate"),
        ] {
            assert_eq!(
                chained(first, second, lines),
                piped(second, &piped(first, lines)),
                "{name}: {what}"
            );
        }
    }
}

#[test]
fn every_recorded_body() {
    for body in bodies() {
        let api = Api::from_name(&body.api).expect("an API");
        let mut stream = Stream::new(api, StreamOptions::default());
        let mut out = Collect::default();
        stream.push(&std::fs::read(&body.path).expect("a body"), &mut out);
        stream.finish(End::Eof, &mut out);
        agree(&body.name, &out.lines);
    }
}

#[test]
fn every_text_of_the_dialects() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/dialects");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).expect("fixtures/dialects") {
        let path = entry.expect("an entry").path();
        if path
            .extension()
            .is_none_or(|extension| extension != "cases")
        {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("UTF-8");
        let dialect = path.file_stem().expect("a name").to_string_lossy();
        let start = format!(
            r#"{{"type":"stream_start","v":1,"tools_mode":"tag","dialect":"{dialect}","prefill":""}}"#
        );
        let pieces: Vec<char> = text.chars().take(20_000).collect();
        let deltas = pieces.chunks(9).map(|piece| {
            let piece = quoted(&piece.iter().collect::<String>());
            format!(r#"{{"type":"content_delta","text":{piece}}}"#)
        });
        let end = r#"{"type":"stream_end","finish_reason":"stop"}"#.to_owned();
        agree(
            &dialect,
            &std::iter::once(start)
                .chain(deltas)
                .chain([end])
                .collect::<Vec<_>>(),
        );
        files += 1;
    }
    assert!(files > 50, "only {files} dialects");
}
