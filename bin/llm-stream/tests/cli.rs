//! The command line, the log on standard input, and replay of recorded bodies.

#![allow(clippy::unwrap_used, reason = "it is how a test fails")]

use crate::scripted::*;
use serde_json::json;

const LOG: &str = concat!(
    "{\"type\":\"message\",\"message\":{\"role\":\"system\",\"content\":\"Be brief.\"}}\n",
    "{\"type\":\"content_delta\",\"text\":\"of an earlier turn\"}\n",
    "{\"role\":\"user\",\"content\":\"one\"}\n",
    "{\"type\":\"message\",\"message\":{\"role\":\"assistant\",\"content\":\"eins\"}}\n",
);

fn dry(args: &[&str], log: &str) -> serde_json::Value {
    let mut command = command(&["--dry-run", "--model", "m"]);
    command.args(args);
    let ran = run_with(command, log);
    assert_eq!(
        (
            ran.status,
            ran.stdout.lines().count(),
            ran.stderr.lines().count()
        ),
        (0, 1, 1),
        "{ran:?}"
    );
    assert!(ran.stderr.starts_with("llm-stream: POST http"), "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn the_log_comes_before_the_prompt_and_needs_no_key_to_be_shown() {
    let body = dry(&["two"], LOG);
    let messages: Vec<_> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| (m["role"].as_str().unwrap(), m["content"].as_str().unwrap()))
        .collect();
    assert_eq!(
        messages,
        [
            ("system", "Be brief."),
            ("user", "one"),
            ("assistant", "eins"),
            ("user", "two")
        ]
    );
    assert_eq!(
        (&body["model"], &body["stream"]),
        (&json!("m"), &json!(true))
    );
    let body = dry(
        &[
            "--system",
            "Rhyme.",
            "--param",
            "temperature=0.50",
            "--param",
            "stop=[\"x\"]",
            "--no-stream",
            "hi",
        ],
        "",
    );
    assert_eq!(body["messages"][0]["content"], "Rhyme.");
    assert_eq!(
        (body["temperature"].to_string().as_str(), &body["stop"]),
        ("0.50", &json!(["x"])),
        "digits stay"
    );
    assert_ne!(body["stream"], true);
    for api in [
        "openai-responses",
        "anthropic",
        "gemini",
        "ollama",
        "mistral",
        "cohere",
    ] {
        let body = dry(&["--api", api, "hi"], LOG);
        assert!(
            body.to_string().contains("eins") && !body.to_string().contains("earlier turn"),
            "{api} {body}"
        );
    }
}

#[test]
fn tools_go_to_the_provider_without_their_commands() {
    let schema =
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let tools = json!([
        {"type": "function", "function": {"name": "a", "description": "A", "parameters": schema}, "exec": {"command": ["/bin/a"]}},
        {"name": "b", "input_schema": schema, "exec": {"command": ["/bin/b", "{city}"]}},
        {"name": "c", "inputSchema": schema},
    ]);
    let file = File::new("tools.json", tools.to_string());
    let body = dry(
        &["--tools", file.path(), "--tool-choice", "required", "hi"],
        "",
    );
    let names: Vec<_> = body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["function"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        (names, &body["tools"][1]["function"]["parameters"]),
        (vec!["a", "b", "c"], &schema)
    );
    assert!(!body.to_string().contains("/bin/") && body["tool_choice"] == "required");
    // A filter that comes after has them from the stream.
    let server = Server::new(vec![answer("200 OK", SSE, chat(&["x"]))]);
    let start = run(asking(&server, &["--tools", file.path(), "hi"])).event("stream_start");
    assert_eq!(
        (&start["tools"], &start["tools_mode"]),
        (&body["tools"], &json!("native"))
    );
    for (text, says) in [
        ("nonsense", "not JSON"),
        ("7", "array of tools"),
        ("[{}]", "tool 1"),
    ] {
        let file = File::new("bad-tools.json", text);
        let ran = run(command(&["--model", "m", "--tools", file.path(), "hi"]));
        assert!(
            ran.refusal().contains(says) && ran.stderr.contains(file.path()),
            "{ran:?}"
        );
    }
}

#[test]
fn the_prompt_is_written_out_first_so_that_the_log_is_whole() {
    let server = Server::new(vec![answer("200 OK", SSE, chat(&["zwei"]))]);
    let ran = run_with(asking(&server, &["two \"q\""]), LOG);
    assert_eq!(
        ran.events()[0],
        json!({"type": "message", "message": {"role": "user", "content": "two \"q\""}})
    );
    assert_eq!(
        server.asked()[0].body["messages"].as_array().unwrap().len(),
        4
    );
    // Without a prompt nothing is added.
    let server = Server::new(vec![answer("200 OK", SSE, chat(&["x"]))]);
    assert!(
        run_with(asking(&server, &[]), LOG)
            .stdout
            .starts_with("{\"type\":\"stream_start\"")
    );
}

#[test]
fn a_model_that_has_answered_often_enough_is_not_asked() {
    let server = Server::new(vec![vec![]]);
    let ran = run_with(asking(&server, &["--max-steps", "1"]), LOG);
    assert_eq!(
        (ran.status, ran.types().as_str(), server.asked().len()),
        (2, "error", 0)
    );
    assert_eq!(
        (
            &ran.event("error")["code"],
            &ran.event("error")["retryable"]
        ),
        (&json!("max_steps"), &json!(false))
    );
    for args in [
        &["--max-steps", "2"][..],
        &["--max-steps", "1", "a new question"],
    ] {
        let server = Server::new(vec![answer("200 OK", SSE, chat(&["x"]))]);
        assert_eq!(run_with(asking(&server, args), LOG).status, 0);
    }
}

#[test]
fn a_bad_line_of_the_log_is_told_and_lost_nowhere() {
    let server = Server::new(vec![answer("200 OK", SSE, chat(&["x"]))]);
    let log = format!("{LOG}nonsense\n{{\"type\":\"message\"}}\n");
    let ran = run_with(asking(&server, &["hi"]), &log);
    assert_eq!(ran.status, 0);
    let warnings: Vec<_> = ran
        .events()
        .into_iter()
        .filter(|e| e["type"] == "warning")
        .map(|e| (e["line"].clone(), e["raw"].clone()))
        .collect();
    assert_eq!(
        warnings,
        [
            (json!(5), json!("nonsense")),
            (json!(6), json!("{\"type\":\"message\"}"))
        ]
    );
    assert!(ran.stderr.contains("standard input, line 5") && ran.stderr.lines().count() == 2);
    let ran = run_with(asking(&server, &["--strict", "hi"]), &log);
    assert!(ran.refusal().contains("line 5"), "{ran:?}");
    // A message that is too long to be read is missed by the model: it is not asked. Any other
    // event is not.
    let long = "x".repeat(700);
    let server = Server::new(vec![answer("200 OK", SSE, chat(&["x"]))]);
    let log = format!("{LOG}{{\"role\":\"user\",\"content\":\"{long}\"}}\n");
    let ran = run_with(asking(&server, &["--max-line", "700", "hi"]), &log);
    assert!(
        ran.refusal()
            .contains("longer than --max-line, so a message would be missing")
            && server.asked().is_empty()
    );
    let log = format!("{LOG}{{\"type\":\"tool_result\",\"output\":\"{long}\"}}\nplain {long}\n");
    let ran = run_with(asking(&server, &["--max-line", "700", "hi"]), &log);
    assert_eq!(
        (ran.status, ran.types().matches("warning").count()),
        (0, 2),
        "{ran:?}"
    );
}

#[test]
fn a_mistake_is_one_line_with_the_remedy() {
    for (args, says) in [
        (&["hi"][..], "LLM_MODEL"),
        (
            &["--model", "m", "--api", "nonsense", "hi"],
            "use one of openai-chat, openai-responses, anthropic, gemini, ollama, mistral, cohere",
        ),
        (&["--model", "m", "hi"], "export OPENAI_API_KEY"),
        (
            &["--model", "m", "--tools", "/not/there", "hi"],
            "/not/there: No such file",
        ),
        (
            &[
                "--model",
                "m",
                "--tools-mode",
                "tag",
                "--dialect",
                "nonsense",
                "hi",
            ],
            "tag-parse --list-dialects",
        ),
        (
            &[
                "--tools-mode",
                "tag",
                "--dialect",
                "nonsense",
                "--replay",
                "/",
            ],
            "tag-parse --list-dialects",
        ),
        (
            &["--model", "m", "--base-url", "http://127.0.0.1:1"],
            "give a PROMPT",
        ),
        (&["--model", "m", "--param", "x", "hi"], "KEY=JSON"),
        (&["--model", "m", "--retries", "many", "hi"], "--retries"),
        (&["--nonsense"], "llm-stream --help"),
        (&["--replay", "/not/there"], "/not/there: No such file"),
        (&["--replay", "/"], "directory"),
        (&["--cut-at", "5", "--model", "m", "hi"], "--replay"),
    ] {
        let ran = run(command(args));
        assert!(ran.refusal().contains(says), "{args:?}: {}", ran.stderr);
    }
    let mut command = command(&["--model", "m", "hi"]);
    command.env("LLM_API", "nonsense");
    assert!(run(command).refusal().contains("LLM_API"));
}

#[test]
fn a_key_that_is_not_text_is_not_a_missing_one() {
    let key = std::os::unix::ffi::OsStrExt::from_bytes(b"k\xff");
    for options in [&["Hi"][..], &["--api-key-env", "OPENAI_API_KEY", "Hi"]] {
        let mut command = command(&[&["-m", "m"], options].concat());
        command.env("OPENAI_API_KEY", std::ffi::OsStr::to_owned(key));
        let ran = run(command);
        assert!(
            ran.refusal()
                .contains("the key in OPENAI_API_KEY is not UTF-8"),
            "{ran:?}"
        );
    }
}

#[test]
fn help_names_every_option_of_the_design() {
    let help = run(command(&["--help"])).stdout;
    for option in [
        "--api",
        "--base-url",
        "--model",
        "--api-key-env",
        "--api-key-file",
        "--header",
        "--param",
        "--system",
        "--tools",
        "--tool-choice",
        "--tools-mode",
        "--dialect",
        "--prefill",
        "--probe",
        "--tools-mode-file",
        "--capability-cache",
        "--capability-ttl",
        "--no-stream",
        "--replay",
        "--speed",
        "--resplit",
        "--cut-at",
        "--stall-at",
        "--error-at",
        "--dup-at",
        "--tape",
        "--tape-mode",
        "--retries",
        "--timeout",
        "--connect-timeout",
        "--idle-timeout",
        "--fallback",
        "--max-steps",
        "--dry-run",
        "-v, --verbose",
        "--no-time",
        "Examples:",
    ] {
        assert!(help.contains(option), "{option}");
    }
    assert!(
        run(command(&["--version"]))
            .stdout
            .starts_with("llm-stream 0.")
    );
}

#[test]
fn bodies_replay_one_after_the_other_under_their_paths() {
    let one = File::new("one.sse", chat(&["a", "b"]));
    let two = File::new("two", turn(&["c"]).whole(Protocol::Chat));
    let ran = run(command(&["--replay", one.path(), "--replay", two.path()]));
    assert_eq!((ran.status, ran.text().as_str()), (0, "abc"));
    let of = |stream: &str| {
        ran.events()
            .iter()
            .filter(|e| e["stream"] == stream)
            .count()
    };
    assert_eq!(
        (of(one.path()), of(two.path()), ran.stdout.lines().count()),
        (5, 4, 9)
    );
    assert!(
        ran.events().iter().all(|e| e["t"].is_null()),
        "nobody knows the times"
    );
    // A body with --api is read as that API's; a body that does not show its API needs the option.
    assert_eq!(
        run(command(&["--api", "anthropic", "--replay", one.path()])).event("stream_start")["api"],
        "anthropic"
    );
    let other = File::new("other", "{\"a\":1}");
    assert!(
        run(command(&["--replay", other.path()]))
            .refusal()
            .contains("--api")
    );
    // Two answers in one file are two streams.
    let both = File::new("both.sse", [chat(&["a"]), chat(&["b"])].concat());
    let ran = run(command(&["--replay", both.path()]));
    let begun = ran.events();
    let begun = begun.iter().filter(|e| e["type"] == "stream_start").count();
    assert_eq!((ran.status, ran.text().as_str(), begun), (0, "ab", 2));
    // A log without an answer is an error, and the message names the format of a file that cannot be read.
    let asked = File::new(
        "asked.ndjson",
        "{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"Hi\"}}\n",
    );
    let ran = run(command(&["--replay", asked.path()]));
    assert!(ran.refusal().contains("no answer of a model"), "{ran:?}");
    let har = File::new("x.har", "{\"log\":{\"version\":\"1.2\",\"entries\":[]}}");
    let ran = run(command(&["--replay", har.path()]));
    let refusal = ran.refusal();
    assert!(
        refusal.contains("a HAR file, which is not read"),
        "{refusal}"
    );
    let named = ["--api", "openai-chat", "--replay", har.path()];
    let error = run(command(&named)).event("error")["message"].to_string();
    assert!(error.contains("a HAR file"), "{error}");
    // The name of an API makes a body of what one line of ours makes a log.
    let line = "{\"type\":\"tool_result\",\"tool_id\":\"a\"}\n";
    let line = File::new("line.json", line);
    let ran = run(command(&["--api", "ollama", "--replay", line.path()]));
    assert_eq!(
        (ran.status, ran.event("stream_start")["api"].clone()),
        (2, "ollama".into())
    );
    // An error in a stream makes the status 2, and the other streams are there.
    let bad = File::new("bad.sse", "data: {\"error\":{\"message\":\"no\"}}\n\n");
    let ran = run(command(&[
        "--api",
        "openai-chat",
        "--replay",
        bad.path(),
        "--replay",
        one.path(),
    ]));
    assert_eq!(
        (ran.status, ran.text().as_str(), ran.stderr.as_str()),
        (2, "ab", "")
    );
}

#[test]
fn a_full_disk_is_told() {
    let file = File::new("full.sse", chat(&["a"]));
    for args in [
        &["--replay", file.path()][..],
        &["--dry-run", "--model", "m", "hi"],
    ] {
        let mut command = command(args);
        command.stdout(
            std::fs::File::options()
                .write(true)
                .open("/dev/full")
                .unwrap(),
        );
        let ran = run(command);
        assert!(
            ran.refusal().contains("standard output: No space left"),
            "{ran:?}"
        );
    }
}

#[test]
fn a_body_replays_from_standard_input_as_it_comes() {
    use std::io::{BufReader, Write};
    let body = chat(&["a", "b"]);
    let (begun, rest) = body.split_at(first(&body));
    let mut command = command(&["--replay", "-"]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdin.write_all(begun.as_bytes()).unwrap();
    until(&mut stdout, "\"a\"");
    stdin.write_all(rest.as_bytes()).unwrap();
    drop(stdin);
    let ran = finish(child, Some(stdout));
    assert_eq!((ran.status, ran.text().as_str()), (0, "b"));
}

#[test]
fn faults_are_put_into_a_replay() {
    let body = chat(&["Grü", "ße"]);
    let file = File::new("faults.sse", &body);
    let replay = |args: &[&str]| {
        let mut command = command(&["--replay", file.path()]);
        command.args(args);
        run(command)
    };
    let plain = replay(&[]);
    for resplit in ["1", "7", "random:1", "random:2"] {
        assert_eq!(
            replay(&["--resplit", resplit]).stdout,
            plain.stdout,
            "{resplit}"
        );
    }
    let second = first(&body);
    let at = second.to_string();
    for (args, code) in [
        (["--cut-at", &at], "ended before"),
        (["--error-at", &at], "--error-at"),
    ] {
        let ran = replay(&args);
        assert_eq!(
            (
                ran.status,
                ran.text().as_str(),
                &ran.event("stream_end")["finish_reason"]
            ),
            (2, "Grü", &json!("cut"))
        );
        assert!(
            ran.event("error")["message"]
                .as_str()
                .unwrap()
                .contains(code)
        );
    }
    let inside = (second - 9).to_string();
    assert_eq!(replay(&["--dup-at", &inside]).text(), "GrüGrüße");
    let began = std::time::Instant::now();
    let ran = replay(&["--stall-at", &format!("{second}:150")]);
    assert_eq!(ran.stdout, plain.stdout);
    assert!(
        began.elapsed().as_millis() >= 150,
        "a stall is real at any speed"
    );
}

#[test]
fn a_tape_replays_at_its_recorded_times() {
    let tape = File::new(
        "times.tape",
        concat!(
            "# two reads, half a millisecond apart\n",
            "{\"tape\":1,\"api\":\"ollama\",\"model\":\"m\",\"request\":{\"body\":{\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]}}}\n",
            "[0.01,\"head\",{\"status\":200}]\n",
            "[0.001,\"text\",\"{\\\"message\\\":{\\\"content\\\":\\\"a\\\"},\\\"done\\\":false}\\n\"]\n",
            "[0.0005,\"text\",\"{\\\"message\\\":{\\\"content\\\":\\\"b\\\"},\\\"done\\\":true,\\\"done_reason\\\":\\\"stop\\\"}\\n\"]\n",
            "[3,\"end\",\"eof\"]\n",
        ),
    );
    let ran = run(command(&["--replay", tape.path()]));
    let times: Vec<_> = ran.events().iter().map(|e| e["t"].to_string()).collect();
    assert_eq!(
        (ran.status, times.join(" ").as_str()),
        (0, "0 0 0.5 0.5 0.5"),
        "{ran:?}"
    );
    assert_eq!(
        ran.event("session_stats")["first_event_ms"].to_string(),
        "11"
    );
    assert_eq!(
        ran.event("stream_start")["tools"][0]["function"]["name"],
        "f"
    );
    assert!(
        !run(command(&["--replay", tape.path(), "--no-time"]))
            .stdout
            .contains("\"t\"")
    );
    // At real speed the same is written; after the end mark the command does not wait for the end
    // of the connection.
    assert_eq!(
        run(command(&["--replay", tape.path(), "--speed", "real"])).stdout,
        ran.stdout
    );
}
