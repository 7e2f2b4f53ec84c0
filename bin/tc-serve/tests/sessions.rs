//! Sessions over HTTP: lists, one session, its lines as they are and as they come, and whose they
//! are.

use crate::service::{JSON, PATIENCE, Response, Service, Upstream, streamed};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use testkit::Scratch;

const ID: &str = "3fa90000000000000000000000000001";
const NDJSON: &str = "application/x-ndjson; charset=utf-8";
const SSE: &str = "accept: text/event-stream\r\n";

/// A folder of sessions, and a service that has it.
struct Sessions {
    folder: Scratch,
    service: Service,
}

impl Sessions {
    fn new(options: &[&str]) -> Sessions {
        Sessions::with(options, |_| {})
    }

    /// The same with files that are there before the service starts.
    fn with(options: &[&str], files: impl Fn(&Path)) -> Sessions {
        let folder = Scratch::new();
        let path = folder.path("s");
        private(&path);
        files(&path);
        let named = ["--sessions", path.to_str().expect("UTF-8")];
        let upstream = Upstream::always(streamed("hi"));
        let service = Service::of(&upstream, &[&named[..], options].concat());
        Sessions { folder, service }
    }

    fn path(&self) -> PathBuf {
        self.folder.path("s")
    }

    fn write(&self, id: &str, lines: &str) {
        append(&self.path(), id, lines.as_bytes());
    }

    fn get(&self, path: &str) -> Response {
        self.service.ask("GET", path, "", "")
    }

    fn json(&self, path: &str) -> serde_json::Value {
        let response = self.get(path);
        assert_eq!(response.status, 200, "{path}: {response:?}");
        serde_json::from_str(&response.body).expect("JSON")
    }
}

fn private(path: &Path) {
    let made = std::fs::DirBuilder::new()
        .mode(0o700)
        .recursive(true)
        .create(path);
    made.expect("a folder");
}

/// Appends to the file of a session as another program would.
fn append(folder: &Path, id: &str, bytes: &[u8]) -> PathBuf {
    let folder = folder.join(&id[..2]);
    private(&folder);
    let path = folder.join(format!("{id}.ndjson"));
    let mut options = OpenOptions::new();
    let mut file = options
        .append(true)
        .create(true)
        .mode(0o600)
        .open(&path)
        .expect("a file");
    file.write_all(bytes).expect("a write");
    path
}

fn head(id: &str, key: Option<&str>, created: u64) -> String {
    let key = key
        .map(|key| format!(r#""key":"{key}","#))
        .unwrap_or_default();
    format!("{{\"type\":\"session\",\"v\":1,\"id\":\"{id}\",{key}\"created\":{created}}}\n")
}

/// A session with text outside of ASCII, a call that waits, and a response that goes on.
fn lines(id: &str) -> String {
    [
        &*head(id, None, 1000),
        "{\"type\":\"response\",\"id\":\"3fa9a5\",\"front\":\"chat\",\"timestamp\":1}\n",
        "{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"Wie spät\\nist es? ⏰ é\"}}\n",
        "{\"type\":\"stream_start\",\"provider\":\"openai\"}\n",
        "{\"type\":\"content_delta\",\"text\":\"naïve\"}\n",
        "{\"type\":\"tool_call\",\"index\":0,\"tool_id\":\"c1\",\"tool_name\":\"clock\",\"arguments\":{\"zone\":\"Rome\"},\"commit\":\"sealed\"}\n",
        "{\"type\":\"stream_end\",\"finish_reason\":\"tool_calls\"}\n",
        "{\"type\":\"tool_result\",\"tool_id\":\"c1\",\"tool_name\":\"clock\",\"status\":\"pending\",\"output\":\"asks\",\"output_summary\":\"asks\",\"output_bytes\":0,\"truncated\":false,\"cached\":false,\"hash\":\"abc\"}\n",
    ]
    .concat()
}

/// The events of a stream: the id and the data of each.
fn events(text: &str) -> Vec<(Option<u64>, String)> {
    let whole = text.rfind("\n\n").map_or("", |end| &text[..end]);
    let mut events = Vec::new();
    let is_event = |event: &&str| !event.is_empty() && !event.starts_with(':');
    for event in whole.split("\n\n").filter(is_event) {
        let field = |name: &str| -> Vec<&str> {
            event
                .lines()
                .filter_map(|line| line.strip_prefix(name))
                .collect()
        };
        let id = field("id: ")
            .first()
            .map(|id| id.parse().expect("a number"));
        events.push((id, field("data:").join("\n")));
    }
    events
}

#[test]
fn what_is_there_is_sent_from_any_byte_on() {
    let sessions = Sessions::new(&[]);
    let text = lines(ID);
    sessions.write(ID, &text);
    // A line that is being written is not sent.
    sessions.write(ID, "{\"type\":\"content_d");
    let path = format!("/v1/sessions/{ID}/events");
    let whole = sessions.get(&path);
    assert_eq!(
        (whole.status, &*whole.body, whole.header("content-type")),
        (200, &*text, Some(NDJSON))
    );
    let end = format!("{:020}", text.len());
    assert_eq!(whole.header("stream-next-offset"), Some(&*end));
    assert_eq!(whole.header("stream-up-to-date"), Some("true"));
    assert_eq!(
        whole.header("content-length"),
        Some(&*text.len().to_string())
    );
    assert!(whole.header("stream-closed").is_none());
    for at in ["-1", "0", &"0".repeat(20)] {
        assert_eq!(sessions.get(&format!("{path}?offset={at}")).body, text);
    }
    let now = sessions.get(&format!("{path}?offset=now"));
    assert_eq!(
        (now.status, &*now.body, now.header("stream-next-offset")),
        (200, "", Some(&*end))
    );
    assert!(now.header("etag").is_none());
    assert_eq!(now.header("cache-control"), Some("no-store"));
    let head = sessions.service.ask("HEAD", &path, "", "");
    assert_eq!(
        (head.status, &*head.body, head.header("stream-next-offset")),
        (200, "", Some(&*end))
    );
    let tag = whole.header("etag").expect("a tag").to_owned();
    let known = format!("if-none-match: \"x\", {tag}\r\n");
    let same = sessions.service.ask("GET", &path, &known, "");
    assert_eq!((same.status, &*same.body), (304, ""));
    for wrong in [
        "offset=",
        "offset=x",
        "offset=1&offset=2",
        "live=x",
        "live=sse",
        "live=long-poll",
    ] {
        assert_eq!(
            sessions.get(&format!("{path}?{wrong}")).status,
            400,
            "{wrong}"
        );
    }
    let behind = sessions.get(&format!("{path}?offset={}", text.len() + 1));
    assert!(
        behind.status == 400 && behind.body.contains("offset_behind_end"),
        "{behind:?}"
    );
    sessions.write(ID, "elta\",\"text\":\"x\"}\n");
    assert_eq!(sessions.service.ask("GET", &path, &known, "").status, 200);
}

#[test]
fn a_client_that_is_cut_anywhere_goes_on_where_it_was() {
    let sessions = Sessions::new(&[]);
    let long = format!(
        "{}{{\"type\":\"x\",\"text\":\"{}\"}}\n",
        lines(ID),
        "é".repeat(300)
    );
    for text in [head(ID, None, 1), lines(ID), long] {
        let id = format!("{:032x}", text.len());
        sessions.write(&id, &text);
        let path = format!("/v1/sessions/{id}/events");
        for at in 0..=text.len() {
            let joined = [&text.as_bytes()[..at], &sent(&sessions, &path, at)].concat();
            assert!(joined == text.as_bytes(), "{at}");
        }
        let all = follow(&sessions, &path, "", text.matches('\n').count());
        assert_eq!(join(&all), text);
        for cut in 0..all.len() {
            let id = all[cut].0.expect("an id");
            let last = format!("last-event-id: {id}\r\n");
            let rest = follow(&sessions, &path, &last, all.len() - cut - 1);
            assert_eq!(join(&[&all[..=cut], &rest].concat()), text);
        }
        let ends: Vec<u64> = all.iter().filter_map(|event| event.0).collect();
        for at in 1..text.len() as u64 {
            let last = format!("{SSE}last-event-id: {at}\r\n");
            if !ends.contains(&at) {
                assert_eq!(
                    sessions.service.ask("GET", &path, &last, "").status,
                    400,
                    "{at}"
                );
            }
        }
    }
}

/// The bytes of a session from this offset on.
fn sent(sessions: &Sessions, path: &str, at: usize) -> Vec<u8> {
    let url = format!("{path}?offset={at}");
    let mut client = sessions.service.send("GET", &url, "", "");
    client.closed();
    let bytes = client.bytes();
    let end = bytes
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .expect("a head");
    bytes[end + 4..].to_vec()
}

/// As many events, from this one on.
fn follow(sessions: &Sessions, path: &str, last: &str, count: usize) -> Vec<(Option<u64>, String)> {
    let mut client = sessions
        .service
        .send("GET", path, &format!("{SSE}{last}"), "");
    let mut response = client.until("\r\n\r\n");
    assert_eq!(response.status, 200, "{response:?}");
    while events(&response.body).len() < count {
        response = client.until("\n\n");
    }
    events(&response.body)
}

fn join(events: &[(Option<u64>, String)]) -> String {
    events.iter().map(|(_, data)| format!("{data}\n")).collect()
}

#[test]
fn a_session_is_followed_while_it_grows() {
    let sessions = Sessions::new(&["--keep-alive", "50ms"]);
    let text = lines(ID);
    sessions.write(ID, &text);
    let path = format!("/v1/sessions/{ID}/events");
    let mut plain = sessions
        .service
        .send("GET", &format!("{path}?live=ndjson"), "", "");
    let mut own = sessions.service.send("GET", &path, SSE, "");
    let durable = format!("{path}?live=sse&offset=now");
    let mut durable = sessions.service.send("GET", &durable, SSE, "");
    plain.until("\"hash\":\"abc\"}\n");
    own.until("\"hash\":\"abc\"}\n\n");
    let end = text.len();
    let first = durable.until("\n\n");
    assert!(
        first.body.contains(&format!(
            "event: control\ndata:{{\"streamNextOffset\":\"{end:020}\",\"streamCursor\":\""
        )) && first.body.contains("\"upToDate\":true}"),
        "{first:?}"
    );
    own.until(": keep-alive\n\n");
    // Half of a line is not sent before the rest is there.
    for (half, rest) in [
        ("{\"type\":\"a\"", "}\n"),
        ("{\"type\":\"b\"}\n{\"ty", "pe\":\"c\"}\n"),
    ] {
        sessions.write(ID, half);
        sessions.write(ID, rest);
    }
    let added = "{\"type\":\"a\"}\n{\"type\":\"b\"}\n{\"type\":\"c\"}\n";
    let end = end + added.len();
    assert!(
        plain
            .until("\"c\"}\n")
            .body
            .ends_with(&format!("{text}{added}")[end - 200..])
    );
    let all = events(&own.until("\"c\"}\n\n").body);
    assert_eq!(all.last().map(|event| event.0), Some(Some(end as u64)));
    let control = format!("\"streamNextOffset\":\"{end:020}\"");
    let all = events(&durable.until(&control).body).into_iter();
    let data: String = all
        .map(|event| event.1)
        .filter(|data| !data.contains("Cursor"))
        .collect();
    assert_eq!(data, added);
    // Its end is the end of all that follow it.
    assert_eq!(
        sessions
            .service
            .ask("DELETE", &format!("/v1/sessions/{ID}"), "", "")
            .status,
        204
    );
    for client in [&mut plain, &mut own, &mut durable] {
        client.closed();
    }
    assert_eq!(sessions.get(&path).status, 404);
}

#[test]
fn a_poll_waits_for_the_next_lines() {
    let sessions = Sessions::new(&["--poll-time", "100ms"]);
    sessions.write(ID, &lines(ID));
    let path = format!("/v1/sessions/{ID}/events?live=long-poll&offset=");
    let there = sessions.get(&format!("{path}-1"));
    assert_eq!((there.status, &*there.body), (200, &*lines(ID)));
    let cursor = there.header("stream-cursor").expect("a cursor").to_owned();
    let none = sessions.get(&format!("{path}now&cursor={cursor}"));
    assert_eq!(
        (none.status, none.header("stream-up-to-date")),
        (204, Some("true"))
    );
    assert_eq!(
        none.header("stream-next-offset"),
        there.header("stream-next-offset")
    );
    let next = none.header("stream-cursor").expect("a cursor");
    assert!(next.parse::<u64>().expect("a number") > cursor.parse().expect("a number"));
    let stream = format!("/v1/sessions/{ID}/events?live=sse&offset=now");
    sessions.service.send("GET", &stream, "", "").closed();
    drop(sessions);

    let sessions = Sessions::new(&["--poll-time", "1h"]);
    sessions.write(ID, &lines(ID));
    let mut poll = sessions.service.send("GET", &format!("{path}now"), "", "");
    // The service has read the request before this one, and waits.
    let mut other = sessions.service.send(
        "GET",
        &format!("/v1/sessions/{ID}/events?live=sse&offset=now"),
        "",
        "",
    );
    other.until("upToDate");
    sessions.write(ID, "{\"type\":\"more\"}\n");
    let came = poll.rest();
    assert_eq!((came.status, &*came.body), (200, "{\"type\":\"more\"}\n"));
}

#[test]
fn sessions_are_listed_the_newest_first() {
    let sessions = Sessions::new(&[]);
    assert_eq!(sessions.json("/v1/sessions")["data"], serde_json::json!([]));
    let id = |n: u64| format!("{:032x}", n * 0x0123_4567_89ab_cdef_u64);
    for n in 0..25 {
        sessions.write(&id(n), &head(&id(n), None, n));
    }
    sessions.write(ID, &lines(ID));
    let listed = sessions.json("/v1/sessions?limit=1");
    let session = &listed["data"][0];
    assert_eq!(
        *session,
        serde_json::json!({
            "id": ID, "object": "session", "created": 1000, "modified": session["modified"],
            "bytes": lines(ID).len(), "title": "Wie spät",
            "active_response_id": null, "interrupted_response_id": "3fa9a5",
            "pending": [{"tool_id": "c1", "tool_name": "clock", "arguments": {"zone": "Rome"}, "hash": "abc", "why": "asks"}],
        })
    );
    let since = SystemTime::UNIX_EPOCH
        .elapsed()
        .expect("a time")
        .as_millis() as u64;
    assert!(
        session["modified"]
            .as_u64()
            .is_some_and(|modified| since - modified < 600_000)
    );
    assert_eq!(
        (&listed["has_more"], &listed["last_id"]),
        (&true.into(), &ID.into())
    );
    // Whatever becomes of the index, the list is that of the folder.
    let index = sessions.path().join("index.ndjson");
    let whole = std::fs::read(&index).expect("an index");
    let wrong = String::from_utf8_lossy(&whole).replace("\"created\":5}", "\"created\":7777}");
    let torn = &whole[..whole.len() / 2];
    for bytes in [&whole[..], b"", torn, b"\xff\n", wrong.as_bytes()] {
        std::fs::write(&index, bytes).expect("a write");
        let mut all = Vec::new();
        let mut after = String::new();
        loop {
            let page = sessions.json(&format!("/v1/sessions?limit=7{after}"));
            let ids = page["data"].as_array().expect("a list").iter();
            all.extend(ids.map(|session| session["id"].as_str().expect("an id").to_owned()));
            if page["has_more"] == false {
                break;
            }
            after = format!("&after={}", page["last_id"].as_str().expect("an id"));
        }
        let newest = (0..25).rev().map(id);
        let expected: Vec<String> = std::iter::once(ID.to_owned()).chain(newest).collect();
        assert_eq!(all, expected);
    }
    for wrong in ["limit=0", "limit=101", "limit=x"] {
        assert_eq!(sessions.get(&format!("/v1/sessions?{wrong}")).status, 400);
    }
    for wrong in ["x", &"f".repeat(32)] {
        assert_eq!(
            sessions.get(&format!("/v1/sessions?after={wrong}")).status,
            404
        );
    }
}

#[test]
fn one_session_has_its_responses_and_messages_or_reads_as_text() {
    let sessions = Sessions::new(&[]);
    sessions.write(ID, &lines(ID));
    let path = format!("/v1/sessions/{ID}");
    let session = sessions.json(&path);
    assert_eq!(session["messages"][0]["content"], "Wie spät\nist es? ⏰ é");
    assert_eq!(session["responses"][0]["status"], "in_progress");
    assert_eq!(
        session["responses"][0]["offset"],
        head(ID, None, 1000).len()
    );
    let text = sessions.get(&format!("{path}?format=text"));
    assert!(
        text.body.contains("naïve") && text.body.contains("clock"),
        "{text:?}"
    );
    assert_eq!(
        text.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    let refused = sessions.get(&format!("{path}?format=x"));
    assert!(
        refused.status == 400 && refused.body.contains("json, text, html or markdown"),
        "{refused:?}"
    );
    let refused = sessions.service.ask("POST", &path, JSON, "{}");
    assert_eq!(
        (refused.status, refused.header("allow")),
        (405, Some("get, head, delete"))
    );
    assert_eq!(sessions.service.ask("DELETE", &path, "", "").status, 204);
    assert_eq!(sessions.service.ask("DELETE", &path, "", "").status, 404);
    assert_eq!(sessions.get(&path).status, 404);
}

#[test]
fn a_session_that_is_written_is_not_removed() {
    let sessions = Sessions::new(&[]);
    sessions.write(ID, &lines(ID));
    let file = File::open(sessions.path().join(format!("3f/{ID}.ndjson"))).expect("a file");
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).expect("a lock");
    let path = format!("/v1/sessions/{ID}");
    let refused = sessions.service.ask("DELETE", &path, "", "");
    assert!(
        refused.status == 409 && refused.body.contains("session_busy"),
        "{refused:?}"
    );
    drop(file);
    assert_eq!(sessions.service.ask("DELETE", &path, "", "").status, 204);
}

#[test]
fn all_sessions_of_a_key_are_followed_on_one_stream() {
    let sessions = Sessions::new(&["--keep-alive", "50ms"]);
    sessions.write(ID, &lines(ID));
    let mut plain = sessions.service.send("GET", "/v1/sessions/events", "", "");
    let mut sse = sessions.service.send("GET", "/v1/sessions/events", SSE, "");
    // Both have begun, and nothing of what was there is sent.
    assert_eq!(plain.until("\n\r\n").body.trim(), "");
    assert_eq!(sse.until(": keep-alive\n\n").body.trim(), ": keep-alive");
    let line = "{\"type\":\"cancel\",\"by\":\"é\"}\n";
    sessions.write(ID, line);
    let end = lines(ID).len() + line.len();
    let sent = format!(
        "{{\"session\":\"{ID}\",\"offset\":{end},\"event\":{}}}",
        line.trim()
    );
    plain.until(&format!("{sent}\n"));
    sse.until(&format!("data:{sent}\n\n"));
    // A new one, in a folder of its own; what is no event is left out.
    let other = "3fb".to_owned() + &"0".repeat(29);
    let first = head(&other, None, 2000);
    sessions.write(&other, &format!("{first}nonsense\n{line}"));
    let end = first.len() + "nonsense\n".len() + line.len();
    plain.until(&format!(
        "{{\"session\":\"{other}\",\"offset\":{},\"event\":{}}}\n",
        first.len(),
        first.trim()
    ));
    plain.until(&format!(
        "{{\"session\":\"{other}\",\"offset\":{end},\"event\":{}}}\n",
        line.trim()
    ));
    assert_eq!(
        sessions
            .service
            .ask("DELETE", &format!("/v1/sessions/{other}"), "", "")
            .status,
        204
    );
    sse.until(&format!(
        "data:{{\"session\":\"{other}\",\"removed\":true}}\n\n"
    ));
    assert!(!plain.text().contains("nonsense"));
}

const KEYS: [&str; 2] = ["first-key-0123456789", "second-key-0123456789"];

/// The hash by which a session knows its key.
fn hash(key: &str) -> String {
    use sha2::{Digest as _, Sha256};
    Sha256::digest(key)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn bearer(key: &str) -> String {
    format!("authorization: Bearer {key}\r\n")
}

/// A service with two keys; the first has one session.
fn with_keys(options: &[&str]) -> Sessions {
    let file = Scratch::new();
    let keys = file.path("keys");
    std::fs::write(&keys, KEYS.join("\n")).expect("a file");
    let named = ["--key-file", keys.to_str().expect("UTF-8")];
    let sessions = Sessions::new(&[&named[..], options].concat());
    let text = lines(ID).replace(&head(ID, None, 1000), &head(ID, Some(&hash(KEYS[0])), 1000));
    sessions.write(ID, &text);
    sessions
}

/// A response without what differs between two requests.
fn without_ids(response: &Response) -> String {
    let lines = response.head.lines();
    let lines = lines.filter(|line| !line.contains("request-id") && !line.starts_with("date"));
    format!(
        "{}\n{}",
        lines.collect::<Vec<_>>().join("\n"),
        response.body
    )
}

#[test]
fn the_session_of_another_key_is_one_that_does_not_exist() {
    let sessions = with_keys(&[]);
    let other = ID.replace('1', "2");
    for (method, tail) in [
        ("GET", ""),
        ("HEAD", ""),
        ("GET", "?format=text"),
        ("GET", "?format=nonsense"),
        ("DELETE", ""),
        ("POST", ""),
        ("GET", "/events"),
        ("GET", "/events?offset=now"),
        ("GET", "/events?offset=99999999"),
        ("GET", "/events?offset=nonsense"),
        ("GET", "/events?live=sse&offset=-1"),
        ("GET", "/events?live=long-poll&offset=-1"),
        ("GET", "/events?live=ndjson"),
        ("HEAD", "/events"),
        ("GET", "?after"),
    ] {
        let ask = |id: &str, key: &str| {
            let path = format!("/v1/sessions/{id}{tail}");
            sessions.service.ask(method, &path, &bearer(key), "")
        };
        let (foreign, none) = (ask(ID, KEYS[1]), ask(&other, KEYS[1]));
        assert_eq!(without_ids(&foreign), without_ids(&none), "{method} {tail}");
        assert_eq!(without_ids(&none), without_ids(&ask(&other, KEYS[0])));
    }
    let list = |key: &str| {
        sessions
            .service
            .ask("GET", "/v1/sessions", &bearer(key), "")
            .body
    };
    assert!(list(KEYS[0]).contains(ID) && !list(KEYS[1]).contains(ID));
    let page = format!("/v1/sessions?after={ID}");
    assert_eq!(
        sessions
            .service
            .ask("GET", &page, &bearer(KEYS[1]), "")
            .status,
        404
    );
    assert_eq!(
        sessions
            .service
            .ask("GET", &page, &bearer(KEYS[0]), "")
            .status,
        200
    );
    assert_eq!(sessions.get("/v1/sessions").status, 401);
    // The stream of all sessions has only those of its key.
    let mut all = sessions
        .service
        .send("GET", "/v1/sessions/events", &bearer(KEYS[1]), "");
    all.until("\r\n\r\n");
    let own = head(&other, Some(&hash(KEYS[1])), 3000);
    sessions.write(ID, "{\"type\":\"foreign\"}\n");
    sessions.write(&other, &own);
    all.until(own.trim());
    assert!(!all.text().contains("foreign"));
}

#[test]
fn an_id_is_32_digits_and_nothing_else() {
    let sessions = Sessions::new(&[]);
    sessions.write(ID, &lines(ID));
    let upper = ID.to_uppercase();
    let long = format!("{ID}0");
    let missing = sessions.get(&format!("/v1/sessions/{}", "0".repeat(32)));
    for id in [
        "..",
        "%2e%2e",
        "..%2f..%2fetc%2fpasswd",
        "%00",
        &format!("{ID}%00"),
        &upper,
        &long,
        &ID[1..],
        "index",
        "index.ndjson",
        "3f",
        &format!("3f%2f{ID}"),
        &format!("{ID}.ndjson"),
        "*",
        "-1",
    ] {
        for tail in ["", "/events"] {
            let response = sessions.get(&format!("/v1/sessions/{id}{tail}"));
            assert_eq!(without_ids(&response), without_ids(&missing), "{id}{tail}");
        }
    }
    for path in [
        format!("/v1/sessions/3f/{ID}"),
        format!("/v1/sessions/../sessions/{ID}"),
    ] {
        assert_eq!(sessions.get(&path).status, 404, "{path}");
    }
}

#[test]
fn what_is_no_session_is_not_read() {
    let secret = Scratch::new();
    let target = secret.path("secret");
    let id = |n: u32| format!("3f{n:030x}");
    let whole = head(&id(1), None, 1) + "{\"type\":\"secret\"}\n";
    std::fs::write(&target, &whole).expect("a file");
    let sessions = Sessions::with(&[], |path| {
        let folder = path.join("3f");
        private(&folder);
        let name = |n: u32| folder.join(format!("{}.ndjson", id(n)));
        symlink(&target, name(1)).expect("a link");
        std::fs::create_dir(name(2)).expect("a folder");
        rustix::fs::mkfifoat(rustix::fs::CWD, name(3), 0o600.into()).expect("a pipe");
        // Others could have written it.
        let open = append(path, &id(4), head(&id(4), None, 1).as_bytes());
        std::fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o622))
            .expect("a mode");
        // Without a first line that says whose it is.
        append(path, &id(5), b"");
        append(path, &id(6), b"\xff\xfe\n{\"type\":\"session\"}\n");
        append(path, &id(7), b"{\"type\":\"sess");
        append(
            path,
            &id(8),
            b"{\"type\":\"content_delta\",\"text\":\"secret\"}\n",
        );
        append(path, &id(9), "secret".repeat(2_000_000).as_bytes());
        symlink(&target, path.join("index.ndjson")).expect("a link");
    });
    // A folder that is a link is one of the start; later it is a folder that is missing.
    std::fs::write(secret.path(&format!("4f{}.ndjson", &id(1)[2..])), &whole).expect("a file");
    symlink(secret.path(""), sessions.path().join("4f")).expect("a link");
    let missing = sessions.get(&format!("/v1/sessions/{}", id(100)));
    let linked = sessions.get(&format!("/v1/sessions/4f{}", &id(1)[2..]));
    assert_eq!(without_ids(&linked), without_ids(&missing));
    for n in 1..=9 {
        for tail in ["", "/events", "/events?live=long-poll&offset=now"] {
            let response = sessions.get(&format!("/v1/sessions/{}{tail}", id(n)));
            assert_eq!(without_ids(&response), without_ids(&missing), "{n} {tail}");
        }
    }
    assert_eq!(sessions.json("/v1/sessions")["data"], serde_json::json!([]));
    assert_eq!(std::fs::read(&target).expect("a file"), whole.as_bytes());
    // A session whose other lines are nonsense is one.
    let bad = id(10);
    let long = "x".repeat(10 << 20);
    let text = head(&bad, None, 1);
    sessions.write(&bad, &text);
    for nonsense in [
        &b"\xff\xfe{\n"[..],
        b"null\n\n\r\n[1]\n",
        b"{\"type\":5}\n",
        b"{\"type\":\"tool_result\"}\n",
    ] {
        append(&sessions.path(), &bad, nonsense);
    }
    let all = follow(&sessions, &format!("/v1/sessions/{bad}/events"), "", 8);
    assert_eq!(all.len(), 8);
    append(
        &sessions.path(),
        &bad,
        format!(
            "{{\"type\":\"message\",\"message\":{{\"role\":\"user\",\"content\":\"{long}\"}}}}\n"
        )
        .as_bytes(),
    );
    append(&sessions.path(), &bad, b"{\"type\":\"response\",\"id\":");
    let path = format!("/v1/sessions/{bad}");
    let events = sessions.get(&format!("{path}/events"));
    assert_eq!(events.status, 200);
    assert!(events.body.len() > 10 << 20 && events.body.ends_with("\"}}\n"));
    let listed = sessions.json("/v1/sessions");
    assert_eq!(listed["data"][0]["title"].as_str().map(str::len), Some(200));
    assert_eq!(sessions.json(&path)["responses"], serde_json::json!([]));
    assert_eq!(sessions.get(&format!("{path}?format=text")).status, 200);
}

#[test]
fn a_session_is_a_report_too() {
    let sessions = Sessions::new(&[]);
    sessions.write(ID, &lines(ID));
    let path = format!("/v1/sessions/{ID}");
    let page = sessions.get(&format!("{path}?format=html"));
    assert_eq!((page.status, page.header("content-length")), (200, None));
    assert!(
        page.body.starts_with("<!DOCTYPE html>") && page.body.ends_with("</html>\n"),
        "{page:?}"
    );
    assert!(page.body.contains("<h1>Wie spät</h1>"), "{}", page.body);
    let header = |name: &str| page.header(name).unwrap_or_default().to_owned();
    assert_eq!(header("content-type"), "text/html; charset=utf-8");
    assert_eq!(header("x-content-type-options"), "nosniff");
    assert_eq!(header("cache-control"), "no-store");
    let policy = header("content-security-policy");
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-")
            && policy.ends_with("frame-ancestors 'none'; sandbox"),
        "{policy}"
    );
    let report = sessions.get(&format!("{path}?format=markdown"));
    assert_eq!(
        (report.status, report.header("content-type")),
        (200, Some("text/markdown; charset=utf-8"))
    );
    assert!(report.body.contains("> Wie spät\n> ist es?"), "{report:?}");
    let head = sessions
        .service
        .ask("HEAD", &format!("{path}?format=html"), "", "");
    assert_eq!((head.status, &*head.body), (200, ""));
}

#[test]
fn followers_of_a_key_have_a_limit() {
    let sessions = with_keys(&["--max-followers", "2"]);
    let path = format!("/v1/sessions/{ID}/events?live=sse&offset=-1");
    let follow = |path: &str, key: &str| {
        let mut client = sessions.service.send("GET", path, &bearer(key), "");
        let status = client.until("\r\n\r\n").status;
        (status, client)
    };
    let first = follow(&path, KEYS[0]);
    let all = follow("/v1/sessions/events", KEYS[0]);
    assert_eq!((first.0, all.0), (200, 200));
    let refused = sessions.service.ask("GET", &path, &bearer(KEYS[0]), "");
    assert!(
        refused.status == 429 && refused.body.contains("too_many_followers"),
        "{refused:?}"
    );
    assert!(refused.header("retry-after").is_some());
    // What is there is read by any number, and another key has places of its own.
    assert_eq!(
        sessions
            .service
            .ask(
                "GET",
                &format!("/v1/sessions/{ID}/events"),
                &bearer(KEYS[0]),
                ""
            )
            .status,
        200
    );
    assert_eq!(follow("/v1/sessions/events", KEYS[1]).0, 200);
    drop(first);
    let begun = std::time::Instant::now();
    while follow(&path, KEYS[0]).0 != 200 {
        assert!(begun.elapsed() < PATIENCE, "the place is not free");
    }
}

#[test]
fn old_sessions_are_removed_after_the_start_but_not_one_that_is_written() {
    let day = Duration::from_secs(24 * 3600);
    let id = |n: u32| format!("3f{n:030x}");
    let held = std::cell::RefCell::new(None);
    let sessions = Sessions::with(&["--retain", "30d", "--retain", "4"], |path| {
        for n in 0..8 {
            let path = append(path, &id(n), head(&id(n), None, u64::from(n)).as_bytes());
            let file = File::options().append(true).open(path).expect("a file");
            // The first is written now, the second is the oldest of the others.
            let age = if n == 7 { 31 } else { 20 - n };
            let written = SystemTime::now() - day * if n == 0 { 400 } else { age };
            file.set_modified(written).expect("a time");
            if n == 0 {
                rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)
                    .expect("a lock");
                held.replace(Some(file));
            }
        }
    });
    let left = || {
        let listed = sessions.json("/v1/sessions");
        let ids = listed["data"].as_array().expect("a list").iter();
        ids.map(|session| session["id"].as_str().expect("an id").to_owned())
            .collect::<Vec<_>>()
    };
    let kept: Vec<String> = [6, 5, 4, 3, 0].map(id).into();
    let begun = std::time::Instant::now();
    while left() != kept {
        assert!(begun.elapsed() < PATIENCE, "{:?}", left());
    }
}

#[test]
fn what_is_retained_is_written_so_that_nobody_mistakes_it() {
    for wrong in ["30m", "0", "10g", "x"] {
        let ended = std::process::Command::new(testkit::program("tc-serve"))
            .args(["--sessions", "x", "--retain", wrong])
            .output()
            .expect("a run");
        let text = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2));
        assert!(text.contains("12h, 30d or 4w"), "{text}");
    }
}

/// Otherwise the responses that a stopped service left unfinished would not be resumed.
#[test]
fn a_service_that_cannot_read_which_responses_are_unfinished_does_not_start() {
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
    let scratch = testkit::Scratch::new();
    let folder = scratch.path("sessions");
    let mut private = std::fs::DirBuilder::new();
    private.mode(0o700).create(&folder).expect("a folder");
    let left = folder.join("left");
    std::fs::create_dir(&left).expect("a folder");
    let mode = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(&left, mode).expect("its mode");
    let ended = std::process::Command::new(testkit::program("tc-serve"))
        .args(["--listen", "127.0.0.1:0", "--no-key", "--sessions"])
        .arg(&folder)
        .args(["--base-url", "http://127.0.0.1:9"])
        .output()
        .expect("a run");
    let text = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{text}");
    let remedy = format!("writable by other users; run chmod 700 {}", left.display());
    assert!(text.contains(&remedy), "{text}");
}

#[test]
fn a_service_without_a_folder_says_so() {
    let service = Service::of(&Upstream::always(streamed("hi")), &[]);
    for path in [
        "/v1/sessions",
        "/v1/sessions/events",
        &format!("/v1/sessions/{ID}"),
    ] {
        let response = service.ask("GET", path, "", "");
        assert!(
            response.status == 404 && response.body.contains("--sessions DIR"),
            "{response:?}"
        );
    }
}

/// The session of a chat, which has more text than the buffers of a connection.
fn long_chat() -> String {
    let text = "many words ".repeat(100_000);
    let delta = format!("{{\"type\":\"content_delta\",\"text\":\"{text}\"}}\n");
    let answer = r#"{"id":"m1","model":"m","created":1,"ui":{"message":"msg_1"}}"#;
    let offset = head(ID, None, 1).len();
    [
        head(ID, None, 1),
        format!("{{\"type\":\"response\",\"id\":\"{ID}{offset:x}\",\"front\":\"ai-sdk\",\"answer\":{answer}}}\n"),
        "{\"type\":\"request\",\"request\":{\"model\":\"m\"}}\n".to_owned(),
        "{\"type\":\"stream_start\",\"provider\":\"openai\"}\n".to_owned(),
        delta.repeat(20),
        "{\"type\":\"stream_end\",\"finish_reason\":\"stop\"}\n".to_owned(),
        format!("{{\"type\":\"response_end\",\"id\":\"{ID}{offset:x}\",\"status\":\"completed\"}}\n"),
    ]
    .concat()
}

#[test]
fn a_client_that_takes_nothing_is_left() {
    let session = format!("/v1/sessions/{ID}");
    for path in [
        format!("{session}/events"),
        format!("{session}/events?live=ndjson"),
        format!("{session}?format=text"),
        format!("{session}?format=html"),
        format!("{session}?format=markdown"),
        format!("/api/chat/{ID}/stream?messageId=msg_1"),
    ] {
        let options = ["--reader-timeout", "200ms", "--max-connections", "1"];
        let sessions = Sessions::new(&options);
        sessions.write(ID, &long_chat());
        let mut stalled = sessions.service.send("GET", &path, "", "");
        assert_eq!(stalled.until("\r\n\r\n").status, 200, "{path}");
        // Others are answered once the service has closed its connection.
        testkit::wait_until("the client is left", || {
            sessions.get("/health").status == 200
        });
        let taken = stalled.rest().body.len();
        assert!(taken < 20 << 20, "{path}: the client got all {taken} bytes");
    }
}

#[test]
fn the_end_of_the_service_ends_all_that_is_followed() {
    let sessions = Sessions::new(&["--grace", "1h"]);
    sessions.write(ID, &lines(ID));
    let path = format!("/v1/sessions/{ID}/events?offset=now&live=");
    let mut clients = ["ndjson", "sse"].map(|live| {
        sessions
            .service
            .send("GET", &format!("{path}{live}"), "", "")
    });
    let mut all = sessions.service.send("GET", "/v1/sessions/events", "", "");
    all.until("\r\n\r\n");
    clients
        .iter_mut()
        .for_each(|client| drop(client.until("\r\n\r\n")));
    sessions.service.signal(rustix::process::Signal::TERM);
    clients.iter_mut().for_each(|client| drop(client.rest()));
    all.rest();
    let (status, _) = sessions.service.ended();
    assert_eq!(status.code(), Some(143));
}

#[test]
fn sessions_of_a_key_and_their_bytes_have_limits() {
    let sessions = Sessions::new(&["--max-sessions", "2", "--max-session", "300"]);
    let ask = |more: &str| {
        let body = format!(r#"{{"model":"m","input":"hi"{more}}}"#);
        sessions.service.post("/v1/responses", &body)
    };
    let first = ask("");
    assert_eq!((first.status, ask("").status), (200, 200));
    let refused = ask("");
    assert!(
        refused.status == 429 && refused.body.contains("too_many_sessions"),
        "{refused:?}"
    );
    assert_eq!(ask(r#","store":false"#).status, 200);
    let body: serde_json::Value = serde_json::from_str(&first.body).expect("JSON");
    // The session is free a moment after its answer has come.
    let begun = std::time::Instant::now();
    let free = |ask: &dyn Fn() -> Response| loop {
        let response = ask();
        if response.status != 409 {
            return response;
        }
        assert!(begun.elapsed() < PATIENCE, "{response:?}");
    };
    let next = free(&|| ask(&format!(r#","previous_response_id":{}"#, body["id"])));
    assert!(
        next.status == 413 && next.body.contains("session_too_long"),
        "{next:?}"
    );
    let listed = sessions.json("/v1/sessions");
    assert_eq!(listed["data"].as_array().map(Vec::len), Some(2));
    let path = format!(
        "/v1/sessions/{}",
        listed["data"][0]["id"].as_str().expect("an id")
    );
    let removed = free(&|| sessions.service.ask("DELETE", &path, "", ""));
    assert_eq!(removed.status, 204);
    assert_eq!(ask("").status, 200);
    // One that was removed by hand counts no more, once the folder was looked at.
    for folder in std::fs::read_dir(sessions.path())
        .expect("a folder")
        .flatten()
    {
        for file in std::fs::read_dir(folder.path())
            .into_iter()
            .flatten()
            .flatten()
        {
            std::fs::remove_file(file.path()).expect("a removal");
        }
    }
    let begun = std::time::Instant::now();
    while ask("").status != 200 {
        assert!(begun.elapsed() < PATIENCE, "the removed sessions count");
    }
}

#[test]
fn a_reader_of_all_sessions_that_falls_behind_misses_nothing() {
    let sessions = Sessions::new(&["--reader-timeout", "1h"]);
    sessions.write(ID, &head(ID, None, 1));
    let mut all = sessions.service.send("GET", "/v1/sessions/events", "", "");
    all.until("\r\n\r\n");
    // More than the sockets hold, so that the service waits for this reader; then more changes, each
    // of another session than the one before, than it keeps.
    let long = format!(
        "{{\"type\":\"long\",\"text\":\"{}\"}}\n",
        "x".repeat(16 << 20)
    );
    sessions.write(ID, &long);
    let ids = [0, 1].map(|n| format!("3f{n:030x}"));
    for (n, id) in ids.iter().enumerate() {
        sessions.write(id, &head(id, None, n as u64));
    }
    const CHANGES: usize = 3000;
    for n in 0..CHANGES {
        for id in &ids {
            sessions.write(id, &format!("{{\"type\":\"n\",\"n\":{n}}}\n"));
        }
    }
    // The service has seen all changes once a follower of the last session has its last line.
    let path = format!("/v1/sessions/{}/events?live=ndjson", ids[1]);
    let mut one = sessions.service.send("GET", &path, "", "");
    one.until(&format!("\"n\":{}}}\n", CHANGES - 1));
    let mut text = String::new();
    let mut reader = std::io::BufReader::new(all.stream.try_clone().expect("a descriptor"));
    let mut next = [Some(0), Some(0)];
    while next.iter().any(Option::is_some) {
        let mut line = Vec::new();
        std::io::BufRead::read_until(&mut reader, b'\n', &mut line).expect("a line");
        assert!(!line.is_empty(), "the stream ended");
        let line = String::from_utf8_lossy(&line);
        if line.len() < 200 {
            text.push_str(&line);
        }
        for (id, next) in ids.iter().zip(&mut next) {
            if line.contains(id.as_str())
                && let Some((_, n)) = line.split_once("\"n\":")
            {
                let n: usize = n
                    .trim_end()
                    .trim_end_matches('}')
                    .parse()
                    .expect("a number");
                assert_eq!(Some(n), *next, "a line is missing or comes twice");
                *next = Some(n + 1).filter(|next| *next < CHANGES);
            }
        }
    }
    assert!(
        text.contains("{\"lagged\":"),
        "{}",
        &text[..text.len().min(2000)]
    );
}
