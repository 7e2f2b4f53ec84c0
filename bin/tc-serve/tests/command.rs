//! A COMMAND that answers requests: what it reads, what its output and its status become, and that
//! nothing of it is left.

use crate::service::{self, JSON, Service, request};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use testkit::{runs, wait_until as until};

const CHAT: &str = "/v1/chat/completions";
const WHOLE: &str = r#"{"model":"m","messages":[{"role":"user","content":"Hi"}]}"#;
const STREAM: &str =
    r#"{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"Hi"}]}"#;
const TOOLS: &str =
    r#""tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]"#;

/// A shell's functions that write events.
const EVENTS: &str = r#"
start() { echo '{"type":"stream_start","v":1,"id":"r","model":"m"}'; }
text() { echo '{"type":"content_delta","text":"'"$1"'"}'; }
call() { echo '{"type":"tool_call_delta","index":0,"tool_id":"'"$1"'","tool_name":"'"$2"'","arguments":"{}"}'; }
result() { echo '{"type":"tool_result","tool_id":"'"$1"'","tool_name":"f","status":"'"$2"'","output":"x"}'; }
end() { echo '{"type":"stream_end","finish_reason":"'"${1-stop}"'"}'; }
answer() { start; text "$1"; end; }
"#;

fn serve(options: &[&str], script: &str) -> Service {
    Service::start(&[options, &["--no-key", "--", &format!("{EVENTS}{script}")]].concat())
}

/// A new folder for a test's files.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("command-{name}-{}", std::process::id()));
    // What a process of the same number left would look like what this one does.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// The lines that a command has written to a file.
fn lines(file: &Path) -> Vec<String> {
    std::fs::read_to_string(file)
        .unwrap_or_default()
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn it_reads_the_request_and_the_log_and_answers_every_front() {
    let file = folder("input").join("in");
    let service = serve(&[], &format!("cat >{}; answer Hello", file.display()));
    let messages = r#"[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}]"#;
    let body = format!(
        r#"{{"model":"m","temperature":0.5,"tool_choice":"required","messages":{messages},{TOOLS}}}"#
    );
    let answer = service.post(CHAT, &body);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(
        answer.body.contains("\"content\":\"Hello\""),
        "{}",
        answer.body
    );
    assert!(
        answer.body.contains("\"finish_reason\":\"stop\""),
        "{}",
        answer.body
    );
    let lines = lines(&file);
    for part in [
        r#""type":"request""#,
        r#""api":"openai-chat""#,
        r#""model":"m""#,
        r#""tool_choice":"required""#,
        r#""temperature":0.5"#,
        r#""name":"f""#,
    ] {
        assert!(lines[0].contains(part), "{part}: {}", lines[0]);
    }
    assert_eq!(lines.len(), 3);
    assert!(
        lines[1].contains("Be brief.") && lines[2].contains(r#""role":"user""#),
        "{lines:?}"
    );
    let answer = service.post("/v1/messages", &STREAM.replace("true", "false"));
    assert!(
        answer.body.contains("\"text\":\"Hello\"") && answer.body.contains("end_turn"),
        "{}",
        answer.body
    );
    let answer = service.post(
        "/v1/responses",
        r#"{"model":"m","input":"Hi","stream":true}"#,
    );
    assert!(
        answer.body.contains("response.completed") && answer.body.contains("Hello"),
        "{}",
        answer.body
    );
    let answer = service.post("/v1/events", STREAM);
    assert!(
        answer
            .body
            .lines()
            .last()
            .is_some_and(|line| line.contains("stream_end")),
        "{}",
        answer.body
    );
    assert!(
        service
            .ask("GET", "/v1/models", "", "")
            .body
            .contains("\"id\":\"command\"")
    );
}

#[test]
fn several_words_are_a_program_and_its_arguments() {
    let file = folder("words").join("answer");
    let events = "{\"type\":\"content_delta\",\"text\":\"$HOME\"}\n{\"type\":\"stream_end\",\"finish_reason\":\"stop\"}\n";
    std::fs::write(&file, events).expect("a file");
    let service = Service::start(&["--no-key", "--", "cat", &file.display().to_string()]);
    let answer = service.post(CHAT, WHOLE);
    assert!(
        answer.body.contains("\"content\":\"$HOME\""),
        "{}",
        answer.body
    );
}

#[test]
fn its_status_and_its_output_decide_how_the_answer_ends() {
    let refused = r#"echo '{"type":"error","source":"llm-stream","code":"http","message":"slow down","retryable":true,"status":429}'; exit 2"#;
    for (script, status, word) in [
        ("answer Hello; exit 2", 502, "status 2"),
        ("answer Hello; exit 7", 502, "status 7"),
        ("answer Hello; kill -9 $$", 502, "signal 9"),
        ("answer Hello; exit 1", 200, "Hello"),
        ("start; text Hello; exit 1", 502, "status 1"),
        ("start; text Hello", 502, "before its own end"),
        ("answer Hello; exit 3", 200, "Hello"),
        ("exit 0", 502, "without an answer"),
        ("cat", 502, "without an answer"),
        ("no-such-command-here", 502, "status 127"),
        (refused, 429, "slow down"),
    ] {
        let answer = serve(&[], script).post(CHAT, WHOLE);
        assert_eq!(answer.status, status, "{script}: {}", answer.body);
        assert!(answer.body.contains(word), "{script}: {}", answer.body);
    }
}

#[test]
fn a_failure_after_content_is_an_error_in_the_stream_and_never_a_clean_end() {
    for script in [
        "start; text Hello; exit 2",
        "answer Hello; exit 2",
        "start; text Hello",
        "answer Hello; kill -9 $$",
    ] {
        let service = serve(&[], script);
        for (path, body, error, end) in [
            (CHAT, STREAM, "\"error\":{", "\"finish_reason\":\"stop\""),
            (
                "/v1/responses",
                r#"{"input":"Hi","stream":true}"#,
                "response.failed",
                "response.completed",
            ),
            ("/v1/messages", STREAM, "event: error", "message_stop"),
        ] {
            let answer = service.post(path, body);
            assert_eq!(answer.status, 200, "{script}: {}", answer.body);
            assert!(
                answer.body.contains("Hello") && answer.body.contains(error),
                "{script}: {}",
                answer.body
            );
            assert!(!answer.body.contains(end), "{script}: {}", answer.body);
        }
    }
}

#[test]
fn a_loop_gives_its_final_answer_and_what_waits_for_a_person_is_handed_on() {
    let turn = "start; text 'Let me see.'; call c1 f; end tool_calls;";
    let answer = serve(&[], &format!("{turn} result c1 success; answer Four.")).post(CHAT, WHOLE);
    assert!(
        answer.body.contains(r"Let me see.\n\nFour."),
        "{}",
        answer.body
    );
    assert!(!answer.body.contains("tool_calls"), "{}", answer.body);
    let answer = serve(&[], &format!("{turn} result c1 pending; exit 3")).post(CHAT, WHOLE);
    assert!(
        answer.body.contains(r#""finish_reason":"tool_calls""#),
        "{}",
        answer.body
    );
    assert!(answer.body.contains(r#""name":"f""#), "{}", answer.body);
}

#[test]
fn a_call_of_the_client_goes_out_before_the_command_goes_on() {
    let folder = folder("live");
    let go = folder.join("go");
    let script = format!(
        "mkfifo {go}; start; call c1 f; read -r line <{go}; end tool_calls",
        go = go.display()
    );
    let service = serve(&[], &script);
    let body = STREAM.replace("\"stream\"", &format!("{TOOLS},\"stream\""));
    let mut client = service.send("POST", CHAT, JSON, &body);
    client.until("\"name\":\"f\"");
    std::fs::write(&go, "go\n").expect("the command waits");
    let answer = client.rest();
    assert!(
        answer.body.contains(r#""finish_reason":"tool_calls""#),
        "{}",
        answer.body
    );
}

#[test]
fn whatever_it_does_with_its_files_an_answer_ends_and_is_bounded() {
    let large = format!(
        r#"{{"messages":[{{"role":"user","content":"{}"}}]}}"#,
        "x".repeat(1 << 20)
    );
    for (script, status, word) in [
        // It never reads its input, which is larger than a pipe.
        ("answer Hello", 200, "Hello"),
        // It closes its output, and lives.
        ("answer Hello; exec >&-; sleep 1000", 200, "Hello"),
        (
            "start; text Hello; exec >&-; sleep 1000",
            502,
            "before its own end",
        ),
        // It leaves a process behind that holds its output.
        ("answer Hello; sleep 1000 & exit 0", 200, "Hello"),
        ("yes", 502, "wrote too much"),
        ("start; while :; do text Hello; done", 502, "wrote too much"),
        (
            "head -c 100000 /dev/zero; echo; printf '\\377\\n'; echo '{'; answer Hello",
            200,
            "Hello",
        ),
        ("head -c 1000000 /dev/zero >&2; answer Hello", 200, "Hello"),
    ] {
        let answer = serve(&["--max-output", "1M", "--grace", "200ms"], script).post(CHAT, &large);
        assert_eq!(answer.status, status, "{script}: {}", answer.body);
        assert!(answer.body.contains(word), "{script}: {}", answer.body);
    }
}

#[test]
fn an_event_that_is_too_long_fails_the_answer() {
    let script = r#"printf '{"type":"content_delta","text":"'; head -c 17000000 /dev/zero; echo; answer Hello"#;
    let answer = serve(&[], script).post(CHAT, WHOLE);
    assert_eq!(answer.status, 502, "{}", answer.body);
    assert!(answer.body.contains("too long"), "{}", answer.body);
}

#[test]
fn its_time_is_limited() {
    let answer = serve(&["--timeout", "300ms"], "start; sleep 1000").post(CHAT, WHOLE);
    assert_eq!(answer.status, 504, "{}", answer.body);
}

#[test]
fn what_it_complains_about_is_shown_with_the_request_and_without_control_characters() {
    let mut service = serve(
        &[],
        r"printf 'a\033[31mb\n' >&2; echo nothing; answer Hello",
    );
    let answer = service.post(CHAT, WHOLE);
    let id = answer.header("x-request-id").expect("an id").to_owned();
    let mut shown = String::new();
    let mut bad = String::new();
    // The two files are read side by side, so either line may come first.
    while shown.is_empty() || bad.is_empty() {
        let line = service.line(|line| line.contains("request"));
        let place = if line.contains("31m") {
            &mut shown
        } else {
            &mut bad
        };
        *place = line;
    }
    assert!(
        shown.starts_with(&format!("tc-serve: request {id}: a")),
        "{shown}"
    );
    assert!(!shown.contains('\u{1b}'), "{shown}");
    assert!(bad.contains("not an event") && bad.contains(&id), "{bad}");
}

/// A command that writes its process ids: a shell, a child in the background, and one that ignores
/// SIGTERM.
fn stubborn(file: &Path) -> String {
    let file = file.display();
    format!(
        "sleep 1000 & echo $! >>{file}; sh -c 'trap \"\" TERM; echo $$ >>{file}; while :; do sleep 1000; done' & \
         echo $$ >>{file}; wait"
    )
}

#[test]
fn a_client_that_leaves_before_the_first_byte_ends_all_its_processes() {
    let file = folder("leaves").join("ids");
    let service = serve(&["--grace", "100ms"], &stubborn(&file));
    let client = service.send("POST", CHAT, JSON, STREAM);
    until("the processes start", || lines(&file).len() == 3);
    drop(client);
    until("all have ended", || !lines(&file).iter().any(|id| runs(id)));
}

#[test]
fn a_client_that_leaves_behind_further_bytes_is_noticed() {
    for count in [10, 100_000, 20 << 20] {
        let file = folder(&format!("behind-{count}")).join("ids");
        let service = serve(&["--grace", "100ms"], &stubborn(&file));
        let mut client = service.send(
            "POST",
            CHAT,
            &format!("{JSON}connection: keep-alive\r\n"),
            STREAM,
        );
        client.write(&vec![b'x'; count]);
        until("the processes start", || lines(&file).len() == 3);
        drop(client);
        until("all have ended", || !lines(&file).iter().any(|id| runs(id)));
    }
}

#[test]
fn requests_behind_another_are_answered_unless_they_are_too_many() {
    let folder = folder("pipelined");
    let go = folder.join("go");
    let script = format!(
        "[ -p {go} ] || mkfifo {go}; cat >/dev/null; start; text Hello; read -r line <{go}; end",
        go = go.display()
    );
    let service = serve(&["--processes", "1"], &script);
    let keep = format!("{JSON}connection: keep-alive\r\n");
    for (behind, answers) in [
        (request("POST", CHAT, JSON, STREAM), 2),
        (request("POST", CHAT, JSON, &" ".repeat(1 << 20)), 1),
    ] {
        let mut client = service.send("POST", CHAT, &keep, STREAM);
        client.write(behind.as_bytes());
        for _ in 0..answers {
            client.until("Hello");
            std::fs::write(&go, "go\n").expect("the command waits");
        }
        let text = client.rest();
        assert_eq!(
            text.body.matches("Hello").count(),
            answers.min(1),
            "{}",
            text.body
        );
        assert_eq!(
            client.text().matches("data: [DONE]").count(),
            answers,
            "{}",
            client.text()
        );
    }
}

#[test]
fn a_client_that_leaves_in_the_middle_lets_the_command_end_by_itself() {
    let folder = folder("term");
    let ended = folder.join("ended");
    let script = format!(
        "trap ': >{}; exit' TERM; start; text Hello; while :; do sleep 0.01; done",
        ended.display()
    );
    let service = serve(&["--grace", "20s"], &script);
    let mut client = service.send("POST", CHAT, JSON, STREAM);
    client.until("Hello");
    drop(client);
    until("SIGTERM comes first", || ended.exists());
}

#[test]
fn nothing_is_left_when_the_service_ends_or_is_killed() {
    for (signal, name) in [(Signal::TERM, "ends"), (Signal::KILL, "killed")] {
        let file = folder(name).join("ids");
        let service = serve(&["--grace", "100ms"], &stubborn(&file));
        let _client = service.send("POST", CHAT, JSON, STREAM);
        until("the processes start", || lines(&file).len() == 3);
        assert!(lines(&file).iter().all(|id| runs(id)), "three run before");
        service.signal(signal);
        service.ended();
        until("all have ended", || !lines(&file).iter().any(|id| runs(id)));
    }
}

#[test]
fn requests_wait_for_a_process_and_one_too_many_is_refused() {
    let folder = folder("queue");
    let begun = folder.join("begun");
    let go = folder.join("go");
    let script = format!(
        "[ -p {go} ] || mkfifo {go}; echo $$ >>{}; read -r line <{go}; answer Hello",
        begun.display(),
        go = go.display()
    );
    let service = serve(
        &["--processes", "1", "--queue", "1", "--grace", "5s"],
        &script,
    );
    let mut first = service.send("POST", CHAT, JSON, WHOLE);
    until("the first runs", || lines(&begun).len() == 1);
    // Of these two one waits. Which of them comes first is not known.
    let mut two = [(); 2].map(|()| service.send("POST", CHAT, JSON, WHOLE));
    for client in &two {
        client.stream.set_nonblocking(true).expect("a socket");
    }
    let has_answer = |client: &service::Client| client.stream.peek(&mut [0]).is_ok();
    until("one is refused", || two.iter().any(has_answer));
    let at = usize::from(!has_answer(&two[0]));
    two[at].stream.set_nonblocking(false).expect("a socket");
    let refused = two[at].rest();
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (429, Some("1")),
        "{}",
        refused.body
    );
    // The other leaves, and its command never starts.
    drop(two);
    std::fs::write(&go, "go\n").expect("the first waits");
    assert_eq!(first.rest().status, 200);
    let mut last = service.send("POST", CHAT, JSON, WHOLE);
    until("the last runs", || lines(&begun).len() > 1);
    std::fs::write(&go, "go\n").expect("the last waits");
    assert_eq!(last.rest().status, 200);
    assert_eq!(lines(&begun).len(), 2);
}

#[test]
fn keys_take_turns_at_the_commands() {
    let folder = folder("turns");
    let begun = folder.join("begun");
    let go = folder.join("go");
    let keys = folder.join("keys");
    std::fs::write(&keys, "key-of-the-first-one\nkey-of-another-one\n").expect("a file");
    let script = format!(
        "{EVENTS} [ -p {go} ] || mkfifo {go}; read -r request; cat >/dev/null
        case $request in *'\"model\":\"a\"'*) echo a;; *) echo b;; esac >>{}; read -r line <{go}; answer Hello",
        begun.display(),
        go = go.display()
    );
    let keys = keys.display().to_string();
    let options = [
        "--processes",
        "1",
        "--queue",
        "3",
        "--grace",
        "5s",
        "--key-file",
        &keys,
        "--",
        &script,
    ];
    let service = Service::start(&options);
    let ask = |model: &str, key: &str| {
        let body = WHOLE.replacen("\"m\"", &format!("\"{model}\""), 1);
        service.send("POST", CHAT, &format!("{JSON}x-api-key: {key}\r\n"), &body)
    };
    let _first = ask("a", "key-of-the-first-one");
    until("the first runs", || lines(&begun).len() == 1);
    // Of the next four of each key three wait, as the answer to one shows.
    let clients: Vec<_> = [("a", "key-of-the-first-one"), ("b", "key-of-another-one")]
        .into_iter()
        .map(|(model, key)| {
            let four = [(); 4].map(|()| ask(model, key));
            for client in &four {
                client.stream.set_nonblocking(true).expect("a socket");
            }
            let has_answer = |client: &service::Client| client.stream.peek(&mut [0]).is_ok();
            until("one is refused", || {
                four.iter().filter(|client| has_answer(client)).count() == 1
            });
            four
        })
        .collect();
    for count in 2..=7 {
        std::fs::write(&go, "go\n").expect("a command waits");
        until("the next runs", || lines(&begun).len() == count);
    }
    std::fs::write(&go, "go\n").expect("the last waits");
    assert_eq!(lines(&begun).concat(), "aababab");
    drop(clients);
}

#[test]
fn a_program_that_does_not_exist_is_one_line_at_the_start() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tc-serve"));
    let output = command
        .args(["--listen", "127.0.0.1:0", "--", "no-such-program", "x"])
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        (output.status.code(), text.lines().count()),
        (Some(2), 1),
        "{text}"
    );
    assert!(text.contains("no-such-program: no such command"), "{text}");
}

#[test]
fn many_requests_one_after_the_other_leave_nothing() {
    let file = folder("many").join("ids");
    let service = serve(
        &[],
        &format!(
            "sleep 1000 >/dev/null 2>&1 & echo $! >>{}; answer Hello",
            file.display()
        ),
    );
    for _ in 0..20 {
        assert_eq!(service.post(CHAT, WHOLE).status, 200);
    }
    assert_eq!(lines(&file).len(), 20);
    until("all have ended", || !lines(&file).iter().any(|id| runs(id)));
    service.signal(Signal::TERM);
    assert_eq!(service.ended().0.code(), Some(143));
}

#[test]
fn the_log_keeps_sixteen_short_notes_of_many_long_ones() {
    let script = r#"
        long=$(printf 'é%.0s' $(seq 999))
        start
        for n in $(seq 40); do
            echo '{"type":"warning","source":"x","code":"parameter_left_out","message":"'"$n $long"'"}'
            echo '{"type":"warning","source":"x","code":"another","message":"other words"}'
        done
        text Hi; end"#;
    let mut service = serve(&["--access-log"], script);
    let response = service.post(
        "/v1/chat/completions",
        r#"{"model":"m","messages":[{"role":"user","content":"Hi"}]}"#,
    );
    assert_eq!(response.status, 200, "{}", response.body);
    let line = service.line(|line| line.starts_with("{\"type\":\"access\""));
    let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    let notes = line["notes"].as_array().expect("notes");
    let numbers: Vec<&str> = notes
        .iter()
        .map(|note| {
            note.as_str()
                .expect("a text")
                .split(' ')
                .next()
                .unwrap_or("")
        })
        .collect();
    let want: Vec<String> = (1..=16).map(|n| n.to_string()).collect();
    assert_eq!(numbers, want, "{line}");
    assert!(
        notes.iter().all(|note| note
            .as_str()
            .is_some_and(|note| (500..=512).contains(&note.len()))),
        "{line}"
    );
    assert_eq!(line["warnings"].as_u64(), Some(80), "{line}");
}
