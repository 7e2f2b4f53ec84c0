//! `tag-parse` as a user runs it.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const TAG: &str =
    r#"{"type":"stream_start","v":1,"tools_mode":"tag","dialect":"hermes","prefill":""}"#;
const NATIVE: &str = r#"{"type":"stream_start","v":1,"tools_mode":"native","prefill":""}"#;
const NAMED: &str = r#"{"type":"content_delta","text":"I look.\n<tool_call>{\"name\": \"f\", "}"#;
const REST: &str = r#"{"type":"content_delta","text":"\"arguments\": {\"a\": 1}}</tool_call>"}"#;
const END: &str = r#"{"type":"stream_end","finish_reason":"stop"}"#;

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tag-parse"));
    command
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn run(args: &[&str], input: &str) -> Output {
    let mut child = command(args).spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn lines(events: &[&str]) -> String {
    events.iter().map(|e| format!("{e}\n")).collect()
}

/// The output, without `stream_start` and `stream_end`.
fn inside(out: &Output) -> Vec<&str> {
    text(&out.stdout)
        .lines()
        .filter(|l| !l.contains("\"stream_"))
        .collect()
}

/// An empty folder that goes when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tag-parse-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn file(&self, name: &str, content: &str) -> String {
        std::fs::write(self.0.join(name), content).unwrap();
        self.0.join(name).display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const CALL: [&str; 3] = [
    r#"{"type":"content_delta","text":"I look.\n"}"#,
    r#"{"type":"tool_call_delta","index":0,"tool_name":"f","from_text":true}"#,
    r#"{"type":"tool_call_delta","index":0,"arguments":"{\"a\": 1}","done":true}"#,
];

#[test]
fn a_call_comes_out_of_the_streams_that_are_read() {
    for (args, start, read) in [
        (&[][..], TAG, true),
        (&["--dialect", "qwen,glm45"], TAG, true),
        (&["--dialect", "react"], TAG, false),
        (&[], NATIVE, false),
        (&["--when", "always", "--dialect", "hermes"], NATIVE, true),
    ] {
        let input = lines(&[start, NAMED, REST, END]);
        let out = run(args, &input);
        assert_eq!(
            (out.status.code(), text(&out.stderr)),
            (Some(0), ""),
            "{args:?}"
        );
        if read {
            assert_eq!(
                inside(&out).concat().matches("\"tool_name\":\"f\"").count(),
                1,
                "{args:?}"
            );
            assert!(
                text(&out.stdout).starts_with(&lines(&[start, CALL[0]])),
                "{args:?}"
            );
        } else {
            assert_eq!(text(&out.stdout), input, "{args:?}");
        }
    }
    let out = run(&[], &lines(&[TAG, NAMED, REST, END]));
    assert_eq!(inside(&out), CALL);
    assert_eq!(
        run(&[], text(&out.stdout)).stdout,
        out.stdout,
        "twice is once"
    );
}

#[test]
fn tools_say_which_names_count() {
    let scratch = Scratch::new("tools");
    let other = scratch.file(
        "other.json",
        r#"[{"type":"function","function":{"name":"g"}}]"#,
    );
    let listed = scratch.file(
        "listed.json",
        r#"[{"name":"f","input_schema":{"type":"object"}}]"#,
    );
    let input = lines(&[TAG, NAMED, REST, END]);
    assert_eq!(inside(&run(&["--tools", &listed], &input)), CALL);
    let out = run(&["--tools", &other], &input);
    assert!(
        !text(&out.stdout).contains("tool_call_delta")
            && text(&out.stdout).contains("</tool_call>")
    );
}

#[test]
fn the_end_of_the_prompt_tells_reasoning_from_the_answer() {
    let start = r#"{"type":"stream_start","v":1,"tools_mode":"tag","dialect":"deepseek-r1"}"#;
    let delta = r#"{"type":"content_delta","text":"hm</think>Yes."}"#;
    let answer = r#"{"type":"content_delta","text":"Yes."}"#;
    let input = lines(&[start, delta, END]);
    let thinking = r#"{"type":"thinking","text":"hm"}"#;
    for args in [&["--prefill", "<think>\n"][..], &[]] {
        assert_eq!(inside(&run(args, &input)), [thinking, answer], "{args:?}");
    }
}

#[test]
fn a_delta_leaves_before_the_next_line_is_read() {
    let mut live = Live::start(&[]);
    for (line, want) in [
        (TAG, &[TAG][..]),
        (NAMED, &CALL[..2]),
        (REST, &CALL[2..]),
        (END, &[END]),
    ] {
        live.say(line);
        want.iter().for_each(|want| assert_eq!(live.hear(), *want));
    }
    assert_eq!(live.end(), Some(0));
}

#[test]
fn a_signal_gives_back_what_was_held_and_ends_it() {
    for (signal, status) in [("-INT", 130), ("-TERM", 143)] {
        let mut live = Live::start(&[]);
        live.say(TAG);
        live.say(r#"{"type":"content_delta","text":"a <tool_"}"#);
        assert_eq!(
            (live.hear(), live.hear()),
            (TAG.into(), r#"{"type":"content_delta","text":"a "}"#.into())
        );
        assert!(testkit::kill(live.child.id(), signal));
        assert_eq!(live.hear(), r#"{"type":"content_delta","text":"<tool_"}"#);
        assert_eq!(live.child.wait().unwrap().code(), Some(status), "{signal}");
    }
}

#[test]
fn a_reader_that_leaves_has_enough() {
    let script = format!(
        "set -o pipefail; yes '{NAMED}' | {{ '{}' --dialect hermes || exit 9; }} | head -n 1 >/dev/null; echo \"${{PIPESTATUS[1]}}\"",
        env!("CARGO_BIN_EXE_tag-parse")
    );
    let out = Command::new("bash").args(["-c", &script]).output().unwrap();
    assert_eq!((text(&out.stdout), text(&out.stderr)), ("0\n", ""));
    // It also notices while nothing comes.
    let mut live = Live::start(&[]);
    live.say(TAG);
    assert_eq!(live.hear(), TAG);
    let Live {
        mut child,
        stdin,
        stdout,
    } = live;
    drop(stdout);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    drop(stdin);
}

#[test]
fn mistakes_are_one_line_and_status_2() {
    let scratch = Scratch::new("mistakes");
    let no_array = scratch.file("no-array.json", "{}");
    let cases: &[(&[&str], &str)] = &[
        (
            &["--dialect", "hermse"],
            "--dialect: unknown dialect 'hermse', did you mean 'hermes'?",
        ),
        (
            &["--dialect", "hermes,nothing-like-it"],
            "unknown dialect 'nothing-like-it', see tag-parse --list-dialects",
        ),
        (&["--dialect", ","], "--dialect: no name"),
        (
            &["--when", "never"],
            "invalid value 'never' for '--when <WHEN>'",
        ),
        (
            &["--tools", "no-such-file.json"],
            "no-such-file.json: No such file or directory (os error 2), check the path",
        ),
        (&["--tools", &no_array], "write an array of tools"),
        (
            &["no-such-file.ndjson"],
            "no-such-file.ndjson: No such file or directory",
        ),
        (&["--list-dialects", "file"], "cannot be used with"),
        (&["--frobnicate"], "unexpected argument '--frobnicate'"),
        (&["--max-line", "many"], "not a number of bytes"),
        (&["--strict"], "standard input, line 2: not an event"),
        (
            &["--strict", "--max-line", "12"],
            "standard input, line 2: not an event",
        ),
    ];
    for (args, words) in cases {
        let out = run(
            args,
            "{\"type\":1}\nnot json\n".replace('1', "\"x\"").as_str(),
        );
        let err = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {err}");
        assert!(
            err.starts_with("tag-parse: ") && err.contains(words) && err.lines().count() == 1,
            "{args:?}: {err}"
        );
    }
}

#[test]
fn bad_and_long_lines_are_carried_by_warnings() {
    let out = run(
        &["--no-time", "--max-line", "90"],
        &lines(&[TAG, "not json", &"x".repeat(100), END]),
    );
    let got: Vec<_> = text(&out.stdout).lines().collect();
    assert_eq!((got.len(), out.status.code()), (4, Some(0)), "{got:?}");
    assert!(got[1].contains(r#""code":"not_an_event""#) && got[1].contains(r#""raw":"not json""#));
    assert!(got[2].contains(&"x".repeat(100)) && got[2].contains("longer than --max-line"));
    let error = r#"{"type":"error","source":"x","code":"y","message":"z","retryable":true}"#;
    assert_eq!(
        run(&[], &lines(&[TAG, error])).status.code(),
        Some(2),
        "an error that passes is a status of 2"
    );
}

#[test]
fn the_list_names_every_dialect_once() {
    let out = run(&["--list-dialects"], "");
    let rows: Vec<Vec<&str>> = text(&out.stdout)
        .lines()
        .map(|l| l.split('\t').collect())
        .collect();
    assert_eq!(rows[0], ["name", "aliases", "models", "example", "source"]);
    assert_eq!(rows.len() - 1, tag::Dialect::all().len());
    assert!(
        rows.iter()
            .all(|row| row.len() == 5 && row.iter().all(|column| !column.is_empty()))
    );
    let hermes = rows.iter().find(|row| row[0] == "hermes").unwrap();
    assert!(hermes[1].split(',').any(|alias| alias == "qwen"));
    assert_eq!(
        hermes[3],
        r#"<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>"#
    );
}

#[test]
fn a_dialect_is_shown_with_its_calls_prompt_and_results() {
    let out = run(&["--show-dialect", "qwen"], "");
    let page = text(&out.stdout);
    for part in [
        "# hermes\n",
        "Also named: qwen, ",
        "Source: https://",
        "One call:\n\n````text\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>\n````\n",
        "{\"name\": \"get_time\", \"arguments\": {}}",
        "The end of the system prompt:\n\n````text\n# Tools\n",
        "18 °C, \\u003cb\\u003esunny",
    ] {
        assert!(page.contains(part), "{part:?} in {}", testkit::short(page));
    }
    for dialect in tag::Dialect::all() {
        let out = run(&["--show-dialect", dialect.name], "");
        let page = text(&out.stdout);
        assert!(page.starts_with(&format!("# {}\n", dialect.name)));
        assert!(
            page.contains(&dialect.example()),
            "{}",
            testkit::short(page)
        );
    }
    let scratch = Scratch::new("show");
    let own = scratch.file("own.toml", OWN);
    let out = run(&["--dialect-file", &own, "--show-dialect", "mine"], "");
    assert!(text(&out.stdout).starts_with("# own\n\nAlso named: mine\n"));
    let out = run(&["--show-dialect", "hermus"], "");
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("did you mean 'hermes'"));
}

const OWN: &str =
    "name = 'own'\naliases = ['mine']\ncall = '<own_call>⏎{name, arguments}⏎</own_call>?'\n";
const OWN_CALL: &str = r#"{"type":"content_delta","text":"Yes.<own_call>{\"name\": \"f\", \"arguments\": {}}</own_call>"}"#;

#[test]
fn a_dialect_of_a_file_is_read_by_name_in_auto_mode_and_by_itself() {
    let scratch = Scratch::new("own");
    let own = scratch.file("own.toml", OWN);
    let two = scratch.file("two.toml", "[[dialect]]\nname = 'a'\nextends = 'hermes'\n[[dialect]]\nname = 'own'\ncall = '<own_call>{name, arguments}</own_call>'");
    let start = |dialect: &str| {
        format!(r#"{{"type":"stream_start","v":1,"dialect":"{dialect}","prefill":""}}"#)
    };
    let call = r#"{"type":"tool_call_delta","index":0,"tool_name":"f","arguments":"{}","done":true,"from_text":true}"#;
    for (file, dialect, named) in [
        (&own, None, "hermes"),
        (&own, Some("own"), "hermes"),
        (&own, Some("hermes,mine"), "hermes"),
        (&own, Some("auto"), "mine"),
        (&own, Some("auto"), "auto"),
        (&two, None, "own"),
        (&two, None, "auto"),
    ] {
        let mut args = vec!["--no-time", "--dialect-file", file];
        args.extend(
            dialect
                .into_iter()
                .flat_map(|dialect| ["--dialect", dialect]),
        );
        let out = run(&args, &lines(&[&start(named), OWN_CALL, END]));
        let got = inside(&out);
        assert!(
            got.contains(&call),
            "{file} {dialect:?} {named}: {got:?} {}",
            text(&out.stderr)
        );
    }
    let out = run(
        &["--dialect-file", &two],
        &lines(&[&start("hermes"), OWN_CALL, END]),
    );
    assert_eq!(
        inside(&out),
        [OWN_CALL],
        "a file of two leaves it to stream_start"
    );
    let out = run(&["--list-dialects", "--dialect-file", &own], "");
    let first = text(&out.stdout).lines().nth(1).unwrap();
    assert!(first.starts_with("own\tmine\t\t<own_call>\\n{"), "{first}");
}

#[test]
fn the_configuration_of_a_checkpoint_describes_its_dialect() {
    let scratch = Scratch::new("checkpoint");
    let json = r#"{"eos_token": "<end>", "chat_template": "{% if x %}", "response_template": {"start_anchor": "<bot>", "fields": {
        "tool_calls": {"open": "<own_call>", "close": "</own_call>", "content": "json", "transform": {"function": "{content}"}}}}}"#;
    let file = scratch.file("tokenizer_config.json", json);
    let start = r#"{"type":"stream_start","v":1,"dialect":"hermes","prefill":""}"#;
    let end = r#"{"type":"content_delta","text":"<end>"}"#;
    let out = run(
        &["--no-time", "--dialect-file", &file],
        &lines(&[start, OWN_CALL, end, END]),
    );
    let call = r#"{"type":"tool_call_delta","index":0,"tool_name":"f","arguments":"{}","done":true,"from_text":true}"#;
    let yes = r#"{"type":"content_delta","text":"Yes."}"#;
    let dropped = r#"{"type":"warning","source":"tag-parse","code":"tag_dropped","message":"dropped <end>, a token of chat templates","raw":"<end>"}"#;
    assert_eq!(inside(&out), [yes, call, dropped], "{}", text(&out.stderr));
    for (json, words) in [
        (
            "{\n \"chat_template\": \"x\"}",
            "line 1: it has no response_template; expected a tokenizer_config.json",
        ),
        (
            "{\n \"response_template\":\n  7}",
            "line 3: response_template: expected an object",
        ),
        ("{\"response_template\": {", "line 1: not JSON: "),
    ] {
        let file = scratch.file("tokenizer_config.json", json);
        let out = run(&["--dialect-file", &file], "");
        let err = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{err}");
        assert!(
            err.starts_with("tag-parse: ") && err.contains(words) && err.lines().count() == 1,
            "{json}: {err}"
        );
    }
}

#[test]
fn a_mistake_in_a_file_of_dialects_has_a_line() {
    let scratch = Scratch::new("own-mistakes");
    for (toml, words) in [
        (
            "name = 'own'\n\ncall = '<own>{nam}'\n",
            "own.toml line 3: call: the slot {nam} is unknown; expected {name}, ",
        ),
        (
            "name = 'own'\ncolour = 'red'\n",
            "own.toml line 2: unknown key 'colour'; expected one of name, ",
        ),
        (
            "name = 'hermes'\ncall = '<own>{name, arguments}'\n",
            "own.toml line 1: 'hermes' is a name of the dialect 'hermes' already",
        ),
        ("name = 'own\n", "own.toml line 1: "),
    ] {
        let file = scratch.file("own.toml", toml);
        let out = run(&["--dialect-file", &file], "");
        let err = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{err}");
        assert!(
            err.starts_with("tag-parse: ") && err.contains(words) && err.lines().count() == 1,
            "{toml}: {err}"
        );
    }
    let out = run(&["--dialect-file", "no-such.toml"], "");
    assert!(
        text(&out.stderr).starts_with("tag-parse: no-such.toml: No such file"),
        "{}",
        text(&out.stderr)
    );
}

/// Every example of the help runs as it is written.
#[test]
fn the_examples_of_the_help_run() {
    let scratch = Scratch::new("help");
    scratch.file("stream.ndjson", &lines(&[TAG, NAMED, REST, END]));
    scratch.file(
        "tools.json",
        r#"[{"type":"function","function":{"name":"f"}}]"#,
    );
    scratch.file("answer.txt", "All is well.\n");
    scratch.file(
        "own.toml",
        "name = 'own'\ncall = '<own>{name, arguments}</own>'\n",
    );
    std::fs::create_dir(scratch.0.join("checkpoint")).unwrap();
    let own = r#"{"response_template": {"start_anchor": "<bot>", "fields": {"tool_calls": {"open": "<own>", "close": "</own>",
        "content": "json", "transform": {"function": "{content}"}}}}}"#;
    scratch.file("checkpoint/tokenizer_config.json", own);
    let help = run(&["--help"], "");
    let help = text(&help.stdout);
    let examples: Vec<&str> = help
        .lines()
        .filter_map(|l| l.strip_prefix("  tag-parse"))
        .collect();
    assert!(examples.len() >= 5, "{help}");
    let commands = Path::new(env!("CARGO_BIN_EXE_tag-parse")).parent().unwrap();
    let path = format!(
        "{}:{}",
        commands.display(),
        std::env::var("PATH").unwrap_or_default()
    );
    for example in examples {
        let mut shell = Command::new("bash");
        shell
            .args(["-c", &format!("set -o pipefail; tag-parse{example}")])
            .env("PATH", &path)
            .current_dir(&scratch.0);
        let out = shell.stdin(Stdio::null()).output().unwrap();
        assert_eq!(
            (out.status.code(), text(&out.stderr)),
            (Some(0), ""),
            "tag-parse{example}"
        );
        // Nothing leaked into the answer, but the stream is as the model wrote it.
        assert!(!out.stdout.is_empty(), "tag-parse{example}");
    }
    let mut child = command(&["--help"]).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(
        child.wait().unwrap().code(),
        Some(0),
        "a reader that leaves is no error"
    );
}

/// A command with both ends at hand.
struct Live {
    child: Child,
    stdin: std::process::ChildStdin,
    stdout: BufReader<std::process::ChildStdout>,
}

impl Live {
    fn start(args: &[&str]) -> Live {
        let mut child = command(args).spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Live {
            child,
            stdin,
            stdout,
        }
    }

    fn say(&mut self, line: &str) {
        self.stdin
            .write_all(format!("{line}\n").as_bytes())
            .unwrap();
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn end(self) -> Option<i32> {
        let Live {
            mut child,
            stdin,
            mut stdout,
        } = self;
        drop(stdin);
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
        child.wait().unwrap().code()
    }
}
