//! Lists of tools: every command that takes `--tools` reads every shape of them alike, and refuses
//! the same lists in the same words.

use std::fs;
use std::path::PathBuf;
use std::process::Output;
use testkit::bash;

const SCHEMA: &str =
    r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}"#;

/// Text with a call of `weather`, and with one of a tool that is not in the list.
const TEXT: &str = concat!(
    r#"{"type":"stream_start","v":1,"tools_mode":"tag","dialect":"hermes"}"#,
    "\n",
    r#"{"type":"content_delta","text":"<tool_call>{\"name\":\"weather\",\"arguments\":{}}</tool_call><tool_call>{\"name\":\"other\",\"arguments\":{}}</tool_call>"}"#,
    "\n",
    r#"{"type":"stream_end","finish_reason":"stop"}"#,
    "\n",
);
const CALL: &str = concat!(
    r#"{"type":"stream_start","v":1}"#,
    "\n",
    r#"{"type":"tool_call_delta","index":0,"tool_id":"a","tool_name":"weather","arguments":"{}"}"#,
    "\n",
    r#"{"type":"stream_end","finish_reason":"tool_calls"}"#,
    "\n",
);

/// A folder with a tools file, removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str, tools: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("toolpipe-tools-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder for the test");
        for (name, text) in [("tools.json", tools), ("text", TEXT), ("call", CALL)] {
            fs::write(path.join(name), text).expect("a file");
        }
        Folder(path)
    }

    fn run(&self, script: &str) -> Output {
        bash(script, &self.0).output().expect("bash runs")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// How each command is run over `tools.json`, and a piece of what it writes when it has read the
/// list with `weather` in it.
const COMMANDS: [(&str, &str, &str); 4] = [
    (
        "llm-stream",
        "--dry-run --model m --tools tools.json hi </dev/null",
        r#""name":"weather","description":"d","parameters":{"#,
    ),
    (
        "tool-exec",
        "--tools tools.json --list",
        r#""name":"weather","description":"d","parameters":{"#,
    ),
    (
        "tc-accumulate",
        "--tools tools.json <call",
        "/city: is required",
    ),
    (
        "tag-parse",
        "--tools tools.json <text",
        r#""tool_name":"weather""#,
    ),
];

#[test]
fn every_shape_in_every_command() {
    let plain = r#""name":"weather","description":"d""#;
    let shapes = [
        (
            "chat",
            format!(r#"{{"type":"function","function":{{{plain},"parameters":{SCHEMA}}}}}"#),
        ),
        (
            "responses",
            format!(r#"{{"type":"function",{plain},"parameters":{SCHEMA}}}"#),
        ),
        (
            "anthropic",
            format!(r#"{{{plain},"input_schema":{SCHEMA}}}"#),
        ),
        ("mcp", format!(r#"{{{plain},"inputSchema":{SCHEMA}}}"#)),
        (
            "gemini",
            format!(r#"{{"functionDeclarations":[{{{plain},"parameters":{SCHEMA}}}]}}"#),
        ),
        (
            "gemini-json",
            format!(r#"{{"functionDeclarations":[{{{plain},"parametersJsonSchema":{SCHEMA}}}]}}"#),
        ),
        (
            "ours",
            format!(
                r#"{{{plain},"parameters":{SCHEMA},"exec":{{"command":["true","{{city}}"]}}}}"#
            ),
        ),
    ];
    for (shape, entry) in shapes {
        for (place, list) in [
            ("array", format!("[{entry}]")),
            ("object", format!("{{\"tools\":[{entry}]}}")),
        ] {
            let folder = Folder::new(&format!("{shape}-{place}"), &list);
            for (command, arguments, want) in COMMANDS {
                let ran = folder.run(&format!("{command} {arguments}"));
                let out = String::from_utf8_lossy(&ran.stdout);
                assert!(
                    out.contains(want),
                    "{command}, {shape} in an {place}: {ran:?}"
                );
            }
        }
    }
}

#[test]
fn the_same_mistakes_in_the_same_words() {
    let long = format!(r#"[{{"name":"{}"}}]"#, "x".repeat(129));
    for (at, list) in [
        "",
        "7",
        "{}",
        "nonsense",
        "[1]",
        "[{}]",
        r#"[{"type":"function","function":{}}]"#,
        r#"[{"functionDeclarations":[{}]}]"#,
        r#"[{"name":"a"},{"name":"a"}]"#,
        r#"[{"name":"a","name":"b"}]"#,
        r#"[{"name":"sh -c"}]"#,
        r#"[{"name":"a","parameters":[]}]"#,
        r#"[{"name":"a","parameters":{"required":1}}]"#,
        r#"[{"name":"a","parameters":{"$ref":"http://x/"}}]"#,
        &long,
    ]
    .into_iter()
    .enumerate()
    {
        let folder = Folder::new(&format!("mistake-{at}"), list);
        let messages: Vec<String> = COMMANDS
            .iter()
            .map(|(command, arguments, _)| {
                let ran = folder.run(&format!("{command} {arguments}"));
                let text = String::from_utf8_lossy(&ran.stderr).into_owned();
                assert_eq!(
                    (ran.status.code(), text.lines().count()),
                    (Some(2), 1),
                    "{command}, {list}: {ran:?}"
                );
                text.strip_prefix(command).unwrap_or(&text).to_owned()
            })
            .collect();
        assert!(messages[0].starts_with(": tools.json: "), "{messages:?}");
        assert!(
            messages.iter().all(|message| *message == messages[0]),
            "{list}: {messages:#?}"
        );
    }
}

/// The tools of servers are known to tool-exec alone, and every other command says how to get their
/// list.
#[test]
fn servers_of_tools_are_for_tool_exec_alone() {
    let folder = Folder::new(
        "servers",
        r#"{"mcpServers":{"git":{"command":"git-server"}}}"#,
    );
    for (command, arguments, _) in COMMANDS {
        let ran = folder.run(&format!("{command} {arguments}"));
        let text = String::from_utf8_lossy(&ran.stderr).into_owned();
        let want = if command == "tool-exec" {
            "git-server is not found in PATH"
        } else {
            "tool-exec --tools FILE --list >LIST; give LIST here"
        };
        assert!(
            ran.status.code() == Some(2) && text.contains(want) && text.lines().count() == 1,
            "{command}: {ran:?}"
        );
    }
}
