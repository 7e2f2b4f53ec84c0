//! Traces of recorded logs: each `fixtures/traces/NAME.ndjson` becomes the lines of `NAME.jsonl`, and
//! with contents those of `NAME.contents.jsonl`. The laws hold for these and for the logs of
//! `fixtures/logs` and `fixtures/views`.
//!
//! `UPDATE=1 cargo test -p toolpipe-view --test fixtures otlp/NAME` rewrites the files.

#![expect(clippy::unwrap_used, reason = "a test")]

use event::{Raw, Scanner, View};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use testkit::golden;
use testkit::trials::{self, Trial};
use toolpipe_view::TraceView;

fn trace(log: &str, has_contents: bool) -> String {
    let mut view = TraceView::new(has_contents);
    let mut scanner = Scanner::default();
    let mut out = Vec::new();
    for line in log.lines() {
        if let Ok(event) = scanner.read(line) {
            view.push(&event, &mut out);
        }
    }
    view.finish(&mut out);
    String::from_utf8(out).unwrap()
}

struct Span {
    id: String,
    parent: Option<String>,
    times: (u64, u64),
    events: Vec<u64>,
}

fn spans(line: &str) -> (Vec<String>, Vec<Span>) {
    let raw = Raw::parse(line).unwrap();
    let scope = raw.list("resourceSpans").next().unwrap();
    let scope = scope.list("scopeSpans").next().unwrap();
    let number = |raw: Raw<'_>, key: &str| raw.get_str(key).unwrap().parse().unwrap();
    let traces = scope
        .list("spans")
        .map(|s| s.get_str("traceId").unwrap().into_owned());
    let spans = scope.list("spans").map(|span| Span {
        id: span.get_str("spanId").unwrap().into_owned(),
        parent: span.get_str("parentSpanId").map(Into::into),
        times: (
            number(span, "startTimeUnixNano"),
            number(span, "endTimeUnixNano"),
        ),
        events: span
            .list("events")
            .map(|event| number(event, "timeUnixNano"))
            .collect(),
    });
    (traces.collect(), spans.collect())
}

/// The broken laws of the spans of a line.
fn broken(line: &str) -> Vec<String> {
    let (traces, spans) = spans(line);
    let mut wrong = Vec::new();
    if traces.iter().any(|trace| *trace != traces[0]) {
        wrong.push("two traces in one line".to_owned());
    }
    let by_id: HashMap<&str, &Span> = spans.iter().map(|span| (&*span.id, span)).collect();
    if by_id.len() != spans.len() {
        wrong.push("two spans have one id".to_owned());
    }
    for (n, span) in spans.iter().enumerate() {
        let (start, end) = span.times;
        if start > end || span.events.iter().any(|time| !(start..=end).contains(time)) {
            wrong.push(format!(
                "span {n}: {start} to {end}, events at {:?}",
                span.events
            ));
        }
        // The first span may be below one of another program.
        let Some(parent) = span.parent.as_ref().filter(|_| n > 0) else {
            continue;
        };
        match by_id.get(&**parent) {
            None => wrong.push(format!("span {n}: no parent {parent}")),
            Some(parent) if parent.times.0 > start || parent.times.1 < end => {
                wrong.push(format!("span {n} is not inside its parent"));
            }
            Some(_) => {}
        }
    }
    wrong
}

fn check(path: &Path) -> Vec<String> {
    let log = std::fs::read_to_string(path).unwrap();
    let mut wrong = Vec::new();
    for (has_contents, ending) in [(false, "jsonl"), (true, "contents.jsonl")] {
        let got = trace(&log, has_contents);
        if got != trace(&log, has_contents) {
            wrong.push("two runs differ".to_owned());
        }
        wrong.extend(got.lines().flat_map(broken));
        if path.parent().unwrap().ends_with("traces") {
            wrong.extend(golden::compare(
                &path.with_extension(ending),
                got.as_bytes(),
            ));
        }
    }
    // A log that was cut at any line has the same ids as far as it goes.
    let whole = trace(&log, false);
    let lines: Vec<&str> = log.lines().collect();
    for end in (0..lines.len()).filter(|_| lines.len() < 60) {
        let cut = trace(&lines[..end].join("\n"), false);
        for (a, b) in cut.lines().zip(whole.lines()) {
            wrong.extend(broken(a));
            let ((_, cut), (_, whole)) = (spans(a), spans(b));
            let are_known = cut
                .iter()
                .all(|span| whole.iter().any(|other| other.id == span.id));
            if !are_known {
                wrong.push(format!("cut before line {}: other ids", end + 1));
            }
        }
    }
    wrong
}

pub(crate) fn trials() -> Vec<Trial<'static>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let mut logs: Vec<(String, PathBuf)> = Vec::new();
    for folder in ["traces", "logs", "views"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let path = if path.is_dir() {
                path.join("in.ndjson")
            } else {
                path
            };
            if path.extension().is_some_and(|ending| ending == "ndjson") {
                let name = path.strip_prefix(&root).unwrap().display().to_string();
                logs.push((name, path));
            }
        }
    }
    logs.sort();
    trials::each("otlp", logs, |path| check(path))
}
