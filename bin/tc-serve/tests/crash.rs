//! A service that is killed at any point of a run with tools, starts again, and goes on: nothing that
//! a client has got is lost, and no call that changes something runs twice.
//!
//! `TOOLPIPE_KILLS` says how many kills; the seed of each is its number.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::service::agent::{Agent, TextCalls, Turn, WaitingCall, model, tool, waiting};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::Read;
use std::net::TcpStream;
use testkit::{Random, wait_until};

/// How many kills without `TOOLPIPE_KILLS`, and with `LAWS=full`.
const KILLS: [u64; 2] = [8, 25];

/// The tools: each leaves a line with its name and its argument.
fn tools() -> Value {
    let script = |name: &str| format!("echo \"{name} $1\" >>@/ran; seq 1 50; echo \"{name} $1\"");
    let classes = [
        ("look", "read"),
        ("find", "read"),
        ("put", "write"),
        ("note", "write"),
        ("remove", "danger"),
    ];
    classes
        .map(|(name, class)| tool(name, class, &script(name), &Value::Null))
        .into_iter()
        .collect()
}

/// What the calls write, in the order of their ids.
const CALLS: [&str; 8] = [
    "look a", "find b", "put c", "look d", "note e", "remove f", "put g", "note h",
];

fn turns() -> Vec<Turn> {
    vec![
        Turn::default()
            .thinks("A lake.")
            .then_says("Let me see.")
            .calls_text("c1", "look", "a")
            .calls_text("c2", "find", "b"),
        Turn::says("Now.")
            .calls_text("c3", "put", "c")
            .calls_text("c4", "look", "d")
            .calls_text("c5", "note", "e"),
        Turn::says("And then.")
            .calls_text("c6", "remove", "f")
            .calls_text("c7", "put", "g"),
        Turn::says("At last.").calls_text("c8", "note", "h"),
        Turn::says("All is done."),
    ]
}

/// A client that follows a session from a byte on.
struct Follower {
    stream: TcpStream,
    head: Vec<u8>,
    /// What has come of the session, from its first byte on.
    bytes: Vec<u8>,
}

impl Follower {
    /// Goes on at the end of `bytes`.
    fn new(agent: &Agent, session: &str, bytes: Vec<u8>) -> Follower {
        let path = format!(
            "/v1/sessions/{session}/events?offset={}&live=ndjson",
            bytes.len()
        );
        let client = agent
            .service
            .send("GET", &path, "accept: application/x-ndjson\r\n", "");
        Follower {
            stream: client.stream,
            head: Vec::new(),
            bytes,
        }
    }

    /// Reads what comes next; `false` at the end of the connection.
    fn read(&mut self) -> bool {
        let mut block = [0; 512];
        match self.stream.read(&mut block) {
            Ok(count) if count > 0 => {
                self.head.extend_from_slice(&block[..count]);
                self.take();
                true
            }
            _ => false,
        }
    }

    /// Moves whole chunks of the body into `bytes`.
    fn take(&mut self) {
        loop {
            if self.head.starts_with(b"HTTP/") {
                let Some(end) = find(&self.head, b"\r\n\r\n") else {
                    return;
                };
                let head = String::from_utf8_lossy(&self.head[..end]).into_owned();
                assert!(head.starts_with("HTTP/1.1 200"), "{head}");
                self.head.drain(..end + 4);
            }
            let Some(end) = find(&self.head, b"\r\n") else {
                return;
            };
            let size =
                usize::from_str_radix(&String::from_utf8_lossy(&self.head[..end]), 16).unwrap();
            if size == 0 || self.head.len() < end + 2 + size + 2 {
                return;
            }
            self.bytes
                .extend_from_slice(&self.head[end + 2..end + 2 + size]);
            self.head.drain(..end + 2 + size + 2);
        }
    }

    /// Reads until `done`, or the end of the connection.
    fn until(&mut self, mut done: impl FnMut(&[u8]) -> bool) {
        while !done(&self.bytes) && self.read() {}
    }
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

/// Answers the calls that wait: those that may have run get a result, and the others run.
fn answer(agent: &Agent, session: &str) {
    for WaitingCall {
        id,
        hash,
        has_started,
    } in waiting(&agent.events(session))
    {
        let verb = if has_started { "answer" } else { "approve" };
        let (status, body) = agent.answers(
            session,
            &id,
            verb,
            &json!({"hash": hash, "result": "it has run"}),
        );
        // While a turn begins again, the call may be asked about anew.
        assert!([200, 404, 409].contains(&status), "{status} {body}");
    }
}

fn has_end(events: &[Value]) -> bool {
    events.iter().any(|event| event["type"] == "response_end")
}

#[test]
fn kills_at_any_point_lose_nothing_and_run_no_call_twice() {
    let kills = std::env::var("TOOLPIPE_KILLS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(KILLS[usize::from(testkit::places::is_full())]);
    let mut whole = 0;
    let mut ends: HashMap<String, usize> = HashMap::new();
    for seed in 0..kills {
        let status = killed(seed, &mut whole);
        *ends.entry(status).or_default() += 1;
    }
    // Some went on where they were, and some were cut in a turn of the model.
    assert!(
        ends.get("completed").is_some_and(|count| *count > 0),
        "{ends:?}"
    );
    assert_eq!(ends.values().sum::<usize>() as u64, kills);
}

/// One run with one kill. `whole` is the length of a run without one, once known.
fn killed(seed: u64, whole: &mut usize) -> String {
    let mut random = Random::new(seed);
    let mut agent = Agent::of(&tools(), model(turns()), &[]);
    let (id, session) = agent.begin("Hi");
    let mut follower = Follower::new(&agent, &session, Vec::new());
    let point = if *whole == 0 {
        usize::MAX
    } else {
        600 + random.below(*whole)
    };
    let mut answered = false;
    follower.until(|bytes| {
        let is_waiting = find(bytes, b"\"status\":\"pending\"").is_some();
        if is_waiting && !answered {
            answered = true;
            answer(&agent, &session);
        }
        bytes.len() >= point || find(bytes, b"\"type\":\"response_end\"").is_some()
    });
    if *whole == 0 {
        *whole = follower.bytes.len();
    }
    // In some, `tool-exec` goes on alone.
    match random.below(3) {
        0 => agent.kill(),
        _ => agent.service.signal(rustix::process::Signal::KILL),
    }
    while follower.read() {}
    let seen = follower.bytes;
    let now = std::fs::read(agent.file(&session)).unwrap();
    assert!(
        now.starts_with(&seen),
        "seed {seed}: {} bytes were lost",
        seen.len()
    );
    agent.restart();
    let mut follower = Follower::new(&agent, &session, seen);
    if !has_end(&agent.events(&session)) {
        wait_until("the end", || {
            answer(&agent, &session);
            // Whoever asks ends what was cut.
            let _ = agent
                .service
                .ask("GET", &format!("/v1/responses/{id}"), "", "");
            has_end(&agent.events(&session))
        });
    }
    follower.until(|bytes| find(bytes, b"\"type\":\"response_end\"").is_some());
    let file = std::fs::read(agent.file(&session)).unwrap();
    assert!(
        file.starts_with(&follower.bytes),
        "seed {seed}: the client's bytes are not those of the session"
    );
    let mut ran: HashMap<String, usize> = HashMap::new();
    for line in agent.folder.read("ran").lines() {
        *ran.entry(line.to_owned()).or_default() += 1;
    }
    for (call, count) in &ran {
        let may_repeat = call.starts_with("look") || call.starts_with("find");
        assert!(
            may_repeat || *count == 1,
            "seed {seed}: {call} ran {count} times\n{}",
            String::from_utf8_lossy(&file)
        );
    }
    let events = agent.events(&session);
    let end = events
        .iter()
        .find(|event| event["type"] == "response_end")
        .unwrap();
    let status = end["status"].as_str().unwrap().to_owned();
    assert!(
        ["completed", "interrupted"].contains(&status.as_str()),
        "seed {seed}: {status}\n{}",
        String::from_utf8_lossy(&file)
    );
    if status == "completed" {
        // Each call has a result: its own, or the one of a person, who was asked because the call was
        // started and may not have run.
        for (number, call) in (1..).zip(CALLS) {
            let is_of = |event: &&Value| event["tool_id"] == format!("c{number}");
            let all = events.iter().filter(is_of);
            let answered = all.clone().any(|event| event["decision"] == "answered");
            let mut results = all.filter(|event| event["type"] == "tool_result");
            let result = results.next_back().map(|event| event["status"].clone());
            let is_there = ran.contains_key(call)
                || answered
                || result.as_ref().is_some_and(|status| *status != "success");
            assert!(
                is_there && result.as_ref().is_some_and(|status| *status != "pending"),
                "seed {seed}: {call}: {result:?} {ran:?}\n{}",
                String::from_utf8_lossy(&file)
            );
        }
    }
    status
}

#[test]
fn two_services_on_one_folder_do_not_answer_the_same_response() {
    let agent = Agent::of(&tools(), model(turns()), &[]);
    let (id, session) = agent.begin("Hi");
    let hash = agent.waits(&session, "c6");
    // The second one begins while a call waits, and nobody holds the lease.
    let second = agent.another();
    let next = json!({"model": "m", "previous_response_id": id, "input": "And?"}).to_string();
    let busy = second.post("/v1/responses", &next);
    assert_eq!(busy.status, 409, "{busy:?}");
    assert!(!has_end(&agent.events(&session)));
    // A person may answer there.
    let approve = format!("/v1/sessions/{session}/calls/c6/approve");
    let answer = second.post(&approve, &json!({"hash": hash}).to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(agent.ended(&session), "completed");
    let events = agent.events(&session);
    let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!(
        (
            count("stream_start"),
            count("response_end"),
            count("tool_use")
        ),
        (5, 1, 8)
    );
    assert_eq!(agent.folder.read("ran").lines().count(), 8);
    // And the second goes on with the session.
    let again = second.post("/v1/responses", &next);
    assert!(again.status != 409, "{again:?}");
}

#[test]
fn no_command_runs_with_a_part_of_its_arguments_when_the_service_is_killed() {
    // A pipe would hold 64 KiB of them.
    let arguments = json!({"text": "x".repeat(150_000)});
    let whole = arguments.to_string().len() + 1;
    let script = "trap '' TERM; echo >@/began; until [ -e @/go ]; do sleep 0.01; done; n=$(wc -c); echo $n >>@/ran";
    let mut reads = tool("reads", "read", script, &Value::Null);
    reads["exec"]["command"] = json!(["sh", "-c", script]);
    let turns = vec![
        Turn::default().calls("c1", "reads", &arguments),
        Turn::says("Done."),
    ];
    let agent = Agent::of(&json!([reads]), model(turns), &[]);
    agent.begin("Hi");
    wait_until("the command to begin", || {
        agent.folder.path("began").exists()
    });
    agent.service.signal(rustix::process::Signal::KILL);
    agent.folder.write("go", "");
    wait_until("the command to end", || agent.folder.processes().is_empty());
    let read = agent.folder.read("ran");
    // On a slow machine it may have been killed before it has read.
    assert!(
        read.is_empty() || read.trim_end() == whole.to_string(),
        "it has read {read} of {whole}"
    );
}
