//! The labels of the corpus (`fixtures/index.ndjson`), made from the events that are recorded beside each body of `fixtures/streams`;
//! and a check that each deviation of docs/deviations.md has a fixture. `UPDATE=1 cargo test --test streams --test streams_index`
//! rewrites both.

#[path = "pipeline/bodies.rs"]
mod bodies;
#[path = "pipeline/golden.rs"]
mod golden;

use bodies::{Body, bodies};
use event::{Kind, Raw, Scanner};
use std::collections::BTreeMap;
use std::path::Path;

#[test]
fn the_index_has_the_labels_of_every_body() {
    let labels: String = bodies().iter().map(|body| label(body) + "\n").collect();
    let wrong =
        golden::compare(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/index.ndjson"), labels.as_bytes());
    assert!(wrong.is_none(), "{}", wrong.unwrap_or_default());
}

/// One line of the corpus index: what the body holds, by which checkers are measured.
fn label(body: &Body) -> String {
    let Body { api, name, .. } = body;
    let text = std::fs::read_to_string(body.events()).unwrap_or_default();
    let mut calls: BTreeMap<String, (String, String)> = BTreeMap::new();
    let mut tags: Vec<String> = Vec::new();
    let mut tag = |t: &str| {
        if !tags.iter().any(|known| known == t) {
            tags.push(t.to_owned());
        }
    };
    if let Some(row) = name.split('/').nth(1).and_then(|file| file.get(..6)).filter(|r| r.starts_with("row-")) {
        tag(row);
    }
    let mut order = Vec::new();
    let mut scanner = Scanner::default();
    for line in text.lines() {
        let event = scanner.read(line).expect("an event");
        // The labels are those of choice 0, which is the one whose calls run.
        if event.choice() > 0 {
            tag("choices");
            continue;
        }
        match event.kind() {
            Kind::ContentDelta if order.is_empty() => tag("text"),
            Kind::ContentDelta => tag("text-after-call"),
            Kind::RefusalDelta => tag("refusal"),
            Kind::Thinking => tag("thinking"),
            Kind::ServerItem => tag("server-item"),
            Kind::Error => tag("error"),
            Kind::ToolCall => {
                let key = event.get_str("tool_id").unwrap_or_default().into_owned();
                let arguments = event.get("arguments").map_or("null", Raw::text);
                let name = event.get("tool_name").map_or("null", Raw::text);
                if let Some(error) = event.get("error") {
                    tag(&format!("call-{}", error.get_str("code").unwrap_or_default()));
                }
                if event.get("repairs").is_some() {
                    tag("repaired");
                }
                order.push(key.clone());
                calls.insert(key, (name.to_owned(), arguments.to_owned()));
            }
            Kind::Retract => tag("retract"),
            Kind::StreamEnd => tag(&event.get_str("finish_reason").unwrap_or_default()),
            _ => {}
        }
    }
    if calls.len() > 1 {
        tag("several-calls");
    }
    let mut out = Vec::new();
    let mut o = event::Object::open(&mut out);
    let id = name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem);
    o.str("id", id).str("file", &format!("streams/{name}")).str("api", api).bool("has_tool_call", !calls.is_empty());
    o.array("calls", |a| {
        for key in &order {
            if let Some((name, arguments)) = calls.get(key) {
                a.object(|o| {
                    o.raw("name", name).raw("arguments", arguments);
                });
            }
        }
    });
    o.array("tags", |a| {
        tags.iter().for_each(|t| {
            a.str(t);
        });
    });
    o.close();
    String::from_utf8(out).expect("JSON is UTF-8")
}

/// The deviations that have a case in place of a body: they concern requests, execution, or the amount of work.
const CASES: [(u32, &str); 4] = [
    (44, "the cost of many fragments; they are made on the fly"),
    (45, "what the history says of arguments that cannot be used"),
    (46, "what the next request says of calls that have no result"),
    (48, "what the next request says of a result that came twice"),
];

#[test]
fn every_known_deviation_has_a_fixture() {
    let names: Vec<String> = bodies().into_iter().map(|b| b.name).collect();
    let cases: Vec<String> = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/cases"))
        .expect("fixtures/cases")
        .map(|entry| entry.expect("a readable folder").file_name().to_string_lossy().into_owned())
        .collect();
    for row in 1..=48 {
        let mark = format!("row-{row:02}-");
        match CASES.iter().find(|(n, _)| *n == row) {
            Some((_, why)) => assert!(cases.iter().any(|c| c.starts_with(&mark)), "no case {mark}… ({why})"),
            None => assert!(names.iter().any(|n| n.contains(&format!("/{mark}"))), "no recorded body {mark}…"),
        }
    }
}
