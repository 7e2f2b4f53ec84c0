//! Tools that send a request: what is sent, what the model gets, and where a request goes.

#![allow(clippy::unwrap_used, reason = "it is how a test fails")]

use crate::harness::{Dir, Live, Out, command, message, one, run_command, turn};
use crate::web::{GUARD, JSON, Server, Step, TEXT, allow, answer, asked, web};
use serde_json::{Value, json};
use std::sync::mpsc::channel;

/// A run of one call with these arguments, and these variables in its environment.
fn call(tool: &Value, arguments: Value, args: &[&str], env: &[(&str, &str)]) -> Out {
    let dir = Dir::new();
    let mut command = command(&dir, std::slice::from_ref(tool), args);
    command.envs(env.iter().copied());
    run_command(
        command,
        &(message(&[("i", tool["name"].as_str().unwrap(), arguments)]) + "\n"),
    )
}

#[test]
fn a_request_is_made_of_the_tools_file_the_arguments_and_the_environment() {
    let server = Server::new(vec![answer("200 OK", JSON, r#"{"temp": 3}"#)]);
    let http = json!({
        "query": {"q": "{a}", "unit": "{b}", "appid": "$WEATHER_ID"},
        "headers": {"Authorization": "Bearer $WEATHER_TOKEN", "X-Plain": "a$$b"},
    });
    let tool = web(
        "weather",
        &server,
        "/v1/{text}/now",
        http,
        json!({"class": "read"}),
    );
    let arguments = json!({"text": "São Paulo", "a": "x&appid=evil\r\nX-Evil: 1"});
    let out = call(
        &tool,
        arguments,
        &["--no-time"],
        &[("WEATHER_TOKEN", "t-0k-3n-99"), ("WEATHER_ID", "id/9")],
    );
    assert_eq!(out.outcome("i"), ("success", r#"{"temp": 3}"#));
    let asked = &asked(&server)[0];
    let first = "GET /v1/S%C3%A3o%20Paulo/now?q=x%26appid%3Devil%0D%0AX-Evil%3A%201&appid=id%2F9 HTTP/1.1\n";
    assert!(asked.starts_with(first), "{asked}");
    for header in [
        "\nauthorization: Bearer t-0k-3n-99\n",
        "\nx-plain: a$b\n",
        "\nuser-agent: toolpipe/",
    ] {
        assert!(asked.contains(header), "{asked}");
    }
    assert!(!asked.contains("x-evil"), "{asked}");
}

#[test]
fn a_request_names_the_span_of_its_call_to_the_server_of_the_tool_alone() {
    const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let other = Server::new(vec![answer("200 OK", TEXT, "there")]);
    let place = format!("location: {}\r\n", other.at("/x"));
    let server = Server::new(vec![
        answer("200 OK", TEXT, "here"),
        answer("200 OK", TEXT, "own"),
        answer("307 There", &place, ""),
    ]);
    let allow = json!([allow(&server)[0], allow(&other)[0]]);
    let env = [("TRACEPARENT", CALLER), ("TRACESTATE", "rojo=1")];
    for (headers, output) in [
        (json!({}), "here"),
        (json!({"traceparent": "mine"}), "own"),
        (json!({}), "there"),
    ] {
        let http = json!({"headers": headers, "redirects": 1, "allow": allow});
        let tool = web("w", &server, "/", http, json!({"class": "read"}));
        let out = call(&tool, json!({}), &["--no-time"], &env);
        assert_eq!(out.outcome("i"), ("success", output));
        let used = |event: &&Value| event["type"] == "tool_use";
        let span = out.events.iter().find(used).unwrap()["traceparent"]
            .as_str()
            .unwrap();
        assert!(span.starts_with(&CALLER[..36]) && span != CALLER, "{span}");
        let asked = &asked(&server)[0];
        let is_own = output == "own";
        let named = if is_own { "mine" } else { span };
        assert!(
            asked.contains(&format!("\ntraceparent: {named}\n")),
            "{asked}"
        );
        assert_eq!(asked.matches("traceparent").count(), 1, "{asked}");
    }
    assert!(!asked(&other)[0].contains("trace"));
}

/// The example of docs/tools-file.md with this server in the place of its own.
#[test]
fn the_example_of_the_docs_works() {
    let page = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/tools-file.md"
    ))
    .unwrap();
    let section = page.split_once("\n## `http`\n").unwrap().1;
    let example = section
        .split_once("```json\n")
        .unwrap()
        .1
        .split_once("```")
        .unwrap()
        .0;
    let server = Server::new(vec![answer("200 OK", JSON, "{\"sun\":true}")]);
    let mut tools: Vec<Value> =
        serde_json::from_str(&example.replace("https://api.example.com", &server.at(""))).unwrap();
    tools[0]["exec"]["http"]["allow"] = allow(&server);
    let env = [("WEATHER_TOKEN", "t-0k-3n-99"), ("WEATHER_ID", "id-9")];
    let out = call(
        &tools[0],
        json!({"city": "Bergen op Zoom", "days": 3}),
        &[],
        &env,
    );
    assert_eq!(out.outcome("i"), ("success", "{\"sun\":true}"));
    let asked = &asked(&server)[0];
    assert!(
        asked.starts_with("GET /v1/Bergen%20op%20Zoom/forecast?days=3&appid=id-9 HTTP/1.1\n"),
        "{asked}"
    );
    assert!(
        asked.contains("\nauthorization: Bearer t-0k-3n-99\n"),
        "{asked}"
    );
}

#[test]
fn the_arguments_without_a_place_are_the_body() {
    let ok = || answer("201 Created", TEXT, "made");
    for (http, want) in [
        (
            json!({"method": "POST"}),
            "content-type: application/json\ncontent-length: 9\n\n{\"b\":\"&\"}",
        ),
        (
            json!({"method": "PUT", "body": "form"}),
            "content-type: application/x-www-form-urlencoded\ncontent-length: 5\n\nb=%26",
        ),
        (
            json!({"method": "PATCH", "headers": {"Content-Type": "application/merge-patch+json"}}),
            "{\"b\":\"&\"}",
        ),
        (json!({"method": "DELETE"}), "\n\n"),
    ] {
        let server = Server::new(vec![ok()]);
        let tool = web("put", &server, "/{a}", http.clone(), json!({}));
        let out = one(&tool, &json!({"a": "x", "b": "&"}));
        assert_eq!(out.outcome("i"), ("success", "made"));
        let asked = &asked(&server)[0];
        let line = format!("{} /x HTTP/1.1\n", http["method"].as_str().unwrap());
        assert!(asked.starts_with(&line), "{asked}");
        let sorted = |text: &str| {
            let (head, body) = text.split_once("\n\n").unwrap_or(("", text));
            let mut lines: Vec<&str> = head.lines().collect();
            lines.sort_unstable();
            (lines.join("\n"), body.to_owned())
        };
        let ((head, body), (lines, wanted)) = (sorted(asked), sorted(want));
        assert!(
            body == wanted && lines.lines().all(|line| head.contains(line)),
            "{asked}"
        );
        assert_eq!(asked.contains("merge-patch"), http["headers"].is_object());
    }
}

#[test]
fn arguments_that_would_change_where_a_request_goes_are_refused() {
    let server = Server::new(vec![]);
    let tool = web("get", &server, "/files/{a}", json!({}), json!({}));
    for (arguments, says) in [
        (json!({"a": "../../admin"}), "leads to another folder"),
        (json!({"a": "%2e%2e%2fadmin"}), "leads to another folder"),
        (json!({"a": ""}), "it is empty"),
        (json!({}), "\"a\" is missing, and the address needs it"),
        (
            json!({"a": null}),
            "\"a\" is missing, and the address needs it",
        ),
    ] {
        let out = one(&tool, &arguments);
        let (status, output) = out.outcome("i");
        assert!(status == "invalid" && output.contains(says), "{output}");
    }
}

#[test]
fn an_answer_that_is_no_success_is_an_error_with_the_beginning_of_its_body() {
    let long = "x".repeat(20_000);
    for (status, headers, body, want) in [
        (
            "404 Not Found",
            JSON,
            "{\"message\":\"no such city\"}",
            "The server answered 404.\nbody:\n{\"message\":\"no such city\"}",
        ),
        (
            "429 Too Many Requests",
            "retry-after: 30\r\n",
            "",
            "The server answered 429 (Retry-After: 30).",
        ),
        ("304 Not Modified", "", "", "The server answered 304."),
        (
            "500 Internal Server Error",
            TEXT,
            &long,
            "[the body was cut]",
        ),
        (
            "200 OK",
            "content-encoding: gzip, gzip\r\n",
            "\u{1f}",
            "compressed in a way that tool-exec cannot read",
        ),
        (
            "200 OK",
            "content-encoding: zstd\r\n",
            "\u{1f}",
            "compressed in a way that tool-exec cannot read",
        ),
    ] {
        let server = Server::new(vec![answer(status, headers, body)]);
        let out = one(&web("get", &server, "/", json!({}), json!({})), &json!({}));
        let (status, output) = out.outcome("i");
        assert!(
            status == "error" && output.contains(want) && output.len() < 9000,
            "{output}"
        );
        assert_eq!(out.of("message").len(), 2, "the model gets a message");
    }
    let server = Server::new(vec![answer("204 No Content", "", "")]);
    assert_eq!(
        one(&web("get", &server, "/", json!({}), json!({})), &json!({})).outcome("i"),
        ("success", "")
    );
}

#[test]
fn an_address_that_is_not_of_the_internet_is_refused_unless_the_tools_file_allows_it() {
    let server = Server::new(vec![]);
    let port = server.port;
    for (url, allow) in [
        (format!("http://10.0.0.1:{port}/"), json!([])),
        (
            format!("http://10.0.0.1:{port}/"),
            json!(["10.0.0.1:1", "127.0.0.0/8", "other:80"]),
        ),
        (format!("http://10.1:{port}/"), json!([])),
        (format!("http://0x0a000001:{port}/"), json!([])),
        (format!("http://167772161:{port}/"), json!([])),
        (format!("http://[::ffff:10.0.0.1]:{port}/"), json!([])),
        ("http://[fe80::1]/".to_owned(), json!([])),
        (
            "http://169.254.169.254/latest/meta-data".to_owned(),
            json!(["127.0.0.1"]),
        ),
    ] {
        let tool = json!({"name": "get", "exec": {"http": {"url": url, "allow": allow}}});
        let out = one(&tool, &json!({}));
        let (status, output) = out.outcome("i");
        let host = url["http://".len()..].split('/').next().unwrap();
        let port = if host.ends_with(char::is_numeric) && host.contains(&format!(":{port}")) {
            ""
        } else {
            ":80"
        };
        let says = format!(
            "The request was not sent: write \"allow\": [\"{host}{port}\"] in exec.http to permit it"
        );
        assert!(
            status == "error"
                && output.starts_with(&says)
                && output.contains("which is not allowed"),
            "{url}: {output}"
        );
    }
    assert!(asked(&server).is_empty());
}

#[test]
fn an_address_of_this_machine_in_the_tools_file_needs_no_other_entry_as_for_mcp_servers() {
    for host in ["127.0.0.1", "localhost", "127.1"] {
        let server = Server::new(vec![answer("200 OK", TEXT, "here")]);
        let url = format!("http://{host}:{}/", server.port);
        let tool = json!({"name": "get", "exec": {"http": {"url": url}}});
        assert_eq!(one(&tool, &json!({})).outcome("i"), ("success", "here"));
    }
}

#[test]
fn a_key_that_the_tools_file_holds_goes_over_http_to_this_machine_alone() {
    let to = |http: Value| {
        let mut request = json!({"url": "http://192.0.2.1/", "allow": ["192.0.2.1"]});
        request
            .as_object_mut()
            .unwrap()
            .extend(http.as_object().unwrap().clone());
        let out = one(
            &json!({"name": "get", "exec": {"http": request}}),
            &json!({}),
        );
        out.outcome("i").1.to_owned()
    };
    for http in [
        json!({"headers": {"X-Api-Key": "k-12345678"}}),
        json!({"url": "http://192.0.2.1/?api_key=k-12345678"}),
        json!({"headers": {"X-Api-Key": "k-12345678"}, "proxy": "http://127.0.0.1:1"}),
    ] {
        let said = to(http);
        assert!(
            said.starts_with("The request was not sent: write \"insecure\": true in exec.http")
                && said.contains("a secret would go over http to 192.0.2.1"),
            "{said}"
        );
    }
}

#[test]
fn urls_of_other_kinds_and_places_for_an_argument_in_the_server_are_refused_when_the_file_is_read()
{
    for (http, says) in [
        (
            json!({"url": "file:///etc/passwd"}),
            "must begin with https:// or http://",
        ),
        (
            json!({"url": "gopher://h/"}),
            "must begin with https:// or http://",
        ),
        (
            json!({"url": "unix:/run/docker.sock"}),
            "must begin with https:// or http://",
        ),
        (
            json!({"url": "https://{a}/"}),
            "must not come from an argument",
        ),
        (
            json!({"url": "https://h/", "headers": {"X-A": "{a}"}}),
            "no header comes from a model",
        ),
        (
            json!({"url": "https://h/", "headers": {"X-A": "a\r\nX-B: 1"}}),
            "holds a line break",
        ),
        (
            json!({"url": "http://h.example/", "headers": {"X-A": "$KEY"}}),
            "sends a secret over http",
        ),
    ] {
        let tool =
            json!({"name": "get", "exec": {"http": http}, "parameters": {"properties": {"a": {}}}});
        let out = one(&tool, &json!({}));
        assert_eq!(
            (out.status, out.text.as_str(), out.errors.lines().count()),
            (2, "", 1),
            "{}",
            out.errors
        );
        assert!(out.errors.contains(says), "{}", out.errors);
    }
}

#[test]
fn a_redirect_is_followed_only_if_the_tools_file_says_so_and_each_server_is_checked() {
    let token = [("TOKEN", "t-0k-3n-99")];
    let headers = json!({"Authorization": "Bearer $TOKEN"});
    let to = |place: &str| answer("302 Found", &format!("location: {place}\r\n"), "");
    // Not followed, which is the default.
    let server = Server::new(vec![to("/b")]);
    let out = call(
        &web("get", &server, "/a", json!({}), json!({})),
        json!({}),
        &[],
        &[],
    );
    assert_eq!(
        out.outcome("i").1,
        "The server answered 302: it redirects to /b, which is not followed. The call may have acted; look before you repeat it."
    );
    // Within the server the headers go along.
    let server = Server::new(vec![to("/b"), answer("200 OK", TEXT, "b")]);
    let tool = web(
        "get",
        &server,
        "/a",
        json!({"redirects": 1, "headers": headers}),
        json!({}),
    );
    assert_eq!(
        call(&tool, json!({}), &[], &token).outcome("i"),
        ("success", "b")
    );
    let got = asked(&server);
    assert!(
        got[1].starts_with("GET /b ") && got[1].contains("authorization: Bearer t-0k-3n-99"),
        "{got:?}"
    );
    // One too many.
    let server = Server::new(vec![to("/b"), to("/c")]);
    let out = call(
        &web("get", &server, "/a", json!({"redirects": 1}), json!({})),
        json!({}),
        &[],
        &[],
    );
    assert!(
        out.outcome("i")
            .1
            .contains("it redirects to /c, which is not followed")
    );
    // To another server nothing goes along, and it must be allowed as well.
    let other = Server::new(vec![answer("200 OK", TEXT, "other")]);
    let server = Server::new(vec![
        to(&other.at("/x?k=v")),
        to(&other.at("/y")),
        to("http://169.254.169.254/z"),
    ]);
    let allow = json!([allow(&server)[0], allow(&other)[0]]);
    let tool = web(
        "get",
        &server,
        "/a",
        json!({"redirects": 3, "headers": headers, "allow": allow}),
        json!({}),
    );
    assert_eq!(
        call(&tool, json!({}), &[], &token).outcome("i"),
        ("success", "other")
    );
    let got = asked(&other);
    assert!(
        got[0].starts_with("GET /x?k=v ") && !got[0].contains("authorization"),
        "{got:?}"
    );
    let tool = web("get", &server, "/a", json!({"redirects": 3}), json!({}));
    for says in [
        "127.0.0.1 is a loopback address",
        "169.254.169.254 is a link-local address",
    ] {
        let out = call(&tool, json!({}), &[], &[]);
        assert!(
            out.outcome("i").0 == "error" && out.outcome("i").1.contains(says),
            "{:?}",
            out.outcome("i")
        );
    }
    assert!(asked(&other).is_empty());
}

#[test]
fn a_request_that_was_sent_is_never_said_not_to_have_been_sent() {
    let to = |place: &str| answer("303 See Other", &format!("location: {place}\r\n"), "");
    // The answer to a POST that has done its work redirects to a place that is refused, does not
    // answer, or cannot be used.
    for place in [
        "http://169.254.169.254/z",
        "http://[::ffff:10.0.0.1]/",
        "http://127.0.0.1:1/",
        "ftp://h/",
        "https://127.0.0.1:1/",
    ] {
        let server = Server::new(vec![to(place)]);
        let allow = json!([allow(&server)[0], "127.0.0.1:1"]);
        let tool = web(
            "put",
            &server,
            "/a",
            json!({"method": "POST", "redirects": 1, "allow": allow}),
            json!({}),
        );
        let out = call(&tool, json!({"text": "x"}), &[], &[]);
        let (status, said) = out.outcome("i");
        assert!(
            status == "error" && said.contains("The call may have acted;"),
            "{place}: {said}"
        );
        assert!(
            !said.contains("not sent") && asked(&server)[0].starts_with("POST /a "),
            "{place}: {said}"
        );
    }
    for script in [
        answer("500 No", TEXT, "no"),
        answer("302 Found", "location: /b\r\n", ""),
        vec![],
        vec![Step::Send(b"x".to_vec())],
    ] {
        let server = Server::new(vec![script]);
        let tool = web("put", &server, "/a", json!({"method": "POST"}), json!({}));
        let out = call(&tool, json!({"text": "x"}), &[], &[]);
        assert!(
            out.outcome("i").1.contains("The call may have acted;"),
            "{}",
            out.outcome("i").1
        );
    }
    // A server that refuses a request has answered it; one that nothing reaches has not acted.
    let server = Server::new(vec![answer("404 Not Found", TEXT, "no")]);
    let tool = web("put", &server, "/a", json!({"method": "POST"}), json!({}));
    assert_eq!(
        call(&tool, json!({}), &[], &[]).outcome("i").1,
        "The server answered 404.\nbody:\nno"
    );
    let gone = json!({"name": "put", "exec": {"http": {"url": "http://127.0.0.1:1/", "allow": ["127.0.0.1:1"]}}});
    let out = one(&gone, &json!({}));
    assert!(
        out.outcome("i")
            .1
            .starts_with("The request was not sent: no connection"),
        "{}",
        out.outcome("i").1
    );
}

#[test]
fn no_proxy_is_used_but_that_of_the_tools_file() {
    let server = Server::new(vec![
        answer("200 OK", TEXT, "direct"),
        answer("200 OK", TEXT, "by the proxy"),
    ]);
    let nobody = "http://127.0.0.1:1";
    let env = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"].map(|name| (name, nobody));
    let tool = web("get", &server, "/", json!({}), json!({}));
    assert_eq!(
        call(&tool, json!({}), &[], &env).outcome("i"),
        ("success", "direct")
    );
    let http = json!({"url": "http://example.invalid/x", "proxy": server.at("")});
    assert_eq!(
        call(
            &web("get", &server, "/", http, json!({})),
            json!({}),
            &[],
            &env
        )
        .outcome("i")
        .1,
        "by the proxy"
    );
    assert!(asked(&server)[1].starts_with("GET http://example.invalid/x HTTP/1.1\n"));
}

#[test]
fn a_variable_that_cannot_be_sent_is_an_error_that_names_it() {
    let server = Server::new(vec![]);
    let tool = web(
        "get",
        &server,
        "/",
        json!({"headers": {"X-Key": "$HTTP_TEST_KEY"}}),
        json!({}),
    );
    let out = call(&tool, json!({}), &[], &[]);
    assert!(
        out.errors
            .contains("\"get\" needs HTTP_TEST_KEY, which the environment does not have"),
        "{}",
        out.errors
    );
    assert!(
        out.outcome("i")
            .1
            .starts_with("The request was not sent: the environment has no HTTP_TEST_KEY.")
    );
    let out = call(
        &tool,
        json!({}),
        &[],
        &[("HTTP_TEST_KEY", "canary\r\nX-Evil: 1")],
    );
    let said = out.outcome("i").1;
    assert!(
        said.contains("HTTP_TEST_KEY holds a line break") && !said.contains("canary"),
        "{said}"
    );
    assert!(asked(&server).is_empty());
}

#[test]
fn the_key_of_a_call_is_the_same_when_it_runs_again() {
    let server = Server::new((0..3).map(|_| answer("200 OK", TEXT, "ok")).collect());
    let headers = json!({"Idempotency-Key": "$TOOL_CALL_ID"});
    let tool = web(
        "put",
        &server,
        "/",
        json!({"method": "POST", "headers": headers}),
        json!({}),
    );
    for text in ["x", "x", "y"] {
        let out = call(
            &tool,
            json!({"text": text}),
            &[],
            &[("TOOL_CALL_ID", "not this")],
        );
        assert!(
            out.outcome("i").0 == "success" && out.errors.is_empty(),
            "{}",
            out.errors
        );
    }
    let key = |asked: &String| {
        asked
            .lines()
            .find(|line| line.starts_with("idempotency-key: "))
            .unwrap()
            .to_owned()
    };
    let keys: Vec<String> = asked(&server).iter().map(key).collect();
    assert!(
        keys[0].len() == 17 + 32 && keys[0] == keys[1] && keys[0] != keys[2],
        "{keys:?}"
    );
}

#[test]
fn a_call_that_is_cancelled_closes_its_connection() {
    let (events, waits) = channel();
    let server = Server::new(vec![vec![
        Step::Reached(events.clone()),
        Step::UntilClosed(events),
    ]]);
    let dir = Dir::new();
    let mut live = Live::new(
        &dir,
        &[web(
            "get",
            &server,
            "/",
            json!({}),
            json!({"class": "read"}),
        )],
        &[],
    );
    turn(&[("i", "get", json!({}))])
        .lines()
        .for_each(|line| live.send(line));
    waits.recv_timeout(GUARD).unwrap();
    live.send(r#"{"type":"retract","tool_id":"i"}"#);
    waits.recv_timeout(GUARD).unwrap();
    let result = live.until("tool_result");
    assert_eq!(result["status"], "cancelled");
    live.end();
}

#[test]
fn an_answer_that_does_not_end_in_time_is_a_timeout() {
    let (events, _waits) = channel();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\npart of it";
    let server = Server::new(vec![
        vec![
            Step::Reached(events.clone()),
            Step::UntilClosed(events.clone()),
        ],
        vec![
            Step::Send(head.into()),
            Step::Reached(events.clone()),
            Step::UntilClosed(events),
        ],
    ]);
    let tool = web("get", &server, "/", json!({}), json!({"timeout": "300ms"}));
    let out = one(&tool, &json!({}));
    assert_eq!(
        out.outcome("i"),
        (
            "timeout",
            "An answer did not come within 300ms. The call may have acted; look before you repeat it."
        )
    );
    let out = one(&tool, &json!({}));
    assert_eq!(
        out.outcome("i"),
        (
            "timeout",
            "The answer did not end within 300ms: 10 bytes came. The call may have acted; look before you repeat it.\nbody:\npart of it"
        )
    );
}

#[test]
fn a_result_is_kept_in_the_cache_for_the_same_request() {
    let server = Server::new(vec![
        answer("200 OK", TEXT, "one"),
        answer("200 OK", TEXT, "two"),
        answer("500 No", TEXT, ""),
        answer("500 No", TEXT, ""),
    ]);
    let http = json!({"headers": {"X-Tenant": "$TENANT"}});
    let tool = web(
        "get",
        &server,
        "/{a}",
        http,
        json!({"class": "read", "cache": "10m"}),
    );
    let dir = Dir::new();
    let ask = |tenant: &str, a: &str| {
        let mut command = command(&dir, std::slice::from_ref(&tool), &["--cache", "cache"]);
        command.env("TENANT", tenant);
        let out = run_command(command, &(message(&[("i", "get", json!({"a": a}))]) + "\n"));
        (
            out.outcome("i").1.to_owned(),
            out.result("i")["cached"] == true,
        )
    };
    assert_eq!(ask("acme", "x"), ("one".to_owned(), false));
    assert_eq!(ask("acme", "x"), ("one".to_owned(), true));
    assert_eq!(ask("other", "x"), ("two".to_owned(), false));
    assert!(
        !ask("acme", "y").1 && !ask("acme", "y").1,
        "an error is not kept"
    );
    assert_eq!(asked(&server).len(), 4);
}

#[test]
fn what_is_no_text_is_described() {
    let body = b"\x89PNG\r\n\x1a\n\0\0";
    let server = Server::new(vec![answer("200 OK", "content-type: image/png\r\n", body)]);
    let dir = Dir::new();
    let mut command = command(&dir, &[web("get", &server, "/", json!({}), json!({}))], &[]);
    command.env("XDG_CACHE_HOME", dir.path("cache"));
    let out = run_command(command, &(message(&[("i", "get", json!({}))]) + "\n"));
    let (status, output) = out.outcome("i");
    assert!(
        status == "success" && output.contains("a PNG image, 10 bytes"),
        "{output}"
    );
    assert_eq!(out.result("i")["output_bytes"], 10);
    assert_eq!(
        std::fs::read(out.result("i")["output_file"].as_str().unwrap()).unwrap(),
        body
    );
}
