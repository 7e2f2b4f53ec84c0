//! The plan as a table: events and completions in, steps out.

#![allow(clippy::unwrap_used, reason = "a test")]

use event::Scanner;
use std::rc::Rc;
use toolpipe_tool::{
    CallHash, Judge, Log, LogReader, Order, PersonAnswer, Plan, PlanSettings, PlanStep, Rules,
    Status, ToolAnswer, Tools,
};

const FILE: &str = r#"[
    {"name":"look","parameters":{"type":"object","properties":{"x":{"type":"integer"}}},"exec":{"command":["look"],"class":"read"}},
    {"name":"put","parameters":{"type":"object","properties":{"x":{"type":"integer"}}},"exec":{"command":["put"]}},
    {"name":"last","exec":{"command":["last"],"return_directly":true}},
    {"name":"rm","exec":{"command":["rm"],"class":"danger"}}]"#;

const START: &str = r#"{"type":"stream_start","v":1}"#;
const END: &str = r#"{"type":"stream_end","finish_reason":"tool_calls"}"#;

/// A plan, and the steps so far in short: `+a` start, `!a` stop, `=a:success` result, `>a` message,
/// `?a` question, `-a` question withdrawn, `ya` and `na` approved and refused.
struct Run {
    plan: Plan,
    keys: Vec<(String, u64)>,
    asked: Vec<(String, u64, CallHash)>,
    said: Vec<String>,
    /// The outputs of results and messages.
    outputs: Vec<String>,
}

impl Run {
    fn new(settings: PlanSettings, log: &[&str]) -> Run {
        let mut past = Log::default();
        log.iter().for_each(|line| past.line(line));
        let judge = Judge {
            tools: Tools::read(FILE).unwrap(),
            rules: Rules::default(),
            policy: Rc::default(),
        };
        Run {
            plan: Plan::new(judge, settings, past),
            keys: vec![],
            asked: vec![],
            said: vec![],
            outputs: vec![],
        }
    }

    fn feed(&mut self, lines: &[&str]) -> &mut Self {
        for line in lines {
            let mut scanner = Scanner::default();
            self.plan.event(&scanner.read(line).unwrap());
            self.take();
        }
        self
    }

    /// Answers the last question about this call, with the hash that was shown.
    fn answer(&mut self, id: &str, answer: PersonAnswer) -> &mut Self {
        let (_, key, shown) = *self.asked.iter().rfind(|(asked, ..)| asked == id).unwrap();
        self.plan.answered(key, shown, answer);
        self.take();
        self
    }

    fn done(&mut self, id: &str) -> &mut Self {
        let at = self
            .keys
            .iter()
            .position(|(i, _)| i == id)
            .unwrap_or_else(|| panic!("{id} does not run: {:?}", self.said));
        let (_, key) = self.keys.remove(at);
        self.plan
            .done(key, ToolAnswer::new(Status::Success, format!("out {id}")));
        self.take();
        self
    }

    fn take(&mut self) {
        for step in self.plan.steps() {
            if let PlanStep::Result { answer, .. } | PlanStep::Message { answer, .. } = &step {
                self.outputs.push(answer.output.clone());
            }
            self.said.push(match step {
                PlanStep::Start { key, call, .. } => {
                    self.keys.push((call.id.to_string(), key));
                    format!("+{}", call.id)
                }
                PlanStep::Ask(asked) => {
                    let id = asked.call.id.to_string();
                    self.asked.push((id, asked.key, asked.ready.hash));
                    format!("?{}", asked.call.id)
                }
                PlanStep::Withdraw { key } => format!(
                    "-{}",
                    self.asked.iter().find(|(_, k, _)| *k == key).unwrap().0
                ),
                PlanStep::Approval { call, verdict, .. } => {
                    format!(
                        "{}{}",
                        if verdict == event::payload::Verdict::Approved {
                            "y"
                        } else {
                            "n"
                        },
                        call.id
                    )
                }
                PlanStep::Stop { key } => {
                    format!("!{}", self.keys.iter().find(|(_, k)| *k == key).unwrap().0)
                }
                PlanStep::Result { call, answer, .. } => {
                    format!("={}:{}", call.id, answer.status.name())
                }
                PlanStep::Message { call, .. } => format!(">{}", call.id),
            });
        }
    }

    fn said(&mut self) -> String {
        std::mem::take(&mut self.said).join(" ")
    }
}

fn run() -> Run {
    Run::new(PlanSettings::default(), &[])
}

fn call(index: usize, id: &str, name: &str) -> String {
    format!(
        r#"{{"type":"tool_call","index":{index},"tool_id":"{id}","tool_name":"{name}","arguments":{{}},"commit":"balanced"}}"#
    )
}

fn message(calls: &[(&str, &str)]) -> String {
    let calls: Vec<_> = calls
        .iter()
        .map(|(id, name)| {
            format!(r#"{{"id":"{id}","type":"function","function":{{"name":"{name}","arguments":"{{}}"}}}}"#)
        })
        .collect();
    format!(
        r#"{{"type":"message","message":{{"role":"assistant","content":null,"tool_calls":[{}]}}}}"#,
        calls.join(",")
    )
}

#[test]
fn a_read_call_starts_at_once_and_a_write_call_at_the_message() {
    let mut r = run();
    assert_eq!(
        r.feed(&[START, &call(0, "a", "look"), &call(1, "b", "put")])
            .said(),
        "+a"
    );
    assert_eq!(r.done("a").said(), "=a:success");
    assert_eq!(
        r.feed(&[&message(&[("a", "look"), ("b", "put")])]).said(),
        "+b"
    );
    assert_eq!(r.feed(&[END]).said(), ">a");
    assert_eq!(r.done("b").said(), "=b:success >b");
    assert!(r.plan.is_idle() && r.plan.tally().messages == 2);
}

#[test]
fn results_come_in_call_order_or_as_they_are_done() {
    let calls = [("a", "put"), ("b", "put"), ("c", "nobody")];
    let mut r = run();
    assert_eq!(r.feed(&[START, &message(&calls), END]).said(), "+a +b");
    assert_eq!(r.done("b").said(), "");
    assert_eq!(
        r.done("a").said(),
        "=a:success >a =b:success >b =c:unknown_tool >c"
    );
    let mut r = Run::new(
        PlanSettings {
            order: Order::Completion,
            ..PlanSettings::default()
        },
        &[],
    );
    assert_eq!(
        r.feed(&[START, &message(&calls), END]).said(),
        "+a +b =c:unknown_tool"
    );
    assert_eq!(r.done("b").said(), "=b:success");
    assert_eq!(r.done("a").said(), "=a:success >a >b >c");
}

#[test]
fn nothing_is_written_between_the_message_and_the_end_of_its_stream() {
    let mut r = run();
    r.feed(&[
        START,
        &call(0, "a", "look"),
        &message(&[("a", "look"), ("b", "put")]),
    ]);
    assert_eq!(r.done("a").done("b").said(), "+a +b");
    assert_eq!(r.feed(&[END]).said(), "=a:success >a =b:success >b");
    // A message without a stream around it waits for nothing.
    assert_eq!(
        r.feed(&[&message(&[("c", "put")])]).done("c").said(),
        "+c =c:success >c"
    );
}

#[test]
fn only_so_many_run_at_once() {
    let mut r = Run::new(
        PlanSettings {
            jobs: 2,
            ..PlanSettings::default()
        },
        &[],
    );
    assert_eq!(
        r.feed(&[&message(&[
            ("a", "put"),
            ("b", "put"),
            ("c", "put"),
            ("d", "put")
        ])])
        .said(),
        "+a +b"
    );
    assert_eq!(r.done("a").said(), "=a:success >a +c");
    assert_eq!(
        r.done("b").done("c").done("d").said(),
        "=b:success >b +d =c:success >c =d:success >d"
    );
}

#[test]
fn a_call_that_is_taken_back_is_dropped() {
    let mut r = run();
    r.feed(&[
        START,
        &call(0, "a", "look"),
        &call(1, "b", "look"),
        &call(2, "c", "put"),
        &call(3, "d", "look"),
    ]);
    assert_eq!(r.done("b").said(), "+a +b +d");
    let by_index = r#"{"type":"retract","index":0,"reason":"x"}"#;
    assert_eq!(
        r.feed(&[by_index, r#"{"type":"retract","tool_id":"c","reason":"x"}"#])
            .said(),
        "!a =b:success"
    );
    assert_eq!(r.done("a").said(), "=a:cancelled");
    assert_eq!(r.feed(&[&message(&[("b", "look")]), END]).said(), "!d >b");
    assert_eq!(r.done("d").said(), "=d:cancelled");
}

fn retract(id: &str) -> String {
    format!(r#"{{"type":"retract","tool_id":"{id}","reason":"x"}}"#)
}

/// The message lists the call, so the provider requires its result in the next turn.
#[test]
fn a_call_that_is_taken_back_after_its_message_is_cancelled_and_answered() {
    // It runs: without a stream_start, before the end of its stream, and after it.
    for (before, after) in [
        (&[][..], &[][..]),
        (&[START][..], &[END][..]),
        (&[START][..], &[][..]),
    ] {
        let mut r = Run::new(
            PlanSettings {
                jobs: 1,
                ..PlanSettings::default()
            },
            &[],
        );
        r.feed(before)
            .feed(&[&message(&[("a", "put"), ("b", "put")])])
            .feed(after);
        if after.is_empty() && !before.is_empty() {
            r.feed(&[END]);
        }
        assert_eq!(r.said(), "+a");
        assert_eq!(r.feed(&[&retract("a"), &retract("a")]).said(), "!a");
        assert_eq!(r.done("a").said(), "=a:cancelled >a +b");
        assert_eq!(r.done("b").said(), "=b:success >b");
    }
    // It waits for a free place, and never starts.
    let mut r = Run::new(
        PlanSettings {
            jobs: 1,
            ..PlanSettings::default()
        },
        &[],
    );
    r.feed(&[&message(&[("a", "put"), ("b", "put")]), &retract("b")]);
    assert_eq!(r.said(), "+a");
    assert_eq!(r.done("a").said(), "=a:success >a =b:cancelled >b");
    // It is done: its result is written.
    assert_eq!(r.feed(&[&retract("a")]).said(), "");
}

/// Only a new `tool_call` takes the retraction back.
#[test]
fn a_call_that_was_taken_back_does_not_run_because_the_message_lists_it() {
    for name in ["look", "put"] {
        let mut r = run();
        r.feed(&[START, &call(0, "a", name), &retract("a")]);
        if name == "look" {
            r.done("a");
        }
        r.said();
        assert_eq!(
            r.feed(&[&message(&[("a", name)]), END]).said(),
            "=a:cancelled >a",
            "{name}"
        );
    }
    let mut r = run();
    r.feed(&[
        START,
        &call(0, "a", "put"),
        &retract("a"),
        &call(0, "a", "put"),
    ]);
    assert_eq!(r.feed(&[&message(&[("a", "put")]), END]).said(), "+a");
}

#[test]
fn a_turn_that_fails_or_is_cut_runs_nothing() {
    let error = r#"{"type":"error","source":"llm-stream","code":"disconnected","message":"x","retryable":true}"#;
    let cut = r#"{"type":"stream_end","finish_reason":"cut"}"#;
    for end in [Some(error), Some(cut), Some(START), None] {
        let mut r = run();
        r.feed(&[START, &call(0, "a", "look"), &call(1, "b", "put")]);
        match end {
            Some(end) => {
                r.feed(&[end]);
            }
            None => {
                r.plan.finish();
                r.take();
            }
        }
        assert_eq!(r.said(), "+a !a", "{end:?}");
        assert_eq!(r.done("a").said(), "=a:cancelled");
        assert_eq!(
            (r.plan.tally().failed > 0, r.plan.tally().messages),
            (end != Some(START), 0),
            "{end:?}"
        );
        assert!(r.plan.is_idle());
    }
}

#[test]
fn calls_with_an_error_are_answered_and_calls_without_a_name_are_not() {
    let incomplete = call(0, "a", "put").replace(
        "\"arguments\":{}",
        r#""arguments":null,"error":{"code":"incomplete","message":"cut by length"}"#,
    );
    let nameless = r#"{"type":"tool_call","index":1,"tool_id":"b","tool_name":"","arguments":null,"error":{"code":"no_name","message":"x"}}"#;
    let mut r = run();
    let end = r#"{"type":"stream_end","finish_reason":"length"}"#;
    assert_eq!(
        r.feed(&[START, &incomplete, nameless, &message(&[("a", "put")]), end])
            .said(),
        "=a:invalid >a"
    );
}

#[test]
fn without_a_message_nothing_is_confirmed() {
    let mut r = run();
    assert_eq!(r.feed(&[START, &call(0, "a", "put"), END]).said(), "");
    assert_eq!((r.plan.tally().unconfirmed, r.plan.tally().failed), (1, 0));
}

#[test]
fn streams_and_choices_are_kept_apart() {
    let named =
        |line: &str, stream: &str| line.replacen('{', &format!(r#"{{"stream":"{stream}","#), 1);
    let mut r = run();
    let m = message(&[("a", "put")]);
    r.feed(&[
        &named(START, "x"),
        &named(START, "y"),
        &named(&m, "x"),
        &named(&m, "y"),
    ]);
    assert_eq!(r.said(), "+a +a");
    assert_eq!(r.feed(&[&named(END, "y")]).done("a").said(), "");
    assert_eq!(r.feed(&[&named(END, "x")]).said(), "=a:success >a");
    let other = m.replacen('{', r#"{"choice":1,"#, 1);
    assert_eq!(run().feed(&[&other]).said(), "");
    assert_eq!(
        Run::new(
            PlanSettings {
                choice: 1,
                ..PlanSettings::default()
            },
            &[]
        )
        .feed(&[&other, &m])
        .said(),
        "+a"
    );
}

#[test]
fn a_call_that_the_log_answers_never_runs_again() {
    let m = message(&[("a", "put"), ("b", "put")]);
    let result =
        r#"{"type":"tool_result","tool_id":"a","tool_name":"put","status":"success","output":"1"}"#;
    // From a journal, and the turn comes again.
    assert_eq!(
        Run::new(PlanSettings::default(), &[result])
            .feed(&[&m])
            .done("b")
            .said(),
        "=a:success >a +b =b:success >b"
    );
    // From the log itself: what is missing in it is written.
    let mut r = Run::new(PlanSettings::default(), &[&m, result]);
    r.plan.finish();
    r.take();
    assert_eq!(r.done("b").said(), ">a +b =b:success >b");
    // The log has all of it.
    let sent = |id| {
        format!(
            r#"{{"type":"message","message":{{"role":"tool","tool_call_id":"{id}","content":"1"}}}}"#
        )
    };
    let mut r = Run::new(PlanSettings::default(), &[&m, &sent("a"), &sent("b")]);
    r.plan.finish();
    r.take();
    assert_eq!((r.said().as_str(), r.plan.tally().messages), ("", 0));
}

#[test]
fn a_write_call_that_was_begun_waits_for_a_person_and_a_read_call_runs_again() {
    let used = |id: &str| {
        format!(r#"{{"type":"tool_use","tool_id":"{id}","tool_name":"x","status":"running"}}"#)
    };
    let mut r = Run::new(PlanSettings::default(), &[&used("a"), &used("b")]);
    assert_eq!(
        r.feed(&[&message(&[("a", "look"), ("b", "put"), ("c", "put")])])
            .said(),
        "+a +c"
    );
    // The messages after the one that waits would be out of order.
    assert_eq!(
        r.done("a").done("c").said(),
        "=a:success >a =b:pending =c:success"
    );
    assert_eq!(r.plan.tally().pending, 1);
}

#[test]
fn the_input_may_answer_its_own_calls() {
    let m = message(&[("a", "put")]);
    let sent = r#"{"type":"message","message":{"role":"tool","tool_call_id":"a","content":"1"}}"#;
    let again = message(&[("a", "last")]);
    let lines = [m.as_str(), sent, &again];
    let mut r = run();
    lines.iter().for_each(|line| r.plan.foresee(line));
    assert_eq!(
        r.feed(&lines).said(),
        "+a",
        "the second turn numbers its calls anew"
    );
    assert_eq!(
        (r.done("a").said().as_str(), r.plan.tally().messages),
        ("=a:success >a", 1)
    );
}

#[test]
fn one_id_runs_once() {
    let m = message(&[("a", "put"), ("a", "put")]);
    let mut r = run();
    assert_eq!(r.feed(&[&m]).done("a").said(), "+a =a:success >a");
    assert_eq!(
        r.feed(&[&m]).said(),
        "=a:success >a",
        "the same turn again gets the same answer"
    );
}

#[test]
fn stopping_closes_the_log() {
    let mut r = Run::new(
        PlanSettings {
            jobs: 1,
            ..PlanSettings::default()
        },
        &[],
    );
    assert_eq!(
        r.feed(&[START, &message(&[("a", "put"), ("b", "put")]), END])
            .said(),
        "+a"
    );
    r.plan.stop();
    r.take();
    assert_eq!(r.said(), "");
    assert_eq!(r.done("a").said(), "=a:success >a =b:cancelled >b");
    // A message that comes after: its calls are answered, none runs.
    assert_eq!(
        r.feed(&[
            START,
            &call(0, "c", "look"),
            &message(&[("c", "look")]),
            END
        ])
        .said(),
        "=c:cancelled >c"
    );
    let mut r = run();
    r.feed(&[&message(&[("a", "put")])]);
    r.plan.abort();
    r.take();
    assert_eq!(r.said(), "+a !a");
}

#[test]
fn a_turn_has_only_so_many_calls() {
    let mut r = Run::new(
        PlanSettings {
            max_calls: 2,
            ..PlanSettings::default()
        },
        &[],
    );
    r.feed(&[
        START,
        &call(0, "a", "look"),
        &call(1, "b", "put"),
        &call(2, "c", "look"),
        &message(&[("a", "look"), ("b", "put"), ("c", "look")]),
        END,
    ]);
    assert_eq!(
        r.done("a").done("b").said(),
        "+a +b =a:success >a =b:success >b =c:denied >c"
    );
}

#[test]
fn a_danger_call_waits_for_approval() {
    let mut r = run();
    assert_eq!(
        r.feed(&[&message(&[("a", "rm"), ("b", "last")])]).said(),
        "=a:pending +b"
    );
    assert_eq!(r.plan.tally().pending, 1);
}

#[test]
fn a_final_result_ends_the_turn() {
    let mut r = run();
    assert_eq!(r.feed(&[&message(&[("b", "last")])]).said(), "+b");
    // The runner marks a result as final, since it has the tool.
    let (_, key) = r.keys.remove(0);
    r.plan.done(
        key,
        ToolAnswer {
            return_directly: true,
            ..ToolAnswer::new(Status::Success, "x")
        },
    );
    assert!(r.plan.tally().is_final);
}

#[test]
fn what_concerns_several_calls_or_streams_happens_in_their_order() {
    let ids: Vec<String> = (0..16).map(|n| format!("c{n:02}")).collect();
    let all = |mark: &str| {
        ids.iter()
            .map(|id| format!("{mark}{id}"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let many = || {
        Run::new(
            PlanSettings {
                jobs: 99,
                ..PlanSettings::default()
            },
            &[],
        )
    };
    // The message lists none of the calls that run.
    let mut r = many();
    r.feed(&[START]);
    ids.iter()
        .enumerate()
        .for_each(|(n, id)| _ = r.feed(&[&call(n, id, "look")]));
    assert_eq!(r.said(), all("+"));
    assert_eq!(r.feed(&[&message(&[])]).said(), all("!"));
    // Each call is in a stream of its own, and the input ends.
    let mut r = many();
    for (n, id) in ids.iter().enumerate() {
        let start = START.replace('}', &format!(r#","stream":{n}}}"#));
        let call = call(0, id, "look").replacen('{', &format!(r#"{{"stream":{n},"#), 1);
        r.feed(&[&start, &call]);
    }
    assert_eq!(r.said(), all("+"));
    r.plan.abort();
    r.take();
    assert_eq!(r.said(), all("!"));
    r.plan.finish();
    r.take();
    assert_eq!(r.said(), all("!"));
}

/// A plan whose calls of class danger are asked about.
fn asking(max_questions: usize) -> Run {
    Run::new(
        PlanSettings {
            can_ask: true,
            max_questions,
            ..PlanSettings::default()
        },
        &[],
    )
}

#[test]
fn one_question_at_a_time_while_the_other_calls_run() {
    let mut r = asking(20);
    r.feed(&[
        START,
        &call(0, "a", "rm"),
        &call(1, "b", "put"),
        &call(2, "c", "rm"),
    ]);
    assert_eq!(r.said(), "", "nobody is asked before the message");
    assert_eq!(
        r.feed(&[&message(&[("a", "rm"), ("b", "put"), ("c", "rm")]), END])
            .said(),
        "?a +b"
    );
    assert!(!r.plan.is_idle());
    assert_eq!(
        r.done("b").answer("a", PersonAnswer::Yes).said(),
        "ya ?c +a"
    );
    assert_eq!(r.done("a").said(), "=a:success >a =b:success >b");
    assert_eq!(r.answer("c", PersonAnswer::No).said(), "nc =c:denied >c");
    assert!(r.plan.is_idle());
}

#[test]
fn a_question_without_an_answer_leaves_its_call_pending() {
    let mut r = asking(20);
    r.feed(&[&message(&[("a", "rm"), ("b", "rm")])]);
    assert_eq!(
        r.answer("a", PersonAnswer::Nothing).said(),
        "?a ?b =a:pending"
    );
    r.plan.stop();
    r.take();
    assert_eq!(r.said(), "-b =b:pending");
    assert!(r.plan.is_idle() && r.plan.tally().pending == 2);
    // An answer that comes after its question was withdrawn changes nothing.
    assert_eq!(r.answer("b", PersonAnswer::Yes).said(), "");
}

#[test]
fn a_call_that_is_taken_back_is_not_asked_about_any_more() {
    let mut r = asking(20);
    r.feed(&[
        START,
        &message(&[("a", "rm"), ("b", "rm")]),
        r#"{"type":"retract","tool_id":"a"}"#,
    ]);
    assert_eq!(r.said(), "?a -a ?b");
    assert_eq!(
        r.answer("a", PersonAnswer::Yes)
            .answer("b", PersonAnswer::Yes)
            .said(),
        "yb +b"
    );
}

#[test]
fn an_answer_counts_for_the_call_that_was_shown() {
    let mut r = asking(20);
    r.feed(&[&message(&[("a", "rm")])]);
    let (_, key, _) = r.asked[0];
    r.plan.answered(
        key,
        CallHash::read(&"0".repeat(32)).unwrap(),
        PersonAnswer::Yes,
    );
    r.take();
    assert_eq!(r.said(), "?a ?a", "another hash was shown");
    // The call is started elsewhere meanwhile: what was shown is not what would run now.
    r.plan
        .foresee(r#"{"type":"tool_use","tool_id":"a","tool_name":"rm"}"#);
    assert_eq!(r.answer("a", PersonAnswer::Yes).said(), "?a");
    assert_eq!(r.answer("a", PersonAnswer::Yes).said(), "ya +a");
}

#[test]
fn a_thousand_questions_are_no_way_to_a_yes() {
    let ids: Vec<String> = (0..1000).map(|n| format!("c{n}")).collect();
    let calls: Vec<_> = ids.iter().map(|id| (id.as_str(), "rm")).collect();
    for can_ask in [true, false] {
        let mut r = Run::new(
            PlanSettings {
                can_ask,
                max_questions: 2,
                ..PlanSettings::default()
            },
            &[],
        );
        r.feed(&[&message(&calls)]);
        if can_ask {
            r.answer("c0", PersonAnswer::No)
                .answer("c1", PersonAnswer::No);
        }
        let said = r.said();
        let waits = said.matches(":pending").count() + r.asked.len();
        assert_eq!(
            (waits, said.matches(":denied").count()),
            (2, if can_ask { 1000 } else { 998 }),
            "{said}"
        );
    }
}

/// A call of `look` or `put` with the argument `x`.
fn with_x(index: usize, id: &str, name: &str, x: i32) -> String {
    call(index, id, name).replace("\"arguments\":{}", &format!("\"arguments\":{{\"x\":{x}}}"))
}

fn message_with_x(calls: &[(&str, &str, i32)]) -> String {
    let names: Vec<_> = calls.iter().map(|(id, name, _)| (*id, *name)).collect();
    calls.iter().fold(message(&names), |line, (.., x)| {
        line.replacen(
            "\"arguments\":\"{}\"",
            &format!(r#""arguments":"{{\"x\":{x}}}""#),
            1,
        )
    })
}

/// The upstream, or who can write into its stream, says the same call twice differently: nobody
/// knows which of them a check has seen.
#[test]
fn a_call_that_its_message_contradicts_does_not_run() {
    // It has not started; it runs; it ran, and its result is not written yet; its result is
    // written.
    let mut r = run();
    r.feed(&[
        START,
        &with_x(0, "a", "put", 1),
        &message_with_x(&[("a", "put", 2)]),
        END,
    ]);
    assert_eq!(r.said(), "=a:invalid >a");
    let mut r = run();
    r.feed(&[
        START,
        &with_x(0, "a", "look", 1),
        &message_with_x(&[("a", "look", 2)]),
        END,
    ]);
    assert_eq!(r.said(), "+a !a");
    assert_eq!(r.done("a").said(), "=a:invalid >a");
    let mut r = run();
    assert_eq!(
        r.feed(&[START, &with_x(0, "a", "look", 1)])
            .done("a")
            .said(),
        "+a =a:success"
    );
    assert_eq!(
        r.feed(&[&message_with_x(&[("a", "look", 2)]), END]).said(),
        ">a"
    );
    assert!(
        r.outputs.last().unwrap().contains("came a second time"),
        "{:?}",
        r.outputs
    );
    // Another name is another call, too. Another order of keys, or white space, is not.
    let mut r = run();
    r.feed(&[
        START,
        &with_x(0, "a", "put", 1),
        &message_with_x(&[("a", "last", 1)]),
        END,
    ]);
    assert_eq!(r.said(), "=a:invalid >a");
    let mut r = run();
    r.feed(&[
        START,
        &with_x(0, "a", "put", 1),
        &message_with_x(&[("a", "put", 1)]).replace(":1}", ": 1 }"),
        END,
    ]);
    assert_eq!(r.said(), "+a");
    // Twice in one message.
    let mut r = run();
    r.feed(&[
        START,
        &message_with_x(&[("a", "put", 1), ("a", "put", 2), ("b", "put", 1)]),
        END,
    ]);
    assert_eq!(r.said(), "+b =a:invalid >a");
}

#[test]
fn an_id_that_comes_again_while_its_call_runs_is_answered() {
    for (x, words) in [(1, "The same call"), (2, "Another call with the same id")] {
        let mut r = run();
        assert_eq!(r.feed(&[&message_with_x(&[("a", "put", 1)])]).said(), "+a");
        assert_eq!(
            r.feed(&[&message_with_x(&[("a", "put", x)])]).said(),
            "=a:invalid >a"
        );
        assert!(r.outputs.last().unwrap().contains(words), "{:?}", r.outputs);
        assert_eq!(r.done("a").said(), "=a:success >a");
        // The first call stays the one of that id.
        assert_eq!(
            r.feed(&[&message_with_x(&[("a", "put", 1)])]).said(),
            "=a:success >a"
        );
    }
}

/// A turn that comes again and is cut takes nothing back that is known of its calls.
#[test]
fn a_call_that_ran_does_not_run_after_a_copy_of_it_was_cut() {
    let mut r = run();
    assert_eq!(
        r.feed(&[START, &message(&[("a", "put")]), END])
            .done("a")
            .said(),
        "+a =a:success >a"
    );
    let cut = r#"{"type":"stream_end","finish_reason":"cut"}"#;
    assert_eq!(r.feed(&[START, &call(0, "a", "put"), cut]).said(), "");
    assert_eq!(
        r.feed(&[START, &message(&[("a", "put")]), END]).said(),
        "=a:success >a"
    );
}

/// What was taken back, or belongs to an attempt that was cut, has been started all the same.
#[test]
fn starts_count_and_not_survivors() {
    let settings = || PlanSettings {
        max_calls: 2,
        ..PlanSettings::default()
    };
    let mut r = Run::new(settings(), &[]);
    r.feed(&[
        START,
        &call(0, "a", "look"),
        &retract("a"),
        &call(1, "b", "look"),
        &retract("b"),
        &call(2, "c", "look"),
    ]);
    assert_eq!(r.said(), "+a !a +b !b");
    assert_eq!(
        r.done("a")
            .done("b")
            .feed(&[&message(&[("c", "look")]), END])
            .said(),
        "=a:cancelled =b:cancelled =c:denied >c"
    );
    // The next turn has its own.
    assert_eq!(r.feed(&[START, &call(0, "d", "look")]).said(), "+d");
    let mut r = Run::new(settings(), &[]);
    for id in ["a", "b", "c"] {
        r.feed(&[START, &call(0, id, "look")]);
    }
    assert_eq!(r.said(), "+a !a +b !b");
    // A call that never started does not count.
    let mut r = Run::new(settings(), &[]);
    r.feed(&[
        START,
        &call(0, "a", "put"),
        &retract("a"),
        &call(1, "b", "put"),
        &retract("b"),
        &call(2, "c", "x"),
    ]);
    assert_eq!(
        r.feed(&[
            &message(&[("c", "x"), ("d", "put"), ("e", "put"), ("f", "put")]),
            END
        ])
        .said(),
        "+d +e =c:unknown_tool >c"
    );
    assert_eq!(
        r.done("d").done("e").said(),
        "=d:success >d =e:success >e =f:denied >f"
    );
}
