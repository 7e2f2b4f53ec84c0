//! Calls in the text of a model behind a server with native calls: the pipeline of `react`, with the
//! tools mode left open, finds what `tc-serve` finds, and nothing that is quoted.
//!
//! All cases of `fixtures/dialects`, and texts that quote or rehearse a call of each dialect, go
//! through `llm-stream | tag-parse | tc-accumulate` in one go, by a tape, and through `tc-serve`
//! behind a server on loopback; some go through `react` too, with tools that run.

use crate::dialect_cases::file::File;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use tag::{Dialect, PromptCall};
use testkit::places::{count, is_named_tried};
use testkit::{Protocol, Request, Scratch, Server, Turn};

/// A text of a model, and the request that it answers.
#[derive(Clone, Debug)]
struct TextCase {
    name: String,
    /// The name of the model, by which its family is known, or not.
    model: String,
    text: String,
    finish: String,
    /// In OpenAI's shape.
    tools: Value,
    /// No call in it may run.
    is_trap: bool,
}

/// A call that may run: the name of the tool, and the arguments.
type RunCall = (String, Value);

/// The calls that would run of a case. `None`: a call has arguments that its tool does not take, of
/// which the pipeline tells the model, while `tc-serve` leaves that to its client, or fails the answer.
type RunCalls = Option<Vec<RunCall>>;

/// The body of a stream of chat completions, whose text comes in pieces of some characters.
fn body(case: &TextCase) -> String {
    let letters: Vec<char> = case.text.chars().collect();
    let pieces = letters.chunks(5).map(String::from_iter);
    let turn = Turn::default().model(&case.model).finish(&case.finish);
    pieces
        .fold(turn, |turn, piece: String| turn.then_says(&piece))
        .stream(Protocol::Chat)
}

/// The cases of the files, each for a model of the dialect's family and for another model.
fn cases_of_files() -> Vec<TextCase> {
    let folder = testkit::root().join("fixtures/dialects");
    let mut cases = Vec::new();
    let paths = std::fs::read_dir(&folder).expect("a folder");
    let mut paths: Vec<_> = paths.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    for path in paths
        .iter()
        .filter(|path| path.extension().is_some_and(|e| e == "cases"))
    {
        let stem = path.file_stem().expect("a name").to_string_lossy();
        let file = File::read(path);
        for case in &file.cases {
            let tools = match file.header(case, "tools").unwrap_or("none") {
                "none" => {
                    let called = case.want.iter();
                    let called =
                        called.filter_map(|line| line.strip_prefix("call ")?.split(' ').next());
                    let names: BTreeSet<&str> = called.collect();
                    names
                        .into_iter()
                        .map(|name| json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}))
                        .collect()
                }
                list if list.starts_with('[') => serde_json::from_str(list).expect("tools"),
                name => {
                    let text = std::fs::read_to_string(folder.join(name)).expect("a file of tools");
                    serde_json::from_str(&text).expect("tools")
                }
            };
            // Of a prompt that opened reasoning only `--prefill` can tell, or the end of the reasoning.
            let opens = match file.header(case, "prefill") {
                None | Some("unknown" | "\"\"") => false,
                Some(_) => !closes_only(&case.text),
            };
            let calls_none = !case.want.iter().any(|line| line.starts_with("call "));
            let dialect = file.header(case, "dialect").unwrap_or(&stem);
            for model in [dialect.split(',').next().unwrap_or_default(), "any"] {
                cases.push(TextCase {
                    name: format!("{stem}, {}, model {model}", case.name),
                    model: model.to_owned(),
                    text: case.text.clone(),
                    finish: file.header(case, "finish").unwrap_or("stop").to_owned(),
                    tools: tools_in_shape(&tools),
                    is_trap: calls_none && !opens,
                });
            }
        }
    }
    cases
}

/// Whether a text ends reasoning that it has not begun. Then the pipeline, which can take calls back,
/// knows that the calls before it were rehearsed, when `tc-serve` has sent them. So calls wait for the
/// end of the text, and do not count where it is cut.
fn closes_only(text: &str) -> bool {
    let mut pairs = Dialect::all().iter().filter_map(Dialect::reasoning);
    pairs.any(|(open, close)| text.contains(close) && !text.contains(open))
}

/// Whether all calls of the one are among those of the other.
fn is_part(some: &RunCalls, all: &RunCalls) -> bool {
    let all = all.as_deref().unwrap_or_default();
    some.iter().flatten().all(|call| all.contains(call))
}

/// The tools in OpenAI's shape, as a request has them.
fn tools_in_shape(tools: &Value) -> Value {
    let list = json::ToolList::read(&tools.to_string()).map(|list| list.openai(|_| true));
    serde_json::from_str(&list.unwrap_or_else(|_| "[]".to_owned())).expect("JSON")
}

/// Texts that quote or rehearse a call of each dialect.
fn traps() -> Vec<TextCase> {
    let tools = json!([{"type": "function", "function": {"name": "find_hut",
        "parameters": {"type": "object", "properties": {"beds": {"type": "integer"}}, "required": ["beds"]}}}]);
    let call = PromptCall {
        id: "",
        name: "find_hut",
        arguments: r#"{"beds":2}"#,
    };
    let mut cases = Vec::new();
    for dialect in Dialect::all() {
        let call = dialect.calls(&[call]);
        let line = call.replace('\n', " ");
        let has_fence = call.contains('`');
        let mut texts = vec![
            (
                "fenced",
                format!("It goes like this:\n````\n{call}\n````\nSee?"),
            ),
            ("cited", format!("The page said “{call}” there.")),
        ];
        if !has_fence {
            texts.push(("in code", format!("Write `{line}` then.")));
        }
        if let Some((open, close)) = dialect
            .reasoning()
            .filter(|_| !dialect.call_always_ends_reasoning())
        {
            texts.push((
                "rehearsed",
                format!("{open}I could {call} but no.{close}Done."),
            ));
        }
        for (what, text) in texts {
            for model in [dialect.name, "any"] {
                cases.push(TextCase {
                    name: format!("{}, {what}, model {model}", dialect.name),
                    model: model.to_owned(),
                    text: text.clone(),
                    finish: "stop".to_owned(),
                    tools: tools.clone(),
                    is_trap: true,
                });
            }
        }
    }
    cases
}

/// The calls that the pipeline would run of each case.
fn by_pipeline(cases: &[TextCase]) -> Vec<RunCalls> {
    let scratch = Scratch::new();
    let mut tape = String::new();
    for case in cases {
        let body_of_request = json!({"model": case.model, "messages": [{"role": "user", "content": "Go."}], "tools": case.tools});
        let request = json!({"method": "POST", "url": "http://localhost/v1/chat/completions", "body": body_of_request});
        let head =
            json!({"tape": 1, "api": "openai-chat", "model": case.model, "request": request});
        let status =
            json!([0, "head", {"status": 200, "headers": {"content-type": "text/event-stream"}}]);
        tape += &format!(
            "{head}\n{status}\n{}\n{}\n",
            json!([0, "text", body(case)]),
            json!([0, "end", "eof"])
        );
    }
    scratch.write("all.tape", &tape);
    let script = "set -o pipefail; llm-stream --no-time --replay all.tape | tag-parse --no-time | tc-accumulate --no-time";
    let ran = testkit::Ran::from(testkit::bash(script, &scratch).output().expect("it runs"));
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let mut found: Vec<RunCalls> = Vec::new();
    for event in ran.events() {
        match event["type"].as_str() {
            Some("stream_start") => found.push(Some(Vec::new())),
            Some("tool_call") => {
                let calls = found.last_mut().expect("a stream");
                let call = (text(&event["tool_name"]), event["arguments"].clone());
                match event["error"].is_null() {
                    true => calls.iter_mut().for_each(|calls| calls.push(call.clone())),
                    false => *calls = None,
                }
            }
            _ => {}
        }
    }
    assert_eq!(found.len(), cases.len());
    found
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The question that asks for the answer of this number.
const CASE: &str = "Case ";

/// A server with native calls, which has no other path: it answers question `Case N` with the text
/// of that case, and results with `Done.`
fn provider(cases: Vec<TextCase>) -> Server {
    provider_with("", cases)
}

/// The same, with this answer at `/props`, as llama.cpp has it.
fn provider_with(props: &'static str, cases: Vec<TextCase>) -> Server {
    let cases = Arc::new(cases);
    Server::answering(
        move |_, request: &Request, stream: &mut testkit::Connection| {
            let messages = request.body["messages"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let question = messages.iter().rev().find_map(|message| {
                message["content"]
                    .as_str()?
                    .strip_prefix(CASE)?
                    .parse::<usize>()
                    .ok()
            });
            let has_results = messages.iter().any(|message| message["role"] == "tool");
            let (status, content) = match question.and_then(|n| cases.get(n)) {
                Some(case) if has_results => {
                    let done = TextCase {
                        text: "Done.".to_owned(),
                        finish: "stop".to_owned(),
                        ..case.clone()
                    };
                    ("200 OK", body(&done))
                }
                Some(case) => ("200 OK", body(case)),
                None if request.path() == "/props" && !props.is_empty() => {
                    ("200 OK", props.to_owned())
                }
                None => ("404 Not Found", String::new()),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
                content.len()
            );
            stream.write_all((head + &content).as_bytes()).is_ok()
        },
    )
}

/// A running `tc-serve`.
struct Service(Child, String);

impl Service {
    fn of(upstream: &str, options: &[&str]) -> Service {
        let mut command = Command::new(testkit::program("tc-serve"));
        command.args(["--listen", "127.0.0.1:0", "--base-url", upstream]);
        command.args(options);
        for name in [
            "LLM_API",
            "LLM_MODEL",
            "LLM_TAPE",
            "HOME",
            "XDG_CONFIG_HOME",
        ] {
            command.env_remove(name);
        }
        let mut process = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut address = String::new();
        let mut out = BufReader::new(process.stdout.take().expect("a pipe"));
        out.read_line(&mut address).expect("the address");
        let address = address.trim().trim_start_matches("http://").to_owned();
        Service(process, address)
    }

    /// The calls in the whole answer to a request.
    fn calls(&self, request: &Value) -> RunCalls {
        let body = request.to_string();
        let mut stream = TcpStream::connect(&self.1).expect("a connection");
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.1,
            body.len()
        );
        stream
            .write_all((head + &body).as_bytes())
            .expect("it is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        if body.contains("\"call_unusable\"") {
            return None;
        }
        assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
        let body = &body[body.find('{').expect("JSON")..=body.rfind('}').expect("JSON")];
        let body: Value = serde_json::from_str(body).expect(body);
        let calls = body["choices"][0]["message"]["tool_calls"].as_array();
        let calls = calls.into_iter().flatten().filter_map(|call| {
            let call = &call["function"];
            // Arguments that were cut are left as they are, and no client runs the call.
            let arguments = serde_json::from_str(call["arguments"].as_str()?).ok()?;
            Some((text(&call["name"]), arguments))
        });
        Some(calls.collect())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn by_service(cases: &[TextCase]) -> Vec<RunCalls> {
    let provider = provider(cases.to_vec());
    let service = Service::of(&provider.url, &[]);
    let request = |(n, case): (usize, &TextCase)| {
        let question = format!("{CASE}{n}");
        service.calls(&json!({"model": case.model, "messages": [{"role": "user", "content": question}], "tools": case.tools}))
    };
    cases.iter().enumerate().map(request).collect()
}

#[test]
fn the_pipeline_finds_what_tc_serve_finds_and_nothing_quoted() {
    let mut cases = cases_of_files();
    cases.retain(|case| is_named_tried(&case.name, 3));
    let of_files = cases.len();
    cases.extend(traps());
    cases.retain(|case| !case.is_trap || is_named_tried(&case.name, 3));
    let pipeline = by_pipeline(&cases);
    // That traps are alike in both needs no second run.
    let service = by_service(&cases[..of_files]);
    let mut wrong = Vec::new();
    let mut differing = [0; 3];
    for ((case, pipeline), service) in cases.iter().zip(&pipeline).zip(&service) {
        if pipeline == service {
            continue;
        }
        // Where they differ, the pipeline runs less, and for one of these reasons.
        let reasons = [
            pipeline.is_none(),
            closes_only(&case.text),
            case.finish == "length",
        ];
        match reasons.iter().position(|is_it| *is_it) {
            Some(reason) if is_part(pipeline, service) => differing[reason] += 1,
            _ => wrong.push(format!(
                "{}: {pipeline:?}, but tc-serve {service:?}",
                case.name
            )),
        }
    }
    for (case, pipeline) in cases.iter().zip(&pipeline).filter(|(case, _)| case.is_trap) {
        if pipeline.as_ref().is_some_and(|calls| !calls.is_empty()) {
            wrong.push(format!("{}: {pipeline:?} would run", case.name));
        }
    }
    let calls: usize = pipeline.iter().flatten().map(Vec::len).sum();
    let traps = cases.iter().filter(|case| case.is_trap).count();
    let [unfit, unopened, cut] = differing;
    println!(
        "{of_files} cases of files, {traps} traps, {calls} calls; differing: {unfit} for arguments that do not fit, \
         {unopened} since reasoning ends that did not begin, {cut} since the answer was cut; {} wrong",
        wrong.len()
    );
    assert!(
        of_files > count(300, 1000) && traps > count(250, 800) && calls > count(250, 800),
        "{of_files} {traps} {calls}"
    );
    assert!(differing.iter().sum::<usize>() < 50, "{differing:?}");
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// `react` in front of a server with native calls. The tool notes that it ran.
fn react(scratch: &Scratch, url: &str, case: usize, options: &str) -> testkit::Ran {
    let script = format!(
        "react -t tools.json --base-url {url} --log log{case}.ndjson -f text {options} '{CASE}{case}'"
    );
    let mut bash = testkit::bash(&script, scratch);
    bash.env("HOME", &**scratch).env("TMPDIR", &**scratch);
    bash.stdin(Stdio::null());
    testkit::Ran::from(bash.output().expect("it runs"))
}

#[test]
fn react_runs_calls_in_the_text_of_a_native_answer() {
    let scratch = Scratch::new();
    let tools = json!([{"name": "note", "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        "exec": {"command": ["sh", "-c", "echo \"$1\" >>noted", "sh", "{text}"]}}]);
    scratch.write("tools.json", tools.to_string());
    scratch.write(
        "fjord.toml",
        "name = 'fjord'\ncall = '<fjord:call>⏎{name, arguments}⏎</fjord:call>'\n",
    );
    let call = |text: &str| format!(r#"{{"name": "note", "arguments": {{"text": "{text}"}}}}"#);
    let act =
        |text: &str| format!("I note it.\nAction: note\nAction Input: {{\"text\": \"{text}\"}}");
    // The text, the model, options, what is noted, and what is shown.
    let rows = [
        (
            format!("I note it.\n<tool_call>\n{}\n</tool_call>", call("a")),
            "any",
            "",
            "a",
            "Done.",
        ),
        (
            call("b").replace("arguments", "parameters"),
            "llama-3.3-70b",
            "",
            "b",
            "Done.",
        ),
        (call("c"), "any", "", "c", "Done."),
        (act("d"), "any", "-d react", "d", "Done."),
        (
            format!("<fjord:call>\n{}\n</fjord:call>", call("e")),
            "any",
            "--dialect-file fjord.toml",
            "e",
            "Done.",
        ),
        (
            format!("<fjord:call>\n{}\n</fjord:call>", call("f")),
            "any",
            "--dialect-file fjord.toml -d auto",
            "f",
            "Done.",
        ),
        (
            format!(
                "For example:\n```\n<tool_call>\n{}\n</tool_call>\n```",
                call("g")
            ),
            "qwen3",
            "",
            "",
            "For example:",
        ),
        (
            format!(
                "<think>I could <tool_call>\n{}\n</tool_call> but no.</think>No.",
                call("h")
            ),
            "qwen3",
            "",
            "",
            "No.",
        ),
        (act("i"), "any", "", "", "--dialect react"),
        (
            format!("<tool_call>\n{}\n</tool_call>", call("j")),
            "any",
            "--tools-mode tag",
            "",
            "--dialect hermes",
        ),
        (
            format!("<tool_call>\n{}\n</tool_call>", call("k")),
            "any",
            "--tool-choice none",
            "",
            "<tool_call>",
        ),
    ];
    let cases = rows.iter().map(|(text, model, ..)| TextCase {
        name: String::new(),
        model: (*model).to_owned(),
        text: text.clone(),
        finish: "stop".to_owned(),
        tools: Value::Null,
        is_trap: false,
    });
    let provider = provider(cases.collect());
    for (n, (text, model, options, noted, shown)) in rows.iter().enumerate() {
        let ran = react(&scratch, &provider.url, n, &format!("-m {model} {options}"));
        let file = scratch.join("noted");
        let found = std::fs::read_to_string(&file).unwrap_or_default();
        let _ = std::fs::remove_file(&file);
        assert_eq!(
            (ran.status, found.trim()),
            (0, *noted),
            "{text}: {}{}",
            ran.stdout,
            ran.stderr
        );
        assert!(ran.stdout.contains(shown), "{text}: {}", ran.stdout);
        let warnings = ran.stdout.matches("would read the call").count();
        assert_eq!(
            warnings,
            usize::from(shown.starts_with("--")),
            "{}",
            ran.stdout
        );
    }
}

/// JSON with text behind it is a call in the family of Llama 3.1 alone.
#[test]
fn the_chat_template_of_the_server_shows_the_family_where_the_models_name_does_not() {
    const LLAMA: &str = r#"{"chat_template":"{{ tools }}<|start_header_id|>ipython<|end_header_id|> <|python_tag|>{{ name }}.call( <|eom_id|><|eot_id|>","build_info":"b1"}"#;
    let scratch = Scratch::new();
    let tools = json!([{"name": "note", "parameters": {"type": "object", "properties": {"text": {"type": "string"}}},
        "exec": {"command": ["sh", "-c", "echo \"$1\" >>noted", "sh", "{text}"]}}]);
    scratch.write("tools.json", tools.to_string());
    let rows = [
        ("", "any", "--tools-mode native", ""),
        (LLAMA, "any", "--tools-mode native", "a"),
        (LLAMA, "any", "--tools-mode auto", "a"),
        (LLAMA, "any", "", "a"),
        // The name goes before the template, and what was typed before both.
        (LLAMA, "qwen3", "", ""),
        (LLAMA, "any", "-d hermes", ""),
    ];
    for (n, (props, model, options, noted)) in rows.into_iter().enumerate() {
        let text = r#"{"name": "note", "parameters": {"text": "a"}}"#.to_owned() + "\nThat was it.";
        let case = TextCase {
            name: String::new(),
            model: model.to_owned(),
            text,
            finish: "stop".to_owned(),
            tools: Value::Null,
            is_trap: false,
        };
        let provider = provider_with(props, vec![case; n + 1]);
        let ran = react(&scratch, &provider.url, n, &format!("-m {model} {options}"));
        let file = scratch.join("noted");
        let found = std::fs::read_to_string(&file).unwrap_or_default();
        let _ = std::fs::remove_file(&file);
        assert_eq!(
            (ran.status, found.trim(), &*ran.stderr),
            (0, noted, ""),
            "{props} {model} {options}: {}",
            ran.stdout
        );
    }
}

#[test]
fn tc_serve_reads_a_dialect_of_a_file_and_notes_what_stays_text() {
    let scratch = Scratch::new();
    let file = scratch.write(
        "fjord.toml",
        "name = 'fjord'\ncall = '<fjord:call>⏎{name, arguments}⏎</fjord:call>'\n",
    );
    let log = scratch.path("access");
    let [file, log] = [&file, &log].map(|path| path.to_str().expect("UTF-8"));
    let texts = [
        r#"<fjord:call>{"name": "note", "arguments": {}}</fjord:call>"#,
        "I note it.\nAction: note\nAction Input: {}",
    ];
    let case = |text: &str| TextCase {
        name: String::new(),
        model: "any".to_owned(),
        text: text.to_owned(),
        finish: "stop".to_owned(),
        tools: json!([{"type": "function", "function": {"name": "note", "parameters": {"type": "object"}}}]),
        is_trap: false,
    };
    let cases: Vec<_> = texts.iter().map(|text| case(text)).collect();
    let provider = provider(cases.clone());
    let ask = |service: &Service| -> Vec<usize> {
        let counts = cases.iter().enumerate().map(|(n, case)| {
            let question = json!([{"role": "user", "content": format!("{CASE}{n}")}]);
            let asked = json!({"model": case.model, "messages": question, "tools": case.tools});
            service.calls(&asked).map_or(0, |calls| calls.len())
        });
        counts.collect()
    };
    let calls = |options: &[&str]| ask(&Service::of(&provider.url, options));
    let service = Service::of(
        &provider.url,
        &["--dialect-file", file, "--access-log", log],
    );
    assert_eq!(ask(&service), [1, 0]);
    // A request is noted after the last byte of its answer has been sent.
    testkit::wait_until("a line of the access log for each request", || {
        scratch.read("access").lines().count() == cases.len()
    });
    let noted = scratch.read("access");
    assert_eq!(noted.matches("--dialect react").count(), 1, "{noted}");
    assert_eq!(calls(&["--dialect", "react"]), [0, 1]);
    assert_eq!(
        calls(&["--dialect-file", file, "--dialect", "auto"]),
        [1, 0]
    );
}
