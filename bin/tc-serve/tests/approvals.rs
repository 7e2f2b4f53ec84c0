//! A person over HTTP: answers calls that wait, cancels one that runs or the response, and says
//! something meanwhile.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::service;
use crate::service::agent::{Agent, FRONTS, TextCalls, Turn, remove, tool};
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use testkit::wait_until;

fn turns() -> Vec<Turn> {
    vec![
        Turn::says("Let me see.").calls_text("c1", "remove", "x"),
        Turn::says("It is gone."),
    ]
}

fn output(agent: &Agent, id: &str) -> Value {
    let path = format!("/v1/responses/{id}");
    json_of(&agent.service.ask("GET", &path, "", ""))
}

fn json_of(answer: &service::Response) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("{answer:?}"))
}

fn items(response: &Value) -> Vec<String> {
    let items = response["output"].as_array().unwrap().iter();
    items
        .map(|item| {
            let status = item["status"].as_str().unwrap_or("-");
            format!("{} {status}", item["type"].as_str().unwrap())
        })
        .collect()
}

#[test]
fn a_call_that_waits_keeps_the_response_open_and_runs_once() {
    let agent = Agent::new(&[remove()], turns(), &[]);
    let (id, session) = agent.begin("Hi");
    let hash = agent.waits(&session, "c1");
    let open = output(&agent, &id);
    assert_eq!(open["status"], "in_progress", "{open:#}");
    assert_eq!(
        items(&open),
        [
            "message completed",
            "mcp_call in_progress",
            "mcp_approval_request -"
        ],
        "{open:#}"
    );
    // Another request finds the session busy, and does not end what waits.
    let next = json!({"model": "m", "previous_response_id": id, "input": "And?"});
    let busy = agent.service.post("/v1/responses", &next.to_string());
    assert!(busy.status == 409 && busy.body.contains(&id), "{busy:?}");
    // Nor is a session removed whose call waits.
    for path in ["sessions/", "conversations/conv_"] {
        let refused = agent
            .service
            .ask("DELETE", &format!("/v1/{path}{session}"), "", "");
        assert_eq!(refused.status, 409, "{path}: {refused:?}");
    }
    let (status, body) = agent.answers(&session, "c1", "approve", &json!({"hash": "0000"}));
    assert_eq!(
        (status, &body["error"]["code"]),
        (409, &json!("hash_differs")),
        "{body}"
    );
    assert!(!body.to_string().contains(&hash), "{body}");
    let (status, _) = agent.answers(&session, "c2", "approve", &json!({"hash": hash}));
    assert_eq!(status, 404);
    let yes = json!({"hash": hash, "reason": "no longer needed"});
    let (status, body) = agent.answers(&session, "c1", "approve", &yes);
    assert_eq!(
        (status, &body["type"], &body["decision"], &body["source"]),
        (200, &json!("approval"), &json!("approved"), &json!("http")),
        "{body}"
    );
    assert_eq!(body["reason"], yes["reason"]);
    let (status, body) = agent.answers(&session, "c1", "deny", &json!({"hash": hash}));
    assert_eq!(
        (status, &body["error"]["code"]),
        (409, &json!("already_answered")),
        "{body}"
    );
    assert!(body.to_string().contains("approved before, by"), "{body}");
    assert_eq!(agent.ended(&session), "completed");
    assert_eq!(agent.folder.read("ran"), "x\n");
    let done = output(&agent, &id);
    assert_eq!(
        items(&done),
        [
            "message completed",
            "mcp_call completed",
            "mcp_approval_request -",
            "message completed"
        ],
        "{done:#}"
    );
    assert!(
        done["output"][1]["output"]
            .as_str()
            .unwrap()
            .contains("removed x"),
        "{done:#}"
    );
    assert_eq!(
        done["output"][1]["approval_request_id"], done["output"][2]["id"],
        "{done:#}"
    );
    let (status, _) = agent.answers(&session, "c1", "approve", &json!({"hash": hash}));
    assert_eq!(status, 409);
    let approvals: Vec<_> = agent
        .events(&session)
        .into_iter()
        .filter(|event| event["type"] == "approval")
        .collect();
    assert!(
        approvals.len() == 1 && approvals[0]["by"].is_string(),
        "{approvals:?}"
    );
}

#[test]
fn clients_in_the_foreground_wait_on_every_front_in_both_modes() {
    for mode in ["standard", "auto"] {
        let agent = Agent::new(&[remove()], turns(), &["--mode", mode]);
        for front in FRONTS {
            let headers = format!(
                "{}x-session-id: {mode}{}{}\r\n",
                testkit::JSON,
                front.path,
                front.streams
            );
            let mut client = agent.service.send(
                "POST",
                front.path,
                &headers,
                &front.body("Hi", &Value::Null),
            );
            let open = || {
                let mut ids = agent.sessions().into_iter();
                ids.find(|id| {
                    !agent
                        .events(id)
                        .iter()
                        .any(|event| event["type"] == "response_end")
                })
            };
            wait_until("the response begins", || open().is_some());
            let session = open().unwrap();
            let hash = agent.waits(&session, "c1");
            let verb = if front.streams { "approve" } else { "deny" };
            let (status, body) = agent.answers(&session, "c1", verb, &json!({"hash": hash}));
            assert_eq!(status, 200, "{mode} {front:?} {body}");
            let answer = client.rest();
            assert!(
                answer.body.contains("It is gone."),
                "{mode} {front:?} {answer:?}"
            );
            if mode == "auto" {
                assert!(!answer.body.contains("Let me see"), "{front:?} {answer:?}");
            } else if front.path == "/v1/messages" {
                assert_eq!(
                    answer.body.matches("mcp_tool_result").count(),
                    1,
                    "{front:?} {answer:?}"
                );
            }
        }
    }
}

/// A client of OpenAI Responses that answers calls as OpenAI has it: the answer ends with a request
/// for approval, and the next request brings the approval.
#[test]
fn a_client_answers_a_call_in_its_next_request() {
    for (mode, streams, approve) in [
        ("standard", false, true),
        ("standard", true, false),
        ("auto", false, true),
    ] {
        let agent = Agent::new(&[remove()], turns(), &["--mode", mode]);
        let headers = format!("{}x-toolpipe-pending: end\r\n", testkit::JSON);
        let body = json!({"model": "m", "input": "Hi"}).to_string();
        let first = json_of(&agent.service.ask("POST", "/v1/responses", &headers, &body));
        assert_eq!(first["status"], "completed", "{mode} {first:#}");
        let waits = first["output"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(waits["type"], "mcp_approval_request", "{mode} {first:#}");
        assert_eq!(agent.folder.read("ran"), "");
        let answer = |id: &Value, approve: bool| {
            let approval = json!({"type": "mcp_approval_response", "approval_request_id": id, "approve": approve});
            let say = json!({"role": "user", "content": "Thanks."});
            json!({"model": "m", "previous_response_id": first["id"], "input": [approval, say], "stream": streams})
                .to_string()
        };
        let wrong = answer(&json!("mcpr_c2"), approve);
        let wrong = agent.service.post("/v1/responses", &wrong);
        assert!(
            wrong.status == 400 && wrong.body.contains("c2 is not pending"),
            "{wrong:?}"
        );
        let right = answer(&waits["id"], approve);
        let second = agent.service.post("/v1/responses", &right);
        assert!(second.body.contains("It is gone."), "{mode} {second:?}");
        let ran = if approve { "x\n" } else { "" };
        assert_eq!(agent.folder.read("ran"), ran, "{mode}");
        // The answer has the call with its result, as the stored one has.
        let id = session_and_id(&agent, &second).1;
        let stored = output(&agent, &id);
        let calls = items(&stored);
        match (mode, approve) {
            ("auto", _) => assert_eq!(calls, ["message completed"], "{stored:#}"),
            (_, true) => assert_eq!(
                calls,
                ["mcp_call completed", "message completed"],
                "{stored:#}"
            ),
            (_, false) => assert_eq!(
                calls,
                ["mcp_call failed", "message completed"],
                "{stored:#}"
            ),
        }
        if !streams {
            assert_eq!(json_of(&second)["output"], stored["output"]);
        }
        // What the client said beside its answer comes behind the result of the call.
        let (session, _) = session_and_id(&agent, &second);
        let roles: Vec<String> = agent
            .events(&session)
            .iter()
            .filter(|event| event["type"] == "message")
            .map(|event| event["message"]["role"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(roles, ["user", "assistant", "tool", "user", "assistant"]);
        let again = agent.service.post("/v1/responses", &right);
        assert_eq!(again.status, 400, "{again:?}");
    }
}

/// The session and the id of the last response in an answer.
fn session_and_id(agent: &Agent, answer: &service::Response) -> (String, String) {
    let session = service::agent::session_of(answer);
    let events = agent.events(&session);
    let last = events
        .iter()
        .rev()
        .find(|event| event["type"] == "response");
    let id = last.unwrap()["id"].as_str().unwrap().to_owned();
    (session, format!("resp_{id}"))
}

#[test]
fn of_two_people_the_first_counts_over_http() {
    let agent = Agent::new(&[remove()], turns(), &[]);
    for _ in 0..10 {
        let (_, session) = agent.begin("Hi");
        let hash = agent.waits(&session, "c1");
        let body = json!({"hash": hash});
        let clients: Vec<_> = ["approve", "deny", "approve"]
            .map(|verb| {
                let path = format!("/v1/sessions/{session}/calls/c1/{verb}");
                (
                    verb,
                    agent
                        .service
                        .send("POST", &path, testkit::JSON, &body.to_string()),
                )
            })
            .into();
        let answers: Vec<_> = clients
            .into_iter()
            .map(|(verb, mut client)| {
                let answer = client.rest();
                (verb, (answer.status, answer.body))
            })
            .collect();
        let first: Vec<_> = answers
            .iter()
            .filter(|(_, (status, _))| *status == 200)
            .collect();
        assert_eq!(first.len(), 1, "{answers:?}");
        let word = if first[0].0 == "approve" {
            "approved"
        } else {
            "denied"
        };
        for (_, (status, body)) in answers.iter().filter(|(_, (status, _))| *status != 200) {
            assert!(*status == 409 && body.contains(word), "{answers:?}");
        }
        assert_eq!(agent.ended(&session), "completed");
        let ran = agent
            .events(&session)
            .iter()
            .filter(|event| event["type"] == "tool_use")
            .count();
        assert_eq!(ran, usize::from(word == "approved"));
    }
}

#[test]
fn of_one_over_http_and_one_in_a_terminal_the_first_counts() {
    let agent = Agent::new(&[remove()], turns(), &[]);
    for _ in 0..10 {
        let (_, session) = agent.begin("Hi");
        let hash = agent.waits(&session, "c1");
        let ran_before = agent.folder.read("ran").lines().count();
        let mut terminal = Command::new(testkit::program("tool-exec"));
        terminal
            .arg("--tools")
            .arg(agent.folder.path("tools.json"))
            .arg("--log")
            .arg(agent.file(&session))
            .args(["--approve-call", &format!("c1:{hash}")])
            .env("HOME", &*agent.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let terminal = terminal.spawn().unwrap();
        let (status, body) = agent.answers(&session, "c1", "approve", &json!({"hash": hash}));
        let output = terminal.wait_with_output().unwrap();
        assert!(status == 200 || status == 409, "{status} {body} {output:?}");
        assert_eq!(agent.ended(&session), "completed");
        let events = agent.events(&session);
        let approvals: Vec<_> = events
            .iter()
            .filter(|event| event["type"] == "approval")
            .collect();
        assert_eq!(approvals.len(), 1, "{approvals:?}");
        assert_eq!(
            status == 200,
            approvals[0]["source"] == "http",
            "{status} {body} {approvals:?} {output:?}"
        );
        assert_eq!(agent.folder.read("ran").lines().count(), ran_before + 1);
    }
}

#[test]
fn a_foreign_key_finds_nothing() {
    let keys = testkit::File::new("keys", "key-one-0123456789\nkey-two-0123456789\n");
    let agent = Agent::new(&[remove()], turns(), &["--key-file", keys.path()]);
    let as_key = |key: &str| format!("{}authorization: Bearer {key}\r\n", testkit::JSON);
    let body = json!({"model": "m", "input": "Hi", "background": true}).to_string();
    let begun = agent.service.ask(
        "POST",
        "/v1/responses",
        &as_key("key-one-0123456789"),
        &body,
    );
    let session = service::agent::session_of(&begun);
    let hash = agent.waits(&session, "c1");
    let body = json!({"hash": hash, "result": "x", "content": "Hi"}).to_string();
    for path in [
        "calls/c1/approve",
        "calls/c1/deny",
        "calls/c1/answer",
        "calls/c1/cancel",
        "cancel",
        "messages",
    ] {
        let ask = |session: &str| {
            let answer = agent.service.ask(
                "POST",
                &format!("/v1/sessions/{session}/{path}"),
                &as_key("key-two-0123456789"),
                &body,
            );
            (answer.status, answer.body)
        };
        let foreign = ask(&session);
        assert_eq!(foreign, ask("0123456789abcdef0123456789abcdef"), "{path}");
        assert_eq!(foreign.0, 404, "{path}");
    }
    let approve = format!("/v1/sessions/{session}/calls/c1/approve");
    assert_eq!(
        agent
            .service
            .ask("POST", &approve, &as_key("key-one-0123456789"), &body)
            .status,
        200
    );
    assert_eq!(agent.ended(&session), "completed");
}

/// A tool that makes the file `pid`, and runs in the folder until it is killed.
fn slow(class: &str) -> Value {
    tool(
        "slow",
        class,
        "cd @/; echo $$ >pid; exec sleep 1000",
        &json!({"timeout": "2000s"}),
    )
}

/// Waits until the tool runs.
fn pid(agent: &Agent) {
    wait_until("the tool runs", || agent.folder.read("pid").ends_with('\n'));
}

/// Waits until no tool runs in the folder.
fn gone(agent: &Agent) {
    wait_until("the tool is gone", || agent.folder.processes().is_empty());
}

#[test]
fn a_call_that_runs_is_cancelled_by_its_id_and_the_model_hears_of_it() {
    for class in ["read", "danger"] {
        let turns = vec![
            Turn::says("Wait.").calls_text("c1", "slow", "x"),
            Turn::says("It was stopped."),
        ];
        let agent = Agent::new(&[slow(class)], turns, &[]);
        let (id, session) = agent.begin("Hi");
        if class == "danger" {
            let hash = agent.waits(&session, "c1");
            let (status, body) = agent.answers(&session, "c1", "cancel", &json!({}));
            assert_eq!(status, 409, "{body}");
            agent.approves(&session, "c1", &hash);
        }
        pid(&agent);
        let (status, body) = agent.answers(&session, "c1", "cancel", &json!({}));
        assert_eq!(status, 200, "{class} {body}");
        assert_eq!(agent.ended(&session), "completed");
        gone(&agent);
        let cancelled = agent
            .events(&session)
            .into_iter()
            .find(|event| event["type"] == "tool_result" && event["status"] == "cancelled");
        assert!(cancelled.is_some(), "{:?}", agent.events(&session));
        assert!(output(&agent, &id).to_string().contains("It was stopped."));
        assert_eq!(agent.answers(&session, "c1", "cancel", &json!({})).0, 409);
    }
}

#[test]
fn a_cancelled_response_ends_its_tools_and_a_late_cancel_hits_nothing() {
    for class in ["read", "danger"] {
        let turns = vec![
            Turn::says("Wait.").calls_text("c1", "slow", "x"),
            Turn::says("Later."),
        ];
        let agent = Agent::new(&[slow(class)], turns, &[]);
        let (id, session) = agent.begin("Hi");
        if class == "danger" {
            let hash = agent.waits(&session, "c1");
            agent.approves(&session, "c1", &hash);
        }
        pid(&agent);
        for _ in 0..2 {
            let answer = agent
                .service
                .post(&format!("/v1/responses/{id}/cancel"), "{}");
            let body: Value = serde_json::from_str(&answer.body).unwrap();
            assert_eq!(
                (answer.status, &body["status"]),
                (200, &json!("cancelled")),
                "{class} {body:#}"
            );
            gone(&agent);
        }
        let events = agent.events(&session);
        let cancels = events
            .iter()
            .filter(|event| event["type"] == "cancel")
            .count();
        assert_eq!(
            (cancels, events.last().unwrap()["status"].as_str()),
            (1, Some("cancelled")),
            "{events:#?}"
        );
        // The session goes on, and a cancellation of the response that has ended does not hit it.
        std::fs::remove_file(agent.folder.path("pid")).unwrap();
        let next =
            json!({"model": "m", "previous_response_id": id, "input": "Again", "background": true});
        let answer = agent.service.post("/v1/responses", &next.to_string());
        assert_eq!(answer.status, 200, "{answer:?}");
        let late = agent.service.post(
            &format!("/v1/sessions/{session}/cancel"),
            &json!({"response_id": id}).to_string(),
        );
        assert!(
            late.status == 200 && late.body.contains("\"cancelled\":null"),
            "{late:?}"
        );
        let again = agent
            .service
            .post(&format!("/v1/responses/{id}/cancel"), "{}");
        assert_eq!(again.status, 200, "{again:?}");
        let next: Value = serde_json::from_str(&answer.body).unwrap();
        let next = next["id"]
            .as_str()
            .unwrap()
            .trim_start_matches("resp_")
            .to_owned();
        agent.event(&session, |event| {
            event["type"] == "response_end"
                && event["id"] == *next
                && event["status"] == "completed"
        });
    }
}

#[test]
fn a_client_that_leaves_ends_its_tool_and_one_in_the_background_does_not() {
    let turns = vec![
        Turn::says("Wait.").calls_text("c1", "slow", "x"),
        Turn::says("Later."),
    ];
    let agent = Agent::new(&[slow("read")], turns, &[]);
    let body = FRONTS[2].body("Hi", &Value::Null);
    let mut client = agent
        .service
        .send("POST", "/v1/responses", testkit::JSON, &body);
    client.until("mcp_call");
    let session = service::agent::session_of(&client.until("response"));
    pid(&agent);
    drop(client);
    assert_eq!(agent.ended(&session), "cancelled");
    gone(&agent);
    std::fs::remove_file(agent.folder.path("pid")).unwrap();
    let (id, session) = agent.begin("Hi");
    pid(&agent);
    let mut client = agent
        .service
        .send("GET", &format!("/v1/responses/{id}?stream=true"), "", "");
    client.until("mcp_call");
    drop(client);
    assert!(!agent.folder.processes().is_empty());
    assert_eq!(agent.answers(&session, "c1", "cancel", &json!({})).0, 200);
    assert_eq!(agent.ended(&session), "completed");
}

#[test]
fn what_a_person_says_in_a_running_turn_is_read_by_the_next() {
    let gate = tool(
        "gate",
        "read",
        "echo $$ >@/pid; until [ -e @/open ]; do sleep 0.02; done; echo opened",
        &json!({"timeout": "100s"}),
    );
    let turns = vec![
        Turn::says("Wait.").calls_text("c1", "gate", "x"),
        Turn::says("I heard it."),
        Turn::says("Indeed."),
    ];
    let agent = Agent::new(&[gate], turns, &[]);
    let (_, session) = agent.begin("Hi");
    pid(&agent);
    let said = agent.service.post(
        &format!("/v1/sessions/{session}/messages"),
        r#"{"content":"Use the blue one"}"#,
    );
    assert!(
        said.status == 200 && said.body.contains("\"queued\":true"),
        "{said:?}"
    );
    agent.folder.write("open", "");
    assert_eq!(agent.ended(&session), "completed");
    let asked = agent.model.asked();
    let last = &asked.last().unwrap().body["messages"];
    let roles: Vec<_> = last
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool", "user"], "{last:#}");
    let empty = agent.service.post(
        &format!("/v1/sessions/{session}/messages"),
        r#"{"content":""}"#,
    );
    assert_eq!(empty.status, 400);
    let idle = agent.service.post(
        &format!("/v1/sessions/{session}/messages"),
        r#"{"content":"Later"}"#,
    );
    assert!(
        idle.status == 200 && idle.body.contains("\"queued\":false"),
        "{idle:?}"
    );
}

/// Clients take `.` and `..` out of a path, encoded or not.
#[test]
fn calls_of_ids_that_no_path_can_have_get_others() {
    for id in [".", ".."] {
        let turns = vec![
            Turn::says("Now.").calls_text(id, "remove", "x"),
            Turn::says("Done."),
        ];
        let agent = Agent::new(&[remove()], turns, &[]);
        let (_, session) = agent.begin("Remove it.");
        let pending = agent.event(&session, |event| event["status"] == "pending");
        let call = pending["tool_id"].as_str().expect("an id");
        assert!(call.len() > 2, "{call}");
        let hash = pending["hash"].as_str().expect("a hash");
        agent.approves(&session, call, hash);
        assert_eq!(agent.ended(&session), "completed");
        let chat = json!({"model": "m", "id": id, "messages": [
            {"id": "u", "role": "user", "parts": [{"type": "text", "text": "hi"}]}]});
        let refused = agent.service.post("/api/chat", &chat.to_string());
        assert_eq!(refused.status, 400, "{}", refused.body);
    }
}

#[test]
fn a_write_call_that_was_cut_waits_for_its_result_and_does_not_run_again() {
    let write = tool(
        "put",
        "write",
        "cd @/; echo \"$1\" >>ran; echo $$ >pid; exec sleep 1000",
        &json!({"timeout": "2000s"}),
    );
    let turns = vec![
        Turn::says("Put.").calls_text("c1", "put", "x"),
        Turn::says("It is there."),
    ];
    let mut agent = Agent::new(&[write], turns, &["--ask", "danger"]);
    let (id, session) = agent.begin("Hi");
    pid(&agent);
    agent.kill();
    agent.restart();
    let hash = agent.waits(&session, "c1");
    let (status, body) = agent.answers(&session, "c1", "answer", &json!({"hash": hash}));
    assert_eq!(status, 400, "{body}");
    let (status, body) = agent.answers(
        &session,
        "c1",
        "answer",
        &json!({"hash": hash, "result": "it was put there"}),
    );
    assert_eq!(status, 200, "{body}");
    assert_eq!(agent.ended(&session), "completed");
    assert_eq!(agent.folder.read("ran"), "x\n");
    assert!(output(&agent, &id).to_string().contains("it was put there"));
}

#[test]
fn what_a_person_writes_is_on_no_command_line() {
    let wait = tool(
        "remove",
        "danger",
        "echo >@/began; until [ -e @/go ]; do sleep 0.01; done",
        &Value::Null,
    );
    let agent = Agent::new(&[wait], turns(), &[]);
    let (_, session) = agent.begin("Hi");
    let hash = agent.waits(&session, "c1");
    let reason = "her own reason 7321";
    agent.answers(
        &session,
        "c1",
        "approve",
        &json!({"hash": hash, "reason": reason}),
    );
    wait_until("the call to run", || agent.folder.path("began").exists());
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        assert!(!line.contains(reason), "{line}");
    }
    agent.folder.write("go", "");
    assert_eq!(agent.ended(&session), "completed");
    let events = agent.events(&session);
    assert!(events.iter().any(|event| event["reason"] == reason));
}
