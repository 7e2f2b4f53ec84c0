//! The laws of reading, over texts that are made of the parts of calls, whole and broken, in every
//! dialect.

use crate::reading::{
    Found, Item, Known, PLAIN, cases, floor, known, letters, look, parser, pieces, read, texts,
    tools, written,
};
use event::{Collect, Kind, Scanner};
use proptest::prelude::*;
use std::collections::HashSet;
use testkit::places::{MARKUP, Sample, is_tried};
use toolpipe_tag::{Dialect, PromptCall, Streams, TagOptions};

/// How much of an answer is held until it is clear whether it began inside reasoning, in bytes.
const WINDOW: usize = 256;

/// The items, without the texts of warnings: the white space in the part of a broken call that they
/// show may differ.
fn said(found: &Found) -> Vec<Item> {
    let plain = |item: &Item| match item {
        Item::Warning(code, ..) => Item::Warning(code, String::new(), String::new()),
        other => other.clone(),
    };
    found.items.iter().map(plain).collect()
}

/// Reads a text whole, and in these other pieces; says where that differs.
fn split(dialects: &str, known: Known, text: &str, seed: u64) -> Result<Found, String> {
    let whole = read(dialects, known, [text]);
    let single = read(dialects, known, letters(text));
    let random = read(dialects, known, pieces(text, seed));
    for (how, other) in [("letter by letter", &single), ("in random pieces", &random)] {
        if said(other) != said(&whole) {
            return Err(format!(
                "{dialects}, {known:?}, {text:?}\n whole: {:?}\n {how}: {:?}",
                whole.items, other.items
            ));
        }
    }
    for (how, found) in [
        ("whole", &whole),
        ("letter by letter", &single),
        ("in random pieces", &random),
    ] {
        if found.passed != text {
            return Err(format!(
                "{dialects}, {known:?}, {text:?}\n comes out ({how}) as {:?}",
                found.passed
            ));
        }
        if !found.lost.is_empty() {
            return Err(format!(
                "{dialects}, {known:?}, {text:?}\n loses ({how}) {:?}: {:?}",
                found.lost, found.items
            ));
        }
    }
    Ok(whole)
}

#[test]
fn every_beginning_of_a_call_is_read_alike_in_every_split() {
    let mut wrong = Vec::new();
    let mut tried = 0;
    for dialect in Dialect::all() {
        for text in written(dialect) {
            let text = format!("Hm. {text}\nSo.");
            for (from, names) in [(0, dialect.name), (4, "auto")] {
                let text = &text[from..];
                for end in Sample::FEW.between(text, MARKUP) {
                    tried += 1;
                    let known = Known {
                        cut: end % 2 == 0,
                        ..PLAIN
                    };
                    wrong.extend(split(names, known, &text[..end], end as u64).err());
                }
            }
        }
    }
    assert!(tried > 3000, "{tried} texts");
    assert!(
        wrong.is_empty(),
        "{} texts:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(12)].join("\n")
    );
}

/// The whole call is found at once or byte by byte: the warning in the middle of its arguments has
/// the same place.
#[test]
fn the_place_of_a_warning_within_arguments_does_not_depend_on_their_pieces() {
    let call = "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n\
        <｜DSML｜parameter name=\"b\" string=\"false\"true</｜DSML｜parameter>\n\
        <｜DSML｜parameter name=\"n\" string=\"false\">null</｜DSML｜parameter>\n\
        <｜DSML｜parameter name=\"s\" string=\"true\">a\nb</｜DSML｜parameter>\n\
        </｜DSML｜invoke>\n</｜DSML｜function_calls>";
    for text in [
        call.to_owned(),
        format!("<|observation|>{call}<｜DSML｜invoke"),
    ] {
        for names in ["deepseek-v32", "auto"] {
            let same = split(names, PLAIN, &text, 3);
            assert!(same.is_ok(), "{}", same.err().unwrap_or_default());
        }
    }
}

/// `<start_function_response>response:` counts at the beginning of a line only; what it begins with
/// is left out.
#[test]
fn a_marker_that_does_not_count_hides_no_shorter_one() {
    let text = "</s>a `<start_function_response>response:";
    let found = split("auto", PLAIN, text, 5).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(found.content(), "a `response:");
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn no_split_shows_and_nothing_is_lost((dialect, text) in texts(), known in known(), seed in any::<u64>()) {
        // Of a longer text whose prompt is not known: see the next test.
        let known = if text.len() > WINDOW { Known { prefill: known.prefill.or(Some("")), ..known } } else { known };
        for names in [dialect, "auto"] {
            if let Err(why) = split(names, known, &text, seed) {
                prop_assert!(false, "{}", why);
            }
        }
    }
}

/// What frames neither a call nor reasoning nor a message is left out only with a warning that
/// names it.
#[test]
fn what_is_dropped_is_named() {
    for (dialect, text, dropped) in [
        (
            "hermes",
            "a <|im_end|> b<|endoftext|>",
            &["<|im_end|>", "<|endoftext|>"][..],
        ),
        ("hermes", "</think>Yes.", &["</think>"]),
        (
            "kimi-k2",
            "<|tool_calls_section_begin|><|tool_calls_section_end|>Done.",
            &["<|tool_calls_section_begin|><|tool_calls_section_end|>"],
        ),
        ("hermes", "<think>Hm.</think>Yes.", &[]),
        (
            "harmony",
            "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes.<|return|>",
            &[],
        ),
    ] {
        for names in [dialect, "auto"] {
            let found = split(names, PLAIN, text, 7).unwrap_or_else(|why| panic!("{why}"));
            let named = found.items.iter().filter_map(|item| match item {
                Item::Warning("tag_dropped", _, raw) => Some(&raw[..]),
                _ => None,
            });
            assert_eq!(
                named.collect::<Vec<_>>(),
                dropped,
                "{names}: {text}: {:?}",
                found.items
            );
        }
    }
}

/// What fuzzing found: see `fuzz/README.md`. The first three bytes of a file say how it is read
/// there.
#[test]
fn what_fuzzing_found_is_read() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/findings/text");
    let files: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder")
        .flatten()
        .map(|file| file.path())
        .collect();
    assert!(!files.is_empty());
    for file in files {
        let bytes = std::fs::read(&file).expect("a file");
        let text = String::from_utf8_lossy(bytes.get(3..).unwrap_or_default()).into_owned();
        for names in Dialect::all().iter().map(|d| d.name).chain(["auto"]) {
            let same = split(names, PLAIN, &text, text.len() as u64);
            assert!(
                same.is_ok(),
                "{}: {}",
                file.display(),
                same.err().unwrap_or_default()
            );
        }
    }
}

#[test]
fn where_an_unknown_beginning_is_decided_does_not_depend_on_its_pieces() {
    let known = Known {
        prefill: None,
        ..PLAIN
    };
    for mark in [
        "<｜tool▁call▁begin｜>",
        "<｜tool▁calls▁begin｜>",
        "</think>",
        "<think>",
    ] {
        for length in [200, 250, 256, 257, 300, 600] {
            for dialect in Dialect::all() {
                let text = format!("{}{mark} and so on.", "x".repeat(length));
                let same = split(dialect.name, known, &text, length as u64);
                assert!(same.is_ok(), "{}", same.err().unwrap_or_default());
            }
        }
    }
}

/// How much of the end of a text may be the beginning of a marker.
fn may_begin(markers: &[&str], text: &str) -> usize {
    let begins = |from: usize| {
        markers
            .iter()
            .any(|m| m.len() > text.len() - from && m.starts_with(&text[from..]))
    };
    let longest = markers.iter().map(|m| m.len()).max().unwrap_or(0);
    let from = floor(text, text.len().saturating_sub(longest));
    text[from..]
        .char_indices()
        .map(|(at, _)| from + at)
        .find(|at| begins(*at))
        .map_or(0, |at| text.len() - at)
}

/// Reads a text without markers; the error names a place at which more is held back than may be the
/// beginning of one.
fn holds(names: &str, known: Known, text: &str) -> Result<(), String> {
    let markers: Vec<&str> = look(names).texts().collect();
    let mut parser = parser(names, known);
    let mut found = Found::default();
    let window = if known.prefill.is_none() { WINDOW } else { 0 };
    let mut end = 0;
    for letter in letters(text) {
        parser.push(letter, &mut found);
        end += letter.len();
        let held = end - found.passed.len();
        if held <= window {
            continue;
        }
        let may = may_begin(&markers, &text[..end]);
        if held > may + window {
            return Err(format!(
                "{names} holds {held} bytes of {:?}, but {may} may begin a marker",
                &text[..end]
            ));
        }
    }
    parser.finish(known.cut, &mut found);
    // What the prompt may have opened is one or the other.
    let reasoning = known.prefill.is_none();
    let plain =
        |i: &Item| matches!(i, Item::Content(_)) || reasoning && matches!(i, Item::Reasoning(_));
    let same = found.items.iter().all(plain) && found.passed == text && found.left_out.is_empty();
    if same {
        Ok(())
    } else {
        Err(format!("{names} makes {:?} of {text:?}", found.items))
    }
}

#[test]
fn what_no_marker_begins_with_is_not_held() {
    let mut wrong = Vec::new();
    let mut number = 0;
    let mut tried = 0;
    for names in Dialect::all().iter().map(|d| d.name).chain(["auto"]) {
        let markers: Vec<&str> = look(names).texts().collect();
        for marker in &markers {
            for (at, _) in marker.char_indices().skip(1) {
                for after in ["a", "<", ">", " ", "\n", "[", "|", "/", "é", "{"] {
                    let text = format!(". {}{after}.", &marker[..at]);
                    number += 1;
                    if is_tried(number, 16) && !markers.iter().any(|m| text.contains(m)) {
                        tried += 1;
                        wrong.extend(holds(names, PLAIN, &text).err());
                    }
                }
            }
        }
    }
    assert!(tried > 2000, "{tried} texts");
    assert!(
        wrong.is_empty(),
        "{} texts:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(12)].join("\n")
    );
}

/// Events as lines: the beginning of a stream, its text in these pieces, its end.
fn stream(names: &str, known: Known, pieces: &[&str]) -> Vec<String> {
    let string = |text: &str| serde_json::Value::from(text).to_string();
    let tools = if known.tools {
        format!(r#","tools":{}"#, tools())
    } else {
        String::new()
    };
    let prefill = known
        .prefill
        .map_or(String::new(), |p| format!(r#","prefill":{}"#, string(p)));
    let mut lines = vec![format!(
        r#"{{"type":"stream_start","v":1,"tools_mode":"tag","dialect":"{names}"{tools}{prefill}}}"#
    )];
    lines.extend(pieces.iter().map(|p| {
        format!(
            r#"{{"type":"content_delta", "text":{},"x":[1]}}"#,
            string(p)
        )
    }));
    let reason = if known.cut { "length" } else { "stop" };
    lines.push(format!(
        r#"{{"type":"stream_end","finish_reason":"{reason}"}}"#
    ));
    lines
}

/// What `tag-parse` writes for these lines.
fn tag_parse(lines: &[String]) -> Vec<String> {
    let streams = Streams::new(TagOptions::default());
    let mut scanner = Scanner::default();
    let first = scanner.read(&lines[0]).expect("an event");
    Collect::run(&mut streams.begin(&first), lines)
}

/// The joined text of these lines, be it answer or reasoning.
fn joined(lines: &[String]) -> String {
    let mut scanner = Scanner::default();
    let text = |line: &String| {
        let event = scanner.read(line).expect("an event");
        matches!(event.kind(), Kind::ContentDelta | Kind::Thinking)
            .then(|| event.get_str("text").unwrap_or_default().into_owned())
    };
    lines.iter().filter_map(text).collect()
}

/// The same lines without warnings, whose place and text depend on how much of a text is left to be
/// read again; adjacent pieces of text are one.
fn merged(lines: &[String]) -> Vec<String> {
    let of = |line: &str, kind: &str| line.contains(&format!(r#""type":"{kind}""#));
    let mut out: Vec<String> = Vec::new();
    let mut text = String::new();
    for line in lines.iter().filter(|line| !of(line, "warning")) {
        if of(line, "content_delta") {
            text += &joined(std::slice::from_ref(line));
            continue;
        }
        out.extend(Some(std::mem::take(&mut text)).filter(|text| !text.is_empty()));
        out.push(line.clone());
    }
    out
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn text_without_a_marker_passes((dialect, text) in texts(), known in known(), seed in any::<u64>()) {
        for names in [dialect, "auto"] {
            let mut text = format!(". {text}");
            // A marker without its second letter is not a marker.
            for _ in 0..8 {
                for marker in look(names).texts() {
                    text = text.replace(marker, &marker[..marker.chars().next().map_or(0, char::len_utf8)]);
                }
            }
            if look(names).texts().any(|m| text.contains(m)) {
                continue;
            }
            let known = Known { prefill: known.prefill.filter(|p| !p.contains("think")), ..known };
            if let Err(why) = holds(names, known, &text) {
                prop_assert!(false, "{}", why);
            }
            let lines = stream(names, known, &pieces(&text, seed));
            prop_assert_eq!(joined(&tag_parse(&lines)), joined(&lines), "{}", names);
        }
    }

    #[test]
    fn lines_that_nothing_can_begin_in_pass_byte_for_byte((dialect, text) in texts(), seed in any::<u64>()) {
        for names in [dialect, "auto"] {
            let known = Known { tools: true, prefill: Some(""), cut: false };
            let first: HashSet<char> = look(names).texts().filter_map(|m| m.chars().next()).collect();
            let text: String = format!(". {text}").chars().filter(|c| !first.contains(c)).collect();
            let lines = stream(names, known, &pieces(&text, seed));
            prop_assert_eq!(tag_parse(&lines), lines, "{}", names);
        }
    }

    /// Law 3 of docs/protocol.md, but for the three exceptions that it names, of which each has an
    /// example below.
    #[test]
    fn twice_is_once((dialect, text) in texts(), known in known(), seed in any::<u64>()) {
        let known = Known { prefill: known.prefill.or(Some("")), ..known };
        for names in [dialect, "auto"] {
            let once = tag_parse(&stream(names, known, &pieces(&text, seed)));
            let found = read(names, known, [&text[..]]);
            // Without the header of its message, a line may begin a call, which is announced and
            // taken back.
            let again = read(names, known, [&found.content()[..]]);
            let is_else = !again.left_out.is_empty() || again.items.iter().any(|item| matches!(item, Item::Retract(..)));
            if !found.left_out.is_empty() && is_else {
                continue;
            }
            // The reasoning that the prompt opened was empty.
            let mut texts = once.iter().filter(|line| !line.contains(r#""type":"stream_"#) && !line.contains(r#""type":"warning""#));
            let begins_in_reasoning = texts.next().is_some_and(|line| line.contains(r#""type":"thinking""#));
            if known.prefill == Some("<think>\n") && !begins_in_reasoning {
                continue;
            }
            // Where a text is cut is not the same: a piece may end like a marker that the next one
            // ruled out.
            prop_assert_eq!(merged(&tag_parse(&once)), merged(&once), "{}", names);
        }
    }
}

/// Text before a call is not at the end of a cut text: a second reading does not leave out a marker
/// that the first one passed.
#[test]
fn a_marker_before_a_call_is_passed_again() {
    let call = r#"<tool_calls>[{"name": "f", "arguments": {"a": 1, "s": "x y"}}]</tool_calls>"#;
    for marker in ["<invoke>", "<|start|>assistant", "<tool_call>"] {
        for (known, after) in [
            (PLAIN, ""),
            (PLAIN, "`"),
            (Known { cut: true, ..PLAIN }, " So."),
        ] {
            let once = tag_parse(&stream("auto", known, &[marker, call, after]));
            assert_eq!(merged(&tag_parse(&once)), merged(&once), "{marker}");
        }
    }
}

/// The texts for which a second `tag-parse` gives something else: docs/protocol.md, law 3.
#[test]
fn where_twice_is_not_once() {
    let long = "x".repeat(300);
    for (why, text, prefill) in [
        (
            "what stood round a token that was left out makes another one",
            "a <|im_<|im_end|>end|> b",
            Some(""),
        ),
        (
            "reasoning that the prompt opened was empty",
            "</think>a</think>b",
            Some("<think>\n"),
        ),
        (
            "the prompt is not known",
            &*format!("{long}</think>a</think>b"),
            None,
        ),
    ] {
        let known = Known { prefill, ..PLAIN };
        let once = tag_parse(&stream("hermes", known, &[text]));
        let twice = tag_parse(&once);
        assert_ne!(merged(&twice), merged(&once), "{why}");
    }
}

/// Feeds the text of a call character by character. Returns how many characters after the end of
/// the name the name is emitted, and how many characters before the end of the text the call is
/// emitted as whole (`None`: only at the end).
fn lateness(names: &str, text: &str, name: &str) -> (i64, Option<i64>) {
    let at = text.find(name).expect("the name stands in the call");
    let ends = text[..at + name.len()].chars().count() as i64 + 1;
    let mut parser = parser(names, PLAIN);
    let mut found = Found::default();
    let (mut named, mut done) = (None, None);
    for (n, letter) in letters(text).enumerate() {
        parser.push(letter, &mut found);
        let n = n as i64 + 1;
        if named.is_none() && found.items.iter().any(|i| matches!(i, Item::Name(..))) {
            named = Some(n);
        }
        if done.is_none() && found.items.iter().any(|i| matches!(i, Item::Done(..))) {
            done = Some(n);
        }
    }
    parser.finish(false, &mut found);
    assert_eq!(
        found.calls().len(),
        1,
        "{names}: {text} is {:?}",
        found.items
    );
    let all = text.chars().count() as i64;
    (named.unwrap_or(all + 1) - ends, done.map(|n| all - n))
}

/// `TABLE=1 cargo test -p toolpipe-tag --test main laws::told -- --nocapture` prints all numbers.
#[test]
fn a_name_is_told_with_the_character_that_ends_it_and_a_call_with_its_last() {
    let call = [PromptCall {
        id: "call_1",
        name: "get_weather",
        arguments: r#"{"s": "Paris", "a": 1}"#,
    }];
    let print = std::env::var_os("TABLE").is_some();
    let mut wrong = Vec::new();
    for dialect in Dialect::all() {
        let text = dialect.calls(&call);
        let own = lateness(dialect.name, &text, "get_weather");
        let auto = lateness("auto", &text, "get_weather");
        if print {
            println!(
                "{:24} {:3} {:3?}; auto {:3} {:3?}",
                dialect.name, own.0, own.1, auto.0, auto.1
            );
        }
        let (known, unknown) = dialect.late;
        if own.0 > known.into() || auto.0 > unknown.into() {
            wrong.push(format!(
                "{}: late = \"{} {}\", not \"{known} {unknown}\"",
                dialect.name, own.0, auto.0
            ));
        }
        if own.1.is_none() || auto.1.is_none() {
            wrong.push(format!(
                "{}: the call is whole only at the end of the text",
                dialect.name
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
