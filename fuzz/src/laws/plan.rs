//! What runs: hostile lines into the plan, and the log of that run, cut anywhere, into the next
//! one. A call starts at most once, with the arguments that were confirmed, and never without the
//! yes that it needs.
//!
//! Input: the settings, a seed of the cut, then operations.
use super::input::Source;
use super::{Target, Turn};
use event::{Scanner, quoted};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use tool::{
    ApprovalLevel, Class, Judge, Log, LogReader, Order, PersonAnswer, Plan, PlanSettings, PlanStep,
    Policy, Reason, RequestedCall, Rules, Status, ToolAnswer, Tools, message,
};

/// See the first lines of this file.
pub const TARGET: Target = Target {
    name: "plan",
    check,
};

const FILE: &str = r#"[
    {"name":"look","parameters":{"type":"object","properties":{"x":{}}},"exec":{"command":["look"],"class":"read"}},
    {"name":"put","parameters":{"type":"object","properties":{"x":{}}},"exec":{"command":["put"]}},
    {"name":"rm","parameters":{"type":"object","properties":{"x":{}}},"exec":{"command":["rm"],"class":"danger"}},
    {"name":"no","exec":{"command":["no"]}}]"#;
const NAMES: &[&str] = &["look", "put", "rm", "no", "nobody", ""];
const IDS: &[&str] = &["a", "b", "c", "d", ""];
const ARGUMENTS: &[&str] = &[
    "{}",
    r#"{"x":1}"#,
    r#"{"x":2}"#,
    r#"{"y":1}"#,
    "null",
    "[1]",
    r#"{"x":1,"x":2}"#,
];
const STREAMS: &[&str] = &["", "", "", ",\"stream\":\"s\"", ",\"choice\":1"];

/// A line of a hostile input.
fn line(source: &mut Source<'_>) -> String {
    let op = source.byte();
    let stream = STREAMS[usize::from(op >> 4) % STREAMS.len()];
    let (id, name) = (source.pick(IDS), source.pick(NAMES));
    let arguments = source.pick(ARGUMENTS);
    match op % 16 {
        0 => {
            let response = source.pick(&["", ",\"id\":\"r1\"", ",\"id\":\"r2\""]);
            format!(r#"{{"type":"stream_start","v":1{response}{stream}}}"#)
        }
        1..=4 => {
            let extra = source.pick(&[
                "",
                "",
                "",
                ",\"repairs\":[{\"offset\":0,\"kind\":\"x\",\"before\":\"\",\"after\":\"\"}]",
                ",\"error\":{\"code\":\"incomplete\",\"message\":\"cut\"}",
            ]);
            let index = source.below(4);
            format!(
                r#"{{"type":"tool_call","index":{index},"tool_id":"{id}","tool_name":"{name}","arguments":{arguments}{extra}{stream},"commit":"balanced"}}"#
            )
        }
        5..=7 => {
            let mut calls = vec![format!(
                r#"{{"id":"{id}","type":"function","function":{{"name":"{name}","arguments":{}}}}}"#,
                quoted(arguments)
            )];
            for _ in 0..source.below(4) {
                let (id, name, arguments) =
                    (source.pick(IDS), source.pick(NAMES), source.pick(ARGUMENTS));
                calls.push(format!(
                    r#"{{"id":"{id}","type":"function","function":{{"name":"{name}","arguments":{}}}}}"#,
                    quoted(arguments)
                ));
            }
            format!(
                r#"{{"type":"message","message":{{"role":"assistant","content":null,"tool_calls":[{}]}}{stream}}}"#,
                calls.join(",")
            )
        }
        8 => {
            let which = source.pick(&["\"index\":0", "\"index\":1", ""]);
            let which = if which.is_empty() {
                format!("\"tool_id\":\"{id}\"")
            } else {
                which.to_owned()
            };
            format!(r#"{{"type":"retract",{which},"reason":"unparsed"{stream}}}"#)
        }
        9 | 10 => {
            let reason =
                source.pick(&["tool_calls", "stop", "tool_calls", "length", "cut", "error"]);
            format!(r#"{{"type":"stream_end","finish_reason":"{reason}"{stream}}}"#)
        }
        11 => format!(
            r#"{{"type":"error","source":"x","code":"c","message":"m","retryable":false{stream}}}"#
        ),
        12 => format!(
            r#"{{"type":"tool_use","tool_name":"{name}","tool_id":"{id}","status":"running"{stream}}}"#
        ),
        13 => format!(
            r#"{{"type":"tool_result","tool_id":"{id}","tool_name":"{name}","status":"success","output":"o"{stream}}}"#
        ),
        14 => {
            format!(
                r#"{{"type":"message","message":{{"role":"tool","tool_call_id":"{id}","content":"o"}}{stream}}}"#
            )
        }
        _ => r#"{"type":"message","message":{"role":"user","content":"go on"}}"#.to_owned(),
    }
}

fn judge(level: ApprovalLevel) -> Judge {
    Judge {
        tools: Tools::read(FILE).unwrap(),
        rules: Rules {
            approve: level,
            ..Rules::default()
        },
        policy: Rc::new(Policy::default()),
    }
}

/// A run: the plan, what it started, and the log that `tool-exec --log` would hold.
struct Run {
    plan: Plan,
    level: ApprovalLevel,
    jobs: usize,
    running: Vec<(u64, Rc<RequestedCall>)>,
    asked: Vec<(u64, tool::CallHash, Rc<RequestedCall>, Reason)>,
    allowed: HashSet<u64>,
    always: HashSet<String>,
    started: Vec<Rc<RequestedCall>>,
    resulted: usize,
    log: Vec<String>,
}

impl Run {
    fn new(settings: PlanSettings, level: ApprovalLevel, log: Log) -> Run {
        Run {
            plan: Plan::new(judge(level), settings, log),
            level,
            jobs: settings.jobs,
            running: vec![],
            asked: vec![],
            allowed: HashSet::new(),
            always: HashSet::new(),
            started: vec![],
            resulted: 0,
            log: vec![],
        }
    }

    fn take(&mut self) {
        for step in self.plan.steps() {
            let stream = |call: &RequestedCall| {
                call.stream
                    .as_ref()
                    .map_or(String::new(), |s| format!(",\"stream\":{s}"))
            };
            match step {
                PlanStep::Start { key, call, ready } => {
                    assert!(
                        call.arguments.is_ok(),
                        "a call without arguments starts: {call:?}"
                    );
                    let consented = self.allowed.contains(&key)
                        || self.always.contains(&*call.name) && ready.class != Class::Danger;
                    assert!(
                        !self.level.covers(ready.class) || consented,
                        "no yes: {call:?}"
                    );
                    assert!(
                        !(call.repaired && ready.class == Class::Danger)
                            || self.allowed.contains(&key),
                        "repaired, no yes: {call:?}"
                    );
                    self.log.push(format!(
                        r#"{{"type":"tool_use","tool_name":{},"tool_id":{},"status":"running"{}}}"#,
                        quoted(&call.name),
                        quoted(&call.id),
                        stream(&call)
                    ));
                    self.running.push((key, Rc::clone(&call)));
                    self.started.push(call);
                    assert!(
                        self.running.len() <= self.jobs,
                        "more than {} run",
                        self.jobs
                    );
                }
                PlanStep::Ask(asked) => {
                    self.asked
                        .push((asked.key, asked.ready.hash, asked.call, asked.reason));
                }
                PlanStep::Withdraw { key } => self.asked.retain(|a| a.0 != key),
                PlanStep::Approval { .. } | PlanStep::Stop { .. } => {}
                PlanStep::Result { call, answer, .. } => {
                    self.resulted += 1;
                    self.log.push(format!(
                        r#"{{"type":"tool_result","tool_id":{},"tool_name":{},"status":"{}","output":{}{}}}"#,
                        quoted(&call.id),
                        quoted(&call.name),
                        answer.status.name(),
                        quoted(&answer.output),
                        stream(&call)
                    ));
                }
                PlanStep::Message { call, answer } => {
                    let message = message(&call.id, &call.name, &answer);
                    self.log.push(format!(
                        r#"{{"type":"message","message":{message}{}}}"#,
                        stream(&call)
                    ));
                }
            }
        }
    }

    fn feed(&mut self, line: &str) {
        let mut scanner = Scanner::default();
        self.plan.event(&scanner.read(line).unwrap());
        self.log.push(line.to_owned());
        self.take();
    }

    fn done(&mut self, at: usize) {
        if !self.running.is_empty() {
            let (key, _) = self.running.remove(at % self.running.len());
            self.plan.done(key, ToolAnswer::new(Status::Success, "o"));
            self.take();
        }
    }

    fn answer(&mut self, how: usize) {
        if let Some((key, hash, call, reason)) = self.asked.pop() {
            let answer = [
                PersonAnswer::Yes,
                PersonAnswer::No,
                PersonAnswer::Nothing,
                PersonAnswer::Always,
            ][how % 4];
            // Another hash than what was shown counts for nothing.
            let other = tool::CallHash::read(&"0".repeat(32)).unwrap();
            let is_wrong = how / 4 % 4 == 3;
            if !is_wrong && matches!(answer, PersonAnswer::Yes | PersonAnswer::Always) {
                self.allowed.insert(key);
                if answer == PersonAnswer::Always && reason.allows_always() {
                    self.always.insert(call.name.to_string());
                }
            }
            self.plan
                .answered(key, if is_wrong { other } else { hash }, answer);
            self.take();
        }
    }

    /// Ends the input, and what runs.
    fn finish(&mut self) {
        self.plan.finish();
        self.take();
        for _ in 0..10_000 {
            if self.running.is_empty() && self.asked.is_empty() {
                break;
            }
            self.done(0);
            self.answer(2);
        }
        assert!(self.plan.is_idle(), "not idle: {:#?}", self.log);
    }
}

fn check(bytes: &[u8], turn: Turn) {
    let mut source = Source(bytes);
    let (how, at) = (source.byte(), source.byte());
    let settings = PlanSettings {
        jobs: 1 + usize::from(how & 3),
        order: if how & 4 > 0 {
            Order::Completion
        } else {
            Order::Call
        },
        can_ask: how & 8 > 0,
        max_calls: if how & 16 > 0 { 3 } else { 1024 },
        ..PlanSettings::default()
    };
    let level = [
        ApprovalLevel::None,
        ApprovalLevel::Danger,
        ApprovalLevel::Write,
        ApprovalLevel::All,
    ][usize::from(how >> 5) % 4];
    let mut run = Run::new(settings, level, Log::default());
    // A call id starts at most once in a response; ids of lines that claim a history of their own
    // are not counted.
    let mut honest = true;
    let mut responses = 0;
    let mut retracts = 0;
    while !source.0.is_empty() && run.log.len() < 120 {
        match source.byte() {
            op if op < 0xb0 => {
                let line = line(&mut source);
                honest &= ![
                    "tool_use",
                    "tool_result",
                    "\"role\":\"tool\"",
                    "\"role\":\"user\"",
                ]
                .iter()
                .any(|t| line.contains(t));
                responses += usize::from(
                    [
                        "stream_start",
                        "stream_end",
                        "\"role\":\"assistant\"",
                        "\"error\"",
                    ]
                    .iter()
                    .any(|t| line.contains(t)),
                );
                retracts += usize::from(line.contains("\"retract\""));
                run.feed(&line);
            }
            op if op < 0xd0 => run.done(usize::from(op)),
            op if op < 0xfd => run.answer(usize::from(op)),
            0xfd => {
                run.plan.stop();
                run.take();
            }
            _ => {
                run.plan.abort();
                run.take();
            }
        }
    }
    run.finish();
    // Each turn can start an id once; a call after a message begins a turn, too. A call of a read
    // tool may have started when it is taken back: the same call announced again is another one.
    let reads_too = [(false, responses + 1), (true, responses + retracts + 1)];
    for (reads, most) in reads_too.into_iter().filter(|_| honest) {
        let mut starts: HashMap<(Option<Box<str>>, Box<str>), usize> = HashMap::new();
        for call in &run.started {
            if reads || call.name.as_ref() != "look" {
                *starts
                    .entry((call.stream.clone(), call.id.clone()))
                    .or_default() += 1;
            }
        }
        assert!(
            starts.values().all(|n| *n <= most),
            "{responses} turns, {retracts} calls taken back: {starts:?} {:#?}",
            run.log
        );
    }
    // The process died at any line: the next run goes on from the log.
    if !turn.takes(0) && !turn.takes(1) {
        return;
    }
    let cut = run.log.len() * usize::from(at) / 255;
    let begun = &run.log[..cut];
    let mut log = Log::default();
    begun.iter().for_each(|line| log.line(line));
    let mut next = Run::new(
        PlanSettings {
            can_ask: false,
            ..settings
        },
        ApprovalLevel::None,
        log,
    );
    next.finish();
    for call in &next.started {
        let used = begun.iter().any(|l| {
            l.contains("\"tool_use\"")
                && l.contains(&format!("\"tool_id\":{}", quoted(&call.id)))
                && l.contains("\"stream\":\"s\"") == call.stream.is_some()
        });
        // Within one turn; an id that comes again in a later one is another call.
        if honest && responses <= 1 && call.name.as_ref() != "look" {
            assert!(
                !used,
                "begun, and started again without a yes: {call:?}\n{begun:#?}"
            );
        }
    }
    // And a third run after that has nothing to do.
    let mut log = Log::default();
    begun
        .iter()
        .chain(&next.log)
        .for_each(|line| log.line(line));
    let mut third = Run::new(settings, ApprovalLevel::None, log);
    third.finish();
    assert!(
        third.started.is_empty(),
        "run again: {:?}\n{begun:#?}\n{:#?}",
        third.started,
        next.log
    );
}
