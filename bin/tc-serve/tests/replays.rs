//! Answers that are kept: each recorded body, as every front sends it the first time and as a client
//! gets it again.

use crate::service::{JSON, Response, Service, answer, provider};
use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use testkit::places::{count, is_named_tried};
use testkit::{Body, Scratch, bodies};

/// A service with a folder of sessions, in front of a provider that answers with a recorded body.
struct Recorder {
    service: Service,
    /// What the provider answers with: the file's name and its bytes.
    recorded: Arc<Mutex<(String, Vec<u8>)>>,
    /// How often the provider was asked.
    asked: Arc<AtomicUsize>,
    _server: testkit::Server,
    _folder: Scratch,
}

impl Recorder {
    fn new(api: &str) -> Recorder {
        let recorded: Arc<Mutex<(String, Vec<u8>)>> = Arc::default();
        let asked: Arc<AtomicUsize> = Arc::default();
        let (shared, count) = (Arc::clone(&recorded), Arc::clone(&asked));
        let server = provider(move |_, _, stream| {
            count.fetch_add(1, Ordering::SeqCst);
            let (name, bytes) = shared.lock().expect("no panic").clone();
            let is_error = name.contains("error") && name.ends_with(".json");
            let status = if is_error {
                "400 Bad Request"
            } else {
                "200 OK"
            };
            let kind = match name.rsplit('.').next() {
                Some("sse") => "text/event-stream",
                Some("ndjson") => "application/x-ndjson",
                _ => "application/json",
            };
            let headers = format!("content-type: {kind}\r\n");
            // A recording has what its server sent.
            stream.without_usage();
            answer(stream, status, &headers, &bytes, None)
        });
        let folder = Scratch::new();
        let sessions = folder.path("sessions").display().to_string();
        let options = ["--api", api, "--sessions", &sessions, "--retries", "0"];
        Recorder {
            service: Service::of(&server.url, &options),
            recorded,
            asked,
            _server: server,
            _folder: folder,
        }
    }

    fn record(&self, body: &Body) {
        let bytes = std::fs::read(&body.path).expect("a body");
        *self.recorded.lock().expect("no panic") = (body.name.clone(), bytes);
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn get(&self, path: &str) -> Response {
        self.service.ask("GET", path, "", "")
    }
}

/// Runs `check` on each recorded body, each API beside the others, and returns what it counted.
fn each_body(check: impl Fn(&Recorder, &Body) -> usize + Sync) -> usize {
    let mut apis: Vec<Vec<Body>> = Vec::new();
    for body in bodies() {
        match apis.last_mut() {
            Some(last) if last[0].api == body.api => last.push(body),
            _ => apis.push(vec![body]),
        }
    }
    std::thread::scope(|scope| {
        let check = &check;
        let threads: Vec<_> = apis
            .iter()
            .map(|bodies| {
                scope.spawn(move || {
                    let recorder = Recorder::new(&bodies[0].api);
                    let counts = bodies.iter().map(|body| {
                        recorder.record(body);
                        check(&recorder, body)
                    });
                    counts.sum::<usize>()
                })
            })
            .collect();
        let counts = threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"));
        counts.sum()
    })
}

const RESPONSES: &str = "/v1/responses";

fn responses_request(is_stream: bool) -> String {
    format!(r#"{{"model":"m","input":"Hi","stream":{is_stream}}}"#)
}

/// The frames of a stream with their sequence numbers; `None` for the mark of the end.
fn frames(body: &str) -> Vec<(Option<u64>, &str)> {
    let number = |frame: &str| {
        let data = frame.lines().find_map(|line| line.strip_prefix("data: "))?;
        let data: Value = serde_json::from_str(data).ok()?;
        data["sequence_number"].as_u64()
    };
    let frames = body.split_inclusive("\n\n");
    frames.map(|frame| (number(frame), frame)).collect()
}

/// Every id of a response in a text.
fn response_ids(text: &str) -> Vec<&str> {
    let places = text.match_indices("\"resp_");
    let ids = places.map(|(at, _)| {
        let id = &text[at + 1..];
        &id[..id.find('"').expect("the end of a string")]
    });
    ids.collect()
}

#[test]
fn a_response_is_the_same_again_and_has_one_id() {
    let streams = each_body(|recorder, body| {
        let first = recorder.service.post(RESPONSES, &responses_request(true));
        let asked = recorder.asked();
        if first.status != 200 {
            return 0;
        }
        let ids = response_ids(&first.body);
        let id = *ids.first().expect("an id");
        assert!(
            ids.iter().all(|other| *other == id),
            "{}: {ids:?}",
            body.name
        );
        let again = recorder.get(&format!("{RESPONSES}/{id}?stream=true"));
        assert_eq!(again.status, 200, "{}", body.name);
        assert_eq!(again.body, first.body, "{}", body.name);
        // The object is what the last event has.
        let last = frames(&first.body).into_iter().rfind(|(n, _)| n.is_some());
        let last = last.expect("an event").1;
        let last = last.split_once("data: ").expect("data").1;
        let last: Value = serde_json::from_str(last.trim_end()).expect("JSON");
        let object = recorder.get(&format!("{RESPONSES}/{id}"));
        let object: Value = serde_json::from_str(&object.body).expect("JSON");
        let ends = [&object["status"], &last["response"]["status"]];
        match ends.map(|status| status.as_str().expect("a status")) {
            // What a stream has sent cannot be taken back, so it may fail where the whole is right.
            ["completed" | "failed", "failed"] => {}
            _ => assert_eq!(object, last["response"], "{}", body.name),
        }
        assert_eq!(recorder.asked(), asked, "{}", body.name);
        1
    });
    assert!(streams > 200, "{streams}");
}

#[test]
fn a_whole_response_is_the_same_again() {
    let mut failed = AtomicUsize::new(0);
    let wholes = each_body(|recorder, body| {
        let first = recorder.service.post(RESPONSES, &responses_request(false));
        if first.status != 200 {
            failed.fetch_add(1, Ordering::SeqCst);
            return 0;
        }
        let id = response_ids(&first.body)[0];
        let again = recorder.get(&format!("{RESPONSES}/{id}"));
        assert_eq!(
            (again.status, &again.body),
            (200, &first.body),
            "{}",
            body.name
        );
        1
    });
    assert!(wholes > 150, "{wholes}");
    assert!(*failed.get_mut() > 10, "{failed:?}");
}

#[test]
fn a_stream_goes_on_behind_every_number() {
    let places = each_body(|recorder, body| {
        let first = recorder.service.post(RESPONSES, &responses_request(true));
        if first.status != 200 {
            return 0;
        }
        let id = response_ids(&first.body)[0];
        let all = frames(&first.body);
        let last = all.iter().filter_map(|(number, _)| *number).max();
        let last = last.expect("a number");
        // The longest streams would take as long as all others together.
        for after in (0..=last).filter(|after| *after < 30 || *after + 3 > last) {
            if !is_named_tried(&format!("{} {after}", body.name), 3) {
                continue;
            }
            let want: String = all
                .iter()
                .filter(|(number, _)| number.is_none_or(|number| number > after))
                .map(|(_, frame)| *frame)
                .collect();
            let path = format!("{RESPONSES}/{id}?stream=true&starting_after={after}");
            assert_eq!(
                recorder.get(&path).body,
                want,
                "{} after {after}",
                body.name
            );
        }
        usize::try_from(last).expect("a count")
    });
    assert!(places > 1000, "{places}");
}

#[test]
fn a_request_with_the_same_idempotency_key_gets_the_same_bytes() {
    let fronts = [
        ("/v1/responses", r#""input":"Hi""#),
        (
            "/v1/chat/completions",
            r#""messages":[{"role":"user","content":"Hi"}]"#,
        ),
        (
            "/v1/messages",
            r#""max_tokens":9,"messages":[{"role":"user","content":"Hi"}]"#,
        ),
        (
            "/v1/events",
            r#""messages":[{"role":"user","content":"Hi"}]"#,
        ),
    ];
    let replays = each_body(|recorder, body| {
        let mut replays = 0;
        for (path, members) in fronts {
            for is_stream in [true, false] {
                let name = format!("{} {path} {is_stream}", body.name);
                if !is_named_tried(&name, 4) {
                    continue;
                }
                let headers = format!("{JSON}x-session-id: {name}\r\nidempotency-key: {name}\r\n");
                let request = format!(r#"{{"model":"m","stream":{is_stream},{members}}}"#);
                let ask = || recorder.service.ask("POST", path, &headers, &request);
                let before = recorder.asked();
                let first = ask();
                assert_eq!(recorder.asked(), before + 1, "{name}");
                let again = ask();
                if recorder.asked() > before + 1 {
                    // Nothing of the answer had come: who tries again wants another one.
                    let is_error = first.status >= 400
                        || (path == "/v1/events" && first.body.contains(r#""type":"error""#));
                    assert!(is_error, "{name}: {}", first.body);
                    continue;
                }
                assert_eq!(
                    (again.status, again.body),
                    (first.status, first.body),
                    "{name}"
                );
                assert_eq!(
                    again.head.contains("x-session-id"),
                    first.head.contains("x-session-id"),
                    "{name}"
                );
                replays += 1;
            }
        }
        replays
    });
    assert!(replays > count(300, 1500), "{replays}");
}

/// The deltas of a session may lack the last piece of a call, which clients get once it is whole.
#[test]
fn the_tape_of_a_session_has_each_call_that_is_whole() {
    let calls = each_body(|recorder, body| {
        let headers = format!("{JSON}x-session-id: {}\r\n", body.name);
        let request = r#"{"model":"m","messages":[{"role":"user","content":"Hi"}]}"#;
        let first = recorder
            .service
            .ask("POST", "/v1/events", &headers, request);
        let Some(session) = first.header("x-session-id") else {
            return 0;
        };
        let log = recorder.get(&format!("/v1/sessions/{}/events", session.trim()));
        let tape = api::tape::Tape::read(&log.body).expect("a log");
        let reads = tape.exchanges.iter().flat_map(|exchange| &exchange.reads);
        let played: Vec<Value> = reads
            .map(|read| serde_json::from_slice(&read.bytes).expect("an event"))
            .collect();
        let events = testkit::events(&log.body).into_iter();
        let calls = events.filter(|event| event["type"] == "tool_call" && event["error"].is_null());
        let mut count = 0;
        for call in calls {
            let of_call = |event: &&Value| {
                event["type"] == "tool_call_delta"
                    && ["tool_id", "choice"].map(|name| &event[name])
                        == ["tool_id", "choice"].map(|name| &call[name])
            };
            let pieces = played.iter().filter(of_call);
            let pieces: String = pieces
                .filter_map(|event| event["arguments"].as_str())
                .collect();
            // Arguments that are not a JSON object come back unchanged; no arguments are an empty object.
            let whole = match pieces.as_str() {
                "" => Ok(Value::Object(serde_json::Map::new())),
                pieces => serde_json::from_str(pieces),
            };
            match whole {
                Ok(arguments) if !arguments.is_object() => {}
                arguments => {
                    let arguments = arguments.ok();
                    let want = Some(&call["arguments"]);
                    assert_eq!(arguments.as_ref(), want, "{}: {pieces}", body.name);
                }
            }
            count += 1;
        }
        count
    });
    assert!(calls > 100, "{calls}");
}
