//! Servers of tools behind HTTP.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::harness::{Dir, message, run_command};
use crate::server::http::HttpServer;
use crate::server::{command, entry, lock, run_calls, with_tools};
use serde_json::{Value, json};

fn none(_: &str, _: &Value) -> Option<String> {
    None
}

#[test]
fn a_session_with_a_program_and_an_http_server() {
    let dir = Dir::new();
    let web = with_tools(&dir, "web", &["echo", "fail", "progress", "image"]);
    let local = with_tools(&dir, "local", &["echo", "env", "pid"]);
    let http = HttpServer::new(&web, none);
    let servers = json!({"web": http.entry(&json!({"class": {"echo": "read"}})), "local": entry(&local, &json!({"class": "write"}))});
    let file = json!({"mcpServers": servers});
    lock(&dir, &file);
    let list = run_command(command(&dir, &file, &["--list"]), "");
    let list: Vec<Value> = serde_json::from_str(&list.text).unwrap();
    assert_eq!(
        (
            list.len(),
            &list[0]["function"]["name"],
            &list[6]["function"]["name"]
        ),
        (7, &json!("web__echo"), &json!("local__pid"))
    );
    let calls = [
        ("a", "web__echo", json!({"n": 1})),
        ("b", "local__echo", json!({"n": 2})),
        ("c", "web__fail", json!({})),
        ("d", "web__progress", json!({})),
    ];
    let out = run_calls(&dir, &file, &calls, &["--progress"]);
    assert_eq!(
        (out.outcome("a"), out.outcome("b")),
        (("success", "{\"n\":1}"), ("success", "{\"n\":2}"))
    );
    assert_eq!(
        (out.outcome("c"), out.outcome("d")),
        (("error", "no luck"), ("success", "done"))
    );
    let steps: Vec<_> = out
        .of("tool_progress")
        .iter()
        .map(|e| (e["progress"].as_f64(), e["text"].clone()))
        .collect();
    assert_eq!(
        steps,
        [(Some(0.25), json!("one")), (Some(0.75), json!("three"))]
    );
    // The session that the server opened is named in what follows, and ended.
    assert!(http.headers("mcp-session-id").iter().all(|id| id == "s-1"));
    let seen = http.seen.lock().unwrap();
    assert_eq!(
        seen.iter()
            .filter(|request| request.method() == "DELETE")
            .count(),
        3,
        "one for each run"
    );
}

#[test]
fn headers_come_from_the_environment_and_are_never_shown() {
    let dir = Dir::new();
    let folder = with_tools(&dir, "web", &["echo", "told"]);
    let http = HttpServer::new(&folder, |_, body| {
        (body["params"]["name"] == "told").then(|| {
            let body = "no entry for Bearer abc-123-canary";
            format!(
                "HTTP/1.1 401 Unauthorized\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            )
        })
    });
    let file = json!({"mcpServers": {"web": http.entry(&json!({"headers": {"X-Auth": "Bearer $MCP_TEST_ODD"}}))}});
    let with = |args: &[&str]| {
        let mut command = command(&dir, &file, args);
        command.env("MCP_TEST_ODD", "abc-123-canary");
        command
    };
    let out = run_command(command(&dir, &file, &["--update-lock"]), "");
    assert!(
        out.status == 2
            && out
                .errors
                .contains("headers.X-Auth: the environment has no MCP_TEST_ODD"),
        "{}",
        out.errors
    );
    assert_eq!(run_command(with(&["--update-lock"]), "").status, 0);
    let calls = [
        ("a", "web__echo", json!({"x": "abc-123-canary"})),
        ("b", "web__told", json!({})),
    ];
    let out = run_command(
        with(&["--no-time", "--ask", "none"]),
        &(message(&calls) + "\n"),
    );
    assert_eq!(out.outcome("a"), ("success", "{\"x\":\"[redacted]\"}"));
    let (status, why) = out.outcome("b");
    assert!(
        status == "error"
            && why.contains("HTTP status 401")
            && why.contains("[redacted]")
            && !why.contains("canary"),
        "{why}"
    );
    assert!(!out.errors.contains("canary"));
    let headers = http.headers("x-auth");
    assert!(
        headers.len() > 4 && headers.iter().all(|value| value == "Bearer abc-123-canary"),
        "{headers:?}"
    );
    // A model's words are in the body alone.
    for bad in [
        json!({"X-A": "a\r\nb: c"}),
        json!({"Mcp-Session-Id": "x"}),
        json!({"a b": "c"}),
    ] {
        let file = json!({"mcpServers": {"web": http.entry(&json!({"headers": bad}))}});
        let out = run_command(command(&dir, &file, &["--update-lock"]), "");
        assert!(
            out.status == 2 && out.errors.contains("headers."),
            "{}",
            out.errors
        );
    }
}

#[test]
fn addresses_that_are_not_of_the_public_internet_are_refused_66() {
    let dir = Dir::new();
    for (server, want) in [
        (
            json!({"url": "http://169.254.169.254/mcp"}),
            "169.254.169.254 is a link-local address",
        ),
        (
            json!({"url": "http://[::ffff:10.0.0.1]/mcp"}),
            "10.0.0.1 is a private address",
        ),
        (json!({"url": "file:///etc/passwd"}), "the URL has no host"),
        (
            json!({"url": "gopher://h:70/"}),
            "gopher is neither http nor https",
        ),
    ] {
        let out = run_command(
            command(
                &dir,
                &json!({"mcpServers": {"web": server}}),
                &["--update-lock"],
            ),
            "",
        );
        assert!(
            out.status == 2 && out.errors.contains(want),
            "{want}: {}",
            out.errors
        );
    }
}

#[test]
fn a_redirect_is_not_followed_64() {
    let dir = Dir::new();
    let folder = with_tools(&dir, "web", &["echo"]);
    let other = HttpServer::new(&folder, none);
    let to = format!(
        "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:{}/mcp\r\ncontent-length: 0\r\n\r\n",
        other.port
    );
    let http = HttpServer::new(&folder, move |_, _| Some(to.clone()));
    let file = json!({"mcpServers": {"web": http.entry(&json!({"headers": {"Authorization": "Bearer abcdef"}}))}});
    let out = run_command(command(&dir, &file, &["--update-lock"]), "");
    assert!(
        out.status == 2 && out.errors.contains("which is not followed"),
        "{}",
        out.errors
    );
    assert!(other.seen.lock().unwrap().is_empty());
}

#[test]
fn an_answer_without_end_is_an_error_and_the_run_goes_on_77() {
    let dir = Dir::new();
    let folder = with_tools(&dir, "web", &["long", "stream", "wrong", "echo"]);
    let http = HttpServer::new(&folder, |_, body| {
        let huge = "x".repeat(17 << 20);
        let (kind, text) = match body["params"]["name"].as_str()? {
            "long" => ("application/json", huge),
            "stream" => ("text/event-stream", format!("data: {huge}\n\n")),
            "wrong" => ("text/html", "<p>hello".to_owned()),
            _ => return None,
        };
        Some(format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{text}",
            text.len()
        ))
    });
    let file = json!({"mcpServers": {"web": http.entry(&json!({"timeout": "30s"}))}});
    lock(&dir, &file);
    let calls = [
        ("a", "web__long", json!({})),
        ("b", "web__stream", json!({})),
        ("c", "web__wrong", json!({})),
        ("d", "web__echo", json!({})),
    ];
    let out = run_calls(&dir, &file, &calls, &[]);
    for id in ["a", "b", "c"] {
        let (status, why) = out.outcome(id);
        assert!(
            status == "error" && why.contains("The call may have acted;"),
            "{id}: {why}"
        );
    }
    assert_eq!(out.outcome("d"), ("success", "{}"));
}

#[test]
fn a_server_that_asks_without_end_and_takes_no_answer_is_an_error_77() {
    let dir = Dir::new();
    let folder = with_tools(&dir, "web", &["asks", "echo"]);
    let http = HttpServer::new(&folder, |_, body| {
        if body.get("result").is_some() || body.get("error").is_some() {
            // An answer to one of the questions: it is never taken.
            loop {
                std::thread::park();
            }
        }
        if body["params"]["name"] != "asks" {
            return None;
        }
        let question = |number| {
            format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{number},\"method\":\"ping\"}}\n\n")
        };
        let text: String = (0..1000).map(question).collect();
        Some(format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999999\r\n\r\n{text}"
        ))
    });
    let file = json!({"mcpServers": {"web": http.entry(&json!({"timeout": "60s"}))}});
    lock(&dir, &file);
    let out = run_calls(&dir, &file, &[("a", "web__asks", json!({}))], &[]);
    let (status, why) = out.outcome("a");
    assert!(
        status == "error" && why.contains("asked 256 times and did not read the answers"),
        "{status} {why}"
    );
}

#[test]
fn an_event_that_is_no_message_ends_the_wait() {
    let dir = Dir::new();
    let folder = with_tools(&dir, "web", &["cut", "no_message"]);
    let http = HttpServer::new(&folder, |_, body| {
        let data = match body["params"]["name"].as_str()? {
            "cut" => "{\"jsonrpc\":\"2.0\",\"id\":",
            "no_message" => "{\"result\":{}}",
            _ => return None,
        };
        // The stream stays open: its length is never reached.
        Some(format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 999\r\n\r\ndata: {data}\n\n"
        ))
    });
    let file = json!({"mcpServers": {"web": http.entry(&json!({"timeout": "20s"}))}});
    lock(&dir, &file);
    let calls = [
        ("a", "web__cut", json!({})),
        ("b", "web__no_message", json!({})),
    ];
    let out = run_calls(&dir, &file, &calls, &[]);
    for id in ["a", "b"] {
        let (status, why) = out.outcome(id);
        assert!(
            status == "error" && why.contains("not a message of MCP"),
            "{id}: {status} {why}"
        );
    }
}

#[test]
fn an_id_that_comes_back_as_text_is_the_same_id_over_http() {
    let dir = Dir::new();
    let folder = with_tools(&dir, "web", &["events", "json"]);
    let http = HttpServer::new(&folder, |_, body| {
        let is_stream = body["params"]["name"].as_str()? == "events";
        let id = body["id"].to_string();
        let message = json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "came"}]}});
        let (kind, data) = match is_stream {
            true => ("text/event-stream", format!("data: {message}\n\n")),
            false => ("application/json", message.to_string()),
        };
        Some(format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{data}",
            data.len()
        ))
    });
    let file = json!({"mcpServers": {"web": http.entry(&json!({"timeout": "5s"}))}});
    lock(&dir, &file);
    let calls = [
        ("a", "web__events", json!({})),
        ("b", "web__json", json!({})),
    ];
    let out = run_calls(&dir, &file, &calls, &[]);
    for id in ["a", "b"] {
        assert_eq!(out.outcome(id), ("success", "came"), "{}", out.errors);
    }
}

#[test]
fn a_call_that_a_server_got_is_never_said_not_to_have_been_sent() {
    let dir = Dir::new();
    let names = ["status", "moved", "refuse", "echo"];
    let folder = with_tools(&dir, "web", &names);
    let http = HttpServer::new(&folder, |_, body| {
        Some(match body["params"]["name"].as_str()? {
            "status" => "HTTP/1.1 500 No\r\ncontent-length: 4\r\n\r\noops".to_owned(),
            "moved" => {
                "HTTP/1.1 303 See Other\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n".to_owned()
            }
            _ => return None,
        })
    });
    let file = json!({"mcpServers": {"web": http.entry(&json!({"timeout": "30s"}))}});
    lock(&dir, &file);
    let calls = names.map(|name| (name, format!("web__{name}"), json!({})));
    let calls: Vec<_> = calls
        .iter()
        .map(|(id, name, of)| (*id, name.as_str(), of.clone()))
        .collect();
    let own = run_calls(&dir, &file, &calls, &[]);
    // Behind a hub, too.
    let input = message(&calls) + "\n";
    dir.write("in", input);
    let tool_exec = env!("CARGO_BIN_EXE_tool-exec");
    let inner = format!("'{tool_exec}' --tools tools.json --no-time --ask none <in");
    let hub = run_command(
        command(&dir, &file, &["--hub", "--", "sh", "-c", &inner]),
        "",
    );
    for out in [own, hub] {
        for id in &names[..2] {
            let (status, why) = out.outcome(id);
            let said = why.contains("The call may have acted;")
                && !why.contains("not be sent")
                && !why.contains("not sent");
            assert!(status == "error" && said, "{id}: {why}");
        }
        // An error that a server answers with is its own word.
        assert_eq!(out.outcome("refuse").1, "The server \"web\": bad luck");
        assert_eq!(out.outcome("echo"), ("success", "{}"));
    }
}

#[test]
fn a_server_that_is_gone_is_an_error_and_a_lost_session_is_opened_again() {
    let dir = Dir::new();
    let folder = with_tools(&dir, "web", &["echo"]);
    let lost = std::sync::atomic::AtomicBool::new(false);
    let http = HttpServer::new(&folder, move |_, body| {
        let is_call = body["method"] == "tools/call";
        (is_call && !lost.swap(true, std::sync::atomic::Ordering::Relaxed))
            .then(|| "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned())
    });
    let file = json!({"mcpServers": {"web": http.entry(&json!({}))}});
    lock(&dir, &file);
    assert_eq!(
        run_calls(&dir, &file, &[("a", "web__echo", json!({}))], &[]).outcome("a"),
        ("success", "{}")
    );
    let gone = json!({"mcpServers": {"web": {"url": "http://127.0.0.1:1/mcp"}}});
    let out = run_calls(&dir, &gone, &[("a", "web__echo", json!({}))], &[]);
    let (status, why) = out.outcome("a");
    let said =
        why.contains("no connection to http://127.0.0.1:1/mcp") && !why.contains("may have acted");
    assert!(status == "error" && said, "{why}");
}
