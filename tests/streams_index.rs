//! The labels of our corpus (`fixtures/index.ndjson`), which are kept by hand: that they cover
//! every recording, every API, every dialect and every trap for checkers, and that a full reading
//! agrees with them where they do not say otherwise. And that each deviation of docs/deviations.md
//! has a fixture. docs/evaluation.md describes the index and its tags.

use event::{Kind, Raw, Scanner};
use score::Label;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use testkit::bodies;

fn fixtures() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

fn labels() -> Vec<Label> {
    let text =
        std::fs::read_to_string(fixtures().join("index.ndjson")).expect("fixtures/index.ndjson");
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e} in {line}")))
        .collect()
}

/// The labels by their recording, with the members that only the clients of `tc-serve` need.
fn answers() -> BTreeMap<String, serde_json::Value> {
    let text =
        std::fs::read_to_string(fixtures().join("index.ndjson")).expect("fixtures/index.ndjson");
    let labels = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("a label"));
    labels
        .map(|label| (label["file"].as_str().expect("a file").to_owned(), label))
        .collect()
}

/// What a full reading finds in choice 0 of one stream.
#[derive(Debug, Default)]
struct Reading {
    /// Whether an event of a call came, even if the call was retracted later: a checker that
    /// decides at it cannot know.
    has_call: bool,
    /// The calls as `NAME ARGUMENTS`, in order. A call that came again under its id counts once, as
    /// it came last.
    calls: Vec<(String, String)>,
    /// The answer before the first call.
    before: String,
    after: String,
    reasoning_before: bool,
    has_refusal: bool,
    has_error: bool,
    is_cut: bool,
    has_choices: bool,
}

/// The readings of the streams of one recording, in order.
fn readings(label: &Label) -> Vec<Reading> {
    let path = fixtures().join(&label.file);
    let is_body = label.file.starts_with("streams/");
    let events = if is_body && label.tools_mode.is_none() {
        std::fs::read_to_string(path.with_extension("events.ndjson"))
            .expect("the events beside a body")
    } else {
        let parse = match (&label.dialect, label.file.starts_with("logs/")) {
            (Some(dialect), false) => {
                let tools = label.tools.as_ref().map_or("[]", |t| t.get());
                format!(
                    "| tag-parse --no-time --when always --dialect {dialect} --tools <(printf %s '{tools}')"
                )
            }
            (Some(_), true) => "| tag-parse --no-time".to_owned(),
            (None, _) => String::new(),
        };
        let read = match label.file.starts_with("logs/") {
            true => format!("cat '{}'", label.file),
            false => format!("llm-stream --no-time --replay '{}'", label.file),
        };
        let script = format!("{read} {parse} | tc-accumulate --no-time");
        let output = testkit::bash(&script, &fixtures())
            .output()
            .expect("bash runs");
        String::from_utf8(output.stdout).expect("events are UTF-8")
    };
    let mut out: Vec<Reading> = Vec::new();
    let mut order: Vec<String> = Vec::new();
    let mut calls: BTreeMap<String, (String, String)> = BTreeMap::new();
    let mut scanner = Scanner::default();
    for line in events.lines() {
        let event = scanner.read(line).expect("an event");
        if event.kind() == Kind::StreamStart {
            finish(out.last_mut(), &mut order, &mut calls);
            out.push(Reading::default());
        }
        let Some(reading) = out.last_mut() else {
            continue;
        };
        if event.choice() > 0 {
            reading.has_choices = true;
            continue;
        }
        let text = || event.get_str("text").unwrap_or_default().into_owned();
        match event.kind() {
            Kind::ContentDelta if reading.has_call => reading.after += &text(),
            Kind::ContentDelta => reading.before += &text(),
            Kind::Thinking => reading.reasoning_before |= !reading.has_call && !text().is_empty(),
            Kind::RefusalDelta => reading.has_refusal = true,
            Kind::Error => reading.has_error = true,
            Kind::ToolCallDelta => reading.has_call = true,
            Kind::ToolCall => {
                reading.has_call = true;
                let id = event.get_str("tool_id").unwrap_or_default().into_owned();
                let name = event.get_str("tool_name").unwrap_or_default().into_owned();
                let arguments = canonical(event.get("arguments").map_or("null", Raw::text));
                order.push(id.clone());
                calls.insert(id, (name, arguments));
            }
            Kind::StreamEnd => {
                let reason = event.get_str("finish_reason").unwrap_or_default();
                reading.is_cut = reason == "length";
            }
            _ => {}
        }
    }
    finish(out.last_mut(), &mut order, &mut calls);
    out
}

fn finish(
    reading: Option<&mut Reading>,
    order: &mut Vec<String>,
    calls: &mut BTreeMap<String, (String, String)>,
) {
    if let Some(reading) = reading {
        reading.calls = order.drain(..).filter_map(|id| calls.remove(&id)).collect();
    }
    calls.clear();
}

/// JSON without white space, so that texts of equal values compare as equal; the order of members
/// and all digits stay.
fn canonical(text: &str) -> String {
    serde_json::from_str::<serde_json::Value>(text)
        .map_or_else(|_| text.to_owned(), |value| value.to_string())
}

fn is_tagged(label: &Label, tag: &str) -> bool {
    label.tags.iter().any(|t| t == tag)
}

#[test]
fn every_recording_has_labels_and_every_label_its_recording() {
    let labels = labels();
    let mut ids = BTreeSet::new();
    for label in &labels {
        assert!(ids.insert(&label.id), "{} is there twice", label.id);
        assert!(
            fixtures().join(&label.file).is_file(),
            "{}: no file {}",
            label.id,
            label.file
        );
        assert!(
            label.has_tool_call.is_some(),
            "{} is not confirmed",
            label.id
        );
        assert_eq!(
            label.has_tool_call,
            Some(!label.calls.is_empty()),
            "{}: its calls",
            label.id
        );
        assert!(
            label.source.is_some() && label.api.is_some(),
            "{}: source and API",
            label.id
        );
    }
    let answers = answers();
    for body in bodies() {
        let file = format!("streams/{}", body.name);
        assert_eq!(
            labels.iter().filter(|l| l.file == file).count(),
            1,
            "labels of {file}"
        );
        // What official clients have to return (tests/clients/matrix).
        let answer = &answers[&file];
        for member in [
            "finish_reason",
            "stream_error",
            "usage",
            "content_len",
            "content_sha256",
            "reasoning_len",
        ] {
            assert!(
                answer.get(member).is_some(),
                "the label of {file} has no {member}"
            );
        }
    }
    for folder in ["logs", "tapes"] {
        for entry in std::fs::read_dir(fixtures().join(folder)).expect("a folder of recordings") {
            let file = format!(
                "{folder}/{}",
                entry.expect("an entry").file_name().to_string_lossy()
            );
            assert!(labels.iter().any(|l| l.file == file), "{file} has no label");
        }
    }
}

#[test]
fn a_full_reading_agrees_with_every_label_that_does_not_say_otherwise() {
    let mut wrong = Vec::new();
    let mut file = String::new();
    let mut parts = Vec::new();
    let answers = answers();
    for label in labels() {
        if label.file != file {
            parts = readings(&label);
            file.clone_from(&label.file);
            let count = labels().iter().filter(|l| l.file == file).count();
            assert_eq!(parts.len(), count, "streams of {file}");
        }
        let part = usize::try_from(label.part.unwrap_or(1)).expect("a small number");
        let Some(reading) = parts.get(part - 1) else {
            panic!("{} has no stream {part}", label.file)
        };
        let agrees = label.has_tool_call == Some(reading.has_call);
        if agrees == is_tagged(&label, "full-is-wrong") {
            wrong.push(format!(
                "{}: full says {}, tags {:?}",
                label.id, reading.has_call, label.tags
            ));
        }
        if agrees {
            let expected: Vec<(String, String)> = label
                .calls
                .iter()
                .map(|c| {
                    (
                        c.name.clone(),
                        c.arguments
                            .as_ref()
                            .map_or("null".to_owned(), |a| canonical(a.get())),
                    )
                })
                .collect();
            if reading.calls != expected && !reading.calls.is_empty() {
                wrong.push(format!(
                    "{}: calls {:?}, not {expected:?}",
                    label.id, reading.calls
                ));
            }
        }
        wrong.extend(wrong_tags(&label, reading));
        let length = reading.before.chars().count() + reading.after.chars().count();
        if label.file.starts_with("streams/")
            && label.tools_mode.is_none()
            && answers[&label.file]["content_len"].as_u64() != Some(length as u64)
        {
            wrong.push(format!("{}: the text has {length} characters", label.id));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The tags that can be seen in the events must be there exactly where the events show them.
fn wrong_tags(label: &Label, reading: &Reading) -> Vec<String> {
    // The retracted message has text and a call of its own, and markup of a call in the text is not
    // an answer.
    if is_tagged(label, "full-is-wrong") {
        return Vec::new();
    }
    let calls = label.has_tool_call == Some(true);
    let length = reading.before.chars().count();
    let is_blank = reading.before.trim().is_empty();
    [
        ("text-before-call", calls && !is_blank),
        ("white-space-before-call", calls && is_blank && length > 0),
        ("long-text-before-call", calls && length >= 1000),
        ("reasoning-before-call", calls && reading.reasoning_before),
        ("reasoning", !calls && reading.reasoning_before),
        ("text-after-call", calls && !reading.after.trim().is_empty()),
        ("several-calls", label.calls.len() > 1),
        (
            "cut-call",
            label.calls.iter().any(|c| c.arguments.is_none()) && !is_tagged(label, "no-name"),
        ),
        ("cut-text", !calls && reading.is_cut && length > 0),
        ("error", reading.has_error),
        ("choices", reading.has_choices),
    ]
    .into_iter()
    .filter(|(tag, is_so)| is_tagged(label, tag) != *is_so)
    .map(|(tag, is_so)| format!("{}: {tag} is {is_so}, tags {:?}", label.id, label.tags))
    .collect()
}

/// What a checker can trip over. docs/evaluation.md explains each tag.
const TRAPS: [&str; 29] = [
    "text-before-call",
    "long-text-before-call",
    "white-space-before-call",
    "reasoning-before-call",
    "thinking-tag",
    "empty-deltas-first",
    "refusal",
    "json-answer",
    "markdown",
    "shown-call",
    "announced-call",
    "finish-lies",
    "server-item-only",
    "text-after-call",
    "several-calls",
    "cut-call",
    "cut-text",
    "connection-cut",
    "error",
    "choices",
    "no-tools",
    "tools-not-used",
    "retracted-call",
    "call-in-text",
    "leaked-markup",
    "crlf",
    "comments",
    "log",
    "tape",
];

#[test]
fn the_corpus_covers_every_api_dialect_and_trap() {
    let labels = labels();
    let both = |what: &str, ours: &dyn Fn(&Label) -> bool| {
        for answer in [true, false] {
            assert!(
                labels
                    .iter()
                    .any(|l| l.has_tool_call == Some(answer) && ours(l)),
                "no stream of {what} {} a call",
                if answer { "with" } else { "without" },
            );
        }
    };
    for api in api::Api::ALL {
        both(api.name(), &|l| l.api.as_deref() == Some(api.name()));
    }
    for dialect in tag::Dialect::all() {
        both(dialect.name, &|l| {
            l.tools_mode.as_deref() == Some("tag") && l.dialect.as_deref() == Some(dialect.name)
        });
    }
    for trap in TRAPS {
        assert!(
            labels.iter().any(|l| is_tagged(l, trap)),
            "no stream has the tag {trap}"
        );
    }
    // Finish reasons that are wrong in either direction.
    both("finish-lies", &|l| is_tagged(l, "finish-lies"));
    both("reasoning", &|l| {
        is_tagged(l, "reasoning") || is_tagged(l, "reasoning-before-call")
    });
    both("known tools", &|l| {
        l.tools.as_ref().is_some_and(|t| t.get() != "[]")
    });
    both("unknown tools", &|l| l.tools.is_none());
    both("tapes", &|l| l.file.ends_with(".tape") && l.part.is_some());
    assert!(
        labels
            .iter()
            .any(|l| l.tools.as_ref().is_some_and(|t| t.get() == "[]")),
        "no stream of a request without tools"
    );
    // Text before a call of the lengths at which fixed limits fail: below the median, at it, at
    // nine of ten, and far beyond.
    let lengths: BTreeSet<usize> = labels
        .iter()
        .filter(|l| {
            l.tools_mode.is_none()
                && l.file.starts_with("streams/")
                && l.has_tool_call == Some(true)
        })
        .filter_map(|l| readings(l).first().map(|r| r.before.chars().count()))
        .collect();
    for (what, range) in [
        ("short", 2..40),
        ("55", 55..56),
        ("140", 140..141),
        ("long", 1000..usize::MAX),
    ] {
        assert!(
            lengths.range(range).next().is_some(),
            "no text of the length {what} before a call: {lengths:?}"
        );
    }
}

/// The deviations that have a case in place of a body: they concern requests, execution, or the
/// amount of work.
const CASES: [(u32, &str); 4] = [
    (44, "the cost of many fragments; they are made on the fly"),
    (45, "what the history says of arguments that cannot be used"),
    (
        46,
        "what the next request says of calls that have no result",
    ),
    (48, "what the next request says of a result that came twice"),
];

#[test]
fn every_known_deviation_has_a_fixture() {
    let names: Vec<String> = bodies().into_iter().map(|b| b.name).collect();
    let cases: Vec<String> =
        std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/cases"))
            .expect("fixtures/cases")
            .map(|entry| {
                entry
                    .expect("a readable folder")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
    for row in 1..=48 {
        let mark = format!("row-{row:02}-");
        match CASES.iter().find(|(n, _)| *n == row) {
            Some((_, why)) => assert!(
                cases.iter().any(|c| c.starts_with(&mark)),
                "no case {mark}… ({why})"
            ),
            None => assert!(
                names.iter().any(|n| n.contains(&format!("/{mark}"))),
                "no recorded body {mark}…"
            ),
        }
    }
}
