//! Chats of user interfaces: the AI SDK's requests and streams, in a session and without one.

#![allow(clippy::unwrap_used, reason = "tests")]

#[allow(dead_code, reason = "the tests of the crate `api` use the rest")]
#[path = "../../../crates/api/tests/ui/reader.rs"]
mod reader;

use crate::service::agent::{Agent, TextCalls, Turn, remove, session_of, tool};
use crate::service::{self, JSON, Response, SSE, Server, Service, answer, provider};
use reader::{Shown, read};
use serde_json::{Value, json};
use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A tool whose calls end once the file `go` is there.
fn slow() -> Value {
    tool(
        "slow",
        "read",
        "echo half; while [ ! -e @/go ]; do sleep 0.01; done; echo done",
        &Value::Null,
    )
}

/// The id of the message that a stream begins.
fn message_id(body: &str) -> String {
    let id = body.split("\"messageId\":\"").nth(1).unwrap();
    id.split('"').next().unwrap().to_owned()
}

fn user(id: &str, text: &str) -> Value {
    json!({"id": id, "role": "user", "parts": [{"type": "text", "text": text}]})
}

fn body(chat: &str, messages: &[&Value]) -> Value {
    json!({"id": chat, "messages": messages, "trigger": "submit-message", "model": "m"})
}

/// Sends a chat's messages; the message that the client has then.
fn send(service: &Service, body: &Value, before: &Shown) -> (Response, Shown) {
    let answer = service.post("/api/chat", &body.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(
        answer
            .header("x-vercel-ai-ui-message-stream")
            .map(str::trim),
        Some("v1")
    );
    let shown = read(&answer.body, before);
    (answer, shown)
}

fn turns() -> Vec<Turn> {
    vec![
        Turn::thinks(Turn::default(), "Hm.")
            .then_says("Let me see.")
            .calls_text("c1", "remove", "x"),
        Turn::says("It is gone."),
    ]
}

/// Why the person answers as they do.
const REASON: &str = "Ann has looked at it.";

/// The message with the answer of a person to each call that waits.
fn decided(shown: &Shown, is_approved: bool) -> Shown {
    let mut decided = shown.clone();
    for part in &mut decided.parts {
        if part["state"] == "approval-requested" {
            part["state"] = "approval-responded".into();
            part["approval"]["approved"] = is_approved.into();
            part["approval"]["reason"] = REASON.into();
        }
    }
    decided
}

#[test]
fn an_approval_comes_in_the_next_request_and_the_message_goes_on() {
    for is_approved in [true, false] {
        let agent = Agent::new(&[remove()], turns(), &[]);
        let ask = user("u1", "Hi");
        let (answer, shown) = send(&agent.service, &body("chat", &[&ask]), &Shown::default());
        assert_eq!(
            shown.finish.as_deref(),
            Some("tool-calls"),
            "{}",
            answer.body
        );
        assert_eq!(shown.calls()[0].0, "remove approval-requested");
        assert_eq!(agent.folder.read("ran"), "");
        let decided = decided(&shown, is_approved);
        let next = body("chat", &[&ask, &decided.message()]);
        let (answer, done) = send(&agent.service, &next, &decided);
        assert_eq!(
            (&done.id, done.finish.as_deref()),
            (&shown.id, Some("stop")),
            "{}",
            answer.body
        );
        assert_eq!(done.texts(), ["Let me see.", "It is gone."]);
        let state = if is_approved {
            "remove output-available"
        } else {
            "remove output-denied"
        };
        assert_eq!(done.calls()[0].0, state, "{}", answer.body);
        assert_eq!(!agent.folder.read("ran").is_empty(), is_approved);
        // The whole message again, from its first part on.
        let path = format!("/api/chat/chat/stream?messageId={}", done.id);
        let again = agent.service.ask("GET", &path, "", "");
        let whole = read(&again.body, &Shown::default());
        let states = |shown: &Shown| (shown.texts().join("|"), shown.calls());
        assert_eq!(states(&whole), states(&done), "{}", again.body);
        // A second answer counts for nothing: the call has run, or was refused.
        let session = session_of(&answer);
        let approvals = agent.events(&session);
        let mut approvals = approvals.iter().filter(|event| event["type"] == "approval");
        assert_eq!(approvals.next().unwrap()["reason"], REASON);
        assert!(approvals.next().is_none());
        // The model reads why the call was refused.
        let model = asked(&agent);
        assert_eq!(model[2].contains(REASON), !is_approved, "{model:?}");
    }
}

#[test]
fn somebody_else_may_answer_while_the_stream_waits_or_when_it_has_ended() {
    let agent = Agent::new(&[remove()], turns(), &[]);
    let ask = body("waits", &[&user("u1", "Hi")]).to_string();
    let headers = format!("{JSON}x-toolpipe-pending: wait\r\n");
    let mut client = agent.service.send("POST", "/api/chat", &headers, &ask);
    let seen = client.until("tool-approval-request");
    let session = session_of(&seen);
    let hash = agent.waits(&session, "c1");
    // A page that is loaded again gets all of it, and goes on.
    let mut page = agent.service.send("GET", "/api/chat/waits/stream", "", "");
    page.until("tool-approval-request");
    agent.approves(&session, "c1", &hash);
    let whole = client.rest();
    let shown = read(&whole.body, &Shown::default());
    assert_eq!(
        shown.calls(),
        [("remove output-available".to_owned(), json!("removed x\n"))]
    );
    assert_eq!(
        (shown.texts(), shown.finish.as_deref()),
        (vec!["Let me see.", "It is gone."], Some("stop"))
    );
    assert_eq!(page.rest().body, whole.body);
    // Nothing is made now.
    assert_eq!(
        agent
            .service
            .ask("GET", "/api/chat/waits/stream", "", "")
            .status,
        204
    );

    let ask = user("u1", "Hi");
    let (answer, shown) = send(&agent.service, &body("ended", &[&ask]), &Shown::default());
    let session = session_of(&answer);
    let hash = agent.waits(&session, "c1");
    agent.approves(&session, "c1", &hash);
    agent.event(&session, |event| {
        event["type"] == "tool_result" && event["status"] == "success"
    });
    let decided = decided(&shown, true);
    let next = body("ended", &[&ask, &decided.message()]);
    let (answer, done) = send(&agent.service, &next, &decided);
    assert_eq!(
        done.calls()[0].0,
        "remove output-available",
        "{}",
        answer.body
    );
    assert_eq!(agent.folder.read("ran"), "x\nx\n");
}

#[test]
fn a_stop_ends_the_answer_that_it_names_and_a_disconnect_ends_none() {
    let turns = vec![
        Turn::says("Wait.").calls_text("c1", "slow", "x"),
        Turn::says("Done."),
    ];
    let agent = Agent::new(&[slow()], turns, &[]);
    let ask = body("a b/c", &[&user("u1", "Hi")]).to_string();
    let chat = |verb: &str| format!("/api/chat/a%20b%2Fc/{verb}");
    let mut client = agent.service.send("POST", "/api/chat", JSON, &ask);
    // Progress is a preliminary output.
    let seen = client.until("\"preliminary\":true");
    let id = message_id(&seen.body);
    drop(client);
    let mut page = agent.service.send("GET", &chat("stream"), "", "");
    page.until("\"preliminary\":true");
    // A stop that is late names another answer.
    for late in [
        json!({"messageId": "msg_0"}),
        json!({"responseId": "resp_0"}),
    ] {
        let answer = agent.service.post(&chat("stop"), &late.to_string());
        assert_eq!(
            (answer.status, answer.body.contains("\"cancelled\":null")),
            (200, true),
            "{answer:?}"
        );
    }
    let stop = json!({"messageId": id}).to_string();
    for (headers, text, cancelled) in [(JSON, stop.as_str(), true), ("", "", false)] {
        let answer = agent.service.ask("POST", &chat("stop"), headers, text);
        assert_eq!(
            (answer.status, answer.body.contains(&id)),
            (200, cancelled),
            "{answer:?}"
        );
    }
    let whole = page.rest();
    let shown = read(&whole.body, &Shown::default());
    assert!(shown.is_aborted && shown.finish.is_none(), "{}", whole.body);
    assert_eq!(shown.calls()[0].0, "slow output-error");
    assert_eq!(agent.ended(&session_of(&seen)), "cancelled");
    // Without a chat of this name there is nothing to stop.
    assert_eq!(
        agent
            .service
            .ask("POST", "/api/chat/other/stop", "", "")
            .status,
        404
    );
    assert_eq!(
        agent
            .service
            .ask("GET", "/api/chat/other/stream", "", "")
            .status,
        204
    );
}

/// The texts of the messages that the provider got with the last request.
fn asked(agent: &Agent) -> Vec<String> {
    let requests = agent.model.requests.try_iter().collect::<Vec<_>>();
    let messages = requests.last().unwrap().body["messages"].clone();
    let shown = messages.as_array().unwrap().iter().map(|message| {
        let content = message["content"].as_str().unwrap_or("-");
        format!("{} {content}", message["role"].as_str().unwrap())
    });
    shown.collect()
}

#[test]
fn a_chat_is_one_session_whatever_its_client_changes() {
    let turns = ["One.", "Two.", "Three."].map(Turn::says);
    let agent = Agent::new(&[remove()], turns.to_vec(), &[]);
    let first = user("u1", "A");
    let (answer, one) = send(&agent.service, &body("chat", &[&first]), &Shown::default());
    let session = session_of(&answer);
    let second = user("u2", "B");
    let talk = body("chat", &[&first, &one.message(), &second]);
    let (_, two) = send(&agent.service, &talk, &Shown::default());
    assert_eq!(asked(&agent), ["user A", "assistant One.", "user B"]);
    assert_eq!(two.texts(), ["Two."]);
    // The last message alone goes on from what is there.
    let (_, _) = send(
        &agent.service,
        &body("chat", &[&user("u3", "C")]),
        &Shown::default(),
    );
    let all = [
        "user A",
        "assistant One.",
        "user B",
        "assistant Two.",
        "user C",
    ];
    assert_eq!(asked(&agent), all);
    // Another answer in the place of the second.
    let mut again = body("chat", &[&first, &one.message(), &second]);
    again["trigger"] = "regenerate-message".into();
    again["messageId"] = two.id.clone().into();
    let (_, other) = send(&agent.service, &again, &Shown::default());
    assert_eq!(asked(&agent), ["user A", "assistant One.", "user B"]);
    assert_ne!(other.id, two.id);
    // Another first question.
    let edited = user("u1", "D");
    let mut edit = body("chat", &[&edited]);
    edit["messageId"] = "u1".into();
    let (answer, _) = send(&agent.service, &edit, &Shown::default());
    assert_eq!(asked(&agent), ["user D"]);
    // All of it is in one session, and nothing was lost.
    assert_eq!(
        (session_of(&answer), agent.sessions().len()),
        (session.clone(), 1)
    );
    let events = agent.events(&session);
    let said = |text: &str| {
        events
            .iter()
            .any(|event| event["message"]["content"] == text)
    };
    assert!(["A", "B", "C", "D"].into_iter().all(said));
}

#[test]
fn without_sessions_a_chat_is_a_plain_stream() {
    let model = service::agent::model(vec![
        Turn::says("Hi.").calls_text("c1", "pick", "x"),
        Turn::says("Fine."),
    ]);
    let service = Service::of(&model.url, &[]);
    let ask = user("u1", "A");
    let mut first = body("chat", &[&ask]);
    first["tools"] = json!({"pick": {"description": "x", "parameters": {"type": "object"}}});
    let (_, shown) = send(&service, &first, &Shown::default());
    assert_eq!(
        (shown.finish.as_deref(), shown.calls()),
        (
            Some("tool-calls"),
            vec![("pick input-available".to_owned(), Value::Null)]
        )
    );
    assert_eq!(shown.parts.last().unwrap()["type"], "tool-pick");
    // The client's output, which goes on in the same message.
    let mut done = shown.clone();
    let part = done.parts.last_mut().unwrap();
    (part["state"], part["output"]) = ("output-available".into(), json!({"picked": 1}));
    let mut next = body("chat", &[&ask, &done.message()]);
    next["tools"] = first["tools"].clone();
    let (_, last) = send(&service, &next, &done);
    assert_eq!((last.id, last.finish.as_deref()), (shown.id, Some("stop")));
    let sent = &model.requests.try_iter().nth(1).unwrap().body["messages"][2];
    assert_eq!(
        (&sent["role"], &sent["content"]),
        (&json!("tool"), &json!("{\"picked\":1}"))
    );
    assert_eq!(
        service.ask("GET", "/api/chat/chat/stream", "", "").status,
        204
    );
    assert_eq!(
        service.ask("POST", "/api/chat/chat/stop", "", "").status,
        404
    );
}

#[test]
fn a_hostile_body_is_refused() {
    let model = service::agent::model(vec![Turn::says("Hi.")]);
    let service = Service::of(&model.url, &[]);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let many = format!("{{\"messages\":[{}0]}}", "0,".repeat(300_000));
    for (text, status) in [
        ("", 400),
        ("[]", 400),
        ("{}", 400),
        (r#"{"messages":7}"#, 400),
        (r#"{"messages":[]}"#, 400),
        (
            r#"{"messages":[7,null,{"role":[]},{"role":"user"},{"role":"user","parts":[1,{"type":{}}]}]}"#,
            400,
        ),
        (
            r#"{"messages":[{"role":"assistant","parts":[{"type":"tool-"},{"type":"dynamic-tool","toolCallId":{}}]}]}"#,
            400,
        ),
        (&deep, 400),
        (&many, 413),
    ] {
        let answer = service.post("/api/chat", text);
        assert_eq!(
            answer.status,
            status,
            "{} {answer:?}",
            event::cut(text, 100)
        );
    }
    assert_eq!(model.requests.try_iter().count(), 0);
}

#[test]
fn the_chat_of_another_key_is_an_unknown_chat() {
    let model = service::agent::model(vec![Turn::says("One."), Turn::says("Two.")]);
    let folder = testkit::Scratch::new();
    folder.write("keys", "key-of-the-first-client\nkey-of-the-other-client\n");
    let [keys, sessions] = ["keys", "sessions"].map(|name| folder.path(name).display().to_string());
    let service = Service::start(&[
        "--base-url",
        &model.url,
        "--key-file",
        &keys,
        "--sessions",
        &sessions,
    ]);
    let headers = ["first", "other"]
        .map(|who| format!("{JSON}authorization: Bearer key-of-the-{who}-client\r\n"));
    let ask = body("chat", &[&user("u1", "Hi")]).to_string();
    let one = service.ask("POST", "/api/chat", &headers[0], &ask);
    let shown = read(&one.body, &Shown::default());
    let path = format!("/api/chat/chat/stream?messageId={}", shown.id);
    assert_eq!(service.ask("GET", &path, &headers[0], "").body, one.body);
    for path in [path.as_str(), "/api/chat/chat/stream"] {
        assert_eq!(service.ask("GET", path, &headers[1], "").status, 204);
    }
    assert_eq!(
        service
            .ask("POST", "/api/chat/chat/stop", &headers[1], "{}")
            .status,
        404
    );
    // The same name is a chat of its own.
    let other = service.ask("POST", "/api/chat", &headers[1], &ask);
    assert_eq!(other.status, 200);
    assert_ne!(session_of(&other), session_of(&one));
}

/// The span of a client.
const SPAN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A model that hangs in the middle of its first answer, and gives the second whole.
fn model_that_hangs() -> Server {
    let asked = AtomicUsize::new(0);
    provider(move |_, _, stream| {
        let whole = Turn::says("Whole.").stream(testkit::Protocol::Chat);
        if asked.fetch_add(1, Ordering::Relaxed) > 0 {
            return answer(stream, "200 OK", SSE, whole.as_bytes(), None);
        }
        let half = Turn::thinks(Turn::default(), "Hm.")
            .then_says("Half")
            .stream(testkit::Protocol::Chat);
        let cut = half
            .find("finish_reason\":\"stop")
            .and_then(|at| half[..at].rfind("data: "));
        answer(stream, "200 OK", SSE, half.as_bytes(), cut);
        // Until the service is gone.
        while matches!(stream.read(&mut [0; 64]), Ok(n) if n > 0) {}
        false
    })
}

#[test]
fn an_answer_goes_on_when_its_service_was_killed() {
    for mode in ["standard", "pass"] {
        let mut agent = Agent::of(&json!([remove()]), model_that_hangs(), &["--mode", mode]);
        let ask = body("chat", &[&user("u1", "Hi")]).to_string();
        let headers = format!("traceparent: {SPAN}\r\ntracestate: rojo=1\r\n{JSON}");
        let mut client = agent.service.send("POST", "/api/chat", &headers, &ask);
        let seen = client.until("text-delta");
        let id = message_id(&seen.body);
        agent.kill();
        agent.restart();
        let path = format!("/api/chat/chat/stream?messageId={id}");
        let again = agent.service.ask("GET", &path, "", "");
        let shown = read(&again.body, &Shown::default());
        assert!(again.body.contains("reset-step"), "{mode}: {}", again.body);
        assert_eq!(
            (shown.id.as_str(), shown.texts()),
            (id.as_str(), vec!["Whole."]),
            "{mode}"
        );
        assert_eq!(agent.ended(&session_of(&seen)), "completed");
        let asked = agent.model.asked();
        assert_eq!(asked.len(), 2, "{mode}");
        for asked in asked {
            let span = asked.header("traceparent").unwrap();
            assert_eq!(span[..36], SPAN[..36], "{mode}");
            assert_eq!(asked.header("tracestate"), Some("rojo=1"), "{mode}");
        }
    }
}

#[test]
fn in_auto_mode_each_answer_has_its_last_text_and_the_questions() {
    let agent = Agent::new(&[remove()], turns(), &["--mode", "auto"]);
    let ask = user("u1", "Hi");
    let (answer, shown) = send(&agent.service, &body("chat", &[&ask]), &Shown::default());
    assert_eq!(
        shown.calls()[0].0,
        "remove approval-requested",
        "{}",
        answer.body
    );
    let decided = decided(&shown, true);
    let next = body("chat", &[&ask, &decided.message()]);
    let (answer, done) = send(&agent.service, &next, &decided);
    assert_eq!(
        (done.texts(), done.finish.as_deref()),
        (vec!["Let me see.", "It is gone."], Some("stop")),
        "{}",
        answer.body
    );
    assert_eq!(agent.folder.read("ran"), "x\n");
}

/// The events of a run of AG-UI.
fn run(service: &Service, body: &Value) -> Vec<Value> {
    let answer = service.post("/api/ag-ui", &body.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    let frames = answer.body.split("\n\n").filter(|frame| !frame.is_empty());
    let events =
        frames.map(|frame| serde_json::from_str(frame.strip_prefix("data: ").unwrap()).unwrap());
    events.collect()
}

#[test]
fn a_run_of_ag_ui_is_interrupted_and_resumed() {
    let agent = Agent::new(&[remove()], turns(), &[]);
    let ask = json!({"id": "u1", "role": "user", "content": "Hi"});
    let mut first = json!({"threadId": "t", "runId": "r1", "messages": [ask], "tools": [], "context": [], "forwardedProps": {"model": "m"}});
    let events = run(&agent.service, &first);
    let last = events.last().unwrap();
    assert_eq!(
        (&events[0]["type"], &last["runId"]),
        (&json!("RUN_STARTED"), &json!("r1"))
    );
    let interrupt = &last["outcome"]["interrupts"][0];
    assert_eq!(interrupt["toolCallId"], "c1", "{last}");
    let start = |kind: &str| events.iter().find(|event| event["type"] == kind).unwrap();
    let reply = json!({"id": start("TEXT_MESSAGE_START")["messageId"], "role": "assistant", "content": "Let me see.",
        "toolCalls": [{"id": "c1", "type": "function", "function": {"name": "remove", "arguments": "{\"text\":\"x\"}"}}]});
    assert_eq!(start("TOOL_CALL_START")["parentMessageId"], reply["id"]);
    first["runId"] = "r2".into();
    first["messages"] = json!([ask, reply]);
    first["resume"] = json!([{"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": true, "reason": REASON}}]);
    let events = run(&agent.service, &first);
    let kinds: Vec<&str> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    assert!(
        kinds.contains(&"TOOL_CALL_RESULT") && kinds.contains(&"TEXT_MESSAGE_CONTENT"),
        "{kinds:?}"
    );
    assert_eq!(events.last().unwrap()["outcome"]["type"], "success");
    assert_eq!(
        (agent.folder.read("ran").as_str(), agent.sessions().len()),
        ("x\n", 1)
    );
    assert_eq!(
        asked(&agent),
        ["user Hi", "assistant Let me see.", "tool removed x\n"]
    );
    for hostile in [
        json!({}),
        json!({"messages": 7}),
        json!({"messages": [7]}),
        json!({"messages": [{"role": "user", "content": [{"type": "image", "source": 7}]}]}),
    ] {
        let answer = agent.service.post("/api/ag-ui", &hostile.to_string());
        assert_eq!(answer.status, 400, "{hostile}: {answer:?}");
    }
}

#[test]
fn another_service_on_the_folder_shows_an_answer_and_does_not_stop_it() {
    let turns = vec![
        Turn::says("Wait.").calls_text("c1", "slow", "x"),
        Turn::says("Done."),
        Turn::says("Again."),
    ];
    let agent = Agent::new(&[slow()], turns, &[]);
    let other = agent.another();
    let ask = body("chat", &[&user("u1", "Hi")]).to_string();
    let mut client = agent.service.send("POST", "/api/chat", JSON, &ask);
    let id = message_id(&client.until("\"preliminary\":true").body);
    let mut page = other.send("GET", "/api/chat/chat/stream", "", "");
    page.until("\"preliminary\":true");
    let stop = |body: Value| other.post("/api/chat/chat/stop", &body.to_string());
    let late = stop(json!({"messageId": "msg_0"}));
    assert!(late.body.contains("\"cancelled\":null"), "{late:?}");
    for refused in [
        stop(json!({"messageId": id})),
        other.post("/api/chat", &ask),
    ] {
        assert_eq!(refused.status, 409, "{refused:?}");
    }
    agent.folder.write("go", "");
    let whole = client.rest();
    assert!(whole.body.contains("Done."), "{}", whole.body);
    assert_eq!(page.rest().body, whole.body);
    let nothing = other.ask("GET", "/api/chat/chat/stream", "", "");
    assert_eq!(nothing.status, 204, "{nothing:?}");
    // And the other one goes on with the chat.
    let again = other.post("/api/chat", &ask);
    assert!(again.body.contains("Again."), "{again:?}");
}
