//! Law 4, linear, of the plan of `tool-exec`: four times the calls may take eight times the
//! processor's time, whatever follows them.

use crate::pipeline::cost::{Cost, judge, none_is_wrong, now};
use event::Scanner;
use tool::{Judge, Log, Order, Plan, PlanSettings, PlanStep, Status, ToolAnswer, Tools};

const TOOLS: &str = r#"[{"name":"look","exec":{"command":["look"],"class":"read"}},{"name":"put","exec":{"command":["put"]}},
    {"name":"rm","exec":{"command":["rm"],"class":"danger"}}]"#;
const START: &str = r#"{"type":"stream_start","v":1}"#;
const END: &str = r#"{"type":"stream_end","finish_reason":"tool_calls"}"#;

/// When the calls that the plan starts end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    AtOnce,
    /// When no event is left, the last that was started first.
    Late,
}

/// The time that the plan takes for these lines.
fn run(lines: &[String], settings: PlanSettings, ends: Ends) -> Cost {
    let judge = Judge {
        tools: Tools::read(TOOLS).expect("tools"),
        ..Judge::default()
    };
    let mut plan = Plan::new(judge, settings, Log::default());
    let mut running = Vec::new();
    let mut written = 0;
    let mut scanner = Scanner::default();
    let start = now();
    lines.iter().for_each(|line| plan.foresee(line));
    let mut take = |plan: &mut Plan, ends: Ends| {
        loop {
            let steps = plan.steps();
            if steps.is_empty() && (ends == Ends::Late || running.is_empty()) {
                return;
            }
            for step in steps {
                written += 1;
                if let PlanStep::Start { key, .. } = step {
                    running.push(key);
                }
            }
            while ends == Ends::AtOnce
                && let Some(key) = running.pop()
            {
                plan.done(key, ToolAnswer::new(Status::Success, "x"));
            }
        }
    };
    for line in lines {
        plan.event(&scanner.read(line).expect("an event"));
        take(&mut plan, ends);
    }
    plan.finish();
    take(&mut plan, Ends::AtOnce);
    assert!(plan.is_idle());
    Cost {
        micros: now() - start,
        written,
    }
}

/// What is in the lines, and those of `n` calls.
type Case = (&'static str, fn(usize) -> Vec<String>);

fn call(index: usize, id: usize, name: &str) -> String {
    format!(
        r#"{{"type":"tool_call","index":{index},"tool_id":"c{id}","tool_name":"{name}","arguments":{{}}}}"#
    )
}

fn message(ids: impl Iterator<Item = usize>, name: &str) -> String {
    let calls: Vec<_> = ids
        .map(|id| format!(r#"{{"id":"c{id}","function":{{"name":"{name}","arguments":"{{}}"}}}}"#))
        .collect();
    format!(
        r#"{{"type":"message","message":{{"role":"assistant","tool_calls":[{}]}}}}"#,
        calls.join(",")
    )
}

fn retract(id: usize) -> String {
    format!(r#"{{"type":"retract","tool_id":"c{id}","reason":"x"}}"#)
}

fn calls(n: usize, name: &str) -> Vec<String> {
    std::iter::once(START.to_owned())
        .chain((0..n).map(|id| call(id, id, name)))
        .collect()
}

fn with(mut lines: Vec<String>, more: impl IntoIterator<Item = String>) -> Vec<String> {
    lines.extend(more);
    lines
}

/// The lines of `n` calls, and what follows them.
const CASES: &[Case] = &[
    ("without a message", |n| calls(n, "look")),
    ("without a message, ended", |n| {
        with(calls(n, "put"), [END.into()])
    }),
    ("with a message", |n| {
        with(calls(n, "look"), [message(0..n, "look"), END.into()])
    }),
    ("of the message alone", |n| {
        vec![START.into(), message(0..n, "put"), END.into()]
    }),
    ("that the message lists in reverse", |n| {
        with(calls(n, "put"), [message((0..n).rev(), "put"), END.into()])
    }),
    ("that the message does not list", |n| {
        with(calls(n, "look"), [message(0..0, "look"), END.into()])
    }),
    ("of another name in the message", |n| {
        with(calls(n, "look"), [message(0..n, "put"), END.into()])
    }),
    ("that nobody knows", |n| {
        with(calls(n, "x"), [message(0..n, "x"), END.into()])
    }),
    ("that wait for a person", |n| {
        with(calls(n, "rm"), [message(0..n, "rm"), END.into()])
    }),
    ("taken back at once", |n| {
        (0..n)
            .flat_map(|id| [call(0, id, "look"), retract(id)])
            .collect()
    }),
    ("taken back after all of them", |n| {
        with(calls(n, "look"), (0..n).map(retract))
    }),
    ("taken back from the last on", |n| {
        with(calls(n, "put"), (0..n).rev().map(retract))
    }),
    ("taken back by index", |n| {
        with(
            calls(n, "look"),
            (0..n).map(|n| format!(r#"{{"type":"retract","index":{n},"reason":"x"}}"#)),
        )
    }),
    ("cancelled after the message", |n| {
        with(
            calls(n, "put"),
            [message(0..n, "put")]
                .into_iter()
                .chain((0..n).map(retract)),
        )
    }),
    ("of a message each, that wait, and are cancelled", |n| {
        let turns = (0..n).flat_map(|id| [START.into(), message(id..id + 1, "rm"), END.into()]);
        turns.chain((0..n).map(retract)).collect()
    }),
    ("of a turn each", |n| {
        (0..n)
            .flat_map(|id| [START.into(), message(id..id + 1, "put"), END.into()])
            .collect()
    }),
    ("of one id, in a turn each", |n| {
        (0..n)
            .flat_map(|_| [START.into(), message(0..1, "put"), END.into()])
            .collect()
    }),
    ("that the input answers, of one id", |n| {
        let sent =
            r#"{"type":"message","message":{"role":"tool","tool_call_id":"c0","content":"1"}}"#;
        (0..n)
            .flat_map(|_| [message(0..1, "put"), sent.to_owned()])
            .collect()
    }),
    ("of a stream each", |n| {
        (0..n)
            .map(|id| message(0..1, "put").replacen('{', &format!(r#"{{"stream":"s{id}","#), 1))
            .collect()
    }),
    ("of turns that are cut", |n| {
        (0..n)
            .flat_map(|id| [START.into(), call(0, id, "look")])
            .collect()
    }),
];

#[test]
fn calls_of_every_kind() {
    let mut wrong = Vec::new();
    for (what, lines) in CASES {
        for (ends, order, jobs) in [
            (Ends::AtOnce, Order::Call, 1),
            (Ends::Late, Order::Call, usize::MAX),
            (Ends::Late, Order::Completion, usize::MAX),
        ] {
            let settings = PlanSettings {
                jobs,
                order,
                max_calls: usize::MAX,
                ..PlanSettings::default()
            };
            judge(
                || format!("calls {what}, {ends:?}, {order:?}, {jobs} jobs"),
                &mut wrong,
                |n| run(&lines(n), settings, ends),
            );
        }
    }
    none_is_wrong(&wrong);
}
