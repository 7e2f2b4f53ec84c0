//! Answers that are kept: requests that go on with them, clients that leave and come back, and what
//! each of several fronts has of one session.

use crate::service::{Call, Client, JSON, Response, Service, Upstream, chunk};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use testkit::{Scratch, short, wait_until};

const RESPONSES: &str = "/v1/responses";
const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";
const CONVERSATIONS: &str = "/v1/conversations";

/// A service with a folder of sessions, in front of a provider whose answers the test gives.
struct Kept {
    service: Service,
    upstream: Upstream,
    folder: Scratch,
    options: Vec<String>,
}

impl Kept {
    fn new() -> Kept {
        Kept::with(&[])
    }

    fn with(options: &[&str]) -> Kept {
        let upstream = Upstream::new();
        let folder = Scratch::new();
        let sessions = folder.path("sessions").display().to_string();
        let fixed = ["--sessions", &sessions, "--retries", "0"];
        let options = [&fixed, options].concat();
        Kept {
            service: Service::of(&upstream.url(), &options),
            options: options.into_iter().map(str::to_owned).collect(),
            upstream,
            folder,
        }
    }

    /// Another service on the same folder.
    fn another(&self) -> Service {
        let options: Vec<&str> = self.options.iter().map(String::as_str).collect();
        Service::of(&self.upstream.url(), &options)
    }

    /// Kills the service, and starts it again.
    fn restart(&mut self) {
        self.service.signal(Signal::KILL);
        self.service = self.another();
    }

    fn send(&self, path: &str, headers: &str, body: &Value) -> Client {
        let headers = format!("{JSON}{headers}");
        self.service.send("POST", path, &headers, &body.to_string())
    }

    /// Posts a request, which the provider answers with this text, and returns the answer and what
    /// the provider got.
    fn ask(&self, path: &str, headers: &str, body: &Value, text: &str) -> (Response, Value) {
        let mut client = self.send(path, headers, body);
        let mut call = self.upstream.next();
        let request = call.request.body.clone();
        call.begin();
        call.text(text);
        call.stop();
        (client.rest(), request)
    }

    /// Posts a request to `/v1/responses`, and returns the id of the response and what the provider
    /// got.
    fn respond(&self, body: &Value, text: &str) -> (String, Value) {
        let (response, request) = self.ask(RESPONSES, "", body, text);
        assert_eq!(response.status, 200, "{}", response.body);
        (id_of(&response.body), request)
    }

    /// Posts a request that the provider is not asked about.
    fn post(&self, path: &str, headers: &str, body: &Value) -> Response {
        self.send(path, headers, body).rest()
    }

    fn get(&self, path: &str) -> Response {
        self.service.ask("GET", path, "", "")
    }

    fn response(&self, id: &str) -> Value {
        let response = self.get(&format!("{RESPONSES}/{id}"));
        assert_eq!(response.status, 200, "{}", response.body);
        value(&response)
    }

    /// All sessions as text.
    fn files(&self) -> Vec<(PathBuf, String)> {
        let folders = testkit::folders(&self.folder.path("sessions"));
        let files = folders.into_iter().flat_map(|(_, folder)| {
            let files = std::fs::read_dir(folder).expect("a folder");
            files.map(|file| file.expect("a file").path())
        });
        let read = |path: PathBuf| {
            let text = std::fs::read_to_string(&path).expect("a session");
            (path, text)
        };
        files.map(read).collect()
    }

    /// The only session.
    fn session(&self) -> String {
        let mut files = self.files();
        assert_eq!(files.len(), 1, "{files:?}");
        files.remove(0).1
    }

    /// Waits until the only session holds this text.
    fn until(&self, text: &str) {
        wait_until(text, || {
            self.files().iter().any(|(_, all)| all.contains(text))
        });
    }
}

/// A request that asks this.
fn input(text: &str) -> Value {
    json!({"model": "m", "input": text})
}

/// The same after an earlier response.
fn after(id: &str, text: &str) -> Value {
    json!({"model": "m", "input": text, "previous_response_id": id})
}

fn streamed(mut body: Value) -> Value {
    body["stream"] = true.into();
    body
}

fn in_background(mut body: Value) -> Value {
    body["background"] = true.into();
    body
}

fn value(response: &Response) -> Value {
    serde_json::from_str(&response.body).unwrap_or_else(|e| panic!("{e}: {response:?}"))
}

/// The first id of a response in a text.
fn id_of(text: &str) -> String {
    let at = text
        .find("resp_")
        .unwrap_or_else(|| panic!("no id: {text}"));
    let id: String = text[at..].chars().take_while(|c| *c != '"').collect();
    id
}

/// The messages that a provider got, each as its role and its content, and the ids of its calls.
fn talk(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().expect("messages");
    let one = |message: &Value| {
        let calls = message["tool_calls"].as_array();
        let ids = calls.into_iter().flatten().map(|call| {
            let arguments = call["function"]["arguments"].as_str();
            format!(
                " {}{}",
                call["id"].as_str().expect("an id"),
                arguments.expect("arguments")
            )
        });
        let text = match &message["content"] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            parts => parts[0]["text"].as_str().expect("text").to_owned(),
        };
        let role = message["role"].as_str().expect("a role");
        format!("{role}: {text}{}", ids.collect::<String>())
    };
    messages.iter().map(one).collect()
}

/// Answers with one call.
fn call_tool(mut call: Call, id: &str) {
    let function = r#"{"name":"f","arguments":"{\"a\":1}"}"#;
    let tool = format!(r#"[{{"index":0,"id":"{id}","type":"function","function":{function}}}]"#);
    call.begin();
    call.send(chunk(&format!(r#"{{"tool_calls":{tool}}}"#), "null").as_bytes());
    call.send((chunk("{}", "\"tool_calls\"") + &testkit::chat_end()).as_bytes());
}

/// Two texts of the same length, without what each request has of its own.
fn same(a: &Response, b: &Response) {
    let lines = |response: &Response| {
        let own = ["request-id", "x-request-id", "date"];
        let lines = response.head.lines().filter(|line| {
            let name = line.split(':').next().unwrap_or_default();
            !own.contains(&name)
        });
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines(a), lines(b));
    assert_eq!(a.body, b.body);
}

// Chains.

#[test]
fn a_chain_keeps_calls_and_results_and_goes_on_at_once() {
    let mut kept = Kept::new();
    let tools = json!([{"type": "function", "name": "f", "parameters": {"type": "object"}}]);
    let first = json!({"model": "m", "input": "Hi", "instructions": "Be kind.", "tools": tools});
    let mut client = kept.send(RESPONSES, "", &first);
    let call = kept.upstream.next();
    assert_eq!(talk(&call.request.body), ["system: Be kind.", "user: Hi"]);
    call_tool(call, "call_1");
    let mut id = id_of(&client.rest().body);
    let result = json!([{"type": "function_call_output", "call_id": "call_1", "output": "22"}]);
    let mut wanted = vec!["user: Hi", "assistant:  call_1{\"a\":1}", "tool: 22"];
    let next = json!({"model": "m", "input": result, "tools": tools, "previous_response_id": id});
    let (second, request) = kept.respond(&next, "It is 22.");
    // Instructions are not carried over.
    assert_eq!(talk(&request), wanted);
    wanted.extend(["assistant: It is 22.", "user: And on Sunday?"]);
    let items = value(&kept.get(&format!("{RESPONSES}/{second}/input_items")));
    assert_eq!(items["data"][0]["type"], "function_call_output");
    assert_eq!(items["data"][0]["call_id"], "call_1");
    id = second;
    // It survives a service that was killed.
    kept.restart();
    let (_, request) = kept.respond(&after(&id, "And on Sunday?"), "23.");
    assert_eq!(talk(&request), wanted);
    assert_eq!(kept.files().len(), 1);
    let object = kept.response(&id);
    assert_eq!(object["output"][0]["content"][0]["text"], "It is 22.");
    assert_eq!(object["previous_response_id"], next["previous_response_id"]);
}

#[test]
fn fifty_turns_go_on_at_once() {
    let kept = Kept::new();
    let (mut id, _) = kept.respond(&input("0"), "0");
    for turn in 1..50 {
        let (next, request) = kept.respond(&streamed(after(&id, &turn.to_string())), "x");
        assert_eq!(talk(&request).len(), 2 * turn + 1);
        id = next;
    }
    assert_eq!(kept.files().len(), 1);
}

#[test]
fn an_older_response_goes_on_in_a_fork() {
    let kept = Kept::new();
    let (first, _) = kept.respond(&input("one"), "1");
    let (second, _) = kept.respond(&after(&first, "two"), "2");
    let (third, request) = kept.respond(&after(&first, "three"), "3");
    assert_eq!(talk(&request), ["user: one", "assistant: 1", "user: three"]);
    let session = |id: &str| id[..37].to_owned();
    assert_eq!(session(&first), session(&second));
    assert_ne!(session(&first), session(&third));
    // Both go on, each with its own history.
    let (_, request) = kept.respond(&after(&second, "four"), "4");
    let history = ["user: one", "assistant: 1", "user: two", "assistant: 2"];
    assert_eq!(talk(&request)[..4], history);
    let (_, request) = kept.respond(&after(&third, "five"), "5");
    let history = ["user: one", "assistant: 1", "user: three", "assistant: 3"];
    assert_eq!(talk(&request)[..4], history);
    // The fork has messages, and no deltas of the session that it continues.
    let fork = kept
        .files()
        .into_iter()
        .find(|(_, text)| text.contains("\"fork\""));
    let fork = fork.expect("a fork").1;
    assert!(!fork.contains(r#""text":"1""#), "{fork}");
}

#[test]
fn a_busy_session_names_the_response_that_is_made() {
    let kept = Kept::new();
    let conversation = value(&kept.post(CONVERSATIONS, "", &json!({})));
    let conversation = conversation["id"].as_str().expect("an id").to_owned();
    let in_it = |text: &str| json!({"model": "m", "input": text, "conversation": conversation});
    let mut client = kept.send(RESPONSES, "", &streamed(in_it("one")));
    let mut call = kept.upstream.next();
    call.begin();
    call.text("1");
    let id = id_of(&client.until("output_text.delta").body);
    let path = format!("{CONVERSATIONS}/{conversation}");
    let items = format!("{path}/items");
    let more = json!({"items": [{"role": "user", "content": "x"}]});
    for refused in [
        kept.post(RESPONSES, "", &in_it("two")),
        kept.post(RESPONSES, "", &after(&id, "two")),
        kept.post(&items, "", &more),
        kept.service.ask("DELETE", &path, "", ""),
        kept.service
            .ask("DELETE", &format!("{RESPONSES}/{id}"), "", ""),
    ] {
        assert_eq!(refused.status, 409, "{refused:?}");
        assert!(refused.body.contains(&id), "{refused:?}");
        assert!(refused.body.contains("session_busy"), "{refused:?}");
    }
    // Nothing of the refused requests is in the session.
    assert!(!kept.session().contains("two"));
    call.stop();
    assert!(client.rest().body.contains("response.completed"));
    let (_, request) = kept.respond(&in_it("three"), "3");
    assert_eq!(talk(&request), ["user: one", "assistant: 1", "user: three"]);
}

#[test]
fn unknown_deleted_and_foreign_answers_look_the_same() {
    let keys = testkit::File::new("keys", "the-long-key-of-one\nthe-long-key-of-two\n");
    let kept = Kept::with(&["--key-file", keys.path()]);
    let [one, two] =
        ["one", "two"].map(|name| format!("authorization: Bearer the-long-key-of-{name}\r\n"));
    let (response, _) = kept.ask(RESPONSES, &one, &input("Hi"), "x");
    let (deleted, _) = kept.ask(RESPONSES, &one, &input("Hi"), "x");
    let [own, deleted] = [response, deleted].map(|response| id_of(&response.body));
    let gone = kept
        .service
        .ask("DELETE", &format!("{RESPONSES}/{deleted}"), &one, "");
    assert_eq!(value(&gone)["deleted"], true);
    let conversation = value(&kept.post(CONVERSATIONS, &one, &json!({})));
    let conversation = conversation["id"].as_str().expect("an id");
    let unknown = format!("resp_{}59", "0".repeat(32));
    // Of the same session, at a place that has no response.
    let beside = format!("{}5a", &own[..37]);
    let cases = [
        (&own, &two),
        (&deleted, &one),
        (&deleted, &two),
        (&beside, &one),
    ];
    for (method, path) in [
        ("GET", ""),
        ("GET", "/input_items"),
        ("DELETE", ""),
        ("POST", "/cancel"),
    ] {
        let ask = |id: &str, key: &str| {
            let path = format!("{RESPONSES}/{id}{path}");
            kept.service.ask(method, &path, &format!("{JSON}{key}"), "")
        };
        let nothing = ask(&unknown, &one);
        assert_eq!(nothing.status, 404, "{nothing:?}");
        for (id, key) in cases {
            same(&ask(id, key), &nothing);
        }
        same(&ask("resp_nonsense", &one), &nothing);
    }
    let go_on = |id: &str, key: &str| kept.post(RESPONSES, key, &after(id, "two"));
    let nothing = go_on(&unknown, &one);
    assert_eq!(nothing.status, 404);
    assert_eq!(
        value(&nothing)["error"]["code"],
        "previous_response_not_found"
    );
    for (id, key) in cases {
        same(&go_on(id, key), &nothing);
    }
    let mut unstored = after(&own, "two");
    unstored["store"] = false.into();
    same(&kept.post(RESPONSES, &two, &unstored), &nothing);
    // Conversations likewise.
    let unknown = format!("conv_{}", "0".repeat(32));
    for (method, path) in [
        ("GET", ""),
        ("GET", "/items"),
        ("DELETE", ""),
        ("GET", "/items/x"),
    ] {
        let ask = |id: &str, key: &str| {
            let path = format!("{CONVERSATIONS}/{id}{path}");
            kept.service.ask(method, &path, key, "")
        };
        let nothing = ask(&unknown, &two);
        assert_eq!(nothing.status, 404);
        same(&ask(conversation, &two), &nothing);
    }
    let in_it = |id: &str| {
        let body = json!({"model": "m", "input": "x", "conversation": id});
        kept.post(RESPONSES, &two, &body)
    };
    same(&in_it(conversation), &in_it(&unknown));
    // A name that is another client's id is a session of this client's own.
    let header = format!("{two}x-session-id: {}\r\n", &own[5..37]);
    let (_, request) = kept.ask(CHAT, &header, &chat(&["Mine"]), "x");
    assert_eq!(talk(&request), ["user: Mine"]);
    assert_eq!(kept.response_as(&own, &one)["status"], "completed");
}

impl Kept {
    fn response_as(&self, id: &str, key: &str) -> Value {
        value(
            &self
                .service
                .ask("GET", &format!("{RESPONSES}/{id}"), key, ""),
        )
    }
}

// Clients that leave, and cancel.

#[test]
fn a_client_that_leaves_ends_its_answer_and_no_other() {
    let kept = Kept::new();
    // Before the answer has begun.
    let client = kept.send(RESPONSES, "", &streamed(input("one")));
    let mut call = kept.upstream.next();
    drop(client);
    call.closed();
    kept.until(r#""status":"cancelled""#);
    let id = id_in(&kept.session());
    let object = kept.response(&id);
    assert_eq!(object["status"], "cancelled");
    assert!(kept.session().contains(r#""type":"cancel","id":"#));
    // At its first event, and in its text.
    for event in ["response.created", "response.output_text.delta"] {
        let mut client = kept.send(RESPONSES, "", &streamed(after(&id, event)));
        let mut call = kept.upstream.next();
        call.begin();
        call.text("Hel");
        let id = id_of(&client.until(event).body);
        drop(client);
        call.closed();
        let ended = kept.get(&format!("{RESPONSES}/{id}?stream=true"));
        assert!(ended.body.contains("Hel"), "{ended:?}");
        assert_eq!(kept.response(&id)["status"], "cancelled");
    }
    // A whole answer.
    let client = kept.send(RESPONSES, "", &input("two"));
    let mut call = kept.upstream.next();
    drop(client);
    call.closed();
}

#[test]
fn an_answer_in_the_background_goes_on_without_its_client() {
    let kept = Kept::new();
    // The client of a stream has the id at once, and one that leaves before gets it of nobody.
    for event in ["response.created", ""] {
        let mut client = kept.send(RESPONSES, "", &in_background(streamed(input("one"))));
        let mut call = kept.upstream.next();
        let id = match event {
            "" => id_in(&kept.files().pop().expect("a session").1),
            event => id_of(&client.until(event).body),
        };
        drop(client);
        assert!(
            ["queued", "in_progress"].contains(&kept.response(&id)["status"].as_str().unwrap())
        );
        let path = format!("{RESPONSES}/{id}");
        let mut follower = kept
            .service
            .send("GET", &format!("{path}?stream=true"), "", "");
        follower.until("response.created");
        call.begin();
        call.text("Hello");
        follower.until("Hello");
        call.stop();
        let all = follower.rest();
        assert!(all.body.contains("response.completed"), "{all:?}");
        assert_eq!(kept.response(&id)["status"], "completed");
        let deleted = kept.service.ask("DELETE", &path, "", "");
        assert_eq!(deleted.status, 200, "{deleted:?}");
        for (path, _) in kept.files() {
            std::fs::remove_file(path).expect("a file");
        }
    }
    // A whole one is answered at once.
    let queued = value(&kept.post(RESPONSES, "", &in_background(input("two"))));
    assert_eq!(
        (&queued["status"], &queued["background"]),
        (&"queued".into(), &true.into())
    );
    let mut call = kept.upstream.next();
    call.begin();
    call.text("Hi");
    call.stop();
    let id = queued["id"].as_str().expect("an id");
    let ended = kept.get(&format!("{RESPONSES}/{id}?stream=true"));
    assert!(ended.body.contains("response.completed"), "{ended:?}");
    // One that fails has an end that can be read.
    let queued = value(&kept.post(RESPONSES, "", &in_background(input("three"))));
    kept.upstream
        .next()
        .refuse(500, "", r#"{"error":{"message":"no"}}"#);
    let id = queued["id"].as_str().expect("an id");
    let ended = kept.get(&format!("{RESPONSES}/{id}?stream=true"));
    assert_eq!(ended.status, 200);
    assert!(ended.body.contains("response.failed"), "{ended:?}");
    assert_eq!(kept.response(id)["status"], "failed");
    let mut unstored = in_background(input("four"));
    unstored["store"] = false.into();
    assert_eq!(kept.post(RESPONSES, "", &unstored).status, 400);
}

/// The first id of a response in a session.
fn id_in(session: &str) -> String {
    let events = testkit::events(session);
    let first = events.iter().find(|event| event["type"] == "response");
    let first = first.expect("a response");
    format!("resp_{}", first["id"].as_str().expect("an id"))
}

#[test]
fn cancelling_is_explicit_and_never_hits_another_answer() {
    let kept = Kept::new();
    let cancel = |id: &str| kept.post(&format!("{RESPONSES}/{id}/cancel"), "", &json!({}));
    let (first, _) = kept.respond(&input("one"), "1");
    let mut client = kept.send(RESPONSES, "", &streamed(after(&first, "two")));
    let mut call = kept.upstream.next();
    call.begin();
    call.text("Hel");
    let second = id_of(&client.until("Hel").body);
    // A late cancel changes nothing, neither of its own answer nor of the one that is made.
    let late = cancel(&first);
    assert_eq!(value(&late)["status"], "completed");
    assert_eq!(value(&late), kept.response(&first));
    call.text("lo");
    client.until("\"delta\":\"lo\"");
    let cancelled = cancel(&second);
    assert_eq!(value(&cancelled)["status"], "cancelled", "{cancelled:?}");
    call.closed();
    client.rest();
    same(&cancel(&second), &cancelled);
    let session = kept.session();
    assert_eq!(
        session.matches(r#""type":"cancel""#).count(),
        1,
        "{session}"
    );
    // The session goes on from what was committed.
    let (_, request) = kept.respond(&after(&first, "three"), "3");
    assert_eq!(talk(&request), ["user: one", "assistant: 1", "user: three"]);
}

// Requests that are sent again.

#[test]
fn a_request_that_is_sent_again_attaches_while_its_answer_is_made() {
    let kept = Kept::new();
    for (first, again) in [
        (
            "x-stainless-retry-count: 0\r\n",
            "x-stainless-retry-count: 1\r\n",
        ),
        ("idempotency-key: k\r\n", "idempotency-key: k\r\n"),
    ] {
        let body = streamed(input("one"));
        let mut client = kept.send(RESPONSES, first, &body);
        let mut call = kept.upstream.next();
        call.begin();
        call.text("Hel");
        let bytes = client.until("Hel\",\"logprobs\":[]}\n\n").body;
        let mut second = kept.send(RESPONSES, again, &body);
        second.until("Hel");
        // The first client leaves, and the second one still waits.
        drop(client);
        call.text("lo");
        call.stop();
        let all = second.rest().body;
        assert!(all.starts_with(&bytes), "{all}");
        assert!(all.contains("response.completed"), "{all}");
    }
    // The same body without a count of retries is another request.
    let (_, request) = kept.respond(&streamed(input("one")), "x");
    assert_eq!(talk(&request), ["user: one"]);
}

#[test]
fn an_idempotency_key_stands_for_one_answer() {
    let mut kept = Kept::new();
    let key = "idempotency-key: k1\r\n";
    let (first, _) = kept.ask(RESPONSES, key, &input("one"), "1");
    same(&kept.post(RESPONSES, key, &input("one")), &first);
    let other = kept.post(RESPONSES, key, &input("two"));
    assert_eq!(other.status, 409);
    assert_eq!(value(&other)["error"]["code"], "idempotency_key_reused");
    kept.restart();
    same(&kept.post(RESPONSES, key, &input("one")), &first);
    let id = id_of(&first.body);
    // In the session of an earlier response, and in a fork of it.
    for name in ["k2", "k3"] {
        let key = format!("idempotency-key: {name}\r\n");
        let (next, _) = kept.ask(RESPONSES, &key, &after(&id, "two"), "2");
        let count = kept.files().len();
        same(&kept.post(RESPONSES, &key, &after(&id, "two")), &next);
        assert_eq!(kept.files().len(), count);
    }
    assert_eq!(kept.files().len(), 2);
    // While it is made, another body is refused, too.
    let key = "idempotency-key: k4\r\n";
    let mut client = kept.send(RESPONSES, key, &streamed(input("one")));
    let call = kept.upstream.next();
    assert_eq!(kept.post(RESPONSES, key, &input("two")).status, 409);
    call.refuse(500, "", r#"{"error":{"message":"no"}}"#);
    assert_eq!(client.rest().status, 500);
    // It failed before anything of it was sent, so it is asked for again.
    let (second, _) = kept.ask(RESPONSES, key, &streamed(input("one")), "1");
    assert_eq!(second.status, 200);
    same(&kept.post(RESPONSES, key, &streamed(input("one"))), &second);
    // One that was deleted is not there any more.
    let path = format!("{RESPONSES}/{}", id_of(&second.body));
    assert_eq!(kept.service.ask("DELETE", &path, "", "").status, 200);
    let (third, _) = kept.ask(RESPONSES, key, &streamed(input("one")), "1");
    assert_ne!(id_of(&third.body), id_of(&second.body));
    // One that its client has left is made anew.
    let key = "idempotency-key: k5\r\n";
    let client = kept.send(RESPONSES, key, &streamed(input("one")));
    let mut call = kept.upstream.next();
    drop(client);
    call.closed();
    let (anew, _) = kept.ask(RESPONSES, key, &streamed(input("one")), "1");
    assert!(anew.body.contains("response.completed"));
}

/// Every real provider sends its counts of tokens, with which the answer ends.
#[test]
fn items_of_an_answer_are_there_behind_its_end() {
    let kept = Kept::new();
    let conversation = value(&kept.post(CONVERSATIONS, "", &json!({})));
    let conversation = conversation["id"].as_str().expect("an id");
    let mut body = input("one");
    body["conversation"] = conversation.into();
    let (id, _) = kept.respond(&body, "1");
    let object = kept.response(&id);
    assert_eq!(object["usage"]["total_tokens"], 12, "{object}");
    let item = &object["output"][0];
    let items = value(&kept.get(&format!("{CONVERSATIONS}/{conversation}/items?order=asc")));
    assert_eq!(items["data"][1], *item, "{items}");
    // The AI SDK sends what it has by its ids alone.
    let reference = json!({"type": "item_reference", "id": item["id"]});
    let question = json!({"role": "user", "content": "two"});
    let body = json!({"model": "m", "input": [reference, question]});
    let (_, request) = kept.respond(&body, "2");
    assert_eq!(talk(&request), ["assistant: 1", "user: two"]);
}

/// A kept answer is what it was, whether the service can read it now or not.
#[test]
fn a_full_memory_refuses_to_read_a_kept_answer_and_does_not_change_it() {
    let mut kept = Kept::with(&["--max-memory", "1M"]);
    let conversation = value(&kept.post(CONVERSATIONS, "", &json!({})));
    let conversation = conversation["id"].as_str().expect("an id").to_owned();
    let mut body = input("one");
    body["conversation"] = conversation.as_str().into();
    let text = "a long answer ".repeat(20_000);
    let (id, _) = kept.respond(&body, &text);
    assert_eq!(kept.response(&id)["status"], "completed");
    let memory = kept.options.len() - 1;
    kept.options[memory] = "200K".to_owned();
    kept.restart();
    let object = format!("{RESPONSES}/{id}");
    for path in [
        object.clone(),
        format!("{CONVERSATIONS}/{conversation}/items"),
    ] {
        let refused = kept.get(&path);
        too_large(&refused);
    }
    let cut = kept.get(&format!("{object}?stream=true")).body;
    let is_ended = ["response.failed", "response.completed"].map(|end| cut.contains(end));
    assert_eq!(is_ended, [false, false], "{}", short(&cut));
    kept.options[memory] = "1M".to_owned();
    kept.restart();
    assert_eq!(kept.response(&id)["status"], "completed");
}

/// The answer to a request that needs more than all of 200 KiB: trying again is of no use.
fn too_large(refused: &Response) {
    let error = &value(refused)["error"];
    assert_eq!(refused.status, 413, "{error}");
    assert_eq!(error["code"], "memory_exceeded", "{error}");
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("--max-memory allows 204800"), "{message}");
    assert!(!refused.head.contains("retry-after"), "{}", refused.head);
}

/// A client that tries again as long as it gets 503 would do so for ever.
#[test]
fn a_session_that_is_larger_than_the_memory_is_refused_for_good() {
    let mut kept = Kept::with(&["--max-memory", "1M"]);
    // Of the second one there is room for the session, and none for a request with all of it.
    for length in [300_000, 120_000] {
        let (id, _) = kept.respond(&input("one"), &"x".repeat(length));
        let memory = kept.options.len() - 1;
        kept.options[memory] = "200K".to_owned();
        kept.restart();
        too_large(&kept.post(RESPONSES, "", &after(&id, "two")));
        let mut unstored = after(&id, "two");
        unstored["store"] = false.into();
        too_large(&kept.post(RESPONSES, "", &unstored));
        // Others are answered.
        kept.respond(&input("three"), "3");
        kept.options[memory] = "1M".to_owned();
        kept.restart();
    }
}

/// What is said while an answer is made waits for the next turn, in memory.
#[test]
fn messages_during_an_answer_obey_the_limits_of_memory_and_of_a_session() {
    for (option, bytes, status) in [("--max-session", "300K", 413), ("--max-memory", "1M", 503)] {
        let kept = Kept::with(&[option, bytes]);
        let mut client = kept.send(RESPONSES, "", &streamed(input("one")));
        let mut call = kept.upstream.next();
        call.begin();
        call.text("begun");
        let begun = client.until("begun");
        let session = begun.header("x-session-id").expect("a session").trim();
        let path = format!("/v1/sessions/{session}/messages");
        let message = json!({"content": "y".repeat(50_000)});
        let mut taken = 0;
        let refused = loop {
            let said = kept.post(&path, "", &message);
            if said.status != 200 || taken > 40 {
                break said;
            }
            taken += 1;
        };
        assert_eq!(refused.status, status, "{}", refused.body);
        assert!((2..=20).contains(&taken), "{taken}");
        call.stop();
        assert!(client.rest().body.contains("response.completed"));
        let said = kept.session().matches("yyyy\"").count();
        assert_eq!(said, taken, "what was taken is not lost");
    }
}

// The end of a service.

#[test]
fn an_answer_of_a_service_that_was_killed_is_interrupted() {
    let mut kept = Kept::new();
    let (first, _) = kept.respond(&input("one"), "1");
    for is_background in [false, true] {
        let body = streamed(after(&first, "two"));
        let body = if is_background {
            in_background(body)
        } else {
            body
        };
        let mut client = kept.send(RESPONSES, "", &body);
        let mut call = kept.upstream.next();
        call.begin();
        call.text("Hello wor");
        let sent = client.until("Hello wor");
        let id = id_of(&sent.body);
        kept.restart();
        call.closed();
        client.rest();
        let files = kept.files();
        let holds = files.iter().any(|(_, text)| text.contains("Hello wor"));
        assert!(holds, "{files:?}");
        let again = kept.get(&format!("{RESPONSES}/{id}?stream=true"));
        assert!(again.body.starts_with(client_body(&sent)), "{again:?}");
        assert!(again.body.contains("response.failed"), "{again:?}");
        let object = kept.response(&id);
        assert_eq!(object["status"], "failed", "{object}");
        assert_eq!(object["error"]["code"], "interrupted", "{object}");
        let files = kept.files();
        let end = format!(r#""id":"{}","status":"interrupted""#, &id[5..]);
        let ended = files.iter().find(|(_, text)| text.contains(&end));
        let (_, text) = ended.expect("an end");
        assert!(text.contains(r#""code":"interrupted""#), "{text}");
        let (_, request) = kept.respond(&after(&id, "three"), "3");
        let talk = talk(&request);
        assert_eq!(talk[..3], ["user: one", "assistant: 1", "user: two"]);
        assert_eq!(talk.last().expect("a message"), "user: three");
    }
}

/// What a client has of whole events.
fn client_body(sent: &Response) -> &str {
    let end = sent.body.rfind("\n\n").map_or(0, |at| at + 2);
    &sent.body[..end]
}

#[test]
fn a_line_that_was_cut_does_not_spoil_the_next() {
    let mut kept = Kept::new();
    let (first, _) = kept.respond(&input("one"), "1");
    let (path, whole) = kept.files().remove(0);
    // As a machine without power leaves it: any part of the last line.
    let last = whole[..whole.len() - 1].rfind('\n').expect("lines") + 1;
    for end in last..whole.len() {
        std::fs::write(&path, &whole[..end]).expect("a file");
        let (_, request) = kept.respond(&after(&first, "two"), "2");
        assert_eq!(talk(&request)[..2], ["user: one", "assistant: 1"], "{end}");
        testkit::events(&std::fs::read_to_string(&path).expect("a file"));
    }
    std::fs::write(&path, &whole).expect("a file");
    kept.restart();
    assert_eq!(kept.response(&first)["status"], "completed");
}

#[test]
fn two_services_keep_one_folder() {
    let kept = Kept::new();
    let other = kept.another();
    let mut client = kept.send(RESPONSES, "", &streamed(input("one")));
    let mut call = kept.upstream.next();
    call.begin();
    call.text("Hel");
    let id = id_of(&client.until("Hel").body);
    let path = format!("{RESPONSES}/{id}");
    let object = other.ask("GET", &path, "", "");
    assert_eq!(value(&object)["status"], "in_progress");
    let mut follower = other.send("GET", &format!("{path}?stream=true"), "", "");
    follower.until("Hel");
    // Only one of them writes; the other one says so.
    let headers = JSON;
    for refused in [
        other.ask("POST", RESPONSES, headers, &after(&id, "two").to_string()),
        other.ask("POST", &format!("{path}/cancel"), headers, "{}"),
        other.ask("DELETE", &path, "", ""),
    ] {
        assert_eq!(refused.status, 409, "{refused:?}");
    }
    call.text("lo");
    call.stop();
    let all = client.rest().body;
    assert_eq!(follower.rest().body, all);
    assert!(all.contains("response.completed"), "{all}");
    let mut next = other.send("POST", RESPONSES, headers, &after(&id, "two").to_string());
    let mut call = kept.upstream.next();
    assert_eq!(
        talk(&call.request.body),
        ["user: one", "assistant: Hello", "user: two"]
    );
    call.begin();
    call.text("2");
    call.stop();
    let next = id_of(&next.rest().body);
    assert_eq!(kept.response(&next)["status"], "completed");
}

// Sessions of other fronts.

/// A chat whose messages are of the user and of the assistant in turn.
fn chat(texts: &[&str]) -> Value {
    let messages = texts.iter().enumerate().map(|(at, text)| {
        let role = if at % 2 == 0 { "user" } else { "assistant" };
        json!({"role": role, "content": text})
    });
    json!({"model": "m", "max_tokens": 9, "messages": messages.collect::<Vec<_>>()})
}

#[test]
fn a_client_that_repeats_its_history_appends_only_what_is_new() {
    for path in [CHAT, MESSAGES] {
        let kept = Kept::new();
        let header = "x-session-id: my chat\r\n";
        let ask = |texts: &[&str], text: &str| {
            let (response, request) = kept.ask(path, header, &chat(texts), text);
            assert_eq!(response.status, 200, "{response:?}");
            let session = response.header("x-session-id").expect("an id").to_owned();
            (session, talk(&request))
        };
        let (session, request) = ask(&["one"], "1");
        assert_eq!(request, ["user: one"]);
        let (same, request) = ask(&["one", "1", "two"], "2");
        let whole = ["user: one", "assistant: 1", "user: two"];
        assert_eq!(
            (same.as_str(), request.as_slice()),
            (session.as_str(), &whole.map(str::to_owned)[..])
        );
        let text = kept.session();
        assert_eq!(text.matches(r#""content":"one""#).count(), 1, "{text}");
        assert_eq!(text.matches(r#""content":"two""#).count(), 1, "{text}");
        // Another history is a fork: a message that was edited.
        let (fork, request) = ask(&["one", "1", "TWO"], "2");
        assert_ne!(fork, session);
        assert_eq!(request, ["user: one", "assistant: 1", "user: TWO"]);
        let files = kept.files();
        let text = &files
            .iter()
            .find(|(_, text)| text.contains("\"fork\""))
            .expect("a fork")
            .1;
        assert_eq!(text.matches(r#""content":"one""#).count(), 1, "{text}");
        // A single new message goes on.
        let (same, request) = ask(&["three"], "3");
        assert_eq!(same, session);
        let whole = [
            "user: one",
            "assistant: 1",
            "user: two",
            "assistant: 2",
            "user: three",
        ];
        assert_eq!(request, whole);
        // The session's own id names it, too.
        let header = format!("x-session-id: {session}\r\n");
        let (_, request) = kept.ask(path, &header, &chat(&["four"]), "4");
        assert_eq!(talk(&request).len(), 7);
    }
}

#[test]
fn any_front_goes_on_with_what_another_one_began() {
    let kept = Kept::new();
    let header = "x-session-id: s\r\n";
    let (first, _) = kept.ask(MESSAGES, header, &chat(&["one"]), "1");
    let id = value(&first)["id"].as_str().expect("an id").to_owned();
    assert!(id.starts_with("msg_"), "{id}");
    let session = first.header("x-session-id").expect("an id");
    let (second, request) = kept.respond(&after(&id, "two"), "2");
    assert_eq!(talk(&request), ["user: one", "assistant: 1", "user: two"]);
    let object = kept.response(&id.replace("msg_", "resp_"));
    assert_eq!(object["output"][0]["content"][0]["text"], "1");
    // A chat with the whole history, and one with the next message alone.
    let (_, request) = kept.ask(CHAT, header, &chat(&["one", "1", "two", "2", "three"]), "3");
    assert_eq!(talk(&request).len(), 5);
    let own = format!("x-session-id: {session}\r\n");
    let (fourth, request) = kept.ask(CHAT, &own, &chat(&["four"]), "4");
    assert_eq!(talk(&request).len(), 7);
    assert_eq!(kept.files().len(), 1);
    let id = value(&fourth)["id"].as_str().expect("an id").to_owned();
    let (_, request) = kept.respond(&after(&id, "five"), "5");
    assert_eq!(talk(&request).len(), 9);
    // As a conversation it has the items of all of them.
    let items = value(&kept.get(&format!(
        "{CONVERSATIONS}/conv_{session}/items?order=asc&limit=100"
    )));
    let items = items["data"].as_array().expect("items");
    let texts: Vec<&str> = items
        .iter()
        .map(|item| item["content"][0]["text"].as_str().expect("text"))
        .collect();
    assert_eq!(
        texts,
        [
            "one", "1", "two", "2", "three", "3", "four", "4", "five", "5"
        ]
    );
    let mut ids: Vec<&str> = items
        .iter()
        .map(|item| item["id"].as_str().expect("an id"))
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 10);
    pages(&kept, session, items);
    assert_eq!(kept.response(&second)["status"], "completed");
}

/// Reads all items page by page, in both orders.
fn pages(kept: &Kept, session: &str, items: &[Value]) {
    let page = |query: &str| kept.get(&format!("{CONVERSATIONS}/conv_{session}/items?{query}"));
    for order in ["asc", "desc"] {
        let mut seen = Vec::new();
        let mut after = String::new();
        loop {
            let page = value(&page(&format!("order={order}&limit=3&after={after}")));
            let data = page["data"].as_array().expect("items");
            seen.extend(data.iter().map(|item| item["id"].clone()));
            after = page["last_id"].as_str().expect("an id").to_owned();
            if page["has_more"] == false {
                break;
            }
        }
        let mut all: Vec<Value> = items.iter().map(|item| item["id"].clone()).collect();
        if order == "desc" {
            all.reverse();
        }
        assert_eq!(seen, all);
    }
    for query in [
        "limit=0",
        "limit=101",
        "limit=x",
        "order=up",
        "after=msg_none",
    ] {
        assert_eq!(page(query).status, 400, "{query}");
    }
}

/// A conversation of these answers, and its items.
fn answered(kept: &Kept, answers: &[&str]) -> (String, Vec<Value>) {
    let conversation = value(&kept.post(CONVERSATIONS, "", &json!({})));
    let id = conversation["id"].as_str().expect("an id").to_owned();
    for answer in answers {
        let mut body = input(answer);
        body["conversation"] = id.as_str().into();
        kept.respond(&body, answer);
    }
    let list = value(&kept.get(&format!("{CONVERSATIONS}/{id}/items?order=asc")));
    (id, list["data"].as_array().expect("items").clone())
}

#[test]
fn a_page_of_items_reads_only_what_it_shows() {
    let kept = Kept::new();
    let (id, items) = answered(&kept, &["one", "two", "three", "four"]);
    assert_eq!(items.len(), 8);
    // The second response cannot be read any more.
    let (path, text) = kept.files().remove(0);
    let second = text.match_indices("{\"type\":\"response\",").nth(1);
    let (at, _) = second.expect("a second response");
    let spoilt = text[at..].replacen("\"type\":\"response\"", "\"type\":\"rEsponse\"", 1);
    std::fs::write(path, format!("{}{spoilt}", &text[..at])).expect("a write");
    let page = |query: &str| kept.get(&format!("{CONVERSATIONS}/{id}/items{query}"));
    assert_eq!(page("").status, 404, "the page has all of it");
    let last = |number: usize| items[number]["id"].as_str().expect("an id");
    for (query, shown) in [
        ("?limit=3", vec![7, 6, 5]),
        ("?order=asc&limit=1", vec![0]),
        (
            &format!("?order=asc&limit=3&after={}", last(4)),
            vec![5, 6, 7],
        ),
        (&format!("?limit=1&after={}", last(6)), vec![5]),
        (&format!("?limit=1&after={}", last(1)), vec![0]),
        (&format!("/{}", last(5)), vec![5]),
    ] {
        let shown: Vec<Value> = shown
            .into_iter()
            .map(|at: usize| items[at].clone())
            .collect();
        let list = page(query);
        assert_eq!(list.status, 200, "{query}: {}", list.body);
        let list = value(&list);
        match list.get("data") {
            Some(data) => assert_eq!(*data, Value::from(shown), "{query}"),
            None => assert_eq!(list, shown[0], "{query}"),
        }
    }
}

/// Many messages between two responses are read in parts, and are one list.
#[test]
fn items_that_were_added_are_one_list_however_many_they_are() {
    let mut kept = Kept::new();
    let (id, _) = answered(&kept, &[]);
    let path = format!("{CONVERSATIONS}/{id}/items");
    let mut items: Vec<Value> = (0..63)
        .map(|number| json!({"role": "user", "content": format!("{number}")}))
        .collect();
    // A call is the last of a part, and its result the first of the next one.
    items.push(json!({"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "x"}));
    items.push(json!({"type": "custom_tool_call_output", "call_id": "c", "output": "1"}));
    items
        .extend((0..70).map(|number| json!({"role": "user", "content": format!("more {number}")})));
    let mut all = Vec::new();
    for some in items.chunks(50) {
        let added = value(&kept.post(&path, "", &json!({"items": some})));
        let added = added["data"].as_array().expect("items").clone();
        assert_eq!(added.len(), some.len());
        all.extend(added);
    }
    let mut ids: Vec<&str> = all
        .iter()
        .map(|item| item["id"].as_str().expect("an id"))
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), items.len());
    assert_eq!(all[64]["type"], "custom_tool_call_output");
    let session = id.strip_prefix("conv_").expect("a conversation");
    for _ in 0..2 {
        pages(&kept, session, &all);
        for item in [&all[0], &all[64], &all[130]] {
            let id = item["id"].as_str().expect("an id");
            assert_eq!(value(&kept.get(&format!("{path}/{id}"))), *item);
        }
        kept.restart();
    }
}

// Long sessions.

/// A conversation of so many times four megabytes.
fn long(kept: &Kept, times: usize) -> String {
    let (id, _) = answered(kept, &[]);
    let text = "long ".repeat(2000);
    let items = vec![json!({"role": "user", "content": text}); 400];
    for _ in 0..times {
        let path = format!("{CONVERSATIONS}/{id}/items");
        let added = kept.post(&path, "", &json!({"items": items}));
        assert_eq!(added.status, 200, "{}", short(&added.body));
    }
    id
}

/// A file of the service's process or of one of its threads.
fn of_process(kept: &Kept, file: &str) -> String {
    let path = format!("/proc/{}/{file}", kept.service.id());
    std::fs::read_to_string(&path).expect(&path)
}

/// The bytes that the service has read so far, from files and from sockets.
fn bytes_read(kept: &Kept) -> u64 {
    let io = of_process(kept, "io");
    let count = io.lines().find_map(|line| line.strip_prefix("rchar: "));
    count.expect("a count").parse().expect("a number")
}

/// A turn, a page and an answer cost as much to read in a long session as in a short one.
#[test]
fn what_a_request_reads_does_not_grow_with_its_session() {
    let read = [1, 4].map(|times| {
        let kept = Kept::new();
        let id = long(&kept, times);
        let mut body = input("next");
        body["conversation"] = id.as_str().into();
        let (answer, _) = kept.respond(&body, "first");
        let turn = || drop(kept.respond(&body, "more"));
        let items = || {
            let page = kept.get(&format!("{CONVERSATIONS}/{id}/items?limit=5"));
            assert_eq!(value(&page)["data"].as_array().map(Vec::len), Some(5));
        };
        let object = || drop(kept.response(&answer));
        [&turn as &dyn Fn(), &items, &object].map(|request| {
            let before = bytes_read(&kept);
            request();
            bytes_read(&kept) - before
        })
    });
    for (short, long) in read[0].iter().zip(read[1]) {
        assert!(long < short + (64 << 10), "{read:?}");
    }
}

/// The processor time of the thread that answers requests, and of all others, in ticks.
fn ticks(kept: &Kept) -> [u64; 2] {
    let of = |stat: &str| {
        let (_, rest) = stat.rsplit_once(") ").expect("a name");
        let counts = rest.split(' ').skip(11).take(2);
        counts
            .map(|count| count.parse::<u64>().expect("ticks"))
            .sum::<u64>()
    };
    let own = of(&of_process(
        kept,
        &format!("task/{}/stat", kept.service.id()),
    ));
    [own, of(&of_process(kept, "stat")) - own]
}

/// What is long is read, and made into a request, while the service answers others.
#[test]
fn the_thread_that_answers_leaves_long_sessions_to_others() {
    let mut kept = Kept::new();
    let id = long(&kept, 5);
    let mut body = input("next");
    body["conversation"] = id.as_str().into();
    kept.restart();
    let before = ticks(&kept);
    kept.respond(&body, "1");
    let read = ticks(&kept);
    kept.respond(&body, "2");
    let made = ticks(&kept);
    for [first, last] in [[before, read], [read, made]] {
        let [own, others] = [0, 1].map(|at| last[at] - first[at]);
        assert!(others > 2 * own, "{own} ticks of {}", own + others);
    }
}

/// No request deletes one item; sessions of earlier versions may say that one was.
#[test]
fn an_item_that_a_session_says_is_deleted_is_in_no_list_and_reaches_no_model() {
    let mut kept = Kept::new();
    let tools = json!([{"type": "function", "name": "f", "parameters": {"type": "object"}}]);
    let begin =
        json!({"items": [{"role": "user", "content": "Hello"}, {"role": "user", "content": "Hi"}]});
    let conversation = value(&kept.post(CONVERSATIONS, "", &begin));
    let path = format!(
        "{CONVERSATIONS}/{}",
        conversation["id"].as_str().expect("an id")
    );
    let in_it = |input: Value| json!({"model": "m", "input": input, "tools": tools, "conversation": conversation["id"]});
    let mut client = kept.send(RESPONSES, "", &in_it("one".into()));
    call_tool(kept.upstream.next(), "call_1");
    client.rest();
    let result = json!([{"type": "function_call_output", "call_id": "call_1", "output": "22"}]);
    kept.respond(&in_it(result), "It is 22.");
    let items = |kept: &Kept| {
        let list = value(&kept.get(&format!("{path}/items?order=asc")));
        list["data"].as_array().expect("items").clone()
    };
    // Where the message is that an item was made of, and which part of it the item is.
    let delete = |kept: &Kept, item: &Value, text: &str, part: Option<&str>| {
        let id = item["id"].as_str().expect("an id");
        let path = format!("{path}/items/{id}");
        let refused = kept.service.ask("DELETE", &path, "", "");
        assert_eq!(refused.status, 405, "{refused:?}");
        let (file, session) = kept.files().remove(0);
        let message = session.split_inclusive('\n');
        let offset = message
            .take_while(|line| !(line.contains(r#""type":"message""#) && line.contains(text)))
            .map(str::len)
            .sum::<usize>();
        assert!(offset < session.len(), "{text}");
        let mut line =
            json!({"type": "response_end", "id": id, "status": "deleted", "message": offset});
        if let Some(part) = part {
            line["part"] = part.into();
        }
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .open(file)
            .expect("a session");
        writeln!(file, "{line}").expect("written");
        assert_eq!(kept.get(&path).status, 404);
    };
    let all = items(&kept);
    let kinds: Vec<&str> = all
        .iter()
        .map(|item| item["type"].as_str().expect("a type"))
        .collect();
    let wanted = [
        "message",
        "message",
        "message",
        "function_call",
        "function_call_output",
        "message",
    ];
    assert_eq!(kinds, wanted);
    // A message, and a call with its result.
    delete(&kept, &all[0], "Hello", None);
    delete(&kept, &all[3], "tool_calls", Some("call_1"));
    delete(&kept, &all[4], "tool_call_id", None);
    let left = [1, 2, 5].map(|place: usize| all[place].clone());
    assert_eq!(items(&kept), left);
    kept.restart();
    assert_eq!(items(&kept), left);
    let (_, request) = kept.respond(&in_it("two".into()), "2");
    assert_eq!(
        talk(&request),
        ["user: Hi", "user: one", "assistant: It is 22.", "user: two"]
    );
    for (item, text) in left.iter().zip(["Hi", "one", "It is 22."]) {
        delete(&kept, item, &format!("\"{text}\""), None);
    }
    let (_, request) = kept.respond(&in_it("three".into()), "3");
    assert_eq!(talk(&request), ["user: two", "assistant: 2", "user: three"]);
}
