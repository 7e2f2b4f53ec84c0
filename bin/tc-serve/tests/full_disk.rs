//! A disk that is full at any byte of a session: the client gets an error, and nothing that it was
//! sent is lost.

mod service;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};
use service::{JSON, Service, provider, streamed};
use std::io::Write;
use std::path::{Path, PathBuf};
use testkit::Scratch;

/// Lets no file of the service become longer than this.
fn limit(service: &Service, bytes: Option<u64>) {
    let process = Pid::from_raw(service.id().cast_signed()).expect("a process");
    let limit = Rlimit {
        current: bytes,
        maximum: None,
    };
    prlimit(Some(process), Resource::Fsize, limit).expect("a limit");
}

fn sessions(folder: &Path) -> Vec<PathBuf> {
    let folders = testkit::folders(folder).into_iter();
    let files = folders.flat_map(|(_, folder)| std::fs::read_dir(folder).expect("a folder"));
    files.map(|file| file.expect("a file").path()).collect()
}

/// The texts of the deltas that a client has.
fn texts(body: &str) -> Vec<String> {
    let data = body.lines().filter_map(|line| line.strip_prefix("data: "));
    let events = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    let deltas = events.filter(|event| event["type"] == "response.output_text.delta");
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
    let options = ["--sessions", &path.display().to_string(), "--retries", "0"];
    let service = Service::of_limited(&upstream.url, &options);
    let ask = |body: Value| service.ask("POST", "/v1/responses", JSON, &body.to_string());
    let first = json!({"model": "m", "input": "Hi", "stream": true});
    let whole = ask(first.clone());
    assert_eq!(texts(&whole.body), ["Hello"]);
    let file = sessions(&path).remove(0);
    let length = std::fs::metadata(&file).expect("a file").len();
    std::fs::remove_file(file).expect("a file");
    let mut cut = 0;
    // Times in a session make it some bytes longer or shorter.
    for bytes in (0..length + 40).step_by(17) {
        limit(&service, Some(bytes));
        let response = ask(first.clone());
        limit(&service, None);
        let files = sessions(&path);
        let Some(file) = files.first() else {
            // The first lines did not fit, and nothing is left of them.
            assert_eq!(response.status, 507, "{bytes}: {response:?}");
            continue;
        };
        let session = std::fs::read_to_string(file).expect("a session");
        assert!(session.ends_with('\n'), "{bytes}: {session}");
        let events = testkit::events(&session);
        for text in texts(&response.body) {
            let kept = events.iter().any(|event| event["text"] == text.as_str());
            assert!(kept, "{bytes}: {text} is not in {session}");
        }
        let id = events[1]["id"].as_str().expect("an id");
        let has_ended = events.iter().any(|event| event["type"] == "response_end");
        let is_whole = response.body.contains("response.completed");
        assert!(has_ended || !is_whole, "{bytes}: {session}");
        if !is_whole {
            cut += 1;
            let says = response.body.contains("session_not_written")
                || response.body.contains("the session cannot be written");
            assert!(says, "{bytes}: {response:?}");
        }
        // Once there is room the answer has an end, and the session goes on.
        let object = service.ask("GET", &format!("/v1/responses/resp_{id}"), "", "");
        let object: Value = serde_json::from_str(&object.body).expect("JSON");
        // Only the line behind a whole answer may be missing.
        let is_whole = events.iter().any(|event| event["type"] == "stream_end");
        let status = if is_whole { "completed" } else { "failed" };
        assert_eq!(object["status"], status, "{bytes}: {session}");
        let next =
            json!({"model": "m", "input": "On", "previous_response_id": format!("resp_{id}")});
        assert_eq!(ask(next).status, 200, "{bytes}");
        assert_eq!(sessions(&path).len(), 1);
        std::fs::remove_file(file).expect("a file");
    }
    assert!(cut > 20, "{cut}");
}
