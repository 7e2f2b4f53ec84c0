//! A disk that is full at any byte of a session: the client gets an error, and nothing that it was
//! sent is lost.

use crate::service::agent::{Agent, TextCalls, Turn, tool, waiting};
use crate::service::{Client, JSON, Response, Service, provider, streamed};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use testkit::Scratch;
use testkit::places::{is_full, is_tried};

fn sessions(folder: &Path) -> Vec<PathBuf> {
    let folders = testkit::folders(folder).into_iter();
    let files = folders.flat_map(|(_, folder)| std::fs::read_dir(folder).expect("a folder"));
    files.map(|file| file.expect("a file").path()).collect()
}

/// A front that keeps its answers.
struct KeptFront {
    path: &'static str,
    /// The type of its events with text.
    text: &'static str,
    /// What the last event of a whole answer says.
    end: &'static str,
}

const FRONTS: [KeptFront; 3] = [
    KeptFront {
        path: "/v1/responses",
        text: "response.output_text.delta",
        end: "\"type\":\"response.completed\"",
    },
    KeptFront {
        path: "/api/chat",
        text: "text-delta",
        end: "\"finishReason\":\"stop\"",
    },
    KeptFront {
        path: "/api/ag-ui",
        text: "TEXT_MESSAGE_CONTENT",
        end: "\"type\":\"RUN_FINISHED\"",
    },
];

impl KeptFront {
    /// The body of a request with this question.
    fn body(&self, question: &str) -> Value {
        let parts = json!([{"type": "text", "text": question}]);
        let message = json!({"id": "u", "role": "user", "content": question, "parts": parts});
        match self.path {
            "/v1/responses" => json!({"model": "m", "input": question, "stream": true}),
            "/api/chat" => json!({"model": "m", "id": "a", "messages": [message]}),
            _ => json!({"threadId": "a", "runId": "r", "tools": [], "context": [],
                "forwardedProps": {"model": "m"}, "messages": [message]}),
        }
    }
}

/// The texts of the deltas that a client has.
fn texts(body: &str) -> Vec<String> {
    let data = body.lines().filter_map(|line| line.strip_prefix("data: "));
    let events = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    let is_text = |event: &Value| FRONTS.iter().any(|front| event["type"] == front.text);
    let deltas = events.filter(is_text);
    deltas
        .map(|event| event["delta"].as_str().expect("text").to_owned())
        .collect()
}

#[test]
fn a_full_disk_is_an_error_and_loses_nothing_that_was_sent() {
    let upstream = provider(|_, _, stream| {
        let _ = stream.write_all(&streamed("Hello"));
        false
    });
    let folder = Scratch::new();
    let path = folder.path("sessions");
    let sessions_folder = path.display().to_string();
    let service = Service::limited(&[
        "--base-url",
        &upstream.url,
        "--sessions",
        &sessions_folder,
        "--retries",
        "0",
    ]);
    for front in FRONTS {
        fills_at_any_byte(&service, &path, &front);
    }
}

/// Asks `front` on a disk that is full at any byte of its session, and then with room.
fn fills_at_any_byte(service: &Service, folder: &Path, front: &KeptFront) {
    let first = front.body("Hi").to_string();
    let whole = service.post(front.path, &first);
    assert_eq!(texts(&whole.body), ["Hello"], "{}: {whole:?}", front.path);
    assert!(whole.body.contains(front.end), "{}: {whole:?}", front.path);
    let file = sessions(folder).remove(0);
    let length = std::fs::metadata(&file).expect("a file").len();
    std::fs::remove_file(file).expect("a file");
    let mut cut = 0;
    // Times in a session make it some bytes longer or shorter.
    for bytes in (0..length + 40).step_by(17) {
        let what = format!("{} at {bytes}", front.path);
        service.limit(Some(bytes));
        let response = service.post(front.path, &first);
        service.limit(None);
        let files = sessions(folder);
        let Some(file) = files.first() else {
            // The first lines did not fit, and nothing is left of them.
            assert_eq!(response.status, 507, "{what}: {response:?}");
            continue;
        };
        let session = std::fs::read_to_string(file).expect("a session");
        assert!(session.ends_with('\n'), "{what}: {session}");
        let events = testkit::events(&session);
        for text in texts(&response.body) {
            let kept = events.iter().any(|event| event["text"] == text.as_str());
            assert!(kept, "{what}: {text} is not in {session}");
        }
        let id = events[1]["id"].as_str().expect("an id");
        let has_ended = events.iter().any(|event| event["type"] == "response_end");
        let is_whole = response.body.contains(front.end);
        assert!(has_ended || !is_whole, "{what}: {session}");
        if !is_whole {
            cut += 1;
            let says = response.body.contains("session_not_written")
                || response.body.contains("the session cannot be written");
            assert!(says, "{what}: {response:?}");
        }
        // Once there is room the answer has an end, and the session goes on.
        let object = service.ask("GET", &format!("/v1/responses/resp_{id}"), "", "");
        let object: Value = serde_json::from_str(&object.body).expect("JSON");
        // Only the line behind a whole answer may be missing.
        let is_whole = events.iter().any(|event| event["type"] == "stream_end");
        let status = if is_whole { "completed" } else { "failed" };
        assert_eq!(object["status"], status, "{what}: {session}");
        let next =
            json!({"model": "m", "input": "On", "previous_response_id": format!("resp_{id}")});
        let next = service.post("/v1/responses", &next.to_string());
        assert_eq!(next.status, 200, "{what}: {next:?}");
        assert_eq!(sessions(folder).len(), 1);
        std::fs::remove_file(file).expect("a file");
    }
    assert!(cut > 20, "{}: {cut}", front.path);
}

/// A tool that leaves a line with its name and its argument.
fn leaves(name: &str, class: &str) -> Value {
    let script = format!("echo \"{name} $1\" >>@/ran; echo \"{name} $1 is done\"");
    tool(name, class, &script, &Value::Null)
}

/// A service whose tools leave a line each, and whose model calls them in three turns.
fn agent() -> Agent {
    let tools = [
        leaves("look", "read"),
        leaves("put", "write"),
        leaves("remove", "danger"),
    ];
    let turns = vec![
        Turn::default()
            .thinks("A lake.")
            .then_says("Let me see.")
            .calls_text("c1", "look", "a"),
        Turn::says("Now.")
            .calls_text("c2", "put", "b")
            .calls_text("c3", "put", "c"),
        Turn::says("And then.").calls_text("c4", "remove", "d"),
        Turn::says("All is done."),
        Turn::says("Yes."),
    ];
    Agent::new(&tools, turns, &["--retries", "0"])
}

/// What the calls leave, by their ids.
const CALLS: [(&str, &str); 4] = [
    ("c1", "look a"),
    ("c2", "put b"),
    ("c3", "put c"),
    ("c4", "remove d"),
];

/// A client that has asked, while a person lets every call run that waits.
struct Asked {
    response: Response,
    /// Follows the session from its first byte on.
    follower: Option<Client>,
    /// Whether an answer of the person could not be written, and room was made.
    made_room: bool,
}

impl Asked {
    fn new(agent: &Agent, body: &Value) -> Asked {
        let body = body.to_string();
        let mut client = agent.service.send("POST", "/v1/responses", JSON, &body);
        let answer = std::thread::spawn(move || client.rest());
        let (mut follower, mut made_room) = (None, false);
        testkit::wait_until("the end of the answer", || {
            let is_over = answer.is_finished();
            for session in agent.sessions() {
                if follower.is_none() {
                    let path = format!("/v1/sessions/{session}/events?live=ndjson");
                    follower = Some(agent.service.send("GET", &path, "", ""));
                }
                if !is_over && decide(agent, &session) {
                    agent.service.limit(None);
                    made_room = true;
                }
            }
            is_over
        });
        Asked {
            response: answer.join().expect("no panic"),
            follower,
            made_room,
        }
    }
}

/// Answers the calls that wait: one that has started gets a result. Returns whether an answer could
/// not be written.
fn decide(agent: &Agent, session: &str) -> bool {
    let mut is_refused = false;
    for call in waiting(&agent.events(session)) {
        let verb = if call.has_started {
            "answer"
        } else {
            "approve"
        };
        let body = json!({"hash": call.hash, "result": "it has run"});
        let (status, answer) = agent.answers(session, &call.id, verb, &body);
        // What was answered before may be carried out now, or wait for another answer.
        is_refused |= answer["error"]["code"] == "session_busy";
        assert!([200, 404, 409].contains(&status), "{status} {answer}");
    }
    is_refused
}

/// How often each call ran.
fn ran(agent: &Agent) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    for line in agent.folder.read("ran").lines() {
        *all.entry(line.to_owned()).or_default() += 1;
    }
    all
}

#[test]
fn a_full_disk_in_a_loop_over_tools_is_an_error_and_runs_no_call_twice() {
    let mut agent = agent();
    let whole = Asked::new(
        &agent,
        &json!({"model": "m", "input": "Hi", "stream": true}),
    );
    assert!(whole.response.body.contains("All is done."));
    let lines = std::fs::read_to_string(agent.file(&agent.sessions()[0])).expect("a session");
    let (mut end, mut cuts, mut rooms) = (0, BTreeSet::new(), 0);
    let mut tried = 0;
    for (number, line) in lines.lines().enumerate() {
        let middle = end + line.len() as u64 / 2;
        end += line.len() as u64 + 1;
        if !is_tried(number, 3) {
            continue;
        }
        tried += 1;
        match full_at(&mut agent, middle) {
            FullDisk::Cut(lines) => _ = cuts.insert(lines),
            FullDisk::MadeRoom => rooms += 1,
            FullDisk::Nothing | FullDisk::Enough => {}
        }
    }
    // Beyond the lines of the request, most of the limits cut another line; where all are tried, one
    // is met by the answer of the person alone.
    assert!(cuts.len() > tried / 2, "{cuts:?} of {tried}");
    assert!(rooms > 0 || !is_full(), "{cuts:?} {rooms}");
}

/// How a session met its limit.
enum FullDisk {
    /// Nothing of it was written.
    Nothing,
    /// It has this number of lines.
    Cut(usize),
    /// A person made room.
    MadeRoom,
    /// It was short enough.
    Enough,
}

/// One session on a disk that is full at this byte. It goes on once there is room.
fn full_at(agent: &mut Agent, bytes: u64) -> FullDisk {
    for session in agent.sessions() {
        std::fs::remove_file(agent.file(&session)).expect("a file");
    }
    agent.folder.write("ran", "");
    agent.service.limit(Some(bytes));
    let asked = Asked::new(agent, &json!({"model": "m", "input": "Hi", "stream": true}));
    agent.service.limit(None);
    let response = &asked.response;
    let sessions = agent.sessions();
    let Some(session) = sessions.first() else {
        // The first lines did not fit, and nothing is left of them.
        assert_eq!(response.status, 507, "{bytes}: {response:?}");
        return FullDisk::Nothing;
    };
    let text = std::fs::read_to_string(agent.file(session)).expect("a session");
    assert!(text.ends_with('\n'), "{bytes}: {text}");
    let events = testkit::events(&text);
    for text in texts(&response.body) {
        let kept = events.iter().any(|event| event["text"] == text.as_str());
        assert!(kept, "{bytes}: {text} is not in {events:?}");
    }
    let is_whole = response.body.contains("response.completed");
    let says = ["tool-exec has failed", "the session cannot be written"]
        .iter()
        .any(|says| response.body.contains(says));
    assert!(is_whole != says, "{bytes}: {response:?}");
    let started = |id: &str| {
        let mut starts = events.iter().filter(|event| event["type"] == "tool_use");
        starts.any(|event| event["tool_id"] == id)
    };
    let now = ran(agent);
    for (id, call) in CALLS {
        assert!(
            started(id) || !now.contains_key(call),
            "{bytes}: {call}\n{text}"
        );
    }
    // The service begins again.
    agent.service.signal(rustix::process::Signal::KILL);
    let next = agent.another();
    let (_, errors) = std::mem::replace(&mut agent.service, next).ended();
    assert!(!errors.contains("panicked"), "{bytes}: {errors}");
    let seen = asked.follower.map(|mut follower| follower.rest());
    let seen = seen.expect("a session was there");
    // A session that was removed again is unknown.
    let is_prefix = seen.status != 200 || text.starts_with(&seen.body);
    assert!(is_prefix, "{bytes}: {} is not in {text}", seen.body);
    go_on(agent, session, bytes);
    match (asked.made_room, is_whole) {
        (true, _) => FullDisk::MadeRoom,
        (_, true) => FullDisk::Enough,
        _ => FullDisk::Cut(events.len()),
    }
}

/// Asks the session again, which has room now.
fn go_on(agent: &Agent, session: &str, bytes: u64) {
    let id = format!(
        "resp_{}",
        agent.events(session)[1]["id"].as_str().expect("an id")
    );
    let object = agent
        .service
        .ask("GET", &format!("/v1/responses/{id}"), "", "");
    let object: Value = serde_json::from_str(&object.body).expect("JSON");
    let has_end = ["completed", "failed"].contains(&object["status"].as_str().unwrap_or_default());
    assert!(has_end, "{bytes}: {object}");
    let more = json!({"model": "m", "input": "On", "previous_response_id": id, "stream": true});
    let asked = Asked::new(agent, &more);
    let text = std::fs::read_to_string(agent.file(session)).expect("a session");
    let is_whole = asked.response.body.contains("response.completed");
    assert!(is_whole, "{bytes}: {:?}\n{text}", asked.response);
    for (call, count) in ran(agent) {
        let may_repeat = call.starts_with("look");
        assert!(
            may_repeat || count == 1,
            "{bytes}: {call} ran {count} times\n{text}"
        );
    }
}
