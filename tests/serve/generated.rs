//! The laws over events that are made up: calls that interleave, odd ids, names that are missing,
//! repeated ends, calls that are taken back, errors, and streams that end at any event.

use super::pipe::{Answered, Asked, accumulated, answer, answer_events};
use super::read::{differences_in_any_order, read};
use super::reading::{Choice, Ending, Reading};
use super::recorded::recorded;
use super::truth::truth;
use api::End;
use event::quoted;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// What a call may be given as its arguments, in pieces.
fn arguments() -> impl Strategy<Value = Vec<&'static str>> {
    prop_oneof![
        6 => Just(vec!["{\"a\"", ":1,\"b\":[true,", "null,\"x\\n\\\"y\\\"é\"]", "}"]),
        3 => Just(vec!["{", "}"]),
        2 => Just(vec![""]),
        2 => Just(vec![]),
        2 => Just(vec!["{\"n\":12345678901234567890123.50,\"e\":-1e-7}"]),
        2 => Just(vec!["{\"a\":", "{\"a\":{\"a\":{}}}"]),
        1 => Just(vec!["{\"a\":1", ",}"]),
        1 => Just(vec!["{'a':", " True}"]),
        1 => Just(vec!["{\"a\":1}", "{\"b\":2}"]),
        1 => Just(vec!["{\"a\":1}", "}"]),
        1 => Just(vec!["not ", "JSON"]),
        1 => Just(vec!["\"{\\\"a\\\":1}\""]),
        1 => Just(vec!["null"]),
        1 => Just(vec![" \n", "{ \"a\" :\t1 }", " "]),
        1 => Just(vec!["{\"t\":\"data: [DONE]\\n\\n<tool_call>\"}"]),
    ]
}

/// The events of one call, in order.
fn call() -> impl Strategy<Value = Vec<String>> {
    let index = prop_oneof![4 => 0..4_i64, 1 => Just(-1), 1 => Just(200)];
    let id = prop_oneof![
        4 => "call_[a-z0-9]{4}".prop_map(Some),
        2 => Just(None),
        1 => Just(Some(String::new())),
        1 => Just(Some("null".to_owned())),
        1 => Just(Some("same".to_owned())),
        1 => Just(Some("é \"x\"\n".to_owned())),
    ];
    let name = prop_oneof![6 => Just(Some("f")), 3 => Just(Some("get_weather")), 1 => Just(None), 1 => Just(Some(""))];
    (index, id, name, arguments(), 0..4_u8).prop_map(|(index, id, name, arguments, how)| {
        let mut head = format!("{{\"type\":\"tool_call_delta\",\"index\":{index}");
        let id = id.map_or_else(String::new, |id| format!(",\"tool_id\":{}", quoted(&id)));
        let name = name.map_or_else(String::new, |name| {
            format!(",\"tool_name\":{}", quoted(name))
        });
        let mut out = vec![format!("{head}{id}{name}}}")];
        if how == 1 {
            // Id and name come again with every piece.
            head = format!("{head}{id}{name}");
        }
        out.extend(
            arguments
                .into_iter()
                .map(|piece| format!("{head},\"arguments\":{}}}", quoted(piece))),
        );
        out.extend((how == 2).then(|| format!("{head},\"done\":true}}")));
        out
    })
}

/// An event of another kind.
fn other() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        Just("Hello "),
        Just(""),
        Just("é\n"),
        Just("data: [DONE]\n\n"),
        Just("<tool_call>{}")
    ];
    prop_oneof![
        4 => text.clone().prop_map(|text| format!("{{\"type\":\"content_delta\",\"text\":{}}}", quoted(text))),
        2 => text.clone().prop_map(|text| format!("{{\"type\":\"thinking\",\"text\":{}}}", quoted(text))),
        1 => text.prop_map(|text| format!("{{\"type\":\"refusal_delta\",\"text\":{}}}", quoted(text))),
        1 => Just(r#"{"type":"warning","source":"x","code":"c","message":"m"}"#.to_owned()),
        1 => Just(r#"{"type":"server_item","kind":"web_search_call","data":{"id":"ws"}}"#.to_owned()),
        1 => Just(r#"{"type":"session_stats","prompt_tokens":9,"completion_tokens":5,"total_tokens":14}"#.to_owned()),
    ]
}

/// What goes wrong, or ends.
fn end() -> impl Strategy<Value = Vec<String>> {
    let finish =
        |reason: &str| format!("{{\"type\":\"stream_end\",\"finish_reason\":\"{reason}\"}}");
    let error =
        r#"{"type":"error","source":"x","code":"c","message":"it broke","retryable":false}"#
            .to_owned();
    prop_oneof![
        5 => Just(vec![finish("tool_calls")]),
        5 => Just(vec![finish("stop")]),
        3 => Just(vec![finish("length")]),
        1 => Just(vec![finish("content_filter")]),
        2 => Just(vec![error.clone(), finish("error")]),
        1 => Just(vec![finish("cut")]),
        1 => Just(vec![finish("cancelled")]),
        1 => Just(vec![finish("stop"), finish("stop")]),
        1 => Just(vec![error]),
        2 => Just(vec![]),
    ]
}

/// Puts the calls and the other events together, each of these in its own order.
fn stream() -> impl Strategy<Value = Vec<String>> {
    let others = prop::collection::vec(other(), 0..5);
    (
        prop::collection::vec(call(), 0..4),
        others,
        any::<u64>(),
        end(),
        0..12_u8,
        prop::option::weighted(0.15, 0..4_i64),
    )
        .prop_map(|(calls, others, seed, end, cut, retract)| {
            let mut queues: Vec<std::vec::IntoIter<String>> =
                calls.into_iter().map(Vec::into_iter).collect();
            queues.push(others.into_iter());
            let mut out = vec![
                r#"{"type":"stream_start","v":1,"api":"openai-chat","model":"m","id":"r"}"#
                    .to_owned(),
            ];
            let mut state = seed | 1;
            // Calls mostly come one after the other.
            let together = seed % 3 == 0;
            while queues.iter().any(|queue| queue.len() > 0) {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                let last = queues.len() - 1;
                let first = queues[..last]
                    .iter()
                    .position(|queue| queue.len() > 0)
                    .unwrap_or(last);
                let at = if together {
                    (state >> 33) as usize % (last + 1)
                } else if (state >> 33) % 4 == 0 {
                    last
                } else {
                    first
                };
                out.extend(queues[at].next());
            }
            if let Some(index) = retract {
                let at = 1 + (state >> 33) as usize % out.len();
                out.insert(
                    at.min(out.len()),
                    format!("{{\"type\":\"retract\",\"index\":{index},\"reason\":\"unparsed\"}}"),
                );
            }
            out.extend(end);
            if cut == 0 {
                out.truncate(1 + (state >> 20) as usize % out.len());
            }
            out
        })
}

/// Whether a call was cut, and the answer is right as far as it goes: what comes behind that call
/// has no place in a stream that a client reads in order, so that it is left out.
fn ends_at_a_cut_call(got: &Reading, want: &Reading) -> bool {
    let is_beginning = |got: &Choice, want: &Choice| {
        got.finish == want.finish
            && want.text.starts_with(&got.text)
            && want.reasoning.starts_with(&got.reasoning)
            && want.refusal.starts_with(&got.refusal)
            && got
                .calls
                .iter()
                .filter(|call| call.is_finished)
                .all(|call| want.calls.contains(call))
    };
    let of = |number: u64| want.choices.iter().find(|choice| choice.number == number);
    want.choices.iter().any(Choice::is_cut)
        && got.wrong.is_empty()
        && got.ending == Ending::Clean
        && got
            .choices
            .iter()
            .all(|choice| of(choice.number).is_some_and(|want| is_beginning(choice, want)))
}

/// What is wrong with the answers to these events.
fn check(lines: &[String]) -> Vec<String> {
    let mut wrong = Vec::new();
    for asked in Asked::all() {
        let merged = accumulated(lines, &asked);
        let want = truth(&merged);
        let answered: Answered = answer_events(lines, &asked);
        let got = read(&asked, &answered);
        let found = differences_in_any_order(&asked, &got, &want);
        if !found.is_empty() && !ends_at_a_cut_call(&got, &want) {
            wrong.push(format!(
                "{:?} {:?}: {}\n{}\n{}",
                asked.front,
                asked.form,
                found.join("\n"),
                lines.join("\n"),
                answered.text()
            ));
        }
    }
    wrong
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(11), ..ProptestConfig::with_cases(512) })]

    #[test]
    fn every_front_keeps_its_rules_whatever_comes(lines in stream()) {
        let wrong = check(&lines);
        prop_assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// A change of a recorded body: bytes at a place, here as a fraction of its length, are replaced by
/// others.
fn change() -> impl Strategy<Value = (f64, usize, String)> {
    let put = prop_oneof![
        2 => Just(String::new()),
        1 => "[\\{\\}\\[\\]\",:0-9a-z\\\\ ]{1,4}",
        1 => Just("\n\ndata: ".to_owned()),
        1 => Just("null".to_owned()),
        1 => Just("\\ud83d".to_owned()),
        1 => Just("\u{0}".to_owned()),
    ];
    (0.0..1.0, 0..12_usize, put)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(11), ..ProptestConfig::with_cases(256) })]

    #[test]
    fn every_front_keeps_its_rules_whatever_an_upstream_breaks(
        body in any::<prop::sample::Index>(),
        changes in prop::collection::vec(change(), 1..4),
    ) {
        let all = recorded();
        let body = &all[body.index(all.len())];
        let mut bytes = body.bytes.clone();
        for (place, length, put) in changes {
            let at = (place * bytes.len() as f64) as usize;
            let end = (at + length).min(bytes.len());
            bytes.splice(at..end, put.into_bytes());
        }
        for asked in Asked::all() {
            let answered = answer(body.api, [&bytes[..]], End::Eof, &asked);
            let got = read(&asked, &answered);
            let is_right = got.wrong.is_empty() && got.ending != Ending::Open;
            prop_assert!(is_right, "{} {:?} {:?}: {:?}\n{}\n{}", body.name, asked.front, asked.form, got.wrong,
                String::from_utf8_lossy(&bytes), answered.text());
        }
    }
}
