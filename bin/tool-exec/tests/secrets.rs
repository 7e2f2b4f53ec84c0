//! A secret that a tool sends, or that the environment holds, leaves on no way out: each test makes
//! a server or a command give it back.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::harness::{self, terminal};
use crate::harness::{Dir, command, message, run_command, script, turn};
use crate::server;
use crate::web::{Server, TEXT, answer, asked, web};
use serde_json::{Value, json};
use std::path::Path;

/// The values of the variables below. Each begins with the same word, so that one search finds any
/// of them, or a part of one.
const SECRETS: [(&str, &str); 4] = [
    // Named like a key.
    ("MAIL_PASSWORD", "canary-pa55/word"),
    // Named by a header and a parameter alone.
    ("TENANT", "canary-t3n4nt"),
    ("PLACE", "canary-pl4ce&x=1"),
    ("BASIC", "dXNlcjpjYW5hcnktYjRzaWM="), // user:canary-b4sic
];

/// Values of other variables that are named as secrets and are ordinary words: they stay in any
/// text.
const ORDINARY: [(&str, &str); 3] = [
    ("DEBUG_KEY", "1"),
    ("MODE_SECRET", "true"),
    ("KIND", "enabled"),
];

/// A tool that sends all of the secrets.
fn telling(server: &Server, more: Value) -> Value {
    let headers = json!({
        "X-Tenant": "$TENANT", "Authorization": "Basic $BASIC", "X-Kind": "$KIND", "X-Api-Key": "canary-in-the-f1le",
    });
    web(
        "get",
        server,
        "/p?token=canary-in-the-ur1",
        json!({"headers": headers, "query": {"place": "$PLACE"}}),
        more,
    )
}

/// All of them, as a server might give them back, among ordinary words.
fn all() -> String {
    let values = SECRETS.map(|(_, value)| value).join(" ");
    format!(
        "{values} user:canary-b4sic canary-pa55%2Fword canary-pl4ce%26x%3D1 canary-in-the-f1le canary-in-the-ur1 1 true enabled"
    )
}

/// What is left of [`all`].
fn is_clean(text: &str) -> bool {
    !text.contains("canary") && !text.contains("dXNlcjpjYW5hcnktYjRzaWM")
}

fn assert_clean(text: &str) {
    assert!(is_clean(text), "{text}");
}

/// All files below a folder, as one text.
fn files(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .map_while(Result::ok)
        .map(|entry| entry.path());
    entries
        .map(|path| {
            if path.is_dir() {
                files(&path)
            } else {
                std::fs::read_to_string(&path).unwrap() + "\n"
            }
        })
        .collect()
}

struct Ran {
    out: harness::Out,
    dir: Dir,
}

/// A run of one call with the secrets in the environment.
fn run(tool: &Value, args: &[&str]) -> Ran {
    let dir = Dir::new();
    let mut command = command(&dir, std::slice::from_ref(tool), args);
    command
        .envs(SECRETS)
        .envs(ORDINARY)
        .env("XDG_CACHE_HOME", dir.path("xdg"));
    let out = run_command(
        command,
        &(message(&[("i", tool["name"].as_str().unwrap(), json!({}))]) + "\n"),
    );
    Ran { out, dir }
}

#[test]
fn no_secret_is_in_a_result_an_event_a_journal_a_cache_or_a_file() {
    let long = format!("{}{}{}", all(), " x".repeat(2000), all());
    for (status, body) in [
        ("200 OK", all()),
        ("200 OK", long),
        ("401 Unauthorized", all()),
    ] {
        let server = Server::new(vec![answer(status, TEXT, &body)]);
        let tool = telling(
            &server,
            json!({"class": "read", "cache": "10m", "max_result": 1000}),
        );
        let args = ["--progress", "--journal", "journal", "--cache", "cache"];
        let Ran { out, dir } = run(&tool, &args);
        assert!(
            asked(&server)[0].contains("x-tenant: canary-t3n4nt"),
            "the server got it"
        );
        assert_clean(&out.text);
        assert_clean(&out.errors);
        assert!(
            out.outcome("i").1.contains("1 true enabled"),
            "ordinary words stay: {}",
            out.text
        );
        assert!(!out.of("tool_progress").is_empty(), "{}", out.text);
        std::fs::remove_file(dir.path("tools.json")).unwrap();
        assert_clean(&files(&dir.path(".")));
        assert!(dir.read("journal").contains("[redacted]"));
        if status == "200 OK" {
            assert!(files(&dir.path("cache")).contains("[redacted]"));
        }
        if body.len() > 1000 && status == "200 OK" {
            assert!(
                files(&dir.path("xdg")).contains("[redacted]"),
                "{}",
                out.text
            );
        }
    }
}

#[test]
fn no_secret_is_in_an_error() {
    for location in [
        "/canary-t3n4nt",
        "https://h/?x=canary-pl4ce%26x%3D1",
        "/?access_token=canary-of-the-server",
    ] {
        let server = Server::new(vec![answer(
            "302 Found",
            &format!("location: {location}\r\n"),
            "",
        )]);
        let out = run(&telling(&server, json!({})), &[]).out;
        assert!(
            out.outcome("i").1.contains("it redirects to") && out.text.contains("[redacted]"),
            "{}",
            out.text
        );
        assert_clean(&out.text);
    }
    // Nobody listens.
    let mut server = Server::new(vec![]);
    server.port = 1;
    server.url = "http://127.0.0.1:1".to_owned();
    let out = run(&telling(&server, json!({})), &[]).out;
    assert!(
        out.outcome("i")
            .1
            .contains("The request was not sent: no connection"),
        "{}",
        out.text
    );
    assert_clean(&out.text);
    // What ends the command.
    let out = run(
        &telling(&server, json!({})),
        &["--journal", "/nowhere/canary-pa55/word"],
    )
    .out;
    assert!(
        out.status == 2 && out.errors.contains("[redacted]"),
        "{}",
        out.errors
    );
    assert_clean(&out.errors);
}

#[test]
fn no_secret_is_in_a_dry_run() {
    let server = Server::new(vec![]);
    let out = run(&telling(&server, json!({})), &["--dry-run"]).out;
    let line = out.of("dry_run")[0];
    assert_eq!(line["method"], "GET");
    assert_eq!(
        line["url"].as_str().unwrap(),
        server.at("/p?token=[redacted]")
    );
    assert_clean(&out.text);
}

#[test]
fn no_key_of_the_tools_file_is_in_a_question() {
    if !terminal::can_have_a_terminal() {
        return;
    }
    let server = Server::new(vec![]);
    let request = telling(&server, json!({"class": "danger"}));
    let mut command = script("run", "exit 0", json!({"class": "danger"}));
    command["exec"]["command"] = json!([
        "true",
        "Authorization: Bearer ghp_canary0123456789abcdef0123456789abcd"
    ]);
    for tool in [request, command] {
        let dir = Dir::new();
        let input = turn(&[(
            "i",
            tool["name"].as_str().unwrap(),
            json!({"text": "shown"}),
        )]);
        let mut terminal = terminal::Terminal::new(&dir, &[tool], &input, &[], 80);
        terminal.prompts(1);
        let screen = terminal.screen();
        terminal.type_in("\n");
        terminal.end(&dir);
        assert!(
            screen.contains("[redacted]") && screen.contains("shown"),
            "{screen}"
        );
        assert_clean(&screen);
    }
}

#[test]
fn no_part_of_a_secret_is_left_where_an_output_is_cut() {
    for length in [3, 9, 15] {
        let cut = json!({"max_output": 5 + length});
        let tool = script(
            "cut",
            "printf 'xxxx canary-pa55/word and more'; printf 'yyyy canary-pa55/word and more' >&2",
            cut,
        );
        assert_clean(&run(&tool, &["--progress"]).out.text);
        let body = "xxxx canary-t3n4nt and more";
        let server = Server::new(vec![
            answer("200 OK", TEXT, body),
            answer(
                "200 OK",
                "content-length: 99\r\n",
                &body[..5 + length.min(12)],
            ),
        ]);
        let tool = telling(&server, json!({"max_output": 5 + length.min(12)}));
        for says in ["the rest was not read", "The answer was cut after"] {
            let out = run(&tool, &["--progress"]).out;
            assert!(
                out.outcome("i").1.contains(says) && out.outcome("i").1.contains("xxxx"),
                "{}",
                out.text
            );
            let text = out
                .text
                .replace("can't", "")
                .replace("The call may have acted", "");
            assert!(is_clean(&text) && !text.contains(" ca"), "{text}");
        }
    }
}

#[test]
fn the_answer_of_an_earlier_run_that_did_not_know_the_secret_is_cleaned() {
    let server = Server::new(vec![]);
    let tool = telling(&server, json!({}));
    let dir = Dir::new();
    let asked = message(&[("i", "get", json!({}))]);
    let result = json!({"type": "tool_result", "tool_id": "i", "tool_name": "get", "status": "success", "output": all()});
    dir.write("log", format!("{asked}\n{result}\n"));
    let mut command = command(&dir, &[tool], &["--resume", "log"]);
    command.envs(SECRETS);
    let out = run_command(command, "");
    assert!(
        out.text.contains("[redacted]") && out.of("message").len() == 1,
        "{}",
        out.text
    );
    assert_clean(&out.text);
}

/// The result of a command that is given these variables, and all that was written.
fn printed(line: &str, variables: &[(&str, &str)]) -> (String, String) {
    let names: Vec<&str> = variables.iter().map(|(name, _)| *name).collect();
    let mut tool = script("print", line, json!({"class": "read"}));
    tool["exec"]["env"] = json!(names);
    let dir = Dir::new();
    let mut command = command(&dir, &[tool], &["--progress"]);
    command.envs(variables.iter().copied());
    let out = run_command(command, &(message(&[("i", "print", json!({}))]) + "\n"));
    (out.outcome("i").1.to_owned(), out.text)
}

#[test]
fn no_line_of_a_secret_of_several_lines_is_in_a_result() {
    let (result, text) = printed(
        "printenv MY_KEY",
        &[("MY_KEY", "line1-abcd99\nline2-efgh77")],
    );
    assert!(
        result.contains("[redacted]") && !text.contains("abcd99") && !text.contains("efgh77"),
        "{text}"
    );
    let pem = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END PRIVATE KEY-----";
    for line in [
        "printenv MY_KEY",
        "printenv MY_KEY | tail -n +2",
        "printenv MY_KEY | while read -r line; do printf '%s\\r\\n' \"$line\"; done",
        "printenv MY_KEY | tail -n 2",
    ] {
        let (result, text) = printed(line, &[("MY_KEY", pem)]);
        assert!(
            result.contains("[redacted]") && !text.contains("MIIEv") && !text.contains("AQEFA"),
            "{line}: {text}"
        );
    }
}

#[test]
fn no_key_that_looks_like_a_path_or_a_url_is_in_a_result() {
    for key in [
        "/Xq3c8LkPz0Wm4vT9aVb2Rr7NnQe1sYd",
        ".s3cr3t-Pa55word!",
        "~x93kd02kdkd0",
        "ab9://kd93kdkd939dk",
    ] {
        let (result, text) = printed("printenv MY_KEY", &[("MY_KEY", key)]);
        assert!(
            result.contains("[redacted]") && !text.contains(key),
            "{text}"
        );
    }
    let (result, _) = printed("printenv MY_KEY", &[("MY_KEY", "/run/secrets/key-1")]);
    assert!(result.contains("/run/secrets/key-1"), "{result}");
}

#[test]
fn no_password_of_a_url_that_a_command_is_given_is_in_a_result() {
    let url = "postgres://user:canary-0p3n%2Fme@host/db";
    let line = "printenv DATABASE_URL; echo canary-0p3n/me; printenv RESERVATIONS; printenv MODE";
    let given = [
        ("DATABASE_URL", url),
        ("RESERVATIONS", "/srv/Table4x2/file"),
        ("MODE", "mode-7-of-9"),
    ];
    let (result, text) = printed(line, &given);
    assert_clean(&text.replace("echo canary-0p3n/me", ""));
    assert_eq!(
        result,
        "postgres://user:[redacted]@host/db\n[redacted]\n/srv/Table4x2/file\nmode-7-of-9\n"
    );
}

#[test]
fn no_value_that_a_server_is_given_from_a_variable_is_in_a_result() {
    let dir = Dir::new();
    let env = json!({
        "DSN": "$MY_DSN", "LINE": "user=me secret=${MY_LINE}", "URL": "https://me:canary-0f-f1le@host/", "MODE": "$MY_MODE",
        "FOLDER": "$MY_FOLDER", "PLAIN": "plain-7-of-9",
    });
    let folder = server::with_tools(&dir, "s", &["env", "echo"]);
    let file = json!({"mcpServers": {"s": server::entry(&folder, &json!({"env": env}))}});
    let run = |args: &[&str], input: &str| {
        let mut command = server::command(&dir, &file, args);
        command
            .env("MY_DSN", "canary-d5n x=1")
            .env("MY_LINE", "canary-l1ne")
            .env("MY_MODE", "enabled");
        command.env("MY_FOLDER", "/srv/canary/files");
        run_command(command, input)
    };
    assert_eq!(run(&["--update-lock"], "").status, 0);
    let calls = [
        ("a", "s__env", json!({})),
        ("b", "s__echo", json!({"x": "canary-l1ne"})),
    ];
    let out = run(&["--no-time", "--ask", "none"], &(message(&calls) + "\n"));
    let text = out.outcome("a").1;
    for stays in [
        "DSN=[redacted]",
        "https://me:[redacted]@host/",
        "MODE=enabled",
        "FOLDER=/srv/canary/files",
        "PLAIN=plain-7-of-9",
    ] {
        assert!(text.contains(stays), "{stays}: {text}");
    }
    assert_clean(&text.replace("/srv/canary/files", ""));
    assert_clean(out.outcome("b").1);
}

#[test]
fn no_part_of_an_encoded_secret_that_comes_in_two_writes_is_in_the_progress() {
    // The second is the base64 of `me:canary-pa55/word`.
    for (first, second) in [
        ("canary-pa55%2", "Fword"),
        ("bWU6Y2FuYXJ5LXBh", "NTUvd29yZA=="),
    ] {
        let line = format!("printf '%s' 'shown {first}'; sleep 0.5; printf '%s' '{second} after'");
        let out = run(
            &script("two", &line, json!({"class": "read"})),
            &["--progress"],
        )
        .out;
        let shown: String = out
            .of("tool_progress")
            .iter()
            .map(|event| event.to_string())
            .collect();
        assert!(shown.contains("shown"), "{}", out.text);
        assert!(
            !shown.contains("canary") && !shown.contains("Y2FuYXJ5"),
            "{shown}"
        );
    }
}
