//! Laws of the checker `auto`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use event::Scanner;
use event::payload::FinishReason;
use std::rc::Rc;
use toolpipe_detect::auto::{AutoTable, Observer};
use toolpipe_detect::{CallFilter, CheckerSettings, StreamEnding, checkers, checkers_with};

const START: &str = r#"{"type":"stream_start","v":1,"api":"anthropic","model":"claude-x"}"#;

const TEXTS: [&str; 7] = [
    "Paris lies on the river Seine. The city has two million people, and it is known for museums, for bridges and for bread.",
    "Sure! The weather is fine. Let me know whether more is needed, since the forecast of the next days is known here as well: it is long.",
    "<thinking>a long thought about much and more</thinking> The answer is short, but it goes on for a while, word after word after word.",
    "{\"name\": \"let me\", \"values\": [1, 2, 3, 4, 5, 6], \"more\": \"and more of this\"}",
    "東京は日本の首都です。人口は約千四百万人で、世界でも最も大きな都市の一つとして知られている。観光地も多く、食べ物もとても有名である。",
    "**Résumé**\n\n- c’est un texte\n- sans appel\n\nIl est écrit en français, et il est assez long pour que la réponse soit connue.",
    "Step 1: the_name_of_a_tool is here. Then much text follows, which says nothing about any of it and only goes on and on and on.",
];

/// The characters of text after which `auto:RISK` says no, if the text comes in these pieces;
/// `None` if it waits for the end.
fn no_at(risk: &str, pieces: &[&str]) -> Option<usize> {
    let mut scanner = Scanner::default();
    let mut chars = 0;
    let mut checker = checkers(&format!("auto:{risk}"), &CallFilter::default()).unwrap()(
        &scanner.read(START).unwrap(),
    )();
    for piece in pieces {
        chars += piece.chars().count();
        let text = piece
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        let line = format!(r#"{{"type":"content_delta","text":"{text}"}}"#);
        if let Some(verdict) = checker.push(&scanner.read(&line).unwrap()) {
            assert!(
                !verdict.tool_call && verdict.reason.contains("claude: after "),
                "{verdict:?}"
            );
            return Some(chars);
        }
    }
    None
}

#[test]
fn deltas_move_a_no_at_most_to_the_end_of_the_delta_with_its_character() {
    let mut decided = 0;
    for text in TEXTS {
        for risk in ["0.1%", "0.5%", "5%", "50%"] {
            let single: Vec<String> = text.chars().map(String::from).collect();
            let place = no_at(risk, &single.iter().map(String::as_str).collect::<Vec<_>>());
            decided += usize::from(place.is_some());
            let whole = text.chars().count();
            for (cut, _) in text.char_indices() {
                let (before, after) = text.split_at(cut);
                let first = before.chars().count();
                let want = place.map(|place| if place <= first { first } else { whole });
                assert_eq!(
                    no_at(risk, &[before, after]),
                    want,
                    "{risk} {before:?} + {after:?}"
                );
            }
        }
    }
    assert!(
        decided > TEXTS.len(),
        "most texts must be decided before their end at some risk"
    );
}

#[test]
fn a_smaller_risk_never_says_no_earlier() {
    for text in TEXTS {
        let single: Vec<String> = text.chars().map(String::from).collect();
        let single: Vec<&str> = single.iter().map(String::as_str).collect();
        let places: Vec<usize> = ["0", "0.001%", "0.1%", "0.5%", "2%", "10%", "1"]
            .iter()
            .map(|r| no_at(r, &single).unwrap_or(usize::MAX))
            .collect();
        assert!(places.is_sorted_by(|a, b| a >= b), "{places:?} {text}");
        assert_eq!(places[0], usize::MAX, "the risk 0 waits for the end");
    }
}

#[test]
fn a_risk_is_a_share_or_a_percentage() {
    for (name, is_known) in [
        ("auto:0.5%", true),
        ("auto:0.005", true),
        ("auto:100 %", true),
        ("auto:1.5", false),
        ("auto:-1%", false),
        ("auto:NaN", false),
        ("auto:", false),
        ("auto", true),
    ] {
        assert_eq!(
            checkers(name, &CallFilter::default()).is_some(),
            is_known,
            "{name}"
        );
    }
}

#[test]
fn a_table_is_text_and_adds_up() {
    let table = AutoTable::built_in();
    assert_ne!(table, AutoTable::default(), "the compiled table is read");
    assert_eq!(AutoTable::parse(&table.to_string()), Ok(table.clone()));
    let mut twice = table.clone();
    twice.merge(&table);
    assert_eq!(
        AutoTable::parse(&format!("{table}{table}")),
        Ok(twice),
        "rows of one name add up"
    );
    for (text, words) in [
        ("text 1", "line 1: a row is"),
        ("text 1 2\nmodel a b 1 2", "line 2: a row is"),
        ("model \u{1b} 1 2", "line 1: a name"),
        ("after plain 7 1 2", "line 1: a length"),
        ("after x 8 1 2", "line 1: a sign"),
        ("text -1 2", "line 1: a count"),
        ("text 99999999999999999999 2", "line 1: a count"),
    ] {
        let e = AutoTable::parse(text).unwrap_err().to_string();
        assert!(e.contains(words) && e.lines().count() == 1, "{text:?}: {e}");
    }
}

#[test]
fn a_model_that_speaks_before_it_calls_makes_the_checker_wait() {
    let mut scanner = Scanner::default();
    let mut table = AutoTable::built_in();
    let call = r#"{"type":"tool_call_delta","index":0,"tool_id":"a","tool_name":"f"}"#;
    for _ in 0..100 {
        let mut observer = Observer::new(
            &scanner
                .read(r#"{"type":"stream_start","v":1,"model":"chatty-1"}"#)
                .unwrap(),
        );
        let text = format!(
            r#"{{"type":"content_delta","text":"{}"}}"#,
            "the usual words ".repeat(20)
        );
        observer.push(&scanner.read(&text).unwrap());
        observer.push(&scanner.read(call).unwrap());
        table.add(&observer.end());
    }
    let place = |table: AutoTable| {
        let settings = CheckerSettings {
            table: Some(Rc::new(table)),
            ..CheckerSettings::default()
        };
        let mut scanner = Scanner::default();
        let first = scanner
            .read(r#"{"type":"stream_start","v":1,"model":"chatty-1"}"#)
            .unwrap();
        let mut checker =
            checkers_with("auto", &CallFilter::default(), &settings).unwrap()(&first)();
        let word = r#"{"type":"content_delta","text":"word "}"#;
        (1..1000).find(|_| {
            checker
                .push(&Scanner::default().read(word).unwrap())
                .is_some()
        })
    };
    let before = place(AutoTable::built_in()).unwrap();
    let after = place(table);
    assert!(
        after.is_none_or(|after| after > 2 * before),
        "{before} {after:?}"
    );
}

/// Text that announces a call in its own way, after which the rest of it is waited for.
const ANNOUNCED: [&str; 14] = [
    "Updating the two files in the folder",
    "One moment",
    "Please hold while the reservation is looked up",
    "Here's my plan for the migration",
    "Je recherche les vols",
    "Проверю погоду",
    "正在为您",
    "<antThinking>the city is known",
    "<thinking><plan>first the city</plan> and then",
    "I'll look at the forecast",
    "The last attempt failed",
    "I'd be happy to check the order",
    "Observation: the file is empty",
    "Searching",
];

#[test]
fn what_announces_a_call_is_waited_for() {
    let rest = " of the house by the lake which has a roof and a door and windows on both of its sides and a garden with trees";
    for text in ANNOUNCED {
        assert_eq!(no_at("0.5%", &[text, rest]), None, "{text}");
    }
    assert_eq!(
        no_at("0.5%", &["The weather is fine", rest]),
        Some(19 + rest.len())
    );
}

/// The name of a known tool in the text is a sign, but for a short one, which is a word of the
/// language too.
#[test]
fn the_name_of_a_tool_is_waited_for() {
    let rest = "of the house by the lake which has a roof and a door and windows on both of its sides and a garden with trees";
    let decides = |tool: &str, text: &str| {
        let start = START.replace(
            '}',
            &format!(r#","tools":[{{"type":"function","function":{{"name":"zebra"}}}},{{"type":"function","function":{{"name":"{tool}"}}}}]}}"#),
        );
        let mut scanner = Scanner::default();
        let mut checker =
            checkers("auto:2%", &CallFilter::default()).unwrap()(&scanner.read(&start).unwrap())();
        let line = format!(r#"{{"type":"content_delta","text":"{text} {rest}"}}"#);
        checker.push(&scanner.read(&line).unwrap()).is_some()
    };
    assert!(
        decides("forecast", "The weather is fine") && !decides("forecast", "The forecast is fine")
    );
    assert!(decides("the", "The weather is fine"));
}

/// The decisions of `auto` about a stream of a request with the tool `f`, if its text comes in
/// these pieces: each with the characters that had come.
fn decisions(pieces: &[&str]) -> Vec<(bool, usize)> {
    let start = r#"{"type":"stream_start","v":1,"api":"openai-chat","model":"gpt-4o","tools":[{"name":"f"}]}"#;
    let mut scanner = Scanner::default();
    let mut checker =
        checkers("auto", &CallFilter::default()).unwrap()(&scanner.read(start).unwrap())();
    let mut found = Vec::new();
    let mut chars = 0;
    for piece in pieces {
        chars += piece.chars().count();
        let text = piece
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        let line = format!(r#"{{"type":"content_delta","text":"{text}"}}"#);
        found.extend(
            checker
                .push(&scanner.read(&line).unwrap())
                .map(|verdict| (verdict.tool_call, chars)),
        );
    }
    found.extend(
        checker
            .end(StreamEnding::Stream(FinishReason::Stop))
            .filter(|v| v.tool_call)
            .map(|_| (true, chars)),
    );
    found
}

/// Whatever the split, the same decisions are made in the same order: a call behind the text of a
/// no does not hide the no.
#[test]
fn a_split_changes_no_decision_about_a_call_in_the_text() {
    let call = "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>";
    let long = "Paris lies on the river Seine in the north of France. The city has two million people, and it is known for bread.";
    for (text, want) in [
        (format!("Look. {call}"), vec![true]),
        (format!("{long} {call}"), vec![false, true]),
        (
            "{\"name\": \"f\", \"arguments\": {}}".to_owned(),
            vec![true],
        ),
        (
            format!("{long} <tool_call>{{\"name\": \"g\", \"arguments\": {{}}}}</tool_call>"),
            vec![false],
        ),
        (
            format!("<tool_call>{{\"name\": \"g\", \"arguments\": {{}}}}</tool_call> {long}"),
            vec![],
        ), // a name of a tool is waited for
    ] {
        let answers = |pieces: &[&str]| {
            decisions(pieces)
                .iter()
                .map(|(yes, _)| *yes)
                .collect::<Vec<_>>()
        };
        let single: Vec<String> = text.chars().map(String::from).collect();
        assert_eq!(
            answers(&single.iter().map(String::as_str).collect::<Vec<_>>()),
            want,
            "{text}"
        );
        for (cut, _) in text.char_indices() {
            let (before, after) = text.split_at(cut);
            assert_eq!(answers(&[before, after]), want, "{before:?} + {after:?}");
        }
    }
}

/// Text without markers is judged as fast where tools are offered, although the prompt may have
/// opened reasoning.
#[test]
fn text_without_markers_is_not_held_back() {
    let text = "Paris lies on the river Seine in the north of France. The city has two million people, and it is known for bread.";
    let single: Vec<String> = text.chars().map(String::from).collect();
    let found = decisions(&single.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(
        matches!(found[..], [(false, at)] if at < text.len()),
        "{found:?}"
    );
}
