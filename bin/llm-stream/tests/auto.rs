//! `--tools-mode auto`: who is asked, in which order, and what follows when tools are refused.

#![allow(clippy::unwrap_used, reason = "it is how a test fails")]

use crate::scripted::*;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::channel;

const TOOLS: &str = r#"[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}]"#;
const REFUSAL: &str = r#"{"error":"registry.ollama.ai/library/m does not support tools"}"#;

/// A home of a test's own, with a tools file, which goes with the test.
struct Home(Scratch);

impl Home {
    fn new() -> Home {
        let home = Scratch::new();
        std::fs::create_dir_all(home.join("config/toolpipe")).unwrap();
        home.write("tools.json", TOOLS);
        Home(home)
    }

    fn allow(&self, list: &str) {
        std::fs::write(self.0.join("config/toolpipe/tools-mode"), list).unwrap();
    }

    /// The files of the cache.
    fn known(&self) -> Vec<PathBuf> {
        let folder = std::fs::read_dir(self.0.join("cache/toolpipe/capabilities"));
        folder
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path())
            .collect()
    }

    /// The command in mode auto, against `url`.
    fn asking(&self, url: &str, args: &[&str]) -> Command {
        let mut command = command(&[
            "--base-url",
            url,
            "--model",
            "m",
            "--no-time",
            "--tools-mode",
            "auto",
        ]);
        command
            .args(args)
            .env("XDG_CONFIG_HOME", self.0.join("config"))
            .env("XDG_CACHE_HOME", self.0.join("cache"));
        command
    }

    /// One turn with a tool.
    fn turn(&self, url: &str, args: &[&str]) -> Ran {
        let mut command = self.asking(url, args);
        command
            .arg("--tools")
            .arg(self.0.join("tools.json"))
            .arg("hi");
        run(command)
    }

    fn probe(&self, url: &str, args: &[&str]) -> Value {
        let mut command = self.asking(url, args);
        command.arg("--probe");
        let ran = run(command);
        assert_eq!(
            (ran.status, ran.stdout.lines().count(), ran.stderr.as_str()),
            (0, 1, ""),
            "{ran:?}"
        );
        serde_json::from_str(&ran.stdout).unwrap()
    }
}

/// The answers of a server without any list of models, `n` times.
fn nothing(n: usize) -> Vec<Vec<Step>> {
    (0..n)
        .map(|_| answer("404 Not Found", JSON, "{\"error\":\"not found\"}"))
        .collect()
}

fn says(text: &str) -> Vec<Step> {
    answer("200 OK", SSE, chat(&[text]))
}

fn lines(asked: &[Request]) -> Vec<&str> {
    asked
        .iter()
        .map(|a| a.line.trim_end_matches(" HTTP/1.1"))
        .collect()
}

#[test]
fn the_servers_own_words_decide() {
    let home = Home::new();
    let list = |entry: &str| format!("{{\"data\":[{{\"id\":\"other\"}},{entry}]}}");
    let mut ollama = nothing(3);
    ollama.push(answer("200 OK", JSON, "{\"version\":\"0.13.5\"}"));
    for (api, script, answered, mode, last) in [
        (
            "openai-chat",
            vec![],
            list(r#"{"id":"m","supported_parameters":["tools"]}"#),
            "native",
            "GET /v1/models",
        ),
        (
            "openai-chat",
            vec![],
            list(r#"{"id":"m","supported_parameters":["stop"]}"#),
            "tag",
            "GET /v1/models",
        ),
        (
            "openai-chat",
            vec![],
            list(r#"{"id":"m","features":{"tool_calls":true}}"#),
            "native",
            "GET /v1/models",
        ),
        (
            "openai-responses",
            nothing(1),
            r#"{"chat_template_caps":{"supports_tools":true}}"#.into(),
            "native",
            "GET /props",
        ),
        (
            "anthropic",
            nothing(1),
            r#"{"chat_template":"{{ messages }}"}"#.into(),
            "tag",
            "GET /props",
        ),
        (
            "openai-chat",
            nothing(2),
            list(r#"{"id":"m","capabilities":["tool_use"]}"#),
            "native",
            "GET /api/v0/models",
        ),
        (
            "openai-chat",
            nothing(2),
            list(r#"{"id":"m","capabilities":["vision"]}"#),
            "tag",
            "GET /api/v0/models",
        ),
        (
            "openai-chat",
            ollama,
            r#"{"capabilities":["completion","tools"]}"#.into(),
            "native",
            "POST /api/show",
        ),
        (
            "ollama",
            vec![],
            r#"{"capabilities":["completion"]}"#.into(),
            "tag",
            "POST /api/show",
        ),
    ] {
        let scripts = script
            .into_iter()
            .chain([answer("200 OK", JSON, &answered)])
            .collect();
        let server = Server::new(scripts);
        let found = home.probe(&server.url, &["--api", api]);
        assert_eq!(
            (&found["mode"], &found["source"]),
            (&json!(mode), &json!("model-list")),
            "{answered}"
        );
        assert_eq!(
            found["dialect"],
            if mode == "tag" {
                json!("tool-name-tag")
            } else {
                Value::Null
            }
        );
        assert!(
            found["base_url"].as_str().unwrap().starts_with(&server.url),
            "{found}"
        );
        assert_eq!((&found["model"], &found["api"]), (&json!("m"), &json!(api)));
        let asked = server.asked();
        assert_eq!(lines(&asked).last(), Some(&last), "{answered}");
        if last == "POST /api/show" {
            assert_eq!(asked.last().unwrap().body, json!({"model": "m"}));
        }
    }
    assert!(
        home.known().is_empty(),
        "a server on this machine is asked each time"
    );
    // A turn goes that way.
    for (capabilities, mode) in [("[\"tools\"]", "native"), ("[]", "tag")] {
        let scripts = vec![
            answer(
                "200 OK",
                JSON,
                format!("{{\"capabilities\":{capabilities}}}"),
            ),
            vec![Step::Answers(Turn::says("ok"))],
        ];
        let server = Server::new(scripts);
        let ran = home.turn(&server.url, &["--api", "ollama"]);
        assert_eq!(
            (ran.status, &ran.event("stream_start")["tools_mode"]),
            (0, &json!(mode)),
            "{ran:?}"
        );
        let asked = server.asked();
        assert_eq!(lines(&asked), ["POST /api/show", "POST /api/chat"]);
        assert_eq!(asked[1].body.get("tools").is_some(), mode == "native");
    }
}

#[test]
fn a_server_that_tells_nothing_is_asked_natively() {
    let home = Home::new();
    let server = Server::new(nothing(4).into_iter().chain([says("ok")]).collect());
    let ran = home.turn(&server.url, &[]);
    assert_eq!(
        (
            ran.status,
            ran.text().as_str(),
            &ran.event("stream_start")["tools_mode"]
        ),
        (0, "ok", &json!("native"))
    );
    assert_eq!(server.asked().len(), 5);
    let found = home.probe(&Server::new(nothing(4)).url, &[]);
    assert_eq!(
        (&found["mode"], &found["source"]),
        (&json!("native"), &json!("default"))
    );
    assert!(
        found["detail"].as_str().unwrap().contains("first turn"),
        "{found}"
    );
    // No server, and a server that never answers.
    let dead = |url: &str, args: &[&str]| {
        let mut command = home.asking(url, args);
        command.arg("--probe");
        run(command).refusal().to_owned()
    };
    let reported = dead("http://me:abcdef@models.invalid", &[]);
    assert!(
        reported.contains("--allow-insecure") && !reported.contains("abcdef"),
        "{reported}"
    );
    let reported = dead("http://127.0.0.1:1", &[]);
    assert!(
        reported.contains("http://127.0.0.1:1/v1/models") && reported.contains("refused"),
        "{reported}"
    );
    let (closed, is_closed) = channel();
    let server = Server::new(vec![vec![Step::UntilClosed(closed)]]);
    let reported = dead(&server.url, &["--idle-timeout", "100ms"]);
    assert!(
        reported.contains(&server.url) && reported.contains("in time"),
        "{reported}"
    );
    is_closed.recv_timeout(GUARD).unwrap();
    // A signal ends the wait, and nothing is printed.
    let (closed, is_closed) = channel();
    let server = Server::new(vec![vec![Step::UntilClosed(closed)]]);
    let child = home.asking(&server.url, &["--probe"]).spawn().unwrap();
    server.requests.recv_timeout(GUARD).unwrap();
    assert!(kill(child.id(), "-TERM"));
    let ran = finish(child, None);
    assert_eq!(
        (ran.status, ran.stdout.as_str(), ran.stderr.as_str()),
        (143, "", "")
    );
    is_closed.recv_timeout(GUARD).unwrap();
    // Without tools there is nothing to ask.
    let server = Server::new(vec![says("ok")]);
    let mut command = home.asking(&server.url, &[]);
    command.arg("hi");
    assert_eq!(run(command).event("stream_start")["tools_mode"], "none");
    assert_eq!(server.asked().len(), 1);
    assert!(home.known().is_empty());
}

#[test]
fn a_refusal_is_answered_in_tag_mode_and_remembered() {
    let home = Home::new();
    let refused = || answer("400 Bad Request", JSON, REFUSAL);
    let turns = [refused(), says("<tool"), says("again")];
    let server = Server::new(
        nothing(4)
            .into_iter()
            .chain(turns)
            .chain(nothing(8))
            .collect(),
    );
    let ran = home.turn(&server.url, &[]);
    assert_eq!((ran.status, ran.text().as_str()), (0, "<tool"), "{ran:?}");
    assert_eq!(
        ran.types(),
        "message warning stream_start content_delta session_stats stream_end"
    );
    let warning = ran.event("warning");
    assert_eq!(
        (&warning["source"], &warning["code"]),
        (&json!("llm-stream"), &json!("tools_refused"))
    );
    assert!(
        warning["message"]
            .as_str()
            .unwrap()
            .contains("m does not support tools"),
        "{warning}"
    );
    let start = ran.event("stream_start");
    let reported = (
        &start["tools_mode"],
        &start["dialect"],
        &start["attempt"],
        &start["tools"][0]["function"]["name"],
    );
    assert_eq!(
        reported,
        (
            &json!("tag"),
            &json!("tool-name-tag"),
            &json!(2),
            &json!("f")
        )
    );
    assert_eq!(ran.event("session_stats")["fallbacks"], 1);
    let asked = server.asked();
    assert!(asked[4].body.get("tools").is_some() && asked[5].body.get("tools").is_none());
    assert_eq!(asked[5].body["messages"][0]["role"], "system");
    // The next turn reads it in the cache.
    let ran = home.turn(&server.url, &[]);
    assert_eq!(
        (
            ran.types().contains("warning"),
            &ran.event("stream_start")["tools_mode"]
        ),
        (false, &json!("tag"))
    );
    assert_eq!(lines(&server.asked()), ["POST /v1/chat/completions"]);
    let found = home.probe(&server.url, &[]);
    assert_eq!(
        (&found["mode"], &found["source"]),
        (&json!("tag"), &json!("cache"))
    );
    assert!(
        found["detail"]
            .as_str()
            .unwrap()
            .contains("does not support tools")
    );
    let known = home.known();
    let text = std::fs::read_to_string(&known[0]).unwrap();
    let entry: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (
            known.len(),
            &entry["mode"],
            &entry["source"],
            &entry["model"]
        ),
        (1, &json!("tag"), &json!("refused"), &json!("m"))
    );
    assert!(
        known[0].file_stem().is_some_and(|name| name.len() == 64),
        "{known:?}"
    );
    // Another model, another folder, or a verdict that is too old: nothing is known.
    assert_eq!(
        home.probe(&Server::new(nothing(4)).url, &[])["source"],
        "default"
    );
    for args in [
        ["--model", "other"],
        ["--capability-cache", "none"],
        ["--capability-cache", "/dev/null"],
    ] {
        let mut command = command(&[
            "--base-url",
            &Server::new(nothing(4)).url,
            "--tools-mode",
            "auto",
            "--probe",
        ]);
        command
            .env("XDG_CACHE_HOME", home.0.join("cache"))
            .args(args);
        if args[0] != "--model" {
            command.args(["--model", "m"]);
        }
        assert_eq!(run(command).stdout.matches("\"default\"").count(), 1);
    }
    let learned = entry["learned"].as_u64().unwrap();
    for (age, ttl, source) in [
        (60, "7d", "cache"),
        (8 * 86400, "7d", "default"),
        (60, "1h", "cache"),
        (7200, "1h", "default"),
    ] {
        std::fs::write(
            &known[0],
            text.replace(&learned.to_string(), &(learned - age).to_string()),
        )
        .unwrap();
        // The server has no further answer.
        assert_eq!(
            home.probe(&server.url, &["--capability-ttl", ttl])["source"],
            source,
            "{age} {ttl}"
        );
    }
}

#[test]
fn another_error_stays_one_and_teaches_nothing() {
    let home = Home::new();
    for (status, body) in [
        (
            "400 Bad Request",
            r#"{"error":{"message":"Invalid schema for function 'f': 'oneOf' is not supported"}}"#,
        ),
        (
            "404 Not Found",
            r#"{"error":{"message":"model 'm' not found"}}"#,
        ),
    ] {
        let server = Server::new(
            nothing(4)
                .into_iter()
                .chain([answer(status, JSON, body), says("x")])
                .collect(),
        );
        let ran = home.turn(&server.url, &[]);
        assert_eq!((ran.status, server.asked().len()), (2, 5), "{ran:?}");
        assert_eq!(ran.types(), "message stream_start error stream_end");
    }
    // Refused, and then the text alone fails too.
    let server = Server::new(
        nothing(4)
            .into_iter()
            .chain([
                answer("400 Bad Request", JSON, REFUSAL),
                answer("400 Bad Request", JSON, REFUSAL),
            ])
            .collect(),
    );
    let ran = home.turn(&server.url, &[]);
    assert_eq!(
        (ran.status, ran.types().as_str()),
        (
            2,
            "message warning stream_start error session_stats stream_end"
        )
    );
    // In native mode a refusal is an error.
    let server = Server::of_provider(vec![answer("400 Bad Request", JSON, REFUSAL), says("x")]);
    let mut command = asking(&server, &["hi", "--tools"]);
    command.arg(home.0.join("tools.json"));
    assert_eq!((run(command).status, server.asked().len()), (2, 1));
    assert!(home.known().is_empty());
}

#[test]
fn a_stream_that_is_refused_with_tools_is_asked_for_at_once() {
    let home = Home::new();
    let refusal = r#"{"message":"This model doesn't support tool use in streaming mode."}"#;
    let scripts = nothing(4).into_iter().chain([
        answer("400 Bad Request", JSON, refusal),
        answer("200 OK", JSON, turn(&["whole"]).whole(Protocol::Chat)),
    ]);
    let server = Server::new(scripts.collect());
    let ran = home.turn(&server.url, &[]);
    let start = ran.event("stream_start");
    assert_eq!(
        (
            ran.text().as_str(),
            &start["tools_mode"],
            &start["fallback"]
        ),
        ("whole", &json!("native"), &json!("sync"))
    );
}

#[test]
fn the_allow_list_goes_first() {
    let home = Home::new();
    home.allow("# mine\nopenai-chat/m tag tool-name-tag\nollama/* none\n* native\n");
    for (api, mode) in [
        ("openai-chat", "tag"),
        ("ollama", "none"),
        ("anthropic", "native"),
    ] {
        let found = home.probe("http://127.0.0.1:1", &["--api", api]);
        assert_eq!(
            (&found["mode"], &found["source"]),
            (&json!(mode), &json!("allow-list"))
        );
        assert!(
            found["detail"]
                .as_str()
                .unwrap()
                .contains("config/toolpipe/tools-mode, line "),
            "{found}"
        );
    }
    let server = Server::new(vec![says("x")]);
    assert_eq!(
        home.turn(&server.url, &[]).event("stream_start")["tools_mode"],
        "tag"
    );
    assert_eq!(server.asked().len(), 1, "nobody else is asked");
    // A model that the list calls native is asked natively.
    let server = Server::of_provider(vec![answer("400 Bad Request", JSON, REFUSAL), says("x")]);
    let list = File::new("allow-list", "*/m native\n");
    assert_eq!(
        home.turn(&server.url, &["--tools-mode-file", list.path()])
            .status,
        2
    );
    assert_eq!(server.asked().len(), 1);
    // No tools at all: not in the request, nor in the prompt.
    let server = Server::new(vec![says("x")]);
    let list = File::new("deny-list", "* none\n");
    let ran = home.turn(&server.url, &["--tools-mode-file", list.path()]);
    assert_eq!(ran.event("stream_start")["tools_mode"], "none");
    assert!(!server.asked()[0].body.to_string().contains("tool"));
    let bad = File::new("bad-list", "* native\n* perhaps\n");
    for (path, why) in [
        (bad.path(), "line 2: not PATTERN"),
        ("/not/there", "No such file"),
    ] {
        let mut command = home.asking(
            "http://127.0.0.1:1",
            &["--tools-mode-file", path, "--probe"],
        );
        command.arg("--tools").arg(home.0.join("tools.json"));
        let ran = run(command);
        assert!(
            ran.refusal().contains(why) && ran.refusal().contains(path),
            "{ran:?}"
        );
    }
}

#[test]
fn a_refusal_on_a_tape_plays_as_it_was_and_nobody_is_asked() {
    let home = Home::new();
    let tape = home.0.join("turn.tape");
    let on_tape = |mode: &str, url: &str| {
        home.turn(
            url,
            &["--tape", tape.to_str().unwrap(), "--tape-mode", mode],
        )
    };
    let server = Server::new(vec![
        answer("400 Bad Request", JSON, REFUSAL),
        says("<tool"),
        says("next"),
    ]);
    let live = on_tape("record", &server.url);
    assert_eq!(
        (live.status, live.text().as_str(), server.asked().len()),
        (0, "<tool", 2),
        "{live:?}"
    );
    let known = home.known();
    assert_eq!(known.len(), 1);
    // The cache does not count: the tape decides.
    for cached in [true, false] {
        if !cached {
            std::fs::remove_file(&known[0]).unwrap();
        }
        for mode in ["replay", "auto"] {
            let played = on_tape(mode, "http://127.0.0.1:1");
            assert_eq!(
                (played.status, &played.stdout),
                (0, &live.stdout),
                "{mode} {cached}"
            );
        }
        assert_eq!(
            home.known().len(),
            usize::from(cached),
            "nothing is learned from a tape"
        );
    }
    // A tape on which the model was known already.
    home.allow("* tag\n");
    std::fs::remove_file(&tape).unwrap();
    let live = on_tape("record", &server.url);
    assert_eq!(
        (live.text().as_str(), live.types().contains("warning")),
        ("next", false)
    );
    home.allow("");
    let played = on_tape("replay", "http://127.0.0.1:1");
    assert_eq!(
        (played.status, &played.stdout),
        (0, &live.stdout),
        "{played:?}"
    );
}

#[test]
fn a_key_that_the_refusal_repeats_is_neither_written_nor_remembered() {
    const KEY: &str = "sk-hut-0123456789abcdef";
    let home = Home::new();
    let refusal = format!("{{\"error\":{{\"message\":\"tools are not supported for {KEY}\"}}}}");
    let mut scripts = nothing(4);
    scripts.extend([answer("400 Bad Request", JSON, &refusal), says("hi")]);
    let server = Server::new(scripts);
    let mut command = home.asking(&server.url, &["--tools"]);
    command
        .arg(home.0.join("tools.json"))
        .arg("hi")
        .env("OPENAI_API_KEY", KEY);
    let ran = run(command);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(
        ran.stdout.contains("tools_refused") && !ran.stdout.contains(KEY),
        "{}",
        ran.stdout
    );
    let [file] = &home.known()[..] else {
        panic!("one file in the cache: {:?}", home.known())
    };
    let kept = std::fs::read_to_string(file).unwrap();
    assert!(
        kept.contains("tools are not supported") && !kept.contains(KEY),
        "{kept}"
    );
}
