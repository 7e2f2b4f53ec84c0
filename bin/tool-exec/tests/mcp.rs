//! Tools of servers (MCP): how they are listed, called and answered, and what servers do wrong.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::harness::{self, Dir, Live, kill, message, run_command, wait_until};
use crate::server::{self, entry, lock, locked, processes, run_calls, with_tools};
use serde_json::{Value, json};

#[test]
fn the_tools_of_all_pages_are_listed_under_the_name_of_their_server_75() {
    let dir = Dir::new();
    let one = with_tools(&dir, "one", &["echo", "pid", "fail"]);
    let two = with_tools(&dir, "two", &["echo", "env"]);
    let own = json!([{"name": "own", "exec": {"command": ["true"]}}]);
    let servers =
        json!({"one": entry(&one, &json!({})), "two": entry(&two, &json!({"tools": ["e*o"]}))});
    let file = json!({"tools": own, "mcpServers": servers});
    lock(&dir, &file);
    let out = run_command(server::command(&dir, &file, &["--list"]), "");
    let list: Vec<Value> = serde_json::from_str(&out.text).unwrap();
    let names: Vec<&str> = list
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["own", "one__echo", "one__pid", "one__fail", "two__echo"]
    );
    assert_eq!(list[1]["function"]["description"], "Does echo.");
    // The same tool of two servers: each call goes to its own.
    let calls = [
        ("a", "one__echo", json!({"x": 1})),
        ("b", "two__echo", json!({"x": 2})),
        ("c", "two__env", json!({})),
    ];
    let out = run_calls(&dir, &file, &calls, &[]);
    assert_eq!(
        (out.outcome("a"), out.outcome("b")),
        (("success", "{\"x\":1}"), ("success", "{\"x\":2}"))
    );
    assert_eq!(
        out.outcome("c").0,
        "unknown_tool",
        "a tool that the file does not offer"
    );
    assert_eq!(
        std::fs::read_to_string(one.join("called")).unwrap(),
        "echo\n"
    );
}

#[test]
fn only_the_servers_of_called_tools_are_started() {
    let dir = Dir::new();
    let one = with_tools(&dir, "one", &["echo"]);
    let two = with_tools(&dir, "two", &["echo"]);
    let file =
        json!({"mcpServers": {"one": entry(&one, &json!({})), "two": entry(&two, &json!({}))}});
    lock(&dir, &file);
    let started = |of: &std::path::Path| {
        std::fs::read_to_string(of.join("started"))
            .unwrap()
            .lines()
            .count()
    };
    let before = (started(&one), started(&two));
    let out = run_calls(
        &dir,
        &file,
        &[("a", "one__echo", json!({})), ("b", "one__echo", json!({}))],
        &[],
    );
    assert_eq!(out.outcome("b"), ("success", "{}"));
    assert_eq!((started(&one), started(&two)), (before.0 + 1, before.1));
}

#[test]
fn results_become_text_that_a_model_can_read() {
    let dir = Dir::new();
    let tools = ["two_parts", "fail", "refuse", "structured", "odd", "image"];
    let (_, file) = locked(&dir, &tools, &json!({}));
    let calls: Vec<_> = tools
        .iter()
        .map(|name| (*name, format!("s__{name}")))
        .collect();
    let calls: Vec<_> = calls
        .iter()
        .map(|(id, name)| (*id, &**name, json!({})))
        .collect();
    let out = run_calls(&dir, &file, &calls, &[]);
    assert_eq!(out.outcome("two_parts"), ("success", "one\ntwo"));
    assert_eq!(out.outcome("fail"), ("error", "no luck"));
    assert_eq!(
        out.outcome("refuse"),
        ("error", "The server \"s\": bad luck")
    );
    assert_eq!(out.outcome("structured"), ("success", "{\"n\":1.5}"));
    assert_eq!(
        out.outcome("odd"),
        ("success", "{\"type\":\"hologram\",\"data\":\"x\"}")
    );
    let (status, image) = out.outcome("image");
    assert!(
        status == "success"
            && image.contains("[image: image/png, 8 bytes, in the file /")
            && image.contains("[a resource: x://z z]"),
        "{image}"
    );
    assert!(
        image.contains("[resource x://y: application/x-y, 3 bytes, in the file /"),
        "{image}"
    );
    let path = image
        .split_once("in the file ")
        .unwrap()
        .1
        .split_once(']')
        .unwrap()
        .0;
    assert!(
        path.starts_with(dir.path("xdg").to_str().unwrap()) && path.ends_with(".png"),
        "{path}"
    );
    assert_eq!(std::fs::read(path).unwrap(), b"\x89PNG\r\n\x1a\n");
}

#[test]
fn calls_run_at_once_and_progress_is_reported() {
    let dir = Dir::new();
    let (folder, file) = locked(&dir, &["wait", "progress"], &json!({"timeout": "60s"}));
    let command = server::command(&dir, &file, &["--no-time", "--ask", "none", "--progress"]);
    let mut live = Live::of(command);
    live.send(&harness::message(&[
        ("a", "s__wait", json!({})),
        ("b", "s__wait", json!({})),
        ("c", "s__progress", json!({})),
    ]));
    wait_until("two calls wait", || {
        std::fs::read_to_string(folder.join("waiting"))
            .unwrap_or_default()
            .lines()
            .count()
            == 2
    });
    std::fs::write(folder.join("go"), "").unwrap();
    let (status, rest) = live.end();
    assert_eq!(status, 0);
    let steps: Vec<_> = rest
        .iter()
        .filter(|e| e["type"] == "tool_progress")
        .map(|e| (e["progress"].as_f64(), &e["text"]))
        .collect();
    assert_eq!(
        steps,
        [(Some(0.25), &json!("one")), (Some(0.75), &json!("three"))]
    );
    assert_eq!(
        rest.iter()
            .filter(|e| e["type"] == "tool_result" && e["output"] == "went")
            .count(),
        2
    );
}

#[test]
fn an_answer_that_is_not_the_result_of_a_tool_is_an_error() {
    let dir = Dir::new();
    let (_, file) = locked(&dir, &["result"], &json!({}));
    let text = json!([{"type": "text", "text": "t"}]);
    for (result, want) in [
        (json!([1, 2]), None),
        (json!("the text"), None),
        (json!({"content": null}), None),
        (json!({"content": "the text"}), None),
        (json!({"content": {"type": "text", "text": "t"}}), None),
        (json!({"content": text, "isError": "true"}), None),
        (json!({"content": text, "isError": 1}), None),
        (
            json!({"content": text, "isError": false}),
            Some(("success", "t")),
        ),
        (
            json!({"content": text, "isError": true}),
            Some(("error", "t")),
        ),
        (json!({"content": []}), Some(("success", ""))),
        (
            json!({"structuredContent": {"n": 1}}),
            Some(("success", "{\"n\":1}")),
        ),
    ] {
        let out = run_calls(
            &dir,
            &file,
            &[("a", "s__result", json!({"result": result}))],
            &[],
        );
        let wrong = "The server \"s\": its answer is not the result of a tool. The call may have acted; look before you repeat it.";
        let want = want.unwrap_or(("error", wrong));
        assert_eq!(out.outcome("a"), want, "{result}");
    }
}

#[test]
fn structured_content_reaches_the_model_once() {
    let dir = Dir::new();
    let (_, file) = locked(&dir, &["result"], &json!({}));
    let text = |text: &str| json!({"type": "text", "text": text});
    let huts = json!({"huts": [9007199254740993_u64]});
    for (content, structured, want) in [
        (
            json!([text("one hut")]),
            huts.clone(),
            "one hut\n{\"huts\":[9007199254740993]}",
        ),
        (
            json!([text("")]),
            huts.clone(),
            "{\"huts\":[9007199254740993]}",
        ),
        (
            json!([text("{\"huts\": [9007199254740993]}")]),
            huts,
            "{\"huts\": [9007199254740993]}",
        ),
        (json!([text("x")]), json!({"result": "x"}), "x"),
        (
            json!([text("a file")]),
            json!({"content": "a file"}),
            "a file",
        ),
        (
            json!([text("1"), text("b")]),
            json!({"result": [1, "b"]}),
            "1\nb",
        ),
        (json!([text("x")]), Value::Null, "x"),
    ] {
        let result = json!({"content": content, "structuredContent": structured});
        let call = ("a", "s__result", json!({"result": result}));
        let out = run_calls(&dir, &file, &[call], &[]);
        assert_eq!(out.outcome("a"), ("success", want), "{result}");
    }
}

#[test]
fn a_tool_without_a_schema_costs_that_tool_alone() {
    let dir = Dir::new();
    let folder = with_tools(&dir, "s", &[]);
    let bad = json!({"name": "bad", "description": "No schema."});
    server::write_tools(
        &folder,
        &[
            server::listed("echo"),
            bad,
            json!({"inputSchema": {}}),
            server::listed("pid"),
            server::listed("env"),
        ],
    );
    let file = json!({"mcpServers": {"s": entry(&folder, &json!({}))}});
    let out = lock(&dir, &file);
    for want in [
        "left out: the tool \"bad\"",
        "left out: a tool without a name",
    ] {
        assert!(out.errors.contains(want), "{}", out.errors);
    }
    let out = run_command(server::command(&dir, &file, &["--list"]), "");
    let list: Vec<Value> = serde_json::from_str(&out.text).unwrap();
    let names: Vec<_> = list.iter().map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(names, ["s__echo", "s__pid", "s__env"]);
    let out = run_calls(&dir, &file, &[("a", "s__echo", json!({}))], &[]);
    assert_eq!(out.outcome("a"), ("success", "{}"));
}

#[test]
fn an_answer_that_is_no_message_ends_the_wait() {
    let dir = Dir::new();
    let (_, file) = locked(&dir, &["no_message", "no_id"], &json!({"timeout": "20s"}));
    for (tool, want) in [
        ("no_message", "its answer is not a message of MCP"),
        ("no_id", "cannot read that"),
    ] {
        let call = ("a", &*format!("s__{tool}"), json!({}));
        let out = run_calls(&dir, &file, &[call], &[]);
        let (status, text) = out.outcome("a");
        assert!(status == "error" && text.contains(want), "{status}: {text}");
    }
}

/// A known mistake of servers, which the official clients of Python and TypeScript accept.
#[test]
fn an_id_that_comes_back_as_text_is_the_same_id() {
    let dir = Dir::new();
    let (_, file) = locked(&dir, &["text_id", "padded_id"], &json!({"timeout": "5s"}));
    for (tool, want) in [("text_id", "a text"), ("padded_id", "right")] {
        let call = ("a", &*format!("s__{tool}"), json!({}));
        let out = run_calls(&dir, &file, &[call], &[]);
        assert_eq!(out.outcome("a"), ("success", want), "{}", out.errors);
        assert_eq!(out.errors.contains("which is not open"), want == "right");
    }
}

#[test]
fn what_a_server_says_of_a_failure_or_a_step_is_shortened() {
    let dir = Dir::new();
    let more = json!({"env": {"KEY": "$MCP_TEST_SECRET"}});
    let folder = with_tools(&dir, "s", &["refuse_long", "progress_long"]);
    let file = json!({"mcpServers": {"s": entry(&folder, &more)}});
    let with = |args: &[&str]| {
        let mut command = server::command(&dir, &file, args);
        command.env("MCP_TEST_SECRET", "s3cret-canary");
        command
    };
    assert_eq!(run_command(with(&["--update-lock"]), "").status, 0);
    let calls = [
        ("a", "s__refuse_long", json!({})),
        ("b", "s__progress_long", json!({})),
    ];
    let out = run_command(
        with(&[
            "--no-time",
            "--ask",
            "none",
            "--progress",
            "--max-result",
            "2048",
        ]),
        &(harness::message(&calls) + "\n"),
    );
    let (status, why) = out.outcome("a");
    assert!(
        status == "error" && why.starts_with("The server \"s\": EEE") && why.ends_with("Eend"),
        "{why}"
    );
    assert!(
        why.len() < 4096 && why.contains("bytes are left out here"),
        "{}",
        why.len()
    );
    assert_eq!(out.outcome("b"), ("success", "done"));
    let steps: Vec<_> = out
        .of("tool_progress")
        .iter()
        .map(|e| e["text"].as_str().unwrap())
        .collect();
    assert_eq!(
        steps,
        ["P".repeat(4092)],
        "a secret that was cut is not shown"
    );
}

#[test]
fn a_hint_of_a_server_grants_nothing_76() {
    let dir = Dir::new();
    let (folder, file) = locked(&dir, &["echo"], &json!({}));
    let call = harness::message(&[("a", "s__echo", json!({}))]) + "\n";
    let out = run_command(server::command(&dir, &file, &["--no-time"]), &call);
    assert_eq!(
        (out.status, out.outcome("a").0),
        (3, "pending"),
        "readOnlyHint: {}",
        out.text
    );
    assert!(!folder.join("called").exists());
    let file = json!({"mcpServers": {"s": entry(&folder, &json!({"class": {"echo": "read"}}))}});
    let out = run_command(server::command(&dir, &file, &["--no-time"]), &call);
    assert_eq!(out.outcome("a"), ("success", "{}"));
}

#[test]
fn a_call_that_is_late_or_cancelled_ends_and_the_server_is_told() {
    let dir = Dir::new();
    let (folder, file) = locked(&dir, &["wait", "echo"], &json!({"timeout": "300ms"}));
    let out = run_calls(
        &dir,
        &file,
        &[("a", "s__wait", json!({})), ("b", "s__echo", json!({}))],
        &[],
    );
    assert_eq!(out.outcome("a").0, "timeout", "{}", out.text);
    assert!(
        out.outcome("a").1.contains("did not answer within 300ms"),
        "{}",
        out.text
    );
    assert_eq!(out.outcome("b").0, "success");
    assert_eq!(
        std::fs::read_to_string(folder.join("cancelled"))
            .unwrap()
            .lines()
            .count(),
        1
    );
}

#[test]
fn the_environment_is_what_the_tools_file_declares_15() {
    let dir = Dir::new();
    let more = json!({"env": {"GIVEN": "a-$MCP_TEST_SECRET", "PLAIN": "5$"}});
    let folder = with_tools(&dir, "s", &["env"]);
    let file = json!({"mcpServers": {"s": entry(&folder, &more)}});
    let with = |command: std::process::Command| {
        let mut command = command;
        command
            .env("MCP_TEST_SECRET", "s3cret-canary")
            .env("OTHER_API_KEY", "canary-2");
        command
    };
    let out = run_command(server::command(&dir, &file, &["--update-lock"]), "");
    assert!(
        out.status == 2
            && out
                .errors
                .contains("env.GIVEN: the environment has no MCP_TEST_SECRET"),
        "{}",
        out.errors
    );
    run_command(with(server::command(&dir, &file, &["--update-lock"])), "");
    let out = run_command(
        with(server::command(
            &dir,
            &file,
            &["--no-time", "--ask", "none"],
        )),
        &(harness::message(&[("a", "s__env", json!({}))]) + "\n"),
    );
    let env = out.outcome("a").1;
    let mut names: Vec<&str> = env
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name)
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["GIVEN", "HOME", "LANG", "PATH", "PLAIN", "TMPDIR"]);
    assert!(
        env.contains("PLAIN=5$") && !out.text.contains("canary-2"),
        "{env}"
    );
}

#[test]
fn what_a_server_does_wrong_is_shown_and_the_run_goes_on_77() {
    let dir = Dir::new();
    let tools = ["log", "wrong_id", "twice", "echo"];
    let (_, file) = locked(&dir, &tools, &json!({}));
    let out = run_calls(
        &dir,
        &file,
        &[
            ("a", "s__log", json!({})),
            ("b", "s__wrong_id", json!({})),
            ("c", "s__twice", json!({})),
            ("d", "s__echo", json!({})),
        ],
        &[],
    );
    assert_eq!(out.outcome("a"), ("success", "after the log"));
    assert_eq!(out.outcome("b"), ("success", "right"));
    assert_eq!(out.outcome("c"), ("success", "first"));
    assert_eq!(out.outcome("d"), ("success", "{}"));
    for want in [
        "not a message to its standard output: \"I am a log line\"",
        "answered the request \"4711\", which is not open",
    ] {
        assert!(out.errors.contains(want), "{want}: {}", out.errors);
    }
    assert_eq!(out.status, 0);
}

#[test]
fn a_message_without_end_ends_the_session_and_not_the_run_77() {
    let dir = Dir::new();
    let (folder, file) = locked(&dir, &["long", "echo"], &json!({"timeout": "60s"}));
    let out = run_calls(&dir, &file, &[("a", "s__long", json!({}))], &[]);
    let (status, why) = out.outcome("a");
    assert!(
        status == "error" && why.contains("wrote a message of more than 16777216 bytes"),
        "{why}"
    );
    assert!(why.contains("The call may have acted;"), "{why}");
    let out = run_calls(
        &dir,
        &file,
        &[("a", "s__long", json!({})), ("b", "s__echo", json!({}))],
        &["--jobs", "1"],
    );
    assert_eq!(
        out.outcome("b"),
        ("success", "{}"),
        "the server was started again"
    );
    assert!(
        out.errors
            .contains("the server \"s\" has ended and is started again"),
        "{}",
        out.errors
    );
    assert_eq!(
        std::fs::read_to_string(folder.join("called")).unwrap(),
        "long\nlong\necho\n"
    );
}

#[test]
fn a_server_that_asks_without_end_and_does_not_read_is_ended_77() {
    let dir = Dir::new();
    let (_, file) = locked(&dir, &["asks", "echo"], &json!({"timeout": "60s"}));
    let out = run_calls(
        &dir,
        &file,
        &[("a", "s__asks", json!({})), ("b", "s__echo", json!({}))],
        &["--jobs", "1"],
    );
    let (status, why) = out.outcome("a");
    assert!(
        status == "error" && why.contains("it asked 256 times and did not read the answers"),
        "{why}"
    );
    assert_eq!(out.outcome("b"), ("success", "{}"));
}

#[test]
fn a_server_that_dies_is_an_error_and_starts_again_for_the_next_call() {
    let dir = Dir::new();
    let (_, file) = locked(&dir, &["crash", "echo"], &json!({}));
    let out = run_calls(
        &dir,
        &file,
        &[("a", "s__crash", json!({})), ("b", "s__echo", json!({}))],
        &["--jobs", "1"],
    );
    let (status, why) = out.outcome("a");
    assert!(
        status == "error" && why.contains("it has ended") && why.contains("out of cheese"),
        "{why}"
    );
    assert!(why.contains("The call may have acted;"), "{why}");
    assert_eq!(out.outcome("b"), ("success", "{}"));
}

#[test]
fn servers_and_what_they_started_end_with_the_run_22() {
    let dir = Dir::new();
    let (folder, file) = locked(&dir, &["spawn", "wait"], &json!({"timeout": "60s"}));
    let out = run_calls(&dir, &file, &[("a", "s__spawn", json!({}))], &[]);
    assert_eq!(out.outcome("a"), ("success", "spawned"));
    wait_until("the server is gone", || processes(&folder) == 0);
    // Killed, or told to end, in the middle of a call.
    for signal in ["KILL", "TERM"] {
        let _ = std::fs::remove_file(folder.join("waiting"));
        let mut live = Live::of(server::command(
            &dir,
            &file,
            &["--no-time", "--ask", "none"],
        ));
        live.send(&harness::message(&[
            ("a", "s__spawn", json!({})),
            ("b", "s__wait", json!({})),
        ]));
        wait_until("the call waits", || {
            folder.join("waiting").exists() && processes(&folder) == 2
        });
        kill(live.child.id(), signal);
        wait_until("the server is gone", || processes(&folder) == 0);
    }
}

#[test]
fn a_program_is_confined_as_the_tools_file_and_the_command_line_say() {
    let dir = Dir::new();
    let folder = with_tools(&dir, "s", &["touch"]);
    std::fs::create_dir(dir.path("outside")).unwrap();
    let outside = dir.path("outside/x");
    let mut touch = server::listed("touch");
    touch["inputSchema"] = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    server::write_tools(&folder, &[touch]);
    // The program runs in a folder of its own, and may write where it keeps its notes.
    let sandbox = json!({"cwd": "s", "sandbox": {"write": [folder]}});
    let plain = json!({"mcpServers": {"s": entry(&folder, &json!({"cwd": "s"}))}});
    let confined = json!({"mcpServers": {"s": entry(&folder, &sandbox)}});
    lock(&dir, &plain);
    let inside = folder.join("inside");
    let calls = [
        ("a", "s__touch", json!({"path": outside})),
        ("b", "s__touch", json!({"path": inside})),
    ];
    assert_eq!(
        run_calls(&dir, &plain, &calls, &[]).outcome("a"),
        ("success", "written")
    );
    std::fs::remove_file(&outside).unwrap();
    let out = run_calls(&dir, &confined, &calls, &[]);
    let (status, why) = out.outcome("a");
    if status == "error" && why.contains("its sandbox cannot be had") {
        harness::needs::skip(why);
        return;
    }
    assert!(!outside.exists() && why.contains("denied"), "{why}");
    assert_eq!(out.outcome("b"), ("success", "written"));
    // What is typed holds for servers too: this one cannot even write its notes.
    let out = run_calls(&dir, &plain, &calls, &["--sandbox", "landlock"]);
    assert_eq!(out.outcome("a").0, "error", "{}", out.outcome("a").1);
    assert!(!outside.exists());
}

const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[test]
fn a_server_gets_the_span_of_its_call() {
    let dir = Dir::new();
    let (_, file) = locked(&dir, &["meta"], &json!({}));
    let calls = [
        ("a", "s__meta", json!({})),
        ("b", "s__meta", json!({"x": 1})),
    ];
    let message = message(&calls) + "\n";
    let run = |variables: &[(&str, &str)]| {
        let mut command = server::command(&dir, &file, &["--no-time", "--ask", "none"]);
        command.env_remove("TRACEPARENT").env_remove("TRACESTATE");
        command.envs(variables.iter().copied());
        run_command(command, &message)
    };
    let out = run(&[("TRACEPARENT", CALLER), ("TRACESTATE", "rojo=1")]);
    let spans: Vec<String> = ["a", "b"]
        .iter()
        .map(|id| {
            let meta: Value = serde_json::from_str(out.outcome(id).1).unwrap();
            assert_eq!(meta["tracestate"], "rojo=1", "{meta}");
            let span = meta["traceparent"].as_str().unwrap().to_owned();
            let used = |event: &&Value| event["type"] == "tool_use" && event["tool_id"] == **id;
            assert_eq!(out.events.iter().find(used).unwrap()["traceparent"], span);
            assert_eq!((&span[..36], &span[52..]), (&CALLER[..36], "-01"));
            span
        })
        .collect();
    assert!(spans[0] != spans[1] && spans.iter().all(|span| span != CALLER));
    // A call is not traced without a `traceparent` of the caller, or with an invalid one.
    for variables in [
        &[][..],
        &[("TRACEPARENT", "00-0-0-01"), ("TRACESTATE", "rojo=1")],
    ] {
        let out = run(variables);
        let meta: Value = serde_json::from_str(out.outcome("a").1).unwrap();
        assert!(
            meta.get("traceparent").is_none() && meta.get("tracestate").is_none(),
            "{meta}"
        );
        assert!(!out.text.contains("traceparent"), "{}", out.text);
    }
}
