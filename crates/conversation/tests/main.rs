//! Turns and calls of small logs.

#![expect(clippy::unwrap_used, reason = "a test")]

use event::Scanner;
use toolpipe_conversation::{CallChange, CallState, Change, Keep, Talk};

const ALL: Keep = Keep {
    text: true,
    arguments: true,
    results: true,
};

const START: &str = r#"{"type":"stream_start","v":1}"#;
const TOOL_CALLS: &str = r#"{"type":"stream_end","finish_reason":"tool_calls"}"#;
const CALL: &str =
    r#"{"type":"tool_call","index":0,"tool_id":"a","tool_name":"f","arguments":{"n":1}}"#;
const USED: &str = r#"{"type":"tool_use","tool_id":"a","tool_name":"f"}"#;
const RESULT: &str =
    r#"{"type":"tool_result","tool_id":"a","tool_name":"f","status":"success","output":"ok"}"#;
const LISTED: &str = r#"{"type":"message","message":{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"n\":1}"}}]}}"#;
const SENT: &str =
    r#"{"type":"message","message":{"role":"tool","tool_call_id":"a","content":"ok"}}"#;
const USER: &str = r#"{"type":"message","message":{"role":"user","content":"?"}}"#;

/// The first piece of a call, without an end.
const BEGUN: &str =
    r#"{"type":"tool_call_delta","index":7,"tool_id":"a","tool_name":"f","arguments":"{\"n\":"}"#;
const REST: &str = r#"{"type":"tool_call_delta","index":7,"arguments":"1}"}"#;

fn push(talk: &mut Talk, log: &[&str]) -> Change {
    let mut scanner = Scanner::default();
    let mut change = Change::Nothing;
    for line in log {
        change = talk.push(&scanner.read(line).unwrap());
    }
    change
}

fn talk(log: &[&str]) -> Talk {
    let mut talk = Talk::new(ALL);
    push(&mut talk, log);
    talk
}

/// Each call: its turn, its arguments, and its state.
fn calls(talk: &Talk) -> Vec<String> {
    let calls = talk.calls().iter();
    calls
        .map(|(_, call)| format!("{} {} {:?}", call.turn, call.arguments, call.state))
        .collect()
}

#[test]
fn a_call_is_as_far_as_its_last_event() {
    let cancelled = TOOL_CALLS.replace("tool_calls", "cancelled");
    let refused = CALL.replace("}}", r#"},"error":{"code":"schema","message":"no"}}"#);
    let waits = RESULT.replace("success", "pending");
    let retract = r#"{"type":"retract","tool_id":"a","reason":"unparsed"}"#;
    for (log, want) in [
        (&[START, BEGUN][..], r#"{"n": Arriving"#),
        (&[BEGUN, REST], r#"{"n":1} Arriving"#),
        (&[BEGUN, TOOL_CALLS], r#"{"n": Incomplete"#),
        (&[BEGUN, REST, TOOL_CALLS], r#"{"n":1} Called"#),
        (&[BEGUN, START], r#"{"n": Incomplete"#),
        (&[CALL], r#"{"n":1} Called"#),
        (&[&refused], r#"{"n":1} Refused"#),
        (&[CALL, USED], r#"{"n":1} Running"#),
        (&[CALL, &waits], r#"{"n":1} Waiting"#),
        (&[CALL, &waits, USED], r#"{"n":1} Running"#),
        (&[CALL, &waits, SENT], r#"{"n":1} Answered"#),
        (&[CALL, USED, RESULT], r#"{"n":1} Answered"#),
        (&[CALL, retract], r#"{"n":1} Retracted"#),
        (&[CALL, USED, RESULT, retract], r#"{"n":1} Answered"#),
        (&[CALL, retract, RESULT], r#"{"n":1} Answered"#),
        (&[CALL, &cancelled], r#"{"n":1} Called"#),
        (&[LISTED], r#"{"n":1} Called"#),
        (&[LISTED, SENT], r#"{"n":1} Answered"#),
        (&[USED], " Running"),
        (&[SENT], " Answered"),
    ] {
        let talk = talk(log);
        assert_eq!(calls(&talk), [format!("0 {want}")], "{log:?}");
        let (_, call) = talk.calls().iter().next().unwrap();
        assert_eq!(call.is_cancelled, log.contains(&&*cancelled), "{log:?}");
    }
}

#[test]
fn what_a_stage_wrote_twice_counts_once() {
    let retract = r#"{"type":"retract","index":0,"reason":"unparsed"}"#;
    let by_id = r#"{"type":"retract","tool_id":"a","reason":"unparsed"}"#;
    let nameless = BEGUN.replace(r#""tool_id":"a","#, "");
    for log in [
        &[START, BEGUN, REST, CALL, LISTED, TOOL_CALLS][..],
        // The call is emitted before the delta that completes it passes.
        &[START, BEGUN, CALL, REST, LISTED, TOOL_CALLS],
        &[START, CALL, BEGUN, REST, LISTED, TOOL_CALLS],
        // A call without an id gets one when its deltas are merged.
        &[START, &nameless, REST, CALL, LISTED, TOOL_CALLS],
        &[START, CALL, &nameless, REST, LISTED, TOOL_CALLS],
        &[
            START, CALL, LISTED, TOOL_CALLS, USED, USED, RESULT, RESULT, SENT,
        ],
    ] {
        let talk = talk(log);
        assert_eq!(talk.calls().len(), 1, "{log:?}");
        assert_eq!(talk.turns().len(), 1, "{log:?}");
        assert!(calls(&talk)[0].starts_with(r#"0 {"n":1} "#), "{log:?}");
    }
    let mut talk = talk(&[CALL]);
    assert_eq!(
        push(&mut talk, &[by_id]),
        Change::Call(0, CallChange::Retracted)
    );
    assert_eq!(
        push(&mut talk, &[retract]),
        Change::Call(0, CallChange::Repeated)
    );
}

#[test]
fn a_call_that_begins_in_the_next_turn_is_another_call_though_its_id_is_the_same() {
    for begins in [CALL, BEGUN, &CALL.replace("tool_call", "tool_call_partial")] {
        let again = talk(&[START, CALL, TOOL_CALLS, USED, RESULT, START, begins]);
        assert_eq!(again.calls().len(), 2, "{begins}");
        // An unanswered one, too.
        assert_eq!(
            talk(&[START, CALL, START, begins]).calls().len(),
            2,
            "{begins}"
        );
    }
    // Of messages alone each asks anew.
    let messages = talk(&[USER, LISTED, SENT, LISTED, SENT]);
    assert_eq!(
        calls(&messages),
        [r#"0 {"n":1} Answered"#, r#"1 {"n":1} Answered"#]
    );
}

#[test]
fn a_call_that_begins_after_the_retract_of_its_id_is_another_call() {
    let retract = r#"{"type":"retract","tool_id":"a","reason":"arguments_replaced"}"#;
    for again in [&[CALL][..], &[BEGUN, REST, CALL]] {
        let log = [&[START, BEGUN, retract], again, &[TOOL_CALLS]].concat();
        let want = [r#"0 {"n": Retracted"#, r#"0 {"n":1} Called"#];
        assert_eq!(calls(&talk(&log)), want, "{again:?}");
    }
}

#[test]
fn a_result_reaches_its_call_after_its_turn_until_the_id_is_used_again() {
    let mut talk = talk(&[START, CALL, TOOL_CALLS, USED, START]);
    assert_eq!(
        push(&mut talk, &[RESULT]),
        Change::Call(0, CallChange::Answered)
    );
    assert_eq!(
        push(&mut talk, &[CALL, USED, RESULT]),
        Change::Call(1, CallChange::Answered)
    );
}

#[test]
fn streams_and_choices_have_calls_of_their_own() {
    let of = |line: &str, more: &str| line.replacen('{', &format!("{{{more},"), 1);
    let lines: Vec<String> = [r#""stream":"x""#, r#""stream":"y""#, r#""choice":1"#]
        .iter()
        .flat_map(|more| [of(CALL, more), of(USED, more)])
        .collect();
    let lines: Vec<&str> = lines.iter().map(|line| &**line).collect();
    let talk = talk(&[&lines[..], &[CALL, USED]].concat());
    assert_eq!(talk.calls().len(), 4);
    assert_eq!(talk.choices().count(), 4);
    assert!(talk.calls().iter().all(|(_, call)| call.was_started));
}

#[test]
fn a_turn_that_is_forgotten_leaves_nothing() {
    let mut log = Talk::new(ALL);
    let mut sizes = Vec::new();
    for n in 0..100 {
        let stream = format!(r#"{{"stream":"s{}","#, 1000 + n);
        let lines = [
            START, BEGUN, REST, CALL, LISTED, TOOL_CALLS, USED, RESULT, SENT,
        ];
        let lines = lines.map(|line| line.replacen('{', &stream, 1));
        push(&mut log, &lines.each_ref().map(|line| &**line));
        push(&mut log, &[USER, LISTED, SENT]);
        let turns: Vec<usize> = log.turns().iter().map(|(at, _)| at).collect();
        turns.into_iter().for_each(|turn| log.forget(turn));
        sizes.push(format!("{log:?}").replace(char::is_numeric, "").len());
    }
    assert_eq!(log.turns().len() + log.calls().len(), 0);
    assert!(sizes.iter().all(|size| *size == sizes[0]), "{sizes:?}");
    // A late result is a call of its own.
    push(&mut log, &[RESULT]);
    assert_eq!(log.calls().len(), 1);
}

#[test]
fn texts_are_those_of_the_current_turn() {
    let text = |text: &str| format!(r#"{{"type":"content_delta","text":"{text}"}}"#);
    let message = r#"{"type":"message","message":{"role":"assistant","content":"ab"}}"#;
    let mut talk = talk(&[START, &text("a"), &text("b"), message]);
    let texts = |talk: &Talk| -> Vec<String> {
        talk.turns()
            .iter()
            .map(|(_, turn)| turn.text.clone())
            .collect()
    };
    assert_eq!(texts(&talk), ["ab"], "the message repeats the deltas");
    push(&mut talk, &[message]);
    assert_eq!(texts(&talk), ["", "ab"], "no deltas came before this one");
    push(&mut talk, &[USER, START, &text("c")]);
    assert_eq!(
        texts(&talk),
        ["", "", "c"],
        "the user's message began the turn"
    );
}

#[test]
fn a_call_without_an_id_is_named_by_its_place() {
    let nameless = |line: &str| line.replace(r#""tool_id":"a","#, "");
    let run = [USED, RESULT].map(|line| line.replace("\"a\"", "\"call_0\""));
    let listed = LISTED.replace(r#""id":"a","#, "");
    for begun in [&[START, &nameless(CALL)][..], &[&listed]] {
        let mut talk = talk(begun);
        assert_eq!(talk.latest("", 0, "call_0"), Some(0));
        push(&mut talk, &[&run[0], &run[1]]);
        assert_eq!(calls(&talk), [r#"0 {"n":1} Answered"#]);
        // The same place of the next turn is another call.
        push(&mut talk, begun);
        push(&mut talk, &[&run[0]]);
        assert_eq!(
            (talk.latest("", 0, "call_0"), talk.calls()[1].state),
            (Some(1), CallState::Running)
        );
    }
}

#[test]
fn a_call_that_a_stream_has_in_its_message_alone_is_a_call_of_its_turn() {
    let text = r#"{"type":"content_delta","text":"<call>"}"#;
    let other = LISTED.replace("\"a\"", "\"b\"");
    for (log, want) in [
        (vec![START, text, LISTED], vec![r#"0 {"n":1} Called"#]),
        (vec![START, CALL, LISTED], vec![r#"0 {"n":1} Called"#]),
        (
            vec![START, CALL, &other],
            vec![r#"0 {"n":1} Called"#, r#"0 {"n":1} Called"#],
        ),
    ] {
        assert_eq!(calls(&talk(&log)), want, "{log:?}");
    }
}

/// Each call of a turn is found by its label, its place and its tool, however many there are.
#[test]
fn every_call_of_a_large_turn_is_found_by_its_names() {
    for count in [2, 20, 200] {
        let mut talk = Talk::new(ALL);
        let mut take = |line: String| push(&mut talk, &[&line]);
        for pieces in [r#""tool_name":"f","arguments":"{""#, r#""arguments":"}""#] {
            for n in 0..count {
                take(format!(
                    r#"{{"type":"tool_call_delta","index":{n},{pieces}}}"#
                ));
            }
        }
        // Without ids, the calls of a tool are put together in their order.
        for n in 0..count {
            let change = take(format!(
                r#"{{"type":"tool_call","index":{n},"tool_name":"f","arguments":{{"n":{n}}}}}"#
            ));
            assert_eq!(change, Change::Call(n, CallChange::Merged));
        }
        for n in (0..count).rev() {
            let change = take(format!(
                r#"{{"type":"retract","index":{n},"reason":"unparsed"}}"#
            ));
            assert_eq!(change, Change::Call(n, CallChange::Retracted));
            let change = take(format!(
                r#"{{"type":"tool_result","tool_id":"call_{n}","tool_name":"f","status":"success","output":""}}"#
            ));
            assert_eq!(change, Change::Call(n, CallChange::Answered));
        }
        assert_eq!(talk.calls().len(), count);
    }
}
