//! The plan as a table: events and completions in, steps out.

#![allow(clippy::unwrap_used, reason = "a test")]

use event::Scanner;
use toolpipe_tool::{Answer, Judge, Log, Order, Plan, PlanStep, Rules, Settings, Status, Tools};

const FILE: &str = r#"[
    {"name":"look","parameters":{"type":"object","properties":{"x":{"type":"integer"}}},"exec":{"command":["look"],"class":"read"}},
    {"name":"put","parameters":{"type":"object","properties":{"x":{"type":"integer"}}},"exec":{"command":["put"]}},
    {"name":"last","exec":{"command":["last"],"return_directly":true}},
    {"name":"rm","exec":{"command":["rm"],"class":"danger"}}]"#;

const START: &str = r#"{"type":"stream_start","v":1}"#;
const END: &str = r#"{"type":"stream_end","finish_reason":"tool_calls"}"#;

/// A plan, and the steps so far in short: `+a` start, `!a` stop, `=a:success` result, `>a` message.
struct Run {
    plan: Plan,
    keys: Vec<(String, u64)>,
    said: Vec<String>,
}

impl Run {
    fn new(settings: Settings, log: &[&str]) -> Run {
        let mut past = Log::default();
        log.iter().for_each(|line| past.line(line));
        let judge = Judge { tools: Tools::read(FILE).unwrap(), rules: Rules::default() };
        Run { plan: Plan::new(judge, settings, past), keys: vec![], said: vec![] }
    }

    fn feed(&mut self, lines: &[&str]) -> &mut Self {
        for line in lines {
            let mut scanner = Scanner::default();
            self.plan.event(&scanner.read(line).unwrap());
            self.take();
        }
        self
    }

    fn done(&mut self, id: &str) -> &mut Self {
        let at =
            self.keys.iter().position(|(i, _)| i == id).unwrap_or_else(|| panic!("{id} does not run: {:?}", self.said));
        let (_, key) = self.keys.remove(at);
        self.plan.done(key, Answer::new(Status::Success, format!("out {id}")));
        self.take();
        self
    }

    fn take(&mut self) {
        for step in self.plan.steps() {
            self.said.push(match step {
                PlanStep::Start { key, call, .. } => {
                    self.keys.push((call.id.to_string(), key));
                    format!("+{}", call.id)
                }
                PlanStep::Stop { key } => format!("!{}", self.keys.iter().find(|(_, k)| *k == key).unwrap().0),
                PlanStep::Result { call, answer } => format!("={}:{}", call.id, answer.status.name()),
                PlanStep::Message { call, .. } => format!(">{}", call.id),
            });
        }
    }

    fn said(&mut self) -> String {
        std::mem::take(&mut self.said).join(" ")
    }
}

fn run() -> Run {
    Run::new(Settings::default(), &[])
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
    assert_eq!(r.feed(&[START, &call(0, "a", "look"), &call(1, "b", "put")]).said(), "+a");
    assert_eq!(r.done("a").said(), "=a:success");
    assert_eq!(r.feed(&[&message(&[("a", "look"), ("b", "put")])]).said(), "+b");
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
    assert_eq!(r.done("a").said(), "=a:success >a =b:success >b =c:unknown_tool >c");
    let mut r = Run::new(Settings { order: Order::Completion, ..Settings::default() }, &[]);
    assert_eq!(r.feed(&[START, &message(&calls), END]).said(), "+a +b =c:unknown_tool");
    assert_eq!(r.done("b").said(), "=b:success");
    assert_eq!(r.done("a").said(), "=a:success >a >b >c");
}

#[test]
fn nothing_is_written_between_the_message_and_the_end_of_its_stream() {
    let mut r = run();
    r.feed(&[START, &call(0, "a", "look"), &message(&[("a", "look"), ("b", "put")])]);
    assert_eq!(r.done("a").done("b").said(), "+a +b");
    assert_eq!(r.feed(&[END]).said(), "=a:success >a =b:success >b");
    // A message without a stream around it waits for nothing.
    assert_eq!(r.feed(&[&message(&[("c", "put")])]).done("c").said(), "+c =c:success >c");
}

#[test]
fn only_so_many_run_at_once() {
    let mut r = Run::new(Settings { jobs: 2, ..Settings::default() }, &[]);
    assert_eq!(r.feed(&[&message(&[("a", "put"), ("b", "put"), ("c", "put"), ("d", "put")])]).said(), "+a +b");
    assert_eq!(r.done("a").said(), "=a:success >a +c");
    assert_eq!(r.done("b").done("c").done("d").said(), "=b:success >b +d =c:success >c =d:success >d");
}

#[test]
fn a_call_that_is_taken_back_is_dropped() {
    let mut r = run();
    r.feed(&[START, &call(0, "a", "look"), &call(1, "b", "look"), &call(2, "c", "put"), &call(3, "d", "look")]);
    assert_eq!(r.done("b").said(), "+a +b +d");
    let by_index = r#"{"type":"retract","index":0,"reason":"x"}"#;
    assert_eq!(r.feed(&[by_index, r#"{"type":"retract","tool_id":"c","reason":"x"}"#]).said(), "!a =b:success");
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
    for (before, after) in [(&[][..], &[][..]), (&[START][..], &[END][..]), (&[START][..], &[][..])] {
        let mut r = Run::new(Settings { jobs: 1, ..Settings::default() }, &[]);
        r.feed(before).feed(&[&message(&[("a", "put"), ("b", "put")])]).feed(after);
        if after.is_empty() && !before.is_empty() {
            r.feed(&[END]);
        }
        assert_eq!(r.said(), "+a");
        assert_eq!(r.feed(&[&retract("a"), &retract("a")]).said(), "!a");
        assert_eq!(r.done("a").said(), "=a:cancelled >a +b");
        assert_eq!(r.done("b").said(), "=b:success >b");
    }
    // It waits for a free place, and never starts.
    let mut r = Run::new(Settings { jobs: 1, ..Settings::default() }, &[]);
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
        assert_eq!(r.feed(&[&message(&[("a", name)]), END]).said(), "=a:cancelled >a", "{name}");
    }
    let mut r = run();
    r.feed(&[START, &call(0, "a", "put"), &retract("a"), &call(0, "a", "put")]);
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
        assert_eq!((r.plan.tally().failed > 0, r.plan.tally().messages), (end != Some(START), 0), "{end:?}");
        assert!(r.plan.is_idle());
    }
}

#[test]
fn calls_with_an_error_are_answered_and_calls_without_a_name_are_not() {
    let incomplete = call(0, "a", "put")
        .replace("\"arguments\":{}", r#""arguments":null,"error":{"code":"incomplete","message":"cut by length"}"#);
    let nameless = r#"{"type":"tool_call","index":1,"tool_id":"b","tool_name":"","arguments":null,"error":{"code":"no_name","message":"x"}}"#;
    let mut r = run();
    let end = r#"{"type":"stream_end","finish_reason":"length"}"#;
    assert_eq!(r.feed(&[START, &incomplete, nameless, &message(&[("a", "put")]), end]).said(), "=a:invalid >a");
}

#[test]
fn without_a_message_nothing_is_confirmed() {
    let mut r = run();
    assert_eq!(r.feed(&[START, &call(0, "a", "put"), END]).said(), "");
    assert_eq!((r.plan.tally().unconfirmed, r.plan.tally().failed), (1, 0));
}

#[test]
fn streams_and_choices_are_kept_apart() {
    let named = |line: &str, stream: &str| line.replacen('{', &format!(r#"{{"stream":"{stream}","#), 1);
    let mut r = run();
    let m = message(&[("a", "put")]);
    r.feed(&[&named(START, "x"), &named(START, "y"), &named(&m, "x"), &named(&m, "y")]);
    assert_eq!(r.said(), "+a +a");
    assert_eq!(r.feed(&[&named(END, "y")]).done("a").said(), "");
    assert_eq!(r.feed(&[&named(END, "x")]).said(), "=a:success >a");
    let other = m.replacen('{', r#"{"choice":1,"#, 1);
    assert_eq!(run().feed(&[&other]).said(), "");
    assert_eq!(Run::new(Settings { choice: 1, ..Settings::default() }, &[]).feed(&[&other, &m]).said(), "+a");
}

#[test]
fn a_call_that_the_log_answers_never_runs_again() {
    let m = message(&[("a", "put"), ("b", "put")]);
    let result = r#"{"type":"tool_result","tool_id":"a","tool_name":"put","status":"success","output":"1"}"#;
    // From a journal, and the turn comes again.
    assert_eq!(Run::new(Settings::default(), &[result]).feed(&[&m]).done("b").said(), "=a:success >a +b =b:success >b");
    // From the log itself: what is missing in it is written.
    let mut r = Run::new(Settings::default(), &[&m, result]);
    r.plan.finish();
    r.take();
    assert_eq!(r.done("b").said(), ">a +b =b:success >b");
    // The log has all of it.
    let sent = |id| format!(r#"{{"type":"message","message":{{"role":"tool","tool_call_id":"{id}","content":"1"}}}}"#);
    let mut r = Run::new(Settings::default(), &[&m, &sent("a"), &sent("b")]);
    r.plan.finish();
    r.take();
    assert_eq!((r.said().as_str(), r.plan.tally().messages), ("", 0));
}

#[test]
fn a_write_call_that_was_begun_waits_for_a_person_and_a_read_call_runs_again() {
    let used = |id: &str| format!(r#"{{"type":"tool_use","tool_id":"{id}","tool_name":"x","status":"running"}}"#);
    let mut r = Run::new(Settings::default(), &[&used("a"), &used("b")]);
    assert_eq!(r.feed(&[&message(&[("a", "look"), ("b", "put"), ("c", "put")])]).said(), "+a +c");
    // The messages after the one that waits would be out of order.
    assert_eq!(r.done("a").done("c").said(), "=a:success >a =b:pending =c:success");
    assert_eq!(r.plan.tally().pending, 1);
}

#[test]
fn the_input_may_answer_its_own_calls() {
    let m = message(&[("a", "put")]);
    let sent = r#"{"type":"message","message":{"role":"tool","tool_call_id":"a","content":"1"}}"#;
    let again = message(&[("a", "last")]);
    let lines = [m.as_str(), sent, &again];
    let mut r = run();
    let mut scanner = Scanner::default();
    lines.iter().for_each(|line| r.plan.foresee(&scanner.read(line).unwrap()));
    assert_eq!(r.feed(&lines).said(), "+a", "the second turn numbers its calls anew");
    assert_eq!((r.done("a").said().as_str(), r.plan.tally().messages), ("=a:success >a", 1));
}

#[test]
fn one_id_runs_once() {
    let m = message(&[("a", "put"), ("a", "put")]);
    let mut r = run();
    assert_eq!(r.feed(&[&m]).done("a").said(), "+a =a:success >a");
    assert_eq!(r.feed(&[&m]).said(), "=a:success >a", "the same turn again gets the same answer");
}

#[test]
fn stopping_closes_the_log() {
    let mut r = Run::new(Settings { jobs: 1, ..Settings::default() }, &[]);
    assert_eq!(r.feed(&[START, &message(&[("a", "put"), ("b", "put")]), END]).said(), "+a");
    r.plan.stop();
    r.take();
    assert_eq!(r.said(), "");
    assert_eq!(r.done("a").said(), "=a:success >a =b:cancelled >b");
    // A message that comes after: its calls are answered, none runs.
    assert_eq!(r.feed(&[START, &call(0, "c", "look"), &message(&[("c", "look")]), END]).said(), "=c:cancelled >c");
    let mut r = run();
    r.feed(&[&message(&[("a", "put")])]);
    r.plan.abort();
    r.take();
    assert_eq!(r.said(), "+a !a");
}

#[test]
fn a_turn_has_only_so_many_calls() {
    let mut r = Run::new(Settings { max_calls: 2, ..Settings::default() }, &[]);
    r.feed(&[
        START,
        &call(0, "a", "look"),
        &call(1, "b", "put"),
        &call(2, "c", "look"),
        &message(&[("a", "look"), ("b", "put"), ("c", "look")]),
        END,
    ]);
    assert_eq!(r.done("a").done("b").said(), "+a +b =a:success >a =b:success >b =c:denied >c");
}

#[test]
fn a_danger_call_waits_for_approval() {
    let mut r = run();
    assert_eq!(r.feed(&[&message(&[("a", "rm"), ("b", "last")])]).said(), "=a:pending +b");
    assert_eq!(r.plan.tally().pending, 1);
}

#[test]
fn a_final_result_ends_the_turn() {
    let mut r = run();
    assert_eq!(r.feed(&[&message(&[("b", "last")])]).said(), "+b");
    // The runner marks a result as final, since it has the tool.
    let (_, key) = r.keys.remove(0);
    r.plan.done(key, Answer { return_directly: true, ..Answer::new(Status::Success, "x") });
    assert!(r.plan.tally().is_final);
}

#[test]
fn what_concerns_several_calls_or_streams_happens_in_their_order() {
    let ids: Vec<String> = (0..16).map(|n| format!("c{n:02}")).collect();
    let all = |mark: &str| ids.iter().map(|id| format!("{mark}{id}")).collect::<Vec<_>>().join(" ");
    let many = || Run::new(Settings { jobs: 99, ..Settings::default() }, &[]);
    // The message lists none of the calls that run.
    let mut r = many();
    r.feed(&[START]);
    ids.iter().enumerate().for_each(|(n, id)| _ = r.feed(&[&call(n, id, "look")]));
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
