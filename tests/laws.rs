//! The laws of the protocol over every recorded body, with the machines in memory.
//!
//! 1 chunk invariance of fragments (of bytes: `crates/api/tests/laws.rs`), 2 and 3 nothing is lost
//! and pass-through, 5 earliest. Law 4 (linear) is `growth.rs` and `growth_commands.rs`; a test of
//! `pipes.rs` shows that memory does not grow with a stream that passes.

use accumulate::{Accumulate, AccumulateOptions};
use api::{AnswerForm, AnswerOptions, Api, Encoder, End, Front, Stream, StreamOptions};
use detect::{CallFilter, CheckerAnswers, Detect};
use event::{Collect, Event, Kind, Raw, Scanner};
use proptest::prelude::*;
use std::rc::Rc;
use tag::Streams;
use testkit::places::is_full;
use testkit::{Body, bodies, cut};

/// A body as it was recorded, and its bytes.
fn bytes(body: &Body) -> Vec<u8> {
    std::fs::read(&body.path).unwrap_or_else(|e| panic!("{}: {e}", body.name))
}

/// The events of a body that is read in these pieces.
fn stream<'a>(body: &Body, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let api = Api::from_name(&body.api)
        .unwrap_or_else(|| panic!("{}: the folder is no API's name", body.name));
    let mut stream = Stream::new(api, StreamOptions::default());
    let mut out = Collect::default();
    for piece in pieces {
        stream.push(piece, &mut out);
    }
    stream.finish(End::Eof, &mut out);
    out.lines
}

fn events(body: &Body) -> Vec<String> {
    stream(body, [&bytes(body)[..]])
}

fn accumulate(lines: &[String]) -> Vec<String> {
    Collect::run(
        &mut Accumulate::new(Rc::new(AccumulateOptions::default())),
        lines,
    )
}

fn detect(checker: &'static str, lines: &[String]) -> Vec<String> {
    let checkers =
        detect::checkers(checker, &CallFilter::default()).expect("a checker of the table");
    let mut scanner = Scanner::default();
    let first = scanner.read(&lines[0]).expect("an event");
    Collect::run(
        &mut Detect::new(
            checker.into(),
            checkers(&first),
            CheckerAnswers::default(),
            &first,
        ),
        lines,
    )
}

/// Runs `look` on each event.
fn each<'a>(lines: impl IntoIterator<Item = &'a String>, mut look: impl FnMut(usize, &Event<'_>)) {
    let mut scanner = Scanner::default();
    for (at, line) in lines.into_iter().enumerate() {
        look(
            at,
            &scanner.read(line).unwrap_or_else(|e| panic!("{e}: {line}")),
        );
    }
}

fn kinds(lines: &[String], kind: Kind) -> Vec<String> {
    let mut out = Vec::new();
    each(lines, |_, e| {
        out.extend((e.kind() == kind).then(|| e.raw().into_owned()))
    });
    out
}

/// The same deltas with other splits: each text and each fragment in pieces of some characters, as
/// a provider might have sent them.
fn recut(lines: &[String], seed: u64) -> Vec<String> {
    let mut out = Vec::new();
    each(lines, |at, e| {
        let key = match e.kind() {
            Kind::ContentDelta => "text",
            Kind::ToolCallDelta => "arguments",
            _ => return out.push(e.raw().into_owned()),
        };
        let Some(text) = e.get_str(key).filter(|t| !t.is_empty()) else {
            return out.push(e.raw().into_owned());
        };
        let mut from = 0;
        for piece in cut(text.as_bytes(), seed + at as u64) {
            let mut to = piece.as_ptr() as usize - text.as_ptr() as usize + piece.len();
            while !text.is_char_boundary(to) {
                to += 1;
            }
            if to > from {
                let part = event::quoted(&text[from..to]);
                let mut fields = format!(
                    "{{\"type\":\"{}\",\"choice\":{},\"{key}\":{part}",
                    e.kind().name(),
                    e.choice()
                );
                // Name and id come with the first piece, the end of the block with the last.
                let here = |name: &str| match name {
                    "index" => true,
                    "done" => to == text.len(),
                    _ => from == 0 && name != key,
                };
                for (name, value) in e.fields().filter(|(name, _)| here(name)) {
                    fields += &format!(",{}:{}", event::quoted(&name), value.text());
                }
                out.push(fields + "}");
                from = to;
            }
        }
    });
    out
}

#[test]
fn law_1_fragments_do_not_show() {
    let mut held = 0;
    for body in bodies() {
        let lines = events(&body);
        let want = accumulate(&lines);
        // Where a provider sends the text so far each time, the ends of fragments have a meaning,
        // so there is no other split.
        let mut whole: Vec<String> = Vec::new();
        each(&want, |_, e| {
            whole.extend(
                e.get("arguments")
                    .filter(|_| e.kind() == Kind::ToolCall)
                    .map(|a| a.text().to_owned()),
            )
        });
        let mut sent = String::new();
        each(&lines, |_, e| {
            sent += &e.get_str("arguments").unwrap_or_default()
        });
        let mut same = Vec::new();
        event::minify(&mut same, &sent);
        let plain = !sent.is_empty() && whole.concat().into_bytes() == same;
        held += usize::from(plain);
        let seeds = if is_full() { 16 } else { 4 };
        for seed in 0..if plain { seeds } else { 0 } {
            let got = accumulate(&recut(&lines, seed));
            // The commit level may differ: two calls in one delta seal the first.
            let level = |lines: Vec<String>| -> Vec<String> {
                lines
                    .into_iter()
                    .map(|l| l.replace("\"commit\":\"sealed\"", "\"commit\":\"balanced\""))
                    .collect()
            };
            for kind in [Kind::ToolCall, Kind::Message, Kind::Retract] {
                let got = level(kinds(&got, kind));
                let want = level(kinds(&want, kind));
                assert_eq!(got, want, "{} fragments cut by seed {seed}", body.name);
            }
        }
    }
    assert!(held > 60, "only {held} bodies have plain fragments");
}

#[test]
fn law_2_and_3_text_passes_in_order_and_a_second_pass_changes_nothing() {
    for body in bodies() {
        let lines = events(&body);
        let merged = accumulate(&lines);
        // Every line but the deltas of calls, and the `retract` of one by the provider's index,
        // passes byte for byte and in order, between the new events.
        let taken = [Kind::ToolCallDelta, Kind::Retract];
        let mut left = merged.iter();
        each(&lines, |_, e| {
            if !taken.contains(&e.kind()) {
                assert!(
                    left.any(|line| *line == e.raw()),
                    "{}: lost or moved: {}",
                    body.name,
                    e.raw()
                );
            }
        });
        if kinds(&lines, Kind::ToolCallDelta).is_empty() {
            let without: Vec<_> = merged
                .iter()
                .filter(|l| !kinds(&merged, Kind::Message).contains(l))
                .collect();
            assert_eq!(
                without,
                lines.iter().collect::<Vec<_>>(),
                "{}: more than a message was added",
                body.name
            );
        }
        assert_eq!(
            accumulate(&merged),
            merged,
            "{}: tc-accumulate twice",
            body.name
        );
        for checker in ["full", "first-chunk", "lookahead:20"] {
            let decided = detect(checker, &lines);
            let without: Vec<_> = decided
                .iter()
                .filter(|l| !l.contains("\"type\":\"decision\""))
                .collect();
            assert_eq!(
                without,
                lines.iter().collect::<Vec<_>>(),
                "{}: {checker} changed the stream",
                body.name
            );
            assert_eq!(
                detect(checker, &decided),
                decided,
                "{}: {checker} twice",
                body.name
            );
        }
    }
}

/// The lines that only a session file has.
const SESSION: [&str; 6] = [
    r#"{"type":"session","v":1,"id":"3fa9c0d1e2b3a4958677a8b9c0d1e2f3","created":1.50,"more":[]}"#,
    r#"{"id":"r1","type":"response","front":"events","answer":{}}"#,
    r#"{"type":"response_end","id":"r1","status":"interrupted"}"#,
    r#"{"type":"cancel","id":"r1","by":"\u00e9"}"#,
    r#"{"type":"cancel","tool_id":"a","by":"b"}"#,
    r#"{"type":"lease","epoch":1e3,"holder":"a"}"#,
];

fn tag_parse(lines: &[String]) -> Vec<String> {
    let mut scanner = Scanner::default();
    let first = scanner.read(&lines[0]).expect("an event");
    Collect::run(&mut Streams::default().begin(&first), lines)
}

/// What a client of each front gets of these events, as a stream and whole.
fn answers(lines: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    for front in Front::ALL {
        for form in [AnswerForm::Stream, AnswerForm::Whole] {
            let mut encoder = Encoder::new(front, form, AnswerOptions::default());
            let mut out = Vec::new();
            each(lines, |_, event| encoder.push(event, &mut out));
            encoder.finish(&mut out);
            all.push(String::from_utf8(out).expect("UTF-8"));
        }
    }
    all
}

/// The streams of the recorded logs, most of which have calls in their text.
fn logged() -> Vec<Vec<String>> {
    let folder = testkit::root().join("fixtures/logs");
    let mut streams = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the logs") {
        let log = std::fs::read_to_string(entry.expect("an entry").path()).expect("a log");
        let mut open: Option<Vec<String>> = None;
        for line in log.lines() {
            if line.starts_with(r#"{"type":"stream_start""#) {
                open = Some(Vec::new());
            }
            open.iter_mut().for_each(|open| open.push(line.to_owned()));
            if line.starts_with(r#"{"type":"stream_end""#) {
                streams.extend(open.take());
            }
        }
    }
    streams
}

/// A decision without the number of its event, among which every line counts.
fn unnumbered(line: &str) -> String {
    let Some((before, rest)) = line
        .strip_prefix(r#"{"type":"decision""#)
        .and_then(|rest| rest.split_once(r#","event":"#))
    else {
        return line.to_owned();
    };
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    format!("{before}{rest}")
}

#[test]
fn law_3_the_lines_of_a_session_pass_and_change_nothing() {
    let mut streams = logged();
    assert!(streams.len() > 100, "only {} streams", streams.len());
    streams.extend(bodies().iter().map(events));
    type Filter = fn(&[String]) -> Vec<String>;
    let filters: [Filter; 3] = [tag_parse, accumulate, |lines| detect("full", lines)];
    for (seed, lines) in streams.iter().enumerate() {
        for filter in filters {
            let got = filter(lines);
            let answer = answers(&got);
            let want: Vec<_> = got.iter().map(|line| unnumbered(line)).collect();
            for place in [1, 2 + seed % lines.len(), lines.len() / 2, lines.len()] {
                let at = place.clamp(1, lines.len());
                let own = SESSION.map(str::to_owned);
                let mixed = [&lines[..at], &own, &lines[at..]].concat();
                let got = filter(&mixed);
                assert_eq!(answers(&got), answer, "answers of {lines:#?}");
                let (passed, rest): (Vec<_>, Vec<_>) =
                    got.into_iter().partition(|line| own.contains(line));
                assert_eq!(passed, own, "at {at} of {lines:#?}");
                let rest: Vec<_> = rest.iter().map(|line| unnumbered(line)).collect();
                assert_eq!(rest, want, "lines of a session at {at} of {lines:#?}");
            }
        }
    }
}

/// The 1-based event after which no continuation can change the decision of `checker` for choice 0,
/// and that decision, if the stream gets so far.
fn earliest(checker: &str, lines: &[String]) -> Option<(usize, bool)> {
    let mut seen = 0;
    let mut found = None;
    each(lines, |at, e| {
        if found.is_some() || e.choice() > 0 {
            return;
        }
        let text = e
            .get("text")
            .filter(|_| e.kind() == Kind::ContentDelta)
            .and_then(Raw::str)
            .unwrap_or_default();
        seen += text.chars().count();
        let enough = match checker {
            // A call that came in the text's chunk follows, and may be of a tool that does not
            // count.
            "first-chunk" => !text.is_empty() && e.get("with_call").is_none(),
            "lookahead:20" => seen >= 20 && !text.is_empty(),
            _ => false,
        };
        let call = e.kind() == Kind::ToolCallDelta
            && (e.get("tool_name").is_some() || e.get("tool_id").is_some());
        if call || enough || e.kind() == Kind::StreamEnd {
            found = Some((at + 1, call));
        }
    });
    found
}

#[test]
fn law_5_the_decision_comes_at_the_earliest_event() {
    for body in bodies() {
        let lines = events(&body);
        for checker in ["full", "first-chunk", "lookahead:20"] {
            let out = detect(checker, &lines);
            let (at, yes) = earliest(checker, &lines).expect("every stream has an end");
            let mut decisions = Vec::new();
            each(&out, |place, e| {
                // A call that was taken back leads to a second decision, which says that it is
                // revised.
                let is_revised = e.get("revised").and_then(Raw::bool) == Some(true);
                if e.kind() == Kind::Decision && e.choice() == 0 && !is_revised {
                    let yes = e.get("tool_call").and_then(Raw::bool);
                    decisions.push((place, e.get("event").and_then(Raw::i64), yes));
                }
            });
            assert_eq!(
                decisions.len(),
                1,
                "{}: {checker} decides once: {decisions:?}",
                body.name
            );
            let (place, event, said) = decisions[0];
            // It is next to the line that decided: nothing is held back, and nothing overtakes it.
            assert!(
                event.is_some_and(|n| n <= at as i64) && place <= at,
                "{}: {checker} is late: {out:?}",
                body.name
            );
            assert_eq!(said, Some(yes), "{}: {checker}", body.name);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    /// No bytes stop a decoder: for any input there is one start and one end, and each line is an
    /// event.
    #[test]
    fn any_bytes_give_one_start_and_one_end(
        which in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let all = bodies();
        let body = &all[which.index(all.len())];
        let mut raw = bytes(body);
        for (at, byte) in damage {
            let n = raw.len();
            raw[at.index(n)] = byte;
        }
        raw.truncate(cut.index(raw.len()) + 1);
        let lines = accumulate(&stream(body, [&raw[..]]));
        prop_assert_eq!(kinds(&lines, Kind::StreamStart).len(), 1);
        prop_assert_eq!(kinds(&lines, Kind::StreamEnd).len(), 1);
    }
}
