//! What comes late for a call: an id, a name, arguments or a `retract` after the call was emitted.
//! What was emitted holds, and nothing vanishes without a warning.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use event::{Collect, Kind, Scanner, quoted};
use std::rc::Rc;
use toolpipe_accumulate::{Accumulate, AccumulateOptions, EmitOn};

/// What a stream of these deltas gives: calls, retracts and warnings in order, and the calls of the
/// message.
fn outcome(deltas: &[&str], options: &AccumulateOptions) -> Vec<String> {
    let mut lines = vec![r#"{"type":"stream_start","v":1,"id":"r1"}"#.to_owned()];
    lines.extend(
        deltas
            .iter()
            .map(|fields| match fields.strip_prefix("retract ") {
                Some(fields) => format!(r#"{{"type":"retract",{fields},"reason":"unparsed"}}"#),
                None => format!(r#"{{"type":"tool_call_delta",{fields}}}"#),
            }),
    );
    lines.push(r#"{"type":"stream_end","finish_reason":"tool_calls"}"#.to_owned());
    let out = Collect::run(&mut Accumulate::new(Rc::new(options.clone())), &lines);
    let mut scanner = Scanner::default();
    let told = |line: &String| {
        let event = scanner.read(line).unwrap();
        let text = |key: &str| event.get_str(key).unwrap_or_default().into_owned();
        match event.kind() {
            Kind::ToolCall => {
                let error = event
                    .get("error")
                    .and_then(|e| e.get_str("code").map(|c| c.into_owned()));
                let arguments = event
                    .get("arguments")
                    .map_or("null", |a| a.text())
                    .to_owned();
                Some(format!(
                    "call {} {} {}",
                    text("tool_id"),
                    text("tool_name"),
                    error.unwrap_or(arguments)
                ))
            }
            Kind::Retract => Some(format!(
                "retract {}{}",
                text("tool_id"),
                event.get("index").map_or("", |_| "by its index")
            )),
            Kind::Warning if text("code") != "index_inferred" => Some(text("code")),
            Kind::Message => {
                let mut told = "message".to_owned();
                let calls = event.get("message").unwrap().get("tool_calls");
                for call in calls.iter().flat_map(|calls| calls.items()) {
                    let function = call.get("function").unwrap();
                    let [id, name, arguments] = [
                        call.get_str("id"),
                        function.get_str("name"),
                        function.get_str("arguments"),
                    ]
                    .map(Option::unwrap);
                    told += &format!(", {id} {name} {arguments}");
                }
                Some(told)
            }
            _ => None,
        }
    };
    out.iter().filter_map(told).collect()
}

fn told(deltas: &[&str]) -> Vec<String> {
    outcome(deltas, &AccumulateOptions::default())
}

#[test]
fn an_id_that_was_emitted_never_changes() {
    let cases: [(&[&str], &[&str]); 3] = [
        (
            &[
                r#""index":0,"tool_name":"f","arguments":"[1]","done":true"#,
                r#""index":1,"tool_id":"z""#,
                r#""index":0,"tool_id":"c""#,
            ],
            &["call 1 f invalid_json", "message, 1 f {}"],
        ),
        // The late id begins another call, and what follows belongs to that one.
        (
            &[
                r#""index":0,"tool_name":"f","done":true"#,
                r#""index":1,"tool_id":"z","tool_name":"g""#,
                r#""index":0,"tool_id":"c","tool_name":"f","arguments":"{\"a\":1}""#,
            ],
            &[
                "call 1 f {}",
                "call c f {\"a\":1}",
                "call z g {}",
                "message, 1 f {}, z g {}, c f {\"a\":1}",
            ],
        ),
        // A name that begins with the call's name is another call's, too.
        (
            &[
                r#""index":0,"tool_id":"a","tool_name":"f","arguments":"[1]","done":true"#,
                r#""index":1,"tool_id":"z","tool_name":"g""#,
                r#""index":0,"tool_name":"format","arguments":"{\"a\":1}""#,
            ],
            &[
                "call a f invalid_json",
                "call 1 format {\"a\":1}",
                "call z g {}",
                "message, a f {}, z g {}, 1 format {\"a\":1}",
            ],
        ),
    ];
    for (deltas, expected) in cases {
        assert_eq!(with_one_made_id(told(deltas)), expected, "{deltas:?}");
    }
}

#[test]
fn an_id_that_a_partial_reading_showed_stays() {
    let deltas = [
        r#""index":0,"tool_name":"f","arguments":"{\"a\":""#,
        r#""index":0,"tool_id":"c","arguments":"1}""#,
    ];
    for options in [
        AccumulateOptions {
            partial: true,
            ..AccumulateOptions::default()
        },
        AccumulateOptions {
            live: true,
            ..AccumulateOptions::default()
        },
    ] {
        let told = with_one_made_id(outcome(&deltas, &options));
        assert_eq!(
            told,
            ["id_changed", "call 1 f {\"a\":1}", "message, 1 f {\"a\":1}"]
        );
    }
    assert_eq!(
        told(&deltas),
        ["call c f {\"a\":1}", "message, c f {\"a\":1}"]
    );
}

#[test]
fn arguments_behind_the_end_of_their_call_do_not_vanish() {
    let first = r#""index":0,"tool_id":"a","tool_name":"f","#;
    let second = r#""index":1,"tool_id":"b","tool_name":"g","arguments":"{}""#;
    let object = r#""index":0,"arguments":"{\"a\":1}""#;
    // A placeholder waits for the arguments, also behind the beginning of the next call.
    let open = [&format!(r#"{first}"arguments":"{{}}""#)[..], second, object];
    assert_eq!(
        told(&open),
        [
            "call a f {\"a\":1}",
            "call b g {}",
            "message, a f {\"a\":1}, b g {}"
        ]
    );
    for (arguments, is, more) in [
        ("", "{}", "{\"a\":1}"),
        ("{}", "{}", "{\"a\":1}"),
        ("[1]", "invalid_json", "{\"a\":1}"),
        ("", "{}", "[1]"),
        ("[1]", "invalid_json", ",2]"),
        ("{}", "{}", "}"),
    ] {
        let closed = format!(r#"{first}"arguments":{},"done":true"#, quoted(arguments));
        let late = format!(r#""index":0,"arguments":{}"#, quoted(more));
        for emit_on in [EmitOn::Balanced, EmitOn::Sealed, EmitOn::Final] {
            let options = AccumulateOptions {
                emit_on,
                ..AccumulateOptions::default()
            };
            let mut told = with_one_made_id(outcome(&[&closed, second, &late], &options));
            let listed = if is == "invalid_json" { "{}" } else { is };
            let mut expected = vec![format!("call a f {is}"), "call b g {}".to_owned()];
            if more == "{\"a\":1}" {
                expected.extend([
                    "call 1 f {\"a\":1}".to_owned(),
                    "extra_arguments".to_owned(),
                ]);
                expected.push(format!("message, a f {listed}, b g {{}}, 1 f {{\"a\":1}}"));
            } else {
                expected.extend([
                    "extra_text".to_owned(),
                    format!("message, a f {listed}, b g {{}}"),
                ]);
            }
            told.sort();
            expected.sort();
            assert_eq!(told, expected, "{arguments} and then {more}, {emit_on:?}");
        }
    }
}

#[test]
fn the_split_of_text_does_not_decide_whether_a_call_runs() {
    let text = r#"{{"a": 1}}"#;
    let call = |parts: &[&str]| {
        let deltas: Vec<String> = parts
            .iter()
            .enumerate()
            .map(|(n, part)| {
                let begin = if n == 0 {
                    r#""tool_name":"f","from_text":true,"#
                } else {
                    ""
                };
                let done = if n + 1 == parts.len() {
                    r#","done":true"#
                } else {
                    ""
                };
                format!(r#""index":0,{begin}"arguments":{}{done}"#, quoted(part))
            })
            .collect();
        told(&deltas.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let whole = call(&[text]);
    assert!(whole[0].ends_with(" f invalid_json"), "{whole:?}");
    for at in 1..text.len() {
        assert_eq!(call(&[&text[..at], &text[at..]]), whole, "split at {at}");
    }
    let letters: Vec<&str> = (0..text.len()).map(|at| &text[at..=at]).collect();
    assert_eq!(call(&letters), whole);
}

#[test]
fn a_retract_names_the_call_that_is_withdrawn() {
    let first = r#""index":5,"tool_id":"a","tool_name":"f","arguments":"{\"a\":1}""#;
    let second = r#""index":0,"tool_id":"a","tool_name":"g","arguments":"{\"b\":1}""#;
    let third = r#""index":0,"tool_id":"a","tool_name":"h","arguments":"{\"c\":1}""#;
    let twice = ["call a f {\"a\":1}", "id_twice", "call 1 g {\"b\":1}"];
    // The second call of an id is the one that a `retract` of this id or of its index withdraws; a
    // third one gets no id of the first.
    for retract in [r#"retract "tool_id":"a""#, r#"retract "index":0"#] {
        let got = with_one_made_id(told(&[first, second, retract]));
        assert_eq!(
            got,
            [&twice[..], &["retract 1", "message, a f {\"a\":1}"]].concat(),
            "{retract}"
        );
        let got = told(&[first, second, retract, third]);
        let id = got[5]
            .strip_prefix("call ")
            .unwrap()
            .split(' ')
            .next()
            .unwrap()
            .to_owned();
        assert_eq!(
            got[4..],
            [
                "id_twice".to_owned(),
                format!("call {id} h {{\"c\":1}}"),
                format!("message, a f {{\"a\":1}}, {id} h {{\"c\":1}}")
            ],
            "{retract}"
        );
        assert!(id.len() == 9 && !got[2].contains(&id), "{got:?}");
    }
    // The provider's index 0 is the output's index 1.
    let got = told(&[
        first,
        &second.replace(r#""a""#, r#""b""#),
        r#"retract "index":0"#,
    ]);
    assert_eq!(
        got,
        [
            "call a f {\"a\":1}",
            "call b g {\"b\":1}",
            "retract b",
            "message, a f {\"a\":1}"
        ]
    );
    // A call that was refused was emitted, too.
    let refused = r#""index":0,"tool_id":"b","tool_name":"g","arguments":"[1]","done":true"#;
    let got = told(&[refused, first, r#"retract "index":0"#]);
    assert_eq!(
        got,
        [
            "call b g invalid_json",
            "call a f {\"a\":1}",
            "retract b",
            "message, a f {\"a\":1}"
        ]
    );
    assert_eq!(
        told(&[first, r#"retract "tool_id":"a""#]),
        ["call a f {\"a\":1}", "retract a", "message"]
    );
}

#[test]
fn half_a_surrogate_pair_at_the_end_is_not_lost() {
    let lines = |kind: &str, texts: &[&str]| {
        let texts = texts
            .iter()
            .map(|text| format!(r#"{{"type":"{kind}","text":"{text}"}}"#));
        let end = r#"{"type":"stream_end","finish_reason":"stop"}"#.to_owned();
        let out = Collect::run(
            &mut Accumulate::new(Rc::new(AccumulateOptions::default())),
            texts.chain([end]),
        );
        out.into_iter()
            .find(|line| line.starts_with(r#"{"type":"message""#))
            .unwrap()
    };
    for (kind, member) in [
        ("content_delta", "content"),
        ("refusal_delta", "refusal"),
        ("thinking", "reasoning"),
    ] {
        for (texts, expected) in [
            (&[r"a\ud83d"][..], "a\u{fffd}"),
            (&[r"\ud83d"], "\u{fffd}"),
            (&[r"a\ud83d", r"\ude00b"], "a😀b"),
        ] {
            let message = lines(kind, texts);
            assert!(
                message.contains(&format!(r#""{member}":"{expected}""#)),
                "{message}"
            );
        }
    }
}

/// The outcome with `1` in place of the id that was made, of which there is one.
fn with_one_made_id(told: Vec<String>) -> Vec<String> {
    let is_made = |word: &&str| word.len() == 9 && word.bytes().all(|b| b.is_ascii_alphanumeric());
    let words: Vec<String> = told
        .iter()
        .filter(|l| l.starts_with("call"))
        .flat_map(|l| l.split(' ').skip(1).take(1))
        .filter(is_made)
        .map(str::to_owned)
        .collect();
    assert!(words.len() < 2, "{told:?}");
    told.into_iter()
        .map(|l| words.iter().fold(l, |l, id| l.replace(id, "1")))
        .collect()
}

/// Two calls of one tool were taken back: a third is a call of its own.
#[test]
fn a_retracted_call_takes_no_deltas_of_another() {
    let told = told(&[
        r#""index":0,"tool_name":"f""#,
        r#"retract "index":0"#,
        r#""index":1,"tool_name":"f""#,
        r#"retract "index":1"#,
        r#""index":2,"tool_name":"f","arguments":"{\"a\":1}","done":true"#,
    ]);
    let id = told[0].strip_prefix("retract ").unwrap();
    assert_eq!(
        told[2..],
        [
            format!("call {id} f {{\"a\":1}}"),
            format!("message, {id} f {{\"a\":1}}")
        ]
    );
}

/// A call behind the end of another was taken back, and a later call has the id that was made for
/// it: to take the first call back does not name the later one.
#[test]
fn a_call_that_was_taken_back_is_not_taken_back_again() {
    let told = told(&[
        r#""index":0,"tool_id":"a","tool_name":"f","arguments":"{}{""#,
        r#""index":1,"arguments":"\"x""#,
        r#"retract "index":1"#,
        r#""index":1,"tool_name":"g","arguments":"{}","done":true"#,
        r#"retract "tool_id":"a""#,
    ]);
    let id = told[1].split(' ').nth(1).unwrap();
    let expected = [
        "retract a".to_owned(),
        format!("call {id} g {{}}"),
        "retract a".into(),
        format!("message, {id} g {{}}"),
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_type_that_json_schema_does_not_have_is_a_warning_and_refuses_nothing() {
    let start = r#"{"type":"stream_start","v":1,"id":"r1","tools":[{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"str"},"b":{"type":"integer"}}}}]}"#;
    let run = |arguments: &str| {
        let lines = [
            start.to_owned(),
            format!(
                r#"{{"type":"tool_call_delta","index":0,"tool_id":"c","tool_name":"f","arguments":{arguments},"done":true}}"#
            ),
            r#"{"type":"stream_end","finish_reason":"tool_calls"}"#.to_owned(),
        ];
        Collect::run(
            &mut Accumulate::new(Rc::new(AccumulateOptions::default())),
            &lines,
        )
        .join("\n")
    };
    let read = run(r#""{\"a\":1}""#);
    assert!(
        read.contains(r#""code":"unknown_type""#) && read.contains("not validated: str"),
        "{read}"
    );
    assert!(
        read.contains(r#""arguments":{"a":1}"#) && !read.contains(r#""error""#),
        "{read}"
    );
    // What is beside that part is validated as before.
    let refused = run(r#""{\"a\":\"x\",\"b\":\"y\"}""#);
    assert!(refused.contains(r#""error""#), "{refused}");
}
